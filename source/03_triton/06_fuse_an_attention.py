# %% [markdown]
# # Fuse an attention
#
# **You will** write the softmax of rows that are too long for an SM, and turn it into a kernel in which language models
# spend much of their time: attention without a stored matrix of scores, known as **FlashAttention**.
#
# **You will learn**
#
# - to compute a softmax in one pass, with a **running maximum** and a sum that is rescaled (*online softmax*)
# - to fuse two matrix products with a softmax between them
# - to mask scores: past the end, and above the diagonal (*causal* attention)
# - to tell whether bytes, multiplications or exponentials limit a kernel
# - why the backward pass does not need that matrix either
#
# **You need** about 130 minutes, [Fuse a softmax](03_fuse_a_softmax.ipynb) and
# [Multiply matrices](04_multiply_matrices.ipynb). Every point for correctness can be earned without a GPU: your kernels
# run in Triton's interpreter, slowly, and the report of `check` says what it cannot see there. Points for speed need an
# NVIDIA GPU.

# %%
from grader import benchmark, check, device
from grader.explore import compare, count_traffic, draw_running_maximum, draw_score_tiles, recorded, tile_kinds

device

# %%
import math

import torch
import triton
import triton.language as tl

# %% [markdown]
# ## Rows that do not fit
#
# Your first softmax kept a row on the chip: it loaded the row once, did all five steps, and stored it once. An SM of an
# H100 or H200 has 256 KiB of registers, and 228 KiB of shared memory.
#
# A vocabulary of 262,144 tokens gives rows of 262,144 float32. Predict: the registers of how many SMs would one such
# row fill?

# %%
prediction = ...  # SMs

