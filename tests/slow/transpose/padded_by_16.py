# slow: rows of the tile are 48 floats apart, so that a column lies in two banks
# cause: bank conflicts
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
template <int SIDE, int PAD, int STRIPES>
__global__ void flip(const float* __restrict__ x, float* __restrict__ out, int height, int width) {
    __shared__ float patch[SIDE][SIDE + PAD];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int top = blockIdx.y * SIDE, left = blockIdx.x * SIDE;
    #pragma unroll
    for (int s = ty; s < SIDE; s += SIDE / STRIPES)
        if (top + s < height && left + tx < width) patch[s][tx] = x[(top + s) * width + left + tx];
    __syncthreads();
    #pragma unroll
    for (int s = ty; s < SIDE; s += SIDE / STRIPES)
        if (left + s < width && top + tx < height) out[(left + s) * height + top + tx] = patch[tx][s];
}

extern "C" const char* transpose(const float* x, float* out, int height, int width) {
    dim3 block(32, 8);
    dim3 grid((width + 31) / 32, (height + 31) / 32);
    flip<32, 16, 4><<<grid, block>>>(x, out, height, width);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("flip", cuda_sources=cuda_source, **options))
    built.transpose.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    built.transpose.restype = ctypes.c_char_p
    return built


def transpose(x, out):
    height, width = x.shape
    error = library().transpose(x.data_ptr(), out.data_ptr(), height, width)
    if error:
        raise RuntimeError(error.decode())
