# %% [markdown]
# # Square a matrix
#
# **You will** write a kernel in CUDA C++, compile it from this notebook with PyTorch's `load_inline`, and square a
# matrix with it: `out[i, j] = x[i, j] ** 2`. Then you write a second one, which turns a colour image grey.
#
# **You will learn**
#
# - what a grid, a block and a thread are, and how a thread finds its element
# - why a kernel needs a bounds check, and what happens without one
# - what `load_inline` writes, builds and caches
# - why a build can take longer than all that you do with it, and how to make it short
# - how a launch reports an error, since it returns nothing
# - what C++ and PyTorch do with bytes that are too small for a result
#
# **You need** about 80 minutes, PyTorch, and no CUDA. With an NVIDIA GPU you measure speed as well. Without one your
# CUDA C++ is built for the CPU and every answer is checked there; speed is shown as recorded on another machine.

# %%
from grader import benchmark, check, device
from grader.explore import compare, draw_grid, lines_after_includes, recorded, show_build_files

device

# %%
import torch

# %% [markdown]
# ## A thread for each element
#
# A function that runs on the GPU is called a *kernel*. You write what **one thread** does. The launch says how many
# threads run it.
#
# Threads come in *blocks*: a block's threads run on the same part of the GPU (a *streaming multiprocessor*, SM), and
# a block has at most 1,024 of them. The blocks form the *grid*. Blocks and grids may have two dimensions, which suits
# a matrix: **x runs along a row, y runs down**.
#
# A launch names both sizes: `kernel<<<grid, block>>>(…)`.
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
# The thick dark line is the matrix's edge. Hatched threads lie past its edge: they exist because blocks come whole.
# Change `height`, `width` and the block above and run the two cells again. When are there no hatched threads?

# %% [markdown]
# ## Where an element lies
#
# A thread knows four things: `blockIdx` (which block it is in), `threadIdx` (its place in the block), `blockDim` (the
# block's size) and `gridDim` (the grid's size). Each has `.x` and `.y`. Along each axis, a thread's number in the
# whole grid follows from the first three: the blocks before its own are `blockIdx` many, each `blockDim` long, and
# then comes its place, `threadIdx`. Along x that is its column, along y its row.
#
# The kernel does not get a tensor. It gets a *pointer*: the address of the first element. PyTorch stores a contiguous
# matrix row after row, so element `(row, column)` lies `row * width + column` elements further on.
#
# Predict: in a matrix of 7 columns, at which offset does element (2, 3) lie?

# %%
prediction = ...  # offset of element (2, 3)

# %%
x = torch.arange(35).reshape(5, 7)  # each element holds its own offset
compare(prediction, x[2, 3].item())

# %% [markdown]
# ## A thread past the edge
#
# Now the hatched threads. Take the one in row 0 and column 7 of a matrix with 7 columns (0 to 6). It computes an
# offset like all others. Predict: which element `(row, column)` does it touch if nothing stops it?

# %%
prediction = ...  # (row, column)

# %%
offset = 0 * 7 + 7
compare(prediction, divmod(offset, 7), how="computed")

# %% [markdown]
# It touches the **first element of the next row**, which belongs to another thread. No error, no crash: two threads
# write the same place, and for squaring they even write the same value. In a kernel that adds to `out` the answer
# would be wrong.
#
# Past the last row it is worse: the offset lies outside the matrix, in memory that belongs to something else. So a
# kernel begins with the question whether the thread has an element at all. That is the *bounds check*.

# %% [markdown]
# ## What `load_inline` writes
#
# CUDA C++ must be compiled. `torch.utils.cpp_extension.load_inline` takes the source as text, writes it to files,
# compiles and links them, and loads the result into this Python process.
#
# So you need a little C++:
#
# - `__global__` marks a kernel. `void` means: returns nothing.
# - Variables need a type (`int i = …;`), and statements end with `;`. `{ … }` holds what Python would indent.
# - `float*` is a pointer; `x[i]` is the element `i` places on. `const` promises not to write there.
# - `dim3 grid(a, b)` is a size in x and y. `grid.x` and `grid.y` can be set later, too.
# - `/` between two `int` drops the fraction. There is no `**`. `&&` is *and*. Comments begin with `//`.
#
# Here is a kernel that flips signs, and a C++ function that launches it on a tensor.

