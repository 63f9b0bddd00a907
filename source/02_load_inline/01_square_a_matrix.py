# %% [markdown]
# # Square a matrix
#
# **You will** write a kernel in CUDA C++, compile it from this notebook with PyTorch's `load_inline`, and square a
# matrix with it: `out[i, j] = x[i, j] ** 2`. Then you write a second kernel, which turns a colour image grey.
#
# **You will learn**
#
# - what a **grid**, a **block** and a **thread** are, and how a thread finds its element
# - why a kernel needs a **bounds check**, and what happens without one
# - how a launch reports an error, although it returns nothing
# - what C++ and PyTorch do when a result does not fit in a byte
# - what `load_inline` writes, builds and caches, and why a build can take so long
#
# **You need** about 85 minutes and PyTorch, and no knowledge of CUDA. With an NVIDIA GPU you measure speed as well.
# Without one your CUDA C++ is built for the CPU and every answer is checked there; speed is shown as recorded on another
# machine.

# %%
from grader import benchmark, check, device
from grader.explore import compare, draw_gpu, draw_grid, draw_images, lines_after_includes
from grader.explore import recorded, sample_image, show_build_files

device

# %% [markdown]
# ## Your first kernel
#
# A function that runs on the GPU is called a **kernel**. You write what **one thread** does, and the launch says how
# many threads run it. This kernel flips the signs of a vector. Thread `i` takes element `i`.

# %%
negate_source = r"""
__global__ void negate_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = -x[i];
}
extern "C" void negate(const float* x, float* out, int n) {
    negate_kernel<<<(n + 255) / 256, 256>>>(x, out, n);
}"""

# %% [markdown]
# With these options, `load_inline` compiles the text and returns the path of a plain library. The empty text is for C++
# code, which we do not need. The section *Why a build takes so long* explains the options.
#
# `ctypes`, which is part of Python, opens the library and calls `negate`, which launches the kernel. The arguments are
# the addresses of both tensors and the number of elements.

# %%
import ctypes

import torch
from torch.utils.cpp_extension import load_inline

path = load_inline("negate", "", negate_source, no_implicit_headers=True, is_python_module=False)
negate = ctypes.CDLL(path).negate
negate.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]

# %%
x = torch.tensor([1.0, -2.0, 3.0, 0.5], device=device)
out = torch.empty_like(x)
negate(x.data_ptr(), out.data_ptr(), x.numel())
out

# %% [markdown]
# That was your first kernel. Change the numbers, or what the kernel computes, and run the cells again.
#
# You need only a little C++:
#
# - `__global__` marks a kernel. `void` means that it returns nothing.
# - Variables need a type (`int i = …;`), and statements end with `;`. Braces `{ … }` hold what Python would indent.
# - `float*` is a **pointer**, the address of a float. `x[i]` is the element `i` places further on. `const` promises not
#   to write there.
# - `if (…) statement;` needs the parentheses. `&&` is *and*, `||` is *or*. Comments begin with `//`.
# - `a ? b : c` is Python's `b if a else c`. `nullptr` is a pointer to nothing, like `None`.
# - `for (int k = 0; k < 8; k++) { … }` runs its body for `k` = 0, 1, … 7.
# - `/` between two `int` drops the fraction. There is no `**`.
# - `extern "C"` keeps a function's plain name, so that `ctypes` finds it. A `const char*` is a string.

# %% [markdown]
# ## Where threads run
#
# Threads come in **blocks**, and the blocks of a launch form the **grid**. Above, a block has 256 threads, and the grid
# has as many blocks as it takes to cover `n` elements. A launch names both sizes: `kernel<<<grid, block>>>(…)`.

# %%
draw_gpu()

# %% [markdown]
# A GPU consists of **streaming multiprocessors** (**SMs**); an H200 has 132. Each block runs on one SM, which can hold
# several blocks at a time. The other blocks wait in line. A block has at most 1,024 threads; a grid can have billions. A
# block's threads run in groups of 32, called **warps**: all threads of a warp run the same instruction together.

# %% [markdown]
# ## A thread for each element
#
# Blocks and grids may have two dimensions, which suits a matrix: **x runs along a row, y runs down**.
#
# Take a matrix of 5 rows and 7 columns, and blocks of 4 × 2 threads: 4 along x, 2 along y. The grid must cover the
# matrix, so both divisions are rounded **up**.
#
# Before you run the next cell: how many threads will have no element? Write the number in place of the three dots.

