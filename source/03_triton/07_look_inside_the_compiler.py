# %% [markdown]
# # Look inside the compiler
#
# **You will** follow a Triton kernel through its compiler, from Python to the instructions of a GPU. Then you read
# from those instructions how wide its loads are, and change a kernel until they are as wide as possible.
#
# **You will learn**
#
# - the six forms that a kernel takes, and what is decided in each
# - which thread gets which elements of a block
# - where shared memory and pipelining come from, although you wrote neither
# - how to read loads in PTX
# - what keeps loads narrow: the order of access, unaligned rows, masks, small blocks
#
# **You need** about 110 minutes and [Add two vectors](01_add_vectors.ipynb); for the part on shared memory also
# [Multiply matrices](04_multiply_matrices.ipynb). You need no GPU: Triton includes a compiler for every NVIDIA GPU,
# which runs without one. With a GPU you measure speed as well.

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
# The decorator `triton.jit` compiles nothing. The first launch compiles the kernel (**JIT**, just in time), through
# these stages:

# %%
draw_compiler_stages()

# %% [markdown]
# Triton IR, TritonGPU IR and LLVM IR are **intermediate representations**: forms in which a compiler keeps a program
# while it works on it. Each is text that you can read. All three are in **SSA** form, static single assignment: each
# name, such as `%5`, gets a value in exactly one place. A variable that changes in a loop becomes an argument that each
# round passes to the next.
#
# This kernel multiplies each row of a matrix by a number of its own, the row's *gain*. Its grid has two axes: axis 0
# goes over the rows, and axis 1 over the blocks of a row.


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
# `compile_kernel` takes the arguments of a launch, without the grid. It compiles for an H100 or H200 unless you name a
# different GPU, and runs nothing.
#
# A program has 128 threads for 1,024 elements, and an instruction loads at most 16 bytes. Predict: how many load
# instructions for `x` does a thread have?

# %%
prediction = ...  # loads

# %%
x, gain, out = torch.randn(64, 1024), torch.randn(64), torch.empty(64, 1024)
launch = x, gain, out, x.stride(0), out.stride(0), 1024
scale = compile_kernel(scale_kernel, *launch, BLOCK=1024)
compare(prediction, scale.loads[16], "loads", how="computed")
scale

# %% [markdown]
# There are two loads of 16 bytes for `x`, and one of 4 bytes for the gain. Few of the instructions load, multiply or
# store. The rest are for addresses and masks. **Spilled** values did not fit into registers and were put into memory;
# here there are none.
#
# Now look at all of it. The number before each line is the line of Python that it comes from. Point at a line, and the
# lines from the same line of Python light up. In JupyterLab you choose the two stages and the GPU above the picture.
#
# Start with *Python's tree* and *Triton IR*: `tl.load` is one operation on a block of 1,024 pointers, and there are no
# threads. Then go on to *TritonGPU IR*, and so on.

# %%
explore_compiler(scale_kernel, *launch, BLOCK=1024)

# %% [markdown]
# ## From a block to threads
#
# The stage after Triton IR is *TritonGPU IR*. It has the same operations, but each block now has a **layout**: a rule
# that says which thread holds which elements. The first line defines the layout. The type of each block ends with the
# layout's name.

# %%
held = loaded_layouts(scale)[0]
print(held.name, held.shape, "elements, float32")
print(held.layout.words())

# %% [markdown]
# - `sizePerThread`: how many neighbours a thread holds.
# - `threadsPerWarp`: how the 32 threads of a warp are arranged. The threads of a warp are called **lanes**.
# - `warpsPerCTA`: how the warps of a program are arranged. A CTA is a block of threads, in NVIDIA's terms.
# - `order`: the dimension that is covered first, for blocks with several.
#
# If all threads together cover less than the block, the pattern repeats.
#
# Predict: which lane of which warp holds element 517?

# %%
prediction = ...  # (warp, lane) of element 517

# %%
compare(prediction, held.layout.holder((517,)), how="computed")
draw_program(scale)

# %% [markdown]
# This is Triton's **automatic parallelisation**, on two levels. The hardware distributes the programs over the SMs. The
# compiler divides each block among the warps of a program, and each warp's part among its lanes.
#
# There is a reason for the four neighbours per thread. Four times 4 bytes are 16 bytes, the most that a thread loads at
# once on most GPUs. A compiler pass named *coalesce* analysed the addresses, found that neighbours in the block are
# neighbours in memory, and chose this layout.
#
# Predict: what does it choose for `sizePerThread` if neighbours in the block are 4 elements apart in memory?


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
# touches four times as much memory as it uses. [Move bytes well](../02_load_inline/02_move_bytes_well.ipynb) shows what
# that costs.

