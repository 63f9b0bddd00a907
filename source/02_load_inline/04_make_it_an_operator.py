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
# **You need** about 75 minutes and [Square a matrix](01_square_a_matrix.ipynb), where a kernel is bound by `ctypes`. No
# GPU is needed: without one your CUDA C++ is built for the CPU, and everything else is the same.

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
# This kernel computes $x^3$. It is a *template*: `T` stands for a type. C++ makes a kernel for `float` and one for
# `double` out of it. `ctypes` sees plain functions only, so each type has one.

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
# A function in Python makes the result and calls the right one. `.contiguous()` copies a tensor whose elements do not
# lie one behind the other: the kernel sees an address, and no strides.

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
# `y.requires_grad` will be, True or False.

# %%
prediction = ...  # True or False

# %%
x = torch.tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
y = cube_by_ctypes(x)
compare(prediction, y.requires_grad)

# %% [markdown]
# No error, and no gradient. Autograd writes down the operations of PyTorch that it sees. It saw `empty_like`, which
# makes a new tensor and has no gradient. That something was written into it later, through an address, it did not see.
# In a model, all that lies before this call would silently stop learning.

# %% [markdown]
# ## A compiler that stops
#
# `torch.compile` reads your Python and collects PyTorch's operations into a *graph*, which it then compiles. Where it
# meets something that it cannot follow, the graph ends. The rest becomes another graph, and Python runs in between.
# This is a *graph break*.
#
# The next function is three operations long, if the cube counts as one. `torch._dynamo.explain` counts the graphs.
# Predict: how many are there?

# %%
prediction = ...  # graphs

# %%
x = torch.randn(1000, device=device)
found = torch._dynamo.explain(lambda x: torch.sin(cube_by_ctypes(2 * x)))(x)
compare(prediction, found.graph_count, "graphs")

# %%
print(found.break_reasons[0].reason.partition("Hint")[0])

# %% [markdown]
# `_FuncPtr` is what `ctypes` calls a function of the library. The compiler cannot look into it, so it gives up there,
# and once more in the function around it. Each break is a way back to Python, and a wall for fusing.
#
# It needs little: not a look *into* the kernel, but a name to put into the graph, and a promise. What goes in, what
# comes out, and what is written to?

# %% [markdown]
# ## Give it a name and a promise
#
# `torch.library.custom_op` registers a function as an *operator*. An operator is opaque: PyTorch passes tensors in and
# takes results out, and traces nothing in between. So what happens inside may be anything, `ctypes` too.

# %%
@torch.library.custom_op("demo::cube", mutates_args=())
def cube(x: torch.Tensor) -> torch.Tensor:
    return cube_by_ctypes(x)


torch.ops.demo.cube(torch.tensor([1.0, 2.0, 3.0], device=device))

# %% [markdown]
# - **The name** has a namespace in front, here `demo`, so that two libraries can have a `cube` each. As
#   `torch.ops.demo.cube` it can be called from anywhere in the process.
# - **The type hints** are read. They become the operator's *schema*, the promise about what goes in and comes out.
# - **`mutates_args=()`** is the promise that no argument is written to. And what is returned must be new memory.
# - No device is named, so the function serves all. With `device_types="cuda"` it serves one, and
#   `cube.register_kernel("cpu")` adds another for the CPU.

# %%
draw_operator(cube)

# %% [markdown]
# One of three is there. The other two are yours to add.

# %% [markdown]
# ## A fake: the shape without the work
#
# A compiler plans before there are values. It asks each operator what the result *would* look like: its shape, its
# type, its device, its strides. The function that answers is the operator's *fake* (also: *meta kernel*). It gets
# tensors without memory, and returns one.

# %%
@cube.register_fake
def _(x):
    return x.new_empty(x.shape)  # contiguous, whatever the strides of x are


# %% [markdown]
# The device `"meta"` holds such tensors without memory. Here is one of a trillion elements, which would be 4 TB.
# Predict: what comes out if you cube it? Write "a tensor", "no memory left" or "an error".

# %%
prediction = ...  # "a tensor", "no memory left" or "an error"

