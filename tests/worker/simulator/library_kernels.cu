// Kernels over CUDA's libraries: cooperative groups, CUB, half precision. Each adds to `wrong` what it finds wrong.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cub/cub.cuh>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>

namespace cg = cooperative_groups;

struct Largest {
    template <class T>
    __device__ T operator()(const T& a, const T& b) const { return a < b ? b : a; }
};
struct Wide {
    double a, b, c;
};

__device__ void must(bool right, int* wrong, int what) {
    if (!right) atomicCAS(wrong, 0, what);
}

__global__ void groups(const float* x, int* wrong) {
    auto block = cg::this_thread_block();
    const int me = block.thread_rank();
    cg::thread_block_tile<32> tile = cg::tiled_partition<32>(block);
    const int lane = tile.thread_rank();
    auto eight = cg::tiled_partition<8>(tile);
    must(cg::reduce(eight, me, cg::plus<int>()) == me / 8 * 64 + 28, wrong, __LINE__);
    must(cg::reduce(tile, 1.0 * lane, cg::greater<double>()) == 31, wrong, __LINE__);
    must(eight.meta_group_rank() == lane / 8 && eight.meta_group_size() == 4 && eight.size() == 8, wrong, __LINE__);
    must(tile.shfl_down(lane, 1) == min(lane + 1, 31) && tile.shfl_up(lane, 2) == (lane < 2 ? lane : lane - 2), wrong, __LINE__);
    must(eight.shfl(lane, 3) == lane / 8 * 8 + 3 && eight.shfl_xor(lane, 1) == (lane ^ 1), wrong, __LINE__);
    must(eight.ballot(lane % 8 == 2) == 4 && eight.any(lane % 8 == 2) && !eight.all(lane % 8 == 2), wrong, __LINE__);
    must(cg::inclusive_scan(tile, 1, cg::plus<int>()) == lane + 1 && cg::exclusive_scan(tile, 1) == lane, wrong, __LINE__);
    must(tile.shfl(Wide{1.0 * lane, 2, 3}, 5).a == 5, wrong, __LINE__);
    must(cg::binary_partition(tile, lane < 5).size() == (lane < 5 ? 5 : 27), wrong, __LINE__);
    if (me % 3 == 0) {
        auto active = cg::coalesced_threads();
        must(active.size() == (me / 32 % 3 == 2 ? 10 : 11) && active.shfl(active.thread_rank(), 2) == 2, wrong, __LINE__);
        must(__popc(__activemask()) == active.size(), wrong, __LINE__);
    }
    __shared__ float copy[64];
    cg::memcpy_async(block, copy, x, sizeof copy);
    cg::wait(block);
    must(copy[me % 64] == x[me % 64], wrong, __LINE__);
    auto sixteen = cg::tiled_partition(cg::thread_group(block), 16);
    sixteen.sync();
    must(sixteen.size() == 16 && sixteen.thread_rank() == lane % 16, wrong, __LINE__);
    must(cg::this_grid().thread_rank() == blockIdx.x * blockDim.x + threadIdx.x, wrong, __LINE__);
    block.sync();
}

