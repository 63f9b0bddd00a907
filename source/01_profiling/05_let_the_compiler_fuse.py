# %% [markdown]
# # Let the compiler fuse
#
# **You will** watch `torch.compile` turn a line of PyTorch into one kernel, stage by stage. Then you rewrite a function
# that it cannot compile in one piece, until it can.
#
# **You will learn**
#
# - what TorchDynamo, AOTAutograd and Inductor each do, and how to look at what each hands on
# - which operations are fused into one kernel, and what keeps them apart
# - what a graph break is, how to find each one, and how to remove it
# - what a recompile is, how to count them, and how to prevent them
#
# **You need** about 60 minutes, PyTorch, and a C++ compiler for one cell (`grader doctor` says whether it is there). No
# GPU is needed: everything is captured, compiled and counted on the CPU as well. With an NVIDIA GPU you see the Triton
# code that is made for yours, and measure speed. Without one, this is shown as recorded on another machine.

# %%
from grader import benchmark, check, device
from grader.explore import compare, count_fused, count_traffic, draw_graph, generated_code
from grader.explore import graph_breaks, joint_graph, recorded, recorded_code

device

# %%
import torch

# %% [markdown]
# ## Five kernels for one
#
# Here is a function whose result you know: it is 1 for every `x`, and its derivative is 0. This makes it easy to see
# whether a compiler changed anything.


# %%
def one(x):
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


# %% [markdown]
# Without a compiler PyTorch runs in *eager* mode: each operation starts a kernel as Python comes to it. The kernel reads
# its input from memory, and writes its result to memory.
#
# Predict: how many kernels does `one` start?

# %%
prediction = ...  # kernels of one(x) in eager mode

# %%
x = torch.rand(1024, 1024, device=device)
eager = count_traffic(one, x)
compare(prediction, len(eager.steps), "kernels", how="computed")
eager

# %% [markdown]
# Together they move 11 times the size of `x`. A single kernel could do all five: read `x` once, keep what lies between
# in *registers*, and write the result once. (A GPU runs a kernel in thousands of *threads*, each on a few elements. A
# thread's registers are the few places for numbers that it has at hand.) It moves 2 times the
# size of `x`. Operations as light as these lie far under the roofline's ridge: time goes mostly with the bytes.
#
# To put several operations into one kernel is to *fuse* them.
#
# You could write that kernel yourself. `torch.compile` writes it for you, in three stages:
#
# 1. **TorchDynamo** watches Python run and writes the operations down: a graph.
# 2. **AOTAutograd** adds the graph of the gradient, before anything runs.
# 3. **Inductor** decides what goes into one kernel, and writes its source: Triton for a GPU, C++ for a CPU.

# %% [markdown]
# ## TorchDynamo: from Python to a graph
#
# `torch.compile` lets you put your own function in the place of all that comes after TorchDynamo. It is called a
# *backend*: it gets a graph and example inputs, and returns something that can be called. This one compiles nothing. It
# keeps the graph, and gives back the graph's own `forward`.

# %%
graphs = []


def keep(graph, inputs):
    graphs.append(graph)
    return graph.forward


# %% [markdown]
# Predict: we compile `one` with this backend, and call it three times. How often is the backend called?

# %%
prediction = ...  # calls of the backend

# %%
captured = torch.compile(one, backend=keep)
for _ in range(3):
    result = captured(x)
compare(prediction, len(graphs), "calls")
print("largest error:", (result - 1).abs().max().item())

# %% [markdown]
# The line with `torch.compile` captures nothing yet; the first *call* does. Later calls check that what was assumed still
# holds: the type of `x`, its shape, its device. These checks are called *guards*. They hold here, so the graph is
# used again.
#
# This is the graph:

# %%
draw_graph(graphs[0], "What TorchDynamo captured")

# %% [markdown]
# No values and no Python are left in it, only operations on tensors. It is an *FX graph*, and it can be printed as
# Python. `L_x_` is the local variable `x`, and `sin = None` lets go of a tensor that is not needed any more.

# %%
print(graphs[0].code)

# %% [markdown]
# ## AOTAutograd: the gradient, ahead of time
#
# In eager mode, autograd notes down what it will need while the function runs forward. Afterwards it goes backward.
# AOTAutograd (*ahead of time*) traces both before anything runs, into one *joint graph*.

# %%
x_grad = torch.rand(1000, requires_grad=True)
joint = joint_graph(one, x_grad)
draw_graph(joint.joint, "Forward and backward in one graph", ("result", "gradient of x"))

