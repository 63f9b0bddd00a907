# %% [markdown]
# # Climb with Numba
#
# **You will** write the Lomb–Scargle power as a GPU kernel in Python and improve it in five steps. Before each step
# you predict what it gains. After the step you find out why it gained as much as it did, or nothing.
#
# **You will learn**
#
# - to write a kernel with a grid-stride loop in Numba, and to launch it
# - what a call costs before its kernel runs, and how to pay that cost only once
# - how a single float64 literal slows down a float32 kernel
# - what fast math replaces, and what it costs in accuracy
# - to read a kernel's registers and instructions, without a GPU
#
# **You need** about 110 minutes, [Find a period](01_find_a_period.ipynb), and threads and blocks as
# [Square a matrix](../02_load_inline/01_square_a_matrix.ipynb) explains them. With an NVIDIA GPU you also measure speed.
# Without one, `check` runs your kernels in a simulator, and reads what the compiler makes of them: that shows whether
# a step has been taken, but not what it gains.

# %%
from grader import benchmark, check, continue_from, device
from grader.explore import (
    compare, compiled_ladder, draw_loops, ladder_loop, load_light_curve, published_ladder, recorded,
)

device

# %%
import numpy as np

# %% [markdown]
# ## A ladder with rungs
#
# In 2021 the authors of cuSignal, a library that is now part of CuPy, taught GPU programming with a ladder: one kernel,
# improved step by step. Each step is a *rung*. These are their times on a V100, as they published them. The last
# columns show what this course's rungs take today, on another GPU and with fewer samples.

# %%
published_ladder("Numba")

# %% [markdown]
# Two things should surprise you. The first two rungs take equally long: what is the cache for? And fast math gains next
# to nothing. You will find out why, and that only the first is still true.
#
# The rungs are cumulative: each one starts from the code of the rung before. You do not have to type that code again.
# `continue_from` in an exercise's cell replaces the cell with your last rung, under the new name. Then you write only
# the lines that matter.

# %% [markdown]
# ## Give each thread a frequency
#
# You know the sums from the last notebook. Let $c_j = \cos w t_j$ and $s_j = \sin w t_j$ for a frequency $w$ and the
# samples $(t_j, y_j)$. The sums are:
#
# $$ X_c = \sum y_j c_j,\quad X_s = \sum y_j s_j,\quad C = \sum c_j^2,\quad S = \sum s_j^2,\quad D = \sum c_j s_j $$
#
# Then $\tau = \text{atan2}(2D,\; C - S)\,/\,(2w)$. Let $c = \cos w\tau$ and $s = \sin w\tau$. The power is:
#
# $$ P = \frac12\left(\frac{(c X_c + s X_s)^2}{c^2 C + 2cs D + s^2 S}
# + \frac{(c X_s - s X_c)^2}{c^2 S - 2cs D + s^2 C}\right) $$
#
# No frequency needs the result of another one. So each thread takes one frequency and loops over all samples. A million
# frequencies would need a million threads. The ladder starts fewer: 20 blocks of 128 threads per multiprocessor (SM),
# the part of a GPU that runs blocks.
# When a thread has finished a frequency, it skips ahead by the size of the grid. This is a **grid-stride loop**. With
# it, any launch is correct, whatever the number of frequencies.

# %% [markdown]
# Here is such a loop for a simpler task. In Numba, a kernel is a Python function with the decorator `@cuda.jit`. In it,
# `cuda.grid(1)` is the thread's index in the grid, and `cuda.gridsize(1)` is the number of threads in the grid.

# %%
from numba import cuda


@cuda.jit
def double_kernel(x, out):
    for index in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        out[index] = 2 * x[index]

# %% [markdown]
# `double_kernel[blocks, threads](x, out)` launches it. Numba has compiled nothing yet: it compiles at the first call,
# for the argument types of that call. This is called **lazy** compilation.
#
# The arrays must be in GPU memory. `cuda.to_device` copies a NumPy array there, and `copy_to_host` copies a result
# back. A kernel also takes CuPy arrays and torch tensors as they are. The times in this chapter leave out the copies to
# the GPU and back. Over PCIe they can take longer than a kernel, so keep data on the GPU for as long as you need it.
#
# Numba warns if a launch has fewer than 128 blocks, because some multiprocessors of a large GPU would then be idle.
# So launch that many, although this star has few measurements: the threads that are left over skip the loop.

# %%
if device == "cuda":
    x = cuda.to_device(load_light_curve().y)  # to the GPU
    out = cuda.device_array_like(x)
    double_kernel[128, 128](x, out)
    print(out.copy_to_host()[:3])  # waits for the kernel, then copies
else:
    print("There is no GPU here. The same lines ran in a simulator in Find a period.")

