# honest: CUDA C++: a block of threads for each row, sums through shared memory and shuffles
# exercise: softmax
# runs: anywhere
# gates: may miss
import ctypes
import functools

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <math_constants.h>

struct Max { __device__ float operator()(float a, float b) const { return fmaxf(a, b); } };
struct Sum { __device__ float operator()(float a, float b) const { return a + b; } };

template <class Combine>
__device__ float over_block(float value, float neutral, Combine combine) {
    __shared__ float of_warp[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int step = 16; step > 0; step /= 2) value = combine(value, __shfl_xor_sync(0xffffffff, value, step));
    __syncthreads();  // the array may still be read from the reduction before
    if (lane == 0) of_warp[warp] = value;
    __syncthreads();
    value = lane < blockDim.x / 32 ? of_warp[lane] : neutral;
    for (int step = 16; step > 0; step /= 2) value = combine(value, __shfl_xor_sync(0xffffffff, value, step));
    return value;
}

__global__ void softmax_rows(const float* x, float* out, long long x_stride, long long out_stride, int columns) {
    x += blockIdx.x * x_stride;
    out += blockIdx.x * out_stride;
    float row_max = -CUDART_INF_F;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) row_max = fmaxf(row_max, x[i]);
    row_max = over_block(row_max, -CUDART_INF_F, Max{});
    float row_sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) row_sum += expf(x[i] - row_max);
    row_sum = over_block(row_sum, 0.0f, Sum{});
    for (int i = threadIdx.x; i < columns; i += blockDim.x) out[i] = expf(x[i] - row_max) / row_sum;
}

extern "C" const char* softmax(const float* x, float* out, long long x_stride, long long out_stride, int rows, int columns,
                               cudaStream_t stream) {
    const int threads = columns <= 64 ? 32 : columns <= 1024 ? 128 : 512;
    softmax_rows<<<rows, threads, 0, stream>>>(x, out, x_stride, out_stride, columns);
    const cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@functools.cache
def function():
    path = load_inline("softmax_rows", "", SOURCE, no_implicit_headers=True, is_python_module=False)
    found = ctypes.CDLL(path).softmax
    found.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_longlong] * 2 + [ctypes.c_int] * 2 + [ctypes.c_void_p]
    found.restype = ctypes.c_char_p
    return found


def softmax(x, out):
    stream = torch.cuda.current_stream().cuda_stream
    error = function()(x.data_ptr(), out.data_ptr(), x.stride(0), out.stride(0), *x.shape, stream)
    if error is not None:
        raise RuntimeError(error.decode())
