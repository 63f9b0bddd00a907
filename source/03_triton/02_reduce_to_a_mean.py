# %% [markdown]
# # Reduce to a mean in Triton
#
# **You will** write the mean of a vector in Triton: many numbers in, one number out, at the speed of memory.
#
# **You will learn**
#
# - what `tl.sum` makes of a block, and what a loop over elements makes of it
# - why a kernel for the mean that circulates computes no mean, and does the work of one thread with 128
# - to reduce in two stages, because programs cannot wait for each other
# - to let a program take block after block, and how many programs are enough
# - what the order of additions does to a sum of float32
#
# **You need** about 60 minutes and [Add two vectors](01_add_vectors.ipynb). With an NVIDIA GPU you measure speed as
# well. Without one your kernel runs in Triton's interpreter, slowly: `check` finds most errors there, and its report
# says what a simulator cannot see. Speed is then shown as it was recorded on another machine.
#
# The same task in CUDA C++ is [a notebook of chapter 2](../02_load_inline/03_reduce_to_a_mean.ipynb). You do not need
# it here, but if you know it: watch for what Triton now does for you.

# %%
from grader import benchmark, check, device
from grader.explore import compare, count_instructions, draw_partial_traffic, draw_stages
from grader.explore import memory_instructions, partial_bytes, recorded

device

# %%
import numpy as np
import torch
import triton
import triton.language as tl

# %% [markdown]
# ## One element after the other
#
# A kernel like the next one circulates in lecture notes, as "the mean in Triton". A program takes the elements of its
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
# It is launched with a program for each block of 1,024 elements. Predict: for a vector of 2,000 elements, how many
# numbers does it write?

# %%
prediction = ...  # numbers written

# %%
x = torch.randn(2000, device=device) + 3
parts = torch.empty(triton.cdiv(2000, 1024), device=device)
element_kernel[(parts.numel(),)](x, parts, 2000, BLOCK=1024)
compare(prediction, parts.numel(), "numbers")
parts

# %% [markdown]
# That is not a mean. It is a part of the mean for each program, and somebody must add the parts. The code that
# circulates does so with `parts.sum()`: it calls the library's reduction in order to write a reduction. (It also
# reads and writes memory once more, and starts one more kernel.)
#
# And it is slow. `i` is a number here, not a block, so `tl.load` fetches **one** element. A program has 128 threads.
# All of them fetch this one element, and all of them add it to the same sum. Then comes the next.
#
# Each addition needs the sum from before. Predict: in a full block of 1,024, how many additions does a thread do one
# after the other?

# %%
prediction = ...  # additions, one after the other

# %%
types = {"x_ptr": "*fp32", "sums_ptr": "*fp32", "n": "i32"}
aligned = ("x_ptr", "sums_ptr", "n")
compare(prediction, 1024, "additions", how="computed")
memory_instructions(element_kernel, types, {"BLOCK": 1024}, aligned)

# %% [markdown]
# This is what the compiler made of it for an H100 or H200: one load of 4 bytes. It stands in a loop, and runs 1,024
# times.

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
# - **`other=0.0`** is what masked lanes hold. They are in the sum, so it must be a value that changes no sum.
# - **The 128 threads share the work.** Of a block of 1,024 each gets 8 elements, and adds them.
# - **Then the threads must meet.** Within a warp (32 threads that run together) they read each other's registers:
#   this is a *shuffle*. In each step half as many sums are left, so a warp needs 5. The sums of the 4 warps meet in
#   shared memory, with a barrier, and need 2 more.
#
# Predict: how many additions does a thread now do, one after the other?

# %%
prediction = ...  # additions, one after the other

# %%
found = count_instructions(
    block_kernel, types | {"divisor": "i32"}, {"BLOCK": 1024}, ("add.f32", "shfl.sync", "bar.sync"), aligned
)
compare(prediction, found["add.f32"], "additions")
found

# %% [markdown]
# Seven additions for 8 elements, and one after each of the 7 shuffles. `bar.sync` is the barrier, and there
# are two. You wrote none of it. In CUDA C++, this is a page of code in which a missing barrier gives wrong sums now and
# then.
#
# The loads are wide, too:

