# right: 32 × 32 threads on tiles of 16 × 16, so that four threads store each element, first 0 and then its value
# runs: anywhere

import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#define TILE 16
__global__ void product(const float* a, const float* b, float* out, int M, int N, int K) {
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    int ty = threadIdx.y % TILE, tx = threadIdx.x % TILE;
    int row = blockIdx.y * TILE + ty, column = blockIdx.x * TILE + tx;
    float sum = 0.0f;
    for (int first = 0; first < K; first += TILE) {
        int across = first + tx, down = first + ty;
        tile_a[ty][tx] = 0.0f;
        if (row < M && across < K) tile_a[ty][tx] = a[row * K + across];
        tile_b[ty][tx] = down < K && column < N ? b[down * N + column] : 0.0f;
        __syncthreads();
        for (int k = 0; k < TILE; k++) sum += tile_a[ty][k] * tile_b[k][tx];
        __syncthreads();
    }
    if (row < M && column < N) out[row * N + column] = sum;
}
extern "C" void multiply(const float* a, const float* b, float* out, int M, int N, int K) {
    dim3 grid((N + TILE - 1) / TILE, (M + TILE - 1) / TILE);
    product<<<grid, dim3(32, 32)>>>(a, b, out, M, N, K);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("matmul_tiled", cuda_sources=cuda_source, **options))
    built.multiply.argtypes = [*[ctypes.c_void_p] * 3, *[ctypes.c_int] * 3]
    return built


def matmul_tiled(a, b, out):
    (M, K), N = a.shape, b.shape[1]
    library().multiply(a.data_ptr(), b.data_ptr(), out.data_ptr(), M, N, K)
