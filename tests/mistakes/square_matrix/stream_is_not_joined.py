# mistake: the kernel runs on a stream of its own that waits for the caller's, but the caller's does not wait for it
# says: nothing waits for the stream of its own on which work is started on line 23
# runs: simulator
import ctypes
from functools import cache

import torch
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void square_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] * x[i];
}

extern "C" void square(const float* x, float* out, int n, cudaStream_t caller) {
    cudaStream_t side;
    cudaEvent_t before;
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&before, cudaEventDisableTiming);
    cudaEventRecord(before, caller);
    cudaStreamWaitEvent(side, before, 0);
    square_kernel<<<(n + 255) / 256, 256, 0, side>>>(x, out, n);
    cudaStreamDestroy(side);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("square_matrix", cuda_sources=cuda_source, **options))
    built.square.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    return built


def square_matrix(x, out):
    stream = torch.cuda.current_stream().cuda_stream
    library().square(x.data_ptr(), out.data_ptr(), x.numel(), stream)
