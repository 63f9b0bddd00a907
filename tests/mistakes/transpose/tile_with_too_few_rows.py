# mistake: the tile has 8 rows instead of 32
# says: past the end of `tile`, a `float [8][33]` declared on line
# on_gpu: Compare the size of each `__shared__` array with its largest index
# runs: simulator
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void transpose_kernel(const float* __restrict__ x, float* __restrict__ out, int height, int width) {
    __shared__ float tile[8][33];
    int column = blockIdx.x * 32 + threadIdx.x;
    for (int j = threadIdx.y; j < 32; j += 8) {
        int row = blockIdx.y * 32 + j;
        if (row < height && column < width) tile[j][threadIdx.x] = x[row * width + column];
    }
    __syncthreads();
    int out_column = blockIdx.y * 32 + threadIdx.x;
    for (int j = threadIdx.y; j < 32; j += 8) {
        int out_row = blockIdx.x * 32 + j;
        if (out_row < width && out_column < height) out[out_row * height + out_column] = tile[threadIdx.x][j];
    }
}

extern "C" const char* transpose(const float* x, float* out, int height, int width) {
    dim3 block(32, 8);
    dim3 grid(1, 1);
    grid.x = (width + 31) / 32;
    grid.y = (height + 31) / 32;
    transpose_kernel<<<grid, block>>>(x, out, height, width);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("transpose", cuda_sources=cuda_source, **options))
    built.transpose.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    built.transpose.restype = ctypes.c_char_p
    return built


def transpose(x, out):
    height, width = x.shape
    error = library().transpose(x.data_ptr(), out.data_ptr(), height, width)
    if error:
        raise RuntimeError(error.decode())
