# %% [markdown]
# # Read a profile
#
# **You will** take profiles, look at them as a timeline inside this notebook, and compute three facts from a trace.
#
# **You will learn**
#
# - what PyTorch's two profilers record, and how to read their table: own time, total time, calls
# - how to record a few steps of a long run, and how to mark your own ranges
# - what stands in a trace, and what *busy* and *idle* mean when streams overlap
#
# **You need** about 60 minutes, PyTorch, and no CUDA. Without a GPU the profiles that you take are the CPU's; what a
# GPU adds is shown as recorded on another machine.
#
# **It writes** two small files into its folder: `mean.json` and `steps.json`. You may delete them afterwards.

# %%
import os
import warnings

os.environ["KINETO_LOG_LEVEL"] = "99"  # the profiler's own log stays off
warnings.filterwarnings("ignore", "Warning: Profiler clears")  # some versions say so without need
from grader import check, device
from grader.explore import compare, recorded_trace, show_timeline

device

# %%
import json
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

# %% [markdown]
# ## Why a profiler
#
# A stopwatch says how long something took. It does not say what ran in that time, nor what waited for what.
#
# A *profiler* notes each operation with its start and its end, on the CPU and on the GPU. Three of them are worth
# knowing:
#
# 1. the **autograd profiler**, `torch.autograd.profiler`: PyTorch's older one
# 2. the **PyTorch profiler**, `torch.profiler`: its successor, with ranges and schedules
# 3. **Nsight**, NVIDIA's own: the whole system (Nsight Systems), or the inside of one kernel (Nsight Compute)
#
# Our object is the mean of a large matrix, in three ways.

# %%
ways = {
    "by_function": torch.mean,
    "by_method": lambda x: x.mean(),
    "by_sum": lambda x: torch.sum(x) / x.numel(),
}
n = 10_000 if device == "cuda" else 4_000
x = torch.randn(n, n, device=device)
for name, mean in ways.items():
    print(f"{name:12} {mean(x).item():+.7f}")

# %% [markdown]
# That cell was also the **warm-up**. The first call of an operation loads code, picks an algorithm and reserves memory.
# Profile a first call, and you profile that.

# %% [markdown]
# ## The autograd profiler
#
# You meet it in older code. It records while its `with` block runs, and its table is the one that its successor prints
# as well. `key_averages()` adds up what has the same name.

# %%
with torch.autograd.profiler.profile(use_device="cuda" if device == "cuda" else None) as prof:
    torch.mean(x)
print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=6, max_name_column_width=40))

# %% [markdown]
# You called one function, and the table has many rows: operations call operations. (`aten` is PyTorch's library of
# operations.) Hence two columns of time.
#
# - **CPU total**: from the operation's start to its end, with everything that it called
# - **Self CPU**: the same without what it called
#
# Add up "Self", and you get the whole. (Here are the six largest rows, and so nearly the whole.) Add up "total", and you
# count the same time several times.
#
# Look at the row of `aten::mean`. On a CPU its total is nearly everything, and its own time next to nothing: it calls
# `aten::sum`, which does the work, and then divides one number.
#
# On a GPU `aten::mean` prepares one kernel and launches it. The CPU columns then say how long the *launch* took. The
# kernel's time stands in the CUDA columns.
#
# But with a GPU, do not take this older profiler's totals at their word:
#
# - It puts two events of its own around each operation, and gives the time between them as CUDA time. That is longer
#   than the kernel runs.
# - `aten::mean` calls an `aten::mean`, and the table counts both. So its total can be more than 100 %.
#
# The next profiler asks the GPU when each kernel began and ended, and counts the two as one.

# %% [markdown]
# ## The PyTorch profiler
#
# This is the one to use. You say what to record: the CPU, and the GPU where there is one. `record_function` marks a
# **range** of your own. Ranges make the profile of a real program readable: without them you see thousands of `aten::`
# rows.

# %%
activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (device == "cuda")
with profile(activities=activities) as prof:
    for name, mean in ways.items():
        with record_function(name):
            mean(x)
prof.export_chrome_trace("mean.json")

