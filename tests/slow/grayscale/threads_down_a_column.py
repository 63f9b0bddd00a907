# slow: threadIdx.x runs down the columns
# cause: wasted sectors
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void grayscale_kernel(const unsigned char* image, unsigned char* out, int height, int width) {
    int row = blockIdx.x * blockDim.x + threadIdx.x, column = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= height || column >= width) return;
    const unsigned char* rgb = image + 3 * (row * width + column);
    out[row * width + column] = (77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2] + 128) >> 8;
}

extern "C" const char* run(const unsigned char* image, unsigned char* out, int height, int width) {
    grayscale_kernel<<<dim3((height + 31) / 32, (width + 7) / 8), dim3(32, 8)>>>(image, out, height, width);
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
