# %% [markdown]
# # Multiply matrices
#
# **You will** write a matrix product in Triton and bring it, rung by rung, near the speed of cuBLAS, NVIDIA's own
# library. Then you fuse an activation into it.
#
# **You will learn**
#
# - to compute a product tile by tile, with `tl.dot`, and to keep its sums in float32
# - why the order in which tiles are computed decides what the L2 cache is worth
# - what stages are, and to let Triton tune the sizes
# - to fuse an activation into a product
#
# **You need** about 150 minutes, [Reduce to a mean](02_reduce_to_a_mean.ipynb) and
# [Fuse a softmax](03_fuse_a_softmax.ipynb). With an NVIDIA GPU you measure speed as well. (On a Turing card such as the
# T4, Triton does not use the tensor cores, so the points for speed are out of reach.) Without a GPU your kernels run in
# Triton's interpreter, slowly; the report of `check` says what it cannot see there.

# %%
from grader import benchmark, check, device
from grader.explore import compare, draw_tile_loop, explore_grouped_order, explore_pipeline
from grader.explore import grouped_order, recorded

device

# %%
import numpy as np
import torch
import triton
import triton.language as tl

# %% [markdown]
# ## Count first
#
# The product of `a`, M × K, and `b`, K × N, is `out`, M × N:
#
# $$ \text{out}_{mn} = \sum_k a_{mk}\, b_{kn}. $$
#
# Each of the $MN$ results takes $K$ multiplications and $K$ additions: $2MNK$ operations. What must be moved is both
# operands once in and the result once out. The matrices hold float16, 2 bytes each.
#
# Predict, for M = N = K = 4096: how many operations are there for each byte that must be moved?

# %%
prediction = ...  # operations a byte

# %%
n = 4096
compare(prediction, round(2 * n**3 / (2 * 3 * n**2)), "operations a byte", how="computed")

# %% [markdown]
# A softmax had less than one. A product of this size has so much to do with each byte that memory need not be the
# limit: the *tensor cores* are, the units of an SM that multiply small matrices. That is, if each byte is moved once.
# So far nobody has said how.
#
# Suppose that a program computed a single element. It would read a row of `a` and a column of `b`, $2K$ numbers for
# $2K$ operations. All programs together would read each matrix 4096 times.

# %% [markdown]
# ## Rung 1: one tile a program
#
# So give each program a **tile** of `out`. It needs a row of tiles of `a` and a column of tiles of `b`, and goes along
# both, step after step. In each step it multiplies two tiles and adds the result to what it has so far.

# %%
draw_tile_loop(step=2)

# %% [markdown]
# The same in PyTorch, for one program:

# %%
def one_program(a, b, row, column, tile):
    total = torch.zeros(tile, tile)
    for at in range(0, a.shape[1], tile):
        left = a[row : row + tile, at : at + tile]
        right = b[at : at + tile, column : column + tile]
        total += left @ right
    return total


# %%
a, b = torch.randn(64, 96), torch.randn(96, 64)
tile = one_program(a, b, row=32, column=0, tile=32)
torch.allclose(tile, (a @ b)[32:, :32], atol=1e-4)

# %% [markdown]
# Why is that better? A tile that is loaded is used many times. Take a tile of `out` of 128 × 256 and steps of 64
# along K. Predict: how many operations are there now for each byte that a program loads?

# %%
prediction = ...  # operations a byte

# %%
loaded_bytes = 2 * (128 * 64 + 64 * 256)
compare(prediction, round(2 * 128 * 256 * 64 / loaded_bytes), "operations a byte", how="computed")

# %% [markdown]
# That is far less than 1365, and far more than the 0.5 of a single element. The length of the steps cancels out.
# Larger tiles are better, until their sums no longer fit into the registers.

# %% [markdown]
# ### Blocks with two axes
#
# A tile of pointers is a column of row offsets plus a row of column offsets: `[:, None]` and `[None, :]` make one of
# each, as in PyTorch. `tl.dot` multiplies two tiles on the tensor cores. This kernel multiplies a single pair.

