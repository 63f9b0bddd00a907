# %% [markdown]
# # Multiply matrices
#
# **You will** write a matrix product in Triton and bring it, rung by rung, near the speed of cuBLAS, NVIDIA's own
# library. Then you fuse an activation into it.
#
# **You will learn**
#
# - to work with blocks of two axes, in an outer product
# - to compute a product tile by tile, with `tl.dot`, and to keep its sums in float32
# - why the order in which tiles are computed decides what the L2 cache is worth
# - what pipeline stages are, and how to let Triton tune the sizes
# - to fuse an activation into a product
#
# **You need** about 180 minutes, [Reduce to a mean in Triton](02_reduce_to_a_mean.ipynb) and
# [Fuse a softmax](03_fuse_a_softmax.ipynb). With an NVIDIA GPU you measure speed as well. The points for
# speed are out of reach on a Turing card such as the T4, where Triton does not use the tensor cores. Without a GPU your
# kernels run in Triton's interpreter, slowly; the report of `check` says what it cannot see there.

# %%
from grader import benchmark, check, device
from grader.explore import compare, compile_kernel, count_fused, draw_tile_loop, explore_grouped_order
from grader.explore import explore_pipeline, grouped_order, recorded

device

# %%
import numpy as np
import torch
import triton
import triton.language as tl

# %% [markdown]
# ## Blocks with two axes
#
# So far a block had one axis. `[:, None]` turns it into a column and `[None, :]` into a row, as in PyTorch. A column
# plus a row is a block with two axes, a **tile**. This kernel writes to each element of a matrix the sum of its two
# indices:

# %%
@triton.jit
def indices_kernel(z_ptr, stride, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None]  # M × 1
    j = tl.arange(0, N)[None, :]  # 1 × N
    tl.store(z_ptr + i * stride + j, i + j)


# %% [markdown]
# Predict: which number is in row 2, column 3?

# %%
prediction = ...  # element (2, 3)

# %%
z = torch.empty(4, 8, dtype=torch.int32, device=device)
indices_kernel[(1,)](z, z.stride(0), M=4, N=8)
compare(prediction, z[2, 3].item())
z

# %% [markdown]
# Three things are new with two axes.
#
# - **Two strides.** A matrix may be padded, as in the softmax notebook. It may also be **transposed**: `b.t()` moves
#   nothing, it is the same memory with its two strides exchanged. So a kernel takes both strides, and element (i, j) is
#   at `i * b.stride(0) + j * b.stride(1)`.
# - **A mask with two axes.** Combine the conditions with `&`, in parentheses: `(i < M) & (j < N)`.
# - **A grid with two axes.** `kernel[(3, 5)](…)` launches 15 programs. `tl.program_id(0)` is 0 to 2, and
#   `tl.program_id(1)` is 0 to 4.

# %% [markdown]
# ## Exercise: compute an outer product
#
# Write the **outer product** of `u` and `v` into `out`: `out[i, j] = u[i] * v[j]`. All are float32. `u` and `v` are
# contiguous vectors of any lengths M and N. `out` is an M × N matrix with any strides.
#
# 1. The kernel: each program computes one tile of `out`. *(about 7 lines)*
# 2. The launch: a grid with two axes. *(about 3 lines)*

# %% nbgrader={"grade_id": "outer_product", "solution": true}
import triton
import triton.language as tl


@triton.jit
def outer_kernel(u_ptr, v_ptr, out_ptr, M, N, stride_m, stride_n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    ### BEGIN SOLUTION
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    u = tl.load(u_ptr + rows, mask=rows < M)
    v = tl.load(v_ptr + columns, mask=columns < N)
    places = rows[:, None] * stride_m + columns[None, :] * stride_n
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(out_ptr + places, u[:, None] * v[None, :], mask=inside)
    ### END SOLUTION


def outer_product(u, v, out):
    ### BEGIN SOLUTION
    M, N = out.shape
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 64))
    outer_kernel[grid](u, v, out, M, N, *out.stride(), BLOCK_M=32, BLOCK_N=64)
    ### END SOLUTION


# %% [markdown]
# The cases of `check` include sizes that tiles do not divide, padded rows and a transposed `out`.

# %% nbgrader={"grade_id": "check-outer_product", "grade": true, "locked": true, "points": 2}
check(outer_product)