# %% [markdown]
# ## Look at the timeline
#
# A table adds up, and so it loses the order. A **trace** keeps each event with its start. The file `mean.json` that you
# exported is a *Chrome trace*, a format that many tools read.
#
# Here it is drawn. Time runs to the right. Each thread of the CPU has a row, and each stream of a GPU: a queue of work,
# of which more below. What an operation calls lies beneath it.
#
# Before you run the cell: which of the three ways runs other operations than the other two?

# %%
show_timeline("mean.json", "the mean three ways, on this machine")

# %% [markdown]
# Zoom to the end of each range, until you see what comes last. The keys `+`, `-`, `0` and the arrows work, too. (A
# blank stretch at the start of the first range is the profiler's own beginning. With a GPU, a longer one may lie inside
# the first operation.)
#
# - `torch.mean(x)` and `x.mean()` run the same operations. Whoever times them and finds a difference has measured noise.
# - `by_sum` runs a sum, and then a division of its own, `aten::div`.
# - The same name twice, one below the other, is no mistake: `aten::sum` of everything calls `aten::sum` over a list of
#   dimensions. On a GPU `aten::mean` does likewise. The table of the PyTorch profiler counts such a pair once.
#
# For a trace of millions of events there is Perfetto: drop `mean.json` on https://ui.perfetto.dev. You do not need it
# here.

# %% [markdown]
# ### With a GPU
#
# A trace with a GPU has three layers:
#
# - **operations** of PyTorch, on a thread of the CPU
# - **calls of the CUDA runtime**, below them: `cudaLaunchKernel` puts a kernel into a queue, and
#   `cudaDeviceSynchronize` waits until every queue is empty
# - **kernels**, copies and fills, on a *stream* of the GPU. A stream is such a queue: one thing after the other.
#   Several streams may work at once.
#
# Predict: on a GPU, how many kernels do the three ways start together?

# %%
prediction = ...  # kernels

# %%
events = recorded_trace("mean").events
kernels = sum(event["cat"] == "kernel" for event in events)
compare(prediction, kernels or None, "kernels", how="recorded")

# %%
show_timeline(recorded_trace("mean"), "the mean three ways, recorded on a GPU")

# %% [markdown]
# Four. Each mean is one kernel that adds up and divides in passing. `by_sum` takes two: a large one for the sum, and a
# tiny one that divides a single number. The tiny one does next to nothing, and still has to be launched. (The short
# bars before the large kernels are fills, which are no kernels.)
#
# The first `aten::mean` is by far the longest. That is not its work: the profiler begins to watch the GPU in it.

# %% [markdown]
# ## Record a few steps of a long run
#
# A training loop runs for hours. A profile of all of it would fill the disk, and nobody would read it. A **schedule**
# picks some steps. It leaves out `wait` of them. During `warmup` the profiler runs, and what it finds is thrown away.
# Then it records the `active` ones. After `repeat` such rounds it stops.
#
# `prof.step()` ends a step. `on_trace_ready` is called at the end of each round; here it exports the trace.


# %%
def export(prof):
    prof.export_chrome_trace("steps.json")


def recorded_steps(path):
    names = {event.get("name", "") for event in json.loads(Path(path).read_text())["traceEvents"]}
    return sorted(int(name.removeprefix("ProfilerStep#")) for name in names if name.startswith("ProfilerStep#"))


# %% [markdown]
# Predict: which of the eight steps, counted from 0, does the next cell record?

# %%
prediction = ...  # a list of step numbers

# %%
plan = schedule(wait=2, warmup=1, active=3, repeat=1)
with profile(activities=activities, schedule=plan, on_trace_ready=export) as prof:
    for _ in range(8):
        ways["by_sum"](x[:100])
        prof.step()
compare(prediction, recorded_steps("steps.json"), how="recorded")

# %%
show_timeline("steps.json", "the steps that were recorded")

# %% [markdown]
# Steps 3, 4 and 5. Two waited, one warmed up, and `repeat=1` ended it before the last two. Each step is a range,
# `ProfilerStep#3` and so on: the profiler marks them for you.

# %% [markdown]
# ## What stands in a trace
#
# A trace is a list of dictionaries, one for each event. This is one of them. `ph` is the *phase*, `cat` the category.

# %%
events = json.loads(Path("mean.json").read_text())["traceEvents"]
next(event for event in events if event["ph"] == "X")

