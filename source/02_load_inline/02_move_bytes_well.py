# %% [markdown]
# # Move bytes well
#
# **You will** find out what memory delivers when a kernel asks for it, and write a kernel that transposes a matrix at
# nearly the speed of a copy: `out[j, i] = x[i, j]`.
#
# **You will learn**
#
# - what a **sector** is, and how to count the sectors that a load touches
# - why neighbouring threads should touch neighbouring elements (**coalescing**)
# - why wide loads (`float4`) help, and how many bytes must be **in flight** to keep memory busy
# - how a block's threads exchange values through **shared memory**, and why they must wait for each other
# - what a **bank conflict** is, and how one unused element per row removes it
#
# **You need** about 95 minutes and the notebook before this one, [Square a matrix](01_square_a_matrix.ipynb). With an
# NVIDIA GPU every experiment is measured here. Without one it is shown as recorded on another machine, and counts are
# made here.

# %%
from grader import benchmark, check, device
from grader.explore import (
    bank_access, compare, draw_banks, draw_padded_tile, draw_sectors, draw_transposed_tile,
    experiment, explore_banks, explore_sectors, recorded, warp_access,
)  # fmt: skip

device

# %% [markdown]
# ## Memory comes in sectors
#
# Threads 0 to 31 of a block are its first **warp**, 32 to 63 the next. In a two-dimensional block, x varies fastest, so
# in a block of 32 × 8 threads each warp is one row. The threads of a warp run the same instruction together: a load is
# one request with 32 addresses.
#
# Memory does not answer with single floats. It delivers **sectors** of 32 bytes, which begin at multiples of 32. Four
# sectors make a **line** of 128 bytes in the caches. A load costs the sectors that its 32 addresses touch, each once.
# The same holds for a store.
#
# Thread $t$ takes element $t$ of an array of floats (4 bytes each), and the array begins at the start of a sector.
# Predict: how many sectors does the warp touch?

# %%
prediction = ...  # sectors

# %%
compare(prediction, len(warp_access(stride=1).sectors), "sectors", how="computed")
draw_sectors(stride=1)

# %% [markdown]
# Every byte that was fetched is used. Such a load is **coalesced**: 32 addresses in as few sectors as possible.
#
# Now thread $t$ takes element $8t$. This is called a **stride** of 8. Predict: how many sectors does the warp touch?

# %%
prediction = ...  # sectors

# %%
compare(prediction, len(warp_access(stride=8).sectors), "sectors", how="computed")
draw_sectors(stride=8)

# %% [markdown]
# Each thread has its own sector, and uses 4 of its 32 bytes. Try other strides and element sizes. At what stride
# does it stop getting worse, for floats and for single bytes? Leave the offset at 0 for now: a section below is about
# it.
#
# <details><summary>Answer</summary>
#
# At the stride at which each thread has a sector of its own: 8 for floats, and 32 for single bytes.
#
# </details>

# %%
explore_sectors()

# %% [markdown]
# ## What a stride costs
#
# This kernel reads with a stride and writes without one.

# %%
stride = experiment("stride")
stride

# %% [markdown]
# At stride 1 an element costs 4 bytes read and 4 written. At stride 8 it costs a whole sector read, and 4 bytes
# written. By this count stride 8 would take (32 + 4) / (4 + 4) = 4.5 times as long. Predict: how many times as long
# does it really take?

# %%
prediction = ...  # times as long

# %%
result = stride.run()
compare(prediction, result.ratio("stride 1", "stride 8"), "times", how=result.how)
result

# %% [markdown]
# A chart shows *useful* bandwidth: the bytes that the kernel asked for, divided by the time. Bytes that were fetched
# and not used do not count.
#
# 8 bytes per element are useful. At stride 1 the kernel **moves** 8 bytes per element, at stride 2 it moves 12, at
# stride 4 it moves 20, and at stride 8 it moves 36. Multiply the bandwidth of stride 8 by 4.5: on an H200 the result is
# far more than the bandwidth of stride 1. So at stride 1 the kernel does not yet use all of memory's bandwidth, and
# stride 8 takes less than 4.5 times as long. The section *Bytes in flight* shows the reason.

# %% [markdown]
# From stride 8 on, the number of sectors stays the same. If a chart falls further, sectors are not the reason: a GPU's
# memory, its **DRAM**, also has larger units (lines, rows, pages of addresses), and fewer elements share each of them.

