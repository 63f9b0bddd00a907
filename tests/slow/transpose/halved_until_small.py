# slow: the host halves the matrix until parts have at most 256 rows and columns, and launches a kernel for each
# cause: many launches
# blind: missed
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
struct Part {
    int row, column, rows, columns;
};

__global__ void leaf(const float* x, float* out, int height, int width, Part part) {
    __shared__ float tile[32][33];
    int i0 = blockIdx.y * 32, j0 = blockIdx.x * 32;
    for (int k = threadIdx.y; k < 32; k += 8) {
        int i = i0 + k, j = j0 + threadIdx.x;
        if (i < part.rows && j < part.columns)
            tile[k][threadIdx.x] = x[(part.row + i) * width + part.column + j];
    }
    __syncthreads();
    for (int k = threadIdx.y; k < 32; k += 8) {
        int j = j0 + k, i = i0 + threadIdx.x;
        if (i < part.rows && j < part.columns)
            out[(part.column + j) * height + part.row + i] = tile[threadIdx.x][k];
    }
}

static void divide(const float* x, float* out, int height, int width, Part part) {
    if (part.rows <= 256 && part.columns <= 256) {
        dim3 grid((part.columns + 31) / 32, (part.rows + 31) / 32);
        leaf<<<grid, dim3(32, 8)>>>(x, out, height, width, part);
        return;
    }
    Part first = part, second = part;
    if (part.rows >= part.columns) {
        first.rows = part.rows / 2;
        second.row += first.rows;
        second.rows -= first.rows;
    } else {
        first.columns = part.columns / 2;
        second.column += first.columns;
        second.columns -= first.columns;
    }
    divide(x, out, height, width, first);
    divide(x, out, height, width, second);
}

extern "C" const char* transpose(const float* x, float* out, int height, int width) {
    divide(x, out, height, width, Part{0, 0, height, width});
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("divide", cuda_sources=cuda_source, **options))
    built.transpose.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    built.transpose.restype = ctypes.c_char_p
    return built


def transpose(x, out):
    height, width = x.shape
    error = library().transpose(x.data_ptr(), out.data_ptr(), height, width)
    if error:
        raise RuntimeError(error.decode())
