# %% [markdown]
# # Make it an operator
#
# **You will** write a leaky ReLU as two kernels, forward and backward, and register them with PyTorch. Then `backward()`,
# `torch.compile` and CUDA graphs can use them like any of PyTorch's own operations.
#
# **You will learn**
#
# - what goes wrong when a kernel is called behind PyTorch's back
# - to register an operator with `torch.library`, and what its **fake** is for
# - to give a kernel a gradient, and to test it with `torch.autograd.gradcheck`
# - what `torch.library.opcheck` finds
# - what an operator in a model must also get right: types, devices, empty tensors, and the current **stream**
# - what an operator costs, and what a compiler cannot do with it
#
# **You need** about 70 minutes and [Square a matrix](01_square_a_matrix.ipynb), where a kernel is called through
# `ctypes`. No GPU is needed: without one your CUDA C++ is built for the CPU, and nearly everything else is the same.

# %%
from grader import check, device
from grader.explore import compare, draw_operator, recorded

device

# %%
import ctypes

import torch
from torch.utils.cpp_extension import load_inline

# %% [markdown]
# ## A kernel that PyTorch does not know
#
# This kernel computes $x^3$. It is a **template**: `T` stands for a type, and C++ makes one kernel for `float` and one
# for `double` from it. `long long` is an integer of 64 bits, and `(long long)i` converts `i` to one, so that a product
# does not overflow. `ctypes` can call plain functions only, so there is one function per type.

# %%
cube_source = r"""
template <typename T>
__global__ void cube_kernel(const T* x, T* out, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] * x[i] * x[i];
}
extern "C" void cube_float(float* x, float* out, long long n) { cube_kernel<<<(n + 255) / 256, 256>>>(x, out, n); }
extern "C" void cube_double(double* x, double* out, long long n) { cube_kernel<<<(n + 255) / 256, 256>>>(x, out, n); }
"""

# %%
path = load_inline("cube", "", cube_source, no_implicit_headers=True, is_python_module=False)
cube_library = ctypes.CDLL(path)
for function in (cube_library.cube_float, cube_library.cube_double):
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_longlong]
    function.restype = None

# %% [markdown]
# A Python function allocates the result and calls one of the two. The kernel gets an address and no strides. So
# `.contiguous()` comes first: it copies a tensor whose elements are not adjacent.


