# %% [markdown]
# # Make it an operator
#
# **You will** write a leaky ReLU as two kernels, forwards and backwards, and register them with PyTorch, so that
# `backward()` and `torch.compile` can use them like any operation of PyTorch's own.
#
# **You will learn**
#
# - what goes wrong when a kernel is called behind PyTorch's back
# - to register an operator with `torch.library`, and what its *fake* is for
# - to give a kernel a gradient, and to test it with `torch.autograd.gradcheck`
# - what `torch.library.opcheck` finds
# - what an operator costs, and what a compiler cannot do with it
#
# **You need** about 60 minutes and [Square a matrix](01_square_a_matrix.ipynb), where a kernel is called through
# `ctypes`. No GPU is needed: without one your CUDA C++ is built for the CPU, and everything else is the same.

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
# This kernel computes $x^3$. It is a *template*: `T` stands for a type, and C++ makes one kernel for `float` and one
# for `double` out of it. `ctypes` can call plain functions only, so there is one for each type.

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
# A function in Python makes the result and calls the right one of the two. The kernel sees an address and no strides.
# So `.contiguous()` comes first: it copies a tensor whose elements do not lie one behind the other.


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
# No error, and no gradient. Autograd records the PyTorch operations that it sees. It saw `empty_like`, whose result
# needs no gradient. It did not see that something was then written there, through an address. In a model, the layers
# before this call would stop learning, and nothing would say so.

# %% [markdown]
# ## A compiler that stops
#
# `torch.compile` reads your Python and collects PyTorch's operations into a *graph*, which it then compiles. Where it
# meets something that it cannot follow, the graph ends. Python runs that piece, and a new graph begins behind it. This
# is a *graph break*.
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
# The multiplication is in the first graph and the sine in the last. The one between them comes from inside
# `cube_by_ctypes`: it makes `x` contiguous, makes `out`, and ends at the call of the library. (`_FuncPtr` is what
# `ctypes` calls a function.) Nothing is fused across a break.
#
# Why three, with one obstacle? A graph cannot end in the middle of a function that was called. So the compiler ends the
# first graph before the call of `cube_by_ctypes`, and begins again inside it.
#
# The compiler need not look *into* the kernel. It needs a name to put into the graph, and a promise: what goes in, what
# comes out, and what is written to.

# %% [markdown]
# ## Give it a name and a promise
#
# `torch.library.custom_op` registers a function as an *operator*. An operator is opaque: PyTorch passes tensors in,
# takes results out, and traces nothing in between. So anything may happen inside, `ctypes` too.


# %%
@torch.library.custom_op("demo::cube", mutates_args=())
def cube(x: torch.Tensor) -> torch.Tensor:
    return cube_by_ctypes(x)


torch.ops.demo.cube(torch.tensor([1.0, 2.0, 3.0], device=device))

# %% [markdown]
# - **The name** has a namespace in front, here `demo`, so that two libraries can have a `cube` each. The operator can
#   be called as `cube(x)`, and anywhere in the process as `torch.ops.demo.cube(x)`.
# - **The type hints** are read. They become the operator's *schema*: what goes in and what comes out.
# - **`mutates_args=()`** is the promise that no argument is written to. What is returned must be new memory, too.

# %%
draw_operator(cube)

# %% [markdown]
# One of three parts is there. The other two are yours to add.

# %% [markdown]
# ## A fake: the shape without the work
#
# A compiler plans before there are values. It asks each operator what the result *would* look like: its shape, type,
# device and strides. The function that answers is the operator's *fake*. It gets tensors without memory, and returns
# one.


# %%
@cube.register_fake
def _(x):
    return x.new_empty(x.shape)  # contiguous, whatever the strides of x are


# %% [markdown]
# Tensors without memory can be made on the device `"meta"`. Here is one of a trillion elements, which would be 4 TB.
# Predict: what comes out if you cube it? Write "a tensor", "no memory left" or "an error".

# %%
prediction = ...  # "a tensor", "no memory left" or "an error"

# %%
huge = cube(torch.empty(10**12, device="meta"))
compare(prediction, "a tensor" if huge.shape == (10**12,) else "an error")
huge

# %% [markdown]
# Only the fake ran. No kernel was launched and nothing was allocated. (Without a fake, this would be an error.) This is
# how a compiler sees your operator. So here is the graph again, with the operator in place of the plain function.

# %%
found = torch._dynamo.explain(lambda x: torch.sin(cube(2 * x)))(x)
print(found.graph_count, "graph")
print(found.graphs[0].code.strip())

# %% [markdown]
# One graph, and `torch.ops.demo.cube` is a step in it like the others. When you mean to have no break, call
# `torch.compile(…, fullgraph=True)`: it turns a break into an error.
#
# The compiler plans memory by the fake, so a fake that lies is worse than none. It must agree with the kernel in
# everything but the values, strides included. `cube_by_ctypes` gives a contiguous result even where `x` is a transposed
# matrix. `torch.empty_like(x)` would keep the strides of `x`.

