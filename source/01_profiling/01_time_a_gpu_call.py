# %% [markdown]
# # Time a GPU call
#
# **You will** try three stopwatches that lie, find out why, and write one that does not.
#
# **You will learn**
#
# - why a clock in Python sees that work was handed to the GPU, and not the work
# - what synchronising, warming up and repeating are for
# - to read the GPU's own clock, with events
# - to state a time: median and spread, cache cold or warm
#
# **You need** about 45 minutes and PyTorch, no CUDA. With an NVIDIA GPU you time that one. Without, a *pretend GPU*
# takes its place. It follows the rules of a real one, at a snail's pace, and your stopwatch is checked on it.

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
# `gpu.call()` makes a function that keeps the GPU busy for some milliseconds. It stands for any work on a GPU: a matrix
# product, a layer, a whole model. Its first call is special, so we make that one now and come back to it later.

# %%
call = gpu.call()
call()
torch.cuda.synchronize()

# %% [markdown]
# How long does `call()` take? The obvious stopwatch: look at the clock, call, look again. Below it we look a third time,
# after `torch.cuda.synchronize()`, which waits until the GPU has done all that it was given.
#
# Predict: which share of the whole time has passed when `call()` returns? Write 0.5 for half.

# %%
prediction = ...  # a share between 0 and 1

# %%
start = time.perf_counter()
call()
returned = time.perf_counter()
torch.cuda.synchronize()
done = time.perf_counter()

compare(prediction, (returned - start) / (done - start))
print(f"call() returned after {1e3 * (returned - start):.2f} ms")
print(f"the GPU was done after {1e3 * (done - start):.2f} ms")

# %% [markdown]
# Almost nothing. A function that runs on the GPU is called a *kernel*. `call()` only *launches* one: it puts the kernel
# into a **queue** and returns. The CPU (the *host*) goes on with your next line while the GPU works. This is what
# *asynchronous* means.

# %%
draw_timeline(call)

# %% [markdown]
# The narrow strip at the left of the upper row is the launch. It is all that a clock around `call()` sees.
#
# This is a blessing: the host can queue many kernels ahead, so that the GPU need not wait for Python.
#
# Predict: three calls in a row. When have they all returned, as a share of the time until the GPU is done?

# %%
prediction = ...  # a share between 0 and 1

# %%
start = time.perf_counter()
for _ in range(3):
    call()
returned = time.perf_counter()
torch.cuda.synchronize()
compare(prediction, (returned - start) / (time.perf_counter() - start))

# %%
draw_timeline(call, times=3)

# %% [markdown]
# So the **first stopwatch that lies** is the one that does not synchronise. (`time.time()` is no better than
# `time.perf_counter()`: it does not wait either, and it jumps when the system's clock is set.)
#
# Some calls wait by themselves, because they need the result: `.item()`, `.cpu()`, `print(tensor)`, or an `if` on a
# tensor. A clock that is read after one of these is right by accident.

# %% [markdown]
# ## The first call is different
#
# So let us synchronise. Here is a new function, and the time of its first call and of its second.
#
# Predict: how many times as long as the second call does the first one take?


# %%
def synchronised_ms(function):
    torch.cuda.synchronize()  # nothing else is under way
    start = time.perf_counter()
    function()
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - start)


# %%
prediction = ...  # the first call's time divided by the second's

# %%
call = gpu.call()
first, second = synchronised_ms(call), synchronised_ms(call)
compare(prediction, first / second)
print(f"first {first:.1f} ms, second {second:.1f} ms")

# %% [markdown]
# A first call does what later calls find done:
#
# - it sets up CUDA, once a process
# - it loads libraries, such as the one for matrix products, and kernels from them
# - it takes memory from the driver, which PyTorch then keeps for later tensors
# - it compiles: Triton and `torch.compile` do that at the first call, and again for new types and for some new shapes
#
# Here it compiles a kernel. (The pretend GPU just waits a while.) The **second stopwatch that lies** synchronises, and
# has the first call in its time. Does a mean mend that?
#
# Predict: the mean of ten calls with the first one among them. How many times the time of a later call is it?

# %%
prediction = ...  # the mean of all ten, divided by the time of one later call

# %%
call = gpu.call()
times = [synchronised_ms(call) for _ in range(10)]
compare(prediction, mean(times) / median(times[1:]))

# %% [markdown]
# The remedy is a **warm-up**: call the function a few times, and throw these times away. But mind the queue. Warm-up calls
# that you do not wait for are still running when your clock starts, and you measure them as well. So the order is: warm
# up, synchronise, start the clock.
#
# Sometimes the first call is what you want to know, as with a compiler. Then time it alone, in a fresh process, and
# empty the compiler's cache on disk first.

