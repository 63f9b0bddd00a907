# %% [markdown]
# # Fuse a softmax
#
# **You will** write the softmax of each row of a matrix as a single Triton kernel, and make it faster than PyTorch's
# own.
#
# **You will learn**
#
# - to count the bytes that a sequence of operations moves, and what **fusing** saves
# - why a softmax subtracts the maximum first, and what happens if it does not
# - to keep a row on the chip while a kernel works on it
# - what the masked elements of a reduction must hold
# - to compare bandwidth over size with `torch.softmax`, the eager sequence and `torch.compile`
# - to make a kernel an operator of PyTorch, with a gradient
#
# **You need** about 75 minutes and [Add two vectors](01_add_vectors.ipynb). With an NVIDIA GPU you measure speed as
# well. Without one, your kernel runs in Triton's interpreter, slowly; the report of `check` says what a simulator
# cannot see. Recorded speeds from another machine are shown in either case.

# %%
from grader import benchmark, check, device
from grader.explore import compare, count_traffic, draw_eager_and_fused, draw_padded_rows, draw_row_in_sram
from grader.explore import list_kernels, recorded

device

# %%
import numpy as np
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
# In PyTorch these are five operations on a matrix of $M$ rows and $N$ columns. In **eager** mode, each runs as a kernel
# of its own, one after the other.

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
# Count this for all five lines. Predict: reads and writes together, how many times is the whole matrix moved?

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
# That is $8MN + 4M$. At the least, the matrix is read once and the result
# is written once: $2MN$.

# %%
draw_eager_and_fused(eager)

# %% [markdown]
# All five operations are **memory-bound**: they compute a handful of operations per element and move it eight times. So
# one kernel that moves $2MN$ should be about **four times** as fast. You will test this simple estimate.

# %% [markdown]
# ## Keep the row on the chip
#
# To read and write each element only once, a kernel must keep the row: load it, find its maximum, subtract, exponentiate,
# sum, divide, and only then store. Between load and store the row stays in registers and shared memory, the SRAM of one
# SM.

# %%
draw_row_in_sram()

# %% [markdown]
# So **one program computes one row**. No program needs another's result.
#
# How long may a row be? An SM of an H100 or H200 has 256 KiB of registers. A kernel also needs registers for addresses
# and intermediate results, so the row may have half of them. Predict: how many float32 elements is that?

# %%
prediction = ...  # elements

# %%
register_bytes = 256 * 1024
compare(prediction, register_bytes // 2 // 4, "elements", how="computed")

# %% [markdown]
# The exercise stays within that. Longer rows need a different algorithm, the **online softmax**, which goes over the
# row in pieces.

# %% [markdown]
# ## Subtract the maximum
#
# Mathematically $m$ is not needed: it cancels out of the fraction. Here is the softmax without it, and three rows.
#
# Predict: how many of the nine results are NaN (*not a number*)? The largest float32 is about
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
# In the second row every $e^x$ overflows to infinity, and infinity divided by infinity is NaN. In the third row every
# $e^x$ underflows to 0, and 0 divided by 0 is NaN.
#
# With $m$ subtracted, the largest exponent of each row is 0. So no $e^{x-m}$ exceeds 1, at least one *is* 1, and the
# sum lies between 1 and $N$. Nothing can overflow, and the sum is never 0.

# %%
eager_softmax(x)

# %% [markdown]
# An input of $-\infty$ is allowed, too: $e^{-\infty - m} = 0$. Language models use it to mask out tokens, and you will
# use it soon.
#
# In a Triton kernel, `tl.exp(x)` works on each element of a block. Minus infinity is `float("-inf")`, as in Python.

# %% [markdown]
# ### Find the bug in a published listing
#
# When Triton 1.0 was announced, its softmax was compared with `torch.softmax` and with this function, which
# `torch.jit.script` compiled. TorchScript is deprecated; `torch.compile` has replaced it. The listing has a bug.
# Predict: on how many of our three rows is it right?

# %%
def published_softmax(x):
    x_max = x.max(dim=1)[0]
    z = x - x_max[:, None]
    numerator = torch.exp(x)
    denominator = numerator.sum(dim=1)
    return numerator / denominator[:, None]


# %%
prediction = ...  # right rows, of 3

# %%
right = torch.isclose(published_softmax(x), torch.softmax(x, dim=1)).all(dim=1)
compare(prediction, right.sum().item(), "rows")

# %% [markdown]
# It subtracts the maximum, and then takes `exp(x)` instead of `exp(z)`: `z` is never used. On normal random numbers,
# with which it was timed, no result shows the bug. So test with inputs that can fail. The cases of `check` have rows
# far from 0 for this reason.

# %% [markdown]
# ## Reduce a row
#
# `tl.sum` and `tl.max` reduce a block to a single value. This kernel subtracts its *mean* from each row:

# %%
@triton.jit
def center_kernel(x_ptr, out_ptr, stride, columns, BLOCK: tl.constexpr):
    j = tl.arange(0, BLOCK)
    start = tl.program_id(0) * stride
    x = tl.load(x_ptr + start + j, mask=j < columns, other=0.0)  # reads MN in all
    mean = tl.sum(x, axis=0) / columns
    tl.store(out_ptr + start + j, x - mean, mask=j < columns)  # writes MN in all


# %% [markdown]
# - The length of a block is a power of two, but a row has any number of columns. `triton.next_power_of_2` rounds up,
#   and the mask covers the rest.
# - **`other=0.0`** is the value of masked elements. They are part of the sum, so it must be a value that does not
#   change a sum.
# - **`stride`** is the distance from one row to the next, in elements.

# %%
x = torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0], [10.0, 10.0, 10.0, 10.0, 60.0]], device=device)
out = torch.empty_like(x)
center_kernel[(2,)](x, out, x.stride(0), 5, BLOCK=triton.next_power_of_2(5))
out

