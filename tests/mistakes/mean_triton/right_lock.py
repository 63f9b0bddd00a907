# right: a lock, as in the tutorial on layer normalisation
# runs: anywhere
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, sum_ptr, count_ptr, lock_ptr, out_ptr, n, B: tl.constexpr):
    pid = tl.program_id(0)
    acc = tl.zeros((B,), tl.float32)
    for at in range(pid * B, n, tl.num_programs(0) * B):
        i = at + tl.arange(0, B)
        acc += tl.load(x_ptr + i, mask=i < n, other=0.0)
    mine = tl.sum(acc)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    done = tl.load(count_ptr)
    total = mine
    if done > 0:
        total += tl.load(sum_ptr)
    tl.store(sum_ptr, total)
    tl.store(count_ptr, done + 1)
    if done + 1 == tl.num_programs(0):
        tl.store(out_ptr, total / n)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


def mean_triton(x, out):
    lock = torch.zeros(2, dtype=torch.int32, device="cuda")
    total = torch.empty(1, dtype=torch.float32, device="cuda")
    kernel[(min(64, triton.cdiv(x.numel(), 1024)),)](x, total, lock[1:], lock, out, x.numel(), B=1024)