# %%
negate = """
__global__ void negate_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = -x[i];
}
void negate(torch::Tensor x, torch::Tensor out) {
    int n = x.numel();
    negate_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
}
"""

# %% [markdown]
# The usual call is `load_inline("demo", cpp_sources=…, cuda_sources=negate, functions=["negate"])`. `cpp_sources`
# declares the function, `functions` says which ones Python shall see. The next cell runs `load_inline` up to the
# point where it would compile, and shows the files.

# %%
files = show_build_files(negate, ["negate"], "void negate(torch::Tensor x, torch::Tensor out);")
files

# %% [markdown]
# - **`cuda.cu`** is your text with three `#include` lines on top. NVIDIA's compiler `nvcc` compiles it.
# - **`main.cpp`** is the *binding*, which `load_inline` wrote for you. `PYBIND11_MODULE` makes a Python module with a
#   function `negate`. The C++ compiler compiles it.
# - **`build.ninja`** (unfold it) says how: which command makes which file from which. The tool `ninja` runs only the
#   commands whose inputs have changed. `-gencode=arch=compute_…,code=sm_…` names the GPU that the code is for.
#
# All this lies in a folder under `~/.cache/torch_extensions` (or where you say, with `build_directory=`). That folder
# is the **cache**: call `load_inline` again with the same name and the same text, and nothing is built. Change the
# text, and this process builds it anew under the name `demo_v1`: it cannot unload a library that it has loaded.

# %% [markdown]
# ## Why a build takes so long
#
# The kernel has four lines. But `#include` means: put that file's text here, and what it includes in turn. Predict:
# how many lines of code does the compiler read for the single line `#include <torch/extension.h>`?

# %%
prediction = ...  # lines of code

# %%
lines = lines_after_includes("#include <torch/extension.h>")
compare(prediction, lines, "lines")

# %% [markdown]
# Compiling the binding means reading all of this. And `nvcc` reads what it is given **twice**: once for the CPU's
# part, once for the GPU's. Your four lines cost nothing beside it.
#
# What follows is what to do about it.
#
# 1. **Keep torch's headers away from `nvcc`.** A kernel needs pointers and numbers, not tensors. Pass `x.data_ptr()`
#    from Python, and neither file includes torch: `no_implicit_headers=True`.
# 2. **Build for one GPU.** By default `load_inline` builds for each kind of GPU that it sees, and for the newest also
#    PTX, which later GPUs can translate. Name one in `TORCH_CUDA_ARCH_LIST`, such as `9.0`, and only that is built.
#    (Where no GPU is seen you must name one: else the build stops with an `IndexError`.)
# 3. **Skip the build.** NVRTC is the same compiler as a library: text in, GPU code out, no files and no `nvcc`.
#    PyTorch has it as `torch.cuda._compile_kernel` (the underscore means: this may change).
#
# Here are build times as they were recorded. Two rows are ways to register an operator with PyTorch, in a file that
# `nvcc` does not see: `TORCH_LIBRARY`, and the same with torch's *stable ABI*, which has smaller headers. You do not
# need them here.

# %%
recorded("load_inline", "build_s")

# %% [markdown]
# This is what is left to build when torch's headers are gone. Predict: how many lines does `main.cpp` have now?

# %%
prediction = ...  # lines of main.cpp

# %%
kernel_alone = negate[: negate.index("void negate(")]
files = show_build_files(kernel_alone, torch_headers=False)
compare(prediction, len(files["main.cpp"].splitlines()), "lines")

