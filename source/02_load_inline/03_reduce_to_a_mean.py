# %% [markdown]
# # Reduce to a mean
#
# **You will** write the mean of a vector in CUDA C++: many numbers in, one number out, at the speed of memory.
#
# **You will learn**
#
# - why threads that add to one place lose sums, and what an atomic addition is
# - to add in a tree, in shared memory and across the lanes of a warp, and where its barriers stand
# - to give each thread many elements, and how many blocks keep the memory busy
# - why a sum of float32 depends on its order, and how to lose less of it
# - to let the last block finish, so that one launch is enough
#
# **You need** about 60 minutes, [Square a matrix](01_square_a_matrix.ipynb) and, for shared memory,
# [Move bytes well](02_move_bytes_well.ipynb). With an NVIDIA GPU you measure speed as well. Without one your CUDA C++
# is built for the CPU and every answer is checked there; speed is shown as recorded on another machine.

# %%
from grader import benchmark, check, device
from grader.explore import active_warps, compare, compare_rungs, draw_reduction_tree, draw_shuffles
from grader.explore import measure_rungs, recorded, run_rung, show_rung

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
# This is the mark. You will now climb towards it, rung by rung. Each rung is a small kernel.

# %% [markdown]
# ## Add to one place
#
# Let each thread add its element to `out`. `*out += x[i]` will not do (`*out` is `out[0]`): it reads, adds and
# writes. What another thread writes between this thread's read and its write is lost: a race again.
#
# `atomicAdd(out, value)` reads, adds and writes as one step that nothing comes between.

# %%
show_rung("atomics")

# %% [markdown]
# Two things to remember:
#
# - **`out` must be 0 first.** Memory on a GPU begins with whatever lay there. The judge fills `out` with NaN, and NaN
#   plus anything is NaN. So the launcher sets it to 0 before the kernel: `cudaMemsetAsync(out, 0, sizeof(float))`.
# - **One address, one queue.** Additions to one address are done one after the other, in the L2 cache that all SMs
#   share, however many threads there are: 2²⁶ of them for a vector of 2²⁶.
#
# Does it work? Here it runs, on your machine, on 2,048 ones. (The first call builds all the rungs.)

# %%
ones = torch.ones(2048, device=device)
run_rung("atomics", ones)

# %% [markdown]
# ## Add in a tree
#
# The threads of a block can share. Each puts its element into shared memory, and they add in pairs, then pairs of
# pairs. What is left is one number for each block, and one atomic addition for it.

# %%
draw_reduction_tree(16)

# %% [markdown]
# Each dark place was written in that step. Its thread added to its own place (full line) the place half the length
# further on (dashed). Predict: how many steps does a block of 256 threads need?

# %%
prediction = ...  # steps

# %%
halves = active_warps(256, "sequential")  # for each step: in how many warps some thread adds
compare(prediction, len(halves), "steps", how="computed")

# %% [markdown]
# This was *halves first*. The pairs can be chosen in another way, *neighbours first*. The sums are as right, and
# there are as many steps.

# %%
draw_reduction_tree(16, "interleaved")

# %% [markdown]
# But the threads of a warp run together: a warp in which one thread adds takes as long as one in which all do. A warp
# in which no thread adds makes room for others. A block of 256 threads has 8 warps.
#
# In the picture, thread `t` writes place `t`. Predict for neighbours first: in how many warps does some thread add in
# the **third** step?

# %%
prediction = ...  # warps, in the third step, neighbours first

# %%
neighbours = active_warps(256, "interleaved")
compare(prediction, neighbours[2], "warps", how="computed")
print("warps in each step, halves first:    ", halves)
print("warps in each step, neighbours first:", neighbours)

# %% [markdown]
# Halves first, the threads that add lie side by side, in as few warps as can be. Their places in shared memory lie
# side by side too, so no two threads of a warp want the same bank. This is called *sequential addressing*. Take it.

# %%
show_rung("tree")

# %% [markdown]
# (`a ? b : c` is Python's `b if a else c`: a thread past the end brings a 0.)
#
# ### Where the barriers stand
#
# In the first step, thread 0 adds what thread 128 has written: it must have been written. In the second step it adds
# what thread 64 has written in the first. So there is a barrier before the first step, and one after each. Each
# stands *outside* of the `if`, since all threads of the block must reach it.
#
# Below the same kernel runs without the barriers between its steps, on 2,048 ones: 8 blocks of 256. Without a GPU a
# simulator runs it, one thread at a time, each until it must wait. So thread 0 does all of its 8 additions before
# thread 1 does its first. Predict: which mean comes out, in place of 1? (With a GPU: guess.)

# %%
prediction = ...  # the mean of 2,048 ones, without barriers

