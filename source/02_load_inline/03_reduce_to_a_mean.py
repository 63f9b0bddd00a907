# %% [markdown]
# # Reduce to a mean
#
# **You will** write the mean of a vector in CUDA C++: many numbers in, one number out, at the speed of memory.
#
# **You will learn**
#
# - why additions get lost when several threads add to one place, and what an **atomic addition** is
# - to add in a tree, in shared memory and across the **lanes** of a warp, and which barriers it needs
# - what it costs if the threads of a warp take different branches
# - to give each thread many elements, and how many blocks keep the memory busy
# - why a sum of float32 depends on its order, and how to lose less of it
# - to let the last block finish, so that one launch is enough
#
# **You need** about 120 minutes, [Square a matrix](01_square_a_matrix.ipynb) and, for shared memory,
# [Move bytes well](02_move_bytes_well.ipynb). With an NVIDIA GPU you measure speed as well. Without one your CUDA C++
# is built for the CPU and every answer is checked there; speed is shown as recorded on another machine.

# %%
from grader import benchmark, check, device
from grader.explore import active_warps, compare, compare_rungs, draw_reduction_tree, draw_shuffles
from grader.explore import experiment, measure_rungs, recorded, run_rung, show_rung

device

# %%
import numpy as np
import torch

# %% [markdown]
# ## The shortest possible time
#
# A mean reads every element once and writes one number. It takes one addition per four bytes, and a GPU adds far faster
# than it can fetch. So the kernel takes as long as reading the vector. An H200's memory delivers 4,800 GB/s by its data
# sheet, so 2²⁶ float32 numbers take at least 2²⁶ × 4 / 4,800 nanoseconds.
#
# This is the goal. You will now climb towards it, rung by rung. Each rung is a small kernel.

# %% [markdown]
# ## Add to one place
#
# Let each thread add its element to `out`. The obvious line is `*out += x[i]`, where `*out` means `out[0]`, but it
# does not work. It reads, adds and writes. If another thread writes between this thread's read and its write, that
# addition is lost: a race again.
#
# `atomicAdd(out, value)` reads, adds and writes in one step that no other thread can interrupt. This is an **atomic
# addition**.

# %%
show_rung("atomics")

# %% [markdown]
# Two things to remember:
#
# - **`out` must be 0 first.** Memory on a GPU starts with arbitrary contents. The judge fills `out` with NaN, and NaN
#   plus anything is NaN. So the launcher sets it to 0 before the kernel: `cudaMemsetAsync(out, 0, sizeof(float))`.
# - **One address, one queue.** Additions to one address are done one after the other, in the L2 cache that all SMs
#   share. On an H200 each took about
#   ⟦ "%.1f" | format(1e3 * recorded(bench="reductions", case="atomics", metric="median_us", gpu="H200").value / 2**28) ⟧
#   nanoseconds. A vector of 2²⁶ elements takes 2²⁶ of them.
#
# Here it runs on your machine, on 2,048 ones. The first call builds all the rungs.

# %%
ones = torch.ones(2048, device=device)
run_rung("atomics", ones)

# %% [markdown]
# ## Add in a tree
#
# The threads of a block can share memory. Each puts its element there, and they add in pairs, then in pairs of pairs.
# In the end there is one number per block, which takes one atomic addition.

# %%
draw_reduction_tree(16)

# %% [markdown]
# Each dark place was written in that step. Its thread added the place half the length further on (dashed line) to its
# own place (full line). A block of 256 threads needs 8 steps.
#
# This order is called *halves first*. Another one is *neighbours first*. The sums are just as correct, and it takes just
# as many steps.

# %%
draw_reduction_tree(16, "interleaved")

# %% [markdown]
# But the threads of a warp run together. If an `if` is true for some of them only, the others wait until these are
# done: this is **divergence**. With an `else`, a warp runs both branches, one after the other. So a warp in which one
# thread adds takes as long as a warp in which all do. A warp in which no thread adds makes room for others. A block of
# 256 threads has 8 warps.
#
# In the picture, thread `t` writes place `t`. Predict for neighbours first: in how many warps does some thread add in
# the **third** step?

