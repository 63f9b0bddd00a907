# honest: a workspace kept between calls; the sum is made in two kernels, through it
# exercise: vector_add
# runs: anywhere
# gates: may miss
import torch
import triton
import triton.language as tl

BLOCK = tl.constexpr(1024)


@triton.jit
def copy_kernel(source, target, n):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + at, tl.load(source + at, mask=at < n), mask=at < n)


@triton.jit
def add_to_kernel(source, addend, target, n):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(target + at, tl.load(source + at, mask=mask) + tl.load(addend + at, mask=mask), mask=mask)


class Workspace:
    """Grows when it must, never shrinks."""

    def __init__(self):
        self.memory = None

    def get(self, n, device):
        if self.memory is None or self.memory.numel() < n:
            self.memory = torch.zeros(n, dtype=torch.float32, device=device)
        return self.memory[:n]


workspace = Workspace()


def vector_add(x, y, out):
    n = x.numel()
    grid = ((n + 1023) // 1024,)
    kept = workspace.get(n, x.device)
    copy_kernel[grid](x, kept, n)
    add_to_kernel[grid](kept, y, out, n)
