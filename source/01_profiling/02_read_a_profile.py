# %% [markdown]
# # Read a profile
#
# **You will** take profiles, look at them as a timeline in this notebook, and compute three facts from a trace.
#
# **You will learn**
#
# - how to read the tables of PyTorch's profilers: self time, total time, calls, memory
# - how to record a few steps of a long run, and how to mark ranges of your own
# - what is in a trace, and what *busy* and *idle* mean when streams overlap
#
# **You need** about 60 minutes and PyTorch, but no CUDA. Without a GPU you profile the CPU, and the notebook shows what
# was recorded on a GPU.
#
# **It writes** two small files into its folder, `mean.json` and `steps.json`. You may delete them afterwards.

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
# A stopwatch tells you how long something took. It does not tell you what ran in that time, or what waited for what.
#
# A **profiler** records the start and the end of each operation, on the CPU and on the GPU. Three are worth knowing:
#
# 1. the **autograd profiler**, `torch.autograd.profiler`: PyTorch's older one
# 2. the **PyTorch profiler**, `torch.profiler`: its successor, with ranges and schedules
# 3. **Nsight**, NVIDIA's own: Nsight Systems for the whole machine, Nsight Compute for the inside of one kernel
#
# As an example, we compute the mean of a large matrix in three ways.

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
# That cell was also the **warm-up**. The first call of an operation loads code, chooses an algorithm and allocates
# memory. If you profile the first call, that is mostly what you profile.

# %% [markdown]
# ## The autograd profiler
#
# You will meet this one in older code. It records everything inside its `with` block. `key_averages()` adds up all calls
# of the same name, and `table()` prints the result.

# %%
on_gpu = {"use_device": "cuda", "use_kineto": True} if device == "cuda" else {}
with torch.autograd.profiler.profile(**on_gpu) as prof:
    torch.mean(x)
print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=6, max_name_column_width=40))

# %% [markdown]
# You called one function, but the table has more than one row, because operations call operations. `aten` is PyTorch's
# library of operations. So there are two columns of time:
#
# - **CPU total**: from the start of the operation to its end, including everything that it calls
# - **Self CPU**: the same, without what it calls
#
# The times in the Self column add up to the whole time. The total column counts the same time more than once: for an
# operation and again for everything that calls it.
#
# Look at the row `aten::mean`. Without a GPU its total is almost everything and its self time almost nothing: it calls
# `aten::sum`, which does the work, and then divides one number. With a GPU it launches a kernel itself, so its self time
# is large, too. Older code leaves out `use_kineto`. The CUDA columns are then times between events, so even a row that
# launches no kernel, such as `aten::as_strided`, has a few µs.

# %% [markdown]
# ## The PyTorch profiler
#
# This is the one to use. You choose what to record: the CPU, and the GPU if there is one. `record_function` marks a
# **range** of your own. Ranges make the profile of a real program readable; without them, you see thousands of `aten::`
# rows.

# %%
activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (device == "cuda")
with profile(activities=activities, profile_memory=True) as prof:
    for name, mean in ways.items():
        with record_function(name):
            mean(x)
prof.export_chrome_trace("mean.json")

# %% [markdown]
# Start with the table. If the GPU was recorded, sort it by the time that the GPU spent, otherwise by self time.

# %%
rows = prof.key_averages()
by = "self_cuda_time_total" if any(row.self_device_time_total for row in rows) else "self_cpu_time_total"
print(rows.table(sort_by=by, row_limit=8, max_name_column_width=40))

