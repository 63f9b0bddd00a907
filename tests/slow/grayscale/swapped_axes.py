# slow: blocks of 16 by 16 threads whose threadIdx.x counts rows
# cause: wasted sectors
# blind: missed
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void gray(const unsigned char* image, unsigned char* out, int height, int width) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int col = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= height || col >= width) return;
    int p = row * width + col;
    int r = image[3 * p];
    int g = image[3 * p + 1];
    int b = image[3 * p + 2];
    out[p] = (77 * r + 150 * g + 29 * b + 128) / 256;
}

extern "C" const char* run(const unsigned char* image, unsigned char* out, int height, int width) {
    dim3 block(16, 16);
    dim3 grid((height + 15) / 16, (width + 15) / 16);
    gray<<<grid, block>>>(image, out, height, width);
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
