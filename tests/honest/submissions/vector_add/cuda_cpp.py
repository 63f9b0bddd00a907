# honest: CUDA C++ by load_inline and ctypes where Triton is taught
# exercise: vector_add
# runs: anywhere
# gates: passes
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void add_vectors(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out, long n) {
    long i = 4 * (blockIdx.x * (long)blockDim.x + threadIdx.x);
    if (i + 3 < n) {
        float4 a = *reinterpret_cast<const float4*>(x + i);
        float4 b = *reinterpret_cast<const float4*>(y + i);
        *reinterpret_cast<float4*>(out + i) = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
    } else {
        for (; i < n; ++i) out[i] = x[i] + y[i];
    }
}
extern "C" int add(const float* x, const float* y, float* out, long n) {
    add_vectors<<<(n + 1023) / 1024, 256>>>(x, y, out, n);
    return cudaGetLastError();
}
"""


@cache
def library():
    path = load_inline("add", cpp_sources="", cuda_sources=source, no_implicit_headers=True, is_python_module=False)
    return ctypes.CDLL(path)


def vector_add(x, y, out):
    pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (x, y, out)]
    if code := library().add(*pointers, ctypes.c_long(out.numel())):
        raise RuntimeError(f"CUDA error {code}")
