# honest: a kernel template by rows a thread, instantiated for several shapes, chosen at the launch
# exercise: square_matrix
# runs: anywhere
# gates: passes
import ctypes
from functools import lru_cache

from torch.utils.cpp_extension import load_inline

cpp = """
// nothing is declared here: the launcher is called through ctypes
"""
cuda = r"""
namespace course {

template <typename T>
__host__ __device__ constexpr T ceil_div(T a, T b) { return (a + b - 1) / b; }

template <typename T>
__device__ __forceinline__ T square(T value) { return value * value; }

template <int ROWS, int THREADS>
__global__ void __launch_bounds__(THREADS) kernel(const float* __restrict__ x, float* __restrict__ out, int height,
                                                  int width) {
    const int column = blockIdx.x * THREADS + threadIdx.x;
    const int first = blockIdx.y * ROWS;
    if (column >= width) return;
    float values[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
        if (first + i < height) values[i] = x[(first + i) * (long long)width + column];
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
        if (first + i < height) out[(first + i) * (long long)width + column] = square(values[i]);
}

template <int ROWS, int THREADS>
cudaError_t launch(const float* x, float* out, int height, int width) {
    const dim3 grid(ceil_div(width, THREADS), ceil_div(height, ROWS));
    kernel<ROWS, THREADS><<<grid, THREADS>>>(x, out, height, width);
    return cudaGetLastError();
}

}  // namespace course

extern "C" const char* run(const float* x, float* out, int height, int width) {
    using namespace course;
    cudaError_t error;
    if (width <= 32) error = launch<4, 32>(x, out, height, width);
    else if (height == 1) error = launch<1, 256>(x, out, height, width);
    else error = launch<8, 128>(x, out, height, width);
    return error == cudaSuccess ? "" : cudaGetErrorName(error);
}
"""


@lru_cache(None)
def runner():
    so = load_inline("by_template", cpp, cuda, no_implicit_headers=True, is_python_module=False)
    prototype = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int)
    return prototype(("run", ctypes.CDLL(so)))


def square_matrix(x, out):
    if message := runner()(x.data_ptr(), out.data_ptr(), *x.shape):
        raise RuntimeError(message.decode())
