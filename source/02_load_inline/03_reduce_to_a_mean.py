# %% [markdown]
# # Reduce to a mean
#
# **You will** write the mean of a vector in CUDA C++: many numbers in, one number out, at the speed of memory.
#
# **You will learn**
#
# - why threads that add to one place lose sums, what an atomic addition costs, and how to do with few of them
# - to add in a tree, in shared memory and across the lanes of a warp, and where its barriers stand
# - to give each thread many elements, and how many blocks keep the memory busy
# - to let the last block finish, so that one launch is enough
# - why a sum of float32 depends on its order, how much is lost, and how to lose less
#
# **You need** about 75 minutes, [Square a matrix](01_square_a_matrix.ipynb) and, for shared memory,
# [Move bytes well](02_move_bytes_well.ipynb). With an NVIDIA GPU you measure speed as well. Without one your CUDA C++
# is built for the CPU and every answer is checked there; speed is shown as recorded on another machine.

# %%
from grader import benchmark, check, device
from grader.explore import active_warps, compare, compare_rungs, draw_reduction_tree, draw_shuffles
from grader.explore import draw_summation_errors, measure_rungs, recorded, run_rung, show_rung, summation_errors

device

# %%
import numpy as np
import torch

# %% [markdown]
# ## The least that it can take
#
# A mean reads every element once and writes one number. There is an addition for every four bytes, and a GPU adds far
# faster than it can fetch. So the time is that of reading.
#
# An H200's memory delivers 4,800 GB/s by its data sheet. Predict: how many microseconds does it take, at the least,
# to read 2²⁶ float32 numbers?

# %%
prediction = ...  # µs, at the least

# %%
n = 2**26
compare(prediction, 4 * n / 4800e9 * 1e6, "µs", how="computed")

# %% [markdown]
# This is the mark. You will now climb towards it, rung by rung. Each rung is a small kernel with one reason to be
# faster than the one before.

# %% [markdown]
# ## Add to one place
#
# Let each thread add its element to `out`. `*out += x[i]` will not do: it reads, adds and writes, and between one
# thread's read and its write another thread may write as well. That other sum is then lost. Threads that race for one
# place are a *data race*.
#
# `atomicAdd(out, value)` reads, adds and writes as one step that nothing comes between.

# %%
show_rung("atomics")

# %% [markdown]
# Two things to remember:
#
# - **`out` must be 0 first.** Memory on a GPU begins with whatever lay there. The judge fills `out` with NaN, and NaN
#   plus anything is NaN. So a kernel that only ever *adds* to `out` needs somebody to set it to 0 before: a
#   `cudaMemsetAsync(out, 0, sizeof(float))` in the launcher, say.
# - **One address, one queue.** The atomic additions to one address happen one after the other, in the L2 cache, while
#   the rest of the GPU waits.
#
# Predict: how many atomic additions does it take for 2²⁶ elements?

# %%
prediction = ...  # atomic additions

# %%
blocks = (n + 255) // 256
compare(prediction, blocks * 256, "atomic additions", how="computed")

# %% [markdown]
# Does it work? Here it runs, on your machine, on 2,048 ones. (The first call builds all the rungs.)

# %%
ones = torch.ones(2048, device=device)
run_rung("atomics", ones)

# %% [markdown]
# ## Add in a tree
#
# Threads of a block can share: each puts its element into shared memory, and they add in pairs. Then pairs of pairs.
# What is left is one number for each block, and one atomic addition for it.

# %%
draw_reduction_tree(16)

# %% [markdown]
# Each dark place was written in that step: its thread added to its own place (full line) the place half the length
# further on (dashed). Predict: how many steps does a block of 256 threads need?

# %%
prediction = ...  # steps

# %%
sequential = active_warps(256, "sequential")  # of each step, the warps that have a thread that adds
compare(prediction, len(sequential), "steps", how="computed")

# %% [markdown]
# The pairs can be chosen in another way: neighbours first. The sums are as right, and there are as many steps.

# %%
draw_reduction_tree(16, "interleaved")

# %% [markdown]
# But threads run in *warps* of 32. A warp in which a single thread has something to do takes as long as one in which
# all have. With 256 threads there are 8 warps, and a warp that has nothing to add is free for others.
#
# Predict for neighbours first: in how many warps does some thread add in the **third** step?

