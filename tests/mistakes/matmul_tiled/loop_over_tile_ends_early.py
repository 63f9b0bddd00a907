# mistake: the loop over a tile leaves out its last element
# says: One element of each tile along K is missing
# runs: anywhere

import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#define TILE_WIDTH 16

__global__ void matrixMulKernel(const float* M, const float* N, float* P, int j, int k, int l) {
    __shared__ float Mds[TILE_WIDTH][TILE_WIDTH];
    __shared__ float Nds[TILE_WIDTH][TILE_WIDTH];

    int bx = blockIdx.x; int by = blockIdx.y;
    int tx = threadIdx.x; int ty = threadIdx.y;
    int Row = by * TILE_WIDTH + ty;
    int Col = bx * TILE_WIDTH + tx;

    float Pvalue = 0;
    for (int ph = 0; ph < ceil(k / (float)TILE_WIDTH); ++ph) {
        if ((Row < j) && (ph * TILE_WIDTH + tx) < k)
            Mds[ty][tx] = M[Row * k + ph * TILE_WIDTH + tx];
        else Mds[ty][tx] = 0.0f;
        if ((ph * TILE_WIDTH + ty) < k && Col < l)
            Nds[ty][tx] = N[(ph * TILE_WIDTH + ty) * l + Col];
        else Nds[ty][tx] = 0.0f;
        __syncthreads();

        for (int i = 0; i < TILE_WIDTH - 1; ++i) Pvalue += Mds[ty][i] * Nds[i][tx];
        __syncthreads();
    }
    if ((Row < j) && (Col < l)) P[Row * l + Col] = Pvalue;
}

extern "C" void multiply(const float* a, const float* b, float* out, int M, int N, int K) {
    dim3 blocks(ceil((float)N / TILE_WIDTH), ceil((float)M / TILE_WIDTH));
    matrixMulKernel<<<blocks, dim3(TILE_WIDTH, TILE_WIDTH)>>>(a, b, out, M, K, N);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("matmul_tiled", cuda_sources=cuda_source, **options))
    built.multiply.argtypes = [*[ctypes.c_void_p] * 3, *[ctypes.c_int] * 3]
    return built


def matmul_tiled(a, b, out):
    (M, K), N = a.shape, b.shape[1]
    library().multiply(a.data_ptr(), b.data_ptr(), out.data_ptr(), M, N, K)
