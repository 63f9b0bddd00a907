# mistake: each pixel is read as four bytes
# says: past the end of `image`
# runs: simulator
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void gray_kernel(const uchar4* image, unsigned char* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { uchar4 p = image[i]; out[i] = (77 * p.x + 150 * p.y + 29 * p.z + 128) >> 8; }
}
extern "C" const char* run(const unsigned char* image, unsigned char* out, int h, int w) {
    int n = h * w;
    gray_kernel<<<(n + 255) / 256, 256>>>((const uchar4*)image, out, n);
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