# %% [markdown]
# ## One shot is no measurement
#
# Warm, synchronised, and once: is that enough? Let us look at thirty such shots. Predict: how many times as long as the
# fastest is the slowest?

# %%
prediction = ...  # slowest divided by fastest

# %%
times = [synchronised_ms(call) for _ in range(30)]
compare(prediction, max(times) / min(times))

# %%
draw_times(times)

# %% [markdown]
# Run the two cells again: the points move. Nearly all that goes on beside your call can only *add* to its time: another
# process, a chip that has not sped up yet, or has slowed down because it is hot. So times have a floor, and stray
# upwards from it.
#
# A single shot is **the third stopwatch that lies**: it may have hit a stray. Repeat, and take a number that strays do
# not move:
#
# - the **median** is the time that half of the calls stay below. One stray, however far out, hardly moves it
# - the **mean** is moved by every stray, in proportion to how far out it is
# - the **minimum** says what the machine can do, and hides how often it does so
#
# Give the spread along with it, such as the range of the middle half. A rule of thumb: where two medians differ by less
# than that, do not yet say that one is faster.

# %%
ordered = sorted(times)
print(f"median {median(times):.3f} ms, middle half {ordered[7]:.3f} to {ordered[22]:.3f} ms")

# %% [markdown]
# ## The GPU's own clock
#
# A clock on the host also counts the launch and the way back. For a kernel of a few microseconds that is most of it. The
# GPU has a clock as well, and an **event** reads it.
#
# `event.record()` puts a mark into the queue, behind all that is there. When the GPU comes to the mark, it notes the
# time. Two marks around a kernel give the kernel's time.
#
# The next cell puts a mark, a kernel and a mark into the queue, and asks for the time right away. Predict: does it print
# a number or an error?

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
# The GPU has not come to the second mark yet. `end.synchronize()` waits until it has.
#
# And mind the unit: `elapsed_time` gives **milliseconds**, `time.perf_counter()` **seconds**.

# %%
end.synchronize()
start.elapsed_time(end)

# %% [markdown]
# Events see what lies between the marks in the queue. If the GPU runs dry in between, because the host is slow to launch,
# that gap counts as well. So when you time small kernels, either launch many between two marks, or give the GPU
# something to do first, so that marks and kernel wait in the queue together.
#
# One function on a real GPU, under each of these stopwatches:

# %%
recorded("stopwatches", "time_ms")

# %% [markdown]
# ## Cold or warm?
#
# A GPU keeps what it used last in its **L2 cache**, tens of megabytes on large GPUs. When you call the same function
# again and again with the same input, a small input is still there: the cache is *warm*. In a real program other kernels
# have often run in between, and the input comes from memory: the cache is *cold*.
#
# `time_after(before, function)` gives the times of thirty `function()`, each right after `before()`. To make the cache
# cold, `before` writes 256 MiB of something else. (CPUs have caches, too: without a GPU this runs on your CPU.)
#
# Predict, or guess: how many times as long does a cold sum take, if `x` fits the cache?

# %%
prediction = ...  # cold divided by warm

