# %% [markdown]
# # Add two vectors
#
# **You will** write your first Triton kernel: `out[i] = x[i] + y[i]`, for any number of elements.
#
# **You will learn**
#
# - what a *program* and a *block* are in Triton, and a *thread* in CUDA
# - how the same kernel looks in Numba, which works with threads, and in Triton, which works with blocks
# - what a mask is for, and what happens without one
# - which work Triton does for you, and which it leaves to you
# - how to debug a kernel
# - how fast such a kernel can be at best
#
# **You need** about 55 minutes and PyTorch, and no knowledge of CUDA. With an NVIDIA GPU you measure speed as well.
# Without one, the kernels run in simulators, slowly; the report of `check` says what a simulator cannot see. Recorded
# speeds from another machine are shown in either case.

# %%
from grader import benchmark, check, device
from grader.explore import compare, draw_blocks, load_numba_cuda, memory_instructions, recorded, side_by_side

cuda = load_numba_cuda()
device

# %%
import numpy as np
import torch
import triton
import triton.language as tl

# %% [markdown]
# ## What Triton is for
#
# Triton is a language for GPU kernels with the syntax of Python, and the compiler for it. It began as research at Harvard,
# published in 2019; OpenAI released version 1.0 in 2021. Its aim is that people without CUDA experience can write kernels
# about as fast as an expert's. Today `torch.compile` generates Triton, and Triton compiles for NVIDIA and AMD GPUs.
# PyTorch's GPU builds for Linux include it; on its own, it is `pip install triton`.
#
# ## One thread, one element
#
# A function that runs on the GPU is called a **kernel**. In CUDA you write what **one thread** does, and the **launch**
# starts as many threads as you ask for, in *blocks* of equal size. Numba lets you write such a kernel in Python.
#
# This one doubles each element. A thread first computes its number `i`, then works on element `i` if that exists.

# %%
@cuda.jit
def double_numba(x, out, n):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i < n:
        out[i] = 2 * x[i]


# %% [markdown]
# A launch names the number of blocks and the threads per block: `double_numba[blocks, threads](…)`. We have 10
# elements and want blocks of 4 threads.
#
# Predict: how many threads find that they have no element? Replace the three dots with a number before you run the next
# cell.

# %%
n, threads = 10, 4
prediction = ...  # threads without an element

# %%
x = cuda.to_device(np.arange(n, dtype=np.float32))
out = cuda.to_device(np.zeros(n, dtype=np.float32))
blocks = triton.cdiv(n, threads)  # division, rounded up
double_numba[blocks, threads](x, out, n)
compare(prediction, blocks * threads - n, "threads", how="computed")
out.copy_to_host()

# %% [markdown]
# Ten elements need three blocks, and three blocks have twelve threads. Because of `if i < n`, two of them do nothing.
#
# This programming style is called **SIMT**: single instruction, multiple threads. The code describes one element.
# Nothing in it says that threads run in groups, or that neighbouring threads should load neighbouring addresses. Yet a
# kernel is fast only if its author has both in mind.

# %% [markdown]
# ## One program, one block
#
# A Triton kernel has no threads. It runs many times, and each run is a **program**, which works on a whole **block** of
# elements at once. The variable `i` below is not a number but a block of numbers, and so is everything computed from
# it.

# %%
@triton.jit
def double_triton(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, 2 * x, mask=i < n)


# %%
side_by_side(Numba=double_numba, Triton=double_triton)