# %%
@triton.jit
def pair_kernel(a_ptr, b_ptr, out_ptr, TILE: tl.constexpr):
    i = tl.arange(0, TILE)
    offsets = i[:, None] * TILE + i[None, :]
    left = tl.load(a_ptr + offsets)
    right = tl.load(b_ptr + offsets)
    tl.store(out_ptr + offsets, tl.dot(left, right))


# %%
a, b = (torch.randint(-3, 4, (16, 16), device=device).half() for _ in range(2))
out = torch.empty(16, 16, device=device)
pair_kernel[(1,)](a, b, out, TILE=16)
torch.equal(out, a.float() @ b.float())

# %% [markdown]
# `tl.dot` wants tiles of at least 16 along K. (The interpreter takes less, but for a GPU the kernel does not compile.) The
# result is float32, although the operands are float16.
#
# The offsets above take it for granted that rows follow each other without a gap. A matrix may be padded, as in the
# softmax notebook, and it may be **transposed**: `b.t()` moves nothing, it is the same memory with its two strides
# exchanged. So a kernel takes both strides. Element (k, n) of `b` lies at
# `k * b.stride(0) + n * b.stride(1)`.
#
# Below, `x` is a transposed view. Predict: at which offset does its element (1, 2) lie?

# %%
prediction = ...  # offset of element (1, 2)

# %%
x = torch.arange(12).reshape(3, 4).t()  # each element holds its offset
compare(prediction, x[1, 2].item())
print("shape", tuple(x.shape), "strides", x.stride())

# %% [markdown]
# ### Keep the sums in float32
#
# The result is stored as float16. Could the accumulator be float16, too? It would take half of the registers.
#
# Predict: start with 0 in float16 and add 1, five thousand times. What comes out?

# %%
prediction = ...  # the sum

# %%
total = np.float16(0)
for _ in range(5000):
    total += np.float16(1)
compare(prediction, int(total))

# %% [markdown]
# From 2048 on the numbers of float16 lie 2 apart. 2048 + 1 lies between two of them and is rounded back to 2048: the sum
# stands still. And what exceeds 65,504 on its way becomes infinity, even if the final sum is small.
#
# Tensor cores multiply float16 and add in float32 at no extra cost. So keep the accumulator in float32, and round
# once, when you store.
#
# In a kernel, sums begin as `sums = tl.zeros((64, 64), dtype=tl.float32)`. In the loop along K,
# `sums = tl.dot(x, y, sums)` adds the product of two tiles to them. `range` takes K, a number that is known only at the
# launch. At the end, `sums.to(tl.float16)` rounds.

# %% [markdown]
# ### Mask the edges
#
# Sizes need not be multiples of a tile.
#
# - **Along M and N** the last tile sticks out. What it computes there is never stored, so it may load anything that
#   is there to be read. `rows % M` begins again at row 0: no mask is needed in the loop. The store needs one.
# - **Along K** everything that is loaded goes into the sum. The last step must be masked in both loads, with
#   `other=0.0`. Why both? What lies beyond may be NaN, and 0 times NaN is NaN.

# %% [markdown]
# ## Rung 2: take tiles in groups
#
# Every program runs, but not at once: an H100 or H200 has 132 SMs, and each has one large tile at a time. The programs
# that run together share the L2 cache. Those in one row of tiles read the same tiles of `a`, those in one column the
# same tiles of `b`.
#
# Take 8192 × 8192, in tiles of 128 × 128: 64 × 64 tiles. In the plain order, row after row, 132 programs are some two
# rows of tiles. They share two rows of `a`, and need **every** column of `b`. A block that is about square needs fewer.
# So take `GROUP` rows of tiles, and go through them column by column. A program has the number $\text{pid}$, and
# `out` has `tiles_m` rows and `tiles_n` columns of tiles:
#
# $$ \text{first} = \left\lfloor \frac{\text{pid}}{\text{GROUP} \cdot \text{tiles}_n} \right\rfloor \cdot \text{GROUP} $$
#
# is the first row of the group. Within it, the row goes fastest: with 4 columns and groups of 2, programs 0 to 7 take
# (0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2), (0, 3), (1, 3), and program 8 begins the next group with (2, 0).
#
# If the number of rows is no multiple of `GROUP`, the last group has fewer rows: those that are left,
# `tiles_m - first`. Whoever forgets that leaves tiles out.
#
# The L2 holds 50 MiB, and the matrices have 128 MiB each. Before you move the slider, predict: how many times as much
# comes from DRAM in the plain order (groups of 1) as in groups of 8? For a guess, count the rows of `a` and the columns
# of `b` that the first 132 programs need, in both orders.