# %%
def cube_by_ctypes(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    run = cube_library.cube_double if x.dtype == torch.float64 else cube_library.cube_float
    run(x.data_ptr(), out.data_ptr(), x.numel())
    return out


cube_by_ctypes(torch.tensor([1.0, 2.0, 3.0], device=device))

# %% [markdown]
# The values are right. Now ask for a gradient. Predict: does the result `y` know that it comes from `x`? Write what
# `y.requires_grad` will be.

# %%
prediction = ...  # True or False

# %%
x = torch.tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
y = cube_by_ctypes(x)
compare(prediction, y.requires_grad)

# %% [markdown]
# There is no error, and no gradient. Autograd records the PyTorch operations that it sees. It saw `empty_like`, whose
# result needs no gradient. It did not see that a kernel then wrote there. In a model, the layers before this call would
# silently stop learning.

# %% [markdown]
# ## A compiler that stops
#
# `torch.compile` reads your Python and collects PyTorch's operations into a **graph**, which it then compiles. The graph
# ends at code that the compiler cannot follow. Python runs that code, and a new graph begins after it. This is a
# **graph break**.
#
# `torch._dynamo.explain` counts the graphs. Predict: how many are there for `torch.sin(cube_by_ctypes(2 * x))`? The
# compiler also reads the functions that are called.

# %%
prediction = ...  # graphs

# %%
x = torch.randn(1000, device=device)
found = torch._dynamo.explain(lambda x: torch.sin(cube_by_ctypes(2 * x)))(x)
compare(prediction, found.graph_count, "graphs")
for graph in found.graphs:
    print([node.name for node in graph.graph.nodes if node.op.startswith("call")])
print(found.break_reasons[0].reason.partition("Hint")[0])

# %% [markdown]
# The multiplication is in the first graph and the sine in the last. The graph between them comes from inside
# `cube_by_ctypes`: it makes `x` contiguous, allocates `out`, and ends at the call of the library's function, which the
# compiler cannot read. Nothing is fused across a break.
#
# Why are there three graphs, with one obstacle? A graph cannot end in the middle of a function call. So the compiler ends
# the first graph before the call of `cube_by_ctypes`, and starts another inside it.
#
# The compiler does not need to look *into* the kernel. It needs a name to put into the graph, and a promise: the inputs,
# the outputs, and the arguments that are written to.

# %% [markdown]
# ## Give it a name and a promise
#
# `torch.library.custom_op` makes a function an **operator**. An operator is opaque: PyTorch passes tensors in, takes
# results out, and traces nothing in between. So anything may happen inside, even a call through `ctypes`.


# %%
@torch.library.custom_op("demo::cube", mutates_args=())
def cube(x: torch.Tensor) -> torch.Tensor:
    return cube_by_ctypes(x)


torch.ops.demo.cube(torch.tensor([1.0, 2.0, 3.0], device=device))

# %% [markdown]
# - **The name** has a namespace in front, here `demo`, so that two libraries can have a `cube` each. The operator can
#   be called as `cube(x)`, and anywhere in the process as `torch.ops.demo.cube(x)`.
# - **The type hints** become the operator's **schema**: its inputs and outputs.
# - **`mutates_args=()`** promises that no argument is written to. The result must be in new memory, too.

# %%
draw_operator(cube)

# %% [markdown]
# One of the three parts is there. You add the other two.

# %% [markdown]
# ## A fake: the shape without the work
#
# A compiler plans before there are values. It asks each operator for the shape, type, device and strides of its result.
# The function that answers is the operator's **fake kernel**, or fake for short. It gets tensors without memory, and
# returns one.


# %%
@cube.register_fake
def _(x):
    return x.new_empty(x.shape)  # contiguous, whatever the strides of x are


# %% [markdown]
# You can make such tensors yourself, on the device `"meta"`. Here is one of a trillion elements, which would be 4 TB.
# Predict: what do you get if you cube it? Write "a tensor", "no memory left" or "an error".

# %%
prediction = ...  # "a tensor", "no memory left" or "an error"

# %%
huge = cube(torch.empty(10**12, device="meta"))
compare(prediction, "a tensor" if huge.shape == (10**12,) else "an error")
huge

# %% [markdown]
# Only the fake ran. No kernel was launched and nothing was allocated. Without a fake, this would be an error. Here is the
# graph again, with the operator in place of the plain function.

# %%
found = torch._dynamo.explain(lambda x: torch.sin(cube(2 * x)))(x)
print(found.graph_count, "graph")
print(found.graphs[0].code.strip())

# %% [markdown]
# There is one graph, and `torch.ops.demo.cube` is a step in it like the others. If you want no breaks, call
# `torch.compile(…, fullgraph=True)`: it turns a break into an error.
#
# The compiler plans memory by the fake, so a wrong fake is worse than none. It must agree with the kernel in everything
# but the values, and that includes strides. `cube_by_ctypes` returns a contiguous result even if `x` is a transposed
# matrix. `torch.empty_like(x)` would keep the strides of `x`.

# %% [markdown]
# ## A gradient
#
# Let $L$ be the loss, and $y = f(x)$, element by element. `backward()` passes you $\partial L / \partial y$, one number
# per element of $y$. Your part is the chain rule:
#
# $$ \frac{\partial L}{\partial x_i} = \frac{\partial L}{\partial y_i} \cdot f'(x_i). $$
#
# For $f(x) = x^3$ the derivative is $3x^2$. It needs `x`, so a first function keeps `x` when the operator runs
# forward, and a second one computes the gradient. It may call PyTorch's operations. It may not call `ctypes`: the
# compiler traces this function, with tensors without memory.


# %%
def keep(ctx, inputs, output):
    (x,) = inputs
    ctx.save_for_backward(x)  # for tensors; a number is kept as an attribute, ctx.number = …


def cube_gradient(ctx, grad):  # grad is ∂L/∂y
    (x,) = ctx.saved_tensors
    return grad * 3 * x * x  # one value for each argument of the operator


# %% [markdown]
# At $x = 2$ the derivative is 12. If 10 arrives as the gradient of $y$, `x` gets 120.

# %%
cube.register_autograd(cube_gradient, setup_context=keep)
x = torch.tensor([2.0], device=device, requires_grad=True)
cube(x).backward(torch.tensor([10.0], device=device))
x.grad

# %% [markdown]
# ## Test the gradient
#
# A wrong gradient raises no error. The model just learns badly. But you can compute a derivative without any formula,
# from two values of the function itself:
#
# $$ f'(x) \approx \frac{f(x + h) - f(x - h)}{2h}. $$
#
# At $x = 1.5$ the derivative of $x^3$ is 6.75. Take $h = 10^{-6}$ and float32, which keeps about seven digits. Predict
# the order of magnitude: by what percentage is the difference off?

# %%
prediction = ...  # per cent


# %%
def difference(dtype, h=1e-6):
    x = torch.tensor([1.5], dtype=dtype, device=device)
    return ((cube(x + h) - cube(x - h)) / (2 * h)).item()


compare(prediction, 100 * abs(difference(torch.float32) / 6.75 - 1), "%", within=10)
print("float32:", difference(torch.float32), " float64:", difference(torch.float64))

# %% [markdown]
# $x + h$ and its cube are rounded to seven digits. The two cubes agree in about five of them, so the subtraction leaves
# one or two. float64 has about sixteen digits, and about ten are left.
#
# `torch.autograd.gradcheck` compares such differences with your gradient, for each element of the input and each of the
# output. It needs **float64**, so a kernel that you want to test needs a version in `double`.

# %%
x = torch.randn(3, 4, dtype=torch.float64, device=device, requires_grad=True)
torch.autograd.gradcheck(cube, (x,))

# %% [markdown]
# If the two differ, it raises an error that shows both.
#
# Test away from kinks. Leaky ReLU has one at 0, where the difference is the mean of the two slopes. There `gradcheck`
# fails although the formula is right.

# %% [markdown]
# ## Test the promise
#
# `torch.library.opcheck` compares what you registered with what the operator does:
#
# - `test_schema`: does the operator write to, and return, exactly what its schema says?
# - `test_autograd_registration`: is the gradient registered where autograd looks?
# - `test_faketensor`: does the fake give the shape, type, device and strides of the result?
# - `test_aot_dispatch_dynamic`: do the values and gradients stay the same in a traced graph?

# %%
torch.library.opcheck(cube, (x,))

# %% [markdown]
# The next operator lies: it writes into its argument, and its schema denies it. Its fake is right: `clone` keeps the
# strides of `x`, and so does `torch.empty_like`. Predict: how many of the four tests does it pass?

# %%
prediction = ...  # tests


# %%
@torch.library.custom_op("demo::cube_in_place", mutates_args=())
def in_place(x: torch.Tensor) -> torch.Tensor:
    return x.copy_(cube_by_ctypes(x)).clone()


in_place.register_fake(torch.empty_like)
found = torch.library.opcheck(in_place, (x.detach().clone(),), raise_exception=False)
compare(prediction, sum(result == "SUCCESS" for result in found.values()), "tests")
found

# %% [markdown]
# The values that it returns are right. But a compiler believes the promise. It may move the operator, or leave it out if
# nobody uses its result. Later code then reads different values from `x`.

# %% [markdown]
# ## Gradients have strides
#
# `y.sum().backward()` sends a 1 to each element of `y`. Autograd does not store a million ones. It stores one, and
# **expands** it: all elements of the tensor are the same place in memory.
#
# Predict: which strides does the gradient of `y` have, if `y` is a matrix of 3 × 4?

# %%
prediction = ...  # two strides, as (…, …)

# %%
seen = []
y = cube(x)
y.register_hook(lambda grad: seen.append(grad.stride()))
y.sum().backward()
compare(prediction, seen[0])

# %% [markdown]
# A kernel that takes the address of such a gradient reads one right element, and then whatever follows in memory. So call
# `.contiguous()` on **each** tensor of a backward kernel, including the gradient.

# %% [markdown]
# ## Types, devices and empty tensors
#
# A model passes your operator whatever it has. With **mixed precision** that is float16, and a filter may leave a tensor
# without elements. `cube_by_ctypes` treats everything that is not float64 as float32. Integers of 32 bits have the same
# size, so it reads their bits as floats. Predict: which numbers does it return for the integers 1, 2 and 3?

# %%
prediction = ...  # three numbers, as (…, …, …)

# %%
wrong = cube_by_ctypes(torch.tensor([1, 2, 3], dtype=torch.int32, device=device))
compare(prediction, tuple(wrong.tolist()))

# %% [markdown]
# The bits of a small integer are a tiny float, about 10⁻⁴⁵, and its cube is rounded to 0. With float16 it is worse: two
# elements are read as one float, and the second half of the reads is past the end of the tensor. Nothing raises an
# error. So an operator checks before it launches:
#
# - **The type.** Raise a `TypeError` for a type that no kernel is written for.
# - **The device.** A CPU tensor's address means nothing on the GPU. On a machine with several GPUs, the kernel must
#   also run on the GPU that holds the tensor: `with torch.cuda.device_of(x):` switches to it. C++ calls this a
#   **device guard**.
# - **The size.** A grid must not be empty. Return the empty result without a launch.

# %% [markdown]
# ## Which stream?
#
# A **stream** is a queue of work on the GPU. Work in one stream runs in order; work in two streams may overlap.
# `kernel<<<grid, block>>>` launches on CUDA's **default stream**. PyTorch launches on its **current stream**. Usually
# they are the same. They differ in two places:
#
# - **Inside `with torch.cuda.stream(side):`**, PyTorch's operations go to `side`. A kernel on the default stream does not
#   wait for them. It reads `x` before it is complete: a race between two queues.
# - **Inside a CUDA graph**, PyTorch records the launches of the current stream, to replay them all at once.
#   `torch.compile(mode="reduce-overhead")` does this. A kernel on the default stream is not recorded. It runs once, while
#   the graph is captured, and each replay then leaves its old result.
#
# So ask PyTorch for its current stream. `torch.cuda.current_stream(x.device).cuda_stream` is its address as a number.
# Pass it as the fourth launch value. The third is the size of **dynamic shared memory**, here 0.
#
# ```cpp
# kernel<<<grid, block, 0, (cudaStream_t)stream>>>(…);
# ```
#
# An operator written in C++ has the same duties, under these names:
#
# ```cpp
# torch::Tensor cube(torch::Tensor x) {
#     TORCH_CHECK(x.is_cuda(), "x must be on a GPU");  // a RuntimeError in Python
#     const c10::cuda::CUDAGuard guard(x.device());    // run on the GPU that holds x
#     auto in = x.contiguous(), out = torch::empty_like(in);
#     if (in.numel() == 0) return out;
#     auto stream = at::cuda::getCurrentCUDAStream();
#     AT_DISPATCH_FLOATING_TYPES(in.scalar_type(), "cube", [&] {  // float or double as scalar_t; refuses the rest
#         cube_kernel<scalar_t><<<(in.numel() + 255) / 256, 256, 0, stream>>>(
#             in.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), in.numel());
#     });
#     return out;
# }
# ```

# %% [markdown]
# ## Exercise: make leaky ReLU an operator
#
# Leaky ReLU keeps what is positive and scales the rest:
#
# $$ y = \begin{cases} x & \text{if } x > 0 \\ s\,x & \text{otherwise} \end{cases} \qquad
# \frac{\partial L}{\partial x} = \begin{cases} \partial L / \partial y & \text{if } x > 0 \\
# s\,\partial L / \partial y & \text{otherwise} \end{cases} $$
#
# `x` is float32 or float64, with any strides and any number of elements. The slope $s$ is any number, also above 1 or
# below 0. The result is new and contiguous. Refuse any other type with an exception, preferably a `TypeError`.
#
# 1. Two kernels, templates over the type. *(4 lines)*
# 2. Two operators. A kernel computes the gradient, too, and the compiler must not look into it, so it is an operator of
#    its own. Each makes its tensors contiguous, allocates the result and calls `launch`. *(8 lines)*
# 3. A fake for each. *(2 lines)*
# 4. The function that keeps `x` and the slope, and the gradient, which calls the second operator. It returns one value
#    per argument of `leaky_relu`. The slope gets no gradient: return `None` for it. *(4 lines)*
# 5. In `launch`: refuse other types, return if there are no elements, and find the current stream. Without a GPU the
#    simulator provides `torch.cuda.current_stream`, too. *(5 lines)*
#
# `launch("forward", x, out, slope=0.1)` calls `forward_float` or `forward_double` of the library. It passes the tensors'
# addresses, the slope, the number of elements and the stream. Pass the tensors in the kernel's order. In the C++ text,
# `#define FUNCTIONS_FOR(T)` writes the functions for one type: `forward_##T` becomes `forward_float` if `T` is `float`.
#
# You can run the cell again and again: an operator replaces an older one of the same name.

# %% nbgrader={"grade_id": "leaky_relu_op", "solution": true}
import ctypes
from functools import cache

import torch
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
template <typename T>
__global__ void forward_kernel(const T* x, T* out, T slope, long long n) {
    // BEGIN SOLUTION
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] > 0 ? x[i] : slope * x[i];
    // END SOLUTION
}

