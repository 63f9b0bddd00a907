# %% [markdown]
# # Look inside the compiler
#
# **You will** follow a Triton kernel through its compiler, from Python to the instructions of a GPU. Then you read from
# those instructions how wide its loads are, and change a kernel until they are as wide as can be.
#
# **You will learn**
#
# - the six forms that a kernel takes, and what is decided in which
# - which thread gets which elements of a block, and who decides it
# - where shared memory and pipelining come from, which you never wrote
# - how to read loads in PTX
# - what keeps loads narrow: the order of access, rows that begin anywhere, masks, small blocks
#
# **You need** about 70 minutes and [Add two vectors](01_add_vectors.ipynb); for the part on shared memory also
# [Multiply matrices](04_multiply_matrices.ipynb). No GPU is needed: Triton brings a compiler for every NVIDIA GPU along,
# and compiles without having one. With a GPU you measure speed as well.

# %%
from grader import benchmark, check, device
from grader.explore import compare, compile_kernel, draw_compiler_stages, draw_layout, draw_program
from grader.explore import draw_shared_memory, explore_compiler, loaded_layouts, recorded

device

# %%
import torch
import triton
import triton.language as tl

# %% [markdown]
# ## Six forms of a kernel
#
# The decorator `triton.jit` compiles nothing. The first launch does, and it goes through these stages:

# %%
draw_compiler_stages()

# %% [markdown]
# TritonGPU IR, LLVM IR and their kin are *intermediate representations*: forms in which a compiler keeps a program
# while it works on it. Each is text that you can read.
#
# Here is a kernel to follow. It multiplies each row of a matrix by a number of its own, the row's *gain*.


# %%
@triton.jit
def scale_kernel(x_ptr, gain_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = column < columns
    gain = tl.load(gain_ptr + row)
    x = tl.load(x_ptr + row * x_stride + column, mask=mask)
    tl.store(out_ptr + row * out_stride + column, x * gain, mask=mask)


# %% [markdown]
# `compile_kernel` takes what a launch takes, without the grid. It compiles for an H100 or H200 unless you name another
# GPU, and runs nothing.
#
# Predict: this kernel has 8 lines. How many instructions of SASS, the GPU's own language, become of them?

# %%
prediction = ...  # instructions of SASS

# %%
x, gain, out = torch.randn(64, 1024), torch.randn(64), torch.empty(64, 1024)
launch = x, gain, out, x.stride(0), out.stride(0), 1024
scale = compile_kernel(scale_kernel, *launch, BLOCK=1024)
compare(prediction, sum(line.python is not None for line in scale.lines("sass")), "instructions", how="computed")
scale

# %% [markdown]
# Few of the instructions load, multiply or store. The rest are for addresses and masks. *Spilled* is what did not fit
# into registers and was put into memory. Nothing is, here.
#
# Now look at all of it. The number before each line is the line of Python that it comes from. Point at a line, and its
# relatives light up. In JupyterLab you choose the two stages and the GPU above the picture.
#
# Walk through it once from the top. *Python's tree*, with *Triton IR* beside it: `tl.load` is one operation on a block of
# 1,024 pointers, and there are no threads. Then *TritonGPU IR*, and so on.

# %%
explore_compiler(scale_kernel, *launch, BLOCK=1024)

# %% [markdown]
# ## From a block to threads
#
# The stage after Triton IR is *TritonGPU IR*. It has the same operations, and each block has a *layout* now: a rule
# which thread holds which elements. The layout stands in the first line, and behind each block's type.

# %%
held = loaded_layouts(scale)[0]
print(held.name, held.shape, "elements, float32")
print(held.layout.words())

# %% [markdown]
# - `sizePerThread`: how many neighbours a thread holds.
# - `threadsPerWarp`: how the 32 threads of a warp follow each other. CUDA calls them *lanes*. (So far, a lane was a place
#   in a block.)
# - `warpsPerCTA`: how the warps of a program follow each other. CTA is CUDA's word for a block of threads.
# - `order`: which dimension is walked first, for blocks with several.
#
# If the block is larger than what all threads cover once, the pattern repeats.
#
# Predict: which lane of which warp holds element 517?

# %%
prediction = ...  # (warp, lane) of element 517

# %%
compare(prediction, held.layout.holder((517,)), how="computed")
draw_program(scale)

# %% [markdown]
# This is Triton's *automatic parallelisation*. You wrote what happens to a block. The compiler divided the block among
# warps, and each warp's part among lanes.
#
# The four neighbours of a thread are no accident. Four times 4 bytes are 16 bytes, the most that a thread loads at once
# on most GPUs. A pass named *coalesce* looked at the addresses, saw that neighbours in the block are neighbours in
# memory, and chose this layout.
#
# Predict: what does it choose for `sizePerThread` if neighbours in the block lie 4 elements apart in memory?


# %%
@triton.jit
def spread_kernel(x_ptr, gain_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.program_id(1) + tl.arange(0, BLOCK) * 4
    mask = column < columns
    gain = tl.load(gain_ptr + row)
    x = tl.load(x_ptr + row * x_stride + column, mask=mask)
    tl.store(out_ptr + row * out_stride + column, x * gain, mask=mask)


# %%
prediction = ...  # sizePerThread

# %%
spread = compile_kernel(spread_kernel, *launch, BLOCK=1024)
compare(prediction, loaded_layouts(spread)[0].layout.size[0], how="computed")
spread

# %% [markdown]
# Each thread loads 4 bytes at a time, and the 32 threads of a warp load from places that are 16 bytes apart. So a warp
# touches four times as much memory as it uses. (The [notebook on moving bytes](../02_load_inline/02_move_bytes_well.ipynb)
# shows what that costs.)

# %% [markdown]
# ## Shared memory that nobody wrote
#
# A product of matrices loads tiles and multiplies them with `tl.dot`. This one is as simple as can be: no masks, and
# sizes that fit.


# %%
@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, K, stride, M: tl.constexpr, N: tl.constexpr, BLOCK_K: tl.constexpr):
    m, n = tl.program_id(0) * M + tl.arange(0, M), tl.program_id(1) * N + tl.arange(0, N)
    k = tl.arange(0, BLOCK_K)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + m[:, None] * stride + start + k[None, :])
        b = tl.load(b_ptr + (start + k)[:, None] * stride + n[None, :])
        total = tl.dot(a, b, total)
    tl.store(c_ptr + m[:, None] * stride + n[None, :], total.to(tl.float16))


