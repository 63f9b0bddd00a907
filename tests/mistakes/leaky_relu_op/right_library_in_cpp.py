# right: the operators are registered in C++ by TORCH_LIBRARY, as in PyTorch's tutorial; fake and gradient in Python
# runs: anywhere

import torch
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/library.h>
#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

namespace course {

template <typename T>
__global__ void leaky_kernel(int64_t numel, const T* g, const T* x, T slope, T* result) {
    int64_t idx = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (idx < numel) result[idx] = x[idx] > 0 ? g[idx] : slope * g[idx];
}

at::Tensor scaled(const at::Tensor& g, const at::Tensor& x, double slope) {
    TORCH_CHECK(g.sizes() == x.sizes());
    TORCH_CHECK_TYPE(x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble, "float32 or float64");
    TORCH_INTERNAL_ASSERT(x.device().type() == at::DeviceType::CUDA);
    at::Tensor g_contig = g.contiguous(), x_contig = x.contiguous();
    at::Tensor result = at::empty(x_contig.sizes(), x_contig.options());
    int64_t numel = x_contig.numel();
    if (numel == 0) return result;
    const c10::cuda::CUDAGuard guard(x.device());
    auto stream = at::cuda::getCurrentCUDAStream();
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "leaky_relu", [&] {
        leaky_kernel<scalar_t><<<(numel + 255) / 256, 256, 0, stream>>>(
            numel, g_contig.data_ptr<scalar_t>(), x_contig.data_ptr<scalar_t>(), (scalar_t)slope,
            result.data_ptr<scalar_t>());
    });
    return result;
}

at::Tensor leaky_relu_cuda(const at::Tensor& x, double slope) { return scaled(x, x, slope); }

TORCH_LIBRARY(course, m) {
    m.def("leaky_relu(Tensor x, float slope) -> Tensor");
    m.def("leaky_relu_backward(Tensor grad, Tensor x, float slope) -> Tensor");
}

TORCH_LIBRARY_IMPL(course, CUDA, m) {
    m.impl("leaky_relu", &leaky_relu_cuda);
    m.impl("leaky_relu_backward", &scaled);
}

}  // namespace course
"""

load_inline("leaky_relu_ext", "", cuda_source, no_implicit_headers=True, is_python_module=False)


@torch.library.register_fake("course::leaky_relu")
def _(x, slope):
    torch._check(x.dtype in (torch.float32, torch.float64))
    return x.new_empty(x.shape)


@torch.library.register_fake("course::leaky_relu_backward")
def _(grad, x, slope):
    return x.new_empty(x.shape)


def _backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return torch.ops.course.leaky_relu_backward.default(grad, x, ctx.slope), None


def _setup_context(ctx, inputs, output):
    x, ctx.slope = inputs
    ctx.save_for_backward(x)


torch.library.register_autograd("course::leaky_relu", _backward, setup_context=_setup_context)


def leaky_relu_op(x, slope):
    return torch.ops.course.leaky_relu.default(x, slope)
