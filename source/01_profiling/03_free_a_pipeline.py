# %% [markdown]
# # Free a pipeline
#
# **You will** remove the waits that a profile shows in a pipeline, look at what limits it then, and meet NVIDIA's own
# profilers.
#
# **You will learn**
#
# - which innocent lines make the CPU wait for the GPU, and how to write them without the wait
# - what to do when launches are the limit: larger batches, fewer kernels, CUDA graphs
# - when to use Nsight Systems and Nsight Compute, and how to read a report of the latter
#
# **You need** about 70 minutes and PyTorch, but no CUDA. Without a GPU you profile the CPU, and the notebook shows what
# was recorded on a GPU.
#
# **It writes** a small file into its folder, `mean_two_ways.py`. You may delete it afterwards.

# %%
import os
import re
import warnings

os.environ["KINETO_LOG_LEVEL"] = "99"  # the profiler's own log stays off
warnings.filterwarnings("ignore", "Warning: Profiler clears")  # some versions say so without need
from grader import benchmark, check, device, explain
from grader.explore import compare, recorded, recorded_output, recorded_trace, show_timeline

device

# %%
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.benchmark import Timer

activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (device == "cuda")

# %% [markdown]
# ## Ask for a value, and wait
#
# The CPU runs ahead: it queues kernels and does not wait for them. That is how a GPU stays busy although Python is slow. The
# lead is lost as soon as the CPU needs a **value**. It has to wait until everything in the queue has run, and meanwhile it
# queues nothing new, so the GPU runs out of work. This is a **synchronisation point**.
#
# | this waits if `x` is on the GPU | because |
# | --- | --- |
# | `x.item()`, `float(x)`, `x.tolist()`, `print(x)` | the CPU needs a number |
# | `if x.any():`, `while x > 0:` | Python branches on the CPU |
# | `x.cpu()` | the values are copied to the CPU |
# | `x[mask]`, `x.nonzero()` | the CPU needs the size of the result |
#
# In the other direction, `x.to("cuda")` waits for its copy as well. It does not if you pass `non_blocking=True` and `x` is in
# **pinned memory** (`x.pin_memory()`), which the GPU can read directly.
#
# Here is a typical pipeline. Its results are right, but it waits a lot. Each row of `x` is the signal of a sensor.
# This cleans one of them:


# %%
def clean(row, gain):
    low, high = row.min().item(), row.max().item()
    if low == high:  # a dead sensor
        return torch.zeros_like(row)
    z = (row - row.mean()) / row.std().cpu().to(row.device)
    if torch.any(z.abs() > 3):  # outliers
        z = z.clamp(-3, 3)
    if max(abs(low), abs(high)) > 100:  # saturated: halve it
        z = z * 0.5
    return z * gain.to(row.device)


# %% [markdown]
# And this cleans them all.


# %%
def blocking(x, gain):
    gain = gain.cpu()
    return torch.stack([clean(x[i], gain[i]) for i in range(x.shape[0])])


# %% [markdown]
# Predict: on eight sensors, none of them dead, how often does Python ask for a single number from a tensor? Count each
# `.item()` and each `if` on a tensor, but not comparisons of Python numbers, and not copies.

# %%
prediction = ...  # questions, for 8 rows

# %%
signals = torch.randn(8, 65_536, device=device)
gain = torch.rand(8, device=device) + 0.5
blocking(signals, gain)  # warms up
with profile(activities=activities) as prof:
    blocking(signals, gain)
asked = [event for event in prof.events() if event.name in ("aten::item", "aten::is_nonzero")]
by_python = [event for event in asked if event.cpu_parent is None]  # by no other operation
compare(prediction, len(by_python), "questions")

# %% [markdown]
# Three per row: `.item()` twice, and one `if` on a tensor, which is `aten::is_nonzero` in the profile. Search your own
# profiles for these two names.
#
# On a GPU each question is a wait. So are the copies to the CPU and back, three more per row, and the copy of `gain`.
#
# With a GPU, PyTorch finds such lines for you. After `torch.cuda.set_sync_debug_mode("warn")` it warns at nearly every wait
# and names the line.

