# %% [markdown]
# # Read a profile
#
# **You will** take profiles, look at them as a timeline inside this notebook, compute three facts from a trace, and free
# a pipeline of the waits that its profile shows.
#
# **You will learn**
#
# - what PyTorch's two profilers record, and how to read their table: own time, total time, calls
# - how to record a few steps of a long run, and how to mark your own ranges
# - what stands in a trace, and what *busy* and *idle* mean when streams overlap
# - which innocent lines make the CPU wait for the GPU, and how to do without them
# - when to reach for Nsight Systems and Nsight Compute, with the commands to run
#
# **You need** about 60 minutes, PyTorch, and no CUDA. Without a GPU the profiles that you take are the CPU's; what a
# GPU adds is shown as recorded on another machine.
#
# **It writes** three small files into its folder: `mean.json`, `steps.json` and `mean_two_ways.py`. You may delete them
# afterwards.

# %%
import os
import warnings

os.environ["KINETO_LOG_LEVEL"] = "99"  # the profiler's own log stays off
warnings.filterwarnings("ignore", "Warning: Profiler clears")  # some versions say so without need
from grader import benchmark, check, device
from grader.explore import compare, recorded, recorded_output, recorded_trace, show_timeline

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
#
# Before you run the cell: which of the eight steps, counted from 0, are recorded?


# %%
def export(prof):
    prof.export_chrome_trace("steps.json")


plan = schedule(wait=2, warmup=1, active=3, repeat=1)
with profile(activities=activities, schedule=plan, on_trace_ready=export) as prof:
    for _ in range(8):
        ways["by_sum"](x[:100])
        prof.step()
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
# ## Ask for a value, and wait
#
# The CPU runs ahead: it queues kernels and does not wait for them. That is why a GPU can be busy all the time,
# although Python is slow. This ends as soon as the CPU **needs a value**. It must wait until what it has queued has run,
# and meanwhile it queues nothing. The GPU runs dry.
#
# | this waits, if `x` is on the GPU | because |
# | --- | --- |
# | `x.item()`, `float(x)`, `x.tolist()`, `print(x)` | a number is needed on the CPU |
# | `if x.any():`, `while x > 0:` | Python branches on the CPU |
# | `x.cpu()` | the values are copied to the CPU |
# | `x[mask]`, `x.nonzero()` | how large is the result? |
#
# In the other direction `x.to("cuda")` waits for the copy, too. To go on meanwhile, it takes `non_blocking=True` and an
# `x` in pinned memory (`x.pin_memory()`).
#
# Here is a pipeline of the usual sort, and its results are right. Each row of `x` is the signal of a sensor. This cleans
# one:


# %%
def clean(row, gain):
    low, high = row.min().item(), row.max().item()
    if low == high:  # a dead sensor
        return torch.zeros_like(row)
    z = (row - row.mean()) / row.std().cpu().to(row.device)
    if torch.any(z.abs() > 3):  # outliers
        z = z.clamp(-3, 3)
    if max(abs(low), abs(high)) > 100:  # saturated: trust it half
        z = z * 0.5
    return z * gain.to(row.device)


# %% [markdown]
# And this cleans them all.


# %%
def blocking(x, gain):
    gain = gain.cpu()
    return torch.stack([clean(x[i], gain[i]) for i in range(x.shape[0])])


# %% [markdown]
# Predict: on eight sensors, none of them dead, how often does Python ask for a single number of a tensor? (Count
# `.item()`, and each `if` on a tensor. To compare Python numbers asks for nothing, and copies come later.)

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
# Three for each row: `.item()` twice, and one `if` on a tensor, which is `aten::is_nonzero`. These are names worth
# searching a profile for.
#
# On a GPU each question is a wait. So are the copies to the CPU and back, three more for each row, and the one of
# `gain`. Without a GPU nothing is copied, and the profile does not show them.
#
# With a GPU, the first operation of such a picture may look like the worst wait of all. It is none: again the profiler
# begins in it. Zoom past it, here and in the recorded pictures below.

# %%
show_timeline(prof, "the pipeline on eight sensors, on this machine")

# %% [markdown]
# Zoom in: eight times the same pattern, many operations for one row at a time. On a GPU nearly every one is a small
# kernel, and after each wait the next one is launched to a GPU that has nothing to do.
#
# This is the pipeline on a GPU, and below it one that never asks.

# %%
show_timeline(recorded_trace("blocking"), "the pipeline on eight sensors, recorded")

# %%
show_timeline(recorded_trace("unblocked"), "the same, without waits, recorded")

# %%
recorded("traces/pipeline", "kernels", "waits", "span_us", "busy_percent")

# %% [markdown]
# The second has the shorter span, and yet the **lower** busy share. Multiply each share by its span: that is the time in
# which the GPU worked. It has shrunk even more than the span.
#
# Zoom in on the second. Nearly every kernel begins soon after its launch, and is over long before the next launch. The CPU
# waits no more, but now the GPU waits for launches: eight short rows are too little work for it. (The profiler makes each
# launch slower, too.) So a busy share alone does not say which program is faster.

# %% [markdown]
# With a GPU, PyTorch can point at such lines itself: after `torch.cuda.set_sync_debug_mode("warn")` it warns at
# nearly every wait, with the line.

