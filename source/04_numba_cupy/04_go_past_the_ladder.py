# %% [markdown]
# # Go past the ladder
#
# **You will** find out what limits the last rung, get past that limit, and then replace the algorithm itself.
#
# **You will learn**
#
# - to count special functions and multiply-adds, and to compare a kernel with the limits that they set
# - to rotate an angle instead of calling sine and cosine, and what that costs in accuracy
# - to keep what all threads need in shared memory, and what one thread needs in registers
# - how a fast Fourier transform can handle uneven samples
# - what you would use in practice
#
# **You need** about 120 minutes, [Climb with CuPy](03_climb_with_cupy.ipynb), and shared memory and barriers as
# [Move bytes well](../02_load_inline/02_move_bytes_well.ipynb) explains them. With an NVIDIA GPU you also measure speed,
# which is 6 of the 10 points. Without one, every answer is checked, and you see what the compiler makes of your loop.

# %%
from grader import benchmark, check, device, standings
from grader.explore import (
    H200, compare, draw_drift, draw_ladder, drift, last_rung_view, load_cupy, nvrtc_view, recorded, search_star,
)

cp = load_cupy()
device

# %%
import numpy as np

# %% [markdown]
# ## The whole ladder
#
# Here are the recorded rungs on one page. The scale is logarithmic: each major mark is ten times the one before. The
# two lines are limits of the GPU named in the legend. You will compute both for an H200. SciPy's time is extrapolated
# from its time for 4,096 of the frequencies.

# %%
draw_ladder()

# %% [markdown]
# ## Which limit is it?
#
# The last rung needs a sine and a cosine per sample and frequency. With fast math each is one instruction, `MUFU`, which
# the special function units execute. An SM of an H200 has 16 of them, so it starts 16 such instructions per clock cycle.
# In the same time it executes 128 multiply-adds, eight times as many.
#
# Look at the kernel. The compiler unrolled its loop, so there are several of each.

# %%
last_rung_view()

# %% [markdown]
# Take 2^10 samples, 2^20 frequencies, and an H200: 132 SMs at no more than 1.98 GHz. Predict: how many milliseconds do
# the special functions take, at least?

# %%
prediction = ...  # ms, two special functions per sample and frequency

# %%
compare(prediction, 2 * 2**10 * 2**20 / (16 * 132 * 1.98e9) * 1e3, "ms", how="computed")

# %% [markdown]
# On an H200, the rung with launch bounds took
# ⟦ recorded(bench="ladder/cupy", case="launch_bounds, float32", metric="median_ms", gpu="H200") ⟧, which is
# ⟦ "%.2f" | format(recorded(bench="ladder/cupy", case="launch_bounds, float32", metric="median_ms", gpu="H200").value / (2**31 / (16 * 132 * 1.98e6))) ⟧
# times this limit. That is close, considering that the limit assumes the highest clock rate and units that never wait.
#
# Launch bounds or caches cannot speed up a kernel that is this close to its limit. It must do **less** of the work that
# limits it: fewer special functions.

# %% [markdown]
# ## Rotate
#
# Take a sample at time t. For a frequency w, a thread has the cosine c and the sine s of wt. The next frequency of this
# thread is w + d. These are the angle addition formulas, for a = wt and b = dt:
#
# $$\cos(a + b) = \cos a \cos b - \sin a \sin b, \qquad \sin(a + b) = \sin a \cos b + \cos a \sin b$$
#
# This rotates the point (c, s). It takes four multiply-adds instead of two special functions, since a multiplication
# takes as long as a multiply-add. You need the cosine and the sine of dt, where d is the distance to the thread's next
# frequency. **This assumes evenly spaced frequencies**, which a periodogram usually has.

# %%
def rotate(c, s, turn_c, turn_s):
    return c * turn_c - s * turn_s, s * turn_c + c * turn_s


c, s = rotate(np.cos(0.3), np.sin(0.3), np.cos(0.1), np.sin(0.1))
print(c - np.cos(0.4), s - np.sin(0.4))

# %% [markdown]
# Each rotation is rounded, and the next one starts from the rounded values. Predict: what is the largest error of a
# float32 sine after 16 rotations?

# %%
prediction = ...  # absolute error after 16 rotations, such as 1e-5

# %%
compare(prediction, float(drift(16)[-1]), how="computed with NumPy")