# %% [markdown]
# Line by line:
#
# - **`tl.program_id(0)`** is the program's number. `tl.arange(0, BLOCK)` is the block 0, 1, …, `BLOCK - 1`. There is
#   nothing like `threadIdx`.
# - **`x_ptr`** is a pointer, the address of the first element. You pass a tensor, and the kernel receives its pointer.
#   `x_ptr + i` is a block of pointers, and `tl.load` loads from all of them. So you decide what is loaded from where,
#   and a kernel can work on structures other than tensors, such as block-sparse matrices.
# - **`mask=i < n`**, the **mask**, replaces the `if`. A block cannot branch for one of its elements, so you say which
#   elements count.
# - **`BLOCK: tl.constexpr`** is a compile-time constant. `tl.arange` needs one, and its length must be a power of two.
#
# The launches differ, too:
#
# | | Numba | Triton |
# | --- | --- | --- |
# | launch | `double_numba[3, 4](x, out, 10)` | `double_triton[(3,)](x, out, 10, BLOCK=4)` |
# | in brackets | blocks, threads per block | the **grid**: programs along each axis, a tuple |
# | block size | part of the launch | an argument of the kernel |
#
# A Triton program has 128 threads by default, and the compiler decides which thread does what.
#
# A launch also takes time on the CPU:
# ⟦ recorded(bench="launches", case="Triton", metric="host_us", gpu="H200") ⟧ in Triton on the machine with the recorded H200,
# ⟦ recorded(bench="launches", case="Numba, arrays of Numba", metric="host_us", gpu="H200") ⟧ in Numba, and
# ⟦ recorded(bench="launches", case="torch.add", metric="host_us", gpu="H200") ⟧ in PyTorch. If a kernel takes less time than
# that, the GPU waits for the next launch.

# %%
x = torch.arange(10.0, device=device)
out = torch.zeros_like(x)
double_triton[(triton.cdiv(10, 4),)](x, out, 10, BLOCK=4)
out

# %%
draw_blocks(n=10, block_size=4)

# %% [markdown]
# Change `n` and `block_size` above and run the cell again. When is there no masked tail?
#
# Now let each program write its own number instead. Predict: what is in element 7?

# %%
@triton.jit
def sign(out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.program_id(0), mask=i < n)


# %%
prediction = ...  # element 7, with blocks of 4

# %%
out = torch.empty(10, dtype=torch.int32, device=device)
sign[(triton.cdiv(10, 4),)](out, 10, BLOCK=4)
compare(prediction, out[7].item())
out

# %% [markdown]
# ## What the mask is for
#
# Now leave the mask out. So that nothing is really damaged, `out` is the first 10 elements of a 16-element buffer of
# our own, filled with -1.
#
# Predict: how many of the six elements after `out` change?

# %%
@triton.jit
def double_without_mask(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 2 * tl.load(x_ptr + i))


# %%
prediction = ...  # elements changed past the end

# %%
x = torch.arange(16.0, device=device)
memory = torch.full((16,), -1.0, device=device)
out = memory[:10]
double_without_mask[(triton.cdiv(10, 4),)](x, out, BLOCK=4)
compare(prediction, (memory[10:] != -1).sum().item(), "elements")
memory

# %% [markdown]
# Elements 10 and 11 were overwritten, and **nothing complained**. `out` itself is right. If those two elements had
# belonged to another tensor, that tensor would now be wrong, and you would search for the bug in the wrong place. This
# is why `check` puts guards around every tensor.
#
# Loads need a mask as well, because on a GPU a read past the end may be an illegal access. A masked element is not
# read. It gets the value that you pass as `other=`, or an undefined one. That does no harm if the store masks it, too.

# %% [markdown]
# ## Who does what
#
# A kernel's author must think of three parts of a GPU. The *DRAM* is large, slow memory; on data-centre cards it is
# **HBM**. The *SRAM* is small, fast memory on the chip: registers, which hold each thread's own values, and **shared
# memory**. The *ALUs* are the units that compute. A GPU has many **streaming multiprocessors** (SMs), each with SRAM and
# ALUs of its own. Four things need care:
#
# | | what it means | in CUDA | in Triton |
# | --- | --- | --- | --- |
# | **coalescing** | neighbouring threads load neighbouring addresses, so that DRAM delivers few large pieces | by hand | automatic |
# | shared memory | data that are used again stay on the chip, and threads synchronise around them | by hand | automatic |
# | scheduling within an SM | the work of a block is spread over its threads and units | by hand | automatic |
# | scheduling across SMs | the work is cut into independent blocks | by hand | by hand |
#
# The last row is yours in both: which program does which block, how large a block is, and how programs combine their
# results.

