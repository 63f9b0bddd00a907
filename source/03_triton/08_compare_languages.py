# %% [markdown]
# # Compare languages
#
# **You will** read the same matrix product for Hopper GPUs in four languages, and compare the kernels' length, machine
# code and speed.
#
# **You will learn**
#
# - the four parts of a fast matrix product on Hopper: copy, barrier, multiply, store
# - how warps that copy pass tiles to warps that multiply
# - what cuTile, Triton, Gluon and CUDA C++ each decide for you, and what each lets you decide
#
# **You need** about 50 minutes, [Match cuBLAS](05_match_cublas.ipynb) and, for layouts and PTX,
# [Look inside the compiler](07_look_inside_the_compiler.ipynb). This notebook is for reading: it has no exercises. You need
# no GPU: the kernels are compiled for an H100 without one. On an H100 or H200 you also time them.

# %%
from grader.explore import compare, count_hopper_instructions, count_lines, draw_ring, recorded, show_product

# %% [markdown]
# ## Four parts
#
# Each kernel in this notebook multiplies two float16 matrices, in tiles of 128 × 256 and steps of 64 along K. Each has
# these four parts:
#
# 1. **Copy.** The TMA copies tiles of `a` and `b` into shared memory. One thread starts a copy and continues at once.
#    Shared memory has room for several pairs of tiles, the **stages**. They form a ring: the first stage follows the
#    last.
# 2. **Barrier.** A copy takes time, and the thread that needs the tile is not the one that started the copy. The two
#    synchronise at an **mbarrier**: 8 bytes in shared memory that count arrivals and arriving bytes. Each stage has two
#    of them: *full* says that both tiles have arrived, *empty* that both have been used.
# 3. **Multiply.** The **WGMMA** instruction drives Hopper's tensor cores. The four consecutive warps of a **warpgroup**
#    issue it together. It multiplies a 64 × 16 matrix by one of up to 16 × 256. The operands are read from shared
#    memory, and the sums stay in registers. WGMMA is asynchronous, too: the warpgroup can wait for it later.
# 4. **Store.** The sums are rounded to float16 and written to shared memory. From there the TMA copies them to `out`.
#
# The copies need only one thread, and the multiplications need as many registers as possible. So the warps of a thread
# block, which Triton calls a program, are divided: a **producer** starts copies, and two warpgroups, the **consumers**,
# multiply. This is **warp specialization**. The two sides wait for each other only at the barriers.
#
# | side | waits until | then | and |
# | --- | --- | --- | --- |
# | producer | the stage is *empty* | starts two copies | tells *full* how many bytes to expect |
# | consumer | the stage is *full* | multiplies | arrives at *empty* |
#
# The picture shows two tiles of six steps each. The kernel is persistent, so the same thread block computes both tiles.
# Look at the second tile: when do its copies start?

# %%
draw_ring(stages=4)

# %% [markdown]
# The producer does not wait for the store. It runs ahead into the next tile until the ring is full, so the second tile
# has no prologue.
#
# Steps are numbered from 0, and the numbers continue from tile to tile. With four stages, predict: which stage does
# step 9 use?

# %%
prediction = ...  # stage

# %%
compare(prediction, 9 % 4, "stage", how="computed")

# %% [markdown]
# An mbarrier is reused in each round of the ring. To tell the rounds apart, it has a **phase**, a bit that flips when
# all the expected arrivals and bytes are in. A wait names the phase that must be over, `step // STAGES % 2`: 0 in the
# first round, 1 in the second, and then 0 again. The producer waits for the opposite phase. In the first round that
# phase counts as over, so the producer starts at once: the ring is empty.
#
# A thread block can have 227 KiB of shared memory, which is 232,448 bytes. The store handles half a tile of `out` at a
# time, which takes 32 KiB. Predict: how many stages fit into the rest?

# %%
prediction = ...  # stages