# %% [markdown]
# ## Shared memory that nobody wrote
#
# A matrix product loads tiles and multiplies them with `tl.dot`. This one is as simple as possible: no masks, and sizes
# that fit.


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
# In two dimensions the layout is a grid. Eight float16 neighbours are 16 bytes again, and `order = [1, 0]` says that
# they are in a row.
#
# But the threads that load an element are not those that multiply it: tensor cores need their operands in a different
# layout. So the compiler moves the tiles through shared memory: `ttg.local_alloc` in TritonGPU IR.
#
# A tile of `a` is 64 × 32 elements of float16, a tile of `b` is 32 × 64. Predict: how much shared memory does the
# compiler reserve per program, on an H100 or H200?

# %%
prediction = ...  # bytes of shared memory

# %%
compare(prediction, matmul.shared_bytes, "bytes", how="computed")
draw_shared_memory(matmul)

# %% [markdown]
# One pair of tiles is 8,192 bytes. There are three pairs: while one is multiplied, the next two are on their way. This
# is **pipelining**. The copies run at the same time as the computation and go straight to shared memory, `cp.async` in
# PTX.
#
# The drawing was computed from the code, for a loop of six steps. Time runs from left to right. Two copies start before
# the loop, and each step then starts one and reads one.
#
# After the loop the result, 8,192 bytes, also goes through shared memory, to get into the order in which it is stored.
# Yet it needs no room of its own. The compiler computes for each buffer its **live range**, from the first write to the
# last read. The tiles are dead when the result is written, so both get the same addresses.
#
# `num_stages` sets the depth of the pipeline. The default is 3. On an H100 that is three pairs; on an A100 and on
# GeForce cards it is two, because they read a pair into registers before they multiply it. Predict: how much shared
# memory does the kernel need with `num_stages=5`?

# %%
prediction = ...  # bytes of shared memory

# %%
deeper = compile_kernel(matmul_kernel, *tiles, M=64, N=64, BLOCK_K=32, num_stages=5)
compare(prediction, deeper.shared_bytes, "bytes", how="computed")

# %% [markdown]
# That is five pairs of 8,192 bytes.
#
# A T4, of the generation before the A100, has no `cp.async`, and Triton does not use its tensor cores. Nothing is
# pipelined here, and the tiles pass through registers to ordinary multiplications, `fma` in PTX. There are not enough
# registers, so some values are spilled.

# %%
compile_kernel(matmul_kernel, *tiles, M=64, N=64, BLOCK_K=32, capability=75)

# %% [markdown]
# ## Read PTX
#
# *LLVM IR* describes one thread. From here on, this is a compiler like any other. LLVM generates **PTX**, an assembly
# language for all of NVIDIA's GPUs; its line `.target` names the generation that a file needs. `ptxas` compiles PTX to
# **SASS**, the machine code of one generation. PTX is documented, and its loads are the easiest to read. These are all
# loads of our kernel:

# %%
for line in scale.lines("ptx"):
    if "ld." in line.text:
        print(f"line {line.python}: {line.text.strip()}")

# %% [markdown]
# Take the last one apart:
#
# - `@%p2`: only if the **predicate** `%p2` is true. A mask compiles to this.
# - `ld.global`: load from global memory. `ld.param` loads an argument of the kernel, `ld.shared` from shared memory.
# - `.v4`: four values at once, into the four registers in braces. Without it, one value.
# - `.b32`: each value has 32 bits. `u`, `s` and `f` in place of `b` say how to read them: unsigned, signed, float.
# - `[ %rd3 + 0 ]`: the address.
#
# So this load moves 4 × 32 bits = 16 bytes for each thread.
#
# Between `ld` and the type there may be other words, before or after `global`: `ld.global.nc` (memory that does not
# change while the kernel runs), `ld.volatile.global`, `ld.global.L1::evict_last` (advice for a cache). The type always
# comes last.
#
# Blackwell GPUs can load 32 bytes at once: `.v8.b32` or `.v4.b64`.

# %% [markdown]
# ## Exercise: read the width of loads
#
# Write `vector_width(ptx)`. It gets the text of a kernel in PTX and returns a dictionary: how many **load instructions
# from global memory** move how many **bytes** for one thread. For two loads of 16 bytes and one of 4 that is
# `{16: 2, 4: 1}`. *(about 9 lines)*
#
# - Count instructions in the text, not how often they run. A load under a predicate counts.
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
# `check` draws ⟦ exercise("vector_width").cases | length ⟧ new texts, each with a trap of its own.

