# slow: persistent programs with block pointers, but with tiles of 32 by 32
# cause: small tiles
import functools

import torch
import triton
import triton.language as tl


@triton.jit
def persistent(
    a, b, c, m, n, k, am, ak, bk, bn, cm, cn,
    TILE: tl.constexpr, STEP: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    tm, tn = tl.cdiv(m, TILE), tl.cdiv(n, TILE)
    for t in range(tl.program_id(0), tm * tn, tl.num_programs(0)):
        group = t // (GROUP * tn)
        height = min(GROUP, tm - group * GROUP)
        y = (group * GROUP + t % (GROUP * tn) % height) * TILE
        x = (t % (GROUP * tn) // height) * TILE
        pa = tl.make_block_ptr(
            a, shape=(m, k), strides=(am, ak), offsets=(y, 0), block_shape=(TILE, STEP), order=(1, 0)
        )
        pb = tl.make_block_ptr(
            b, shape=(k, n), strides=(bk, bn), offsets=(0, x), block_shape=(STEP, TILE), order=(1, 0)
        )
        acc = tl.zeros((TILE, TILE), dtype=tl.float32)
        for _ in range(0, k, STEP):
            acc = tl.dot(
                tl.load(pa, boundary_check=(0, 1), padding_option="zero"),
                tl.load(pb, boundary_check=(0, 1), padding_option="zero"),
                acc,
            )
            pa = tl.advance(pa, (0, STEP))
            pb = tl.advance(pb, (STEP, 0))
        pc = tl.make_block_ptr(
            c, shape=(m, n), strides=(cm, cn), offsets=(y, x), block_shape=(TILE, TILE), order=(1, 0)
        )
        tl.store(pc, acc.to(tl.float16), boundary_check=(0, 1))


@functools.cache
def programs(device):
    if device.type != "cuda":
        return 6
    return 8 * torch.cuda.get_device_properties(device).multi_processor_count


def matmul_open(a, b, out):
    m, n = out.shape
    persistent[(programs(a.device),)](
        a, b, out, m, n, a.shape[1], *a.stride(), *b.stride(), *out.stride(),
        TILE=32, STEP=64, GROUP=8, num_warps=4, num_stages=4,
    )  # fmt: skip
