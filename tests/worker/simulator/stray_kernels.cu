// Kernels of test_cuda_accesses.py that leave their arrays or use misaligned addresses. See racy_kernels.cu.
#include <cuda_runtime.h>

#define RUN(name, grid, block, ...) \
    extern "C" void run_##name(float* x, float* out, int n) { name<<<grid, block __VA_ARGS__>>>(x, out, n); }

__global__ void past_a_tile(float* x, float* out, int n) {
    __shared__ float tile[8][33];  // LINE tile
    tile[threadIdx.x][0] = x[threadIdx.x];  // LINE past_a_tile
    out[threadIdx.x] = tile[threadIdx.x][0];
}
RUN(past_a_tile, 1, 32)

__global__ void past_a_row_by_pointer(float* x, float* out, int n) {
    __shared__ float row[32];  // LINE row
    float* mine = row + threadIdx.x;
    mine[1] = x[threadIdx.x];  // LINE past_a_row_by_pointer
}
RUN(past_a_row_by_pointer, 1, 32)

__device__ float table[16];  // LINE table
__global__ void past_a_table(float* x, float* out, int n) {
    out[threadIdx.x] = table[threadIdx.x];  // LINE past_a_table
}
RUN(past_a_table, 1, 32)

__global__ void past_a_local_array(float* x, float* out, int n) {
    float last[4] = {};
    for (int i = 0; i <= n % 8; i++) last[i] = x[i];  // LINE past_a_local_array
    out[0] = last[n % 4];
}
RUN(past_a_local_array, 1, 1)

__global__ void past_dynamic(float* x, float* out, int n) {
    extern __shared__ float copy[];
    out[threadIdx.x] = copy[threadIdx.x];  // LINE past_dynamic
}
RUN(past_dynamic, 1, 32, , 64)

__global__ void null_pointer(float* x, float* out, int n) {
    float* nothing = n > 0 ? nullptr : x;
    out[0] = nothing[0];  // LINE null_pointer
}
RUN(null_pointer, 1, 1)

__global__ void number_as_a_pointer(float** rows, float* out, int n) {
    out[0] = rows[0][0];  // LINE number_as_a_pointer
}
extern "C" void run_number_as_a_pointer(float* x, float* out, int n) {
    const size_t number = 0x7ff07ff03f5a2874;
    memcpy(x, &number, sizeof number);
    number_as_a_pointer<<<1, 1>>>(reinterpret_cast<float**>(x), out, n);
}

__global__ void reads_past_the_end(float* x, float* out, int n) {
    float v = x[threadIdx.x];  // LINE reads_past_the_end
    __syncthreads();
    if (threadIdx.x < n) out[threadIdx.x] = v;
}
RUN(reads_past_the_end, 1, 256)

__global__ void writes_its_input(float* x, float* out, int n) {
    x[threadIdx.x] = 0;  // LINE writes_its_input
}
RUN(writes_its_input, 1, 1)

__global__ void past_own_memory(float* x, float* out, int n) {
    out[0] = x[n];  // LINE past_own_memory
}
extern "C" void run_past_own_memory(float* x, float* out, int n) {
    float* own;
    cudaMalloc(&own, n * sizeof(float));
    past_own_memory<<<1, 1>>>(own, out, n);
}

__global__ void four_at_an_odd_element(float* x, float* out, int n) {
    float4 v = reinterpret_cast<const float4*>(x + 1)[threadIdx.x];  // LINE four_at_an_odd_element
    out[threadIdx.x] = v.x + v.y + v.z + v.w;
}
RUN(four_at_an_odd_element, 1, 8)

__global__ void word_at_an_odd_byte(float* x, float* out, int n) {
    const char* bytes = reinterpret_cast<const char*>(x);
    *reinterpret_cast<int*>(out) = *reinterpret_cast<const int*>(bytes + 3 * threadIdx.x);  // LINE word_at_an_odd_byte
}
RUN(word_at_an_odd_byte, 1, 2)

__global__ void atomic_at_an_odd_byte(float* x, float* out, int n) {
    atomicAdd(reinterpret_cast<unsigned*>(reinterpret_cast<char*>(out) + 2), 1u);  // LINE atomic_at_an_odd_byte
}
RUN(atomic_at_an_odd_byte, 1, 1)

__global__ void too_much_shared(float* x, float* out, int n) {
    __shared__ float much[96][129];
    much[threadIdx.x][0] = x[0];
    out[0] = much[0][0];
}
RUN(too_much_shared, 1, 1)

__global__ void nothing(float* x, float* out, int n) {}
extern "C" void run_launch(unsigned* sizes, unsigned bytes) {
    nothing<<<dim3(sizes[0], sizes[1], sizes[2]), dim3(sizes[3], sizes[4], sizes[5]), bytes>>>(nullptr, nullptr, 0);
}
extern "C" int run_allow(int bytes) { return cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes); }