# %%
compare(prediction, run_rung("tree without barriers", ones))

# %% [markdown]
# In the simulator thread 0 adds 8 elements to its own before any other thread has added: each block's sum is 9, and
# the mean 8 · 9 / 2,048. On a GPU, which warp is ahead is a matter of luck. The mean may even be right, on this day,
# with this size.

# %% [markdown]
# ## Add within a warp
#
# The threads of a warp are its *lanes*, 0 to 31. A thread keeps variables such as `sum` in *registers*, and lanes can
# read each other's: `__shfl_down_sync(mask, value, offset)` gives each lane the `value` of the lane `offset` further
# on.
#
# This needs no shared memory, and no barrier. The call itself brings together the lanes that `mask` names, so all of
# them must reach it. All 32 is `0xffffffff`.

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
    lanes = lanes + torch.cat([lanes[offset:], lanes[-offset:]])  # past the end a lane gets its own
compare(prediction, int(lanes[0].item()), how="computed")

# %%
show_rung("shuffles")

# %% [markdown]
# This rung has an atomic addition for each warp, the tree one for each block of 256: eight times fewer. The exercise
# wants the best of both: each warp adds by shuffles, lane 0 of each writes the sum to shared memory, and after
# **one** barrier the first warp adds these up by shuffles again.

# %% [markdown]
# ## Take many elements each
#
# So far a thread brings one element, and then waits for others at every step. Let it add many elements first, in a
# register, where it waits for nobody.

# %%
show_rung("grid-stride")

# %% [markdown]
# The first loop is a *grid-stride loop*: the grid has a fixed size, and a thread steps by the number of threads of
# the whole grid. Any `n` is covered, by any grid. At any time neighbouring threads read neighbouring elements, so the
# loads are coalesced. (If each thread took a piece of its own, elements 0 to 99, 100 to 199 and so on, neighbouring
# lanes would read elements 400 bytes apart.)
#
# There is no atomic addition left. The first launch writes a sum for each block to `scratch`. The second is the same
# kernel with a single block: it adds those up, and divides by `n` instead of 1. On one stream a launch waits for the
# one before, so there is a barrier of the whole grid between them.
#
# ### How many blocks?
#
# By Little's law the bytes in flight are the bandwidth times the latency. Take 4,800 bytes in each nanosecond, and a
# latency of 700 ns (a round figure). Say that each thread has one float in flight. Predict: how many blocks of 256
# threads must run at the same time?

# %%
prediction = ...  # blocks of 256 threads, a float each

# %%
in_flight = 4800 * 700  # bytes in a nanosecond, times nanoseconds
compare(prediction, round(in_flight / (256 * 4)), "blocks", how="computed")

# %% [markdown]
# An SM holds at most 2,048 threads, so 8 blocks of 256. An H200 has 132 SMs: 1,056 blocks run at a time. By this count,
# one float for each thread is not enough. You know both remedies:
#
# - **Wide loads.** `reinterpret_cast<const float4*>(x)` is the address `x` again, now of float4s: `[i]` of it is the
#   elements 4i to 4i + 3. The address must be a multiple of 16. The start of a tensor that PyTorch has allocated is
#   one; the start of `x[1:]` is not.
# - **Several loads a thread** that do not depend on each other: `#pragma unroll 4` above the loop, or four variables.
#
# Both together are 64 bytes a thread. By this count two blocks an SM would be enough. It was recorded what the number
# of blocks does to the grid-stride loop above, and to the authors' solution, which loads by `float4`:

# %%
recorded("reductions/blocks", "share_of_read_by_float", "share_of_read_by_float4")

# %% [markdown]
# Too few blocks leave bandwidth unused. More than can run at a time have to queue, and each costs a start and a sum
# of its own. By this table that costs little.

# %% [markdown]
# The loop by `float` does better than the count allows: 8 blocks for each SM come close to the speed of reading. So its
# threads must have more than one float in flight.
#
# The case of 16 blocks shows it, too. An H200 reads at
# ⟦ recorded(bench="reductions", case="reading alone", metric="bandwidth_gbps", gpu="H200") ⟧, and a GB/s is a byte in a
# nanosecond. Of that, these blocks read their share:
# ⟦ "%.0f" | format(recorded(bench="reductions", case="reading alone", metric="bandwidth_gbps", gpu="H200").value * recorded(bench="reductions/blocks", case="16 blocks, 0.125 for each SM", metric="share_of_read_by_float", gpu="H200").value) ⟧
# bytes in a nanosecond. With one float for each thread they have 16 KiB in flight. Divide: memory would answer within
# little more than a hundred nanoseconds. It takes several hundred. The kernel's text does not ask for several loads at
# once, but a compiler may unroll such a loop by itself.
#
# (The solution has places for 4,096 blocks. So the last row has no figure for it.)