# %%
a = torch.zeros(1024, 1024, dtype=torch.float16)
tiles = a, a, a, 1024, 1024
matmul = compile_kernel(matmul_kernel, *tiles, M=64, N=64, BLOCK_K=32)
print(loaded_layouts(matmul)[0].layout.words())
draw_layout(matmul)

# %% [markdown]
# In two dimensions the layout is a grid. Eight neighbours of float16 are 16 bytes again, and `order = [1, 0]` says that
# a thread's run lies along a row.
#
# But the threads that load an element are not those that multiply it. Tensor cores want their operands elsewhere. So the
# compiler sends the tiles through shared memory: `ttg.local_alloc` in TritonGPU IR.
#
# Predict: a tile of `a` is 64 × 32 elements of float16, a tile of `b` is 32 × 64. How much shared memory does a program
# get, for an H100 or H200?

# %%
prediction = ...  # bytes of shared memory

# %%
compare(prediction, matmul.shared_bytes, "bytes", how="computed")
draw_shared_memory(matmul)

# %% [markdown]
# One pair of tiles would be 8,192 bytes. There are three: while one pair is multiplied, the next two are on their way.
# This is *pipelining*. The copies run beside the computation and go straight to shared memory, `cp.async` in PTX. Nobody
# waits for memory unless the copies fall behind.
#
# The drawing was computed from the code, for a loop of six steps. Time runs from left to right: two copies start before
# the loop, and each step then starts one and reads one. After the loop the same memory is used again, to bring the
# result into the order in which it is stored.
#
# `num_stages` sets how deep the pipeline is. The default is 3, and an H100 has as many pairs. (An A100 has one pair less:
# it reads a pair into registers before it multiplies.) Predict: how much shared memory with `num_stages=5`?

# %%
prediction = ...  # bytes of shared memory

# %%
deeper = compile_kernel(matmul_kernel, *tiles, M=64, N=64, BLOCK_K=32, num_stages=5)
compare(prediction, deeper.shared_bytes, "bytes", how="computed")

# %% [markdown]
# A T4, of the generation before the A100, has no `cp.async`, and Triton does not use its tensor cores. Look here: nothing
# is pipelined, and the tiles pass through registers on their way to plain multiplications, `fma` in PTX. There are not
# enough registers, and some are spilled.

# %%
compile_kernel(matmul_kernel, *tiles, M=64, N=64, BLOCK_K=32, capability=75)

