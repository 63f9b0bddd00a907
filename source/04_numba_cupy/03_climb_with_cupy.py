# %% [markdown]
# # Climb with CuPy
#
# **You will** climb the Lomb–Scargle ladder a second time, with kernels in CUDA C++ that CuPy compiles and launches.
#
# **You will learn**
#
# - what `cp.RawModule` does with a string, when it compiles, and what it keeps
# - in which type an argument reaches a kernel, and how a wrong one goes unnoticed
# - what a literal such as `2.0` costs, what `--use_fast_math` gives, and what it takes away
# - to build a kernel before the program runs, and to promise the compiler how it will be launched
#
# **You need** about 75 minutes and [Climb with Numba](02_climb_with_numba.ipynb). With an NVIDIA GPU you measure speed
# as well. Without one a stand-in for CuPy builds your kernels for the CPU, and every answer is checked there.

# %%
from grader import benchmark, check, device
from grader.explore import climb_cupy, compare, draw_fast_sine, load_cupy, nvrtc_view, published_ladder, recorded

cp = load_cupy()
device

# %%
import numpy as np

# %% [markdown]
# ## Hand a string to a compiler
#
# CuPy has NumPy's functions, on arrays in a GPU's memory. (`load_cupy` has imported it, or the stand-in.) It can also
# take CUDA C++ in a string: `cp.RawModule(code=…)` hands it to NVRTC, the compiler that NVIDIA ships as a library.
# There is no nvcc, no binding and no C++ around it: it takes a fraction of a second where `load_inline` takes many.
#
# `get_function` finds a kernel by its name. Only then is the string compiled. C++ writes types into names (it *mangles*
# them); `extern "C"` keeps the name as it is.

# %%
source = r"""
extern "C" __global__ void scale(const float* x, float* out, int n, float factor) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = factor * x[i];
}
"""
scale = cp.RawModule(code=source).get_function("scale")

# %% [markdown]
# A kernel is launched with a grid, a block, and a tuple of arguments. All three are tuples, so a single number has a
# comma behind it.

# %%
x = cp.arange(5, dtype=cp.float32)
out = cp.zeros(5, dtype=cp.float32)
scale((1,), (32,), (x, out, np.int32(5), np.float32(3)))
out

# %% [markdown]
# ## Bytes have no type
#
# Nobody compares the arguments with the parameters. CuPy puts each argument into memory: an array as its address, a
# number of NumPy's in its own type, an `int` of Python as 8 bytes, and a `float` of Python as a **double**. The driver
# then copies as many bytes as the kernel's parameter has.
#
# Below, the factor is Python's `1.5`. As a double its 8 bytes begin, from the low end, with four zeros. Predict: what
# does the kernel make of 1.5 · 4?

# %%
prediction = ...  # the last element, with a factor of 1.5 that is a Python float

# %%
scale((1,), (32,), (x, out, 5, 1.5))
compare(prediction, float(out[4]))

# %% [markdown]
# The kernel read the low four bytes of the double: a 0. (`5` worked by luck: the low bytes of a small `int` are the
# same number.) Nothing said so. **Pass numbers as `np.int32(…)` and `np.float32(…)`**, in the type that the
# parameter has.

# %% [markdown]
# ## Look at what comes out
#
# NVRTC needs no GPU to compile. `nvrtc_view` compiles a string for an H200 and shows what the compiler says: the
# registers of each kernel, and how many instructions of which kind there are.

# %%
nvrtc_view(source)

# %% [markdown]
# A register holds 4 bytes, and a thread has its own. A multiprocessor (SM) has 65,536 of them: what a kernel takes
# decides how many threads fit. Predict: how many threads of 64 registers fit?

# %%
prediction = ...  # threads of an SM, by their registers