# %% [markdown]
# On a GPU the middle of the first row may differ slightly from 0, because the compiled division multiplies by an
# approximate reciprocal.

# %% [markdown]
# ### What must masked elements hold in a softmax?
#
# Suppose that the masked elements of a softmax were loaded as 0 as well. Take a row of three equal values, -5, -5, -5,
# in a block of four. The right answer is one third for each. Predict: what does the kernel compute for the first?

# %%
prediction = ...  # the first of the three

# %%
block = torch.tensor([-5.0, -5.0, -5.0, 0.0])  # the last element is masked, and holds 0
compare(prediction, round(block.softmax(dim=0)[0].item(), 4))

# %% [markdown]
# The masked element won: 0 is larger than -5, so it became the maximum, and it makes up almost the whole sum. Masked
# elements must not win the maximum **and** must add nothing to the sum. Which value, which you have met above, does
# both?

# %% [markdown]
# ### Rows may be padded
#
# A tensor need not be contiguous. Take 5 columns of a matrix that has 8: the rows still start 8 elements apart.
# PyTorch calls this distance the row's *stride*.

# %%
draw_padded_rows(rows=3, columns=5, stride=8)

# %% [markdown]
# Predict: at which offset is element (2, 1)?

# %%
prediction = ...  # offset of element (2, 1)

# %%
x = torch.arange(24).reshape(3, 8)[:, :5]  # each element holds its offset
compare(prediction, x[2, 1].item())
print("shape", tuple(x.shape), "strides", x.stride())

# %% [markdown]
# A kernel that steps from row to row by `columns` would read the padding. And `x` and `out` may have different strides.
#
# ### Offsets of more than 32 bits
#
# Triton passes a stride as a 32-bit integer if it fits, and `tl.program_id` is one as well. So `row * stride` is a
# 32-bit product, which overflows at 2³¹ elements. A float32 matrix of that size takes 8 GiB, which fits on many GPUs.
# Predict: with rows of 32,768 elements, which is the first row whose offset overflows?

# %%
prediction = ...  # row

# %%
rows = np.array([65_535, 65_536], dtype=np.int32)
offsets = rows * np.int32(32_768)
compare(prediction, rows[offsets < 0][0].item(), "(row)")
offsets

# %% [markdown]
# The offset wraps to a negative number, and the kernel reads somewhere before the tensor. The fix is one conversion:
# `row.to(tl.int64) * stride`. The exercise's matrices are smaller, so you may leave it out there.

