# honest: tiles staged through shared memory with __syncthreads, static and dynamic
# exercise: square_matrix
# runs: anywhere
# gates: may miss
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#define TILE 32
#define ROWS 8

__global__ void square_tiles(const float* x, float* out, int height, int width) {
    __shared__ float tile[TILE][TILE + 1];
    extern __shared__ float squares[];
    const int column = blockIdx.x * TILE + threadIdx.x;
    const int top = blockIdx.y * TILE;
    for (int i = threadIdx.y; i < TILE; i += ROWS)
        if (column < width && top + i < height) tile[i][threadIdx.x] = x[(top + i) * width + column];
    __syncthreads();
    // each thread squares what another one has loaded
    for (int i = threadIdx.y; i < TILE; i += ROWS) {
        const int row = TILE - 1 - i;
        squares[row * TILE + threadIdx.x] = tile[row][threadIdx.x] * tile[row][threadIdx.x];
    }
    __syncthreads();
    for (int i = threadIdx.y; i < TILE; i += ROWS)
        if (column < width && top + i < height) out[(top + i) * width + column] = squares[i * TILE + threadIdx.x];
}

extern "C" int square(const float* x, float* out, int height, int width) {
    dim3 grid((width + TILE - 1) / TILE, (height + TILE - 1) / TILE), block(TILE, ROWS);
    square_tiles<<<grid, block, TILE * TILE * sizeof(float)>>>(x, out, height, width);
    return cudaGetLastError();
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    return ctypes.CDLL(load_inline("tiles", cuda_sources=cuda_source, **options))


def square_matrix(x, out):
    height, width = x.shape
    arguments = ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr()), height, width
    if error := library().square(*arguments):
        raise RuntimeError(f"CUDA error {error}")