# %%
prediction = ...  # threads without an element

# %%
height, width = 5, 7
block_x, block_y = 4, 2
grid_x = (width + block_x - 1) // block_x  # division, rounded up
grid_y = (height + block_y - 1) // block_y
threads = grid_x * block_x * grid_y * block_y
compare(prediction, threads - height * width, "threads", how="computed")

# %%
draw_grid(height, width, block=(block_x, block_y))

# %% [markdown]
# The thick dark line is the edge of the matrix. The hatched threads are past it: they exist because a grid has whole
# blocks only. Change `height`, `width` and the block above and run the two cells again. When are there no hatched
# threads?

# %% [markdown]
# ## Find the element
#
# A thread knows four things: `blockIdx` (its block), `threadIdx` (its place in the block), `blockDim` (the size of a
# block) and `gridDim` (the size of the grid). Each has `.x` and `.y`. Along x, `blockIdx.x` blocks of `blockDim.x` threads
# come before this thread's block. So its column is `blockIdx.x * blockDim.x + threadIdx.x`.
#
# The row follows from `.y` in the same way. The kernel gets a pointer to the first element. PyTorch stores a contiguous
# matrix row after row, so element `(row, column)` is `row * width + column` elements further on.
#
# Now take a hatched thread: row 0 and column 7 of a matrix with 7 columns (0 to 6). It computes an offset like all
# others. Predict: which element does it touch if nothing stops it? Write row and column.

# %%
prediction = ...  # (row, column)

# %%
offset = 0 * 7 + 7
compare(prediction, divmod(offset, 7), how="computed")

# %% [markdown]
# It touches the **first element of the next row**, which belongs to another thread. There is no error and no crash: two
# threads write the same place. Here they even write the same value. In a kernel that adds to `out`, the result would be
# wrong.
#
# Past the last row it is worse: the offset is outside the matrix, in memory that belongs to something else. So a kernel
# first asks whether its thread has an element at all. That is the **bounds check**, `if (i < n)` in `negate_kernel`.

# %% [markdown]
# ## How a launch reports an error
#
# A launch returns nothing, and it returns at once: the kernel runs later. So there are two kinds of errors.
#
# - The launch is **refused**, because the block has 2,000 threads or the grid is empty. `cudaGetLastError()` right
#   after the launch returns the reason. The exercise's launcher passes it to Python, which raises it.
# - The kernel **fails while it runs**, because it reads memory that it may not read. The error is reported by a *later*
#   call that waits for the GPU, often an unrelated one. After an illegal access, that process cannot use the GPU any
#   more. `check` runs your kernel in a separate process, so this notebook is safe.
#
# There are three ways to find the kernel that failed:
#
# - Start the program with `CUDA_LAUNCH_BLOCKING=1 python program.py`. Each launch then waits for its kernel.
# - Start it with `compute-sanitizer python program.py`, which names the kernel and the thread.
# - Print from the kernel: `printf("row %d, column %d\n", row, column);` works as in C. Let one thread print, not all.
#   `check` shows the output under "What it printed".

# %% [markdown]
# ## Exercise: square a matrix
#
# Square each element of `x` into `out`. Both are contiguous float32 matrices of `height` × `width`.
#
# 1. The kernel: find your row and column. You have more threads than elements. *(about 5 lines)*
# 2. The grid: enough blocks to cover the matrix in x and in y. It is 1 × 1 now. *(2 lines)*
#
# The cell is a complete submission: it imports all it needs. Nothing is built until `square_matrix` is called for the
# first time, so running the cell is quick. `dim3 grid(a, b)` is a size in x and y. `__restrict__` promises that `x` and
# `out` do not overlap, which lets the compiler load ahead of a store.

# %% nbgrader={"grade_id": "square_matrix", "solution": true}
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void square_kernel(const float* __restrict__ x, float* __restrict__ out, int height, int width) {
    // BEGIN SOLUTION
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int first = (blockIdx.y * blockDim.y + threadIdx.y) * 8;  // a thread takes 8 rows
    if (column >= width) return;
    #pragma unroll
    for (int row = first; row < first + 8; row++) {
        if (row < height) {
            float value = x[row * width + column];  // reads MN in all
            out[row * width + column] = value * value;  // writes MN in all
        }
    }
    // END SOLUTION
}

