# mistake: the weights are multiples of 1 / 2^24, so that a bright pixel's sum does not fit in an `int`
# says: on line 16 does not fit in its type, `int`.
# runs: simulator
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void grayscale_kernel(const unsigned char* image, unsigned char* out, int height, int width) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= height || column >= width) return;
    int pixel = row * width + column;
    const unsigned char* rgb = image + 3 * pixel;
    out[pixel] = (5046272 * rgb[0] + 9830400 * rgb[1] + 1900544 * rgb[2] + 8388608) / 16777216;
}

extern "C" const char* grayscale(const unsigned char* image, unsigned char* out, int height, int width) {
    dim3 block(32, 8);
    dim3 grid((width + block.x - 1) / block.x, (height + block.y - 1) / block.y);
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
