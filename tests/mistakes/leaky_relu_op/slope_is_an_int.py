# mistake: the type hint says that the slope is an int
# says: Write `slope: float`
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

#define FUNCTIONS_FOR(T)                                                                                  \
    extern "C" const char* forward_##T(const T* x, T* out, double slope, long long n, void* stream) {     \
        forward_kernel<T><<<(n + 255) / 256, 256, 0, (cudaStream_t)stream>>>(x, out, slope, n);           \
        return last_error();                                                                              \
    }                                                                                                     \
    extern "C" const char* backward_##T(                                                                  \
        const T* grad, const T* x, T* grad_x, double slope, long long n, void* stream) {                  \
        backward_kernel<T><<<(n + 255) / 256, 256, 0, (cudaStream_t)stream>>>(grad, x, grad_x, slope, n); \
        return last_error();                                                                              \
    }
FUNCTIONS_FOR(float)
FUNCTIONS_FOR(double)
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    return ctypes.CDLL(load_inline("leaky_relu", cuda_sources=cuda_source, **options))


def launch(name, *tensors, slope):
    """Call the library's function of this name on contiguous tensors of one type and size."""
    x, stream = tensors[0], 0
    if torch.cuda.is_available() and not x.is_cuda:
        raise TypeError("leaky_relu takes tensors on a GPU")  # without a GPU, kernels are simulated on the CPU
    if x.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"leaky_relu takes float32 and float64, not {x.dtype}")
    if x.numel() == 0:
        return
    stream = torch.cuda.current_stream(x.device).cuda_stream
    function = getattr(library(), f"{name}_{'double' if x.dtype == torch.float64 else 'float'}")
    function.argtypes = [ctypes.c_void_p] * len(tensors) + [ctypes.c_double, ctypes.c_longlong, ctypes.c_void_p]
    function.restype = ctypes.c_char_p
    with torch.cuda.device_of(x):
        error = function(*(tensor.data_ptr() for tensor in tensors), slope, x.numel(), stream)
    if error:
        raise RuntimeError(error.decode())


@torch.library.custom_op("course::leaky_relu", mutates_args=())
def leaky_relu(x: torch.Tensor, slope: int) -> torch.Tensor:
    x = x.contiguous()
    out = torch.empty_like(x)
    launch("forward", x, out, slope=slope)
    return out


@leaky_relu.register_fake
def _(x, slope):
    return x.new_empty(x.shape)


@torch.library.custom_op("course::leaky_relu_backward", mutates_args=())
def leaky_relu_backward(grad: torch.Tensor, x: torch.Tensor, slope: float) -> torch.Tensor:
    grad, x = grad.contiguous(), x.contiguous()
    grad_x = torch.empty_like(x)
    launch("backward", grad, x, grad_x, slope=slope)
    return grad_x


@leaky_relu_backward.register_fake
def _(grad, x, slope):
    return x.new_empty(x.shape)


def keep_for_backward(ctx, inputs, output):
    x, ctx.slope = inputs
    ctx.save_for_backward(x)


def gradient(ctx, grad):
    (x,) = ctx.saved_tensors
    return leaky_relu_backward(grad, x, ctx.slope), None


leaky_relu.register_autograd(gradient, setup_context=keep_for_backward)


def leaky_relu_op(x, slope):
    return torch.ops.course.leaky_relu(x, slope)