extern "C" const char* square(const float* x, float* out, int height, int width) {
    dim3 block(32, 8);
    dim3 grid(1, 1);
    // BEGIN SOLUTION
    block = dim3(128, 1);
    int rows_of_block = 8 * block.y;
    grid.x = (width + block.x - 1) / block.x;
    grid.y = (height + rows_of_block - 1) / rows_of_block;
    // END SOLUTION
    square_kernel<<<grid, block>>>(x, out, height, width);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("square_matrix", cuda_sources=cuda_source, **options))
    built.square.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    built.square.restype = ctypes.c_char_p
    return built


def square_matrix(x, out):
    height, width = x.shape
    error = library().square(x.data_ptr(), out.data_ptr(), height, width)
    if error:
        raise RuntimeError(error.decode())


# %% [markdown]
# Correct before fast. `check` takes the text of the cell above, builds it in a separate process and compares every
# element with a float64 result. Its matrices have sizes that blocks do not divide. If you get a `NameError`, run the
# exercise's cell first.

# %% nbgrader={"grade_id": "check-square_matrix", "grade": true, "locked": true, "points": 5}
check(square_matrix)

# %% [markdown]
# Now launch it yourself, on a matrix of your own.

# %%
x = torch.randn(3, 4, device=device)
out = torch.zeros_like(x)
square_matrix(x, out)
print(out == x * x)

# %% [markdown]
# ## How fast is it?
#
# Each element is read once and written once. For an `M` × `N` matrix of float32 that is `4MN` bytes in and `4MN` bytes
# out, and one multiplication per element. The GPU multiplies far faster than it can fetch. The best that you can hope
# for is the speed of a copy.
#
# ⟦ gate("square_matrix", "torch").points ⟧ of ⟦ exercise("square_matrix").max_points ⟧ points are for reaching
# ⟦ gate("square_matrix", "torch").at_least ⟧ of PyTorch's own speed (`x * x`) at
# ⟦ gate("square_matrix", "torch").cases | join(", ") ⟧. Predict: what share of it can a kernel of your own reach for a
# small matrix, 256 × 256? Write 0.5 for half.

# %%
prediction = ...  # PyTorch's time divided by the kernel's, at 256 × 256

# %%
shares = recorded("square_matrix", "ratio_vs_torch", "share_of_copy")
compare(prediction, shares.value("ratio_vs_torch", "256 × 256"), how="recorded")
shares

# %% [markdown]
# This is what the authors' kernel reached. Now measure yours:

# %%
benchmark(square_matrix)

# %% [markdown]
# **Small matrices** take nearly the same time whatever their size: a few microseconds for the launch itself, in which
# the GPU could move megabytes.
#
# **Large matrices** are limited by memory, but a kernel reaches that limit only if enough loads are **in flight** at
# any moment, which means requested and not yet answered. Memory takes hundreds of nanoseconds to answer, and more
# loads can be sent in the meantime. If each thread loads one element and then waits, there are too few on a large
# GPU. The next notebook measures this.
#
# If your kernel is slower than PyTorch's, give each thread **several rows**: eight rows below each other, and an eighth
# of the blocks in y. Write the eight as a loop with `#pragma unroll` above it. The compiler then knows that there are
# eight, and issues all eight loads before it waits for the first.

# %% [markdown]
# ## An image of bytes
#
# An image is often stored as bytes (`uint8`, 0 to 255): `height` rows of `width` pixels, and three bytes per pixel, red,
# green and blue. As a tensor its shape is `(height, width, 3)`, called **HWC**: height, width, channels. Here is one.

# %%
image = sample_image()
draw_images(image=image)

# %% [markdown]
# Pixel number `p = row * width + column` begins at offset `3 * p`. Its green byte is one further on.
#
# The eye sees green as brighter than red, and red as brighter than blue. So grey is a weighted mean,
# with weights of 77, 150 and 29 parts of 256.
#
# $$\text{grey} = \left\lfloor \frac{77\,r + 150\,g + 29\,b + 128}{256} \right\rfloor$$
#
# The 128 is half of 256: with it, dropping the fraction rounds to the nearest integer. Only integers are used, so the
# result is exact.
#
# Take a pixel whose red is 200. Predict: what does PyTorch return for `77 * red`, if `red` is a `uint8`?

# %%
prediction = ...  # 77 * 200 in uint8

# %%
red = torch.tensor([200], dtype=torch.uint8)
compare(prediction, (77 * red).item())

