# slow: a block keeps one row of a in shared memory and reads all of b from global memory
# cause: repeated reads
# blind: missed
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void row_times_b(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out,
                            int N, int K) {
    extern __shared__ float row[];
    const float* source = a + (size_t)blockIdx.x * K;
    for (int k = threadIdx.x; k < K; k += blockDim.x) row[k] = source[k];
    __syncthreads();
    for (int j = threadIdx.x; j < N; j += blockDim.x) {
        float sum = 0.0f;
        #pragma unroll 8
        for (int k = 0; k < K; k++) sum += row[k] * b[(size_t)k * N + j];
        out[(size_t)blockIdx.x * N + j] = sum;
    }
}

extern "C" const char* multiply(const float* a, const float* b, float* out, int M, int N, int K) {
    row_times_b<<<M, 256, K * sizeof(float)>>>(a, b, out, N, K);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("matmul_rows", cuda_sources=cuda_source, **options))
    built.multiply.argtypes = [*[ctypes.c_void_p] * 3, *[ctypes.c_int] * 3]
    built.multiply.restype = ctypes.c_char_p
    return built


def matmul_tiled(a, b, out):
    (M, K), N = a.shape, b.shape[1]
    error = library().multiply(a.data_ptr(), b.data_ptr(), out.data_ptr(), M, N, K)
    if error:
        raise RuntimeError(error.decode())
