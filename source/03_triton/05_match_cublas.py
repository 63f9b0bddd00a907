# %% [markdown]
# # Match cuBLAS
#
# **You will** make your matrix product as fast as cuBLAS, NVIDIA's own library, and enter it on the leaderboard.
#
# **You will learn**
#
# - to load tiles with tensor descriptors, which need no pointers and no masks
# - what a wave is, and what its tail costs
# - to write a persistent kernel, whose programs go from tile to tile
#
# **You need** about 120 minutes and [Multiply matrices](04_multiply_matrices.ipynb), solved. To measure speed you need
# an NVIDIA GPU, and for full points a Hopper card (H100, H200) or a newer one. Without a GPU your kernel runs in
# Triton's interpreter, slowly; the report of `check` says what it cannot see there.

# %%
from grader import benchmark, check, device
from grader.explore import compare, draw_waves, recorded

device

# %%
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

# %% [markdown]
# ## Rung 5: descriptors and a persistent grid
#
# The tuned kernel of the last notebook still has two costs. It computes addresses in the loop, and its tensor cores wait
# between two tiles. This rung removes the first and reduces the second.
#
# ### Tensor descriptors
#
# In that kernel each thread computes pointers and masks for each load. Hopper cards have a unit that copies a whole tile
# by itself, the **Tensor Memory Accelerator** (**TMA**). You describe the matrix once, in a **tensor descriptor**: its
# address, shape and strides, and the shape of a tile. After that, a load names only the tile's corner. Elements outside
# the matrix are read as 0 and never written, so you need no masks.

# %%
@triton.jit
def corner_kernel(source, target, row, column):
    target.store([0, 0], source.load([row, column]))


# %% [markdown]
# Below, `x` holds ones, 8 rows of 20. We read a tile of 8 × 8 that begins in column 16. Predict: how many zeros does
# the tile have?

# %%
prediction = ...  # zeros

# %%
x = torch.ones(8, 24, dtype=torch.float16, device=device)[:, :20]
tile = torch.empty(8, 8, dtype=torch.float16, device=device)
source, target = (TensorDescriptor.from_tensor(each, [8, 8]) for each in (x, tile))  # [8, 8] is the shape of a tile
corner_kernel[(1,)](source, target, 0, 16)
compare(prediction, int((tile == 0).sum()), "zeros")

# %% [markdown]
# A descriptor has three requirements: the elements of a row are neighbours, the address is a multiple of 16 bytes, and
# so is the distance between rows. That is why `x` is cut out of rows of 24. A matrix that breaks one of these rules
# needs the pointers of the last notebook. Before Hopper, descriptors work too, but Triton compiles them to ordinary
# loads, and you gain nothing.
#
# Older Triton code uses *block pointers*, `tl.make_block_ptr`. They are deprecated, and newer versions of Triton no
# longer have them.
#
# `triton.autotune` chooses the tile's shape, but you make the descriptor before the launch, when that shape is not
# known yet. Give the descriptor any shape that is allowed, such as `[1, 8]`, and let each `triton.Config` correct it
# in a `pre_hook`. That is a function that Triton calls before each launch. It gets the arguments as a dictionary, by the
# names of the kernel's parameters:
#
# ```python
# def before_launch(arguments):
#     arguments["x"].block_shape = [arguments["BLOCK_M"], arguments["BLOCK_K"]]
#
# triton.Config({"BLOCK_M": 128, "BLOCK_K": 64}, pre_hook=before_launch)
# ```

# %% [markdown]
# ### Waves and tails
#
# A program begins by filling its pipeline, the **prologue**, and ends with the epilogue, which stores its tile. The
# tensor cores wait during both. Two programs on one SM could fill each other's gaps, but tiles of 128 × 256 leave room
# for only one.
#
# The tiles that run together form a **wave**. If the last wave is not full, some SMs have nothing to do: this is the
# **tail**.
#
# Predict: with 10 tiles on 4 SMs, how many waves are there?

# %%
prediction = ...  # waves

# %%
compare(prediction, triton.cdiv(10, 4), "waves", how="computed")
draw_waves(tiles=10, sms=4)

