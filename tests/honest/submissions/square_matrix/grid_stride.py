# honest: a grid-stride loop with 64-bit indices, built when the cell is imported, on torch's stream
# exercise: square_matrix
# runs: anywhere
# gates: may miss
import ctypes

import torch
from torch.utils.cpp_extension import load_inline

library = ctypes.CDLL(
    load_inline(
        name="grid_stride_square",
        cpp_sources="",
        cuda_sources=r"""
#include <cstdint>

__global__ void square(const float* __restrict__ x, float* __restrict__ out, std::int64_t n) {
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
        out[i] = x[i] * x[i];
    }
}

extern "C" int run(const float* x, float* out, std::int64_t n, cudaStream_t stream) {
    const std::int64_t wanted = (n + 255) / 256;
    square<<<wanted < 65536 ? wanted : 65536, 256, 0, stream>>>(x, out, n);
    return cudaPeekAtLastError();
}
""",
        extra_cuda_cflags=["-O3", "-lineinfo"],
        no_implicit_headers=True,
        is_python_module=False,
    )
)
library.run.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)


def square_matrix(x, out):
    code = library.run(x.data_ptr(), out.data_ptr(), x.numel(), torch.cuda.current_stream().cuda_stream)
    if code != 0:
        raise RuntimeError(f"launch failed with error {code}")