# %% [markdown]
# ## Read PTX
#
# *LLVM IR* describes one thread. From there on it is a compiler like any other: LLVM writes *PTX*, one assembly language
# for all of NVIDIA's GPUs. (A text in it may still be for some only: its line `.target` says for which.) `ptxas` makes
# *SASS* of it, for one generation. PTX is documented, and the form in which loads are easiest to read. This is all that
# our kernel loads:

# %%
for line in scale.lines("ptx"):
    if "ld." in line.text:
        print(f"line {line.python}: {line.text.strip()}")

# %% [markdown]
# Take the last one apart:
#
# - `@%p2`: only if the *predicate* `%p2` holds. That is how a mask is compiled.
# - `ld.global`: load from global memory. `ld.param` loads an argument of the kernel, `ld.shared` from shared memory.
# - `.v4`: four values at once, into the four registers in braces. Without it, it is one.
# - `.b32`: each value has 32 bits. `u`, `s` and `f` in place of `b` say how to read them: unsigned, signed, float.
# - `[ %rd3 + 0 ]`: the address.
#
# So this load moves 4 × 32 bits = 16 bytes for each thread.
#
# Between `ld` and the type, other words may stand, before or after `global`: `ld.global.nc` (memory that nobody writes
# meanwhile), `ld.volatile.global`, `ld.global.L1::evict_last` (advice for a cache). The type always comes last.
#
# Blackwell GPUs can load 32 bytes at once: `.v8.b32` or `.v4.b64`.

# %% [markdown]
# ## Exercise: read the width of loads
#
# Write `vector_width(ptx)`. It gets the text of a kernel in PTX and returns a dictionary: how many **load instructions
# from global memory** move how many **bytes** for one thread. For two loads of 16 bytes and one of 4 that is
# `{16: 2, 4: 1}`. *(about 9 lines)*
#
# - Count instructions in the text, not how often they run. One under a predicate counts.
# - Comments do not count. They begin with `//` and go to the end of the line.
# - Stores (`st.global`) do not count, nor does `cp.async`, nor loads from anywhere else.
# - A line holds at most one instruction.

# %% nbgrader={"grade_id": "vector_width", "solution": true}
import re
from collections import Counter


