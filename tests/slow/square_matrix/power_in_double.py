# slow: pow in float64, with the exponent as an argument of the kernel
# cause: double precision
# blind: missed
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
template <typename T>
struct Power {
    T exponent;
    __device__ T operator()(T base) const { return pow(base, exponent); }
};

template <typename Function>
__global__ void map(const float* in, float* out, int count, Function function) {
    int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) out[i] = function(in[i]);
}

extern "C" const char* raise(const float* in, float* out, int count, double exponent) {
    int blocks = (count + 255) / 256;
    map<<<blocks < 4096 ? blocks : 4096, 256>>>(in, out, count, Power<double>{exponent});
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("square_pow", cuda_sources=cuda_source, **options))
    getattr(built, "raise").argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_double]
    getattr(built, "raise").restype = ctypes.c_char_p
    return getattr(built, "raise")


def square_matrix(x, out):
    error = library()(x.data_ptr(), out.data_ptr(), x.numel(), 2.0)
    if error:
        raise RuntimeError(error.decode())