# %% [markdown]
# `primals_1` is the input `x`. `tangents_1` is the gradient of the result, which comes in from whatever is computed next.
# `pow 1` and `mul 2` are the derivative of a square. The dashed boxes need the incoming gradient, so they must run later.
# All others could run in either pass.
#
# Now the graph is cut into a forward and a backward graph. What crosses the cut must be kept in memory from one to the
# other. In eager mode three tensors are kept: `x`, its sine and its cosine.
#
# Predict: how many does AOTAutograd keep?

# %%
prediction = ...  # tensors that are kept for the backward graph

# %%
compare(prediction, len(joint.saved), "tensors", how="computed")
print("kept:", *joint.saved)
draw_graph(joint.backward, "The backward graph", ("gradient of x",))

# %% [markdown]
# It keeps `x` alone, and the backward graph computes sine and cosine **again**. The cut is a *minimum cut*: among the
# ways to divide the graph that repeat cheap operations only, the one where the fewest bytes cross. Computing a sine again
# costs less than fetching it from memory, if a fused kernel has `x` at hand anyway.

# %% [markdown]
# ## Inductor: from a graph to a kernel
#
# The last stage fuses, and writes source. This cell compiles for real, which takes some seconds: on a CPU a C++
# compiler runs.
#
# Predict: how many kernels are left of five?

# %%
prediction = ...  # kernels after compilation

# %%
code = generated_code(one, x)
compare(prediction, len(code), "kernels", how="computed")
code.beside_eager()

# %% [markdown]
# Look at the lines with `tmp`: a load, then sine, cosine, squares and sum in local variables, then one store. A square
# is written as a product. In the C++ for a CPU, `Vectorized` means that one instruction handles several elements, and
# `#pragma omp` that the cores share the loop.
#
# On a GPU you see Triton instead, a language of Python's syntax that chapter 3 teaches. This was recorded on one:

# %%
recorded_code("sin2_cos2").beside_eager(one, x)

# %% [markdown]
# A GPU runs a kernel as many *blocks* of threads, and each block takes a part of the elements. So, in Triton:
#
# - `xindex` holds the numbers of the block's elements, and `xmask` says which of them exist.
# - `tl.load`, the `tmp` lines, `tl.store`: the same sequence as in C++.
# - A name such as `triton_poi_fused_add_cos_pow_sin_0` tells what was fused. `poi` is *pointwise*: each element by
#   itself. `red` and `per` are *reductions*: sums, maxima and the like.
#
# Compilation should not change the result:

# %%
result = code.function(x)
print("largest error:", (result - 1).abs().max().item())

# %% [markdown]
# Predict: on a large vector on a GPU, how many times as fast is the compiled function? The traffic is 11 before and 2
# after.

# %%
prediction = ...  # times as fast as eager

# %%
found = recorded("fusion", "ratio_vs_eager")
compare(prediction, found.value("ratio_vs_eager", "sin² + cos²"), "times", how="recorded")
print(found.origin)

# %% [markdown]
# If time went with the bytes alone, it would be 11 / 2 = 5.5. The recorded factor is smaller. The recorded times stand in
# the last table of this notebook. Divide the bytes by them, and you find: the five eager kernels move theirs at the speed
# of a copy, and the fused kernel does not.
#
# There are two possible reasons. It computes a sine **and** a cosine for each element that it moves. And the recorded
# vector has an odd length, so each of its loads takes a single element
# ([Look inside the compiler](../03_triton/07_look_inside_the_compiler.ipynb) shows why). Which of them counts how much
# was not measured.

# %% [markdown]
# ## What can be one kernel
#
# Inductor fuses an operation with the one before if a block can do both with what it already has. The rules of thumb:
#
# - **Pointwise after pointwise**: yes, if the shapes agree.
# - **Pointwise after a reduction of each row**: yes. A block reads its row, reduces it, and goes on with that row.
# - **Pointwise after a reduction of the whole tensor**: no. The sum is known only when *all* blocks are done, and blocks
#   do not wait for each other. The kernel ends there, and another begins.
#
# `count_fused` runs Inductor up to this decision and no further, so it needs no compiler. It gives the number of
# kernels before fusion and after it.
#
# Predict the number after fusion for each of these two:


# %%
def by_row(y):
    return y / y.sum(dim=1, keepdim=True)


def by_all(y):
    return y / y.sum()


# %%
prediction = ...  # kernels after fusion: (by_row, by_all)

# %%
y = torch.rand(64, 1000)
found = count_fused(by_row, y)[1], count_fused(by_all, y)[1]
compare(prediction, found, how="computed")