# %%
memory_instructions(block_kernel, types | {"divisor": "i32"}, {"BLOCK": 1024}, aligned)

# %% [markdown]
# ## Programs cannot wait for each other
#
# Each program now has a sum. How do these meet? Let each program add its own to `out`: load, add, store.

# %%
@triton.jit
def racing_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr, tl.load(out_ptr) + tl.sum(x, axis=0) / n)


# %% [markdown]
# Take 65,536 ones and 64 programs. `out` begins as 0. Predict: which mean comes out on your machine? (Above it is
# said whether you have a GPU.)

# %%
prediction = ...  # the mean of ones

# %%
ones = torch.ones(65_536, device=device)
out = torch.zeros(1, device=device)
racing_kernel[(64,)](ones, out, 65_536, BLOCK=1024)
compare(prediction, out.item())

# %% [markdown]
# Without a GPU it is 1, as it should be: the interpreter runs one program after the other. **This is a bug that it
# cannot show.** On a GPU programs run at the same time. Between a program's load and its store others store, and
# their sums are lost: this is a *race*. What comes out is hardly ever 1. Often it is just one program's share, 1/64. It
# may differ from run to run.
#
# There are two ways out:
#
# - **`tl.atomic_add(out_ptr, value)`** loads, adds and stores as one step that nothing comes between. `out` must be
#   0 before. The order of the additions is that in which the programs come.
# - **Two stages.** Each program stores its sum to a place of its own. When all are done, one more program adds these.
#   Nothing has to be 0 before, and the order is fixed.
#
# Why not have one of the programs wait for the others? There may be more programs than the GPU runs at a time. If
# those that run wait for one that has not begun, they wait for ever. But a *launch* waits until the launch before is
# done. So the second stage is a second launch, and the same kernel can do it:

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
# The second launch is one program, whose block must hold all the sums. A block has a power of two of lanes:
# `triton.next_power_of_2` rounds up.

# %% [markdown]
# The first launch divides by 1, the second by `n`.

# %% [markdown]
# ## What the second stage costs
#
# Take 2²⁶ elements, 256 MiB. In blocks of 1,024 there are 65,536 programs. Each of their sums is written once and
# read once. Predict: how many percent is that of the bytes of `x`?

# %%
prediction = ...  # percent of the bytes of x

