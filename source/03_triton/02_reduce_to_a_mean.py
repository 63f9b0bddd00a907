# %% [markdown]
# # Reduce to a mean in Triton
#
# **You will** write the mean of a vector in Triton: many numbers in, one number out, as fast as memory delivers them.
#
# **You will learn**
#
# - what `tl.sum` compiles to, and how it differs from a loop over elements
# - why a "mean kernel" found in lecture notes computes no mean, and keeps 128 threads busy with the work of one
# - to reduce in two stages, because programs cannot wait for each other
# - to let a program compute block after block, and how many programs are enough
# - what the order of additions does to a sum of float32
#
# **You need** about 90 minutes and [Add two vectors](01_add_vectors.ipynb). With an NVIDIA GPU you measure speed as
# well. Without one, your kernel runs in Triton's interpreter, slowly; the report of `check` says what a simulator
# cannot see. Recorded speeds from another machine are shown in either case.
#
# [Chapter 2](../02_load_inline/03_reduce_to_a_mean.ipynb) has the same task in CUDA C++. You do not need it here. If
# you know it, watch for what Triton does for you.

# %%
from grader import benchmark, check, device
from grader.explore import compare, count_instructions, draw_stages
from grader.explore import memory_instructions, partial_bytes, recorded

device

# %%
import numpy as np
import torch
import triton
import triton.language as tl

# %% [markdown]
# ## One element at a time
#
# Some lecture notes present a kernel like the next one as "the mean in Triton". A program loads the elements of its
# block one by one, in a loop.

# %%
@triton.jit
def element_kernel(x_ptr, sums_ptr, n, BLOCK: tl.constexpr):
    first = tl.program_id(0) * BLOCK
    total = 0.0
    for i in range(first, tl.minimum(first + BLOCK, n)):
        total += tl.load(x_ptr + i)
    tl.store(sums_ptr + tl.program_id(0), total / n)


# %% [markdown]
# It is launched with one program per block of 1,024 elements. Predict: for a vector of 2,000 elements, how many numbers
# does it write?

# %%
prediction = ...  # numbers written

# %%
x = torch.randn(2000, device=device) + 3
parts = torch.empty(triton.cdiv(2000, 1024), device=device)
element_kernel[(parts.numel(),)](x, parts, 2000, BLOCK=1024)
compare(prediction, parts.numel(), "numbers")
parts

# %% [markdown]
# That is not a mean. It is one part of the mean per program, and these parts must still be added. The lecture notes do
# that with `parts.sum()`: they call the library's reduction in order to write a reduction.
#
# And it is slow. `i` is a number here, not a block, so `tl.load` loads **one** element. All 128 threads of a program
# load this one element, and all of them add it to the same sum. Then they load the next one.
#
# Each addition needs the sum before it. Predict: in a full block of 1,024, how many additions does a thread do in
# sequence?

# %%
prediction = ...  # additions in sequence

# %%
types = {"x_ptr": "*fp32", "sums_ptr": "*fp32", "n": "i32"}
aligned = ("x_ptr", "sums_ptr", "n")
compare(prediction, 1024, "additions", how="computed")
memory_instructions(element_kernel, types, {"BLOCK": 1024}, aligned)

# %% [markdown]
# This is what the compiler generated for an H100 or H200: one load of 4 bytes, inside a loop that runs 1,024 times.

# %% [markdown]
# ## A block at once
#
# `tl.sum` reduces a block to a number. Here is the same stage in blocks. The divisor is an argument; you will soon
# see why.

