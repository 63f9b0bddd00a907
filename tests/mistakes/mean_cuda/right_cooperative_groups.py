# right: cooperative groups
# runs: anywhere

import ctypes
from functools import cache

import torch
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

__global__ void total(const float* x, double* sum, int n) {
    double mine = 0.0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) mine += x[i];
    auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    double all = cg::reduce(tile, mine, cg::plus<double>());
    if (tile.thread_rank() == 0) atomicAdd(sum, all);
}
__global__ void divide(const double* sum, float* out, int n) { *out = *sum / n; }

extern "C" void mean(const float* x, double* sum, float* out, int n) {
    total<<<32, 256>>>(x, sum, n);
    divide<<<1, 1>>>(sum, out, n);
}
"""


@cache
def library():
    built = ctypes.CDLL(
        load_inline(
            "mean_groups", cpp_sources="", cuda_sources=cuda_source, no_implicit_headers=True, is_python_module=False
        )
    )
    built.mean.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int]
    return built


def mean_cuda(x, out):
    total = torch.zeros(1, dtype=torch.float64, device=x.device)
    library().mean(x.data_ptr(), total.data_ptr(), out.data_ptr(), x.numel())
