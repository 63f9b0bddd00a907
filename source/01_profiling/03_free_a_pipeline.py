# %% [markdown]
# # Free a pipeline
#
# **You will** free a pipeline of the waits that its profile shows, and meet NVIDIA's two profilers.
#
# **You will learn**
#
# - which innocent lines make the CPU wait for the GPU, and how to do without them
# - when to reach for Nsight Systems and Nsight Compute, with the commands to run
#
# **You need** about 50 minutes, PyTorch, and no CUDA. Without a GPU the profiles that you take are the CPU's; what a
# GPU adds is shown as recorded on another machine.
#
# **It writes** a small file into its folder: `mean_two_ways.py`. You may delete it afterwards.

# %%
import os
import warnings

os.environ["KINETO_LOG_LEVEL"] = "99"  # the profiler's own log stays off
warnings.filterwarnings("ignore", "Warning: Profiler clears")  # some versions say so without need
from grader import benchmark, check, device
from grader.explore import compare, recorded, recorded_output, recorded_trace, show_timeline

device

# %%
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (device == "cuda")

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
# This is the pipeline on a GPU, and below it one that never asks. Predict: how many times as many kernels does the
# pipeline launch, on eight sensors?

# %%
prediction = ...  # the pipeline's kernels, divided by those without waits


# %%
def kernels(name):
    return sum(event["cat"] == "kernel" for event in recorded_trace(name).events)


compare(prediction, kernels("blocking") / kernels("unblocked"), how="recorded")

# %% [markdown]
# Here are the two timelines. Look for the waits in the first.

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
# 2. Your `unblock` still moves the matrix several times. How many bytes must be moved at least, and how many do you
#    move? (The next notebook is about this question.)

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - counted the questions that a pipeline asks the GPU, and rewritten it so that it asks none
# - met Nsight's two profilers, with the commands to run them
#
# ## Check yourself
#
# <details><summary>Your GPU's busy share is 0.3. Will a faster kernel help?</summary>
#
# Hardly: 70 % of the time no work runs. Find out what the CPU does in the gaps: it waits, copies, or launches too many
# tiny kernels.
#
# </details>
#
# <details><summary>You remove a <code>print(loss)</code> from a training loop, and it becomes faster by far more than printing costs. Why?</summary>
#
# Printing needs the value, so the CPU waited for the GPU in every step, and the GPU ran dry after it.
#
# </details>
#
# <details><summary>Which of Nsight's two profilers do you start with, and why?</summary>
#
# With Nsight Systems: it says where the time goes. Nsight Compute then takes the kernel apart that it went to.
#
# </details>
#
# **Next:** [Draw the roofline](04_draw_the_roofline.ipynb), which says how fast a kernel can be at all. Or go back to the
# [syllabus](../README.ipynb).
