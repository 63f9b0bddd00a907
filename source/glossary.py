# %% [markdown]
# # Glossary
#
# Each term in one line, with the notebook that teaches it. Most terms are those of the field, so you can search for
# them. Go back to the [syllabus](README.ipynb).

# %% [markdown]
# ## 1. Find where the time goes
#
# | term | meaning | taught in |
# | :--- | :--- | :--- |
# | **AOTAutograd** | the part of `torch.compile` that traces the backward pass ahead of time | [Let the compiler fuse](01_profiling/05_let_the_compiler_fuse.ipynb) |
# | **arithmetic intensity** | operations per byte moved to or from memory | [Draw the roofline](01_profiling/04_draw_the_roofline.ipynb) |
# | **asynchronous** | not waited for: an asynchronous launch returns before the GPU has done the work | [Time a GPU call](01_profiling/01_time_a_gpu_call.ipynb) |
# | **backend** | the part of `torch.compile` that turns a captured graph into something to call | [Let the compiler fuse](01_profiling/05_let_the_compiler_fuse.ipynb) |
# | **bandwidth** | bytes moved per second | [Draw the roofline](01_profiling/04_draw_the_roofline.ipynb) |
# | **busy share** | the part of a span of time in which the GPU does any work, from 0 to 1 | [Read a profile](01_profiling/02_read_a_profile.ipynb) |
# | **caching allocator** | the part of PyTorch that keeps freed GPU memory for later tensors | [Read a profile](01_profiling/02_read_a_profile.ipynb) |
# | **cold** | a cold cache does not hold the data yet, so the data comes from memory | [Time a GPU call](01_profiling/01_time_a_gpu_call.ipynb) |
# | **compute-bound** | limited by the rate of arithmetic | [Draw the roofline](01_profiling/04_draw_the_roofline.ipynb) |
# | **CPU total** | the time from an operation's start to its end, including everything that it calls | [Read a profile](01_profiling/02_read_a_profile.ipynb) |
# | **CUDA graphs** | sequences of launches that are recorded once and replayed with a single call | [Free a pipeline](01_profiling/03_free_a_pipeline.ipynb) |
# | **dead code** | code whose result nobody uses, which a compiler removes | [Let the compiler fuse](01_profiling/05_let_the_compiler_fuse.ipynb) |
# | **decomposition** | writing an operation in terms of simpler ones | [Let the compiler fuse](01_profiling/05_let_the_compiler_fuse.ipynb) |
# | **dynamic shape** | a size that a compiled graph leaves open | [Let the compiler fuse](01_profiling/05_let_the_compiler_fuse.ipynb) |
# | **eager mode** | each operation launches its kernel as soon as Python reaches it | [Let the compiler fuse](01_profiling/05_let_the_compiler_fuse.ipynb) |
# | **event** | a marker in the GPU's queue that records the time at which the GPU reaches it | [Time a GPU call](01_profiling/01_time_a_gpu_call.ipynb) |
# | **FLOP/s** | floating-point operations per second, also written FLOPS | [Draw the roofline](01_profiling/04_draw_the_roofline.ipynb) |
# | **fusion** | combining several operations into one kernel | [Let the compiler fuse](01_profiling/05_let_the_compiler_fuse.ipynb) |
# | **FX graph** | the list of operations that TorchDynamo captures | [Let the compiler fuse](01_profiling/05_let_the_compiler_fuse.ipynb) |
# | **GEMM** | general matrix multiplication, the product of two matrices | [Draw the roofline](01_profiling/04_draw_the_roofline.ipynb) |
# | **graph break** | a place where TorchDynamo ends a graph and leaves the next step to Python | [Let the compiler fuse](01_profiling/05_let_the_compiler_fuse.ipynb) |
# | **guards** | a compiled function's checks that its assumptions still hold | [Let the compiler fuse](01_profiling/05_let_the_compiler_fuse.ipynb) |
# | **HBM** | high-bandwidth memory, the memory of large data-centre GPUs | [Draw the roofline](01_profiling/04_draw_the_roofline.ipynb) |
# | **host** | the CPU and its memory, as CUDA calls them | [Time a GPU call](01_profiling/01_time_a_gpu_call.ipynb) |
# | **idle gap** | a stretch of time between two pieces of work in which the GPU does nothing | [Read a profile](01_profiling/02_read_a_profile.ipynb) |
# | **Inductor** | the part of `torch.compile` that fuses operations and writes the kernels | [Let the compiler fuse](01_profiling/05_let_the_compiler_fuse.ipynb) |
# | **interquartile range** | the width of the middle half of several measurements | [Time a GPU call](01_profiling/01_time_a_gpu_call.ipynb) |
# | **JIT** | just-in-time compilation: the program compiles code while it runs | [Time a GPU call](01_profiling/01_time_a_gpu_call.ipynb) |
# | **joint graph** | forward and backward pass in one graph | [Let the compiler fuse](01_profiling/05_let_the_compiler_fuse.ipynb) |
# | **kernel** | a function that runs on the GPU | [Time a GPU call](01_profiling/01_time_a_gpu_call.ipynb) |
# | **L2 cache** | the cache that all parts of a GPU share; tens of megabytes on large GPUs | [Time a GPU call](01_profiling/01_time_a_gpu_call.ipynb) |
# | **launch overhead** | the time that a launch costs, whatever the kernel does | [Time a GPU call](01_profiling/01_time_a_gpu_call.ipynb) |
# | **lowering** | turning operations into loops over elements, and loops into source code | [Let the compiler fuse](01_profiling/05_let_the_compiler_fuse.ipynb) |
# | **median** | the middle value of several measurements, which a single outlier hardly moves | [Time a GPU call](01_profiling/01_time_a_gpu_call.ipynb) |
# | **memory layout** | the order in which a tensor's elements are stored | [Let the compiler fuse](01_profiling/05_let_the_compiler_fuse.ipynb) |
# | **memory-bound** | limited by the bandwidth of the memory | [Free a pipeline](01_profiling/03_free_a_pipeline.ipynb) |
# | **minimum cut** | the cut between forward and backward graph that the fewest bytes cross | [Let the compiler fuse](01_profiling/05_let_the_compiler_fuse.ipynb) |
# | **Nsight Compute** | NVIDIA's profiler for single kernels, the command `ncu` | [Free a pipeline](01_profiling/03_free_a_pipeline.ipynb) |
# | **Nsight Systems** | NVIDIA's profiler for the timeline of a whole program, the command `nsys` | [Free a pipeline](01_profiling/03_free_a_pipeline.ipynb) |
# | **NVTX** | NVIDIA's library for naming ranges of a program, which its profilers then show | [Free a pipeline](01_profiling/03_free_a_pipeline.ipynb) |
# | **outlier** | a measurement far from the others | [Time a GPU call](01_profiling/01_time_a_gpu_call.ipynb) |
# | **overhead-bound** | limited by launches and Python, so that the GPU waits for work | [Free a pipeline](01_profiling/03_free_a_pipeline.ipynb) |
# | **pinned memory** | host memory that the GPU can read directly, so that copies need not wait | [Free a pipeline](01_profiling/03_free_a_pipeline.ipynb) |
# | **pointwise** | a pointwise operation computes each element on its own | [Let the compiler fuse](01_profiling/05_let_the_compiler_fuse.ipynb) |
# | **power limit** | the most power that a GPU may draw; it lowers its clock to stay within | [Time a GPU call](01_profiling/01_time_a_gpu_call.ipynb) |
# | **pretend GPU** | a simulated GPU of this course that follows a real one's rules for launches, waits and streams | [Catch a lying benchmark](01_profiling/06_catch_a_lying_benchmark.ipynb) |
# | **profiler** | a tool that records what ran, when, and for how long | [Read a profile](01_profiling/02_read_a_profile.ipynb) |
# | **queue** | the list of work that the host has handed to the GPU; CUDA calls it a stream | [Time a GPU call](01_profiling/01_time_a_gpu_call.ipynb) |
# | **range** | a stretch of a program that you name, so that a profile shows it | [Read a profile](01_profiling/02_read_a_profile.ipynb) |
# | **recompile** | compiling a function again because no graph fits the call | [Let the compiler fuse](01_profiling/05_let_the_compiler_fuse.ipynb) |
# | **reductions** | operations that turn many values into one, such as sums and maxima | [Let the compiler fuse](01_profiling/05_let_the_compiler_fuse.ipynb) |
# | **registers** | the fastest memory of a GPU: a few values for each thread | [Let the compiler fuse](01_profiling/05_let_the_compiler_fuse.ipynb) |
# | **ridge** | the arithmetic intensity at which a kernel stops being limited by memory | [Draw the roofline](01_profiling/04_draw_the_roofline.ipynb) |
# | **roofline** | the lower of peak and bandwidth times intensity: the highest rate that an operation can reach | [Draw the roofline](01_profiling/04_draw_the_roofline.ipynb) |
# | **schedule** | says which steps of a long run the profiler skips, warms up in and records | [Read a profile](01_profiling/02_read_a_profile.ipynb) |
# | **Self CPU** | the time of an operation without the operations that it calls | [Read a profile](01_profiling/02_read_a_profile.ipynb) |
# | **span** | the time from the start of the first piece of work to the end of the last | [Read a profile](01_profiling/02_read_a_profile.ipynb) |
# | **spy** | a function that notes what it is called with | [Catch a lying benchmark](01_profiling/06_catch_a_lying_benchmark.ipynb) |
# | **stream** | a queue of work on the GPU; several streams may run at the same time | [Read a profile](01_profiling/02_read_a_profile.ipynb) |
# | **synchronisation point** | a line at which the CPU waits until the GPU has finished its queue | [Free a pipeline](01_profiling/03_free_a_pipeline.ipynb) |
# | **throttling** | a lower clock rate because of heat or the power limit | [Time a GPU call](01_profiling/01_time_a_gpu_call.ipynb) |
# | **throughput** | work per second, such as bytes or operations | [Free a pipeline](01_profiling/03_free_a_pipeline.ipynb) |
# | **TorchDynamo** | the part of `torch.compile` that turns Python into a graph of operations | [Let the compiler fuse](01_profiling/05_let_the_compiler_fuse.ipynb) |
# | **trace** | a recording of every event of a program, with its start and its length | [Read a profile](01_profiling/02_read_a_profile.ipynb) |
# | **warm** | a warm cache holds the data from an earlier call | [Time a GPU call](01_profiling/01_time_a_gpu_call.ipynb) |
# | **warm-up** | calls before a measurement that are not timed, because first calls are slow | [Time a GPU call](01_profiling/01_time_a_gpu_call.ipynb) |