# %% [markdown]
# We named no `functions`, so `load_inline` wrote no binding, and nothing offers `negate` to Python. The exercise does
# without. `is_python_module=False` says that the library is no Python module: `load_inline` returns its path, and
# Python's own `ctypes` opens it. A function that is marked `extern "C"` keeps its plain name in there. `ctypes` knows no
# C++, so we tell it each argument's type: `c_void_p` for a pointer, `c_int` for an `int`. Without this it would cut a
# 64-bit pointer to 32 bits.

# %% [markdown]
# ## How a launch reports an error
#
# A launch returns nothing, and it returns at once: the kernel runs later. So there are two kinds of error.
#
# - The launch is **refused**: a block of 2,000 threads, an empty grid. `cudaGetLastError()` right after the launch
#   tells. The exercise's launcher passes the sentence to Python, which raises it.
# - The kernel **fails while it runs**: it reads memory that is not its own. This is reported by a *later* call that
#   waits for the GPU, often one that has nothing to do with it. After an illegal access, that process cannot use the
#   GPU any more. `check` runs your kernel in a process of its own, so this notebook is safe.
#
# To find the guilty kernel, set `CUDA_LAUNCH_BLOCKING=1` before Python starts (each launch then waits for its
# kernel), or run the program under `compute-sanitizer`, which names the kernel and the thread.

# %% [markdown]
# ## Exercise: square a matrix
#
# Square each element of `x` into `out`. Both are contiguous float32 matrices of `height` × `width`.
#
# 1. The kernel: find your row and column. You have more threads than elements. *(about 5 lines)*
# 2. The grid: enough blocks to cover the matrix in x and in y. It is 1 × 1 now. *(2 lines)*
#
# The cell is a complete submission: it imports all it needs. Nothing is built before `square_matrix` is first called,
# so running the cell is quick. `__restrict__` promises that `x` and `out` do not overlap; it lets the compiler load
# ahead of a store.

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
# Correct before fast. `check` takes the text of the cell above, builds it in a process of its own and compares every
# element with a float64 result. It asks for sizes that are no multiple of a block. A `NameError`? Run the exercise's
# cell first.

# %% nbgrader={"grade_id": "check-square_matrix", "grade": true, "locked": true, "points": 5}
check(square_matrix)

# %% [markdown]
# ## How fast is it?
#
# Each element is read once and written once: for an `M` × `N` matrix of float32 that is `4MN` bytes in and `4MN`
# bytes out, and one multiplication. The GPU multiplies far faster than it can fetch, so the best that you can hope
# for is the speed of a copy.
#
# Predict: which share of PyTorch's own speed (`x * x`) does your kernel reach at 8192 × 8192? Write 0.5 for half.
# ⟦ gate("square_matrix", "torch").points ⟧ of ⟦ exercise("square_matrix").max_points ⟧ points are for reaching
# ⟦ gate("square_matrix", "torch").at_least ⟧ of it at ⟦ gate("square_matrix", "torch").cases | join(", ") ⟧.

# %%
prediction = ...  # PyTorch's time divided by yours, at 8192 × 8192

# %%
benchmark(square_matrix)

# %% [markdown]
# Hold your prediction against the report. And this is what the authors' kernel reached:

# %%
recorded("square_matrix", "ratio_vs_torch", "share_of_copy")

# %% [markdown]
# **Small matrices** take nearly the same time whatever their size: the time of a launch, a few microseconds, in which
# the GPU moves megabytes. (In the recorded figures the authors' kernel is a little behind PyTorch's there. The reason
# was not looked for. These figures leave out the time that the CPU takes for a call. `benchmark` counts it. So with a
# slower CPU PyTorch's call may be the slower one.)
#
# **Large matrices** are limited by memory, but a kernel reaches that limit only if enough loads are *under way* at
# any moment. Memory takes hundreds of nanoseconds to answer; what is asked for in the meantime comes for free. If
# each thread loads one element and then waits, there are too few on a large GPU. The next notebook measures this.
#
# If your kernel is behind PyTorch's, give each thread **several rows**: eight rows one below the other, and an eighth
# of the blocks in y. Write the eight as a loop with `#pragma unroll` above it. The compiler then knows that there are
# eight, and issues the eight loads before it waits for the first.