# %%
prediction = ...  # times as much from DRAM

# %%
plain, grouped = grouped_order(1), grouped_order(8)
compare(prediction, round(plain.dram_gib / grouped.dram_gib, 1), "times as much", how="computed")

# %%
explore_grouped_order()

# %% [markdown]
# The picture is computed, not measured: a cache of 50 MiB holds the tiles that were used last, and all 132 programs
# take their steps together. Real programs drift apart, and a real cache is not as tidy. Its message holds: hit rates
# near 100 % differ by what they *miss*, and that is what DRAM must deliver.
#
# Blue tiles of `out` run at the same time. Too small a group is wide and flat, too large a one is tall and narrow; both
# read more.

# %% [markdown]
# ## Rung 3: have it tuned
#
# How large should a tile be? How many warps share it? And there is a third choice. A tile of `a` and one of `b` come
# into shared memory while earlier ones are multiplied. For that Triton keeps several pairs of buffers, the **stages**
# of a pipeline, and has the next loads on their way before it needs them.

# %%
explore_pipeline()

# %% [markdown]
# The picture says a copy takes as long as three products. With one stage the tensor cores wait each time. With four
# they never wait again, once the first tiles are there. More stages need more shared memory.
#
# An SM of an H100 or H200 has 227 KiB for a program. Predict: how many stages fit, with tiles of 128 × 64 and
# 64 × 256, if nothing else needs room? (Later the store of a tile will.)

# %%
prediction = ...  # stages

# %%
stage_kib = 2 * (128 * 64 + 64 * 256) / 1024
compare(prediction, int(227 // stage_kib), "stages", how="computed")

# %% [markdown]
# Nobody works out the best choice by hand. `triton.autotune` times each `triton.Config` the first time that it meets
# a new key, here M, N and K, and keeps the fastest. In a `Config` stand the kernel's constants and, apart from them,
# `num_warps` and `num_stages`. The launch leaves them out, and its grid becomes a function: it is given the constants
# that were chosen, by their names.
#
# ```python
# some_kernel[lambda chosen: (triton.cdiv(n, chosen["BLOCK"]),)](x, n)  # BLOCK stands in the Config
# ```
#
# Each configuration has to be compiled, which takes seconds. For a small product that is a waste. So before it times
# them, `triton.autotune` hands the list to a function of yours, `early_config_prune`, which may shorten it.
#
# In the interpreter there is no clock to trust. There it takes the first one in the list. So without a GPU your other
# configurations are not tried: put each of them first once, and check.

# %% [markdown]
# ## Exercise: multiply matrices
#
# Write `a @ b` into `out`. `a` is M × K, `b` is K × N, `out` is M × N, all float16. Each has strides of its own. There
# may be any number of rows, columns and steps, from 1 up. Sums are kept in float32.
#
# 1. The kernel: from `tl.program_id(0)` to a tile in grouped order; pointers; the loop over K; the store.
#    *(about 22 lines)*
# 2. The launch: a grid that knows the constants, and all six strides. *(about 4 lines)*
# 3. More configurations, once it is right. *(about 3 lines)*

# %% nbgrader={"grade_id": "matmul", "solution": true}
import triton
import triton.language as tl

CONFIGS = [triton.Config({"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP": 8}, num_warps=4, num_stages=2)]
### BEGIN SOLUTION
for m, n, k, warps, stages in ((128, 256, 64, 8, 3), (128, 128, 64, 4, 4), (128, 128, 32, 8, 3)):
    sizes = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP": 8}
    CONFIGS.append(triton.Config(sizes, num_warps=warps, num_stages=stages))
### END SOLUTION


def worth_timing(configs, sizes, **constants):
    return configs if sizes["M"] * sizes["N"] >= 1 << 20 else configs[:1]  # a small product takes the first


@triton.autotune(configs=CONFIGS, key=["M", "N", "K"], prune_configs_by={"early_config_prune": worth_timing})
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, out_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_om, stride_on,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):
    ### BEGIN SOLUTION
    pid, tiles_m, tiles_n = tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    first = pid // (GROUP * tiles_n) * GROUP  # of the rows of tiles in this group
    height = min(tiles_m - first, GROUP)  # the last group may be smaller
    row = first + pid % (GROUP * tiles_n) % height
    column = pid % (GROUP * tiles_n) // height

    rows = row * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = column * BLOCK_N + tl.arange(0, BLOCK_N)
    steps = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (rows % M)[:, None] * stride_am + steps[None, :] * stride_ak  # past the edge: any row will do
    b_ptrs = b_ptr + steps[:, None] * stride_bk + (columns % N)[None, :] * stride_bn
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=steps[None, :] < K - k, other=0.0)
        b = tl.load(b_ptrs, mask=steps[:, None] < K - k, other=0.0)
        accumulator = tl.dot(a, b, accumulator)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    out_ptrs = out_ptr + rows[:, None] * stride_om + columns[None, :] * stride_on
    tl.store(out_ptrs, accumulator.to(tl.float16), mask=(rows[:, None] < M) & (columns[None, :] < N))
    ### END SOLUTION


