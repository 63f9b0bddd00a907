# slow: a loop on the host launches the kernel once per row of `out`
# cause: many launches
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void product(const float* a, const float* b, float* out, int M, int N, int K) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = 0;
    if (row >= M || column >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; k++) sum += a[row * K + k] * b[k * N + column];
    out[row * N + column] = sum;
}

extern "C" const char* run(const float* a, const float* b, float* out, int M, int N, int K) {
    for (int row = 0; row < M; row++) product<<<(N + 127) / 128, 128>>>(a + row * K, b, out + row * N, 1, N, K);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("matmul_tiled", cuda_sources=cuda_source, **options))
    built.run.argtypes = [*[ctypes.c_void_p] * 3, *[ctypes.c_int] * 3]
    built.run.restype = ctypes.c_char_p
    return built


def matmul_tiled(a, b, out):
    (M, K), N = a.shape, b.shape[1]
    error = library().run(a.data_ptr(), b.data_ptr(), out.data_ptr(), M, N, K)
    if error:
        raise RuntimeError(error.decode())
