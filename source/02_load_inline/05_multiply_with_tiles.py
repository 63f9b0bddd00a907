# %% [markdown]
# # Multiply with tiles
#
# **You will** multiply two float32 matrices in CUDA C++, in three steps: one thread per element, then tiles in shared
# memory, then tiles in registers. Each step reuses what it has loaded more often than the step before.
#
# **You will learn**
#
# - how often a matrix product can use each value that it loads, and whether memory or arithmetic limits it
# - to write a loop over tiles in shared memory, and which two barriers it needs
# - what **register tiling** is, and why a thread should compute many elements
# - what TF32 and float16 lose, compared with float32
#
# **You need** about 110 minutes, [Square a matrix](01_square_a_matrix.ipynb) and
# [Move bytes well](02_move_bytes_well.ipynb). With an NVIDIA GPU you measure every step. Without one your CUDA C++ is
# built for the CPU, and every answer is checked there.

# %%
from grader import benchmark, check, device
from grader.explore import compare, draw_thread_tile, draw_tile_loop, recorded

device

# %%
import ctypes

import torch
from torch.utils.cpp_extension import load_inline

# %% [markdown]
# ## One thread per element
#
# The product of `a` (M × K) and `b` (K × N) has M × N elements. Element (row, column) is the sum over `k` of
# `a[row, k] * b[k, column]`. The **naive kernel** gives each element of `out` a thread, which walks along a row of `a`
# and down a column of `b`.

# %%
naive_source = r"""
#define TILE 16
__global__ void product(const float* a, const float* b, float* out, int M, int N, int K) {
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; k++) sum += a[row * K + k] * b[k * N + column];
    out[row * N + column] = sum;
}"""

# %% [markdown]
# The launcher below covers `out` with blocks of 16 × 16 threads. `build` compiles it, and `run` makes the result and
# launches the kernel.

# %%
launcher = r"""
extern "C" void multiply(const float* a, const float* b, float* out, int M, int N, int K) {
    dim3 block(TILE, TILE), grid((N + TILE - 1) / TILE, (M + TILE - 1) / TILE);
    product<<<grid, block>>>(a, b, out, M, N, K);
}"""


# %%
def build(name, source):
    path = load_inline(name, "", source + launcher, no_implicit_headers=True, is_python_module=False)
    multiply = ctypes.CDLL(path).multiply
    multiply.argtypes = [*[ctypes.c_void_p] * 3, *[ctypes.c_int] * 3]
    return multiply


# %%
def run(multiply, a, b):
    out = torch.empty(a.shape[0], b.shape[1], device=a.device)
    multiply(a.data_ptr(), b.data_ptr(), out.data_ptr(), *out.shape, a.shape[1])
    return out


# %% [markdown]
# Launch it on matrices of your own, and compare it with PyTorch. Change the sizes and run the cell again.

# %%
naive = build("naive", naive_source)
a, b = torch.randn(50, 70, device=device), torch.randn(70, 30, device=device)
out = run(naive, a, b)
print(out.shape, f"largest difference: {(out - a @ b).abs().max().item():.2g}")

# %% [markdown]
# It is right. Is it fast? For every multiplication and addition (2 operations) a thread loads two floats (8 bytes).
# That is an **arithmetic intensity** of 0.25 operations per byte.
#
# By its data sheet, an H200 computes 67 trillion float32 operations per second, and its memory delivers 4,800 GB/s.
# Suppose that every load goes to memory. Predict: what share of the arithmetic peak can the naive kernel reach?

# %%
prediction = ...  # share of the peak, 0.5 for half

# %%
compare(prediction, 0.25 * 4.8e12 / 67e12, how="computed")

# %% [markdown]
# Less than two per cent. In fact it is faster than that, because most loads hit a cache: the 16 columns of a block read
# the same 16 rows of `a`. But a cache has a limited bandwidth, too, and each load is an instruction. A kernel that
# needs fewer loads does not depend on the cache.

