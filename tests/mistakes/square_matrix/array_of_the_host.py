# mistake: the kernel gets the address of an array on the host's stack
# says: A kernel cannot use the host's variables by their address
# runs: simulator
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void square_kernel(const float* x, float* out, const int* shape) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= shape[0] || column >= shape[1]) return;
    float value = x[row * shape[1] + column];
    out[row * shape[1] + column] = value * value;
}

extern "C" const char* square(const float* x, float* out, int height, int width) {
    dim3 block(32, 8), grid((width + 31) / 32, (height + 7) / 8);
    int shape[2] = {height, width};
    square_kernel<<<grid, block>>>(x, out, shape);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("square_matrix", cuda_sources=cuda_source, **options))
    built.square.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    built.square.restype = ctypes.c_char_p
    return built


def square_matrix(x, out):
    height, width = x.shape
    error = library().square(x.data_ptr(), out.data_ptr(), height, width)
    if error:
        raise RuntimeError(error.decode())
