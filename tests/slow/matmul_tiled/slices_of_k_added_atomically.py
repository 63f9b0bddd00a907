# slow: a block per slice of 32 of K adds its part of the result to memory atomically
# cause: atomics
# blind: missed
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#define T 32

__global__ void slice(const float* __restrict__ a, const float* __restrict__ b, float* out, int M, int N, int K) {
    __shared__ float sa[T][T], sb[T][T];
    int tx = threadIdx.x, ty = threadIdx.y;
    int col = blockIdx.x * T + tx, row = blockIdx.y * T + ty, k0 = blockIdx.z * T;
    sa[ty][tx] = row < M && k0 + tx < K ? a[row * K + k0 + tx] : 0.0f;
    sb[ty][tx] = k0 + ty < K && col < N ? b[(k0 + ty) * N + col] : 0.0f;
    __syncthreads();
    float part = 0.0f;
    #pragma unroll
    for (int k = 0; k < T; k++) part += sa[ty][k] * sb[k][tx];
    if (row < M && col < N) atomicAdd(out + row * N + col, part);
}

extern "C" const char* multiply(const float* a, const float* b, float* out, int M, int N, int K) {
    dim3 grid((N + T - 1) / T, (M + T - 1) / T, (K + T - 1) / T);
    slice<<<grid, dim3(T, T)>>>(a, b, out, M, N, K);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("matmul_slices", cuda_sources=cuda_source, **options))
    built.multiply.argtypes = [*[ctypes.c_void_p] * 3, *[ctypes.c_int] * 3]
    built.multiply.restype = ctypes.c_char_p
    return built


def matmul_tiled(a, b, out):
    out.zero_()
    (M, K), N = a.shape, b.shape[1]
    error = library().multiply(a.data_ptr(), b.data_ptr(), out.data_ptr(), M, N, K)
    if error:
        raise RuntimeError(error.decode())
