"""The product in CUDA C++: every barrier, box and register by hand, and PTX for what the language has no words for."""
# mypy: ignore-errors

import ctypes
from functools import cache

import torch
from torch.utils.cpp_extension import load_inline

device_source = r"""
constexpr int BLOCK_M = 128, BLOCK_N = 256, BLOCK_K = 64, STAGES = 4, GROUP = 16;
constexpr int BOX = 64 * 64 * 2;  // bytes of 64 rows of 64 elements: a swizzled copy can have rows of at most 128 bytes
constexpr int LEFT = BLOCK_M * BLOCK_K * 2, RIGHT = BLOCK_K * BLOCK_N * 2;  // bytes of a stage
constexpr int SHARED = STAGES * (LEFT + RIGHT) + 4 * BOX + 1024;

struct alignas(64) Map { char opaque[128]; };  // a CUtensorMap, the descriptor of a matrix

__device__ unsigned at(const void* place) { return __cvta_generic_to_shared(place); }

//: copy
__device__ void load(char* box, const Map* map, int column, int row, void* full) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];"
                 :: "r"(at(box)), "l"(map), "r"(column), "r"(row), "r"(at(full)) : "memory");
}
//: store
__device__ void store(const Map* map, int column, int row, const char* box) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];"
                 :: "l"(map), "r"(column), "r"(row), "r"(at(box)) : "memory");
}
//: barrier
__device__ void init(void* barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(barrier)), "r"(arrivals) : "memory");
}
__device__ void expect(void* barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(at(barrier)), "r"(bytes) : "memory");
}
__device__ void arrive(void* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at(barrier)) : "memory");
}
__device__ void wait(void* barrier, int phase) {
    int done;
    do asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p;}"
                    : "=r"(done) : "r"(at(barrier)), "r"(phase) : "memory");
    while (!done);
}

//: multiply
// Where a matrix lies in shared memory: its swizzle is 128 bytes, 8 rows take 1,024 bytes, 64 columns `width` bytes.
__device__ unsigned long long matrix(const char* tile, int width) {
    return (at(tile) & 0x3ffff) >> 4 | (unsigned long long)(width >> 4) << 16 | 1024ull >> 4 << 32 | 1ull << 62;
}
// 128 threads multiply 64 × 16 by 16 × 256 elements. Each has 128 of the sums.
__device__ void multiply_add(float (&sums)[128], unsigned long long left, unsigned long long right, int add) {
    asm volatile("{.reg .pred p; setp.ne.b32 p, %130, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 "
                 "{@numbers}, %128, %129, p, 1, 1, 0, 1;}" : @sums : "l"(left), "l"(right), "r"(add));
}

//: rest
__device__ void corner(int tile, int M, int N, int& row, int& column) {
    int tiles_m = (M + BLOCK_M - 1) / BLOCK_M, tiles_n = (N + BLOCK_N - 1) / BLOCK_N;
    int first = tile / (GROUP * tiles_n) * GROUP, inside = tile % (GROUP * tiles_n);
    int height = min(tiles_m - first, GROUP);
    row = (first + inside % height) * BLOCK_M, column = inside / height * BLOCK_N;
}

__device__ void produce(const Map* a, const Map* b, char* left, char* right, unsigned long long* full,
                        unsigned long long* empty, int tiles, int M, int N, int K) {
    int step = 0, row, column;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        corner(tile, M, N, row, column);
        for (int k = 0; k < K; k += BLOCK_K, step++) {
            //: barrier
            int stage = step % STAGES;
            wait(&empty[stage], step / STAGES % 2 ^ 1);
            expect(&full[stage], LEFT + RIGHT);
            //: copy
            for (int i = 0; i < BLOCK_M / 64; i++)
                load(left + stage * LEFT + i * BOX, a, k, row + 64 * i, &full[stage]);
            for (int i = 0; i < BLOCK_N / 64; i++)
                load(right + stage * RIGHT + i * BOX, b, column + 64 * i, k, &full[stage]);
        //: rest
        }
    }
}

//: store
__device__ void write_half(float (&sums)[128], int part, char* boxes, int thread) {
    int warp = thread / 32, lane = thread % 32;
#pragma unroll
    for (int i = 0; i < 32; i++) {  // two neighbours; the swizzle moves chunks of 16 bytes within a row
        int row = warp * 16 + i % 2 * 8 + lane / 4, chunk = i / 2 % 8 ^ row % 8;
        unsigned* pair = (unsigned*)(boxes + i / 16 * BOX + row * 128 + chunk * 16 + lane % 4 * 4);
        float low = sums[part * 64 + 2 * i], high = sums[part * 64 + 2 * i + 1];
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(*pair) : "f"(high), "f"(low));
    }
}

//: rest
__device__ void consume(const Map* out, char* left, char* right, char* boxes, unsigned long long* full,
                        unsigned long long* empty, int tiles, int M, int N, int K) {
    int step = 0, row, column, group = threadIdx.x / 128, thread = threadIdx.x % 128;
    float sums[128];
    //: store
    boxes += group * 2 * BOX;
    //: rest
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        corner(tile, M, N, row, column);
        for (int k = 0; k < K; k += BLOCK_K, step++) {
            //: barrier
            int stage = step % STAGES;
            wait(&full[stage], step / STAGES % 2);
            //: multiply
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
            for (int part = 0; part < BLOCK_K; part += 16)
                multiply_add(sums, matrix(left + stage * LEFT + group * BOX + part * 2, 0),
                             matrix(right + stage * RIGHT + part * 128, BOX), k + part > 0);
            asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 1;" ::: "memory");
            //: barrier
            if (thread % 32 == 0 && k > 0) arrive(&empty[(step - 1) % STAGES]);  // one step is in flight
        //: rest
        }
        //: multiply
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        //: barrier
        if (thread % 32 == 0) arrive(&empty[(step - 1) % STAGES]);
//: store
#pragma unroll
        for (int part = 0; part < 2; part++) {
            if (thread == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
            asm volatile("bar.sync %0, 128;" :: "r"(group + 1) : "memory");
            write_half(sums, part, boxes, thread);
            asm volatile("fence.proxy.async.shared::cta; bar.sync %0, 128;" :: "r"(group + 1) : "memory");
            if (thread == 0) {
                for (int i = 0; i < 2; i++)
                    store(out, column + part * 128 + 64 * i, row + group * 64, boxes + i * BOX);
                asm volatile("cp.async.bulk.commit_group;" ::: "memory");
            }
        }
    //: rest
    }
    //: store
    if (thread == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
//: rest
}

extern "C" __global__ __launch_bounds__(384) void kernel(
    const __grid_constant__ Map a, const __grid_constant__ Map b, const __grid_constant__ Map out,
    int M, int N, int K) {
    extern __shared__ char memory[];
    //: copy
    char* left = memory + (1024 - at(memory) % 1024) % 1024;  // a swizzled box begins at a multiple of 1,024 bytes
    char *right = left + STAGES * LEFT, *boxes = right + STAGES * RIGHT;
    //: barrier
    __shared__ unsigned long long full[STAGES], empty[STAGES];
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) init(&full[i], 1), init(&empty[i], 8);  // 8 warps empty a stage
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    //: rest
    int tiles = ((M + BLOCK_M - 1) / BLOCK_M) * ((N + BLOCK_N - 1) / BLOCK_N);
    if (threadIdx.x < 256) {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        consume(&out, left, right, boxes, full, empty, tiles, M, N, K);
    } else {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 256) produce(&a, &b, left, right, full, empty, tiles, M, N, K);
    }
}
"""
numbers = ", ".join(f"%{i}" for i in range(128))
registers = ", ".join(f'"+f"(sums[{i}])' for i in range(128))
device_source = device_source.replace("@numbers", numbers).replace("@sums", registers)

