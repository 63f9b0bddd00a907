# %% [markdown]
# # Find a period
#
# **You will** find out how long two stars take to orbit each other, from brightness measurements at uneven times. Then
# you will write the method yourself, in NumPy.
#
# **You will learn**
#
# - why an FFT cannot handle uneven samples, and what those samples can do that even ones cannot
# - what the Lomb–Scargle periodogram computes, and what its highest peak means
# - to look at the window function before you believe a peak
# - which library calls already do this work, on a CPU and on a GPU
# - to copy data to a GPU, to launch a kernel there, and to copy the result back
# - to name the parts of a program, so that a profile is easier to read
#
# **You need** about 60 minutes, NumPy and a little trigonometry, but no CUDA. A GPU is optional: with one, a library's GPU
# version runs as well.

# %%
import numpy as np
from scipy.signal import lombscargle

from grader import check, device
from grader.explore import compare, draw_folded, draw_power, draw_sampled, load_light_curve, recorded

device

# %% [markdown]
# ## Sample once per day
#
# A star brightens and dims 1.1 times per day. You measure it once per day, always at midnight. From one night to the
# next it goes through one full cycle and a tenth of another. The samples cannot show the full cycle.
#
# The next cells try it. An FFT of 200 nights has a peak at some frequency between 0 and 0.5 cycles per day. Predict:
# at which frequency?

# %%
prediction = ...  # cycles per day

# %%
nights = np.arange(200)
brightness = np.sin(2 * np.pi * 1.1 * nights)
spectrum = np.abs(np.fft.rfft(brightness))
cycles = np.fft.rfftfreq(nights.size, d=1.0)
compare(prediction, round(float(cycles[spectrum.argmax()]), 3), "cycles per day")

# %% [markdown]
# This is **aliasing**: evenly spaced samples cannot tell 1.1 from 0.1, 0.9, 2.1 and so on. Half the sampling rate, here
# 0.5 cycles per day, is the highest frequency that they can tell from its aliases (the **Nyquist frequency**).

# %% [markdown]
# Now measure at random times instead. An FFT assumes equal steps, so it does not apply. But you can still pick a
# frequency, fit a sine and a cosine to the samples, and ask how much of the signal the fit explains. Repeat that for
# every frequency of interest, and you have the **Lomb–Scargle periodogram**. SciPy has a function for it. It takes
# **angular** frequencies: $w = 2\pi f$.

# %%
random = np.random.default_rng(0)
t = np.sort(random.uniform(0, 200, size=200))
y = np.sin(2 * np.pi * 1.1 * t)
cycles = np.linspace(0.02, 2.5, 5000)
power = lombscargle(t, y, 2 * np.pi * cycles)
draw_power(cycles, power)

# %% [markdown]
# There is a single peak, and it is at the right frequency. Uneven samples are not a nuisance: they resolve the
# ambiguity.
#
# How high is a peak? The power is half the sum of squares that the fit explains. At the right frequency, the fit
# explains all of it. The squares of $N$ samples of a sine of amplitude $A$ add up to about $N A^2 / 2$. Predict: how
# high is the peak above?

# %%
prediction = ...  # the highest power

# %%
compare(prediction, round(float(power.max()), 1))

# %% [markdown]
# ### SciPy's function has changed
#
# Look at its parameters. All but the first three are keyword-only. Recent versions added some and deprecated others,
# and each of them changes the result: weights, a floating mean, other normalisations.

# %%
import inspect

for name, parameter in inspect.signature(lombscargle).parameters.items():
    print(f"{name}: {parameter.kind.description}")

# %% [markdown]
# If you test against a library, you test against whichever version is installed. So this course has its own reference:
# the formula of Lomb (1976) and Scargle (1982) in float64. It agrees with SciPy's default to well within the errors
# that `check` allows.

# %% [markdown]
# ## Look at a real star
#
# These are brightness measurements of a star in the Large Magellanic Cloud. The MACHO Project took them over more than
# seven years, whenever weather and moonlight allowed. The data are in the public domain.

# %%
curve = load_light_curve()
curve

# %% [markdown]
# Here are the first 300 measurements, about a year.

# %%
draw_sampled(curve.t, curve.y)

# %% [markdown]
# You cannot see a period. How many frequencies do you have to try? With measurements that span $T$ days, you can barely
# tell two frequencies apart if they differ by $1/T$. To be sure of hitting the top of a peak, take five frequencies per
# interval of $1/T$ (**oversampling** by 5).
#
# Predict: how many frequencies between 0 and 2 cycles per day is that, for this star? Its $T$ is `curve.t[-1]`.

