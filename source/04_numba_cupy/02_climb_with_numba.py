# %% [markdown]
# # Climb with Numba
#
# **You will** write the Lomb–Scargle power as a GPU kernel in Python, and change it four times. Each time you predict
# what the change gains, and find out why it does or does not.
#
# **You will learn**
#
# - to write a kernel with a grid-stride loop in Numba
# - what a call costs before the kernel runs, and how to pay it once
# - how one float64 literal turns a float32 kernel into a slow one
# - what fast math replaces, and what it costs in accuracy
# - to read registers and instructions of a kernel, without a GPU
#
# **You need** about 90 minutes, [Find a period](01_find_a_period.ipynb), and what
# [Square a matrix](../02_load_inline/01_square_a_matrix.ipynb) says of threads and blocks. With an NVIDIA GPU you
# measure speed as well. Without one your kernels run in Numba's simulator, slowly: `check` finds most errors there, and its
# report says what a simulator cannot see. You see in both cases what compilers make of your kernels.

# %%
from grader import benchmark, check, device
from grader.explore import compare, compiled_ladder, draw_loops, ladder_loop, published_ladder, recorded

device

# %% [markdown]
# ## A ladder with five rungs
#
# In 2021 the authors of cuSignal, a library that is part of CuPy today, taught with this ladder: one kernel, changed
# step by step. Each step is a *rung*. This is what they measured on a V100. Beside it, where there is a record, stands what
# the same rungs take today, on another GPU and with fewer samples.

# %%
published_ladder("Numba")

# %% [markdown]
# Two things on the V100 should make you stop. The first two rungs are equally fast: what is a cache good for? And
# fast math gains next to nothing. Both will be explained. One of them is no longer true.
#
# Their runs were also timed with the check of the results switched off. Here every answer is checked, while it is timed
# as well.

# %% [markdown]
# ## Give each thread a frequency
#
# From the last notebook you know the sums. For the frequency $w$ and the samples $(t_j, y_j)$, with
# $c_j = \cos w t_j$ and $s_j = \sin w t_j$:
#
# $$ X_c = \sum y_j c_j,\quad X_s = \sum y_j s_j,\quad C = \sum c_j^2,\quad S = \sum s_j^2,\quad D = \sum c_j s_j $$
#
# Then $\tau = \operatorname{atan2}(2D,\; C - S)\,/\,(2w)$. With $c = \cos w\tau$ and $s = \sin w\tau$ the power is
#
# $$ P = \frac12\left(\frac{(c X_c + s X_s)^2}{c^2 C + 2cs D + s^2 S}
# + \frac{(c X_s - s X_c)^2}{c^2 S - 2cs D + s^2 C}\right) $$
#
# No frequency needs another one's result. So each thread takes a frequency and loops over all samples. A million
# frequencies want a million threads. Instead, the ladder starts a fixed number, 128 threads × 20 blocks for each
# multiprocessor (SM). Each thread goes on to a frequency one grid further: a *grid-stride loop*. So the launch suits the
# GPU, whatever the number of frequencies.

# %% [markdown]
# Here is such a loop on a smaller task. In Numba a kernel is a Python function with `@cuda.jit`. Inside,
# `cuda.grid(1)` is the thread's number in the whole grid, and `cuda.gridsize(1)` the number of all threads.

# %%
from numba import cuda

@cuda.jit
def double_kernel(x, out):
    for index in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        out[index] = 2 * x[index]

# %% [markdown]
# `double_kernel[blocks, threads](x, out)` launches it. Nothing was compiled yet: Numba compiles at the first call, for
# the types that come. This is called *lazy*.

# %% [markdown]
# ## Exercise: the baseline
#
# Write the power of each of `freqs` into `out`. All four are contiguous vectors of the same type, float32 or float64,
# as Numba's device arrays. Frequencies are angular. The power is not normalised.
#
# 1. The kernel: a grid-stride loop over the frequencies, in it a loop over the samples. *(about 17 lines)*
# 2. The launch: 128 threads a block, 20 blocks for each multiprocessor. *(about 2 lines)*
#
# `cuda.get_current_device().MULTIPROCESSOR_COUNT` says how many multiprocessors there are. Use `math.cos`, `math.sin`
# and `math.atan2`.

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
# Correct before fast. `check` runs the cell above in a process of its own, on samples that nobody has seen. A
# `NameError`? Run the exercise's cell first.