template <typename T>
__global__ void backward_kernel(const T* grad, const T* x, T* grad_x, T slope, long long n) {
    // BEGIN SOLUTION
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) grad_x[i] = x[i] > 0 ? grad[i] : slope * grad[i];
    // END SOLUTION
}

const char* last_error() {
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

#define FUNCTIONS_FOR(T)                                                                                  \
    extern "C" const char* forward_##T(const T* x, T* out, double slope, long long n, void* stream) {     \
        forward_kernel<T><<<(n + 255) / 256, 256, 0, (cudaStream_t)stream>>>(x, out, slope, n);           \
        return last_error();                                                                              \
    }                                                                                                     \
    extern "C" const char* backward_##T(                                                                  \
        const T* grad, const T* x, T* grad_x, double slope, long long n, void* stream) {                  \
        backward_kernel<T><<<(n + 255) / 256, 256, 0, (cudaStream_t)stream>>>(grad, x, grad_x, slope, n); \
        return last_error();                                                                              \
    }
FUNCTIONS_FOR(float)
FUNCTIONS_FOR(double)
"""


@cache
def library():
    options = {"cpp_sources": "", "no_implicit_headers": True, "is_python_module": False}
    return ctypes.CDLL(load_inline("leaky_relu", cuda_sources=cuda_source, **options))


def launch(name, *tensors, slope):
    """Call the library's function of this name on contiguous tensors of one type and size."""
    x, stream = tensors[0], 0
    if torch.cuda.is_available() and not x.is_cuda:
        raise TypeError("leaky_relu takes tensors on a GPU")  # without a GPU, kernels are simulated on the CPU
    ### BEGIN SOLUTION
    if x.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"leaky_relu takes float32 and float64, not {x.dtype}")
    if x.numel() == 0:
        return
    stream = torch.cuda.current_stream(x.device).cuda_stream
    ### END SOLUTION
    function = getattr(library(), f"{name}_{'double' if x.dtype == torch.float64 else 'float'}")
    function.argtypes = [ctypes.c_void_p] * len(tensors) + [ctypes.c_double, ctypes.c_longlong, ctypes.c_void_p]
    function.restype = ctypes.c_char_p
    with torch.cuda.device_of(x):
        error = function(*(tensor.data_ptr() for tensor in tensors), slope, x.numel(), stream)
    if error:
        raise RuntimeError(error.decode())