# %% [markdown]
# ### Look at the first row
#
# Neighbouring threads load neighbouring addresses. How much does each of them load at once? At most 16 bytes per
# instruction on most GPUs, and wide loads need fewer instructions.
# [Look inside the compiler](07_look_inside_the_compiler.ipynb) measures what that is worth. You never said how wide
# your loads should be. Predict: in `double_triton` with `BLOCK=1024`, how many bytes does a thread load per
# instruction?
#
# The next cell compiles the kernel for an H100 or H200, which needs no GPU, and counts its instructions.

# %%
prediction = ...  # bytes

# %%
types = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}
found = memory_instructions(double_triton, types, {"BLOCK": 1024}, divisible_by_16=("x_ptr", "out_ptr", "n"))
compare(prediction, 16 if "load of 16 bytes" in found else 4, "bytes")
found

# %% [markdown]
# The compiler gave each thread four neighbouring elements at a time. By default a program has 4 **warps** of 32
# threads, 128 threads. 1,024 elements are 8 per thread: two loads of four.
#
# For wide loads the compiler must know that the pointers are aligned, and that the mask does not end in the middle of
# four elements. So Triton looks at the arguments of each launch: is this number divisible by 16? It compiles a
# version of the kernel for each combination of answers, which is called **specialization**. A combination that is new
# is compiled at its first launch.
#
# Predict the width of loads if `n` is not divisible by 16.

# %%
prediction = ...  # bytes, for n not divisible by 16

# %%
found = memory_instructions(double_triton, types, {"BLOCK": 1024}, divisible_by_16=("x_ptr", "out_ptr"))
compare(prediction, 16 if "load of 16 bytes" in found else 4, "bytes")
found

# %% [markdown]
# Each element now needs an instruction of its own, since the mask may end anywhere. Such details are rarely worth a
# change in the code, but they explain dents in a plot.

# %% [markdown]
# ## When a kernel is wrong
#
# Triton's **interpreter** runs a kernel in Python, program by program, on tensors of the CPU. Without a GPU it is in
# use already. With one, start your program with `TRITON_INTERPRET=1 python program.py`.
#
# - **In the interpreter**, `print(i)` in a kernel shows a block's values, and `breakpoint()` opens the Python debugger.
# - **On a GPU**, write `tl.device_print("i", i)` instead: it prints while the kernel runs, once per thread. So print
#   little. `tl.static_print(BLOCK)` prints while the kernel is compiled.
# - **The interpreter is more forgiving** than a GPU. It runs Python that does not compile for a GPU, such as `break` in
#   a loop. So without a GPU `check` also compiles your kernels for an H100.
#
# Print `i` in `double_triton` above, in the way that suits your machine. Run its cell and the launch, and look at the
# third program's block. Then take the line out again.

# %% [markdown]
# ## Exercise: add two vectors
#
# Add `x` and `y` into `out`. All three are contiguous float32 vectors of the same length, which may be anything from
# 1 up.
#
# 1. The kernel: the last block may be longer than what is left of the vectors. *(about 6 lines)*
# 2. The launch: enough programs for all elements. You choose `BLOCK_SIZE`. *(about 3 lines)*
#
# The cell is a complete submission: it imports what it needs, and only this cell is graded.

# %% nbgrader={"grade_id": "vector_add", "solution": true}
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    ### BEGIN SOLUTION
    block_start = tl.program_id(0) * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)  # reads n in all
    y = tl.load(y_ptr + offsets, mask=mask)  # reads n in all
    tl.store(out_ptr + offsets, x + y, mask=mask)  # writes n in all
    ### END SOLUTION