# %% [markdown]
# ## Do without
#
# Three rewrites remove the waits.
#
# **All rows at once.** A reduction with `dim=1, keepdim=True` gives one value for each row, as a column that fits back
# onto the matrix.
#
# **A branch that may as well be taken.** `if any(abs(z) > 3): z = z.clamp(-3, 3)` gives what clamping always gives.
#
# **A branch that matters** becomes a choice: compute both sides, then `torch.where(condition, this, that)`, with a
# condition for each row.
#
# Here are the first and the third on `[[1, 2, 3], [-1, -2, 0.5]]`: rows whose mean is negative are to be doubled.
# Predict the second row of the result.

# %%
prediction = ...  # a list of three numbers

# %%
small = torch.tensor([[1.0, 2.0, 3.0], [-1.0, -2.0, 0.5]])
negative = small.mean(dim=1, keepdim=True) < 0  # one answer for each row, shape (2, 1)
compare(prediction, torch.where(negative, 2 * small, small)[1].tolist(), how="computed")

# %% [markdown]
# The whole row is doubled, the 0.5 too. And what if the side that is not chosen holds a NaN, 0 / 0 for instance?
# `torch.where` drops it. Multiplying by 0 would not help: NaN times 0 is NaN.

# %% [markdown]
# ## Exercise: free the pipeline
#
# Write `unblock(x, gain)`, which returns the numbers that `blocking(x, gain)` returns, for the whole matrix at once.
# `x` is a float32 matrix of sensors × readings, with at least two readings; `gain` has one number for each sensor and
# may be negative. Dead sensors, outliers and saturated sensors all occur; a dead one may hold any constant.
#
# No `.item()`, no `.cpu()`, no `if` on a tensor, no loop over rows. Get it right first, then fast. *(about 7 lines)*
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
# `check` has rows of every kind, alone and mixed.

# %% nbgrader={"grade_id": "check-unblock", "grade": true, "locked": true, "points": 5}
check(unblock)

# %% [markdown]
# ## How fast is it?
#
# ⟦ gate("unblock", "blocking").points ⟧ of ⟦ exercise("unblock").max_points ⟧ points are for at least
# ⟦ gate("unblock", "blocking").at_least ⟧ times the pipeline's speed at
# ⟦ gate("unblock", "blocking").cases | join(", ") ⟧.
#
# Predict: on a GPU, how many times as fast as the pipeline is yours? Compare your number with the report.

# %%
prediction = ...  # the pipeline's time divided by yours

# %%
benchmark(unblock)

# %%
recorded("unblock", "ratio_vs_blocking")

# %% [markdown]
# Expect this of the plot, from left to right: it shows bandwidth, bytes divided by time. The pipeline pays the same
# launches and waits for each row, so its curve stays low. (If each row took the same time, it would be flat. It may
# rise or fall. The reason was not looked for.) Yours makes the same few launches for any number of rows: the more rows,
# the less they count, and the curve rises. It stays far below a copy, as each line of PyTorch is a kernel that reads
# and writes the whole matrix.
#
# The plot has fewer rows than the case for the points. On a fast GPU the rows of that case are lengthened, on an H200
# until they are as long as those in the plot. The recorded row of that case has short rows, as its name says. There the
# factor is far larger: the pipeline takes about as long for a short row as for a long one.
#
# The arithmetic is hardly more. Gone are the waits, the launches for each row, and the kernels too small to fill a GPU.

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
# Both profile a program from outside. The next cell writes one to the file `mean_two_ways.py`.

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
# On a machine with a GPU and Nsight, run these in a terminal, in this notebook's folder. The first records, the second
# prints a table of kernels; `mean.nsys-rep` also opens in Nsight's own window.
#
# ```bash
# nsys profile --trace=cuda,nvtx --force-overwrite=true --output=mean python mean_two_ways.py
# nsys stats --force-export=true --report cuda_gpu_kern_sum mean.nsys-rep
# ```
#
# And this asks of each kernel in the range `by_sum` what limits it.
#
# ```bash
# ncu --nvtx --nvtx-include "by_sum/" --section SpeedOfLight python mean_two_ways.py
# ```
#
# `ERR_NVGPUCTRPERM` means that the counters are reserved for administrators on that machine.
#
# What to look for:
#
# - In the table of `nsys`, each row is a kernel with its share of the GPU's time. The first call of each mean is counted
#   as well, and so is the kernel that makes the random numbers. The division takes next to nothing.
# - In the report of `ncu`, look at *DRAM Throughput* and *Compute (SM) Throughput*, both in per cent of what the GPU can
#   do by its data sheet. (A plain copy does not reach 100 %, either.) The large kernel should be much nearer to the first
#   limit than to the second. For the tiny one both are near zero: it is all launch. (The report
#   calls it `MulFunctor`: to divide by a number, PyTorch multiplies by its reciprocal.)
#
# The next two cells show what these commands printed on a GPU machine. Where one was not installed, it says so.

# %%
recorded_output("nsys")

# %%
recorded_output("ncu")

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

# %%
from grader.explore import count_predictions

count_predictions()

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
# <details><summary>Your GPU's busy share is 0.3. Will a faster kernel help?</summary>
#
# Hardly: 70 % of the time no work runs. Find out what the CPU does in the gaps: it waits, copies, or launches too many
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