# %%
show_timeline(prof, "the pipeline on eight sensors, on this machine")

# %% [markdown]
# Zoom in: the same pattern repeats eight times, with many operations per row. On a GPU nearly every operation is a small
# kernel, and after each wait the next kernel reaches a GPU that has run out of work.

# %% [markdown]
# ## What a version without waits gains
#
# You are going to write a version that never asks and handles all rows at once. On an H200, with 160 sensors of 65,536
# readings each, it reached
# **⟦ recorded(bench="unblock", case="160 × 65536, every kind of row", metric="ratio_vs_blocking", gpu="H200") ⟧** the
# speed of the pipeline. The arithmetic is the same; only the waits and most of the launches are gone.
#
# To see where the time goes, look at eight sensors, recorded on an H200. For all eight together, the version without
# waits launches only a few more kernels than `clean` does for one sensor. Predict: how many times as many kernels does
# the pipeline launch as the version without waits?

# %%
prediction = ...  # the pipeline's kernels, divided by those without waits


# %%
def kernels(name):
    return sum(event["cat"] == "kernel" for event in recorded_trace(name).events)


compare(prediction, kernels("blocking") / kernels("unblocked"), how="recorded")

# %% [markdown]
# Here are the two timelines. In the first, look for the pattern *wait, launch, kernel, wait*.

# %%
show_timeline(recorded_trace("blocking"), "the pipeline on eight sensors, recorded")

# %%
show_timeline(recorded_trace("unblocked"), "the same without waits, recorded")

# %%
recorded("traces/pipeline", "kernels", "waits", "span_us")

# %% [markdown]
# Without waits, the eight sensors take a fraction of the kernels, and the span is several times shorter. The last two
# rows are 64 sensors of a million readings each: the pipeline launches eight times as many kernels, the version
# without waits just as many as before. Do not read speed-ups off a trace: a profiler slows down what it records, most
# of all the launches.

# %% [markdown]
# ## Write it without the wait
#
# Three rewrites remove the waits.
#
# **All rows at once.** A reduction with `dim=1, keepdim=True` gives one value per row, as a column that broadcasts over the
# matrix.
#
# **A branch that you can always take.** `if any(abs(z) > 3): z = z.clamp(-3, 3)` is the same as clamping every time.
#
# **A branch that matters** becomes a selection. Compute both sides, then choose with `torch.where(condition, this, that)`,
# where the condition has one value per row.
#
# Here are the first and the third on `[[1, 2, 3], [-1, -2, 0.5]]`: rows with a negative mean are doubled. Predict the second
# row of the result.

# %%
prediction = ...  # a list of three numbers

# %%
small = torch.tensor([[1.0, 2.0, 3.0], [-1.0, -2.0, 0.5]])
negative = small.mean(dim=1, keepdim=True) < 0  # one answer per row, shape (2, 1)
compare(prediction, torch.where(negative, 2 * small, small)[1].tolist(), how="computed")

# %% [markdown]
# The whole row is doubled, including the 0.5. If the side that is not chosen contains a NaN, for example from 0 / 0,
# `torch.where` drops it. Multiplying by 0 would not: NaN times 0 is NaN.

# %% [markdown]
# ## Exercise: free the pipeline
#
# Write `unblock(x, gain)`, which returns the same numbers as `blocking(x, gain)`, for the whole matrix at once. `x` is a
# float32 matrix of sensors × readings, with at least two readings per sensor. `gain` has one number per sensor and may be
# negative. Dead sensors, outliers and saturated sensors all occur; a dead sensor may have any constant value.
#
# No `.item()`, no `.cpu()`, no `if` on a tensor, no loop over rows. Get it right first, then fast. *(about 7 lines)*
#
# Useful: `torch.std_mean(x, dim=1, keepdim=True)` and `torch.aminmax(x, dim=1, keepdim=True)` each return two results at
# once. `gain[:, None]` turns a vector into a column.

# %% nbgrader={"grade_id": "unblock", "solution": true}
import torch


