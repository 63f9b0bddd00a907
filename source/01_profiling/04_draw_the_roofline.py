# %% [markdown]
# # Draw the roofline
#
# **You will** measure the most that your machine can do, draw it as a *roofline*, and place operations on it. Then you write a
# function that predicts how long an operation takes without running it.
#
# **You will learn**
#
# - to count the bytes that an operation moves and the operations that it computes
# - what arithmetic intensity is, and how it decides what limits an operation
# - to measure the two ceilings of a machine, and the ridge where they meet
# - why a kernel lies below the roof, and when one lies above it
#
# **You need** about 75 minutes and PyTorch, but no CUDA. With an NVIDIA GPU you draw its roofline; without one, your CPU's. The
# numbers are smaller, but the reasoning is the same, and a recorded GPU is shown at the end.

# %%
from grader import check, device
from grader.explore import compare, draw_roofline, explore_roofline, land, measure_ceilings, recorded
from grader.explore import recorded_roofline, try_predictions

device

# %%
import torch

# %% [markdown]
# ## Count the bytes
#
# A processor does two things that take time: it moves bytes between memory and chip, and it computes. So count both. Bytes
# first. On large data-centre GPUs the memory is **HBM** (high-bandwidth memory).
#
# Take `x + y` for two float32 matrices of 4096 × 4096. Every input must come in once, and the result must go out once. A float32
# is 4 bytes. Predict: how many megabytes are moved in total? One MB is $10^6$ bytes.

# %%
prediction = ...  # megabytes

# %%
elements = 4096 * 4096
read, written = 2 * elements * 4, elements * 4
compare(prediction, round((read + written) / 1e6), "MB", how="computed")

# %% [markdown]
# Two matrices in, one out: 12 bytes per element of the result. A write counts as much as a read, and it is easy to forget.
#
# Mind the units. In bandwidths, GB means $10^9$ bytes. GiB means $2^{30}$, 7 % more.
#
# Some more, for a matrix of $N$ elements:
#
# | operation | elements read | elements written |
# | --- | --- | --- |
# | copy, `relu`, square | $N$ | $N$ |
# | `x + y` | $2N$ | $N$ |
# | `x.sum()` | $N$ | 1 |
# | `x.to(torch.float16)` from float32 | $N$ of 4 bytes | $N$ of 2 bytes |
#
# What about `x + row`, where `row` is a single row that is added to every row of `x`? Predict for 4096 × 4096 float32: how many
# megabytes must be moved?

# %%
prediction = ...  # megabytes

# %%
row = 4096
compare(prediction, round(4 * (elements + row + elements) / 1e6), "MB", how="computed")

# %% [markdown]
# The row is 16 kB, next to nothing: it is read from memory once and then stays in a cache, although it is needed 4,096 times.
# Count what *must* be moved, not what the code mentions.

# %% [markdown]
# ## Count the operations
#
# An addition is one operation, and so is a multiplication. `x + y` takes one per element, and `x.sum()` almost one. A
# copy computes nothing.
#
# A matrix product, or **GEMM** (general matrix multiplication), does more. For each of the $m \cdot n$ elements of the result it
# multiplies $k$ pairs and adds them up. Predict: how many billion operations does the product of two matrices of 1024 × 1024
# take?

# %%
prediction = ...  # billions

# %%
m = n = k = 1024
operations = 2 * m * n * k  # a multiplication and an addition each
compare(prediction, round(operations / 1e9, 2), "billion operations", how="computed")

# %% [markdown]
# That is $2mnk$. The unit of the rate is **FLOP/s**, floating-point operations per second, also written FLOPS: one GFLOPS is $10^9$
# per second, one TFLOPS $10^{12}$.

# %% [markdown]
# ## Divide one by the other
#
# Operations divided by bytes is the **arithmetic intensity**: how much an operation computes per byte that it moves.
#
# For `x + y` in float32 it is 1 operation per 12 bytes: 0.083. Predict: what is it for the product of two float32 matrices of
# 1024 × 1024?

# %%
prediction = ...  # operations per byte

