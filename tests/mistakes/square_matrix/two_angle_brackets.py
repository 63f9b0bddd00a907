# mistake: the launch has two angle brackets on each side
# says: A launch has three angle brackets on each side
# runs: anywhere

import ctypes

from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void k(const float* x, float* out, int h, int w) {
    const int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r < h && c < w) out[r * w + c] = x[r * w + c] * x[r * w + c];
}
extern "C" int go(const float* x, float* out, int h, int w) {
    dim3 b(16, 16), g((w + 15) / 16, (h + 15) / 16); k<<g, b>>(x, out, h, w);
    return cudaGetLastError();
}
"""
path = load_inline(
    "square_matrix_v", cpp_sources="", cuda_sources=source, no_implicit_headers=True, is_python_module=False
)
lib = ctypes.CDLL(path)
lib.go.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
lib.go.restype = ctypes.c_int


def square_matrix(x, out):
    code = lib.go(x.data_ptr(), out.data_ptr(), x.size(0), x.size(1))
    if code:
        raise RuntimeError(f"CUDA error {code}")