# %%
prediction = ...  # warps, in the third step, neighbours first

# %%
interleaved = active_warps(256, "interleaved")
compare(prediction, interleaved[2], "warps", how="computed")
print("half the length:", sequential, " neighbours first:", interleaved)

# %% [markdown]
# Halves first, the threads that work lie side by side, in as few warps as can be. Their places in shared memory lie
# side by side as well, so that no two of a warp's threads want the same bank. This is *sequential addressing*. Take
# it.

# %%
show_rung("tree")

# %% [markdown]
# ### Where the barriers stand
#
# `__syncthreads()` waits until all threads of the block have come there. In the first step, thread 0 adds what thread
# 128 has written: it must have been written. In the second step it adds what thread 64 has written in the first. So
# there is a barrier before the first step, and one after each. Each stands *outside* of the `if`, since all threads
# must reach it.
#
# Below the same kernel runs without the barriers between its steps, on 2,048 ones. The mean should be 1. Predict:
# what is it?

# %%
prediction = ...  # the mean of 2,048 ones, without barriers

# %%
compare(prediction, run_rung("tree without barriers", ones))

# %% [markdown]
# Less: sums were read before others had been added to them, and those others never arrive. What comes out is a matter
# of luck. On a GPU it may even be right, on this day, with this size. The CPU's simulator has each thread run until it
# must wait, so that a missing barrier shows.

# %% [markdown]
# ## Add within a warp
#
# The lanes of a warp can read each other's **registers**. `__shfl_down_sync(mask, value, offset)` gives each lane the
# `value` of the lane `offset` further on. No shared memory, and no barrier: the call itself brings together the lanes
# that `mask` names. All 32 is `0xffffffff`.

# %%
draw_shuffles(8)

# %% [markdown]
# All lanes add in all steps. What the light lanes hold is of no use, and costs nothing: they are in the warp anyway.
# Only lane 0 has the sum.
#
# A warp has 32 lanes: the offsets are 16, 8, 4, 2, 1. Suppose that the loop stops after offset 4. Every lane begins
# with a 1. Predict: what does lane 0 hold?

# %%
prediction = ...  # in lane 0, after offsets 16, 8 and 4

# %%
lanes = torch.ones(32)
for offset in (16, 8, 4):
    lanes = lanes + torch.cat([lanes[offset:], lanes[-offset:]])
compare(prediction, int(lanes[0].item()), how="computed")

# %%
show_rung("shuffles")

# %% [markdown]
# This rung has an atomic for each warp: eight times as many as the tree, which has one for each block of 256. Is it
# slower or faster than the tree? You will see below. The best of both is what the exercise asks for: each warp adds
# by shuffles; lane 0 of each writes the sum to shared memory; after **one** barrier the first warp adds these up by
# shuffles again.

# %% [markdown]
# ## Take many elements each
#
# So far a thread takes one element, and all the rest is a meeting of threads. Let a thread add many elements first,
# in a register, where nobody must be met.
#
# In a *grid-stride loop* the grid has a fixed size, and a thread steps by the number of threads of the whole grid:
#
# ```c++
# for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
# ```
#
# At any time neighbouring threads read neighbouring elements, so the loads are coalesced. Any `n` is covered, by any
# grid.
#
# Why not give each thread a piece of its own, elements 0 to 99, 100 to 199 and so on? Neighbouring lanes would then
# read elements that lie 400 bytes apart. You know from the last notebook what that costs.

# %%
show_rung("grid-stride")

# %% [markdown]
# There is no atomic addition left. The first launch writes a sum for each block to `scratch`, the second adds those
# up with a single block. It is the same kernel, and divides by `n` instead of 1. Between two launches on one stream
# the second waits for the first: a barrier of the whole grid.
#
# ### How many blocks?
#
# Memory answers after some 700 nanoseconds (a round figure; it grows with the load). To get 4,800 bytes in each
# nanosecond, that many bytes must be *under way* at any time. Say that each thread of a block of 256 has one float
# under way. Predict: how many blocks are needed?

# %%
prediction = ...  # blocks of 256 threads, a float each

# %%
under_way = 4800 * 700  # bytes in a nanosecond, times nanoseconds
compare(prediction, round(under_way / (256 * 4)), "blocks", how="computed")

