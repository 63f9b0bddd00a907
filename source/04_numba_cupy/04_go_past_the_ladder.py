# %% [markdown]
# # Go past the ladder
#
# **You will** find out which ceiling the last rung hits, get round it, and then leave the algorithm behind.
#
# **You will learn**
#
# - to count special functions and multiply-adds, and to hold a kernel against the ceilings that they set
# - to rotate an angle in place of calling sine and cosine, and what that loses
# - to keep in shared memory what all threads need, and in registers what one thread needs
# - how a fast Fourier transform takes samples that lie unevenly
#
# **You need** about 75 minutes and [Climb with CuPy](03_climb_with_cupy.ipynb). With an NVIDIA GPU you measure speed
# as well. Without one every answer is checked, and speed is shown as recorded on another machine.

# %%
from grader import benchmark, check, device, standings
from grader.explore import H200, compare, draw_drift, draw_ladder, drift, last_rung_view, load_cupy, recorded, search_star

cp = load_cupy()
device

# %%
import numpy as np

# %% [markdown]
# ## The whole ladder
#
# Here are all rungs on one page. The scale is logarithmic: each mark is ten times the one before. The two lines are
# ceilings of the GPU that the legend names. You will compute both, for an H200. (SciPy's bar was computed from its time for
# 4,096 of the frequencies.)

# %%
draw_ladder()

# %% [markdown]
# ## Which ceiling is it?
#
# The last rung calls a sine and a cosine for each sample and frequency. With fast math each is one instruction, `MUFU`,
# done by the special-function units. An SM of an H200 has units for 16 of them in a clock cycle. It does 128
# multiply-adds in the same time, eight times as many.
#
# Look at the kernel. (The compiler wrote its loop out several times, so there is more than one of each.)

# %%
last_rung_view()

# %% [markdown]
# Take 2^10 samples, 2^20 frequencies, and an H200: 132 SMs at 1.98 GHz at most. Predict: how many milliseconds
# do the special functions take, at the least?

# %%
prediction = ...  # ms, two special functions a sample and frequency

# %%
compare(prediction, 2 * 2**10 * 2**20 / (16 * 132 * 1.98e9) * 1e3, "ms", how="computed")

# %% [markdown]
# These are all rungs, as far as they were recorded. Look at *launch_bounds, float32*:

# %%
recorded("ladder/cupy", "median_ms", "correct_digits")

# %% [markdown]
# On an H200 the rung with launch bounds takes
# ⟦ "%.2f" | format(recorded(bench="ladder/cupy", case="launch_bounds, float32", metric="median_ms", gpu="H200").value / (2**31 / (16 * 132 * 1.98e6))) ⟧
# times as long as the ceiling says. That is near: the ceiling is for the highest clock, and for units that never wait.
#
# A kernel near its ceiling is not made faster by launch bounds or caches. It has to do **less** of what it is bound by:
# fewer special functions.
#
# (In the plots below *the last rung* is a kernel with fast math, which the last three rungs share. Its text differs a
# little from the one in the table, and so does its time.)

# %% [markdown]
# ## Rotate
#
# Take a sample at the time t. For its frequency w a thread has the cosine c and the sine s of wt. The thread's next
# frequency is w + d. By the angle addition:
#
# $$\cos(a + b) = \cos a \cos b - \sin a \sin b, \qquad \sin(a + b) = \sin a \cos b + \cos a \sin b$$
#
# with a = wt and b = dt. That is a rotation of the point (c, s): four multiply-adds in place of two special functions.
# (A product alone takes as long as a multiply-add.) It needs the cosine and sine of dt, where d is the distance to the
# thread's next frequency. **This assumes that the frequencies are evenly spaced**, which a periodogram's mostly are.

# %%
def rotate(c, s, turn_c, turn_s):
    return c * turn_c - s * turn_s, s * turn_c + c * turn_s


c, s = rotate(np.cos(0.3), np.sin(0.3), np.cos(0.1), np.sin(0.1))
print(c - np.cos(0.4), s - np.sin(0.4))

# %% [markdown]
# Each rotation is rounded, and the next one starts from there. Predict: what is the largest error of a float32 sine
# after 16 rotations?

# %%
prediction = ...  # absolute error after 16 rotations, such as 1e-5

# %%
compare(prediction, float(drift(16)[-1]), how="computed with NumPy")

# %% [markdown]
# That is less than a fast sine of a large angle is off. There is a cheaper way with two multiply-adds, from the two steps
# before: cos(a + 2b) = 2 cos b cos(a + b) - cos a. It subtracts numbers that are nearly alike, and its error grows with
# the square of the steps.

# %%
draw_drift()

# %% [markdown]
# ## Count again
#
# A thread that takes 16 frequencies calls one sine and one cosine for all of them, and rotates. For each sample and
# frequency there are left: four multiply-adds to rotate, and one for each sum. Four sums are enough, since cos² + sin²
# is 1. Predict: how many milliseconds do these eight multiply-adds take at the least, on the same H200?

# %%
prediction = ...  # ms, eight multiply-adds a sample and frequency

# %%
compare(prediction, H200.multiply_add_ms(each=8), "ms", how="computed")

