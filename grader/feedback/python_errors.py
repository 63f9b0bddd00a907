"""Errors of Python, PyTorch and torch.compile: what each one means and how to fix it."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Meaning:
    """The meaning of an error whose text matches `pattern`, and how to fix it.

    If several errors have the same text, the line that failed must match `code` as well, or the whole cell `cell`.
    {0}, {1}, … are the groups of the pattern, then those of the code. `title` replaces the report's heading if the
    judge found the error itself and the learner's code raised no exception.
    """

    pattern: str
    says: str
    do: str
    code: str = ""
    title: str = ""
    cell: str = ""

    def advice(self, text: str, line: str = "", cell: str = "") -> Advice | None:
        """The advice for an error that `line` of the `cell` raised, or None if this row does not match."""
        found = re.search(self.pattern, text)
        there = re.search(self.code, line) if self.code else None
        if found is None or (self.code and there is None) or not re.search(self.cell, cell):
            return None
        groups = [group or "" for match in (found, there) if match is not None for group in match.groups()]
        return Advice(self.says.format(*groups), self.do.format(*groups), self.title)


@dataclass(frozen=True)
class Advice:
    """The meaning of an error and how to fix it, in a sentence or two each."""

    says: str
    do: str
    title: str = ""


PYTHON: tuple[Meaning, ...] = (
    Meaning(
        r"assignment destination is read-only",
        "This line writes to an input, and inputs are read-only.",
        "Write to `out`. Does the launch pass the arrays in the kernel's order?",
    ),
    Meaning(
        r"get_ipython|run_line_magic|run_cell_magic",
        "The cell uses a magic command (`%…` or `!…`), which works only in a notebook.",
        "Move it to a separate cell.",
    ),
    Meaning(
        r"(?:name '|NameError\(['\"])(torch|triton|tl|math|load_inline|np|cp|cuda)(?:'| is not defined)",
        "`{0}` is not imported in this cell. Only this cell is graded, without the imports of other cells.",
        "Add the import at the top of this cell. In a Triton kernel, use `tl` instead of `math`.",
    ),
    Meaning(
        r"NameError\(['\"](\w+) is not defined",  # Triton's compiler
        "`{0}` is not defined here. A variable that is first set in a loop, or in one branch of an `if`, does not "
        "exist after it.",
        "Set `{0}` before. If it comes from another cell, define it in this one.",
    ),
    Meaning(
        r"name '(\w+)' is not defined",
        "`{0}` is not defined in this cell. Only this cell is graded, without the definitions of other cells.",
        "Define it in this cell, or fix the spelling.",
    ),
    Meaning(
        r"cannot access local variable '(\w+)'",
        "`{0}` is read before it has a value.",
        "Assign it on every path before you use it.",
    ),
    Meaning(
        r"No module named '([\w.]+)'",
        "The package `{0}` is not installed where submissions are graded.",
        "You can solve the exercise with the cell's original imports.",
    ),
    Meaning(
        r"(\w+)\(\) missing \d+ required (?:positional|keyword-only) arguments?: (.+)",
        "`{0}` was called without {1}.",
        "Compare the call or the launch with the function's parameters.",
    ),
    Meaning(
        r"(\w+)\(\) takes (\d+) positional arguments? but (\d+) (?:was|were) given",
        "`{0}` takes {1} arguments but got {2}.",
        "Compare the call or the launch with the function's parameters.",
    ),
    Meaning(
        r"^KeyError: '(\w+)'",
        "The dictionary has no key `{0}`.",
        "Print the dictionary, or compare the key with those that the notebook lists.",
    ),
    Meaning(
        r"unhashable type: '(\w+)'",
        "A dictionary finds a key by its hash, and an object of type `{0}` has none.",
        "Use what the stored value depends on as the key, such as `out.dtype`.",
    ),
    Meaning(
        r"to torch\.Size|'torch\.Size' and 'int'",
        "`x.shape` holds a size for each dimension, but one number is needed here.",
        "`x.numel()` is the number of elements, `x.shape[0]` the first size.",
    ),
    Meaning(
        r"operands could not be broadcast together with shapes (\([\d,]+\)) (\([\d,]+\))",
        "NumPy cannot combine arrays of the shapes {0} and {1}.",
        "`a[:, None] * b` has a row for each element of `a` and a column for each of `b`. A sum over `axis=1` leaves "
        "one number per row.",
    ),
    Meaning(
        r"ArgumentError: argument (\d+): .*(?:wrong type|Don't know how to convert)",
        "`ctypes` cannot pass argument {0}: a C function takes addresses and numbers, not tensors.",
        "Pass a tensor's address, `x.data_ptr()`, and sizes as `int`.",
    ),
    Meaning(
        r"'function' object is not subscriptable",
        "A plain Python function is launched with `[…]`, so the kernel's decorator is missing.",
        "Write `@triton.jit` or `@cuda.jit` above the kernel.",
    ),
    Meaning(
        r"The size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)",
        "An operation combines two tensors of different sizes: {0} and {1}.",
        "Check their shapes. `keepdim=True` keeps a reduced dimension.",
    ),
    Meaning(
        r"Expected all tensors to be on the same device",
        "One tensor is on the GPU and another is on the CPU.",
        "Create new tensors with `device=x.device`.",
    ),
    Meaning(
        r"can't convert cuda:0 device type tensor to numpy|BufferError: Unsupported device in DLTensor",
        "NumPy cannot read a tensor of the GPU.",
        "Use PyTorch or a kernel for this work. `x.cpu().numpy()` copies the values to the CPU, and waits for them.",
    ),
    Meaning(
        r"SegmentationFault: `ctypes\.(\w+)`",
        "`ctypes.{0}` is a function of the CPU, which cannot reach a GPU's memory: on a GPU the process crashes here.",
        "Copy between tensors with `out.copy_(…)`.",
    ),
    Meaning(
        r"the result is on cpu; it must be on cuda:0",
        "The function returns a tensor of the CPU. Its inputs are on the GPU, and so must be the result.",
        "Create new tensors with `device=x.device`, and compute on the GPU to the end.",
    ),
    Meaning(
        r"'NoneType' object is not (?:subscriptable|callable)",
        "The value that is used here is None.",
        "Where does it come from? A function without `return` returns None, and so does the launch of a kernel.",
    ),
    Meaning(
        r"maximum recursion depth exceeded",
        "The function calls itself endlessly.",
        "Does the wrapper have the same name as the kernel it should launch?",
    ),
)


OPERATOR: tuple[Meaning, ...] = (
    Meaning(
        r"no fake impl registered for|Operator does not support running with fake tensors",
        "The operator has no fake kernel, so the compiler cannot know the result's shape without running it.",
        "Register one with `register_fake`: a function with the same parameters that returns an empty tensor like "
        "the result. The gradient's operator needs one as well.",
    ),
    Meaning(
        r"found mismatched tensor metadata: (.+?)!?(?: \(scroll.*)?$",
        "The fake kernel returns a different tensor than the real one: {0}.",
        "Give it the result's shape, dtype and strides. If the result is contiguous for any `x`, that is "
        "`x.new_empty(x.shape)`.",
    ),
    Meaning(
        r"Argument (\w+) is not defined as mutable but was mutated",
        "The operator writes to `{0}`, but is registered as one that changes no input.",
        'Write to a new tensor. If the operator should work in place, register it with `mutates_args=("{0}",)`.',
    ),
    Meaning(
        r"must not also be an input to this custom operator|may not alias any inputs",
        "The operator returned its input. PyTorch assumes that a result is a new tensor, and may overwrite either of "
        "them.",
        "Create the result with `torch.empty_like` and write to that.",
    ),
    Meaning(
        r"outputs_alias_inputs",
        "The fake kernel returns its input, but the operator returns a new tensor.",
        "Return `x.new_empty(x.shape)` from the fake kernel.",
    ),
    Meaning(
        r"Expected a value of type 'int' for argument '(\w+)' but instead found type 'float'",
        "The operator's schema comes from the type hints, and they say that `{0}` is an `int`.",
        "Write `{0}: float`.",
    ),
    Meaning(
        r"no autograd formula was registered",
        "The operator has no gradient.",
        "Register one: `register_autograd(gradient, setup_context=…)`.",
    ),
    Meaning(
        r"Cannot access data pointer of Tensor",
        "The code launches a kernel while the compiler traces it, and traced tensors have no memory.",
        "Launch kernels only inside an operator, registered with `torch.library.custom_op`. The gradient's kernel "
        "needs its own operator, which the gradient calls.",
    ),
    Meaning(
        r"torch\.compile cannot make one graph",
        "The compiler found a call that it cannot trace, so its graph ends there.",
        "Reach the kernel only through the registered operator: call no `ctypes` and no `data_ptr()` outside it.",
    ),
    Meaning(
        r"gradcheck says: Backward is not reentrant",
        "Two computations of the same gradient gave different results.",
        "Is every element of the result written, also for float64?",
    ),
    Meaning(
        r"gradcheck says|Jacobian mismatch",
        "The gradient does not match the finite differences of the function.",
        "Are both accurate to the last digits in float64? A kernel or a copy in float32 is too coarse for finite "
        "differences.",
    ),
    Meaning(
        r"returned an incorrect number of gradients",
        "The gradient function returned the wrong number of values.",
        "Return one value for each argument of the operator, and None for an argument without a gradient, such as a "
        "number.",
    ),
    Meaning(
        r"returned a gradient different than None at position",
        "The gradient function returned a gradient for an argument that is not a tensor.",
        "Return None for it instead.",
    ),
    Meaning(
        r"'GeneratedBackwardFor\w+' object has no attribute '(\w+)'",
        "The gradient function reads `ctx.{0}`, which was never set.",
        "Save it in the forward pass: set `ctx.{0} = …` in the `setup_context` function.",
    ),
    Meaning(
        r"got an unexpected keyword argument '(?:inputs|output)'",
        "The `setup_context` function has the wrong parameters.",
        "Its parameters must be named `ctx`, `inputs` and `output`.",
    ),
    Meaning(
        r"infer_schema\(func\): (?:Parameter \w+ must have a type|No return type)",
        "PyTorch builds an operator's schema from its type hints, and one is missing.",
        "Add a type to every parameter and to the result: `def f(x: torch.Tensor, slope: float) -> torch.Tensor`.",
    ),
)


# Errors of torch.compile, and those that `grader/worker/harnesses` finds in compiled code.
_NARROW = "Its loads are too narrow"
COMPILER: tuple[Meaning, ...] = (
    Meaning(
        r"[Dd]ata-dependent (?:branching|control flow|jump)|Could not guard on data-dependent",
        "Graph break: Python needs a tensor's value to choose a branch, but tensors have no values while the graph "
        "is captured.",
        "Compute both branches and select: `torch.where(condition, a, b)`. Remove checks that raise or warn.",
    ),
    Meaning(
        r"Tensor\.to_?list\(\)",
        "Graph break: `.tolist()` copies every element to the CPU as a Python number.",
        "Loop over `range(w.shape[0])` and use `w[k]`, which stays a tensor.",
    ),
    Meaning(
        r"Tensor\.item\(\) call",
        "Graph break: `.item()` copies a value to the CPU as a Python number.",
        "Keep the one-element tensor and compute with it.",
    ),
    Meaning(
        r"the graph fetches a value to the CPU: `\.(\w+)\(\)`",
        "`.{0}()` copies values to the CPU: the CPU waits for the GPU, and then the GPU waits for the CPU.",
        "Keep the tensor on its device and compute with it: `w[k]` is a one-element tensor, and torch has NumPy's "
        "functions.",
    ),
    Meaning(
        r"builtin (?:operator )?`?print|builtin: print",
        "Graph break: `print` runs in Python, not in the compiled graph.",
        "Remove `print`: the printed text is not part of the result.",
    ),
    Meaning(
        r"[Dd]ynamic shape operator|data-dependent expression|data dependent operator",
        "Graph break: a shape or a loop count depends on the values of a tensor.",
        "Keep the shape and use a mask: `torch.where(condition, x, 0)` instead of `x[condition]`.",
    ),
    Meaning(
        r"marked as skipped|torch\.compiler\.disable|call_function .* in skip_files",
        "Graph break: this line calls something that is not a torch operation, such as a clock or a file.",
        "Remove it, or call it outside the function.",
    ),
    Meaning(
        r"^GraphBreak",
        "Graph break: the compiler cannot capture this line.",
        "Use only torch operations, or remove the line.",
    ),
    Meaning(
        r"fused into more kernels than allowed: (\d+), at most (\d+)",
        "The compiler needs {0} kernels: an intermediate result must be complete in memory, or an unneeded one is "
        "stored.",
        "Remove work that the result does not need, such as statistics. Select with `torch.where` instead of writing "
        "through a view. Reduce along one dimension only.",
    ),
    Meaning(
        r"a second call with the same shapes was compiled again",
        "The function uses outside state that changes from call to call. The compiled code is valid only for the old "
        "value, so each call compiles again.",
        "Move counters, logs and lists out of the function.",
    ),
    Meaning(
        r"the function wrote to a tensor that it was given",
        "An in-place operation changed `x` or `w`. In the original, `clone()` protects the caller's tensor.",
        "Write `y = y / peak` instead of `y /= peak`. The compiler fuses it, so it costs nothing.",
    ),
    Meaning(
        r"the result is torch\.float64",
        "A float64 value entered the computation, and everything after it is float64: twice the bytes and much slower.",
        "Look for `.double()`, `dtype=torch.float64` and NumPy arrays, which are float64 by default.",
    ),
    Meaning(
        r"must return a tensor, not NoneType", "The function returns nothing.", "End it with `return` and the tensor."
    ),
    Meaning(
        r"NarrowLoads.*; the block is too small \(threads: (\d+), elements per thread: (\d+)\)",
        "The block is too small for its threads: with {1} elements per thread, none of the {0} threads can load four "
        "at once.",
        "Use a larger block or fewer warps (`num_warps`).",
        title=_NARROW,
    ),
    Meaning(
        r"NarrowLoads.*; each thread has runs of length (\d+)",
        "In the compiled kernel a thread holds runs of {0}. The compiler does not know that the block's elements are "
        "contiguous in memory, or how each row is aligned.",
        "Map consecutive elements of `tl.arange` to consecutive columns. Then declare that rows start at a multiple "
        "of 4: `tl.multiple_of(row * x_stride, 4)`. A hint around a kernel argument has no effect.",
        title=_NARROW,
    ),
    Meaning(
        r"NarrowLoads.*; the addresses allow more, but the mask does not",
        "The mask is the reason: the addresses allow 16 bytes, but the compiler does not know that four adjacent "
        "elements share one mask value.",
        "Declare it: `tl.max_constancy(column < columns, 4)`.",
        title=_NARROW,
    ),
    Meaning(
        r"NarrowLoads.*; the layout allows more, but the addresses of the loads do not",
        "A thread holds runs of four because the store's addresses allow it. The compiler does not know how the rows "
        "of the loaded matrix are aligned.",
        "Declare it for these rows as well: `tl.multiple_of(row * x_stride, 4)`. A hint around a kernel argument has "
        "no effect.",
        title=_NARROW,
    ),
    Meaning(
        r"NarrowLoads.*; the addresses or the mask do not allow more",
        "A thread holds runs of four. Either the compiler does not know how the loaded rows are aligned, or the mask "
        "may change between four adjacent elements.",
        "Declare both: `tl.multiple_of(row * x_stride, 4)` and `tl.max_constancy(column < columns, 4)`.",
        title=_NARROW,
    ),
    Meaning(
        r"FalseHint: tl\.(\w+)\(",
        "A hint is a promise, and this one is false. The simulator knows the values and can check it. On a GPU the "
        "kernel may load the wrong elements or fault.",
        "Change the hint, or the indices it describes, so that `tl.{0}` holds.",
        title="A hint is false",
    ),
    Meaning(
        r"no Triton kernel was launched",
        "The grader measures the width of loads in Triton kernels, but none ran.",
        "Write the kernel with `@triton.jit` and launch it in the function.",
    ),
    Meaning(
        r"counts .*-byte loads: no load of a thread is that wide",
        "No load has this width. Widths are in bytes, and 8 bits are one byte.",
        "`.v4.b32` is four values of 32 bits: 16 bytes.",
    ),
)
