# honest: a CuPy RawKernel on torch's stream
# exercise: vector_add
# runs: gpu
# gates: passes
# needs: cupy
import cupy
import torch

kernel = cupy.RawKernel(
    r"""
extern "C" __global__ void add(const float* x, const float* y, float* out, int n) {
    int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i + 3 < n) {
        float4 a = *(const float4*)(x + i), b = *(const float4*)(y + i);
        *(float4*)(out + i) = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
    } else {
        for (; i < n; ++i) out[i] = x[i] + y[i];
    }
}
""",
    "add",
)


def vector_add(x, y, out):
    n = out.numel()
    with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
        arguments = (x.data_ptr(), y.data_ptr(), out.data_ptr(), cupy.int32(n))
        kernel(((n + 1023) // 1024,), (256,), arguments)