# %% [markdown]
# 15,400 needs 14 bits. Only the lowest 8 are left: 15,400 - 60 * 256 = 40. There is no error and no warning. So in
# PyTorch you widen first. This is the expression that your kernel has to beat:
#
# ```python
# red, green, blue = image.int().unbind(-1)
# out.copy_((77 * red + 150 * green + 29 * blue + 128) >> 8)
# ```
#
# Every operation is a kernel, nine in all, and most of them read and write 4 bytes per pixel and operand. Fused into one
# kernel, a pixel is three bytes in and one byte out.
#
# C++ widens by itself: `77 * image[i]` is a 32-bit `int` even if `image[i]` is a byte. The result is cut only when it is
# stored in a byte. A byte is `unsigned char`. A plain `char` has a sign on most machines, and reads 200 as -56. `>> 8`
# moves the bits eight places to the right, which divides by 256.

# %% [markdown]
# ## Exercise: turn an image grey
#
# Write the grey value of each pixel of `image` into `out`. `image` is uint8, `height` × `width` × 3 and contiguous; `out`
# is uint8, `height` × `width`. Use the formula above: `check` accepts no other rounding.
#
# 1. The kernel: find your pixel, read its three bytes, store one. *(about 7 lines)*
# 2. The grid. *(2 lines)*

# %% nbgrader={"grade_id": "grayscale", "solution": true}
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void grayscale_kernel(const unsigned char* __restrict__ image, unsigned char* __restrict__ out,
                                 int height, int width) {
    // BEGIN SOLUTION
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= height || column >= width) return;
    int pixel = row * width + column;
    const unsigned char* rgb = image + 3 * pixel;
    int sum = 77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2];  // reads 3MN bytes in all
    out[pixel] = (sum + 128) >> 8;  // writes MN bytes in all
    // END SOLUTION
}

extern "C" const char* grayscale(const unsigned char* image, unsigned char* out, int height, int width) {
    dim3 block(32, 8);
    dim3 grid(1, 1);
    // BEGIN SOLUTION
    grid.x = (width + block.x - 1) / block.x;
    grid.y = (height + block.y - 1) / block.y;
    // END SOLUTION
    grayscale_kernel<<<grid, block>>>(image, out, height, width);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("grayscale", cuda_sources=cuda_source, **options))
    built.grayscale.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    built.grayscale.restype = ctypes.c_char_p
    return built


def grayscale(image, out):
    height, width, _ = image.shape
    error = library().grayscale(image.data_ptr(), out.data_ptr(), height, width)
    if error:
        raise RuntimeError(error.decode())


# %% [markdown]
# Correct before fast, again: `check` compares every byte, at sizes that blocks do not divide.

# %% nbgrader={"grade_id": "check-grayscale", "grade": true, "locked": true, "points": 5}
check(grayscale)

# %% [markdown]
# This is the picture that your kernel makes. A wrong index shows up as stripes, a shear, or four small copies.

# %%
grey = torch.zeros(image.shape[:2], dtype=torch.uint8, device=device)
grayscale(image.to(device), grey)
draw_images(image=image, grey=grey)

# %% [markdown]
# Count the bytes that the eager expression moves per pixel: 15 for `image.int()`, and 16 for each of three products. The
# three colours alternate in memory, so reading one of them fetches all 12 bytes. Each of two sums moves 12. Adding 128
# and shifting move 8 each, and the copy 5. That makes 108, and your kernel moves 4.
#
# ⟦ gate("grayscale", "eager").points ⟧ of ⟦ exercise("grayscale").max_points ⟧ points are for
# ⟦ gate("grayscale", "eager").at_least ⟧ times the speed of that expression at
# ⟦ gate("grayscale", "eager").cases | join(", ") ⟧. Predict: how many times as fast as the eager expression is the
# authors' kernel, which loads one byte at a time, at 8192 × 8192?

# %%
prediction = ...  # times as fast

# %%
factors = recorded("grayscale", "ratio_vs_eager", "share_of_copy")
compare(prediction, factors.value("ratio_vs_eager", "8192 × 8192"), "times", how="recorded")
factors

# %%
benchmark(grayscale)

# %% [markdown]
# By the count alone the factor would be 108 / 4 = 27. The recorded factor is about a third of that. The eager kernels
# move 27 times the bytes, but they also reach nearly three times the bandwidth, because a thread that loads single
# bytes has little in flight. The next notebook is about that.

# %% [markdown]
# ## What `load_inline` builds
#
# So far we used `load_inline` in its shortest form. The form in PyTorch's documentation takes a function on tensors and
# names it in `functions`:

