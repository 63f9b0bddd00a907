# slow: a row of 32 threads per block, one element each
# cause: wasted sectors
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void transpose_kernel(const float* x, float* out, int height, int width) {
    for (int row = blockIdx.x; row < height; row += gridDim.x)
        for (int column = threadIdx.x; column < width; column += blockDim.x)
            out[column * height + row] = x[row * width + column];
}

extern "C" const char* run(const float* x, float* out, int height, int width) {
    transpose_kernel<<<height, 256>>>(x, out, height, width);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("transpose", cuda_sources=cuda_source, **options))
    built.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    built.run.restype = ctypes.c_char_p
    return built


def transpose(x, out):
    height, width = x.shape
    error = library().run(x.data_ptr(), out.data_ptr(), height, width)
    if error:
        raise RuntimeError(error.decode())