# %% [markdown]
# Read it from the top: the first row is where the time goes. If it is your first range, with a large self time, you are
# seeing the profiler start up; *Record a few steps* shows how to leave that out. Your three ranges are rows, too, so
# you can see what each of them costs. `# of Calls` tells you whether a row is expensive because it is slow or because
# it is called often.
#
# On a GPU the table has two groups of columns. The CPU columns of `aten::mean` show how long it took to **launch** the
# kernel; the CUDA columns show how long the kernel **ran**. A row that begins with `cuda`, such as `cudaLaunchKernel`, is a
# call of the CUDA runtime on the CPU. A row with the name of a C++ template, such as `reduce_kernel`, is the kernel itself.
#
# <details><summary>You have a GPU, but the table has no CUDA times?</summary>
#
# PyTorch records the GPU through **CUPTI**, a library of NVIDIA's. If CUPTI cannot start, you get the CPU's part alone, in
# tables and in timelines. The container may not allow profiling, for example, or the driver may be older than the library.
# Remove the line with `KINETO_LOG_LEVEL` from the first cell, restart, and read what the profiler prints.
#
# Or an earlier profile in this process did not record the GPU. With PyTorch 2.15, the profiles after it then have no
# kernels. Restart the kernel of the notebook, and let the first profile record the GPU.
#
# </details>
#
# Here are the rows that a GPU adds to the table, computed from a recorded trace of the same three ways. The names are
# shortened: `torch.mean` and `torch.sum` run two versions of `reduce_kernel`. Before each of them, PyTorch sets a few
# bytes to 0, which is a `Memset`.

# %%
totals = {}
for event in recorded_trace("mean").events:
    if event["cat"] in ("kernel", "gpu_memset", "cuda_runtime"):
        calls, time_us = totals.get((event["cat"], event["name"]), (0, 0))
        totals[event["cat"], event["name"]] = calls + 1, time_us + event["dur"]
for (category, name), (calls, time_us) in sorted(totals.items(), key=lambda row: -row[1][1]):
    print(f"{time_us:9.1f} µs  calls: {calls}  {category:13} {name[:70]}")

# %% [markdown]
# ## Where the memory goes
#
# `profile_memory=True` adds columns for memory: how much each operation allocates, minus what it frees. Here is an
# expression that needs a temporary tensor. Predict: how many megabytes does `(x * 2).sum()` allocate for `x * 2`? `x` has
# `n` × `n` float32 elements, and the cell that defines `ways` sets `n`. One MB is $10^6$ bytes.

# %%
prediction = ...  # megabytes

# %%
with profile(activities=activities, profile_memory=True) as expression:
    (x * 2).sum()
(row,) = (row for row in expression.key_averages() if row.key == "aten::mul")
compare(prediction, round((row.device_memory_usage if device == "cuda" else row.cpu_memory_usage) / 1e6), "MB")

# %% [markdown]
# The temporary is as large as `x`: 4 bytes per element. It is gone after the sum, but it counts towards the *peak*, and
# it is the peak that causes an out-of-memory error. On a GPU, `torch.cuda.max_memory_allocated()` returns the peak.
#
# <details><summary>With a GPU: who holds the memory?</summary>
#
# Record each allocation with the line of Python that made it, and drop the file on https://pytorch.org/memory_viz:
#
# ```python
# torch.cuda.memory._record_memory_history()
# train_one_step()
# torch.cuda.memory._dump_snapshot("memory.pickle")
# ```
#
# `nvidia-smi` shows more than `torch.cuda.memory_allocated()`: PyTorch keeps freed memory for later tensors, in its
# **caching allocator**.
#
# </details>

# %% [markdown]
# ## Look at the timeline
#
# A table adds up, so it loses the order. A **trace** keeps every event with its start and its length. The file `mean.json`
# that you exported is a *Chrome trace*, a format that many tools read.
#
# Below it is drawn as a timeline. Each thread of the CPU has a row, and so does each queue of a GPU. The bars below an
# operation are the operations that it calls.
#
# Predict: which of the three ways calls different operations from the other two?

# %%
prediction = ...  # "by_function", "by_method" or "by_sum"

# %%
called = {}  # the operations that each way calls
for event in prof.events():
    if event.name in ways and event.cpu_children:
        called[event.name] = [operation.name for operation in event.cpu_children]
lists = list(called.values())
found = [name for name in called if lists.count(called[name]) == 1]  # no other way calls the same operations
compare(prediction, ", ".join(found))
called

# %%
show_timeline("mean.json", "the mean three ways, on this machine")

# %% [markdown]
# Zoom in with the mouse or with `+`, `-`, `0` and the arrow keys until you can read the end of each range.
#
# - `torch.mean(x)` and `x.mean()` run the same operations. Anyone who measures a difference between them has measured
#   noise.
# - `by_sum` runs a sum and then a separate division, `aten::div`.
#
# If there is a blank stretch at the start of the first range, that is the profiler starting up: the profiler needs a
# warm-up, too. You will give it one below.
#
# For traces with millions of events, use **Perfetto**: drop `mean.json` on https://ui.perfetto.dev.

