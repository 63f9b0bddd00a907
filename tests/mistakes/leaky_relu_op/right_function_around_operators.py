# right: two operators without a gradient of their own, and an autograd.Function that calls them
# runs: anywhere
import ctypes
from functools import cache

import torch
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
template <typename T>
__global__ void factors(const T* x, T* out, T slope, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = x[i] > 0 ? x[i] : x[i] * slope;
}
template <typename T>
__global__ void chain(const T* grad, const T* x, T* out, T slope, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = x[i] > 0 ? grad[i] : grad[i] * slope;
}
extern "C" void leaky_f(const float* x, float* out, double s, long long n, cudaStream_t at) {
    factors<<<(n + 511) / 512, 512, 0, at>>>(x, out, (float)s, n);
}
extern "C" void leaky_d(const double* x, double* out, double s, long long n, cudaStream_t at) {
    factors<<<(n + 511) / 512, 512, 0, at>>>(x, out, s, n);
}
extern "C" void leaky_back_f(const float* g, const float* x, float* out, double s, long long n, cudaStream_t at) {
    chain<<<(n + 511) / 512, 512, 0, at>>>(g, x, out, (float)s, n);
}
extern "C" void leaky_back_d(const double* g, const double* x, double* out, double s, long long n, cudaStream_t at) {
    chain<<<(n + 511) / 512, 512, 0, at>>>(g, x, out, s, n);
}
"""


@cache
def library():
    return ctypes.CDLL(load_inline("leaky", "", cuda_source, no_implicit_headers=True, is_python_module=False))


def pointer(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


def run(functions, x, *arguments):
    if torch.cuda.is_available() and not x.is_cuda:
        raise ValueError("a tensor on the CPU")
    function = getattr(library(), functions[x.dtype])  # a KeyError for other types
    if x.numel():
        function(*arguments, ctypes.c_void_p(torch.cuda.current_stream(x.device).cuda_stream))


def numbers(x, slope):
    return ctypes.c_double(slope), ctypes.c_longlong(x.numel())


@torch.library.custom_op("course::leaky_relu_forward", mutates_args=())
def leaky_forward(x: torch.Tensor, slope: float) -> torch.Tensor:
    x = x.contiguous()
    out = x.new_empty(x.shape)
    run({torch.float32: "leaky_f", torch.float64: "leaky_d"}, x, pointer(x), pointer(out), *numbers(x, slope))
    return out


@torch.library.custom_op("course::leaky_relu_backward", mutates_args=())
def leaky_backward(grad: torch.Tensor, x: torch.Tensor, slope: float) -> torch.Tensor:
    grad, x = grad.contiguous(), x.contiguous()
    out = x.new_empty(x.shape)
    functions = {torch.float32: "leaky_back_f", torch.float64: "leaky_back_d"}
    run(functions, x, pointer(grad), pointer(x), pointer(out), *numbers(x, slope))
    return out


leaky_forward.register_fake(lambda x, slope: x.new_empty(x.shape))
leaky_backward.register_fake(lambda grad, x, slope: x.new_empty(x.shape))


class LeakyRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, slope):
        ctx.save_for_backward(x)
        ctx.slope = slope
        return leaky_forward(x, slope)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return leaky_backward(grad, x, ctx.slope), None


torch.library.define("course::leaky_relu", "(Tensor x, float slope) -> Tensor")
torch.library.impl("course::leaky_relu", "CompositeImplicitAutograd", LeakyRelu.apply)


def leaky_relu_op(x, slope):
    return torch.ops.course.leaky_relu(x, slope)