# %% [markdown]
# A **persistent kernel** starts one program per SM. Program `first` takes tile `first`, then the tile `programs` further
# on, and so on:
#
# ```python
# for tile in tl.range(first, tiles, programs, flatten=True):
#     ...
# ```
#
# Here `first` is `tl.program_id(0)`, `programs` the size of the grid and `tiles` the number of tiles. In the loop you
# compute the tile's row and column from `tile`, as the last notebook did from the program's number.
#
# `flatten=True` merges the loop over tiles and the loop over K into one loop, so the loads of the next tile begin
# before this tile is stored. That hides all prologues but the first. It cannot hide the tail: call `draw_waves` with 12
# tiles, then with 9.
#
# Take 4096 × 4096, tiles of 128 × 256, and the 132 SMs of an H200 (an H100 has as many, but its PCIe card has 114).
# Predict: how many tiles does the busiest SM compute?

# %%
prediction = ...  # tiles

# %%
tiles = (4096 // 128) * (4096 // 256)
compare(prediction, triton.cdiv(tiles, 132), "tiles", how="computed")
print(f"{tiles} tiles; the SMs are busy {tiles / (132 * triton.cdiv(tiles, 132)):.0%} of the time")

# %% [markdown]
# ## Exercise: match cuBLAS
#
# Compute the same product as in `matmul`, as fast as you can. `matmul_open` has a leaderboard. You may use any method,
# as long as the kernel is your own: a library's product does not count. The score is your speed divided by that of
# cuBLAS, as the geometric mean over ⟦ gate("matmul_open", "cublas").cases | join(" and ") ⟧. The sizes and strides that
# your fast path does not support are checked too, so they need another path.
#
# 1. Copy your `matmul` as the path for everything else, and `check` it. *(about 30 lines)*
# 2. Add a kernel with descriptors, one tile per program. Take it where all three matrices meet the requirements.
# 3. Make that kernel persistent, then tune it. *(about 40 lines for both)*
#
# `sm_count` returns the number of SMs, and 4 without a GPU.

# %% nbgrader={"grade_id": "matmul_open", "solution": true}
from functools import cache

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

### BEGIN SOLUTION
LARGE = {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "GROUP": 16, "num_warps": 8, "num_stages": 4}
SMALL = {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP": 8, "num_warps": 4, "num_stages": 6}


@triton.jit
def place(tile, M, N, BLOCK_M, BLOCK_N, GROUP: tl.constexpr):
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    first = tile // (GROUP * tiles_n) * GROUP
    height = min(tiles_m - first, GROUP)
    inside = tile % (GROUP * tiles_n)
    return (first + inside % height) * BLOCK_M, inside // height * BLOCK_N


@triton.jit
def persistent_kernel(
    a, b, out, M, N, K, PROGRAMS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    steps = tl.cdiv(K, BLOCK_K)
    stored = tl.program_id(0) - PROGRAMS  # counted apart: loads of the next tile need not wait for this one's store
    for tile in tl.range(tl.program_id(0), tiles, PROGRAMS, flatten=True):
        row, column = place(tile, M, N, BLOCK_M, BLOCK_N, GROUP)
        accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for step in range(steps):
            left = a.load([row, step * BLOCK_K])
            right = b.load([step * BLOCK_K, column])
            accumulator = tl.dot(left, right, accumulator)
        stored += PROGRAMS
        row, column = place(stored, M, N, BLOCK_M, BLOCK_N, GROUP)
        halves = tl.permute(tl.reshape(accumulator, (BLOCK_M, 2, BLOCK_N // 2)), (0, 2, 1))
        low, high = tl.split(halves)  # half a tile at a time takes half the shared memory
        out.store([row, column], low.to(tl.float16))
        out.store([row, column + BLOCK_N // 2], high.to(tl.float16))


@triton.jit
def pointer_kernel(
    a_ptr, b_ptr, out_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_om, stride_on,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):
    row, column = place(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP)
    rows, columns = row + tl.arange(0, BLOCK_M), column + tl.arange(0, BLOCK_N)
    steps = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (rows % M)[:, None] * stride_am + steps[None, :] * stride_ak
    b_ptrs = b_ptr + steps[:, None] * stride_bk + (columns % N)[None, :] * stride_bn
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        left = tl.load(a_ptrs, mask=steps[None, :] < K - k, other=0.0)
        right = tl.load(b_ptrs, mask=steps[:, None] < K - k, other=0.0)
        accumulator = tl.dot(left, right, accumulator)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    out_ptrs = out_ptr + rows[:, None] * stride_om + columns[None, :] * stride_on
    tl.store(out_ptrs, accumulator.to(tl.float16), mask=(rows[:, None] < M) & (columns[None, :] < N))


def describable(x):
    return x.stride(1) == 1 and x.stride(0) % 8 == 0 and x.stride(0) > 0


def has_descriptors(device):
    """Whether there is hardware for descriptors, and enough shared memory for these tiles."""
    return device.type == "cpu" or torch.cuda.get_device_capability(device)[0] in (9, 10)
### END SOLUTION


@cache
def sm_count(device):
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4


def matmul_open(a, b, out):
    ### BEGIN SOLUTION
    (M, K), N = a.shape, b.shape[1]
    if has_descriptors(a.device) and all(describable(x) for x in (a, b, out)):
        sms = sm_count(a.device)
        many = triton.cdiv(M, 128) * triton.cdiv(N, 256) >= 0.9 * sms  # the large tiles keep nearly all SMs busy
        shape = LARGE if many else SMALL
        m, n, k = shape["BLOCK_M"], shape["BLOCK_N"], shape["BLOCK_K"]
        tiles = triton.cdiv(M, m) * triton.cdiv(N, n)
        programs = triton.cdiv(tiles, triton.cdiv(tiles, sms))  # no SM has more to do, and some may have nothing
        blocks = zip((a, b, out), ([m, k], [k, n], [m, n // 2]), strict=True)
        described = [TensorDescriptor(x, list(x.shape), list(x.stride()), block) for x, block in blocks]
        persistent_kernel[(programs,)](*described, M, N, K, PROGRAMS=programs, **shape)
    else:
        tiles = triton.cdiv(M, 128) * triton.cdiv(N, 128)
        strides = (*a.stride(), *b.stride(), *out.stride())
        pointer_kernel[(tiles,)](a, b, out, M, N, K, *strides, BLOCK_M=128, BLOCK_N=128, BLOCK_K=32, GROUP=8,
                                 num_warps=8, num_stages=3)
    ### END SOLUTION


# %% [markdown]
# Full marks need ⟦ gate("matmul_open", "cublas").at_least ⟧ times the speed of cuBLAS. That is slightly below parity,
# because the two differ by a per cent or two from run to run, and your points should not depend on chance. The leaderboard ranks by
# the measured speed.

# %% nbgrader={"grade_id": "check-matmul_open", "grade": true, "locked": true, "points": 7}
check(matmul_open)

# %% [markdown]
# When `check` passes, launch your kernel yourself. A product with the identity matrix is a good first test: it must
# return `a`.

# %%
a, b = torch.randn(128, 128, device=device).half(), torch.eye(128, device=device).half()
out = torch.zeros_like(a)
try:
    matmul_open(a, b, out)
except NotImplementedError as stub:
    print(stub)
print("wrong elements:", (out != a).sum().item(), "of", a.numel())

# %% [markdown]
# ## How fast is the fastest?
#
# Look for the sizes at which you come closest to cuBLAS.

# %%
benchmark(matmul_open)

# %% [markdown]
# Read the curves from left to right.
#
# - **Up to 2048**, do not trust your own plot: a call takes the host tens of µs, longer than such a product runs.
# - **Small products have few tiles.** At 1024 there are 64 tiles of 128 × 128 for 132 SMs, so half of the GPU would
#   have nothing to do. The authors' kernel takes 128 tiles of 64 × 128 there. Somewhat larger products have a long tail.
# - **The largest products** draw so much power that a GPU may lower its clock, for your kernel and for cuBLAS alike.
#
# ### The last ten per cent
#
# A product of 3072 has 288 tiles of 128 × 256. On 132 SMs two waves compute 264 of them, and in the tail most SMs are
# idle: **wave quantization**. With tiles of 128 × 192 there are 384: also three waves, but shorter ones, and nearly
# full. But the sides of a Triton block are powers of two. So the authors' faster kernel keeps two blocks of sums, with
# 128 and 64 columns, and uses each tile of `a` in two products:
#
# ```python
# left = a.load([row, k])
# first = tl.dot(left, b.load([k, column]), first)
# rest = tl.dot(left, narrow.load([k, column + 128]), rest)  # narrow: a descriptor of `b` with tiles of 64 columns
# ```
#
# So it pays to choose the tile by the size of the product. A tile of 128 × 256 uses each loaded number more often than
# one of 128 × 192 or of 64 × 128, so its time per element is the shortest. For each of these three, the authors' launch
# multiplies the time per element by the number of elements in a tile and by the number of waves. It picks the smallest
# result. If all tiles fit into one wave, the grid is not persistent, because no program has a second tile.

# %%
recorded("matmul_open/fastest", "ratio_vs_cublas")

# %% [markdown]
# cuBLAS is still ahead at 1536 and 3072. A kernel in which programs *share* a tile, each with a part of K, would have
# no tail at all: search for **stream-K**.

# %% [markdown]
# ## The ladder
#
# These are all the rungs, and the reason for each:
#
# | rung | why |
# | --- | --- |
# | one tile per program | each loaded number is used for a whole row or column of the tile |
# | grouped order | programs that run together share what is in the L2 cache |
# | autotuned | larger tiles load less; stages hide the latency of loads |
# | fused leaky ReLU | the sums are in registers already, so they make no extra trip to memory |
# | descriptors, persistent grid | no thread computes addresses; prologues and epilogues overlap |
#
# All of them were timed in one run with cuBLAS, on square matrices: the GPU's time alone, without the host's. Compare
# the fused rung with cuBLAS followed by the activation.

# %%
recorded("matmuls", "rate_tflops").plot(", {}", "rows and columns of the matrices")

# %% [markdown]
# - **Larger tiles** gain most: the tuned rung is about twice as fast.
# - **Grouped order** gains most at 8192, where the matrices are many times as large as the L2. At smaller sizes it
#   gains little or nothing: it saves traffic to DRAM, but with tiles of 64 × 64 the kernel does not wait for that.
# - **At 2048 the last rung gains nothing.** There are 128 tiles of 128 × 256, at most one per program, so no program
#   has a next tile to load.

# %% [markdown]
# ## Since Hopper
#
# The ladder ends with an H100's hardware. These are the next steps, and what to search for.
#
# - **Warp specialization** gives warps different tasks: some only load, others only multiply.
#   `tl.range(…, warp_specialize=True)` asks the compiler for it.
# - **Blackwell** (B200) has tensor cores that keep their sums in a memory of their own, **tensor memory**. Triton
#   compiles `tl.dot` to them (`tcgen05` in PTX), and `tl.dot_scaled` multiplies formats of 4 to 8 bits.
# - **Gluon** is a lower-level language in Triton's repository. You write layouts, shared memory and barriers yourself.
#   [Compare languages](08_compare_languages.ipynb) has such kernels in Gluon, in CUDA C++, and in Triton with warp
#   specialization.
# - **AMD** GPUs have a back end in Triton, too. The same kernel runs there, but its best configurations differ.

# %% [markdown]
# ## Extra credit
#
# No points, but each of these shows something. Change the exercise's cell, run it, and `check` it again, or `benchmark`
# it (with a GPU).
#
# 1. At 1024 there are few tiles. Divide the work along K among several programs (**split K**). What does it cost to add
#    their results?
#
# <details><summary>Answer</summary>
#
# Each program writes its sums in float32, and a second kernel adds and rounds them. For a product of 1024 × 1024 in two
# parts, that is 8 MiB written and read again.
#
# </details>
#
# 2. At 4096 there are 512 tiles of 128 × 256: four waves on 132 SMs. With 128 programs it is four waves, too. Which is
#    faster?
#
# <details><summary>Answer</summary>
#
# The busiest SM has four tiles either way, so expect no large difference, and measure it. With 128 programs, each has
# exactly four tiles, and four SMs are free.
#
# </details>

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - loaded tiles with tensor descriptors, and kept pointers for what they cannot describe
# - seen how waves, tails, prologues and epilogues keep tensor cores waiting
# - written a persistent kernel, and measured it against cuBLAS
#
# ## Check yourself
#
# <details><summary>Which matrices can a tensor descriptor not describe?</summary>
#
# Those whose rows are not contiguous, such as transposed views, and those whose address or row distance is not a
# multiple of 16 bytes.
#
# </details>
#
# <details><summary>When is a kernel without a persistent grid just as fast?</summary>
#
# When several programs fit on an SM, so that one computes while another fills its pipeline or stores.
#
# </details>
#
# <details><summary>There are 133 tiles of equal size for 132 SMs. What share of the time are the SMs busy?</summary>
#
# About half: the second wave has one tile and takes as long as the first.
#
# </details>
#
# ## Read on
#
# - [Persistent matmul](https://triton-lang.org/main/getting-started/tutorials/09-persistent-matmul.html), the tutorial
#   of Triton's authors, with descriptors and warp specialization
# - [Outperforming cuBLAS on H100](https://cudaforfun.substack.com/p/outperforming-cublas-on-h100-a-worklog), the same
#   race in CUDA C++
# - [`tl.range`](https://triton-lang.org/main/python-api/generated/triton.language.range.html) and its options
#
# **Next:** [Fuse an attention](06_fuse_an_attention.ipynb), two products with a softmax between them. Or go back to the
# [syllabus](../README.ipynb).
