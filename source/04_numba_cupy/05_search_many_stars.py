# %% [markdown]
# # Search many stars
#
# **You will** compute the periodograms of many stars in a single launch, although each star was measured a different
# number of times.
#
# **You will learn**
#
# - to store series of different lengths without padding: one after another, with offsets
# - to use a second axis of the grid for the stars
# - why uneven lengths leave a GPU partly idle, and what to do about it
#
# **You need** about 50 minutes and [Climb with CuPy](03_climb_with_cupy.ipynb). A GPU is optional: this exercise has no
# points for speed. Without one, a replacement for CuPy builds your kernel for the CPU.

# %%
from grader import check, device
from grader.explore import compare, draw_power, load_cupy, load_light_curve

cp = load_cupy()
device

# %%
import contextlib
from itertools import pairwise

import numpy as np
from scipy.signal import lombscargle

# %% [markdown]
# ## One star is a small problem
#
# A survey measures tens of millions of stars, many of them only a few hundred times. The periodogram of one such star is
# too little work for a GPU. If you launch a kernel per star, the host's work per launch can take longer than the kernel.
# So you put many stars into one launch: a **batch**.
#
# The stars have different numbers of measurements. You do not have millions of real stars here, but you can make a small
# batch out of one: all measurements of the star of [Find a period](01_find_a_period.ipynb), every second, every fourth,
# and so on. Each part counts as a star.

# %%
curve = load_light_curve()
parts = [slice(None, None, step) for step in (1, 2, 4, 8, 16, 32, 64)]
lengths = np.array([curve.t[part].size for part in parts])
lengths

# %% [markdown]
# ## Do not pad
#
# You could store the batch as a matrix with a row per star, as long as the longest series, and fill the rest with zeros.
# Predict: what share of that matrix would be padding?

# %%
prediction = ...  # share of the matrix, such as 0.2

# %%
compare(prediction, round(float(1 - lengths.sum() / (lengths.size * lengths.max())), 2), how="computed")

# %% [markdown]
# More than two thirds, and a kernel would have to read it or test for it. Instead, put all series one after another into
# one vector, and keep the **offsets** at which they start. Star s has the elements from `offsets[s]` up to, but not
# including, `offsets[s + 1]`. So there is one offset more than there are stars. The format **CSR** (compressed sparse row)
# stores the rows of a sparse matrix in the same way.
#
# Times are counted from the middle of the series, which halves the largest phase.

# %%
t = np.concatenate([curve.t[part] - curve.t[-1] / 2 for part in parts])
y = np.concatenate([curve.y[part] - curve.y[part].mean() for part in parts])
offsets = np.concatenate([[0], lengths.cumsum()])
offsets

# %% [markdown]
# How few measurements are enough? Here is the periodogram of every 16th measurement, then of every 64th.

# %%
cycles = np.linspace(1.0, 1.2, 2048)
draw_power(cycles, lombscargle(t[offsets[4] : offsets[5]], y[offsets[4] : offsets[5]], 2 * np.pi * cycles))

# %%
draw_power(cycles, lombscargle(t[offsets[6] : offsets[7]], y[offsets[6] : offsets[7]], 2 * np.pi * cycles))

# %% [markdown]
# Predict: in how many of the seven parts is the highest peak at the published period, the time from one dip to the
# next?

# %%
prediction = ...  # of 7 parts

# %%
best = [cycles[lombscargle(t[a:b], y[a:b], 2 * np.pi * cycles).argmax()] for a, b in pairwise(offsets)]
found = sum(abs(1 / each - curve.published_days) < 1e-3 for each in best)
compare(prediction, found, "parts", how="computed")

# %% [markdown]
# The two smallest parts miss it: 39 measurements are too few here, and so are 20.

# %% [markdown]
# ## Two axes
#
# A grid can have two axes. Let the first, x, go over the frequencies, and the second, y, over the stars: `blockIdx.y`
# is the star, and the row of `out`. All threads of a block then work on the same star. So they take the same number
# of steps, and read the same samples at the same time. The y axis has at most 65,535 blocks, so more stars need
# several launches.
#
# Blocks differ, though. Predict: how many times as long does a block of the longest star take as one of the shortest?

# %%
prediction = ...  # times as long

# %%
compare(prediction, round(float(lengths.max() / lengths.min()), 1), "times as long", how="computed")

# %% [markdown]
# If a block of the longest star starts last, the rest of the GPU waits for it. This is a **tail**, like the one in
# the last wave of a launch. It is the reason to start with the longest stars: the short ones then fill the gaps.

# %% [markdown]
# ## Exercise: search many stars
#
# Write Lomb's power of each star at each frequency into `out`, a matrix with one row per star. `t` and `y` are the
# samples of all stars, `offsets` has one int32 more than there are stars, and `freqs` are angular frequencies, the
# same for all stars. All arrays are contiguous, and all except `offsets` are float32. The values of each star have
# mean 0. A star may have few samples or none. One or two samples can always be fitted exactly, so their power means
# nothing: define it as **0**, also for no samples.
#
# 1. The kernel: its block's star, its thread's frequency, the five sums over the samples of this star, and the power.
#    You can take the lines from rung 3, with `float` for `$T` and `f` for `$f`. *(about 18 lines)*
# 2. The launch: 128 threads per block, enough blocks along x for all frequencies, and one row of blocks per star. In
#    CuPy the grid is then a tuple of two numbers, `(blocks, stars)`. `out.shape` is `(stars, frequencies)`. *(about 3
#    lines)*
#
# As in the last notebook, Numba, Triton and CUDA C++ with `load_inline` are accepted as well.

