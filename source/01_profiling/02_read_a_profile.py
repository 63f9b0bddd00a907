# %% [markdown]
# # Read a profile
#
# **You will** take profiles, look at them as a timeline inside this notebook, compute three facts from a trace, and free
# a pipeline of the waits that its profile shows.
#
# **You will learn**
#
# - what PyTorch's two profilers record, and how to read their tables: own time, total time, calls
# - how to record a few steps of a long run, and how to mark your own ranges
# - what stands in a trace, and what *busy* and *idle* mean when streams overlap
# - which innocent lines make the CPU wait for the GPU, and how to do without them
# - when to reach for Nsight Systems and Nsight Compute, with commands that run
#
# **You need** about 75 minutes, PyTorch, and no CUDA. Without a GPU the profiles that you take are the CPU's; what a
# GPU adds is shown as recorded on another machine.

# %%
import os

os.environ["KINETO_LOG_LEVEL"] = "99"  # the profiler's own log stays off
from grader import benchmark, check, device
from grader.explore import compare, recorded, recorded_output, recorded_trace, show_timeline

device

# %%
import json
from collections import Counter
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

# %% [markdown]
# ## Why a profiler
#
# A stopwatch says how long something took. It does not say what ran in that time, nor what waited for what. And on a
# GPU a stopwatch in Python misleads: a launch returns before its kernel has run.
#
# A *profiler* notes each operation with its start and its end, on the CPU and on the GPU. Three of them are worth
# knowing:
#
# 1. the **autograd profiler**, `torch.autograd.profiler`: one table, little to set up
# 2. the **PyTorch profiler**, `torch.profiler`: tables, traces, schedules
# 3. **Nsight**, NVIDIA's own: the whole system (Nsight Systems), or the inside of one kernel (Nsight Compute)
#
# Our object is the mean of a large matrix, in three ways.

# %%
def by_function(x):
    return torch.mean(x)


def by_method(x):
    return x.mean()


def by_sum(x):
    return torch.sum(x) / x.numel()


# %%
n = 10_000 if device == "cuda" else 4_000
x = torch.randn(n, n, device=device)
for mean in (by_function, by_method, by_sum):
    print(f"{mean.__name__:12} {mean(x).item():+.7f}")

# %% [markdown]
# That cell was also the **warm-up**. The first call of an operation loads code, picks an algorithm and reserves memory.
# Profile a first call, and you profile that.

# %% [markdown]
# ## The autograd profiler
#
# It records while its `with` block runs. `key_averages()` adds up what has the same name.

# %%
with torch.autograd.profiler.profile(use_device="cuda" if device == "cuda" else None) as prof:
    by_function(x)
    if device == "cuda":
        torch.cuda.synchronize()
averages = prof.key_averages()
print(averages.table(sort_by="self_cpu_time_total", row_limit=6, max_name_column_width=40))

# %% [markdown]
# You called one function, and the table has many rows: operations call operations. Hence two columns of time.
#
# - **CPU total**: from the operation's start to its end, with everything that it called
# - **Self CPU**: the same without what it called
#
# Sum up "Self", and you get the whole. Sum up "total", and you count the same time several times.
#
# Predict: how many per cent of its total time does `aten::mean` spend in itself? (`aten` is the name of PyTorch's
# library of operations.)

# %%
prediction = ...  # per cent

# %%
row = next(row for row in averages if row.key == "aten::mean")
compare(prediction, 100 * row.self_cpu_time_total / row.cpu_time_total, "%")

# %% [markdown]
# On a CPU it is next to nothing: `aten::mean` calls `aten::sum`, which does the work, and then divides one number.
#
# On a GPU it is much more, and still says nothing of the work. There `aten::mean` prepares one kernel and launches it.
# The table's CPU columns show the time *to launch*; the kernel's time stands in the CUDA columns.

# %% [markdown]
# ## The PyTorch profiler
#
# It is the autograd profiler's successor. You say what to record: the CPU, and the GPU where there is one.
# `record_function` marks a **range** of your own. Ranges are what makes a profile of a real program readable: without
# them all you see are thousands of `aten::` rows.