# %% [markdown]
# ## Bytes in place of floats
#
# An image is often stored as bytes (`uint8`, 0 to 255): `height` rows of `width` pixels, each pixel three bytes, red,
# green and blue. As a tensor its shape is `(height, width, 3)`, called *HWC*: height, width, channels.
#
# Predict: at which offset lies the green byte of pixel (1, 2), in an image of 2 × 3 pixels?

# %%
prediction = ...  # offset of element (1, 2, 1)

# %%
image = torch.arange(2 * 3 * 3).reshape(2, 3, 3)  # each element holds its own offset
compare(prediction, image[1, 2, 1].item())

# %% [markdown]
# Pixel number `p = row * width + column` begins at offset `3 * p`. Its green byte is one further on.
#
# The eye sees green as brighter than red, and red as brighter than blue. So grey is a weighted mean. In parts of 256,
# the weights are 77, 150 and 29:
#
# $$\text{grey} = \left\lfloor \frac{77\,r + 150\,g + 29\,b + 128}{256} \right\rfloor$$
#
# The 128 is one half of 256: it makes cutting off the fraction a rounding to the nearest. All of this is done in
# integers, so the answer is exact.
#
# Take a pixel whose red is 200. Predict: what does PyTorch say is `77 * 200`, if 200 is a `uint8`?

# %%
prediction = ...  # 77 * 200 in uint8

# %%
red = torch.tensor([200], dtype=torch.uint8)
compare(prediction, (77 * red).item())

# %% [markdown]
# 15,400 needs 14 bits, and the lowest 8 are what is left: 15,400 - 60 * 256. No error, no warning. In PyTorch you
# therefore widen first. This is the expression that your kernel has to beat:
#
# ```python
# red, green, blue = image.int().unbind(-1)
# out.copy_((77 * red + 150 * green + 29 * blue + 128) >> 8)
# ```
#
# Every operation is a kernel, nine in all, and most of them read and write 4 bytes for each pixel and operand. Fused into
# one kernel, a pixel is three bytes in and one out.
#
# C++ is kinder here: `77 * image[i]` is an `int` of 32 bits even if `image[i]` is a byte. The result is cut only when it
# is stored in a byte. A byte is `unsigned char`; a plain `char` has a sign on most machines, and takes 200 for -56.
#
# `>> 8` moves the bits eight places to the right, which divides by 256.

# %% [markdown]
# ## Exercise: turn an image grey
#
# Write the grey value of each pixel of `image` into `out`. `image` is uint8, `height` × `width` × 3 and contiguous; `out` is
# uint8, `height` × `width`. Use the formula above: `check` accepts no other rounding.
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
# Correct before fast, again: `check` compares every byte, at sizes that are no multiple of a block.

# %% nbgrader={"grade_id": "check-grayscale", "grade": true, "locked": true, "points": 5}
check(grayscale)

# %% [markdown]
# Count the bytes that the eager expression moves for each pixel: 15 for `image.int()`, 8 for each of three products, 12 for
# each of two sums, 8 for adding 128, 8 for the shift, 5 for the copy. That makes 84. (And more: the values of one colour
# lie 12 bytes apart, and what lies between them is fetched as well.) Your kernel moves 4.
#
# Predict: how many times as fast is it? ⟦ gate("grayscale", "eager").points ⟧ of ⟦ exercise("grayscale").max_points ⟧
# points are for ⟦ gate("grayscale", "eager").at_least ⟧ times the speed at
# ⟦ gate("grayscale", "eager").cases | join(", ") ⟧.

# %%
prediction = ...  # the eager expression's time divided by yours

# %%
benchmark(grayscale)

# %%
recorded("grayscale", "ratio_vs_eager", "share_of_copy")