def vector_width(ptx):
    ### BEGIN SOLUTION
    widths = Counter()
    for line in ptx.splitlines():
        found = re.search(r"\bld(\.[\w.:]+)", line.partition("//")[0])
        parts = found[1].split(".") if found else []
        if "global" in parts:
            lanes = next((int(part[1:]) for part in parts if re.fullmatch(r"v\d", part)), 1)
            widths[lanes * int(parts[-1][1:]) // 8] += 1
    return dict(widths)
    ### END SOLUTION


# %% [markdown]
# `check` draws ⟦ exercise("vector_width").cases | length ⟧ new texts, each with something else to trip over.

# %% nbgrader={"grade_id": "check-vector_width", "grade": true, "locked": true, "points": 4}
check(vector_width)

# %% [markdown]
# If yours works, try `vector_width(scale.ptx)`, and hold it against the table of `scale`.

# %% [markdown]
# ## What keeps a load narrow
#
# A load of 16 bytes needs an address that is a multiple of 16 bytes. And all four elements must be wanted, or none. If
# the compiler cannot *prove* both, it loads the elements one by one. It knows what you tell it, and what it sees in the
# arguments of a launch: which pointers and integers are multiples of 16.
#
# The rows so far were 1,024 elements long. Now take rows of 1,000 that begin 1,004 elements apart. Both numbers are
# multiples of 4, so each row still begins at a multiple of 16 bytes.
#
# Predict: how wide are the loads of `x`?

# %%
prediction = ...  # bytes

# %%
odd = x, gain, out, 1004, 1004, 1000
padded = compile_kernel(scale_kernel, *odd, BLOCK=1024)
compare(prediction, max(padded.loads), "bytes", how="computed")
padded

# %% [markdown]
# All are 4 bytes wide. *You* know that 1,004 is a multiple of 4. The compiler looked for multiples of 16, found none,
# and supposes nothing.
#
# So tell it. A *hint* goes around the value that it is about:
#
# - `tl.max_contiguous(block, 4)`: the block consists of runs of 4 numbers that follow one another, such as 8, 9, 10, 11.
# - `tl.max_constancy(block, 4)`: the block consists of runs of 4 equal elements.
# - `tl.multiple_of(value, 4)`: the value is a multiple of 4. Of a pointer, bytes are counted. Of a block,
#   only the first number of each run need be one: 8 and 20 in 8, 9, 10, 11, 20, 21, 22, 23.
#
# A hint is a promise, and the compiler believes it. If it is false, the kernel gives wrong results or faults, on a GPU
# only.
#
# First the rows. Predict: is this enough for wide loads?


# %%
@triton.jit
def rows_kernel(x_ptr, gain_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = column < columns
    gain = tl.load(gain_ptr + row)
    x = tl.load(x_ptr + tl.multiple_of(row * x_stride, 4) + column, mask=mask)
    tl.store(out_ptr + row * out_stride + column, x * gain, mask=mask)


# %%
prediction = ...  # bytes

# %%
rows = compile_kernel(rows_kernel, *odd, BLOCK=1024)
compare(prediction, max(rows.loads), "bytes", how="computed")
print(loaded_layouts(rows)[0].layout.words())

# %% [markdown]
# Not enough, but look at the layout: a thread holds runs of four now. The addresses are good. What is left is the
# **mask**. It may end in the middle of four elements, as far as the compiler knows.
#
# So ask of a narrow load: does `sizePerThread` allow 16 bytes? If not, it is the order of access, or the start of the
# rows. If so, it is the mask.
#
# (One exception: a load shares its layout with the store of its values. If only the store's addresses are known, the
# load has runs of four as well, and stays narrow.)
#
# One trap: in today's Triton a hint around an *argument* of the kernel, such as `tl.multiple_of(x_stride, 4)`, does
# nothing. Put it around something that was computed. Another way to say the same needs no hint at all: what is
# `x_stride // 4 * 4`?
#
# Last, a block can be too **small**. A program has 4 warps unless you say otherwise, which is 128 threads. Predict: how
# wide can the loads of a block of 256 float32 be at most?

# %%
prediction = ...  # bytes

# %%
small = compile_kernel(scale_kernel, *launch, BLOCK=256)
compare(prediction, max(small.loads), "bytes", how="computed")

# %% [markdown]
# Two elements a thread, so 8 bytes.

# %% [markdown]
# ## Exercise: widen the loads
#
# This kernel is right, and as narrow as can be. Each of its programs takes every $n$-th element of a row, where $n$ is
# the number of programs in a row:
#
# ```python
# @triton.jit
# def narrow_kernel(x_ptr, gain_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
#     row = tl.program_id(0)
#     column = tl.program_id(1) + tl.arange(0, BLOCK) * tl.num_programs(1)
#     mask = column < columns
#     gain = tl.load(gain_ptr + row)
#     x = tl.load(x_ptr + row * x_stride + column, mask=mask)
#     tl.store(out_ptr + row * out_stride + column, x * gain, mask=mask)
#
# def narrow(x, gain, out):
#     grid = x.shape[0], triton.cdiv(x.shape[1], 256)
#     narrow_kernel[grid](x, gain, out, x.stride(0), out.stride(0), x.shape[1], BLOCK=256)
# ```
#
# Write `widen(x, gain, out)`, which does the same with loads of 16 bytes. *(about 14 lines)*
#
# - `x` and `out` are float32 matrices, `gain` is a contiguous vector with a number for each row. The elements of a row
#   are neighbours.
# - Promised: the number of columns is a multiple of 4. So is the distance from row to row, and `x` and `out` begin at
#   multiples of 16 bytes. Nothing more is promised: rows may be padded, each matrix in its own way.
# - The loads are looked at for matrices of 1,000 columns and more. The gain may be loaded as it is: it is one number for
#   a whole program.
#
# Stores of 16 bytes are as good as loads, and come by the same means.

# %% nbgrader={"grade_id": "widen", "solution": true}
import triton
import triton.language as tl


@triton.jit
def wide_kernel(x_ptr, gain_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    ### BEGIN SOLUTION
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = tl.max_constancy(column < columns, 4)
    gain = tl.load(gain_ptr + row)
    x = tl.load(x_ptr + tl.multiple_of(row * x_stride, 4) + column, mask=mask)
    tl.store(out_ptr + tl.multiple_of(row * out_stride, 4) + column, x * gain, mask=mask)
    ### END SOLUTION


def widen(x, gain, out):
    ### BEGIN SOLUTION
    rows, columns = x.shape
    grid = rows, triton.cdiv(columns, 1024)
    wide_kernel[grid](x, gain, out, x.stride(0), out.stride(0), columns, BLOCK=1024)
    ### END SOLUTION


# %% [markdown]
# `check` looks at your results, and at the code that your kernel was compiled to. Without a GPU it runs in the simulator,
# where your hints are held against the values, and is compiled for an H100 or H200 beside it.

# %% nbgrader={"grade_id": "check-widen", "grade": true, "locked": true, "points": 6}
check(widen)

# %% [markdown]
# If it says that loads are narrow, look yourself:
# `explore_compiler(wide_kernel, x, gain, out, 1004, 1004, 1000, BLOCK=…)`.

# %% [markdown]
# ## How fast is it?
#
# Predict, for rows of 4,092 and of 16,380 columns: how many times as fast as the narrow kernel is yours?
#
# The points:
#
# - ⟦ exercise("widen").correctness_points ⟧ for right answers by wide loads
# - ⟦ gate("widen", "given").points ⟧ for ⟦ gate("widen", "given").at_least ⟧ times the speed of the narrow kernel, as the
#   geometric mean over both

# %%
prediction = ...  # times as fast as the narrow kernel

# %%
benchmark(widen)

# %% [markdown]
# At the left end of your plot the time is the launch's, and the host's: to call a Triton kernel can take longer than so
# short a kernel runs. Compare at the right end.
#
# Two things changed at once: the order of access, and the width. Which of them counts? The authors timed a kernel that
# copies. In all of its versions a thread has runs of four neighbours, and asks for them in four, two or one load:

# %%
recorded("widths", "bandwidth_gbps", "share_of_copy")

# %% [markdown]
# Loads of 4 bytes are clearly behind. From 8 bytes on there is nothing left to gain: with 8 elements a thread, 16 bytes
# are as fast as 8, and with 32 elements a little slower. (Why slower is not explained.)
#
# And this is the order of access, in the kernel of the exercise:

# %%
recorded("widths/order", "bandwidth_gbps", "ratio_vs_narrow")

# %% [markdown]
# So it is the order of access. Threads that load little at a time need more instructions, which costs something. The
# order decides how many bytes are moved at all.
#
# This was recorded for 8,192 rows of 4,092. There the narrow kernel has 16 programs a row, so a warp's addresses lie 64
# bytes apart. Memory answers in sectors of 32 bytes: of each, 4 bytes are used, so eight times as much is moved. But the
# wide kernel is more than eight times as fast. Bytes explain eight, and the rest is not explained here. What does your
# report say?

# %% [markdown]
# ## Extra credit
#
# No points, but each shows something.
#
# 1. Look at SASS for `scale_kernel`: which instruction is the load, and where does its width stand?
# 2. Choose `sm_100` in the explorer. Are the loads wider than 16 bytes?
# 3. Compile `matmul_kernel` with `M=256, N=256, num_warps=4`. What happens to the registers, and what is spilled?
# 4. Compile your `wide_kernel` with `num_warps=8` and a block of 1,024. Are the loads still wide? And with 16 warps?

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - followed a kernel through Triton IR, TritonGPU IR, LLVM IR, PTX and SASS, for several GPUs and without one
# - read from a layout which thread holds which element of a block
# - seen shared memory and pipelining appear in a kernel that mentions neither
# - written a reader for the loads in PTX
# - told the compiler what it could not know, and got loads of 16 bytes
#
# ## Check yourself
#
# <details><summary>In which stage do you first see threads?</summary>
#
# In TritonGPU IR: there each block gets a layout, which says which warp and lane hold which elements.
#
# </details>
#
# <details><summary>A layout says <code>sizePerThread = [4]</code> for float32, and the loads are 4 bytes wide. Why?</summary>
#
# It is the mask: it is not known to be equal for four neighbours. Or the layout is the store's, and the addresses of the
# load are not known.
#
# </details>
#
# <details><summary>How many bytes does <code>ld.global.v2.f64</code> move for a thread?</summary>
#
# Two values of 64 bits, which are 8 bytes each: 16 bytes together.
#
# </details>
#
# <details><summary>Why does a kernel with three pipeline stages need three times the shared memory?</summary>
#
# While one pair of tiles is multiplied the next two are arriving, and each needs a place of its own.
#
# </details>
#
# <details><summary>What happens if a hint is false?</summary>
#
# The compiler believes it. It loads four neighbours of the first element, whatever was asked for, or faults at an address
# that is not aligned.
#
# </details>
#
# **Next:** [Find a period](../04_numba_cupy/01_find_a_period.ipynb), where the Lomb–Scargle ladder begins.
