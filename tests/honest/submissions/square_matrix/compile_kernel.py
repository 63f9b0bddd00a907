# honest: torch.cuda._compile_kernel, compiled at the first call
# exercise: square_matrix
# runs: gpu
# gates: passes
from functools import cache

import torch

SOURCE = r"""
extern "C" __global__ void square_kernel(const float* __restrict__ x, float* __restrict__ out, int height, int width) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int first = blockIdx.y * 8;
    if (column >= width) return;
    #pragma unroll
    for (int row = first; row < first + 8; row++) {
        if (row < height) {
            float value = x[row * width + column];
            out[row * width + column] = value * value;
        }
    }
}
"""


@cache
def kernel():
    return torch.cuda._compile_kernel(SOURCE, "square_kernel")


def square_matrix(x, out):
    height, width = x.shape
    grid = ((width + 127) // 128, (height + 7) // 8, 1)
    kernel()(grid=grid, block=(128, 1, 1), args=[x, out, height, width])