# %% [markdown]
# ## Exercise: the baseline
#
# Write the power at each of `freqs` into `out`. All four arguments are contiguous device arrays of the same type,
# float32 or float64. Frequencies are angular. The power is not normalised.
#
# 1. The kernel: a grid-stride loop over the frequencies, and in it a loop over the samples. *(about 17 lines)*
# 2. The launch: 128 threads per block, 20 blocks per multiprocessor. *(about 2 lines)*
#
# `cuda.get_current_device().MULTIPROCESSOR_COUNT` is the number of multiprocessors. Use `math.cos`, `math.sin` and
# `math.atan2`.

# %% nbgrader={"grade_id": "ls_numba_baseline", "solution": true}
import math

from numba import cuda


@cuda.jit
def power_kernel(t, y, freqs, out):
    ### BEGIN SOLUTION
    for i in range(cuda.grid(1), freqs.size, cuda.gridsize(1)):
        w = freqs[i]
        xc = xs = cc = ss = cs = 0.0
        for j in range(t.size):
            c, s = math.cos(w * t[j]), math.sin(w * t[j])
            xc += y[j] * c
            xs += y[j] * s
            cc += c * c
            ss += s * s
            cs += c * s
        tau = math.atan2(2.0 * cs, cc - ss) / (2.0 * w)
        c, s = math.cos(w * tau), math.sin(w * tau)
        along = (c * xc + s * xs) ** 2 / (c * c * cc + 2.0 * c * s * cs + s * s * ss)
        across = (c * xs - s * xc) ** 2 / (c * c * ss - 2.0 * c * s * cs + s * s * cc)
        out[i] = 0.5 * (along + across)
    ### END SOLUTION


def ls_numba_baseline(t, y, freqs, out):
    ### BEGIN SOLUTION
    blocks = 20 * cuda.get_current_device().MULTIPROCESSOR_COUNT
    power_kernel[blocks, 128](t, y, freqs, out)
    ### END SOLUTION


# %% [markdown]
# Correct first, then fast. `check` runs the cell above in its own process, on samples that you have not seen. If you get
# a `NameError`, run the exercise's cell first.

# %% nbgrader={"grade_id": "check-ls_numba_baseline", "grade": true, "locked": true, "points": 4}
check(ls_numba_baseline)

# %% [markdown]
# When `check` passes and you have a GPU, launch your kernel yourself, on the star of the last notebook. Copy the data to
# the GPU, launch, copy the powers back, and find the highest one.

# %%
curve = load_light_curve()
cycles = np.linspace(0.5, 1.5, 10_000)  # per day

# %%
if device == "cuda":
    t, y, freqs = map(cuda.to_device, (curve.t, curve.y, 2 * np.pi * cycles))
    out = cuda.device_array_like(freqs)
    try:
        ls_numba_baseline(t, y, freqs, out)
        print(f"found: {1 / cycles[out.copy_to_host().argmax()]:.4f} days, published: {curve.published_days:.4f}")
    except NotImplementedError as stub:
        print(stub)
else:
    print("There is no GPU here, so only `check` runs your kernel, in a simulator.")

# %% [markdown]
# ### How fast is the baseline?
#
# It is compared with the same arithmetic in torch, operation by operation. Each torch operation writes a sine or a
# product per pair of sample and frequency to memory, and the next one reads it back. Your kernel keeps them in registers,
# a thread's fastest memory.
#
# You get ⟦ gate("ls_numba_baseline", "eager").points ⟧ of ⟦ exercise("ls_numba_baseline").max_points ⟧ points for
# ⟦ gate("ls_numba_baseline", "eager").at_least ⟧ times torch's speed, at
# ⟦ gate("ls_numba_baseline", "eager").cases | join(", ") ⟧. Predict: how many times as fast was the course's baseline,
# on an H200?

# %%
prediction = ...  # times as fast as the eager sequence

# %%
LARGE = "1,024 samples × 1,048,576 frequencies"
found = recorded("ls_numba_baseline", "ratio_vs_eager").value("ratio_vs_eager", LARGE)
compare(prediction, found, "times as fast", how="recorded")

# %%
benchmark(ls_numba_baseline)

# %% [markdown]
# Both compute the same sines. Torch is slower because it moves each of them, and each product, through memory.

# %% [markdown]
# ## Look at the types
#
# Your arrays are float32. Is the arithmetic? The next cell compiles a baseline like yours for an H100 or H200, with
# float32 arrays. It needs no GPU: Numba writes PTX, an assembly language for all NVIDIA GPUs, and an assembler turns it
# into the machine code of one of them (**SASS**).
#
# How many instructions of the kernel compute in float64, or convert to it or from it? Predict the order of magnitude:
# none, 10 or 100?

# %%
prediction = ...  # float64 instructions

# %%
code = compiled_ladder("baseline", "typed")
compare(prediction, code.codes[0].float64, "float64 instructions", how="computed", within=10)
code

