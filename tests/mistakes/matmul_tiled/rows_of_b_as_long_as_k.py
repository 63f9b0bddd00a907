# mistake: takes K for the row width of b
# says: The rows of an operand have another width
# runs: anywhere

import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void product(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out,
                        int M, int N, int K) {
    __shared__ float tile_a[32][32], tile_b[32][32];
    int row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
    float sum = 0.0f;
    for (int first = 0; first < K; first += 32) {
        int ka = first + threadIdx.x, kb = first + threadIdx.y;
        tile_a[threadIdx.y][threadIdx.x] = row < M && ka < K ? a[row * K + ka] : 0.0f;
        tile_b[threadIdx.y][threadIdx.x] = kb < K && column < N ? b[kb * K + column] : 0.0f;
        __syncthreads();
        for (int k = 0; k < 32; k++) sum += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];
        __syncthreads();
    }
    if (row < M && column < N) out[row * N + column] = sum;
}

extern "C" const char* multiply(const float* a, const float* b, float* out, int M, int N, int K) {
    dim3 block(32, 32);
    dim3 grid((N + 31) / 32, (M + 31) / 32);
    product<<<grid, block>>>(a, b, out, M, N, K);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("matmul_tiled", cuda_sources=cuda_source, **options))
    built.multiply.argtypes = [*[ctypes.c_void_p] * 3, *[ctypes.c_int] * 3]
    built.multiply.restype = ctypes.c_char_p
    return built


def matmul_tiled(a, b, out):
    (M, K), N = a.shape, b.shape[1]
    error = library().multiply(a.data_ptr(), b.data_ptr(), out.data_ptr(), M, N, K)
    if error:
        raise RuntimeError(error.decode())
