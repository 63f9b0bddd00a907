# mistake: a tile of 66 kB in static shared memory
# says: in line 11 of the cell Does not compile for a GPU: Entry function
# runs: simulator
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#define TILE 128
__global__ void transpose_kernel(const float* x, float* out, int h, int w) {
    __shared__ float tile[TILE][TILE + 1];
    int c0 = blockIdx.x * TILE, r0 = blockIdx.y * TILE;
    for (int r = threadIdx.y; r < TILE; r += blockDim.y)
        for (int c = threadIdx.x; c < TILE; c += blockDim.x)
            if (r0 + r < h && c0 + c < w) tile[r][c] = x[(r0 + r) * w + c0 + c];
    __syncthreads();
    for (int r = threadIdx.y; r < TILE; r += blockDim.y)
        for (int c = threadIdx.x; c < TILE; c += blockDim.x)
            if (c0 + r < w && r0 + c < h) out[(c0 + r) * h + r0 + c] = tile[c][r];
}
extern "C" const char* run(const float* x, float* out, int h, int w) {
    dim3 grid((w + TILE - 1) / TILE, (h + TILE - 1) / TILE);
    transpose_kernel<<<grid, dim3(32, 8)>>>(x, out, h, w);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("transpose", cuda_sources=cuda_source, **options))
    built.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    built.run.restype = ctypes.c_char_p
    return built


def transpose(x, out):
    height, width = x.shape
    error = library().run(x.data_ptr(), out.data_ptr(), height, width)
    if error:
        raise RuntimeError(error.decode())
