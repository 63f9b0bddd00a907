# honest: a stream of Numba's, which the default stream waits for by itself: it is a blocking one
# exercise: vector_add
# runs: gpu
# gates: may miss
# needs: numba.cuda
from numba import cuda

stream = cuda.stream()


@cuda.jit
def add_kernel(x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i] + y[i]


def vector_add(x, y, out):
    arrays = [cuda.as_cuda_array(tensor, sync=False) for tensor in (x, y, out)]
    add_kernel[(out.numel() + 255) // 256, 256, stream](*arrays)