# %% [markdown]
# When `check` passes, launch your kernel yourself. With these vectors, `out` is a multiplication table.

# %%
u, v = torch.arange(1.0, 6.0, device=device), torch.arange(1.0, 10.0, device=device)
out = torch.zeros(5, 9, device=device)
try:
    outer_product(u, v, out)
except NotImplementedError as stub:
    print(stub)
out

# %% [markdown]
# ## Count first
#
# The product of `a`, M × K, and `b`, K × N, is `out`, M × N:
#
# $$ \text{out}_{mn} = \sum_k a_{mk}\, b_{kn}. $$
#
# For each k this is the outer product of a column of `a` and a row of `b`. A matrix product is the sum of K outer
# products.
#
# Each of the $MN$ results takes $K$ multiplications and $K$ additions: $2MNK$ operations. At the least, both operands
# are read once and the result is written once. The matrices hold float16, 2 bytes each. The operations per byte moved
# are the **arithmetic intensity**.
#
# Predict it for M = N = K = 4096.

# %%
prediction = ...  # operations per byte

# %%
n = 4096
compare(prediction, round(2 * n**3 / (2 * 3 * n**2)), "operations per byte", how="computed")

# %% [markdown]
# A softmax had about one, and was **memory-bound**. A product of this size is **compute-bound**: its limit is the
# **tensor cores**, the units of an SM that multiply small matrices. But that holds only if each byte is moved once, and
# a simple kernel does not do that. A program that computes a single element reads a row of `a` and a column of `b`,
# $2K$ numbers for $2K$ operations. Together, such programs read each matrix 4096 times.

# %% [markdown]
# ## Rung 1: one tile per program
#
# So each program computes a **tile** of `out`. It needs a row of tiles of `a` and a column of tiles of `b`. In each
# step along K it multiplies two tiles and adds the product to its sums. Libraries call such a product a **GEMM**, for
# general matrix multiplication.

# %%
draw_tile_loop(step=2)

# %% [markdown]
# In Triton, `tl.dot` multiplies two tiles on the tensor cores. `tl.dot(x, y, sums)` also adds their product to `sums`.
# This kernel computes a single tile, 16 × 16, of matrices that are stored without gaps:

# %%
@triton.jit
def tile_kernel(x_ptr, y_ptr, z_ptr, K, TILE: tl.constexpr):
    i = tl.arange(0, TILE)
    sums = tl.zeros((TILE, TILE), dtype=tl.float32)
    for start in range(0, K, TILE):
        x = tl.load(x_ptr + i[:, None] * K + (start + i)[None, :])
        y = tl.load(y_ptr + (start + i)[:, None] * TILE + i[None, :])
        sums = tl.dot(x, y, sums)
    tl.store(z_ptr + i[:, None] * TILE + i[None, :], sums)


# %%
x, y = (torch.randint(-3, 4, shape, device=device).half() for shape in ((16, 48), (48, 16)))
z = torch.empty(16, 16, device=device)
tile_kernel[(1,)](x, y, z, 48, TILE=16)
torch.equal(z, x.float() @ y.float())

# %% [markdown]
# `tl.dot` needs at least 16 elements along K. The interpreter takes fewer, but the kernel does not compile for a GPU.
#
# Why are tiles better? Each loaded number is used for a whole row or column. Take a tile of `out` of 128 × 256, and
# steps of 64 along K. Predict: how many operations are there now per byte that a program loads?

# %%
prediction = ...  # operations per byte

# %%
loaded_bytes = 2 * (128 * 64 + 64 * 256)
compare(prediction, round(2 * 128 * 256 * 64 / loaded_bytes), "operations per byte", how="computed")

# %% [markdown]
# That is far less than 1365, and far more than the 0.5 of a single element. The length of the steps cancels out.
# Larger tiles are better, as long as their sums fit into registers.

# %% [markdown]
# ### The tail along K
#
# K need not be a multiple of the tile. Below it is 40, so the last of three steps goes 8 elements too far. The rows of
# `y` past its end hold NaN, as unused memory may.
#
# Predict: how many of the 256 results are NaN?

# %%
prediction = ...  # NaN among the 256

