# slow: an index that depends on the thread moves each thread's array from registers to local memory
# cause: spills
# blind: missed
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#define WARPS 4

// A warp transposes 32 x 32 elements. Its threads begin at different rows, so that no two write the same bank.
__global__ void rotate(const float* __restrict__ x, float* __restrict__ out, int height, int width) {
    __shared__ float tiles[WARPS][32][32];
    float (*tile)[32] = tiles[threadIdx.y];
    int lane = threadIdx.x;
    int row0 = blockIdx.y * 32, col0 = (blockIdx.x * WARPS + threadIdx.y) * 32;
    float mine[32];
    for (int k = 0; k < 32; k++) {
        bool inside = row0 + k < height && col0 + lane < width;
        mine[k] = inside ? x[(row0 + k) * width + col0 + lane] : 0.0f;
    }
    for (int k = 0; k < 32; k++) {
        int turned = (k + lane) % 32;
        tile[lane][turned] = mine[turned];
    }
    __syncthreads();
    for (int k = 0; k < 32; k++)
        if (col0 + k < width && row0 + lane < height) out[(col0 + k) * height + row0 + lane] = tile[k][lane];
}

extern "C" const char* transpose(const float* x, float* out, int height, int width) {
    int wide = 32 * WARPS;
    dim3 grid((width + wide - 1) / wide, (height + 31) / 32);
    rotate<<<grid, dim3(32, WARPS)>>>(x, out, height, width);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("rotate", cuda_sources=cuda_source, **options))
    built.transpose.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    built.transpose.restype = ctypes.c_char_p
    return built


def transpose(x, out):
    error = library().transpose(x.data_ptr(), out.data_ptr(), x.size(0), x.size(1))
    if error:
        raise RuntimeError(error.decode())
