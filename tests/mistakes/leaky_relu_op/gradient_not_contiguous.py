# mistake: the memory of the gradient is treated as contiguous
# says: The gradient is not contiguous here, but the kernel read its memory as if it were: launch it on
#     `grad.contiguous()`
# runs: anywhere
import ctypes
from functools import cache

import torch
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
template <typename T>
__global__ void forward_kernel(const T* x, T* out, T slope, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] > 0 ? x[i] : slope * x[i];
}

template <typename T>
__global__ void backward_kernel(const T* grad, const T* x, T* grad_x, T slope, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) grad_x[i] = x[i] > 0 ? grad[i] : slope * grad[i];
}

const char* last_error() {
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

#define ENTRY_POINTS(T)                                                                                       \
    extern "C" const char* forward_##T(const T* x, T* out, double slope, long long n) {                       \
        forward_kernel<T><<<(n + 255) / 256, 256>>>(x, out, slope, n);                                        \
        return last_error();                                                                                  \
    }                                                                                                         \
    extern "C" const char* backward_##T(const T* grad, const T* x, T* grad_x, double slope, long long n) {    \
        backward_kernel<T><<<(n + 255) / 256, 256>>>(grad, x, grad_x, slope, n);                              \
        return last_error();                                                                                  \
    }
ENTRY_POINTS(float)
ENTRY_POINTS(double)
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    return ctypes.CDLL(load_inline("leaky_relu", cuda_sources=cuda_source, **options))


def launch(name, *tensors, slope):
    """Launches "forward" or "backward" on contiguous tensors of one type and size."""
    function = getattr(library(), f"{name}_{'double' if tensors[0].dtype == torch.float64 else 'float'}")
    function.argtypes = [ctypes.c_void_p] * len(tensors) + [ctypes.c_double, ctypes.c_longlong]
    function.restype = ctypes.c_char_p
    error = function(*(tensor.data_ptr() for tensor in tensors), slope, tensors[0].numel())
    if error:
        raise RuntimeError(error.decode())


@torch.library.custom_op("course::leaky_relu", mutates_args=())
def forward(x: torch.Tensor, slope: float) -> torch.Tensor:
    x = x.contiguous()
    out = torch.empty_like(x)
    launch("forward", x, out, slope=slope)
    return out


@forward.register_fake
def _(x, slope):
    return x.new_empty(x.shape)


@torch.library.custom_op("course::leaky_relu_backward", mutates_args=())
def backward(grad: torch.Tensor, x: torch.Tensor, slope: float) -> torch.Tensor:
    x = x.contiguous()
    grad_x = torch.empty_like(x)
    launch("backward", grad, x, grad_x, slope=slope)
    return grad_x


@backward.register_fake
def _(grad, x, slope):
    return x.new_empty(x.shape)


def setup_context(ctx, inputs, output):
    x, ctx.slope = inputs
    ctx.save_for_backward(x)


def gradient(ctx, grad):
    (x,) = ctx.saved_tensors
    return backward(grad, x, ctx.slope), None


forward.register_autograd(gradient, setup_context=setup_context)


def leaky_relu_op(x, slope):
    return forward(x, slope)