def matmul(a, b, out):
    ### BEGIN SOLUTION
    (M, K), N = a.shape, b.shape[1]

    def grid(chosen):
        return (triton.cdiv(M, chosen["BLOCK_M"]) * triton.cdiv(N, chosen["BLOCK_N"]),)

    matmul_kernel[grid](a, b, out, M, N, K, *a.stride(), *b.stride(), *out.stride())
    ### END SOLUTION


# %% [markdown]
# The judge compares every element with a float64 product: sizes that fit no tile, padded rows, transposed operands,
# sums that pass 65,504 on their way.

# %% nbgrader={"grade_id": "check-matmul", "grade": true, "locked": true, "points": 10}
check(matmul)

# %% [markdown]
# ## How fast is it?
#
# Speed is compared with cuBLAS, through `torch.mm`. The points:
#
# - ⟦ exercise("matmul").correctness_points ⟧ for right answers
# - ⟦ gate("matmul", "cublas").points ⟧ for ⟦ gate("matmul", "cublas").at_least ⟧ times the speed of cuBLAS, as the
#   geometric mean over ⟦ gate("matmul", "cublas").cases | join(" and ") ⟧
#
# Predict the ratio before you run this. With a new size each time, the tuning takes a while.

# %%
benchmark(matmul)

# %% [markdown]
# This is what the authors' kernel reached.

# %%
recorded("matmul", "ratio_vs_cublas")

# %% [markdown]
# What a launch costs the host is left out of this table. It is not left out of your own plot. Do not believe its points
# up to 2048: a call takes the host tens of µs, longer than such a product runs.
#
# Where the table is low, count tiles: there are few for 132 SMs, or few in a last round. The next
# notebook returns to this.
#
# Where yours is slow at larger sizes, ask in this order. Are the tiles large? 64 × 64 loads 2.7 times as much as
# 128 × 256. Are there enough stages? Is the group larger than 1? Does a division or a modulo stand in the loop? They
# belong in front of it.

# %% [markdown]
# ## Rung 4: fuse what comes behind
#
# A layer of a network is a product with an activation behind it, such as the *leaky ReLU*: $x$ where $x$ is positive,
# and $0.01\,x$ elsewhere. As an operation of its own it reads the product from memory and writes it again.
#
# Predict: for a product of 4096 × 4096 in float16, how many MiB are these reads and writes together?

# %%
prediction = ...  # MiB

# %%
compare(prediction, 2 * 2 * 4096 * 4096 >> 20, "MiB", how="computed")

# %% [markdown]
# In your kernel the sums lie in registers before they are stored. There the activation costs a comparison and a
# multiplication for each, next to thousands in the loop. So a fused kernel may be slower than cuBLAS in the product
# and still win: it saves the trip.
#
# It must stand behind the loop over K. The leaky ReLU of a sum is not the sum of leaky ReLUs.