__global__ void sums(int* wrong) {
    using Reduce = cub::BlockReduce<double, 128>;
    using Scan = cub::BlockScan<int, 128>;
    using OfWarp = cub::WarpReduce<float>;
    using WarpScan = cub::WarpScan<int>;
    __shared__ typename Reduce::TempStorage reduce;
    __shared__ union {
        typename Scan::TempStorage scan;
        typename OfWarp::TempStorage warp[4];
        typename WarpScan::TempStorage warp_scan[4];
    } shared;
    const int me = threadIdx.x, warp = me / 32, lane = me % 32;
    double all = Reduce(reduce).Sum(1.0 * me);
    must(me || all == 127 * 64, wrong, __LINE__);
    __syncthreads();
    all = Reduce(reduce).Sum(1.0, 100);
    must(me || all == 100, wrong, __LINE__);
    __syncthreads();
    double two[2] = {1.0 * me, 0.5};
    all = Reduce(reduce).Reduce(two, Largest());
    must(me || all == 127, wrong, __LINE__);
    int before, upto, total;
    Scan(shared.scan).ExclusiveSum(2, before, total);
    must(before == 2 * me && total == 256, wrong, __LINE__);
    __syncthreads();
    Scan(shared.scan).InclusiveSum(me, upto);
    must(upto == me * (me + 1) / 2, wrong, __LINE__);
    __syncthreads();
    float largest = OfWarp(shared.warp[warp]).Reduce(1.0f * me, Largest());
    must(lane || largest == 32 * warp + 31, wrong, __LINE__);
    __syncthreads();
    WarpScan(shared.warp_scan[warp]).InclusiveSum(1, upto);
    must(upto == lane + 1, wrong, __LINE__);
}

__global__ void undefined_sum(double* out) {
    using Reduce = cub::BlockReduce<double, 64>;
    __shared__ typename Reduce::TempStorage storage;
    out[threadIdx.x] = Reduce(storage).Sum(1.0);
}

__global__ void halves(const __half* x, const __half* y, __half* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        out[i] = __hadd(x[i], y[i]);
        out[n + i] = __hmul(x[i], y[i]);
        out[2 * n + i] = __hdiv(x[i], y[i]);
        out[3 * n + i] = __hfma(x[i], y[i], x[i]);
        out[4 * n + i] = __float2half(__half2float(x[i]) / 3.0f);
        out[5 * n + i] = __float2half_rz(__half2float(x[i]) / 3.0f);
        const __half2 both = __hmul2(__halves2half2(x[i], y[i]), __float2half2_rn(2.0f));
        out[6 * n + i] = __hgt(x[i], y[i]) ? __low2half(both) : __high2half(both);
        out[7 * n + i] = __float2half(__bfloat162float(__float2bfloat16(__half2float(x[i]))));
    }
}

// The copies of two groups, of which the first is waited for before the second; the last element becomes 0.
__global__ void pipeline(const float* x, float* out, int waits) {
    __shared__ __align__(16) float first[256], second[64];
    const int me = threadIdx.x;
    __pipeline_memcpy_async(&first[4 * me], &x[4 * me], 16);
    __pipeline_commit();
    __pipeline_memcpy_async(&second[me], &x[me], 4, me == 63 ? 4 : 0);
    __pipeline_commit();
    if (waits) __pipeline_wait_prior(1);
    __syncthreads();
    for (int i = me; i < 256; i += 64) out[i] = first[255 - i];
    if (waits > 1) __pipeline_wait_prior(0);
    __syncthreads();
    out[256 + me] = second[(me + 1) % 64];
}

extern "C" void run_pipeline(const float* x, float* out, int waits) {
    void* arguments[] = {&x, &out, &waits};
    cudaLaunchKernel((const void*)pipeline, dim3(1), dim3(64), arguments, 0, nullptr);
}
extern "C" void run_groups(const float* x, int* wrong) { groups<<<2, 96>>>(x, wrong); }
extern "C" void run_sums(int* wrong) { sums<<<3, 128>>>(wrong); }
extern "C" void run_undefined_sum(double* out) { undefined_sum<<<1, 64>>>(out); }
extern "C" void run_halves(const void* x, const void* y, void* out, int n) {
    cudaStream_t stream;
    cudaEvent_t start, end;
    cudaStreamCreate(&stream);
    cudaEventCreate(&start);
    cudaEventCreate(&end);
    cudaEventRecord(start, stream);
    halves<<<1, 64, 0, stream>>>((const __half*)x, (const __half*)y, (__half*)out, n);
    cudaEventRecord(end, stream);
    cudaEventSynchronize(end);
    cudaEventDestroy(start);
    cudaEventDestroy(end);
    cudaStreamDestroy(stream);
}
