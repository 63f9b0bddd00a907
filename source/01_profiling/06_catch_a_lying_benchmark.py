# %% [markdown]
# # Catch a lying benchmark
#
# **You will** fake a speed-up in nine ways, each with a kernel that is no faster at all. Then you write a function that
# tells sound benchmarks from lying ones without reading them.
#
# **You will learn**
#
# - the nine ways in which a speed-up is faked, most often by accident
# - how large a number each of them fakes on your machine
# - the question that catches each
# - to audit a benchmark by what it does: with kernels, baselines and data of your own choosing
#
# **You need** about 60 minutes, PyTorch, and the first notebook of this chapter. No CUDA. Seven of the nine lies run on
# any machine. Two need a GPU; without one they run on a *pretend GPU*, and say so.

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
# A benchmark here is a function of four arguments, and returns the speed-up that it claims:
#
# `benchmark(kernel, baseline, make_input, machine)`
#
# - `kernel` and `baseline` each take a tensor and return one. They are to compute the same.
# - `make_input()` makes a tensor of fresh data.
# - `machine` has the clock and what else `torch.cuda` offers: `machine.clock()` in seconds, `machine.synchronize()`,
#   `machine.Event()`, `machine.Stream()`, `machine.stream(s)`, `machine.current_stream()`.
#
# Whoever calls the benchmark decides what is timed, on which data, and by which clock. That makes an audit possible.

# %%
machine = ThisMachine()  # your GPU, or your CPU

# %% [markdown]
# The stopwatch is the sound one of the first notebook. It times each call, and keeps the results.


# %%
def time_calls(function, inputs, machine, average=median):
    seconds, results = [], []
    for x in inputs:
        machine.synchronize()  # nothing else is under way
        start = machine.clock()
        results.append(function(x))
        machine.synchronize()  # the result is there
        seconds.append(machine.clock() - start)
    return average(seconds), results


# %% [markdown]
# Two more helpers. `prepare` makes all data ahead, and warms both functions up on data that is not used again. `agree`
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
# And this is a sound benchmark. Where the results differ there is no speed-up to claim, so it returns 0.


# %%
def sound(kernel, baseline, make_input, machine):
    inputs = prepare(kernel, baseline, make_input)
    baseline_s, expected = time_calls(baseline, inputs, machine)
    kernel_s, got = time_calls(kernel, inputs, machine)
    return baseline_s / kernel_s if agree(got, expected) else 0.0


# %% [markdown]
# To see a lie plainly, we benchmark a function **against itself**. It cannot be faster than it is.


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
# About 1, with some noise: other programs run, the clock rate changes. (Far from 1? Your machine is busy. Run the cell
# again, and mistrust what follows by as much.) From here on, **any claim far from 1 is a lie**. We collect them.

# %%
claims = {}

# %% [markdown]
# ## 1. No sync
#
# The first notebook had this one: a launch returns at once. Whoever reads the clock then has timed the launch.


# %%
def no_sync(kernel, baseline, make_input, machine):
    inputs = prepare(kernel, baseline, make_input)
    baseline_s, expected = time_calls(baseline, inputs, machine)
    start = machine.clock()
    got = [kernel(x) for x in inputs]
    kernel_s = (machine.clock() - start) / len(inputs)  # the launches alone
    return baseline_s / kernel_s if agree(got, expected) else 0.0


# %% [markdown]
# A CPU has done its work when a call returns, so there is nothing to wait for. Without a GPU this lie runs on a
# **pretend GPU**. The one in the first notebook waited for real. The time of this one is just a number. It goes up when
# the host launches a kernel, by five microseconds, and when the host waits.

# %%
gpu = machine if device == "cuda" else PretendGpu()

# %% [markdown]
# Both kinds of machine have `run(seconds)`, which launches a kernel that takes so long. (With a GPU it keeps yours busy.)
# From it we make a function whose time we know.


# %%
def takes(seconds, machine):
    def function(x):
        machine.run(seconds)  # queued, and the call returns
        return 2 * x

    return function


def few_numbers():
    return torch.randn(1000)


# %% [markdown]
# Kernel and baseline both take a millisecond. Predict: which speed-up is claimed?

# %%
prediction = ...  # claimed speed-up

# %%
claims["no sync"] = no_sync(takes(0.001, gpu), takes(0.001, gpu), few_numbers, gpu)
compare(prediction, claims["no sync"], how="measured" if device == "cuda" else "computed")

