# %% [markdown]
# # Climb with CuPy
#
# **You will** climb the Lomb–Scargle ladder a second time, with kernels in CUDA C++ that CuPy compiles and launches.
#
# **You will learn**
#
# - what `cp.RawModule` does with a string, when it compiles it, and what it keeps
# - which type an argument has when it reaches a kernel, and how a wrong type goes unnoticed
# - what a literal such as `2.0` costs, and what `--use_fast_math` gains and loses
# - to build a kernel before the program runs, and to tell the compiler how it will be launched
#
# **You need** about 100 minutes, [Climb with Numba](02_climb_with_numba.ipynb), and a little C++, as in
# [Square a matrix](../02_load_inline/01_square_a_matrix.ipynb). With an NVIDIA GPU you also measure speed. Without one,
# a replacement for CuPy builds your kernels for the CPU, and `check` reads what a compiler makes of them for a GPU.

# %%
from grader import benchmark, check, continue_from, device
from grader.explore import climb_cupy, compare, draw_fast_sine, load_cupy, nvrtc_view, published_ladder, recorded

cp = load_cupy()
device

# %%
import numpy as np

# %% [markdown]
# ## Give a string to a compiler
#
# CuPy has NumPy's functions for arrays in GPU memory. Above, `load_cupy` imported CuPy, or its replacement. CuPy also
# takes CUDA C++ as a string: `cp.RawModule(code=…)` passes it to **NVRTC**, NVIDIA's compiler as a library. There is no
# nvcc, no binding and no host C++, so it takes a fraction of a second, where `load_inline` takes many seconds.
#
# `get_function` finds a kernel by its name. Only then is the string compiled. C++ encodes parameter types in names
# (**name mangling**); `extern "C"` keeps the name as it is.

# %%
source = r"""
extern "C" __global__ void scale(const float* x, float* out, int n, float factor) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = factor * x[i];
}
"""
scale = cp.RawModule(code=source).get_function("scale")

# %% [markdown]
# A launch takes three tuples: the grid, the block, and the arguments in the order of the kernel's parameters. A tuple of
# one number needs a comma. `cp.asarray` copies a NumPy array to the GPU, and `cp.asnumpy` copies a result back.

# %%
x = cp.asarray(np.arange(5, dtype=np.float32))
out = cp.zeros_like(x)
scale((1,), (32,), (x, out, np.int32(5), np.float32(3)))
cp.asnumpy(out)

# %% [markdown]
# ## Bytes have no type
#
# Nothing compares the arguments with the parameters. CuPy passes an array as its address, and a NumPy scalar in
# its own type. It passes a Python `int` as 8 bytes, and a Python `float` as a **double**. The driver then copies as many
# bytes as the kernel's parameter has.
#
# Below, the factor is Python's `1.5`. As a double, it has 8 bytes, and the low four are all zero. Predict: what does the
# kernel return for 1.5 · 4?

# %%
prediction = ...  # the last element, with a factor of 1.5 that is a Python float

# %%
scale((1,), (32,), (x, out, 5, 1.5))
compare(prediction, float(out[4]))

# %% [markdown]
# The kernel read the low four bytes of the double: a 0. The `5` worked by luck, because the low bytes of a small `int`
# are the same number. Nothing reported an error. **Pass numbers as `np.int32(…)` and `np.float32(…)`**, in the type of
# the parameter.

# %% [markdown]
# ## Which way to take
#
# You do not always need a whole kernel. `cp.ElementwiseKernel` takes only the line that computes one element; CuPy adds
# the index, the bounds, broadcasting and the types of its arrays. It converts numbers to the parameter's type, so here a
# Python float would be as safe as the `np.float32` below.

# %%
scale_each = cp.ElementwiseKernel("T x, T factor", "T out", "out = factor * x", "scale_each") if device == "cuda" else None
"needs a GPU" if scale_each is None else scale_each(x, np.float32(1.5))

# %% [markdown]
# | to write | use | you get, and you give up |
# | --- | --- | --- |
# | array operations | CuPy's NumPy and SciPy functions | no kernel to write; each operation passes over memory |
# | one formula per element | `cp.ElementwiseKernel`, `cp.fuse` | one pass over memory; no shared memory, no loops over others |
# | a kernel in Python | Numba, or `cupyx.jit` | quick to write; less control, as the last notebook showed |
# | a kernel in C++ | `cp.RawKernel`, `cp.RawModule` | all of CUDA C++; you check types and bounds yourself |
# | an operator for PyTorch | `load_inline` | autograd and `torch.compile`; a slow build |
#
# For this ladder you take the fourth row.