# %% nbgrader={"grade_id": "check-ls_numba_baseline", "grade": true, "locked": true, "points": 4}
check(ls_numba_baseline)

# %% [markdown]
# ## How fast is the baseline?
#
# The peer is the same arithmetic in torch, operation by operation. Each of its operations writes a sine or a product for
# every pair of sample and frequency to memory, and reads it back. Your kernel keeps them in registers.
#
# ⟦ gate("ls_numba_baseline", "eager").points ⟧ of ⟦ exercise("ls_numba_baseline").max_points ⟧ points is for
# ⟦ gate("ls_numba_baseline", "eager").at_least ⟧ times its speed, at
# ⟦ gate("ls_numba_baseline", "eager").cases | join(", ") ⟧. Predict: how many times as fast is yours?

# %%
prediction = ...  # times as fast as the eager sequence

# %%
benchmark(ls_numba_baseline)

# %% [markdown]
# ## Look at the types
#
# Your arrays are float32. Is the arithmetic? The next cell compiles a baseline like yours for an H100 or H200, with
# float32 arrays. It needs no GPU: Numba writes PTX, which is NVIDIA's assembly language for all GPUs, and an assembler
# makes machine code of it for this one.
#
# Predict: how many of its instructions work in float64, or convert to it or from it?

# %%
prediction = ...  # float64 instructions

# %%
code = compiled_ladder("baseline", "typed")
compare(prediction, code.codes[0].float64, "float64 instructions", how="computed")
code

# %% [markdown]
# Look at the registers and at the float64 instructions: the other columns come later. (Where it says that a number is
# not fixed, the accurate sine takes a longer way for large phases.)
#
# The second row is the third rung, for comparison. Where do those of the first come from? In Python, and so in Numba,
# the literal `0.0` is float64. A sum that begins with a float64 stays one. The product of a float32 and a float32 is
# converted before it is added, in every pass of the inner loop.
#
# `2.0 * D` is float64, too. So is `2 * D`: an integer in Numba is an int64, and int64 times float32 is float64.
#
# (The 8 that are left in the second row belong to the accurate sine and cosine: phases above 105,615 are reduced in
# float64. Here no phase is that large.)

# %% [markdown]
# Values that are twice as wide need twice the registers, too. And a data-centre GPU does half as many float64 operations
# a second as float32 ones. A gaming GPU does a 32nd or a 64th of them.

# %% [markdown]
# ## Exercise: keep what was compiled
#
# First the compiler. An early version of the published baseline called `cuda.jit(signature)(function)` inside the
# function that users call. So each call compiled the kernel anew, which takes a few tenths of a second. The published
# table does not show it: it lists the time of the kernel alone.
#
# A lazy kernel is kept by Numba. But at each call Numba asks for the type of each argument, to choose among the
# kernels that it has. Say the types yourself, in a *signature*:
#
# - `float32[::1]` is a contiguous vector of float32.
# - `void(float32[::1], float32[::1])` are the arguments of a kernel that returns nothing.
# - `from_dtype(out.dtype)` is Numba's type for the elements of `out`.
#
# Write `ls_numba_cached`. Your kernel goes in as `power`, without the decorator: `cuda.jit(signature)(power)` compiles
# it. Do that at the first call for each type, and keep the result in a dictionary. *(about 5 lines)*

# %% nbgrader={"grade_id": "ls_numba_cached", "solution": true}
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
# The cases come in both types. A dictionary that forgets the type hands a float64 array to a float32 kernel: Numba
# does not ask again. A kernel that was compiled for one signature takes the bytes of whatever comes.

# %% nbgrader={"grade_id": "check-ls_numba_cached", "grade": true, "locked": true, "points": 3}
check(ls_numba_cached)

# %% [markdown]
# ### How fast is it with a cache?
#
# The kernel is the same, so its time is the same: this rung changes what a *call* costs, not what the kernel costs. The
# point for speed is for ⟦ gate("ls_numba_cached", "baseline").at_least ⟧ of the baseline's speed. Who compiles in
# every call gets a small fraction of it.
#
# Predict: at the smallest size of the plot, how many times as fast as the lazy kernel is yours?

# %%
prediction = ...  # times as fast as the baseline, few frequencies

# %%
benchmark(ls_numba_cached)