# %% [markdown]
# On a GPU, the sum of a large tensor takes one more: blocks sum parts, and a second kernel sums the parts.
#
# What is neither returned nor stored is dropped. But a mean that is put into a dictionary costs its kernel, even if
# nobody ever looks at it.

# %% [markdown]
# ## Where a graph ends
#
# So far everything could be captured. Here is a function as people write them. It
#
# 1. scales each row by its largest magnitude,
# 2. bends the values by one of two curves, as the mean of `w` decides,
# 3. adds up *hinges*, `gain * relu(y - knot)`: each element of `w` is a knot, and determines the gain,
# 4. turns the sign of every second column,
# 5. and logs.

# %%
import numpy as np

log = {}


# %%
def original(x, w):
    y = x.clone().div_(x.abs().amax(dim=1, keepdim=True).clamp(min=1e-6))
    y = torch.tanh(y) if w.mean() > 0 else y.clamp(-0.5, 0.5)
    gains = 1 / (1 + np.abs(w.cpu().numpy()))
    out = sum(gain * torch.relu(y - knot) for knot, gain in zip(w.tolist(), gains.tolist(), strict=True))
    out[:, ::2] *= -1
    log["mean"] = out.mean().item()
    if log["mean"] > 1000:
        print("suspiciously large:", log)
    return out


# %% [markdown]
# TorchDynamo follows Python. Where it meets something that it cannot write down as a graph, it ends the graph. Python
# runs that piece by itself, and a new graph begins behind it. This is a *graph break*. Nothing fails, but nothing is
# fused across it. And a line that asks for a value makes the CPU wait for the GPU.
#
# Eight things look suspicious: the write in place (`div_`), the choice by `if`, the trip to NumPy, `tolist`, the write
# through a view (`out[:, ::2]`), the entry in a dictionary, `item`, and `print`.
#
# Predict: how many breaks are there when it is called once? Two on one line count once.

# %%
prediction = ...  # graph breaks

# %%
x = torch.randn(64, 1000, device=device)
w = torch.linspace(-0.4, 0.6, 8, device=device)  # eight knots, whose mean is above zero
breaks = graph_breaks(original, x, w)
compare(prediction, len(breaks), "breaks")
breaks

# %% [markdown]
# (Behind the last break there is no work on tensors left, so there is no fourth graph.) The table is a short form of what
# `torch._dynamo.explain(original)(x, w)` returns. For a whole program there is an environment variable, which needs no
# change in the code:
#
# ```bash
# TORCH_LOGS=graph_breaks python train.py
# ```
#
# What was **no** break:
#
# - **`div_` and `out[:, ::2] *= -1`.** Writes in place are rewritten as operations that return new tensors. But all of
#   `out` may have to be in memory before a part of it is changed, which can cost a kernel.
# - **NumPy.** TorchDynamo knows its functions and writes torch's down. But `w.cpu()` stays in the graph: on a GPU, the
#   CPU waits there for `w`, and for all that came before.
# - **The dictionary.** Python's own objects are followed, and what changed in them is put back at the end.
# - **`print`** would be one, but was not reached.

# %% [markdown]
# ## Remove the breaks
#
# `torch.compile(original, fullgraph=True)` makes the first break an error. That is the way to keep a function whole: you
# notice at once.

# %%
torch._dynamo.reset()  # forget what was compiled before
try:
    torch.compile(original, fullgraph=True, backend=keep)(x, w)
except torch._dynamo.exc.Unsupported as error:
    print(str(error).strip().splitlines()[0])

# %% [markdown]
# | what breaks | why | write |
# | --- | --- | --- |
# | `a if condition else b` | which one depends on a value | `torch.where(condition, a, b)` |
# | `.item()`, `float(t)` | Python wants the number | keep the tensor of one element |
# | `for v in w.tolist()` | Python wants all of them | `for k in range(w.shape[0])`, and `w[k]` |
# | `x[x > 0]` | the shape depends on values | keep the shape: `torch.where(x > 0, x, 0)` |
# | `print`, clocks, files | they happen now, the graph runs later | outside of the function |
#
# `torch.where` computes **both** sides and chooses. When it is fused this is cheap: neither side goes to memory.
#
# One trap: with `fullgraph=True`, newer versions of PyTorch capture `.item()` and report no break. The graph stays whole,
# and the CPU still waits in the middle of it.

# %% [markdown]
# ## When it compiles again
#
# A graph may be used only while its guards hold. If no graph fits a call, the function is compiled anew: a *recompile*.
# With Inductor each takes seconds.
#
# Predict: this function is called with vectors of four different lengths. How many graphs are captured?