# %% [markdown]
# ## Look at the compiled code
#
# NVRTC compiles without a GPU. `nvrtc_view` compiles a string for an H200. It shows the registers of each kernel, and how
# many instructions of each kind its machine code (SASS) has.

# %%
nvrtc_view(source)

# %% [markdown]
# A register holds 4 bytes, and belongs to one thread. A multiprocessor (SM) has 65,536 of them, so the registers of a
# kernel limit how many threads fit. Predict: how many threads with 64 registers fit?

# %%
prediction = ...  # threads of an SM, by their registers

# %%
compare(prediction, 65_536 // 64, "threads", how="computed")

# %% [markdown]
# That is one block of the largest size. An SM of an H200 holds at most 2,048 threads, which fit if each has 32 registers
# or fewer.
#
# ## The published ladder
#
# These are the rungs as published, measured on a V100. The last columns show what the course's rungs take today. With a
# GPU, you can compare your own at the end.

# %%
published_ladder("CuPy")

# %% [markdown]
# ## Exercise: climb with CuPy, rung 1
#
# Write Lomb's power at each of the frequencies into `out`. `t` and `y` are the samples, `freqs` are angular
# frequencies, `y` has mean 0. All four arrays are contiguous, and all are float32 or all float64. The formula is the
# one from [Find a period](01_find_a_period.ipynb): five sums over all samples for each frequency, then tau, then the
# power:
#
# $$\frac12\left[\frac{(c_\tau X_C + s_\tau X_S)^2}{c_\tau^2 C + 2 c_\tau s_\tau D + s_\tau^2 S} + \frac{(c_\tau X_S - s_\tau X_C)^2}{c_\tau^2 S - 2 c_\tau s_\tau D + s_\tau^2 C}\right]$$
#
# $X_C$ and $X_S$ are the sums of `y` times cosine and of `y` times sine. $C$ and $S$ are the sums of the squares, and
# $D$ is the sum of cosine times sine. tau is atan2(2 D, C - S) / (2 w), and $c_\tau$ and $s_\tau$ are the cosine and
# the sine of w tau.
#
# 1. The kernel: a grid-stride loop over the frequencies, and in it a loop over the samples. *(about 20 lines)*
# 2. The function: put the type into the text with `source.substitute(T=…)`, build the module, get the function, and
#    launch it with 128 threads per block and 20 blocks per multiprocessor. The arguments are in the order of the
#    parameters: first both numbers, then the arrays. *(5 lines)*
#
# `substitute` replaces `$T` in the text by `float` or `double`. `cos`, `sin` and `atan2` are overloaded for both types.
# But `atan2` does not take one of each, so write `2 * D` and not `2.0 * D`; rung 3 explains why.
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
# `check` runs the cell above in its own process, on few samples and on many, and in both types.

# %% nbgrader={"grade_id": "check-ls_cupy_baseline", "grade": true, "locked": true, "points": 4}
check(ls_cupy_baseline)

# %% [markdown]
# ## Exercise: keep what was built, rung 2
#
# CuPy keeps what it has compiled, in memory and on disk. The folder is `~/.cupy/kernel_cache`, or the one that the
# environment variable `CUPY_CACHE_DIR` names. But on each call your function builds a text, a module and a function, and
# CuPy finds that it has them already. It also asks the driver for a number that never changes. With a short kernel, you
# wait for the host.
#
# Continue from rung 1. Keep the kernel in `kernels`, a dict, and the number of blocks with it. *(about 6 lines)*
#
# What does the compiled kernel depend on? If the key leaves some of that out, you get the wrong kernel.

# %% nbgrader={"grade_id": "ls_cupy_cached", "solution": true}
# continue_from(ls_cupy_baseline, "ls_cupy_cached")  # uncomment and run
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
# The cases come in both types, one after the other. If the key leaves out the type, you get the other type's kernel.

# %% nbgrader={"grade_id": "check-ls_cupy_cached", "grade": true, "locked": true, "points": 4}
check(ls_cupy_cached)

# %% [markdown]
# ## Exercise: write one kernel per type, rung 3
#
# In C++, `2.0` is a double, and so is every product that contains it. `2.0 * c * s * cs` is computed in double, then
# rounded to float. Most GPUs compute in double at 1/32 or 1/64 of the rate of float, an H200 at half of it.
#
# Continue from rung 2, and leave no double in the float kernel:
#
# - Use `cosf`, `sinf` and `atan2f` instead of `cos`, `sin` and `atan2`. For a float, `cos` already is `cosf`; the longer
#   name makes it visible.
# - Give each literal the suffix `f`.
# - The double kernel needs neither. Write `$f` in the text for both, and `source.substitute(T="float", f="f")`: `$f`
#   becomes `f` for float, and nothing for double. *(about 6 lines)*

# %% nbgrader={"grade_id": "ls_cupy_typed", "solution": true}
# continue_from(ls_cupy_cached, "ls_cupy_typed")  # uncomment and run
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
# If a literal has no `$f`, the power is still correct. The instructions show whether it costs anything:
# `nvrtc_view(source.substitute(T="float", f="f")).count("double")`. A few remain, on the slow path that `sinf` and `cosf`
# take for large angles.

# %% nbgrader={"grade_id": "check-ls_cupy_typed", "grade": true, "locked": true, "points": 4}
check(ls_cupy_typed)

# %% [markdown]
# What does a literal cost? NVRTC tells you without a GPU. Predict: how many instructions involve a double in
# `out[0] = 0.1 * x[0]`, with float arrays?

# %%
prediction = ...  # instructions that convert to double, multiply doubles, or convert back

# %%
scaled = 'extern "C" __global__ void f(const float* x, float* out) { out[0] = 0.1 * x[0]; }'
view = nvrtc_view(scaled)
compare(prediction, view.count("double"), "instructions", how=view.how)

# %% [markdown]
# One instruction converts `x[0]`, one multiplies, and one converts back. With `0.1f` there is one multiplication of
# floats. And with `2.0`? Twice a float is exact in both types, and the compiler knows that.

# %%
for literal in ("0.1", "0.1f", "2.0"):
    view = nvrtc_view(scaled.replace("0.1", literal))
    print(f"{literal:>5}: {view.count('double')} with doubles, of {len(view.instructions)} instructions")

# %% [markdown]
# This rung's literals are outside the loop over the samples. They are executed once per thousand sines, so little
# changes. The rung prepares the next one, and a literal *inside* the loop would be another matter.

# %% [markdown]
# ## Use the special function units
#
# An accurate `sinf` reduces its angle to a quarter turn and evaluates a polynomial. For large angles it branches to a
# slow path. The GPU also has **special function units**, which compute a sine in one instruction: `MUFU.SIN`.
# `--use_fast_math` lets the compiler use them.

# %%
sine = 'extern "C" __global__ void f(const float* x, float* out) { out[0] = sinf(x[0]); }'
for options in ((), ("--use_fast_math",)):
    view = nvrtc_view(sine, *options)
    print(len(view.instructions), "instructions,", view.count("MUFU.SIN"), "of them MUFU.SIN", options)

# %% [markdown]
# These are *compiled* instructions. For a small angle the accurate sine *executes* only some twenty of them; the rest
# is the slow path.
#
# The unit takes its angle in turns, as a float32 with 24 binary digits. At 40 turns, fewer digits are left for the
# fraction. Predict: how far apart are neighbouring float32 numbers near 40 turns, in microturns (millionths of a turn)?

# %%
prediction = ...  # millionths of a turn

# %%
compare(prediction, float(np.spacing(np.float32(40.0))) * 1e6, "microturns", how="computed")

# %% [markdown]
# So the error grows with the angle:

# %%
draw_fast_sine()

# %% [markdown]
# The longer the series and the higher the frequency, the larger the error. Here, angles stay below 300, and the exercise
# allows for it: ⟦ "%.0e" | format(exercise("ls_cupy_fastmath").budget.absolute) ⟧ of the number of samples. For a series of
# several years, searched for periods of minutes, fast sines would be useless.

# %% [markdown]
# ## Exercise: use fast math, rung 4
#
# Continue from rung 3, and pass the option to NVRTC: `cp.RawModule(code=…, options=(…,))`. *(1 line)*

# %% nbgrader={"grade_id": "ls_cupy_fastmath", "solution": true}
# continue_from(ls_cupy_typed, "ls_cupy_fastmath")  # uncomment and run
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
# Without a GPU, the replacement computes a fast sine as the GPU does: in turns, as a float32.

# %% nbgrader={"grade_id": "check-ls_cupy_fastmath", "grade": true, "locked": true, "points": 4}
check(ls_cupy_fastmath)

# %% [markdown]
# ## Exercise: build it beforehand, rung 5
#
# So far, the first call of each rung compiles. A program that is started a thousand times pays for that a
# thousand times, unless it finds the cache on disk. nvcc can compile beforehand: `nvcc --fatbin` writes a
# **fatbin**, a file with machine code for each architecture that you name. It can also hold PTX, from which the driver
# compiles for GPUs that did not exist yet.
#
# Continue from rung 4. When the cell runs, write the source to a file, with one kernel per type, and let nvcc build it:
#
# `nvcc --fatbin --use_fast_math -arch=sm_90 -o lombscargle.fatbin lombscargle.cu`
#
# Here 90 stands for `cp.cuda.Device().compute_capability`. `subprocess.run([…], check=True, capture_output=True, text=True)`
# runs a command given as a list of words; import `subprocess` first. The function then loads the file with
# `cp.RawModule(path=…)`. *(about 11 lines)*
#
# Write `$name` in the text for the kernel's name, since each type needs its own. Without a GPU, `nvcc` is a replacement that
# builds for the CPU.

# %% nbgrader={"grade_id": "ls_cupy_fatbin", "solution": true}
# continue_from(ls_cupy_fastmath, "ls_cupy_fatbin")  # uncomment and run
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
# If nvcc finds an error, the report shows its line, provided that `subprocess.run` captures what nvcc prints.

# %% nbgrader={"grade_id": "check-ls_cupy_fatbin", "grade": true, "locked": true, "points": 4}
check(ls_cupy_fatbin)

# %% [markdown]
# ## Exercise: promise how it is launched, rung 6
#
# The compiler does not know how large the blocks will be. It may use up to 255 registers per thread. But with more than
# 64, a block of 1,024 threads cannot be launched, because an SM does not have that many registers.
#
# `__launch_bounds__(128)` promises that no block has more than 128 threads. With so few threads, each can have 255
# registers, so the compiler need not economise. Whether that helps is another question: the kernel of this ladder needs
# few, and the rung gains nothing today.
#
# The promise goes before the name: `extern "C" __global__ void __launch_bounds__(128) f(…)`.
#
# Keep fast math, and go back to `cp.RawModule(code=…)`, so that you need no file. This time, let C++ write the code
# for both types. `template <typename T>` before a function makes the compiler write it once for each type that you
# call it with, such as `f<float>(…)`. Such a function does the work, marked `__device__`, so that kernels can call
# it. Two short kernels, `lombscargle_float32` and `lombscargle_float64`, promise 128 threads and call it. In the
# template, the compiler chooses `cos` by the type of its argument, and `T(2)` is a 2 of the right type. You already
# have most of the lines. *(about 30 lines)*

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
# A second number in the promise asks for something in return: `__launch_bounds__(128, n)` says that at least n blocks
# should be resident per SM. The ladder's kernel needs so few registers that this changes nothing. Here is one that needs
# many. With `__launch_bounds__(128)` it takes more than 64. Predict: how many does it take with
# `__launch_bounds__(128, 8)`?

# %%
prediction = ...  # registers per thread

# %%
many = r"""extern "C" __global__ void __launch_bounds__PROMISE many(const float* x, float* out, int n) {
    float sums[64] = {};
    for (int j = 0; j < n; ++j) for (int k = 0; k < 64; ++k) sums[k] += x[j] * x[j + k];
    for (int k = 0; k < 64; ++k) out[k * 128 + threadIdx.x] = sums[k]; }"""
views = {bounds: nvrtc_view(many.replace("PROMISE", bounds)) for bounds in ("(128)", "(128, 4)", "(128, 8)", "(1024)")}
compare(prediction, views["(128, 8)"].registers["many"], "registers", how="computed")
for bounds, view in views.items():
    print(f"{bounds:>8}: {view.registers['many']} registers, {view.spilled_bytes} bytes spilled")

# %% [markdown]
# 65,536 registers for 8 × 128 threads are 64 each, the same as for one block of 1,024. The values that do not fit are
# **spilled** to memory. More resident blocks hide more latency, and spilling costs time: only measuring tells which wins.

# %% [markdown]
# ## How fast is it?
#
# Each rung has ⟦ gate("ls_cupy_baseline", "eager").points ⟧ points for speed. They are for what the rung changes:
#
# | rung | at least | compared with |
# | --- | --- | --- |
# | raw module | ⟦ gate("ls_cupy_baseline", "eager").at_least ⟧ times as fast | ⟦ exercise("ls_cupy_baseline").baseline("eager").label ⟧ |
# | cache | ⟦ gate("ls_cupy_cached", "baseline").at_least ⟧ times as fast, on a small case | ⟦ exercise("ls_cupy_cached").baseline("baseline").label ⟧ |
# | one kernel per type | ⟦ gate("ls_cupy_typed", "accurate").at_least ⟧ times as fast | ⟦ exercise("ls_cupy_typed").baseline("accurate").label ⟧ |
# | fast math | ⟦ gate("ls_cupy_fastmath", "accurate").at_least ⟧ times as fast | ⟦ exercise("ls_cupy_fastmath").baseline("accurate").label ⟧ |
# | fatbin | ⟦ gate("ls_cupy_fatbin", "accurate").at_least ⟧ times as fast | ⟦ exercise("ls_cupy_fatbin").baseline("accurate").label ⟧ |
# | launch bounds | ⟦ gate("ls_cupy_launch_bounds", "fast").at_least ⟧ times as fast | ⟦ exercise("ls_cupy_launch_bounds").baseline("fast").label ⟧ |
#
# Predict: how many times as fast as the accurate kernel was the course's rung 4, on an H200?

# %%
prediction = ...  # times as fast, with fast math

# %%
found = recorded("ls_cupy_fastmath", "ratio_vs_accurate")
large = "1,024 samples × 1,048,576 frequencies"
compare(prediction, found.value("ratio_vs_accurate", large), "times as fast", how="recorded")

# %% [markdown]
# Now your rungs, in order.

# %%
benchmark(ls_cupy_baseline)

# %%
benchmark(ls_cupy_cached)

# %% [markdown]
# The first two rungs save passes over memory, and requests to the driver. The second plot does not show the latter: even
# at its left end, the kernel takes longer than the host's work. The points are for a much smaller case,
# ⟦ gate("ls_cupy_cached", "baseline").cases | join(", ") ⟧. In the first version by cuSignal's authors, the kernels were
# shorter, and the cache did pay. Shown at GTC China 2020, it raised their lead over SciPy from 2,573 to 4,172 times.
#
# The next two rungs change the kernel itself.

# %%
benchmark(ls_cupy_typed)

# %%
benchmark(ls_cupy_fastmath)

# %% [markdown]
# The last two change when the kernel is built, and what the compiler knows.

# %%
benchmark(ls_cupy_fatbin)

# %%
benchmark(ls_cupy_launch_bounds)

# %% [markdown]
# Here are all of them together: the first call, a later call, registers, and the error compared with a power computed in
# float64. Rung 1 keeps no kernel, so its registers are unknown.

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
# The course's rungs reached these times, for 2^20 frequencies. The row *sincos* belongs to the next section. The ratio
# compares with SciPy's direct sums on the same machine's CPU. SciPy was given 4,096 of the frequencies, and its time was
# scaled up.

# %%
recorded("ladder/cupy", "first_call_ms", "median_ms", "registers", "ratio_vs_scipy", "correct_digits")

# %% [markdown]
# Rung by rung:
#
# - **Cache.** The kernel is the same. Only the host's work changes, and a long kernel hides it.
# - **One kernel per type.** The doubles were outside the inner loop, so there was little to gain.
# - **Fast math.** Most of the time went into accurate sines and cosines. In double, nothing changes: there is no unit for
#   sines of doubles.
# - **Fatbin.** The kernel is the same. The first call is much shorter, because nothing is compiled in it.
# - **Launch bounds.** The kernel needs few registers, so blocks of any size fit, and the compiler had no use for the
#   promise. The first call is longer, because it compiles the kernels of both types.

# %% [markdown]
# ## One more rung: both at once
#
# `sincosf(x, &s, &c)` computes sine and cosine together, and reduces the angle once instead of twice. Predict: with fast
# math, how many fewer `MUFU` instructions does a loop need with `__sincosf` than with `__sinf` and `__cosf`?

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
# None: the unit has one instruction for the sine and one for the cosine, and both are needed. So `sincosf` gains nothing
# in float32 with fast math, in the published table or on an H200.
#
# In float64 it helps (⟦ recorded(bench="ladder/cupy", case="sincos, float64", metric="median_ms", gpu="H200") ⟧ instead of
# ⟦ recorded(bench="ladder/cupy", case="launch_bounds, float64", metric="median_ms", gpu="H200") ⟧ on an H200). There, the
# reduction of the angle and much of the polynomials are shared. Try it: it is the first extra credit.

# %% [markdown]
# ## Extra credit
#
# No points, but each of these shows something. Change an exercise's cell, run it, and `check` or `benchmark` it again.
#
# 1. Use `sincos` in rung 6. What does `nvrtc_view` say about the float64 kernel's registers? With a GPU, time both
#    with float64 arrays: `cupyx.profiler.benchmark(ls_cupy_launch_bounds, arguments, n_repeat=50)`.
#
# <details><summary>Answer</summary>
#
# It needs fewer: the table above has 43 instead of 48.
#
# </details>
#
# 2. Pass `t.size` instead of `np.int32(t.size)`. Does it work? Then make the parameter a `long long`, and pass
#    `np.int32`.
#
# <details><summary>Answer</summary>
#
# The first works: the low four bytes of a small Python `int` are the same number. The second reads four bytes that
# are not part of the argument, so `samples` may have any value.
#
# </details>
#
# 3. Make the template of the last rung a `__global__` function, leave out the two short kernels, and give `cp.RawModule`
#    `name_expressions=["lombscargle<float>", "lombscargle<double>"]`. `get_function` takes the same names.
#
# <details><summary>Answer</summary>
#
# CuPy looks up the mangled names for you. This is the way for templates with many types.
#
# </details>
#
# 4. Let nvcc build for two architectures, and add PTX for later ones:
#    `-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90]`. How large is the file?
#
# <details><summary>Answer</summary>
#
# Roughly the sum of its parts. The driver takes the part for its GPU, and otherwise compiles the PTX at load time.
#
# </details>

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - compiled CUDA C++ from a string and launched it on CuPy arrays
# - seen how a kernel misreads a number of the wrong type
# - kept kernels by type, built them beforehand, and promised how they are launched
# - seen what fast math gains, and where its error comes from
#
# ## Check yourself
#
# <details><summary>A kernel has a parameter <code>float step</code>, and you pass <code>0.25</code>. What does it read?</summary>
#
# The low four bytes of the double 0.25: a 0. CuPy passes a Python float as a double; write `np.float32(0.25)`.
#
# </details>
#
# <details><summary>Why does the cache not change the time of the large case?</summary>
#
# The host prepares the next launch while the GPU works on the last one. The GPU waits only if a kernel is shorter than
# its preparation.
#
# </details>
#
# <details><summary>Why is fast math no faster in float64?</summary>
#
# The special function units work in float32. Sines of doubles are computed with polynomials either way.
#
# </details>
#
# <details><summary>A kernel is compiled with <code>__launch_bounds__(128)</code> and launched with 256 threads per block. What happens?</summary>
#
# The launch is refused, even if there are enough registers for 256 threads.
#
# </details>
#
# ## Read on
#
# - [User-defined kernels in CuPy](https://docs.cupy.dev/en/stable/user_guide/kernel.html): elementwise, reduction and raw
#   kernels, and JIT
# - [Launch bounds](https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/cpp-language-extensions.html#launch-bounds)
#   in the CUDA programming guide
# - [NVRTC](https://docs.nvidia.com/cuda/nvrtc/index.html): its options, and name expressions
#
# **Next:** [Go past the ladder](04_go_past_the_ladder.ipynb), where you ask what limits the last rung, and get past it. Or
# go back to the [syllabus](../README.ipynb).