# %%
prediction = ...  # warps, in the third step, neighbours first

# %%
halves = active_warps(256, "sequential")  # for each step: in how many warps some thread adds
neighbours = active_warps(256, "interleaved")
compare(prediction, neighbours[2], "warps", how="computed")
print("warps in each step, halves first:    ", halves)
print("warps in each step, neighbours first:", neighbours)

# %% [markdown]
# With halves first, the threads that add are side by side, in as few warps as possible. Their places in shared memory
# are side by side too, so no two threads of a warp want the same bank. This is called **sequential addressing**. Use
# it.

# %%
show_rung("tree")

# %% [markdown]
# A thread past the end adds a 0.
#
# ### What divergence costs
#
# A thread of the tree does too little in each step to time it. This kernel does more. Its two branches have the same
# number of multiplications and additions.

# %%
divergence = experiment("divergence")
divergence

# %% [markdown]
# `divergence.run()` launches it with four conditions, always with the same number of threads and rounds. Without a GPU
# you see what was recorded on another machine. The threads of a warp are its **lanes**, 0 to 31.
#
# | name | `period` | `part` | which threads take the first branch |
# | --- | --- | --- | --- |
# | all alike | 32 | 32 | all |
# | by warp | 64 | 32 | every second warp |
# | by lane | 2 | 1 | every second lane of each warp |
# | one lane | 32 | 1 | lane 0 of each warp |
#
# With *by warp* and *by lane* half of the threads take each branch. Predict: how many times as long as *by warp* does
# *by lane* take? And *one lane*, where 31 of 32 threads agree?

# %%
prediction = ...  # by lane, times as long as by warp
prediction_2 = ...  # one lane, times as long as by warp

# %%
result = divergence.run()
compare(prediction, result.ratio("by lane", to="by warp"), "times as long", how=result.how)
compare(prediction_2, result.ratio("one lane", to="by warp"), "times as long", how=result.how)
result

# %% [markdown]
# With *by warp*, neighbouring warps take different branches, but each warp runs only one: there is no divergence. With
# *by lane*, every warp runs both branches, one after the other, so it issues twice as many instructions. With *one
# lane* it does so too, because the time of a branch does not depend on how many lanes take it.
#
# So a bounds check costs next to nothing: `if (i < n)` splits at most one warp of the whole grid.
#
# ### Which barriers it needs
#
# In the first step, thread 0 adds what thread 128 has written, so that must be complete. In the second step it adds
# what thread 64 has written in the first. So there is a barrier before the first step, and one after each step. All of
# them are *outside* of the `if`, because all threads of the block must reach them.
#
# Below the same kernel runs without the barriers between its steps, on 2,048 ones: 8 blocks of 256. Without a GPU a
# simulator runs it, one thread at a time, each until it must wait. So thread 0 does all of its 8 additions before
# thread 1 does its first. Predict: which mean do you get, instead of 1? With a GPU, guess.

# %%
prediction = ...  # the mean of 2,048 ones, without barriers

# %%
compare(prediction, run_rung("tree without barriers", ones))

# %% [markdown]
# In the simulator thread 0 adds 8 elements to its own before any other thread has added: each block's sum is 9, and the
# mean is 8 · 9 / 2,048. On a GPU it depends on which warp is ahead. The mean may even be right, on this GPU, for this
# size.

# %% [markdown]
# ## Add within a warp
#
# A thread keeps variables such as `sum` in **registers**, and the lanes of a warp can read each other's registers:
# `__shfl_down_sync(mask, value, offset)` gives each lane the `value` of the lane `offset` further on. This is called a
# **shuffle**.
#
# It needs no shared memory and no barrier. The call itself waits for the lanes in `mask`, so all of them must reach it.
# The mask `0xffffffff` stands for all 32 lanes.