# %%
cached = torch.cuda.get_device_properties(0).L2_cache_size // 2 if device == "cuda" else 1 << 19  # bytes
x = torch.randn(cached // 4, device=device)
other = torch.empty(1 << 26, device=device)  # 256 MiB

warm = median(time_after(x.sum, x.sum))
cold = median(time_after(other.zero_, x.sum))
compare(prediction, cold / warm)

# %%
recorded("warm_and_cold", "warm_us", "cold_us")

# %% [markdown]
# On the recorded GPU the cold sum takes only a little longer. Why so little? Compare the sums over 1 MiB and over 4 MiB
# there. Four times the bytes take hardly longer. So most of each time is the price of a call, whatever the bytes, and a
# cache does not shorten that. (On a CPU the price is small, and the cache shows far more.)

# %% [markdown]
# Neither is wrong, but they answer different questions. Say which one you measured, and compare like with like. A
# benchmark with a small input in a loop measures the cache, whatever its author thinks. `check` and `benchmark` in this
# course use inputs of their own for each launch, so what they time is cold.
#
# An input much larger than the cache is nearly cold in any case. (The recorded sum over 256 MiB still shows a difference.
# A part of its input may have stayed in the cache. And what `before` wrote must go from the cache to memory while the
# cold sum runs. How much each of the two counts was not measured.)

# %% [markdown]
# ## Exercise: time a GPU call
#
# Write `time_gpu(function)`. It returns the **milliseconds** that one call of `function()` takes on the GPU.
# `function` takes no argument. It is like `call` above: its first call is slow, and it may launch one kernel or many.
# Three steps *(about 12 lines)*:
#
# 1. Warm up, and wait.
# 2. Time ten calls or more: with a pair of events around each, and take the median; or with one wall clock around all of
#    them, and divide by their number. Wait before you read either.
# 3. Mind the unit.
#
# Your time must be within ⟦ (100 * exercise("time_gpu").budget.relative) | int ⟧ % of the grader's own, for functions
# that you have not seen. Do not ask `torch.cuda.is_available()`: without a GPU it says no, and the pretend GPU is there
# all the same.

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
# `check` runs the cell above in a process of its own, so what other cells define is not there. It hands `time_gpu`
# functions of unknown duration, and compares. If you are off, it tries to say which of the mistakes above it was. A
# `NameError` here? Run the exercise's cell first.

# %% nbgrader={"grade_id": "check-time_gpu", "grade": true, "locked": true, "points": 4}
check(time_gpu)

# %% [markdown]
# ## Square three ways
#
# You will not write this timer anew each time. Two that others wrote, and what they do:
#
# | | `torch.utils.benchmark.Timer` | `triton.testing.do_bench` |
# | --- | --- | --- |
# | clock | the host's, synchronised | events |
# | warm-up | yes | yes, for a fortieth of a second |
# | repeats, if not told otherwise | for a fifth of a second | for a tenth of a second |
# | returns | median and spread, **seconds** | mean, **milliseconds** |
# | cache | as the last call left it | cold: it is written over before each call |
# | without a GPU | times the CPU | an error |
#
# Now a question for the first of them. (`blocked_autorange` repeats the call for at least so many seconds.) A matrix can
# be squared, element by element, as `x * x`, as `x ** 2` and as `torch.square(x)`. Below they stand in their long form:
# with `out=` the result has its place already, and the search for memory is not timed. Predict: the slowest way's time, divided by the fastest's.

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
    print(f"{way}  {medians[-1]:.4f} ms, interquartile range {1e6 * times.iqr:.3f} µs")
compare(prediction, max(medians) / min(medians))

# %% [markdown]
# Look at the interquartile range, the width of the middle half, before you name a winner. Mind the units: it is given
# in microseconds, the medians in milliseconds. (Without a GPU the times are your CPU's, on one thread, and everything
# else that the machine does is in them.)
#
# All three read the matrix and write another: the same bytes, hardly any arithmetic. `torch.square(x)` even *is* `x ** 2`,
# and for the exponent 2 PyTorch multiplies. So there should be no winner. The same three on a real GPU:

# %%
recorded("square_three_ways", "median_ms")

# %% [markdown]
# ## Extra credit
#
# No points, but each shows something.
#
# 1. Let `time_gpu` return the spread as well, in a version of your own: the range of the middle half. Does it depend on
#    what else your machine does?
# 2. Put `time.sleep(0.05)` before `call()` between the two events. Which time do you get, and why?
# 3. Time a function that waits for the GPU by itself: `lambda: (call(), torch.cuda.synchronize())`. Which of the three
#    stopwatches is honest now?
# 4. With a GPU: time `torch.square` for matrices from 32 × 32 to 4096 × 4096. From which size on does the time grow, and
#    what do you measure below it?

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - seen that a launch returns at once, and how far the host runs ahead of the GPU
# - caught three stopwatches that lie: one that does not wait, one that counts the first call, one that looks once
# - read the GPU's own clock with events, in milliseconds
# - told a warm cache from a cold one
# - written a timer that is right within 5 %, and used a ready-made one
#
# ## Check yourself
#
# <details><summary>A colleague's kernel takes a few microseconds, whatever the size of its input. What do you ask?</summary>
#
# Where they synchronise. What does not grow with the input is most likely the time of a launch.
#
# </details>
#
# <details><summary>You time 100 calls with one pair of events around all of them. Which of the remedies is missing?</summary>
#
# The median. If you warmed up and waited, you have a mean. But a stray moves it, and you cannot tell the spread.
#
# </details>
#
# <details><summary>Why does it not help to synchronise only <em>before</em> the clock is started?</summary>
#
# Then nothing else is under way, but the clock still stops when the launch returns.
#
# </details>
#
# <details><summary>Your loop times a sum over 4 MiB on a GPU with an L2 cache of 50 MB, and finds more bandwidth than the memory has. Is the clock wrong?</summary>
#
# Not necessarily. From the second call on the input lies in the cache, and the bandwidth is the cache's.
#
# </details>
#
# <details><summary>Which is better, the wall clock or events?</summary>
#
# For calls of milliseconds they agree. The wall clock counts what the user waits for, launches included. Events count what
# the GPU does between two marks.
#
# </details>
#
# **Next:** [Read a profile](02_read_a_profile.ipynb), where you see which kernels a call is made of. Or go back to the
# [syllabus](../README.ipynb).