# %%
huge = cube(torch.empty(10**12, device="meta"))
compare(prediction, "a tensor" if huge.shape == (10**12,) else "an error")
huge

# %% [markdown]
# Only the fake ran. No kernel was launched, and nothing was allocated. This is how a compiler sees your operator.
# (Without a fake, this would be an error that says so.)
#
# Now count the graphs again. Predict: how many are there with the operator in place of the plain function?

# %%
prediction = ...  # graphs

# %%
found = torch._dynamo.explain(lambda x: torch.sin(cube(2 * x)))(x)
compare(prediction, found.graph_count, "graphs")
print(found.graphs[0].code.strip())

# %% [markdown]
# One graph, and `torch.ops.demo.cube` stands in it as a step like the others. `torch.compile(…, fullgraph=True)` turns
# a graph break into an error. Use it when you mean to have none.
#
# A fake that lies is worse than none: the compiler plans memory by it. So the fake must agree with the kernel in
# everything but the values. The strides, too: `cube_by_ctypes` makes its input contiguous, so its result is contiguous
# even where `x` is a transposed matrix. `torch.empty_like(x)` would keep the strides of `x`.

# %% [markdown]
# ## A gradient
#
# Let $L$ be the loss, and $y = f(x)$, element by element. `backward()` arrives with $\partial L / \partial y$, one
# number for each element of $y$. Your part is the chain rule:
#
# $$ \frac{\partial L}{\partial x_i} = \frac{\partial L}{\partial y_i} \cdot f'(x_i). $$
#
# For $f(x) = x^3$ the derivative is $3x^2$. It needs `x`, so `x` is kept when the operator runs forwards. A function
# for each, and both are registered. (The gradient may call operations of PyTorch. It may not call `ctypes`: the
# compiler traces it, with tensors without memory.)

# %%
def keep(ctx, inputs, output):
    (x,) = inputs
    ctx.save_for_backward(x)


def cube_gradient(ctx, grad):  # grad is ∂L/∂y
    (x,) = ctx.saved_tensors
    return grad * 3 * x * x  # one value for each argument of the operator


# %%
cube.register_autograd(cube_gradient, setup_context=keep)
draw_operator(cube)

# %% [markdown]
# Predict: `x` is 2, and 10 arrives as the gradient of $x^3$. Which gradient does `x` get?

# %%
prediction = ...  # gradient of x

# %%
x = torch.tensor([2.0], device=device, requires_grad=True)
cube(x).backward(torch.tensor([10.0], device=device))
compare(prediction, x.grad.item())

# %% [markdown]
# ## Test it: differences against the formula
#
# A wrong gradient raises no error. The model just learns badly. But a derivative can be had without any formula, from
# two values of the function itself:
#
# $$ f'(x) \approx \frac{f(x + h) - f(x - h)}{2h}. $$
#
# At $x = 1.5$ the derivative of $x^3$ is 6.75. Take $h = 10^{-6}$ and float32. Predict: by how many per cent is the
# difference off?

# %%
prediction = ...  # per cent

# %%
def difference(dtype, h=1e-6):
    x = torch.tensor([1.5], dtype=dtype, device=device)
    return ((cube(x + h) - cube(x - h)) / (2 * h)).item()


compare(prediction, 100 * abs(difference(torch.float32) / 6.75 - 1), "%")
print("float32:", difference(torch.float32), " float64:", difference(torch.float64))

# %% [markdown]
# The two values agree in all but their last digits, and float32 has seven. What is left after the subtraction is
# mostly rounding. float64 has sixteen digits, and gives the derivative to nine or ten of them.
#
# `torch.autograd.gradcheck` does this for each element of the input and each of the output. It wants **float64**. This
# is why a kernel that you want to test needs a version in `double`.

# %%
x = torch.randn(3, 4, dtype=torch.float64, device=device, requires_grad=True)
torch.autograd.gradcheck(cube, (x,))

# %% [markdown]
# Here is the same with a gradient that forgot a factor of $x$. Predict: what does `gradcheck` return?

# %%
prediction = ...  # True or False

