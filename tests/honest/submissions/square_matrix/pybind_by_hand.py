# honest: a module written with pybind11 alone, which takes addresses as integers
# exercise: square_matrix
# runs: anywhere
# gates: passes
from torch.utils.cpp_extension import load_inline

kernel = r"""
__global__ void square_kernel(const float4* __restrict__ x, float4* __restrict__ out, long long n) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (4 * i + 3 < n) {
        const float4 v = x[i];
        out[i] = {v.x * v.x, v.y * v.y, v.z * v.z, v.w * v.w};
    } else {
        const float* from = reinterpret_cast<const float*>(x);
        float* to = reinterpret_cast<float*>(out);
        for (long long k = 4 * i; k < n; ++k) to[k] = from[k] * from[k];
    }
}
int launch(const void* x, void* out, long long n) {
    square_kernel<<<(n + 1023) / 1024, 256>>>(static_cast<const float4*>(x), static_cast<float4*>(out), n);
    return cudaGetLastError();
}
"""
binding = r"""
#include <pybind11/pybind11.h>
#include <stdexcept>

int launch(const void* x, void* out, long long n);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
    module.def("square", [](std::uintptr_t x, std::uintptr_t out, long long n) {
        if (int error = launch(reinterpret_cast<void*>(x), reinterpret_cast<void*>(out), n))
            throw std::runtime_error("CUDA error " + std::to_string(error));
    }, pybind11::arg("x"), pybind11::arg("out"), pybind11::arg("n"));
}
"""
_built = []


def extension():
    if not _built:
        _built.append(load_inline("by_hand", cpp_sources=binding, cuda_sources=kernel, no_implicit_headers=True))
    return _built[0]


def square_matrix(x, out):
    extension().square(x=x.data_ptr(), out=out.data_ptr(), n=x.numel())