# %%
bytes_moved = 4 * (m * k + k * n + m * n)
compare(prediction, round(operations / bytes_moved, 1), "operations per byte", how="computed")

# %% [markdown]
# For square matrices it is $2n^3 / 12n^2 = n/6$. It grows with the matrix, while that of `x + y` is the same at any size. In
# float16 there are half as many bytes, so the intensity is twice as high.

# %% [markdown]
# ## Measure two ceilings
#
# How many bytes can your machine move per second, its **bandwidth**? Time a large copy and a large addition, and take the better
# one. How many operations can it do? Time a large matrix product on random numbers. Such *measured* ceilings are lower than
# those on a data sheet, and closer to what a kernel can reach. On a CPU we use one core, so that no thread waits for another.
#
# Predict the order of magnitude: how many GB/s does your machine move?

# %%
prediction = ...  # GB/s

# %%
ceilings = measure_ceilings()
compare(prediction, ceilings.bandwidth_gbps, "GB/s", within=10)
ceilings

# %% [markdown]
# Run the cell once more. How much do the two numbers change? Other work on your machine can only lower them, so the measurement
# keeps the best of several tries.
#
# Now put the two together. At one intensity, the **ridge**, moving takes exactly as long as computing. Below it, an operation is
# **memory-bound**: it waits for memory. Above it, it is **compute-bound**: it waits for arithmetic. Predict the ridge from the two
# numbers: how many operations per byte?

# %%
prediction = ...  # operations per byte

# %%
compare(prediction, 1e12 * ceilings.tflops / (1e9 * ceilings.bandwidth_gbps), "operations per byte", how="computed")

# %% [markdown]
# ## Draw the roofline
#
# The horizontal axis is the intensity, and the vertical axis is operations per second. Both are logarithmic. An
# operation of intensity $I$ can reach at most
#
# $$ \min(I \cdot \text{bandwidth},\; \text{peak}) $$
#
# operations per second, where *peak* is the most that the machine can compute. The first term is a slanted line, the second a
# flat one. They meet at the ridge, which is the peak divided by the bandwidth. Together they are the **roofline**: an
# operation that takes its bytes from memory cannot lie above it.

# %%
draw_roofline(ceilings)

# %% [markdown]
# Now place some operations on it. `land` times a call and combines the time with what you counted. `x.mean()` reads
# everything and writes one number. A softmax in a single kernel reads the matrix once and writes it once. We count
# five operations per element: maximum, difference, exponential, sum, quotient.

# %%
side, product_side = (8192, 4096) if device == "cuda" else (4096, 1024)
x, y, out = (torch.randn(side, side, device=device) for _ in range(3))
product_type = getattr(torch, ceilings.dtype)
a, b, c = (torch.randn(product_side, product_side, device=device).to(product_type) for _ in range(3))

# %%
N, k = side * side, product_side
points = [
    land("add", lambda: torch.add(x, y, out=out), bytes_moved=12 * N, operations=N),
    land("square", lambda: torch.mul(x, x, out=out), bytes_moved=8 * N, operations=N),
    land("mean", lambda: x.mean(), bytes_moved=4 * N, operations=N),
    land("softmax", lambda: torch.softmax(x, 1, out=out), bytes_moved=8 * N, operations=5 * N),
    land("matmul", lambda: torch.mm(a, b, out=c), bytes_moved=3 * product_type.itemsize * k**2, operations=2 * k**3),
]

# %% [markdown]
# Before you draw, predict: how many of the five lie under the slanted roof?

# %%
prediction = ...  # of five

# %%
compare(prediction, sum(point.intensity < ceilings.ridge for point in points), "of five", how="computed")
draw_roofline(ceilings, *points)