# %%
@torch.library.custom_op("demo::cube_with_a_bug", mutates_args=())
def buggy(x: torch.Tensor) -> torch.Tensor:
    return cube_by_ctypes(x)


buggy.register_autograd(lambda ctx, grad: grad * 3 * ctx.saved_tensors[0], setup_context=keep)
compare(prediction, torch.autograd.gradcheck(buggy, (x,), raise_exception=False))

# %% [markdown]
# Without `raise_exception=False` it raises an error which shows both matrices of derivatives.
#
# What `gradcheck` does not see: a kink. Leaky ReLU has one at 0, where the difference is a mean of two slopes. So test
# away from it.

# %% [markdown]
# ## Test the promise
#
# `torch.library.opcheck` tests what you registered against what the operator does:
#
# - `test_schema`: is just that written to, and returned, which the schema says?
# - `test_autograd_registration`: is the gradient registered where autograd looks?
# - `test_faketensor`: does the fake give the shape, type, device and strides of the result?
# - `test_aot_dispatch_dynamic`: do the values and gradients stay the same in a traced graph?

# %%
torch.library.opcheck(cube, (x,))

# %% [markdown]
# This operator lies: it writes into its argument, and says that it does not. Predict: how many of the four tests does
# it pass?

# %%
prediction = ...  # tests

# %%
@torch.library.custom_op("demo::cube_in_place", mutates_args=())
def in_place(x: torch.Tensor) -> torch.Tensor:
    return x.copy_(cube_by_ctypes(x)).clone()


in_place.register_fake(torch.empty_like)
found = torch.library.opcheck(in_place, (x.detach().clone(),), raise_exception=False)
compare(prediction, sum(result == "SUCCESS" for result in found.values()), "tests")

# %%
found

# %% [markdown]
# Tried alone, this operator gives the right values. But a compiler believes the promise. It may run the operator later
# than you wrote it, or twice, and others that read `x` find something else there.

# %% [markdown]
# ## Gradients have strides
#
# One more trap. `y.sum().backward()` sends a 1 to each element of `y`. Autograd does not store a million ones. It
# stores one, and *expands* it: a tensor of the right shape whose steps in memory are 0.
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
# A kernel that takes the address of such a gradient reads one right element, and then whatever comes after it. So a
# backward kernel needs `.contiguous()` on **each** of its tensors, the gradient first of all.

# %% [markdown]
# ## Run a cell again
#
# You will change your operator and run its cell again. `custom_op` allows that: the new one replaces the old one of the
# same name. What you kept from the old one (a variable in another cell, say) is dead then: look it up again.
#
# In C++ an operator is registered with a macro:
#
# ```cpp
# TORCH_LIBRARY(course, m) { m.def("leaky_relu(Tensor x, float slope) -> Tensor"); }
# TORCH_LIBRARY_IMPL(course, CUDA, m) { m.impl("leaky_relu", &leaky_relu); }
# ```
#
# This is the way for a library that is installed. It works without Python, and a call of it is cheaper. For a notebook
# it has two drawbacks. It needs torch's headers, so the build takes longer: on the machine with an H200
# ⟦ recorded(bench="load_inline", case="TORCH_LIBRARY in a file of its own", metric="build_s", gpu="H200") ⟧, against
# ⟦ recorded(bench="load_inline", case="no torch headers, called by ctypes", metric="build_s", gpu="H200") ⟧ without
# them. And a name may be registered once only: change such a cell and run it again, and the process ends, with all that
# you had in it.

