# mistake: words of four bytes are read at any byte
# says: only where its address is a multiple of 4
# on_gpu: only at a multiple of that many bytes
# runs: simulator
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void grayscale_kernel(const unsigned char* __restrict__ image, unsigned char* __restrict__ out,
                                 int height, int width) {
    int column = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= height) return;
    if (column + 3 < width) {
        const unsigned int* words = reinterpret_cast<const unsigned int*>(image + 3 * (row * width + column));
        unsigned char bytes[12];
        unsigned int w[3] = {words[0], words[1], words[2]};
        for (int k = 0; k < 12; k++) bytes[k] = (w[k / 4] >> (8 * (k % 4))) & 255;
        unsigned int result = 0;
        for (int k = 0; k < 4; k++)
            result |= ((77 * bytes[3 * k] + 150 * bytes[3 * k + 1] + 29 * bytes[3 * k + 2] + 128) >> 8) << (8 * k);
        *reinterpret_cast<unsigned int*>(out + row * width + column) = result;
    } else {
        for (int c = column; c < width; c++) {
            int p = row * width + c;
            out[p] = (77 * image[3 * p] + 150 * image[3 * p + 1] + 29 * image[3 * p + 2] + 128) >> 8;
        }
    }
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