# %% [markdown]
# Look at the registers and at the float64 instructions. The other columns matter later. The last column has no
# fixed number for a kernel with accurate sines, because they branch to a slow path for large phases.
#
# The second row is the third rung, for comparison. Where do the float64 instructions of the first row come from? In
# Python, and so in Numba, the literal `0.0` is float64. A sum that starts as float64 stays float64. So the product of
# two float32 values is converted before it is added, in every pass of the inner loop.
#
# `2.0 * D` is float64, too. So is `2 * D`: a Python integer is an int64 in Numba, and int64 times float32 is float64.
#
# The 8 instructions left in the second row belong to the slow path of the accurate sine and cosine. It handles phases
# above 105,615 with integer arithmetic, and converts the result in float64. No phase here is that large, so they are
# compiled but never executed.

# %% [markdown]
# A float64 value takes two registers. The cost of float64 arithmetic depends on the GPU. V100, A100 and H100 execute it
# at half the float32 rate. A T4 and a GeForce RTX 20 execute it at 1/32, an L4, an A10 and GeForce RTX 30 to 50 at 1/64.

# %% [markdown]
# ## Exercise: keep what was compiled
#
# An early version of the published baseline called `cuda.jit(signature)(function)` in the function that users call. So
# every call compiled the kernel, which takes a few tenths of a second: the column *JIT* of the published table. This
# rung makes users pay for that once.
#
# Numba already keeps your lazily compiled kernel. But on each call, Numba looks at the type of each argument to
# choose a compiled version. You can declare the types instead, in a **signature**:
#
# - `float32[::1]` is a contiguous vector of float32.
# - `void(float32[::1], float32[::1])` is a kernel with two such arguments, which returns nothing.
# - `from_dtype(out.dtype)` is Numba's type for the elements of `out`.
#
# All these names come from `numba`. If you continue from your last cell, add the imports that you need.
#
# Write `ls_numba_cached`. Take the decorator off your kernel and call it `power`: `cuda.jit(signature)(power)` compiles
# it. Do that on the first call for each type, and keep the result in a dictionary. *(about 5 lines)*

# %% nbgrader={"grade_id": "ls_numba_cached", "solution": true}
# continue_from(ls_numba_baseline, "ls_numba_cached")  # uncomment and run
import math

from numba import cuda, from_dtype, void

kernels = {}


def power(t, y, freqs, out):
    ### BEGIN SOLUTION
    for i in range(cuda.grid(1), freqs.size, cuda.gridsize(1)):
        w = freqs[i]
        xc = xs = cc = ss = cs = 0.0
        for j in range(t.size):
            c, s = math.cos(w * t[j]), math.sin(w * t[j])
            xc += y[j] * c
            xs += y[j] * s
            cc += c * c
            ss += s * s
            cs += c * s
        tau = math.atan2(2.0 * cs, cc - ss) / (2.0 * w)
        c, s = math.cos(w * tau), math.sin(w * tau)
        along = (c * xc + s * xs) ** 2 / (c * c * cc + 2.0 * c * s * cs + s * s * ss)
        across = (c * xs - s * xc) ** 2 / (c * c * ss - 2.0 * c * s * cs + s * s * cc)
        out[i] = 0.5 * (along + across)
    ### END SOLUTION


def ls_numba_cached(t, y, freqs, out):
    ### BEGIN SOLUTION
    if out.dtype not in kernels:
        vector = from_dtype(out.dtype)[::1]
        kernels[out.dtype] = cuda.jit(void(vector, vector, vector, vector))(power)
    blocks = 20 * cuda.get_current_device().MULTIPROCESSOR_COUNT
    kernels[out.dtype][blocks, 128](t, y, freqs, out)
    ### END SOLUTION


# %% [markdown]
# The cases come in both types. A kernel that was compiled for a signature does not check its arguments. If the key of
# your dictionary leaves out the type, a float64 array is read as if it were float32.

# %% nbgrader={"grade_id": "check-ls_numba_cached", "grade": true, "locked": true, "points": 3}
check(ls_numba_cached)

# %% [markdown]
# ### How fast is it with a cache?
#
# The kernel is unchanged, so it takes the same time: this rung changes what a *call* costs. You get the point for speed
# for ⟦ gate("ls_numba_cached", "baseline").at_least ⟧ of the baseline's speed. If you recompile on every call, you reach
# only a small fraction of it.

# %%
benchmark(ls_numba_cached)

# %% [markdown]
# Expect the two curves to coincide, even at the smallest size. There the recorded kernel took
# ⟦ recorded(bench="ls_numba_cached", case="1,024 samples × 16,384 frequencies", metric="median_us", gpu="H200") ⟧ on an
# H200. In that time the CPU (the *host*) has prepared the next call, so the GPU never waits.
#
# A cache pays off when the kernel is shorter than the host's preparation. It did in the first version by cuSignal's
# authors, shown at GTC China 2020: in CuPy, their cache raised the lead over SciPy from 2,573 to 4,172 times.
#
# A dictionary keeps kernels only while the process lives. `@cuda.jit(cache=True)` also writes them to disk, in
# `__pycache__`, so that the next process need not compile. It suits kernels in a module. In a notebook each session
# has its own files, and the compiled code is rarely found again.

