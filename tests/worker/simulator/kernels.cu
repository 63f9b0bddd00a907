// The kernels of test_cuda_on_cpu.py: each is written as a learner would, for a GPU.
#include <cuda_runtime.h>
#include <cassert>
#include <cstdint>

constexpr int TILE = 16;
__constant__ float weights[4];
__device__ int calls;
extern __shared__ float at_file_scope[];

__device__ __forceinline__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
    return value;
}

__global__ void __launch_bounds__(256) tree_sum(const float* __restrict__ x, float* out, int n) {
    __shared__ float partial[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    partial[threadIdx.x] = i < n ? __ldg(x + i) : 0.0f;
    __syncthreads();
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (threadIdx.x < stride) partial[threadIdx.x] += partial[threadIdx.x + stride];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(out, partial[0]);
}
extern "C" void run_tree_sum(const float* x, float* out, int n) { tree_sum<<<(n + 255) / 256, 256>>>(x, out, n); }

__global__ void tree_sum_without_barrier(const float* x, float* out, int n) {
    __shared__ float partial[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    partial[threadIdx.x] = i < n ? x[i] : 0.0f;
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (threadIdx.x < stride) partial[threadIdx.x] += partial[threadIdx.x + stride];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(out, partial[0]);
}
extern "C" void run_tree_sum_without_barrier(const float* x, float* out, int n) {
    tree_sum_without_barrier<<<(n + 255) / 256, 256>>>(x, out, n);
}

__global__ void left_neighbour(const int* x, int* out) {  // the barrier between write and read is missing
    __shared__ int row[64];
    row[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
    out[blockIdx.x * 64 + threadIdx.x] = threadIdx.x ? row[threadIdx.x - 1] : 0;
}
extern "C" void run_left_neighbour(const int* x, int* out) { left_neighbour<<<2, 64>>>(x, out); }

template <typename T, int BLOCK>
__global__ void warp_sum_kernel(const T* x, T* out, int n) {
    static __shared__ T of_warp[BLOCK / 32], unused;
    T value = 0;
    for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK) value += x[i];
    value = warp_sum(value);
    if (threadIdx.x % warpSize == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x < 32) {
        value = threadIdx.x < BLOCK / 32 ? of_warp[threadIdx.x] : T(0);
        value = warp_sum(value);
        if (threadIdx.x == 0) atomicAdd(out, value);
    }
}
extern "C" void run_warp_sum(const float* x, float* out, int n) {
    warp_sum_kernel<float, 128>
        <<<
            dim3(3),  // three blocks, whatever n
            128
        >>>(x, out, n);
}

__global__ void reverse_dynamic(float* x, int n) {
    extern __shared__ __align__(16) float copy[];
    int t = threadIdx.x;
    copy[t] = x[t];
    __syncthreads();
    x[t] = copy[n - 1 - t];
}
extern "C" void run_reverse_dynamic(float* x, int n, int bytes) { reverse_dynamic<<<1, n, bytes>>>(x, n); }

__global__ void reverse_file_scope(float* x, int n) {
    at_file_scope[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = at_file_scope[n - 1 - threadIdx.x];
}
extern "C" void run_reverse_file_scope(float* x, int n) { reverse_file_scope<<<1, n, n * sizeof(float), 0>>>(x, n); }

__global__ void transpose(const float* x, float* out, int height, int width) {
    __shared__ float tile[TILE][TILE + 1];
    int column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
    if (row < height && column < width) tile[threadIdx.y][threadIdx.x] = x[row * width + column];
    __syncthreads();
    column = blockIdx.y * TILE + threadIdx.x;
    row = blockIdx.x * TILE + threadIdx.y;
    if (row < width && column < height) out[row * height + column] = tile[threadIdx.x][threadIdx.y];
}
extern "C" void run_transpose(const float* x, float* out, int height, int width) {
    dim3 block(TILE, TILE), grid((width + TILE - 1) / TILE, (height + TILE - 1) / TILE);
    transpose<<<grid, block>>>(x, out, height, width);
}

__global__ void places(int* out) {  // a three-dimensional grid: every thread writes its number at its place
    int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    int i = block * blockDim.x * blockDim.y * blockDim.z + thread;
    out[i] = i;
}
extern "C" void run_places(int* out) { places<<<dim3(2, 3, 4), dim3(5, 2, 3)>>>(out); }

__global__ void atomics(int* out, unsigned* counter, unsigned long long* cell, float* sum) {
    int t = threadIdx.x;
    atomicAdd(&out[0], 1);
    atomicMax(&out[1], t);
    atomicMin(&out[2], t);
    atomicSub(&out[3], 1);
    atomicOr(&out[4], 1 << (t % 8));
    if (atomicCAS(&out[5], -1, t) == -1) out[6] = atomicExch(&out[7], t);
    atomicInc(counter, 9);
    atomicMax(cell, (unsigned long long)t << 33);
    atomicAdd(sum, 1);  // an int for a float: converted, as in CUDA
}
extern "C" void run_atomics(int* out, unsigned* counter, unsigned long long* cell, float* sum) {
    atomics<<<2, 50>>>(out, counter, cell, sum);
}

__global__ void votes(unsigned* out) {
    int t = threadIdx.x, lane = t & 31;
    unsigned even = __ballot_sync(0xffffffff, lane % 2 == 0);
    int any = __any_sync(~0u, t == 40), all = __all_sync(~0u, t < 32);
    int first = __shfl_sync(~0u, t, 0), up = __shfl_up_sync(~0u, t, 1, 8), swapped = __shfl_xor_sync(~0u, t, 1);
    unsigned half = lane < 16 ? 0x0000ffffu : 0xffff0000u;
    unsigned total = __reduce_add_sync(half, (unsigned)t);
    double wide = __shfl_down_sync(~0u, 0.5 + t, 2);
    __syncwarp();
    int count = __syncthreads_count(t % 3 == 0);
    unsigned* mine = out + t * 9;
    mine[0] = even; mine[1] = any; mine[2] = all; mine[3] = first; mine[4] = up; mine[5] = swapped;
    mine[6] = total; mine[7] = (unsigned)(wide * 2); mine[8] = count;
}
extern "C" void run_votes(unsigned* out) { votes<<<1, 64>>>(out); }

__global__ void vectors(const uchar3* x, float4* out, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    float4 v = make_float4(x[i].x, x[i].y, x[i].z, 0.0f);
    v.w = fmaxf(min(v.x, v.y), max(v.z, 1.0f)) + weights[i % 4];
    out[i] = v;
}
extern "C" int run_vectors(const uchar3* x, float4* out, int n) {
    float host[4] = {0.f, 1.f, 2.f, 3.f};
    cudaMemcpyToSymbol(weights, host, sizeof host);
    vectors<<<1, 32>>>(x, out, n);
    return cudaDeviceSynchronize();
}

__global__ void fast_math(const float* x, float* out) {
    float v = x[threadIdx.x];
    out[threadIdx.x] = __expf(v) + __sinf(v) + __cosf(v) + __logf(1 + v * v) + rsqrtf(1 + v * v) + __fdividef(v, 2.0f) +
                       __powf(fabsf(v), 1.5f) + __int_as_float(__float_as_int(v)) + __popc(255) + __clz(1);
}
extern "C" void run_fast_math(const float* x, float* out, int n) { fast_math<<<1, n>>>(x, out); }

__global__ void fill(float* out, int n, float value) {  // no bounds check
    out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}
extern "C" int run_fill(float* out, int n, int grid, int block) {
    fill<<<grid, block>>>(out, n, 1.0f);
    return cudaGetLastError();
}
extern "C" const char* name_of_error(int code) { return cudaGetErrorString((cudaError_t)code); }
extern "C" void run_fill_unchecked(float* out, int grid, int block) { fill<<<grid, block>>>(out, 0, 1.0f); }

#define LAUNCH(kernel, n, ...) kernel<<<((n) + 31) / 32, 32>>>(__VA_ARGS__)
namespace deep {
template <class Op>
__global__ void apply(float* x, int n, Op op) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = op(x[i]);
}
struct Twice {
    __host__ __device__ float operator()(float v) const { return 2 * v; }
};
}  // namespace deep
extern "C" void run_apply(float* x, int n) {
    deep::apply<deep::Twice><<<dim3((n + 31) / 32), 32>>>(x, n, deep::Twice{});
    deep::apply<<<dim3{(unsigned)(n + 31) / 32}, 32>>>(x, n, [] __device__(float v) { return v + (1, 2); });
    LAUNCH(::deep::apply, n, x, n, deep::Twice());
    auto pointer = deep::apply<deep::Twice>;
    (pointer)<<<(n + 31) / 32, 32>>>(x, n, deep::Twice());
}

__global__ void uninitialised(float* out) {
    __shared__ float total;
    if (threadIdx.x == 0) out[blockIdx.x] = total, total = 0.0f;
}
extern "C" void run_uninitialised(float* out) { uninitialised<<<3, 4>>>(out); }

namespace deep::within {
__shared__ float of_file, two_of_file[2];
__global__ void uninitialised_in_file(float* out) {
    if (threadIdx.x == 0) out[blockIdx.x] = of_file + two_of_file[1], of_file = two_of_file[1] = 0.0f;
}
}  // namespace deep::within
extern "C" void run_uninitialised_in_file(float* out) { deep::within::uninitialised_in_file<<<3, 4>>>(out); }

struct Vector { const float* data; long n; };
template <int factor>
__global__ void by_vectors(Vector x, float* out, double more) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < x.n) out[i] = factor * x.data[i] + (float)more;
}
extern "C" void run_braces(const float* x, float* out, int n) { by_vectors<2><<<2, 32>>>({x, n}, out, 1); }

