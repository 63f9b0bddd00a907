# honest: an operator registered by TORCH_LIBRARY under a name of its own, with little of torch's headers
# exercise: square_matrix
# runs: anywhere
# gates: passes
import os
from functools import cache

import torch
from torch.utils.cpp_extension import load_inline

NAME = f"square_{os.getpid()}"
cuda_source = r"""
__global__ void square_kernel(const float* __restrict__ x, float* __restrict__ out, long long n) {
    long long i = 4 * (blockIdx.x * (long long)blockDim.x + threadIdx.x);
    if (i + 3 < n) {
        float4 v = *reinterpret_cast<const float4*>(x + i);
        *reinterpret_cast<float4*>(out + i) = make_float4(v.x * v.x, v.y * v.y, v.z * v.z, v.w * v.w);
    } else {
        for (; i < n; i++) out[i] = x[i] * x[i];
    }
}
void launch_square(const float* x, float* out, long long n) {
    square_kernel<<<(n + 1023) / 1024, 256>>>(x, out, n);
}
"""
cpp_source = r"""
#include <ATen/core/Tensor.h>
#include <torch/library.h>

void launch_square(const float* x, float* out, long long n);

void square(const at::Tensor& x, at::Tensor& out) {
    TORCH_CHECK(x.is_contiguous() && out.is_contiguous(), "contiguous matrices only");
    launch_square(x.const_data_ptr<float>(), out.mutable_data_ptr<float>(), x.numel());
}

TORCH_LIBRARY(LIBRARY_NAME, library) {
    library.def("square(Tensor x, Tensor(a!) out) -> ()", &square);
}
""".replace("LIBRARY_NAME", NAME)


@cache
def operator():
    load_inline("square_operator", cpp_source, cuda_source, no_implicit_headers=True, is_python_module=False)
    return getattr(torch.ops, NAME).square


def square_matrix(x, out):
    operator()(x, out)
