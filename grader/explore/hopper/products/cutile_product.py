"""The product in cuTile: tiles, as in Triton, and neither pointers nor descriptors. It needs CUDA 13.3 or newer."""
# mypy: ignore-errors

import cuda.tile as ct
import torch

Size = ct.Constant[int]


@ct.kernel(num_worker_warps=8)
def kernel(a, b, out, BLOCK_M: Size, BLOCK_N: Size, BLOCK_K: Size, GROUP: Size):
    tiles_m, tiles_n = ct.cdiv(out.shape[0], BLOCK_M), ct.cdiv(out.shape[1], BLOCK_N)
    first = ct.bid(0) // (GROUP * tiles_n) * GROUP
    height = min(tiles_m - first, GROUP)
    inside = ct.bid(0) % (GROUP * tiles_n)
    row, column = first + inside % height, inside // height
    total = ct.full((BLOCK_M, BLOCK_N), 0, ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(BLOCK_M, BLOCK_K))):
        #: copy
        left = ct.load(a, (row, k), (BLOCK_M, BLOCK_K), padding_mode=ct.PaddingMode.ZERO)
        right = ct.load(b, (k, column), (BLOCK_K, BLOCK_N), padding_mode=ct.PaddingMode.ZERO)
        #: multiply
        total = ct.mma(left, right, total)
    #: store
    ct.store(out, (row, column), total.astype(ct.float16))


#: rest
def product(a, b, out):
    tiles = ct.cdiv(out.shape[0], 128) * ct.cdiv(out.shape[1], 256)
    ct.launch(torch.cuda.current_stream(), (tiles,), kernel, (a, b, out, 128, 256, 64, 16))
