# slow: the number of sums per thread is an argument, so that their array is in local memory
# cause: spills
# blind: missed
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
constexpr int MOST = 8, BK = 8, SIDE = 128;

__global__ void product(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out,
                        int M, int N, int K, int per) {
    __shared__ float ta[BK][SIDE + 1];
    __shared__ float tb[BK][SIDE];
    float acc[MOST * MOST];
    for (int s = 0; s < per * per; s++) acc[s] = 0.0f;
    int side = 16 * per, me = threadIdx.x, tx = me % 16, ty = me / 16;
    int row0 = blockIdx.y * side, col0 = blockIdx.x * side;
    for (int k0 = 0; k0 < K; k0 += BK) {
        for (int e = me; e < BK * side; e += 256) {
            int k = e % BK, i = e / BK;
            ta[k][i] = row0 + i < M && k0 + k < K ? a[(row0 + i) * K + k0 + k] : 0.0f;
        }
        for (int e = me; e < BK * side; e += 256) {
            int j = e % side, k = e / side;
            tb[k][j] = k0 + k < K && col0 + j < N ? b[(k0 + k) * N + col0 + j] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < BK; k++)
            for (int i = 0; i < per; i++) {
                float left = ta[k][ty + 16 * i];
                for (int j = 0; j < per; j++) acc[i * per + j] += left * tb[k][tx + 16 * j];
            }
        __syncthreads();
    }
    for (int i = 0; i < per; i++)
        for (int j = 0; j < per; j++) {
            int row = row0 + ty + 16 * i, col = col0 + tx + 16 * j;
            if (row < M && col < N) out[row * N + col] = acc[i * per + j];
        }
}

extern "C" const char* multiply(const float* a, const float* b, float* out, int M, int N, int K, int per) {
    int side = 16 * per;
    product<<<dim3((N + side - 1) / side, (M + side - 1) / side), 256>>>(a, b, out, M, N, K, per);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""

SUMS_PER_SIDE = 8


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("matmul_per", cuda_sources=cuda_source, **options))
    built.multiply.argtypes = [*[ctypes.c_void_p] * 3, *[ctypes.c_int] * 4]
    built.multiply.restype = ctypes.c_char_p
    return built


def matmul_tiled(a, b, out):
    (M, K), N = a.shape, b.shape[1]
    error = library().multiply(a.data_ptr(), b.data_ptr(), out.data_ptr(), M, N, K, SUMS_PER_SIDE)
    if error:
        raise RuntimeError(error.decode())
