# honest: a CuPy RawModule with a C++ template, dynamic shared memory that keeps the row
# exercise: softmax
# runs: gpu
# gates: may miss
# needs: cupy
import cupy as cp
import torch

code = r"""
template <int THREADS>
__global__ void softmax_rows(const float* x, float* out, long long x_stride, long long out_stride, int columns) {
    extern __shared__ float row[];
    __shared__ float part[THREADS];
    x += blockIdx.x * x_stride;
    out += blockIdx.x * out_stride;
    float m = -3.402823466e+38f;
    for (int i = threadIdx.x; i < columns; i += THREADS) { row[i] = x[i]; m = fmaxf(m, row[i]); }
    part[threadIdx.x] = m;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + half]);
        __syncthreads();
    }
    m = part[0];
    __syncthreads();
    float s = 0;
    for (int i = threadIdx.x; i < columns; i += THREADS) { row[i] = expf(row[i] - m); s += row[i]; }
    part[threadIdx.x] = s;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    s = part[0];
    for (int i = threadIdx.x; i < columns; i += THREADS) out[i] = row[i] / s;
}
"""
names = {threads: f"softmax_rows<{threads}>" for threads in (128, 512)}
module = cp.RawModule(code=code, options=("-std=c++17",), name_expressions=tuple(names.values()))


def softmax(x, out):
    rows, columns = x.shape
    threads = 128 if columns <= 1024 else 512
    kernel = module.get_function(names[threads])
    bytes_needed = 4 * columns
    if bytes_needed > 40_000:
        kernel.max_dynamic_shared_size_bytes = bytes_needed
    arguments = (x.data_ptr(), out.data_ptr(), x.stride(0), out.stride(0), cp.int32(columns))
    with cp.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
        kernel((rows,), (threads,), arguments, shared_mem=bytes_needed)
