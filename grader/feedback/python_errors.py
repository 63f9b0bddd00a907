"""Errors of torch.compile, and of the harnesses that look at what was compiled: one graph
(`grader/worker/harnesses/compiled_graph.py`), wide loads (`grader/worker/harnesses/triton_kernels.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# One row of the table of errors.


@dataclass(frozen=True)
class Meaning:
    """What an error whose text holds `pattern` means, and what to do.

    Where tools word different errors alike, the line that failed must hold `code` too. {0}, {1}, … are the groups of
    the pattern, then those of the code. A `title` says what is wrong where the error is a judgement of ours: the
    learner's code raised nothing.
    """

    pattern: str
    says: str
    do: str
    code: str = ""
    title: str = ""

    def advice(self, text: str, line: str = "") -> Advice | None:
        """What this row says of an error that the `line` of the submission raised, or None where it does not apply."""
        found = re.search(self.pattern, text)
        there = re.search(self.code, line) if self.code else None
        if found is None or (self.code and there is None):
            return None
        groups = [group or "" for match in (found, there) if match is not None for group in match.groups()]
        return Advice(self.says.format(*groups), self.do.format(*groups), self.title)


@dataclass(frozen=True)
class Advice:
    """What an error means, and what to do about it: a sentence or two each."""

    says: str
    do: str
    title: str = ""


# Errors of Python, PyTorch and Numba.

NUMBA: tuple[Meaning, ...] = (
    Meaning(
        r"CUDA kernel must have void return type",
        "A kernel returns nothing.",
        "Write the result into an output array.",
    ),
    Meaning(
        r"(?:Unsupported array index type|getitem\(array\([^)]*\), )float",
        "An index is a float: `/` gives one.",
        "Divide indices with `//`.",
    ),
    Meaning(
        r"Unknown attribute '(\w+)' of type (\S+)",
        "Numba cannot compile `.{0}` in a kernel.",
        "Use plain arithmetic, `math` and `numba.cuda`.",
    ),
    Meaning(
        r"No implementation of function",
        "Numba knows no such operation for these types.",
        "Look at the types that the message names: is an array where its element belongs?",
    ),
    Meaning(
        r"No matching definition for argument type\(s\) (.+)",
        "The kernel was compiled for other types than those that came: {0}.",
        "Does the signature name the types of the arrays, one for each argument? If kernels are kept, is each kept "
        "under its type?",
    ),
    Meaning(
        r"_Kernel\.__init__\(\) got an unexpected keyword argument '(\w+)'",
        "`cuda.jit` has no option {0}.",
        "Fast math is `fastmath=True`, a cap of registers `max_registers=…`.",
    ),
)

PYTHON: tuple[Meaning, ...] = (
    Meaning(
        r"get_ipython|run_line_magic|run_cell_magic",
        "The cell uses a magic (`%…` or `!…`), which exists in a notebook alone.",
        "Move it to a cell of its own.",
    ),
    Meaning(
        r"(?:name '|NameError\(['\"])(torch|triton|tl|math|load_inline|np|cp|cuda)(?:'| is not defined)",
        "`{0}` is not imported in this cell. A submission is one cell, and what other cells imported is not there.",
        "Put the import at the top of the cell that defines the function. In a kernel, use `tl` in place of `math`.",
    ),
    Meaning(
        r"name '(\w+)' is not defined|NameError\(['\"](\w+) is not defined",
        "`{0}{1}` is not defined in this cell. A submission is one cell: what other cells define is not there.",
        "Define it in this cell, or mend the spelling.",
    ),
    Meaning(
        r"cannot access local variable '(\w+)'",
        "`{0}` is read before it was given a value.",
        "Assign it on every path, before its first use.",
    ),
    Meaning(
        r"No module named '([\w.]+)'",
        "The package `{0}` is not installed where submissions are graded.",
        "The exercise can be solved with what the cell imports at the start.",
    ),
    Meaning(
        r"(\w+)\(\) missing \d+ required (?:positional|keyword-only) arguments?: (.+)",
        "`{0}` was called without {1}.",
        "Compare the call, or the launch, with the function's parameters.",
    ),
    Meaning(
        r"(\w+)\(\) takes (\d+) positional arguments? but (\d+) (?:was|were) given",
        "`{0}` takes {1} arguments and was given {2}.",
        "Compare the call, or the launch, with the function's parameters.",
    ),
    Meaning(
        r"The size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)",
        "Two tensors of different sizes meet: {0} and {1}.",
        "Look at their shapes; `keepdim=True` keeps a reduced dimension.",
    ),
    Meaning(
        r"Expected all tensors to be on the same device",
        "One tensor is on the GPU and another is not.",
        "Make new tensors with `device=x.device`.",
    ),
    Meaning(
        r"maximum recursion depth exceeded",
        "The function calls itself without end.",
        "Does the wrapper have the same name as the kernel that it means to launch?",
    ),
)


# Errors of PyTorch's operators: their registration, their checks, and their way through the compiler.

OPERATOR: tuple[Meaning, ...] = (
    Meaning(
        r"no fake impl registered for|Operator does not support running with fake tensors",
        "The operator has no fake kernel, so nobody knows the shape of its result without running it.",
        "Register one with `register_fake`: a function of the same arguments that returns an empty tensor like the "
        "result. The operator of the gradient needs one, too.",
    ),
    Meaning(
        r"found mismatched tensor metadata: (.+?)!?(?: \(scroll.*)?$",
        "The fake kernel describes another tensor than the real one makes: {0}.",
        "Give it the shape, the type and the strides of the result. A result that is contiguous whatever `x` is: "
        "`x.new_empty(x.shape)`.",
    ),
    Meaning(
        r"Argument (\w+) is not defined as mutable but was mutated",
        "The operator writes into `{0}`, and its registration says that it writes into nothing.",
        'Write into a new tensor; or, if it is meant to work in place, register it with `mutates_args=("{0}",)`.',
    ),
    Meaning(
        r"must not also be an input to this custom operator|may not alias any inputs",
        "The operator returned its input. PyTorch takes each result for a new tensor, and would reuse or change the "
        "one behind the other's back.",
        "Make the result with `torch.empty_like`, and write into that.",
    ),
    Meaning(
        r"no autograd formula was registered",
        "The operator has no gradient.",
        "Register one: `register_autograd(gradient, setup_context=…)`.",
    ),
    Meaning(
        r"Cannot access data pointer of Tensor",
        "Kernels were launched where the compiler passes tensors without memory: it only wants to know which operators "
        "there are.",
        "Launch kernels inside of an operator, with `torch.library.custom_op`; the kernel of the gradient needs an "
        "operator of its own, which the gradient calls.",
    ),
    Meaning(
        r"torch\.compile cannot make one graph",
        "The compiler met a call that it cannot see into, and its graph ends there.",
        "Call the registered operator, and nothing else that reaches the kernel: no `ctypes`, no `data_ptr()` outside "
        "of it.",
    ),
    Meaning(
        r"gradcheck says: Backward is not reentrant",
        "The same gradient, asked for twice, came out differently.",
        "Does every element of the result get written, and in float64 as well?",
    ),
    Meaning(
        r"gradcheck says|Jacobian mismatch",
        "The gradient is not what differences of the function give.",
        "Are both right in float64, down to its last digits? A kernel or a copy in float32 is too coarse for "
        "differences.",
    ),
    Meaning(
        r"returned an incorrect number of gradients",
        "The gradient function returned too few or too many values.",
        "It returns one for each argument of the operator, and None for one that gets no gradient, such as a number.",
    ),
    Meaning(
        r"returned a gradient different than None at position",
        "The gradient function returned a gradient for an argument that is no tensor.",
        "Return None in its place.",
    ),
    Meaning(
        r"'GeneratedBackwardFor\w+' object has no attribute '(\w+)'",
        "The gradient function asks for `ctx.{0}`, and nobody put it there.",
        "Keep it while the operator runs forwards: `ctx.{0} = …` in the function that is given as `setup_context`.",
    ),
    Meaning(
        r"got an unexpected keyword argument '(?:inputs|output)'",
        "The function that is given as `setup_context` has other parameters than it is called with.",
        "Its parameters are `ctx, inputs, output`, by these names.",
    ),
    Meaning(
        r"infer_schema\(func\): (?:Parameter \w+ must have a type|No return type)",
        "An operator's schema is made from its type hints, and one is missing.",
        "Give every parameter and the result a type: `def f(x: torch.Tensor, slope: float) -> torch.Tensor`.",
    ),
)


# Errors of torch.compile, and of the harnesses that look at what was compiled: one graph
# (`grader/worker/harnesses/compiled_graph.py`), wide loads (`grader/worker/harnesses/triton_kernels.py`).

_NARROW = "Its loads are narrow"
COMPILER: tuple[Meaning, ...] = (
    Meaning(
        r"[Dd]ata-dependent (?:branching|control flow|jump)|Could not guard on data-dependent",
        "A graph break: Python would have to know a value of the tensor to decide which way to go, and while the graph "
        "is captured there are no values.",
        "Compute both ways and choose: `torch.where(condition, a, b)`. A check that raises or warns can go.",
    ),
    Meaning(
        r"Tensor\.to_?list\(\)|tolist\(\)",
        "A graph break: `.tolist()` takes every element to the CPU, as Python numbers.",
        "Loop over `range(w.shape[0])` and use `w[k]`, which stays a tensor.",
    ),
    Meaning(
        r"Tensor\.item\(\) call",
        "A graph break: `.item()` takes a value to the CPU, as a Python number.",
        "Keep the tensor of one element, and compute with it.",
    ),
    Meaning(
        r"the graph fetches a value to the CPU: `\.(\w+)\(\)`",
        "`.{0}()` takes values to the CPU. There, the CPU waits for the GPU, and the GPU then waits for the CPU.",
        "Keep the tensor where it is and compute with it: `w[k]` is a tensor of one element, and torch has NumPy's "
        "functions.",
    ),
    Meaning(
        r"builtin (?:operator )?`?print|builtin: print",
        "A graph break: `print` runs while Python does, and the graph runs later.",
        "Take `print` out; what is printed is no part of the result.",
    ),
    Meaning(
        r"[Dd]ynamic shape operator|data-dependent expression|data dependent operator",
        "A graph break: a shape, or a count of rounds, would depend on the values of a tensor.",
        "Keep the shape and mask: `torch.where(condition, x, 0)` in place of `x[condition]`.",
    ),
    Meaning(
        r"marked as skipped|torch\.compiler\.disable|call_function .* in skip_files",
        "A graph break: the line calls something that is not made of torch operations, such as a clock or a file.",
        "Take it out of the function, or call it outside.",
    ),
    Meaning(
        r"^GraphBreak",
        "A graph break: here the graph would end, and Python go on by itself.",
        "Say it with torch operations alone, or leave the line out.",
    ),
    Meaning(
        r"fused into (\d+) kernels, at most (\d+) are allowed",
        "Something must be whole in memory before the rest can go on, or is written without being needed: {0} kernels.",
        "Leave out what the result does not need, such as statistics. Write nothing through a view: choose with "
        "`torch.where`. Reduce along one dimension only.",
    ),
    Meaning(
        r"a second call with the same shapes was compiled again",
        "The function reads or writes something outside of itself that changes from call to call. The compiled code "
        "is valid for the old value only, so each call compiles anew.",
        "Take counters, logs and lists out of the function.",
    ),
    Meaning(
        r"the function wrote to a tensor that it was given",
        "An operation in place changed `x` or `w`. In the original `clone()` keeps the caller's tensor as it is.",
        "Write `y = y / peak` in place of `y /= peak`: the compiler fuses it, so it costs nothing.",
    ),
    Meaning(
        r"the result is torch\.float64",
        "Somewhere a float64 came in, and all that follows is computed in it: twice the bytes, and far slower.",
        "Look for `.double()`, `dtype=torch.float64` and arrays of NumPy, whose default is float64.",
    ),
    Meaning(
        r"a tensor is to be returned, not NoneType",
        "The function returns nothing.",
        "End it with `return` and the tensor.",
    ),
    Meaning(
        r"NarrowLoads.*; a block gives each of its (\d+) threads (\d+) elements",
        "The block is too small for its threads: with {1} elements each of the {0} threads cannot load four.",
        "Give it a larger block, or fewer warps (`num_warps`).",
        title=_NARROW,
    ),
    Meaning(
        r"NarrowLoads.*; the compiler gave a thread runs of (\d+) elements",
        "In the compiled kernel a thread holds runs of {0}. Either neighbours of the block are not known to lie "
        "together in memory, or it is not known where a row begins.",
        "Let neighbours in `tl.arange` take neighbouring columns. Then say that a row begins at a multiple of 4: "
        "`tl.multiple_of(row * x_stride, 4)`. A hint around an argument of the kernel does nothing.",
        title=_NARROW,
    ),
    Meaning(
        r"NarrowLoads.*; the addresses allow more, and the mask does not",
        "It is the mask: the addresses allow 16 bytes, but the compiler cannot know that four neighbours have the same "
        "mask.",
        "Say so: `tl.max_constancy(column < columns, 4)`.",
        title=_NARROW,
    ),
    Meaning(
        r"NarrowLoads.*; the layout allows more, and the addresses that are loaded from do not",
        "A thread holds runs of four, for the addresses of the store allow it. The compiler does not know where a row "
        "of the matrix that you load begins.",
        "Say it of these rows, too: `tl.multiple_of(row * x_stride, 4)`. A hint around an argument of the kernel does "
        "nothing.",
        title=_NARROW,
    ),
    Meaning(
        r"NarrowLoads.*; the addresses or the mask do not allow more",
        "A thread holds runs of four. So either it is not known where the rows begin that are loaded, or the mask may "
        "end between four neighbours.",
        "Say both: `tl.multiple_of(row * x_stride, 4)` and `tl.max_constancy(column < columns, 4)`.",
        title=_NARROW,
    ),
    Meaning(
        r"FalseHint: tl\.(\w+)\(",
        "A hint is a promise, and this one is broken. The simulator has the values and can tell. On a GPU the kernel "
        "may load other elements, or fault.",
        "Promise only what is true. If `tl.{0}` does not hold, change the hint, or the indices that it is about.",
        title="A hint is false",
    ),
    Meaning(
        r"no Triton kernel was launched",
        "The width of loads is looked at in Triton kernels, and none ran.",
        "Write the kernel with `@triton.jit`, and launch it in the function.",
    ),
    Meaning(
        r"counts loads of .* bytes: no load of a thread is that wide",
        "No load moves so much. Widths are in bytes, and 8 bits are a byte.",
        "`.v4.b32` is four values of 32 bits: 16 bytes.",
    ),
)