# %% [markdown]
# ## Exercise: fuse a softmax
#
# Write the softmax of each row of `x` into `out`. Both are float32 matrices of the same shape; the elements of a row
# are neighbours, but rows may be padded, each tensor in its own way. There are at least 1 and at most 32,768 columns.
# Values may be anything, -∞ among them (never a whole row).
#
# 1. The kernel: load the row once, do all five steps, store once. *(about 7 lines)*
# 2. The launch: one program per row, and a block that holds a row. Pass the strides. *(about 4 lines)*
#
# A long row needs more threads: `num_warps=8` in the launch gives a program 8 × 32 threads. The default is 4, and
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
# First make it correct, then fast. `check` compares every element with a float64 result. Its cases include rows of one
# element, rows whose length is not a power of two, padded rows, and values far from 0.

# %% nbgrader={"grade_id": "check-softmax", "grade": true, "locked": true, "points": 10}
check(softmax)

# %% [markdown]
# When `check` passes, launch your kernel yourself, on the three rows that the naive softmax turned into NaN. Now each row
# should add up to 1.

# %%
x = torch.tensor([[1.0, 2.0, 3.0], [100.0, 200.0, 300.0], [-200.0, -300.0, -400.0]], device=device)
out = torch.zeros_like(x)
try:
    softmax(x, out)
except NotImplementedError as stub:
    print(stub)
out

# %% [markdown]
# ## How fast is it?
#
# The points:
#
# - ⟦ exercise("softmax").correctness_points ⟧ for right answers
# - ⟦ gate("softmax", "eager").points ⟧ for ⟦ gate("softmax", "eager").at_least ⟧ times the speed of the eager sequence,
#   as the geometric mean over ⟦ gate("softmax", "eager").cases | join(" and ") ⟧
# - ⟦ gate("softmax", "torch").points ⟧ for ⟦ gate("softmax", "torch").at_least ⟧ times the speed of `torch.softmax`, as
#   the geometric mean over ⟦ gate("softmax", "torch").cases | join(", ") ⟧
#
# Predict for 4096 × 4096: how many times as fast as `torch.softmax` was the authors' kernel, on an H200?

# %%
prediction = ...  # times as fast as torch.softmax

# %%
found = recorded("softmax", "ratio_vs_eager", "ratio_vs_torch", "ratio_vs_compile", "share_of_copy")
compare(prediction, found.value("ratio_vs_torch", "4096 × 4096"), "times as fast", how="recorded")
found

# %%
benchmark(softmax)

# %% [markdown]
# In the table, the seven sizes of the last row are N = 256, 781, 1024, 4096, 8192, 16384 and 32768. Read the plot:
#
# - **Short rows:** the matrix is small, and launches take most of the time. The eager sequence has five. Yours and
#   `torch.softmax` are one kernel each, and about equal: at N = 256 on an H200 the authors' kernel took
#   ⟦ recorded(bench="softmax", case="4096 × 256", metric="median_us", gpu="H200") ⟧ and `torch.softmax`
#   ⟦ recorded(bench="softmax/torch", case="4096 × 256", metric="median_us", gpu="H200") ⟧. If your own curve is far
#   below up to N = 1024, the GPU waits for the host, which takes longer to call a Triton kernel than PyTorch's own.
# - **Long rows:** a fused kernel comes close to the bandwidth of a copy, which moves the same bytes:
#   ⟦ recorded(bench="softmax", case="4096 × 32768", metric="share_of_copy", gpu="H200") ⟧ at N = 32768 on the H200.
# - **The simple estimate** was four times the speed of the eager sequence. On the H200 it is
#   ⟦ recorded(bench="softmax", case="4096 × 8192", metric="ratio_vs_eager", gpu="H200") ⟧ at N = 8192 and
#   ⟦ recorded(bench="softmax", case="4096 × 32768", metric="ratio_vs_eager", gpu="H200") ⟧ at N = 32768. For large
#   matrices it is more than the bytes predict, because some kernels of the sequence are slower than a copy. For small
#   ones it is about four or less, because the L2 cache helps the sequence: each kernel finds its input there.
# - **`torch.softmax`** must serve every shape and data type. It has one kernel for short rows and others for long ones,
#   so its curve goes up and down. On the H200 the ratio is
#   ⟦ recorded(bench="softmax", case="4096 × 1024", metric="ratio_vs_torch", gpu="H200") ⟧ at N = 1024,
#   ⟦ recorded(bench="softmax", case="4096 × 8192", metric="ratio_vs_torch", gpu="H200") ⟧ at N = 8192 and
#   ⟦ recorded(bench="softmax", case="4096 × 16384", metric="ratio_vs_torch", gpu="H200") ⟧ at N = 16384. Triton is not
#   the better compiler here. You knew the shape and the type, and wrote a kernel for just these.
#
# Each ratio is the median over pairs of calls, so it need not equal the quotient of two medians. If your curve sags for
# long rows, the row may not fit into the registers of its threads. The rest is **spilled** to memory: use more warps,
# which have more registers.