__global__ void add_one(float* out, double* wide) {
    atomicAdd(out, 1.0f);
    atomicAdd(wide, 1.0);
}
extern "C" void run_add_one(float* out, double* wide) { add_one<<<1, 1>>>(out, wide); }

__device__ float partials[2048];
__device__ unsigned ticket;

__global__ void last_block_sum(const float* __restrict__ x, float* out, int n) {  // n is a multiple of 4
    const float4* quads = reinterpret_cast<const float4*>(x);
    float sum = 0;
    for (int i = blockIdx.x * 32 + threadIdx.x; i < n / 4; i += gridDim.x * 32) {
        float4 v = quads[i];
        sum += (v.x + v.y) + (v.z + v.w);
    }
    sum = warp_sum(sum);
    __shared__ bool last;
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(&ticket, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    sum = 0;
    for (int i = threadIdx.x; i < gridDim.x; i += 32) sum += partials[i];
    sum = warp_sum(sum);
    if (threadIdx.x == 0) *out = sum;
}
extern "C" int run_last_block_sum(const float* x, float* out, int n) {
    int device, sms;
    cudaDeviceProp found;
    cudaGetDevice(&device);
    if (cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device) != cudaSuccess) return -1;
    if (cudaGetDeviceProperties(&found, device) != cudaSuccess || found.multiProcessorCount != sms) return -1;
    last_block_sum<<<8 * sms, 32>>>(x, out, n);
    return cudaGetLastError();
}

