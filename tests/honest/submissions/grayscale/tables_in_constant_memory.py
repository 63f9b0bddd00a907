# honest: products from tables in constant memory, filled in by macros
# exercise: grayscale
# runs: anywhere
# gates: may miss
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#define FOUR(w, i) w * (i), w * (i + 1), w * (i + 2), w * (i + 3)
#define SIXTEEN(w, i) FOUR(w, i), FOUR(w, i + 4), FOUR(w, i + 8), FOUR(w, i + 12)
#define SIXTY_FOUR(w, i) SIXTEEN(w, i), SIXTEEN(w, i + 16), SIXTEEN(w, i + 32), SIXTEEN(w, i + 48)
#define TABLE(w) {SIXTY_FOUR(w, 0), SIXTY_FOUR(w, 64), SIXTY_FOUR(w, 128), SIXTY_FOUR(w, 192)}

__constant__ int RED[256] = TABLE(77);
__constant__ int GREEN[256] = TABLE(150);
__constant__ int BLUE[256] = TABLE(29);

__global__ void lookup(const unsigned char* __restrict__ image, unsigned char* __restrict__ out, int pixels) {
    int pixel = blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel >= pixels) return;
    int red = image[3 * pixel], green = image[3 * pixel + 1], blue = image[3 * pixel + 2];
    out[pixel] = (RED[red] + GREEN[green] + BLUE[blue] + 128) >> 8;
}

extern "C" const char* grey(const unsigned char* image, unsigned char* out, int pixels) {
    int threads = 256;
    lookup<<<(pixels + threads - 1) / threads, threads>>>(image, out, pixels);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("grey_tables", cuda_sources=cuda_source, **options))
    built.grey.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    built.grey.restype = ctypes.c_char_p
    return built


def grayscale(image, out):
    if error := library().grey(image.data_ptr(), out.data_ptr(), out.numel()):
        raise RuntimeError(error.decode())