@torch.library.custom_op("course::leaky_relu", mutates_args=())
def leaky_relu(x: torch.Tensor, slope: float) -> torch.Tensor:
    ### BEGIN SOLUTION
    x = x.contiguous()
    out = torch.empty_like(x)
    launch("forward", x, out, slope=slope)
    return out
    ### END SOLUTION


@leaky_relu.register_fake
def _(x, slope):
    ### BEGIN SOLUTION
    return x.new_empty(x.shape)
    ### END SOLUTION


@torch.library.custom_op("course::leaky_relu_backward", mutates_args=())
def leaky_relu_backward(grad: torch.Tensor, x: torch.Tensor, slope: float) -> torch.Tensor:
    ### BEGIN SOLUTION
    grad, x = grad.contiguous(), x.contiguous()
    grad_x = torch.empty_like(x)
    launch("backward", grad, x, grad_x, slope=slope)
    return grad_x
    ### END SOLUTION


@leaky_relu_backward.register_fake
def _(grad, x, slope):
    ### BEGIN SOLUTION
    return x.new_empty(x.shape)
    ### END SOLUTION


def keep_for_backward(ctx, inputs, output):
    ### BEGIN SOLUTION
    x, ctx.slope = inputs
    ctx.save_for_backward(x)
    ### END SOLUTION


