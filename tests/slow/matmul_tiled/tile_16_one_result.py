# slow: each thread computes one element, so each product takes two reads of shared memory
# cause: small tiles
# blind: missed
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#define T 16

__global__ void product(const float* a, const float* b, float* out, int M, int N, int K) {
    __shared__ float tile_a[T][T], tile_b[T][T];
    int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < K; k += T) {
        tile_a[threadIdx.y][threadIdx.x] = row < M && k + threadIdx.x < K ? a[row * K + k + threadIdx.x] : 0.0f;
        tile_b[threadIdx.y][threadIdx.x] = k + threadIdx.y < K && col < N ? b[(k + threadIdx.y) * N + col] : 0.0f;
        __syncthreads();
        for (int i = 0; i < T; i++) sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
        __syncthreads();
    }
    if (row < M && col < N) out[row * N + col] = sum;
}

extern "C" const char* run(const float* a, const float* b, float* out, int M, int N, int K) {
    dim3 block(T, T), grid((N + T - 1) / T, (M + T - 1) / T);
    product<<<grid, block>>>(a, b, out, M, N, K);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("matmul_tiled", cuda_sources=cuda_source, **options))
    built.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int]
    built.run.restype = ctypes.c_char_p
    return built


def matmul_tiled(a, b, out):
    (M, K), N = a.shape, b.shape[1]
    error = library().run(a.data_ptr(), b.data_ptr(), out.data_ptr(), M, N, K)
    if error:
        raise RuntimeError(error.decode())