def unblock(x, gain):
    ### BEGIN SOLUTION
    low, high = torch.aminmax(x, dim=1, keepdim=True)  # reads MN
    std, mean = torch.std_mean(x, dim=1, keepdim=True)  # reads MN
    saturated = torch.maximum(low.abs(), high.abs()) > 100
    factor = torch.where(saturated, 0.5, 1.0) * gain[:, None]
    std = std.masked_fill(low == high, float("inf"))  # so that a dead row becomes 0, and not 0 / 0
    return (x - mean).div_(std).clamp_(-3, 3).mul_(factor)  # reads 4 MN, writes 4 MN
    ### END SOLUTION


# %% [markdown]
# `check` uses rows of every kind, alone and mixed.

# %% nbgrader={"grade_id": "check-unblock", "grade": true, "locked": true, "points": 5}
check(unblock)

# %% [markdown]
# ## How fast is it?
#
# ⟦ gate("unblock", "blocking").points ⟧ of ⟦ exercise("unblock").max_points ⟧ points are for at least
# ⟦ gate("unblock", "blocking").at_least ⟧ times the pipeline's speed at
# ⟦ gate("unblock", "blocking").cases | join(", ") ⟧. Below your plot is the recorded run.

# %%
benchmark(unblock)

# %%
recorded("unblock", "ratio_vs_blocking")

# %% [markdown]
# The plot shows bandwidth: bytes divided by time. The pipeline pays for its launches and waits on every row. Yours makes the
# same few launches for any number of rows, so the more rows, the less they count.
#
# Compare the recorded rows. With a million readings per sensor, the gain is about ten. With 65,536 readings it is far
# larger, because the pipeline takes about as long for a short row as for a long one. `check` lengthens the rows until
# a call is long enough to be timed well, so its ratio is close to the ratio for long rows.

# %% [markdown]
# ## When launches are the limit
#
# Back to the eight sensors. On the recorded H200, the pipeline kept the GPU busy for
# ⟦ recorded(bench="traces/pipeline", case="the pipeline", metric="busy_percent", gpu="H200").number ⟧ % of its span.
# Predict: is the busy share of the version without waits higher or lower?

# %%
prediction = ...  # "higher" or "lower"

# %%
found = recorded("traces/pipeline", "busy_percent")
before, after = (found.value("busy_percent", case) for case in ("the pipeline", "without waits"))
compare(prediction, before and after and ("higher" if after > before else "lower"), how="recorded")

# %% [markdown]
# It is *lower*, ⟦ recorded(bench="traces/pipeline", case="without waits", metric="busy_percent", gpu="H200").number ⟧ %: the
# busy time shrank even more than the span. So do not compare programs by their busy share. The share tells you what is
# left to gain: with free launches, this span on the H200 would be
# ⟦ "%.0f" | format(100 / recorded(bench="traces/pipeline", case="without waits", metric="busy_percent", gpu="H200").value) ⟧
# times shorter.
#
# In the timeline, each kernel ends long before the next launch. The CPU no longer waits, but now the GPU waits for
# launches: the program is **overhead-bound**. There are three cures:
#
# 1. **More work per launch.** The number of launches does not depend on the number of sensors. With 64 sensors of a
#    million readings each, the busy share on the H200 rises to
#    ⟦ recorded(bench="traces/pipeline", case="without waits, 64 × 1,048,576", metric="busy_percent", gpu="H200").number ⟧ %.
# 2. **Fewer kernels.** [Let the compiler fuse](05_let_the_compiler_fuse.ipynb) puts several operations into one.
# 3. **CUDA graphs.** A graph records a sequence of launches once and then replays all of them with a single call.
#
# Here is a function that needs a cure: on a small tensor, each of its kernels is done before the next one is launched.


# %%
def many_small_steps(x):
    for _ in range(20):
        x = x * 0.99 + 0.01
    return x


# %% [markdown]
# Predict: how many kernels does the CPU launch for one call?

# %%
prediction = ...  # launches for one call

# %%
y = torch.randn(8, 1024, device=device)
with profile(activities=[ProfilerActivity.CPU]) as prof:
    many_small_steps(y)