# %%
prediction = ...  # frequencies

# %%
compare(prediction, round(5 * 2 * curve.t[-1]), "frequencies", how="computed")

# %% [markdown]
# Each frequency needs a sine and a cosine of each of the 1,235 samples: some 70 million in total, for a single star.
# The project observed tens of millions of stars.
#
# Here is the part from 0.5 to 1.5 cycles per day. Its 10,000 frequencies oversample by three to four, which is enough
# to see the peaks.

# %%
cycles = np.linspace(0.5, 1.5, 10_000)
power = lombscargle(curve.t, curve.y, 2 * np.pi * cycles)
draw_power(cycles, power)

# %% [markdown]
# One peak stands out. There are others, for example near 0.94. Are those periods, too? The next section answers that.
# First, predict from the picture: what is the period of the highest peak, in days?

# %%
prediction = ...  # days

# %%
period = 1 / cycles[power.argmax()]
compare(prediction, round(float(period), 4), "days")

# %% [markdown]
# ### Look at the window function
#
# Astronomers observe at night. So the sampling times are uneven, but not random: some hours of the day are more likely.
# To see the effect, compute the power of a *constant* signal, $|\sum_j e^{iwt_j}|^2 / N^2$. It depends only on the
# sampling times, and is called the **window function**.

# %%
around = np.linspace(0.9, 2.1, 6000)
window = np.abs(np.exp(2j * np.pi * around[:, None] * curve.t).mean(axis=1)) ** 2
draw_power(around, window, title="window")

# %% [markdown]
# It has a peak at one cycle per day, and another one at 1.0027. That is one cycle per *sidereal* day, the time in which
# the sky turns once. Near two cycles per day there are peaks at 2.0027 and 2.0054. Every real peak is repeated at
# these distances, but weaker. These copies are aliases: a peak at 1.067 has aliases near 0.067 and 2.067.
#
# A sine of frequency 1.067 is also a sine of frequency -1.067. Its aliases lie 2.0027 and 2.0054 above that, at 0.935
# and 0.938. These are the two peaks on the left.
#
# The peak on the right, at 1.134, is an alias of 2.134, which is twice the frequency: the star's brightness does not
# follow a pure sine.

# %% [markdown]
# ### Fold the light curve
#
# To test a period, **fold** the measurements: plot each one over its phase within that period. If the period is right,
# the points lie on a curve.

# %%
draw_folded(curve.t, curve.y, float(period))

# %% [markdown]
# There is one dip per period. But this star is an **eclipsing binary**: two stars that take turns hiding each other.
# If the two dips look alike, the true period is twice as long. The file comes from the tutorial of FATS, a Python
# library for light curves, which publishes the shorter period. Twice that gives this curve:

# %%
print(f"found: {2 * period:.5f} days, published: {2 * curve.published_days:.5f} days")
draw_folded(curve.t, curve.y, 2 * curve.published_days)

# %% [markdown]
# The line is the median. One dip is deeper than the other, so they are two different eclipses, and the longer period is
# that of the orbit.

# %% [markdown]
# ## Exercise: find a period with NumPy
#
# Now write the periodogram yourself. `t` and `y` are the samples, `freqs` are angular frequencies; all are float64
# vectors. Return the unnormalised power, one value per frequency. The mean of `y` is 0, and no frequency is 0.
#
# Let $c_j = \cos w t_j$ and $s_j = \sin w t_j$. For each frequency $w$ you need these sums:
#
# $$ X_c = \sum y_j c_j,\quad X_s = \sum y_j s_j,\quad C = \sum c_j^2,\quad S = \sum s_j^2,\quad D = \sum c_j s_j $$
#
# On uneven samples, sine and cosine are not orthogonal: $D$ is not 0. Shifting time by $\tau$ makes them orthogonal:
#
# $$ 2w\tau = \text{atan2}(2D,\; C - S) $$
#
# Half of this angle is $w\tau$: do not multiply it by $w$ again. With $c = \cos w\tau$ and $s = \sin w\tau$, the
# power is
#
# $$ P = \frac12\left(\frac{(c X_c + s X_s)^2}{c^2 C + 2cs D + s^2 S}
# + \frac{(c X_s - s X_c)^2}{c^2 S - 2cs D + s^2 C}\right) $$
#
# Let NumPy run the loops: `freqs[:, None] * t` is a matrix with one row per frequency. *(about 9 lines)*