# %% [markdown]
# The time of a kernel divided by that of its launch. The longer the kernel, the larger the "speed-up".
#
# **The question:** *has the GPU done its work when the clock is read?* Benchmarks that synchronise can fail it, too: they
# wait before the first reading of the clock and not before the second, or for the first of ten calls.

# %% [markdown]
# ## 2. Hot data
#
# A cache keeps what was touched last. A benchmark that calls the kernel on the same small tensor again and again times
# the cache. In real use the data often come from memory.


# %%
def hot_data(kernel, baseline, make_input, machine):
    inputs = prepare(kernel, baseline, make_input, calls=100)
    baseline_s, expected = time_calls(baseline, inputs, machine)  # each tensor once
    same = inputs[:1] * len(inputs)  # one tensor, again and again
    kernel_s, got = time_calls(kernel, same, machine)
    return baseline_s / kernel_s if agree(got[:1], expected[:1]) else 0.0


# %% [markdown]
# A sum reads each element once and computes next to nothing, so memory sets its pace. One tensor fits a cache (the L2 of
# a GPU, or of most CPU cores), and a hundred do not.


# %%
def cacheable():
    half_of_l2 = torch.cuda.get_device_properties(0).L2_cache_size // 2 if device == "cuda" else 1 << 19  # bytes
    return torch.randn(half_of_l2 // 4, device=device)


# %% [markdown]
# Predict, or guess: which speed-up is claimed?

# %%
prediction = ...  # claimed speed-up

# %%
claims["hot data"] = hot_data(torch.sum, torch.sum, cacheable, machine)
compare(prediction, claims["hot data"])

# %% [markdown]
# On a GPU the claim can be small: each call is timed with its launch and its wait, and no cache shortens these.
#
# **The question:** *has anybody touched the data just before?* Two tensors in turn are as hot as one. So is a tensor that
# the baseline has read a moment ago. A sound benchmark makes all data ahead, and hands each tensor to a
# function once.

# %% [markdown]
# ## 3. Cached result
#
# A function may remember what it has computed, say by the tensor's address. If the benchmark runs everything once "to
# warm up", there is nothing left to time but the look-up.


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
# The results are right, so comparing them does not help. **The question:** *does the kernel run in each call that is
# timed?* A benchmark may also look up just some of the calls. Then its claim is not even striking.

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
# Predict: which speed-up is claimed?

# %%
prediction = ...  # claimed speed-up

# %%
claims["shrunken input"] = shrunken_input(work, work, make_input, machine)
compare(prediction, claims["shrunken input"])

# %% [markdown]
# Ten times, or less or more: a call has a price of its own, however little it is given, and a tenth of the data may fit a
# faster cache.
#
# **The question:** *does the kernel get all of the data?* In the wild it is a batch of 1 against a batch of 8, a shorter
# sequence, or every second row. The first calls may get all, and the timed ones less.

# %% [markdown]
# ## 5. Other stream
#
# A *stream* is a queue of work for the GPU. There can be several. Work in one does not wait for work in another, and an
# event in one says nothing of the other. Here the events are recorded in the current stream, and the kernel runs
# elsewhere.


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
# Kernel and baseline take a millisecond each. Predict the claim.

# %%
prediction = ...  # claimed speed-up

# %%
claims["other stream"] = other_stream(takes(0.001, gpu), takes(0.001, gpu), few_numbers, gpu)
compare(prediction, claims["other stream"], how="measured" if device == "cuda" else "computed")

# %% [markdown]
# This benchmark does synchronise, and lies all the same. Its two events lie side by side in a stream that has nothing to
# do:

# %%
draw_waits()

# %% [markdown]
# **The question:** *does the clock watch the stream that the work is on?* The host's clock can fail it, too:
# `torch.cuda.synchronize()` waits for all streams, but `torch.cuda.current_stream().synchronize()` waits for one.

# %% [markdown]
# ## 6. Lower precision
#
# A narrower type has half the bytes, and on a GPU faster units for matrices. Here the kernel gets float16 for float32 on a
# GPU, and float32 for float64 on a CPU. The benchmark allows an error of 1 %, which is "about the same".


# %%
def lower_precision(kernel, baseline, make_input, machine):
    inputs = prepare(kernel, baseline, make_input)
    baseline_s, expected = time_calls(baseline, inputs, machine)
    narrower = [x.half() if x.dtype == torch.float32 else x.float() for x in inputs]
    kernel_s, got = time_calls(kernel, narrower, machine)
    return baseline_s / kernel_s if agree(got, expected, tolerance=0.01) else 0.0


# %% [markdown]
# The function to be "sped up" is a matrix product.


# %%
def multiply(x):
    return x @ x


def make_matrix():
    if device == "cuda":
        return torch.randn(2048, 2048, device=device)
    return torch.randn(384, 384, dtype=torch.float64)


# %% [markdown]
# Predict: which speed-up is claimed?

# %%
prediction = ...  # claimed speed-up

# %%
claims["lower precision"] = lower_precision(multiply, multiply, make_matrix, machine)
compare(prediction, claims["lower precision"])

# %% [markdown]
# A narrower type can be a fine idea. But the baseline can have it, too.
#
# **The question:** *do both compute in the same type?* The tensor's type is not all. The next cell hands over float32.

# %%
x = torch.randn(4, 4, device=device)
with torch.autocast(device, dtype=torch.bfloat16):
    print(x.dtype, "in,", (x @ x).dtype, "out; autocast:", torch.is_autocast_enabled(x.device.type))

# %% [markdown]
# Under `torch.autocast` a matrix product of float32 computes in bfloat16. The type can also look right while the values
# are not: they were rounded to bfloat16 and back.

# %% [markdown]
# ## 7. Constant data
#
# Zeros and ones are quick to write. Here the benchmark puts ones in place of the data.


# %%
def constant_data(kernel, baseline, make_input, machine):
    inputs = [torch.ones_like(x) for x in prepare(kernel, baseline, make_input)]
    baseline_s, expected = time_calls(baseline, inputs, machine)
    kernel_s, got = time_calls(kernel, inputs, machine)
    return baseline_s / kernel_s if agree(got, expected) else 0.0


# %% [markdown]
# This time the kernel is not the baseline itself: it is a sort that first looks whether there is anything to do.


# %%
def sort(x):
    return x.sort().values


def careful_sort(x):
    return x if (x[1:] >= x[:-1]).all() else sort(x)


# %%
def to_be_sorted():
    return torch.randn(1 << 22 if device == "cuda" else 1 << 16, device=device)


# %% [markdown]
# On random data the look is in vain, so this kernel is a little *slower* than the sort. Predict: what is claimed?

# %%
prediction = ...  # claimed speed-up

# %%
claims["constant data"] = constant_data(careful_sort, sort, to_be_sorted, machine)
compare(prediction, claims["constant data"])
print(f"and by the sound benchmark: {sound(careful_sort, sort, to_be_sorted, machine):.2f}")

# %% [markdown]
# Constant data also hide bugs: with ones everywhere, a kernel that mixes up rows is right. And they matter where nothing
# branches. A GPU at its power limit multiplies zeros faster than random numbers: fewer bits flip, and the clock rate stays
# higher.
#
# **The question:** *are the data like those in real use?*

# %% [markdown]
# ## 8. Slowed baseline
#
# Instead of making the kernel faster, make the other one slower. Here the baseline runs twice for each time that counts.


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
# Seldom is it that plain. The baseline is an old version, or built without optimisation. It gets data with gaps between the
# elements (a column of a matrix). Or only the kernel is warmed up, and the baseline's first call is timed along, with all
# that it compiles:


# %%
def cold_baseline(kernel, baseline, make_input, machine):
    spare, *inputs = [make_input() for _ in range(11)]
    kernel(spare)  # a call to warm up; the baseline has none
    kernel_s, got = time_calls(kernel, inputs, machine, average=mean)
    baseline_s, expected = time_calls(baseline, inputs, machine, average=mean)
    return baseline_s / kernel_s if agree(got, expected) else 0.0


# %% [markdown]
# **The question:** *does the baseline get the same chance?* The same data, the same warm-up, the same statistic, and the
# best known implementation.

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
# Nobody reads them, so why compute them? A compiler asks that, too. Below, `torch.compile` gets a call whose result nobody
# uses, and leaves the call out. (The backend `aot_eager` generates no code, but it removes what is dead, as all do.)


# %%
def without_result(function):
    def call(x):
        function(x)

    return torch.compile(call, backend="aot_eager")


# %%
claims["dead code"] = unread(without_result(sort), sort, to_be_sorted, machine)
round(claims["dead code"], 1)

# %% [markdown]
# What is timed as the kernel is a call into nothing. A C++ compiler, too, may remove a loop without effect.
#
# **The question:** *does anybody look at the results?* A benchmark that does not will praise any kernel that skips its
# work, with or without a compiler. Looking at the shapes is not enough, nor at the first result only.

# %% [markdown]
# ## Nine numbers
#
# None of these kernels is faster than its baseline.

# %%
draw_claims(claims, pretended=() if device == "cuda" else ("no sync", "other stream"))

# %% [markdown]
# The same nine, as recorded on a data-centre GPU:

# %%
recorded("lies", "ratio_vs_itself")

# %% [markdown]
# A large claim is not the dangerous one. Whoever reads of a hundred times the speed asks questions. A gain of a tenth, or
# a factor of two, is believed.

# %% [markdown]
# ## Probe it without reading it
#
# These benchmarks have few lines. A real one may have a thousand, and lie by a default in a library. So do not read it.
# **Call it with functions that you know, and see what it does and what it claims.**

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
# On the pretend GPU you say how long a kernel takes. Let the kernel take one millisecond and the baseline three. An honest
# claim is 3.
#
# Why not one and one? If a benchmark waits for *neither*, it compares two launches, and claims 1. Times that are far apart
# tell a launch from a kernel. And to catch a cold baseline, let the first call of each take 20 times as long, as if it
# compiled.


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
# Predict: how many of the ten liars claim something else than about 3?

# %%
prediction = ...  # of ten

# %%
claimed = {name: round(claim_of(benchmark), 2) for name, benchmark in benchmarks.items()}
compare(prediction, sum(not 2.5 < claim < 3.5 for claim in claimed.values()), how="computed")
claimed

# %% [markdown]
# One probe catches all that tamper with the time. No claim is exactly 3, since a launch and a wait take time, too. So
# accept what is near.

# %% [markdown]
# ### Probe 2: a diary
#
# Other lies tamper with the data. A function that you hand over sees all that it is given, so let it write that down: a
# *spy*. `make_input` writes down what it made.


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
# Now ask of each `x` whether it is **what was made**: type, shape and each value. (Not whether it is the same object: a
# sound benchmark may hand out copies, since some kernels overwrite their input.) And whether it lies without gaps.


# %%
def as_made(x, made):
    alike = [m for m in made if m.dtype == x.dtype and m.shape == x.shape]
    return x.is_contiguous() and any(torch.equal(x, m) for m in alike)


# %% [markdown]
# Predict: which of the eleven benchmarks hand something else to a function?

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
# `hot data` hands out what was made, but too often. Data is hot if the *same function* had it before, or if the
# *call just before* had it. (If the other function had it long ago, it is cold again.) The address tells: `x.data_ptr()`.
# (As long as the tensor is alive: the next one may get the place of one that is gone. The diary keeps them alive.)


# %%
def hot_calls(diary):
    count, had, last = 0, {"kernel": set(), "baseline": set()}, None
    for name, x in diary:
        count += x.data_ptr() in had[name] or x.data_ptr() == last
        had[name].add(x.data_ptr())
        last = x.data_ptr()
    return count


# %% [markdown]
# Predict: how many calls in the diary of `hot_data` are on hot data? It makes a hundred calls of each function, and a call
# of each to warm up.

# %%
prediction = ...  # calls

# %%
compare(prediction, hot_calls(diary_of(hot_data)[1]), how="computed")
print("and in that of the sound one:", hot_calls(diary_of(sound)[1]))

# %% [markdown]
# ### Probe 3: a kernel that does nothing
#
# One is left: `dead code`. Hand it a kernel that does not do its work. To be on the safe side let its first answer be
# right, for those that look only there. An honest claim is 0.


# %%
def right_once():
    calls = []

    def idle(x):
        calls.append(x)
        return 2 * x if len(calls) == 1 else torch.zeros_like(x)

    return idle


# %% [markdown]
# The baseline takes three milliseconds, and this kernel not even a launch.

# %%
for benchmark in (unread, sound):
    gpu = PretendGpu()
    print(f"{benchmark.__name__}: {benchmark(right_once(), takes(0.003, gpu), few_numbers, gpu):,.0f}")

# %% [markdown]
# A call without work still costs a wait and two readings of the clock: the claim is finite. Three probes, nine lies:

# %%
show_lies(claims, pretended=() if device == "cuda" else ("no sync", "other stream"))

# %% [markdown]
# ## Exercise: audit a benchmark
#
# Write `audit(benchmark, machine)`: `True` if the benchmark is sound, `False` if it lies. You are handed
# ⟦ exercise("audit").answers | length ⟧ benchmarks at a time, one after another. Half of them are sound, in different
# styles. The others lie, in one way each, and not quite as above. All must be judged right.
#
# - `machine` is a pretend GPU. On a machine with a GPU one round uses the real one. There time is real: stay with kernels
#   of about a millisecond, accept claims from 2.5 to 3.5 where 3 is right, and queue the kernel before you take notes.
# - A sound benchmark compares all results that it times, and returns 0 if they differ. It warms both functions up, makes
#   all data ahead, and never hands data to a function twice.
# - It may use events or the clock, its own stream, means or medians, copies of your data. It may call one function more
#   often than the other.
#
# 1. `inspector` makes a function of a known time, whose first call is slow. What may be wrong with the `x` that it is
#    handed, or with the mode that it is called in (section 6)? Add each finding to `faults`, True or False. *(about 7
#    lines)*
# 2. The verdict: from the faults, the claim, and what is claimed for a kernel that does nothing. *(about 10 lines)*
#
# The cell is a complete submission: it imports all it needs. If a check names a lie that you missed, read the end of its
# section again: it tells of other forms.

# %% nbgrader={"grade_id": "audit", "solution": true}
import torch


def inspector(seconds, machine, made, touched, faults):
    mine = []  # the address of the data of each call so far

    def function(x):
        ### BEGIN SOLUTION
        machine.run(seconds if mine else 20 * seconds)  # the first call is slow, as if it compiled
        alike = [m for m in made if m.dtype == x.dtype and m.shape == x.shape]
        faults.append(not x.is_contiguous() or not any(torch.equal(x, m) for m in alike))
        faults.append(x.data_ptr() in mine or touched[-1:] == [x.data_ptr()])  # hot
        faults.append(torch.is_autocast_enabled(x.device.type))
        mine.append(x.data_ptr())
        touched.append(x.data_ptr())
        ### END SOLUTION
        return 2 * x

    return function


def audit(benchmark, machine):
    made, touched, faults = [], [], []  # touched: like `mine`, of both functions together

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
# It is all or nothing. The benchmarks are drawn anew for every check: their order, their repeats, their clocks.

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
# Your function sees only what the benchmark does to *your* functions. A benchmark that knows when it is watched can behave.
# And no probe tells whether the baseline is the best that there is, or whether the sizes are those that matter.
#
# The judge of this course has the opposite worry: there the *kernel* may cheat. So its clock stands in another process, the
# data are drawn after the code is loaded, every result is compared, and the baseline runs where no submission can slow it.

# %% [markdown]
# ## Extra credit
#
# No points, but each shows something.
#
# 1. Write a tenth liar that your `audit` acquits. Then mend the audit. (Ideas: time the median of the baseline and the
#    minimum of the kernel. Compare with `not (error > tolerance)`, and let the kernel return NaN.)
# 2. Which of the nine does `torch.utils.benchmark.Timer` guard against? And `triton.testing.do_bench`? Write a benchmark
#    around each, and audit it.
# 3. Take a benchmark from a repository that you use, wrap it so that it takes four arguments, and audit it.

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - faked a speed-up in nine ways with kernels that are no faster
# - seen how large a number each lie fakes
# - asked of each the question that catches it
# - probed benchmarks with known times, a slow first call, a diary, and a kernel that does nothing
# - written an audit that acquits what is sound and catches what lies
#
# ## Check yourself
#
# <details><summary>A benchmark claims that a kernel moves four times the bytes a second that the card's memory can deliver. Which of the nine cannot explain that?</summary>
#
# A slowed baseline: it leaves the kernel's own time alone. Most of the others make that time too short, or have fewer bytes
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
# <details><summary>The results of kernel and baseline agree in each call. Which of the nine can it still be?</summary>
#
# All but dead code: where the work is left out, the results cannot agree. A shrunken input passes where only the part is
# compared, and lower precision where the tolerance is wide.
#
# </details>
#
# <details><summary>A colleague's benchmark synchronises before and after each call, and still misses the kernel. How?</summary>
#
# It waits for one stream, `current_stream().synchronize()`, and the kernel runs on another.
#
# </details>
#
# **Next:** [Square a matrix](../02_load_inline/01_square_a_matrix.ipynb), where you write your first kernel in CUDA C++. Or
# go back to the [syllabus](../README.ipynb). Both lie in the course's folder.