# %%
@triton.jit
def block_kernel(x_ptr, sums_ptr, n, divisor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(sums_ptr + tl.program_id(0), tl.sum(x, axis=0) / divisor)


# %% [markdown]
# - **`other=0.0`** is the value of masked elements. They are part of the sum, so it must be a value that does not
#   change a sum.
# - **The 128 threads share the work.** Each adds 8 of the 1,024 elements.
# - **Then the threads combine their sums.** Within a **warp**, 32 threads that run together, they read each other's
#   registers with a **shuffle**. Each step halves the number of sums, so a warp needs 5 steps. The sums of the 4 warps
#   are combined through shared memory, with a **barrier**, in 2 more steps.
#
# Predict: how many additions does a thread do in sequence now?

# %%
prediction = ...  # additions in sequence

# %%
found = count_instructions(
    block_kernel, types | {"divisor": "i32"}, {"BLOCK": 1024}, ("add.f32", "shfl.sync", "bar.sync"), aligned
)
compare(prediction, found["add.f32"], "additions")
found

# %% [markdown]
# There are seven additions for 8 elements, and one after each of the 7 shuffles. `bar.sync` is the barrier; how many
# there are depends on the version of Triton. You wrote none of this. In CUDA C++ it is a page of code, in which a
# missing barrier occasionally gives wrong sums.
#
# The loads are wide, too:

# %%
memory_instructions(block_kernel, types | {"divisor": "i32"}, {"BLOCK": 1024}, aligned)

# %% [markdown]
# ## Programs cannot wait for each other
#
# Each program now has a sum. How can they be combined? Let each program add its own to `out`: load, add, store.

# %%
@triton.jit
def racing_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr, tl.load(out_ptr) + tl.sum(x, axis=0) / n)


# %% [markdown]
# Take 65,536 ones and 64 programs. `out` starts at 0. Predict the mean on your machine. The first cell printed `cuda`
# if you have a GPU.

# %%
prediction = ...  # the mean of ones

# %%
ones = torch.ones(65_536, device=device)
out = torch.zeros(1, device=device)
racing_kernel[(64,)](ones, out, 65_536, BLOCK=1024)
compare(prediction, out.item())

# %% [markdown]
# Without a GPU it is 1, as it should be, because the interpreter runs one program after the other. On a GPU, programs
# run at the same time. Between a program's load and its store, other programs store, and their sums are lost: this is a
# **race**. The result is hardly ever 1, is often one program's share, 1/64, and may differ from run to run.
#
# There are two solutions:
#
# - **`tl.atomic_add(out_ptr, value)`** loads, adds and stores in one step that cannot be interrupted. `out` must be
#   set to 0 first. The programs add in the order in which they finish.
# - **Two stages.** Each program stores its sum at a place of its own. When all are done, one more program adds these
#   sums. Nothing has to be set to 0 first, and the order is fixed.
#
# Why not let one of the programs wait for the others? There may be more programs than the GPU runs at a time. If those
# that run wait for one that has not started, they wait forever. But launches go into a queue, called a *stream*, where
# each waits until the launch before it is done. So the second stage is a second launch, and the same kernel can do it:

# %%
def two_stages(x, block=1024):
    n = x.numel()
    programs = triton.cdiv(n, block)
    sums, out = torch.empty(programs, device=x.device), torch.empty(1, device=x.device)
    block_kernel[(programs,)](x, sums, n, 1, BLOCK=block)
    block_kernel[(1,)](sums, out, programs, n, BLOCK=triton.next_power_of_2(programs))
    return out.item()


two_stages(ones)

# %% [markdown]
# The first launch divides by 1, the second by `n`. The second launch is one program, whose block must hold all the
# sums. The length of a block is a power of two, so `triton.next_power_of_2` rounds up.

# %% [markdown]
# ## What the second stage costs
#
# Take 2²⁶ elements, 256 MiB. In blocks of 1,024 there are 65,536 programs. Each of their sums is written once and read
# once, which makes the bytes of the second stage negligible:

# %%
n = 2**26
print(f"{partial_bytes(n // 1024) / (4 * n):.2%} of the bytes of x")

# %% [markdown]
# But **one** program reads all these sums, and it runs on one SM. Suppose that an SM gets its share of the bandwidth: on
# an H200, 1/132 of the 4,800 GB/s in its data sheet.
#
# Predict: how many µs does one SM take to read 65,536 sums?