# %% [markdown]
# That is smaller than the error of a fast sine at a large angle. There is a cheaper way, with two multiply-adds, from
# the two steps before: cos(a + 2b) = 2 cos b cos(a + b) - cos a. It subtracts numbers that are almost equal, and its
# error grows with the square of the number of steps.

# %%
draw_drift()

# %% [markdown]
# ## Count again
#
# A thread that takes 16 frequencies calls one sine and one cosine for all of them, and rotates. Per sample and
# frequency there remain four multiply-adds for the rotation, and one for each sum. Four sums suffice, because
# cos² + sin² = 1. Predict: how many milliseconds do these eight multiply-adds take, at least, on the same H200?

# %%
prediction = ...  # ms, eight multiply-adds per sample and frequency

# %%
compare(prediction, H200.multiply_add_ms(each=8), "ms", how="computed")

# %% [markdown]
# That is half of the first limit. Three more ideas help to get close to it:
#
# - **The rotation belongs to the sample, not to the thread.** If d is the same for all threads, so is dt. So a block
#   computes cos dt and sin dt once for a **tile** of samples, and keeps t, y and both in **shared memory**.
# - **All threads read the same sample at the same time.** Shared memory **broadcasts** a value to all threads of a warp,
#   so that this is a single load.
# - **The sums stay in registers.** 16 frequencies with four sums each are 64 registers. Registers cannot be indexed at
#   run time, so the loop over the frequencies must be **unrolled**, that is, written out pass by pass. `#pragma unroll`
#   before a loop asks the compiler to do that.
#
# Which frequencies does a thread take? A block of 128 threads has 128 × 16 adjacent frequencies. Thread number i takes
# the i-th of them, and every 128th after it. Then neighbouring threads write neighbouring powers. A thread's next
# frequency is 128 spacings away, and that is d:
#
# ```text
#                     frequencies of one block, 2,048 in all
#            | thread 0 | thread 1 | … | thread 127 |
#  step 0    |    0     |    1     | … |    127     |   a sine and a cosine per sample
#  step 1    |   128    |   129    | … |    255     |   rotated by d · t
#  …         |          |          |   |            |
#  step 15   |  1,920   |  1,921   | … |   2,047    |   rotated by d · t
# ```

# %% [markdown]
# ### Six pieces of C++
#
# The frame below uses a few things that the ladder did not:
#
# - `-DSTEPS=16` among the compiler's options defines `STEPS`: wherever the text has this name, the compiler reads 16. So
#   you can change a size in Python, and it is still a constant in C++.
# - `__device__` marks a function that kernels call. The compiler inserts its code where it is called (**inlining**).
# - `struct Sums { float xc[STEPS]; … };` groups the sums of one thread. `Sums sums = {};` sets all of them to 0. Without
#   the `= {}` they start with arbitrary values.
# - `Sums& sums` as a parameter is a reference: the function changes the caller's sums.
# - `float4` is four floats that are loaded together. `make_float4(time, value, cosine, sine)` makes one, and its parts
#   are `.x`, `.y`, `.z` and `.w`.
# - `__shared__ float4 tile[TILE];` is memory that all threads of a block share. `__syncthreads()` is a **barrier**: each
#   thread waits there for all others of its block. You need one before a tile is overwritten, since others may still read
#   it, and one before it is read.

# %% [markdown]
# ## Exercise: go past the ladder
#
# Write the power at each of `freqs` into `out`, as in the rungs, but in float32 only. The frequencies are evenly spaced
# and exact in float32. Their spacing is `freqs[1] - freqs[0]`, and differs from run to run. There may be a single
# frequency. The error may be ⟦ "%.0e" | format(exercise("ls_open").timed_cases[0].budget.absolute / 256) ⟧ of N/4, the peak of a sine of amplitude 1.
#
# Below is a frame for a rotation in CuPy. It uses `cp.RawKernel`, a module with one kernel.
# Write it in this order:
#
# 1. `add` *(about 12 lines)*: one `__sincosf` for the thread's first frequency, then for each step the four sums and a
#    rotation. The two code cells after `check` test it alone.
# 2. The kernel *(about 20 lines)*. Each thread starts at its first frequency, with sums of 0. For each tile of samples:
#    barrier, load the tile with the cosine and sine of dt, barrier, `add` each of its samples. The last tile may be only
#    partly full. At the end, write the power at each of the thread's frequencies that exists.
# 3. The launch *(about 2 lines)*: one block per 2,048 frequencies, and one for the rest.
#
# Or write something else: **Numba, Triton, CUDA C++ with `load_inline`, and CuPy are all accepted**. The arguments are
# arrays of the library that the cell imports: CuPy arrays, Numba device arrays, or torch tensors.