# %% [markdown]
# An H200 has 132 SMs, and 8 blocks of 256 threads fill one: 1,056 blocks run at a time. One float for each thread
# would not do, even if all of them waited at all times. There are two ways out: more bytes in a load, and more loads
# before the first is waited for.
#
# - A `float4` is four floats in a row. `reinterpret_cast<const float4*>(x)[i]` loads 16 bytes at once. The address
#   must be a multiple of 16. The start of a tensor that PyTorch has allocated is one; the start of `x[1:]` is not.
# - Four loads in a row that do not depend on each other are under way at the same time: `#pragma unroll 4` above the
#   loop, or four variables.
#
# Both together are 64 bytes a thread. Then two blocks an SM would be enough, and it is no harm to have more.
#
# This is what the number of blocks does to the two kernels, as it was recorded:

# %%
recorded("reductions/blocks", "share_of_read_by_float", "share_of_read_by_float4")

# %% [markdown]
# Too few blocks leave bandwidth. More than can run at a time bring nothing: they queue, and each costs a start and a
# sum of its own.

# %% [markdown]
# ## The rungs beside each other
#
# Predict: how many times as fast as one atomic addition for each element is the grid-stride loop?

# %%
prediction = ...  # times as fast

# %%
speeds = measure_rungs()
compare(prediction, speeds.ratio("grid-stride", "atomics"), "times as fast", how=speeds.how)

# %%
speeds

# %% [markdown]
# GB/s count each element once, whatever a kernel does with it. Compare the rungs:
#
# - **atomics:** the queue at one address. Every other cost is hidden behind it.
# - **shuffles** have 32 times fewer atomic additions, **tree** 256 times fewer.
# - **grid-stride** has none. What is left between it and `torch.mean` is loads of 4 bytes.

# %% [markdown]
# ## The same sum twice
#
# With real numbers $(a + b) + c = a + (b + c)$. With float32 each addition is rounded, and the order decides what is
# lost. Below are the sums of 4,096 blocks, as a tree gives them. They are added to one float32 in the order in which
# the blocks happen to come: here in 100 random orders. Predict: how many **different** results are there?

# %%
prediction = ...  # different results, of 100

# %%
values = (torch.randn(2**20) + 100).numpy()
of_blocks = values.reshape(4096, 256).sum(axis=1)
generator = np.random.default_rng()
results = {np.cumsum(generator.permutation(of_blocks))[-1] for _ in range(100)}
compare(prediction, len(results), "results")
print(f"from {min(results):,.0f} to {max(results):,.0f}; in float64: {values.sum(dtype=np.float64):,.0f}")

# %% [markdown]
# Atomic additions come in whatever order the blocks run, and that differs from launch to launch. So a kernel with
# atomics gives *another last digit* each time. That is no error, but a test that asks for equality will fail now and
# then, and a training run cannot be repeated exactly.
#
# In **two stages** the order is fixed: which elements a thread adds, which sums meet in which step, and in which
# order the sums of blocks are added. The same input gives the same bits. It is *deterministic*, as long as the number
# of blocks stays the same. On another GPU, with other SMs, it may not.
#
# This was recorded: how many different results 50 launches on the same data gave.

# %%
recorded("reductions", "different_results")

# %% [markdown]
# ## What float32 loses
#
# A float32 has 24 binary digits. Beyond 2²⁴ = 16,777,216 the numbers that it knows lie 2 apart. Add ones to a
# float32, one after the other, beginning at 2²⁴ - 4. Predict: where is it after 100 ones?

# %%
prediction = ...  # after 100 ones

# %%
ones_added = np.full(101, 1, dtype=np.float32)
ones_added[0] = 2**24 - 4
compare(prediction, int(np.cumsum(ones_added)[-1]))

# %% [markdown]
# It stands still: 2²⁴ + 1 has no float32, and is rounded back to 2²⁴. A sum grows, its elements do not, and the
# smaller an element is beside the sum, the more of its digits are lost. So the danger is **one sum that takes in very
# many elements**. It is the same for atomics: `out` is one float32 that takes in all of them.
#
# Here are ways to add float32 numbers that lie around 10,000 (temperatures, prices, times: most measured data is far
# from 0). Predict: what is the relative error after 2²⁰ elements, added one after the other? (One rounding of float32
# is about 6e-8.)

