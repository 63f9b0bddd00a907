# %% [markdown]
# # Add two vectors
#
# **You will** write your first Triton kernel: `out[i] = x[i] + y[i]`, for any number of elements.
#
# **You will learn**
#
# - what a *program* and a *block* are in Triton, and a *thread* in CUDA
# - how the same kernel looks in Numba, which thinks in threads, and in Triton, which thinks in blocks
# - what a mask is for, and what happens without one
# - which work Triton takes off your hands, and which it leaves to you
# - how fast such a kernel can be at best
#
# **You need** about 45 minutes, PyTorch, and no CUDA. With an NVIDIA GPU you measure speed as well. Without one the
# kernels run in simulators, slowly: `check` finds most errors there, and its report says what a simulator cannot see.
# Speed is then shown as it was recorded on another machine.

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
# ## One thread, one element
#
# A function that runs on the GPU is called a *kernel*. In CUDA you write what **one thread** does, and the launch
# starts as many threads as you ask for. They come in *blocks* of equal size. Numba lets you write such a kernel in
# Python.
#
# This one doubles each element. A thread first computes its number `i`, then works on element `i`, if there is one.

# %%
@cuda.jit
def double_numba(x, out, n):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i < n:
        out[i] = 2 * x[i]


# %% [markdown]
# A launch names the number of blocks and the threads in each: `double_numba[blocks, threads](…)`. We have 10 elements
# and want blocks of 4 threads.
#
# Predict: how many threads will find that they have no element? Write the number in place of the three dots before
# you run the cell after it.

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
# Ten elements need three blocks, and three blocks have twelve threads. Two of them do nothing: `if i < n` sees to
# that.
#
# This way to write is called *SIMT*: single instruction, multiple threads. The code is about one element. That
# threads run in groups, that neighbours should load from neighbouring addresses: none of it is in the code, and all
# of it is your concern.

# %% [markdown]
# ## One program, one block
#
# A Triton kernel has no threads. What runs many times is called a *program*, and a program works on a whole **block**
# of elements at once. The variable `i` below is not a number. It is a block of numbers, and so is everything computed
# from it.

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
# - **`x_ptr`** is a pointer, the address of the first element. You pass a tensor, the kernel gets its pointer.
#   `x_ptr + i` is a block of pointers, and `tl.load` fetches all of them.
# - **`mask=i < n`** takes the place of `if`. A block cannot branch for one lane (one place in the block) alone, so
#   you say which lanes count.
# - **`BLOCK: tl.constexpr`** must be known when the kernel is compiled, and it must be a power of two.
#
# The launch names only the number of programs: `kernel[(programs,)](…)`. A program gets 128 threads unless you ask
# otherwise; which thread does what is the compiler's business.

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
# Now let each program write its own number instead. Predict: what will stand in element 7?

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
# Let us leave the mask out. To see the harm without doing any, `out` is the first 10 of 16 elements that belong to
# us, and all of them hold -1.
#
# Predict: how many of the six elements behind `out` will change?

# %%
@triton.jit
def double_without_mask(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 2 * tl.load(x_ptr + i))


# %%
prediction = ...  # elements changed behind the end

# %%
x = torch.arange(16.0, device=device)
memory = torch.full((16,), -1.0, device=device)
out = memory[:10]
double_without_mask[(triton.cdiv(10, 4),)](x, out, BLOCK=4)
compare(prediction, (memory[10:] != -1).sum().item(), "elements")
memory

# %% [markdown]
# Elements 10 and 11 were overwritten, and **nothing complained**. `out` itself is right. Had those two places
# belonged to another tensor, that tensor would now be wrong, and you would look for the bug in the wrong place. This
# is why `check` puts guards around every tensor.
#
# A mask also guards loads. A lane that is masked out does not read at all; it gets whatever you pass as `other=`, or
# an undefined value if you pass nothing. That is fine as long as the lane is masked out of the store as well.
#
# So mask your loads, too. `check` cannot see a read past the end whose value is never stored, and on a GPU it may be
# an illegal access.