# %% nbgrader={"grade_id": "ls_open", "solution": true}
import cupy as cp
import numpy as np

THREADS = 128  # of a block
STEPS = 16  # frequencies of a thread
TILE = 128  # samples in shared memory at a time

source = r"""
__device__ float power(float samples, float xc, float xs, float cc, float cs) {
    const float ss = samples - cc;  // cos² + sin² is 1
    float s, c;
    sincosf(0.5f * atan2f(2.0f * cs, cc - ss), &s, &c);
    const float both = 2.0f * c * s * cs, p = c * xc + s * xs, q = c * xs - s * xc;
    return 0.5f * (p * p / (c * c * cc + both + s * s * ss) + q * q / (c * c * ss - both + s * s * cc));
}

struct Sums { float xc[STEPS], xs[STEPS], cc[STEPS], cs[STEPS]; };  // of the frequencies of one thread

// One sample: its time, its value, the cosine and sine by which a thread turns to its next frequency.
__device__ void add(Sums& sums, float w, float4 sample) {
    // BEGIN SOLUTION
    float s, c;
    __sincosf(w * sample.x, &s, &c);
    #pragma unroll
    for (int k = 0; k < STEPS; ++k) {
        sums.xc[k] += sample.y * c;
        sums.xs[k] += sample.y * s;
        sums.cc[k] += c * c;
        sums.cs[k] += c * s;
        const float turned = c * sample.z - s * sample.w;
        s = s * sample.z + c * sample.w;
        c = turned;
    }
    // END SOLUTION
}

extern "C" __global__ void __launch_bounds__(THREADS) rotate(
        const int samples, const int count, const float* __restrict__ t, const float* __restrict__ y,
        const float* __restrict__ freqs, float* __restrict__ out) {
    __shared__ float4 tile[TILE];
    // BEGIN SOLUTION
    const int first = blockIdx.x * THREADS * STEPS + threadIdx.x;
    const float w = freqs[min(first, count - 1)], turn = count > 1 ? THREADS * (freqs[1] - freqs[0]) : 0.0f;
    Sums sums = {};
    for (int begin = 0; begin < samples; begin += TILE) {
        const int held = min(TILE, samples - begin);
        __syncthreads();
        for (int j = threadIdx.x; j < held; j += THREADS) {
            const float at = t[begin + j];
            tile[j] = make_float4(at, y[begin + j], cosf(turn * at), sinf(turn * at));
        }
        __syncthreads();
        for (int j = 0; j < held; ++j) add(sums, w, tile[j]);
    }
    #pragma unroll
    for (int k = 0; k < STEPS; ++k) {
        const int i = first + k * THREADS;
        if (i < count) out[i] = power(samples, sums.xc[k], sums.xs[k], sums.cc[k], sums.cs[k]);
    }
    // END SOLUTION
}
"""
options = (f"-DTHREADS={THREADS}", f"-DSTEPS={STEPS}", f"-DTILE={TILE}")
kernel = cp.RawKernel(source, "rotate", options)