# %% [markdown]
# ## Exercise: fuse a leaky ReLU
#
# Write the leaky ReLU of `a @ b` into `out`, with a slope of 0.01 below zero. Sizes, strides and types are those of
# `matmul`.
#
# For right answers your `matmul` with one more line is enough. *(about 30 lines)* The other points are for
# ⟦ gate("matmul_leaky_relu", "cublas").at_least ⟧ times the speed of cuBLAS followed by the activation. If yours falls
# short of that, come back after [Match cuBLAS](05_match_cublas.ipynb), whose last rung is what the authors used here.

# %% nbgrader={"grade_id": "matmul_leaky_relu", "solution": true}
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

### BEGIN SOLUTION
LARGE = {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "num_warps": 8, "num_stages": 3}
SMALL = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 4, "num_stages": 4}


@triton.jit
def corner(tile, M, N, BLOCK_M, BLOCK_N, GROUP):
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    first = tile // (GROUP * tiles_n) * GROUP
    height = min(tiles_m - first, GROUP)
    inside = tile % (GROUP * tiles_n)
    return (first + inside % height) * BLOCK_M, inside // height * BLOCK_N


@triton.jit
def leaky(x):
    return tl.where(x > 0, x, 0.01 * x)


@triton.jit
def fused_kernel(
    a, b, out, M, N, K, PROGRAMS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr = 8,
):
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    steps = tl.cdiv(K, BLOCK_K)
    stored = tl.program_id(0) - PROGRAMS  # counted apart: loads of the next tile need not wait for this one's store
    for tile in tl.range(tl.program_id(0), tiles, PROGRAMS, flatten=True):
        row, column = corner(tile, M, N, BLOCK_M, BLOCK_N, GROUP)
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for step in range(steps):
            total = tl.dot(a.load([row, step * BLOCK_K]), b.load([step * BLOCK_K, column]), total)
        stored += PROGRAMS
        row, column = corner(stored, M, N, BLOCK_M, BLOCK_N, GROUP)
        out.store([row, column], leaky(total).to(tl.float16))


