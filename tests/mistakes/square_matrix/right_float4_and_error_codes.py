# right: float4 and a tail, and an error code that the simulator never reports
# runs: anywhere

import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <cstdint>
struct Matrix {
    const float* __restrict__ data;
    int rows, columns;
    __device__ __forceinline__ float operator()(int r, int c) const { return __ldg(data + r * columns + c); }
};
namespace detail {
template <typename T> __host__ __device__ constexpr T ceil_div(T a, T b) { return (a + b - 1) / b; }
static_assert(ceil_div(7, 4) == 2, "ceil_div rounds up");
__device__ __forceinline__ float sq(float v) { return __fmul_rn(v, v); }
__device__ __forceinline__ float4 sq(float4 v) { return make_float4(sq(v.x), sq(v.y), sq(v.z), sq(v.w)); }
}

__global__ void __launch_bounds__(256, 2) vec_kernel(const float4* x, float4* out, int n4) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n4; i += blockDim.x * gridDim.x)
        out[i] = detail::sq(__ldg(x + i));
}
__global__ void tail_kernel(Matrix m, float* out, int begin, int n) {
    const int i = begin + threadIdx.x;
    if (i < n) out[i] = detail::sq(m(i / m.columns, i % m.columns));
}
extern "C" int run(const float* x, float* out, int height, int width) {
    const int n = height * width, n4 = n / 4;
    const bool aligned = (reinterpret_cast<std::uintptr_t>(x) | reinterpret_cast<std::uintptr_t>(out)) % 16 == 0;
    if (!aligned) return static_cast<int>(cudaErrorMisalignedAddress);
    if (n4 > 0)
        vec_kernel<<<detail::ceil_div(n4, 256), 256>>>(
            reinterpret_cast<const float4*>(x), reinterpret_cast<float4*>(out), n4);
    if (n % 4) tail_kernel<<<1, 32>>>(Matrix{x, height, width}, out, 4 * n4, n);
    return static_cast<int>(cudaPeekAtLastError());
}
"""


@cache
def library():
    path = load_inline(
        "square_matrix_x", cpp_sources="", cuda_sources=cuda_source, no_implicit_headers=True, is_python_module=False
    )
    lib = ctypes.CDLL(path)
    lib.run.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_int] * 2
    lib.run.restype = ctypes.c_int
    return lib


def square_matrix(x, out):
    code = library().run(x.data_ptr(), out.data_ptr(), x.shape[0], x.shape[1])
    if code != 0:
        raise RuntimeError(f"CUDA error {code}")