# %% [markdown]
# ## 2. Write CUDA C++ and call it from PyTorch
#
# | term | meaning | taught in |
# | :--- | :--- | :--- |
# | **atomic addition** | a read, an addition and a write that no other thread can interrupt | [Reduce to a mean](02_load_inline/03_reduce_to_a_mean.ipynb) |
# | **bank conflict** | threads of a warp that want different words of one shared-memory bank, and wait for each other | [Move bytes well](02_load_inline/02_move_bytes_well.ipynb) |
# | **barrier** | a point that no thread of a block passes before all have reached it; `__syncthreads()` | [Move bytes well](02_load_inline/02_move_bytes_well.ipynb) |
# | **binding** | the code that makes a C++ function callable from Python | [Square a matrix](02_load_inline/01_square_a_matrix.ipynb) |
# | **block** | the threads that run together on one SM and can share memory | [Square a matrix](02_load_inline/01_square_a_matrix.ipynb) |
# | **bounds check** | the test whether a thread's index is inside the array | [Square a matrix](02_load_inline/01_square_a_matrix.ipynb) |
# | **coalescing** | neighbouring threads access neighbouring elements, so that few sectors are moved | [Move bytes well](02_load_inline/02_move_bytes_well.ipynb) |
# | **cooperative groups** | CUDA's library for threads that work together, such as the lanes of a warp | [Reduce to a mean](02_load_inline/03_reduce_to_a_mean.ipynb) |
# | **CUB** | NVIDIA's library of reductions, scans and sorts for warps, blocks and whole arrays | [Reduce to a mean](02_load_inline/03_reduce_to_a_mean.ipynb) |
# | **current stream** | the stream on which PyTorch launches; an operator must launch there, too | [Make it an operator](02_load_inline/04_make_it_an_operator.ipynb) |
# | **default stream** | the stream of a CUDA launch that names none | [Make it an operator](02_load_inline/04_make_it_an_operator.ipynb) |
# | **device guard** | a switch to the GPU that holds a tensor, and back | [Make it an operator](02_load_inline/04_make_it_an_operator.ipynb) |
# | **dispatcher** | the part of PyTorch that decides which code runs for a call of an operator | [Make it an operator](02_load_inline/04_make_it_an_operator.ipynb) |
# | **divergence** | threads of one warp take different branches, which then run one after the other | [Reduce to a mean](02_load_inline/03_reduce_to_a_mean.ipynb) |
# | **double buffering** | using two buffers in turn: one is filled while the other is read | [Multiply with tiles](02_load_inline/05_multiply_with_tiles.ipynb) |
# | **DRAM** | the large, slow memory of a GPU, outside its chip; on data-centre GPUs it is HBM | [Move bytes well](02_load_inline/02_move_bytes_well.ipynb) |
# | **dynamic shared memory** | shared memory whose size the launch chooses | [Move bytes well](02_load_inline/02_move_bytes_well.ipynb) |
# | **fake kernel** | the function that describes an operator's result without computing it | [Make it an operator](02_load_inline/04_make_it_an_operator.ipynb) |
# | **grid** | all blocks of one launch | [Square a matrix](02_load_inline/01_square_a_matrix.ipynb) |
# | **grid-stride** | a loop in which each thread skips ahead by the number of threads in the grid | [Reduce to a mean](02_load_inline/03_reduce_to_a_mean.ipynb) |
# | **in flight** | requested from memory but not yet delivered | [Move bytes well](02_load_inline/02_move_bytes_well.ipynb) |
# | **lanes** | the 32 threads of a warp, numbered from 0 | [Reduce to a mean](02_load_inline/03_reduce_to_a_mean.ipynb) |
# | **latency** | the time from a request to its answer | [Move bytes well](02_load_inline/02_move_bytes_well.ipynb) |
# | **line** | four neighbouring sectors, the unit of a GPU's caches | [Move bytes well](02_load_inline/02_move_bytes_well.ipynb) |
# | **Little's law** | bandwidth is the bytes in flight divided by the latency | [Move bytes well](02_load_inline/02_move_bytes_well.ipynb) |
# | **local memory** | a thread's own part of the GPU's main memory, for values that do not fit in registers | [Multiply with tiles](02_load_inline/05_multiply_with_tiles.ipynb) |
# | **mixed precision** | computing parts of a model in a narrower type, such as float16 | [Make it an operator](02_load_inline/04_make_it_an_operator.ipynb) |
# | **occupancy** | the threads resident on an SM, as a share of the most that it can hold | [Move bytes well](02_load_inline/02_move_bytes_well.ipynb) |
# | **operator** | a function that PyTorch knows by name and schema, and does not look into | [Make it an operator](02_load_inline/04_make_it_an_operator.ipynb) |
# | **pointer** | the address of a value in memory | [Square a matrix](02_load_inline/01_square_a_matrix.ipynb) |
# | **race** | two threads use the same memory, and the result depends on which comes first | [Move bytes well](02_load_inline/02_move_bytes_well.ipynb) |
# | **register tiling** | computing several elements per thread, with their sums in registers | [Multiply with tiles](02_load_inline/05_multiply_with_tiles.ipynb) |
# | **schema** | an operator's inputs, outputs, and the arguments that it writes to | [Make it an operator](02_load_inline/04_make_it_an_operator.ipynb) |
# | **sector** | 32 bytes, the smallest piece that a GPU fetches from memory | [Move bytes well](02_load_inline/02_move_bytes_well.ipynb) |
# | **sequential addressing** | an order of additions in which the threads that add are side by side | [Reduce to a mean](02_load_inline/03_reduce_to_a_mean.ipynb) |
# | **shared memory** | memory on the SM that the threads of a block share | [Move bytes well](02_load_inline/02_move_bytes_well.ipynb) |
# | **shuffle** | an instruction by which lanes read each other's registers | [Reduce to a mean](02_load_inline/03_reduce_to_a_mean.ipynb) |
# | **SM** | streaming multiprocessor, the part of a GPU that runs blocks | [Square a matrix](02_load_inline/01_square_a_matrix.ipynb) |
# | **stable ABI** | the part of PyTorch's C++ interface that stays the same, so that a compiled library works with later versions | [Square a matrix](02_load_inline/01_square_a_matrix.ipynb) |
# | **stride** | the distance between the elements that neighbouring threads take | [Move bytes well](02_load_inline/02_move_bytes_well.ipynb) |
# | **template** | C++ code that leaves a type open; the compiler makes a version for each type that is used | [Make it an operator](02_load_inline/04_make_it_an_operator.ipynb) |
# | **TF32** | a tensor core's input format: float32 with 10 of the 23 binary digits of its fraction | [Multiply with tiles](02_load_inline/05_multiply_with_tiles.ipynb) |
# | **thread** | one run of a CUDA kernel's code, usually for one element or a few | [Square a matrix](02_load_inline/01_square_a_matrix.ipynb) |
# | **ticket** | a number drawn from an atomic counter, which tells the last block that it is the last | [Reduce to a mean](02_load_inline/03_reduce_to_a_mean.ipynb) |
# | **warp** | 32 threads that run the same instruction together | [Square a matrix](02_load_inline/01_square_a_matrix.ipynb) |

