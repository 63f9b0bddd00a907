# right: tensor descriptors, the longest causal programs first, and one multiplication less per score
# runs: anywhere
import math

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def add_tile(products, v, row_max, sums, total, scale):
    new_max = tl.maximum(row_max, tl.max(products, axis=1) * scale)
    weights = tl.exp2(products * scale - new_max[:, None])  # one instruction multiplies and subtracts
    factor = tl.exp2(row_max - new_max)
    sums = sums * factor + tl.sum(weights, axis=1)
    return new_max, sums, tl.dot(weights.to(tl.float16), v, total * factor[:, None])


@triton.jit
def described_kernel(
    q_d, k_d, v_d, out_d, length, scale, CAUSAL: tl.constexpr, HEAD: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    first = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_M
    head = tl.program_id(1)
    rows, keys = first + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    q = q_d.load([head, first, 0]).reshape(BLOCK_M, HEAD)
    row_max = tl.full((BLOCK_M,), -3.4e38, dtype=tl.float32)
    sums = tl.zeros((BLOCK_M,), dtype=tl.float32)
    total = tl.zeros((BLOCK_M, HEAD), dtype=tl.float32)
    whole = (first if CAUSAL else length) // BLOCK_N * BLOCK_N
    end = min(first + BLOCK_M, length) if CAUSAL else length
    for start in range(0, whole, BLOCK_N):
        k = k_d.load([head, start, 0]).reshape(BLOCK_N, HEAD)
        v = v_d.load([head, start, 0]).reshape(BLOCK_N, HEAD)
        row_max, sums, total = add_tile(tl.dot(q, k.T), v, row_max, sums, total, scale)
    for start in range(whole, end, BLOCK_N):
        k = k_d.load([head, start, 0]).reshape(BLOCK_N, HEAD)
        v = v_d.load([head, start, 0]).reshape(BLOCK_N, HEAD)
        inside = start + keys < length
        seen = inside[None, :] & (start + keys[None, :] <= rows[:, None]) if CAUSAL else inside[None, :]
        products = tl.where(seen, tl.dot(q, k.T), -float("inf"))
        row_max, sums, total = add_tile(products, v, row_max, sums, total, scale)
    out_d.store([head, first, 0], (total / sums[:, None]).to(tl.float16).reshape(1, BLOCK_M, HEAD))


def attention(q, k, v, out, causal):
    heads, length, head = q.shape
    n = 128 if head == 64 else 64
    blocks = zip((q, k, v, out), (64, n, n, 64), strict=True)
    described = [TensorDescriptor(x, list(x.shape), list(x.stride()), [1, block, head]) for x, block in blocks]
    described_kernel[(triton.cdiv(length, 64), heads)](
        *described, length, math.log2(math.e) / math.sqrt(head), CAUSAL=causal, HEAD=head, BLOCK_M=64, BLOCK_N=n,
        num_warps=4, num_stages=3,
    )  # fmt: skip
