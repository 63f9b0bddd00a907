# %% [markdown]
# # Let the compiler fuse
#
# **You will** watch `torch.compile` turn a line of PyTorch into one kernel, stage by stage. Then you rewrite a function that
# it cannot compile in one piece until it can.
#
# **You will learn**
#
# - what TorchDynamo, AOTAutograd and Inductor do, and how to see what each of them produces
# - which operations are fused into one kernel, and what keeps them apart
# - what a graph break is, how to find each one, and how to remove it
# - what a recompile is, how to count them, and how to prevent them
#
# **You need** about 85 minutes, PyTorch, and a C++ compiler for one cell (`grader doctor` tells you whether you have one). You
# do not need a GPU: everything is captured, compiled and counted on a CPU as well. With an NVIDIA GPU you see the Triton code
# for it and measure the speed.

# %%
from grader import benchmark, check, device
from grader.explore import compare, count_fused, count_traffic, draw_graph, generated_code
from grader.explore import graph_breaks, joint_graph, recorded, recorded_code

device

# %%
import torch

# %% [markdown]
# ## Five kernels or one
#
# Here is a function whose result you know: it is 1 for every `x`, and its derivative is 0. So you can see at once whether a
# compiler has changed the result.


# %%
def one(x):
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


# %% [markdown]
# Without a compiler, PyTorch runs in **eager mode**: each operation launches a kernel as soon as Python reaches it. The kernel
# reads its input from memory and writes its result back to memory.
#
# Predict: how many kernels does `one` launch?

# %%
prediction = ...  # kernels of one(x) in eager mode

# %%
x = torch.rand(1024, 1024, device=device)
eager = count_traffic(one, x)
compare(prediction, len(eager.steps), "kernels", how="computed")
eager

# %% [markdown]
# Together they move 11 times the size of `x`. A single kernel could do all five steps and move 2 times the size of `x`. It
# would read `x` once, keep the intermediate values in **registers**, and write the result once. Registers hold the few
# values that each thread of a GPU has at hand. All of this is far below the ridge of the roofline, so the bytes decide.
#
# Combining operations into one kernel is called **fusion**.
#
# You could write that kernel yourself. `torch.compile` writes it for you, in three stages:
#
# 1. **TorchDynamo** watches Python run and records the operations as a graph.
# 2. **AOTAutograd** adds the graph of the gradient before anything runs.
# 3. **Inductor** decides what goes into one kernel and writes its source: Triton for a GPU, C++ for a CPU.

# %% [markdown]
# ## TorchDynamo: from Python to a graph
#
# In `torch.compile` you can replace everything after TorchDynamo with a function of your own, a **backend**. It receives a
# graph and example inputs and returns something to call. This backend compiles nothing: it keeps the graph and returns the
# graph's own `forward`.

# %%
graphs = []


def keep(graph, inputs):
    graphs.append(graph)
    return graph.forward


# %% [markdown]
# Predict: we compile `one` with this backend and call it three times. How often is the backend called?

# %%
prediction = ...  # calls of the backend

# %%
captured = torch.compile(one, backend=keep)
for _ in range(3):
    result = captured(x)
compare(prediction, len(graphs), "calls")
print(f"largest error: {(result - 1).abs().max().item():.2g}")

# %% [markdown]
# Once. The line with `torch.compile` captures nothing; the first *call* does. Later calls check that what was assumed still
# holds: the type, shape and device of `x`. These checks are called **guards**. They hold here, so the graph is used again.
#
# This is the graph:

# %%
draw_graph(graphs[0], "What TorchDynamo captured")

# %% [markdown]
# It contains neither values nor Python, only operations on tensors. It is an **FX graph**, which can be printed as
# Python. `L_x_` is the local variable `x`, and `sin = None` frees a tensor that is no longer needed.

# %%
print(graphs[0].code)

# %% [markdown]
# ## AOTAutograd: the gradient, ahead of time
#
# In eager mode, autograd records what it will need while the function runs forward, and runs backward afterwards. AOTAutograd
# (*ahead of time*) traces both passes before anything runs, into one **joint graph**.
#
# It also breaks operations down (**decomposition**): PyTorch has some two thousand, and most can be written in terms of a few
# hundred simple ones. A softmax becomes a maximum, a difference, an exponential, a sum and a quotient. Inductor then needs to know
# only the simple ones.