# %% [markdown]
# Only the matrix product computes much per byte. An operation on the slanted roof gains nothing from a processor that computes
# twice as fast. It gains from moving fewer bytes: a smaller type, or one kernel instead of two.
#
# The distance to the roof tells you how much there is to gain. A point may lie a few per cent above the roof, because
# the roof is a measurement, too. On a CPU, the softmax often lies below it, because an exponential costs far more than
# the one operation that we counted.
#
# PyTorch's softmax on a GPU may lie below as well. On the recorded H200 it reached
# ⟦ "%.0f" | format(100 * recorded(bench="roofline", case="torch softmax, 8192 × 8192", metric="bytes", gpu="H200").value / recorded(bench="roofline", case="torch softmax, 8192 × 8192", metric="median_us", gpu="H200").value / 1e3 / recorded(bench="ceilings", case="large copy", metric="bandwidth_gbps", gpu="H200").value) ⟧ %
# of the roof. You will write one that comes close to it in [Fuse a softmax](../03_triton/03_fuse_a_softmax.ipynb).

# %% [markdown]
# Now experiment. Choose the recorded GPU under *machine* and an operation on matrices of `n` × `n`. At what `n` does
# a matrix product become compute-bound? What does float16 change? A flat roof belongs to one type: a GPU has a different
# one for each type.
#
# <details><summary>Answer</summary>
#
# In float32 a product's intensity is n / 6, so it is compute-bound once n / 6 is above the ridge. In float16 the intensity
# is twice as high, but on a GPU the flat roof is higher as well, so the ridge moves to the right.
#
# </details>

# %%
explore_roofline(ceilings)

# %% [markdown]
# ## A GPU's roofline
#
# Here is the roofline of a recorded GPU. On it are kernels that you will write in this course, each at a large size,
# and some operations of PyTorch. The flat roof is for float16 products. By its data sheet, an H200 moves 4,800 GB/s and
# does 989 · 10¹² float16 operations per second. Predict from these two numbers: at what `n` does a float16 product
# of n × n become compute-bound? It is compared with the `n` that follows from the recorded ceilings.

# %%
prediction = ...  # n

# %%
roofs = recorded("ceilings", "bandwidth_gbps", "tflops")
gbps, tflops = roofs.value("bandwidth_gbps", "large copy"), roofs.value("tflops", "float16 matrix product")
# in float16 the intensity is n / 3, and 1000 * tflops / gbps is the ridge
compare(prediction, round(3 * 1000 * tflops / gbps) if gbps and tflops else None, how="recorded")
recorded_roofline()

# %% [markdown]
# By their intensity, all are memory-bound except the products of 1024 × 1024 and of 8192 × 8192, which are to the right of
# the ridge.
#
# The time of `fuse` includes a copy of its result that the count leaves out. The flat roof was measured on random
# numbers. With matrices of *ones*, the roof of the recorded H200 would be
# ⟦ "%.0f" | format(100 * (recorded(bench="constant_data", case="float16 product, 8192 × 8192, torch.ones", metric="tflops", gpu="H200").value / recorded(bench="constant_data", case="float16 product, 8192 × 8192, torch.randn", metric="tflops", gpu="H200").value - 1)) ⟧ %
# higher, and no product of real data would reach it. [Catch a lying benchmark](06_catch_a_lying_benchmark.ipynb)
# explains why.
#
# Compare the two small products, 256 × 256 and 1024 × 1024, and divide $2n^3$ by their speed. The second does 64 times the work of
# the first, but both take about as long. The next section explains that.

# %% [markdown]
# ## Below the roof
#
# **Too little work.** Here is `x + y` for ten elements: 120 bytes. Divide by your bandwidth, and you have the time that the roof
# allows. How long does a call from Python into PyTorch take? Predict the order of magnitude: how many times longer than the roof
# allows?

# %%
prediction = ...  # times as long

# %%
p, q, r = (torch.randn(10, device=device) for _ in range(3))
tiny = land("add, 10 elements", lambda: torch.add(p, q, out=r), bytes_moved=120, operations=10)
compare(prediction, ceilings.roof(tiny.intensity) / tiny.tflops, "times as long", within=10)

# %% [markdown]
# Every call has a fixed cost: about a microsecond on a CPU, a few on a GPU, whose memory could move megabytes in that time. A small
# operation consists of hardly anything else. It is **overhead-bound**.

