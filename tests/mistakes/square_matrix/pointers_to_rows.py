# mistake: the matrix is taken for an array of pointers
# says: take `float*`, not `float**`
# runs: simulator
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void square_kernel(float** x, float** out, int h, int w) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r < h && c < w) out[r][c] = x[r][c] * x[r][c];
}
extern "C" const char* run(float** x, float** out, int h, int w) {
    dim3 block(16, 16), grid((w + 15) / 16, (h + 15) / 16);
    square_kernel<<<grid, block>>>(x, out, h, w);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("square_matrix", cuda_sources=cuda_source, **options))
    built.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    built.run.restype = ctypes.c_char_p
    return built


def square_matrix(x, out):
    height, width = x.shape
    error = library().run(x.data_ptr(), out.data_ptr(), height, width)
    if error:
        raise RuntimeError(error.decode())