# %% [markdown]
# ## What an offset costs
#
# All threads shifted by one element: thread $t$ takes element $t + 1$. Predict: how many sectors does a warp touch?

# %%
prediction = ...  # sectors

# %%
compare(prediction, len(warp_access(offset=1).sectors), "sectors", how="computed")
draw_sectors(offset=1)

# %% [markdown]
# Five instead of four: by this count, a shifted read costs a quarter more. Which offsets need no fifth sector? Find out
# with the sliders above.
#
# But this is the count for one warp, and the next warp takes the next 32 elements. Predict the bandwidth of the whole
# copy at offset 1, divided by that at offset 0.

# %%
prediction = ...  # ratio

# %%
result = experiment("offset").run()
compare(prediction, result.ratio("offset 1", "offset 0"), how=result.how)
result

# %% [markdown]
# The fifth sector is also the first sector of the next warp. The second warp finds it in a cache, so DRAM delivers it
# once. **A cache makes up for an offset, because another warp soon uses the rest of the sector. It cannot make up for a
# stride whose gaps nobody reads.**
#
# On the recorded GPU a small loss is left. It is the same for all offsets, even for 8 and 16, which need no fifth
# sector. These offsets have one thing in common: the elements of a warp are in two lines, while at offset 0 they are
# in one. With a GPU, test an offset of 32, which is one line again.

# %% [markdown]
# ## Wide loads
#
# A thread can load 16 bytes with one instruction. CUDA C++ has a type for this: `float4`, four floats `x`, `y`, `z`,
# `w`. `reinterpret_cast<const float4*>(x)` reads the address `x` as the address of float4s: its element `[i]` holds the
# elements 4i to 4i + 3 of `x`. The address must be a multiple of 16. Here is the same copy with 4, 8 and 16 bytes per
# thread.

# %%
width = experiment("width")
width

# %% [markdown]
# By the count of sectors, the three are equally fast. Predict: how much faster is the copy with `float4` than that with
# `float`: not at all, a little (up to 1.3 times as fast), or more?

# %%
prediction = ...  # "not at all", "a little" or "more"

# %%
result = width.run()
ratio = result.ratio("float4", "float")
compare(prediction, ratio and ("not at all" if ratio < 1.05 else "a little" if ratio < 1.3 else "more"), how=result.how)
result

# %% [markdown]
# A wide load saves no sectors: with `float4` a warp touches 16, and uses all of each. It saves instructions, and each
# thread asks for four times as much at once. The next section shows when that matters.

# %% [markdown]
# ## Bytes in flight
#
# Memory takes hundreds of nanoseconds to answer: this is its **latency**. In this time more requests can be sent.
# Bytes that have been requested and have not arrived yet are **in flight**. Two numbers determine how fast bytes
# arrive, by **Little's law**:
#
# $$\text{bandwidth} = \frac{\text{bytes in flight}}{\text{latency}}$$
#
# An H200's memory delivers 4,800 bytes per nanosecond, 36 for each of its 132 SMs. In a copy half of them are reads, so
# suppose that an SM should read 20 bytes per nanosecond, and that memory takes 600 nanoseconds to answer. The SM must
# have 20 × 600 = 12,000 bytes in flight. That is 750 threads with one `float4` each, or 3,000 with one `float` each:
# more than an SM can hold (2,048 on an H100 or H200).
#
# In the next kernel each thread has one 16-byte load in flight, never more. We start few threads on each SM, then
# more.

# %%
few = experiment("in_flight")
few

# %% [markdown]
# Predict two factors, with the numbers above: by how much does the bandwidth grow from 0.5 KiB in flight on each SM to
# 1 KiB? And from 16 KiB to 32 KiB?

# %%
prediction = ...  # the first factor
prediction_2 = ...  # the second

# %%
result = few.run()
compare(prediction, result.ratio("1 KiB", "0.5 KiB"), "times", how=result.how)
compare(prediction_2, result.ratio("32 KiB", "16 KiB"), "times", how=result.how)
result

