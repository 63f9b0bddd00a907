# %% [markdown]
# # Draw the roofline
#
# **You will** measure what your machine can do at most, draw it as a *roofline*, place operations on it, and write a
# function that predicts how long an operation takes without running it.
#
# **You will learn**
#
# - to count the bytes that an operation moves and the operations that it computes
# - what arithmetic intensity is, and why it decides what an operation waits for
# - to measure the two ceilings of a machine, and to find the ridge between them
# - why a kernel lies below the roof, and when one lies above it
#
# **You need** about 60 minutes, PyTorch, no CUDA. With an NVIDIA GPU you draw its roofline. Without one you draw your
# CPU's: the numbers are smaller, the reasoning is the same. A GPU's is then shown as it was recorded.

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
# A processor does two things that take time: it moves bytes between memory and the chip, and it computes. So count both.
# Bytes first.
#
# Take `x + y` for two float32 matrices of 4096 × 4096. Every input must come in once, and the result must go out once.
# A float32 has 4 bytes. Predict: how many megabytes are moved in all? One MB is $10^6$ bytes.

# %%
prediction = ...  # megabytes

# %%
elements = 4096 * 4096
read, written = 2 * elements * 4, elements * 4
compare(prediction, round((read + written) / 1e6), "MB", how="computed")

# %% [markdown]
# Two matrices in, one out: 12 bytes for each element of the result. The write counts as much as a read, and is easily
# forgotten.
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
# What about `x + row`, where `row` is a single row that is added to each row of `x`? Predict for 4096 × 4096 float32: how
# many megabytes must be moved?

# %%
prediction = ...  # megabytes

# %%
row = 4096
compare(prediction, round(4 * (elements + row + elements) / 1e6), "MB", how="computed")

# %% [markdown]
# The row has 16 kB. It is needed 4,096 times, but after the first time it lies in a cache. So it counts once, and is as
# good as nothing. Count what *must* be moved, not what the code mentions.

# %% [markdown]
# ## Count the operations
#
# An addition is one operation, and so is a multiplication. `x + y` does one for each element, and so does `x.sum()`, near
# enough. A copy computes nothing.
#
# A matrix product does more. For each of the $m \cdot n$ elements of the result it multiplies $k$ pairs and adds them up.
# Predict: how many operations does the product of two matrices of 1024 × 1024 take, in billions?

# %%
prediction = ...  # billions

# %%
m = n = k = 1024
operations = 2 * m * n * k  # a multiplication and an addition each
compare(prediction, round(operations / 1e9, 2), "billion operations", how="computed")

# %% [markdown]
# That is $2mnk$. Operations a second have a name, FLOPS (floating-point operations per second): one GFLOPS is $10^9$ of
# them, one TFLOPS $10^{12}$.

# %% [markdown]
# ## Divide one by the other
#
# Operations divided by bytes is the **arithmetic intensity**: how much an operation computes for each byte that it moves.
#
# For `x + y` in float32 that is 1 operation for 12 bytes: 0.083. Predict: what is it for the product of two float32
# matrices of 1024 × 1024?

# %%
prediction = ...  # operations a byte

# %%
bytes_moved = 4 * (m * k + k * n + m * n)
compare(prediction, round(operations / bytes_moved, 1), "operations a byte", how="computed")

# %% [markdown]
# For square matrices it is $2n^3 / 12n^2 = n/6$. It grows with the matrix, while that of `x + y` is the same at any size.
# In float16 there are half as many bytes, and the intensity doubles.

# %% [markdown]
# ## Measure two ceilings
#
# How many bytes can your machine move in a second? Time a large copy and a large addition, and take the better one. How
# many operations can it do? Time a large matrix product. Such *measured* ceilings are lower than those on a data sheet,
# and nearer to what a kernel can reach. (On a CPU we take one core, so that no thread has to wait for another.)
#
# Predict, if only the order of magnitude: how many GB/s does your machine move?

# %%
prediction = ...  # GB/s

# %%
ceilings = measure_ceilings()
compare(prediction, ceilings.bandwidth_gbps, "GB/s", within=10)
ceilings

# %% [markdown]
# Run the cell once more. How much do the two numbers change? Whatever else your machine does can only lower them, so the
# measurement keeps the best of several tries.
#
# Now put the two together. At one intensity, the **ridge**, moving takes just as long as computing. Below it an operation
# waits for memory, above it for arithmetic. Predict the ridge from the two numbers: how many operations a byte?

