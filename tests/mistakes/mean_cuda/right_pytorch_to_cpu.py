# right: PyTorch's headers, sums of the blocks in a tensor, finished on the CPU with to(torch::kCPU)
# runs: anywhere

from functools import cache

from torch.utils.cpp_extension import load_inline

cpp_source = "void mean(const torch::Tensor& x, torch::Tensor& out);"
cuda_source = r"""
#include <torch/extension.h>

__global__ void block_sums(const float* __restrict__ x, double* __restrict__ sums, int64_t n) {
    __shared__ double s[256];
    double sum = 0;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)blockDim.x * gridDim.x)
        sum += x[i];
    s[threadIdx.x] = sum;
    __syncthreads();
    for (int k = blockDim.x >> 1; k; k >>= 1) {
        if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = s[0];
}

void mean(const torch::Tensor& x, torch::Tensor& out) {
    auto sums = torch::empty({48}, x.options().dtype(torch::kFloat64));
    block_sums<<<48, 256>>>(x.data_ptr<float>(), sums.data_ptr<double>(), x.numel());
    torch::Tensor on_host = sums.to(torch::kCPU);
    const double* found = on_host.data_ptr<double>();
    double total = 0;
    for (int i = 0; i < on_host.size(0); ++i) total += found[i];
    out.fill_(total / x.numel());
}
"""


@cache
def extension():
    return load_inline("mean_ext", [cpp_source], [cuda_source], functions=["mean"], verbose=False)


def mean_cuda(x, out):
    extension().mean(x, out)