# %%
prediction = ...  # relative error, one after the other

# %%
far_from_zero = torch.randn(2**20).numpy() + np.float32(10_000)
errors = summation_errors(far_from_zero)
compare(prediction, errors["float32, one after the other"][-1][1], how="computed")

# %%
draw_summation_errors(errors)

# %% [markdown]
# - **4,096 threads:** each adds every 4,096th element, then their sums are added. Each sum stays small, so little is
#   lost. A kernel does this anyway, for speed. Speed and accuracy want the same thing.
# - **Pairwise** is a tree from the first element on. NumPy's `sum` does it.
# - **Compensated** (Kahan's method) keeps what each addition has lost, and adds it to the next element. Four
#   operations in place of one.
# - **float64** has 53 binary digits. For a reduction that waits for memory, a few additions in double cost nothing.
#   On GPUs for games doubles are 32 or 64 times slower than floats: there, add four floats in float and only their
#   sum in double.
#
# Now the rungs on such data, each run on your machine:

# %%
compare_rungs(torch.from_numpy(far_from_zero[: 2**18]).to(device))

# %% [markdown]
# The fewer values one float32 takes in, the smaller the error, as a rule: 262,144 elements, 8,192 warps, 1,024 blocks. The
# grid-stride loop has no long sum anywhere.

# %% [markdown]
# ## Finish in the last block
#
# A second launch costs a few microseconds: nothing for a gigabyte, much for a megabyte. The same can be done in one
# launch. Each block stores its sum and then draws a *ticket*: it adds 1 to a counter, atomically, and gets the value
# from before. Whoever draws the last ticket knows that all the others have stored their sums, and adds them up.
#
# ```c++
# if (threadIdx.x == 0) {
#     partials[blockIdx.x] = sum;
#     __threadfence();
#     last = atomicInc(&ticket, gridDim.x - 1) == gridDim.x - 1;
# }
# __syncthreads();
# if (!last) return;
# ```
#
# - **`__threadfence()`**: what was written before it is seen by all blocks before what is written after it. Without
#   it the ticket might be seen first, and the last block would read an old sum.
# - **`atomicInc(&ticket, m)`** adds 1, but goes from `m` back to 0. So the last block leaves a 0 for the next launch.
# - `last` lies in shared memory: after the barrier all threads of the block know.
#
# No block waits for another. (A block that waits for one that has not begun could wait for ever.) Predict: with 1,056
# blocks, which value does the last block to arrive get from `atomicInc`?

# %%
prediction = ...  # of the last ticket

# %%
ticket, drawn = 0, []
for _ in range(1056):
    drawn.append(ticket)
    ticket = 0 if ticket >= 1055 else ticket + 1
compare(prediction, drawn[-1], how="computed")
print("left for the next launch:", ticket)

# %% [markdown]
# `partials` and `ticket` are `__device__` variables: they belong to the compiled library and are there from the
# start, `ticket` as 0. The alternative is a scratch tensor. `torch.empty` in each call costs time on the CPU, even if
# PyTorch has the memory at hand. Predict: how many microseconds is that?

# %%
prediction = ...  # µs for torch.empty

# %%
import timeit

seconds = timeit.timeit(lambda: torch.empty(1056, device=device), number=10_000) / 10_000
compare(prediction, round(seconds * 1e6, 2), "µs")

# %% [markdown]
# Little, but it is paid in each call. So keep a scratch tensor, if you use one (`functools.cache` does). One buffer for all
# calls has a condition: launches must not overlap. On one stream they never do. Two streams would need two buffers.

# %% [markdown]
# ## Exercise: reduce to a mean
#
# Write the mean of `x` into `out`. `x` is a contiguous vector of `n` float32, `n` at least 1; `out` is one float32.
# Both begin at an address that is a multiple of 512, so loads of 16 bytes from the start of `x` are allowed. `n` may
# be a prime, and the elements may lie far from 0. What `out` holds before is not a number.
#
# 1. `thread_sum`: a grid-stride loop over float4, several loads under way, and the one to three elements that are
#    left over. *(about 10 lines)*
# 2. `block_sum`: shuffles, shared memory, a barrier, shuffles. *(about 8 lines)*
# 3. The last block adds up `partials`, and one thread writes the mean. *(4 lines)*
# 4. The number of blocks: from `sm_count`, and not more than there is work for. *(1 line, in Python)*
#
# Sums are doubles here. Begin with the simplest thing that is right: a loop over single floats and one block. Then
# take one step after the other, and `check` after each.