# %%
draw_shuffles(8)

# %% [markdown]
# All lanes add in all steps. The values of the light lanes are not used, and cost nothing: the lanes are in the warp
# anyway. Only lane 0 has the sum.
#
# A warp has 32 lanes, so the offsets are 16, 8, 4, 2, 1. Suppose that the loop stops after offset 4. Every lane starts
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
# This rung has one atomic addition per warp, and the tree has one per block of 256: eight times fewer. The exercise
# combines both. Each warp adds by shuffles, and its lane 0 writes the sum to shared memory. After **one** barrier the
# first warp adds these sums by shuffles again.

# %% [markdown]
# ## Many elements per thread
#
# So far a thread has one element, and then waits for others at every step. Let it add many elements first, in a
# register, where it does not wait.

# %%
show_rung("grid-stride")

# %% [markdown]
# The first loop is a **grid-stride loop**: the grid has a fixed size, and each thread steps by the number of threads of
# the whole grid. It covers any `n` with any grid. At any time neighbouring threads read neighbouring elements, so the
# loads are coalesced. If each thread took its own piece instead, elements 0 to 99, 100 to 199 and so on, neighbouring
# lanes would read elements 400 bytes apart.
#
# No atomic addition is left. The first launch writes one sum per block to `scratch`. The second is the same kernel with
# a single block: it adds those sums, and divides by `n` instead of 1. On one stream a launch waits for the launch
# before it, which acts as a barrier of the whole grid.
#
# ### How many blocks?
#
# By Little's law the bytes in flight are the bandwidth times the latency. Take 4,800 bytes per nanosecond, and a
# latency of some 700 nanoseconds. Suppose that each thread has one float in flight. Predict: how many blocks of 256
# threads must run at the same time?

# %%
prediction = ...  # blocks of 256 threads, a float each

# %%
in_flight = 4800 * 700  # bytes in a nanosecond, times nanoseconds
compare(prediction, round(in_flight / (256 * 4)), "blocks", how="computed")

# %% [markdown]
# An SM holds at most 2,048 threads, which is 8 blocks of 256. An H200 has 132 SMs, so 1,056 blocks run at a time: a
# **wave**. By this count, one float per thread is not enough. You know both remedies:
#
# - **Wide loads.** `reinterpret_cast<const float4*>(x)[i]` loads the elements 4i to 4i + 3. The address must be a
#   multiple of 16. The start of a tensor that PyTorch has allocated is one; the start of `x[1:]` is not.
# - **Several loads per thread** that do not depend on each other: `#pragma unroll 4` above the loop, or four variables.
#
# Together they put 64 bytes per thread in flight. By this count two blocks per SM would be enough. The table shows how
# the number of blocks affects the grid-stride loop above, and the authors' solution, which loads by `float4`:

# %%
recorded("reductions/blocks", "share_of_read_by_float", "share_of_read_by_float4")

# %% [markdown]
# Too few blocks leave bandwidth unused. Blocks beyond those that fit have to queue, and each costs a start and one
# more sum. By this table that costs little. The solution has room for 4,096 blocks, so the last row has no figure for
# it.
#
# The loop by `float` does better than the count allows: with 8 blocks per SM it comes close to the speed of reading.
# Its threads must have more than one float in flight. A compiler may unroll such a loop by itself, and issue several loads
# before the first addition. With a GPU you can test this in the exercise: write `#pragma unroll 1` above a loop over
# single floats.

# %% [markdown]
# ## The rungs compared
#
# With a GPU they are measured here, on 2²⁶ elements. The recorded figures are for 2²⁸. Predict: how many times as fast
# as one atomic addition per element is the grid-stride loop?

# %%
prediction = ...  # times as fast

# %%
speeds = measure_rungs()
compare(prediction, speeds.ratio("grid-stride", "atomics"), "times as fast", how=speeds.how, within=2)