# %%
activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (device == "cuda")
with profile(activities=activities) as prof:
    for mean in (by_function, by_method, by_sum):
        with record_function(mean.__name__):
            mean(x)
    if device == "cuda":
        torch.cuda.synchronize()  # else the kernels end after the recording
prof.export_chrome_trace("mean.json")

# %% [markdown]
# Predict: `by_function` and `by_method`, do they run the same operations? Which of the three has another sequence?

# %%
prediction = ...  # "by_function", "by_method", "by_sum" or "none"

# %%
averages = prof.key_averages()
calls = {row.key: row.count for row in averages}
print({name: calls.get(name, 0) for name in ("aten::mean", "aten::sum", "aten::div")})
compare(prediction, "by_sum" if calls["aten::mean"] == 2 else "none")

# %% [markdown]
# `torch.mean(x)` and `x.mean()` are the same operation under two names. Whoever times them and finds a difference has
# measured noise. `by_sum` is another matter: a sum, and then a division of its own (`aten::div`).

# %% [markdown]
# ## Look at the timeline
#
# A table adds up, and so it loses the order. A **trace** keeps each event with its start. The file `mean.json` that you
# exported is a *Chrome trace*, a format that many tools read. Here it is drawn.
#
# Time runs to the right. Each thread of the CPU has a row, and each stream of a GPU. What an operation calls lies
# below it.

# %%
show_timeline("mean.json", "the mean three ways, on this machine")

# %% [markdown]
# Turn the wheel over the picture to zoom in, drag it to move, point at a box to read its name and duration. The
# buttons do the same, and so do the keys `+`, `-`, `0` and the arrows.
#
# Zoom to the end of the first range, until you see what comes after the sum. The same name twice, one inside the other,
# is no mistake: the general operation calls the special one. The table counted the pair once.
#
# For a trace of millions of events there is Perfetto: open https://ui.perfetto.dev and drop `mean.json` on the page.
# It runs in your browser. You do not need it here.

# %% [markdown]
# ### With a GPU
#
# This is the same program as recorded on a GPU machine.

# %%
show_timeline(recorded_trace("mean"), "the mean three ways, recorded")

# %% [markdown]
# A trace with a GPU has three layers:
#
# - **operations** of PyTorch, on a thread of the CPU
# - **calls of the CUDA runtime**, below them: `cudaLaunchKernel` puts a kernel into a queue, and
#   `cudaDeviceSynchronize` waits until the queue is empty
# - **kernels**, copies and fills, on a *stream* of the GPU. A stream is such a queue: one thing after the other.
#   Several streams may work at once.
#
# Predict: how many kernels do the three ways start together?

# %%
prediction = ...  # kernels

# %%
recording = recorded_trace("mean")
events = json.loads(Path("mean.json").read_text())["traceEvents"] if device == "cuda" else recording.events
kernels = sum(event.get("cat") == "kernel" for event in events) if events else None
compare(prediction, kernels, "kernels", how="measured" if device == "cuda" else "recorded")

# %% [markdown]
# Each mean is one kernel that adds up and divides in passing. `by_sum` takes two: a large one for the sum, and a tiny
# one that divides a single number. The tiny one does next to nothing, and still has to be launched.
#
# Here is what was recorded of the three.

# %%
recorded("traces/mean", "kernels", "gpu_us")

# %% [markdown]
# ## Record a few steps of a long run
#
# A training loop runs for hours, and a profile of it all would be of no use and not fit the disk. A **schedule**
# records some steps: `wait` so many, `warmup` so many (the profiler runs, its results are thrown away), then record
# the `active` ones. `prof.step()` ends a step.
#
# `on_trace_ready` is called when the steps are recorded. Here it exports them.

# %%
def export(prof):
    prof.export_chrome_trace("steps.json")


plan = schedule(wait=2, warmup=1, active=3, repeat=1)

# %% [markdown]
# Predict: the loop below has eight steps. How many are in the trace?

# %%
prediction = ...  # steps in the trace

# %%
with profile(activities=activities, schedule=plan, on_trace_ready=export, acc_events=True) as prof:
    for _ in range(8):
        by_sum(x[:100])
        prof.step()