# %% [markdown]
# ## 3. Write blocks, not threads
#
# | term | meaning | taught in |
# | :--- | :--- | :--- |
# | **attention** | an operation that gives each token a weighted mean of the values of all tokens it may see | [Fuse an attention](03_triton/06_fuse_an_attention.ipynb) |
# | **autotuning** | timing several configurations of a kernel at its first launch and keeping the fastest | [Multiply matrices](03_triton/04_multiply_matrices.ipynb) |
# | **bfloat16** | a 16-bit type with the range of float32, but only 8 significant bits | [Multiply matrices](03_triton/04_multiply_matrices.ipynb) |
# | **block** | in Triton, an array with power-of-two sides that a program computes on as a whole | [Add two vectors](03_triton/01_add_vectors.ipynb) |
# | **causal mask** | lets each token of an attention see only itself and earlier ones | [Fuse an attention](03_triton/06_fuse_an_attention.ipynb) |
# | **consumers** | the warps that multiply the tiles that a producer has copied | [Compare languages](03_triton/08_compare_languages.ipynb) |
# | **CuTe DSL** | the Python form of CUTLASS, NVIDIA's C++ templates for matrix products | [Compare languages](03_triton/08_compare_languages.ipynb) |
# | **cuTile** | NVIDIA's tile-based kernel language in Python | [Compare languages](03_triton/08_compare_languages.ipynb) |
# | **deterministic** | giving the same bits each time | [Reduce to a mean in Triton](03_triton/02_reduce_to_a_mean.ipynb) |
# | **eager** | running each operation at once, as a kernel of its own, without a compiler | [Fuse a softmax](03_triton/03_fuse_a_softmax.ipynb) |
# | **epilogue** | the work of a program after its main loop: an activation, and the store of the result | [Multiply matrices](03_triton/04_multiply_matrices.ipynb) |
# | **FlashAttention** | an attention in tiles, which never stores its matrix of scores | [Fuse an attention](03_triton/06_fuse_an_attention.ipynb) |
# | **fusing** | computing several operations in one kernel, without a trip to memory in between | [Fuse a softmax](03_triton/03_fuse_a_softmax.ipynb) |
# | **GEMM** | general matrix multiplication, the name of a matrix product in libraries | [Multiply matrices](03_triton/04_multiply_matrices.ipynb) |
# | **Gluon** | a lower-level language within Triton, in which you write layouts, shared memory and barriers by hand | [Compare languages](03_triton/08_compare_languages.ipynb) |
# | **grid** | the programs of a launch, or its blocks of threads, along up to three axes | [Add two vectors](03_triton/01_add_vectors.ipynb) |
# | **grouped order** | an order of tiles in which programs that run together read few different tiles | [Multiply matrices](03_triton/04_multiply_matrices.ipynb) |
# | **hint** | a promise to the compiler about a value, such as that it is a multiple of 4 | [Look inside the compiler](03_triton/07_look_inside_the_compiler.ipynb) |
# | **intermediate representation** | a form in which a compiler keeps a program while it works on it | [Look inside the compiler](03_triton/07_look_inside_the_compiler.ipynb) |
# | **interpreter** | the part of Triton that runs a kernel in Python, for debugging | [Add two vectors](03_triton/01_add_vectors.ipynb) |
# | **latency** | the time from a request to its answer | [Reduce to a mean in Triton](03_triton/02_reduce_to_a_mean.ipynb) |
# | **layout** | the rule that says which thread holds which elements of a block | [Look inside the compiler](03_triton/07_look_inside_the_compiler.ipynb) |
# | **live range** | the part of a program from a value's first write to its last read | [Look inside the compiler](03_triton/07_look_inside_the_compiler.ipynb) |
# | **mask** | the condition that says which elements of a block are loaded or stored | [Add two vectors](03_triton/01_add_vectors.ipynb) |
# | **mbarrier** | a counter of arrivals and bytes in shared memory, on which threads wait for a copy or for each other | [Compare languages](03_triton/08_compare_languages.ipynb) |
# | **memory-bound** | limited by the bytes that must be moved; compute-bound kernels are limited by arithmetic | [Add two vectors](03_triton/01_add_vectors.ipynb) |
# | **online softmax** | a softmax in one pass: a running maximum, and a sum that is rescaled when it rises | [Fuse an attention](03_triton/06_fuse_an_attention.ipynb) |
# | **outer product** | the matrix of all products of an element of one vector and one of another | [Multiply matrices](03_triton/04_multiply_matrices.ipynb) |
# | **persistent kernel** | a kernel with one program per SM; each program computes one tile after another | [Match cuBLAS](03_triton/05_match_cublas.ipynb) |
# | **phase** | the bit of an mbarrier that tells one round from the next | [Compare languages](03_triton/08_compare_languages.ipynb) |
# | **pipelining** | copying the next tiles while the current ones are multiplied | [Look inside the compiler](03_triton/07_look_inside_the_compiler.ipynb) |
# | **predicate** | a condition on a PTX instruction; it runs only if the condition is true | [Look inside the compiler](03_triton/07_look_inside_the_compiler.ipynb) |
# | **producer** | a warp that only copies tiles, for the consumers, which multiply them | [Compare languages](03_triton/08_compare_languages.ipynb) |
# | **program** | one run of a Triton kernel, which computes one block or tile | [Add two vectors](03_triton/01_add_vectors.ipynb) |
# | **prologue** | the work of a program before its main loop, such as its first loads | [Match cuBLAS](03_triton/05_match_cublas.ipynb) |
# | **PTX** | an assembly language for all NVIDIA GPUs, which is compiled to SASS | [Look inside the compiler](03_triton/07_look_inside_the_compiler.ipynb) |
# | **running maximum** | the largest element so far, while a loop goes over a row in pieces | [Fuse an attention](03_triton/06_fuse_an_attention.ipynb) |
# | **scores** | the scaled products of queries and keys in an attention | [Fuse an attention](03_triton/06_fuse_an_attention.ipynb) |
# | **SIMT** | single instruction, multiple threads: the style in which CUDA code describes one thread | [Add two vectors](03_triton/01_add_vectors.ipynb) |
# | **specialization** | compiling a version of a kernel for a property of its arguments, such as being divisible by 16 | [Add two vectors](03_triton/01_add_vectors.ipynb) |
# | **spilled** | a spilled value is kept in memory because there are not enough registers | [Fuse a softmax](03_triton/03_fuse_a_softmax.ipynb) |
# | **split K** | dividing the work of one tile along K among several programs | [Match cuBLAS](03_triton/05_match_cublas.ipynb) |
# | **SSA** | static single assignment: each name in a program gets its value in one place | [Look inside the compiler](03_triton/07_look_inside_the_compiler.ipynb) |
# | **stage** | one of several pairs of buffers in shared memory, so that the next tiles arrive while these are multiplied | [Multiply matrices](03_triton/04_multiply_matrices.ipynb) |
# | **stream-K** | an assignment of equal shares of all steps to the programs, so that there is no tail | [Match cuBLAS](03_triton/05_match_cublas.ipynb) |
# | **streaming multiprocessor** | a part of a GPU with its own registers, shared memory and units that compute | [Add two vectors](03_triton/01_add_vectors.ipynb) |
# | **swizzle** | a changed order of tiles, or of addresses within one, for better use of a memory | [Multiply matrices](03_triton/04_multiply_matrices.ipynb) |
# | **tail** | the last wave of a launch, if it does not fill the GPU | [Match cuBLAS](03_triton/05_match_cublas.ipynb) |
# | **tensor core** | a unit of an SM that multiplies small matrices | [Multiply matrices](03_triton/04_multiply_matrices.ipynb) |
# | **tensor descriptor** | the description of a matrix and its tiles, with which hardware copies a whole tile | [Match cuBLAS](03_triton/05_match_cublas.ipynb) |
# | **tensor memory** | the memory in which Blackwell's tensor cores keep their sums | [Match cuBLAS](03_triton/05_match_cublas.ipynb) |
# | **tile** | a block of a matrix that one program computes | [Multiply matrices](03_triton/04_multiply_matrices.ipynb) |
# | **TMA** | Tensor Memory Accelerator, a unit of Hopper and later GPUs that copies tiles | [Match cuBLAS](03_triton/05_match_cublas.ipynb) |
# | **warp specialization** | giving the warps of a program different tasks, such as copying and multiplying | [Compare languages](03_triton/08_compare_languages.ipynb) |
# | **warpgroup** | four consecutive warps, which issue a WGMMA together | [Compare languages](03_triton/08_compare_languages.ipynb) |
# | **wave** | the programs that run at the same time | [Match cuBLAS](03_triton/05_match_cublas.ipynb) |
# | **wave quantization** | idle SMs in the last wave, because the number of tiles is not a multiple of the number of SMs | [Match cuBLAS](03_triton/05_match_cublas.ipynb) |
# | **weights** | the softmax of each row of scores in an attention | [Fuse an attention](03_triton/06_fuse_an_attention.ipynb) |
# | **WGMMA** | the instruction of Hopper's tensor cores, which multiplies two matrices from shared memory | [Compare languages](03_triton/08_compare_languages.ipynb) |

