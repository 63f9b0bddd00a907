# %% [markdown]
# # Compare languages
#
# **You will** read one matrix product for Hopper GPUs in four languages, and compare their length, their machine code
# and their speed.
#
# **You will learn**
#
# - the four parts of a fast product on Hopper: copies, barriers, multiplications, the store
# - how warps that copy and warps that multiply hand tiles to each other
# - what cuTile, Triton, Gluon and CUDA C++ each decide for you, and what each lets you decide
#
# **You need** about 50 minutes and [Match cuBLAS](05_match_cublas.ipynb). This notebook is for reading: it has no
# exercise. You need no GPU: the kernels are compiled for an H100 without one. With an H100 or H200 you measure them.

# %%
from grader.explore import compare, count_hopper_instructions, count_lines, draw_ring, recorded, show_product

# %% [markdown]
# ## Four parts
#
# Each kernel in this notebook multiplies two float16 matrices, in tiles of 128 × 256 and steps of 64 along K. Each has
# these four parts:
#
# 1. **Copy.** The TMA copies tiles of `a` and `b` into shared memory. One thread starts a copy and goes on at once.
#    There is room for several pairs of tiles, the **stages**. They form a ring: after the last stage comes the first.
# 2. **Barrier.** A copy takes time, and the thread that needs the tile is not the one that started the copy. They
#    meet at an **mbarrier**, 8 bytes in shared memory that count arrivals and arriving bytes. Each stage has two of
#    them: *full* says that both tiles have arrived, *empty* that both have been used.
# 3. **Multiply.** Hopper's tensor cores are driven by **WGMMA**. A **warpgroup**, four warps in a row, issues one
#    instruction together. It multiplies 64 × 16 by up to 16 × 256 elements. The operands are read from shared memory,
#    and the sums are in registers. It is asynchronous, too: the warpgroup can wait for it later.
# 4. **Store.** The sums are rounded to float16 and written to shared memory. From there the TMA copies them to `out`.
#
# The copies need only one thread, and the multiplications all registers. So the warps of a block are divided: a
# **producer** starts copies, and two warpgroups, the **consumers**, multiply. This is **warp specialization**. Neither
# side waits for anything but its barriers.
#
# | side | waits until | then | and says |
# | --- | --- | --- | --- |
# | producer | the stage is *empty* | starts two copies | how many bytes to expect at *full* |
# | consumer | the stage is *full* | multiplies | that it has arrived at *empty* |
#
# The picture shows two tiles of six steps each. The kernel is persistent, so the same block computes both tiles. Look
# at the second tile: when do its copies start?

# %%
draw_ring(stages=4)

# %% [markdown]
# The producer does not wait for the store. It runs ahead into the next tile until the ring is full, so the second tile
# has no prologue.
#
# All steps are counted in one row, over all tiles. With four stages, predict: which stage does step 9 use?

# %%
prediction = ...  # stage

# %%
compare(prediction, 9 % 4, "stage", how="computed")

# %% [markdown]
# An mbarrier is used again in each round of the ring. To tell the rounds apart it has a **phase**, a bit that flips
# when all arrivals and bytes are there. A wait names the phase that must be over, `step // STAGES % 2`: 0 in the first
# round, 1 in the second, and then 0 again. The producer waits for the opposite phase. In the first round, that one is
# already over, because the ring is empty.
#
# A block can have 227 KiB of shared memory, which is 232,448 bytes. Half a tile of `out` is stored at a time, and takes
# 32 KiB of it. Predict: how many stages fit into the rest?

# %%
prediction = ...  # stages