# %% [markdown]
# ## Who does what
#
# A GPU has three parts that a kernel's author must think of: large, slow memory (*DRAM*); small, fast memory on the
# chip (*SRAM*: registers and shared memory); and the units that compute (*ALU*s), grouped into *streaming
# multiprocessors* (SMs). Each asks for care:
#
# | | what it means | in CUDA | in Triton |
# | --- | --- | --- | --- |
# | coalescing | neighbouring threads load neighbouring addresses, so that DRAM delivers few large pieces | by hand | automatic |
# | shared memory | what is used again is kept on the chip, and threads are synchronised around it | by hand | automatic |
# | scheduling within an SM | the work of a block is spread over its threads and units | by hand | automatic |
# | scheduling across SMs | the work is cut into blocks, and they are independent | by hand | by hand |
#
# The last row is yours in both: which program does which block, how large a block is, and what happens where programs
# would have to talk to each other.

# %% [markdown]
# ### Look at the first row
#
# Neighbouring threads load neighbouring addresses. How much does each of them fetch at once? At most 16 bytes with one
# instruction, and wide loads need fewer instructions. (What that is worth is measured in
# [the last notebook](07_look_inside_the_compiler.ipynb).) You never said how wide. Predict: in `double_triton` with
# `BLOCK=1024`, how many bytes does one thread fetch with one instruction?
#
# The next cell compiles the kernel for an H100 or H200 (no GPU is needed for that) and counts the instructions that
# came out.

# %%
prediction = ...  # bytes

# %%
types = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}
found = memory_instructions(double_triton, types, {"BLOCK": 1024}, divisible_by_16=("x_ptr", "out_ptr", "n"))
compare(prediction, int(next(iter(found)).split()[2]), "bytes")
found

# %% [markdown]
# The compiler gave each thread four neighbouring elements at a time. Why two loads? 1,024 elements over 128 threads
# (4 *warps* of 32 threads, the default) are 8 each: two loads of four.
#
# For wide loads the compiler must know that the pointers are aligned and that the mask does not end in the middle of
# four elements. Triton looks at the arguments of every launch: is this number divisible by 16?
#
# Predict what changes if `n` is not.

# %%
prediction = ...  # bytes, for n not divisible by 16

# %%
found = memory_instructions(double_triton, types, {"BLOCK": 1024}, divisible_by_16=("x_ptr", "out_ptr"))
compare(prediction, int(next(iter(found)).split()[2]), "bytes")
found

# %% [markdown]
# Each element now needs an instruction of its own, since the mask may end anywhere. Such details are seldom worth a
# change in the code, and often worth knowing when a plot has dents.

# %% [markdown]
# ## Exercise: add two vectors
#
# Add `x` and `y` into `out`. All three are contiguous float32 vectors of the same length, which may be anything from
# 1 up.
#
# 1. The kernel: you have more lanes than elements. *(about 6 lines)*
# 2. The launch: enough programs for all elements. `BLOCK_SIZE` is yours to choose. *(about 3 lines)*
#
# The cell is a complete submission: it imports what it needs, and what it defines is all that is graded.

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
# Correct before fast. `check` takes the text of the cell above, runs it in a process of its own and compares every
# element with a float64 result. A kernel that crashes costs you a message, not this notebook. A `NameError`? Run the
# exercise's cell first.

# %% nbgrader={"grade_id": "check-vector_add", "grade": true, "locked": true, "points": 5}
check(vector_add)

# %% [markdown]
# ## How fast can it be?
#
# Count what must move. Each element of `x` and of `y` is read once, each element of `out` is written once: three
# times `4n` bytes for float32, and one addition for every 12 bytes. A GPU adds far faster than it fetches, so
# **memory is the limit**, and the best time is the bytes divided by the bandwidth.
#
# Predict: the memory of an H200 is specified at 4,800 GB/s. How many microseconds does it need at least for n = 2²⁵?

# %%
prediction = ...  # microseconds

# %%
n = 1 << 25
bytes_moved = 3 * 4 * n  # reads x, reads y, writes out
compare(prediction, bytes_moved / 4800e9 * 1e6, "µs", how="computed")

# %% [markdown]
# Nothing reaches the specified value; a plain copy is the honest yardstick. Now predict the share of a copy's
# bandwidth which your kernel will reach at n = 2²⁵, and what `torch.compile` makes of `x + y`: faster, slower, the
# same? Then measure. ⟦ gate("vector_add", "torch").points ⟧ of ⟦ exercise("vector_add").max_points ⟧ points are for
# reaching ⟦ gate("vector_add", "torch").at_least ⟧ of `torch.add`'s speed at
# ⟦ gate("vector_add", "torch").cases | join(", ") ⟧, which is 2²⁵.