def ls_open(t, y, freqs, out):
    ### BEGIN SOLUTION
    blocks = -(-freqs.size // (THREADS * STEPS))
    kernel((blocks,), (THREADS,), (np.int32(t.size), np.int32(freqs.size), t, y, freqs, out))
    ### END SOLUTION


# %% [markdown]
# Does it work for any number of samples and frequencies? A tile may be partly full, and a thread may have fewer than 16
# frequencies.

# %% nbgrader={"grade_id": "check-ls_open", "grade": true, "locked": true, "points": 10}
check(ls_open)

# %% [markdown]
# If you wrote the frame's `add`, you can test it alone, before the rest is written. The next cell adds one sample to sums
# of 0 and compares with NumPy. A correct `add` has an error below 1e-5.

# %%
alone = source.partition('extern "C"')[0] + r"""
extern "C" __global__ void one(float w, float t, float y, float c, float s, float* out) {
    Sums sums = {};
    add(sums, w, make_float4(t, y, c, s));
    for (int k = 0; k < STEPS; ++k) { out[k] = sums.xc[k]; out[STEPS + k] = sums.cs[k]; }
}"""

# %%
w, t, y, d = map(np.float32, (0.7, 2.0, 0.5, 0.01))
out = cp.zeros(2 * STEPS, dtype=cp.float32)
one = cp.RawKernel(alone, "one", options)
one((1,), (1,), (w, t, y, np.cos(d * t), np.sin(d * t), out))
angle = t * (w + d * np.arange(STEPS))
expected = np.concatenate([y * np.cos(angle), np.cos(angle) * np.sin(angle)])
print(f"largest error of add: {abs(cp.asnumpy(out) - expected).max():.2g}")

# %% [markdown]
# The course's kernel takes 89 registers. Its loop over the tile has 133 instructions for 16 frequencies; the count
# above says 128. The next cell counts the whole kernel: most of it is the 16 powers at the end. How many registers does
# yours take?

# %%
nvrtc_view(source, *options)

# %% [markdown]
# ## How fast is it?
#
# You get ⟦ gate("ls_open", "fast").points ⟧ of ⟦ exercise("ls_open").max_points ⟧ points for
# ⟦ gate("ls_open", "fast").at_least ⟧ times the speed of ⟦ exercise("ls_open").baseline("fast").label ⟧, at
# ⟦ gate("ls_open", "fast").cases | join(", ") ⟧. Predict: how many times as fast was the course's rotation, on an H200?

# %%
prediction = ...  # times as fast as the last rung

# %%
past = recorded("ladder/past", "ratio_vs_last_rung").value("ratio_vs_last_rung", "rotation, float32")
compare(prediction, past, "times as fast", how="recorded")

# %%
benchmark(ls_open)

# %% [markdown]
# Is yours behind at the left end of the plot? There, a rotation has too few threads. A block takes 2,048 frequencies, so
# 131,072 frequencies are 64 blocks, and an H200 has 132 SMs: half of them have nothing to do. The course's kernel took
# ⟦ recorded(bench="ls_open", case="1,024 samples × 16,384 frequencies", metric="median_us", gpu="H200") ⟧ for 16,384
# frequencies, and ⟦ recorded(bench="ls_open", case="1,024 samples × 131,072 frequencies", metric="median_us", gpu="H200") ⟧
# for eight times as many.

# %% [markdown]
# These are the results of the course's kernels. *Digits* are those that are correct at the worst frequency, relative
# to the highest peak. *FFT* and *interpolation* are other algorithms: the section *Change the algorithm* explains the
# first, and the last question of *Extra credit* explains the second. *SciPy*, *nifty-ls* and *astropy* are libraries,
# which *What you would use* returns to; only *nifty-ls with cuFINUFFT* runs on the GPU. SciPy was timed on another day
# than for the ladders' tables, in another installation.

# %%
recorded("ladder/past", "median_ms", "ratio_vs_last_rung", "registers", "correct_digits")

# %% [markdown]
# On an H200, the rotation takes
# ⟦ "%.1f" | format(recorded(bench="ladder/past", case="rotation, float32", metric="median_ms", gpu="H200").value / (2**33 / (128 * 132 * 1.98e6))) ⟧
# times as long as its eight multiply-adds alone would. Two causes can be counted. Its loop has 133 instructions instead of
# 128, 4 % more. And its 512 blocks do not divide evenly among 132 SMs: most SMs get four and some only three, which leaves
# 3 % of the GPU idle. With a GPU you can search for the rest: `ncu --section WarpStateStats python program.py` says why
# threads stall. [Free a pipeline](../01_profiling/03_free_a_pipeline.ipynb) introduces Nsight Compute.
#
# These numbers of frequencies per thread, and of threads per block, were tried:

# %%
recorded("ladder/steps", "median_ms", "registers", "correct_digits")

# %% [markdown]
# More frequencies per thread need fewer special functions, but leave fewer threads: with 32, there are some 250 per SM of
# an H200. All choices are close, except 32 frequencies with 128 threads per block, which is clearly slower.
#
# If your class has set up a leaderboard for this exercise, here is your rank.

# %%
standings("ls_open")

# %% [markdown]
# ## Run it on the star
#
# The samples so far were random. Now take the real series of [Find a period](01_find_a_period.ipynb): a star, measured
# over seven years whenever the sky was clear. `search_star` passes all its times minus the midpoint of the series, which
# halves the largest phase, and looks for the highest peak. The phases are still large for float32: the powers lose
# digits, but the highest peak stays in place. Near this period, the grid's steps are 0.00007 days.
#
# The published period is the time from one dip to the next. The two stars orbit each other in twice that time.

# %%
search_star(ls_open)

# %% [markdown]
# ## Change the algorithm
#
# All this still computes 2^30 rotations. A fast Fourier transform computes n sums in a time that grows like n log n, but
# it requires samples on an even grid. Press and Rybicki (1989), and Dutt and Rokhlin (1993), found a way around that:
# **spread each sample over a few points of an even grid**, and transform the grid. A **non-uniform FFT** (NUFFT) then
# divides out what the spreading did.
#
# Each sample becomes a narrow bell over `width` grid points. This one is the Kaiser–Bessel bell: `np.i0` is a Bessel
# function, and 2.3 makes a shape that works well.

# %%
def spread(places, values, size, width):
    grid, beta = np.zeros(size, complex), 2.3 * width
    for k in range(width):
        cells = np.ceil(places - width / 2) + k
        u = (cells - places) / (width / 2)
        bell = np.i0(beta * np.sqrt(np.maximum(0, 1 - u**2)))
        np.add.at(grid, cells.astype(int) % size, values * bell)
    return grid


# %% [markdown]
# A bell in time is a bell in frequency. So the transform multiplies each sum by the height of that second bell at the
# sum's frequency. That height is `width * sinh(root) / root`, where `root` shrinks towards both ends of the band. The
# last line divides by it. The grid has twice as many points as there are frequencies, because close to its ends the
# second bell is too low to divide by.

# %%
def all_sums(t, values, freqs, width=8):
    count, size = len(freqs), 2 * len(freqs)
    mode, spacing = np.arange(count) - count // 2, freqs[1] - freqs[0]
    at_middle = values * np.exp(-1j * freqs[count // 2] * t)
    grid = spread(spacing * t / (2 * np.pi) * size, at_middle, size, width)
    root = np.sqrt((2.3 * width) ** 2 - (np.pi * width * mode / size) ** 2)
    return np.fft.fft(grid)[mode % size] * root / (width * np.sinh(root))


# %% [markdown]
# Try it on a case that is small enough for brute force.

# %%
random = np.random.default_rng(0)
times, values = np.sort(random.uniform(0, 30, 200)), random.normal(size=200)
freqs = 0.5 + np.arange(1024) / 256
exact = np.exp(-1j * np.outer(freqs, times)) @ values

# %% [markdown]
# Spread each sample over 8 points, in double. Predict: how far is the worst of 1,024 sums from the exact one, as a share
# of the number of samples?

# %%
prediction = ...  # error, such as 1e-3

# %%
errors = {width: np.abs(all_sums(times, values, freqs, width) - exact).max() / len(times) for width in (2, 4, 6, 8)}
compare(prediction, float(errors[8]), how="computed with NumPy")
for width, error in errors.items():
    print(f"{width} points: {error:.0e}")

# %% [markdown]
# Two more points give about two more digits. So you can trade accuracy for time.
#
# What about the sums of the squares? Since cos² = (1 + cos 2wt) / 2, they are sums over 2wt: a second transform, of
# samples that are all 1, at twice the frequencies. Two transforms give all five sums, at all frequencies, to as many
# digits as you want. One more kernel turns them into powers.

# %% [markdown]
# ## Extra credit
#
# No points, but each of these shows something. Change the exercise's cell, run it, and `check` or `benchmark` it again.
#
# 1. With a GPU: write `ls_open` with the transform. Spread with a raw kernel and `atomicAdd`, call `cp.fft.fft`, and write
#    a kernel for the powers. A launch costs a few microseconds, so use few kernels. What does the leaderboard say?
#
# <details><summary>Answer</summary>
#
# Compare with the row *FFT* in the table above. It transforms 16,384 frequencies at a time: a grid that is short enough
# is read and written only once.
#
# </details>
#
# 2. Take 8, then 32 frequencies per thread (`STEPS`). What does `nvrtc_view(source, *options)` say about registers, with
#    `options` changed as well?
#
# <details><summary>Answer</summary>
#
# Each frequency adds four registers for its sums, and the compiler may use a few more: the table *ladder/steps* has 56, 89
# and 167.
#
# </details>
#
# 3. Use the recurrence from the two steps before. First compute `drift(16, recurrence=True)` and
#    `drift(64, recurrence=True)`: would the exercise accept 16 steps, or 64?
#
# <details><summary>Answer</summary>
#
# The power has roughly the same error as the sums. Compare the drift with the allowed error, as a share of N/4: it
# grows with the square of the steps.
#
# </details>
#
# 4. In the timed case, neighbouring frequencies are so close that the power hardly changes from one to the next. Do you
#    have to compute all of them?
#
# <details><summary>Answer</summary>
#
# No. A sum of waves with |t| up to T/2 is a smooth function of the frequency, and so is each of the four sums. The row
# *interpolation* in the table above computes sixteen frequencies for each 1/T, some 650 in all. For each of the million
# outputs, it evaluates a polynomial through the nearest eight. It interpolates the sums rather than the power, because
# the power is a quotient of them. But a search for a maximum needs no more than those 650 in the first place.
#
# </details>

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## What you would use
#
# You wrote these kernels to learn. For a real search, start from the top of this list:
#
# - **One star, on a CPU**: astropy's `LombScargle(t, y, dy)`. It takes measurement errors as weights, fits a floating
#   mean, chooses a frequency grid (`autofrequency`), and estimates how likely it is that noise alone makes such a
#   peak (`false_alarm_probability`). `method="fast"` is Press and Rybicki's algorithm. `method="fastnifty"`, in newer
#   versions, calls nifty-ls.
# - **Many frequencies, many digits**: [nifty-ls](https://github.com/flatironinstitute/nifty-ls). It is the last section
#   of this notebook as a library, on the CPU with FINUFFT and on the GPU with cuFINUFFT. Give it `dy` there: without the
#   errors, version 1.1 divides the power by the number of samples. It also takes batches of series that share their
#   times.
# - **The transform itself**: [FINUFFT and cuFINUFFT](https://finufft.readthedocs.io/), for one to three dimensions.
# - **SciPy's `lombscargle`** computes the direct sums. It is simple and accurate, and it is the right choice for a
#   few thousand pairs, or to test another method. All *times SciPy's direct sums* in this chapter compare with it,
#   and not with the methods above, which are far ahead of it even on a CPU.
# - **A kernel of your own** pays off if no library has your formula, your data are on the GPU already, or you know
#   something that a library does not: here, that float32 is enough.

# %% [markdown]
# ## In this notebook you have
#
# - computed two limits, and found out which of them the last rung reaches
# - replaced sines by rotations, and seen how errors grow with the steps
# - written a kernel whose threads take many frequencies and share their samples
# - spread samples over a grid, transformed it, and divided by a bell
# - compared your kernels with what you would use in practice
#
# ## Check yourself
#
# <details><summary>The last rung is close to the limit of its special functions. Would a faster memory help?</summary>
#
# No. The samples fit into a cache, and the powers are written once. The kernel waits for the special function units.
#
# </details>
#
# <details><summary>Why do rotations assume evenly spaced frequencies?</summary>
#
# The rotation from one frequency of a thread to its next is by (w' - w)t. Only if that distance is always the same can all
# threads and steps share one cosine and sine per sample.
#
# </details>
#
# <details><summary>Why not rotate over all frequencies, from a single sine and cosine?</summary>
#
# Each step adds a rounding error, so the error grows with the steps. And there would be a single thread.
#
# </details>
#
# <details><summary>The transform's grid has as many points as there are frequencies, not twice as many. What goes wrong?</summary>
#
# Close to the ends of the band, the second bell is no higher than what leaks in from outside the grid. Dividing by it
# amplifies that, so the ends are wrong.
#
# </details>
#
# ## Read on
#
# - [nifty-ls](https://github.com/flatironinstitute/nifty-ls), and how it turns the periodogram into two transforms
# - [cuFINUFFT](https://arxiv.org/abs/2102.08463) (Shih and others, 2021): spreading on a GPU, with shared memory
# - [Lomb–Scargle in astropy](https://docs.astropy.org/en/stable/timeseries/lombscargle.html): weights, false alarms, and
#   which method to choose
#
# **Next:** [Search many stars](05_search_many_stars.ipynb), many series of different lengths in one launch. Or go back to
# the [syllabus](../README.ipynb).