events = json.loads(Path("steps.json").read_text())["traceEvents"]
steps = {event["name"] for event in events if event["name"].startswith("ProfilerStep")}
compare(prediction, len(steps), "steps")

# %% [markdown]
# The two that wait and the one that warms up are not there, and after three recorded steps `repeat=1` ends it. Each
# step is a range of its own, `ProfilerStep#3` and so on: the profiler marks them for you.

# %%
show_timeline("steps.json", "three of eight steps")

# %% [markdown]
# ## What stands in a trace
#
# A trace is a list of dictionaries. Let us see which kinds there are. `ph` is the *phase*, `cat` the category.

# %%
events = json.loads(Path("mean.json").read_text())["traceEvents"]
Counter((event["ph"], event.get("cat", "")) for event in events)

# %%
next(event for event in events if event["ph"] == "X")

# %% [markdown]
# | `ph` | what it is |
# | --- | --- |
# | `"X"` | a *complete* event: something that ran, from `ts` on, for `dur`. Both are in **microseconds** |
# | `"M"` | metadata: the name of a process or a thread. No `dur` |
# | `"s"`, `"f"` | start and finish of an arrow, from a launch to its kernel. No `dur` |
# | `"i"` | an instant. No `dur` |
#
# Only complete events ran. Their `cat` says what they were:
#
# | `cat` | what it is |
# | --- | --- |
# | `"cpu_op"` | an operation of PyTorch, on the CPU |
# | `"cuda_runtime"`, `"cuda_driver"` | a call of CUDA, on the CPU: a launch, a wait |
# | `"kernel"` | **a kernel, on the GPU** |
# | `"gpu_memcpy"`, `"gpu_memset"` | **a copy or a fill, on the GPU** |
# | `"user_annotation"`, `"gpu_user_annotation"` | a range, drawn on the CPU's row or on the GPU's |
# | `"cuda_sync"` | a wait, drawn on the GPU's row |
#
# An event of the GPU says in `args["stream"]` which stream it ran on. **The events come in no order** that you can
# rely on. And names tell nothing: `cudaLaunchKernel` is no kernel, and a CPU operation may be named after the kernel
# that it starts.

# %% [markdown]
# ## Busy and idle
#
# A GPU is dear, so the first question to a profile is: *does it work at all?* Let us say exactly what that means.
#
# - **Work of the GPU** is a kernel, a copy or a fill. Ranges and waits are drawn on its rows, and are no work.
# - The GPU is **busy** while any work runs on any stream. Two kernels at once do not make it twice as busy.
# - The **span** goes from the start of the first work to the end of the last.
# - The **busy share** is the busy time divided by the span, a number from 0 to 1.
# - An **idle gap** is a stretch within the span in which no work runs.
#
# Here is a trace, made up for the purpose: four pieces of work on two streams.

# %%
def piece(name, category, stream, start, duration):
    where = {"pid": 0, "tid": stream, "args": {"stream": stream}}
    return {"ph": "X", "cat": category, "name": name, "ts": start, "dur": duration} | where


example = [
    piece("C", "kernel", 7, 70.0, 30.0),
    piece("A", "kernel", 7, 0.0, 40.0),
    piece("copy", "gpu_memcpy", 20, 55.0, 10.0),
    piece("B", "kernel", 20, 10.0, 10.0),
]
show_timeline(example, "made up: times in µs")

# %% [markdown]
# Predict the busy share, and the longest idle gap.

# %%
prediction = ...  # busy share, from 0 to 1

# %%
compare(prediction, (40 + 10 + 30) / 100, how="computed")

# %%
prediction = ...  # longest idle gap, in µs

# %%
compare(prediction, 55 - 40, "µs", how="computed")

# %% [markdown]
# B runs while A runs, so it adds nothing to the busy time. And the gap before the copy begins where **A** ends. B
# started later, but it is long over: "the end of what started last" would be wrong.

