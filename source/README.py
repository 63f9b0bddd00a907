# %% [markdown]
# # Learn to program a GPU
#
# This course is for people who know PyTorch and have never written a kernel, a function that runs on the GPU. You find
# out where a GPU program's time goes, and write kernels in CUDA C++, Triton, Numba and CuPy. Each kernel is checked, and
# compared with PyTorch and with the hardware's limit.
#
# Every notebook works in the same way: **predict**, **measure**, **explain**. Replace the `...` after `prediction =` with
# your prediction before you run the cell that measures. A wrong prediction is the best thing that can happen to you here:
# it shows where to look.

# %% [markdown]
# ## The notebooks
#
# ### 1. Find where the time goes: PyTorch's profilers, `torch.compile`, Nsight
#
# | notebook | you write | minutes | points |
# | :--- | :--- | ---: | ---: |
# | [Time a GPU call](01_profiling/01_time_a_gpu_call.ipynb) | `time_gpu` | ⟦ minutes("01_profiling/01_time_a_gpu_call") ⟧ | ⟦ points("01_profiling/01_time_a_gpu_call") ⟧ |
# | [Read a profile](01_profiling/02_read_a_profile.ipynb) | `trace_facts` | ⟦ minutes("01_profiling/02_read_a_profile") ⟧ | ⟦ points("01_profiling/02_read_a_profile") ⟧ |
# | [Free a pipeline](01_profiling/03_free_a_pipeline.ipynb) | `unblock`, `name_cause` | ⟦ minutes("01_profiling/03_free_a_pipeline") ⟧ | ⟦ points("01_profiling/03_free_a_pipeline") ⟧ |
# | [Draw the roofline](01_profiling/04_draw_the_roofline.ipynb) | `predict_ms` | ⟦ minutes("01_profiling/04_draw_the_roofline") ⟧ | ⟦ points("01_profiling/04_draw_the_roofline") ⟧ |
# | [Let the compiler fuse](01_profiling/05_let_the_compiler_fuse.ipynb) | `fuse` | ⟦ minutes("01_profiling/05_let_the_compiler_fuse") ⟧ | ⟦ points("01_profiling/05_let_the_compiler_fuse") ⟧ |
# | [Catch a lying benchmark](01_profiling/06_catch_a_lying_benchmark.ipynb) | `audit` | ⟦ minutes("01_profiling/06_catch_a_lying_benchmark") ⟧ | ⟦ points("01_profiling/06_catch_a_lying_benchmark") ⟧ |
# | **Chapter 1** | | **⟦ minutes("01_profiling") ⟧** | **⟦ points("01_profiling") ⟧** |
#
# ### 2. Write CUDA C++ and call it from PyTorch: CUDA C++ through `load_inline`
#
# | notebook | you write | minutes | points |
# | :--- | :--- | ---: | ---: |
# | [Square a matrix](02_load_inline/01_square_a_matrix.ipynb) | `square_matrix`, `grayscale` | ⟦ minutes("02_load_inline/01_square_a_matrix") ⟧ | ⟦ points("02_load_inline/01_square_a_matrix") ⟧ |
# | [Move bytes well](02_load_inline/02_move_bytes_well.ipynb) | `transpose` | ⟦ minutes("02_load_inline/02_move_bytes_well") ⟧ | ⟦ points("02_load_inline/02_move_bytes_well") ⟧ |
# | [Reduce to a mean](02_load_inline/03_reduce_to_a_mean.ipynb) | `mean_cuda` | ⟦ minutes("02_load_inline/03_reduce_to_a_mean") ⟧ | ⟦ points("02_load_inline/03_reduce_to_a_mean") ⟧ |
# | [Make it an operator](02_load_inline/04_make_it_an_operator.ipynb) | `leaky_relu_op` | ⟦ minutes("02_load_inline/04_make_it_an_operator") ⟧ | ⟦ points("02_load_inline/04_make_it_an_operator") ⟧ |
# | [Multiply with tiles](02_load_inline/05_multiply_with_tiles.ipynb) | `matmul_tiled` | ⟦ minutes("02_load_inline/05_multiply_with_tiles") ⟧ | ⟦ points("02_load_inline/05_multiply_with_tiles") ⟧ |
# | **Chapter 2** | | **⟦ minutes("02_load_inline") ⟧** | **⟦ points("02_load_inline") ⟧** |
#
# ### 3. Write blocks, not threads: Triton
#
# | notebook | you write | minutes | points |
# | :--- | :--- | ---: | ---: |
# | [Add two vectors](03_triton/01_add_vectors.ipynb) | `vector_add` | ⟦ minutes("03_triton/01_add_vectors") ⟧ | ⟦ points("03_triton/01_add_vectors") ⟧ |
# | [Reduce to a mean in Triton](03_triton/02_reduce_to_a_mean.ipynb) | `mean_triton` | ⟦ minutes("03_triton/02_reduce_to_a_mean") ⟧ | ⟦ points("03_triton/02_reduce_to_a_mean") ⟧ |
# | [Fuse a softmax](03_triton/03_fuse_a_softmax.ipynb) | `softmax` | ⟦ minutes("03_triton/03_fuse_a_softmax") ⟧ | ⟦ points("03_triton/03_fuse_a_softmax") ⟧ |
# | [Multiply matrices](03_triton/04_multiply_matrices.ipynb) | `outer_product`, `matmul`, `matmul_leaky_relu` | ⟦ minutes("03_triton/04_multiply_matrices") ⟧ | ⟦ points("03_triton/04_multiply_matrices") ⟧ |
# | [Match cuBLAS](03_triton/05_match_cublas.ipynb) | `matmul_open` | ⟦ minutes("03_triton/05_match_cublas") ⟧ | ⟦ points("03_triton/05_match_cublas") ⟧ |
# | [Fuse an attention](03_triton/06_fuse_an_attention.ipynb) | `softmax_long`, `attention` | ⟦ minutes("03_triton/06_fuse_an_attention") ⟧ | ⟦ points("03_triton/06_fuse_an_attention") ⟧ |
# | [Look inside the compiler](03_triton/07_look_inside_the_compiler.ipynb) | `vector_width`, `widen` | ⟦ minutes("03_triton/07_look_inside_the_compiler") ⟧ | ⟦ points("03_triton/07_look_inside_the_compiler") ⟧ |
# | [Compare languages](03_triton/08_compare_languages.ipynb) | – | ⟦ minutes("03_triton/08_compare_languages") ⟧ | ⟦ points("03_triton/08_compare_languages") ⟧ |
# | **Chapter 3** | | **⟦ minutes("03_triton") ⟧** | **⟦ points("03_triton") ⟧** |
#
# ### 4. Climb from Python to the hardware: Numba and CuPy
#
# | notebook | you write | minutes | points |
# | :--- | :--- | ---: | ---: |
# | [Find a period](04_numba_cupy/01_find_a_period.ipynb) | `periodogram_numpy` | ⟦ minutes("04_numba_cupy/01_find_a_period") ⟧ | ⟦ points("04_numba_cupy/01_find_a_period") ⟧ |
# | [Climb with Numba](04_numba_cupy/02_climb_with_numba.ipynb) | `ls_numba_baseline`, `ls_numba_cached`, `ls_numba_typed`, `ls_numba_fastmath`, `ls_numba_registers`, `ls_numba_unsigned` | ⟦ minutes("04_numba_cupy/02_climb_with_numba") ⟧ | ⟦ points("04_numba_cupy/02_climb_with_numba") ⟧ |
# | [Climb with CuPy](04_numba_cupy/03_climb_with_cupy.ipynb) | `ls_cupy_baseline`, `ls_cupy_cached`, `ls_cupy_typed`, `ls_cupy_fastmath`, `ls_cupy_fatbin`, `ls_cupy_launch_bounds` | ⟦ minutes("04_numba_cupy/03_climb_with_cupy") ⟧ | ⟦ points("04_numba_cupy/03_climb_with_cupy") ⟧ |
# | [Go past the ladder](04_numba_cupy/04_go_past_the_ladder.ipynb) | `ls_open` | ⟦ minutes("04_numba_cupy/04_go_past_the_ladder") ⟧ | ⟦ points("04_numba_cupy/04_go_past_the_ladder") ⟧ |
# | [Search many stars](04_numba_cupy/05_search_many_stars.ipynb) | `ls_stars` | ⟦ minutes("04_numba_cupy/05_search_many_stars") ⟧ | ⟦ points("04_numba_cupy/05_search_many_stars") ⟧ |
# | **Chapter 4** | | **⟦ minutes("04_numba_cupy") ⟧** | **⟦ points("04_numba_cupy") ⟧** |
#
# Take the chapters in this order, or start with chapter 3, which needs neither of the first two. Chapter 4 uses threads,
# blocks and shared memory, which chapter 2 explains. The minutes include the exercises, and the whole course takes about
# ⟦ ((minutes("01_profiling") + minutes("02_load_inline") + minutes("03_triton") + minutes("04_numba_cupy")) / 60) | round | int ⟧
# hours. The [glossary](glossary.ipynb) explains each term in a line and says where it is taught.