# %%
prediction = ...  # µs

# %%
compare(prediction, 4 * 65_536 / (4800e9 / 132) * 1e6, "µs", how="computed")

# %% [markdown]
# Reading a thousandth of the bytes takes an eighth of the time that all SMs together need for `x`, because 131 SMs are
# idle. So we want fewer partial sums: fewer programs that each do more.

# %% [markdown]
# ## Block after block
#
# Let the number of programs be fixed. A program starts with its own block. Then it skips ahead by as many blocks as
# there are programs.

# %%
draw_stages(n=43, block_size=4, programs=4)

# %% [markdown]
# Change the three numbers and draw again. Is every element read once, whatever they are?
#
# In a kernel, `tl.num_programs(0)` is the number of programs, and a loop may run over numbers that the GPU computes:
#
# ```python
# for start in range(first, n, step):
#     ...
# ```
#
# In that loop, keep not a number but a **block of sums**, `tl.zeros((BLOCK,), tl.float32)`. Each round adds a block of
# elements to it, element by element. No thread needs another one's value, so the loop has no shuffle and no barrier.
# `tl.sum` comes once, after the loop.

# %% [markdown]
# ### How many programs?
#
# Memory takes about 700 ns to answer, its **latency**. To keep it busy, you need as many bytes **in flight** as it
# delivers in that time: bandwidth × latency, which is **Little's law**. A bandwidth of 4,800 GB/s is 4,800 bytes per
# nanosecond.
#
# Suppose that a program requests a whole block of 4,096 elements, and then waits for it. Predict: how many programs
# must run at the same time?

# %%
prediction = ...  # programs with 4,096 elements in flight

# %%
compare(prediction, 4800 * 700 / (4 * 4096), "programs", how="computed")

# %% [markdown]
# An H200 has 132 SMs, so that is not even two per SM. But while a program adds, it requests nothing, and then another
# program on its SM should. So use several programs per SM. How many fit at the same time depends on their threads and
# registers; the share of an SM's threads that is in use is the **occupancy**. More programs than fit gain nothing. They
# only make more partial sums.
#
# A large block needs more threads, too: with 128 threads, each would hold 32 of the 4,096 elements. `num_warps=8` in
# the launch gives a program 256 threads instead.

# %% [markdown]
# ## Exercise: reduce to a mean
#
# Write the mean of `x` into `out`. `x` is a contiguous vector of `n` float32 elements, with `n` at least 1. `out` is a
# vector of one float32. `n` may be a prime, and the elements may be far from 0. Before the launch `out` holds NaN, so
# store to it and do not add to it.
#
# 1. The kernel: the loop over blocks with a block of sums, then one sum, divided, stored at the program's own place.
#    *(about 6 lines)*
# 2. The launches: several programs for each of the `sm_count(x.device)` SMs, but not more than there are blocks; then
#    one program that adds their sums. *(about 4 lines)*
#
# `scratch(x.device, size)` returns a float32 buffer that is allocated once and kept, because allocating at each call
# takes time. Its contents are arbitrary.

# %% nbgrader={"grade_id": "mean_triton", "solution": true}
from functools import cache

import torch
import triton
import triton.language as tl


@triton.jit
def sums_kernel(x_ptr, sums_ptr, n, divisor, BLOCK_SIZE: tl.constexpr):
    ### BEGIN SOLUTION
    i = tl.arange(0, BLOCK_SIZE)
    sums = tl.zeros((BLOCK_SIZE,), tl.float32)
    for start in range(tl.program_id(0) * BLOCK_SIZE, n, tl.num_programs(0) * BLOCK_SIZE):
        sums += tl.load(x_ptr + start + i, mask=start + i < n, other=0.0)  # reads n in all
    tl.store(sums_ptr + tl.program_id(0), tl.sum(sums, axis=0) / divisor)  # writes one number per program
    ### END SOLUTION


