// Kernels of test_cuda_accesses.py that look like races, strays or misaligned accesses, and are right on a GPU.
#include <cuda_runtime.h>

#define RUN(name, grid, block, ...) \
    extern "C" void run_##name(float* x, float* out, int n) { name<<<grid, block __VA_ARGS__>>>(x, out, n); }

__global__ void tree(float* x, float* out, int n) {
    __shared__ float s[128];
    s[threadIdx.x] = x[threadIdx.x];
    for (int half = 64; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) s[threadIdx.x] += s[threadIdx.x + half];
    }
    if (threadIdx.x == 0) atomicAdd(out, s[0]);
}
RUN(tree, 2, 128)

__global__ void warp_tree(float* x, float* out, int n) {
    __shared__ float s[64];
    const int lane = threadIdx.x;
    s[lane] = x[lane], s[lane + 32] = x[lane + 32];
    for (int half = 32; half > 0; half /= 2) {
        __syncwarp();
        float other = lane < half ? s[lane + half] : 0;
        __syncwarp();
        s[lane] += other;
    }
    __syncwarp();
    if (lane == 1) *out = s[0];
}
RUN(warp_tree, 1, 32)

__global__ void exchange_by_shuffle(float* x, float* out, int n) {
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    __shfl_down_sync(0xffffffff, 0, 1);  // a shuffle orders the accesses of its lanes
    out[threadIdx.x] = s[threadIdx.x ^ 1];
}
RUN(exchange_by_shuffle, 1, 64)

__global__ void halves_of_warps(float* x, float* out, int n) {
    __shared__ float s[64];
    unsigned half = threadIdx.x % 32 < 16 ? 0x0000ffffu : 0xffff0000u;
    for (int i = 0; i < 3; i++) {
        s[threadIdx.x] = x[threadIdx.x] + i;
        __syncwarp(half);
        out[threadIdx.x] = s[threadIdx.x ^ 15];
        __syncwarp(half);
    }
}
RUN(halves_of_warps, 1, 64)

__device__ float partials[64];
__device__ unsigned ticket;
__global__ void last_block(float* x, float* out, int n) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = x[blockIdx.x];
        __threadfence();
        last = atomicInc(&ticket, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x < gridDim.x) atomicAdd(out, partials[threadIdx.x]);
}
RUN(last_block, 8, 64)

__device__ float results[512];
__device__ int done;
__global__ void every_thread_of_the_last_block(float* x, float* out, int n) {
    __shared__ int before;
    results[blockIdx.x * 64 + threadIdx.x] = x[threadIdx.x];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) before = atomicAdd(&done, 1);
    __syncthreads();
    if (before < gridDim.x - 1) return;
    __threadfence();
    float sum = 0;
    for (int i = 0; i < gridDim.x; i++) sum += results[i * 64 + threadIdx.x];
    out[threadIdx.x] = sum;
    if (threadIdx.x == 0) done = 0;
}
RUN(every_thread_of_the_last_block, 8, 64)

__device__ volatile int ready[64];
__device__ float sums[64];
__global__ void look_back(float* x, float* out, int n) {  // each block waits for the one before it
    if (threadIdx.x) return;
    float before = 0;
    if (blockIdx.x) {
        while (ready[blockIdx.x - 1] == 0) {}
        __threadfence();
        before = sums[blockIdx.x - 1];
    }
    sums[blockIdx.x] = before + x[blockIdx.x];
    __threadfence();
    ready[blockIdx.x] = 1;
    if (blockIdx.x == gridDim.x - 1) *out = sums[0] + sums[blockIdx.x];  // two links or more away
}
RUN(look_back, 8, 32)

__device__ double add(double* address, double value) {  // as in the CUDA programming guide
    unsigned long long* as_bits = (unsigned long long*)address;
    unsigned long long old = *as_bits, assumed;
    do {
        assumed = old;
        double sum = value + *reinterpret_cast<double*>(&assumed);
        old = atomicCAS(as_bits, assumed, *reinterpret_cast<unsigned long long*>(&sum));
    } while (assumed != old);
    return *reinterpret_cast<double*>(&old);
}
__global__ void compare_and_swap(float* x, float* out, int n) { add(reinterpret_cast<double*>(out), x[threadIdx.x]); }
RUN(compare_and_swap, 3, 64)

__global__ void maximum_with_a_look(float* x, float* out, int n) {
    int* best = reinterpret_cast<int*>(out);
    int mine = x[blockIdx.x * blockDim.x + threadIdx.x];
    if (mine > *best) atomicMax(best, mine);
}
RUN(maximum_with_a_look, 2, 64)