def gradient(ctx, grad):
    ### BEGIN SOLUTION
    (x,) = ctx.saved_tensors
    return leaky_relu_backward(grad, x, ctx.slope), None
    ### END SOLUTION


leaky_relu.register_autograd(gradient, setup_context=keep_for_backward)


def leaky_relu_op(x, slope):
    return torch.ops.course.leaky_relu(x, slope)


# %% [markdown]
# `check` calls the operator with padded, transposed and expanded tensors, and compares values and gradients with
# float64 results. Then come `gradcheck`, `opcheck`, `torch.compile` with `fullgraph=True`, other types and an empty
# tensor. On a GPU it also calls the operator on a side stream and in a CUDA graph. There is no clock: all
# ⟦ exercise("leaky_relu_op").max_points ⟧ points are for being right. If you get a `NameError`, run the exercise's cell
# first.

# %% nbgrader={"grade_id": "check-leaky_relu_op", "grade": true, "locked": true, "points": 5}
check(leaky_relu_op)

# %% [markdown]
# Now use it like any other operation. The slope is 0.1, so the gradient is 1 or 0.1.

# %%
x = torch.tensor([[3.0, -2.0], [-1.0, 4.0]], device=device, requires_grad=True)
try:
    leaky_relu_op(x.T, 0.1).sum().backward()
    print(x.grad)
