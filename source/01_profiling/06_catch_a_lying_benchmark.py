# %% [markdown]
# # Catch a lying benchmark
#
# **You will** fake a speed-up in nine ways, each with a kernel that is no faster at all. Then you write a function that tells
# sound benchmarks from lying ones without reading them.
#
# **You will learn**
#
# - nine ways in which a speed-up is faked, usually by accident
# - how large a number each of them fakes on your machine
# - the question that catches each of them
# - how to audit a benchmark by its behaviour, with kernels, baselines and data of your own choice
#
# **You need** about 95 minutes, PyTorch, and the first notebook of this chapter, but no CUDA. Seven of the nine lies run on any
# machine. Two need a GPU; without one they run on a *pretend GPU* and say so.

# %%
from grader import check, device
from grader.explore import PretendGpu, ThisMachine, compare, draw_claims, draw_waits, recorded, show_lies

device

# %%
from statistics import mean, median

import torch

torch.set_num_threads(1)  # on a CPU: one thread is disturbed less by other programs

# %% [markdown]
# ## A benchmark that can be audited
#
# In this notebook, a benchmark is a function of four arguments that returns the speed-up it claims:
#
# `benchmark(kernel, baseline, make_input, machine)`
#
# - `kernel` and `baseline` each take a tensor and return one. They are supposed to compute the same thing.
# - `make_input()` returns a tensor with fresh data.
# - `machine` has the clock and whatever else you need from `torch.cuda`: `machine.clock()` in seconds, `machine.synchronize()`,
#   `machine.Event()`, `machine.Stream()`, `machine.stream(s)`, `machine.current_stream()`.
#
# The caller of the benchmark decides what is timed, on which data, and by which clock. That makes an audit possible.

# %%
machine = ThisMachine()  # your GPU, or your CPU

# %% [markdown]
# The stopwatch is the sound one from the first notebook. It times each call and keeps the results.


# %%
def time_calls(function, inputs, machine, average=median):
    seconds, results = [], []
    for x in inputs:
        machine.synchronize()  # nothing else is running
        start = machine.clock()
        results.append(function(x))
        machine.synchronize()  # the result is there
        seconds.append(machine.clock() - start)
    return average(seconds), results


# %% [markdown]
# Two more helpers. `prepare` makes all data in advance and warms up both functions on data that is not used again. `agree`
# compares the results.


# %%
def prepare(kernel, baseline, make_input, calls=30):
    first, second, *inputs = [make_input() for _ in range(calls + 2)]
    kernel(first), baseline(second)  # first calls may compile
    return inputs


# %%
def agree(got, expected, tolerance=1e-5):
    pairs = ((a.double(), b.double()) for a, b in zip(got, expected, strict=False))
    return all((a - b).abs().max() <= tolerance * b.abs().max() for a, b in pairs)


# %% [markdown]
# And this is a sound benchmark. If the results differ, there is no speed-up to claim, so it returns 0.


# %%
def sound(kernel, baseline, make_input, machine):
    inputs = prepare(kernel, baseline, make_input)
    baseline_s, expected = time_calls(baseline, inputs, machine)
    kernel_s, got = time_calls(kernel, inputs, machine)
    return baseline_s / kernel_s if agree(got, expected) else 0.0


# %% [markdown]
# To expose a lie, we benchmark a function **against itself**. It cannot be faster than itself.


# %%
def work(x):
    return (x.sin() + x.cos()) / 2


def make_input():
    return torch.randn(1 << 23 if device == "cuda" else 1 << 16, device=device)


# %% [markdown]
# So the sound benchmark should claim 1.

# %%
round(sound(work, work, make_input, machine), 2)

# %% [markdown]
# About 1, with some noise from other programs and a changing clock rate. If it is far from 1, your machine is busy: run the cell
# again, and trust the numbers below only as far as this one. From here on, **any claim far from 1 is a lie**. We collect them.

# %%
claims = {}

# %% [markdown]
# ## 1. No sync
#
# You know this one from the first notebook: a launch returns at once. If you read the clock then, you have timed the launch.


