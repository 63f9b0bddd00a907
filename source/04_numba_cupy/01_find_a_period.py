# %% [markdown]
# # Find a period
#
# **You will** find out how long two stars take to go around each other, from measurements at uneven times. Then you
# write the method yourself, in NumPy.
#
# **You will learn**
#
# - why uneven samples are no use for an FFT, and what they are good for
# - what the Lomb–Scargle periodogram computes, and what its peak says
# - to look at the window before you believe a peak
# - which library calls do the work for you, on a CPU and on a GPU
# - to put names on the parts of a program, for a profiler
#
# **You need** about 60 minutes. A GPU is not needed: with one, one more cell has something to show.

# %%
import numpy as np
from scipy.signal import lombscargle

from grader import check, device
from grader.explore import compare, draw_folded, draw_power, draw_sampled, load_light_curve, recorded

device

# %% [markdown]
# ## Sample once a day
#
# A star dims and brightens 1.1 times a day. You look at it once a day, always at midnight. From night to night, it has
# gone once around, and a tenth of a turn more. The whole turn does not show.
#
# The next cells measure that. An FFT of 200 nights has a peak at some frequency between 0 and 0.5 cycles a day.
# Predict: at which?

# %%
prediction = ...  # cycles a day

# %%
nights = np.arange(200)
brightness = np.sin(2 * np.pi * 1.1 * nights)
spectrum = np.abs(np.fft.rfft(brightness))
cycles = np.fft.rfftfreq(nights.size, d=1.0)
compare(prediction, round(float(cycles[spectrum.argmax()]), 3), "cycles a day")

# %% [markdown]
# This is *aliasing*: evenly spaced samples cannot tell 1.1 from 0.1, 0.9, 2.1 and so on.

# %% [markdown]
# Now look at random moments instead. An FFT is of no use there: it takes equal steps for granted. But for each
# frequency, a sine and a cosine can be fitted to the samples. How much of them does the fit explain? This is what the
# Lomb–Scargle periodogram says. SciPy has it.
#
# Its frequencies are *angular*: $w = 2\pi f$.

# %%
random = np.random.default_rng(0)
t = np.sort(random.uniform(0, 200, size=200))
y = np.sin(2 * np.pi * 1.1 * t)
cycles = np.linspace(0.02, 2.5, 5000)
power = lombscargle(t, y, 2 * np.pi * cycles)
draw_power(cycles, power)

# %% [markdown]
# There is one peak, at the right frequency. Uneven samples are no nuisance: they remove the doubt.
#
# How high is a peak? The power is half the sum of squares that the fit explains. At the right frequency it explains
# all of it here. The squares of $N$ samples of a sine of amplitude $A$ add up to about $N A^2 / 2$. Predict: how high
# is the peak?

# %%
prediction = ...  # the highest power

# %%
compare(prediction, round(float(power.max()), 1))

# %% [markdown]
# ### SciPy's function has changed
#
# Look at its parameters. All but the first three must be given by name. Some were added in the last years, some go
# away, and each changes the numbers: weights, a floating mean, other normalisations.

# %%
import inspect

for name, parameter in inspect.signature(lombscargle).parameters.items():
    print(f"{name}: {parameter.kind.description}")

# %% [markdown]
# A program that is checked against a library is checked against the version that happens to be installed. So this
# course brings its own reference: the same formula, in float64, written down once. It follows Lomb (1976) and Scargle
# (1982), and agrees with SciPy's default to all digits that matter.

# %% [markdown]
# ## Look at a real star
#
# This is the brightness of a star in the Large Magellanic Cloud. The MACHO Project measured it, whenever weather and
# moon allowed, for more than seven years. The data are in the public domain.

# %%
curve = load_light_curve()
curve

# %% [markdown]
# Here are the first 300 of them, about a year.

# %%
draw_sampled(curve.t, curve.y)

# %% [markdown]
# No period can be seen. How many frequencies must be tried? Over a span of $T$ days, two frequencies that differ by
# $1/T$ can just be told apart. To be sure to hit the top of a peak, take five frequencies in each such step.
#
# Predict: how many frequencies between 0 and 2 cycles a day is that, for this star?

