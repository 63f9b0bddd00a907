# %% [markdown]
# # Learn to program a GPU
#
# This course is for people who know PyTorch and have never written a kernel. You find out where a GPU program's time
# goes and write kernels in CUDA C++, Triton, Numba and CuPy. Each kernel is checked, and measured against PyTorch and
# the hardware's limit.
#
# Every notebook works in the same way: **predict**, **measure**, **explain**. Write your prediction down before you
# run the cell that measures. A wrong prediction is the best thing that can happen to you here: it shows where to
# look.

# %% [markdown]
# ## The notebooks
#
# | notebook | you write | points |
# | --- | --- | --- |
# | **Find where the time goes** | | |
# | [Time a GPU call](01_profiling/01_time_a_gpu_call.ipynb) | `time_gpu` | ⟦ exercise("time_gpu").max_points ⟧ |
# | [Read a profile](01_profiling/02_read_a_profile.ipynb) | `trace_facts` | ⟦ exercise("trace_facts").max_points ⟧ |
# | [Free a pipeline](01_profiling/03_free_a_pipeline.ipynb) | `unblock` | ⟦ exercise("unblock").max_points ⟧ |
# | [Draw the roofline](01_profiling/04_draw_the_roofline.ipynb) | `predict_ms` | ⟦ exercise("predict_ms").max_points ⟧ |
# | [Let the compiler fuse](01_profiling/05_let_the_compiler_fuse.ipynb) | `fuse` | ⟦ exercise("fuse").max_points ⟧ |
# | [Catch a lying benchmark](01_profiling/06_catch_a_lying_benchmark.ipynb) | `audit` | ⟦ exercise("audit").max_points ⟧ |
# | **Write CUDA C++ and call it from PyTorch** | | |
# | [Square a matrix](02_load_inline/01_square_a_matrix.ipynb) | `square_matrix`, `grayscale` | ⟦ exercise("square_matrix").max_points + exercise("grayscale").max_points ⟧ |
# | [Move bytes well](02_load_inline/02_move_bytes_well.ipynb) | `transpose` | ⟦ exercise("transpose").max_points ⟧ |
# | [Reduce to a mean](02_load_inline/03_reduce_to_a_mean.ipynb) | `mean_cuda` | ⟦ exercise("mean_cuda").max_points ⟧ |
# | [Make it an operator](02_load_inline/04_make_it_an_operator.ipynb) | `leaky_relu_op` | ⟦ exercise("leaky_relu_op").max_points ⟧ |
# | **Write blocks, not threads** | | |
# | [Add vectors](03_triton/01_add_vectors.ipynb) | `vector_add` | ⟦ exercise("vector_add").max_points ⟧ |
# | [Reduce to a mean in Triton](03_triton/02_reduce_to_a_mean.ipynb) | `mean_triton` | ⟦ exercise("mean_triton").max_points ⟧ |
# | [Fuse a softmax](03_triton/03_fuse_a_softmax.ipynb) | `softmax` | ⟦ exercise("softmax").max_points ⟧ |
# | [Multiply matrices](03_triton/04_multiply_matrices.ipynb) | `matmul`, `matmul_leaky_relu` | ⟦ exercise("matmul").max_points + exercise("matmul_leaky_relu").max_points ⟧ |
# | [Match cuBLAS](03_triton/05_match_cublas.ipynb) | `matmul_open` | ⟦ exercise("matmul_open").max_points ⟧ |
# | [Look inside the compiler](03_triton/07_look_inside_the_compiler.ipynb) | `vector_width`, `widen` | ⟦ exercise("vector_width").max_points + exercise("widen").max_points ⟧ |
# | **Climb from Python to the hardware** | | |
# | [Find a period](04_numba_cupy/01_find_a_period.ipynb) | `periodogram_numpy` | ⟦ exercise("periodogram_numpy").max_points ⟧ |
# | [Climb with Numba](04_numba_cupy/02_climb_with_numba.ipynb) | `ls_numba_baseline`, `ls_numba_cached`, `ls_numba_typed`, `ls_numba_fastmath`, `ls_numba_registers` | ⟦ exercise("ls_numba_baseline").max_points + exercise("ls_numba_cached").max_points + exercise("ls_numba_typed").max_points + exercise("ls_numba_fastmath").max_points + exercise("ls_numba_registers").max_points ⟧ |
# | [Climb with CuPy](04_numba_cupy/03_climb_with_cupy.ipynb) | `ls_cupy_baseline`, `ls_cupy_cached`, `ls_cupy_typed`, `ls_cupy_fastmath`, `ls_cupy_fatbin`, `ls_cupy_launch_bounds` | ⟦ exercise("ls_cupy_baseline").max_points + exercise("ls_cupy_cached").max_points + exercise("ls_cupy_typed").max_points + exercise("ls_cupy_fastmath").max_points + exercise("ls_cupy_fatbin").max_points + exercise("ls_cupy_launch_bounds").max_points ⟧ |
# | [Go past the ladder](04_numba_cupy/04_go_past_the_ladder.ipynb) | `ls_open` | ⟦ exercise("ls_open").max_points ⟧ |
#
# Take them in this order, or start with Triton: the chapters do not depend on each other. Each notebook takes about
# an hour, the two climbs of chapter 4 an hour and a half.

# %% [markdown]
# ## This machine
#
# The notebooks run with an NVIDIA GPU and without one. The next cell says which you have: `cuda` means a GPU, `cpu`
# means that kernels run in simulators. They check every answer, but points for speed need a GPU. The text shows
# measurements that were recorded on one.

# %%
from grader import device

device

# %% [markdown]
# If something seems to be missing, run `grader doctor` in a terminal. It says what this machine can do, and which
# command fixes what is missing.

# %% [markdown]
# ## How an exercise works
#
# 1. Read the task and fill in the cell where it says `YOUR CODE HERE` or `NotImplementedError`. Your whole solution,
#    imports included, must be in that one cell.
# 2. Run the cell, then `check(…)` below it. It says what is wrong and where to look. If you get a `NameError`, run the
#    exercise's cell first.
# 3. When your answer is right, run `benchmark(…)`. It plots your speed over the problem size, next to the baselines.
#
# Change the solution and check again as often as you like. If your course keeps a leaderboard, `standings(…)` shows
# your rank: `from grader import standings`, then `standings("softmax")`.

# %% [markdown]
# ## Your progress
#
# `progress()` shows the best result of each exercise so far, as `check` recorded it on this machine.

# %%
from grader import progress

progress()