# %%
speeds

# %% [markdown]
# The bandwidth counts each element once, whatever a kernel does with it. Compare the rungs:
#
# - **atomics** has one addition per element at one address.
# - **shuffles** has 32 times fewer of them, **tree** 256 times fewer. They are faster by nearly these factors: all
#   three wait for the queue at that address.
# - **grid-stride** has none. It still loads 4 bytes at a time, and it is already close to reading alone.

# %% [markdown]
# ## The same sum twice
#
# For real numbers, (a + b) + c equals a + (b + c). In float32 each addition is rounded, and the loss depends on the
# order. Below are the sums of 4,096 blocks, from a tree. They are added to one float32 in the order in which the
# blocks happen to finish: here in 100 random orders. Predict: how many **different** results are there?

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
# Atomic additions happen in the order in which blocks run, and that may differ from launch to launch. So two launches
# of a kernel with atomics may differ in their last digits. This is not a bug, but a test for equality will fail now and
# then, and a training run cannot be repeated exactly.
#
# In **two stages** the order is fixed: which elements a thread adds, which sums meet in which step, and in which order
# the sums of blocks are added. The same input gives the same bits: the kernel is **deterministic**, as long as the
# number of blocks stays the same. On another GPU, with more or fewer SMs, it may not.
#
# The table shows how many different results 50 launches gave, on the same 2²⁴ numbers around 10,000.

# %%
recorded("reductions", "different_results")

# %% [markdown]
# Only the kernels that add in a fixed order gave a single result. But why does **atomics**, with the most additions,
# have so few results, and **tree** so many? The next section has the reason, and it is not an argument for atomics.

# %% [markdown]
# ## What float32 loses
#
# A float32 has 24 binary digits. From 2²⁴ = 16,777,216 on, neighbouring float32 numbers are 2 apart. Add ones to a
# float32, one after the other, starting at 2²⁴ - 4. Predict: what is the sum after 100 ones?

# %%
prediction = ...  # after 100 ones

# %%
ones_added = np.full(101, 1, dtype=np.float32)
ones_added[0] = 2**24 - 4
compare(prediction, int(np.cumsum(ones_added)[-1]))

# %% [markdown]
# It stops growing: float32 has no 2²⁴ + 1, which is rounded back to 2²⁴. A sum grows, its elements do not, and the
# smaller an element is compared with the sum, the more of its digits are lost. So the danger is **one sum of very many
# elements**. With one atomic addition per element, `out` is such a sum.
#
# The next cell runs the rungs on your machine, on 2¹⁸ numbers around 10,000. Many measurements are far from 0:
# temperatures, prices, times. Each thread adds 10,000 / 2¹⁸ ≈ 0.038 to a sum that grows to 10,000, where neighbouring
# float32 numbers are 0.001 apart. Nearly all elements are rounded the same way. Predict the order of magnitude of the
# relative error of **atomics**.

# %%
prediction = ...  # relative error of atomics, a power of ten

# %%
far_from_zero = torch.randn(2**18, generator=torch.Generator().manual_seed(1)).to(device) + 10_000
errors = compare_rungs(far_from_zero)
compare(prediction, errors.error("atomics"), within=10)

# %%
errors

# %% [markdown]
# The fewer values are added to one float32, the smaller the error, as a rule: 262,144 elements in atomics, 8,192 warps
# in shuffles, 1,024 blocks in the tree. Errors of a few roundings are partly luck, so *tree* and *shuffles* may change
# places. The grid-stride loop has no long sum anywhere. So speed and accuracy need the same thing: many short sums.
#
# The next table is for 2²⁴ such numbers, in billionths (ppb). One rounding of float32 is a relative error of up
# to 6e-8, or 60 of them.

# %%
recorded("reductions", "error_ppb")