# %%
prediction = ...  # frequencies

# %%
compare(prediction, round(5 * 2 * curve.t[-1]), "frequencies", how="computed")

# %% [markdown]
# Each of them needs a sine and a cosine of each of the 1,235 samples: that is some 70 million of them. For one star. The
# project measured tens of millions.
#
# Here is a part, from 0.5 to 1.5 cycles a day. With 10,000 frequencies there are between three and four in each step, which
# is enough to see the peaks.

# %%
cycles = np.linspace(0.5, 1.5, 10_000)
power = lombscargle(curve.t, curve.y, 2 * np.pi * cycles)
draw_power(cycles, power)

# %% [markdown]
# One peak stands out. But there are others, near 0.94 for example. Are these periods as well? The next section answers
# that. First, predict from the picture: what period, in days, has the highest peak?

# %%
prediction = ...  # days

# %%
period = 1 / cycles[power.argmax()]
compare(prediction, round(float(period), 4), "days")

# %% [markdown]
# ### Look at the window
#
# Stars are seen at night. So the samples are uneven, but not random: they prefer certain hours. To see what that does,
# ask for the power of a signal that is *constant*: $|\sum_j e^{iwt_j}|^2 / N^2$. This is called the *window*.

# %%
around = np.linspace(0.9, 2.1, 6000)
window = np.abs(np.exp(2j * np.pi * around[:, None] * curve.t).mean(axis=1)) ** 2
draw_power(around, window, title="window")

# %% [markdown]
# It peaks at one cycle a day, and close beside it at 1.0027, one a *sidereal* day: the turn of the sky over the
# observer. It peaks again near two, at
# 2.0027 and 2.0054. Every real peak is repeated at these distances, weaker: one at 1.067 has ghosts near 0.067 and
# 2.067.
#
# A sine of frequency 1.067 is one of -1.067 as well. Its ghosts 2.0027 and 2.0054 above that lie at 0.935 and 0.938.
# These are the two peaks on the left.
#
# The one on the right, at 1.134, is the ghost of 2.134: twice the frequency. The star does not dim as a sine does.

# %% [markdown]
# ### Fold
#
# A period is tested by folding: draw each sample over its phase in that period. If the period is right, the points
# fall on a curve.

# %%
draw_folded(curve.t, curve.y, float(period))

# %% [markdown]
# A dip, once in each period. But this is an *eclipsing binary*: two stars, which hide each other in turn. If both dips
# look alike, the true period is twice as long. The tutorial of FATS, a Python library for such
# curves, where this file is from, folds it so.

# %%
print(f"found: {2 * period:.5f} days, published: {2 * curve.published_days:.5f} days")
draw_folded(curve.t, curve.y, 2 * curve.published_days)

# %% [markdown]
# The two dips differ a little: it is two stars.

# %% [markdown]
# ## Exercise: find a period with NumPy
#
# Write the periodogram yourself. `t` and `y` are the samples, `freqs` are angular frequencies: float64 vectors. Return
# the power, not normalised, one value a frequency. The mean of `y` is 0, and no frequency is 0.
#
# For each frequency $w$ these sums are needed, with $c_j = \cos w t_j$ and $s_j = \sin w t_j$:
#
# $$ X_c = \sum y_j c_j,\quad X_s = \sum y_j s_j,\quad C = \sum c_j^2,\quad S = \sum s_j^2,\quad D = \sum c_j s_j $$
#
# On uneven samples sine and cosine are not orthogonal: $D$ is not 0. A shift in time by $\tau$ makes them so:
#
# $$ \tan 2w\tau = \frac{2D}{C - S} $$
#
# Any $\tau$ that solves this will do. With $c = \cos w\tau$ and $s = \sin w\tau$ the power is
#
# $$ P = \frac12\left(\frac{(c X_c + s X_s)^2}{c^2 C + 2cs D + s^2 S}
# + \frac{(c X_s - s X_c)^2}{c^2 S - 2cs D + s^2 C}\right) $$
#
# Let NumPy do the loops: `freqs[:, None] * t` is a matrix with a row for each frequency. *(about 9 lines)*

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
# `check` runs the cell above in a process of its own, on signals that you have not seen. A `NameError`? Run the
# exercise's cell first.

