# %% [markdown]
# # Fuse a softmax
#
# **You will** write the softmax of each row of a matrix as a single Triton kernel, and make it faster than PyTorch's
# own.
#
# **You will learn**
#
# - to count the bytes that a sequence of operations moves, and what *fusing* saves
# - why a softmax subtracts the maximum first, and what happens if it does not
# - to keep a row on the chip while a kernel works on it
# - what the masked lanes of a reduction must hold
# - to read a plot of bandwidth over size, against `torch.softmax`, the eager sequence and `torch.compile`
#
# **You need** about 75 minutes and [Add two vectors](01_add_vectors.ipynb). With an NVIDIA GPU you measure speed as
# well. Without one your kernel runs in Triton's interpreter, slowly: `check` finds most errors there, and its report
# says what a simulator cannot see. Speed is then shown as it was recorded on another machine.

# %%
from grader import benchmark, check, device
from grader.explore import compare, count_traffic, draw_eager_and_fused, draw_padded_rows, draw_row_in_sram
from grader.explore import list_kernels, recorded

device

# %%
import torch
import triton
import triton.language as tl

# %% [markdown]
# ## Five operations
#
# The softmax of a row $x$ of $N$ elements is
#
# $$ y_i = \frac{e^{x_i - m}}{\sum_j e^{x_j - m}}, \qquad m = \max_j x_j. $$
#
# Written in PyTorch for a matrix of $M$ rows and $N$ columns, these are five operations. Each runs as a kernel of its
# own, one after the other. This is what *eager* means.

# %%
def eager_softmax(x):
    row_max = x.amax(dim=1, keepdim=True)
    shifted = x - row_max
    numerator = shifted.exp()
    denominator = numerator.sum(dim=1, keepdim=True)
    return numerator / denominator


# %% [markdown]
# Each kernel reads its inputs from memory and writes its result to memory. `shifted`, for example, reads the matrix
# and the $M$ maxima, and writes a whole new matrix: $MN + M$ in, $MN$ out.
#
# Count this for all five lines. Predict: how many times the size of the matrix is moved in all, reads and writes
# together?

# %%
prediction = ...  # multiples of the matrix

# %%
x = torch.randn(512, 4096, device=device)
eager = count_traffic(eager_softmax, x)
compare(prediction, round(eager.total, 2), "times the matrix", how="computed")

# %%
eager

# %% [markdown]
# Line by line, in elements:
#
# | | reads | writes |
# | --- | --- | --- |
# | `amax` | $MN$ | $M$ |
# | subtract | $MN + M$ | $MN$ |
# | `exp` | $MN$ | $MN$ |
# | `sum` | $MN$ | $M$ |
# | divide | $MN + M$ | $MN$ |
# | together | $5MN + 2M$ | $3MN + 2M$ |
#
# That is $8MN + 4M$. What *must* be moved is the matrix once in and the result once out: $2MN$.

# %%
draw_eager_and_fused(eager)

# %% [markdown]
# All five operations are limited by memory: they compute a handful of operations for each element and move it eight
# times. So the time goes with the bytes, and one kernel that moves $2MN$ should be about **four times** as fast. This
# claim is naive. Keep it in mind; you will test it.

# %% [markdown]
# ## Keep the row on the chip
#
# To move each element once, a kernel must hold on to it: load a row, find its maximum, subtract, exponentiate, sum,
# divide, and only then store. Between load and store the row stays in registers and shared memory, the SRAM of one
# SM.

# %%
draw_row_in_sram()

# %% [markdown]
# So give **each row to one program**. No program needs another's result, and none has to wait.
#
# How long may a row be? An SM of an H100 or H200 has 256 KiB of registers. A kernel needs them for addresses and
# intermediate results as well, so let the row have half of them. Predict: how long is the longest row of float32 that
# fits, if its length is a power of two?

# %%
prediction = ...  # elements

