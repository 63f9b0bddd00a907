# mistake: all threads add to one shared variable, and the launcher returns CUDA's number of the error
# says: Each thread reads, changes and writes it
# runs: simulator

import ctypes

import torch
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void total(const float* x, double* t, int n) {
    __shared__ double block[1];
    if (!threadIdx.x) block[0] = 0.0;
    __syncthreads();
    double s = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) s += x[i];
    block[0] = block[0] + s;
    __syncthreads();
    if (!threadIdx.x) atomicAdd(t, block[0]);
}
__global__ void fin(const double* t, float* out, int n) { *out = float(t[0] / n); }

extern "C" int go(const float* x, double* tmp, float* out, int n) {
    total<<<32, 256>>>(x, tmp, n);
    fin<<<1, 1>>>(tmp, out, n);
    return cudaGetLastError();
}
"""
path = load_inline("mean_cuda_v", cpp_sources="", cuda_sources=source, no_implicit_headers=True, is_python_module=False)
lib = ctypes.CDLL(path)
lib.go.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
lib.go.restype = ctypes.c_int


def mean_cuda(x, out):
    tmp = torch.zeros(4096, dtype=torch.float64, device=x.device)
    code = lib.go(x.data_ptr(), tmp.data_ptr(), out.data_ptr(), x.numel())
    if code:
        raise RuntimeError(f"CUDA error {code}")