# %% [markdown]
# As long as little is in flight, twice the bytes give nearly twice the bandwidth. Once memory is busy all the time,
# more bytes in flight only wait longer.
#
# The number of threads on an SM, divided by the number that it can hold, is called the **occupancy**. So the chart
# also shows how bandwidth depends on occupancy: 0.5 KiB in flight means 32 threads of 2,048, an occupancy of under
# 2 %, and 32 KiB means 100 %. Three things limit a kernel's occupancy: the size of its blocks, the registers of its
# threads, and the shared memory of its blocks, which comes later in this notebook. Full occupancy is not a goal: on
# the recorded GPU, half of it is nearly as fast.

# %% [markdown]
# Now look back at the wide loads. If each of 2,048 threads has one `float` in flight, that is 8 KiB per SM. With
# `float2` it is 16 KiB, and with `float4` 32 KiB. Find these three in the last chart and compare them with the three
# copies: on the recorded GPU they are close.
#
# So a thread that moves one `float` has too little in flight. This is also why the copies at stride 1 and at offset 0
# are slower than the one with `float4`.

# %% [markdown]
# There are three ways to get more bytes in flight: **more threads** on the SM, **wider loads**, and **several loads per
# thread** before the first result is used. For the last one write a loop of constant length with `#pragma unroll`: the
# compiler then issues all the loads before it waits.

# %% [markdown]
# Your `grayscale` of the last notebook can use the last two. With one pixel, a thread loads three single bytes and
# stores one. Four pixels are 12 bytes: three `unsigned int` in, one out. Byte `k` of such a word is `(word >> (8 * k)) & 255`.
# Sixteen pixels are 48 bytes: three `uint4` in, one out, where `uint4` is four `unsigned int`. The last
# pixels, which do not fill a group, are done one by one.
#
# This is the share of a copy's speed that each reaches on 8192 × 8192 pixels, as recorded on a GPU:

# %%
recorded("bytes/grayscale", "share_of_copy")

# %% [markdown]
# All of them move the same bytes. They differ in how many of them a thread has in flight, and in how many instructions
# it takes to ask for them.

# %% [markdown]
# ## The dilemma of a transpose
#
# To transpose a matrix, copy element (row, column) of `x` to element (column, row) of `out`. `x` has `height` rows of
# `width` elements; `out` has `width` rows of `height`.
#
# The obvious kernel has a choice: let neighbouring threads run along a row of `x`, or along a row of `out`.

# %%
naive = experiment("naive")
naive

# %% [markdown]
# In `reads_rows`, a warp reads 32 neighbours in a row of `x`. In a matrix of 8192 × 8192, predict: how many sectors
# does it touch when it **writes**?

# %%
prediction = ...  # sectors

# %%
compare(prediction, len(warp_access(stride=8192).sectors), "sectors", how="computed")

# %% [markdown]
# One side is coalesced, the other is not; in `writes_rows` it is the other way round. The third kernel, `copy`, moves
# the same bytes with both sides coalesced. Predict: what share of the copy's bandwidth does `reads_rows` reach?

# %%
prediction = ...  # share of the copy, 0.5 for half

# %%
result = naive.run()
compare(prediction, result.ratio("reads along rows", "copy"), how=result.how)
result

# %% [markdown]
# The rest of a sector may still be used while it is in a cache, by a warp that works on the next row. That is why the
# loss can be smaller than the number of sectors suggests. Reads and writes also differ. Strided reads may find their
# sectors in the SM's own cache (L1), while writes are collected in the cache that all SMs share (L2). On the recorded
# GPU strided reads lose far less than strided writes.
#
# But you need not depend on a cache.

# %% [markdown]
# ## A tile in shared memory
#
# Each SM has memory on the chip, **shared memory**, which the threads of a block share. It has no sectors: threads may
# touch it in any order, almost. So let a block take a square **tile** of the matrix:

# %%
draw_transposed_tile()

