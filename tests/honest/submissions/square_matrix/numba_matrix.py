# honest: Numba's CUDA target over a grid of two dimensions
# exercise: square_matrix
# runs: gpu
# gates: may miss
# needs: numba.cuda
import math

import torch
from numba import cuda


@cuda.jit(fastmath=True)
def square(x, out):
    column, row = cuda.grid(2)
    if row < out.shape[0] and column < out.shape[1]:
        out[row, column] = x[row, column] ** 2


def square_matrix(x, out):
    height, width = x.shape
    stream = cuda.external_stream(torch.cuda.current_stream().cuda_stream)
    blocks = math.ceil(width / 64), math.ceil(height / 4)
    square[blocks, (64, 4), stream](cuda.as_cuda_array(x, sync=False), cuda.as_cuda_array(out, sync=False))