# %%
row_bytes = 4 * 262_144
compare(prediction, row_bytes // (256 * 1024), "SMs", how="computed")

# %% [markdown]
# So a program must go over the row in **pieces**. The obvious way takes three passes:
#
# 1. find the maximum $m$
# 2. add up $e^{x_j - m}$
# 3. write $e^{x_i - m}$ divided by that sum
#
# Each pass reads the row from memory, unless the row is still in the L2 cache. Predict: how many bytes do the three
# passes move, compared with a copy of the row?

# %%
prediction = ...  # times the bytes of a copy

# %%
reads, writes = 3, 1
compare(prediction, (reads + writes) / 2, "times the bytes of a copy", how="computed")

# %% [markdown]
# ## One pass for the maximum and the sum
#
# The second pass needs the maximum of the *whole* row, which the first pass has only at its end. But suppose you start
# adding anyway, with the maximum of what you have seen so far. If a new piece then raises the maximum from $m$ to $m'$,
# every term of the sum so far is too large, by the same factor:
#
# $$ e^{x_j - m} = e^{x_j - m'} \cdot e^{m' - m} $$
#
# Multiply the sum by $e^{m - m'}$ once, and go on. This is the **online softmax** of
# [Milakov and Gimelshein](https://arxiv.org/abs/1805.02867) (2018). Here it is for a row of 12 elements in pieces of 4:

# %%
row = [1.0, 2.0, 3.0, 1.0, 2.0, 7.0, 0.0, 1.0, 5.0, 4.0, 6.0, 2.0]
draw_running_maximum(row, piece=4)

# %% [markdown]
# In the second piece the maximum rises from 3 to 7. The sum so far shrinks to nearly nothing, because next to $e^7$
# it *is* nearly nothing. In the third piece the maximum stays, and the factor is 1.
#
# The same in PyTorch. `total` is the sum so far.

# %%
def online_sum(row, piece):
    highest, total = torch.tensor(-3.4e38), torch.tensor(0.0)
    for part in row.split(piece):
        higher = torch.maximum(highest, part.max())
        total = total * (highest - higher).exp() + (part - higher).exp().sum()
        highest = higher
    return highest, total


# %%
highest, total = online_sum(torch.tensor(row), piece=4)
torch.allclose((torch.tensor(row) - highest).exp() / total, torch.tensor(row).softmax(dim=0))

# %% [markdown]
# What if you forget to rescale? Take the row 0, 0, 0, 0, 5, 5, 5, 5 in pieces of 4. The right sum is $4 e^{-5} + 4$, a
# little above 4. Predict: which sum do you get without the factor?

# %%
prediction = ...  # the sum

# %%
def sum_without_factor(row, piece):
    highest, total = -math.inf, 0.0
    for part in row.split(piece):
        highest = max(highest, part.max().item())
        total += (part - highest).exp().sum().item()
    return total


compare(prediction, sum_without_factor(torch.tensor([0.0] * 4 + [5.0] * 4), piece=4))

# %% [markdown]
# Each of the first four terms counts as $e^{0 - 0} = 1$, as if it were the largest.

# %% [markdown]
# ### Where to start
#
# Why does `online_sum` start at -3.4 · 10³⁸, close to the lowest float32, and not at $-\infty$? Because a row may begin
# with a whole piece of $-\infty$: masked tokens. Predict: what is `exp(old_max - new_max)` then, if both are $-\infty$?

# %%
prediction = ...  # "0", "1", "inf" or "nan"

# %%
minus_infinity = torch.tensor(-math.inf)
compare(prediction, str((minus_infinity - minus_infinity).exp().item()))

# %% [markdown]
# Infinity minus infinity is not a number, and one NaN spoils the whole row. With a finite start, the factor is
# $e^0 = 1$ and the sum stays 0 until a finite element arrives.

# %% [markdown]
# ## Exercise: the softmax of long rows
#
# Write the softmax of each row of `x` into `out`. As before, they are float32 and rows may be padded. Values may be
# anything, with $-\infty$ among them, but never in a whole row. Now a row may have **any length**: up to about a
# million elements in the checks, and 262,144 where it is timed.
#
# 1. A program per row. First pass: go over the row in pieces, with a running maximum and a sum. *(about 8 lines)*
# 2. Second pass: over the same pieces again, and store. *(about 4 lines)*
# 3. The launch: a piece has a fixed length, a power of two. Triton's largest block has 2²⁰ elements, and a fast one is
#    far smaller. *(about 3 lines)*
#
# A `for` loop with a step, `range(0, columns, BLOCK)`, works in a kernel. A variable that changes in the loop must keep
# its type: start the maximum as `-3.4e38` and the sum as `0.0`, which become float32.

# %% nbgrader={"grade_id": "softmax_long", "solution": true}
import triton
import triton.language as tl


@triton.jit
def softmax_long_kernel(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    ### BEGIN SOLUTION
    row = tl.program_id(0).to(tl.int64)
    piece = tl.arange(0, BLOCK)
    row_max = -3.4e38
    denominator = 0.0
    for start in range(0, columns, BLOCK):
        column = start + piece
        x = tl.load(x_ptr + row * x_stride + column, mask=column < columns, other=-float("inf"))
        new_max = tl.maximum(row_max, tl.max(x, axis=0))
        denominator = denominator * tl.exp(row_max - new_max) + tl.sum(tl.exp(x - new_max), axis=0)
        row_max = new_max
    for start in range(0, columns, BLOCK):
        column = start + piece
        x = tl.load(x_ptr + row * x_stride + column, mask=column < columns, other=0.0)
        tl.store(out_ptr + row * out_stride + column, tl.exp(x - row_max) / denominator, mask=column < columns)
    ### END SOLUTION


def softmax_long(x, out):
    ### BEGIN SOLUTION
    rows, columns = x.shape
    block = min(triton.next_power_of_2(columns), 32_768)
    strides = x.stride(0), out.stride(0)
    softmax_long_kernel[(rows,)](x, out, *strides, columns, BLOCK=block, num_warps=32 if block > 2048 else 4)
    ### END SOLUTION


# %% [markdown]
# The points: ⟦ exercise("softmax_long").correctness_points ⟧ for right answers, and
# ⟦ gate("softmax_long", "torch").points ⟧ for ⟦ gate("softmax_long", "torch").at_least ⟧ times the speed of
# `torch.softmax`, as the geometric mean over ⟦ gate("softmax_long", "torch").cases | join(" and ") ⟧.

# %% nbgrader={"grade_id": "check-softmax_long", "grade": true, "locked": true, "points": 7}
check(softmax_long)

# %% [markdown]
# When `check` passes, launch your kernel yourself, on two rows of 131,072 elements. Each row should add up to 1, except
# for rounding, and agree with PyTorch's softmax.

# %%
x = 10 * torch.randn(2, 1 << 17, device=device)
out = torch.zeros_like(x)
try:
    softmax_long(x, out)
except NotImplementedError as stub:
    print(stub)
print("sums:", out.sum(dim=1).tolist(), f"largest difference: {(out - x.softmax(dim=1)).abs().max().item():.2g}")

# %% [markdown]
# ### How fast can it get?
#
# Count bytes. Your kernel reads the row twice and writes it once, and a copy reads and writes it once. The bandwidth
# counts only what *must* be moved, one read and one write. Predict: what share of a copy's bandwidth can your kernel
# reach, if the second read comes from memory again?

# %%
prediction = ...  # share of a copy

# %%
compare(prediction, round(2 / 3, 2), "of a copy", how="computed")

# %% [markdown]
# If the second read comes from the **L2 cache**, the share can be close to 1. That depends on how many rows the GPU works
# on at the same time. The output passes through the L2 as well, so count each row twice: with one program on each of
# 132 SMs, rows of 65,536 elements take 66 MiB. The L2 cache of an H100 or H200 has 50 MB.
#
# The kernel of [Fuse a softmax](03_fuse_a_softmax.ipynb) reads each row once. At N = 32768 it reached
# ⟦ recorded(bench="softmax", case="4096 × 32768", metric="share_of_copy", gpu="H200") ⟧ of a copy on an H200.

# %%
benchmark(softmax_long)

# %%
recorded("softmax_long", "ratio_vs_torch", "ratio_vs_eager", "ratio_vs_compile", "share_of_copy")

# %% [markdown]
# With a GPU: where does your curve fall towards two thirds? Multiply twice the bytes of a row there by the number of
# programs that run at the same time, and compare the product with your GPU's L2 cache.
#
# ### Several programs per row
#
# All SMs together have 33 MiB of registers, and a row of 262,144 takes 1 MiB. So let several programs share a row. Each
# loads one piece of 8,192 elements and keeps it in registers. It stores its maximum and its sum, and waits until all
# `PIECES` programs of the row have done so. Then it combines these few numbers, and stores its piece of the output. Each
# element is read once. This is the wait, with one counter per row that starts at 0:
#
# ```python
# tl.atomic_add(done_ptr + row, 1, sem="release")
# while tl.atomic_add(done_ptr + row, 0, sem="acquire") < PIECES:
#     pass
# ```
#
# `tl.atomic_add` returns the old value. The second line adds 0, so it only reads the counter. With `release`, a program
# that sees the new count also sees everything that this one stored before. With `acquire`, no later load is done before
# the counter is read.
#
# Waiting for another program is dangerous: if it cannot start before this one ends, both wait forever. CUDA guarantees
# no order, but in practice programs start in the order of their numbers. So the wait ends if all programs of a row fit on
# the GPU together. For longer rows the authors' launch uses one program per row.

# %%
recorded("softmax_long/fastest", "ratio_vs_torch", "ratio_vs_compile", "share_of_copy")

# %% [markdown]
# [QuACK](https://github.com/Dao-AILab/quack) does the same with a Hopper feature that Triton does not offer: the thread
# blocks of a *cluster* start together and read each other's shared memory.

# %% [markdown]
# ## Attention
#
# **Attention** has three inputs: queries $Q$, keys $K$ and values $V$, each a matrix of $n$ rows (one per token) and $d$
# columns (the *head size*). Each row of the output is a weighted mean of the rows of $V$.
#
# $$ O = \text{softmax}\!\left(\frac{Q K^T}{\sqrt d}\right) V $$
#
# The softmax runs over each row of the **scores** $S = Q K^T / \sqrt d$, and its result $P$ holds the **weights**.
# Without the division by $\sqrt d$ the scores would grow with $d$, and one weight would take nearly everything. A
# model has several *heads* per layer, each with its own $Q$, $K$ and $V$, and a batch of texts. Here the first axis
# runs over the heads of all texts.

# %%
def eager_attention(q, k, v):
    scores = torch.matmul(q, k.transpose(1, 2))
    scores = scores / math.sqrt(q.shape[2])
    weights = scores.softmax(dim=2)
    return torch.matmul(weights, v)


q, k, v = (torch.randn(2, 1024, 64, device=device).half() for _ in range(3))
eager_attention(q, k, v).shape

# %% [markdown]
# Scores and weights are matrices of $n \times n$. Predict: how many times the size of `q` do the four operations move,
# with $n = 1024$ and $d = 64$? A fused kernel must move 4: three inputs in, one output out.

# %%
prediction = ...  # times the size of q

# %%
eager = count_traffic(eager_attention, q, k, v)
compare(prediction, round(eager.total), "times the size of q", how="computed")
eager

# %% [markdown]
# An $n \times n$ matrix is $n/d = 16$ times as large as `q`, and the sequence moves six of them: the first operation
# writes one, the next two each read one and write one, and the last reads one. With `q`, `k`, `v` and the output, that
# makes 100 times the size of `q`. At $n = 16{,}384$ each matrix is 256 times as large as `q`: 512 MiB per head in
# float16. This is why long texts once did not fit on a GPU at all.
#
# ### Two limits
#
# Take $n = 4096$, $d = 64$ and 32 heads. Both products together take $4 n^2 d$ operations per head. On the recorded
# H200, a copy reached ⟦ recorded(bench="ceilings", case="large copy", metric="bandwidth_gbps", gpu="H200") ⟧ and a
# float16 product ⟦ recorded(bench="ceilings", case="float16 matrix product", metric="tflops", gpu="H200") ⟧.

# %%
n, d, heads = 4096, 64, 32
ceilings = recorded("ceilings", "bandwidth_gbps", "tflops")
gbps, tflops = ceilings.value("bandwidth_gbps", "large copy"), ceilings.value("tflops", "float16 matrix product")
operations = 4 * heads * n**2 * d
to_multiply_ms = operations / tflops / 1e9

# %% [markdown]
# Predict: how many times as long does it take to move the *bytes* of the eager sequence as to do its *operations*?

# %%
prediction = ...  # times

# %%
eager_bytes = 2 * heads * (6 * n**2 + 4 * n * d)
fused_bytes = 2 * heads * 4 * n * d
print(f"to multiply:           {to_multiply_ms:.3f} ms")
print(f"bytes of the sequence: {eager_bytes / gbps / 1e6:.3f} ms")
print(f"bytes if fused:        {fused_bytes / gbps / 1e6:.3f} ms")
compare(prediction, round(eager_bytes / gbps / 1e6 / to_multiply_ms, 1), "times", how="computed")

# %% [markdown]
# The eager sequence is **memory-bound**, although it multiplies matrices. Fused, it would be **compute-bound**. All
# it takes is to keep the scores on the chip.

# %% [markdown]
# ## The matrix that is never stored
#
# A program computes one **tile of the output**: 128 rows, say. It keeps the matching tile of `q`, and goes along the
# keys. In each step it loads a tile of `k` and a tile of `v`, computes one tile of scores, uses it, and forgets it.

# %%
draw_score_tiles(tiles=6, row=3)

# %% [markdown]
# A row of scores comes in pieces, so its softmax must be online: a running maximum and a sum per row. But what about the
# second pass? A softmax has to visit each element again, in order to divide it. Attention does not, because it uses the
# weights only in a sum,
#
# $$ o_i = \frac{\sum_j e^{s_{ij} - m_i}\, v_j}{\sum_j e^{s_{ij} - m_i}}. $$
#
# The numerator is a sum like the denominator. So accumulate **both**, and rescale both when the maximum rises. Divide
# once, at the end. This is FlashAttention's forward pass, for one tile of rows:

# %%
def one_program(q, k, v, tile):
    highest, sums, numerator = -3.4e38, 0.0, 0.0
    for some_keys, some_values in zip(k.split(tile), v.split(tile), strict=True):
        s = q @ some_keys.T / math.sqrt(q.shape[1])
        higher = s.amax(dim=1, keepdim=True).clamp(min=highest)
        shrink, e = (highest - higher).exp(), (s - higher).exp()
        sums = sums * shrink + e.sum(dim=1, keepdim=True)
        numerator = numerator * shrink + e @ some_values
        highest = higher
    return numerator / sums


# %%
a, b, c = (torch.randn(256, 64) for _ in range(3))
right = torch.nn.functional.scaled_dot_product_attention(a[None], b[None], c[None])[0]
torch.allclose(one_program(a[:128], b, c, tile=32), right[:128], atol=1e-5)

# %% [markdown]
# ### Which numbers are float16?
#
# Tensor cores multiply float16 and add in float32. `tl.dot(q, k)` gives float32 scores. The softmax stays in float32,
# and the weights are rounded to float16 for the second product: `weights.to(tl.float16)`. The accumulator must be
# float32. Suppose it were float16, and 600 keys had the same score and a value of 150 each. Before the division each
# weight is $e^0 = 1$. Predict: what does the accumulator hold at the end?

# %%
prediction = ...  # a number, or "inf"

# %%
total = torch.tensor(0.0).half()
for _ in range(600):
    total += 150
compare(prediction, str(total.item()))

# %% [markdown]
# The sum is 90,000. The largest float16 is 65,504.
#
# ### `exp2` costs one multiplication less
#
# A GPU has an instruction for $2^x$ and none for $e^x$: `tl.exp(x)` becomes $2^{x \log_2 e}$. The scores are multiplied
# by $1/\sqrt d$ anyway. So put both factors into one, and call `tl.exp2`. Predict: which scale is that for $d = 64$?

# %%
prediction = ...  # the scale

# %%
compare(prediction, round(math.log2(math.e) / math.sqrt(64), 4), how="computed")

# %% [markdown]
# Never mix the two: a scale meant for `exp2` in an `exp` gives weights that are too sharp, and no error.

# %% [markdown]
# ## Two masks
#
# **Past the end.** If $n$ is not a multiple of the tile, the last tile of keys has rows that do not exist. Load them as
# 0, so that no NaN gets in, and set their **scores** to $-\infty$. A key of zeros has a score of 0, and $e^{0 - m}$
# would count. In Triton that is `tl.where(seen, scores, -float("inf"))`.
#
# **Causal mask.** A language model predicts the next token, so token $i$ must not see later ones: row $i$ of the scores
# keeps the keys $0 \dots i$. For whole tiles the mask even saves work:

# %%
draw_score_tiles(tiles=6, row=3, causal=True)

# %% [markdown]
# Tiles right of the diagonal need not be computed, and tiles left of it need no mask. Predict, for $n = 4096$ and tiles
# of 64 × 64: what percentage of the tiles is computed, and what percentage of *those* needs the mask?

# %%
prediction = ...  # two numbers in a list, such as [70, 10]

# %%
kinds = [kind for tile_row in tile_kinds(4096 // 64, causal=True) for kind in tile_row]
computed = len(kinds) - kinds.count("skipped")
compare(prediction, [round(100 * computed / len(kinds)), round(100 * kinds.count("masked") / computed)], how="computed")

# %% [markdown]
# The tiles need not be square. With 128 rows and 64 keys per tile, two tiles of each row of tiles touch the diagonal.

# %% [markdown]
# ## Exercise: attention
#
# Write the attention of `q`, `k` and `v` into `out`. All four are float16 and have the shape (heads, length, head
# size), and `causal` is `True` or `False`. The head size is 64 or 128, the length anything from 1 to 16,384. The
# elements of a row are neighbours. Rows may be padded, in each tensor differently: use `stride(0)` for heads and
# `stride(1)` for rows.
#
# 1. A program per tile of rows and per head, in a grid of two axes, `[(tiles, heads)]`. In the kernel,
#    `tl.program_id(0)` is then the tile and `tl.program_id(1)` the head. It loads its tile of `q` once. *(about 8 lines)*
# 2. The loop over tiles of keys: scores, mask, running maximum, sum and accumulator. *(about 15 lines)*
# 3. Divide, round to float16, store. *(about 2 lines)*
# 4. The launch. *(about 6 lines)*
#
# Five things to know:
#
# - The kernel's parameters are given, and you may change them. `q_head` and `q_row` are strides of `q`; a program owns
#   `BLOCK_M` rows and takes `BLOCK_N` keys per step; `HEAD` is the head size, 64 or 128.
# - Load `k` as a tile of (head size, keys), with `[:, None]` along the head: then `tl.dot(q, k)` has the right shape.
#   Or load it as it is stored, and use `tl.trans(k)`.
# - `tl.full((BLOCK_M,), -3.4e38, tl.float32)` is a block filled with that value, here the initial maximum of each row.
# - `CAUSAL: tl.constexpr` is known when the kernel is compiled, so `if CAUSAL:` costs nothing.
# - Begin with one loop that masks every tile. When `check` passes, let a first loop run over the tiles that need no
#   mask.

# %% nbgrader={"grade_id": "attention", "solution": true}
import math

import triton
import triton.language as tl

### BEGIN SOLUTION
@triton.jit
def add_tile(products, scale, v, row_max, sums, total):
    new_max = tl.maximum(row_max, tl.max(products, axis=1) * scale)
    weights = tl.exp2(products * scale - new_max[:, None])  # one instruction multiplies and subtracts
    factor = tl.exp2(row_max - new_max)
    sums = sums * factor + tl.sum(weights, axis=1)
    return new_max, sums, tl.dot(weights.to(tl.float16), v, total * factor[:, None])
### END SOLUTION


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, q_head, q_row, k_head, k_row, v_head, v_row, out_head, out_row, length, scale,
    CAUSAL: tl.constexpr, HEAD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    ### BEGIN SOLUTION
    first = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_M  # causal: the longest programs start first
    head = tl.program_id(1).to(tl.int64)
    rows, keys, part = first + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, HEAD)
    q_at = q_ptr + head * q_head + rows[:, None] * q_row + part[None, :]
    k_at = k_ptr + head * k_head + part[:, None] + keys[None, :] * k_row
    v_at = v_ptr + head * v_head + keys[:, None] * v_row + part[None, :]
    q = tl.load(q_at, mask=rows[:, None] < length, other=0.0)
    row_max = tl.full((BLOCK_M,), -3.4e38, dtype=tl.float32)
    sums = tl.zeros((BLOCK_M,), dtype=tl.float32)
    total = tl.zeros((BLOCK_M, HEAD), dtype=tl.float32)
    whole = (first if CAUSAL else length) // BLOCK_N * BLOCK_N  # every row sees the keys before this one
    end = min(first + BLOCK_M, length) if CAUSAL else length
    for start in range(0, whole, BLOCK_N):
        k = tl.load(k_at + start * k_row)
        v = tl.load(v_at + start * v_row)
        row_max, sums, total = add_tile(tl.dot(q, k), scale, v, row_max, sums, total)
    for start in range(whole, end, BLOCK_N):
        inside = start + keys < length
        k = tl.load(k_at + start * k_row, mask=inside[None, :], other=0.0)
        v = tl.load(v_at + start * v_row, mask=inside[:, None], other=0.0)
        seen = inside[None, :] & (start + keys[None, :] <= rows[:, None]) if CAUSAL else inside[None, :]
        products = tl.where(seen, tl.dot(q, k), -float("inf"))
        row_max, sums, total = add_tile(products, scale, v, row_max, sums, total)
    out_at = out_ptr + head * out_head + rows[:, None] * out_row + part[None, :]
    tl.store(out_at, (total / sums[:, None]).to(tl.float16), mask=rows[:, None] < length)
    ### END SOLUTION


def attention(q, k, v, out, causal):
    ### BEGIN SOLUTION
    heads, length, head = q.shape
    strides = [stride for x in (q, k, v, out) for stride in x.stride()[:2]]
    scale = math.log2(math.e) / math.sqrt(head)
    grid = (triton.cdiv(length, 128), heads)
    attention_kernel[grid](
        q, k, v, out, *strides, length, scale, CAUSAL=causal, HEAD=head, BLOCK_M=128, BLOCK_N=64,
        num_warps=8, num_stages=3,
    )
    ### END SOLUTION


# %% [markdown]
# Among the checks are lengths that tiles do not divide, scores above 100 and below -100, sums that exceed 65,504, and
# one key far above the rest. The tolerance allows for weights that are rounded to float16, but not to float8.

# %% nbgrader={"grade_id": "check-attention", "grade": true, "locked": true, "points": 12}
check(attention)

# %% [markdown]
# When `check` passes, launch your kernel yourself, on the first 256 tokens of `q`, `k` and `v` from above, with a causal
# mask. The difference from PyTorch's result should be a float16 rounding error: a few thousandths at most.

# %%
few = [x[:, :256] for x in (q, k, v)]
out = torch.zeros(2, 256, 64, dtype=torch.float16, device=device)
try:
    attention(*few, out, causal=True)
except NotImplementedError as stub:
    print(stub)
expected = torch.nn.functional.scaled_dot_product_attention(*few, is_causal=True)
print(f"largest difference: {(out - expected).abs().max().item():.2g}")

# %% [markdown]
# ### What limits it now?
#
# A fused kernel moves few bytes. Its products take $4 d$ operations per score. But each score also takes one
# **exponential**, and an SM has few units for those. According to the
# [FlashAttention-3 paper](https://arxiv.org/abs/2407.08608) (2024), an H100 (SXM) computes 3.9 · 10¹² of them per second
# at best. Its tensor cores reach 989 · 10¹² operations per second.
#
# Predict: how long do the exponentials take, compared with the products, for $d = 64$ and for $d = 128$?

# %%
prediction = ...  # two ratios in a list

# %%
def exp_over_products(d):
    return round((1 / 3.9e12) / (4 * d / 989e12), 1)


compare(prediction, [exp_over_products(64), exp_over_products(128)], how="computed")

# %% [markdown]
# For $d = 64$ both take equally long. A kernel that waits for one before it starts the other reaches at most half of the
# peak. FlashAttention-3 therefore lets two groups of warps take turns: while one multiplies, the other computes
# exponentials.
#
# The points:
#
# - ⟦ exercise("attention").correctness_points ⟧ for right answers
# - ⟦ gate("attention", "eager").points ⟧ for ⟦ gate("attention", "eager").at_least ⟧ times the speed of the eager
#   sequence
# - ⟦ gate("attention", "sdpa").points ⟧ for ⟦ gate("attention", "sdpa").at_least ⟧ times the speed of
#   `scaled_dot_product_attention`, PyTorch's own fused kernels
#
# Both are geometric means over ⟦ gate("attention", "sdpa").cases | join("; ") ⟧ (heads × length × head size).
#
# Predict for 32 × 4096 × 64 without a causal mask: how many times as fast as the eager sequence was the authors' kernel,
# on an H200?

# %%
prediction = ...  # times as fast as the eager sequence

# %%
found = recorded("attention", "ratio_vs_eager", "ratio_vs_sdpa", "ratio_vs_compile")
compare(prediction, found.value("ratio_vs_eager", "32 × 4096 × 64"), "times as fast", how="recorded")
found

# %%
benchmark(attention)

# %% [markdown]
# With a causal mask the lead is larger: the eager sequence still computes all scores, and masks them in one more operation.
#
# With a GPU, compare your TFLOPS with those of [Match cuBLAS](05_match_cublas.ipynb), where the authors' product reached
# ⟦ recorded(bench="matmuls", case="descriptors, persistent grid, 4096", metric="rate_tflops", gpu="H200") ⟧ on an H200.
# Part of the difference is the time for maxima, exponentials and factors, in which the tensor cores wait.
#
# ### The last ten per cent
#
# [Match cuBLAS](05_match_cublas.ipynb) loaded its tiles with tensor descriptors. They help here as well: no thread
# computes addresses, so the threads have more time for exponentials. With descriptors that cover the whole head size,
# and 64 queries per program, the authors' kernel reached:

# %%
recorded("attention/fastest", "ratio_vs_eager", "ratio_vs_sdpa", "ratio_vs_compile")

# %% [markdown]
# ## The backward pass, to read
#
# Training needs gradients: given $dO$, find $dQ$, $dK$ and $dV$. PyTorch's autograd would keep $P$, all $n^2$ weights.
# A fused kernel does not have them, and **computes them again**.
#
# As for any product, $O = P V$ gives
#
# $$ dV = P^T dO, \qquad dP = dO\, V^T. $$
#
# The next step back is the softmax of a row. With $P_{ij} = e^{S_{ij}} / \sum_k e^{S_{ik}}$,
#
# $$ dS_{ij} = P_{ij} \Big( dP_{ij} - \sum_k P_{ik}\, dP_{ik} \Big). $$
#
# The sum over $k$ looks as if it needed the whole row of weights. It does not:
#
# $$ \sum_k P_{ik}\, dP_{ik} = \sum_k P_{ik} \sum_c dO_{ic} V_{kc} = \sum_c dO_{ic} O_{ic} =: D_i, $$
#
# a dot product of two rows that the program already holds. Finally, since $S = Q K^T / \sqrt d$,
#
# $$ dQ = dS\, K / \sqrt d, \qquad dK = dS^T Q / \sqrt d. $$
#
# And $P$ itself? The forward pass saves one number per row, $L_i = m_i + \ln \sum_j e^{s_{ij} - m_i}$, the logarithm of
# the whole sum. Then $P_{ij} = e^{S_{ij} - L_i}$, without a running maximum.
#
# Here are the gradients from one tile of keys, then from all tiles, compared with autograd:

# %%
def gradients_of_tile(q, k, v, grad_out, row_dots, log_sums):
    scale = 1 / math.sqrt(q.shape[1])
    p = (q @ k.T * scale - log_sums).exp()  # the weights, computed again
    grad_v = p.T @ grad_out
    grad_s = p * (grad_out @ v.T - row_dots)
    return grad_s @ k * scale, grad_s.T @ q * scale, grad_v


# %%
a, b, c = (torch.randn(200, 64, requires_grad=True) for _ in range(3))
s = a @ b.T / math.sqrt(64)
out = s.softmax(dim=1) @ c
grad_out = torch.randn_like(out)
expected = torch.autograd.grad(out, (a, b, c), grad_out)

# %%
with torch.no_grad():
    given = grad_out, (grad_out * out).sum(dim=1, keepdim=True), s.logsumexp(dim=1, keepdim=True)
    tiles = [gradients_of_tile(a, keys, values, *given) for keys, values in zip(b.split(64), c.split(64), strict=True)]
    parts_q, parts_k, parts_v = zip(*tiles, strict=True)
    found = sum(parts_q), torch.cat(parts_k), torch.cat(parts_v)
[torch.allclose(one, other, atol=1e-5) for one, other in zip(found, expected, strict=True)]

# %% [markdown]
# Count the products in `gradients_of_tile`. Predict: how many times the operations of the forward pass does the
# backward pass take?

# %%
prediction = ...  # times

# %%
products_forward, products_backward = 2, 5  # q kᵀ, p v; q kᵀ again, pᵀ dO, dO vᵀ, dS k, dSᵀ q
compare(prediction, products_backward / products_forward, "times", how="computed")

# %% [markdown]
# One of the five computes the scores a second time. By the count above, that takes far less time than moving $n^2$
# numbers to memory and back.
#
# In a kernel each program takes a tile of *keys*, so that `grad_k` and `grad_v` stay in its accumulators. `grad_q` then
# gets a part from every program. Either the programs add these parts with atomics, or a second kernel computes `grad_q`
# by rows.

# %% [markdown]
# ## Extra credit
#
# No points. Change an exercise's cell, run it, `check` it, and `benchmark` it if you have a GPU.
#
# 1. Let the second pass of `softmax_long` go over the pieces from the last to the first. Why might that be faster, and
#    for which rows?
#
# <details><summary>Answer</summary>
#
# The pieces that the first pass read last are the likeliest to be still in the L2 cache. From first to last, later pieces
# may have pushed each piece out before it is needed. Expect a gain only for rows that do not fit into the L2 together,
# and measure it.
#
# </details>
#
# 2. With a causal mask, the program of the first rows has one or two tiles, and the program of the last rows has all of
#    them. In which order should the programs start?
#
# <details><summary>Answer</summary>
#
# The longest first: compute the tile of rows from `tl.num_programs(0) - 1 - tl.program_id(0)`. Programs start roughly
# in the order of their numbers, so otherwise a long one may start last, and a few SMs work at the end while the
# others wait: a *tail*. Measure whether it matters with many heads.
#
# </details>
#
# 3. Autotune `BLOCK_M`, `BLOCK_N`, `num_warps` and `num_stages`, as in [Multiply matrices](04_multiply_matrices.ipynb).
#    What would you expect to limit `BLOCK_M = 256` for a head size of 128?
#
# <details><summary>Answer</summary>
#
# Registers. The accumulator has 256 × 128 float32, 128 KiB of the SM's 256 KiB, and the scores and weights need room as
# well. Values that do not fit are spilled to memory. The next notebook shows how to count spilled values without a GPU.
#
# </details>
#
# 4. In *grouped-query* attention, several heads of queries share one head of keys and values. What must change?
#
# <details><summary>Answer</summary>
#
# Only the pointers: with G heads of queries per head of keys, `k` starts at `(head // G) * k_head`, and `v` in the same
# way. Programs of G heads then read the same keys, so all but the first may find them in the L2 cache.
#
# </details>

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - computed a softmax with a running maximum, in two passes instead of three
# - counted that a row's second read is cheap only while the row is in the L2 cache
# - fused two products and a softmax into a kernel whose scores never leave the chip
# - masked keys past the end and above the diagonal, and skipped what is masked completely
# - found that exponentials can limit a kernel as much as products do
# - followed the gradients through a softmax that was never stored
#
# ## Check yourself
#
# <details><summary>Why does attention need no second pass over the keys, although a softmax does?</summary>
#
# A softmax writes every weight, and each must be divided by the final sum. Attention writes only the weighted sum of the
# values. That sum can be divided as a whole, at the end.
#
# </details>
#
# <details><summary>The maximum rises in the last tile. What happens to everything computed before?</summary>
#
# It is multiplied by exp(old_max - new_max), the sum and the accumulator alike. Nothing is computed again.
#
# </details>
#
# <details><summary>Keys past the end were loaded as 0. Why is that not enough?</summary>
#
# Their score is 0, not -∞. exp(0 - max) goes into the sum, and the output becomes too small. If all scores are far
# below zero, those keys win.
#
# </details>
#
# <details><summary>What must the forward pass keep for the backward pass?</summary>
#
# Its inputs, its output, and one number per row: the logarithm of the sum of the exponentials.
#
# </details>
#
# <details><summary>You double the length. By how much do the time and the memory of the fused kernel grow?</summary>
#
# The time by four, because there are four times as many scores. The memory by two: no matrix of scores is stored.
#
# </details>
#
# ## Read on
#
# - [FlashAttention](https://arxiv.org/abs/2205.14135) by Dao and others (2022): tiles, and a backward pass that computes
#   the weights again.
# - [FlashAttention-2](https://arxiv.org/abs/2307.08691) by Dao (2023): the loops exchanged, so that a program owns a tile
#   of rows, as yours does.
# - [Triton's tutorial](https://triton-lang.org/main/getting-started/tutorials/06-fused-attention.html) on fused
#   attention: forward and backward, with tensor descriptors.
#
# **Next:** [Look inside the compiler](07_look_inside_the_compiler.ipynb), which shows what becomes of such a kernel.
# Your points are in the [syllabus](../README.ipynb).
