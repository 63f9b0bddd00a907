# %% [markdown]
# # Time a GPU call
#
# **You will** try three stopwatches that lie, find out why they lie, and write one that tells the truth.
#
# **You will learn**
#
# - why a clock in Python measures the launch of a kernel and not the kernel
# - why you synchronise, warm up and repeat
# - how to read the GPU's own clock with events
# - how to report a time: median and spread, cold or warm cache
#
# **You need** about 50 minutes and PyTorch, but no CUDA. With an NVIDIA GPU, you time that GPU. Without one, a *pretend
# GPU* takes its place: it follows the rules of a real one, but slowly, and your stopwatch is checked on it.

# %%
from grader import check, device
from grader.explore import busy_gpu, compare, draw_timeline, draw_times, recorded, time_after

device

# %%
import time
from statistics import mean, median

import torch

gpu = busy_gpu()
gpu

# %% [markdown]
# ## A launch returns at once
#
# A function that runs on the GPU is called a **kernel**. `gpu.call()` returns a Python function that launches a kernel
# of a few milliseconds. It could be any work on a GPU: a matrix product, a layer, a whole model. The first call is
# special, so we make it now and come back to it later.

# %%
call = gpu.call()
call()
torch.cuda.synchronize()

# %% [markdown]
# How long does `call()` take? The obvious stopwatch reads the clock before and after. The next cell reads it a third time,
# after `torch.cuda.synchronize()`, which waits until the GPU has finished everything in its queue.
#
# Predict: what share of the total time has passed when `call()` returns: about 1, 0.5, 0.1 or 0.01?

# %%
prediction = ...  # 1, 0.5, 0.1 or 0.01

# %%
start = time.perf_counter()
call()
returned = time.perf_counter()
torch.cuda.synchronize()
done = time.perf_counter()

compare(prediction, (returned - start) / (done - start), within=3.5)
print(f"call() returned after {1e3 * (returned - start):.2f} ms")
print(f"the GPU was done after {1e3 * (done - start):.2f} ms")

# %% [markdown]
# Almost none of it. `call()` only *launches* the kernel: it puts the kernel into a **queue** and returns. The CPU, which
# CUDA calls the **host**, goes on to your next line while the GPU works. The launch is **asynchronous**.

# %%
draw_timeline(call)

# %% [markdown]
# The narrow strip at the left of the upper row is the launch. A clock around `call()` measures that strip and nothing
# else.
#
# Asynchronous launches are useful: the host can queue many kernels ahead of time, so the GPU never waits for Python.
#
# The next cell makes three calls in a row. Predict: by the time the third one returns, what share of the total time has
# passed?

# %%
prediction = ...  # 1, 0.5, 0.1 or 0.01

# %%
start = time.perf_counter()
for _ in range(3):
    call()
returned = time.perf_counter()
torch.cuda.synchronize()
compare(prediction, (returned - start) / (time.perf_counter() - start), within=3.5)

# %%
draw_timeline(call, times=3)

# %% [markdown]
# So the **first lying stopwatch** is the one that does not synchronise.
#
# Some calls synchronise by themselves because they need the result: `.item()`, `.cpu()`, `print(tensor)`, or an `if` on a
# tensor. A clock that you read after one of these is right by accident.

# %% [markdown]
# ## The first call is different
#
# Now synchronise, and time the first and the second call of a new function.


# %%
def synchronised_ms(function):
    torch.cuda.synchronize()  # finish any earlier work
    start = time.perf_counter()
    function()
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - start)


# %% [markdown]
# Predict: how many times longer does the first call take? Only the order of magnitude counts: 1, 10, 100 or 1,000.

# %%
prediction = ...  # the first call's time divided by the second's

# %%
call = gpu.call()
first, second = synchronised_ms(call), synchronised_ms(call)
compare(prediction, first / second, within=3.5)
print(f"first {first:.1f} ms, second {second:.1f} ms")

# %% [markdown]
# The first call does work that later calls can skip:
#
# - it initialises CUDA, once per process
# - it loads libraries and the kernels in them, such as cuBLAS for matrix products
# - it requests memory from the driver, which PyTorch then keeps for later tensors
# - it compiles: Triton and `torch.compile` compile on the first call, and again for new types and some new shapes.
#   Compiling at run time is called **JIT** (just-in-time) compilation
#
# A real GPU compiles a kernel here; the pretend GPU only waits.
#
# The **second lying stopwatch** synchronises but includes the first call. Does averaging fix it? Take the two times that
# you have just measured and predict the mean of ten calls, the first one included, as a multiple of a later call's time.

# %%
prediction = ...  # the mean of all ten, divided by the time of one later call

# %%
call = gpu.call()
times = [synchronised_ms(call) for _ in range(10)]
compare(prediction, mean(times) / median(times[1:]), within=1.5)