# %% [markdown]
# This is half of the first ceiling. Three more things help to come near it:
#
# - **The turn belongs to the sample, not to the thread.** dt is the same for all threads, if d is. So a block computes
#   cos dt and sin dt once for a tile of samples, and keeps t, y and both in shared memory: a `float4` a sample.
# - **All threads read the same sample at the same time.** That is one load for a warp: shared memory hands one word to
#   all lanes at once.
# - **Sums live in registers.** 16 frequencies with four sums are 64 registers. The loop over them must be unrolled: an
#   array in registers can be indexed only by what the compiler knows. `#pragma unroll` before a loop asks for it.
#
# Which frequencies does a thread take? A block of 128 threads has 128 × 16 neighbouring ones. If each thread takes the
# one of its own number there, and every 128th from it, neighbouring threads write neighbouring powers. Its next frequency
# is then 128 spacings away, and that is its d.

# %% [markdown]
# ## Exercise: go past the ladder
#
# Write the power at each of `freqs` into `out`: as in the rungs, float32 only. This time the frequencies are evenly
# spaced, and exact in float32: `freqs[1] - freqs[0]` is the spacing, which differs from run to run. There may be just one
# frequency. The error may be ⟦ "%.0e" | format(exercise("ls_open").timed_cases[0].budget.absolute / 256) ⟧ of N/4, the peak of a sine of amplitude 1.
#
# Below is a frame for a rotation in CuPy. (`cp.RawKernel` is a module with one kernel.) Fill in `add`
# *(about 12 lines)*, the kernel *(about 20 lines)* and the launch *(about 2 lines)*. Or throw it away: **Numba, Triton, CUDA C++
# with `load_inline`, and CuPy are all accepted**. The arrays come as those of the library that the cell imports:
# CuPy's, Numba's device arrays, or torch tensors.
#
# 1. Each thread begins at its first frequency, with sums of 0.
# 2. For each tile of samples: wait, load it, with the cosine and sine of the turn dt; wait; go through it. To wait for
#    all threads of the block is `__syncthreads()`. A sample is a `make_float4(time, value, cosine, sine)`: its parts
#    are `.x`, `.y`, `.z` and `.w`.
# 3. For each sample: one `__sincosf`, then for each of the thread's frequencies the sums, and a rotation.
# 4. In the end the powers, of those frequencies that there are.
# 5. The launch: a block for each 2,048 frequencies, and one for what is left.

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
# Is the power right, however many samples and frequencies there are? A tile may be only partly full, and a thread may have
# fewer than 16 frequencies.

# %% nbgrader={"grade_id": "check-ls_open", "grade": true, "locked": true, "points": 10}
check(ls_open)

# %% [markdown]
# ## How fast is it?
#
# ⟦ gate("ls_open", "fast").points ⟧ of ⟦ exercise("ls_open").max_points ⟧ points are for being
# ⟦ gate("ls_open", "fast").at_least ⟧ times as fast as ⟦ exercise("ls_open").baseline("fast").label ⟧, at
# ⟦ gate("ls_open", "fast").cases | join(", ") ⟧.
#
# Predict: at that size, how many times as fast is yours?

# %%
prediction = ...  # times as fast as the last rung

# %%
benchmark(ls_open)

# %% [markdown]
# Is yours behind at the left end of the plot? There a rotation has too few threads. A block of 128 threads with 16
# frequencies each takes 2,048 of them. So 131,072 frequencies are 64 blocks, and an H200 has 132 SMs: half of it has nothing
# to do. The authors' kernel took
# ⟦ recorded(bench="ls_open", case="1,024 samples × 16,384 frequencies", metric="median_us", gpu="H200") ⟧ for 16,384
# frequencies and ⟦ recorded(bench="ls_open", case="1,024 samples × 131,072 frequencies", metric="median_us", gpu="H200") ⟧
# for eight times as many.

# %% [markdown]
# And this is what the authors' ways reached, with the digits that are right at the worst frequency, on the scale of the
# highest peak. *FFT* is
# another algorithm, to which this notebook comes in the end.

# %%
recorded("ladder/past", "median_ms", "ratio_vs_last_rung", "registers", "correct_digits")

# %% [markdown]
# On an H200 the rotation takes
# ⟦ "%.1f" | format(recorded(bench="ladder/past", case="rotation, float32", metric="median_ms", gpu="H200").value / (2**33 / (128 * 132 * 1.98e6))) ⟧
# times as long as its eight multiply-adds would. A little of that is known. Its loop has 133 instructions for 16 frequencies,
# not 128. And 512 blocks on 132 SMs are four for most and three for some. Each is worth less than five per cent. The rest is
# not explained.
#
# How many frequencies a thread takes, and how many threads a block has, was tried out:

# %%
recorded("ladder/steps", "median_ms", "registers", "correct_digits")

# %% [markdown]
# More frequencies a thread mean fewer special functions, and fewer threads: with 32 there are some 250 for each SM of an
# H200. (By their registers more would fit, in every row.) It is a flat valley: only 32 frequencies with 128 threads a
# block are clearly too many.
#
# There is a board for this exercise. (It needs a GPU, and your class's settings.)

