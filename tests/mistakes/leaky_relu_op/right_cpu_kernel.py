# right: one kernel for CUDA and one for the CPU, each registered for its device
# runs: anywhere
import ctypes
from functools import cache

import torch
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
template <typename T>
__global__ void scale_negative(
    const T* __restrict__ values, const T* __restrict__ x, T* __restrict__ out, T slope, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] > T(0) ? values[i] : slope * values[i];
}

template <typename T>
int launch(const void* values, const void* x, void* out, double slope, long long n, void* stream) {
    auto typed = static_cast<const T*>(values);
    scale_negative<<<(unsigned)((n + 255) / 256), 256, 0, (cudaStream_t)stream>>>(
        typed, static_cast<const T*>(x), static_cast<T*>(out), static_cast<T>(slope), n);
    return cudaGetLastError();
}

extern "C" int in_float(const void* v, const void* x, void* out, double s, long long n, void* stream) {
    return launch<float>(v, x, out, s, n, stream);
}
extern "C" int in_double(const void* v, const void* x, void* out, double s, long long n, void* stream) {
    return launch<double>(v, x, out, s, n, stream);
}
"""


@cache
def library():
    return ctypes.CDLL(load_inline("leaky", "", cuda_source, no_implicit_headers=True, is_python_module=False))


def check_type(x):
    if x.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"float32 or float64, not {x.dtype}")


@torch.library.custom_op("course::leaky_relu_scale", mutates_args=(), device_types="cuda")
def scale(values: torch.Tensor, x: torch.Tensor, slope: float) -> torch.Tensor:
    check_type(x)
    values, x = values.contiguous(), x.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        run = library().in_float if x.dtype == torch.float32 else library().in_double
        run.argtypes = [*[ctypes.c_void_p] * 3, ctypes.c_double, ctypes.c_longlong, ctypes.c_void_p]
        stream = torch.cuda.current_stream(x.device).cuda_stream
        with torch.cuda.device_of(x):
            error = run(values.data_ptr(), x.data_ptr(), out.data_ptr(), slope, x.numel(), stream)
        if error:
            raise RuntimeError(f"CUDA error {error}")
    return out


@scale.register_kernel("cpu")
def _(values, x, slope):
    check_type(x)
    factors = (x > 0).to(x.dtype) * (1 - slope) + slope
    return (values * factors).contiguous()


@scale.register_fake
def _(values, x, slope):
    return x.new_empty(x.shape)


@torch.library.custom_op("course::leaky_relu", mutates_args=())
def leaky_relu(x: torch.Tensor, slope: float) -> torch.Tensor:
    return scale(x, x, slope)


@leaky_relu.register_fake
def _(x, slope):
    return x.new_empty(x.shape)


def keep(ctx, inputs, output):
    x, ctx.slope = inputs
    ctx.save_for_backward(x)


def gradient(ctx, grad):
    (x,) = ctx.saved_tensors
    return scale(grad, x, ctx.slope), None


leaky_relu.register_autograd(gradient, setup_context=keep)


def leaky_relu_op(x, slope):
    return leaky_relu(x, slope)