# %% [markdown]
# It does not: a tenth of a very long call is still a long time. The cure is a **warm-up**: call the function a few times
# before you start the clock. Remember that these calls are asynchronous, too. If you do not wait for them, they are still
# running when your clock starts, and you time them as well. The order is: warm up, synchronise, start the clock.
#
# Sometimes the first call is what you want to measure, for example with a compiler. Then time it on its own, in a new
# process, and clear the compiler's disk cache first.

# %% [markdown]
# ## One shot is not a measurement
#
# You have warmed up and synchronised. Is one call enough? The next cell times thirty calls. Predict: how many times longer
# is the slowest than the fastest? The order of magnitude will do.

# %%
prediction = ...  # slowest divided by fastest

# %%
times = [synchronised_ms(call) for _ in range(30)]
compare(prediction, max(times) / min(times), within=3)

# %%
draw_times(times)

# %% [markdown]
# Run the two cells again: the points move. Nearly everything that disturbs a call makes it *slower*: another process, or
# a chip that lowers its clock rate because it is hot. So times have a floor, and nearly all outliers lie above it.
#
# A single shot is **the third lying stopwatch**: it may have caught an **outlier**. Repeat the call and summarise:
#
# - the **median** is the middle value: half of the calls are faster. A single outlier hardly moves it
# - the **mean** includes every outlier, in proportion to its size
# - the **minimum** shows what the machine can do, but not how often it does so
#
# Report the spread as well, for example the range of the middle half. As a rule of thumb, if two medians differ by less
# than that range, do not call either one faster.

# %%
ordered = sorted(times)
print(f"median {median(times):.3f} ms, middle half {ordered[7]:.3f} to {ordered[22]:.3f} ms")

# %% [markdown]
# ## The GPU's own clock
#
# A clock on the host also measures the launch and the wait: the **launch overhead**. For a kernel of a few microseconds,
# that is most of the time. The GPU has a clock of its own, and an **event** reads it.
#
# `event.record()` puts a marker into the queue, behind everything that is queued so far. When the GPU reaches the marker,
# it notes the time. Two markers around a kernel give the kernel's time.
#
# The next cell queues a marker, a kernel and a second marker, and asks for the time right away. Predict: does it print a
# number or an error?

# %%
prediction = ...  # "a number" or "an error"

# %%
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
start.record()
call()
end.record()
try:
    found = f"a number: {start.elapsed_time(end):.3f} ms"
except RuntimeError as error:
    found = f"an error: {error}"
compare(prediction, found.partition(":")[0])
print(found)

# %% [markdown]
# The GPU has not reached the second marker yet. `end.synchronize()` waits until it has.
#
# Mind the unit: `elapsed_time` returns **milliseconds**, `time.perf_counter()` **seconds**.

# %%
end.synchronize()
print(f"{start.elapsed_time(end):.3f} ms")

# %% [markdown]
# Two events measure everything between the two markers. If the host is slow to launch and the GPU runs out of work, the
# gap counts as well. To time a small kernel, launch it many times between the two events. Or give the GPU a long kernel
# first: while it runs, the markers and the small kernel enter the queue, so there is no gap between them.
#
# Here is one function on a real GPU, timed with each of the stopwatches:

# %%
recorded("stopwatches", "time_ms")

# %% [markdown]
# ## Cold or warm?
#
# A GPU keeps recently used data in its **L2 cache**, which holds tens of megabytes on a large GPU. If you call a function
# with the same small input again and again, the input is still in the cache: the cache is **warm**. In a real program,
# other kernels have usually run in between, and the input comes from memory: the cache is **cold**.
#
# `time_after(before, function)` times `function()` thirty times, each time right after `before()`. To make the cache cold,
# `before` writes 256 MiB of other data. CPUs have caches, too, so without a GPU this runs on your CPU.
#
# Predict: `x` fits in the cache. How many times longer does a cold sum take than a warm one? A factor of two is close
# enough.

# %%
prediction = ...  # cold divided by warm

