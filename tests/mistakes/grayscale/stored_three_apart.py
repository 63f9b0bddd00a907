# mistake: the output's index has the factor 3 as well
# says: The pixels were stored three bytes apart.
# runs: anywhere

import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void grayscale_kernel(const unsigned char* __restrict__ image, unsigned char* __restrict__ out,
                                 int height, int width) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= height || column >= width) return;
    int pixel = row * width + column;
    const unsigned char* rgb = image + 3 * pixel;
    int sum = 77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2];  // reads 3MN bytes in all
    out[3 * pixel] = (sum + 128) >> 8;  // writes MN bytes in all
}

extern "C" const char* grayscale(const unsigned char* image, unsigned char* out, int height, int width) {
    dim3 block(32, 8);
    dim3 grid(1, 1);
    grid.x = (width + block.x - 1) / block.x;
    grid.y = (height + block.y - 1) / block.y;
    grayscale_kernel<<<grid, block>>>(image, out, height, width);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("grayscale", cuda_sources=cuda_source, **options))
    built.grayscale.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    built.grayscale.restype = ctypes.c_char_p
    return built


def grayscale(image, out):
    height, width, _ = image.shape
    error = library().grayscale(image.data_ptr(), out.data_ptr(), height, width)
    if error:
        raise RuntimeError(error.decode())