# %% [markdown]
# ## 4. Climb from Python to the hardware
#
# | term | meaning | taught in |
# | :--- | :--- | :--- |
# | **aliasing** | different frequencies look the same on evenly spaced samples | [Find a period](04_numba_cupy/01_find_a_period.ipynb) |
# | **batch** | many problems in one launch | [Search many stars](04_numba_cupy/05_search_many_stars.ipynb) |
# | **broadcast** | a single load that gives all threads of a warp the same value from shared memory | [Go past the ladder](04_numba_cupy/04_go_past_the_ladder.ipynb) |
# | **CSR** | compressed sparse row: rows of different lengths stored one after another, with the offsets of their starts | [Search many stars](04_numba_cupy/05_search_many_stars.ipynb) |
# | **eclipsing binary** | two stars that take turns hiding each other | [Find a period](04_numba_cupy/01_find_a_period.ipynb) |
# | **fast math** | compiler options that trade accuracy for faster division, roots and sines | [Climb with Numba](04_numba_cupy/02_climb_with_numba.ipynb) |
# | **fatbin** | a file with a kernel's machine code for several architectures, and optionally PTX for later ones | [Climb with CuPy](04_numba_cupy/03_climb_with_cupy.ipynb) |
# | **fold** | to plot each measurement over its phase within a period | [Find a period](04_numba_cupy/01_find_a_period.ipynb) |
# | **inlining** | inserting a function's code where it is called | [Go past the ladder](04_numba_cupy/04_go_past_the_ladder.ipynb) |
# | **latency** | the time from a request to its result | [Climb with Numba](04_numba_cupy/02_climb_with_numba.ipynb) |
# | **lazy** | a lazy compiler compiles a function when it is called for the first time | [Climb with Numba](04_numba_cupy/02_climb_with_numba.ipynb) |
# | **Lomb–Scargle periodogram** | how much of a signal at uneven times a sine of each frequency explains | [Find a period](04_numba_cupy/01_find_a_period.ipynb) |
# | **name mangling** | how C++ encodes parameter types in a function's name | [Climb with CuPy](04_numba_cupy/03_climb_with_cupy.ipynb) |
# | **non-uniform FFT** | a fast Fourier transform of uneven samples: spread them over an even grid, transform, correct | [Go past the ladder](04_numba_cupy/04_go_past_the_ladder.ipynb) |
# | **NVRTC** | NVIDIA's compiler as a library, which compiles a string at run time | [Climb with CuPy](04_numba_cupy/03_climb_with_cupy.ipynb) |
# | **Nyquist frequency** | half the sampling rate: the highest frequency that even samples can tell from its aliases | [Find a period](04_numba_cupy/01_find_a_period.ipynb) |
# | **offsets** | the positions at which series of different lengths start in one vector | [Search many stars](04_numba_cupy/05_search_many_stars.ipynb) |
# | **oversampling** | taking several frequencies per peak width, so that no peak is missed | [Find a period](04_numba_cupy/01_find_a_period.ipynb) |
# | **SASS** | the machine code of a particular NVIDIA GPU | [Climb with Numba](04_numba_cupy/02_climb_with_numba.ipynb) |
# | **signature** | the argument types that a kernel is compiled for | [Climb with Numba](04_numba_cupy/02_climb_with_numba.ipynb) |
# | **special function units** | the parts of an SM that approximate sines, square roots and the like in one instruction | [Climb with Numba](04_numba_cupy/02_climb_with_numba.ipynb) |
# | **spilled** | a spilled value is kept in memory because there are not enough registers | [Climb with CuPy](04_numba_cupy/03_climb_with_cupy.ipynb) |
# | **unrolled** | an unrolled loop is written out pass by pass, so that registers can hold an array | [Go past the ladder](04_numba_cupy/04_go_past_the_ladder.ipynb) |
# | **window function** | the power of a constant signal at the same sampling times; it shows where aliases of a peak appear | [Find a period](04_numba_cupy/01_find_a_period.ipynb) |