# %%
def no_sync(kernel, baseline, make_input, machine):
    inputs = prepare(kernel, baseline, make_input)
    baseline_s, expected = time_calls(baseline, inputs, machine)
    start = machine.clock()
    got = [kernel(x) for x in inputs]
    kernel_s = (machine.clock() - start) / len(inputs)  # the launches alone
    return baseline_s / kernel_s if agree(got, expected) else 0.0


# %% [markdown]
# A call on a CPU returns when the work is done, so there is nothing to wait for. Without a GPU, this lie runs on a **pretend
# GPU**. The one in the first notebook really waited. The clock of this one is only a number. Each launch adds five
# microseconds to it, and each wait adds the time until the kernel is done.

# %%
gpu = machine if device == "cuda" else PretendGpu()

# %% [markdown]
# Both kinds of machine have `run(seconds)`, which launches a kernel that takes that long. On a real GPU, the kernel keeps it
# busy. We use `run` to make a function whose time we know.


# %%
def takes(seconds, machine):
    def function(x):
        machine.run(seconds)  # queued, and the call returns
        return 2 * x

    return function


def few_numbers():
    return torch.randn(1000)


# %% [markdown]
# Kernel and baseline both take one millisecond. Predict: what speed-up is claimed?

# %%
prediction = ...  # claimed speed-up

# %%
claims["no sync"] = no_sync(takes(0.001, gpu), takes(0.001, gpu), few_numbers, gpu)
compare(prediction, claims["no sync"], how="measured" if device == "cuda" else "computed")

# %% [markdown]
# It is the time of a kernel divided by the time of its launch. The longer the kernel, the larger the "speed-up".
#
# **The question:** *has the GPU finished its work when the clock is read?* A benchmark that synchronises can still get this
# wrong: it may wait before the first reading of the clock but not before the second, or only in the first of ten calls.

# %% [markdown]
# ## 2. Hot data
#
# A cache keeps what was used last. A benchmark that calls the kernel on the same small tensor again and again times the cache.
# In real use, the data usually comes from memory.


# %%
def hot_data(kernel, baseline, make_input, machine):
    inputs = prepare(kernel, baseline, make_input, calls=100)
    baseline_s, expected = time_calls(baseline, inputs, machine)  # each tensor once
    same = inputs[:1] * len(inputs)  # one tensor, again and again
    kernel_s, got = time_calls(kernel, same, machine)
    return baseline_s / kernel_s if agree(got[:1], expected[:1]) else 0.0


# %% [markdown]
# A sum reads each element once and computes next to nothing, so it is as fast as its memory. One tensor fits in a cache (the L2
# of a GPU or of most CPU cores); a hundred do not.