# %% [markdown]
# ## Exercise: make leaky ReLU an operator
#
# Leaky ReLU keeps what is positive and scales the rest:
#
# $$ y = \begin{cases} x & \text{if } x > 0 \\ s\,x & \text{otherwise} \end{cases} \qquad
# \frac{\partial L}{\partial x} = \begin{cases} \partial L / \partial y & \text{if } x > 0 \\
# s\,\partial L / \partial y & \text{otherwise} \end{cases} $$
#
# `x` is float32 or float64, with any strides. The slope $s$ is any number, also above 1 or below 0; it gets no gradient.
# The result is new and contiguous.
#
# 1. Two kernels, templates over the type. *(2 lines each)*
# 2. Two operators. The gradient is a kernel as well, and the compiler must not look into it: so it is an operator of
#    its own. Each makes its tensors contiguous, makes the result and calls `launch`. *(4 lines each)*
# 3. A fake for each. *(1 line each)*
# 4. What to keep, and the gradient, which calls the second operator. It returns a value for each argument of
#    `leaky_relu`. *(2 lines each)*
#
# `launch("forward", x, out, slope=0.1)` calls the function `forward_float` or `forward_double` of the library, with
# the tensors' addresses, the slope and the number of elements. `#define` writes these functions for a type, so that
# the text need not stand there twice: `forward_##T` becomes `forward_float` where `T` is `float`.

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

# %%
draw_operator(leaky_relu)

# %% [markdown]
# ## What an operator costs
#
# A call of an operator goes through PyTorch's *dispatcher*: it looks which device, whether a gradient is wanted, and
# whether somebody traces. A part of this is written in Python. So there is a price for each call, whatever the size of
# the tensor. Predict: by how many microseconds is a call of `cube` longer than one of `cube_by_ctypes`?

# %%
prediction = ...  # µs

# %%
import timeit


def call_us(function, x):
    return 1e6 * min(timeit.repeat(lambda: function(x), number=200, repeat=5)) / 200


one = torch.ones(1, device=device)
compare(prediction, call_us(cube, one) - call_us(cube_by_ctypes, one), "µs")

# %% [markdown]
# That is time of the CPU. While the GPU is busy with large tensors, the CPU runs ahead, and nobody waits for it. With
# tiny tensors the GPU waits, and `TORCH_LIBRARY` in C++ is the way to pay less.
#
# The larger price is what a compiler does *not* do. Take `leaky_relu(2 * x, slope) + 1`. With PyTorch's own leaky ReLU
# `torch.compile` fuses all three operations into one kernel. It cannot see into your operator. Predict: how many
# kernels run with yours, compiled?

# %%
prediction = ...  # kernels

# %%
costs = recorded("operators", "kernels", "median_us")
compare(prediction, costs.value("kernels", "an operator of one's own, compiled"), "kernels", how="recorded")
costs

# %% [markdown]
# One before, yours, and one after: each reads and writes the whole tensor, so fusing is lost where it would help most.
# So make an operator of what a compiler cannot write itself (a new reduction, an algorithm with shared memory, a library
# that you call), and leave what is element by element to the compiler. Leaky ReLU is the smallest example that has it
# all, and a poor reason for an operator.

# %% [markdown]
# ## Extra credit
#
# No points, but each shows something. Change the exercise's cell, run it, and `check` it again.
#
# 1. Leave out one fake. Which of the checks notices, and what does it say? What if it is that of the gradient?
# 2. `torch.autograd.gradgradcheck` tests the gradient of the gradient. What is missing for it to pass? (The second
#    operator is an operator like the first.)
# 3. Pass an empty tensor, `torch.empty(0, 3)`. What does the launch say, and where would you catch it?
# 4. Compile a whole step: `torch.compile(lambda x: leaky_relu_op(2 * x, 0.1) + 1, fullgraph=True)`. The first call takes
#    a while. `TORCH_LOGS=output_code` shows the code that was written around your operator.

# %% [markdown]
# ## In this notebook you have
#
# - seen a kernel lose its gradient and break a graph, because PyTorch did not know of it
# - registered an operator with a schema, and a fake that answers without work
# - given it a gradient by the chain rule, with a kernel and an operator of its own
# - tested the gradient with differences in float64, and the promises with `opcheck`
# - met a gradient whose strides are 0
# - counted what an operator costs, and what it keeps a compiler from
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
# <details><summary>Why does the backward kernel of the exercise need an operator of its own, while <code>3 * x * x</code> did not?</summary>
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
# <details><summary>Why does <code>gradcheck</code> fail for a right kernel in float32?</summary>
#
# The difference of two nearby values loses most of their digits. float32 has seven, and after the subtraction one or
# two are left.
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