# %% [markdown]
# ## Exercise: declare each type
#
# Now write one kernel per type. A function `build(real)` defines a kernel, compiles it, and returns it; `real` is
# Numba's `float32` or `float64`.
#
# - In the kernel, `real(0.0)` is a zero of that type. Start every sum with it, and never multiply by a bare `2.0` or
#   `2`.
# - An index or a bound has 64 bits and takes two registers. `int32(t.size)` takes one. The same goes for
#   `cuda.grid(1)`, `freqs.size` and `cuda.gridsize(1)`.
#
# Continue from your last rung. Move the kernel into `build`, with the signature as its decorator, and change its types.
# *(about 8 lines)*

# %% nbgrader={"grade_id": "ls_numba_typed", "solution": true}
# continue_from(ls_numba_cached, "ls_numba_typed")  # uncomment and run
import math

from numba import cuda, from_dtype, int32, void

kernels = {}


def build(real):
    ### BEGIN SOLUTION
    @cuda.jit(void(real[::1], real[::1], real[::1], real[::1]))
    def power(t, y, freqs, out):
        two = real(2.0)
        for i in range(int32(cuda.grid(1)), int32(freqs.size), int32(cuda.gridsize(1))):
            w = freqs[i]
            xc = xs = cc = ss = cs = real(0.0)
            for j in range(int32(t.size)):
                c, s = math.cos(w * t[j]), math.sin(w * t[j])
                xc += y[j] * c
                xs += y[j] * s
                cc += c * c
                ss += s * s
                cs += c * s
            tau = math.atan2(two * cs, cc - ss) / (two * w)
            c, s = math.cos(w * tau), math.sin(w * tau)
            along = (c * xc + s * xs) ** 2 / (c * c * cc + two * c * s * cs + s * s * ss)
            across = (c * xs - s * xc) ** 2 / (c * c * ss - two * c * s * cs + s * s * cc)
            out[i] = real(0.5) * (along + across)

    return power
    ### END SOLUTION


def ls_numba_typed(t, y, freqs, out):
    ### BEGIN SOLUTION
    if out.dtype not in kernels:
        kernels[out.dtype] = build(from_dtype(out.dtype))
    blocks = 20 * cuda.get_current_device().MULTIPROCESSOR_COUNT
    kernels[out.dtype][blocks, 128](t, y, freqs, out)
    ### END SOLUTION


# %% [markdown]
# The tolerances in float64 are more than 100,000 times tighter than in float32, so a sum that you left in float32 fails
# there.

# %% nbgrader={"grade_id": "check-ls_numba_typed", "grade": true, "locked": true, "points": 4}
check(ls_numba_typed)

# %% [markdown]
# Is any float64 left? The results do not tell, but the machine code does. Here is what your `build` makes for float32,
# below the course's kernel.

# %%
compiled_ladder("typed", yours=build)

# %% [markdown]
# ### How fast is it with types?
#
# You get ⟦ gate("ls_numba_typed", "baseline").points ⟧ points for ⟦ gate("ls_numba_typed", "baseline").at_least ⟧ times the
# speed of the baseline. Look at both rows in *Look at the types* again. Predict: how many times as fast was the course's
# typed kernel, on an H200?

# %%
prediction = ...  # times as fast as the baseline

# %%
found = recorded("ls_numba_typed", "ratio_vs_baseline").value("ratio_vs_baseline", LARGE)
compare(prediction, found, "times as fast", how="recorded")

# %%
benchmark(ls_numba_typed)

# %% [markdown]
# Far fewer float64 instructions, and only a little faster: an H200 has a fast float64 unit, and most of the time goes
# into the sines, which were float32 all along. On a GPU with a slow float64 unit, expect this rung to gain far more.

# %% [markdown]
# ## Look at the sines
#
# What is left is sines and cosines. An accurate `sin` executes some twenty instructions: it reduces the phase to a
# quarter turn, then evaluates a polynomial. It *compiles* to many more, most of them for the slow path. A GPU also
# has **special function units** (SFU), which compute a sine in a single instruction, `MUFU.SIN`. It is less accurate.
#
# `fastmath=True` allows it, along with approximate division and reordered sums. Numba 0.53, which cuSignal's authors
# used, did not map `sin` to it, not even with fast math. That is why the published rung gained next to nothing.
#
# Predict: how many `MUFU.SIN` does the fast-math kernel contain today? The compiler **unrolls** the loop over the samples
# four times: it writes out four passes, one after the other.

# %%
prediction = ...  # MUFU.SIN in the whole kernel

# %%
code = compiled_ladder("typed", "fastmath")
compare(prediction, code.codes[1].count("MUFU.SIN"), "fast sines", how="computed")
code

