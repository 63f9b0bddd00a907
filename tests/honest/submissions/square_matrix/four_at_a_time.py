# honest: float4 loads and stores over the flat matrix, a scalar tail in a kernel of its own, __launch_bounds__
# exercise: square_matrix
# runs: anywhere
# gates: passes
import ctypes

import torch.utils.cpp_extension as ext

SRC = r'''
typedef unsigned long long u64;

static __device__ __forceinline__ float4 squared(const float4 v) {
    return make_float4(v.x * v.x, v.y * v.y, v.z * v.z, v.w * v.w);
}

__global__ void __launch_bounds__(256) square4(const float4* __restrict__ x, float4* __restrict__ out, u64 quads) {
    const u64 i = blockIdx.x * u64(blockDim.x) + threadIdx.x;
    if (i < quads) out[i] = squared(x[i]);
}

__global__ void square_tail(const float* x, float* out, u64 first, u64 n) {
    const u64 i = first + threadIdx.x;
    if (i < n) out[i] = x[i] * x[i];
}

extern "C" int launch(const float* x, float* out, u64 n) {
    const u64 quads = n / 4;
    if (quads) square4<<<(quads + 255) / 256, 256>>>((const float4*)x, (float4*)out, quads);
    if (n % 4) square_tail<<<1, 4>>>(x, out, 4 * quads, n);
    return (int)cudaGetLastError();
}
'''
lib = None


def build():
    global lib
    if lib is None:
        lib = ctypes.CDLL(ext.load_inline(name="square4", cpp_sources=[""], cuda_sources=[SRC], with_cuda=True,
                                          no_implicit_headers=True, is_python_module=False, verbose=False))
    return lib


def square_matrix(x, out):
    assert x.is_contiguous() and out.is_contiguous()
    status = build().launch(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr()), ctypes.c_ulonglong(x.numel()))
    assert status == 0, f"CUDA error {status}"
