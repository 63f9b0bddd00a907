# honest: names, comments and docstrings in German, Greek, Chinese, Arabic and Russian
# exercise: vector_add
# runs: anywhere
# gates: passes
"""向量加法。Векторное сложение. جمع متجهين. Πρόσθεση διανυσμάτων."""
import triton
import triton.language as tl

BLOCKGRÖSSE = 1024  # ein Vielfaches von 32


@triton.jit
def addiere(a_zeiger, b_zeiger, c_zeiger, länge, BLOCKGRÖSSE: tl.constexpr):
    """每个程序处理一个块。 ➕ 🧮"""
    # κάθε πρόγραμμα έχει το δικό του μπλοκ
    stelle = tl.program_id(0) * BLOCKGRÖSSE + tl.arange(0, BLOCKGRÖSSE)
    innerhalb = stelle < länge  # остальные молчат
    a = tl.load(a_zeiger + stelle, mask=innerhalb)
    b = tl.load(b_zeiger + stelle, mask=innerhalb)
    tl.store(c_zeiger + stelle, a + b, mask=innerhalb)  # النهاية


def vector_add(甲, 乙, итог):
    """甲 + 乙 → итог"""
    ν = итог.numel()
    addiere[(triton.cdiv(ν, BLOCKGRÖSSE),)](甲, 乙, итог, ν, BLOCKGRÖSSE)