# %% [markdown]
# The compiler has changed, and today the rung works. The unrolled loop has four of these sines. Three more are for the
# samples left over after the last four. The other four compute $\tau$, because the compiler wrote several copies of the
# loop over the frequencies.
#
# What does it cost? In float32, a phase of 200 is known to about one part in ten million, so the phase itself has an
# error of about 0.00001. The accurate sine has that error, too. The fast sine first multiplies by $1/2\pi$ in float32,
# which adds about as much again. So here the error doubles or triples, and stays small. At a phase of a million, only
# one digit of the sine would be left.

# %% [markdown]
# ## Exercise: use fast sines
#
# Continue from your typed kernel, and compile it with `fastmath=True`. *(1 line)*

# %% nbgrader={"grade_id": "ls_numba_fastmath", "solution": true}
# continue_from(ls_numba_typed, "ls_numba_fastmath")  # uncomment and run
import math

from numba import cuda, from_dtype, int32, void

kernels = {}


def build(real):
    ### BEGIN SOLUTION
    @cuda.jit(void(real[::1], real[::1], real[::1], real[::1]), fastmath=True)
    def power(t, y, freqs, out):
        two = real(2.0)
        for i in range(int32(cuda.grid(1)), int32(freqs.size), int32(cuda.gridsize(1))):
            w = freqs[i]
            xc = xs = cc = ss = cs = real(0.0)
            for j in range(int32(t.size)):
                c, s = math.cos(w * t[j]), math.sin(w * t[j])
                xc += y[j] * c
                xs += y[j] * s
                cc += c * c
                ss += s * s
                cs += c * s
            tau = math.atan2(two * cs, cc - ss) / (two * w)
            c, s = math.cos(w * tau), math.sin(w * tau)
            along = (c * xc + s * xs) ** 2 / (c * c * cc + two * c * s * cs + s * s * ss)
            across = (c * xs - s * xc) ** 2 / (c * c * ss - two * c * s * cs + s * s * cc)
            out[i] = real(0.5) * (along + across)

    return power
    ### END SOLUTION


def ls_numba_fastmath(t, y, freqs, out):
    ### BEGIN SOLUTION
    if out.dtype not in kernels:
        kernels[out.dtype] = build(from_dtype(out.dtype))
    blocks = 20 * cuda.get_current_device().MULTIPROCESSOR_COUNT
    kernels[out.dtype][blocks, 128](t, y, freqs, out)
    ### END SOLUTION


# %% [markdown]
# The simulator computes sines as Python does, so it cannot show how accurate fast sines are. A GPU can.

# %% nbgrader={"grade_id": "check-ls_numba_fastmath", "grade": true, "locked": true, "points": 4}
check(ls_numba_fastmath)

# %% [markdown]
# ### How fast is it with fast sines?
#
# You get ⟦ gate("ls_numba_fastmath", "typed").points ⟧ points for ⟦ gate("ls_numba_fastmath", "typed").at_least ⟧ times the
# speed of the typed kernel. Predict: how many times as fast was the course's kernel, on an H200?

# %%
prediction = ...  # times as fast as the typed kernel

# %%
found = recorded("ls_numba_fastmath", "ratio_vs_typed").value("ratio_vs_typed", LARGE)
compare(prediction, found, "times as fast", how="recorded")

# %%
benchmark(ls_numba_fastmath)

# %% [markdown]
# ## Cap the registers
#
# The last published rung is a cap. A multiprocessor of an H100 or H200 has 65,536 registers, and holds at most 2,048
# threads. With 32 registers per thread, all 2,048 fit. With more registers, fewer threads fit, and the **occupancy**
# drops: the share of those 2,048 that are resident. While some threads wait, others can run. The more threads are
# resident, the better they hide **latency**: the time from a request to its result.
#
# `max_registers=32` makes the compiler use at most 32. Values that do not fit are **spilled** to memory. The next cell
# compiles the fast-math kernel, which needs 32 registers, with a cap of 16. A register has 4 bytes. Predict: how many
# bytes does each thread spill?

# %%
prediction = ...  # bytes spilled

# %%
code = compiled_ladder("fastmath", max_registers=16)
compare(prediction, code.codes[0].spilled_bytes, "bytes", how="computed")
code

# %% [markdown]
# The compiler kept 24, because the rules for calls between functions need that many, and it spilled some values more
# than once. Here are a cap of 32, and no cap.

# %%
compiled_ladder("fastmath", max_registers=32)

# %%
compiled_ladder("fastmath")

# %% [markdown]
# Both rows are the same: today's compiler needs 32 registers anyway, so there is nothing to gain. The rung was for the
# compilers of its day: in the published table, the cap saved three registers. You will need it again in the next section.
#
# A cap is a limit, not a request to use fewer. In float64 the next exercise caps at 64. The kernel needs fewer, and with
# the cap the compiler takes *more* than without. You will see that in the table at the end.