compare(prediction, sum(event.name in ("aten::mul", "aten::add") for event in prof.events()), "launches")

# %% [markdown]
# As a CUDA graph, that is one launch for all of them. Capturing runs nothing: it writes down which kernels are launched, with
# which addresses. So a replay reads the *same* input tensor and writes the *same* result tensor. To process new data, copy
# it into the input first.


# %%
def captured(function, x):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        function(x)  # warm up outside of the graph
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = function(x)
    return graph, result


# %%
if device == "cuda":
    graph, result = captured(many_small_steps, y)
    for name, statement in (("eager", "many_small_steps(y)"), ("CUDA graph", "graph.replay()")):
        time_s = Timer(statement, globals=globals()).blocked_autorange().median
        print(f"{name:12} {1e6 * time_s:8.1f} µs")
else:
    print("CUDA graphs need a GPU.")

# %% [markdown]
# On an H200, one call took ⟦ recorded(bench="graphs", case="eager", metric="median_us", gpu="H200") ⟧, and a replay
# ⟦ recorded(bench="graphs", case="CUDA graph", metric="median_us", gpu="H200") ⟧.
#
# You rarely write this by hand. `torch.compile(model, mode="reduce-overhead")` fuses what it can and replays the launches as
# CUDA graphs. It copies new inputs for you, and it runs without a graph if none is possible. These checks and copies
# take host time in each call: on the H200, the call took
# ⟦ recorded(bench="graphs", case='torch.compile(…, mode="reduce-overhead")', metric="median_us", gpu="H200") ⟧, less than
# without a graph and more than the bare replay.
#
# A graph can hold no synchronisation point: `.item()` during capture is an error. Shapes are fixed as well. So the order is
# the one of this notebook: first remove the waits, then the launches.

# %% [markdown]
# ## NVIDIA's profilers
#
# PyTorch's profilers know PyTorch. NVIDIA's know the hardware. A GPU consists of multiprocessors (SMs), each of
# them running many threads of a kernel at once. Chapter 2 explains both.
#
# - **Nsight Systems** (`nsys`) records a timeline of the whole program: CPU, CUDA calls, kernels, copies, other libraries. It
#   costs little. Ask it *where the time goes, and who waits for whom*.
# - **Nsight Compute** (`ncu`) takes one kernel apart: its share of the memory bandwidth, cache hits, why threads stall. It
#   runs the kernel several times to read all counters. Ask it *why this kernel is slow*.
#
# Both profile a program from the outside. Both show **NVTX** ranges, which you set with `torch.cuda.nvtx.range("name")`, or
# for every operation with `torch.autograd.profiler.emit_nvtx()`. The next cell writes a small program to a file.

# %%
script = """import torch
x = torch.randn(10_000, 10_000, device="cuda")
ways = {"by_function": torch.mean, "by_sum": lambda x: torch.sum(x) / x.numel()}
for name, mean in ways.items():
    mean(x)  # warms up
    with torch.cuda.nvtx.range(name):
        mean(x)
torch.cuda.synchronize()
"""
print(Path("mean_two_ways.py").write_text(script), "characters written")

# %% [markdown]
# On a machine with a GPU and Nsight, run these in a terminal in this notebook's folder. The first command records, the second
# prints a table: one row per kernel, with its share of the GPU's time. `mean.nsys-rep` also opens in the window of Nsight
# Systems, which looks much like the timelines above.
#
# ```bash
# nsys profile --trace=cuda,nvtx --force-overwrite=true --output=mean python mean_two_ways.py
# nsys stats --force-export=true --report cuda_gpu_kern_sum mean.nsys-rep
# ```
#
# And this asks what limits each kernel in the range `by_sum`:
#
# ```bash
# ncu --nvtx --nvtx-include "by_sum/" --section SpeedOfLight python mean_two_ways.py
# ```
#
# `ERR_NVGPUCTRPERM` means that the counters are reserved for administrators on that machine.
#
# Two kernels run in this range: the sum, and the division of one number. Predict: what share of the memory's bandwidth
# does the sum use, in per cent?

# %%
prediction = ...  # per cent