# %%
register_bytes = 256 * 1024
compare(prediction, register_bytes // 2 // 4, "elements", how="computed")

# %% [markdown]
# The exercise stays within that. Longer rows need another algorithm, which goes over the row in pieces.

# %% [markdown]
# ## Subtract the maximum
#
# Mathematically $m$ is not needed: it cancels out of the fraction. Here is the softmax without it, and three rows.
#
# Predict: how many of the nine results will be NaN (*not a number*)? The largest float32 is about
# $3.4 \cdot 10^{38} \approx e^{88.7}$.

# %%
def naive_softmax(x):
    numerator = x.exp()
    return numerator / numerator.sum(dim=1, keepdim=True)


x = torch.tensor([[1.0, 2.0, 3.0], [100.0, 200.0, 300.0], [-200.0, -300.0, -400.0]])

# %%
prediction = ...  # NaN among the nine

# %%
naive = naive_softmax(x)
compare(prediction, naive.isnan().sum().item(), "NaN")
naive

# %% [markdown]
# Where do they come from? Look at the numerators.

# %%
x.exp()

# %% [markdown]
# In the second row every $e^x$ overflows to infinity, and infinity divided by infinity is NaN. In the third every
# $e^x$ is so small that it becomes 0, and 0 divided by 0 is NaN.
#
# With $m$ subtracted, the largest exponent of each row is 0. So no $e^{x-m}$ exceeds 1, at least one *is* 1, and the
# sum lies between 1 and $N$. Nothing can overflow, and the sum is never 0.

# %%
eager_softmax(x)

# %% [markdown]
# An entry of $-\infty$ is allowed, too: $e^{-\infty - m} = 0$. Language models use it to mask out tokens, and you
# will use it in a moment.
#
# In a Triton kernel, `tl.exp(x)` works on each element of a block. Minus infinity is written `float("-inf")`, as
# everywhere in Python.

# %% [markdown]
# ## Reduce a row
#
# You need one more tool: `tl.sum` and `tl.max` reduce a block to a single value. Here is a kernel that subtracts its
# *mean* from each row.

# %%
@triton.jit
def center_kernel(x_ptr, out_ptr, stride, columns, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    start = tl.program_id(0) * stride
    x = tl.load(x_ptr + start + lane, mask=lane < columns, other=0.0)  # reads MN in all
    mean = tl.sum(x, axis=0) / columns
    tl.store(out_ptr + start + lane, x - mean, mask=lane < columns)  # writes MN in all


# %% [markdown]
# - A block must have a power of two of lanes, a row has any number of columns. `triton.next_power_of_2` rounds up,
#   and the mask covers the rest.
# - **`other=0.0`** is what masked lanes hold. They are in the sum, so they must hold a value that does not change it.
# - **`stride`** is the distance from a row to the next.

# %%
x = torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0], [10.0, 10.0, 10.0, 10.0, 60.0]], device=device)
out = torch.empty_like(x)
center_kernel[(2,)](x, out, x.stride(0), 5, BLOCK=triton.next_power_of_2(5))
out

# %% [markdown]
# (On a GPU the middle of the first row is not quite 0. There the compiler's division is not exact: it multiplies by
# 1/5, which a float32 does not hold exactly.)

# %% [markdown]
# ### What must masked lanes hold in a softmax?
#
# Suppose that the masked lanes of a softmax were loaded as 0 as well. Take a row of three equal values, -5, -5, -5,
# in a block of four. The right answer is one third for each. Predict: what does the kernel give for the first?

# %%
prediction = ...  # the first of the three

# %%
block = torch.tensor([-5.0, -5.0, -5.0, 0.0])  # the last lane is masked, and holds 0
compare(prediction, round(block.softmax(dim=0)[0].item(), 4))

# %% [markdown]
# The lane that is not there has won: 0 is larger than -5, so it became the maximum, and it holds almost the whole
# sum. Masked lanes must lose the maximum **and** add nothing to the sum. Which value does both? (You have met it
# above.)

# %% [markdown]
# ### Rows may be padded
#
# A tensor need not be contiguous. Take 5 columns of a matrix that has 8: the rows still start 8 elements apart.
# PyTorch calls this distance the row's *stride*.

# %%
draw_padded_rows(rows=3, columns=5, stride=8)

# %% [markdown]
# Predict: at which offset does element (2, 1) lie?

# %%
prediction = ...  # offset of element (2, 1)

# %%
x = torch.arange(24).reshape(3, 8)[:, :5]  # each element holds its offset
compare(prediction, x[2, 1].item())
print("shape", tuple(x.shape), "strides", x.stride())

# %% [markdown]
# A kernel that steps from row to row by `columns` would read the padding. `x` and `out` may even differ in their
# strides.

# %% [markdown]
# ## Exercise: fuse a softmax
#
# Write the softmax of each row of `x` into `out`. Both are float32 matrices of the same shape; the elements of a row
# are neighbours, but rows may be padded, each tensor in its own way. There are at least 1 and at most 32,768 columns.
# Values may be anything, -∞ among them (never a whole row).
#
# 1. The kernel: load the row once, do all five steps, store once. *(about 7 lines)*
# 2. The launch: a program for each row, a block that holds a row. Pass the strides. *(about 4 lines)*
#
# A long row wants more threads: `num_warps=8` in the launch gives a program 8 × 32 threads. The default is 4, and
# powers of two up to 32 are possible.