# %% [markdown]
# ### The published comparison, repeated
#
# The announcement of Triton compared its kernel with `torch.softmax` and with the listing under `torch.jit.script`.
# Here is that comparison again. The listing, with its bug fixed, runs eagerly, scripted and compiled, next to
# `torch.softmax` and the authors' kernel. The matrices have 4,096 rows of 1,024 columns (*short*) or 8,192 (*long*).
#
# TorchScript fuses only consecutive pointwise operations. Predict: how many kernels does the scripted listing launch? The
# eager one launches five.

# %%
prediction = ...  # kernels of the scripted listing

# %%
found = recorded("softmaxes", "kernels", "short_rows_us", "long_rows_us")
compare(prediction, found.value("kernels", "torch.jit.script"), "kernels", how="recorded")
found

# %% [markdown]
# TorchScript fused the subtraction and `exp`. Each reduction remains a kernel of its own, so the matrix goes to memory and
# back in between. `torch.compile` also fuses across reductions. It generates one kernel in Triton, which is about as fast as the
# authors'.

# %% [markdown]
# ## How much faster could it be?
#
# For long rows, nothing is left to gain: the kernel is about as fast as a copy. Over the seven sizes on an H200, a copy
# of the same bytes is ⟦ recorded(bench="softmax/copy", case="geometric mean of 7 sizes", metric="ratio_vs_torch", gpu="H200").number ⟧
# times as fast as `torch.softmax`, as a geometric mean, and the authors' kernel
# ⟦ recorded(bench="softmax", case="geometric mean of 7 sizes", metric="ratio_vs_torch", gpu="H200").number ⟧ times. A kernel
# that moves each byte once cannot do much better.
#
# ### The last ten per cent
#
# Short rows give a program little to do. The authors' faster kernel gives each program two rows if they fit into blocks
# of 256 elements. If rows fill their blocks exactly, it leaves out the mask of the columns, so no thread compares
# column indices.

# %%
recorded("softmax/fastest", "ratio_vs_torch", "ratio_vs_compile", "share_of_copy")

# %% [markdown]
# ## Profile it
#
# A profiler lists the kernels that ran.

# %%
x = torch.randn(4096, 1024, device=device)
list_kernels(eager_softmax, x, title="eager softmax")

# %% [markdown]
# The rows are in the order of the five lines. Point at a name to see it in full. Three of them write a matrix:
# subtract, `exp` and divide move about the same bytes. `exp` runs as a *vectorized* kernel, which means wide loads. The
# other two spread one value over a row, and are not vectorized.
#
# Divide the bytes of `exp`, 32 MiB, by its time. On an H200 the result exceeds the 4,800 GB/s of its memory: part of
# what it read came from the L2 cache.

# %%
list_kernels(torch.softmax, x, 1, title="torch.softmax")

# %% [markdown]
# This is less time than in the plot: there `torch.softmax` took
# ⟦ recorded(bench="softmax/torch", case="4096 × 1024", metric="median_us", gpu="H200") ⟧ at N = 1024 on an H200. The
# profiler shows the kernel alone, without its launch. And a call with the same `x` came just before, so part of `x` may
# still be in the L2 cache.
#
# If you have a GPU, try `list_kernels(softmax, x, torch.empty_like(x))` in a cell of your own. To see *inside* a
# kernel, use NVIDIA's Nsight Compute: `ncu python program.py` shows the share of the bandwidth, the registers and more.

# %% [markdown]
# ## Your kernel in a model
#
# A model needs an operator with a gradient, which `torch.compile` can handle. `torch.library.custom_op` registers one.
# This is `center_kernel` as an operator:

# %%
@torch.library.custom_op("course::center", mutates_args=())
def center(x: torch.Tensor) -> torch.Tensor:
    x, out = x.contiguous(), x.new_empty(x.shape)
    block = triton.next_power_of_2(x.shape[1])
    center_kernel[(x.shape[0],)](x, out, x.stride(0), x.shape[1], BLOCK=block)
    return out