# %% [markdown]
# ## Exercise: cap the registers
#
# Continue from your fast-math kernel, and cap it at 32 registers for float32 and at 64 for float64. *(2 lines)*

# %% nbgrader={"grade_id": "ls_numba_registers", "solution": true}
# continue_from(ls_numba_fastmath, "ls_numba_registers")  # uncomment and run
import math

from numba import cuda, float32, from_dtype, int32, void

kernels = {}


def build(real):
    ### BEGIN SOLUTION
    cap = 32 if real is float32 else 64

    @cuda.jit(void(real[::1], real[::1], real[::1], real[::1]), fastmath=True, max_registers=cap)
    def power(t, y, freqs, out):
        two = real(2.0)
        for i in range(int32(cuda.grid(1)), int32(freqs.size), int32(cuda.gridsize(1))):
            w = freqs[i]
            xc = xs = cc = ss = cs = real(0.0)
            for j in range(int32(t.size)):
                c, s = math.cos(w * t[j]), math.sin(w * t[j])
                xc += y[j] * c
                xs += y[j] * s
                cc += c * c
                ss += s * s
                cs += c * s
            tau = math.atan2(two * cs, cc - ss) / (two * w)
            c, s = math.cos(w * tau), math.sin(w * tau)
            along = (c * xc + s * xs) ** 2 / (c * c * cc + two * c * s * cs + s * s * ss)
            across = (c * xs - s * xc) ** 2 / (c * c * ss - two * c * s * cs + s * s * cc)
            out[i] = real(0.5) * (along + across)

    return power
    ### END SOLUTION


def ls_numba_registers(t, y, freqs, out):
    ### BEGIN SOLUTION
    if out.dtype not in kernels:
        kernels[out.dtype] = build(from_dtype(out.dtype))
    blocks = 20 * cuda.get_current_device().MULTIPROCESSOR_COUNT
    kernels[out.dtype][blocks, 128](t, y, freqs, out)
    ### END SOLUTION


# %% [markdown]
# Check that it is still correct.

# %% nbgrader={"grade_id": "check-ls_numba_registers", "grade": true, "locked": true, "points": 3}
check(ls_numba_registers)

# %% [markdown]
# ### How fast is it with a cap?
#
# You get the point for speed for ⟦ gate("ls_numba_registers", "fastmath").at_least ⟧ of the speed of the fast-math kernel.
# With a cap that is too low, you miss it.

# %%
benchmark(ls_numba_registers)

# %% [markdown]
# ## Compare with CUDA C++
#
# How good is that? Compare with the same kernel in CUDA C++, with the same fast math. Count the instructions that the
# inner loop executes per sample. It needs at least one product for the phase, another product and two special functions
# for sine and cosine, two loads, and five multiply-adds: 11.
#
# The table in *Look at the sines* has Numba's count. Predict: how many instructions per sample does the CUDA C++ loop
# take?

# %%
prediction = ...  # instructions per sample, in CUDA C++

# %%
code = compiled_ladder("fastmath", "cuda fast")
compare(prediction, code.codes[1].per_sample, "instructions per sample", how="computed")
code

# %% [markdown]
# Numba's loop is much longer, and slower: on an H200 this kernel took
# ⟦ recorded(bench="ladder/numba", case="fastmath, float32", metric="median_ms", gpu="H200") ⟧, the CUDA C++ one
# ⟦ recorded(bench="ladder/cupy", case="fastmath, float32", metric="median_ms", gpu="H200") ⟧.
#
# What is it doing? Read it. Names that start with F are float32 arithmetic, LDG are loads. Look at what is between them:
# `ISETP`, `SEL`, `IADD3`, `LEA`.

# %%
ladder_loop("fastmath")

# %% [markdown]
# It is index arithmetic. Python allows negative indices: `t[-1]` is the last element. So before each load, Numba tests
# whether the index is negative (`ISETP.GE`), and if so adds the length (`SEL`, `IADD3`). `range` also keeps a counter of
# remaining passes next to the index. And an address has 64 bits: each addition takes two instructions.
#
# An index that *cannot* be negative needs none of this. Here is the same kernel with an unsigned 32-bit index, and with
# a `while` loop instead of `range`.

# %%
draw_loops("fastmath", "unsigned", "cuda fast")

# %% [markdown]
# ## Exercise: count with an unsigned index
#
# With an unsigned index, Numba's loop is about as short as that of CUDA C++. This rung is not on the published ladder.
# Continue from your last kernel, and change only the loop over the samples:
#
# - `uint32` comes from `numba`. Make both the index and its bound `uint32`. If you compare an unsigned index with a
#   signed bound, both are converted to a wider type.
# - Write the loop with `while`. `range` keeps its own counter, even if its argument is unsigned.
# - Increment the index by `uint32(1)`, and convert the sum to `uint32` again: in Numba, a sum of two uint32 has 64
#   bits. *(4 lines)*