# %%
def twice(x):
    return 2 * x


# %%
prediction = ...  # graphs for four lengths

# %%
torch._dynamo.reset()
graphs.clear()
compiled = torch.compile(twice, backend=keep)
for length in (10, 11, 12, 13):
    compiled(torch.ones(length))
compare(prediction, len(graphs), "graphs")

# %% [markdown]
# The first graph is for length 10 only. When 11 comes, TorchDynamo sees that the length changes, and captures a graph
# for *any* length from 2 on. That one serves the rest.
#
# If you know beforehand that a dimension changes, say so: after `torch._dynamo.mark_dynamic(vector, 0)` the first graph
# is enough, since dimension 0 of `vector` may have any length. `torch.compile(…, dynamic=False)` does the opposite: a
# graph for each shape, made for that shape alone. This suits few shapes.
#
# Shapes are not all that is guarded. Predict: how many graphs for five calls of this one?

# %%
steps = {"done": 0}


def step(x):
    steps["done"] += 1
    return 2 * x


# %%
prediction = ...  # graphs for five calls

# %%
torch._dynamo.reset()
graphs.clear()
compiled = torch.compile(step, backend=keep)
for _ in range(5):
    compiled(torch.ones(3))
compare(prediction, len(graphs), "graphs")

# %% [markdown]
# One for each call. The first graph was captured while `steps["done"]` was 0, and holds for 0 only; the next holds for 1
# only. Count outside of the function.
#
# After 8 graphs of one function (`torch._dynamo.config.recompile_limit`) PyTorch stops compiling it. A call that fits
# none of them runs in eager mode, and a warning says so once. To see the reason for each recompile:
#
# ```bash
# TORCH_LOGS=recompiles python train.py
# ```

# %% [markdown]
# ## Exercise: one graph, two kernels
#
# Write `fuse(x, w)`, which returns what `original(x, w)` returns, for any `x` of rows × columns and any vector `w`, both
# float32. *(about 8 lines)*
#
# 1. **One graph.** The judge compiles it with `fullgraph=True`. Nothing may be fetched to the CPU.
# 2. **At most 2 kernels** for a `w` of 8 elements. The mean of `w` decides for all rows, so it comes first: one kernel.
#    All the rest can be one more.
# 3. **The same numbers.** That includes rows of zeros, and both curves. `x` and `w` stay as they are.
#
# What is logged and printed is no part of the result. Leave it out.
#
# - ⟦ exercise("fuse").correctness_points ⟧ points for one graph, at most two kernels and the right numbers
# - ⟦ gate("fuse", "eager").points ⟧ points for ⟦ gate("fuse", "eager").at_least ⟧ times the speed of `original` at
#   ⟦ gate("fuse", "eager").cases | join(", ") ⟧ (they need a GPU)
#
# Write plain PyTorch, and do not call `torch.compile` yourself. `graph_breaks(fuse, x, w)` and `count_fused(fuse, x, w)`
# in a cell of your own tell you how far you are.

# %% nbgrader={"grade_id": "fuse", "solution": true}
import torch


def fuse(x, w):
    ### BEGIN SOLUTION
    y = x / x.abs().amax(dim=1, keepdim=True).clamp(min=1e-6)
    y = torch.where(w.mean() > 0, torch.tanh(y), y.clamp(-0.5, 0.5))
    out = torch.zeros_like(x)
    for k in range(w.shape[0]):  # unrolled while the graph is captured
        out = out + torch.relu(y - w[k]) / (1 + w[k].abs())
    odd = torch.arange(x.shape[1], device=x.device) % 2 == 1
    return torch.where(odd, out, -out)
    ### END SOLUTION


# %% [markdown]
# Correct before fast. `check` compiles your function in a process of its own, counts graphs and kernels, and compares
# every element with a float64 result. On a CPU it runs the captured graph and spares you the C++ compiler.

# %% nbgrader={"grade_id": "check-fuse", "grade": true, "locked": true, "points": 5}
check(fuse)

# %% [markdown]
# ## How fast is it?
#
# Count first: how many operations `original` starts that move data, and what they move, in multiples of `x`. The fused
# function reads `x` once from memory and writes the result once: 2.

# %%
traffic = count_traffic(original, x, w)
len(traffic.steps), round(traffic.total, 1)

# %% [markdown]
# Predict: how many times as fast as `original` is your function on a GPU, for
# ⟦ gate("fuse", "eager").cases | join(", ") ⟧? The result of each is copied into the judge's buffer, and the copy is
# timed, too: add 2 to the traffic of both.

