// Kernels of test_cuda_accesses.py that race: the simulator, which runs one thread after another, computes what they
// were written for. Each `run_…` takes x, out and n; the line that the report must name ends with `// LINE name`.
#include <cuda_runtime.h>

#define RUN(name, grid, block, ...) \
    extern "C" void run_##name(float* x, float* out, int n) { name<<<grid, block __VA_ARGS__>>>(x, out, n); }

__global__ void every_block_adds(float* x, float* out, int n) {
    if (threadIdx.x == 0) *out += x[blockIdx.x];  // LINE every_block_adds
}
RUN(every_block_adds, 4, 32)

__global__ void every_thread_adds(float* x, float* out, int n) {
    __shared__ float total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    total += x[threadIdx.x];  // LINE every_thread_adds
    __syncthreads();
    if (threadIdx.x == 0) *out = total;
}
RUN(every_thread_adds, 1, 64)

__global__ void histogram(float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[(int)x[i] & 3] += 1;  // LINE histogram
}
RUN(histogram, 2, 64)

__global__ void histogram_of_block(float* x, float* out, int n) {
    __shared__ int bins[4];
    if (threadIdx.x < 4) bins[threadIdx.x] = 0;
    __syncthreads();
    bins[(int)x[threadIdx.x] & 3]++;  // LINE histogram_of_block
    __syncthreads();
    if (threadIdx.x < 4) out[threadIdx.x] = bins[threadIdx.x];
}
RUN(histogram_of_block, 1, 64)

__device__ float partials[64];
__device__ unsigned ticket;
__global__ void last_block_without_fence(float* x, float* out, int n) {
    if (threadIdx.x) return;
    partials[blockIdx.x] = x[blockIdx.x];
    if (atomicInc(&ticket, gridDim.x - 1) != gridDim.x - 1) return;
    float sum = 0;
    for (int i = 0; i < gridDim.x; i++) sum += partials[i];  // LINE last_block_without_fence
    *out = sum;
}
RUN(last_block_without_fence, 8, 32)

__global__ void flag_without_barrier(float* x, float* out, int n) {
    __shared__ float first;
    if (threadIdx.x == 0) first = x[0];
    out[threadIdx.x] = x[threadIdx.x] - first;  // LINE flag_without_barrier
}
RUN(flag_without_barrier, 1, 64)

__global__ void scan_in_step(float* x, float* out, int n) {
    __shared__ float s[32];
    s[threadIdx.x] = x[threadIdx.x];
    if (threadIdx.x > 0) s[threadIdx.x] += s[threadIdx.x - 1];  // LINE scan_in_step
    out[threadIdx.x] = s[threadIdx.x];
}
RUN(scan_in_step, 1, 32)

__global__ void zeroed_by_one_thread(float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) *out = 0;
    __syncthreads();
    if (i < n) atomicAdd(out, x[i]);  // LINE zeroed_by_one_thread
}
RUN(zeroed_by_one_thread, 4, 32)

__global__ void largest(float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > *out) *out = x[i];  // LINE largest
}
RUN(largest, 2, 64)

__global__ void index_of_any(float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 0) *out = i;  // LINE index_of_any
}
RUN(index_of_any, 2, 64)

__global__ void running_sum_of_blocks(float* x, float* out, int n) {
    if (threadIdx.x == 0) out[blockIdx.x] = x[blockIdx.x] + (blockIdx.x ? out[blockIdx.x - 1] : 0);  // LINE running_sum_of_blocks
}
RUN(running_sum_of_blocks, 8, 32)

__global__ void left_neighbour(float* x, float* out, int n) {
    extern __shared__ float copy[];
    copy[threadIdx.x] = x[threadIdx.x];
    out[threadIdx.x] = threadIdx.x ? copy[threadIdx.x - 1] : 0;  // LINE left_neighbour
}
RUN(left_neighbour, 1, 128, , 512)

__global__ void zeroed_and_summed_by_four(float* x, float* out, int n) {
    __shared__ float sums[16];
    sums[threadIdx.x % 16] = 0;  // LINE zeroed_and_summed_by_four
    for (int i = threadIdx.x % 16; i < n; i += 16) sums[threadIdx.x % 16] += x[i];
    __syncthreads();
    out[threadIdx.x] = sums[threadIdx.x % 16];
}
RUN(zeroed_and_summed_by_four, 1, 64)

__global__ void the_last_of_four_stays(float* x, float* out, int n) {
    __shared__ float last[16];
    last[threadIdx.x % 16] = 0;
    last[threadIdx.x % 16] = x[threadIdx.x];  // LINE the_last_of_four_stays
    __syncthreads();
    out[threadIdx.x] = last[threadIdx.x % 16];
}
RUN(the_last_of_four_stays, 1, 64)

__device__ int used;
__global__ void next_free_place(float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) used = 0;
    if (i < n && x[i] > 0) out[used++] = x[i];  // LINE next_free_place
}
RUN(next_free_place, 1, 128)

__global__ void volatile_sum(float* x, float* out, int n) {
    volatile float* sum = out;
    if (threadIdx.x == 0) *sum = *sum + x[blockIdx.x];  // LINE volatile_sum
}
RUN(volatile_sum, 4, 32)

__global__ void total_read_early(float* x, float* out, int n) {
    __shared__ float total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    atomicAdd(&total, x[threadIdx.x]);
    if (threadIdx.x == blockDim.x - 1) *out = total;  // LINE total_read_early
}
RUN(total_read_early, 1, 64)

struct Pair { int count; float sum; };
__global__ void pair_of_sums(float* x, float* out, int n) {
    Pair* pair = reinterpret_cast<Pair*>(out);
    if (threadIdx.x == 0) {
        Pair mine = *pair;  // LINE pair_of_sums
        *pair = {mine.count + 1, mine.sum + x[blockIdx.x]};
    }
}
RUN(pair_of_sums, 4, 32)

__global__ void counts_in_bytes(float* x, float* out, int n) {
    unsigned char* counts = reinterpret_cast<unsigned char*>(out);
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) counts[(int)x[i] & 7]++;  // LINE counts_in_bytes
}
RUN(counts_in_bytes, 2, 64)

__global__ void smoothed_in_place(float* x, float* out, int n) {
    int i = threadIdx.x;
    if (i + 1 < n) x[i] = x[i] + x[i + 1];  // LINE smoothed_in_place
}
RUN(smoothed_in_place, 1, 64)

__global__ void half_a_warp_waits(float* x, float* out, int n) {
    __shared__ float s[32];
    s[threadIdx.x] = x[threadIdx.x];
    __syncwarp(threadIdx.x < 16 ? 0x0000ffffu : 0xffff0000u);
    out[threadIdx.x] = threadIdx.x >= 16 ? s[threadIdx.x - 16] : 0;  // LINE half_a_warp_waits
}
RUN(half_a_warp_waits, 1, 32)

__global__ void last_warp_without_syncwarp(float* x, float* out, int n) {
    __shared__ volatile float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) s[0] += s[32];
    if (threadIdx.x == 1) out[0] = s[0];  // LINE last_warp_without_syncwarp
}
RUN(last_warp_without_syncwarp, 1, 64)