# %% [markdown]
# ## A tile in shared memory
#
# The matrices themselves allow far more reuse: each element of `a` is needed for N elements of `out`. So a block
# computes a whole tile of `out`. It walks along K in **steps**. In each step it loads a tile of `a` and a tile of `b`
# into shared memory, and each of its threads multiplies and adds from there.

# %%
draw_tile_loop(step=2)

# %% [markdown]
# With tiles of 32 × 32 and 32 × 32 threads, each thread loads one element of each tile per step, and does 32
# multiplications with what the block has loaded. The loop has this form:
#
# ```cpp
# __shared__ float tile_a[32][32], tile_b[32][32];
# int first_row = blockIdx.y * 32, first_column = blockIdx.x * 32;
# float sum = 0.0f;
# for (int first = 0; first < K; first += 32) {
#     // load: tile_a[i][j] is a[first_row + i][first + j], tile_b[i][j] is b[first + i][first_column + j]
#     __syncthreads();  // both tiles are complete
#     for (int k = 0; k < 32; k++) sum += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];
#     __syncthreads();  // all threads are done with both tiles
# }
# ```
#
# **Two barriers.** After the first, every thread may read what the others loaded. The second keeps a fast warp from
# loading the next tiles while a slow one still reads these.
#
# **The edges.** If K is not a multiple of 32, the last tiles reach past the end. A thread without an element to load
# writes a 0: it adds nothing to any sum. For the same reason no thread may return early. A thread without an element of
# `out` still loads for the others, and every thread must reach both barriers.
#
# Predict: by what factor does a tile of 32 × 32 reduce the loads from memory, compared with the naive kernel?

# %%
prediction = ...  # times fewer loads

# %%
M = N = K = 1024
of_naive = 2 * M * N * K  # two loads per multiplication
of_tiles = (M // 32) * (N // 32) * (K // 32) * 2 * 32 * 32  # blocks, steps, two tiles
compare(prediction, of_naive / of_tiles, "times", how="computed")

# %% [markdown]
# The factor is the tile's width. The arithmetic intensity rises from 0.25 to 8 operations per byte. That is still less
# than the 14 above which arithmetic, and not memory, limits an H200 (67 trillion operations over 4,800 GB/s). And there
# is a second limit, much closer.

# %% [markdown]
# ## A tile in registers
#
# The inner loop reads two floats from shared memory for each multiplication. An SM can multiply 128 pairs of floats per
# cycle, but shared memory delivers only 32 floats per cycle. So with one element per thread, the multipliers mostly
# wait for shared memory.
#
# The cure is the same again, one level closer to the multipliers. Let each thread compute several elements of `out`,
# and keep their sums in registers. This is called **register tiling**.

# %%
draw_thread_tile(4)

# %% [markdown]
# A thread with 4 × 4 sums reads 4 values of a column of `tile_a` and 4 of a row of `tile_b`. It multiplies each with
# each: 16 multiplications for 8 reads. Predict for 8 × 8 sums: how many reads does it need per multiplication?

# %%
prediction = ...  # reads per multiplication

# %%
compare(prediction, (8 + 8) / (8 * 8), "reads per multiplication", how="computed")
draw_thread_tile(8)

# %% [markdown]
# One element per thread needs 2. With 8 × 8 sums, 256 threads compute a tile of 128 × 128, and the intensity rises to
# 32 operations per byte. In C++ the sums are an array in each thread. With 4 × 4 of them:
#
# ```cpp
# float sums[4][4] = {};  // all 0
# …
# #pragma unroll
# for (int y = 0; y < 4; y++)
#     #pragma unroll
#     for (int x = 0; x < 4; x++) sums[y][x] += column[y] * row[x];
# ```
#
# Registers have no addresses. The array stays in registers only if the compiler knows every index, so all loops over
# `y` and `x` have constant bounds and are unrolled. Otherwise the sums move to **local memory**, which despite its name
# is the GPU's main memory.
#
# There is a price. 64 sums take 64 of the at most 255 registers per thread, and an SM has 65,536 registers. At 128
# registers per thread only 512 threads fit on an SM that could hold 2,048: an **occupancy** of 25 %. Few threads with
# much work each can be as fast as many with little: what counts is that enough independent instructions are in flight.
#
# **The tiles are no longer square.** The width of the tile and the step along K are now two numbers. With 128 × 128
# elements of `out` and steps of 8, `tile_a` is 128 × 8 and `tile_b` 8 × 128: 1,024 elements each. With 256 threads,
# each thread loads four of each. Number a tile's elements row by row and let thread `t` load elements `t`, `t + 256`,
# `t + 512` and `t + 768`. Element `e` of `tile_b` is in row `e / 128`, column `e % 128`.

# %% [markdown]
# ## How much precision is needed?
#
# GPUs have **tensor cores**, which multiply small matrices far faster. But they do not take float32: they round the
# inputs to **TF32**, which keeps 10 of the 23 binary digits of the fraction, or to float16. Here both products are
# compared with float64. Predict the order of magnitude: how many times as large is the error with TF32 inputs?

# %%
prediction = ...  # times as large


# %%
def as_tf32(x):
    bits = x.view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)  # round to 10 binary digits