@triton.jit
def any_strides_kernel(
    a_ptr, b_ptr, out_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_om, stride_on,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):
    row, column = corner(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP)
    m, n, k = row + tl.arange(0, BLOCK_M), column + tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_K)
    a_at = a_ptr + (m % M)[:, None] * stride_am + k[None, :] * stride_ak
    b_at = b_ptr + k[:, None] * stride_bk + (n % N)[None, :] * stride_bn
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for done in range(0, K, BLOCK_K):
        left = tl.load(a_at, mask=k[None, :] < K - done, other=0.0)
        right = tl.load(b_at, mask=k[:, None] < K - done, other=0.0)
        total = tl.dot(left, right, total)
        a_at += BLOCK_K * stride_ak
        b_at += BLOCK_K * stride_bk
    out_at = out_ptr + m[:, None] * stride_om + n[None, :] * stride_on
    tl.store(out_at, leaky(total).to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


def fits(x):  # a descriptor
    return x.stride(1) == 1 and x.stride(0) > 0 and x.stride(0) % 8 == 0 and x.data_ptr() % 16 == 0


def workers(device):  # 0 where there is no hardware for descriptors, or too little shared memory for these tiles
    if device.type == "cpu":
        return 4
    properties = torch.cuda.get_device_properties(device)
    return properties.multi_processor_count if properties.major in (9, 10) else 0
### END SOLUTION


def matmul_leaky_relu(a, b, out):
    ### BEGIN SOLUTION
    (M, K), N = a.shape, b.shape[1]
    sms = workers(a.device)
    if sms and fits(a) and fits(b) and fits(out):
        shape = LARGE if triton.cdiv(M, 128) * triton.cdiv(N, 128) >= sms else SMALL
        m, n, k = shape["BLOCK_M"], shape["BLOCK_N"], shape["BLOCK_K"]
        tiles = triton.cdiv(M, m) * triton.cdiv(N, n)
        PROGRAMS = triton.cdiv(tiles, triton.cdiv(tiles, sms))  # no SM has more to do, and some may have nothing
        blocks = zip((a, b, out), ([m, k], [k, n], [m, n]), strict=True)
        described = [TensorDescriptor(x, list(x.shape), list(x.stride()), block) for x, block in blocks]
        fused_kernel[(PROGRAMS,)](*described, M, N, K, PROGRAMS=PROGRAMS, **shape)
    else:
        grid = (triton.cdiv(M, 128) * triton.cdiv(N, 128),)
        strides = (*a.stride(), *b.stride(), *out.stride())
        any_strides_kernel[grid](
            a, b, out, M, N, K, *strides, BLOCK_M=128, BLOCK_N=128, BLOCK_K=32, GROUP=8, num_warps=8, num_stages=3
        )
    ### END SOLUTION


# %% [markdown]
# Correct before fast, as ever. The whole cell is graded by itself: copy into it what it needs.

# %% nbgrader={"grade_id": "check-matmul_leaky_relu", "grade": true, "locked": true, "points": 5}
check(matmul_leaky_relu)

# %% [markdown]
# ### How fast is the fused one?
#
# - ⟦ exercise("matmul_leaky_relu").correctness_points ⟧ points are for right answers
# - ⟦ gate("matmul_leaky_relu", "cublas").points ⟧ for ⟦ gate("matmul_leaky_relu", "cublas").at_least ⟧ times the speed
#   of cuBLAS and `leaky_relu_`, as the geometric mean over
#   ⟦ gate("matmul_leaky_relu", "cublas").cases | join(" and ") ⟧
#
# `torch.compile` takes part, too. Predict: does it fuse the activation into the product?

# %%
benchmark(matmul_leaky_relu)

# %% [markdown]
# By default it does not: `torch.compile` leaves a product to cuBLAS, and makes a kernel of its own for what comes
# behind. With `mode="max-autotune"` it tries products in Triton as well, and fuses into those.

# %%
recorded("matmul_leaky_relu", "ratio_vs_cublas", "ratio_vs_compile")

# %% [markdown]
# This table, too, leaves out what a launch costs the host. Do not believe the points up to 2048 in your own plot: a
# call takes the host tens of µs, longer than such a product runs.
#
# Where the fused kernel does not pay in the table, count tiles. At 1536 there are 72 of 128 × 256, for 132 SMs. At
# 3072 there are 288, and 132 SMs need three rounds for them, as they would for 396.

# %% [markdown]
# ## Extra credit
#
# No points, but each shows something. Change an exercise's cell, run it, and `check` it again, or `benchmark` it (with
# a GPU).
#
# 1. `GROUP` of 1, 4, 16 and 64 at 8192. Is the order the one of the picture?
# 2. `num_stages` from 1 to 5. From when on does it no longer help, and when does it no longer compile?
# 3. Leave out the mask of the last step, and look at the report. Then mask one of the two loads.

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - counted that a product is limited by arithmetic, provided that tiles are used again and again
# - multiplied tile by tile, with sums in float32 and masks where they matter
# - seen what the order of tiles does to the L2 cache, and what stages do to the tensor cores
# - had a kernel tuned, measured it against cuBLAS, and fused an activation into it
#
# ## Check yourself
#
# <details><summary>Why must the last step along K be masked in both loads, and the last tile along M in none?</summary>
#
# What lies past the end of K would go into every sum, and 0 times NaN is NaN. Past the end of M only rows are computed
# that are never stored.
#
# </details>
#
# <details><summary>Tiles of 64 × 64 or of 128 × 256: which loads more in all, and how much?</summary>
#
# For each result, a tile of m × n loads 1/m + 1/n numbers a step. That is 1/32 against 3/256: the small tiles load 2.7
# times as much.
#
# </details>
#
# <details><summary>A group of 1 has a hit rate of about 75 %, one of 8 about 92 %. Why is that a difference of three?</summary>
#
# What comes from DRAM are the misses, 25 % against 8 %. Hits cost DRAM nothing.
#
# </details>
#
# <details><summary>Your sums are right in every case but the one that passes 65,504. Where do you look?</summary>
#
# At the type of the accumulator. It is float16 somewhere: in `tl.zeros`, or in a cast within the loop.
#
# </details>
#
# **Next:** [Match cuBLAS](05_match_cublas.ipynb), where your product becomes as fast as the library's.