__global__ void any_negative(float* x, float* out, int n) {
    __shared__ int found;
    found = 0;
    __syncthreads();
    if (x[threadIdx.x] < 0) found = 1, *out = 1;  // the same value, whoever stores it
    __syncthreads();
    if (threadIdx.x == 0) out[1] = found;
}
RUN(any_negative, 2, 64)

__global__ void stored_by_four_threads(float* x, float* out, int n) {
    __shared__ float tile[16][16];
    const int row = threadIdx.y % 16, column = threadIdx.x % 16;
    for (int first = 0; first < n; first += 16) {
        tile[row][column] = 0;
        if (first + column < n) tile[row][column] = x[first + column];
        __syncthreads();
        out[column] = first ? 0.0f : 1.0f;  // then the same value, whoever stores it last
        out[column] = tile[row][15 - column];
        __syncthreads();
    }
}
RUN(stored_by_four_threads, 1, dim3(32, 32))

__global__ void bytes_side_by_side(float* x, float* out, int n) {
    __shared__ unsigned char s[128];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    reinterpret_cast<unsigned char*>(out)[blockIdx.x * 128 + threadIdx.x] = s[127 - threadIdx.x];
}
RUN(bytes_side_by_side, 2, 128)

__global__ void fours(float* x, float* out, int n) {
    __shared__ __align__(16) float s[4 * 32];
    float4 v = reinterpret_cast<const float4*>(x)[threadIdx.x];
    reinterpret_cast<float4*>(s)[threadIdx.x] = v;
    __syncthreads();
    for (int i = threadIdx.x; i < 128; i += 32) out[i] = s[127 - i];
}
RUN(fours, 1, 32)

__global__ void rows_as_one(float* x, float* out, int n) {
    __shared__ float tile[8][16];
    for (int i = threadIdx.x; i < 128; i += 32) (&tile[0][0])[i] = x[i];
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x / 4][threadIdx.x % 16];
}
RUN(rows_as_one, 1, 32)

__global__ void two_arrays_in_one(float* x, float* out, int n) {
    extern __shared__ unsigned char memory[];
    float* values = reinterpret_cast<float*>(memory);
    int* order = reinterpret_cast<int*>(values + blockDim.x);
    values[threadIdx.x] = x[threadIdx.x], order[threadIdx.x] = blockDim.x - 1 - threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = values[order[threadIdx.x]];
}
RUN(two_arrays_in_one, 1, 64, , 512)

__global__ void two_buffers(float* x, float* out, int n) {
    __shared__ float s[2][64];
    const int t = threadIdx.x;
    s[0][t] = x[t];
    int from = 0;
    for (int step = 1; step < 64; step *= 2, from ^= 1) {
        __syncthreads();
        s[from ^ 1][t] = s[from][t] + (t >= step ? s[from][t - step] : 0);
    }
    out[t] = s[from][t];
}
RUN(two_buffers, 1, 64)

__global__ void compacted(float* x, float* out, int n) {
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    const unsigned kept = __ballot_sync(0xffffffff, x[threadIdx.x] > 0);
    int base = 0;
    if (threadIdx.x % 32 == 0) base = atomicAdd(&count, __popc(kept));
    base = __shfl_sync(0xffffffff, base, 0);
    if (x[threadIdx.x] > 0) out[base + __popc(kept & ((1u << threadIdx.x % 32) - 1))] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) out[n - 1] = count;
}
RUN(compacted, 1, 64)

struct Shape { int rows, columns; float factors[4]; };
__global__ void by_value(Shape shape, float* x, float* out) {
    float local[4];
    for (int i = 0; i < 4; i++) local[i] = shape.factors[(i + threadIdx.x) % 4];
    float* pointer = local;
    for (int i = 0; i < 4; i++) pointer[i] *= x[i];
    out[threadIdx.x] = pointer[threadIdx.x % 4] + shape.rows;
}
extern "C" void run_by_value(float* x, float* out, int n) {
    by_value<<<2, 32>>>(Shape{1, 2, {1, 2, 3, 4}}, x, out);
    float* own;
    cudaMalloc(&own, n * sizeof(float));
    cudaMemset(own, 0, n * sizeof(float));
    by_value<<<1, 32>>>(Shape{1, 2, {1, 2, 3, 4}}, own, out);
    cudaFree(own);
}

__global__ void memory_of_its_own(float* x, float* out, int n) {
    float* pair = new float[2];
    float* copy = static_cast<float*>(malloc(sizeof(float)));
    pair[1] = x[threadIdx.x];
    *copy = pair[1];
    out[threadIdx.x] = *copy;
    delete[] pair;
    free(copy);
}
RUN(memory_of_its_own, 2, 1)