# %% nbgrader={"grade_id": "ls_numba_unsigned", "solution": true}
# continue_from(ls_numba_registers, "ls_numba_unsigned")  # uncomment and run
import math

from numba import cuda, float32, from_dtype, int32, uint32, void

kernels = {}


def build(real):
    ### BEGIN SOLUTION
    cap = 32 if real is float32 else 64

    @cuda.jit(void(real[::1], real[::1], real[::1], real[::1]), fastmath=True, max_registers=cap)
    def power(t, y, freqs, out):
        two = real(2.0)
        for i in range(int32(cuda.grid(1)), int32(freqs.size), int32(cuda.gridsize(1))):
            w = freqs[i]
            xc = xs = cc = ss = cs = real(0.0)
            j, samples = uint32(0), uint32(t.size)
            while j < samples:
                c, s = math.cos(w * t[j]), math.sin(w * t[j])
                xc += y[j] * c
                xs += y[j] * s
                cc += c * c
                ss += s * s
                cs += c * s
                j = uint32(j + uint32(1))
            tau = math.atan2(two * cs, cc - ss) / (two * w)
            c, s = math.cos(w * tau), math.sin(w * tau)
            along = (c * xc + s * xs) ** 2 / (c * c * cc + two * c * s * cs + s * s * ss)
            across = (c * xs - s * xc) ** 2 / (c * c * ss - two * c * s * cs + s * s * cc)
            out[i] = real(0.5) * (along + across)

    return power
    ### END SOLUTION


def ls_numba_unsigned(t, y, freqs, out):
    ### BEGIN SOLUTION
    if out.dtype not in kernels:
        kernels[out.dtype] = build(from_dtype(out.dtype))
    blocks = 20 * cuda.get_current_device().MULTIPROCESSOR_COUNT
    kernels[out.dtype][blocks, 128](t, y, freqs, out)
    ### END SOLUTION


# %% [markdown]
# The results stay the same. Only the machine code shows whether the index arithmetic is gone, so `check` counts the
# instructions of the loop, which needs no GPU.

# %% nbgrader={"grade_id": "check-ls_numba_unsigned", "grade": true, "locked": true, "points": 4}
check(ls_numba_unsigned)

# %%
compiled_ladder("fastmath", "unsigned", yours=build)

# %% [markdown]
# Without a cap, this kernel takes 34 registers. They are handed out in units of 8 per thread, so 34 count as 40, and at
# most 1,536 threads are resident. Your cap of 32 makes room for all 2,048, and nothing is spilled.

# %% [markdown]
# ### How fast is it with an unsigned index?
#
# You get ⟦ gate("ls_numba_unsigned", "fastmath").points ⟧ points for ⟦ gate("ls_numba_unsigned", "fastmath").at_least ⟧
# times the speed of the fast-math kernel. Compare the instructions per sample in the table above. Note that the two
# special functions take as long as before. Per clock cycle, an SM starts 16 of them, but up to 128 simple instructions
# such as a multiply-add, counted per thread. Predict: how many times as fast as the fast-math kernel was the authors'
# kernel at 1,048,576 frequencies, on an H200?

# %%
prediction = ...  # times as fast

# %%
found = recorded("ls_numba_unsigned", "ratio_vs_fastmath")
largest = found.value("ratio_vs_fastmath", "1,024 samples × 1,048,576 frequencies")
compare(prediction, largest, "times as fast", how="recorded")
found

# %% [markdown]
# In the fast-math kernel about 32 instructions per sample take 32/128 of a cycle. The two special functions take 2/16,
# half as long. Now 13 instructions take only 13/128, so the special functions are the limit.

# %%
benchmark(ls_numba_unsigned)

# %% [markdown]
# ## The whole ladder
#
# The course's authors recorded the published rungs in one run. *Digits* are those that agree with a float64 result,
# relative to the highest peak: 6 means an error of a millionth of the peak. The ratio compares with SciPy's direct sums
# on the same machine's CPU. SciPy was given 4,096 of the frequencies, and its time was scaled up.
#
# Registers may differ by a few from those above, because the compiler was another version.

# %%
recorded("ladder/numba", "first_call_ms", "median_ms", "registers", "ratio_vs_scipy", "correct_digits")

# %% [markdown]
# Rung by rung, first in float32:
#
# - **Baseline.** It has the longest first call, which also loads the compiler.
# - **Cached.** The same kernel, and the same time.
# - **Typed.** Faster, with fewer digits. The phase is float32 in both, but the baseline adds in float64.
# - **Fast math.** The largest step. It loses a few tenths of a digit.
# - **Registers.** No gain: the kernel needed no more than 32 registers.
#
# In float64 the rungs are alike: no literal was too wide, and there is no unit for float64 sines.