x, y = torch.randn(512, 512), torch.randn(512, 512)
exact = x.double() @ y.double()
errors = [(product - exact).abs().mean().item() for product in (x @ y, as_tf32(x) @ as_tf32(y))]
compare(prediction, errors[1] / errors[0], "times as large", within=10)

# %% [markdown]
# Rounding an input to TF32 loses 13 more binary digits, a factor of 2¹³ = 8,192. The ratio is smaller because the
# float32 product also rounds, in each of its 512 additions.
#
# For neural networks TF32 is often good enough, and `torch.set_float32_matmul_precision("high")` lets PyTorch use TF32.
# For solving linear equations it is usually not. This exercise is about float32: `check` compares with a tolerance that
# TF32 and float16 miss by far, and the speed is compared with cuBLAS in float32.

# %% [markdown]
# ## Exercise: multiply with tiles
#
# Write the product of `a` and `b` into `out`. All three are contiguous float32 matrices: `a` is M × K, `b` is K × N,
# `out` is M × N. The sizes can be any numbers from 1 up.
#
# 1. Start with a tile of 32 × 32 and one element per thread. *(about 14 lines)*
# 2. The grid: one block for each tile of `out`. It is 1 × 1 now. *(2 lines)*
# 3. When that is right, give each thread several elements: first 4 × 1 or 4 × 4, then 8 × 8. Choose the block's
#    threads and the tiles to fit. *(about 40 lines)*
#
# Let `threadIdx.x` run along the rows of `b` and `out`, so that loads and stores are coalesced. A function marked
# `__device__` is called from kernels; use some to keep the kernel short. An array is passed as its address: a parameter
# `float (*sums)[8]` takes an array whose rows have 8 elements, and the function changes the caller's array.

# %% nbgrader={"grade_id": "matmul_tiled", "solution": true}
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
// BEGIN SOLUTION
constexpr int TILE = 128;  // rows and columns of `out` per block
constexpr int STEP = 8;  // along K
constexpr int THREADS = 256;
constexpr int PADDED = TILE + 4;  // rows of tile_a: no bank conflicts when it is written

// Four neighbouring elements of a row, with 0 past the edges.
__device__ float4 four(const float* __restrict__ matrix, int row, int column, int height, int width) {
    if (row >= height) return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    const float* first = matrix + row * width + column;
    if (width % 4 == 0 && column < width) return *reinterpret_cast<const float4*>(first);
    float found[4];
    #pragma unroll
    for (int i = 0; i < 4; i++) found[i] = column + i < width ? first[i] : 0.0f;
    return make_float4(found[0], found[1], found[2], found[3]);
}

// Element i (0 to 7) of a thread is one of two groups of four that are 64 apart.
__device__ int place(int thread, int i) { return 4 * thread + i % 4 + TILE / 2 * (i / 4); }

__device__ void read(const float* row, int thread, float* values) {
    float4 low = *reinterpret_cast<const float4*>(row + 4 * thread);
    float4 high = *reinterpret_cast<const float4*>(row + 4 * thread + TILE / 2);
    values[0] = low.x, values[1] = low.y, values[2] = low.z, values[3] = low.w;
    values[4] = high.x, values[5] = high.y, values[6] = high.z, values[7] = high.w;
}