# %% [markdown]
# The curves lie on each other but for single points, at the smallest size as well. There the recorded kernel took
# ⟦ recorded(bench="ls_numba_cached", case="1,024 samples × 16,384 frequencies", metric="median_us", gpu="H200") ⟧ on an
# H200. That is longer than the host needs for the next call, so the GPU waits for neither way of calling. Against
# a lazy kernel, which Numba keeps, your dictionary saves a look at the types, and a long kernel hides that. Against a
# function that calls `cuda.jit(signature)` each time, it saves the compiler.

# %% [markdown]
# ## Exercise: say each type
#
# Now write a kernel for each type. A function `build(real)` defines one, compiles it, and returns it; `real` is Numba's
# `float32` or `float64`.
#
# - In the kernel, `real(0.0)` is a zero of that type. Sums begin so, and no bare number is a factor: neither `2.0` nor
#   `2`.
# - An index or a bound has 64 bits, and takes two registers. `int32(t.size)` takes one. The same goes for
#   `cuda.grid(1)`, `freqs.size` and `cuda.gridsize(1)`.
#
# Write `build`, and `ls_numba_typed` around it. *(about 24 lines)* Most of them you have.

# %% nbgrader={"grade_id": "ls_numba_typed", "solution": true}
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
# In float64 the error may be a billionth of what it may be in float32. A sum that is float32 in both kernels shows
# there.

# %% nbgrader={"grade_id": "check-ls_numba_typed", "grade": true, "locked": true, "points": 4}
check(ls_numba_typed)

# %% [markdown]
# Is a float64 left? The results do not show it, the machine code does. This is what your `build` makes for float32,
# below the authors'.

# %%
compiled_ladder("typed", yours=build)

# %% [markdown]
# ### How fast is it with types?
#
# ⟦ gate("ls_numba_typed", "baseline").points ⟧ points are for ⟦ gate("ls_numba_typed", "baseline").at_least ⟧ times the
# speed of the baseline. Look at both rows in *Look at the types* once more, and predict: how many times as fast is yours?

# %%
prediction = ...  # times as fast as the baseline

# %%
benchmark(ls_numba_typed)

# %% [markdown]
# The authors' typed kernel was
# ⟦ recorded(bench="ls_numba_typed", case="1,024 samples × 1,048,576 frequencies", metric="ratio_vs_baseline", gpu="H200").number ⟧
# times as fast as the baseline on an H200, at the largest size. There is a dent: at 131,072 frequencies the ratio was
# ⟦ recorded(bench="ls_numba_typed", case="1,024 samples × 131,072 frequencies", metric="ratio_vs_baseline", gpu="H200").number ⟧.
# It is not explained.

# %% [markdown]
# ## Look at the sines
#
# What is left are sines and cosines. An accurate `sin` takes some twenty instructions: it reduces the phase to a quarter
# turn, and evaluates a polynomial. A GPU also has a *special function unit*, with a sine in a single instruction,
# `MUFU.SIN`. It is less accurate.
#
# `fastmath=True` allows it, along with short divisions and freely ordered sums. The Numba of that day (0.53) did
# not map `sin` to it, not even with fast math. That is why the published rung gained next to nothing.
#
# Predict: how many `MUFU.SIN` are there in the fast-math kernel today? The compiler unrolls the loop over the samples
# four times.

# %%
prediction = ...  # MUFU.SIN in the whole kernel

# %%
code = compiled_ladder("typed", "fastmath")
compare(prediction, code.codes[1].count("MUFU.SIN"), "fast sines", how="computed")
code

# %% [markdown]
# So this rung works now: the compilers have changed since. (There are more than four: three for what
# is left over after the last four, one for $\tau$, and some in further copies of the loop.)

# %% [markdown]
# What does it cost? A phase of 200 is known in float32 to about one part in ten million. That is an error of some
# 0.00001 in the phase itself, which the accurate sine has, too. The fast sine multiplies by $1/2\pi$ first, in float32,
# and adds as much again. So here the error doubles or triples, and stays small. At a phase of a million, a single digit
# of the sine would be left.

# %% [markdown]
# ## Exercise: let sines be fast
#
# Copy your typed kernel into the cell below, and have it compiled with `fastmath=True`. *(about 24 lines)* One of them
# is new.

# %% nbgrader={"grade_id": "ls_numba_fastmath", "solution": true}
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
# The simulator computes sines as Python does, so it cannot show the accuracy of fast ones. A GPU can.