# %%
report = recorded_output("ncu")
found = re.findall(r"DRAM Throughput +% +([\d.]+)", report.text)  # one per kernel, the sum's first
compare(prediction, float(found[0]) if found else None, "%", how="recorded")
report

# %% [markdown]
# Read *DRAM Throughput* and *Compute (SM) Throughput* first. **Throughput** is work per second, and DRAM is the GPU's
# memory. Both are given in per cent of what the GPU could do.
#
# - `reduce_kernel`, the sum, uses most of what the memory can deliver, and little of the arithmetic. It is **memory-bound**.
# - `vectorized_elementwise_kernel`, the division, is near zero in both: it is all launch. PyTorch multiplies by 1/n, hence the
#   `MulFunctor` in its name. *L1/TEX* is the cache in each SM. Its share is high because it is relative to the
#   cycles in which an SM was active: only a few on average, because a single SM had work.
#
# Do not compare these durations with a timeline. `ncu` locks the GPU to its base clock and flushes the caches before every
# run, so that reports are comparable. `--clock-control none` and `--cache-control none` switch that off.

# %% [markdown]
# ## Ask why
#
# A profiler shows numbers and leaves the conclusion to you. For an exercise of this course, `explain` suggests one,
# once your function passes its cases: `explain(unblock)`, for example.
#
# For each cause that it finds, it names the line in your cell, a fix, the most that the fix can gain, and the evidence.
# Without a GPU, the gain is an estimate. Treat a cause as a hypothesis: fix it, and measure again.
#
# With `counters=True` it also runs your function under `ncu`, and adds what the hardware counted, such as the bytes
# that DRAM moved. It says whether the counters confirm the cause. If `ncu` is missing or not allowed to read them, one
# sentence says so. Try it:

# %%
if device == "cuda":
    explain(unblock, counters=True)
else:
    print("Hardware counters need a GPU. The recorded report above has some of them.")

# %% [markdown]
# `explain` compares what each cause costs. In the next exercise you do the same. This is the evidence about a slow call:

# %%
example = {
    "time_us": 1352.0,
    "launches": 64, "launch_us": 4.0,
    "must_move_bytes": 1_000_000_000, "moved_bytes": 3_000_000_000, "copy_gbps": 3000.0,
    "sectors_per_access": 4, "sectors_needed": 4,
    "blocks": 120, "sms": 132,
}  # fmt: skip

# %% [markdown]
# ## Exercise: name the cause
#
# Write `name_cause(evidence)`. It takes evidence like `example` and returns the name of the cause that costs the most time.
# A call takes the time for the bytes that must move, plus the costs of four causes. Two words come from chapter 2: memory
# delivers *sectors* of 32 bytes, and the threads of a kernel come in *blocks*, each of which runs on one SM.
#
# `moved_bytes` counts the bytes that the kernel asked for, not whole sectors. A load of a warp (32 threads that run
# together) touches `sectors_per_access` sectors; `sectors_needed` would be enough. Let `moving` be the time to move all
# `moved_bytes` at `copy_gbps`, the bandwidth of a copy, and let
# `scattered = moving * sectors_per_access / sectors_needed`.
#
# | Name | Cost |
# | --- | --- |
# | `"launches"` | `launch_us` for each launch after the first |
# | `"repeated traffic"` | the time to move the bytes beyond `must_move_bytes`, also at `copy_gbps` |
# | `"scattered access"` | `scattered - moving` |
# | `"few blocks"` | `scattered * (sms / blocks - 1)` with fewer blocks than SMs, otherwise 0 |
# | `"none"` | the answer if no cause costs a tenth of `time_us`: the call is near its limit |
#
# A gigabyte per second is 1000 bytes per microsecond. In `example`, the two extra passes over the data cost more than the
# 63 extra launches, and far more than the 12 idle SMs. So the answer is `"repeated traffic"`. *(about 10 lines)*