# %%
usual = """
torch::Tensor negate(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == torch::kFloat, "x must be a float32 tensor on the GPU");
    auto contiguous = x.contiguous();
    auto out = torch::empty_like(contiguous);
    int n = x.numel();
    negate_kernel<<<(n + 255) / 256, 256>>>(contiguous.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}"""

# %% [markdown]
# `cpp_sources` declares the function, and `functions` says which ones to expose to Python. `TORCH_CHECK` raises a
# `RuntimeError` with your message, and `auto` lets the compiler deduce a variable's type. Options for the compiler go
# into `extra_cuda_cflags`, for example `["-O2"]`. The next cell writes the files of the build, without compiling them.

# %%
kernel_alone = negate_source[: negate_source.index('extern "C"')]
declared = "torch::Tensor negate(torch::Tensor x);"
files = show_build_files(kernel_alone + usual, ["negate"], declared)
files

# %% [markdown]
# - **`cuda.cu`** is your text with three `#include` lines on top. NVIDIA's compiler `nvcc` compiles it.
# - **`main.cpp`** is the **binding**, which `load_inline` wrote for you. `PYBIND11_MODULE` makes a Python module with a
#   function `negate`. The C++ compiler compiles it.
# - **`build.ninja`** (unfold it) says which command makes which file from which. The tool `ninja` runs only the commands
#   whose inputs have changed. `-gencode=arch=compute_…,code=sm_…` names the GPU that the code is for.
#
# All this is in a folder under `~/.cache/torch_extensions`, or in your `build_directory=`. That folder is the
# **cache**: call `load_inline` again with the same name and the same text, and nothing is built. The files above belong to
# a library named `demo`. After a change, the same process builds it again as `demo_v1`, because it cannot unload a
# library that it has loaded.
#
# With a GPU, the next cell builds and calls it, which takes 20 seconds or more. Without one it shows what a GPU machine
# took.

# %%
import time

seconds, how = recorded("load_inline", "build_s").value("build_s", "default headers"), "recorded"
if device == "cuda":
    start = time.perf_counter()
    module = load_inline("usual", declared, kernel_alone + usual, functions=["negate"])
    seconds, how = time.perf_counter() - start, "measured"
    print(module.negate(torch.tensor([1.0, -2.0], device=device)))
print(f"{seconds:.1f} s, {how}")

# %% [markdown]
# ## Why a build takes so long
#
# The kernel has four lines. But `#include` means: put that file's text here, and everything that it includes in turn.
# Predict: how many lines of code does the compiler read for the single line `#include <torch/extension.h>`?

# %%
prediction = ...  # lines of code

# %%
lines = lines_after_includes("#include <torch/extension.h>")
compare(prediction, lines, "lines")

# %% [markdown]
# Compiling the binding means reading all of this. And `nvcc` reads its input **twice**: once for the CPU's part, once
# for the GPU's. Next to that, your four lines cost nothing. There are three ways to shorten the build:
#
# 1. **Keep torch's headers away from `nvcc`.** A kernel needs pointers and numbers, not tensors. Pass `x.data_ptr()`
#    from Python, and use `no_implicit_headers=True`. This is what the exercises do. With no `functions` there is no
#    binding, so `is_python_module=False`: the result is a plain library for `ctypes`, which cannot see C++ types. Set
#    each argument's type: `c_void_p` for a pointer, `c_int` for an `int`. Otherwise 64-bit pointers are cut to 32 bits.
# 2. **Build for one GPU.** Set `TORCH_CUDA_ARCH_LIST` to an architecture such as `9.0`, or to `native`. The default
#    builds for each kind of GPU in the machine. Without a GPU you must name one, or the build stops with an
#    `IndexError`.
# 3. **Skip the build.** NVRTC is the same compiler as a library: text in, GPU code out, without files and without `nvcc`.
#    PyTorch has it as `torch.cuda._compile_kernel`. The underscore means that it may change.
#
# These build times were recorded. Two rows are ways to register an operator with PyTorch, in a file that `nvcc` does
# not see: `TORCH_LIBRARY`, and the same with torch's **stable ABI**. Its headers are smaller, and a library built with it
# also works with later versions of torch.

# %%
recorded("load_inline", "build_s")

# %% [markdown]
# NVRTC compiles GPU code only. The launch stays in Python, which makes a call slower, and there are no C++ libraries on
# the CPU side. It is the quickest way to try out a kernel. For a library, `load_inline` is a step on the way to a
# proper extension.