# %%
x_grad = torch.rand(1000, requires_grad=True)
joint = joint_graph(one, x_grad)
draw_graph(joint.joint, "Forward and backward in one graph", ("result", "gradient of x"))

# %% [markdown]
# `primals_1` is the input `x`. `tangents_1` is the gradient of the result, which comes from whatever is computed next. `pow 1`
# and `mul 2` are the derivative of a square. The dashed boxes need the incoming gradient, so they must run in the backward
# pass. All others could run in either pass.
#
# Now the graph is cut into a forward and a backward graph. Every tensor on the cut has to stay in memory between the two
# passes. Eager mode keeps three: `x`, its sine and its cosine.
#
# Predict: how many does AOTAutograd keep?

# %%
prediction = ...  # tensors that are kept for the backward graph

# %%
compare(prediction, len(joint.saved), "tensors", how="computed")
print("kept:", *joint.saved)
draw_graph(joint.backward, "The backward graph", ("gradient of x",))

# %% [markdown]
# It keeps only `x`, and the backward graph computes sine and cosine **again**. The cut is a **minimum cut**: of all cuts that
# repeat only cheap operations, the one that the fewest bytes cross. In a fused kernel that has `x` at hand anyway, computing
# a sine again is cheaper than loading it from memory.

# %% [markdown]
# ## Inductor: from a graph to a kernel
#
# The last stage is called **lowering**: it turns each operation into loops over elements, fuses the loops and writes source
# code. This cell compiles for real, which takes some seconds, since on a CPU it runs a C++ compiler.
#
# Predict: how many of the five kernels are left?

# %%
prediction = ...  # kernels after compilation

# %%
code = generated_code(one, x)
compare(prediction, len(code), "kernels", how="computed")
code.beside_eager()

# %% [markdown]
# Look at the lines with `tmp`: one load, then sine, cosine, squares and the sum in local variables, then one store. A square
# is written as a product. In C++, `Vectorized` means that one instruction handles several elements, and `#pragma omp` that
# the cores share the loop.
#
# On a GPU you get Triton instead, a language with Python's syntax that chapter 3 teaches. This was recorded on one:

# %%
recorded_code("sin2_cos2").beside_eager(one, x)

# %% [markdown]
# A GPU runs a kernel as many *blocks* of threads, and each block handles some of the elements. In the Triton code:
#
# - `xindex` holds the numbers of the block's elements, and `xmask` says which of them exist.
# - `tl.load`, the `tmp` lines and `tl.store` are the same sequence as in C++.
# - A name such as `triton_poi_fused_add_cos_pow_sin_0` lists what was fused. `poi` is **pointwise**: each element on its own.
#   `red` and `per` are **reductions**: sums, maxima and the like.
#
# To see this code for a program of your own, you need nothing from this course:
#
# ```bash
# TORCH_LOGS=output_code python train.py          # prints what Inductor writes
# TORCH_TRACE=/tmp/trace python train.py          # records every stage of every graph
# pip install tlparse && tlparse /tmp/trace       # and makes a report of it, for a browser
# ```
#
# A compiler must not change the result:

# %%
result = code.function(x)
print(f"largest error: {(result - 1).abs().max().item():.2g}")

# %% [markdown]
# Predict: on a vector of 2²⁶ elements on a GPU, how many times as fast is the compiled function? The traffic is 11
# before and 2 after.

# %%
prediction = ...  # times as fast as eager

# %%
found = recorded("fusion", "ratio_vs_eager")
compare(prediction, found.value("ratio_vs_eager", "sin² + cos², 2^26 elements"), "times", how="recorded")
print(found.origin)

# %% [markdown]
# From the traffic alone you would expect 11 / 2 = 5.5, and you get most of that. With one element fewer, the compiled
# kernel was only ⟦ recorded(bench="fusion", case="sin² + cos²", metric="ratio_vs_eager", gpu="H200").number ⟧ times as fast
# as eager on an H200: if the length is odd, it loads one element at a time, which costs some of the bandwidth.
# [Look inside the compiler](../03_triton/07_look_inside_the_compiler.ipynb) shows why. The kernel above was recorded for
# the odd length.