# %% [markdown]
# It needs two more facts: the shape of the result, for `torch.compile`, and the gradient. Subtracting the mean is a
# linear and symmetric operation, so its gradient is the same operation on the incoming gradient. `opcheck` tests the
# registration.
#
# Let `y` be the centred row of `x`. Predict: what is the derivative of `y[0]` with respect to `x[0]`, for rows of 5?

# %%
prediction = ...  # d y[0] / d x[0]

# %%
center.register_fake(lambda x: x.new_empty(x.shape))
center.register_autograd(lambda ctx, gradient: center(gradient))
x = torch.randn(4, 5, device=device, requires_grad=True)
center(x)[:, 0].sum().backward()
compare(prediction, round(x.grad[0, 0].item(), 4))
torch.library.opcheck(center, (x,))

# %% [markdown]
# `torch.compile` treats such an operator as a black box. With `torch.library.triton_op` and `wrap_triton` instead, it
# also sees the launch inside and can optimise around it. Such an operator needs no `register_fake`, because the compiler
# traces the function itself:
#
# ```python
# @torch.library.triton_op("course::center_traced", mutates_args=())
# def center_traced(x: torch.Tensor) -> torch.Tensor:
#     x, out = x.contiguous(), x.new_empty(x.shape)
#     launch = torch.library.wrap_triton(center_kernel)[(x.shape[0],)]
#     launch(x, out, x.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
#     return out
# ```

# %% [markdown]
# ## Extra credit
#
# No points, but each of these shows something. Change the exercise's cell, run it, and `check` it again, or
# `benchmark` it (with a GPU).
#
# 1. Set `num_warps` to 1, 4, 16 and 32 at N = 256 and at N = 32768. Why does the best value move?
#
# <details><summary>Answer</summary>
#
# A short row leaves most threads of 32 warps idle. A long row in one warp needs 1,024 registers per thread, and a
# thread has at most 255: the rest is spilled.
#
# </details>
#
# 2. For short rows, let a program compute 1, 2, 4 or 8 rows, with a block of two axes. Does the best number depend on
#    `num_warps`?
#
# <details><summary>Answer</summary>
#
# Yes. What counts is the number of elements per thread. With few, a thread spends its time on addresses and reductions.
# With many, too few other programs have loads in flight at the same time.
#
# </details>
#
# 3. Replace the division by a multiplication with `1 / denominator`. Does `check` still accept it? Is it faster?
#
# <details><summary>Answer</summary>
#
# It is accepted: one more rounding is within the error allowed. The kernel waits for memory, so expect little gain.
#
# </details>

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - counted the traffic of five operations, $8MN + 4M$, and of one fused kernel, $2MN$
# - seen a softmax without its maximum fail at both ends
# - found a bug that normal random numbers do not show
# - chosen a value for masked elements that neither wins a maximum nor adds to a sum
# - stepped through padded rows by their strides
# - written a softmax that keeps its row on the chip, had it checked, and measured it
# - made a kernel an operator with a gradient
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
# <details><summary>Why must masked elements be -∞ here, and 0 when a mean is subtracted?</summary>
#
# They take part in every reduction. 0 changes no sum. -∞ wins no maximum, and after exp it is 0 and changes no sum.
#
# </details>
#
# <details><summary>A row has 781 columns. How long is the block, and what share of it is masked?</summary>
#
# 1,024 elements, so 243 of them are masked: 24 %. They cost no traffic, only some threads' time.
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
# ## Read on
#
# - [Fused softmax](https://triton-lang.org/main/getting-started/tutorials/02-fused-softmax.html), the tutorial of
#   Triton's authors, with a persistent kernel
# - [Online normalizer calculation for softmax](https://arxiv.org/abs/1805.02867) (Milakov and Gimelshein, 2018), for
#   rows that do not fit on the chip
# - [User-defined kernels](https://docs.pytorch.org/tutorials/recipes/torch_compile_user_defined_triton_kernel_tutorial.html)
#   with `torch.compile`, and `triton_op`
#
# **Next:** [Multiply matrices](04_multiply_matrices.ipynb), where the same bytes are used many times. Your points
# are in the [syllabus](../README.ipynb).