# %% [markdown]
# ## The rungs beside each other
#
# With a GPU they are measured here, on 2²⁶ elements. The recorded figures are of 2²⁸. Predict: how many times as fast as
# one atomic addition for each element is the grid-stride loop?

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
# - **atomics** has an addition at one address for every element.
# - **shuffles** has 32 times fewer of them, **tree** 256 times fewer. They are faster by nearly these factors: what all
#   three wait for is the queue at that address.
# - **grid-stride** has none. Its loads are still of 4 bytes, and it is already close to reading alone.

# %% [markdown]
# ## The same sum twice
#
# With real numbers (a + b) + c is a + (b + c). With float32 each addition is rounded, and what is lost depends on the
# order. Below are the sums of 4,096 blocks, as a tree gives them. They are added to one float32 in the order in which
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
# Atomic additions come in whatever order the blocks run, and that may differ from launch to launch. So two launches
# of a kernel with atomics may differ in their last digits. That is no error, but a test that asks for equality will
# fail now and then, and a training run cannot be repeated exactly.
#
# In **two stages** the order is fixed: which elements a thread adds, which sums meet in which step, and in which
# order the sums of blocks are added. The same input gives the same bits: it is *deterministic*, as long as the number
# of blocks stays the same. On another GPU, with more or fewer SMs, it may not.
#
# This was recorded: how many different results 50 launches gave, on the same 2²⁴ numbers around 10,000.

# %%
recorded("reductions", "different_results")

# %% [markdown]
# Only what adds in a fixed order gave one result. But why has **atomics**, with the most additions, so few results, and
# **tree** so many? The next section has the reason, and it is no merit of atomics.

# %% [markdown]
# ## What float32 loses
#
# A float32 has 24 binary digits. From 2²⁴ = 16,777,216 on, the numbers that it knows lie 2 apart. Add ones to a
# float32, one after the other, beginning at 2²⁴ - 4. Predict: where is it after 100 ones?

# %%
prediction = ...  # after 100 ones

# %%
ones_added = np.full(101, 1, dtype=np.float32)
ones_added[0] = 2**24 - 4
compare(prediction, int(np.cumsum(ones_added)[-1]))

# %% [markdown]
# It stands still: 2²⁴ + 1 is no float32, and is rounded back to 2²⁴. A sum grows, its elements do not, and the
# smaller an element is beside the sum, the more of its digits are lost. So the danger is **one sum that takes in very
# many elements**. With an atomic addition for each element, `out` is such a sum.
#
# The next cell runs the rungs on your machine, on 2¹⁸ numbers around 10,000 (much of what is measured lies far from
# 0: temperatures, prices, times). One rounding of float32 is a relative error of up to 6e-8. Predict: what is the
# relative error of **atomics**?

# %%
prediction = ...  # relative error of atomics, such as 1e-7

# %%
far_from_zero = torch.randn(2**18, device=device) + 10_000
errors = compare_rungs(far_from_zero)
compare(prediction, errors.error("atomics"))

# %%
errors

# %% [markdown]
# The fewer values one float32 takes in, the smaller the error, as a rule: 262,144 elements in atomics, 8,192 warps in
# shuffles, 1,024 blocks in the tree. The grid-stride loop has no long sum anywhere. So speed and accuracy want the
# same thing: many short sums.
#
# The same was recorded on 2²⁴ such numbers, in billionths (ppb). One rounding is up to 60 of them.

# %%
recorded("reductions", "error_ppb")

# %% [markdown]
# Here **atomics** loses a tenth of the mean. Each element adds itself divided by 2²⁴, some 0.0006. From 4,096 to 8,192 the
# numbers that float32 knows lie 0.0005 apart. So each addition is rounded to one such step, **whichever element it
# was**, and nearly a fifth of it is lost. From 2,048 to 4,096 the loss is the same: two steps of half that size. (From
# 8,192 on a step is 0.001, and each addition brings too much.)
#
# That is why the order hardly mattered, and 50 launches gave so few results: nearly the same wrong one each time. The
# tree adds sums of 256 elements. Of these, some are rounded up and some down. So its results vary more with the order,
# and are far better. A result that repeats need not be right.

# %% [markdown]
# The exercise also adds in `double`, with 53 binary digits. On an H200 doubles are half as fast as floats, which is
# still far faster than memory. (On GPUs for games they are 32 or 64 times slower: there, add four floats in float and
# only their sum in double.)