# %% [markdown]
# ## What can be one kernel
#
# Inductor fuses two operations if a block can do the second with what it has from the first. Rules of thumb:
#
# - **Pointwise after pointwise**: yes, if the shapes agree.
# - **Pointwise after a reduction of each row**: yes. A block reads its row, reduces it, and goes on with that row.
# - **Pointwise after a reduction of the whole tensor**: no. The sum is known only when *all* blocks are done, and blocks do
#   not wait for each other. The kernel has to end there, and another one begins.
#
# `count_fused` runs Inductor up to this decision and no further, so it needs no compiler. It returns the number of kernels
# before and after fusion.
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
# On a GPU, the sum of a large tensor takes one more kernel: blocks sum parts, and a second kernel adds up the parts.
#
# Fusion is the largest gain, but not the only one. The compiler also
#
# - removes what nobody uses (**dead code**) and computes once what occurs twice
# - reuses the memory of a tensor that is no longer needed, so that the peak is lower
# - may change a tensor's **memory layout**, the order in which its elements are stored: convolutions on a GPU are often
#   faster with the channels last
# - picks the fastest of several kernels by timing them (`mode="max-autotune"`)
# - captures CUDA graphs (`mode="reduce-overhead"`), as in [Free a pipeline](03_free_a_pipeline.ipynb)

# %% [markdown]
# ## Where a graph ends
#
# So far everything could be captured. Here is a function as people write them. It
#
# 1. scales each row by its largest magnitude,
# 2. bends the values along one of two curves, depending on the mean of `w`,
# 3. adds up *hinges*, `gain * relu(y - knot)`: each element of `w` is a knot and determines the gain,
# 4. flips the sign of every second column,
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
# TorchDynamo follows Python. When it reaches something that it cannot put into a graph, it ends the graph. Python runs that
# piece, and a new graph starts after it. This is a **graph break**. Nothing fails, but nothing is fused across it. If the line
# asks for a value, the CPU waits for the GPU as well.
#
# Eight things look suspicious: the in-place write (`div_`), the `if`, the trip to NumPy, `tolist`, the write through a view
# (`out[:, ::2]`), the entry in a dictionary, `item`, and `print`.
#
# Predict: how many breaks are there in one call? Two on the same line count once.

# %%
prediction = ...  # graph breaks

# %%
x = torch.randn(64, 1000, device=device)
w = torch.linspace(-0.4, 0.6, 8, device=device)  # eight knots, whose mean is above zero
breaks = graph_breaks(original, x, w)
compare(prediction, len(breaks), "breaks")
breaks

# %% [markdown]
# There are three breaks but only three graphs, since nothing is left to compute after the last break. Without this course,
# `torch._dynamo.explain(original)(x, w)` reports the same breaks. For a whole program, use an environment variable:
#
# ```bash
# TORCH_LOGS=graph_breaks python train.py
# ```
#
# The other suspects did not break the graph:
#
# - **`div_` and `out[:, ::2] *= -1`.** In-place writes become operations that return new tensors. That may still cost a
#   kernel, if all of `out` has to be in memory before part of it changes.
# - **NumPy.** TorchDynamo knows its functions and records torch's in their place. But `w.cpu()` stays in the graph, so on a
#   GPU the CPU waits there.
# - **The dictionary.** TorchDynamo follows Python objects, and writes changes back at the end.
# - **`print`** would break it, but it was not reached.

# %% [markdown]
# ## Remove the breaks
#
# `torch.compile(original, fullgraph=True)` turns the first break into an error. Use it to keep a function in one graph: you
# notice a break at once.

# %%
torch._dynamo.reset()  # forget what was compiled before
try:
    torch.compile(original, fullgraph=True, backend=keep)(x, w)
except torch._dynamo.exc.Unsupported as error:
    print(str(error).strip().splitlines()[0])

# %% [markdown]
# | what breaks | why | write instead |
# | --- | --- | --- |
# | `a if condition else b` | the choice depends on a value | `torch.where(condition, a, b)` |
# | `.item()`, `float(t)` | Python needs the number | keep the tensor with one element |
# | `for v in w.tolist()` | Python needs all the numbers | `for k in range(w.shape[0])`, and `w[k]` |
# | `x[x > 0]` | the shape depends on values | keep the shape: `torch.where(x > 0, x, 0)` |
# | `print`, clocks, files | they happen now, the graph runs later | move them out of the function |
#
# `torch.where` computes **both** sides and selects. In a fused kernel this is cheap, since neither side goes to memory.
#
# One trap: with `fullgraph=True`, newer versions of PyTorch capture `.item()` and report no break. The graph stays whole, but
# the CPU still waits in the middle of it.