@cache
def sm_count(device):
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4


@cache
def scratch(device, size):
    return torch.empty(size, device=device)


def mean_triton(x, out):
    ### BEGIN SOLUTION
    n, block_size = x.numel(), 4096
    programs = min(8 * sm_count(x.device), triton.cdiv(n, block_size))
    sums = scratch(x.device, programs)
    sums_kernel[(programs,)](x, sums, n, 1, BLOCK_SIZE=block_size, num_warps=8)
    sums_kernel[(1,)](sums, out, programs, n, BLOCK_SIZE=1024)
    ### END SOLUTION


# %% [markdown]
# First make it correct, then fast. Some of the vectors in `check` consist of ones: their mean is the share of the
# elements that your kernel has counted.

# %% nbgrader={"grade_id": "check-mean_triton", "grade": true, "locked": true, "points": 5}
check(mean_triton)

# %% [markdown]
# When `check` passes, launch your kernel yourself. The mean of 0, 1, … 4,095 is 2,047.5.

# %%
x, out = torch.arange(4096.0, device=device), torch.zeros(1, device=device)
try:
    mean_triton(x, out)
except NotImplementedError as stub:
    print(stub)
out

# %% [markdown]
# ## How fast is it?
#
# ⟦ gate("mean_triton", "torch").points ⟧ of ⟦ exercise("mean_triton").max_points ⟧ points are for reaching
# ⟦ gate("mean_triton", "torch").at_least ⟧ of the speed of `torch.mean` at
# ⟦ gate("mean_triton", "torch").cases | join(", ") ⟧. On a faster GPU the vector is longer. `torch.mean` is written for
# every shape, type and set of dimensions, and it is good. But it cannot read faster than memory delivers, either.
#
# Predict: how many times as fast as `torch.mean` was the authors' kernel at 67,108,864 elements, on an H200?

# %%
prediction = ...  # times as fast as torch.mean

# %%
found = recorded("mean_triton", "ratio_vs_torch").value("ratio_vs_torch", "67,108,864 elements")
compare(prediction, found, "times as fast", how="recorded")

# %%
benchmark(mean_triton)

# %% [markdown]
# These sizes were recorded for the authors' kernel:

# %%
recorded("means/sizes", "bandwidth_gbps").plot("{} elements", "elements")

# %% [markdown]
# Read your plot from the left:
#
# - **Small vectors** take hardly more time than their launches. You have two of them, and `torch.mean` is one operation. Still, at 16,384
#   elements the authors' kernel took
#   ⟦ recorded(bench="mean_triton", case="16,384 elements", metric="median_us", gpu="H200") ⟧ on an H200, and
#   `torch.mean` ⟦ recorded(bench="mean_triton/torch", case="16,384 elements", metric="median_us", gpu="H200") ⟧. That
#   is the time on the GPU, without the host's.
# - **Large vectors** are limited by memory, and the second launch is a small part of the time. The ratio comes close to
#   1.
# - **A ratio far from 1** for small vectors may come from the host, if it is slow or busy. At 65,536 elements it may
#   be real: `torch.mean` runs a single block there.
# - **If yours is behind:** is there a block of sums in the loop, or a `tl.sum` in every round? Does a program have
#   enough bytes in flight? Are there several programs per SM, and not thousands in all?
#
# These are other ways to do it, timed alternately on the same vector of 2²⁶ elements. In one, a single launch
# suffices: the last program to finish adds the sums. In another, each program does an atomic addition. The last
# column counts the different results of 50 launches on the same data.

# %%
recorded("means/ways", "ratio_vs_torch", "bandwidth_gbps", "different_results")

