# slow: 24 blocks go through the whole image
# cause: few programs
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void grayscale_kernel(const unsigned char* image, unsigned char* out, int height, int width) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < height * width; i += gridDim.x * blockDim.x) {
        const unsigned char* rgb = image + 3 * i;
        out[i] = (77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2] + 128) >> 8;
    }
}

extern "C" const char* run(const unsigned char* image, unsigned char* out, int height, int width) {
    grayscale_kernel<<<24, 256>>>(image, out, height, width);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("grayscale", cuda_sources=cuda_source, **options))
    built.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    built.run.restype = ctypes.c_char_p
    return built


def grayscale(image, out):
    height, width, _ = image.shape
    error = library().run(image.data_ptr(), out.data_ptr(), height, width)
    if error:
        raise RuntimeError(error.decode())