# %% [markdown]
# ### Why 20 blocks per multiprocessor?
#
# The number is cuSignal's. An SM holds at most 2,048 threads, which are 16 blocks of 128. So 20 blocks per SM do not
# run at once: at most 16 are resident in the first **wave**, and the others start as soon as one of these ends. The
# extra blocks even out small differences between SMs.
#
# Look at the plots of the fast-math kernels again. On the recorded H200, their curves dip at 524,288 frequencies. Its grid
# has 20 × 132 × 128 threads, since it has 132 SMs. Predict: what share of them take two frequencies at that size?

# %%
prediction = ...  # share of the threads, such as 0.1

# %%
threads = 20 * 132 * 128
compare(prediction, (2**19 - threads) / threads, how="computed")

# %% [markdown]
# About half of the threads work twice as long as the others. While they finish, there is less and less for an SM to
# switch to: this is called the **tail**. At 1,048,576 each thread takes three or four, and the difference is smaller
# compared with the whole. With a GPU you can test whether this explains the dip: see the extra credit.

# %% [markdown]
# ## Extra credit
#
# No points, but each of these shows something. Change an exercise's cell, run it, and `check` or `benchmark` it again.
#
# 1. Use the unsigned index without fast math. Does it gain as much? Why not?
#
# <details><summary>Answer</summary>
#
# Compare the instructions per sample first. The accurate sine and cosine take most of them, so expect a smaller gain in
# proportion.
#
# </details>
#
# 2. Write `y_dot = cuda.device_array(1, …)`, and multiply by `2 / y_dot[0]` unless it is 0, as the published kernel
#    does. Nothing was ever written to it. What does the report say?
#
# <details><summary>Answer</summary>
#
# Every power may be NaN or arbitrary. The report names memory that is read before it is written.
#
# </details>
#
# 3. Use `range(uint32(t.size))` instead of the `while` loop. What does `compiled_ladder("unsigned", yours=build)` show?
#
# <details><summary>Answer</summary>
#
# The loop has about 28 instructions per sample: the test for negative indices is gone, but `range` still keeps
# its counter.
#
# </details>
#
# 4. With a GPU: launch 16 blocks per multiprocessor, then one thread per frequency. Does the dip at 524,288 move?
#
# <details><summary>Answer</summary>
#
# If the dip is a tail, it moves with the number of threads in the grid: on an H200, 16 × 132 × 128 = 270,336.
#
# </details>
#
# 5. `cuda.jit` also takes `launch_bounds=(128, 16)`: at most 128 threads per block, and at least 16 blocks per SM. How
#    many registers does that leave per thread?
#
# <details><summary>Answer</summary>
#
# 65,536 registers for 16 × 128 threads make 32 each: the same as the cap.
#
# </details>

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - written a kernel in Python with a grid-stride loop, and checked it in both types
# - kept compiled kernels by type, and separated the cost of a call from the cost of a kernel
# - found the float64 arithmetic in a float32 kernel, and removed it
# - let special function units compute sines, and estimated what that costs in accuracy
# - read machine code without a GPU, found out why Numba's loop was longer than that of CUDA C++, and fixed it
# - seen a rung that gains nothing today, and why
#
# ## Check yourself
#
# <details><summary>The sums of a float32 kernel start as <code>0.0</code>. What type are they in Numba, and what does that cost?</summary>
#
# They are float64, because the literal is. Each product is converted before it is added, and each sum takes two registers.
# Float64 arithmetic runs at half the rate of float32 on an H100, and at 1/64 on a recent GeForce.
#
# </details>
#
# <details><summary>A cache of kernels does not change a kernel's time. What is it for?</summary>
#
# `cuda.jit(signature)(function)` compiles each time it is called. That takes tenths of a second, where the kernel takes
# thousandths. Without the cache, every call would pay for it.
#
# </details>
#
# <details><summary>Why is the fast sine worse for large phases?</summary>
#
# It multiplies the phase by 1/2π in float32 and takes the fraction. The rounding error of that product grows with the
# phase, and so does the error of the sine.
#
# </details>
#
# <details><summary>Why does an unsigned index make Numba's loop shorter?</summary>
#
# A signed index may be negative, which in Python counts from the end. So Numba tests it before each access, and adds the
# length if necessary. An unsigned index needs no test.
#
# </details>
#
# ## Read on
#
# - [CUDA kernels in Numba](https://nvidia.github.io/numba-cuda/user/kernels.html): launching, indexing, grid-stride loops
# - [Write flexible kernels with grid-stride loops](https://developer.nvidia.com/blog/cuda-pro-tip-write-flexible-kernels-grid-stride-loops/):
#   the classic explanation
# - [The tutorial behind the ladder](https://github.com/awthomp/cusignal-icassp-tutorial): its authors' notebooks
#
# **Next:** [Climb with CuPy](03_climb_with_cupy.ipynb), where the kernel is written in CUDA C++. Or go back to the
# [syllabus](../README.ipynb).