# %% [markdown]
# All but the last read `x` as fast as memory delivers, and differ by a few per cent. Atomic additions are about as
# fast, but their last digits change from run to run. Element by element is far behind, because of its chain of
# additions.
#
# ### The last ten per cent
#
# Small vectors gain most from a single launch, and a hint to the cache also helps them. A load with
# `eviction_policy="evict_first"` marks the lines that it brings into the L2 cache as the first to be replaced. The
# vector then displaces its own lines. Without the hint it displaces lines that other kernels have written, and those
# must first be written back to memory. Vectors larger than the cache displace everything anyway, and are better off
# without the hint. With the single launch and the hint together:

# %%
recorded("mean_triton/fastest", "ratio_vs_torch", "ratio_vs_compile", "share_of_copy")

# %% [markdown]
# ### Which grid, which block?
#
# These plots were recorded for the authors' kernel, with 1 to 16 programs per SM, four block lengths and 4 to 16
# warps. Before you look, predict: what is the best number of programs per SM for a block of 4,096 with 8 warps? An SM
# has room for 2,048 threads.

# %%
prediction = ...  # programs per SM

# %%
compare(prediction, 2048 // 256, "programs per SM", how="computed")
recorded("means/shapes", "bandwidth_gbps").plot("{} × 132 programs", "programs per SM", "block {}")

# %% [markdown]
# - **A block of 4,096 with 8 warps** gains with each step up to eight programs per SM, which fill it. Sixteen gain
#   nothing.
# - **With one program per SM, more warps help a large block.** From 4 to 16 warps, a block of 4,096 gains a factor of
#   2.5. A block of 1,024 gains little, because it has too few bytes in flight.
# - **A block of 16,384 with 8 warps is slow,** whatever the grid. A thread then holds 64 sums and needs about 100
#   registers, so only two programs fit on an SM. With 16 warps it holds half as many, and the same block is fast.

# %% [markdown]
# ## The order of additions
#
# Each float32 addition is rounded, and the loss depends on the order. In two stages, the block and the grid fix the
# order. The same launch gives the same bits each time: it is **deterministic**. With atomics it is not.
#
# But a different block is a different order. Below are 2¹⁶ numbers. Predict: how many **different** means do six block
# sizes give?

# %%
prediction = ...  # different means, of 6

# %%
x = torch.randn(2**16, device=device)
means = [two_stages(x, block) for block in (256, 512, 1024, 2048, 4096, 8192)]
compare(prediction, len(set(means)), "means")
print(*(f"{mean:.12f}" for mean in means), f"{x.double().mean().item():.12f} in float64", sep="\n")

# %% [markdown]
# None of them is wrong. They differ at most in the last digits of a float32. Your number of programs depends on the
# number of SMs, so your kernel gives the same bits on the same GPU, and perhaps different ones on another.
#
# ### What a running sum loses
#
# A sum grows, but its elements do not. The smaller an element is compared with the sum, the more of its digits are
# lost. So one float32 that adds everything, element after element, is the worst choice. In a block of sums, each adds a
# small part, and then sums of similar size are added.
#
# `error(sums)` adds 2²⁰ numbers around 10,000 with that many sums, and returns the relative error. A single rounding is
# a relative error of up to 6e-8.
#
# With one sum, it ends near 10¹⁰. There, float32 numbers are 1,024 apart, so what is added instead of each 10,000?
# Predict: how large is the error in the end?

# %%
prediction = ...  # relative error with one sum, such as 1e-7

# %%
values = (np.random.default_rng(0).standard_normal(2**20) + 10_000).astype(np.float32)


def error(sums):
    each = np.cumsum(values.reshape(-1, sums), axis=0)[-1]  # each sum adds one value after the other
    return abs(each.sum() / values.sum(dtype=np.float64) - 1)  # then the sums are added in pairs


compare(prediction, error(1))

# %%
{sums: f"{error(sums):.1e}" for sums in (1, 32, 1024, 8192)}

# %% [markdown]
# From 4.3 · 10⁹ on, each 10,000 is added as 10,240: first as 20 · 512, then as 10 · 1,024. That is 2.4 % too much.
# Before that, an addition is off by about 0.16 % at most. Together that makes 1.4 %.
#
# The same thing makes the kernel fast and accurate: many short sums that do not wait for each other.

# %% [markdown]
# ## Extra credit
#
# No points, but each of these shows something. Change the exercise's cell, run it, and `check` it again, or `benchmark`
# it (with a GPU).
#
# 1. Put `tl.sum` into the loop, and keep a number instead of a block. What does that cost?
#
# <details><summary>Answer</summary>
#
# Shuffles and barriers in each round, during which the program has nothing in flight. More programs per SM may hide part
# of it: try the grid with fewer and with more.
#
# </details>
#
# 2. Save the second launch: each program stores its sum, then draws a *ticket*, `tl.atomic_add(ticket_ptr, 1)`, which
#    returns the old value. The program with the last ticket adds all sums, and sets the ticket back to 0. Why does no
#    program wait here? Is the result still deterministic?
#
# <details><summary>Answer</summary>
#
# Each program finishes at once, except the last, and all others are done by then. The last program adds the sums in a
# fixed order, so the result is deterministic, whichever program it is.
#
# </details>
#
# 3. Let `x` be float16, and keep the sums in float32. What is the least time now?
#
# <details><summary>Answer</summary>
#
# Half: the kernel is memory-bound, and there are half as many bytes.
#
# </details>

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - taken apart a kernel that adds element by element: it computes parts of a mean, and 128 threads do the work of one
# - read from the compiled code what `tl.sum` is: additions, shuffles, barriers
# - seen a race that the interpreter cannot show, and avoided it with two stages
# - counted what partial sums cost: hardly any bytes, but one SM's time
# - computed how many bytes must be in flight to keep the memory busy
# - written a mean in Triton, had it checked, and measured it against `torch.mean`
# - seen that the block and the grid fix the order of additions, and that the order decides the last digits
#
# ## Check yourself
#
# <details><summary>Why does <code>tl.load(x_ptr + i)</code> use one thread's worth of bandwidth, if <code>i</code> is a number?</summary>
#
# `i` is one number, so one element is loaded. All threads of the program load the same 4 bytes, and the next load waits
# for the next round of the loop.
#
# </details>
#
# <details><summary>Programs add to <code>out</code> with <code>tl.load</code> and <code>tl.store</code>, and the mean is right without a GPU. Is the kernel right?</summary>
#
# No. The interpreter runs one program after the other, so nothing happens between load and store. On a GPU it is a
# race.
#
# </details>
#
# <details><summary>Why is the second stage a launch of its own, and not a wait at the end of the first?</summary>
#
# Not all programs run at the same time. A program that waits for one that has not started could wait forever. A launch
# starts when the one before it in the stream is done.
#
# </details>
#
# <details><summary>A block of sums has 4,096 elements, and there are 1,056 programs. How many elements does each sum add, for 2²⁶ elements?</summary>
#
# 2²⁶ / (1,056 · 4,096) = 15.5, so 15 or 16. The sum stays small, and loses little.
#
# </details>
#
# <details><summary>The same kernel gives a different last digit on another GPU. Is that a bug?</summary>
#
# No. The number of programs follows the number of SMs, so the order of additions differs. On one GPU the result is
# always the same.
#
# </details>
#
# ## Read on
#
# - [`triton.language`](https://triton-lang.org/main/python-api/triton.language.html): all reductions, scans and atomics
# - [Optimizing parallel reduction in CUDA](https://developer.download.nvidia.com/assets/cuda/files/reduction.pdf)
#   (Harris), the classic slides on what `tl.sum` does for you
# - [GPU MODE's lectures](https://github.com/gpu-mode/lectures); number 14 is a practitioner's guide to Triton
#
# **Next:** [Fuse a softmax](03_fuse_a_softmax.ipynb), where `tl.sum` and `tl.max` work on rows, and one trip to memory
# replaces many. Or go back to the [syllabus](../README.ipynb).
