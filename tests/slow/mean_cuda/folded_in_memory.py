# slow: the vector is copied and then folded in half in global memory, one launch per fold
# cause: extra operations
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void fold(float* v, int kept, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + kept < n) v[i] += v[i + kept];
}

__global__ void finish(const float* v, float* out, int n) { *out = *v / n; }

extern "C" const char* run(float* v, float* out, int n) {
    int left = n;
    while (left > 1) {
        int kept = (left + 1) / 2, threads = left - kept;
        fold<<<(threads + 255) / 256, 256>>>(v, kept, left);
        left = kept;
    }
    finish<<<1, 1>>>(v, out, n);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("mean_fold", cuda_sources=cuda_source, **options))
    built.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    built.run.restype = ctypes.c_char_p
    return built


def mean_cuda(x, out):
    scratch = x.clone()
    error = library().run(scratch.data_ptr(), out.data_ptr(), x.numel())
    if error:
        raise RuntimeError(error.decode())