except Exception as error:
    print("not yet:", type(error).__name__)

# %% [markdown]
# ## What an operator costs
#
# A call of an operator goes through PyTorch's **dispatcher**. It looks at the device, at whether a gradient is
# needed, and at whether the call is traced. Part of this is written in Python. So each call has a cost, whatever the
# size of the tensor.
#
# A launch takes a few microseconds. Predict the order of magnitude: by how many microseconds is a call of `cube` longer
# than one of `cube_by_ctypes`?

# %%
prediction = ...  # µs

# %%
import timeit


def call_us(function, x):
    return 1e6 * min(timeit.repeat(lambda: function(x), number=200, repeat=5)) / 200


one = torch.ones(1, device=device)
compare(prediction, call_us(cube, one) - call_us(cube_by_ctypes, one), "µs", within=10)

# %% [markdown]
# This is CPU time. While the GPU is busy with large tensors, the CPU runs ahead and the cost is hidden. With tiny
# tensors the GPU waits. An operator that is registered in C++, with `TORCH_LIBRARY`, costs less. But building it
# needs torch's headers.
#
# The larger cost is the fusion that you lose. Take `leaky_relu(2 * x, slope) + 1`. With PyTorch's own leaky ReLU,
# `torch.compile` fuses all three operations into one kernel. It cannot see into your operator. Predict: how many
# kernels run with yours, compiled? The times below are for 2²⁴ float32.

# %%
prediction = ...  # kernels

# %%
costs = recorded("operators", "kernels", "median_us")
compare(prediction, costs.value("kernels", "an operator of your own, compiled"), "kernels", how="recorded")
costs

# %% [markdown]
# There are three: one before, yours, and one after. Each reads and writes the whole tensor. So compiling gains nothing:
# the same three run without it.
#
# They take longer than PyTorch's own three, because the recorded operator moves one element per thread.
# [Move bytes well](02_move_bytes_well.ipynb) shows why that is slower.

# %% [markdown]
# So write an operator for work that a compiler cannot generate: a new reduction, an algorithm with shared memory, a
# call of a library. Leave elementwise work to the compiler. Leaky ReLU is a good exercise, but a poor reason to write
# an operator.