# %% [markdown]
# Two things change: the tile's rows become columns, **and** the tile at (tile row, tile column) goes to (tile column,
# tile row). Reads and writes of DRAM both run along rows.
#
# In CUDA C++:
#
# - `__shared__ float held[256];` in a kernel is one array for the whole block. Its size is a constant.
# - `extern __shared__ float held[];` is an array whose size the launch chooses. It is the third value of the launch, in
#   bytes: `reverse<<<1, 256, 256 * sizeof(float)>>>(…)`. This is **dynamic shared memory**.
# - `__syncthreads()` is a **barrier**: no thread of the block passes before all have reached it.
#
# This kernel reverses 256 elements, with one block of 256 threads:
#
# ```cpp
# __global__ void reverse(const float* x, float* out) {
#     __shared__ float held[256];
#     held[threadIdx.x] = x[threadIdx.x];
#     __syncthreads();
#     out[threadIdx.x] = held[255 - threadIdx.x];
# }
# ```
#
# Thread 3 reads what thread 252 wrote. They are in different warps, and nothing determines which warp is first. Without
# the barrier, thread 3 may read before thread 252 has written: a **race**. It may go well a thousand times, and fail on
# another GPU.
#
# **All** threads of the block must reach the barrier. So a thread without an element must not `return` before it.
#
# A tile has two dimensions: `__shared__ float tile[32][32];`. It takes 4 KiB. A block can have up to 48 KiB of shared
# memory. On an H100 or H200 it can have up to 227 KiB, but only as dynamic shared memory, and the launcher must allow it
# first, with `cudaFuncSetAttribute`. All blocks on an SM share its 228 KiB, so large tiles lower the occupancy.

# %% [markdown]
# ## Banks
#
# "In any order, almost": shared memory has 32 **banks**. Word number $w$ (of 4 bytes) is in bank $w \bmod 32$, and a
# bank delivers one word per cycle. If the 32 threads of a warp want words from 32 banks, they get them at once. If two
# of them want different words of one bank, one waits: a **bank conflict**. Threads that want the **same** word get it
# together.
#
# A warp reads **down a column** of `float tile[32][32]`: from one thread to the next it is 32 words. Predict: how many
# cycles does this load take?

# %%
prediction = ...  # cycles

# %%
compare(prediction, bank_access(step=32).ways, "cycles", how="computed")
draw_banks(step=32)

# %% [markdown]
# The whole column is in bank 0. Now move the slider. Which steps are free of conflicts, and what do they have in
# common? Step 0 is free, too, because all threads want the same word.

# %%
explore_banks()

# %% [markdown]
# Odd steps are free, because an odd number and 32 have no common divisor but 1. So give each row of the tile one unused
# element: `tile[32][33]`. Down a column the step is now 33 words. Here is the same on a small machine with 8 banks:

# %%
draw_padded_tile()

# %% [markdown]
# This kernel does little but read from shared memory.

# %%
banks = experiment("banks")
banks

# %% [markdown]
# Predict: how many times as long as step 1 does step 32 take? And step 33?

# %%
prediction = ...  # step 32, times as long as step 1
prediction_2 = ...  # step 33

# %%
result = banks.run()
compare(prediction, result.value("step 32"), "times", how=result.how)
compare(prediction_2, result.value("step 33"), "times", how=result.how)
result

# %% [markdown]
# At step 32 all threads of a warp want the same bank, and a load takes 32 cycles instead of 1. The rest of the loop takes
# as long as before. Step 33 has no conflict, like step 1.

# %% [markdown]
# ## Exercise: transpose a matrix
#
# Write the transpose of `x` into `out`. `x` is a contiguous float32 matrix of `height` × `width`, and `out` is one of
# `width` × `height`. The sizes can be any numbers from 1 up.
#
# 1. The kernel: read a tile along rows of `x`, wait, write it along rows of `out`. *(about 12 lines)*
# 2. The grid: one block for each tile, along x for the width of `x`, along y for its height. It is 1 × 1 now. *(2
#    lines)*
#
# Begin with a tile of 32 × 32. A block has 32 × 8 threads, so a thread takes four elements of the tile, 8 rows apart: a
# loop `for (int k = 0; k < 32; k += 8)`. You need two sets of indices, one for reading `x` and one for writing `out`,
# and **each has its own bounds check**.

# %% nbgrader={"grade_id": "transpose", "solution": true}
import ctypes
from functools import cache

from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void transpose_kernel(const float* __restrict__ x, float* __restrict__ out, int height, int width) {
    // BEGIN SOLUTION
    constexpr int TILE = 64;
    __shared__ float tile[TILE][TILE + 1];  // an odd step down a column: no bank conflicts
    int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
    float held[16];
    #pragma unroll
    for (int k = 0; k < 16; k++) {  // 16 loads in flight before the first is needed
        int row = first_row + threadIdx.y + 8 * (k / 2);
        int column = first_column + threadIdx.x + 32 * (k % 2);
        if (row < height && column < width) held[k] = x[row * width + column];  // reads MN in all
    }
    #pragma unroll
    for (int k = 0; k < 16; k++) tile[threadIdx.y + 8 * (k / 2)][threadIdx.x + 32 * (k % 2)] = held[k];
    __syncthreads();
    #pragma unroll
    for (int k = 0; k < 16; k++) {
        int i = threadIdx.y + 8 * (k / 2), j = threadIdx.x + 32 * (k % 2);
        int row = first_column + i, column = first_row + j;  // of out: its tile lies at (tile column, tile row)
        if (row < width && column < height) out[row * height + column] = tile[j][i];  // writes MN in all
    }
    // END SOLUTION
}

