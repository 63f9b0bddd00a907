# right: a template over a functor, launched by cudaLaunchKernel, which gets the kernel as a void*
# runs: anywhere

import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
template <int THREADS, typename F>
__global__ void map_kernel(const float* in, float* out, unsigned n, F f) {
    unsigned i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    out[i] = f(in[i]);
}
struct Square {
    __device__ float operator()(float v) const { return v * v; }
};
extern "C" int run(const float* x, float* out, int height, int width) {
    unsigned n = unsigned(height) * unsigned(width);
    Square f;
    void* args[] = {&x, &out, &n, &f};
    auto kernel = &map_kernel<128, Square>;
    return cudaLaunchKernel((const void*)kernel, dim3((n + 127) / 128), dim3(128), args, 0, nullptr);
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
