# right: the naive kernel, one element per thread and no shared memory: no points for speed
# runs: anywhere

import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#define TILE 16

__global__ void product(const float* a, const float* b, float* out, int M, int N, int K) {
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; k++) sum += a[row * K + k] * b[k * N + column];
    out[row * N + column] = sum;
}

extern "C" void multiply(const float* a, const float* b, float* out, int M, int N, int K) {
    dim3 grid((N + TILE - 1) / TILE, (M + TILE - 1) / TILE);
    product<<<grid, dim3(TILE, TILE)>>>(a, b, out, M, N, K);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("matmul_naive", cuda_sources=cuda_source, **options))
    built.multiply.argtypes = [*[ctypes.c_void_p] * 3, *[ctypes.c_int] * 3]
    return built


def matmul_tiled(a, b, out):
    (M, K), N = a.shape, b.shape[1]
    library().multiply(a.data_ptr(), b.data_ptr(), out.data_ptr(), M, N, K)
