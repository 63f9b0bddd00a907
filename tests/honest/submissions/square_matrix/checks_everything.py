# honest: a CUDA_CHECK macro, a device synchronisation in the launcher, messages by printf, several sources
# exercise: square_matrix
# runs: anywhere
# gates: may miss
import ctypes
import time
from functools import cache

from torch.utils.cpp_extension import load_inline

kernels = r"""
#include <cstdio>
#include <cassert>

#define CUDA_CHECK(call)                                                                        \
    do {                                                                                        \
        cudaError_t status_ = (call);                                                           \
        if (status_ != cudaSuccess) {                                                           \
            std::snprintf(message, sizeof message, "%s in line %d", cudaGetErrorString(status_), __LINE__); \
            return message;                                                                     \
        }                                                                                       \
    } while (0)

static char message[256];

__device__ float square_of(float value)
{
    return value * value;
}

__global__ void square_kernel(const float* x, float* out, int height, int width)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    assert(blockDim.x == 64 && blockDim.y == 4);
    if (row >= height || column >= width)
        return;
    size_t at = (size_t)row * width + column;
    out[at] = square_of(x[at]);
}

extern "C" const char* square(const float* x, float* out, int height, int width)
{
    if (height <= 0 || width <= 0)
        return "an empty matrix";
    dim3 block(64, 4);
    dim3 grid;
    grid.x = (width + 63) / 64;
    grid.y = (height + 3) / 4;
    square_kernel<<<grid, block>>>(x, out, height, width);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());
    return nullptr;
}
"""


@cache
def library():
    begun = time.time()
    print("building …", flush=True)
    path = load_inline("checked", [""], [kernels], no_implicit_headers=True, is_python_module=False, verbose=True)
    print(f"built {path} in {time.time() - begun:.1f} s")
    built = ctypes.CDLL(path)
    built.square.restype = ctypes.c_char_p
    built.square.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    return built


def square_matrix(x, out):
    error = library().square(x.data_ptr(), out.data_ptr(), x.size(0), x.size(1))
    if error is not None:
        raise RuntimeError(error.decode())
