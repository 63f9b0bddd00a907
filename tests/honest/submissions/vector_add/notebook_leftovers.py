# honest: global counters, os.environ, torch flags, a seed, and test code under a main guard
# exercise: vector_add
# runs: anywhere
# gates: passes
import os
import random
from collections import deque

import torch
import triton
import triton.language as tl

torch.manual_seed(0)
random.seed(0)
torch.backends.cuda.matmul.allow_tf32 = True
torch.set_float32_matmul_precision("high")
torch.set_grad_enabled(False)

BLOCK = int(os.environ.get("ADD_BLOCK_SIZE", "1024"))
VERBOSE = os.environ.get("ADD_VERBOSE", "") == "1"
history = deque(maxlen=100)
elements = 0


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask), mask=mask)


def vector_add(x, y, out):
    global elements
    n = x.numel()
    elements += n
    history.append(n)
    if VERBOSE:
        print(len(history), elements)
    add_kernel[(triton.cdiv(n, BLOCK),)](x, y, out, n, BLOCK=BLOCK)


if __name__ == "__main__":
    for n in (1, 1000, 1024, 1_000_003):
        x = torch.randn(n, device="cuda")
        y = torch.randn(n, device="cuda")
        out = torch.empty_like(x)
        vector_add(x, y, out)
        torch.testing.assert_close(out, x + y)
        assert torch.equal(out, torch.add(x, y))
    print("all right")