// Add the product of both tiles to the thread's sums.
__device__ void multiply_tiles(const float (*tile_a)[PADDED], const float (*tile_b)[TILE], float (*sums)[8]) {
    #pragma unroll
    for (int k = 0; k < STEP; k++) {
        float of_a[8], of_b[8];
        read(tile_a[k], threadIdx.x / 16, of_a);
        read(tile_b[k], threadIdx.x % 16, of_b);
        #pragma unroll
        for (int i = 0; i < 8; i++)
            #pragma unroll
            for (int j = 0; j < 8; j++) sums[i][j] += of_a[i] * of_b[j];
    }
}

__device__ void store(float* __restrict__ out, const float (*sums)[8], int M, int N) {
    #pragma unroll
    for (int i = 0; i < 8; i++) {
        int row = blockIdx.y * TILE + place(threadIdx.x / 16, i);
        #pragma unroll
        for (int j = 0; j < 8; j++) {
            int column = blockIdx.x * TILE + place(threadIdx.x % 16, j);
            if (row < M && column < N) out[row * N + column] = sums[i][j];
        }
    }
}
// END SOLUTION

__global__ void product(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out,
                        int M, int N, int K) {
    // BEGIN SOLUTION
    __shared__ __align__(16) float tile_a[STEP][PADDED];  // transposed: a column of `a` is a row here
    __shared__ __align__(16) float tile_b[STEP][TILE];
    float sums[8][8] = {};
    int row_a = threadIdx.x / 2, column_a = 4 * (threadIdx.x % 2);
    int row_b = threadIdx.x / 32, column_b = 4 * (threadIdx.x % 32);
    int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
    float4 of_a = four(a, first_row + row_a, column_a, M, K);
    float4 of_b = four(b, row_b, first_column + column_b, K, N);
    for (int first = 0; first < K; first += STEP) {
        tile_a[column_a][row_a] = of_a.x, tile_a[column_a + 1][row_a] = of_a.y;
        tile_a[column_a + 2][row_a] = of_a.z, tile_a[column_a + 3][row_a] = of_a.w;
        *reinterpret_cast<float4*>(&tile_b[row_b][column_b]) = of_b;
        __syncthreads();  // both tiles are complete
        of_a = four(a, first_row + row_a, first + STEP + column_a, M, K);  // the next step's, in flight meanwhile
        of_b = four(b, first + STEP + row_b, first_column + column_b, K, N);
        multiply_tiles(tile_a, tile_b, sums);
        __syncthreads();  // all threads are done with both tiles
    }
    store(out, sums, M, N);
    // END SOLUTION
}

extern "C" const char* multiply(const float* a, const float* b, float* out, int M, int N, int K) {
    dim3 block(32, 32);
    dim3 grid(1, 1);
    // BEGIN SOLUTION
    block = dim3(THREADS);
    grid.x = (N + TILE - 1) / TILE;
    grid.y = (M + TILE - 1) / TILE;
    // END SOLUTION
    product<<<grid, block>>>(a, b, out, M, N, K);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("matmul_tiled", cuda_sources=cuda_source, **options))
    built.multiply.argtypes = [*[ctypes.c_void_p] * 3, *[ctypes.c_int] * 3]
    built.multiply.restype = ctypes.c_char_p
    return built


def matmul_tiled(a, b, out):
    (M, K), N = a.shape, b.shape[1]
    error = library().multiply(a.data_ptr(), b.data_ptr(), out.data_ptr(), M, N, K)
    if error:
        raise RuntimeError(error.decode())


# %% [markdown]
# Correct before fast. `check` builds the cell above in a separate process. Among its matrices are single elements and
# sizes that no tile divides. If you get a `NameError`, run the exercise's cell first.

# %% nbgrader={"grade_id": "check-matmul_tiled", "grade": true, "locked": true, "points": 8}
check(matmul_tiled)

