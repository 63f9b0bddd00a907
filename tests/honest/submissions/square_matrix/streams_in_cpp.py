# honest: CUDA C++ with a stream and events of its own, and memory from cudaMallocAsync, joined before it returns
# exercise: square_matrix
# runs: gpu
# gates: may miss
import ctypes
from functools import cache

import torch
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#define TRY(call) if (cudaError_t error = (call)) return cudaGetErrorString(error)

__global__ void square_kernel(const float* __restrict__ x, float* __restrict__ out, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] * x[i];
}

extern "C" const char* square(const float* x, float* out, size_t n, cudaStream_t caller) {
    static cudaStream_t side = nullptr;
    static cudaEvent_t before, after;
    if (!side) {
        TRY(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
        TRY(cudaEventCreateWithFlags(&before, cudaEventDisableTiming));
        TRY(cudaEventCreateWithFlags(&after, cudaEventDisableTiming));
    }
    TRY(cudaEventRecord(before, caller));
    TRY(cudaStreamWaitEvent(side, before, 0));
    float* scratch = nullptr;
    TRY(cudaMallocAsync((void**)&scratch, n * sizeof(float), side));
    square_kernel<<<(n + 255) / 256, 256, 0, side>>>(x, scratch, n);
    TRY(cudaGetLastError());
    TRY(cudaMemcpyAsync(out, scratch, n * sizeof(float), cudaMemcpyDeviceToDevice, side));
    TRY(cudaFreeAsync(scratch, side));
    TRY(cudaEventRecord(after, side));
    TRY(cudaStreamWaitEvent(caller, after, 0));
    return nullptr;
}
"""


@cache
def library():
    built = ctypes.CDLL(
        load_inline("streams", "", cuda_source, no_implicit_headers=True, is_python_module=False)
    )
    built.square.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    built.square.restype = ctypes.c_char_p
    return built


def square_matrix(x, out):
    stream = torch.cuda.current_stream().cuda_stream
    if error := library().square(x.data_ptr(), out.data_ptr(), x.numel(), stream):
        raise RuntimeError(error.decode())