# %% [markdown]
# **More bytes than you counted.** Memory does not deliver single floats. Most CPUs fetch *lines* of 64 bytes, and a
# GPU fetches **sectors** of 32. The copy below takes every 16th column of `x`. By our count it moves 8 bytes per
# element: one float in, one out. To have a place on the axes, it counts as one operation per element. Predict: what
# share of the roof does it reach? Write 0.5 for half.

# %%
prediction = ...  # share of the roof

# %%
columns, target = x[:, ::16], torch.empty_like(x[:, ::16])
sparse = land("each 16th column", lambda: target.copy_(columns), bytes_moved=8 * N // 16, operations=N // 16)
compare(prediction, sparse.tflops / ceilings.roof(sparse.intensity))

# %%
draw_roofline(ceilings, points[0], tiny, sparse)

# %% [markdown]
# The roof was right, but the count was not: for every float that was used, a whole line or sector came in. We counted 8 bytes,
# but a CPU moved at least 64 + 4, and a GPU at least 32 + 4. So expect a share of about 0.12 on a CPU and 0.22 on a GPU, or less.
# [Move bytes well](../02_load_inline/02_move_bytes_well.ipynb) is about this.

# %% [markdown]
# Other reasons for a point below the roof:
#
# - **Too few bytes in flight.** Memory is slow to answer, but it can answer many requests at once. A kernel that asks for one
#   value at a time leaves most of the bandwidth unused.
# - **The wrong ceiling.** A matrix product in float32 cannot reach the roof of float16, and `exp` and `sin` have a lower roof than
#   `+`.
# - **Moved more than once.** A softmax in five kernels moves four times what one kernel must. If you count what one must move, the
#   five together lie at a quarter of the roof.

# %% [markdown]
# ## Above the roof
#
# The slanted roof is the roof of *memory*. Square a matrix so small that it fits in a cache, again and again. From the second time
# on, nothing has to come from memory. Predict how much faster your cache is: at what multiple of the roof does the point lie?
# A factor of two is close enough.

# %%
prediction = ...  # times the roof

# %%
l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size if device == "cuda" else 2**20
small = int((l2_bytes / 2 / 8) ** 0.5)  # in and out fill half of the L2 cache
s, t = (torch.randn(small, small, device=device) for _ in range(2))
cached = land("square, cached", lambda: torch.mul(s, s, out=t), bytes_moved=8 * small**2, operations=small**2)
compare(prediction, cached.tflops / ceilings.roof(cached.intensity), "times the roof", within=2)

# %%
draw_roofline(ceilings, points[1], cached)

# %% [markdown]
# A point well above the roof is drawn as a square. It breaks no law of nature: the cache has a slanted roof of its own, higher up.
# But it is a warning. A benchmark that repeats a small problem measures the cache, and a model that runs the operation once will
# not see that speed.
#
# If yours is barely above the roof, the fixed cost of each call is the reason: an operation that fits in a cache is over quickly. On the
# recorded GPU, a special kernel went over its cache many times in one launch:

# %%
recorded("ceilings", "bandwidth_gbps")

# %% [markdown]
# *Large copy* is the roof of memory, *copy within L2* is close to that of the cache.
#
# So if a point lies above the roof, ask in this order: did I count too much? Did the bytes come from a cache? Is the clock right?

# %% [markdown]
# ## Exercise: predict a time
#
# Write `predict_ms(operation, machine)`. It returns the milliseconds that the operation takes on the machine if it reaches the
# roofline: the time to move its bytes or the time to compute its operations, **whichever is longer**. Both happen at the same
# time, so the shorter one does not show.
#
# `machine` is `{"bandwidth_gbps": …, "tflops": …}`. `operation` is one of these:
#
# | `kind` | what it does | its other keys |
# | --- | --- | --- |
# | `"copy"` | `y.copy_(x)` | `shape`, `dtype` |
# | `"relu"` | `torch.relu(x)` | `shape`, `dtype` |
# | `"add"` | `x + y` | `shape`, `dtype` |
# | `"sum"` | `x.sum()`, over everything | `shape`, `dtype` |
# | `"convert"` | `x.to(other type)` | `shape`, `dtype`, `to` |
# | `"add_row"` | `x + row`, where the row has `shape[1]` elements | `shape`, `dtype` |
# | `"matmul"` | `batch` products of $m \times k$ and $k \times n$ | `batch`, `m`, `n`, `k`, `dtype` |
#
# `shape` is a list such as `[4096, 1024]`. `dtype` and `to` are names such as `"float16"`. Every result is a new tensor of type
# `dtype` (or `to`). Count a `relu` or a `convert` as one operation per element or none, as you like: everything except
# `matmul` is memory-bound on every machine that `check` asks about. *(about 15 lines)*
#
# Your whole solution must be in this cell, with its imports. It cannot see `ceilings`; use those in `machine`.

# %% nbgrader={"grade_id": "predict_ms", "solution": true}
import math

import torch


def predict_ms(operation, machine):
    size = getattr(torch, operation["dtype"]).itemsize  # bytes of an element
    ### BEGIN SOLUTION
    kind = operation["kind"]
    if kind == "matmul":
        batch, m, n, k = (operation[name] for name in ("batch", "m", "n", "k"))
        moved = batch * (m * k + k * n + m * n) * size  # two matrices in, one out
        operations = 2 * batch * m * n * k  # multiplications and additions
    else:
        elements = math.prod(operation["shape"])
        more = {"add": elements, "add_row": operation["shape"][-1]}.get(kind, 0)  # of the second input
        read = (elements + more) * size
        result_size = getattr(torch, operation.get("to", operation["dtype"])).itemsize
        written = (1 if kind == "sum" else elements) * result_size
        moved, operations = read + written, elements
    memory_s = moved / (machine["bandwidth_gbps"] * 1e9)
    compute_s = operations / (machine["tflops"] * 1e12)
    return 1e3 * max(memory_s, compute_s)
    ### END SOLUTION


# %% [markdown]
# `check` asks about invented machines, where nothing can be timed, only counted: each answer must be within
# ⟦ "%g" | format(100 * exercise("predict_ms").cases[0].budget.relative) ⟧ % of the right one. With a GPU it also asks about yours
# and compares with what it measures there: each answer must be within
# ⟦ "%g" | format(100 * exercise("predict_ms").budget.relative) ⟧ %. If you see a `NameError`, run the exercise's cell first.

# %% nbgrader={"grade_id": "check-predict_ms", "grade": true, "locked": true, "points": 4}
check(predict_ms)

# %% [markdown]
# ## Try it on your machine
#
# Now compare your function with real times. The next cell runs seven operations in PyTorch: `copy`, `add`, `sum`, `convert`,
# `add_row`, a large `matmul`, and a batch of `matmul` with `k` = 16.

# %%
try_predictions(predict_ms, ceilings)

# %% [markdown]
# If *measured / predicted* is close to 1, there is nothing left to gain. If it is 2, a better kernel could be up to twice as
# fast, or the count is too low. So this quotient tells you where to look before you have changed a line. If it is far below
# 1, other work slowed the machine while you measured its ceilings: measure them again.
#
# On a GPU, predicted / measured was recorded for more operations: the share of the roof that each one reaches. All are
# simple operations on large tensors. Guess: how large is the smallest share? Predict a number between 0 and 1.

# %%
prediction = ...  # the smallest share of the roof

# %%
found = recorded("predictions", "predicted_over_measured")
compare(prediction, min((row["value"] for row in found.rows), default=None), how="recorded")
found.plot()

# %% [markdown]
# Two are furthest below the roof: `add_row`, and `convert` from float16 to float32. Their bytes are counted correctly, but
# PyTorch does not run its fastest kernel for them, the one in which each thread loads several neighbouring elements at once:
#
# - For a broadcast row, it runs a kernel that computes the address of every element and loads it on its own.
# - From float32 to float16 it has a kernel for exactly these types. From float16 to float32 it runs one for all types, which looks up
#   the type of each element.
#
# So a better kernel could be faster here. `check` leaves both out when it times your GPU.

# %% [markdown]
# ## Extra credit
#
# No points, but each task shows you something.
#
# 1. Use `land` on the product of two matrices with 16, 64 and 256 rows and columns. Which are overhead-bound?
#
# <details><summary>Answer</summary>
#
# Compare each time with that of a launch, which you know from `add, 10 elements`. On a GPU, expect all three to take about as
# long as that. On a CPU core, expect the product of 256 to be close to the flat roof already.
#
# </details>
#
# 2. Use `land` on `torch.sin(x, out=out)`, and count a sine as one operation. Does it lie as high as `square`? Why?
#
# <details><summary>Answer</summary>
#
# A sine takes many instructions. On a CPU core, expect it to lie lower than `square`: it is compute-bound although its counted
# intensity is low. A GPU computes far more per byte, so there, expect both to be memory-bound and about equally high.
#
# </details>
#
# 3. Use `land` on `x.t().contiguous()`. By the count it is a copy. What share of the roof does it reach, and why?
#
# <details><summary>Answer</summary>
#
# Either the reads or the writes go down a column and use only part of each line or sector at a time. So expect less than a copy
# reaches, unless PyTorch works in small blocks. In chapter 2 you write a transpose that does.
#
# </details>
#
# 4. `x.to(torch.float16)` and then a sum in float16, or a sum in float32 directly: which moves fewer bytes?
#
# <details><summary>Answer</summary>
#
# The direct sum: 4 bytes per element. Converting first moves 4 + 2 bytes, and the sum then reads 2 more.
#
# </details>
#
# 5. Measure the second slanted roof: the bandwidth of a copy that fits in your cache, over sizes from 16 KiB to 64 MiB.
#
# <details><summary>Answer</summary>
#
# Look for a staircase: one step per cache, and the last step is memory. For the smallest sizes the fixed cost of a call hides
# the cache, so the curve rises first.
#
# </details>

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - counted bytes (every input in, every result out) and operations ($2mnk$ for a matrix product)
# - divided one by the other, and found what limits an operation
# - measured both ceilings of your machine, and the ridge between them
# - seen points below the roof, because of too little work or uncounted bytes, and one above it, because its data came
#   from a cache
# - written a function that predicts a time without running anything
#
# ## Check yourself
#
# <details><summary>You replace float32 by float16 in <code>x + y</code>. What happens to the intensity, and to the time?</summary>
#
# Half the bytes for the same operations: the intensity doubles, and the time halves.
#
# </details>
#
# <details><summary>A kernel's intensity is 0.25, and the ridge is at 150. Somebody offers you a GPU with twice the TFLOPS. Do you take it?</summary>
#
# Not for this kernel. It is memory-bound, and would be so on both.
#
# </details>
#
# <details><summary>Two kernels of the same intensity follow each other, and you fuse them so that the intermediate result stays on the chip. Where does the new point lie?</summary>
#
# Further to the right: the same operations, fewer bytes. If it stays on the slanted roof, it is higher as well.
#
# </details>
#
# <details><summary>A kernel reaches 130 % of the memory roof, and the clock is right. What can be the reason?</summary>
#
# Part of its data came from a cache. Or it moves fewer bytes than you counted, for example because it skips zeros.
#
# </details>
#
# <details><summary>A batch of products with <code>k = 16</code> in float16 takes far longer than its operations suggest. Why?</summary>
#
# Its intensity is less than 16, far below the ridge of today's GPUs. It is memory-bound, mostly by writing the results.
#
# </details>
#
# ## Read on
#
# - [Roofline: an insightful visual performance model](https://doi.org/10.1145/1498765.1498785): the paper by Williams, Waterman and
#   Patterson.
# - [GPU Performance Background](https://docs.nvidia.com/deeplearning/performance/dl-performance-gpu-background/index.html): NVIDIA on
#   memory-bound and compute-bound layers.
# - [Making Deep Learning Go Brrrr From First Principles](https://horace.io/brrr_intro.html): compute, memory and overhead, for people
#   who train models.
#
# **Next:** [Let the compiler fuse](05_let_the_compiler_fuse.ipynb), which moves points to the right for you. Or go back to the
# [syllabus](../README.ipynb).