# %%
prediction = ...  # operations a byte

# %%
compare(prediction, 1e12 * ceilings.tflops / (1e9 * ceilings.bandwidth_gbps), "operations a byte", how="computed")

# %% [markdown]
# ## Draw the roofline
#
# Intensity to the right, operations a second upwards, both logarithmic. An operation of intensity $I$ can reach at most
#
# $$ \min(I \cdot \text{bandwidth},\; \text{peak}) $$
#
# operations a second, where *peak* is the most that the machine computes. The first is a slanted line, the second a flat
# one. Together they are the roof: what takes its bytes from memory cannot lie above it. (A measured roof is uncertain by
# some per cent. On a CPU, what only reads may lie higher still: before a CPU writes to memory, it often reads the
# same place, and those bytes are not in our count.)

# %%
draw_roofline(ceilings)

# %% [markdown]
# Now some operations. `land` times a call and puts what you counted beside it. `x.mean()` reads everything and writes
# one number. A softmax in a single kernel reads the matrix once and writes it once. We count five operations an element:
# maximum, difference, exponential, sum, quotient.

# %%
side, product_side = (8192, 4096) if device == "cuda" else (4096, 1024)
x, y, out = (torch.ones(side, side, device=device) for _ in range(3))
product_type = getattr(torch, ceilings.dtype)
a, b, c = (torch.ones(product_side, product_side, dtype=product_type, device=device) for _ in range(3))

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
# Predict before you draw: how many of the five lie under the slanted roof?

# %%
prediction = ...  # of five

# %%
compare(prediction, sum(point.intensity < ceilings.ridge for point in points), "of five", how="computed")
draw_roofline(ceilings, *points)

# %% [markdown]
# Only the matrix product computes much for each byte. What lies on the slanted roof gains nothing from a processor that
# computes twice as fast. What helps is to move fewer bytes: a smaller type, or one kernel in place of two.
#
# How far a point is below the roof says how much is left to gain: on the roof, these bytes and operations are done as fast
# as this machine can. (On a CPU the softmax often lies below. An exponential costs far more than the one operation that
# we counted for it.)
#
# On a GPU PyTorch's softmax may lie below as well. On the recorded H200 it reached
# ⟦ "%.0f" | format(100 * recorded(bench="roofline", case="torch softmax, 8192 × 8192", metric="bytes", gpu="H200").value / recorded(bench="roofline", case="torch softmax, 8192 × 8192", metric="median_us", gpu="H200").value / 1e3 / recorded(bench="ceilings", case="large copy", metric="bandwidth_gbps", gpu="H200").value) ⟧ %
# of the roof. There the exponentials are not to blame. The kernel that you write in
# [Fuse a softmax](../03_triton/03_fuse_a_softmax.ipynb) computes as many of them, and can come close to the roof.

# %% [markdown]
# Now play. Choose the recorded GPU under *machine*, and an operation on matrices of `n` × `n`. From which `n` on is a
# matrix product limited by arithmetic? (On a CPU it may be so for every `n` of the slider.) What does float16 change?
# (The flat roof is that of one type. A GPU has another one for each.)

# %%
explore_roofline(ceilings)

# %% [markdown]
# ## A GPU's roofline
#
# This is a GPU as it was recorded. On it are kernels that you will write in this course, each at a large size, and some
# operations of PyTorch. (Kernels that compute nothing, such as a transpose, have no place on these axes. A flat roof, if
# it was recorded, is that of float16 products. The kernels whose names begin with `ls_` compute in other types, and have
# a lower roof of their own.)

# %%
recorded_roofline()

# %% [markdown]
# Look at the shares of the roof below the picture. A few per cent more than 100 are no contradiction: this roof is a
# measurement, too, of a large copy or addition and of one product. On a GPU the two small products, 256 × 256 and
# 1024 × 1024, lie far below the large ones. Divide $2n^3$ by their speed: the second does 64 times the work of the first,
# and yet both take about as long. The next section says what that is.

# %% [markdown]
# ## Below the roof
#
# **Too little work.** Here is `x + y` for ten elements: 120 bytes. Divide by your bandwidth: that is about how long the roof
# allows. And how long may a call from Python into PyTorch take? Predict, if only the order of magnitude: how many times
# as long as the roof allows does it take?

# %%
prediction = ...  # times as long

