# says: A race: program 0 stores to `out[0]` and program 1 loads it
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, lock_ptr, BLOCK: tl.constexpr):
    part = tl.sum(tl.load(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)), axis=0)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    total = tl.load(out_ptr) + part
    tl.atomic_xchg(lock_ptr, 0)
    tl.store(out_ptr, total)


def main():
    x, out = torch.randn(256), torch.zeros(1)
    kernel[(4,)](x, out, torch.zeros(1, dtype=torch.int32), BLOCK=64)
    return out, x.sum()