# %% nbgrader={"grade_id": "periodogram_numpy", "solution": true}
import numpy as np


def periodogram_numpy(t, y, freqs):
    ### BEGIN SOLUTION
    phase = freqs[:, None] * t
    cosine, sine = np.cos(phase), np.sin(phase)
    xc, xs = cosine @ y, sine @ y
    cc, ss, cs = (cosine**2).sum(axis=1), (sine**2).sum(axis=1), (cosine * sine).sum(axis=1)
    angle = np.arctan2(2 * cs, cc - ss) / 2
    c, s = np.cos(angle), np.sin(angle)
    along = (c * xc + s * xs) ** 2 / (c**2 * cc + 2 * c * s * cs + s**2 * ss)
    across = (c * xs - s * xc) ** 2 / (c**2 * ss - 2 * c * s * cs + s**2 * cc)
    return (along + across) / 2
    ### END SOLUTION


# %% [markdown]
# `check` runs the cell above in its own process, on signals that you have not seen. If you get a `NameError`, run the
# exercise's cell first.

# %% nbgrader={"grade_id": "check-periodogram_numpy", "grade": true, "locked": true, "points": 4}
check(periodogram_numpy)

# %% [markdown]
# ## Look for a library first
#
# Before you write a kernel, look for one. CuPy has most of SciPy's signal functions on the GPU, including this one:
# `cupyx.scipy.signal.lombscargle`. It takes three lines, and you write no kernel. Likewise, cuDF can replace pandas,
# cuML can replace scikit-learn, and cuGraph can replace NetworkX.

# %%
import warnings
from importlib.util import find_spec

warnings.simplefilter("ignore", FutureWarning)  # CuPy warns about a part of itself that is not used here

# %%
if device == "cuda" and find_spec("cupy"):
    import cupy
    from cupyx.scipy.signal import lombscargle as on_gpu

    result = on_gpu(*map(cupy.asarray, (curve.t, curve.y, 2 * np.pi * cycles)))
    print("largest difference from SciPy:", float(abs(result.get() - power).max()))
else:
    print("CuPy needs a GPU, and this machine has none.")

# %% [markdown]
# If that is fast enough for you, you are done. The chapter continues because your own kernel can be faster, above
# all in float32, and because each step teaches something that holds for every kernel. Other algorithms are faster
# still: the chapter's last notebook ends with what you would use in practice.
#
# The course's authors recorded these times for 1,024 samples and 16,384 frequencies in float64. SciPy and NumPy ran on
# the machine's CPU. *torch* computes the exercise's sums on the GPU with tensor operations.

# %%
recorded("periods", "median_ms", "ratio_vs_scipy")

# %% [markdown]
# ## Launch a kernel on your own data
#
# The rest of the chapter is about kernels that you write. A GPU runs a kernel in many **threads** at once. Threads are
# grouped into **blocks** of equal size, and all blocks of a launch form the **grid**.
#
# Here is a small kernel in Numba: it computes the phase of each measurement, so that the light curve can be folded. Each
# thread takes one measurement. `load_numba_cuda` gives you Numba's simulator if there is no GPU.

# %%
from grader.explore import load_numba_cuda

cuda = load_numba_cuda()


@cuda.jit
def phase_kernel(t, period, phase):
    i = cuda.grid(1)  # the thread's index in the grid
    if i < t.size:
        phase[i] = t[i] / period % 1.0

# %% [markdown]
# A kernel works on arrays in GPU memory. So there are three steps: copy the data to the GPU, launch the kernel there,
# and copy the result back. The brackets say how many blocks to launch, and how many threads per block. A block of 128
# threads is a usual choice. Predict: how many blocks are needed for all 1,235 measurements?

# %%
prediction = ...  # blocks of 128 threads

