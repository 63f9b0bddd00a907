# mistake: elements of the tiles past the edges keep what was in shared memory
# says: before any thread of the block has written it
# runs: simulator
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void product(const float* a, const float* b, float* out, int M, int N, int K) {
    __shared__ float A[16][16], B[16][16];
    int r = blockIdx.y * 16 + threadIdx.y, c = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < K; k += 16) {
        if (r < M && k + threadIdx.x < K) A[threadIdx.y][threadIdx.x] = a[r * K + k + threadIdx.x];
        if (c < N && k + threadIdx.y < K) B[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * N + c];
        __syncthreads();
        for (int i = 0; i < 16; i++) sum += A[threadIdx.y][i] * B[i][threadIdx.x];
        __syncthreads();
    }
    if (r < M && c < N) out[r * N + c] = sum;
}

extern "C" const char* run(const float* a, const float* b, float* out, int M, int N, int K) {
    dim3 block(16, 16), grid((N + 15) / 16, (M + 15) / 16);
    product<<<grid, block>>>(a, b, out, M, N, K);
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