# %% nbgrader={"grade_id": "name_cause", "solution": true}
def name_cause(evidence):
    ### BEGIN SOLUTION
    bytes_per_us = 1000 * evidence["copy_gbps"]
    moving = evidence["moved_bytes"] / bytes_per_us
    scattered = moving * evidence["sectors_per_access"] / evidence["sectors_needed"]
    costs = {
        "launches": (evidence["launches"] - 1) * evidence["launch_us"],
        "repeated traffic": moving - evidence["must_move_bytes"] / bytes_per_us,
        "scattered access": scattered - moving,
        "few blocks": scattered * (max(1, evidence["sms"] / evidence["blocks"]) - 1),
    }
    cause = max(costs, key=costs.get)
    return cause if costs[cause] >= evidence["time_us"] / 10 else "none"
    ### END SOLUTION


# %% [markdown]
# Try `name_cause(example)` in a cell of your own first. `check` makes up evidence about other calls, some with
# several causes.

# %% nbgrader={"grade_id": "check-name_cause", "grade": true, "locked": true, "points": 3}
check(name_cause)

# %% [markdown]
# In real kernels the costs overlap, and they are rarely this easy to separate. That is why `explain` says "up to".

# %% [markdown]
# ## Extra credit
#
# No points, but each task shows you something.
#
# 1. With a GPU: profile `blocking` on 64 sensors, and compute its busy share with your `trace_facts` from
#    [Read a profile](02_read_a_profile.ipynb). `prof.export_chrome_trace` writes the trace. Then do the same for `unblock`.
#
# <details><summary>Answer</summary>
#
# Every row of the pipeline has the same waits, so expect its share to stay about the same. In `unblock`, each kernel
# now has eight times the work for the same launch, so expect its share to rise. The recorded table above has both for
# longer rows.
#
# </details>
#
# 2. Your `unblock` still moves the matrix several times. How many bytes must be moved at least, and how many do you move?
#
# <details><summary>Answer</summary>
#
# The statistics need one pass over the matrix. The result needs a second read and a write. The reference solution reads it
# six times and writes it four times, because each of its operations on the matrix is a kernel of its own.
#
# </details>
#
# 3. With a GPU: capture your `unblock` in a CUDA graph and time it for 8 × 1024 and for 160 × 65,536. When does it help?
#
# <details><summary>Answer</summary>
#
# Expect a gain for the small matrix, where the launches take longer than the kernels. For the large one, most launches are
# hidden behind the kernels, so there is little left to save.
#
# </details>

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - counted the questions that a pipeline asks the GPU, and rewritten it so that it asks none
# - seen a program that is limited by its launches, and three cures
# - read a report of Nsight Compute
# - computed what each cause costs a call, and named the largest
#
# ## Check yourself
#
# <details><summary>Your GPU's busy share is 0.3. Will a faster kernel help?</summary>
#
# Hardly: no work runs for 70 % of the time. Find out what the CPU does in the gaps. It waits, copies, or launches too many
# tiny kernels.
#
# </details>
#
# <details><summary>You remove a <code>print(loss)</code> from a training loop, and it becomes faster by far more than printing costs. Why?</summary>
#
# Printing needs the value, so the CPU waited for the GPU in every step, and after that the GPU had to wait for new work.
#
# </details>
#
# <details><summary>You replay a CUDA graph on a new input tensor and get the old result. What is wrong?</summary>
#
# The graph reads the address of the tensor that was there during capture. Copy the new data into that tensor.
#
# </details>
#
# <details><summary>Which of Nsight's two profilers do you start with?</summary>
#
# Nsight Systems: it shows where the time goes. Nsight Compute then takes apart the kernel that takes the most of it.
#
# </details>
#
# ## Read on
#
# - [Accelerating PyTorch with CUDA Graphs](https://pytorch.org/blog/accelerating-pytorch-with-cuda-graphs/): capture, replay
#   and their rules, with timelines.
# - [Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html): synchronisation points,
#   pinned memory, data loading.
# - [Nsight Compute: Profiling Guide](https://docs.nvidia.com/nsight-compute/ProfilingGuide/index.html): what each metric means,
#   and how kernels are replayed.
#
# **Next:** [Draw the roofline](04_draw_the_roofline.ipynb), which tells you how fast a kernel can be at best. Or go back to the
# [syllabus](../README.ipynb).