# %% [markdown]
# ### With a GPU
#
# A trace with a GPU has three layers:
#
# - **operations** of PyTorch, on a thread of the CPU
# - **calls of the CUDA runtime** below them: `cudaLaunchKernel` puts a kernel into a queue, and `cudaDeviceSynchronize`
#   waits until all queues are empty
# - **kernels**, copies and fills, on a **stream** of the GPU. A stream is a queue: its work runs in order. Several streams
#   may run at the same time
#
# An arrow leads from each launch to the work that it puts in the queue.
#
# Predict: how many kernels do the three ways launch on a GPU, all together?

# %%
prediction = ...  # kernels

# %%
events = recorded_trace("mean").events
kernels = sum(event["cat"] == "kernel" for event in events)
compare(prediction, kernels or None, "kernels", how="recorded")

# %%
show_timeline(recorded_trace("mean"), "the mean three ways, recorded on a GPU")

# %% [markdown]
# Four. A mean is one kernel, which adds up and divides. `by_sum` takes two: a large one for the sum and a tiny one that
# divides a single number. The tiny one does almost no work, but it has to be launched all the same.
#
# Follow the arrows. The first kernels start soon after their launches. The kernels of `by_sum` are launched while the
# kernel before them is still running, so they wait in the queue. The longer the arrow, the further ahead the CPU is.

# %% [markdown]
# ## Record a few steps of a long run
#
# A training loop runs for hours. A profile of all of it would fill your disk, and nobody would read it. A **schedule**
# selects some steps. It skips `wait` steps. In the `warmup` steps the profiler runs, but discards what it records; that is
# where it starts up. Then it records `active` steps, and after `repeat` such rounds it stops.
#
# Call `prof.step()` at the end of each step. `on_trace_ready` is called at the end of each round; here it exports the trace.


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
compare(prediction, recorded_steps("steps.json"))

# %%
show_timeline("steps.json", "the steps that were recorded")

# %% [markdown]
# Steps 3, 4 and 5: two were skipped, one was the warm-up, and `repeat=1` stopped before the last two. The profiler marks each
# step with a range, `ProfilerStep#3` and so on.

# %% [markdown]
# ## What is in a trace
#
# A trace is a list of dictionaries, one per event. Here is one. `ph` is the *phase*, `cat` the category.

# %%
events = json.loads(Path("mean.json").read_text())["traceEvents"]
next(event for event in events if event["ph"] == "X")

# %% [markdown]
# | `ph` | what it is |
# | --- | --- |
# | `"X"` | a *complete* event: something that started at `ts` and took `dur`, both in **microseconds** |
# | `"M"` | metadata: the name of a process or a thread. No `dur`, no `cat` |
# | `"s"`, `"f"` | start and end of an arrow, from a launch to its kernel. No `dur` |
# | `"i"` | an instant. No `dur`, no `cat` |
#
# Only complete events take time. Their `cat` says what they were:
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
# An event of the GPU has its stream in `args["stream"]`. **The events are in no particular order.** Go by `cat` and not by
# the name: `cudaLaunchKernel` is not a kernel, and an operation on the CPU may have the same name as the kernel that it
# launches.

# %% [markdown]
# ## Busy and idle
#
# A GPU is expensive, so the first question to ask a profile is: *does the GPU work at all?* Here are exact definitions.
#
# - **Work** is a kernel, a copy or a fill. Ranges and waits are drawn on the GPU's rows, but they are not work.
# - The GPU is **busy** while any work runs on any stream. Two kernels at once do not make it twice as busy.
# - The **span** goes from the start of the first piece of work to the end of the last.
# - The **busy share** is the busy time divided by the span, a number from 0 to 1.
# - An **idle gap** is a stretch within the span in which no work runs.
#
# Here is a small trace to practise on, with four pieces of work on two streams.

# %%
pieces = [("C", "kernel", 7, 70.0, 30.0), ("A", "kernel", 7, 0.0, 40.0)]
pieces += [("copy", "gpu_memcpy", 20, 55.0, 10.0), ("B", "kernel", 20, 10.0, 10.0)]
example = [
    {"ph": "X", "cat": category, "name": name, "ts": start, "dur": duration, "args": {"stream": stream}}
    for name, category, stream, start, duration in pieces
]
show_timeline(example, "an example, in µs")

