# right: the sum comes back through pinned memory, on the thread's own stream
# runs: anywhere

import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void add_kernel(const float* x, double* total, int n) {
    double sum = 0.0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (threadIdx.x % 32 == 0) atomicAdd(total, sum);
}

extern "C" void mean(const float* x, float* out, int n) {
    cudaStream_t stream = cudaStreamPerThread;
    static double* total = nullptr;
    static double* copied = nullptr;
    if (!total) {
        cudaMalloc(&total, sizeof(double));
        cudaHostAlloc((void**)&copied, sizeof(double), cudaHostAllocDefault);
    }
    cudaDeviceSynchronize();  // the inputs may come from another stream
    cudaMemsetAsync(total, 0, sizeof(double), stream);
    add_kernel<<<64, 256, 0, stream>>>(x, total, n);
    cudaMemcpyAsync(copied, total, sizeof(double), cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    float mean = *copied / n;
    cudaMemcpy(out, &mean, sizeof mean, cudaMemcpyHostToDevice);
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