# %% [markdown]
# Here **atomics** loses a tenth of the mean. Each element adds itself divided by 2²⁴, some 0.0006. From 4,096 to 8,192,
# neighbouring float32 numbers are 0.0005 apart. So each addition is rounded to one such step, **whichever element it
# was**, and nearly a fifth of it is lost. From 2,048 to 4,096 the loss is the same: two steps of half that size.
#
# That is why the order hardly mattered, and 50 launches gave so few results: nearly the same wrong one each time. The
# tree adds sums of 256 elements. Some of these are rounded up and some down. So its results vary more with the order,
# and are far better. A result that repeats need not be right.

# %% [markdown]
# The exercise also adds in `double`, with 53 binary digits. On an H200 doubles are half as fast as floats, which is
# still far faster than memory. On consumer GPUs, and on some for data centres, they are 32 or 64 times slower: there,
# add four floats in float and only their sum in double.

# %% [markdown]
# ## Finish in the last block
#
# The second launch takes time, which matters if the vector is small. One launch can do it all. Each block stores its
# sum and then draws a **ticket**: it adds 1 to a counter, atomically, and gets the counter's old value. The block with
# the last ticket knows that all others have stored their sums, and adds them.
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
# - **`__threadfence()`**: all blocks see the writes before it before they see the writes after it. Without it a block
#   might see the ticket first, and the last block would read an old sum.
# - **`atomicInc(&ticket, m)`** adds 1, but goes from `m` back to 0. So the last block leaves a 0 for the next launch.
#   `&ticket` is the address of `ticket`.
# - **`last`** is in shared memory: after the barrier all threads of the block have it.
# - **`partials` and `ticket`** are marked `__device__`, outside of any kernel: they are in the GPU's memory as long as
#   the library is loaded, and start as 0. All launches use the same ones, so launches must not overlap. On one stream
#   they never do.
#
# No block waits for another: waiting for a block that has not started could take forever. And the sum is deterministic:
# whichever block is last, it adds `partials` in the same order.

# %% [markdown]
# ## Exercise: reduce to a mean
#
# Write the mean of `x` into `out`. `x` is a contiguous vector of `n` float32, `n` at least 1; `out` is one float32.
# Both start at an address that is a multiple of 512, so loads of 16 bytes from the start of `x` are allowed. `n` may
# be a prime, and the elements may be far from 0. Before the launch `out` holds NaN.
#
# 1. `thread_sum`: a grid-stride loop over float4, several loads in flight, and the elements that are left over, three
#    at most. *(about 10 lines)*
# 2. `block_sum`: shuffles, shared memory, a barrier, shuffles. *(about 8 lines)*
# 3. The last block adds the elements of `partials`, which may be more than it has threads. One thread writes the mean.
#    *(4 lines)*
# 4. The number of blocks: several for each of the `sm_count(x.device)` SMs, but no more than there is work for. A
#    block loads 1,024 elements at a time: 256 threads with one `float4` each. There is always at least one block.
#    *(1 line, in Python)*
#
# A function marked `__device__` is called from kernels; it may declare `__shared__` arrays. `__shfl_down_sync` takes
# doubles, too.
#
# Start with the simplest correct version: a loop over single floats, and one block. `blocks` is 1 already, so delete the
# line that raises `NotImplementedError`. Then take one step after the other, and `check` after each.

# %% nbgrader={"grade_id": "mean_cuda", "solution": true}
import ctypes
from functools import cache

import torch
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#define THREADS 256
#define MOST_BLOCKS 4096  // no launch may have more

__device__ double partials[MOST_BLOCKS];  // the sums of the blocks; each launch writes them again
__device__ unsigned int ticket;  // how many blocks are done; the last one sets it back to 0

// The sum of the values of a block's threads. Only thread 0 needs the result.
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
# Correct before fast. `check` builds the text of the cell above in a separate process. Some of its vectors are all 1:
# their mean shows what share of the elements you have counted. If you get a `NameError`, run the exercise's cell
# first.

