# right: reduce6 of the CUDA samples: templates by block size, unrolled steps, a switch at the launch
# runs: anywhere

import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
template <class T>
struct SharedMemory {
    __device__ inline operator T*() {
        extern __shared__ int __smem[];
        return (T*)__smem;
    }
};

template <class T, unsigned int blockSize, bool nIsPow2>
__global__ void reduce6(const T* __restrict__ g_idata, T* __restrict__ g_odata, unsigned int n) {
    T* sdata = SharedMemory<T>();
    unsigned int tid = threadIdx.x;
    unsigned int i = blockIdx.x * blockSize * 2 + threadIdx.x;
    unsigned int gridSize = blockSize * 2 * gridDim.x;
    T mySum = 0;
    while (i < n) {
        mySum += g_idata[i];
        if (nIsPow2 || i + blockSize < n) mySum += g_idata[i + blockSize];
        i += gridSize;
    }
    sdata[tid] = mySum;
    __syncthreads();
    if ((blockSize >= 512) && (tid < 256)) sdata[tid] = mySum = mySum + sdata[tid + 256];
    __syncthreads();
    if ((blockSize >= 256) && (tid < 128)) sdata[tid] = mySum = mySum + sdata[tid + 128];
    __syncthreads();
    if ((blockSize >= 128) && (tid < 64)) sdata[tid] = mySum = mySum + sdata[tid + 64];
    __syncthreads();
    if (tid < 32) {
        if (blockSize >= 64) mySum += sdata[tid + 32];
        for (int offset = 16; offset > 0; offset /= 2) mySum += __shfl_down_sync(0xffffffffu, mySum, offset);
    }
    if (tid == 0) g_odata[blockIdx.x] = mySum;
}

__global__ void scale(const double* sum, float* out, unsigned int n) { *out = (float)(*sum / n); }
__global__ void widen(const float* x, double* wide, unsigned int n) {
    for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) wide[i] = x[i];
}

template <unsigned int threads>
void reduce(const double* in, double* out, unsigned int n, int blocks) {
    bool power = (n & (n - 1)) == 0 && n >= 2 * threads * blocks;
    int bytes = threads * sizeof(double);
    if (power) reduce6<double, threads, true><<<blocks, threads, bytes>>>(in, out, n);
    else reduce6<double, threads, false><<<blocks, threads, bytes>>>(in, out, n);
}

extern "C" void mean(const float* x, float* out, int n) {
    double *wide, *sums;
    cudaMalloc(&wide, n * sizeof(double));
    cudaMalloc(&sums, 65 * sizeof(double));
    widen<<<64, 256>>>(x, wide, n);
    int blocks = min(64, (n + 511) / 512);
    switch (blocks) {
        case 1: reduce<512>(wide, sums, n, blocks); break;
        case 2: reduce<128>(wide, sums, n, blocks); break;
        default: reduce<256>(wide, sums, n, blocks);
    }
    reduce<64>(sums, sums + 64, blocks, 1);
    scale<<<1, 1>>>(sums + 64, out, n);
    cudaFree(wide);
    cudaFree(sums);
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