# %% nbgrader={"grade_id": "check-vector_width", "grade": true, "locked": true, "points": 4}
check(vector_width)

# %% [markdown]
# If yours works, try `vector_width(scale.ptx)`, and compare it with the table of `scale`.

# %% [markdown]
# ## What keeps a load narrow
#
# A load of 16 bytes needs an address that is a multiple of 16 bytes, and the mask must be the same for all four
# elements. If the compiler cannot *prove* both, it loads the elements one by one. It knows what you tell it, and what
# it sees in the arguments of a launch: which pointers and integers are multiples of 16.
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
# All are 4 bytes wide. *You* know that 1,004 is a multiple of 4. The compiler checked for multiples of 16 and found
# none, so it assumes nothing.
#
# So tell it. A **hint** wraps the value that it describes:
#
# - `tl.max_contiguous(block, 4)`: the block consists of runs of 4 numbers that follow one another, such as 8, 9, 10,
#   11.
# - `tl.max_constancy(block, 4)`: the block consists of runs of 4 equal elements.
# - `tl.multiple_of(value, 4)`: the value is a multiple of 4. For a pointer, count in bytes. For a block, only the first
#   number of each run must be a multiple: 8 and 20 in 8, 9, 10, 11, 20, 21, 22, 23.
#
# A hint is a promise, and the compiler believes it. If it is false, the kernel gives wrong results or faults, on a GPU
# only.
#
# First the rows. Predict: how wide are the loads now?


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
# They are still narrow, but look at the layout: a thread now holds runs of four. The addresses are no longer the
# problem. What remains is the **mask**: as far as the compiler knows, it may end in the middle of four elements.
#
# So if a load is narrow, look at `sizePerThread`. If it does not allow 16 bytes, the cause is the order of access or
# the start of the rows. If it does, the cause is the mask. There is one exception: a load gets the same layout as the
# store of its values. With a hint for the store only, `sizePerThread` is 4 for the load as well, but the load stays
# narrow.
#
# There is one trap: in today's Triton a hint around an *argument* of the kernel, such as `tl.multiple_of(x_stride, 4)`,
# has no effect. Put it around a computed value. Or do without a hint: what is `x_stride // 4 * 4`?
#
# Finally, a block can be too **small**. A program has 128 threads by default. Predict: how wide can the loads of a
# block of 256 float32 be at most?

# %%
prediction = ...  # bytes

# %%
small = compile_kernel(scale_kernel, *launch, BLOCK=256)
compare(prediction, max(small.loads), "bytes", how="computed")

# %% [markdown]
# There are two elements per thread, so 8 bytes.

# %% [markdown]
# ## Exercise: widen the loads
#
# This kernel is right, but its loads are as narrow as possible. Each program computes every $n$-th element of a row,
# where $n$ is the number of programs per row:
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
# - You may rely on this: the number of columns and the distance between rows are multiples of 4, and `x` and `out`
#   begin at multiples of 16 bytes. But rows may be padded, differently in each matrix.
# - `check` inspects the loads only for matrices with at least 1,000 columns. You may load the gain as it is: it is one
#   number per program.
#
# Wide stores need the same hints.

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
# `check` inspects your results and your kernel's compiled code. Without a GPU, the kernel runs in the simulator, which
# compares your hints with the values, and is also compiled for an H100.

# %% nbgrader={"grade_id": "check-widen", "grade": true, "locked": true, "points": 6}
check(widen)

# %% [markdown]
# If the report says that loads are narrow, look for yourself:
# `explore_compiler(wide_kernel, x, gain, out, 1004, 1004, 1000, BLOCK=…)`.
#
# When `check` passes, launch your kernel yourself, with gains of 1, 2, 3 and so on.

# %%
x, gain = torch.randn(8, 1024, device=device), torch.arange(1.0, 9.0, device=device)
out = torch.zeros_like(x)
try:
    widen(x, gain, out)
except NotImplementedError as stub:
    print(stub)
print("wrong elements:", (out != x * gain[:, None]).sum().item(), "of", x.numel())

# %% [markdown]
# ## How fast is it?
#
# The points:
#
# - ⟦ exercise("widen").correctness_points ⟧ for right answers by wide loads
# - ⟦ gate("widen", "given").points ⟧ for ⟦ gate("widen", "given").at_least ⟧ times the speed of the narrow kernel, as
#   the geometric mean over rows of 4,092 and of 16,380 columns
#
# Memory delivers **sectors** of 32 bytes. At 4,092 columns the narrow kernel has 16 programs per row, so a warp's
# addresses are 64 bytes apart, and each thread uses 4 bytes of its sector. Predict: how many times as fast was the wide
# kernel there, on an H200?