# %% [markdown]
# By the count alone it would be 84 / 4 = 21 times as fast. The recorded factor is less than half of that, even for the
# largest image. The eager kernels move 21 times the bytes, but at more than twice this kernel's bandwidth.
#
# The points are easy to get all the same. The speed of a copy is the harder measure: a thread that loads single bytes has
# little under way. The next notebook is about that.

# %% [markdown]
# ## Skip the build
#
# With NVRTC a kernel needs no file and no `nvcc`. The table of build times has a row for it. With a GPU, `negate_kernel`
# from above is compiled here. (The first call in a process takes longer than the table says.)

# %%
import time

seconds, how = recorded("load_inline", "build_s").value("build_s", "NVRTC"), "recorded"
if device == "cuda":
    start = time.perf_counter()
    negate_kernel = torch.cuda._compile_kernel('extern "C" ' + kernel_alone.strip(), "negate_kernel")
    seconds, how = time.perf_counter() - start, "measured"
print(f"{seconds:.3f} s, {how}")

# %% [markdown]
# Why not use it for everything? NVRTC compiles GPU code only: the launch stays in Python, at the price of a slower
# call, and there are no C++ libraries on the CPU's side. For trying out a kernel it is the quickest way; for a
# library, `load_inline` is a step on the way to a proper extension.

# %% [markdown]
# ## Extra credit
#
# No points, but each shows something. Change the exercise's cell, run it, and `check` it again, or
# `benchmark` it (with a GPU).
#
# 1. Swap x and y: let x run down the column. The answer stays right. What happens to the speed? (Neighbouring threads
#    now touch elements that lie a whole row apart.)
# 2. Ask for a block of 64 × 32 threads. Who notices, and what does the message say?
# 3. Leave out the bounds check. Does `check` notice? Which of its sizes shows it?
# 4. After the next notebook: give each thread of `grayscale` four pixels. 12 bytes are three `unsigned int`, and four grey
#    bytes are one. What must hold of the number of pixels, or what do you do with the last ones?
# 5. Square with one dimension only: treat the matrix as a vector of `height * width` elements. What gets simpler, and
#    what would you lose if rows were padded?

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - covered a matrix with a grid of blocks, and found each thread's row and column
# - guarded a kernel against threads that have no element
# - seen the three files that `load_inline` writes, and where it caches them
# - found out that headers, not your code, make a build long, and built without them
# - called a compiled function through `ctypes`, with its errors reported
# - measured the kernel against PyTorch and against the speed of a copy
# - computed with bytes in integers, exactly, and fused nine operations into one kernel
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
# <details><summary>Your kernel has no bounds check, and the answer is right. How can that be?</summary>
#
# The size was a multiple of the block, or the threads past the edge wrote values that happen to be right, or they
# wrote to memory that nobody looked at. None of this is luck that you want to rely on.
#
# </details>
#
# <details><summary>You changed one character of the kernel, and call <code>load_inline</code> again. What is built?</summary>
#
# In the same process, everything. `cuda.cu` has changed, and the library gets a new name (`…_v1`), which is part of the
# command that compiles `main.cpp`. The exercise's `main.cpp` is empty, so that costs next to nothing. After a restart the
# name is the old one: only `cuda.cu` is compiled, and the library linked.
#
# </details>
#
# <details><summary>Python raises "an illegal memory access was encountered" in a line that only prints a tensor. Is that line the culprit?</summary>
#
# Hardly. A launch returns before its kernel has run; printing waits for the GPU and is the first to hear of it. The
# culprit is an earlier kernel.
#
# </details>
#
# <details><summary>Someone writes <code>unsigned char sum = 77 * r + 150 * g + 29 * b;</code> and then <code>out[i] = sum >> 8;</code>. What does the image look like?</summary>
#
# Black. `sum` keeps the lowest 8 bits, and shifting those by 8 leaves 0.
#
# </details>
#
# **Next:** [Move bytes well](02_move_bytes_well.ipynb), where you find out what memory hands out when a kernel asks
# for it. Or go back to the [syllabus](../README.ipynb) in the course's folder.