# %%
blocks = -(-curve.t.size // 128)  # rounded up
compare(prediction, blocks, "blocks", how="computed")

# %%
t = cuda.to_device(curve.t)
phase = cuda.device_array_like(t)
phase_kernel[blocks, 128](t, 2 * curve.published_days, phase)
abs(phase.copy_to_host() - curve.t / (2 * curve.published_days) % 1).max()  # difference from NumPy

# %% [markdown]
# Ten blocks have 1,280 threads, more than there are measurements. The `if` in the kernel keeps the threads that are left
# over from writing past the end of the array.
#
# On a GPU, the launch returns at once, before the kernel has finished; `copy_to_host` waits for it. This kernel does a
# single division per number, so expect the copies to take longer than the kernel. A periodogram computes thousands of
# sines per number, so there the copies hardly count.

# %% [markdown]
# ## Name the parts
#
# If a program calls several libraries, names make its profile easier to read. An **NVTX range** is such a name: your
# program marks where it begins and ends. Nsight Systems, a profiler from NVIDIA, draws it as a bar above the kernels that
# were launched within it. In PyTorch, a range is a context manager. CuPy has one as well, `cupyx.profiler.time_range`.

# %%
import contextlib

import torch

named = torch.cuda.nvtx.range if device == "cuda" else contextlib.nullcontext
with named("scipy"):
    lombscargle(curve.t, curve.y, 2 * np.pi * cycles[:100])

# %% [markdown]
# On a GPU machine, `nsys profile --trace=cuda,nvtx python your_script.py` records the ranges. Without a profiler, a
# range costs next to nothing, so you can leave it in the program. The one above surrounds a call on the CPU, so there
# are no kernels below its bar.

# %% [markdown]
# ## Extra credit
#
# No points, but each of these shows something.
#
# 1. Run your `periodogram_numpy` on the star, and compare it with SciPy's power.
#
# <details><summary>Answer</summary>
#
# `abs(periodogram_numpy(curve.t, curve.y, 2 * np.pi * cycles) - power).max()` is a rounding error of float64.
#
# </details>
#
# 2. Take 10,000 frequencies from 1.5 to 2.5 cycles per day. Where are the aliases?
#
# <details><summary>Answer</summary>
#
# Near 2.067, 1.935 and 1.938: the distances from 1.067 and from -1.067 are peaks of the window function. The peak at
# 2.134 is real: it is twice the frequency.
#
# </details>
#
# 3. Leave $\tau$ out. How much does the peak change, for this star and for 20 random samples?
#
# <details><summary>Answer</summary>
#
# By less than 1 % for the star: with 1,235 samples, $D$ is small compared with $C$ and $S$. With 20 samples it is often
# a few per cent.
#
# </details>
#
# 4. Shuffle `curve.y` and compute the periodogram again, a few times. How high is the highest peak by chance alone?
#
# <details><summary>Answer</summary>
#
# Far below the star's peak. The level that chance alone reaches in 1 % of the shuffles is a *false-alarm level*, and
# shuffling is one way to estimate it.
#
# </details>

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - seen that evenly spaced samples cannot tell some frequencies apart, and that uneven ones can
# - found the period of a binary star, and tested it with the window function and by folding
# - counted how many sines a search for a period needs
# - written the Lomb–Scargle periodogram in NumPy, and checked it
# - looked for a library function before writing a kernel
# - launched a kernel on data of your own
#
# ## Check yourself
#
# <details><summary>Samples are taken once per day. Which other frequencies look like 0.3 cycles per day?</summary>
#
# Frequencies that differ from it by a whole number, such as 1.3 or 2.3, and the mirror images 0.7, 1.7 and so on.
#
# </details>
#
# <details><summary>What is the shift tau for?</summary>
#
# It makes sine and cosine orthogonal on the given samples. Then the power is the sum of two independent fits, and it
# stays the same if all times are shifted by the same amount.
#
# </details>
#
# <details><summary>A periodogram has a second peak, at 1 minus the frequency of the first. What do you suspect?</summary>
#
# An alias caused by sampling at night. Look at the window function: if it has a peak at one cycle per day, the second
# peak is a copy of the first.
#
# </details>
#
# <details><summary>Why do you need more frequencies if the measurements span more time?</summary>
#
# Peaks get narrower: their width is about one over the time span. If the steps are too wide, a peak falls between two
# of them.
#
# </details>
#
# ## Read on
#
# - [Understanding the Lomb–Scargle Periodogram](https://arxiv.org/abs/1703.09824) (VanderPlas, 2018): windows, aliases
#   and false alarms, in pictures
# - [`scipy.signal.lombscargle`](https://docs.scipy.org/doc/scipy/reference/generated/scipy.signal.lombscargle.html): its
#   parameters and their history
# - [The MACHO Project](https://wwwmacho.anu.edu.au/): where the star's data come from
#
# **Next:** [Climb with Numba](02_climb_with_numba.ipynb), where the periodogram becomes a kernel. Or go back to the
# [syllabus](../README.ipynb).