extern "C" const char* transpose(const float* x, float* out, int height, int width) {
    dim3 block(32, 8);
    dim3 grid(1, 1);
    // BEGIN SOLUTION
    constexpr int TILE = 64;  // as in the kernel
    grid.x = (width + TILE - 1) / TILE;
    grid.y = (height + TILE - 1) / TILE;
    // END SOLUTION
    transpose_kernel<<<grid, block>>>(x, out, height, width);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    built = ctypes.CDLL(load_inline("transpose", cuda_sources=cuda_source, **options))
    built.transpose.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    built.transpose.restype = ctypes.c_char_p
    return built


def transpose(x, out):
    height, width = x.shape
    error = library().transpose(x.data_ptr(), out.data_ptr(), height, width)
    if error:
        raise RuntimeError(error.decode())


# %% [markdown]
# Correct before fast. `check` uses square and rectangular matrices, a single row, a single column, and sizes that tiles
# do not divide. If you get a `NameError`, run the exercise's cell first.

# %% nbgrader={"grade_id": "check-transpose", "grade": true, "locked": true, "points": 5}
check(transpose)

# %% [markdown]
# Now launch it yourself: the elements of this matrix are their own numbers.

# %%
import torch

x = torch.arange(6.0, device=device).reshape(2, 3)
out = torch.zeros(3, 2, device=device)
transpose(x, out)
print(x, out, sep="\n")

# %% [markdown]
# ## How fast is it?
#
# A transpose moves each element once in and once out, as a copy does. So for large matrices the bandwidth of a copy is
# the ceiling. For small ones you compare two launches. ⟦ gate("transpose", "copy").points ⟧ of ⟦
# exercise("transpose").max_points ⟧ points are for reaching ⟦ gate("transpose", "copy").at_least ⟧ of the speed of a
# copy at ⟦ gate("transpose", "copy").cases | join(", ") ⟧, measured side by side on your GPU.
#
# Predict: what share of a copy's speed did the authors' kernel reach?

# %%
prediction = ...  # the copy's time divided by the kernel's, at 8192 × 8192

# %%
shares = recorded("transpose", "share_of_copy")
compare(prediction, shares.value("share_of_copy", "8192 × 8192"), how="recorded")
shares

# %%
benchmark(transpose)

# %% [markdown]
# These are the steps on the way there, at 8192 × 8192. First comes the obvious kernel, then a tile, a padded tile, a
# tile with more elements per thread, and `float4` instead of `float`. Here `copy` is PyTorch's, which is faster than
# the kernel `copy` above: that one moves one `float` per thread.

# %%
recorded("bytes/transpose", "bandwidth_gbps", "share_of_copy")

# %% [markdown]
# If yours is slower than required, go through this list in order:
#
# 1. **Do both sides run along rows?** In both, threads with neighbouring `threadIdx.x` must access neighbouring
#    elements.
# 2. **Does a warp read down a column of the tile without conflicts?** Pad its rows.
# 3. **Is enough in flight?** With four loads per thread, ask for all four before you store the first. Keep them in an
#    array of four floats, in loops with `#pragma unroll` that run from 0 to a constant. A loop that starts at
#    `threadIdx.y` is not unrolled completely, because the compiler does not know how often it runs. Then give each
#    thread more: a tile of 64 × 64 is 16 elements per thread.
#
# ### The last ten per cent
#
# Blocks start roughly in the order of their numbers, so blocks with neighbouring numbers run at the same time. If they
# follow each other along the rows of `x`, they *read* neighbouring memory, but their writes are far apart. The authors'
# faster kernel turns this around: block b takes a tile in tile row b % (height / 64), so blocks that run together
# *write* neighbouring pieces of the same rows. It also loads and stores a `float4` at a time. Large matrices gain;
# small ones have too few tiles to benefit:

# %%
recorded("transpose/fastest", "share_of_copy")

# %% [markdown]
# ## Extra credit
#
# No points, but each shows something. Change the exercise's cell, run it, and `check` it again, or
# `benchmark` it (with a GPU).
#
# 1. Remove the padding. What does it cost, and does the answer depend on how much is in flight?
#
# <details><summary>Answer</summary>
#
# Reads down a column then take 32 cycles instead of 1. How much of that shows depends on whether memory or shared
# memory keeps the kernel waiting: compare the rows "a tile" and "a padded tile" in the recorded steps.
#
# </details>
#
# 2. Keep 32 × 32 without padding, but put element (i, j) at `tile[i][j ^ i]`. Why is this free of conflicts?
#
# <details><summary>Answer</summary>
#
# `^` is exclusive or. In a column, `j` is fixed and `i` runs from 0 to 31, so `j ^ i` takes each value from 0 to 31
# once: 32 different banks. In a row, too. This is called **swizzling**.
#
# </details>
#
# 3. Remove `__syncthreads()`. What does `check` say, and would you trust a GPU to show it?
#
# <details><summary>Answer</summary>
#
# The simulator reports a race and names both lines. On a GPU the result may be right by luck, on this machine and for
# this size. `compute-sanitizer --tool racecheck python program.py` finds such races on a GPU.
#
# </details>
#
# 4. Use `float4` for both sides where the sizes allow it. Which banks hold four neighbouring words of a column?
#
# <details><summary>Answer</summary>
#
# With rows of 33 words, neighbours in a column are 33 words apart, so they are in four neighbouring banks. But a
# `float4` must begin at a multiple of 16 bytes, which odd rows do not allow: read shared memory one float at a time.
#
# </details>

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - counted the sectors that a warp touches, for any stride, offset and element size
# - seen what a stride costs, and why an offset costs little
# - computed how many bytes must be in flight
# - passed values between threads through shared memory, with a barrier
# - seen what occupancy is, and how bandwidth depends on it
# - found bank conflicts by counting, and removed them with one element per row
# - written a transpose, had it checked, and with a GPU measured it against a copy
#
# ## Check yourself
#
# <details><summary>A warp reads 32 values of type <code>double</code> (8 bytes) side by side. How many sectors, and what share is used?</summary>
#
# 256 bytes are 8 sectors, and all of each is used. The number of sectors alone says nothing: the share that is used
# matters.
#
# </details>
#
# <details><summary>Colour images lie in memory as red, green, blue, red, green, blue … bytes. A warp's threads each read the red byte of their pixel. What share of the sectors is used by this load, and is the rest lost?</summary>
#
# A third: 32 bytes of 3 sectors. The rest is not lost: the next two loads take green and blue from the same sectors,
# which are in the cache by then.
#
# </details>
#
# <details><summary>Why must a thread without an element not return before <code>__syncthreads()</code>?</summary>
#
# All threads of the block must reach a barrier; otherwise the behaviour is undefined. And at the edge, a thread that
# has nothing to read may well have something to write.
#
# </details>
#
# <details><summary>A tile is <code>float tile[32][36]</code>. How many cycles does a read down a column take?</summary>
#
# 4. The step is 36, and 36 mod 32 is 4: threads 0, 8, 16 and 24 meet in one bank, and so do seven other groups.
#
# </details>
#
# <details><summary>Your kernel has 2 KiB in flight on each SM and a quarter of the bandwidth. What do you change first?</summary>
#
# Bytes in flight: more loads per thread before the first is used, wider loads, or more threads on the SM.
#
# </details>
#
# ## Read on
#
# - [An Efficient Matrix Transpose in CUDA C/C++](https://developer.nvidia.com/blog/efficient-matrix-transpose-cuda-cc/)
#   is the article behind most transposes, with the same steps.
# - [CUDA C++ Best Practices Guide](https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/#memory-optimizations) has
#   a chapter on coalescing, strides and shared memory.
# - [Better Performance at Lower Occupancy](https://www.nvidia.com/content/gtc-2010/pdfs/2238_gtc2010.pdf) by Vasily
#   Volkov shows why few threads can be enough.
#
# **Next:** [Reduce to a mean](03_reduce_to_a_mean.ipynb), where threads work together on one number. Or go
# back to the [syllabus](../README.ipynb).