# %% [markdown]
# ## Extra credit
#
# No points, but each shows something. Change the exercise's cell, run it, and `check` it again.
#
# 1. Leave out one fake. Which check notices, and what does it say? What if you leave out the gradient's?
#
# <details><summary>Answer</summary>
#
# `opcheck` reports that there is no fake implementation. Without the gradient's fake, only the tests that trace the
# backward pass notice: calls without a compiler still work.
#
# </details>
#
# 2. `torch.autograd.gradgradcheck` tests the gradient of the gradient. What is missing for it to pass?
#
# <details><summary>Answer</summary>
#
# The second operator is an operator like the first, and it has no registered gradient. Its gradient with respect to
# `grad` is the same operator again; with respect to `x` it is 0 almost everywhere.
#
# </details>
#
# 3. Remove your return for empty tensors. What does the launch report for `torch.empty(0, 3)`?
#
# <details><summary>Answer</summary>
#
# The grid has (0 + 255) / 256 = 0 blocks, and the launch is refused with "invalid configuration argument".
#
# </details>
#
# 4. With a GPU: set `stream = 0`, call the operator once, and then capture a call: `graph = torch.cuda.CUDAGraph()` and
#    `with torch.cuda.graph(graph):`. Change `x` in place and call `graph.replay()`. What do you expect?
#
# <details><summary>Answer</summary>
#
# PyTorch captures on a stream that does not wait for the default stream. So the launch is neither refused nor recorded: it
# runs at once. Expect a warning that the graph is empty, and a replay that leaves the old result.
#
# </details>

# %%
from grader.explore import count_predictions

count_predictions()

# %% [markdown]
# ## In this notebook you have
#
# - seen a kernel lose its gradient and break a graph, because PyTorch did not know of it
# - registered an operator with a schema, and a fake that answers without work
# - given it a gradient by the chain rule, with a kernel and an operator of its own
# - tested the gradient with differences in float64, and the promises with `opcheck`
# - met a gradient whose strides are 0
# - made the operator refuse other types, accept empty tensors, and follow PyTorch's current stream
# - seen what an operator costs, and which fusion it prevents
#
# ## Check yourself
#
# <details><summary>Who calls the fake, and what must it never do?</summary>
#
# `torch.compile` does, and every call with tensors on `"meta"`. It must not launch a kernel or look at values or
# addresses, since there are none.
#
# </details>
#
# <details><summary>Why does the backward kernel of the exercise need an operator of its own, while <code>grad * 3 * x * x</code> did not?</summary>
#
# The compiler traces the gradient function, too. Operations of PyTorch can be traced. A call through `ctypes` cannot,
# and there would be no address to give it.
#
# </details>
#
# <details><summary>All your tests with <code>torch.randn(…)</code> pass, and training gives nonsense. Which tensor do you look at first?</summary>
#
# The gradient that arrives. It is often expanded or transposed, and a kernel that takes it for contiguous reads
# something else.
#
# </details>
#
# <details><summary>An operator writes into <code>out</code>, which it is given. What does its registration say?</summary>
#
# `mutates_args=("out",)`. The schema then marks that argument, and a compiler keeps the order of its reads and writes.
#
# </details>
#
# <details><summary>An operator passes every test but gives wrong results under <code>torch.compile(mode="reduce-overhead")</code>. What do you look at first?</summary>
#
# The stream of its launch. That mode captures a CUDA graph, and a kernel on the default stream is not recorded.
#
# </details>
#
# ## Read on
#
# - [PyTorch Custom Operators](https://docs.pytorch.org/tutorials/advanced/custom_ops_landing_page.html) leads to the
#   tutorials on operators in Python and in C++.
# - [CUDA semantics](https://docs.pytorch.org/docs/stable/notes/cuda.html) explains streams, devices and CUDA graphs in
#   PyTorch.
# - [Issue 114048](https://github.com/pytorch/pytorch/issues/114048) shows custom kernels on the wrong stream that
#   silently do nothing in CUDA graphs.
#
# **Next:** [Multiply with tiles](05_multiply_with_tiles.ipynb), where shared memory and registers reuse what was loaded. Or
# go back to the [syllabus](../README.ipynb).