# %%
compare(prediction, 65_536 // 64, "threads", how="computed")

# %% [markdown]
# That is one block of the largest size. An SM takes 2,048 threads at a time, and they fit if each has 32 registers or
# fewer.
#
# ## The ladder as it was published
#
# The rungs were published with figures of a V100, in milliseconds. With a GPU you can put your own
# beside them, at the end.

# %%
published_ladder("CuPy")

# %% [markdown]
# ## Exercise: climb with CuPy, rung 1
#
# Write Lomb's power at each of the frequencies into `out`. `t` and `y` are the samples, `freqs` are angular
# frequencies, `y` has mean 0. All four are contiguous arrays of float32, or all of float64. The formula is that of
# [Find a period](01_find_a_period.ipynb): five sums for each frequency, over all samples, then tau, then the power:
#
# $$\frac12\left[\frac{(c_\tau X_C + s_\tau X_S)^2}{c_\tau^2 C + 2 c_\tau s_\tau D + s_\tau^2 S} + \frac{(c_\tau X_S - s_\tau X_C)^2}{c_\tau^2 S - 2 c_\tau s_\tau D + s_\tau^2 C}\right]$$
#
# where X are the sums with `y`, C and S those of the squares, D that of cosine times sine, and tau is
# atan2(2 D, C - S) / (2 w). The c and s with a tau are the cosine and the sine of w tau.
#
# 1. The kernel: a grid-stride loop over the frequencies; in it a loop over the samples. *(about 20 lines)*
# 2. The function: put the type into the text with `source.substitute(T=…)`, build the module, find the function,
#    launch it with 128 threads a block and 20 blocks for each multiprocessor. *(5 lines)*
#
# `$T` in the text is what `substitute` replaces, by `float` or `double`. `cos`, `sin` and `atan2` take floats or doubles,
# but `atan2` not one of each: write `2 * D`, and not `2.0 * D`. (Rung 3 says why.)
# `cp.cuda.Device().attributes["MultiProcessorCount"]` is the number of multiprocessors.

# %% nbgrader={"grade_id": "ls_cupy_baseline", "solution": true}
from string import Template

import cupy as cp
import numpy as np

source = Template(r"""
extern "C" __global__ void lombscargle(const int samples, const int frequencies, const $T* __restrict__ t,
                                       const $T* __restrict__ y, const $T* __restrict__ freqs, $T* __restrict__ out) {
    // BEGIN SOLUTION
    const int first = blockIdx.x * blockDim.x + threadIdx.x, stride = blockDim.x * gridDim.x;
    for (int i = first; i < frequencies; i += stride) {
        const $T w = freqs[i];
        $T xc = 0, xs = 0, cc = 0, ss = 0, cs = 0;
        for (int j = 0; j < samples; ++j) {
            const $T c = cos(w * t[j]), s = sin(w * t[j]);
            xc += y[j] * c;
            xs += y[j] * s;
            cc += c * c;
            ss += s * s;
            cs += c * s;
        }
        const $T tau = atan2(2 * cs, cc - ss) / (2.0 * w);
        const $T c = cos(w * tau), s = sin(w * tau), mixed = 2.0 * c * s * cs;
        const $T along = c * xc + s * xs, across = c * xs - s * xc;
        out[i] = 0.5 * (along * along / (c * c * cc + mixed + s * s * ss)
                      + across * across / (c * c * ss - mixed + s * s * cc));
    }
    // END SOLUTION
}
""")


def ls_cupy_baseline(t, y, freqs, out):
    ### BEGIN SOLUTION
    code = source.substitute(T="float" if out.dtype == np.float32 else "double")
    kernel = cp.RawModule(code=code).get_function("lombscargle")
    blocks = 20 * cp.cuda.Device().attributes["MultiProcessorCount"]
    kernel((blocks,), (128,), (np.int32(t.size), np.int32(freqs.size), t, y, freqs, out))
    ### END SOLUTION


# %% [markdown]
# `check` runs the cell above in a process of its own, on few samples and many, and on both types.

# %% nbgrader={"grade_id": "check-ls_cupy_baseline", "grade": true, "locked": true, "points": 4}
check(ls_cupy_baseline)

# %% [markdown]
# ## Exercise: keep what was built, rung 2
#
# CuPy keeps what it has compiled, in memory and on disk. But it has to find it: with every call your function makes a
# text, a module and a function anew, and asks the driver for a number that never changes. Where a kernel is short, the
# host is what you wait for.
#
# Keep the kernel in `kernels`, a dict, under a key; and the number of blocks as well. *(about 6 lines)* Copy your
# kernel of rung 1.
#
# What does the compiled kernel depend on? A key that leaves some of it out finds the wrong kernel.

# %% nbgrader={"grade_id": "ls_cupy_cached", "solution": true}
from string import Template

import cupy as cp
import numpy as np

source = Template(r"""
extern "C" __global__ void lombscargle(const int samples, const int frequencies, const $T* __restrict__ t,
                                       const $T* __restrict__ y, const $T* __restrict__ freqs, $T* __restrict__ out) {
    // BEGIN SOLUTION
    const int first = blockIdx.x * blockDim.x + threadIdx.x, stride = blockDim.x * gridDim.x;
    for (int i = first; i < frequencies; i += stride) {
        const $T w = freqs[i];
        $T xc = 0, xs = 0, cc = 0, ss = 0, cs = 0;
        for (int j = 0; j < samples; ++j) {
            const $T c = cos(w * t[j]), s = sin(w * t[j]);
            xc += y[j] * c;
            xs += y[j] * s;
            cc += c * c;
            ss += s * s;
            cs += c * s;
        }
        const $T tau = atan2(2 * cs, cc - ss) / (2.0 * w);
        const $T c = cos(w * tau), s = sin(w * tau), mixed = 2.0 * c * s * cs;
        const $T along = c * xc + s * xs, across = c * xs - s * xc;
        out[i] = 0.5 * (along * along / (c * c * cc + mixed + s * s * ss)
                      + across * across / (c * c * ss - mixed + s * s * cc));
    }
    // END SOLUTION
}
""")
kernels = {}


def ls_cupy_cached(t, y, freqs, out):
    ### BEGIN SOLUTION
    if out.dtype not in kernels:
        code = source.substitute(T="float" if out.dtype == np.float32 else "double")
        blocks = 20 * cp.cuda.Device().attributes["MultiProcessorCount"]
        kernels[out.dtype] = cp.RawModule(code=code).get_function("lombscargle"), blocks
    kernel, blocks = kernels[out.dtype]
    kernel((blocks,), (128,), (np.int32(t.size), np.int32(freqs.size), t, y, freqs, out))
    ### END SOLUTION


# %% [markdown]
# The cases come in both types, one after the other: a key without the type finds the kernel of the other one.

# %% nbgrader={"grade_id": "check-ls_cupy_cached", "grade": true, "locked": true, "points": 4}
check(ls_cupy_cached)

# %% [markdown]
# ## Exercise: write one kernel a type, rung 3
#
# In C++ `2.0` is a double, and so is every product that it is part of: `2.0 * c * s * cs` is computed in double, and
# rounded back afterwards. On most GPUs doubles are 32 or 64 times slower, on an H200 two times.
#
# Copy your kernel, and leave no double in the float kernel: `cosf`, `sinf` and `atan2f` in place of `cos`, `sin` and
# `atan2` (`cos` of a float is `cosf` anyway, and the longer name shows it), and a suffix `f` behind each literal. `$f` in
# the text becomes `f` for float and nothing for double, if you write `source.substitute(T="float", f="f")`. *(about 25 lines)*

# %% nbgrader={"grade_id": "ls_cupy_typed", "solution": true}
from string import Template

import cupy as cp
import numpy as np

source = Template(r"""
extern "C" __global__ void lombscargle(const int samples, const int frequencies, const $T* __restrict__ t,
                                       const $T* __restrict__ y, const $T* __restrict__ freqs, $T* __restrict__ out) {
    // BEGIN SOLUTION
    const int first = blockIdx.x * blockDim.x + threadIdx.x, stride = blockDim.x * gridDim.x;
    for (int i = first; i < frequencies; i += stride) {
        const $T w = freqs[i];
        $T xc = 0, xs = 0, cc = 0, ss = 0, cs = 0;
        for (int j = 0; j < samples; ++j) {
            const $T c = cos$f(w * t[j]), s = sin$f(w * t[j]);
            xc += y[j] * c;
            xs += y[j] * s;
            cc += c * c;
            ss += s * s;
            cs += c * s;
        }
        const $T tau = atan2$f(2.0$f * cs, cc - ss) / (2.0$f * w);
        const $T c = cos$f(w * tau), s = sin$f(w * tau), mixed = 2.0$f * c * s * cs;
        const $T along = c * xc + s * xs, across = c * xs - s * xc;
        out[i] = 0.5$f * (along * along / (c * c * cc + mixed + s * s * ss)
                        + across * across / (c * c * ss - mixed + s * s * cc));
    }
    // END SOLUTION
}
""")
kernels = {}


def ls_cupy_typed(t, y, freqs, out):
    ### BEGIN SOLUTION
    if out.dtype not in kernels:
        names = {"T": "float", "f": "f"} if out.dtype == np.float32 else {"T": "double", "f": ""}
        blocks = 20 * cp.cuda.Device().attributes["MultiProcessorCount"]
        kernels[out.dtype] = cp.RawModule(code=source.substitute(names)).get_function("lombscargle"), blocks
    kernel, blocks = kernels[out.dtype]
    kernel((blocks,), (128,), (np.int32(t.size), np.int32(freqs.size), t, y, freqs, out))
    ### END SOLUTION


# %% [markdown]
# If the `$f` of a literal is missing, the power is right all the same. Where it costs something, the instructions tell:
# `nvrtc_view(source.substitute(T="float", f="f")).count("double")`. A few are left, in what `sinf` and `cosf` do with
# large angles.

# %% nbgrader={"grade_id": "check-ls_cupy_typed", "grade": true, "locked": true, "points": 4}
check(ls_cupy_typed)

# %% [markdown]
# What does a literal cost? NVRTC tells it without a GPU. Predict: in how many instructions does a double take part
# in `out[0] = 0.1 * x[0]`, with float arrays?

# %%
prediction = ...  # instructions that convert to double, multiply doubles, or convert back

# %%
scaled = 'extern "C" __global__ void f(const float* x, float* out) { out[0] = 0.1 * x[0]; }'
view = nvrtc_view(scaled)
compare(prediction, view.count("double"), "instructions", how=view.how)

# %% [markdown]
# One converts `x[0]`, one multiplies, one converts back. With `0.1f` it is a single multiplication of floats. And with
# `2.0`? Twice a float is exact either way, and the compiler knows it.

# %%
for literal in ("0.1", "0.1f", "2.0"):
    view = nvrtc_view(scaled.replace("0.1", literal))
    print(f"{literal:>5}: {view.count('double')} with doubles, of {len(view.instructions)} instructions")

# %% [markdown]
# The rung's literals stand outside of the loop over the samples. There they are executed once in a thousand sines, so
# little changes. A single one *inside* of that loop would be another matter.

# %% [markdown]
# ## Take sines from a unit of their own
#
# An accurate `sinf` reduces its angle to a quarter turn and evaluates a polynomial; large angles take a long branch of
# their own. The GPU also has a unit that does sines by itself, in one instruction: `MUFU.SIN`. `--use_fast_math` lets
# the compiler use it.

# %%
sine = 'extern "C" __global__ void f(const float* x, float* out) { out[0] = sinf(x[0]); }'
for options in ((), ("--use_fast_math",)):
    view = nvrtc_view(sine, *options)
    print(len(view.instructions), "instructions,", view.count("MUFU.SIN"), "of them MUFU.SIN", options)

# %% [markdown]
# The unit takes its angle in turns, as a float. 40 turns and a bit leave few digits for the bit. Predict: float32 numbers
# near 40 turns lie how many microturns apart? (A float32 has 24 binary digits.)

# %%
prediction = ...  # millionths of a turn

# %%
compare(prediction, float(np.spacing(np.float32(40.0))) * 1e6, "microturns", how="computed")

# %% [markdown]
# So the error grows with the angle:

# %%
draw_fast_sine()

# %% [markdown]
# The longer the series and the higher the frequency, the worse. Here the angles
# stay below 300, and the budget of the exercise allows for it: ⟦ "%.0e" | format(exercise("ls_cupy_fastmath").budget.absolute) ⟧
# of the number of samples. For a series of years, sampled for periods of minutes, it would not do.

# %% [markdown]
# ## Exercise: use fast math, rung 4
#
# Copy rung 3, and give NVRTC the option: `cp.RawModule(code=…, options=(…,))`. *(2 lines)* Nothing else changes.

# %% nbgrader={"grade_id": "ls_cupy_fastmath", "solution": true}
from string import Template

import cupy as cp
import numpy as np

source = Template(r"""
extern "C" __global__ void lombscargle(const int samples, const int frequencies, const $T* __restrict__ t,
                                       const $T* __restrict__ y, const $T* __restrict__ freqs, $T* __restrict__ out) {
    // BEGIN SOLUTION
    const int first = blockIdx.x * blockDim.x + threadIdx.x, stride = blockDim.x * gridDim.x;
    for (int i = first; i < frequencies; i += stride) {
        const $T w = freqs[i];
        $T xc = 0, xs = 0, cc = 0, ss = 0, cs = 0;
        for (int j = 0; j < samples; ++j) {
            const $T c = cos$f(w * t[j]), s = sin$f(w * t[j]);
            xc += y[j] * c;
            xs += y[j] * s;
            cc += c * c;
            ss += s * s;
            cs += c * s;
        }
        const $T tau = atan2$f(2.0$f * cs, cc - ss) / (2.0$f * w);
        const $T c = cos$f(w * tau), s = sin$f(w * tau), mixed = 2.0$f * c * s * cs;
        const $T along = c * xc + s * xs, across = c * xs - s * xc;
        out[i] = 0.5$f * (along * along / (c * c * cc + mixed + s * s * ss)
                        + across * across / (c * c * ss - mixed + s * s * cc));
    }
    // END SOLUTION
}
""")
kernels = {}


def ls_cupy_fastmath(t, y, freqs, out):
    ### BEGIN SOLUTION
    if out.dtype not in kernels:
        names = {"T": "float", "f": "f"} if out.dtype == np.float32 else {"T": "double", "f": ""}
        module = cp.RawModule(code=source.substitute(names), options=("--use_fast_math",))
        blocks = 20 * cp.cuda.Device().attributes["MultiProcessorCount"]
        kernels[out.dtype] = module.get_function("lombscargle"), blocks
    kernel, blocks = kernels[out.dtype]
    kernel((blocks,), (128,), (np.int32(t.size), np.int32(freqs.size), t, y, freqs, out))
    ### END SOLUTION


# %% [markdown]
# Without a GPU, the stand-in computes a fast sine as the GPU does: in turns that are floats.

# %% nbgrader={"grade_id": "check-ls_cupy_fastmath", "grade": true, "locked": true, "points": 4}
check(ls_cupy_fastmath)

# %% [markdown]
# ## Exercise: build it beforehand, rung 5
#
# The first call of each rung so far compiles. A program that runs for a second and is started a thousand times pays
# for it a thousand times, unless the cache on disk is there. nvcc can compile before: `nvcc --fatbin` writes a
# *fatbin*, a file with the machine code for the architectures that are asked for.
#
# When the cell runs, write the source to a file, with a kernel for each type, and have nvcc build it:
#
# `nvcc --fatbin --use_fast_math -arch=sm_90 -o lombscargle.fatbin lombscargle.cu`
#
# where 90 is `cp.cuda.Device().compute_capability`. The function then loads it with `cp.RawModule(path=…)`.
# *(about 11 lines)*
#
# `$name` in the text is for the kernel's name: one for each type. (Without a GPU, an `nvcc` that builds for the CPU
# stands in.)

# %% nbgrader={"grade_id": "ls_cupy_fatbin", "solution": true}
import subprocess
from pathlib import Path
from string import Template

import cupy as cp
import numpy as np

source = Template(r"""
extern "C" __global__ void $name(const int samples, const int frequencies, const $T* __restrict__ t,
                                 const $T* __restrict__ y, const $T* __restrict__ freqs, $T* __restrict__ out) {
    // BEGIN SOLUTION
    const int first = blockIdx.x * blockDim.x + threadIdx.x, stride = blockDim.x * gridDim.x;
    for (int i = first; i < frequencies; i += stride) {
        const $T w = freqs[i];
        $T xc = 0, xs = 0, cc = 0, ss = 0, cs = 0;
        for (int j = 0; j < samples; ++j) {
            const $T c = cos$f(w * t[j]), s = sin$f(w * t[j]);
            xc += y[j] * c;
            xs += y[j] * s;
            cc += c * c;
            ss += s * s;
            cs += c * s;
        }
        const $T tau = atan2$f(2.0$f * cs, cc - ss) / (2.0$f * w);
        const $T c = cos$f(w * tau), s = sin$f(w * tau), mixed = 2.0$f * c * s * cs;
        const $T along = c * xc + s * xs, across = c * xs - s * xc;
        out[i] = 0.5$f * (along * along / (c * c * cc + mixed + s * s * ss)
                        + across * across / (c * c * ss - mixed + s * s * cc));
    }
    // END SOLUTION
}
""")


### BEGIN SOLUTION
single = source.substitute(name="lombscargle_float32", T="float", f="f")
double = source.substitute(name="lombscargle_float64", T="double", f="")
Path("lombscargle.cu").write_text(single + double)
flags = ["--use_fast_math", f"-arch=sm_{cp.cuda.Device().compute_capability}", "-o", "lombscargle.fatbin"]
subprocess.run(["nvcc", "--fatbin", *flags, "lombscargle.cu"], check=True, capture_output=True, text=True)
### END SOLUTION
kernels = {}


def ls_cupy_fatbin(t, y, freqs, out):
    ### BEGIN SOLUTION
    if out.dtype not in kernels:
        blocks = 20 * cp.cuda.Device().attributes["MultiProcessorCount"]
        module = cp.RawModule(path="lombscargle.fatbin")
        kernels[out.dtype] = module.get_function(f"lombscargle_{out.dtype}"), blocks
    kernel, blocks = kernels[out.dtype]
    kernel((blocks,), (128,), (np.int32(t.size), np.int32(freqs.size), t, y, freqs, out))
    ### END SOLUTION


# %% [markdown]
# If nvcc finds an error, the report shows its line, as long as `subprocess.run` keeps what nvcc prints.

# %% nbgrader={"grade_id": "check-ls_cupy_fatbin", "grade": true, "locked": true, "points": 4}
check(ls_cupy_fatbin)

# %% [markdown]
# ## Exercise: promise how it is launched, rung 6
#
# The compiler does not know how large the blocks will be. It takes up to 255 registers a thread. A kernel that takes
# more than 64 cannot be launched with 1,024 threads a block: they would need more than an SM has.
#
# `__launch_bounds__(128)` promises that no block has more than 128 threads. For so few, 255 registers each are always
# there, so the compiler need not save any. It also knows how many such blocks fit on an SM. Whether that helps is another
# question. The kernel of this ladder wants few.
#
# The promise stands before the name: `extern "C" __global__ void __launch_bounds__(128) f(…)`.
#
# Keep fast math, and go back to `cp.RawModule(code=…)`: no fatbin here. This time let C++ write the two kernels. A
# `template <typename T>` function, marked `__device__`, does the work; two short kernels, `lombscargle_float32` and `lombscargle_float64`, promise 128 threads and call it. In the
# template the compiler chooses `cos` by the type of its argument. Literals: `T(2)` is a 2 of the right type.
# *(about 30 lines)*

# %% nbgrader={"grade_id": "ls_cupy_launch_bounds", "solution": true}
import cupy as cp
import numpy as np

source = r"""
template <typename T>
__device__ void lombscargle(const int samples, const int frequencies, const T* __restrict__ t,
                            const T* __restrict__ y, const T* __restrict__ freqs, T* __restrict__ out) {
    // BEGIN SOLUTION
    const int first = blockIdx.x * blockDim.x + threadIdx.x, stride = blockDim.x * gridDim.x;
    for (int i = first; i < frequencies; i += stride) {
        const T w = freqs[i];
        T xc = 0, xs = 0, cc = 0, ss = 0, cs = 0;
        for (int j = 0; j < samples; ++j) {
            const T c = cos(w * t[j]), s = sin(w * t[j]);
            xc += y[j] * c;
            xs += y[j] * s;
            cc += c * c;
            ss += s * s;
            cs += c * s;
        }
        const T tau = atan2(2 * cs, cc - ss) / (2 * w);
        const T c = cos(w * tau), s = sin(w * tau), mixed = 2 * c * s * cs;
        const T along = c * xc + s * xs, across = c * xs - s * xc;
        out[i] = (along * along / (c * c * cc + mixed + s * s * ss)
                + across * across / (c * c * ss - mixed + s * s * cc)) / 2;
    }
    // END SOLUTION
}

// BEGIN SOLUTION
extern "C" __global__ void __launch_bounds__(128) lombscargle_float32(
        const int samples, const int frequencies, const float* __restrict__ t, const float* __restrict__ y,
        const float* __restrict__ freqs, float* __restrict__ out) {
    lombscargle<float>(samples, frequencies, t, y, freqs, out);
}

extern "C" __global__ void __launch_bounds__(128) lombscargle_float64(
        const int samples, const int frequencies, const double* __restrict__ t, const double* __restrict__ y,
        const double* __restrict__ freqs, double* __restrict__ out) {
    lombscargle<double>(samples, frequencies, t, y, freqs, out);
}
// END SOLUTION
"""
kernels = {}


def ls_cupy_launch_bounds(t, y, freqs, out):
    ### BEGIN SOLUTION
    if out.dtype not in kernels:
        module = cp.RawModule(code=source, options=("--use_fast_math",))
        blocks = 20 * cp.cuda.Device().attributes["MultiProcessorCount"]
        kernels[out.dtype] = module.get_function(f"lombscargle_{out.dtype}"), blocks
    kernel, blocks = kernels[out.dtype]
    kernel((blocks,), (128,), (np.int32(t.size), np.int32(freqs.size), t, y, freqs, out))
    ### END SOLUTION


# %% [markdown]
# A launch that breaks the promise is refused.

# %% nbgrader={"grade_id": "check-ls_cupy_launch_bounds", "grade": true, "locked": true, "points": 4}
check(ls_cupy_launch_bounds)

# %% [markdown]
# ## How fast is it?
#
# Each rung has ⟦ gate("ls_cupy_baseline", "eager").points ⟧ points for speed. They ask for what the rung changes:
#
# | rung | at least | than |
# | --- | --- | --- |
# | raw module | ⟦ gate("ls_cupy_baseline", "eager").at_least ⟧ times as fast | ⟦ exercise("ls_cupy_baseline").baseline("eager").label ⟧ |
# | cache | ⟦ gate("ls_cupy_cached", "baseline").at_least ⟧ times as fast, on a small case | ⟦ exercise("ls_cupy_cached").baseline("baseline").label ⟧ |
# | one kernel a type | ⟦ gate("ls_cupy_typed", "accurate").at_least ⟧ times as fast | ⟦ exercise("ls_cupy_typed").baseline("accurate").label ⟧ |
# | fast math | ⟦ gate("ls_cupy_fastmath", "accurate").at_least ⟧ times as fast | ⟦ exercise("ls_cupy_fastmath").baseline("accurate").label ⟧ |
# | fatbin | ⟦ gate("ls_cupy_fatbin", "accurate").at_least ⟧ times as fast | ⟦ exercise("ls_cupy_fatbin").baseline("accurate").label ⟧ |
# | launch bounds | ⟦ gate("ls_cupy_launch_bounds", "fast").at_least ⟧ times as fast | ⟦ exercise("ls_cupy_launch_bounds").baseline("fast").label ⟧ |
#
# Predict for rung 4: how many times as fast as rung 3 is it?

# %%
prediction = ...  # times as fast, rung 4 against rung 3

# %%
benchmark(ls_cupy_baseline)

# %%
benchmark(ls_cupy_cached)

# %% [markdown]
# The first two are held against what they save: passes through memory, and requests to the driver. The second plot shows
# nothing of that: even at its left end the kernel takes longer than the host's part. The points are for a much smaller
# case, ⟦ gate("ls_cupy_cached", "baseline").cases | join(", ") ⟧.
#
# The next two change the kernel itself.

# %%
benchmark(ls_cupy_typed)

# %%
benchmark(ls_cupy_fastmath)

# %% [markdown]
# The last two change when it is built, and what the compiler is told.

# %%
benchmark(ls_cupy_fatbin)

# %%
benchmark(ls_cupy_launch_bounds)

# %% [markdown]
# And all of them side by side: the first call, a later call, registers, and the error against a power that was computed
# in float64.

# %%
climb_cupy(
    baseline=ls_cupy_baseline,
    cached=ls_cupy_cached,
    typed=ls_cupy_typed,
    fastmath=ls_cupy_fastmath,
    fatbin=ls_cupy_fatbin,
    launch_bounds=ls_cupy_launch_bounds,
)

# %% [markdown]
# (Rung 1 keeps no kernel that could be asked for its registers.)
#
# What the authors' rungs reached, for 2^20 frequencies. (The row *sincos* is for the next section. The ratio is against SciPy
# on the same machine's CPU, which was given 4,096 of the frequencies, and its time multiplied.)

# %%
recorded("ladder/cupy", "first_call_ms", "median_ms", "registers", "ratio_vs_scipy", "correct_digits")

# %% [markdown]
# Now explain, rung by rung:
#
# - **Cache.** The kernel is the same. What changes is the host's part, which a long kernel hides.
# - **One kernel a type.** The doubles stood outside of the inner loop: little to gain. In both tables the rung is even one
#   or two per cent slower. The loop over the samples has as many instructions as before, so this is not explained.
# - **Fast math.** Most of the time was the accurate sine and cosine. In double nothing changes: there is no unit for
#   sines of doubles.
# - **Fatbin.** The kernel is the same as before, and the first call is much shorter: nothing is compiled in it.
# - **Launch bounds.** The kernel takes few registers, so blocks of any size fit: the compiler had no use for the promise.
#   The first call is longer, since it compiles the kernels of both types.
#
# Is rung 6 a few per cent faster than its peer in your plot? That is not the promise. The peer's text differs a little, and
# so does its code. In the authors' table, where the texts are alike, rungs 4, 5 and 6 take the same time.

# %% [markdown]
# ## One more rung: both at once
#
# `sincosf(x, &s, &c)` computes sine and cosine together: the angle is reduced once, not twice.
# Predict: with fast math, how many fewer `MUFU` instructions does a loop have with `__sincosf` in place of `__sinf` and
# `__cosf`?

# %%
both = r"""extern "C" __global__ void f(const float* x, float* out) {
    float s, c; BOTH; out[0] = s; out[1] = c; }"""
apart = both.replace("BOTH", "s = __sinf(x[0]); c = __cosf(x[0])")
together = both.replace("BOTH", "__sincosf(x[0], &s, &c)")

# %%
prediction = ...  # MUFU instructions fewer

# %%
views = [nvrtc_view(text) for text in (apart, together)]
compare(prediction, views[0].count("MUFU") - views[1].count("MUFU"), "instructions", how=views[0].how)

# %% [markdown]
# None: the unit has one instruction for the sine and one for the cosine, and both are needed. In the published table
# `sincosf` changes nothing in float32 either, where fast math is on. On an H200 it was even slightly slower than rung 6
# (⟦ recorded(bench="ladder/cupy", case="sincos, float32", metric="median_ms", gpu="H200") ⟧ against
# ⟦ recorded(bench="ladder/cupy", case="launch_bounds, float32", metric="median_ms", gpu="H200") ⟧), though its loop has as
# many instructions. That is not explained.
#
# In float64 it helps (⟦ recorded(bench="ladder/cupy", case="sincos, float64", metric="median_ms", gpu="H200") ⟧ against
# ⟦ recorded(bench="ladder/cupy", case="launch_bounds, float64", metric="median_ms", gpu="H200") ⟧): there the reduction of
# the angle and much of the polynomials is shared. Try it: it is the extra credit below.

# %% [markdown]
# ## Extra credit
#
# No points, but each shows something. Change an exercise's cell, run it, and `check` it again, or `benchmark` it (with a
# GPU).
#
# 1. Use `sincos` in rung 6. What does `nvrtc_view(source, "--use_fast_math")` say of the float64 kernel's registers? With
#    a GPU, time both with float64 arrays: `cupyx.profiler.benchmark(ls_cupy_launch_bounds, arguments, n_repeat=50)`.
# 2. Pass `t.size` in place of `np.int32(t.size)`. Does it work? Then make the parameter a `long long` and pass
#    `np.int32`.
# 3. Make the template of the last rung a `__global__` function, leave out the two short kernels, and give `cp.RawModule`
#    `name_expressions=["lombscargle<float>", "lombscargle<double>"]`. `get_function` takes the same names.
# 4. Ask nvcc for two architectures: `-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90`. How large
#    is the file?

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - compiled CUDA C++ from a string and launched it with arrays of CuPy's
# - seen what the driver makes of a number in the wrong type
# - kept kernels by type, built them beforehand, and promised how they are launched
# - told what fast math gives, and where its error comes from
#
# ## Check yourself
#
# <details><summary>A kernel has a parameter <code>float step</code>, and is given <code>0.25</code>. What does it read?</summary>
#
# The low four bytes of the double 0.25: a 0. CuPy passes a Python float as a double; write `np.float32(0.25)`.
#
# </details>
#
# <details><summary>Why does the cache change nothing in the time of the large case?</summary>
#
# The host prepares the next launch while the GPU still works on the last one. Only where a kernel is shorter than its
# preparation does the GPU wait.
#
# </details>
#
# <details><summary>Why is fast math no faster in float64?</summary>
#
# The special-function unit works in float32. Sines of doubles are computed by polynomials either way.
#
# </details>
#
# <details><summary>A kernel is compiled with <code>__launch_bounds__(128)</code> and launched with 256 threads a block. What happens?</summary>
#
# The launch is refused, whether or not 256 threads would find registers enough.
#
# </details>
#
# **Next:** [Go past the ladder](04_go_past_the_ladder.ipynb), where you ask what limits the last rung, and get round it.
# Or go back to the [syllabus](../README.ipynb).