# %% [markdown]
# ## Exercise: read three facts
#
# Take the list of a trace's events and return `(kernels, busy share, longest idle gap in µs)`.
#
# 1. How many **kernels** ran? Copies and fills do not count here.
# 2. The **busy share**, as defined above. Here copies and fills do count. *(merge what overlaps)*
# 3. The **longest idle gap** in µs; 0 if there is none.
#
# There is at least one kernel. Events come in any order, and there are all the kinds of the tables above. Use plain
# Python. *(about 12 lines)*

# %% nbgrader={"grade_id": "trace_facts", "solution": true}
def trace_facts(events):
    ### BEGIN SOLUTION
    work = [e for e in events if e["ph"] == "X" and e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]
    spans = sorted((e["ts"], e["ts"] + e["dur"]) for e in work)
    begin = end = spans[0][0]
    busy = gap = 0.0
    for start, stop in spans:
        gap = max(gap, start - end)  # `end` is the latest so far, whoever it was
        busy += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return sum(e["cat"] == "kernel" for e in work), busy / (end - begin), gap
    ### END SOLUTION


# %% [markdown]
# `check` puts traces before your function that nobody has seen: with one stream and several, in any order, with
# ranges, waits, copies, and names that mislead. First try it on the example, in a cell of your own:
# `trace_facts(example)` should give 3, 0.8 and 15.0.

# %% nbgrader={"grade_id": "check-trace_facts", "grade": true, "locked": true, "points": 4}
check(trace_facts)

# %% [markdown]
# ## Ask for a value, and wait
#
# The CPU runs ahead: it queues kernels and does not wait for them. That is why a GPU can be busy all the time,
# although Python is slow. It ends as soon as the CPU **needs a value**: then it must wait until everything before has
# run, and meanwhile it queues nothing. The GPU runs dry.
#
# | this waits | since |
# | --- | --- |
# | `x.item()`, `float(x)`, `x.tolist()`, `print(x)` | a number is needed on the CPU |
# | `if x.any():`, `while x > 0:` | Python branches on the CPU |
# | `x.cpu()`, `x.numpy()` | the values are copied to the CPU |
# | `x.to("cuda")` of ordinary memory | the copy must have read it before it may change |
# | `x[mask]`, `x.nonzero()` | how large is the result? |
#
# Here is a pipeline as one meets them. Each row of `x` is the signal of a sensor. It reads well, and it is right.

# %%
def blocking(x, gain):
    gain = gain.cpu()
    cleaned = []
    for i in range(x.shape[0]):
        row = x[i]
        low, high = row.min().item(), row.max().item()
        if low == high:  # a dead sensor
            cleaned.append(torch.zeros_like(row))
            continue
        z = row - row.mean()
        z = z / row.std().cpu().to(x.device)
        if torch.any(z.abs() > 3):  # outliers
            z = z.clamp(-3, 3)
        if max(abs(low), abs(high)) > 100:  # saturated: trust it half
            z = z * 0.5
        cleaned.append(z * gain[i].to(x.device))
    return torch.stack(cleaned)


# %% [markdown]
# Count. On eight sensors, none of them dead, how often does Python ask for a single number of a tensor? (A comparison
# of Python numbers asks for nothing.)

# %%
prediction = ...  # questions, for 8 rows

# %%
signals = torch.randn(8, 65_536, device=device)
gain = torch.rand(8, device=device) + 0.5
blocking(signals, gain)  # warms up
with profile(activities=activities) as prof:
    blocking(signals, gain)
calls = {row.key: row.count for row in prof.key_averages()}
compare(prediction, calls["aten::_local_scalar_dense"], "questions")

# %% [markdown]
# By the code there are three for each row: `.item()` twice, and the `if` on a tensor. `aten::_local_scalar_dense` is what
# they all come down to, so it is a name worth searching a profile for. Without a GPU the profile finds a fourth, which
# nobody sees in the code: on a CPU, `row.std()` asks for the mean in the same way.
#
# On a GPU each question is a wait. So are the copies to the CPU and back, three more for each row. Without a GPU they
# are no copies at all, and nothing shows them.

# %%
show_timeline(prof, "the pipeline on eight sensors, on this machine")