# %% [markdown]
# Predict the busy share and the longest idle gap. The last two numbers of each piece are its start and its duration.

# %%
prediction = ...  # (busy share from 0 to 1, longest idle gap in µs)

# %%
compare(prediction, ((40 + 10 + 30) / 100, 55 - 40), how="computed")

# %% [markdown]
# B runs while A runs, so it adds nothing to the busy time. The gap before the copy starts where **A** ends. B started later
# but ended long before, so "the end of the piece that started last" would be wrong.

# %% [markdown]
# ## Exercise: read three facts
#
# Write `trace_facts(events)`. It takes the list of a trace's events and returns three numbers: `(kernels, busy share,
# longest idle gap in µs)`. For `example` they are `(3, 0.8, 15.0)`.
#
# 1. How many **kernels** ran? Copies and fills do not count here.
# 2. The **busy share** as defined above. Copies and fills do count here. Merge pieces that overlap.
# 3. The **longest idle gap** in µs, or 0 if there is none.
#
# There is at least one kernel. The events come in any order, and every kind in the tables above occurs. Use plain
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
# Try `trace_facts(example)` in a cell of your own first. `check` then generates new traces: with one stream and with
# several, in any order, with ranges, waits, copies and misleading names.

# %% nbgrader={"grade_id": "check-trace_facts", "grade": true, "locked": true, "points": 4}
check(trace_facts)

# %% [markdown]
# ## Extra credit
#
# No points, but each task shows you something.
#
# 1. Take a profile with `record_shapes=True` and print `key_averages(group_by_input_shape=True).table()`. What is new?
#
# <details><summary>Answer</summary>
#
# Each row now has the shapes of its inputs, and calls with different shapes have rows of their own. That is how you find
# the one layer whose matrix product is too small.
#
# </details>
#
# 2. Take a profile with `with_stack=True`, which records the line of Python that called each operation. What does it cost?
#    Compare the lengths of the two timelines.
#
# <details><summary>Answer</summary>
#
# The profiler now follows Python's calls as well, which takes time in each of them and makes the trace larger. Compare
# both timelines and both files. Use `with_stack` to find a line, and switch it off when you measure.
#
# </details>
#
# 3. Profile a `torch.utils.data.DataLoader` that feeds a tiny model, with `num_workers=0` and then with `num_workers=2`.
#    What does the timeline show between two steps?
#
# <details><summary>Answer</summary>
#
# With `num_workers=0`, your process loads the data itself, in a range whose name begins with `enumerate(DataLoader)`. In
# that time a GPU would be idle. With workers, the range is only the wait for the next batch. Compare the two: if a batch is
# little work, handing it over from a worker can take longer than loading it.
#
# </details>

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - read self time, total time, calls and memory in a profiler's table, and marked ranges of your own
# - looked at a trace as a timeline, and recorded three steps of a loop
# - defined busy share and idle gap, and computed them from any trace
#
# ## Check yourself
#
# <details><summary>In a table, the Self CPU of <code>aten::linear</code> is 1 % of its CPU total. Where do you look next?</summary>
#
# At what it calls, most likely `aten::addmm`. The time is there.
#
# </details>
#
# <details><summary>Two kernels of the same length start at the same moment on two streams, and nothing else runs. What is the busy share?</summary>
#
# It is 1.0. Adding up the durations would give 2.0, but no share is larger than 1.
#
# </details>
#
# <details><summary>The busy share is 1.0. Is the program as fast as it can be?</summary>
#
# No. The GPU always has *something* to do. Whether each kernel does it well is another question, which the roofline answers.
#
# </details>
#
# ## Read on
#
# - [PyTorch Profiler](https://docs.pytorch.org/tutorials/recipes/recipes/profiler_recipe.html): the recipe, with memory,
#   shapes, stacks and schedules.
# - [Perfetto](https://perfetto.dev/docs/visualization/perfetto-ui): how to search, select and query a large trace.
# - [Understanding GPU Memory](https://pytorch.org/blog/understanding-gpu-memory-1/): snapshots of all allocations over time.
#
# **Next:** [Free a pipeline](03_free_a_pipeline.ipynb), where you remove the waits that a profile shows. Or go back to the
# [syllabus](../README.ipynb).