# %%
x = torch.ones(17, 40, dtype=torch.float16, device=device)[:16]
y = torch.ones(48, 16, dtype=torch.float16, device=device)
y[40:] = torch.nan
tile_kernel[(1,)](x, y, z, 40, TILE=16)
compare(prediction, z.isnan().sum().item(), "NaN")

# %% [markdown]
# All of them: every sum includes what lies past the end of K. Would it help to mask only the load of `x`, with
# `other=0.0`? No, because 0 times NaN is NaN. The last step needs a mask in **both** loads.
#
# Along M and N it is different. A tile that extends past the edge computes rows and columns that nobody stores. They
# may hold anything that can be read, for example the first rows again: `rows % M`. Then the loop needs no mask for
# them, but the store needs one.

# %% [markdown]
# ### Keep the sums in float32
#
# The result is stored as float16. Could the accumulator be float16, too? It would take half of the registers.
#
# Predict: start with 0 in float16 and add 1, five thousand times. What is the sum?

# %%
prediction = ...  # the sum

# %%
total = np.float16(0)
for _ in range(5000):
    total += np.float16(1)
compare(prediction, int(total))

# %% [markdown]
# From 2048 on, float16 numbers are 2 apart. 2048 + 1 lies between two of them and is rounded back to 2048, so the sum
# stays there. And a sum that exceeds 65,504 on its way becomes infinity, even if the final sum is small.
#
# So keep the accumulator in float32, and round once, when you store: `sums.to(tl.float16)`. On data-centre cards this
# costs nothing. GeForce cards (30, 40 and 50 series) are specified to multiply float16 at half the rate if they add in
# float32. cuBLAS adds in float32, too, so the comparison stays fair.

# %% [markdown]
# ### Other types
#
# - **bfloat16** has the range of float32 and 8 significant bits. In a kernel it is used like float16. In the
#   interpreter it is broken: `tl.dot` gives wrong numbers without an error, so test such kernels on a GPU.
# - **float32** does not reach the tensor cores as it is. They read it as **TF32**, which keeps 11 of its 24 significant
#   bits, unless you pass `input_precision="ieee"` to `tl.dot`. The interpreter keeps all 24, so it cannot show the
#   error. The compiled code names the type:

# %%
wide = torch.zeros(64, 64)
ptx = compile_kernel(tile_kernel, wide, wide, wide, 64, TILE=64).ptx
next(line.split("{")[0].strip() for line in ptx.splitlines() if "mma." in line and "tf32" in line)

# %% [markdown]
# ## Rung 2: take tiles in groups
#
# Let `pid` be the program's number, `tl.program_id(0)`, and `tiles_n` the number of tiles in a row of tiles:
# `tl.cdiv(N, BLOCK_N)`, a division that rounds up. In the plain order, program `pid` computes the tile in row
# `pid // tiles_n` and column `pid % tiles_n`. **Get your kernel right with this order first.** The grouped order then
# replaces these two lines and nothing else.
#
# Not all programs run at once: an H200 has 132 SMs, and each has room for one large tile. The programs that run
# together share the L2 cache. Programs in one row of tiles read the same tiles of `a`, and programs in one column
# read the same tiles of `b`.
#
# Take 8192 × 8192 in tiles of 128 × 128, which makes 64 × 64 tiles. In the plain order, 132 programs cover a little
# more than two rows. They need three rows of `a`, but **every** column of `b`. A block that is about square needs fewer
# of both. So the **grouped order**, a kind of **swizzle**, takes `GROUP` rows of tiles and goes through them column by
# column. This picture shows it; the blue tiles run at the same time.
#
# Before you move the slider, predict: how many times as much comes from DRAM in the plain order (groups of 1) as in
# groups of 8? The L2 holds 50 MiB, and each matrix has 128 MiB. For a guess, count the rows of `a` and the columns of
# `b` that the first 132 programs need.

# %%
prediction = ...  # times as much from DRAM

# %%
plain, grouped = grouped_order(1), grouped_order(8)
compare(prediction, round(plain.dram_gib / grouped.dram_gib, 1), "times as much", how="computed")

# %%
explore_grouped_order()