# %% [markdown]
# ## This machine
#
# The notebooks run with an NVIDIA GPU and without one. The next cell says which you have: `cuda` means a GPU, `cpu`
# means that kernels run in simulators. Without a GPU, every answer is still checked, and the notebooks show recorded
# measurements instead of yours. Only the points for speed need a GPU.

# %%
from grader import device

device

# %% [markdown]
# If something seems to be missing, run `grader doctor` in a terminal: in JupyterLab, choose *File*, *New*, *Terminal*.
# It says what this machine can do, and which command installs what is missing. If the terminal does not find `grader`,
# give its path: `.venv/bin/grader doctor` in a checkout.

# %% [markdown]
# ## How an exercise works
#
# 1. Read the task. In the cell below it, write your code where it says `YOUR CODE HERE` or `NotImplementedError`. Your
#    whole solution, imports included, must be in that one cell.
# 2. Run the cell, then `check(…)` below it. It says what is wrong and where to look. If you get a `NameError`, run the
#    exercise's cell first.
# 3. When your answer is right, run `benchmark(…)`. It plots your speed over the problem size, next to the baselines.
#    Without a GPU, it plots what the authors' solution reached on a recorded GPU instead.
# 4. If your answer is right but too slow to earn all points, `explain(…)` looks for the reason: `from grader import explain`.
#
# Change the solution and check again as often as you like. If your course keeps a leaderboard, `standings(…)` shows
# your rank: `from grader import standings`, then `standings("softmax")`.
#
# To read a notebook without JupyterLab, turn it into a web page: `jupyter nbconvert --to offline_html FILE.ipynb` in a
# terminal. The page needs no network.

# %% [markdown]
# ## Your progress
#
# `progress()` shows your best result in each exercise so far, as `check` recorded it on this machine, and where to
# continue. A tick means that you have all points, or all that you can get without a GPU.

# %%
from grader import progress

progress()
