# mistake: the host assigns to a `__constant__` array
# says: Copy with `cudaMemcpyToSymbol`
# runs: simulator
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__constant__ int weights[3];

__global__ void grayscale_kernel(const unsigned char* image, unsigned char* out, int height, int width) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= height || column >= width) return;
    int pixel = row * width + column;
    out[pixel] = (weights[0] * image[3 * pixel] + weights[1] * image[3 * pixel + 1] +
                  weights[2] * image[3 * pixel + 2] + 128) >> 8;
}

extern "C" const char* grayscale(const unsigned char* image, unsigned char* out, int height, int width) {
    weights[0] = 77, weights[1] = 150, weights[2] = 29;
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