# %% [markdown]
# ## Finish in the last block
#
# The second launch takes time of its own, which counts where the vector is small. One launch can do it all. Each
# block stores its sum and then draws a *ticket*: it adds 1 to a counter, atomically, and gets the value from before.
# Whoever draws the last ticket knows that all the others have stored their sums, and adds them up.
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
#   (`&ticket` is the address of `ticket`.)
# - **`last`** lies in shared memory: after the barrier all threads of the block know.
# - **`partials` and `ticket`** are marked `__device__`, outside of any kernel: they lie in the GPU's memory as long
#   as the library is loaded, and begin as 0. All launches use the same ones, so launches must not overlap. On one
#   stream they never do.
#
# No block waits for another. (One that waits for a block that has not begun could wait for ever.) And the sum is
# deterministic: whichever block is last, it adds `partials` in the same order.

# %% [markdown]
# ## Exercise: reduce to a mean
#
# Write the mean of `x` into `out`. `x` is a contiguous vector of `n` float32, `n` at least 1; `out` is one float32.
# Both begin at an address that is a multiple of 512, so loads of 16 bytes from the start of `x` are allowed. `n` may
# be a prime, and the elements may lie far from 0. Before the launch `out` holds NaN.
#
# 1. `thread_sum`: a grid-stride loop over float4, several loads in flight, and the elements that are left over, three
#    at most. *(about 10 lines)*
# 2. `block_sum`: shuffles, shared memory, a barrier, shuffles. *(about 8 lines)*
# 3. The last block adds up `partials`, of which there may be more than threads, and one thread writes the mean.
#    *(4 lines)*
# 4. The number of blocks: several for each of the `sm_count(x.device)` SMs, but no more than there is work for. A block
#    takes in 1,024 elements at a time: 256 threads, a `float4` each. There is always at least one block. *(1 line, in
#    Python)*
#
# A function marked `__device__` is called from kernels; it may declare `__shared__` arrays. `__shfl_down_sync` takes
# doubles, too.
#
# Begin with the simplest thing that is right: a loop over single floats, and one block. Then take one step after the
# other, and `check` after each.

# %% nbgrader={"grade_id": "mean_cuda", "solution": true}
import ctypes
from functools import cache

import torch
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#define THREADS 256
#define MOST_BLOCKS 4096  // no launch may have more

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
    if (blocks > MOST_BLOCKS) return "more blocks than `partials` has places";
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
# ⟦ gate("mean_cuda", "torch").cases | join(", ") ⟧ (on a faster GPU the vector is longer). `torch.mean` is written
# for every shape, type and set of dimensions, and it is good. But like you, it cannot read faster than memory delivers.
#
# Predict: which share of its speed does your kernel reach? Write 0.5 for half.

# %%
prediction = ...  # torch.mean's time divided by yours

# %%
benchmark(mean_cuda)

# %% [markdown]
# Hold your prediction against the report. The plot has a third curve, `torch.compile`: the kernels that PyTorch's
# compiler makes for a mean. On your GPU it may lie far below the others for small vectors, since a call of a compiled
# function takes the CPU longer.
#
# And this is what the authors' kernel reached. (A copy writes half of its bytes. Reading alone may be a little faster,
# so a share above 1 is possible.)

# %%
recorded("mean_cuda", "ratio_vs_torch", "share_of_copy", "bandwidth_gbps")

# %% [markdown]
# **Small vectors** take little more than the time of a launch: that is why one launch is better than two. (At 65,536
# elements the recorded ratio is large because `torch.mean` is slow: slower than at four times as many. By its code it
# uses several blocks only where each thread of one block would have at least 256 elements. Here one block of 512 threads
# adds up everything.)
#
# **Large vectors** are limited by memory. If yours is behind, ask: are 16 bytes loaded at a time? Are several loads
# in flight before the first is used? Are there enough blocks, and not many times more than can run at once? Does each
# thread do about as much as the others?

# %% [markdown]
# ## Extra credit
#
# No points, but each shows something. Change the exercise's cell, run it, and `check` it again, or
# `benchmark` it (with a GPU).
#
# 1. Make the sums of threads float32 instead of double. Does `check` accept it? Is it faster? Then let a single
#    thread add up everything, in one float32. Which of the vectors notices?
# 2. Leave out the `__syncthreads()` in `block_sum`. What does the report say, and does it say so on a GPU as well?
# 3. Let a block take a piece of its own, one after the other, instead of stepping by the whole grid (lanes still side
#    by side). Is there a difference?
# 4. The mean needs one pass. What does the variance need, if the elements lie far from 0? (Look up Welford's method,
#    and how two of its results are merged.)

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - replaced an atomic addition for each element by one for each warp, by one for each block, and by none
# - drawn a tree, counted the warps that work in each of its steps, and seen what happens without barriers
# - computed how many bytes must be in flight, and so how many blocks and how wide loads it takes
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