def vector_add(x, y, out):
    ### BEGIN SOLUTION
    n = x.numel()
    block_size = 1024
    grid = (triton.cdiv(n, block_size),)
    add_kernel[grid](x, y, out, n, BLOCK_SIZE=block_size)
    ### END SOLUTION


# %% [markdown]
# First make it correct, then fast. `check` runs the cell above in a separate process and compares every element with a
# float64 result. If your kernel crashes, you get a message, and this notebook keeps running. If you get a `NameError`,
# run the exercise's cell first.

# %% nbgrader={"grade_id": "check-vector_add", "grade": true, "locked": true, "points": 5}
check(vector_add)

# %% [markdown]
# When `check` passes, launch your kernel yourself, on vectors of your own. Not before: the next cell runs it in this
# notebook's process, and a kernel that writes past the end may crash that.

# %%
x, y = torch.randn(2, 1 << 16, device=device)
out = torch.zeros_like(x)
try:
    vector_add(x, y, out)
except NotImplementedError as stub:
    print(stub)
print("wrong elements:", (out != x + y).sum().item(), "of", x.numel())

# %% [markdown]
# ## How fast can it be?
#
# Count the bytes that must move. Each element of `x` and of `y` is read once, and each element of `out` is written
# once. For float32 that is `3 * 4 * n` bytes, and one addition per 12 bytes. A GPU adds far faster than it loads, so
# the kernel is **memory-bound**. Its best time is the bytes divided by the bandwidth.
#
# Predict: the memory of an H200 is specified at 4,800 GB/s. How many microseconds does it need at least for n = 2²⁵?

# %%
prediction = ...  # microseconds

# %%
n = 1 << 25
bytes_moved = 3 * 4 * n  # reads x, reads y, writes out
compare(prediction, bytes_moved / 4800e9 * 1e6, "µs", how="computed")

# %% [markdown]
# Nothing reaches the specified value, so we compare with a plain copy.
# ⟦ gate("vector_add", "torch").points ⟧ of ⟦ exercise("vector_add").max_points ⟧ points are for reaching
# ⟦ gate("vector_add", "torch").at_least ⟧ of `torch.add`'s speed at ⟦ gate("vector_add", "torch").cases | join(", ") ⟧,
# which is 2²⁵.
#
# Predict: what share of a copy's bandwidth did the authors' kernel reach at that size, on an H200?

# %%
prediction = ...  # of the bandwidth of a copy

# %%
found = recorded("vector_add", "ratio_vs_torch", "ratio_vs_compile", "share_of_copy")
compare(prediction, found.value("share_of_copy", "33,554,432 elements"), "of a copy", how="recorded")
found

# %%
benchmark(vector_add)

# %% [markdown]
# Read the plot from the left.
#
# - **Small vectors:** the bandwidth grows almost in proportion to n, since the time hardly changes. On an H200 the authors' kernel took
#   ⟦ recorded(bench="vector_add", case="65,536 elements", metric="median_us", gpu="H200") ⟧ for 65,536 elements and
#   ⟦ recorded(bench="vector_add", case="262,144 elements", metric="median_us", gpu="H200") ⟧ for four times as many.
#   Nearly all of that is the fixed time that a GPU takes to start and finish any kernel: it is **overhead-bound**.
# - **The cache does not help.** All SMs share a cache, the L2. Vectors of this size would fit into it, and a loop over
#   the same vectors would measure the cache. So each launch gets its own vectors, more of them than the L2 holds.
# - **Large vectors:** all curves meet at the bandwidth of a copy. Your kernel, `torch.add` and the Triton kernel that
#   `torch.compile` generates move the same bytes. At 134,217,728 elements the authors' kernel even reached
#   ⟦ recorded(bench="vector_add", case="134,217,728 elements", metric="share_of_copy", gpu="H200") ⟧ of a copy's
#   bandwidth on an H200. A copy is a yardstick, not a law: half of its bytes are writes, but only a third of an
#   addition's.
# - **Do not trust a ratio far from 1** at the small sizes of your own plot. Calling a Triton kernel can take the CPU,
#   the host, tens of µs, longer than the kernel itself runs. Then the GPU waits, and you have measured the host. The
#   recorded table leaves the host out.
#
# So an addition alone is not worth a kernel of your own. A kernel pays off when several operations share one trip to
# memory, which is the subject of [Fuse a softmax](03_fuse_a_softmax.ipynb).