# %% [markdown]
# Now launch it yourself, on matrices of your own. Multiplying by the identity is a good first test: if the result is
# not `a`, the place of a wrong element tells you where to look.

# %%
a, b = torch.randn(40, 33, device=device), torch.eye(33, device=device)
out = torch.zeros(40, 33, device=device)
matmul_tiled(a, b, out)
print("wrong elements:", (out != a).sum().item(), "of", a.numel())

# %% [markdown]
# ## How fast is it?
#
# A product of 4096 × 4096 matrices takes 137 billion operations, and both operands and the result together have 201
# million bytes. So arithmetic limits the kernel, if it reuses its loads. The speed is compared with cuBLAS in float32 at
# ⟦ gate("matmul_tiled", "cublas").cases | join(", ") ⟧:
#
# - ⟦ exercise("matmul_tiled").gates[1].points ⟧ of ⟦ exercise("matmul_tiled").max_points ⟧ points is for reaching
#   ⟦ exercise("matmul_tiled").gates[1].at_least ⟧ of it, which tiles in shared memory should do.
# - ⟦ gate("matmul_tiled", "cublas").points ⟧ more are for ⟦ gate("matmul_tiled", "cublas").at_least ⟧, which takes
#   tiles in registers.
#
# With a GPU, the next cell measures the naive kernel.

# %%
if device == "cuda":
    from triton.testing import do_bench

    a, b = torch.randn(2, 4096, 4096, device=device)
    for name, call in {"naive": lambda: run(naive, a, b), "cuBLAS": lambda: a @ b}.items():
        print(f"{name}: {2 * 4096**3 / do_bench(call) / 1e9:.1f} TFLOPS")

# %% [markdown]
# The authors' kernel has 8 × 8 sums per thread. Predict: what share of cuBLAS's speed did it reach at
# 4096 × 4096 × 4096?

# %%
prediction = ...  # cuBLAS's time divided by the kernel's

# %%
shares = recorded("matmul_tiled", "ratio_vs_cublas")
compare(prediction, shares.value("ratio_vs_cublas", "4096 × 4096 × 4096, normal random numbers"), how="recorded")
shares

# %%
benchmark(matmul_tiled)

# %% [markdown]
# The smaller the matrices, the fewer tiles of 128 × 128 there are for the SMs: 64 at size 1024, and only 16 at 512.
# cuBLAS has other tiles for those sizes.
#
# These are the steps on the way, at 4096 on an H200, as shares of cuBLAS's speed in the same run:
#
# | kernel | share of cuBLAS |
# | --- | --- |
# | naive: no shared memory | ⟦ recorded(bench="matmul_tiled/naive", case="4096 × 4096 × 4096, normal random numbers", metric="ratio_vs_cublas", gpu="H200") ⟧ |
# | a tile in shared memory, one element per thread | ⟦ recorded(bench="matmul_tiled/one_element_per_thread", case="4096 × 4096 × 4096, normal random numbers", metric="ratio_vs_cublas", gpu="H200") ⟧ |
# | a column of eight sums per thread | ⟦ recorded(bench="matmul_tiled/column_in_registers", case="4096 × 4096 × 4096, normal random numbers", metric="ratio_vs_cublas", gpu="H200") ⟧ |
# | 8 × 8 sums per thread: the authors' kernel | ⟦ recorded(bench="matmul_tiled", case="4096 × 4096 × 4096, normal random numbers", metric="ratio_vs_cublas", gpu="H200") ⟧ |
#
# If yours is slower than you want, go through this list in order:
#
# 1. **Are all loads and stores coalesced?** In both, threads with neighbouring `threadIdx.x` must access
#    neighbouring elements.
# 2. **How many reads does a multiplication need?** Count them, as above. One element per thread needs 2.
# 3. **Are the sums in registers?** Pass `extra_cuda_cflags=["-Xptxas=-v"]` and `verbose=True` to `load_inline`. If the
#    sums are elsewhere, the compiler reports a *stack frame*, or *spill* bytes: values that were moved from registers
#    to memory. Every index into `sums` must be a constant after unrolling.
# 4. **Does a read of shared memory conflict?** Threads of a warp that read down a column of a tile want one bank. Store
#    the tile of `a` transposed, so that a thread's values are adjacent.
# 5. **Do the multipliers wait for the next tiles?** Load the next step's elements into registers before you multiply
#    this step's, and store them in shared memory afterwards.

