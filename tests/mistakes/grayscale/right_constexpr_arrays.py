# right: constexpr arrays: in constant memory for a loop, the host's only in initial values
# runs: anywhere
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
constexpr int SHIFT[2] = {8, 128};
__constant__ constexpr int WEIGHTS[3] = {77, 150, 29};

template <int UP>
__device__ unsigned char rounded(int sum) {
    const int half = SHIFT[UP], shift = SHIFT[0];
    return (sum + half) >> shift;
}

__global__ void grayscale_kernel(const unsigned char* image, unsigned char* out, int height, int width) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= height || column >= width) return;
    int pixel = row * width + column, sum = 0;
    for (int c = 0; c < 3; ++c) sum += WEIGHTS[c] * image[3 * pixel + c];
    out[pixel] = rounded<1>(sum);
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
