# honest: CUDA C++ by NVRTC: a warp for each row, the online recurrence in registers
# exercise: softmax
# runs: gpu
# gates: may miss
import torch

SOURCE = r"""
extern "C" __global__ void __launch_bounds__(256)
softmax_warps(const float* x, float* out, int x_stride, int out_stride, int rows, int columns) {
    const int lane = threadIdx.x & 31;
    const int row = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    if (row >= rows) return;
    x += (long long)row * x_stride;
    out += (long long)row * out_stride;
    const float lowest = -3.402823466e+38f;
    float m = lowest, s = 0.0f;
    for (int i = lane; i < columns; i += 32) {
        const float v = x[i];
        const float next = fmaxf(m, v);
        s = s * expf(m - next) + expf(v - next);
        m = next;
    }
    #pragma unroll
    for (int step = 16; step; step >>= 1) {
        const float other_m = __shfl_xor_sync(~0u, m, step), other_s = __shfl_xor_sync(~0u, s, step);
        const float next = fmaxf(m, other_m);
        s = s * expf(m - next) + other_s * expf(other_m - next);
        m = next;
    }
    const float factor = 1.0f / s;
    for (int i = lane; i < columns; i += 32) out[i] = expf(x[i] - m) * factor;
}
"""
kernel = torch.cuda._compile_kernel(SOURCE, "softmax_warps")


def softmax(x, out):
    rows, columns = x.shape
    kernel(((rows + 7) // 8, 1, 1), (256, 1, 1), (x, out, x.stride(0), out.stride(0), rows, columns))