# %% [markdown]
# ## When it compiles again
#
# A graph can be used only while its guards hold. If no graph fits a call, PyTorch compiles the function again: a
# **recompile**. With Inductor, each one takes seconds.
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
# Two. The first graph is for length 10 only. At length 11, TorchDynamo sees that the length changes and captures a graph for
# *any* length from 2 on: a **dynamic shape**. That graph fits the rest.
#
# If you know that a dimension changes, say so: with `torch._dynamo.mark_dynamic(vector, 0)` the first graph already fits
# every length. `torch.compile(…, dynamic=False)` does the opposite and makes one graph per shape, which suits a few shapes.
#
# Guards check more than shapes. Predict: how many graphs do five calls of this function capture?

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
# One per call. The first graph was captured while `steps["done"]` was 0 and is valid for 0 only; the next is valid for 1 only.
# Count outside of the function.
#
# After 8 graphs of one function (`torch._dynamo.config.recompile_limit`) PyTorch stops compiling it. Calls that fit none of
# them run in eager mode, and one warning tells you. To see the reason for each recompile:
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
# 1. **One graph.** The judge compiles it with `fullgraph=True`. No value may be fetched to the CPU.
# 2. **At most 2 kernels** for a `w` of 8 elements. The mean of `w` decides for all rows, so it comes first: one kernel. All
#    the rest can be one more.
# 3. **The same numbers**, including for rows of zeros and on both curves. `x` and `w` must not change.
#
# The log and the `print` are not part of the result. Leave them out.
#
# - ⟦ exercise("fuse").correctness_points ⟧ points for one graph, at most two kernels and the right numbers
# - ⟦ gate("fuse", "eager").points ⟧ points for ⟦ gate("fuse", "eager").at_least ⟧ times the speed of `original` at
#   ⟦ gate("fuse", "eager").cases | join(", ") ⟧ (they need a GPU)
#
# Write plain PyTorch, and do not call `torch.compile` yourself. In a cell of your own, `graph_breaks(fuse, x, w)` and
# `count_fused(fuse, x, w)` show how far you are.

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
# Get it right first, then fast. `check` compiles your function in a separate process, counts graphs and kernels, and compares
# every element with a float64 result. On a CPU it runs the captured graph, so it needs no C++ compiler.

# %% nbgrader={"grade_id": "check-fuse", "grade": true, "locked": true, "points": 5}
check(fuse)

# %% [markdown]
# ## How fast is it?
#
# Count first: how many operations of `original` move data, and how much they move, in multiples of `x`. The fused function
# reads `x` once and writes the result once, which is 2.

# %%
traffic = count_traffic(original, x, w)
len(traffic.steps), round(traffic.total, 1)

# %% [markdown]
# Predict: on a GPU, how many times as fast as `original` is your function for
# ⟦ gate("fuse", "eager").cases | join(", ") ⟧? The judge copies each result into its own buffer, and the copy is timed: add 2
# to the traffic of both. The next cell compares your prediction with the recorded run of the reference solution.

# %%
prediction = ...  # times as fast as the original

# %%
found = recorded("fuse", "ratio_vs_eager")
compare(prediction, found.value("ratio_vs_eager", "4096 × 4096"), "times", how="recorded")
found

# %%
benchmark(fuse)

# %% [markdown]
# Two kernels instead of some forty. The traffic alone suggests a factor of about 21 at 4096 columns. Our count assumes that
# the fused kernel reads `x` once. Its code below reads each row twice: once to find the largest magnitude, and once to
# compute. For the narrow matrices, the launches and waits of `original` take most of the time. On the H200 it took
# ⟦ recorded(bench="fuse/eager", case="4096 × 256", metric="median_us", gpu="H200") ⟧ for 256 columns and
# ⟦ recorded(bench="fuse/eager", case="4096 × 1024", metric="median_us", gpu="H200") ⟧ for four times as many.
#
# Guards have a cost, too: each call of a compiled function checks them first. For tiny tensors that can take longer than the
# kernels. `benchmark` includes that time.
#
# Here are both functions of this notebook without the judge's copy. The first row has 2²⁶ - 1 elements:

# %%
recorded("fusion", "kernels_eager", "kernels_compiled", "eager_us", "compiled_us", "ratio_vs_eager")

# %% [markdown]
# And these are the kernels that Inductor wrote on a GPU for the reference solution. Which `tl.where` selects between
# the two curves? `generated_code(fuse, x, w)` shows the code for your function.
#
# <details><summary>Answer</summary>
#
# The one whose second argument is the result of `tanh`. The last `tl.where` selects between a value and its negative,
# for every second column.
#
# </details>

# %%
recorded_code("fuse")

# %% [markdown]
# ## Extra credit
#
# No points, but each task shows you something.
#
# 1. Put `out[:, ::2] *= -1` back into your function. What does `check` say? Compare `count_fused`.
#
# <details><summary>Answer</summary>
#
# It is still one graph and the numbers are right, but the write through a view may need all of `out` in memory first.
# If `count_fused` shows one more kernel, that is the reason, and `check` reports it.
#
# </details>
#
# 2. In a wrapper of your own, return the mean of the result as well. How many kernels does `count_fused` see?
#
# <details><summary>Answer</summary>
#
# At least one more: the mean of the whole tensor is known only when all blocks are done. On a GPU, a large tensor takes a
# second kernel to add up the parts.
#
# </details>
#
# 3. Write the loop as a third dimension, `y[:, :, None] - w`, and sum over it. How many kernels does `count_fused` see for `w`,
#    and for `w[:4]`? Would you do this in eager mode?
#
# <details><summary>Answer</summary>
#
# Inductor writes a sum of fewer than 8 numbers as additions and fuses them; a longer one is a reduction. In eager mode the
# three-dimensional tensor goes to memory: eight times the size of `x` for this `w`.
#
# </details>
#
# 4. Draw the graph of your function: compile it with `backend=keep`, call it, and `draw_graph(graphs[-1])`.
#
# <details><summary>Answer</summary>
#
# The loop is gone. You see eight copies of its body in a row, since TorchDynamo *unrolls* a loop whose length it knows: it
# writes it out, pass by pass. Try a hundred knots, and time the first call.
#
# </details>

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - captured a graph with a backend of your own
# - seen forward and backward in one graph, and what is kept between them
# - read the C++ or Triton code that replaces five kernels
# - predicted what can be one kernel, and checked it
# - found graph breaks and recompiles, and removed them
# - turned a function into one graph and two kernels, with the same numbers
#
# ## Check yourself
#
# <details><summary>What does fusing five pointwise operations save: arithmetic or traffic?</summary>
#
# Traffic, and launches. The arithmetic stays the same or even grows, since a value may be computed again instead of kept.
#
# </details>
#
# <details><summary>Why is a reduction over rows fused with what follows, and a reduction over the whole tensor not?</summary>
#
# A block reads a whole row and then knows the sum of that row. The sum over everything is known when all blocks are done, and
# they meet only at the end of a kernel.
#
# </details>
#
# <details><summary>A graph break raises no error. How do you notice it?</summary>
#
# With `torch._dynamo.explain` or `TORCH_LOGS=graph_breaks`. Or you ask for an error with `fullgraph=True`.
#
# </details>
#
# <details><summary><code>torch.where</code> computes both sides. Is that not a waste?</summary>
#
# In a fused kernel both sides are computed in registers. That costs arithmetic, which a memory-bound kernel has to spare.
#
# </details>
#
# <details><summary>Training gets slower after a few steps, and a warning mentions a limit. What happened?</summary>
#
# A guard failed again and again, because a shape or a Python value changes in every step. After the limit, the function runs
# in eager mode. `TORCH_LOGS=recompiles` names the guard.
#
# </details>
#
# ## Read on
#
# - [torch.compile Troubleshooting](https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html): logs, `tlparse`
#   and what to do about each kind of problem.
# - [PyTorch 2](https://doi.org/10.1145/3620665.3640366): the paper on TorchDynamo and Inductor.
# - [Min-cut optimal recomputation](https://dev-discuss.pytorch.org/t/min-cut-optimal-recomputation-i-e-activation-checkpointing-with-aotautograd/467):
#   how AOTAutograd decides what to keep.
#
# **Next:** [Catch a lying benchmark](06_catch_a_lying_benchmark.ipynb). Or go back to the [syllabus](../README.ipynb).