# %% [markdown]
# | `ph` | what it is |
# | --- | --- |
# | `"X"` | a *complete* event: something that ran, from `ts` on, for `dur`. Both are in **microseconds** |
# | `"M"` | metadata: the name of a process or a thread. No `dur`, no `cat` |
# | `"s"`, `"f"` | start and finish of an arrow, from a launch to its kernel. No `dur` |
# | `"i"` | an instant. No `dur`, no `cat` |
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
# | others, such as `"Trace"` | the profiler's own |
#
# An event of the GPU says in `args["stream"]` which stream it ran on. **The events come in no order** that you can
# rely on. And go by `cat`, not by the name: `cudaLaunchKernel` is no kernel, and a CPU operation may be named after the
# kernel that it starts.

# %% [markdown]
# ## Busy and idle
#
# A GPU is expensive, so the first question to a profile is: *does it work at all?* Here is what that means exactly.
#
# - **Work of the GPU** is a kernel, a copy or a fill. Ranges and waits are drawn on its rows, and are no work.
# - The GPU is **busy** while any work runs on any stream. Two kernels at once do not make it twice as busy.
# - The **span** goes from the start of the first work to the end of the last.
# - The **busy share** is the busy time divided by the span, a number from 0 to 1.
# - An **idle gap** is a stretch within the span in which no work runs.
#
# Here is a trace, made up for the purpose: four pieces of work on two streams.

# %%
pieces = [("C", "kernel", 7, 70.0, 30.0), ("A", "kernel", 7, 0.0, 40.0)]
pieces += [("copy", "gpu_memcpy", 20, 55.0, 10.0), ("B", "kernel", 20, 10.0, 10.0)]
example = [
    {"ph": "X", "cat": category, "name": name, "ts": start, "dur": duration, "args": {"stream": stream}}
    for name, category, stream, start, duration in pieces
]
show_timeline(example, "made up: times in µs")

# %% [markdown]
# Predict the busy share, and the longest idle gap. (The numbers in the cell above are start and duration.)

# %%
prediction = ...  # (busy share from 0 to 1, longest idle gap in µs)

# %%
compare(prediction, ((40 + 10 + 30) / 100, 55 - 40), how="computed")

# %% [markdown]
# B runs while A runs, so it adds nothing to the busy time. And the gap before the copy begins where **A** ends. B
# started later, but it is long over: "the end of what started last" would be wrong.

# %% [markdown]
# ## Exercise: read three facts
#
# Write `trace_facts(events)`. It takes the list of a trace's events and returns three numbers, `(kernels, busy share,
# longest idle gap in µs)`. For `example` these are `(3, 0.8, 15.0)`.
#
# 1. How many **kernels** ran? Copies and fills do not count here.
# 2. The **busy share**, as defined above. Here copies and fills do count. *(merge what overlaps)*
# 3. The **longest idle gap** in µs; 0 if there is none.
#
# There is at least one kernel. Events come in any order, and all the kinds of the tables above occur. Use plain Python.
# *(about 12 lines)*


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
# Try `trace_facts(example)` first, in a cell of your own. `check` then draws new traces: with one stream and several,
# in any order, with ranges, waits, copies, and names that mislead.

# %% nbgrader={"grade_id": "check-trace_facts", "grade": true, "locked": true, "points": 4}
check(trace_facts)

# %% [markdown]
# ## Extra credit
#
# No points, but each shows something.
#
# 1. `profile(…, record_shapes=True)` and `key_averages(group_by_input_shape=True)`: what is in the table now?
# 2. `profile(…, with_stack=True)` notes the line of Python that called each operation. What does it cost? Compare the
#    length of the two timelines.

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - read own time and total time in a profiler's table, and ranges of your own
# - looked at a trace as a timeline, and recorded three steps of a loop
# - defined busy share and idle gap, and computed them from any trace
#
# ## Check yourself
#
# <details><summary>In a table, the Self CPU of <code>aten::linear</code> is 1 % of its CPU total. Where do you look next?</summary>
#
# At what it calls: `aten::addmm`, most likely. The time is there.
#
# </details>
#
# <details><summary>Two kernels of the same length start at the same moment on two streams, and nothing else runs. What is the busy share?</summary>
#
# It is 1.0. Adding up the durations would give 2.0, and no share is more than 1.
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
# **Next:** [Free a pipeline](03_free_a_pipeline.ipynb), where you remove the waits that a profile shows. Or go back to the
# [syllabus](../README.ipynb).