# %% [markdown]
# ## Extra credit
#
# No points, but each shows something. Change the exercise's cell, run it, and `check` it again, or `benchmark` it (with
# a GPU).
#
# 1. Exchange x and y: let x run down the column. The result stays right. What happens to the speed?
#
# <details><summary>Answer</summary>
#
# Expect a fraction of the speed, and measure it. Neighbouring threads now touch elements that are a whole row apart, so
# every load fetches far more than it uses. The next notebook counts this.
#
# </details>
#
# 2. Launch blocks of 64 × 32 threads. Which message do you get, and from where?
#
# <details><summary>Answer</summary>
#
# The launch is refused: 2,048 threads are more than the 1,024 that a block may have. `cudaGetLastError()` returns
# "invalid configuration argument", and without a GPU the simulator names the block's size.
#
# </details>
#
# 3. Leave out the bounds check. Which of the sizes in `check` shows it?
#
# <details><summary>Answer</summary>
#
# Every size that your blocks do not divide. The threads past the last row write outside of `out`, which `check` guards on
# both sides.
#
# </details>
#
# 4. After the next notebook: give each thread of `grayscale` four pixels. 12 bytes are three `unsigned int`, and four
#    grey bytes are one. What about the last pixels, if their number is not divisible by 4?
#
# <details><summary>Answer</summary>
#
# Let the first threads after the last full group take one pixel each, byte by byte. An `unsigned int` must begin at a
# multiple of 4 bytes, which holds for every fourth pixel of a contiguous image.
#
# </details>
#
# 5. Square with one dimension only: treat the matrix as a vector of `height * width` elements. What gets simpler, and
#    what would you lose if rows were padded?
#
# <details><summary>Answer</summary>
#
# There is one index, one bounds check and one size of the grid. With padded rows the elements are no longer one vector:
# you would square the padding as well, or need the row again.
#
# </details>

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - launched a kernel, and then covered a matrix with a grid of blocks
# - guarded a kernel against threads that have no element
# - called a compiled function through `ctypes`, with its errors reported
# - measured the kernel against PyTorch and against the speed of a copy
# - computed an exact result from bytes with integer arithmetic, and fused nine operations into one kernel
# - seen the three files that `load_inline` writes, and why headers make a build long
#
# ## Check yourself
#
# <details><summary>A matrix has 1,000 columns, a block is 32 wide. How many blocks are needed along x, and how many threads of the last one are idle?</summary>
#
# 32 blocks, since 1,000 / 32 = 31.25 is rounded up. They have 1,024 threads along x, so 24 of the last block's 32
# columns are idle.
#
# </details>
#
# <details><summary>Your kernel has no bounds check, and the result is right. How can that be?</summary>
#
# The size was a multiple of the block, or the threads past the edge wrote values that happen to be right, or they wrote to
# memory that nobody looked at. Do not rely on any of these.
#
# </details>
#
# <details><summary>You changed one character of the kernel, and call <code>load_inline</code> again. What is built?</summary>
#
# In the same process, everything: the library gets a new name (`…_v1`), which is part of the command that compiles
# `main.cpp`. After a restart the name is the old one: only `cuda.cu` is compiled, and the library linked.
#
# </details>
#
# <details><summary>Python raises "an illegal memory access was encountered" in a line that only prints a tensor. Is that line the culprit?</summary>
#
# Hardly. A launch returns before its kernel has run, and printing waits for the GPU, so it is the first to get the error.
# An earlier kernel caused it.
#
# </details>
#
# <details><summary>Someone writes <code>unsigned char sum = 77 * r + 150 * g + 29 * b;</code> and then <code>out[i] = sum >> 8;</code>. What does the image look like?</summary>
#
# Black. `sum` keeps the lowest 8 bits, and shifting those by 8 leaves 0.
#
# </details>
#
# ## Read on
#
# - [An Even Easier Introduction to CUDA](https://developer.nvidia.com/blog/even-easier-introduction-cuda/) goes from one
#   thread to a grid in ten minutes.
# - [Programming Model](https://docs.nvidia.com/cuda/cuda-programming-guide/01-introduction/programming-model.html) is the
#   chapter of NVIDIA's guide on threads, blocks and memory.
# - [torch.utils.cpp_extension](https://docs.pytorch.org/docs/stable/cpp_extension.html) documents every option of
#   `load_inline`.
#
# **Next:** [Move bytes well](02_move_bytes_well.ipynb), where you find out what memory delivers when a kernel asks
# for it. Or go back to the [syllabus](../README.ipynb).
