# right: float4 loads through the read-only cache, butterflies with __shfl_xor_sync, one atomic per block
# runs: anywhere

import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#define FULL_MASK 0xffffffff

__inline__ __device__ float warpReduceSum(float val) {
#pragma unroll
    for (int mask = 16; mask > 0; mask >>= 1) val += __shfl_xor_sync(FULL_MASK, val, mask, 32);
    return val;
}

__inline__ __device__ float blockReduceSum(float val) {
    static __shared__ float shared[32];
    int lane = threadIdx.x & 31, wid = threadIdx.x >> 5;
    val = warpReduceSum(val);
    if (lane == 0) shared[wid] = val;
    __syncthreads();
    val = threadIdx.x < blockDim.x / warpSize ? shared[lane] : 0.0f;
    if (wid == 0) val = warpReduceSum(val);
    return val;
}

__global__ void __launch_bounds__(256) deviceReduceKernel(const float* __restrict__ in, float* out, int N) {
    float sum = 0.0f;
    int stride = blockDim.x * gridDim.x, first = blockIdx.x * blockDim.x + threadIdx.x;
    const float4* in4 = reinterpret_cast<const float4*>(in);
    for (int i = first; i < N / 4; i += stride) {
        const float4 v = __ldg(in4 + i);
        sum += (v.x + v.y) + (v.z + v.w);
    }
    const int i = N / 4 * 4 + first;
    if (i < N) sum += __ldg(&in[i]);
    sum = blockReduceSum(sum);
    if (threadIdx.x == 0) atomicAdd(out, __fdividef(sum, N));
}

extern "C" void mean(const float* x, float* out, int n) {
    cudaMemsetAsync(out, 0, sizeof(float), 0);
    int blocks = min((n + 1023) / 1024, 528);
    deviceReduceKernel<<<blocks, 256>>>(x, out, n);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("mean_cuda", cuda_sources=cuda_source, **options))
    built.mean.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    return built


def mean_cuda(x, out):
    library().mean(x.data_ptr(), out.data_ptr(), x.numel())
