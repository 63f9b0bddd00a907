# slow: each pixel is weighted and divided in float64
# cause: double precision
import ctypes
from functools import lru_cache

from torch.utils.cpp_extension import load_inline

SOURCE = r"""
struct Weights {
    double r, g, b;
};

__device__ unsigned char mix(const unsigned char* p, Weights w) {
    double total = w.r + w.g + w.b;
    double grey = (w.r * p[0] + w.g * p[1] + w.b * p[2]) / total;
    return (unsigned char)floor(grey + 0.5);
}

__global__ void to_grey(const unsigned char* __restrict__ in, unsigned char* __restrict__ out, int h, int w,
                        Weights weights) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h) out[y * w + x] = mix(in + 3 * (y * w + x), weights);
}

extern "C" int launch(const unsigned char* in, unsigned char* out, int h, int w) {
    Weights weights = {77.0, 150.0, 29.0};
    dim3 block(64, 4);
    to_grey<<<dim3((w + 63) / 64, (h + 3) / 4), block>>>(in, out, h, w, weights);
    return cudaGetLastError();
}
"""


@lru_cache(maxsize=1)
def build():
    path = load_inline("grey_double", "", SOURCE, no_implicit_headers=True, is_python_module=False)
    launch = ctypes.CDLL(path).launch
    launch.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    return launch


def grayscale(image, out):
    code = build()(image.data_ptr(), out.data_ptr(), *out.shape)
    assert code == 0, f"CUDA error {code}"
