# mistake: the mask of a shuffle names half of the lanes
# says: If the whole warp calls it, the mask is `0xffffffff`.
# runs: simulator
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void mean_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i < n ? x[i] : 0.0f;
    for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(0xffff, v, o);
    if (threadIdx.x % 32 == 0) atomicAdd(out, v / n);
}

extern "C" const char* run(const float* x, float* out, int n) {
    cudaMemset(out, 0, sizeof(float));
    mean_kernel<<<(n + 255) / 256, 256>>>(x, out, n);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("mean_cuda", cuda_sources=cuda_source, **options))
    built.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    built.run.restype = ctypes.c_char_p
    return built


def mean_cuda(x, out):
    error = library().run(x.data_ptr(), out.data_ptr(), x.numel())
    if error:
        raise RuntimeError(error.decode())