# %% nbgrader={"grade_id": "check-mean_cuda", "grade": true, "locked": true, "points": 5}
check(mean_cuda)

# %% [markdown]
# Now launch it yourself. The mean of 0, 1, … 999 is 499.5.

# %%
x, out = torch.arange(1000.0, device=device), torch.zeros(1, device=device)
try:
    mean_cuda(x, out)
except NotImplementedError as stub:
    print(stub)
out

# %% [markdown]
# ## How fast is it?
#
# ⟦ gate("mean_cuda", "torch").points ⟧ of ⟦ exercise("mean_cuda").max_points ⟧ points are for reaching
# ⟦ gate("mean_cuda", "torch").at_least ⟧ of the speed of `torch.mean` at
# ⟦ gate("mean_cuda", "torch").cases | join(", ") ⟧ (on a faster GPU the vector is longer). `torch.mean` is written
# for every shape, type and set of dimensions, and it is good. But like you, it cannot read faster than memory delivers.
#
# `torch.mean` uses several blocks only if each thread of one block would have at least 256 elements. At 65,536
# elements it runs a single block of 512 threads. Predict: how many times as fast as `torch.mean` is the authors' kernel
# there?

# %%
prediction = ...  # torch.mean's time divided by the kernel's

# %%
shares = recorded("mean_cuda", "ratio_vs_torch", "share_of_copy", "bandwidth_gbps")
compare(prediction, shares.value("ratio_vs_torch", "65,536 elements"), "times as fast", how="recorded", within=2)
shares

# %% [markdown]
# A share of a copy above 1 is possible: half of a copy's bytes are writes, and reading alone can be a little faster.
#
# With its single block, `torch.mean` takes longer for 65,536 elements than for four times as many. Now measure yours:

# %%
benchmark(mean_cuda)

# %% [markdown]
# The plot has a third curve, `torch.compile`: the kernels that PyTorch's compiler generates for a mean. For small
# vectors, do not compare it with the others if your CPU is slow or busy: a call of a compiled function takes it longer.
#
# **Small vectors** take little more than the time of a launch: that is why one launch is better than two.
#
# **Large vectors** are limited by memory. If yours is slower, ask: are 16 bytes loaded at a time? Are several loads in
# flight before the first is used? Are there enough blocks, and not many times more than can run at once? Does each
# thread do about as much as the others?
#
# ### The last ten per cent
#
# Vectors of one to 64 million elements can still gain. A faster kernel for them differs in two ways. Its blocks take
# contiguous *pieces* of 512 × 4 `float4`, and it loads them with `__ldcs`. This function marks the lines that it brings
# into the L2 cache as the first to be replaced, because no element is read twice. So the vector does not displace lines
# that other kernels have written, which would then have to go to memory at once. The kernel was timed in the same run:

# %%
recorded("mean_cuda/fastest", "ratio_vs_torch", "ratio_vs_compile", "share_of_copy")

# %% [markdown]
# ## What you would use
#
# In production code, do not write a reduction yourself. **CUB**, which is part of the CUDA toolkit, has the tuned parts:
# with `#include <cub/cub.cuh>`, `cub::BlockReduce<double, 256>` does the work of `block_sum`, and
# `cub::DeviceReduce::Sum` reduces a whole array. **Cooperative groups** (`#include <cooperative_groups/reduce.h>`) have a
# `reduce` for warps. Try `BlockReduce` or this `reduce` in the exercise: `check` accepts both, with and without a GPU.
# You now know what they do inside, and what to do when they do not fit: for example, if you want to fuse a reduction with
# the work before it.