# %%
n = 2**26
compare(prediction, 100 * partial_bytes(n // 1024) / (4 * n), "%", how="computed")

# %% [markdown]
# So the bytes do not matter:

# %%
draw_partial_traffic(n, {"one for each block of 1,024": n // 1024, "eight for each SM of an H200": 8 * 132})

# %% [markdown]
# But **one** program reads them all, and it runs on one SM. Say that an SM gets its share of the bandwidth: of
# 4,800 GB/s (an H200's, by its data sheet), a 132nd part. Predict: how many µs does one SM take to read 65,536 sums?
# (All SMs together read all of `x` in 56.)

# %%
prediction = ...  # µs

# %%
compare(prediction, 4 * 65_536 / (4800e9 / 132) * 1e6, "µs", how="computed")

# %% [markdown]
# While this one works, the other 131 have nothing to do. So there should be fewer partial sums: fewer programs, and
# each of them does more.

# %% [markdown]
# ## Block after block
#
# Let the number of programs be fixed. A program begins at its own block. When it is done with it, it goes on to the
# block that lies as many blocks further as there are programs.

# %%
draw_stages(n=43, block_size=4, programs=4)

# %% [markdown]
# Change the three numbers and draw again. Is every element read once, whatever they are?
#
# At any time, neighbouring programs read neighbouring blocks. Predict, with the numbers above: which element does
# program 1 begin with in round 2?

# %%
prediction = ...  # element

# %%
program, programs, block_size, number = 1, 4, 4, 2
compare(prediction, (number * programs + program) * block_size, how="computed")

# %% [markdown]
# In a kernel, `tl.num_programs(0)` is how many programs there are, and a loop may run over numbers that the GPU
# computes:
#
# ```python
# for start in range(first, n, step):
#     ...
# ```
#
# The best thing to keep in that loop is not a number but a **block of sums**, `tl.zeros((BLOCK,), tl.float32)`. Each
# round adds a block of elements to it, lane by lane. No thread needs another, so no shuffle and no barrier stands in
# the loop. `tl.sum` comes once, after it.

# %% [markdown]
# ### How many programs?
#
# Memory takes about 700 ns to answer (a round figure). To keep it busy, as many bytes must be under way as it
# delivers in that time. 4,800 GB/s are 4,800 bytes in each nanosecond. Say that a program asks for a whole block of
# 4,096 elements, and then waits for it. Predict: how many programs must run at the same time?

# %%
prediction = ...  # programs with 4,096 elements under way

# %%
compare(prediction, 4800 * 700 / (4 * 4096), "programs", how="computed")

# %% [markdown]
# An H200 has 132 SMs, so that is not even two for each. But while a program adds, it asks for nothing, and then another
# on its SM should. So take several for each SM. More than can run at a time bring nothing: they only make more partial
# sums. The grid and the block belong together: what counts is the bytes under way.
#
# A large block wants more threads, too: with 128 of them, each would hold 32 of the 4,096 elements. `num_warps=8` in
# the launch gives a program 8 warps, 256 threads, in place of the 4 that it has otherwise.
#
# This was recorded for the authors' kernel, over grid, block and warps:

# %%
recorded("means/shapes", "ratio_vs_torch", "bandwidth_gbps")

# %% [markdown]
# Three things to see:
#
# - **Follow the block of 4,096 with 8 warps.** Up to eight programs an SM each step gains, and sixteen gain nothing more.
#   An SM has room for 2,048 threads, and eight programs of 256 fill it.
# - **With one program an SM, warps count most.** With 16 warps a block of 4,096 reaches more than twice as much as one of
#   1,024. With 4 warps it gains next to nothing. (A block of 8,192 falls out of line. Why is not explained.)
# - **A block of 16,384 with 8 warps stays slow**, with two programs an SM or sixteen. A thread holds 64 sums, and takes so
#   many registers (about 100, says the compiler) that only two programs fit on an SM. Two would be enough, if their
#   whole blocks were under way. Probably they are not: with registers full of sums a thread loads a little, adds it, and
#   loads again. With 16 warps it holds half as many sums, and the same block is fast.

# %% [markdown]
# ## The order of additions
#
# Each addition of float32 is rounded, and what is lost depends on the order. In two stages the order is fixed by the
# shape: which elements a lane adds, which lanes meet, which programs meet. Run the same shape twice, and you get the
# same bits: this is *deterministic*. With atomics it is not.
#
# But another shape is another order. Below are 2¹⁶ numbers. Predict: how many **different** means do the six sizes of
# blocks give?

# %%
prediction = ...  # different means, of 6

# %%
x = torch.randn(2**16, device=device)
means = [two_stages(x, block) for block in (256, 512, 1024, 2048, 4096, 8192)]
compare(prediction, len(set(means)), "means")
print(*(f"{mean:.12f}" for mean in means), f"{x.double().mean().item():.12f} in float64", sep="\n")

# %% [markdown]
# None of them is wrong. They differ in the last digits that a float32 has, if at all.
#
# Your number of programs will depend on the number of SMs. So your kernel gives the same bits on the same GPU, and
# perhaps others on another.
#
# ### What a running sum loses
#
# A sum grows, its elements do not. The smaller an element is beside the sum, the more of its digits are lost. So a
# single float32 that takes in everything, one after the other, is the worst that you can do. A block of sums takes
# in a small part each, and then sums of like size meet.
#
# `error(lanes)` adds 2²⁰ numbers around 10,000, shared among so many lanes, and returns the relative error. One rounding
# is a relative error of up to 6e-8.
#
# With one lane the sum ends near 10¹⁰. There the float32 numbers lie 1,024 apart, so what is added in place of each
# 10,000? Predict: how large is the error in the end?

# %%
prediction = ...  # relative error with one lane, such as 1e-7

# %%
values = (np.random.default_rng(0).standard_normal(2**20) + 10_000).astype(np.float32)


def error(lanes):
    of_lane = np.cumsum(values.reshape(-1, lanes), axis=0)[-1]  # each lane adds one value after the other
    return abs(of_lane.sum() / values.sum(dtype=np.float64) - 1)  # then pairs of lanes meet


compare(prediction, error(1))

# %%
{lanes: f"{error(lanes):.1e}" for lanes in (1, 32, 1024, 8192)}

# %% [markdown]
# With one lane, each 10,000 is added as 10 · 1,024 near the end: 2.4 % too much. Earlier, while the sum is small, it is
# less.
#
# What makes the kernel fast makes it accurate, too: many short sums that do not wait for each other.
#
# (The element-by-element kernel has a running sum as well, if one of 1,024 elements only.)

# %% [markdown]
# ## Exercise: reduce to a mean
#
# Write the mean of `x` into `out`. `x` is a contiguous vector of `n` float32, `n` at least 1; `out` is a vector of one
# float32. `n` may be a prime, and the elements may lie far from 0. Before the launch `out`
# holds NaN: store to it, and do not add to it.
#
# 1. The kernel: the loop over blocks with a block of sums, then one sum, divided, to the program's own place.
#    *(about 6 lines)*
# 2. The launches: several programs for each of the `sm_count(x.device)` SMs, but no more than there are blocks; then
#    one program that adds what they found. *(about 4 lines)*
#
# `scratch(x.device, size)` gives a buffer of float32 that is made once and kept. Making one at every call takes time,
# and what lies in it is not 0 either way.

# %% nbgrader={"grade_id": "mean_triton", "solution": true}
from functools import cache

import torch
import triton
import triton.language as tl


@triton.jit
def sums_kernel(x_ptr, sums_ptr, n, divisor, BLOCK_SIZE: tl.constexpr):
    ### BEGIN SOLUTION
    lane = tl.arange(0, BLOCK_SIZE)
    sums = tl.zeros((BLOCK_SIZE,), tl.float32)
    for start in range(tl.program_id(0) * BLOCK_SIZE, n, tl.num_programs(0) * BLOCK_SIZE):
        sums += tl.load(x_ptr + start + lane, mask=start + lane < n, other=0.0)  # reads n in all
    tl.store(sums_ptr + tl.program_id(0), tl.sum(sums, axis=0) / divisor)  # writes a number for each program
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
# Correct before fast. `check` runs the cell above in a process of its own. Among its vectors are some whose elements
# are all 1: their mean says which share of the elements you have counted. A `NameError`? Run the exercise's cell
# first.

# %% nbgrader={"grade_id": "check-mean_triton", "grade": true, "locked": true, "points": 5}
check(mean_triton)

# %% [markdown]
# ## How fast is it?
#
# ⟦ gate("mean_triton", "torch").points ⟧ of ⟦ exercise("mean_triton").max_points ⟧ points are for reaching
# ⟦ gate("mean_triton", "torch").at_least ⟧ of the speed of `torch.mean` at
# ⟦ gate("mean_triton", "torch").cases | join(", ") ⟧ (on a faster GPU the vector is longer). `torch.mean` is written
# for every shape, type and set of dimensions, and it is good. But like you, it cannot read faster than memory delivers.
#
# Predict: which share of its speed does your kernel reach? Write 0.5 for half.

# %%
prediction = ...  # torch.mean's time divided by yours

# %%
benchmark(mean_triton)

# %% [markdown]
# Hold your prediction against the report. And this is what was recorded of the authors' kernel, over sizes:

# %%
recorded("means/sizes", "ratio_vs_torch", "bandwidth_gbps")

# %% [markdown]
# Beside it, at 2²⁶ elements, other ways to do it, each in turn on the same vector: one launch in which the last
# program to finish adds the sums, an atomic addition for each program, and element by element. The last column counts
# how many different results 50 launches on the same data gave.

# %%
recorded("means/ways", "ratio_vs_torch", "bandwidth_gbps", "different_results")

# %% [markdown]
# All ways but the last lie within a few per cent of each other: they read `x` at the speed of memory, and what differs is
# the small rest. One launch is a little faster than two. The atomic additions are about as fast, and give another last
# digit from run to run. Element by element is far behind, as its chain of additions said.

# %% [markdown]
# Read your plot from the left:
#
# - **Small vectors** take the time of launches. You have two, and `torch.mean` is one operation. Still, at 16,384
#   elements the authors' kernel took
#   ⟦ recorded(bench="mean_triton", case="16,384 elements", metric="median_us", gpu="H200") ⟧ on an H200, and `torch.mean`
#   ⟦ recorded(bench="mean_triton/torch", case="16,384 elements", metric="median_us", gpu="H200") ⟧. That is the time on
#   the GPU, without the host's. At 65,536 elements `torch.mean` took
#   ⟦ recorded(bench="mean_triton/torch", case="65,536 elements", metric="median_us", gpu="H200") ⟧, longer than for
#   four times as many. Why is not explained.
# - **Large vectors** are limited by memory, and a second launch is a small part of the time. The ratio comes close to 1:
#   nobody reads faster than memory delivers.
# - **A ratio far from 1** for small vectors in your own plot, such as one to `torch.compile`, or your own below 1, is
#   the host's. Where the host takes longer for a call than the GPU has work, the GPU waits, and that is what was
#   measured.
# - **If yours is behind:** is there a block of sums in the loop, or a `tl.sum` in every round? Does a program have
#   enough bytes under way? Are there several programs for each SM, and not thousands in all?

# %% [markdown]
# ## Extra credit
#
# No points, but each shows something. Change the exercise's cell, run it, and `check` it again, or
# `benchmark` it (with a GPU).
#
# 1. Put `tl.sum` into the loop, and keep a number in place of a block. What does that cost?
# 2. Take one program for each SM, then 64. Which blocks make up for too few programs?
# 3. Save the second launch: each program stores its sum, then draws a *ticket*, `tl.atomic_add(ticket_ptr, 1)`, which
#    gives the value from before. Who draws the last ticket adds all sums, and sets the ticket back to 0. Why does
#    nobody wait here? Is the result still deterministic?
# 4. Let `x` be float16, and keep the sums in float32. What is the least time now?

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - taken apart a kernel that adds element by element: no mean, one thread's worth of work, a running sum
# - read from the compiled code what `tl.sum` is: additions, shuffles, barriers
# - seen a race that the interpreter cannot show, and avoided it with two stages
# - counted what partial sums cost: hardly any bytes, but one SM's time
# - computed how many programs keep the memory busy
# - seen that the shape decides the order, and the order the last digits
# - written a mean in Triton, had it checked, and measured it against `torch.mean`
#
# ## Check yourself
#
# <details><summary>Why does <code>tl.load(x_ptr + i)</code> use one thread's worth of bandwidth, if <code>i</code> is a number?</summary>
#
# `i` is one number, so one element is fetched. All threads of the program fetch the same 4 bytes, and the next load has
# to wait for the loop to come round.
#
# </details>
#
# <details><summary>Programs add to <code>out</code> by <code>tl.load</code> and <code>tl.store</code>, and <code>check</code> passes without a GPU. Is it right?</summary>
#
# No. The interpreter runs one program after the other, so nothing comes between load and store. On a GPU it is a race.
#
# </details>
#
# <details><summary>Why is the second stage a launch of its own, and not a wait at the end of the first?</summary>
#
# Not all programs run at the same time. One that waits for a program which has not begun could wait for ever. A
# launch begins when the one before is done.
#
# </details>
#
# <details><summary>A block of sums has 4,096 lanes, and there are 1,056 programs. How many elements does a lane take in, for 2²⁶ elements?</summary>
#
# 2²⁶ / (1,056 · 4,096) = 15.5, so 15 or 16. Its sum stays small, and loses little.
#
# </details>
#
# <details><summary>The same kernel gives another last digit on another GPU. Is that a bug?</summary>
#
# No. The number of programs follows the number of SMs, so the order of additions differs. On one GPU the result is
# always the same.
#
# </details>
#
# **Next:** [Fuse a softmax](03_fuse_a_softmax.ipynb), where `tl.sum` and `tl.max` work on rows, and one trip to
# memory takes the place of many.