# %% nbgrader={"grade_id": "mean_cuda", "solution": true}
import ctypes
from functools import cache

import torch
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#define THREADS 256
#define MOST_BLOCKS 4096

__device__ double partials[MOST_BLOCKS];  // the sums of the blocks; each launch writes them anew
__device__ unsigned int ticket;  // how many blocks are done; the last one sets it back to 0

// The sum of the values of a block's threads. Only thread 0 need get it.
__device__ double block_sum(double value) {
    // BEGIN SOLUTION
    __shared__ double of_warp[THREADS / 32];
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x < 32) {
        value = threadIdx.x < THREADS / 32 ? of_warp[threadIdx.x] : 0.0;
        for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
    }
    // END SOLUTION
    return value;
}

// The sum of the elements that this thread takes. There are `gridDim.x * THREADS` threads in all.
__device__ double thread_sum(const float* __restrict__ x, int n) {
    double sum = 0.0;
    // BEGIN SOLUTION
    const float4* quads = reinterpret_cast<const float4*>(x);
    int thread = blockIdx.x * THREADS + threadIdx.x, step = gridDim.x * THREADS, i = thread;
    for (; i + 3 * step < n / 4; i += 4 * step) {
        float4 a = quads[i], b = quads[i + step], c = quads[i + 2 * step], d = quads[i + 3 * step];
        sum += (a.x + a.y) + (a.z + a.w);
        sum += (b.x + b.y) + (b.z + b.w);
        sum += (c.x + c.y) + (c.z + c.w);
        sum += (d.x + d.y) + (d.z + d.w);
    }
    for (; i < n / 4; i += step) {
        float4 a = quads[i];
        sum += (a.x + a.y) + (a.z + a.w);
    }
    if (thread < n % 4) sum += x[n / 4 * 4 + thread];  // what is left over
    // END SOLUTION
    return sum;
}

