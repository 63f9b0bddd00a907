# mistake: the host adds the sums of the blocks, without copying them
# says: Host code uses GPU memory
# runs: simulator

import ctypes
from functools import cache

import torch
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void sum_kernel(const float* x, float* sums, int n, float divisor) {
    extern __shared__ float tree[];
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
    tree[threadIdx.x] = sum;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) tree[threadIdx.x] += tree[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = tree[0] / divisor;
}

extern "C" void mean(const float* x, float* out, float* scratch, int n) {
    sum_kernel<<<512, 256, 1024>>>(x, scratch, n, 1.0f);
    double total = 0.0;
    for (int i = 0; i < 512; ++i) total += scratch[i];
    float mean = total / n;
    cudaMemcpy(out, &mean, sizeof mean, cudaMemcpyHostToDevice);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("mean_cuda", cuda_sources=cuda_source, **options))
    built.mean.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    return built


@cache
def scratch(device):
    return torch.empty(512, device=device)


def mean_cuda(x, out):
    library().mean(x.data_ptr(), out.data_ptr(), scratch(x.device).data_ptr(), x.numel())
