# right: uchar3 pixels, weights in constant memory, bytes staged in shared memory and stored as uchar4
# runs: anywhere

import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__constant__ unsigned short weights[4] = {77, 150, 29, 128};

__device__ __forceinline__ unsigned char gray(uchar3 p) {
    return (weights[0] * p.x + weights[1] * p.y + weights[2] * p.z + weights[3]) >> 8;
}

__global__ void to_gray(const uchar3* __restrict__ image, unsigned char* __restrict__ out, int pixels) {
    __shared__ __align__(4) unsigned char staged[256];
    const int first = blockIdx.x * 256, i = first + threadIdx.x;
    if (i < pixels) staged[threadIdx.x] = gray(image[i]);
    __syncthreads();
    const int at = first + 4 * threadIdx.x;
    if (threadIdx.x >= 64 || at >= pixels) return;
    if (at + 4 <= pixels) {
        *reinterpret_cast<uchar4*>(out + at) = *reinterpret_cast<const uchar4*>(staged + 4 * threadIdx.x);
    } else {
        for (int k = at; k < pixels; k++) out[k] = staged[k - first];
    }
}

extern "C" void grayscale(const unsigned char* image, unsigned char* out, int height, int width) {
    const int pixels = height * width;
    to_gray<<<(pixels + 255) / 256, 256>>>(reinterpret_cast<const uchar3*>(image), out, pixels);
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