# %% nbgrader={"grade_id": "check-ls_numba_fastmath", "grade": true, "locked": true, "points": 4}
check(ls_numba_fastmath)

# %% [markdown]
# ### How fast is it with fast sines?
#
# ⟦ gate("ls_numba_fastmath", "typed").points ⟧ points are for ⟦ gate("ls_numba_fastmath", "typed").at_least ⟧ times the
# speed of the typed kernel. Predict: how many times as fast is yours?

# %%
prediction = ...  # times as fast as the typed kernel

# %%
benchmark(ls_numba_fastmath)

# %% [markdown]
# ## Compare with CUDA C++
#
# How good is this? The same kernel in CUDA C++, with the same fast math, is the measure. Count the instructions of the
# inner loop for each sample. At the least there are a product for the phase, another one and two special functions for
# sine and cosine, two loads, and five multiply-adds.
#
# The table in *Look at the sines* has Numba's count. Predict: how many instructions has the loop of CUDA C++ for each
# sample?

# %%
prediction = ...  # instructions a sample, in CUDA C++

# %%
code = compiled_ladder("fastmath", "cuda fast")
compare(prediction, code.codes[1].per_sample, "instructions a sample", how="computed")
code

# %% [markdown]
# Numba's loop is much longer, and it takes longer: on an H200 this kernel was recorded with
# ⟦ recorded(bench="ladder/numba", case="fastmath, float32", metric="median_ms", gpu="H200") ⟧, the one in CUDA C++ with
# ⟦ recorded(bench="ladder/cupy", case="fastmath, float32", metric="median_ms", gpu="H200") ⟧.
#
# What is it doing? Read it. Names that begin with F are float32 arithmetic, LDG are loads.
# Look at what stands between them: `ISETP`, `SEL`, `IADD3`, `LEA`.

# %%
ladder_loop("fastmath")

# %% [markdown]
# This is arithmetic on indices. Python allows negative ones: `t[-1]` is the last element. So before each load, Numba
# asks whether the index is negative (`ISETP.GE`), and adds the length if so (`SEL`, `IADD3`). `range` counts down the
# number of passes beside the index. And an address takes 64 bits: two instructions for each addition.
#
# An index that *cannot* be negative needs none of this. Here is the same kernel with an unsigned 32-bit index and a
# `while` loop in place of `range`.

# %%
draw_loops("fastmath", "unsigned", "cuda fast")

# %% [markdown]
# With that, Numba's loop is about as long as that of CUDA C++. This rung is not on the published ladder. It is yours to
# use: `uint32` comes from `numba`, and `j = uint32(j + uint32(1))` keeps the index unsigned.

# %% [markdown]
# ## Cap the registers
#
# The last rung is a cap. A multiprocessor of an H100 or H200 has 65,536 registers, for at most 2,048 threads. With 32
# registers a thread, all 2,048 fit. With more, fewer do. More threads hide more latency.
#
# `max_registers=32` forces the compiler to make do. What does not fit is *spilled* to memory. The next cell compiles
# the fast-math kernel, which takes 32, with a cap of 16. A register has 4 bytes. Predict: how many bytes does each
# thread spill?

# %%
prediction = ...  # bytes spilled

# %%
code = compiled_ladder("fastmath", max_registers=16)
compare(prediction, code.codes[0].spilled_bytes, "bytes", how="computed")
code

# %% [markdown]
# (The compiler has kept 24. It goes no lower: the rules for calls between functions need so many. And some registers
# are spilled more than once.) Now a cap of 32, and after it no cap at all.

# %%
compiled_ladder("fastmath", max_registers=32)

# %%
compiled_ladder("fastmath")

# %% [markdown]
# With and without it, the two rows are the same: without a cap, the kernel gets by with 32 already. So there is nothing to
# gain today. (The instructions come in another order. On an H200 the kernel with the cap took a little longer, by less than
# one per cent at the largest size. A report may say a few.) In the published table the cap saved three registers, and
# gained next to nothing, too.
#
# A cap is no order to save. In float64 the cap is 64, the kernel needs fewer, and with the cap the compiler takes *more*
# than without it. You will see it in the table at the end.

# %% [markdown]
# ## Exercise: cap the registers
#
# Write it all the same: your fast-math kernel, with a cap of 32 for float32 and of 64 for float64. *(about 24 lines)*
# Or leave `range` and signed indices behind, and see how far you get.