# %% nbgrader={"grade_id": "check-periodogram_numpy", "grade": true, "locked": true, "points": 4}
check(periodogram_numpy)

# %% [markdown]
# ## Take what is free
#
# Before you write a kernel, look for one. CuPy has most of SciPy's signal functions on the GPU, this one among them:
# `cupyx.scipy.signal.lombscargle`. Three lines, and no kernel.

# %%
import warnings
from importlib.util import find_spec

warnings.simplefilter("ignore", FutureWarning)  # CuPy warns of a part of itself that is not used here

# %%
if device == "cuda" and find_spec("cupy"):
    import cupy
    from cupyx.scipy.signal import lombscargle as on_gpu

    free = on_gpu(*map(cupy.asarray, (curve.t, curve.y, 2 * np.pi * cycles)))
    print("largest difference to SciPy:", float(abs(free.get() - power).max()))
else:
    print("CuPy needs a GPU: there is none here.")

# %% [markdown]
# If this is fast enough for you, you are done. The chapter goes on because a kernel of your own can be faster still, above
# all in float32, and because each step teaches something that holds for every kernel.
#
# This is what the authors recorded, for 1,024 samples and 16,384 frequencies in float64. SciPy and NumPy ran on the
# machine's CPU. *torch* is the exercise's sums once more, on the GPU, as operations on tensors.

# %%
recorded("periods", "median_ms", "ratio_vs_scipy")

# %% [markdown]
# ## Name the parts
#
# A profile of a program that calls several libraries is easier to read with names in it. An *NVTX range* is such a name:
# it begins and ends where your program says, and Nsight Systems shows it as a bar over the kernels that were launched
# in it. PyTorch has them as a context manager.

# %%
import contextlib

import torch

named = torch.cuda.nvtx.range if device == "cuda" else contextlib.nullcontext
with named("scipy"):
    lombscargle(curve.t, curve.y, 2 * np.pi * cycles[:100])

# %% [markdown]
# On a GPU machine, `nsys profile --trace=cuda,nvtx python your_script.py` records them. Without a profiler attached,
# a range costs next to nothing, so it can stay in the program. (This one holds a call on the CPU: a bar with no kernel.)

# %% [markdown]
# ## Extra credit
#
# No points, but each shows something.
#
# 1. Run your `periodogram_numpy` on the star, and compare it with SciPy's power.
# 2. Take 10,000 frequencies from 1.5 to 2.5 cycles a day. Where are the ghosts?
# 3. Leave $\tau$ out. How much does the peak change, for this star and for 20 random samples?
# 4. Shuffle `curve.y` and take the periodogram again, a few times. How high is the highest peak by chance alone?

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - seen that evenly spaced samples cannot tell some frequencies apart, and that uneven ones can
# - found the period of two stars, and checked it against the window and by folding
# - counted what a search for a period costs
# - written the Lomb–Scargle periodogram in NumPy, and had it checked
# - looked for a free solution before writing a kernel
#
# ## Check yourself
#
# <details><summary>Samples are taken once a day. Which other frequencies look like 0.3 cycles a day?</summary>
#
# All that differ by a whole number, 1.3 or 2.3, and the mirror images 0.7, 1.7 and so on.
#
# </details>
#
# <details><summary>What is the shift tau good for?</summary>
#
# It makes sine and cosine orthogonal on the samples at hand. Then the power is the sum of two independent fits, and a
# shift of all times does not change it.
#
# </details>
#
# <details><summary>A periodogram has a second peak, at 1 minus the frequency of the first. What do you suspect?</summary>
#
# A ghost from sampling at night. Look at the window: if it has a peak at one cycle a day, the second peak is an image of
# the first.
#
# </details>
#
# <details><summary>Why does the number of frequencies to be tried grow with the span of the measurements?</summary>
#
# Peaks get narrower: their width is about one over the span. With steps that are too wide, one falls between them.
#
# </details>
#
# **Next:** [Climb with Numba](02_climb_with_numba.ipynb), where the periodogram becomes a kernel. Or go back to the
# [syllabus](../README.ipynb). Both lie in the course's folder.