# %%
prediction = ...  # times as fast as the original

# %%
benchmark(fuse)

# %% [markdown]
# And this is what the authors' function reached:

# %%
recorded("fuse", "ratio_vs_eager", "share_of_copy")

# %% [markdown]
# For the wide matrices the traffic alone promises more, and for the narrowest one less. It does not tell all.
#
# - A row that is too long for the registers is read twice, though the second time it should come from a cache.
# - For each element the kernel computes both curves, and nine divisions. Its code stands below. So memory need not be
#   all that it waits for.
# - `original` launches some forty kernels, and waits for values. For few columns its time is the CPU's. On the H200 it
#   took ⟦ recorded(bench="fuse/eager", case="4096 × 256", metric="median_us", gpu="H200") ⟧ for 256 columns, and
#   ⟦ recorded(bench="fuse/eager", case="4096 × 1024", metric="median_us", gpu="H200") ⟧ for 1024.
# - A call of a compiled function checks its guards first, which takes the CPU some time. For small tensors that can be
#   longer than the kernels run. `benchmark` counts that time. The recorded figures leave it out: there the GPU had
#   other work until the CPU was ready.
#
# How much each of the first two counts was not measured. (`share_of_copy` could be 0.5 at most: the judge's copy moves
# as many bytes again.)

# %% [markdown]
# The same without the judge's copy, for both functions of this notebook:

# %%
recorded("fusion", "kernels_eager", "kernels_compiled", "eager_us", "compiled_us", "ratio_vs_eager")

# %% [markdown]
# (Four of the operations that were counted start no kernel: the plain copy, the two questions for a value, and a copy of
# `out[:, ::2]` onto itself. With a GPU two more were counted, the copies of `w` to the CPU. They start none, either.
# This table was recorded in a run of its own, so the times differ a little.)
#
# And these are the kernels that Inductor wrote on a GPU for the authors' function. Which `tl.where` chooses between the
# two curves? (`generated_code(fuse, x, w)` shows your own, as C++ on a CPU.)

# %%
recorded_code("fuse")

# %% [markdown]
# ## Extra credit
#
# No points, but each shows something.
#
# 1. Put `out[:, ::2] *= -1` back into your function. What does `check` say? Compare `count_fused`.
# 2. Return the mean of the result as well, in a wrapper of your own. How many kernels does `count_fused` see?
# 3. Write the loop as a third dimension, `y[:, :, None] - w`, and sum it. How many kernels for `w`, and for `w[:4]`?
#    (Inductor writes a sum of fewer than 8 numbers out as additions.) Would eager mode like it?
# 4. Draw the graph of your function: compile it with `backend=keep`, call it, and `draw_graph(graphs[-1])`.

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - captured a graph with a backend of your own
# - seen forward and backward in one graph, and what is kept between them
# - read the C++ or Triton that stands in the place of five kernels
# - said what can be one kernel, and checked it
# - found graph breaks and recompiles, and removed them
# - made one graph and two kernels of a function, with the same numbers
#
# ## Check yourself
#
# <details><summary>What does fusing five pointwise operations save: arithmetic or traffic?</summary>
#
# Traffic, and launches. The arithmetic is the same, or even more: a value may be computed again rather than kept.
#
# </details>
#
# <details><summary>Why is a reduction over rows fused with what follows, and a reduction over the whole tensor not?</summary>
#
# A block reads a whole row, and knows the row's sum then. The sum over everything is known when all blocks are done, and
# they meet only at the end of a kernel.
#
# </details>
#
# <details><summary>A graph break raises no error. How do you notice it?</summary>
#
# With `torch._dynamo.explain` or `TORCH_LOGS=graph_breaks`. Or you ask for an error: `fullgraph=True`.
#
# </details>
#
# <details><summary><code>torch.where</code> computes both sides. Is that not a waste?</summary>
#
# Fused, both sides are computed in registers. That costs arithmetic, which a kernel that waits for memory has to spare.
#
# </details>
#
# <details><summary>Training gets slower after a few steps, and a warning mentions a limit. What happened?</summary>
#
# A guard failed again and again: a shape or a Python value changes from step to step. After the limit nothing more is
# compiled, and the function runs in eager mode. `TORCH_LOGS=recompiles` names the guard.
#
# </details>
#
# **Next:** [Catch a lying benchmark](06_catch_a_lying_benchmark.ipynb). Or go back to the [syllabus](../README.ipynb).
