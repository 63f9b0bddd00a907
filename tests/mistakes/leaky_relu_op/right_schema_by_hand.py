# right: the schema written by hand, a kernel for the device at hand, an autograd.Function under the Autograd key
# runs: anywhere
import ctypes
from functools import cache

import torch
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
template <typename T, bool backward>
__global__ void leaky_kernel(const T* values, const T* x, T* out, T slope, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        T factor = x[i] > T(0) ? T(1) : slope;
        out[i] = factor * (backward ? values[i] : x[i]);
    }
}

template <typename T>
const char* launch(
    const void* values, const void* x, void* out, double slope, long long n, bool backward, void* stream) {
    if (n == 0) return nullptr;
    int blocks = (int)((n + 127) / 128 < 1024 ? (n + 127) / 128 : 1024);
    const T *v = (const T*)values, *p = (const T*)x;
    if (backward) leaky_kernel<T, true><<<blocks, 128, 0, (cudaStream_t)stream>>>(v, p, (T*)out, (T)slope, n);
    else leaky_kernel<T, false><<<blocks, 128, 0, (cudaStream_t)stream>>>(v, p, (T*)out, (T)slope, n);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

extern "C" const char* leaky(
    const void* values, const void* x, void* out, double slope, long long n, int backward, int wide,
    void* stream) {
    auto run = wide ? launch<double> : launch<float>;
    return run(values, x, out, slope, n, backward, stream);
}
"""

SHAPES = "(Tensor values, Tensor x, float slope, bool backward) -> Tensor"
library = torch.library.Library("course", "FRAGMENT")
library.define("leaky_relu(Tensor x, float slope) -> Tensor")
library.define("leaky_relu_kernel" + SHAPES)


@cache
def built():
    path = load_inline("leaky", "", cuda_source, no_implicit_headers=True, is_python_module=False)
    function = ctypes.CDLL(path).leaky
    function.restype = ctypes.c_char_p
    pointers = [ctypes.c_void_p] * 3
    function.argtypes = [*pointers, ctypes.c_double, ctypes.c_longlong, ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
    return function


def run(values, x, slope, backward):
    values, x = values.contiguous(), x.contiguous()
    out = torch.empty_like(x)
    wide = (torch.float32, torch.float64).index(x.dtype)  # a ValueError for other types
    stream = torch.cuda.current_stream(x.device).cuda_stream
    error = built()(values.data_ptr(), x.data_ptr(), out.data_ptr(), slope, x.numel(), backward, wide, stream)
    if error:
        raise RuntimeError(error.decode())
    return out


def fake(values, x, slope, backward):
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)


class Leaky(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, slope):
        ctx.slope = slope
        ctx.save_for_backward(x)
        with torch._C._AutoDispatchBelowAutograd():
            return torch.ops.course.leaky_relu(x, slope)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return torch.ops.course.leaky_relu_kernel(grad, x, ctx.slope, True), None


for device in ["CUDA" if torch.cuda.is_available() else "CPU"]:
    library.impl("leaky_relu_kernel", run, device)
    library.impl("leaky_relu", lambda x, slope: run(x, x, slope, False), device)
library.impl("leaky_relu", Leaky.apply, "Autograd")
torch.library.register_fake("course::leaky_relu_kernel", fake, lib=library)
torch.library.register_fake("course::leaky_relu", lambda x, slope: fake(x, x, slope, False), lib=library)


def leaky_relu_op(x, slope):
    return torch.ops.course.leaky_relu(x, slope)