host_source = r"""
#include <cuda.h>
#include <cuda_runtime.h>

//: copy
// Describes a matrix in boxes of 64 × 64 elements. `encode` is a function of the driver, which no linker knows.
static bool describe(Map* map, void* matrix, unsigned long long rows, unsigned long long columns) {
    static decltype(&cuTensorMapEncodeTiled) encode = nullptr;
    cudaDriverEntryPointQueryResult found;
    if (!encode) cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void**)&encode, 12000, 0, &found);
    cuuint64_t shape[] = {columns, rows}, pitch[] = {2 * columns};
    cuuint32_t box[] = {64, 64}, every[] = {1, 1};
    return encode && !encode((CUtensorMap*)map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, matrix, shape, pitch, box,
                             every, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

//: rest
extern "C" const char* multiply(void* a, void* b, void* out, int M, int N, int K, int sms, cudaStream_t stream) {
    //: copy
    Map maps[3];
    if (!describe(&maps[0], a, M, K) || !describe(&maps[1], b, K, N) || !describe(&maps[2], out, M, N))
        return "a matrix cannot be described";
    //: rest
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED);
    kernel<<<sms, 384, SHARED, stream>>>(maps[0], maps[1], maps[2], M, N, K);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"no_implicit_headers": True, "is_python_module": False}
    flags = ["-O3", "-gencode=arch=compute_90a,code=sm_90a"]
    path = load_inline("hopper_product", "", device_source + host_source, extra_cuda_cflags=flags, **options)
    built = ctypes.CDLL(path)
    built.multiply.argtypes = [*[ctypes.c_void_p] * 3, *[ctypes.c_int] * 4, ctypes.c_void_p]
    built.multiply.restype = ctypes.c_char_p
    return built


def product(a, b, out):
    sms = torch.cuda.get_device_properties(a.device).multi_processor_count
    stream = torch.cuda.current_stream().cuda_stream
    error = library().multiply(a.data_ptr(), b.data_ptr(), out.data_ptr(), *out.shape, a.shape[1], sms, stream)
    if error:
        raise RuntimeError(error.decode())