# %% [markdown]
# The picture is computed, not measured. It assumes that the cache holds the tiles that were used last, and that all 132
# programs take their steps together. Real programs drift apart. But one thing holds in general: do not compare hit rates,
# but *miss* rates, because DRAM must deliver the misses. With 98 % hits it delivers half as much as with 96 %.
#
# For example, take 4 columns of tiles and groups of 2 rows. Programs 0 to 3 compute (0, 0), (1, 0), (0, 1) and (1, 1).
# Program 7 computes (1, 3), and program 8 begins the next group with (2, 0). With `tiles_m` rows and `tiles_n` columns
# of tiles, the first row of a group is
#
# $$ \text{first} = \left\lfloor \frac{\text{pid}}{\text{GROUP} \cdot \text{tiles}_n} \right\rfloor \cdot \text{GROUP}. $$
#
# If the number of rows is not a multiple of `GROUP`, the last group has fewer rows: those that are left,
# `tiles_m - first`. A kernel that forgets this leaves tiles out.

# %% [markdown]
# ## Rung 3: let Triton choose the sizes
#
# How large should a tile be? How many warps should share it? And there is a third choice. While two tiles are
# multiplied, the next ones can already be on their way into shared memory. Triton keeps several pairs of buffers for
# that, the **stages** of a pipeline.

# %%
explore_pipeline()

# %% [markdown]
# In this picture a copy takes as long as three products. With one stage, the tensor cores wait in each step. With four,
# they never wait after the first copy. But more stages need more shared memory.
#
# A program can have 227 KiB of shared memory on an H100 or H200. Predict: how many stages fit, with tiles of 128 × 64
# and 64 × 256, if nothing else needs room?

# %%
prediction = ...  # stages

