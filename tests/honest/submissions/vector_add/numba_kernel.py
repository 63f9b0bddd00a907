# honest: Numba's CUDA target, as the notebook shows it first
# exercise: vector_add
# runs: gpu
# gates: may miss
# needs: numba.cuda
import torch
from numba import cuda


@cuda.jit
def add(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]


def vector_add(x, y, out):
    n = out.numel()
    stream = cuda.external_stream(torch.cuda.current_stream().cuda_stream)
    arrays = [cuda.as_cuda_array(tensor, sync=False) for tensor in (x, y, out)]
    add[(n + 255) // 256, 256, stream](*arrays)
