# mistake: blocks of 16 columns begin 8 columns apart
# says: Neighbouring blocks overlap: a block begins at `blockIdx.x * blockDim.x`
# runs: anywhere

import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#define CHANNELS 3

__global__ void colorToGrayscaleConversion(unsigned char* Pout, const unsigned char* Pin, int width, int height) {
    int col = blockIdx.x * 8 + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (col < width && row < height) {
        int grayOffset = row * width + col;
        int rgbOffset = grayOffset * CHANNELS;
        unsigned char r = Pin[rgbOffset], g = Pin[rgbOffset + 1], b = Pin[rgbOffset + 2];
        Pout[grayOffset] = (unsigned char)((77 * r + 150 * g + 29 * b + 128) / 256);
    }
}

extern "C" void grayscale(const unsigned char* image, unsigned char* out, int height, int width) {
    dim3 dimBlock(16, 16, 1);
    dim3 dimGrid(ceil(width / 16.0), ceil(height / 16.0), 1);
    colorToGrayscaleConversion<<<dimGrid, dimBlock>>>(out, image, width, height);
    cudaDeviceSynchronize();
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("grayscale", cuda_sources=cuda_source, **options))
    built.grayscale.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    return built


def grayscale(image, out):
    height, width, _ = image.shape
    library().grayscale(image.data_ptr(), out.data_ptr(), height, width)