# %%
prediction = ...  # share of the bandwidth of a copy, and a word for torch.compile

# %%
benchmark(vector_add)

# %% [markdown]
# Hold your prediction against the report. And this is what the authors' kernel reached:

# %%
recorded("vector_add", "ratio_vs_torch", "ratio_vs_compile", "share_of_copy")

# %% [markdown]
# Read the plot from the left.
#
# - **Small vectors:** GB/s grow almost as n does, since the time hardly changes. On an H200 the authors' kernel took
#   ⟦ recorded(bench="vector_add", case="65,536 elements", metric="median_us", gpu="H200") ⟧ for 65,536 elements and
#   ⟦ recorded(bench="vector_add", case="262,144 elements", metric="median_us", gpu="H200") ⟧ for four times as many:
#   nearly all of it are the few microseconds that the GPU itself needs to begin and end any kernel.
# - **No help from the cache:** vectors of this size would fit into the L2 cache, and a loop over the same vectors would
#   measure the cache. So every launch gets vectors of its own, more of them than the L2 holds.
# - **Large vectors:** everyone meets at the same height, the bandwidth of a copy. Your kernel, `torch.add` and what
#   `torch.compile` generates (a Triton kernel much like yours) all move the same bytes, and all end within a few per
#   cent of a copy. At 134,217,728 elements the authors' kernel even reached
#   ⟦ recorded(bench="vector_add", case="134,217,728 elements", metric="share_of_copy", gpu="H200") ⟧ of it on an
#   H200. A copy is a yardstick, not a law: half of its bytes are writes, of an addition's only a third.
# - **A ratio far from 1** in your own plot, at one size or at all the small ones: do not believe it. To call a Triton
#   kernel, or what `torch.compile` made, can take the host tens of µs, longer than such a kernel runs. If the GPU has
#   to wait for the call, what was measured is the host. (The recorded table leaves the host out. There what
#   `torch.compile` made is a few per cent ahead at the small sizes. Why is not explained.)
#
# So an addition alone is not worth a kernel. It becomes worth one when several operations share one trip to memory.
# That is the subject of the softmax notebook.

# %% [markdown]
# ## Extra credit
#
# No points, but each shows something. Change the exercise's cell, run it, and `benchmark` it again (with a GPU).
#
# 1. `BLOCK_SIZE` of 64, 256, 1024, 8192. Which are slow, and why? (How many bytes does one program move, and how many
#    programs are there?)
# 2. Compute `x + y * 2` instead. Does the time change? What if you take the sine of the sum as well?
# 3. Leave out the mask of the store and `check`. Which of its sizes notice?

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - seen the same kernel for threads (Numba) and for blocks (Triton)
# - seen a kernel without a mask overwrite memory that was not its own, in silence
# - sorted out what Triton does for you: coalescing, shared memory, scheduling within an SM, but not across SMs
# - seen in the compiled code how wide the loads are, and what that depends on
# - written `vector_add`, had it checked, and measured it against the bandwidth of a copy
#
# ## Check yourself
#
# <details><summary>How many programs does <code>n = 100,000</code> need with <code>BLOCK_SIZE = 1024</code>, and how many lanes are masked?</summary>
#
# 98 programs, since 100,000 / 1,024 = 97.7 is rounded up. They have 100,352 lanes, so 352 are masked, all in the last
# program.
#
# </details>
#
# <details><summary>Why is there no <code>threadIdx</code> in Triton?</summary>
#
# A program works on blocks as a whole. Which thread does which element of a block is the compiler's decision.
#
# </details>
#
# <details><summary>A kernel without a mask gives the right answer for n = 4096 and blocks of 1024. Is it right?</summary>
#
# For that n, yes: there is no tail. For any n that is no multiple of 1,024 it writes past the end.
#
# </details>
#
# <details><summary>Could a better kernel add two vectors of 2²⁵ elements in half the time?</summary>
#
# Not if it already runs at the bandwidth of a copy: every byte must be moved once. Only fewer bytes help, for
# instance a smaller data type, or doing more before storing.
#
# </details>
#
# **Next:** [Reduce to a mean in Triton](02_reduce_to_a_mean.ipynb), where many programs make one number.
