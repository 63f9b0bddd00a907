# right: tensor descriptors where they are possible, several configurations, and q scaled beforehand
# runs: anywhere
import math

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


def set_blocks(given):
    m, n, head = given["BLOCK_M"], given["BLOCK_N"], given["HEAD"]
    given["q"].block_shape = given["out"].block_shape = [1, m, head]
    given["k"].block_shape = given["v"].block_shape = [1, n, head]


CONFIGS = [
    triton.Config({"BLOCK_M": m, "BLOCK_N": n}, num_warps=warps, num_stages=2, pre_hook=set_blocks)
    for m, n, warps in ((64, 64, 4), (128, 64, 8))
]


@triton.autotune(CONFIGS, key=["length", "HEAD", "CAUSAL"])
@triton.jit
def described_kernel(q, k, v, out, length, scale, CAUSAL: tl.constexpr, HEAD: tl.constexpr, BLOCK_M: tl.constexpr,
                     BLOCK_N: tl.constexpr):  # fmt: skip
    first, head = tl.program_id(0) * BLOCK_M, tl.program_id(1)
    row = first + tl.arange(0, BLOCK_M)[:, None]
    queries = q.load([head, first, 0]).reshape(BLOCK_M, HEAD)
    queries = (queries * scale).to(tl.float16)
    highest = tl.zeros((BLOCK_M, 1), dtype=tl.float32) - 1e30
    sums = tl.zeros((BLOCK_M, 1), dtype=tl.float32)
    total = tl.zeros((BLOCK_M, HEAD), dtype=tl.float32)
    last = first + BLOCK_M if CAUSAL else length
    for start in tl.range(0, min(last, length), BLOCK_N):
        keys = k.load([head, start, 0]).reshape(BLOCK_N, HEAD)
        values = v.load([head, start, 0]).reshape(BLOCK_N, HEAD)
        s = tl.dot(queries, keys.T)
        column = start + tl.arange(0, BLOCK_N)[None, :]
        visible = (column < length) & (column <= row) if CAUSAL else column < length
        s = tl.where(visible, s, -1e30)
        higher = tl.maximum(highest, tl.max(s, axis=1, keep_dims=True))
        p = tl.exp(s - higher)
        shrink = tl.exp(highest - higher)
        sums = sums * shrink + tl.sum(p, axis=1, keep_dims=True)
        total = total * shrink + tl.dot(p.to(tl.float16), values)
        highest = higher
    out.store([head, first, 0], (total / sums).to(tl.float16).reshape(1, BLOCK_M, HEAD))


def attention(q, k, v, out, causal):
    heads, length, head = q.shape
    described = [TensorDescriptor(x, list(x.shape), list(x.stride()), [1, 64, head]) for x in (q, k, v, out)]

    def grid(chosen):
        return triton.cdiv(length, chosen["BLOCK_M"]), heads

    described_kernel[grid](*described, length, 1 / math.sqrt(head), CAUSAL=causal, HEAD=head)
