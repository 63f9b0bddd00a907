# slow: each call allocates a struct on the GPU, copies to it, and frees it, which waits for the kernel
# cause: waits for the GPU
# blind: missed
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
struct Job {
    const float* x;
    float* out;
    int height, width;
};

__global__ void work(const Job* job) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = (blockIdx.y * blockDim.y + threadIdx.y) * 4;
    if (j >= job->width) return;
    const float* __restrict__ x = job->x;
    float* __restrict__ out = job->out;
    int height = job->height, width = job->width;
    float v[4];
    #pragma unroll
    for (int k = 0; k < 4; k++) v[k] = i + k < height ? x[(i + k) * width + j] : 0.0f;
    #pragma unroll
    for (int k = 0; k < 4; k++)
        if (i + k < height) out[(i + k) * width + j] = v[k] * v[k];
}

extern "C" const char* square(const float* x, float* out, int height, int width) {
    Job job = {x, out, height, width}, *on_gpu;
    cudaError_t error = cudaMalloc((void**)&on_gpu, sizeof(Job));
    if (error == cudaSuccess) error = cudaMemcpy(on_gpu, &job, sizeof(Job), cudaMemcpyHostToDevice);
    if (error != cudaSuccess) return cudaGetErrorString(error);
    dim3 block(64, 4), grid((width + 63) / 64, (height + 15) / 16);
    work<<<grid, block>>>(on_gpu);
    error = cudaGetLastError();
    cudaFree(on_gpu);
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("square_job", cuda_sources=cuda_source, **options))
    built.square.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    built.square.restype = ctypes.c_char_p
    return built


def square_matrix(x, out):
    height, width = x.shape
    error = library().square(x.data_ptr(), out.data_ptr(), height, width)
    if error:
        raise RuntimeError(error.decode())
