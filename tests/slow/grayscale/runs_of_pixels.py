# slow: a thread takes 32 neighbouring pixels, so the threads of a warp read 96 bytes apart and store 32 bytes apart
# cause: wasted sectors
# without_a_gpu: unnamed
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void grayscale_kernel(const unsigned char* __restrict__ image, unsigned char* __restrict__ out,
                                 int height, int width) {
    constexpr int RUN = 32;  // pixels of a thread
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * RUN;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= height) return;
    for (int column = first; column < first + RUN && column < width; column++) {
        int pixel = row * width + column;
        const unsigned char* rgb = image + 3 * pixel;
        out[pixel] = (77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2] + 128) >> 8;
    }
}

extern "C" const char* grayscale(const unsigned char* image, unsigned char* out, int height, int width) {
    dim3 block(32, 8);
    dim3 grid(1, 1);
    int columns_of_block = 32 * block.x;
    grid.x = (width + columns_of_block - 1) / columns_of_block;
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
