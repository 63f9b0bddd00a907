# mistake: a tile has half as many columns as the block has threads
# says: has fewer elements than the kernel uses
# on_gpu: Compare the size of each `__shared__` array with its largest index
# runs: simulator

import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#define TILE 16

__global__ void product(const float* a, const float* b, float* out, int M, int N, int K) {
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE / 2];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.0f;
    for (int first = 0; first < K; first += TILE) {
        int across = first + threadIdx.x, down = first + threadIdx.y;
        tile_a[threadIdx.y][threadIdx.x] = row < M && across < K ? a[row * K + across] : 0.0f;
        tile_b[threadIdx.y][threadIdx.x] = down < K && column < N ? b[down * N + column] : 0.0f;
        __syncthreads();
        for (int k = 0; k < TILE; k++) sum += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];
        __syncthreads();
    }
    if (row < M && column < N) out[row * N + column] = sum;
}

extern "C" void multiply(const float* a, const float* b, float* out, int M, int N, int K) {
    dim3 grid((N + TILE - 1) / TILE, (M + TILE - 1) / TILE);
    product<<<grid, dim3(TILE, TILE)>>>(a, b, out, M, N, K);
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