# %%
p, q, r = (torch.ones(10, device=device) for _ in range(3))
tiny = land("add, 10 elements", lambda: torch.add(p, q, out=r), bytes_moved=120, operations=10)
compare(prediction, ceilings.roof(tiny.intensity) / tiny.tflops, "times as long", within=10)

# %% [markdown]
# Each call has a price that does not depend on its size: about a microsecond on a CPU, a few on a GPU, whose memory could
# move megabytes in that time. Small operations pay it and hardly anything else.

# %% [markdown]
# **More bytes than you counted.** Memory does not deliver single floats. Most CPUs fetch *lines* of 64 bytes, a GPU
# *sectors* of 32. The copy below takes each 16th column of `x`. By the count it moves 8 bytes an element: one float in,
# one out. (It computes nothing. To have a place on the axes, it counts here as one operation an element.) Predict: which
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
# The roof was right, the count was not: for each float that was used, a whole line or sector came in. A CPU moved at least
# 64 + 4 bytes where we counted 8, so it reaches a share of 0.12 at most. With 32 + 4 bytes, a GPU reaches 0.22 at most.
# (If two sectors come in for each element, it is half of that.)
# [Move bytes well](../02_load_inline/02_move_bytes_well.ipynb) is about this.

# %% [markdown]
# Other reasons why a point lies below the roof:
#
# - **Too few bytes under way.** Memory is slow to answer, but answers many requests at once. A kernel that asks for one
#   value and waits for it leaves most of the bandwidth unused.
# - **The wrong ceiling.** A matrix product in float32 cannot reach the roof of float16, and `exp` and `sin` have a lower
#   roof than `+`.
# - **Moved more than once.** A softmax in five kernels moves four times what one kernel must. Count what one must move,
#   and the five together lie at a quarter of the roof.

# %% [markdown]
# ## Above the roof
#
# The slanted roof is that of *memory*. Square a matrix that is so small that it fits in a cache, again and again. From
# the second time on nothing has to come from memory. Predict, by a guess at how much faster your cache is: at which
# multiple of the roof does the point lie?

# %%
prediction = ...  # times the roof

# %%
l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size if device == "cuda" else 2**20
small = int((l2_bytes / 2 / 8) ** 0.5)  # in and out fill half of the L2 cache
s, t = (torch.ones(small, small, device=device) for _ in range(2))
cached = land("square, cached", lambda: torch.mul(s, s, out=t), bytes_moved=8 * small**2, operations=small**2)
compare(prediction, cached.tflops / ceilings.roof(cached.intensity), "times the roof")

# %%
draw_roofline(ceilings, points[1], cached)

# %% [markdown]
# A point clearly above the roof is drawn as a square. It breaks no law of nature: the cache has a slanted roof of its own,
# further up. But it is a warning. A benchmark that repeats a small problem measures the cache, and a model that runs the
# operation once will not see that speed.
#
# Does yours lie hardly above, or not at all? The price of each call counts as well, and what fits in a cache is done
# soon. On the recorded GPU, another kernel went over its cache many times in one launch, so that the price hardly counts:

# %%
recorded("ceilings", "bandwidth_gbps")

# %% [markdown]
# *Large copy* is the roof of memory: a copy or an addition, whichever moves more. *Copy within L2* is nearer to the cache's
# own roof. In the recorded roofline, the point *square within L2* pays for a launch each time, and lies lower: only a
# little above the roof of memory.
#
# So when a point lies above the roof, ask in this order: did I count too much? Did the bytes come from a cache? Is the
# clock right?

# %% [markdown]
# ## Exercise: predict a time
#
# Write `predict_ms(operation, machine)`. It returns the milliseconds that the roofline allows the operation on the
# machine: the time to move its bytes or the time to compute its operations, **whichever is longer**. (Both go on at the
# same time, so the shorter one does not show.)
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
# | `"add_row"` | `x + row`, the row of `shape[1]` elements | `shape`, `dtype` |
# | `"matmul"` | `batch` products of $m \times k$ and $k \times n$ | `batch`, `m`, `n`, `k`, `dtype` |
#
# `shape` is a list such as `[4096, 1024]`. `dtype` and `to` are names such as `"float16"`. Each result is a new tensor of
# type `dtype` (or `to`). Whether a `relu` or a `convert` counts as one operation an element or none does not matter here:
# all but `matmul` wait for memory on every machine that is asked about. *(about 15 lines)*
#
# The cell is a complete submission: it imports all it needs, and knows no `ceilings` but those in `machine`.

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
# ⟦ "%g" | format(100 * exercise("predict_ms").cases[0].budget.relative) ⟧ % of the right one. With a GPU it also asks about
# yours, and compares with what it measures there: each answer must be within
# ⟦ "%g" | format(100 * exercise("predict_ms").budget.relative) ⟧ %. A `NameError`? Run the exercise's cell first.