# %%
stage_bytes = 2 * (128 * 64 + 64 * 256)
compare(prediction, (232_448 - 32 * 1024) // stage_bytes, "stages", how="computed")

# %% [markdown]
# Four stages of 48 KiB each. Try `draw_ring(stages=2)` above: the producer cannot run far enough ahead, and the tensor
# cores wait for copies.

# %% [markdown]
# ## Four languages
#
# From the shortest program to the longest:
#
# - **cuTile** is NVIDIA's tile language in Python, introduced with CUDA 13.1. Its compiler is not part of this
#   course's installation.
# - **Triton** is the language of this chapter.
# - **Gluon** is part of Triton (`triton.experimental.gluon`). It keeps Triton's blocks and the compiler's back end, but
#   skips the passes that choose layouts and build pipelines. As the module's name says, it may still change.
# - **CUDA C++** has no syntax for TMA, mbarriers or WGMMA, so the kernel has PTX in `asm` statements.
#
# There are others. **CuTe DSL** is the Python form of CUTLASS, NVIDIA's C++ templates for matrix products. Its programs
# have the same four parts, and give you about as much control as CUDA C++. Its packages take over 90 MB, so it is not
# installed here, and we have not measured it.
#
# cuTile's program has 19 lines of code. Before you read the others, predict: how many lines does the one in CUDA C++
# have?

# %%
prediction = ...  # lines

# %%
lines = sum(show_product("CUDA C++").counts().values())
compare(prediction, lines, "lines", how="counted", within=2)

# %% [markdown]
# ### cuTile
#
# The colours show which part a line belongs to. Lines without a colour choose the tile or launch the kernel.
#
# A cuTile kernel takes whole arrays. `ct.load` expects the *index* of a tile, counted in tiles, whereas Triton's
# descriptors expect the position of its first element.

# %%
show_product("cuTile")

# %% [markdown]
# No line mentions a barrier or a stage, and only `num_worker_warps` mentions warps: it is the number of warps that
# multiply. With 4 warps, a thread would need 256 registers for its sums alone, and the compiler would spill them.
#
# ### Triton
#
# This is a simpler form of the persistent kernel of [Match cuBLAS](05_match_cublas.ipynb), and two things are new.
#
# - The inner loop has `warp_specialize=True`: the compiler divides it between a producer and consumers, and adds the
#   barriers.
# - The kernel makes its own descriptors. If they come from the host, Triton 3.6 and 3.7 fail to compile this kernel for
#   Hopper with `warp_specialize`.

# %%
show_product("Triton")

# %% [markdown]
# `num_warps=4` is the number of warps per consumer. The compiler creates two consumers, one for each half of the tile,
# and a producer. The kernel stores the whole tile at once, which takes 64 KiB of shared memory, so only three stages
# fit.
#
# ### Gluon
#
# Here you write the ring yourself. Compare `produce` and `consume` with the table above: each wait, each arrival and
# each copy has its own line. `gl.warp_specialize` runs both functions at the same time: `consume` in the kernel's 8
# warps, and `produce` in one more, which the compiler rounds up to a third warpgroup.

# %%
show_product("Gluon")

# %% [markdown]
# `warpgroup_mma_wait(1, …)` leaves one multiplication in flight. So when it returns, the *previous* step is done, and
# its stage is empty. `pred=k > 0` skips the arrival in a tile's first step. `NVMMADistributedLayout` says which thread
# holds which sums.
#
# You still program in blocks: `total` is one of 128 × 256 elements, and no line says which thread rounds which of them.
#
# ### CUDA C++
#
# Start at the end. `kernel` divides the warps, and moves registers from the producer to the consumers (`setmaxnreg`).
# `consume` and `produce` follow Gluon's line by line. Above them is one function per PTX instruction, and `matrix`. It
# packs an address, a stride and a swizzle into the 64-bit descriptor that WGMMA expects. This swizzle changes the order
# of 16-byte chunks within a row of a tile.

# %%
show_product("CUDA C++")

# %% [markdown]
# Gluon hid some of this: that the TMA copies a tile in pieces of 64 columns (*boxes*), the swizzle, which thread rounds
# which sums (`write_half`), and the driver call that describes a matrix (`describe`).

# %% [markdown]
# ## Side by side
#
# This table counts the lines of code, without comments and blank lines:

# %%
count_lines()

# %% [markdown]
# Now compile them. In each step along K, a consumer multiplies a 64 × 64 tile by a 64 × 256 tile, and one WGMMA
# advances by 16 along K. Predict: how many WGMMA instructions does the machine code of the CUDA C++ kernel have?

# %%
prediction = ...  # instructions

# %%
from grader.explore import compiled_products

# in machine code WGMMA is called HGMMA
compare(prediction, compiled_products()["CUDA C++"].count("HGMMA"), "instructions", how="compiled")

# %% [markdown]
# Both consumers run the same code, so there are four. The table shows all kernels except cuTile's:

# %%
count_hopper_instructions()

# %% [markdown]
# Short or long, the kernels compile to the same kind of program: TMA copies, WGMMA, and no ordinary loads from global
# memory or stores to it. Triton's has twice as many WGMMA instructions, because it generates the code of each consumer
# separately. All have 168 registers per thread: the 65,536 registers of an SM divided by the 384 threads of three
# warpgroups, rounded down to a multiple of 8.
#
# One row matters more than the others: the waits that leave a WGMMA in flight. With such a wait, a consumer issues the
# next WGMMA before the previous one ends. Triton's consumers do not.
#
# So each of Triton's consumers pauses between two steps, while the other may multiply. Predict: what share of cuBLAS's
# speed did the Triton kernel reach at 4096, on an H200?

# %%
prediction = ...  # cuBLAS's time divided by the kernel's

# %%
speeds = recorded("languages", "ratio_vs_cublas")
compare(prediction, speeds.value("ratio_vs_cublas", "Triton"), how="recorded", within=1.1)
speeds.plot()

# %% [markdown]
# The recorded measurements leave out cuTile, whose compiler was not installed. *Triton* is the kernel with warp
# specialization. Two kernels are new:
#
# - *one flattened loop* is the kernel of [Match cuBLAS](05_match_cublas.ipynb), without warp specialization
# - *no WGMMA in flight* is the CUDA C++ kernel, with consumers that wait as Triton's do
#
# If the consumers of the CUDA C++ kernel wait as Triton's do, it falls behind nearly as far as Triton. And Triton's
# flattened loop leaves one WGMMA in flight, and matches cuBLAS. So the wait makes the difference, and not the language.
# A lower-level language is not faster by itself: it lets you fix what a compiler does badly.
#
# On an H100 or H200, the next cell measures each language. Elsewhere it shows the recorded measurements as a table.

# %%
from grader.explore import time_products

time_products()

# %% [markdown]
# ## What each hides
#
# In each language you decide more than in the one above it.
#
# | language | you decide | the compiler decides |
# | --- | --- | --- |
# | cuTile | tiles, their order, the warps that multiply | descriptors, stages, barriers, layouts, shared memory |
# | Triton | also descriptors, the number of stages and programs, and whether to specialize | barriers, layouts, shared memory |
# | Gluon | also the ring, every barrier, the layouts, what is in flight | what each thread does, swizzles, the epilogue's addresses |
# | CUDA C++ | everything | registers, and the order of instructions |
#
# A compiler makes these decisions well for the kernels that its authors had in mind. They matter when yours is
# different. In [Fuse an attention](06_fuse_an_attention.ipynb), for example, two matrix products share a ring, with a
# softmax between them. In Gluon you can write that schedule down. In Triton you hope that the compiler finds it.
#
# The price is more than length. In Gluon or CUDA C++, one wrong phase gives you a kernel that hangs, or one that reads
# a tile too early and is wrong once in a thousand runs.

# %% [markdown]
# ## Enter the leaderboard
#
# The exercise `matmul_open` of [Match cuBLAS](05_match_cublas.ipynb) accepts Triton, Gluon, and CUDA C++ through
# `load_inline`. To enter one of these kernels, copy its listing into the exercise's cell, and call it for the inputs
# that it supports.
#
# ```python
# def matmul_open(a, b, out):
#     hopper = a.device.type == "cuda" and torch.cuda.get_device_capability(a.device)[0] == 9
#     if hopper and all(x.is_contiguous() and x.shape[1] % 8 == 0 and x.data_ptr() % 16 == 0 for x in (a, b, out)):
#         product(a, b, out)
#     else:
#         ...  # any sizes and strides: the kernel of `matmul`, for example
# ```
#
# Without a GPU, `check` judges a Triton kernel, and says that it cannot judge the other two.

# %% [markdown]
# ## Extra credit
#
# No points, but each question shows you something.
#
# 1. Draw the ring with 1 to 6 stages. Beyond which number do more stages gain nothing, and why?
#
# <details><summary>Answer</summary>
#
# Three. In the drawing, a copy is in flight for 4 units of time, and a multiplication takes 2. So a stage is in use for
# 6 units, and the tensor cores need a new one every 2. On a GPU a copy sometimes takes longer, because all SMs share
# the memory, and a fourth stage makes up for it.
#
# </details>
#
# 2. Suppose that Gluon's `consume` called `warpgroup_mma_wait(0, …)` instead of `warpgroup_mma_wait(1, …)`, and that the
#    arrival named this step's stage. What would you gain, and what would you lose?
#
# <details><summary>Answer</summary>
#
# The stage is free one step earlier, so three stages do the work of four. But the tensor cores are idle from the end
# of one multiplication until the next is issued.
#
# </details>
#
# 3. Both consumers of the CUDA C++ kernel finish a tile at the same time, and the tensor cores wait for the store. How
#    could you hide the stores?
#
# <details><summary>Answer</summary>
#
# Give each consumer a tile of its own, and let them start half a tile apart: while one stores, the other multiplies.
# CUTLASS calls this *ping-pong*. It needs another pair of barriers, to order their use of the ring.
#
# </details>

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - seen the four parts of a matrix product on Hopper, and the ring of stages that connects them
# - computed stages and phases, and how many stages fit into shared memory
# - read the same kernel in four languages, and counted what each leaves to you
# - compared the kernels' machine code, and their speed with that of cuBLAS
#
# ## Check yourself
#
# <details><summary>Why does each stage need two barriers?</summary>
#
# One for each direction: *full* tells the consumers that the tiles are there, *empty* tells the producer that it may
# overwrite them.
#
# </details>
#
# <details><summary>In a ring of 4 stages, which stage does step 5 use, and which phase does its consumer wait for?</summary>
#
# Stage 1, and phase 1 of the stage's *full* barrier: `5 // 4 % 2`. It is the second round.
#
# </details>
#
# <details><summary>Why does the producer need so few registers?</summary>
#
# It holds no elements. The tiles go from memory to shared memory without passing through a thread, so it needs only
# addresses and counters.
#
# </details>
#
# <details><summary>Two kernels in different languages have nearly the same machine code. What is left to compare?</summary>
#
# Their cost to you: lines of code, the mistakes that you can make, and what you can change when the compiler's choice
# does not suit you.
#
# </details>
#
# ## Read on
#
# - [Gluon's tutorials](https://triton-lang.org/main/gluon/tutorials/index.html), from layouts to warp specialization
# - [Outperforming cuBLAS on H100](https://cudaforfun.substack.com/p/outperforming-cublas-on-h100-a-worklog), a matrix
#   product in CUDA C++, step by step
# - [cuTile Python](https://docs.nvidia.com/cuda/cutile-python/), its language and its compiler
#
# **Next:** [Find a period](../04_numba_cupy/01_find_a_period.ipynb), where the Lomb–Scargle ladder begins. Or go
# back to the [syllabus](../README.ipynb).