# %% [markdown]
# ## A gradient
#
# Let $L$ be the loss, and $y = f(x)$, element by element. `backward()` arrives with $\partial L / \partial y$, one
# number for each element of $y$. Your part is the chain rule:
#
# $$ \frac{\partial L}{\partial x_i} = \frac{\partial L}{\partial y_i} \cdot f'(x_i). $$
#
# For $f(x) = x^3$ the derivative is $3x^2$. It needs `x`, so a first function keeps `x` when the operator runs
# forwards, and a second one computes the gradient. It may call PyTorch's operations. It may not call `ctypes`: the
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
# A wrong gradient raises no error. The model just learns badly. But a derivative can be had without any formula, from
# two values of the function itself:
#
# $$ f'(x) \approx \frac{f(x + h) - f(x - h)}{2h}. $$
#
# At $x = 1.5$ the derivative of $x^3$ is 6.75. Take $h = 10^{-6}$ and float32, which keeps about seven digits. Predict:
# by how many per cent is the difference off?

# %%
prediction = ...  # per cent


# %%
def difference(dtype, h=1e-6):
    x = torch.tensor([1.5], dtype=dtype, device=device)
    return ((cube(x + h) - cube(x - h)) / (2 * h)).item()


compare(prediction, 100 * abs(difference(torch.float32) / 6.75 - 1), "%")
print("float32:", difference(torch.float32), " float64:", difference(torch.float64))

# %% [markdown]
# $x + h$ and its cube are rounded to seven digits. The two cubes agree in about five of them, so one or two are left
# after the subtraction. float64 has about sixteen digits, and about ten are left.
#
# `torch.autograd.gradcheck` compares such differences with your gradient, for each element of the input and each of the
# output. It needs **float64**, so a kernel that you want to test needs a version in `double`.

# %%
x = torch.randn(3, 4, dtype=torch.float64, device=device, requires_grad=True)
torch.autograd.gradcheck(cube, (x,))

# %% [markdown]
# If the two differ, it raises an error that shows both.
#
# Keep away from kinks. Leaky ReLU has one at 0, where the difference gives the mean of the two slopes. There
# `gradcheck` fails, though the formula is right.

# %% [markdown]
# ## Test the promise
#
# `torch.library.opcheck` holds what you registered against what the operator does:
#
# - `test_schema`: is just that written to, and returned, which the schema says?
# - `test_autograd_registration`: is the gradient registered where autograd looks?
# - `test_faketensor`: does the fake give the shape, type, device and strides of the result?
# - `test_aot_dispatch_dynamic`: do the values and gradients stay the same in a traced graph?

# %%
torch.library.opcheck(cube, (x,))

# %% [markdown]
# The next operator lies: it writes into its argument, and says that it does not. Its fake is
# right: `clone` keeps the strides of `x`, and so does `torch.empty_like`. Predict: how many
# of the four tests does it pass?

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
# The values that it returns are right. But a compiler believes the promise. It may move the operator, or leave it out
# where nobody uses its result, and then what reads `x` finds other values there.

# %% [markdown]
# ## Gradients have strides
#
# `y.sum().backward()` sends a 1 to each element of `y`. Autograd does not store a million ones. It stores one, and
# *expands* it: a tensor of the right shape, in which a step to the next element is no step in memory.
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
# A kernel that takes the address of such a gradient reads one right element, and then whatever lies behind it. So call
# `.contiguous()` on **each** tensor of a backward kernel, the gradient too.

# %% [markdown]
# ## Exercise: make leaky ReLU an operator
#
# Leaky ReLU keeps what is positive and scales the rest:
#
# $$ y = \begin{cases} x & \text{if } x > 0 \\ s\,x & \text{otherwise} \end{cases} \qquad
# \frac{\partial L}{\partial x} = \begin{cases} \partial L / \partial y & \text{if } x > 0 \\
# s\,\partial L / \partial y & \text{otherwise} \end{cases} $$
#
# `x` is float32 or float64, with any strides. The slope $s$ is any number, also above 1 or below 0. The result is new
# and contiguous.
#
# 1. Two kernels, templates over the type. *(4 lines)*
# 2. Two operators. The gradient is computed by a kernel, too, and the compiler must not look into it: so it is an
#    operator of its own. Each makes its tensors contiguous, makes the result and calls `launch`. *(8 lines)*
# 3. A fake for each. *(2 lines)*
# 4. What to keep (`x`, and the slope), and the gradient, which calls the second operator. It returns one value for each
#    argument of `leaky_relu`: `None` for the slope, which gets no gradient. *(4 lines)*
#
# `launch("forward", x, out, slope=0.1)` calls `forward_float` or `forward_double` of the library, with the tensors'
# addresses, the slope and the number of elements. Pass the tensors in the kernel's order. In the C++ text,
# `#define FUNCTIONS_FOR(T)` writes the functions for one type: `forward_##T` becomes `forward_float` where `T` is
# `float`.
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