# %%
stage_kib = 2 * (128 * 64 + 64 * 256) / 1024
compare(prediction, int(227 // stage_kib), "stages", how="computed")

# %% [markdown]
# Nobody works out the best choice by hand. **Autotuning** does: you give `triton.autotune` a list of `triton.Config`.
# At the first launch with a new key, here M, N and K, it times each of them and keeps the fastest.
#
# - **A `Config`** holds the constexpr arguments, plus `num_warps` and `num_stages`. Leave all of these out of the
#   launch.
# - **The grid** becomes a function that receives the chosen values as a dictionary:
#
#   ```python
#   some_kernel[lambda chosen: (triton.cdiv(n, chosen["BLOCK"]),)](x, n)  # BLOCK is in the Config
#   ```
#
# - **Compiling takes seconds per configuration.** For a small product that is a waste. `early_config_prune` names a
#   function that may shorten the list first. The exercise's cell has one, `worth_timing`.
# - **To see the choice,** print `matmul_kernel.best_config` after a launch, or start your program with
#   `TRITON_PRINT_AUTOTUNING=1 python program.py`.
# - **Without a GPU** the interpreter takes the first configuration in the list. To try the others, put each of them
#   first once, and check.

# %% [markdown]
# ## Exercise: multiply matrices
#
# Write `a @ b` into `out`. `a` is M × K, `b` is K × N, `out` is M × N, all float16. Each has strides of its own. M, N
# and K may be anything from 1 up. Keep the sums in float32.
#
# 1. The kernel, with tiles in plain order: pointers; the loop over K; the store. *(about 17 lines)*
# 2. The launch: a grid that knows the chosen values, and all six strides. `check` both. *(about 4 lines)*
# 3. The grouped order; `check` again. Then more configurations. *(about 7 lines)*

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
# The cases of `check` include sizes that tiles do not divide, padded rows, transposed operands, and sums that exceed
# 65,504 on the way.

# %% nbgrader={"grade_id": "check-matmul", "grade": true, "locked": true, "points": 10}
check(matmul)

# %% [markdown]
# When `check` passes, launch your kernel yourself. Here `a` is a slice, every second column of a larger matrix. Your
# kernel reads it through its strides, so it needs no copy.

# %%
a = torch.randint(-3, 4, (128, 256), device=device).half()[:, ::2]
b = torch.randint(-3, 4, (128, 128), device=device).half()
out = torch.full((128, 128), torch.nan, dtype=torch.float16, device=device)
try:
    matmul(a, b, out)
except NotImplementedError as stub:
    print(stub)
print("wrong elements:", (out.float() != a.float() @ b.float()).sum().item(), "of", out.numel())

# %% [markdown]
# ## How fast is it?
#
# Your speed is compared with that of cuBLAS, through `torch.mm`. The points:
#
# - ⟦ exercise("matmul").correctness_points ⟧ for right answers
# - ⟦ gate("matmul", "cublas").points ⟧ for ⟦ gate("matmul", "cublas").at_least ⟧ times the speed of cuBLAS, as the
#   geometric mean over ⟦ gate("matmul", "cublas").cases | join(" and ") ⟧
#
# With a GPU each new size is tuned, which takes a while.

# %%
benchmark(matmul)

# %% [markdown]
# This is what the authors' kernel reached:

# %%
recorded("matmul", "ratio_vs_cublas")

# %% [markdown]
# This table leaves out what a launch costs the host, and your own plot does not. Up to 2048, do not trust your plot:
# a call takes the host tens of µs, longer than such a product runs. If a ratio in the table is low, count the tiles
# at that size: there are few for 132 SMs, or few in the last round. The next notebook returns to this.
#
# If your kernel is slow at larger sizes, ask in this order:
#
# - Are the tiles large? Tiles of 64 × 64 load 2.7 times as much as tiles of 128 × 256.
# - Are there enough stages?
# - Is the group larger than 1?
# - Is there a division or a modulo inside the loop? Move it out.
#
# The announcement of Triton 1.0 in 2021 promised a float16 product on a par with cuBLAS "in under 25 lines". Count
# yours: the body of the authors' kernel has 19 lines, and the launch has 4. The 2021 kernel left out the mask along K,
# so it was right only for multiples of its tile. Does the promise hold on your GPU?

# %% [markdown]
# ## Rung 4: fuse what follows
#
# In a network, a product is often followed by an activation, such as the *leaky ReLU*: $x$ if $x$ is positive, and
# $0.01\,x$ otherwise. As an operation of its own it reads the product from memory and writes it again.
#
# In your kernel the sums are in registers before they are stored. There the activation costs one comparison and one
# multiplication per element, next to thousands in the loop. Work between the loop and the store is called an
# **epilogue**. So a fused kernel may be slower than cuBLAS in the product and still win: it saves a trip to memory.
#
# The activation must come after the loop over K: the leaky ReLU of a sum is not the sum of leaky ReLUs. Inputs can be
# fused as well: your `matmul` read a slice without copying it.

# %% [markdown]
# ## Exercise: fuse a leaky ReLU
#
# Write the leaky ReLU of `a @ b` into `out`, with a slope of 0.01 below zero. Sizes, strides and types are those of
# `matmul`.
#
# For right answers, your `matmul` with one more line is enough. *(about 30 lines)* The other points are for at least
# the speed of cuBLAS followed by `leaky_relu_`. If yours falls short of that, come back after
# [Match cuBLAS](05_match_cublas.ipynb). Its last rung is what the authors used here, and it explains the
# `TensorDescriptor` that the cell imports. Until then, leave that line alone.

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
# Only this cell is graded, so copy into it what it needs.

# %% nbgrader={"grade_id": "check-matmul_leaky_relu", "grade": true, "locked": true, "points": 5}
check(matmul_leaky_relu)

# %% [markdown]
# When `check` passes, launch your kernel yourself, on the same two matrices as before. The difference from PyTorch's
# result should be a float16 rounding error: here at most 0.001.

# %%
out = torch.zeros(128, 128, dtype=torch.float16, device=device)
try:
    matmul_leaky_relu(a, b, out)
except NotImplementedError as stub:
    print(stub)
expected = torch.nn.functional.leaky_relu(a.float() @ b.float(), 0.01)
print(f"largest difference: {(out - expected).abs().max().item():.2g}")

# %% [markdown]
# ### How fast is the fused one?
#
# - ⟦ exercise("matmul_leaky_relu").correctness_points ⟧ points are for right answers
# - ⟦ gate("matmul_leaky_relu", "cublas").points ⟧ for at least the speed of cuBLAS followed by `leaky_relu_`, as the
#   geometric mean over ⟦ gate("matmul_leaky_relu", "cublas").cases | join(" and ") ⟧
#
# The plot also has a curve for `torch.compile`. `count_fused` asks PyTorch's compiler how many kernels are left after
# fusion, without a GPU. Predict: how many does a product with a leaky ReLU take?

# %%
prediction = ...  # kernels after fusion

# %%
def product_and_activation(a, b):
    return torch.nn.functional.leaky_relu(a @ b, 0.01)


a, b = (torch.zeros(256, 256, dtype=torch.float16) for _ in range(2))
_, kernels = count_fused(product_and_activation, a, b)  # before and after fusion
compare(prediction, kernels, "kernels", how="computed")

# %% [markdown]
# By default `torch.compile` does not fuse the two. It leaves a product to a library, cuBLAS on a GPU, and generates a
# kernel for what follows. With `mode="max-autotune"` it also tries products in Triton, and fuses into those.

# %%
benchmark(matmul_leaky_relu)

# %%
recorded("matmul_leaky_relu", "ratio_vs_cublas", "ratio_vs_compile")

# %% [markdown]
# This table leaves out the host's time, too. If the fused kernel is no faster at some size, count tiles. At 1536 there
# are 72 tiles of 128 × 256 for 132 SMs. At 3072 there are 288: the 132 SMs need three rounds for them, as they would for
# 396.

# %% [markdown]
# ## Extra credit
#
# No points, but each of these shows something. Change an exercise's cell, run it, and `check` it again, or `benchmark`
# it (with a GPU).
#
# 1. Set `GROUP` to 1, 4, 16 and 64 at 8192. Does the order match the picture?
#
# <details><summary>Answer</summary>
#
# The picture predicts that 1 and 64 are worst, and that 4 to 16 are close to each other. Expect smaller differences in
# the time, because a kernel computes while its tiles arrive, which hides part of the traffic. Measure it.
#
# </details>
#
# 2. Set `num_stages` from 1 to 5. When does it no longer help, and when does it fail?
#
# <details><summary>Answer</summary>
#
# It stops helping when copies are hidden. It fails when the buffers exceed shared memory: Triton reports "out of
# resource", and `triton.autotune` skips that configuration.
#
# </details>
#
# 3. Leave out the mask of the last step, and look at the report. Then mask only one of the two loads.
#
# <details><summary>Answer</summary>
#
# Both give NaN in cases where K is not a multiple of the tile. With one mask, the other operand can still bring in NaN,
# and 0 times NaN is NaN.
#
# </details>

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - written an outer product, with blocks, masks and a grid of two axes
# - counted that a product is compute-bound, provided that each loaded tile is used many times
# - multiplied tile by tile, with sums in float32 and masks where they matter
# - seen what the order of tiles does to the L2 cache, and what stages do to the tensor cores
# - let Triton tune a kernel, measured it against cuBLAS, and fused an activation into it
#
# ## Check yourself
#
# <details><summary>Why must the last step along K be masked in both loads, and the last tile along M in neither?</summary>
#
# Values past the end of K would go into every sum, and 0 times NaN is NaN. Past the end of M there are only rows that
# are never stored.
#
# </details>
#
# <details><summary>Tiles of 64 × 64 or of 128 × 256: which load more in all, and how much?</summary>
#
# Per result and step along K, a tile of m × n loads 1/m + 1/n numbers. That is 1/32 against 3/256: the small tiles load
# 2.7 times as much.
#
# </details>
#
# <details><summary>A group of 1 has a hit rate of about 75 %, one of 8 about 92 %. Why is that a factor of three in DRAM traffic?</summary>
#
# The misses come from DRAM: 25 % against 8 %. Hits cost DRAM nothing.
#
# </details>
#
# <details><summary>Your sums are right in every case but the one that exceeds 65,504 on the way. Where do you look?</summary>
#
# At the type of the accumulator. It is float16 somewhere: in `tl.zeros`, or in a cast inside the loop.
#
# </details>
#
# ## Read on
#
# - [Matrix multiplication](https://triton-lang.org/main/getting-started/tutorials/03-matrix-multiplication.html), the
#   tutorial of Triton's authors
# - [How to optimize a CUDA matmul kernel](https://siboehm.com/articles/22/CUDA-MMM), the same ladder by hand in CUDA
#   C++
# - [Introducing Triton](https://openai.com/index/triton/), the announcement of 2021
#
# **Next:** [Match cuBLAS](05_match_cublas.ipynb), where your product becomes as fast as the library's. Or go back to
# the [syllabus](../README.ipynb).
