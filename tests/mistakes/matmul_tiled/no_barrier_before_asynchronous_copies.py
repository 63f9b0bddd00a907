# mistake: the next asynchronous copies begin while other threads still multiply
# says: `__syncthreads()` is between the two
# runs: simulator

import ctypes
from functools import lru_cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <cuda_pipeline.h>
constexpr int T = 32, STAGES = 2;
__device__ void fetch(float (&as)[T][T], float (&bs)[T][T + 1], const float* a, const float* b,
                      int M, int N, int K, int k0) {
    const int r = blockIdx.y * T + threadIdx.y, c = blockIdx.x * T + threadIdx.x;
    const int ka = k0 + threadIdx.x, kb = k0 + threadIdx.y;
    const bool in_a = r < M && ka < K, in_b = kb < K && c < N;
    __pipeline_memcpy_async(&as[threadIdx.y][threadIdx.x], in_a ? a + r * K + ka : a, 4, in_a ? 0 : 4);
    __pipeline_memcpy_async(&bs[threadIdx.y][threadIdx.x], in_b ? b + kb * N + c : b, 4, in_b ? 0 : 4);
    __pipeline_commit();
}
__global__ void mm(const float* a, const float* b, float* out, int M, int N, int K) {
    __shared__ float as[STAGES][T][T];
    __shared__ float bs[STAGES][T][T + 1];
    float sum = 0;
    fetch(as[0], bs[0], a, b, M, N, K, 0);
    for (int k0 = 0, stage = 0; k0 < K; k0 += T, stage ^= 1) {
        if (k0 + T < K) { fetch(as[stage ^ 1], bs[stage ^ 1], a, b, M, N, K, k0 + T); __pipeline_wait_prior(1); }
        else __pipeline_wait_prior(0);
        __syncthreads();
        #pragma unroll 8
        for (int k = 0; k < T; ++k) sum += as[stage][threadIdx.y][k] * bs[stage][k][threadIdx.x];
    }
    int r = blockIdx.y * T + threadIdx.y, c = blockIdx.x * T + threadIdx.x;
    if (r < M && c < N) out[(long)r * N + c] = sum;
}
extern "C" int gemm(const float* a, const float* b, float* out, int m, int n, int k) {
    mm<<<{(unsigned)(n + T - 1) / T, (unsigned)(m + T - 1) / T}, {T, T}>>>(a, b, out, m, n, k);
    return cudaGetLastError();
}
"""


@lru_cache(maxsize=1)
def _lib():
    lib = ctypes.CDLL(
        load_inline(
            "matmul_x",
            cpp_sources="",
            cuda_sources=cuda_source,
            no_implicit_headers=True,
            is_python_module=False,
            extra_cuda_cflags=["-O3", "-lineinfo"],
        )
    )
    lib.gemm.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int] * 3
    lib.gemm.restype = ctypes.c_int
    return lib


def matmul_tiled(a, b, out):
    (m, k), (_, n) = a.shape, b.shape
    status = _lib().gemm(a.data_ptr(), b.data_ptr(), out.data_ptr(), m, n, k)
    assert status == 0, f"CUDA error {status}"
