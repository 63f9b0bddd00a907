# right: a fixed grid whose blocks go through the tiles, the row's index by division, a barrier at both ends
# runs: anywhere

import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
constexpr int T = 16;

__global__ void tiles(const float* x, float* out, int h, int w, int across, int tiles) {
    __shared__ float tile[T * (T + 1)];
    for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
        const int left = t % across * T, top = t / across * T;
        const int i = threadIdx.x / T, j = threadIdx.x % T;
        if (top + i < h && left + j < w) tile[i * (T + 1) + j] = x[(top + i) * w + left + j];
        __syncthreads();
        if (left + i < w && top + j < h) out[(left + i) * h + top + j] = tile[j * (T + 1) + i];
        __syncthreads();
    }
}

extern "C" void transpose(const float* x, float* out, int height, int width) {
    int device, sms, across = (width + T - 1) / T, down = (height + T - 1) / T;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    tiles<<<sms, T * T>>>(x, out, height, width, across, across * down);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("transpose", cuda_sources=cuda_source, **options))
    built.transpose.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    return built


def transpose(x, out):
    library().transpose(x.data_ptr(), out.data_ptr(), *x.shape)