# %% [markdown]
# ## Extra credit
#
# No points, but each shows something. Change the exercise's cell, run it, and `check` it again, or `benchmark` it (with
# a GPU).
#
# 1. Leave out the second `__syncthreads()`. What does `check` say?
#
# <details><summary>Answer</summary>
#
# Without a GPU the simulator reports a race and names both lines. On a GPU the result may be right by luck.
#
# </details>
#
# 2. Store the tile of `a` without transposing it, `tile_a[row][k]` with rows of 8 floats. A warp spans two
#    rows of the block's threads. Which bank conflict occurs when the warp reads the tile?
#
# <details><summary>Answer</summary>
#
# Threads of one row of threads read the same word, which is free. Two rows of threads read words of two rows of the
# tile. With 8 sums per thread these are 8 rows apart, 8 × 8 = 64 words, so both are in the same bank: 2 ways. If the
# rows of the tile are one word longer, there is no conflict.
#
# </details>
#
# 3. Load and store with `float4` where the sizes allow it. Which K and N allow it?
#
# <details><summary>Answer</summary>
#
# A `float4` must begin at a multiple of 16 bytes. Rows of `a` have K floats and rows of `b` and `out` have N, so both
# must be multiples of 4.
#
# </details>
#
# 4. **Double buffering:** use two pairs of tiles in turn. How many barriers does a step need then?
#
# <details><summary>Answer</summary>
#
# One. While some threads still read one pair, others may fill the other pair. They fill the first pair again only after
# the next barrier.
#
# </details>

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - counted how often a product loads each value: naively, with a tile in shared memory, with a tile in registers
# - launched a naive product and your own on matrices of your choice
# - written a loop over tiles, with its two barriers and its edges
# - seen how much precision TF32 loses
# - had your product checked, and with a GPU measured against cuBLAS
#
# ## Check yourself
#
# <details><summary>Why does the loop over tiles need a barrier after the multiplications, too?</summary>
#
# A warp that is done goes on to the next step and overwrites the tiles. Warps that are still multiplying would read the
# next step's elements.
#
# </details>
#
# <details><summary>K is 100 and the tile is 32 wide. What do threads load for columns 100 to 127 of <code>a</code>?</summary>
#
# A 0. It is multiplied by whatever is in the other tile, which must be a number: 0 times NaN is NaN. So the other tile
# gets zeros there as well.
#
# </details>
#
# <details><summary>A thread computes 4 × 4 elements and another kernel's thread 16 × 1. Both have 16 sums. Which one reads less from shared memory?</summary>
#
# The first: 8 reads per step, instead of 17. A square has the smallest edge for its area.
#
# </details>
#
# <details><summary>Why does a product with more sums per thread have a lower occupancy, and why can it still be faster?</summary>
#
# Its threads need more registers, so fewer of them fit on an SM. But each thread has many independent multiplications,
# which keep the SM busy without the help of other warps.
#
# </details>
#
# ## Read on
#
# - [Shared memory in a product](https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/#shared-memory-in-matrix-multiplication-c-ab)
#   is a section of the CUDA C++ Best Practices Guide. It measures what tiles in shared memory gain.
# - [How to Optimize a CUDA Matmul Kernel](https://siboehm.com/articles/22/CUDA-MMM) by Simon Boehm climbs from the naive
#   kernel to the speed of cuBLAS, step by step.
# - [Efficient GEMM in CUDA](https://docs.nvidia.com/cutlass/latest/media/docs/cpp/efficient_gemm.html) shows how CUTLASS
#   divides the work among blocks, warps, threads and tensor cores.
#
# **Next:** [Add two vectors](../03_triton/01_add_vectors.ipynb), where you write blocks instead of threads. Or go
# back to the [syllabus](../README.ipynb).