#define FUNCTIONS_FOR(T)                                                                                   \
    extern "C" const char* forward_##T(const T* x, T* out, double slope, long long n) {                    \
        forward_kernel<T><<<(n + 255) / 256, 256>>>(x, out, slope, n);                                     \
        return last_error();                                                                               \
    }                                                                                                      \
    extern "C" const char* backward_##T(const T* grad, const T* x, T* grad_x, double slope, long long n) { \
        backward_kernel<T><<<(n + 255) / 256, 256>>>(grad, x, grad_x, slope, n);                           \
        return last_error();                                                                               \
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
    function = getattr(library(), f"{name}_{'double' if tensors[0].dtype == torch.float64 else 'float'}")
    function.argtypes = [ctypes.c_void_p] * len(tensors) + [ctypes.c_double, ctypes.c_longlong]
    function.restype = ctypes.c_char_p
    error = function(*(tensor.data_ptr() for tensor in tensors), slope, tensors[0].numel())
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
# float64 results. Then come `gradcheck`, `opcheck`, and `torch.compile` with `fullgraph=True`. There is no clock: all
# ⟦ exercise("leaky_relu_op").max_points ⟧ points are for being right. A `NameError`? Run the exercise's cell first.

# %% nbgrader={"grade_id": "check-leaky_relu_op", "grade": true, "locked": true, "points": 5}
check(leaky_relu_op)

# %% [markdown]
# ## What an operator costs
#
# A call of an operator goes through PyTorch's *dispatcher*. It asks which device this is, whether a gradient is wanted,
# and whether somebody traces. A part of this is written in Python. So each call has a price, whatever the size of the
# tensor.
#
# A launch takes a few microseconds. Predict: by how many microseconds is a call of `cube` longer than one of
# `cube_by_ctypes`?

# %%
prediction = ...  # µs

# %%
import timeit


def call_us(function, x):
    return 1e6 * min(timeit.repeat(lambda: function(x), number=200, repeat=5)) / 200


one = torch.ones(1, device=device)
compare(prediction, call_us(cube, one) - call_us(cube_by_ctypes, one), "µs")

# %% [markdown]
# That is time of the CPU. While the GPU is busy with large tensors the CPU runs ahead, and nobody waits for it. With
# tiny tensors the GPU waits. An operator that is registered in C++, with `TORCH_LIBRARY`, costs less. But it needs
# torch's headers to build.
#
# The larger price is what a compiler does *not* do. Take `leaky_relu(2 * x, slope) + 1`. With PyTorch's own leaky ReLU,
# `torch.compile` fuses all three operations into one kernel. It cannot see into your operator. Predict: how many
# kernels run with yours, compiled? (The times are for 2²⁴ float32.)

# %%
prediction = ...  # kernels

# %%
costs = recorded("operators", "kernels", "median_us")
compare(prediction, costs.value("kernels", "an operator of one's own, compiled"), "kernels", how="recorded")
costs

# %% [markdown]
# There are three: one before, yours, and one after. Each reads and writes the whole tensor. So compiling gains nothing:
# the same three run without it.
#
# And they take longer than PyTorch's own three. The operator that was recorded is the exercise's solution, which moves
# one element a thread. [Move bytes well](02_move_bytes_well.ipynb) shows how far such a kernel stays behind.

# %% [markdown]
# So make an operator of what a compiler cannot write itself: a new reduction, an algorithm with shared memory, a library
# that you call. Leave what is element by element to the compiler. Leaky ReLU is a good exercise, and a poor reason for
# an operator.

# %% [markdown]
# ## Extra credit
#
# No points, but each shows something. Change the exercise's cell, run it, and `check` it again.
#
# 1. Leave out one fake. Which of the checks notices, and what does it say? What if it is that of the gradient?
# 2. `torch.autograd.gradgradcheck` tests the gradient of the gradient. What is missing for it to pass? (The second
#    operator is an operator like the first.)
# 3. Pass an empty tensor, `torch.empty(0, 3)`. What does the launch say, and where would you catch it?

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
# - seen what an operator costs, and what it keeps a compiler from
#
# ## Check yourself
#
# <details><summary>Who calls the fake, and what must it never do?</summary>
#
# Whoever plans without values: `torch.compile`, tensors on `"meta"`. It must not launch a kernel or look at values or
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
# `mutates_args=("out",)`. The schema then marks that argument, and a compiler keeps the order of what reads and writes
# it.
#
# </details>
#
# **Next:** [Add two vectors](../03_triton/01_add_vectors.ipynb), where you write blocks instead of threads. Or go
# back to the [syllabus](../README.ipynb). Both lie in the course's folder.