# %%
stage_bytes = 2 * (128 * 64 + 64 * 256)
compare(prediction, (232_448 - 32 * 1024) // stage_bytes, "stages", how="computed")

# %% [markdown]
# Four stages of 48 KiB. Try `draw_ring(stages=2)` above: the ring is full too early, and the tensor cores wait for
# copies.

# %% [markdown]
# ## Four languages
#
# From the shortest program to the longest:
#
# - **cuTile** is NVIDIA's language of tiles in Python, since CUDA 13.1. It needs a compiler that this course does not
#   install.
# - **Triton** you know.
# - **Gluon** is part of Triton (`triton.experimental.gluon`). It has Triton's blocks and its compiler's back end, but
#   leaves out the passes that choose layouts and build pipelines. As the module's name says, it may still change.
# - **CUDA C++** has no words for TMA, mbarriers or WGMMA, so the kernel writes PTX instructions as text.
#
# There are others. **CuTe DSL** is NVIDIA's Python form of CUTLASS: its programs have the same four parts and about the
# control of CUDA C++. Its packages take over 90 MB, so it is not installed here, and we have not measured it.
#
# Before you read them, predict: how many lines of code does the longest have, the one in CUDA C++?

# %%
prediction = ...  # lines

# %%
lines = sum(show_product("CUDA C++").counts().values())
compare(prediction, lines, "lines", how="counted")

# %% [markdown]
# Predict also which of them is the fastest. Write it down: the answer is below.
#
# ### cuTile
#
# The colours show which part a line belongs to; lines without a colour choose the tile or launch the kernel. A cuTile
# kernel gets whole arrays. `ct.load` takes the *index* of a tile, counted in tiles, where Triton's descriptors take its
# first element.

# %%
show_product("cuTile")

# %% [markdown]
# No line mentions a barrier, a stage or a warp, except `num_worker_warps`: the number of warps that multiply. With 4, a
# thread would need 256 registers for its sums alone, and the compiler would spill them.
#
# ### Triton
#
# This is the persistent kernel of [Match cuBLAS](05_match_cublas.ipynb) in a simpler form, and two things are new. The
# inner loop says `warp_specialize=True`: the compiler divides it between a producer and consumers, and adds the
# barriers. And the kernel makes its descriptors itself: on Hopper, Triton 3.6 and 3.7 fail to compile this kernel with
# `warp_specialize` if the descriptors come from the host.

# %%
show_product("Triton")

# %% [markdown]
# `num_warps=4` counts the warps of one consumer. The compiler makes two of them, one per half of the tile, and a
# producer.
#
# ### Gluon
#
# Here the ring is yours. Compare `produce` and `consume` with the table above: each wait, each arrival and each copy
# has its own line. `gl.warp_specialize` starts both functions at once, `consume` in the kernel's 8 warps and `produce`
# in one more.

# %%
show_product("Gluon")

# %% [markdown]
# `warpgroup_mma_wait(1, …)` lets one multiplication be in flight. So when it returns, the step *before* this one is
# done, and that stage is empty. `pred=k > 0` skips the arrival in a tile's first step. `NVMMADistributedLayout` says
# which thread holds which sums.
#
# A block is still a block: `total` has 128 × 256 elements, and no line says which thread rounds which of them.
#
# ### CUDA C++
#
# Read it from the end. `kernel` divides the warps, and gives registers of the producer to the consumers
# (`setmaxnreg`). `consume` and `produce` are those of Gluon, line by line. Above them are one function per PTX
# instruction, and `matrix`, which packs an address, a stride and a swizzle into the 64 bits that WGMMA expects.

# %%
show_product("CUDA C++")

# %% [markdown]
# Gluon hid some of this: the boxes of 64 columns, the swizzle, which thread holds which sums (`write_half`), and the
# driver's function that describes a matrix (`describe`).

# %% [markdown]
# ## Side by side
#
# These are the lines of code, without comments and blank lines:

# %%
count_lines()

# %% [markdown]
# Now compile them. In each step along K, a consumer multiplies 64 × 64 by 64 × 256 elements, and one WGMMA advances by
# 16 along K. Predict: how many WGMMA instructions does the machine code of the CUDA C++ kernel have?

# %%
prediction = ...  # instructions

# %%
from grader.explore import compiled_products

compare(prediction, compiled_products()["CUDA C++"].count("HGMMA"), "instructions", how="compiled")

# %% [markdown]
# Both consumers run the same code, so there are four. The table has all kernels but cuTile's:

# %%
count_hopper_instructions()

# %% [markdown]
# The compilers make the same kind of program from a short kernel and from a long one: copies by TMA, WGMMA, and no
# ordinary load or store. Triton's has twice the multiplications, because it generates the code of each consumer
# separately. All have 168 registers per thread: 65,536 divided by 384 threads, and rounded down to a multiple of 8.
#
# One row is more than a detail. A consumer that leaves a WGMMA in flight has issued the next one before the last one
# ends. Triton's consumers do not.
#
# Which is the fastest? On an H100 or H200, the next cell measures each language at 4096 against cuBLAS. Elsewhere it
# shows what was recorded. There, cuTile is missing, because its compiler was not installed, and two more kernels took
# part:
#
# - *one flattened loop* is that of [Match cuBLAS](05_match_cublas.ipynb), without warp specialization
# - *no WGMMA in flight* is the one in CUDA C++, with consumers that wait as Triton's do

# %%
from grader.explore import time_products

time_products()

# %%
recorded("languages", "ratio_vs_cublas").plot()

# %% [markdown]
# On an H200, the product in CUDA C++ has
# ⟦ recorded(bench="languages", case="CUDA C++", metric="ratio_vs_cublas", gpu="H200") ⟧ the speed of cuBLAS, and Gluon's
# ⟦ recorded(bench="languages", case="Gluon", metric="ratio_vs_cublas", gpu="H200") ⟧. Triton with warp specialization reaches
# ⟦ recorded(bench="languages", case="Triton", metric="ratio_vs_cublas", gpu="H200") ⟧. Without it, the flattened loop reaches
# ⟦ recorded(bench="languages", case="Triton, one flattened loop", metric="ratio_vs_cublas", gpu="H200") ⟧.
#
# Triton's wait costs the product in CUDA C++ nearly as much: with it, that falls to
# ⟦ recorded(bench="languages", case="CUDA C++, no WGMMA in flight", metric="ratio_vs_cublas", gpu="H200") ⟧. So a lower language is not faster
# by itself. It lets you repair what a compiler does not do well.

# %% [markdown]
# ## What each hides
#
# Each language adds to what you decide in the one above it.
#
# | language | you decide | the compiler decides |
# | --- | --- | --- |
# | cuTile | tiles, their order, the warps that multiply | descriptors, stages, barriers, layouts, shared memory |
# | Triton | also descriptors, the number of stages and programs, and whether to specialize | barriers, layouts, shared memory |
# | Gluon | also the ring, every barrier, the layouts, what is in flight | threads within a block, swizzles, the epilogue's addresses |
# | CUDA C++ | everything | registers, and the order of instructions |
#
# What a language hides is done well for the products that its authors had in mind. It matters when yours is different.
# In [Fuse an attention](06_fuse_an_attention.ipynb), for example, two products share a ring, and a softmax runs between
# them. In Gluon you can write that schedule down. In Triton you hope that the compiler finds it.
#
# The price is not only length. A wrong phase in Gluon or CUDA C++ is a kernel that never ends, or one that reads a tile
# too early and is wrong once in a thousand runs.

# %% [markdown]
# ## Enter the leaderboard
#
# The exercise `matmul_open` of [Match cuBLAS](05_match_cublas.ipynb) takes Triton, Gluon and CUDA C++ through
# `load_inline`. To enter one of these kernels, copy its listing into the exercise's cell, and call it where it fits.
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
# Without a GPU, `check` judges the entry in Triton, and says that it cannot judge the other two. cuTile and CuTe DSL can
# be entered if their packages are installed on the machine that grades.

# %% [markdown]
# ## Extra credit
#
# No points, but each of these shows something.
#
# 1. Draw the ring with 1 to 6 stages. From which number on do more stages gain nothing, and why?
#
# <details><summary>Answer</summary>
#
# Three. In the drawing, a copy is in flight for 4 units of time, and a multiplication takes 2. So a stage is used for 6
# units, and the tensor cores need a new one every 2. On a GPU the flight takes longer at times, because all SMs share
# the memory, and a fourth stage makes up for it.
#
# </details>
#
# 2. In Gluon's `consume`, replace `warpgroup_mma_wait(1, …)` with 0, and let the arrival name this step's stage. What do
#    you gain, and what do you lose?
#
# <details><summary>Answer</summary>
#
# The stage is empty one step earlier, so three stages do the work of four. But the tensor cores are idle from the end
# of one multiplication until the next is issued.
#
# </details>
#
# 3. Both consumers of the CUDA C++ kernel end their tile at the same time, and the tensor cores wait for the store. How
#    could the stores be hidden?
#
# <details><summary>Answer</summary>
#
# Give each consumer a tile of its own, and let them start half a tile apart: while one stores, the other multiplies.
# CUTLASS calls this *ping-pong*. It needs another pair of barriers, for the order in which they use the ring.
#
# </details>

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - seen the four parts of a product on Hopper, and the ring of stages that connects them
# - computed stages and phases, and the room that they take
# - read the same kernel in four languages, and counted what each leaves to you
# - compared their machine code, and their speed with that of cuBLAS
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
# <details><summary>Ring of 4, step 5: which stage, and for which phase of its full barrier does the consumer wait?</summary>
#
# Stage 1, and phase 1: `5 // 4 % 2`. It is the stage's second round.
#
# </details>
#
# <details><summary>Why can the producer do with so few registers?</summary>
#
# It holds no elements. The tiles go from memory to shared memory without passing through a thread, so it needs only
# addresses and counters.
#
# </details>
#
# <details><summary>Two kernels in different languages have nearly the same machine code. What is left to compare?</summary>
#
# What each costs you: lines, mistakes that are possible, and what you can change when the compiler's choice is not the
# one that you need.
#
# </details>
#
# ## Read on
#
# - [Gluon's tutorials](https://triton-lang.org/main/gluon/tutorials/index.html), from layouts to warp specialization
# - [Outperforming cuBLAS on H100](https://cudaforfun.substack.com/p/outperforming-cublas-on-h100-a-worklog), a product
#   in CUDA C++, step by step
# - [cuTile Python](https://docs.nvidia.com/cuda/cutile-python/), its language and its compiler
#
# **Next:** [Find a period](../04_numba_cupy/01_find_a_period.ipynb), where the Lomb–Scargle ladder begins.