# %%
standings("ls_open")

# %% [markdown]
# ## Run it on the star
#
# The samples so far were drawn. Now take the real series of [Find a period](01_find_a_period.ipynb): a star, measured for
# seven years whenever the sky was clear. `search_star` gives your function all its times, less the middle of the
# series, and takes the highest peak. That halves the largest phase. It is still large for float32: the powers lose
# digits, but the highest peak stays where it is. (The last digit is the grid's: near this period its steps are 0.00007
# days.)

# %%
search_star(ls_open)

# %% [markdown]
# ## Change the algorithm
#
# All this is still 2^30 rotations. A fast Fourier transform gets n sums in a time that grows like n log n. But it wants
# samples on an even grid. Press and Rybicki's idea (1989): **spread each sample onto a few points of an even
# grid**, and transform the grid. A *non-uniform FFT* then divides by what the spreading did.
#
# Each sample becomes a narrow bell over `width` grid points. (It is the Kaiser–Bessel bell: `np.i0` is a Bessel function,
# and 2.3 makes a width that works well.)

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
# A bell in time is a bell in frequency. After the transform each sum is too large by the height of that second bell, which
# is known: divide. The grid has twice as many points as there are frequencies, since near its end the bell of the
# frequencies is too low to divide by.

# %%
def all_sums(t, values, freqs, width=8):
    count, size = len(freqs), 2 * len(freqs)
    mode, spacing = np.arange(count) - count // 2, freqs[1] - freqs[0]
    at_middle = values * np.exp(-1j * freqs[count // 2] * t)
    grid = spread(spacing * t / (2 * np.pi) * size, at_middle, size, width)
    root = np.sqrt((2.3 * width) ** 2 - (np.pi * width * mode / size) ** 2)
    return np.fft.fft(grid)[mode % size] * root / (width * np.sinh(root))


# %% [markdown]
# Try it on a small case whose sums can be had by force.

# %%
source = np.random.default_rng(0)
t, y = np.sort(source.uniform(0, 30, 200)), source.normal(size=200)
freqs = 0.5 + np.arange(1024) / 256
exact = np.exp(-1j * np.outer(freqs, t)) @ y

# %% [markdown]
# Predict: spread onto 8 points, in double: how far is the worst of 1,024 sums from the true one, as a share of the number
# of samples?

# %%
prediction = ...  # error, such as 1e-3

# %%
errors = {width: np.abs(all_sums(t, y, freqs, width) - exact).max() / len(t) for width in (2, 4, 6, 8)}
compare(prediction, float(errors[8]), how="computed with NumPy")
for width, error in errors.items():
    print(f"{width} points: {error:.0e}")

# %% [markdown]
# Every two points more are about two digits more. That is the knob: error against time.
#
# And the other sums, of the squares? Since cos² = (1 + cos 2wt) / 2, they are sums of 2wt: a second transform, of samples
# that are all 1, at twice the frequencies. Two transforms give all five sums, for all frequencies, to as many digits as
# are wanted. What is left is one kernel that makes powers of them.

# %% [markdown]
# ## Extra credit
#
# No points, but each shows something. Change the exercise's cell, run it, and `check` it again, or `benchmark` it (with a
# GPU).
#
# 1. Write `ls_open` with the transform: spread with a raw kernel and `atomicAdd`, `cp.fft.fft`, and a kernel for the
#    powers. Mind what a launch costs: few kernels. What does the leaderboard say?
# 2. Take 8, then 32 frequencies a thread. Look at the registers with `nvrtc_view`.
# 3. Use the recurrence from the two steps before, over 16 steps. Does `check` accept it? And over 64?
# 4. The frequencies of the timed case lie so close together that the power hardly changes from one to the next. Who says
#    that all of them must be computed?

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - computed two ceilings, and told which of them the last rung hits
# - replaced sines by rotations, and seen what the steps lose
# - written a kernel whose threads have many frequencies and share their samples
# - spread samples onto a grid, transformed it, and divided by a bell
#
# ## Check yourself
#
# <details><summary>The last rung is near the ceiling of its special functions. Would a faster memory help?</summary>
#
# No. The samples fit into a cache, and the powers are written once. It waits for the special-function units.
#
# </details>
#
# <details><summary>Why do the rotations assume evenly spaced frequencies?</summary>
#
# The turn from one frequency of a thread to its next is (w' - w)t. Only if that distance is always the same do all threads
# and steps share one cosine and sine for each sample.
#
# </details>
#
# <details><summary>Why not rotate over all frequencies, from a single sine and cosine?</summary>
#
# Each step adds its rounding, so the error grows with the steps. And there would be a single thread.
#
# </details>
#
# <details><summary>The transform's grid has as many points as there are frequencies, not twice as many. What goes wrong?</summary>
#
# Towards the ends of the band the second bell is as low as what leaks in from beyond the grid, and dividing by it makes
# that large: the ends are wrong.
#
# </details>
#
# **Next:** you have reached the end of the course. Go back to the [syllabus](../README.ipynb): it knows what is left to do.