# %% [markdown]
# ## Extra credit
#
# No points, but each shows something. Change the exercise's cell, run it, and `check` it again, or
# `benchmark` it (with a GPU).
#
# 1. Make the threads' sums float32 instead of double. Does `check` accept it? Is it faster? Then let a single thread
#    add everything, in one float32. Which of the vectors notices?
#
# <details><summary>Answer</summary>
#
# `check` accepts many short float32 sums. Expect them to be hardly faster, because the kernel waits for memory, and
# measure it. One long sum fails on the vector with one very large element, where the others are lost, and on large
# vectors far from 0.
#
# </details>
#
# 2. Leave out the `__syncthreads()` in `block_sum`. What does the report say, and does it say so on a GPU as well?
#
# <details><summary>Answer</summary>
#
# Without a GPU it reports a race between the lanes that write the warps' sums and the first warp that reads them. On a
# GPU the result is wrong only if a warp is late, which may be rare.
#
# </details>
#
# 3. Let each block take its own piece of the vector, instead of stepping by the whole grid (lanes still side by side).
#    Is there a difference?
#
# <details><summary>Answer</summary>
#
# The loads are coalesced in both. With pieces, blocks read from places far apart, and the last piece may be shorter, so one
# block finishes early. `benchmark` shows whether that costs anything.
#
# </details>
#
# 4. The mean needs one pass. How many does the variance need, if the elements are far from 0?
#
# <details><summary>Answer</summary>
#
# One, with Welford's method: keep the number of elements, the mean and the sum of squared differences from it, and
# merge two such triples in the tree. The difference of the mean of squares and the squared mean loses all digits far
# from 0.
#
# </details>

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - replaced an atomic addition for each element by one for each warp, by one for each block, and by none
# - drawn a tree, counted the warps that work in each of its steps, and seen what happens without barriers
# - predicted what divergence costs
# - computed how many bytes must be in flight, and from that the number of blocks and the width of the loads
# - seen sums of float32 that depend on their order, and one that stops growing
# - let the last block finish, with a fence and a ticket, in one launch
# - written a mean, had it checked, and compared it with `torch.mean`
#
# ## Check yourself
#
# <details><summary>A kernel adds to <code>out</code> with <code>atomicAdd</code>, and the judge says that the result is NaN. What is the likeliest cause?</summary>
#
# The launcher did not set `out` to 0. It held NaN before the launch, and NaN plus anything is NaN.
#
# </details>
#
# <details><summary>A tree in shared memory over 1,024 threads: how many steps, and how many barriers?</summary>
#
# 10 steps, with a barrier before the first and one after each: 11 barriers. The last one is needed only if a different
# thread from the one that wrote the sum reads it.
#
# </details>
#
# <details><summary>Why is a grid-stride loop more accurate than an atomic addition for each element, although both are float32?</summary>
#
# Each thread's sum has few elements and stays small, and then sums of similar size are added. With atomics one float32
# gets all elements, and the larger it is, the more of each element is lost.
#
# </details>
#
# <details><summary>Two launches of the same kernel on the same data give results that differ in the last digit. Is that a bug?</summary>
#
# Not if it uses atomics on floats: their order varies, and each order rounds differently. If the bits must be the same,
# fix the order: sums in two stages.
#
# </details>
#
# <details><summary>Why does the block that draws the last ticket not have to wait for anybody?</summary>
#
# Each block stores its sum, passes a fence, and draws its ticket only then. So when the last ticket is drawn, all sums
# are stored.
#
# </details>
#
# ## Read on
#
# - [Optimizing Parallel Reduction in CUDA](https://developer.download.nvidia.com/assets/cuda/files/reduction.pdf) by
#   Mark Harris is the classic climb, in seven steps.
# - [Faster Parallel Reductions on Kepler](https://developer.nvidia.com/blog/faster-parallel-reductions-kepler/)
#   introduces the shuffles that replaced its last steps.
# - [CUB](https://nvidia.github.io/cccl/cub/) is the library to use: reductions, scans and sorts for warps, blocks and
#   whole arrays.
#
# **Next:** [Make it an operator](04_make_it_an_operator.ipynb), where PyTorch learns to differentiate a kernel of
# yours. Or go back to the [syllabus](../README.ipynb).