# %% nbgrader={"grade_id": "softmax", "solution": true}
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK_SIZE: tl.constexpr):
    ### BEGIN SOLUTION
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK_SIZE)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf"))  # reads MN in all
    numerator = tl.exp(x - tl.max(x, axis=0))
    denominator = tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * out_stride + column, numerator / denominator, mask=mask)  # writes MN in all
    ### END SOLUTION


def softmax(x, out):
    ### BEGIN SOLUTION
    rows, columns = x.shape
    block_size = triton.next_power_of_2(columns)
    num_warps = min(max(block_size // 512, 1), 32)  # 16 elements a thread, more in the longest rows
    strides = x.stride(0), out.stride(0)
    softmax_kernel[(rows,)](x, out, *strides, columns, BLOCK_SIZE=block_size, num_warps=num_warps)
    ### END SOLUTION


# %% [markdown]
# Correct before fast. `check` runs the cell above in a process of its own and compares every element with a float64
# result: rows of one element, rows that are no power of two, padded rows, values far from 0. A `NameError`? Run the
# exercise's cell first.

# %% nbgrader={"grade_id": "check-softmax", "grade": true, "locked": true, "points": 10}
check(softmax)

# %% [markdown]
# ## How fast is it?
#
# By the count, your kernel moves a quarter of what the eager sequence moves. Predict, for 4096 × 4096:
#
# - how many times as fast as the eager sequence is it?
# - and as `torch.softmax`, which is one operation?
# - and as `torch.compile` of `torch.softmax`, which generates a Triton kernel?
#
# The points:
#
# - ⟦ exercise("softmax").correctness_points ⟧ for right answers
# - ⟦ gate("softmax", "eager").points ⟧ for ⟦ gate("softmax", "eager").at_least ⟧ times the speed of the eager sequence,
#   as the geometric mean over ⟦ gate("softmax", "eager").cases | join(" and ") ⟧
# - ⟦ gate("softmax", "torch").points ⟧ for ⟦ gate("softmax", "torch").at_least ⟧ times the speed of `torch.softmax`, as
#   the geometric mean over ⟦ gate("softmax", "torch").cases | join(", ") ⟧

# %%
prediction = ...  # three ratios: eager, torch.softmax, torch.compile

# %%
benchmark(softmax)

# %% [markdown]
# Hold your prediction against the report. And this is what the authors' kernel reached. (The seven sizes of the last
# row are N = 256, 781, 1024, 4096, 8192, 16384 and 32768.)

# %%
recorded("softmax", "ratio_vs_eager", "ratio_vs_torch", "ratio_vs_compile", "share_of_copy")

# %% [markdown]
# Read the plot:
#
# - **Short rows:** the matrix is small, and the time is mostly that of launches. The eager sequence pays for five. Yours
#   and `torch.softmax` are one kernel each, and about equal where the host keeps up: at N = 256 on an H200 the authors'
#   kernel took ⟦ recorded(bench="softmax", case="4096 × 256", metric="median_us", gpu="H200") ⟧ and `torch.softmax`
#   ⟦ recorded(bench="softmax/torch", case="4096 × 256", metric="median_us", gpu="H200") ⟧. (The recorded table leaves
#   the host out.) To call a Triton kernel takes the host longer than to call PyTorch's own. If your curve lies far
#   below up to N = 1024, that is the host, for which the GPU waits.
# - **A ratio is taken call by call**, and the middle one is shown. Where times vary it is not the ratio of the times.
# - **Long rows:** a fused kernel comes close to the bandwidth of a copy:
#   ⟦ recorded(bench="softmax", case="4096 × 32768", metric="share_of_copy", gpu="H200") ⟧ at N = 32768. That is the
#   roof: a copy moves the same bytes.
# - **The naive claim** was four times the eager sequence. On the H200 it is
#   ⟦ recorded(bench="softmax", case="4096 × 8192", metric="ratio_vs_eager", gpu="H200") ⟧ at N = 8192 and
#   ⟦ recorded(bench="softmax", case="4096 × 32768", metric="ratio_vs_eager", gpu="H200") ⟧ at N = 32768. For large
#   matrices it is more than the bytes say: not every kernel of the sequence runs at the roof, as the profile below
#   shows. For the smallest it says little about bytes: the sequence took
#   ⟦ recorded(bench="softmax/eager", case="4096 × 256", metric="median_us", gpu="H200") ⟧ at N = 256 and
#   ⟦ recorded(bench="softmax/eager", case="4096 × 512", metric="median_us", gpu="H200") ⟧ at N = 512, for twice the
#   bytes. At N = 256 most of it is the time of five launches. In between, the L2 cache helps the sequence: what one
#   kernel has written can still lie there when the next one reads it, and need not come from DRAM.
# - **`torch.softmax`** is one operation, but it must serve every shape and data type. It has one kernel for short rows
#   and others for long ones, so its curve goes up and down: the ratio is
#   ⟦ recorded(bench="softmax", case="4096 × 1024", metric="ratio_vs_torch", gpu="H200") ⟧ at N = 1024,
#   ⟦ recorded(bench="softmax", case="4096 × 8192", metric="ratio_vs_torch", gpu="H200") ⟧ at N = 8192 and
#   ⟦ recorded(bench="softmax", case="4096 × 16384", metric="ratio_vs_torch", gpu="H200") ⟧ at N = 16384. You knew the
#   shape and the type, and you kept the row on the chip.
#
# If a curve of yours sags for long rows, the row may not fit into the registers of the threads that you gave it: what
# does not fit is *spilled* to memory. More warps, more registers.

# %% [markdown]
# ## Profile it
#
# A profiler tells which kernels ran. Predict: how many does the eager softmax start, and how many does yours?

# %%
prediction = ...  # kernels of the eager softmax

# %%
x = torch.randn(4096, 1024, device=device)
compare(prediction, len(count_traffic(eager_softmax, x).steps), "operations", how="computed")
list_kernels(eager_softmax, x, title="eager softmax")

# %% [markdown]
# The rows stand in the order of the five lines. Point at a name to see it in full. Compare the three that write a
# matrix: subtract, `exp` and divide move the same bytes (but for the $M$ maxima or sums). `exp` runs as a *vectorized*
# kernel, which means wide loads. The other two spread one value over a row, and do not.
#
# Divide the bytes of `exp`, 32 MiB, by its time. On an H200 that is more than the 4,800 GB/s of its memory: part of
# what it read came from the L2 cache.

# %%
list_kernels(torch.softmax, x, 1, title="torch.softmax")

# %% [markdown]
# This is less than the plot says: at N = 1024, its bandwidth means
# ⟦ recorded(bench="softmax/torch", case="4096 × 1024", metric="median_us", gpu="H200") ⟧ for `torch.softmax` on an
# H200. The profiler shows the kernel alone, without its launch. And a call with the same `x` came just before, so part
# of `x` may still lie in the L2 cache.
#
# If you have a GPU and your kernel works, try `list_kernels(softmax, x, torch.empty_like(x))` in a cell of your own.
# For what happens *inside* a kernel, NVIDIA's Nsight Compute (`ncu`) shows the share of the bandwidth and the
# registers that were spilled.

# %% [markdown]
# ## Extra credit
#
# No points, but each shows something. Change the exercise's cell, run it, and `check` it again, or
# `benchmark` it (with a GPU).
#
# 1. `num_warps` of 1, 4, 16 and 32 at N = 256 and at N = 32768. Why does the best value move?
# 2. For short rows let a program do several rows, with a two-dimensional block. Which axis do you reduce?
# 3. Replace the division by a multiplication with `1 / denominator`. Does `check` still accept it? Is it faster, and
#    why (not)?
# 4. `row * x_stride` is a 32-bit product. From which size of matrix on is that a bug?

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - counted the traffic of five operations, $8MN + 4M$, and of one fused kernel, $2MN$
# - seen a softmax without its maximum fail at both ends
# - chosen what masked lanes hold, so that they neither win a maximum nor add to a sum
# - stepped through padded rows by their strides
# - written a softmax that keeps its row on the chip, had it checked, and measured it against three peers and the
#   bandwidth of a copy
#
# ## Check yourself
#
# <details><summary>What does fusing save: arithmetic or traffic?</summary>
#
# Traffic, and launches. The arithmetic is the same.
#
# </details>
#
# <details><summary>You fuse only subtract and <code>exp</code>. What is left of $8MN + 4M$?</summary>
#
# The two moved 4MN + M. Together they read MN + M and write MN, so 2MN are saved: 6MN + 4M.
#
# </details>
#
# <details><summary>Why must masked lanes be -∞ here, and 0 when a mean is subtracted?</summary>
#
# They take part in every reduction. 0 changes no sum. -∞ wins no maximum, and after exp it is 0 and changes no sum.
#
# </details>
#
# <details><summary>A row has 781 columns. How large is the block, and which share of its lanes is idle?</summary>
#
# 1,024, so 243 of 1,024 lanes are masked: 24 %. They cost no traffic, only lanes.
#
# </details>
#
# <details><summary>Your kernel reaches the bandwidth of a copy. How can a whole model still get faster?</summary>
#
# By fusing the softmax with its neighbours, so that its input or output never goes to memory. Attention kernels do
# just that.
#
# </details>
#
# **Next:** [Multiply matrices](04_multiply_matrices.ipynb), where the same bytes are used many times over. Your points
# are in the [syllabus](../README.ipynb). Both lie in the course's folder.
