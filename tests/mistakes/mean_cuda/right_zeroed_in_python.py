# right: `out` is set to 0 from Python, float4 loads, one float32 atomic per block
# runs: anywhere

import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__device__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
    return value;
}

__global__ void mean_kernel(const float* __restrict__ x, float* out, int n) {
    __shared__ float warps[8];
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    #pragma unroll 4
    for (int i = thread; i < n / 4; i += gridDim.x * blockDim.x) {
        float4 v = reinterpret_cast<const float4*>(x)[i];
        sum += (v.x + v.y) + (v.z + v.w);
    }
    if (thread < n % 4) sum += x[n - 1 - thread];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    sum = warp_sum(threadIdx.x < 8 ? warps[threadIdx.x] : 0.0f);
    if (threadIdx.x == 0) atomicAdd(out, sum / n);
}

extern "C" void mean(const float* x, float* out, int n) {
    mean_kernel<<<512, 256>>>(x, out, n);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("mean_cuda", cuda_sources=cuda_source, **options))
    built.mean.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    return built


def mean_cuda(x, out):
    out.zero_()
    library().mean(x.data_ptr(), out.data_ptr(), x.numel())