# %% nbgrader={"grade_id": "ls_numba_registers", "solution": true}
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
# Whatever you change, the answers must stay right.

# %% nbgrader={"grade_id": "check-ls_numba_registers", "grade": true, "locked": true, "points": 3}
check(ls_numba_registers)

# %% [markdown]
# What has your `build` made? Bytes that are spilled are a sign that the cap is too low.

# %%
compiled_ladder("fastmath", "unsigned", yours=build)

# %% [markdown]
# ### How fast is it with a cap?
#
# The point for speed is for ⟦ gate("ls_numba_registers", "fastmath").at_least ⟧ of the speed of the fast-math kernel: no
# gain is asked for, where none is to be had. A cap that is too low loses it.
#
# Predict: how many times as fast as the fast-math kernel is yours? If you have used an unsigned index, take the
# instructions a sample into account.

# %%
prediction = ...  # times as fast as the fast-math kernel

# %%
benchmark(ls_numba_registers)

# %% [markdown]
# ## The whole ladder
#
# This is what the authors of this course recorded, all rungs in one run. *Digits* are those that agree with a float64
# result, at the highest peak's scale: 6 means an error of a millionth of the peak. The ratio is against SciPy on the
# same machine's CPU. SciPy was given 4,096 of the frequencies, and its time multiplied.
#
# Registers may differ by a few from those above: another version of the compiler.

# %%
recorded("ladder/numba", "first_call_ms", "median_ms", "registers", "ratio_vs_scipy", "correct_digits")

# %% [markdown]
# Rung by rung, first in float32:
#
# - **Baseline.** Its first call is the longest: it also loads the compiler. In float64, where that was done, it is like the
#   others.
# - **Cached.** The same kernel, the same time.
# - **Typed.** Faster, and with fewer digits. The phase is float32 in both, but the baseline adds in float64.
# - **Fast math.** The largest step, and a few tenths of a digit lost.
# - **Registers.** No gain.
#
# In float64 there is little to see, since no literal was too wide and no unit has sines of doubles. The typed kernel is a
# little slower than the baseline. The last rung is a little faster than the one before, with more registers, not fewer.
# Neither is explained.

# %% [markdown]
# ## Extra credit
#
# No points, but each shows something. Change an exercise's cell, run it, and `check` it again, or `benchmark` it (with a
# GPU).
#
# 1. Use the unsigned index without fast math. Does it gain as much? Why not?
# 2. Write `y_dot = cuda.device_array(1, …)`, and multiply by `2 / y_dot[0]` unless it is 0, as the published kernel
#    does. Nobody has filled it. What does the report say?
# 3. Multiply the frequencies by 1,000 in a copy of your kernel, and compare the fast sine with the accurate one. From
#    which phase on does it matter?
# 4. Try `int32(j)` as an index in place of `j`, in your last kernel. What does `compiled_ladder("unsigned", yours=build)`
#    make of it?

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - written a kernel in Python, with a grid-stride loop, and had it checked in both types
# - kept compiled kernels by type, and told the cost of a call from the cost of a kernel
# - found the float64 arithmetic in a float32 kernel, and removed it
# - let the special function unit compute sines, and estimated what it costs in accuracy
# - read machine code without a GPU, and found out what Numba's loop does that CUDA C++'s does not
# - seen a rung that gains nothing today, and why
#
# ## Check yourself
#
# <details><summary>The sums of a float32 kernel begin as <code>0.0</code>. What type are they in Numba, and what does that cost?</summary>
#
# They are float64, since the literal is. Each product is converted before it is added, the sums take twice the registers,
# and float64 arithmetic is slower on every GPU.
#
# </details>
#
# <details><summary>A cache of kernels changes nothing about the kernel's time. Why have one?</summary>
#
# `cuda.jit(signature)(function)` compiles whenever it is called. That takes a few tenths of a second, and the kernel takes
# thousandths. Without the cache every call would pay for it.
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
# A signed index may be negative, which in Python counts from the end. So Numba asks before each access, and adds the
# length if need be. An unsigned one needs no question.
#
# </details>
#
# **Next:** [Climb with CuPy](03_climb_with_cupy.ipynb), where the kernel is written in CUDA C++. Or go back to the
# [syllabus](../README.ipynb). Both lie in the course's folder.