# %%
cached = torch.cuda.get_device_properties(0).L2_cache_size // 2 if device == "cuda" else 1 << 19  # bytes
x = torch.randn(cached // 4, device=device)
other = torch.empty(1 << 26, device=device)  # 256 MiB

warm = median(time_after(x.sum, x.sum))
cold = median(time_after(other.zero_, x.sum))
compare(prediction, cold / warm, within=2)

# %%
recorded("warm_and_cold", "warm_us", "cold_us")

# %% [markdown]
# On the recorded GPU, a cold sum takes only a little longer. Compare the sums over 1 MiB and 4 MiB: four times the bytes
# take hardly any longer. Most of that time is the fixed cost of a launch, and no cache shortens it. The ratio is largest
# at 16 MiB. The last two inputs are larger than the cache, so even a warm sum reads most of them from memory.
#
# Neither number is wrong; they answer different questions. Say which one you measured, and compare like with like. A
# benchmark that runs a small input in a loop measures the cache, whatever its author believes. In this course, `check`
# and `benchmark` use new inputs for every launch, so they measure a cold cache.

# %% [markdown]
# ## Is your GPU idle?
#
# The same kernel takes a different time at a different clock rate, and a GPU changes its clock all the time. An idle GPU
# clocks down, a hot one slows down, and one that would draw more than its **power limit** lowers its clock until it stays
# within the limit. NVIDIA calls the last two **throttling**. Before you trust a measurement, ask `nvidia-smi`:

# %%
import shutil
import subprocess

query = "name,clocks.sm,clocks.max.sm,temperature.gpu,power.draw,power.limit,utilization.gpu"
if shutil.which("nvidia-smi"):
    command = ["nvidia-smi", f"--query-gpu={query}", "--format=csv"]
    print(subprocess.run(command, capture_output=True, text=True).stdout)
else:
    print("nvidia-smi is not on this machine: it comes with NVIDIA's driver.")

# %% [markdown]
# <details><summary>What to look for</summary>
#
# - `utilization.gpu` above 0 before you start: somebody else is using this GPU. `nvidia-smi` without options lists the
#   processes.
# - `clocks.sm` below `clocks.max.sm` while your kernel runs: the clock is throttled. `nvidia-smi -q -d PERFORMANCE` names
#   the reason, such as *SW Power Cap* or *HW Thermal Slowdown*.
# - `power.draw` at `power.limit`: the kernel is limited by power. How much power it draws depends on the data, too:
#   [Catch a lying benchmark](06_catch_a_lying_benchmark.ipynb) uses that for a lie.
# - An administrator can lock the clock with `nvidia-smi --lock-gpu-clocks=MIN,MAX` and set the power limit with
#   `nvidia-smi --power-limit=WATTS`. Times then vary less, but they are the times of that clock, not of the GPU at its best.
#
# </details>

# %% [markdown]
# ## Exercise: time a GPU call
#
# Write `time_gpu(function)`. It returns how many **milliseconds** one call of `function()` takes on the GPU. `function`
# takes no argument. It behaves like `call` above: its first call is slow, a later one may be an outlier, and it may launch
# one kernel or many. There are three steps *(about 12 lines)*:
#
# 1. Warm up, and wait for the warm-up.
# 2. Time at least ten calls. Either put a pair of events around each call and take the median, or put one wall clock
#    around all of them and divide by their number. Wait before you read either clock.
# 3. Convert to milliseconds.
#
# Your time must be within ⟦ (100 * exercise("time_gpu").budget.relative) | int ⟧ % of the grader's own time, for functions
# that you have not seen. Do not call `torch.cuda.is_available()`: without a GPU it returns `False`, although the pretend GPU works.

# %% nbgrader={"grade_id": "time_gpu", "solution": true}
import time
from statistics import median

import torch


def time_gpu(function):
    ### BEGIN SOLUTION
    for _ in range(3):
        function()
    torch.cuda.synchronize()
    times = []
    for _ in range(20):
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        start.record()
        function()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return median(times)
    ### END SOLUTION


# %% [markdown]
# `check` runs the cell above in a separate process, where names from other cells do not exist. It passes functions of
# unknown duration to `time_gpu` and compares the times. If yours is off, it tries to say which of the mistakes above you
# made. If you see a `NameError` here, run the exercise's cell first.

# %% nbgrader={"grade_id": "check-time_gpu", "grade": true, "locked": true, "points": 4}
check(time_gpu)

# %% [markdown]
# ## Square three ways
#
# You do not have to write this timer every time. There are two good ones, one in PyTorch and one in Triton, the
# language of chapter 3.
#
# | | `torch.utils.benchmark.Timer` | `triton.testing.do_bench` |
# | --- | --- | --- |
# | clock | the host's, synchronised | events |
# | warm-up | yes | yes, 25 milliseconds |
# | repeats by default | 200 milliseconds (`blocked_autorange`) | 100 milliseconds |
# | returns | median and spread in **seconds** | mean in **milliseconds** |
# | cache | as the last call left it | cold: cleared before each call |
# | without a GPU | times the CPU | raises an error |
#
# Let us use the first one to answer a question. You can square a matrix element by element with `x * x`, `x ** 2` or
# `torch.square(x)`. Which is fastest? We call them with `out=`, so that allocating the result is not timed. Predict: the
# slowest time divided by the fastest.

# %%
from torch.utils.benchmark import Timer

n = 8192 if device == "cuda" else 512
x = torch.randn(n, n, device=device)
out = torch.empty_like(x)

# %%
prediction = ...  # slowest divided by fastest

# %%
medians = []
for way in ("torch.mul(x, x, out=out)", "torch.pow(x, 2, out=out)", "torch.square(x, out=out)"):
    times = Timer(way, globals={"x": x, "out": out}).blocked_autorange(min_run_time=0.5)
    medians.append(1e3 * times.median)
    print(f"{way}  {medians[-1]:.4f} ms, interquartile range {1e3 * times.iqr:.4f} ms")
compare(prediction, max(medians) / min(medians))

# %% [markdown]
# Before you name a winner, compare the difference with the **interquartile range**, the width of the middle half.
#
# All three read one matrix and write another, with hardly any arithmetic. They move the same bytes, and that is what takes
# the time. Inside PyTorch, `torch.square(x)` even *is* `x ** 2`, which multiplies if the exponent is 2. Here are the same
# three on a real GPU:

# %%
recorded("square_three_ways", "median_ms")

# %% [markdown]
# ## Extra credit
#
# No points, but each task shows you something.
#
# 1. Write a version of `time_gpu` that also returns the range of the middle half. Does the range depend on what else your
#    machine is doing?
#
# <details><summary>Answer</summary>
#
# Sort the times and return two of them, as in the cell above. Then start a large compile or a video in parallel and
# compare. A busy host delays some launches, so look at the upper end of the range first, then at the median.
#
# </details>
#
# 2. Put `time.sleep(0.05)` before `call()`, between the two events. What time do you get, and why?
#
# <details><summary>Answer</summary>
#
# About 50 milliseconds more. The GPU reaches the first marker at once, notes the time and runs out of work. Events measure
# everything between two markers, and here that includes an idle GPU.
#
# </details>
#
# 3. Time a function that waits for the GPU by itself: `lambda: (call(), torch.cuda.synchronize())`. Which of the three
#    lying stopwatches becomes honest?
#
# <details><summary>Answer</summary>
#
# The first one: the clock stops after the work is done, although the stopwatch itself does not synchronise. The other two
# still include the first call, or may catch an outlier.
#
# </details>
#
# 4. With a GPU: time `torch.square` for matrices from 32 × 32 to 4096 × 4096. At which size does the time begin to grow, and
#    what do you measure below that size?
#
# <details><summary>Answer</summary>
#
# For the smallest matrices the time is constant: you measure the launch overhead. It grows once moving the matrix takes
# longer than the launch. Where that happens depends on your GPU and CPU.
#
# </details>

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - seen that a launch returns at once, and how far the host runs ahead of the GPU
# - caught three lying stopwatches: one that does not wait, one that includes the first call, one that times a single
#   call
# - read the GPU's own clock with events, in milliseconds
# - timed a warm and a cold cache, and asked the GPU for its clock rate and its power
# - written a timer that is right within ⟦ (100 * exercise("time_gpu").budget.relative) | int ⟧ %, and used a ready-made one
#
# ## Check yourself
#
# <details><summary>A colleague's kernel takes a few microseconds, whatever the size of its input. What do you ask?</summary>
#
# Where in the benchmark they synchronise. A time that does not grow with the input is most likely the time of a launch.
#
# </details>
#
# <details><summary>You time 100 calls with one pair of events around all of them. Which of the remedies is missing?</summary>
#
# The median. If you warmed up and waited, you have a mean, but one outlier moves it, and you do not know the spread.
#
# </details>
#
# <details><summary>Why is it not enough to synchronise only <em>before</em> the clock starts?</summary>
#
# Then no earlier work is running, but the clock still stops when the launch returns.
#
# </details>
#
# <details><summary>You sum 32 MiB in a loop on a GPU with an L2 cache of 72 MB, and get a higher bandwidth than the memory has. Is the clock wrong?</summary>
#
# Not necessarily. From the second call on, the input is in the cache, and you measure the cache's bandwidth.
#
# </details>
#
# <details><summary>Which is better, the wall clock or events?</summary>
#
# For calls of milliseconds they agree. The wall clock measures what the user waits for, launches included. Events measure
# what the GPU does between two markers.
#
# </details>
#
# ## Read on
#
# - [CUDA semantics](https://docs.pytorch.org/docs/stable/notes/cuda.html): asynchronous execution, streams and events in
#   PyTorch.
# - [PyTorch Benchmark](https://docs.pytorch.org/tutorials/recipes/recipes/benchmark.html): the `Timer` of this notebook, and
#   how to compare many measurements.
# - [How to accurately time CUDA kernels in PyTorch](https://www.speechmatics.com/company/articles-and-news/timing-operations-in-pytorch):
#   events, warm-up, clocks and caches, with measurements.
#
# **Next:** [Read a profile](02_read_a_profile.ipynb), where you see which kernels a call is made of. Or go back to the
# [syllabus](../README.ipynb).