# %% [markdown]
# Zoom in: eight times the same pattern, many short operations for one row at a time. On a GPU each of them is a kernel
# that is over before the next one is launched. Here is what that looks like, and below it the same numbers from a
# pipeline that never asks.

# %%
show_timeline(recorded_trace("blocking"), "the pipeline on eight sensors, recorded")

# %%
show_timeline(recorded_trace("unblocked"), "the same, without waits, recorded")

# %%
recorded("traces/pipeline", "kernels", "waits", "span_us", "busy_percent")

# %% [markdown]
# With a GPU, PyTorch can point at such lines itself: after `torch.cuda.set_sync_debug_mode("warn")` it warns at each
# wait, with the line.

# %% [markdown]
# ## Do without
#
# Three rewrites remove nearly every wait.
#
# **All rows at once.** A reduction with `dim=1, keepdim=True` gives one value for each row, as a column that fits back
# onto the matrix.
#
# **A branch that may as well be taken.** `if any(z > 3): z = clamp(z)` is the same as always clamping.
#
# **A branch that matters** becomes a choice: compute both sides, then `torch.where(condition, this, that)`, with a
# condition for each row.
#
# Here are the last two on a small case: negative rows are to be doubled. Predict the second row of the result.

# %%
prediction = ...  # a list of three numbers

# %%
small = torch.tensor([[1.0, 2.0, 3.0], [-1.0, -2.0, 0.5]])
negative = small.mean(dim=1, keepdim=True) < 0  # one answer for each row, shape (2, 1)
compare(prediction, torch.where(negative, 2 * small, small)[1].tolist(), how="computed")

# %% [markdown]
# What if the side that is not chosen holds a NaN, 0 / 0 for instance? It is dropped. Multiplying it by 0 would not
# help: NaN times 0 is NaN.

# %%
bad = torch.tensor([0.0]) / 0
print(torch.where(torch.tensor([True]), 0.0, bad), bad * 0)

# %% [markdown]
# ## Exercise: free the pipeline
#
# Write `unblock(x, gain)`, which returns the numbers that `blocking(x, gain)` returns, for the whole matrix at once.
# `x` is a float32 matrix of sensors × readings, with at least two readings; `gain` has one number for each sensor and
# may be negative. Dead sensors, outliers and saturated sensors all occur; a dead one may hold any constant.
#
# No `.item()`, no `.cpu()`, no `if` on a tensor, no loop over rows. *(about 7 lines)*
#
# Useful: `torch.std_mean(x, dim=1, keepdim=True)` and `torch.aminmax(x, dim=1, keepdim=True)` each give two things in
# one go. `gain[:, None]` makes a column of a vector.

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
# Correct before fast. `check` has rows of every kind, alone and mixed.

# %% nbgrader={"grade_id": "check-unblock", "grade": true, "locked": true, "points": 5}
check(unblock)

# %% [markdown]
# ## How much was waiting?
#
# Predict: how many times as fast as the pipeline is yours on a GPU? ⟦ gate("unblock", "blocking").points ⟧ of
# ⟦ exercise("unblock").max_points ⟧ points are for at least ⟦ gate("unblock", "blocking").at_least ⟧ times its speed.

# %%
prediction = ...  # the pipeline's time divided by yours

# %%
benchmark(unblock)

# %% [markdown]
# Hold your prediction against the report. This is what the authors' version reached:

# %%
recorded("unblock", "ratio_vs_blocking")

# %% [markdown]
# Read the plot from left to right. The pipeline's time grows with the **number of rows**, since each row costs the same
# launches and waits. Yours hardly grows, until there is so much data that the memory is the limit.
#
# Nothing was made faster on the GPU: it does the same arithmetic. It was kept waiting, and now it is not.

# %% [markdown]
# ## Nsight Systems and Nsight Compute
#
# PyTorch's profilers know PyTorch. NVIDIA's know the machine.
#
# - **Nsight Systems** (`nsys`) records a timeline of the whole program: CPU, CUDA calls, kernels, copies, other
#   libraries. It costs little. Ask it: *where does the time go, and who waits for whom?*
# - **Nsight Compute** (`ncu`) takes one kernel apart: share of the memory's bandwidth, cache hits, why threads stall. It
#   runs the kernel many times over to read all the counters. Ask it: *why is this kernel slow?*
#
# Neither knows `record_function`. Their ranges are **NVTX** ranges, and PyTorch can set them:
# `torch.cuda.nvtx.range("name")`. (`torch.autograd.profiler.emit_nvtx()` sets one for each operation.)
#
# Both profile a program from outside, so here is ours as a file.