# %% nbgrader={"grade_id": "ls_stars", "solution": true}
import cupy as cp
import numpy as np

source = r"""
extern "C" __global__ void stars(const int count, const float* __restrict__ t, const float* __restrict__ y,
                                 const int* __restrict__ offsets, const float* __restrict__ freqs,
                                 float* __restrict__ out) {
    // BEGIN SOLUTION
    const int star = blockIdx.y, i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const int first = offsets[star], last = offsets[star + 1];
    const float w = freqs[i];
    float xc = 0, xs = 0, cc = 0, ss = 0, cs = 0;
    for (int j = first; j < last; ++j) {
        const float c = cosf(w * t[j]), s = sinf(w * t[j]);
        xc += y[j] * c;
        xs += y[j] * s;
        cc += c * c;
        ss += s * s;
        cs += c * s;
    }
    const float angle = 0.5f * atan2f(2.0f * cs, cc - ss), c = cosf(angle), s = sinf(angle), mixed = 2.0f * c * s * cs;
    const float along = c * xc + s * xs, across = c * xs - s * xc;
    const float power = 0.5f * (along * along / (c * c * cc + mixed + s * s * ss)
                              + across * across / (c * c * ss - mixed + s * s * cc));
    out[(size_t)star * count + i] = last - first < 3 ? 0.0f : power;
    // END SOLUTION
}
"""
kernel = cp.RawKernel(source, "stars")


def ls_stars(t, y, offsets, freqs, out):
    ### BEGIN SOLUTION
    stars, count = out.shape
    kernel((-(-count // 128), stars), (128,), (np.int32(count), t, y, offsets, freqs, out))
    ### END SOLUTION


# %% [markdown]
# `check` tries batches of one star and of many, stars of different lengths, and stars without samples.

# %% nbgrader={"grade_id": "check-ls_stars", "grade": true, "locked": true, "points": 6}
check(ls_stars)

# %% [markdown]
# ## Search the parts of the star
#
# Now launch it on your own batch. Which of the parts have the published period?

# %%
arguments = [cp.asarray(each.astype(np.float32)) for each in (t, y)]
arguments += [cp.asarray(offsets.astype(np.int32)), cp.asarray((2 * np.pi * cycles).astype(np.float32))]
out = cp.full((lengths.size, cycles.size), np.nan, dtype=cp.float32)
with contextlib.suppress(NotImplementedError):
    ls_stars(*arguments, out)
days = (1 / cycles[cp.asnumpy(out).argmax(axis=1)]).round(4) if np.isfinite(cp.asnumpy(out)).all() else "not written yet"
print(f"published: {curve.published_days:.4f}; found:", days)

# %% [markdown]
# ## Extra credit
#
# No points, but each of these shows something.
#
# 1. Start with the longest stars: sort them by length, and let `blockIdx.y` choose from the sorted list. With a GPU, time
#    a batch of your own in which the longest star comes last, with and without sorting.
#
# <details><summary>Answer</summary>
#
# `order = np.argsort(-lengths)` on the host, passed as one more array; the kernel reads `star = order[blockIdx.y]`.
# Blocks start roughly in the order of their index, so the longest no longer start last.
#
# </details>
#
# 2. With a GPU: launch one kernel per star, first on one stream, then on several (`cp.cuda.Stream`). How many stars does
#    it take until the batch is faster?
#
# <details><summary>Answer</summary>
#
# Several streams let kernels of different stars overlap, but the host still has to launch each of them. Plot the time of
# all three ways over the number of stars.
#
# </details>
#
# 3. Let one block work on several short stars, or several blocks share one long star. What do you have to add?
#
# <details><summary>Answer</summary>
#
# For short stars, divide the block's threads among several stars. For a long one, let each block compute sums over a
# part of its samples, and add these in a second step, before the power. The sums add up, the powers do not.
#
# </details>

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - stored series of different lengths one after another, with offsets
# - computed a batch of periodograms in one launch, with one axis of the grid for the stars
# - found out how few measurements of a star suffice, and why long series should start first
#
# ## Check yourself
#
# <details><summary>Why is there one offset more than there are stars?</summary>
#
# Star s ends where star s + 1 starts. The last star needs an end, too: the total number of samples.
#
# </details>
#
# <details><summary>Why do all threads of a block work on the same star?</summary>
#
# They loop over the same samples, so they take the same number of steps, and a warp reads one sample at a time. With
# different stars in a warp, short ones would wait for long ones.
#
# </details>
#
# <details><summary>What is wrong with one launch per star?</summary>
#
# A star with a few hundred samples uses only part of a GPU, and only for a short time. Launching the next kernel can take
# the host longer than that.
#
# </details>
#
# ## Read on
#
# - [nifty-ls](https://github.com/flatironinstitute/nifty-ls): batches of series on CPUs and GPUs, with another algorithm
# - [VanderPlas and Ivezić (2015)](https://arxiv.org/abs/1502.01344): periodograms of many stars in several colours
# - [Load balancing on GPUs](https://arxiv.org/abs/2301.04792): what to do if work items differ in length
#
# **Next:** you have reached the end of the course. The [syllabus](../README.ipynb) shows what is left to do.
