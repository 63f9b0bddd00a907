# right: CUDA C++ with cuda_fp16.h
# runs: anywhere

import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <cuda_fp16.h>

__global__ void product(const __half* a, const __half* b, __half* out, int M, int N, int K,
                        int am, int ak, int bk, int bn, int om, int on) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || column >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += __half2float(a[row * am + k * ak]) * __half2float(b[k * bk + column * bn]);
    out[row * om + column * on] = __float2half(sum);
}

extern "C" void matmul(const void* a, const void* b, void* out, int M, int N, int K,
                        int am, int ak, int bk, int bn, int om, int on) {
    dim3 block(16, 16), grid((N + 15) / 16, (M + 15) / 16);
    product<<<grid, block>>>((const __half*)a, (const __half*)b, (__half*)out, M, N, K, am, ak, bk, bn, om, on);
}
"""


@cache
def library():
    built = ctypes.CDLL(
        load_inline(
            "half_product", cpp_sources="", cuda_sources=cuda_source, no_implicit_headers=True, is_python_module=False
        )
    )
    built.matmul.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int] * 9
    return built


def matmul_open(a, b, out):
    (M, K), N = a.shape, b.shape[1]
    library().matmul(a.data_ptr(), b.data_ptr(), out.data_ptr(), M, N, K, *a.stride(), *b.stride(), *out.stride())