// -- kernels that are stuck or stop: each call ends the library's usefulness, so the tests load it afresh -----------------
__global__ void barrier_in_branch(float* out) {
    if (threadIdx.x < 12) {
        __syncthreads();  // LINE barrier_in_branch
        out[threadIdx.x] = 1.0f;
    }
}
extern "C" void run_barrier_in_branch(float* out) { barrier_in_branch<<<1, 64>>>(out); }

__global__ void two_barriers(float* out) {
    if (threadIdx.x % 2) {
        __syncthreads();  // LINE two_barriers
        out[0] = 1.0f;
    } else {
        __syncthreads();
        out[1] = 1.0f;
    }
}
extern "C" void run_two_barriers(float* out) { two_barriers<<<1, 64>>>(out); }

__global__ void lane_left(float* out) {
    if (threadIdx.x == 7) return;
    out[threadIdx.x] = __shfl_down_sync(0xffffffff, 1.0f, 1);  // LINE lane_left
}
extern "C" void run_lane_left(float* out) { lane_left<<<1, 64>>>(out); }

__global__ void mask_without_lane(float* out) {
    out[threadIdx.x] = __shfl_sync(0x0000ffff, 1.0f, 0);  // LINE mask_without_lane
}
extern "C" void run_mask_without_lane(float* out) { mask_without_lane<<<1, 32>>>(out); }

__global__ void asserts(const float* x) {
    assert(x[threadIdx.x] > 0);  // LINE asserts
}
extern "C" void run_asserts(const float* x, int n) { asserts<<<1, n>>>(x); }
