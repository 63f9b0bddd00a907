# mistake: a block's share begins at `blockIdx.x * n / gridDim.x`, whose product has 32 bits
# says: does not fit in its type, `unsigned int`. Use a wider one, such as `long long`.
# on_gpu: an index overflows: `blockIdx.x * n` has 32 bits
# runs: anywhere
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void mean_kernel(const float* x, float* out, int n) {
    __shared__ float tree[256];
    int begin = blockIdx.x * n / gridDim.x;
    int end = (blockIdx.x + 1) * n / gridDim.x;
    float sum = 0.0f;
    for (int i = begin + threadIdx.x; i < end; i += blockDim.x) sum += x[i];
    tree[threadIdx.x] = sum;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) tree[threadIdx.x] += tree[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(out, tree[0] / n);
}

extern "C" void mean(const float* x, float* out, int n) {
    cudaMemsetAsync(out, 0, sizeof(float));
    mean_kernel<<<(n + 255) / 256, 256>>>(x, out, n);
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