# %%
def cacheable():
    half_of_l2 = torch.cuda.get_device_properties(0).L2_cache_size // 2 if device == "cuda" else 1 << 19  # bytes
    return torch.randn(half_of_l2 // 4, device=device)


# %% [markdown]
# Predict: what speed-up is claimed?

# %%
prediction = ...  # claimed speed-up

# %%
claims["hot data"] = hot_data(torch.sum, torch.sum, cacheable, machine)
compare(prediction, claims["hot data"])

# %% [markdown]
# On a GPU the claim may be small: each call is timed with its launch and its wait, which no cache shortens.
#
# **The question:** *has somebody just used the data?* Two tensors used alternately are as hot as one, and so is a
# tensor that the baseline read a moment ago. A sound benchmark makes all data in advance and passes each tensor to a
# function only once.

# %% [markdown]
# ## 3. Cached result
#
# A function can remember its results, for example by the address of the tensor. If the benchmark runs everything once "to warm
# up", all that remains to be timed is the look-up.


# %%
def cached_result(kernel, baseline, make_input, machine):
    inputs = prepare(kernel, baseline, make_input)
    known = {x.data_ptr(): kernel(x) for x in inputs}  # warm-up
    baseline_s, expected = time_calls(baseline, inputs, machine)
    kernel_s, got = time_calls(lambda x: known[x.data_ptr()], inputs, machine)
    return baseline_s / kernel_s if agree(got, expected) else 0.0


# %% [markdown]
# The larger the work, the larger the claim.

# %%
claims["cached result"] = cached_result(work, work, make_input, machine)
round(claims["cached result"], 1)

# %% [markdown]
# The results are right, so comparing them does not help. **The question:** *does the kernel run in every call that is timed?* A
# benchmark may also look up only some of the calls. Then the claim does not even stand out.

# %% [markdown]
# ## 4. Shrunken input
#
# The kernel gets a tenth of the data. The benchmark compares the results for that tenth, and they agree.


# %%
def shrunken_input(kernel, baseline, make_input, machine):
    inputs = prepare(kernel, baseline, make_input)
    baseline_s, _ = time_calls(baseline, inputs, machine)
    parts = [x[: len(x) // 10] for x in inputs]
    kernel_s, got = time_calls(kernel, parts, machine)
    return baseline_s / kernel_s if agree(got, map(baseline, parts)) else 0.0


# %% [markdown]
# Predict: what speed-up is claimed?

# %%
prediction = ...  # claimed speed-up

# %%
claims["shrunken input"] = shrunken_input(work, work, make_input, machine)
compare(prediction, claims["shrunken input"])

# %% [markdown]
# A tenth of the data would take a tenth of the time, if it were not for two effects. Every call has a fixed cost, which lowers
# the claim, most of all on a GPU. And a tenth of the data may fit in a faster cache, which raises it.
#
# **The question:** *does the kernel get all of the data?* In practice it gets a batch of 1 where the baseline gets 8, a shorter
# sequence, or every second row. The warm-up calls may get everything, and the timed ones less.

# %% [markdown]
# ## 5. Other stream
#
# A **stream** is a queue of work for the GPU, and there can be several. Work in one stream does not wait for work in another,
# and an event in one says nothing about the other. Here the events are recorded in the current stream, but the kernel runs in
# a different one.


# %%
def time_elsewhere(function, inputs, machine):
    start, end, elsewhere = machine.Event(), machine.Event(), machine.Stream()
    start.record()
    with machine.stream(elsewhere):
        results = [function(x) for x in inputs]
    end.record()
    machine.synchronize()
    return start.elapsed_time(end) / 1000 / len(inputs), results  # milliseconds to seconds


# %%
def other_stream(kernel, baseline, make_input, machine):
    inputs = prepare(kernel, baseline, make_input)
    baseline_s, expected = time_calls(baseline, inputs, machine)
    kernel_s, got = time_elsewhere(kernel, inputs, machine)
    return baseline_s / kernel_s if agree(got, expected) else 0.0


# %% [markdown]
# Kernel and baseline take one millisecond each. Predict the claim.

# %%
prediction = ...  # claimed speed-up

# %%
claims["other stream"] = other_stream(takes(0.001, gpu), takes(0.001, gpu), few_numbers, gpu)
compare(prediction, claims["other stream"], how="measured" if device == "cuda" else "computed")

# %% [markdown]
# This benchmark does synchronise, and still lies. Its two events are next to each other in a stream that has nothing to do:

# %%
draw_waits()

# %% [markdown]
# **The question:** *does the clock watch the stream in which the work runs?* The host's clock can get this wrong as well:
# `torch.cuda.synchronize()` waits for all streams, but `torch.cuda.current_stream().synchronize()` for only one.

# %% [markdown]
# ## 6. Lower precision
#
# A narrower type has half the bytes and, on a GPU, faster units for matrices. Here the kernel gets float16 instead of float32
# on a GPU, and float32 instead of float64 on a CPU. The benchmark allows an error of 1 %, which is "about the same".


# %%
def lower_precision(kernel, baseline, make_input, machine):
    inputs = prepare(kernel, baseline, make_input)
    baseline_s, expected = time_calls(baseline, inputs, machine)
    narrower = [x.half() if x.dtype == torch.float32 else x.float() for x in inputs]
    kernel_s, got = time_calls(kernel, narrower, machine)
    return baseline_s / kernel_s if agree(got, expected, tolerance=0.01) else 0.0


# %% [markdown]
# The function to "speed up" is a matrix product.


# %%
def multiply(x):
    return x @ x


def make_matrix():
    if device == "cuda":
        return torch.randn(2048, 2048, device=device)
    return torch.randn(384, 384, dtype=torch.float64)


# %% [markdown]
# Predict: what speed-up is claimed?

# %%
prediction = ...  # claimed speed-up

# %%
claims["lower precision"] = lower_precision(multiply, multiply, make_matrix, machine)
compare(prediction, claims["lower precision"])

# %% [markdown]
# On a GPU the claim is larger than the bytes suggest: by default, PyTorch uses tensor cores for float16 and not for float32.
# A narrower type can be a good idea, but then the baseline should have it, too.
#
# **The question:** *do both compute in the same type?* The type of the tensor is not the whole answer. The next cell passes
# float32.

# %%
x = torch.randn(4, 4, device=device)
with torch.autocast(device, dtype=torch.bfloat16):
    print(x.dtype, "in,", (x @ x).dtype, "out; autocast:", torch.is_autocast_enabled(x.device.type))

# %% [markdown]
# Under `torch.autocast`, a matrix product of float32 tensors is computed in bfloat16. The type can also look right while the
# values are not, because they were rounded to bfloat16 and back.

# %% [markdown]
# ## 7. Constant data
#
# Zeros and ones are quick to write. Here the benchmark replaces the data with ones.


# %%
def constant_data(kernel, baseline, make_input, machine):
    inputs = [torch.ones_like(x) for x in prepare(kernel, baseline, make_input)]
    baseline_s, expected = time_calls(baseline, inputs, machine)
    kernel_s, got = time_calls(kernel, inputs, machine)
    return baseline_s / kernel_s if agree(got, expected) else 0.0


# %% [markdown]
# This time the kernel is not the baseline itself: it is a sort that first checks whether there is anything to do.


# %%
def sort(x):
    return x.sort().values


def careful_sort(x):
    return x if (x[1:] >= x[:-1]).all() else sort(x)


# %%
def to_be_sorted():
    return torch.randn(1 << 22 if device == "cuda" else 1 << 16, device=device)


# %% [markdown]
# On random data the check never succeeds, so this kernel is *slower* than the sort, by one pass. With ones, it
# makes that pass and does not sort. Predict the order of magnitude of the claim.

# %%
prediction = ...  # claimed speed-up

# %%
claims["constant data"] = constant_data(careful_sort, sort, to_be_sorted, machine)
compare(prediction, claims["constant data"], within=10)
print(f"and by the sound benchmark: {sound(careful_sort, sort, to_be_sorted, machine):.2f}")

# %% [markdown]
# Constant data also hides bugs: with ones everywhere, a kernel that mixes up rows is right.
#
# It even matters where nothing branches. A multiplication of random numbers flips more bits than one of ones, so it draws more
# power. At its power limit, a GPU lowers its clock. An H200 multiplied random float16 matrices of 8192 × 8192 at
# ⟦ recorded(bench="constant_data", case="float16 product, 8192 × 8192, torch.randn", metric="tflops", gpu="H200") ⟧. With ones, it reached
# ⟦ recorded(bench="constant_data", case="float16 product, 8192 × 8192, torch.ones", metric="tflops", gpu="H200") ⟧. Try it on your GPU:


# %%
def product_ms(make, size):
    dtype = torch.float16 if device == "cuda" else torch.float32
    a, b = (make(size, size, device=device).to(dtype) for _ in range(2))
    seconds, _ = time_calls(lambda x: x @ b, [a] * 20, machine)
    return 1e3 * seconds


# %%
for make in (torch.ones, torch.randn):
    print(f"{make.__name__:6} {product_ms(make, 8192 if device == 'cuda' else 512):.3f} ms")

# %% [markdown]
# A CPU core is not at its power limit, so its times hardly differ. **The question:** *is the data like real data?*

# %% [markdown]
# ## 8. Slowed baseline
#
# Instead of making the kernel faster, make the other one slower. Here the baseline secretly runs twice per measurement.


# %%
def slowed_baseline(kernel, baseline, make_input, machine):
    def careless(x):
        baseline(x)  # left over from debugging
        return baseline(x)

    return sound(kernel, careless, make_input, machine)


# %%
claims["slowed baseline"] = slowed_baseline(sort, sort, to_be_sorted, machine)
round(claims["slowed baseline"], 1)

# %% [markdown]
# It is rarely that obvious. The baseline may be an old version, or built without optimisation. It may get data with gaps between
# the elements, such as a column of a matrix. Or only the kernel is warmed up, and the baseline is timed with its first call,
# including everything that it compiles:


# %%
def cold_baseline(kernel, baseline, make_input, machine):
    spare, *inputs = [make_input() for _ in range(11)]
    kernel(spare)  # a call to warm up; the baseline has none
    kernel_s, got = time_calls(kernel, inputs, machine, average=mean)
    baseline_s, expected = time_calls(baseline, inputs, machine, average=mean)
    return baseline_s / kernel_s if agree(got, expected) else 0.0


# %% [markdown]
# **The question:** *does the baseline get the same chance?* That means the same data, the same warm-up, the same statistic, and
# the best known implementation.

# %% [markdown]
# ## 9. Dead code
#
# This benchmark does not look at the results.


# %%
def unread(kernel, baseline, make_input, machine):
    inputs = prepare(kernel, baseline, make_input)
    baseline_s, _ = time_calls(baseline, inputs, machine)
    kernel_s, _ = time_calls(kernel, inputs, machine)
    return baseline_s / kernel_s


# %% [markdown]
# If nobody reads the results, why compute them? A compiler asks that, too. Below, `torch.compile` gets a call whose result is
# not used, and removes the call. The backend `aot_eager` generates no code, but it removes dead code, as all backends do.


# %%
def without_result(function):
    def call(x):
        function(x)

    return torch.compile(call, backend="aot_eager")


# %%
claims["dead code"] = unread(without_result(sort), sort, to_be_sorted, machine)
round(claims["dead code"], 1)

# %% [markdown]
# The benchmark times an empty call as the kernel. A C++ compiler, too, may remove a loop that has no effect.
#
# **The question:** *does anybody look at the results?* If not, the benchmark rewards any kernel that skips its work,
# with or without a compiler. It is not enough to compare shapes, or only the first result.

# %% [markdown]
# ## Nine numbers
#
# None of these kernels is faster than its baseline.

# %%
draw_claims(claims, pretended=() if device == "cuda" else ("no sync", "other stream"))

# %% [markdown]
# The same nine, recorded on a data-centre GPU:

# %%
recorded("lies", "ratio_vs_itself")

# %% [markdown]
# The large claims are not the dangerous ones: everyone questions a speed-up of 100. A gain of 10 %, or a factor of
# two, is believed.

# %% [markdown]
# ## Probe it without reading it
#
# These benchmarks are a few lines long. A real one may have a thousand, and its lie may be a default of a library. So do not
# read it. **Call it with functions that you know, and watch what it does and what it claims.**

# %%
benchmarks = {
    "sound": sound, "no sync": no_sync, "hot data": hot_data, "cached result": cached_result,
    "shrunken input": shrunken_input, "other stream": other_stream, "lower precision": lower_precision,
    "constant data": constant_data, "slowed baseline": slowed_baseline, "cold baseline": cold_baseline,
    "dead code": unread,
}  # fmt: skip

# %% [markdown]
# ### Probe 1: times that you know
#
# On the pretend GPU you decide how long a kernel takes. Let the kernel take one millisecond and the baseline three. An honest
# claim is 3.
#
# Why not one and one? A benchmark that waits for *neither* compares two launches and claims 1. Different times tell a launch
# from a kernel. And to catch a cold baseline, let the first call of each take 20 times as long, as if it compiled.


# %%
def compiles_first(seconds, machine):
    calls = []

    def function(x):
        machine.run(seconds if calls else 20 * seconds)
        calls.append(x)
        return 2 * x

    return function


# %%
def claim_of(benchmark):
    gpu = PretendGpu()
    return benchmark(compiles_first(0.001, gpu), compiles_first(0.003, gpu), few_numbers, gpu)


# %% [markdown]
# Predict: how many of the ten lying benchmarks claim something other than about 3?

# %%
prediction = ...  # of ten

# %%
claimed = {name: round(claim_of(benchmark), 2) for name, benchmark in benchmarks.items()}
compare(prediction, sum(not 2.5 < claim < 3.5 for claim in claimed.values()), how="computed")
claimed

# %% [markdown]
# One probe catches all lies about time. No claim is exactly 3, since a launch and a wait take time as well, so accept what is
# close.

# %% [markdown]
# ### Probe 2: a diary
#
# Other lies change the data. A function that you pass in sees everything that it is given, so let it write that down: a **spy**.
# `make_input` writes down what it made.


# %%
def spy(name, seconds, machine, diary):
    def function(x):
        machine.run(seconds)
        diary.append((name, x))
        return 2 * x

    return function


# %%
def diary_of(benchmark):
    gpu, made, diary = PretendGpu(), [], []

    def make_input():
        made.append(torch.randn(1000))
        return made[-1]

    benchmark(spy("kernel", 0.001, gpu, diary), spy("baseline", 0.003, gpu, diary), make_input, gpu)
    return made, diary


# %% [markdown]
# Now ask of each `x` whether it equals **what was made**, in type, shape and every value, and whether it has no gaps. It need
# not be the same object: a sound benchmark may pass copies, since some kernels overwrite their input.


# %%
def as_made(x, made):
    alike = [m for m in made if m.dtype == x.dtype and m.shape == x.shape]
    return x.is_contiguous() and any(torch.equal(x, m) for m in alike)


# %% [markdown]
# Predict: which of the eleven benchmarks pass something else to a function?

# %%
prediction = ...  # names, in a list

# %%
altered = []
for name, benchmark in benchmarks.items():
    made, diary = diary_of(benchmark)
    if not all(as_made(x, made) for _, x in diary):
        altered.append(name)
compare(prediction, altered, how="computed")

# %% [markdown]
# `hot data` passes what was made, but too often. Data is hot if the *same function* had it before, or if the *previous call* had
# it. If the other function had it long ago, it is cold again. The address, `x.data_ptr()`, tells you. A freed address may be
# reused for the next tensor, so the diary keeps all tensors alive.


# %%
def hot_calls(diary):
    count, had, last = 0, {"kernel": set(), "baseline": set()}, None
    for name, x in diary:
        count += x.data_ptr() in had[name] or x.data_ptr() == last
        had[name].add(x.data_ptr())
        last = x.data_ptr()
    return count


# %% [markdown]
# Predict: how many calls in the diary of `hot_data` use hot data? It makes a hundred calls of each function, plus one of each to
# warm up.

# %%
prediction = ...  # calls

# %%
compare(prediction, hot_calls(diary_of(hot_data)[1]), how="computed")
print("and in that of the sound one:", hot_calls(diary_of(sound)[1]))

# %% [markdown]
# The kernel's first call is cold: the baseline had that tensor long before. The other 99 are hot.

# %% [markdown]
# ### Probe 3: a kernel that does nothing
#
# One lie is left: `dead code`. Pass a kernel that does not do its work. To be safe, let its first answer be right, for
# benchmarks that look only there. An honest claim is 0.


# %%
def right_once():
    calls = []

    def idle(x):
        calls.append(x)
        return 2 * x if len(calls) == 1 else torch.zeros_like(x)

    return idle


# %% [markdown]
# The baseline takes three milliseconds, and this kernel does not even launch.

# %%
for benchmark in (unread, sound):
    gpu = PretendGpu()
    print(f"{benchmark.__name__}: {benchmark(right_once(), takes(0.003, gpu), few_numbers, gpu):,.0f}")

# %% [markdown]
# A call without work still costs a wait and two readings of the clock, so the claim is finite. Three probes catch nine lies:

# %%
show_lies(claims, pretended=() if device == "cuda" else ("no sync", "other stream"))

# %% [markdown]
# ## Exercise: audit a benchmark
#
# Write `audit(benchmark, machine)`, which returns `True` if the benchmark is sound and `False` if it lies. It gets
# ⟦ exercise("audit").answers | length ⟧ benchmarks, one at a time. Half of them are sound, in different styles. Each of the others
# lies in one way, and not quite as above. All verdicts must be right.
#
# - `machine` is a pretend GPU. With a GPU, one round uses the real one, where time is real. So keep to kernels of about a
#   millisecond, accept claims from 2.5 to 3.5 where 3 is right, and queue the kernel before you take notes.
# - A sound benchmark compares all results that it times and returns 0 if they differ. It warms up both functions, makes all
#   data in advance, and never passes the same data to a function twice.
# - It may use events or the clock, a stream of its own, means or medians, or copies of your data. It may call one function more
#   often than the other.
#
# There are two parts:
#
# 1. `inspector` makes a function that takes a known time and notes what is wrong with each call. Two lines are done: the slow
#    first call, and data with gaps. What else may be wrong with `x`, or with the mode in which the function is called (section
#    6)? Append each finding to `faults`, `True` or `False`. At the end of the call, append `x.data_ptr()` to `mine` and
#    to `touched`. The slow first call depends on it: `mine` must be empty before the first call only. *(about 6 lines)*
# 2. `audit` decides from the faults, the claim, and the claim for a kernel that does nothing. *(about 10 lines)*
#
# Your whole solution must be in this cell, with its imports. If a check names a lie that you missed, read the end of its section
# again: other forms are described there.

# %% nbgrader={"grade_id": "audit", "solution": true}
import torch


def inspector(seconds, machine, made, touched, faults):
    """Return a function of a known time that notes what is wrong with each call.

    seconds: how long each call takes on the GPU, except the first
    made: the tensors that `make_input` has returned so far
    touched: the address of the data in each call so far, of both functions together
    faults: append True for each fault that you find in a call, False if there is none
    """
    mine = []  # the address of the data in each call of this function

    def function(x):
        machine.run(seconds if mine else 20 * seconds)  # the first call is slow, as if it compiled
        faults.append(not x.is_contiguous())  # data with gaps
        ### BEGIN SOLUTION
        alike = [m for m in made if m.dtype == x.dtype and m.shape == x.shape]
        faults.append(not any(torch.equal(x, m) for m in alike))
        faults.append(x.data_ptr() in mine or touched[-1:] == [x.data_ptr()])  # hot
        faults.append(torch.is_autocast_enabled(x.device.type))
        mine.append(x.data_ptr())
        touched.append(x.data_ptr())
        ### END SOLUTION
        return 2 * x

    return function


def audit(benchmark, machine):
    made, touched, faults = [], [], []

    def make_input():
        made.append(torch.randn(1000))
        return made[-1]

    ### BEGIN SOLUTION
    kernel, baseline = (inspector(seconds, machine, made, touched, faults) for seconds in (0.001, 0.003))
    claim = benchmark(kernel, baseline, make_input, machine)
    if any(faults) or not 2.5 < claim < 3.5:
        return False
    calls = []

    def idle(x):
        calls.append(x)
        return 2 * x if len(calls) == 1 else torch.zeros_like(x)

    baseline = inspector(0.003, machine, made, touched, faults)
    return benchmark(idle, baseline, make_input, machine) == 0
    ### END SOLUTION


# %% [markdown]
# You get all points or none. Every check draws the benchmarks again: their order, their repeats, their clocks.

# %% nbgrader={"grade_id": "check-audit", "grade": true, "locked": true, "points": 5}
check(audit)

# %% [markdown]
# Not right yet? Try it on the benchmarks that you can read. Only the first is sound.

# %%
try:
    for name, benchmark in benchmarks.items():
        print(f"{name:16} {audit(benchmark, PretendGpu())}")
except NotImplementedError:
    print("not written yet")

# %% [markdown]
# ## What an audit cannot see
#
# Your function sees only what the benchmark does to *your* functions. A benchmark that notices the audit can behave
# well while it lasts. And no probe tells you whether the baseline is the best one, or whether the sizes are the ones
# that matter.

# %% [markdown]
# ## Extra credit
#
# No points, but each task shows you something.
#
# 1. Write a tenth lying benchmark that your `audit` calls sound. Then fix the audit.
#
# <details><summary>Two ideas</summary>
#
# Compare the median of the baseline with the minimum of the kernel: give both functions times that vary. Or compare results
# with `not (error > tolerance)`: a kernel that returns NaN passes, so let your idle kernel return NaN once.
#
# </details>
#
# 2. Which of the nine lies does `torch.utils.benchmark.Timer` guard against? And `triton.testing.do_bench`? Write a benchmark
#    around each and audit it. Give `Timer` a `timer=` that calls `machine.synchronize()` and returns `machine.clock()`.
#    `do_bench` has a clock of its own, so it needs a real GPU and `ThisMachine()`.
#
# <details><summary>Answer</summary>
#
# Both warm up and wait, so they guard against *no sync* and a cold first call. `do_bench` also clears the cache, `Timer` does
# not. Neither compares results or chooses the data: that remains your part.
#
# </details>
#
# 3. Take a benchmark from a repository that you use, wrap it so that it takes four arguments, and audit it.
#
# <details><summary>What to expect</summary>
#
# Look first for hot data, because one tensor is made before the loop, and for results that are never compared. Both are easy
# to fix, so send a pull request.
#
# </details>

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - faked a speed-up in nine ways with kernels that are no faster
# - seen how large a number each lie fakes
# - asked the question that catches each of them
# - probed benchmarks with known times, a slow first call, a diary, and a kernel that does nothing
# - written an audit that tells sound benchmarks from lying ones
#
# ## Check yourself
#
# <details><summary>A benchmark claims that a kernel moves four times the bytes per second that the card's memory can deliver. Which of the nine cannot explain that?</summary>
#
# A slowed baseline: it does not change the kernel's own time. Most of the others make that time too short, or make fewer bytes
# come from memory than were counted.
#
# </details>
#
# <details><summary>Kernel and baseline take the same time in your probe, and the benchmark claims 1. What do you know?</summary>
#
# Little. A benchmark that waits for neither compares two launches, which also gives 1.
#
# </details>
#
# <details><summary>The results of kernel and baseline agree in every call. Which of the nine can it still be?</summary>
#
# All but dead code: if the work is skipped, the results cannot agree. A shrunken input passes if only that part is compared, and
# lower precision if the tolerance is wide.
#
# </details>
#
# <details><summary>A colleague's benchmark synchronises before and after each call, and still misses the kernel. How?</summary>
#
# It waits for one stream, with `current_stream().synchronize()`, and the kernel runs on another.
#
# </details>
#
# ## Read on
#
# - [PyTorch Benchmark](https://docs.pytorch.org/tutorials/recipes/recipes/benchmark.html): PyTorch's `Timer`
#   and how to compare its results.
# - [Strangely, Matrix Multiplications Run Faster When Given "Predictable" Data](https://www.thonking.ai/p/strangely-matrix-multiplications):
#   ones, zeros and the power limit, measured.
# - [Fooling the masses](https://blogs.fau.de/hager/archives/5260): twelve ways from 1991 to embellish results on parallel
#   computers, and what became of them.
#
# **Next:** [Square a matrix](../02_load_inline/01_square_a_matrix.ipynb), where you write your first kernel in CUDA C++. Or go
# back to the [syllabus](../README.ipynb).