# %% nbgrader={"grade_id": "check-predict_ms", "grade": true, "locked": true, "points": 4}
check(predict_ms)

# %% [markdown]
# ## Try it on your machine
#
# Now compare your function with real time. The next cell runs seven operations in PyTorch: `copy`, `add`, `sum`,
# `convert`, `add_row`, a large `matmul`, and a batch of `matmul` with `k` = 16. Predict: for which of them is the roofline
# the furthest off?

# %%
prediction = ...  # an operation's name

# %%
try_predictions(predict_ms, ceilings)

# %% [markdown]
# Where *measured / predicted* is near 1, there is nothing left to gain. Where it is 2, a better kernel could be up to twice
# as fast, or the count is too low. So this quotient says where to look before you have changed a line. (Run the cell
# again: if your machine does other work, the quotients move.)
#
# The same was recorded on a GPU, for more operations. Here it is predicted / measured, a share of the roof:

# %%
recorded("predictions", "predicted_over_measured")

# %% [markdown]
# Two lie lowest: `add_row`, and `convert` from float16 to float32. Their bytes are counted right. But PyTorch has several
# kernels for such work. Its fast one loads several neighbouring elements at once.
#
# - For a row that is repeated it runs another one, which computes the place of each element, and loads it alone.
# - From float32 to float16 it has a kernel made for just these two types. From float16 to float32 it runs one for all
#   types, which asks for each element what type it has.
#
# So here a better kernel could be faster. `check` leaves both out when it times your GPU.

# %% [markdown]
# ## Extra credit
#
# No points, but each shows something.
#
# 1. Land the product of two matrices of 16, 64 and 256 rows and columns. Where do they lie, and which of them are held
#    back by the price of a call?
# 2. Land `torch.sin(x, out=out)` beside `square`, and count a sine as one operation. Does it lie as high? What does that say
#    about what it waits for?
# 3. Land `x.t().contiguous()`. By the count it is a copy. Which share of the roof does it reach, and why?
# 4. `x.to(torch.float16)` and then a sum in float16, or a sum in float32 at once: which moves fewer bytes?
# 5. Measure the second slanted roof: the bandwidth of a copy that fits in your cache, over sizes from 16 KiB to 64 MiB.

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - counted bytes (every input in, every result out) and operations ($2mnk$ for a matrix product)
# - divided one by the other, and found what an operation waits for
# - measured both ceilings of your machine, and the ridge between them
# - seen points below the roof, for want of work and for bytes that were not counted, and one above it, out of a cache
# - written a function that predicts a time without running anything
#
# ## Check yourself
#
# <details><summary>You replace float32 by float16 in <code>x + y</code>. What happens to the intensity, and to the time?</summary>
#
# Half the bytes, the same operations: the intensity doubles, and the time halves.
#
# </details>
#
# <details><summary>A kernel's intensity is 0.25, and the ridge is at 150. Somebody offers you a GPU with twice the TFLOPS. Do you take it?</summary>
#
# Not for this kernel. It waits for memory, and would do so on both.
#
# </details>
#
# <details><summary>Two kernels of the same intensity follow each other, and you fuse them so that what is in between stays on the chip. Where does the new point lie?</summary>
#
# Further to the right: as many operations, fewer bytes. If it stays on the slanted roof, it is higher as well.
#
# </details>
#
# <details><summary>A kernel reaches 130 % of the memory roof, and the clock is right. What can be the reason?</summary>
#
# Part of its data came from a cache. Or it moves fewer bytes than you counted, for instance when it skips zeros.
#
# </details>
#
# <details><summary>A batch of products with <code>k = 16</code> in float16 takes far longer than its operations say. Why?</summary>
#
# Its intensity is less than 16, which is far below the ridge of today's GPUs. It waits for memory, mostly for the writing
# of the results.
#
# </details>
#
# **Next:** [Let the compiler fuse](05_let_the_compiler_fuse.ipynb), which moves points to the right for you. Or go back
# to the [syllabus](../README.ipynb).