# %% [markdown]
# ## Extra credit
#
# No points, but each of these shows something. Change the exercise's cell, run it, and `check` it again, or `benchmark`
# it (with a GPU).
#
# 1. Set `BLOCK_SIZE` to 64, 256, 1024 and 8192. Which are slow?
#
# <details><summary>Answer</summary>
#
# Expect 64 to be slow: a program then moves only 768 bytes, half of its 128 threads have no element, and there are very
# many programs to start.
#
# </details>
#
# 2. Add work that leaves the result as it is, because `benchmark` measures right kernels only: store
#    `x + y + 0.0 * x`. Does the time change? And with `0.0 * tl.sin(x)`?
#
# <details><summary>Answer</summary>
#
# Expect the multiplication to be free, because the kernel waits for memory. A sine may be hidden as well, if the GPU
# computes it in the time that the bytes take.
#
# </details>
#
# 3. Leave out the mask of the store and `check`. Which of its sizes notice?
#
# <details><summary>Answer</summary>
#
# The sizes that are not a multiple of your `BLOCK_SIZE`: there the guard past the end is overwritten.
#
# </details>

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - seen the same kernel for threads (Numba) and for blocks (Triton)
# - seen a kernel without a mask silently overwrite memory that was not its own
# - learned what Triton does for you: coalescing, shared memory, scheduling within an SM, but not across SMs
# - seen in the compiled code how wide the loads are, and what that depends on
# - written `vector_add`, had it checked, and measured it against the bandwidth of a copy
#
# ## Check yourself
#
# <details><summary>How many programs does <code>n = 100,000</code> need with <code>BLOCK_SIZE = 1024</code>, and how many elements are masked?</summary>
#
# 98 programs, since 100,000 / 1,024 = 97.7 is rounded up. Their blocks have 100,352 elements, so 352 are masked, all in
# the last program.
#
# </details>
#
# <details><summary>Why is there no <code>threadIdx</code> in Triton?</summary>
#
# A program works on whole blocks. The compiler decides which thread computes which element.
#
# </details>
#
# <details><summary>A kernel without a mask gives the right answer for n = 4096 and blocks of 1024. Is it right?</summary>
#
# For that n, yes: there is no tail. For any n that is not a multiple of 1,024 it writes past the end.
#
# </details>
#
# <details><summary>Could a better kernel add two vectors of 2²⁵ elements in half the time?</summary>
#
# Not if it already runs at the bandwidth of a copy, because every byte must be moved once. Only moving fewer bytes
# helps, for instance with a smaller data type, or by doing more before storing.
#
# </details>
#
# ## Read on
#
# - [Vector addition](https://triton-lang.org/main/getting-started/tutorials/01-vector-add.html), the first tutorial of
#   Triton's authors
# - [Debugging Triton](https://triton-lang.org/main/programming-guide/chapter-3/debugging.html), with all operators that
#   print and assert
# - [Triton's paper](https://www.eecs.harvard.edu/~htk/publication/2019-mapl-tillet-kung-cox.pdf) (Tillet, Kung and Cox,
#   2019), where it began
#
# **Next:** [Reduce to a mean in Triton](02_reduce_to_a_mean.ipynb), where many programs produce one number. Or go
# back to the [syllabus](../README.ipynb).