# %%
script = """
import torch

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
# On a machine with a GPU and Nsight, run these in a terminal, in this notebook's folder. The first records, the second
# prints a table of kernels; `mean.nsys-rep` also opens in Nsight's own window.
#
# ```bash
# nsys profile --trace=cuda,nvtx --force-overwrite=true --output=mean python mean_two_ways.py
# nsys stats --force-export=true --report cuda_gpu_kern_sum mean.nsys-rep
# ```
#
# And this takes the kernels inside of the range `by_sum` apart, as far as the question goes what limits them.
#
# ```bash
# ncu --nvtx --nvtx-include "by_sum/" --section SpeedOfLight python mean_two_ways.py
# ```
#
# `ERR_NVGPUCTRPERM` means that the counters are reserved for administrators on that machine.

# %%
recorded_output("nsys")

# %%
recorded_output("ncu")

# %% [markdown]
# In the table of `nsys`, each row is a kernel with its share of the GPU's time: the two kernels that sum up the matrix
# take nearly all of it, and the division next to nothing.
#
# In the report of `ncu`, look at two lines of the large kernel: *DRAM Throughput* and *Compute (SM) Throughput*, both in
# per cent of what the GPU can do. A reduction should be near the first limit and far from the second. For the tiny
# kernel both are near zero: it is all launch.

# %% [markdown]
# ## Extra credit
#
# No points, but each shows something.
#
# 1. Profile `blocking` on 64 sensors and compute its busy share with your `trace_facts` (with a GPU). Then `unblock`.
# 2. `profile(…, record_shapes=True)` and `key_averages(group_by_input_shape=True)`: what is in the table now?
# 3. `profile(…, with_stack=True)` notes the line of Python that called each operation. What does it cost? Compare the
#    length of the two timelines.
# 4. Your `unblock` still moves the matrix several times. How many bytes must be moved at least, and how many do you
#    move? (The next notebook is about this question.)

# %% [markdown]
# ## In this notebook you have
#
# - read own time and total time in a profiler's table, and ranges of your own
# - looked at a trace as a timeline, and recorded three steps of a loop
# - defined busy share and idle gap, and computed them from any trace
# - counted the questions that a pipeline asks the GPU, and rewritten it so that it asks none
# - met Nsight's two profilers, with the commands to run them
#
# ## Check yourself
#
# <details><summary>A table says <code>aten::linear</code>: CPU total 9 ms, Self CPU 0.1 ms. Where do you look next?</summary>
#
# At what it calls: `aten::addmm`, most likely. The time is there.
#
# </details>
#
# <details><summary>Two kernels of 10 µs each start at the same moment on two streams, and nothing else runs. Busy time, busy share?</summary>
#
# 10 µs, and 1.0. Adding up the durations would give 20 µs in a span of 10.
#
# </details>
#
# <details><summary>Your GPU's busy share is 0.3. Will a faster kernel help?</summary>
#
# Hardly: 70 % of the time no kernel runs. Find out what the CPU does in the gaps: it waits, copies, or launches too many
# tiny kernels.
#
# </details>
#
# <details><summary>The busy share is 1.0. Is the program as fast as it can be?</summary>
#
# No: the GPU always has *something* to do. Whether each kernel does it well is another question, and the roofline
# answers it.
#
# </details>
#
# <details><summary>You remove a <code>print(loss)</code> from a training loop, and it becomes faster by far more than printing costs. Why?</summary>
#
# Printing needs the value, so the CPU waited for the GPU in every step, and the GPU ran dry after it.
#
# </details>
#
# **Next:** [Draw the roofline](03_draw_the_roofline.ipynb), which says how fast a kernel can be at all. Or go back to the
# [syllabus](../README.ipynb) in the course's folder.