# %%
prediction = ...  # times as fast as the narrow kernel

# %%
found = recorded("widths/order", "bandwidth_gbps", "ratio_vs_narrow")
compare(prediction, found.value("ratio_vs_narrow", "the wide kernel"), "times as fast", how="recorded")
found

# %%
benchmark(widen)

# %% [markdown]
# At the left end of your plot you see the time of the launch and of the host. Compare at the right end.
#
# Two things changed at once: the order of access, and the width. Which of them matters? The authors timed a kernel that
# copies. In each version a thread has runs of four neighbours, which it loads with four, two or one instruction:

# %%
recorded("widths", "bandwidth_gbps", "share_of_copy")

# %% [markdown]
# Loads of 4 bytes are clearly slower. From 8 bytes on there is nothing left to gain. So the order of access matters most:
# it decides how many bytes are moved.
#
# By sectors, the narrow kernel moves eight times as many bytes as the wide one. On the H200 it took
# ⟦ recorded(bench="widths/order", case="the wide kernel", metric="ratio_vs_narrow", gpu="H200") ⟧ the time. Does the
# width explain the rest? Test it on a GPU: take the hints out of your kernel, which narrows its loads but keeps their
# order. How much slower is it?

# %% [markdown]
# ## Extra credit
#
# No points, but each of these shows something.
#
# 1. Look at SASS for `scale_kernel`: which instruction is the load, and what is its width?
#
# <details><summary>Answer</summary>
#
# `LDG.E.128` loads 128 bits, which are 16 bytes. The load of the gain, `LDG.E`, has no width: it loads 4 bytes.
#
# </details>
#
# 2. Choose `sm_100` in the explorer. Are the loads wider than 16 bytes?
#
# <details><summary>Answer</summary>
#
# No. The GPU could load 32 bytes, but this version of Triton gives a thread at most four neighbours of 4 bytes.
#
# </details>
#
# 3. Compile `matmul_kernel` with `M=256, N=256, BLOCK_K=32, num_warps=4`. What happens to the registers?
#
# <details><summary>Answer</summary>
#
# The 65,536 sums are 512 per thread, but a thread has at most 255 registers. The rest is spilled, and the loop moves it
# to memory and back.
#
# </details>
#
# 4. Compile your `wide_kernel` with `num_warps=8` and a block of 1,024. Are the loads still wide? And with 16 warps?
#
# <details><summary>Answer</summary>
#
# With 8 warps they are: 256 threads have four elements each. With 16 warps a thread has two, so its loads are 8 bytes
# wide.
#
# </details>

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - followed a kernel through Triton IR, TritonGPU IR, LLVM IR, PTX and SASS, for several GPUs and without one
# - read from a layout which thread holds which element of a block
# - seen shared memory and pipelining in a kernel that mentions neither, and buffers that share addresses
# - written a function that reads the loads in PTX
# - told the compiler what it could not know, and got loads of 16 bytes
#
# ## Check yourself
#
# <details><summary>In which stage do you first see threads?</summary>
#
# In TritonGPU IR: each block has a layout, which says which warp and lane hold which elements.
#
# </details>
#
# <details><summary>A layout says <code>sizePerThread = [4]</code> for float32, and the loads are 4 bytes wide. Why?</summary>
#
# The compiler does not know that the mask is equal for four neighbours. Or the layout is the store's, and the load's
# addresses are not known.
#
# </details>
#
# <details><summary>How many bytes does <code>ld.global.v2.f64</code> move per thread?</summary>
#
# Two values of 64 bits, which are 8 bytes each: 16 bytes together.
#
# </details>
#
# <details><summary>Why does a kernel with three pipeline stages need three times the shared memory?</summary>
#
# While one pair of tiles is multiplied, the next two arrive, and each needs its own buffer.
#
# </details>
#
# <details><summary>What happens if a hint is false?</summary>
#
# The compiler trusts it. The kernel loads four neighbours from the first element on, even if you asked for others, or it
# faults at an address that is not aligned.
#
# </details>
#
# ## Read on
#
# - [PTX instruction set](https://docs.nvidia.com/cuda/parallel-thread-execution/): every instruction of this notebook
# - [Triton's dialects](https://triton-lang.org/main/dialects/dialects.html): the operations of Triton IR and TritonGPU
#   IR
# - [Triton's paper](https://www.eecs.harvard.edu/~htk/publication/2019-mapl-tillet-kung-cox.pdf) (2019), on why a
#   compiler should know about blocks
#
# **Next:** [Compare languages](08_compare_languages.ipynb), one matrix product in four languages. Or go back to the
# [syllabus](../README.ipynb).