__global__ void mean_kernel(const float* __restrict__ x, float* __restrict__ out, int n) {
    __shared__ bool last;
    double sum = block_sum(thread_sum(x, n));
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = sum;
        __threadfence();  // the sum is there before the ticket says so
        last = atomicInc(&ticket, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();  // what follows sees what the others wrote before their tickets
    // BEGIN SOLUTION
    sum = 0.0;
    for (int block = threadIdx.x; block < gridDim.x; block += THREADS) sum += partials[block];
    sum = block_sum(sum);
    if (threadIdx.x == 0) *out = sum / n;
    // END SOLUTION
}

extern "C" const char* mean(const float* x, float* out, int n, int blocks) {
    mean_kernel<<<blocks, THREADS>>>(x, out, n);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("mean_cuda", cuda_sources=cuda_source, **options))
    built.mean.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    built.mean.restype = ctypes.c_char_p
    return built


@cache
def sm_count(device):
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4


def mean_cuda(x, out):
    n = x.numel()
    blocks = 1
    ### BEGIN SOLUTION
    blocks = min(8 * sm_count(x.device), (n + 1023) // 1024)  # 256 threads of a block take 4 elements each
    ### END SOLUTION
    error = library().mean(x.data_ptr(), out.data_ptr(), n, blocks)
    if error:
        raise RuntimeError(error.decode())


# %% [markdown]
# Correct before fast. `check` builds the text of the cell above in a process of its own. Among its vectors are some
# whose elements are all 1: their mean says which share of the elements you have counted. A `NameError`? Run the
# exercise's cell first.

# %% nbgrader={"grade_id": "check-mean_cuda", "grade": true, "locked": true, "points": 5}
check(mean_cuda)

# %% [markdown]
# ## How fast is it?
#
# ⟦ gate("mean_cuda", "torch").points ⟧ of ⟦ exercise("mean_cuda").max_points ⟧ points are for reaching
# ⟦ gate("mean_cuda", "torch").at_least ⟧ of the speed of `torch.mean` at
# ⟦ gate("mean_cuda", "torch").cases | join(", ") ⟧ (more on a GPU that is faster). `torch.mean` is written for every
# shape, type and set of dimensions, and it is good: most of the time it waits for memory, as yours does.
#
# Predict: which share of its speed does your kernel reach? Write 0.5 for half.

# %%
prediction = ...  # torch.mean's time divided by yours

# %%
benchmark(mean_cuda)

# %% [markdown]
# Hold your prediction against the report. And this is what the authors' kernel reached. (A copy reads half of its
# bytes and writes the other half. Reading alone is a little faster, so a share above 1 is possible.)

# %%
recorded("mean_cuda", "ratio_vs_torch", "share_of_copy", "bandwidth_gbps")

# %% [markdown]
# **Small vectors** take the time of a launch. Here one launch, in place of a launch for each stage and another that
# sets a counter to 0, is what makes a difference.
#
# **Large vectors** are limited by memory. If yours is behind, ask: are 16 bytes loaded at a time? Are several loads
# under way before the first is used? Are there enough blocks, and not many times more than can run at once? Does each
# thread do about as much as the others?
#
# Beside the rungs, against the bandwidth of reading alone:

# %%
recorded("reductions", "bandwidth_gbps", "share_of_read", "error_ppb")

# %% [markdown]
# The last column is the relative error on data around 10,000, in billionths. One rounding of float32 is 60 of them.

# %% [markdown]
# ## Extra credit
#
# No points, but each shows something. Change the exercise's cell, run it, and `check` it again, or
# `benchmark` it (with a GPU).
#
# 1. Make the sums of threads float32 instead of double. Does `check` accept it? Is it faster? Then do it with a grid
#    of a single block. Which of the vectors notices?
# 2. Leave out the `__syncthreads()` in `block_sum`. What does the report say, and does it say so on a GPU as well?
# 3. Let a block take a piece of its own, one after the other, instead of stepping by the whole grid (lanes still side
#    by side). Is there a difference?
# 4. The mean needs one pass. What does the variance need, if the elements lie far from 0? (Look up Welford's method,
#    and how two of its results are merged.)

# %% [markdown]
# ## In this notebook you have
#
# - replaced an atomic addition for each element by one for each warp, by one for each block, and by none
# - drawn a tree, counted the warps that work in each of its steps, and seen what happens without barriers
# - computed how many bytes must be under way, and so how many blocks and how wide loads it takes
# - seen sums of float32 that depend on their order, and one that stands still
# - let the last block finish, with a fence and a ticket, in one launch
# - written a mean at the speed of memory, had it checked, and measured it against `torch.mean`
#
# ## Check yourself
#
# <details><summary>A kernel adds to <code>out</code> with <code>atomicAdd</code>, and the judge says that the result is NaN. What is the likeliest cause?</summary>
#
# Nobody has set `out` to 0. It held NaN before the launch, and NaN plus anything is NaN.
#
# </details>
#
# <details><summary>A tree in shared memory over 1,024 threads: how many steps, and how many barriers?</summary>
#
# 10 steps, and a barrier before the first of them and after each: 11. (The one after the last step is needed only if
# another thread than the one that wrote the sum reads it.)
#
# </details>
#
# <details><summary>Why is a grid-stride loop more accurate than an atomic addition for each element, although both are float32?</summary>
#
# Each thread's sum takes in few elements and stays small, and then sums of like size meet. With atomics one float32
# takes in all elements, and the larger it gets the more of each is lost.
#
# </details>
#
# <details><summary>Two launches of the same kernel on the same data give results that differ in the last digit. Is that a bug?</summary>
#
# Not if it uses atomics on floats: their order varies, and each order rounds differently. If it must not be so, fix
# the order: sums in two stages.
#
# </details>
#
# <details><summary>Why does the block that draws the last ticket not have to wait for anybody?</summary>
#
# Each block stores its sum, passes a fence, and draws its ticket only then. So when the last ticket is drawn, all
# sums are there.
#
# </details>
#
# **Next:** [Make it an operator](04_make_it_an_operator.ipynb), where PyTorch learns to differentiate a kernel of
# yours. Or go back to the [syllabus](../README.ipynb). Both lie in the course's folder.
