"""Errors of torch.compile, and of the harnesses that look at what was compiled: one graph
(`grader/worker/whole_graph.py`), wide loads (`grader/worker/wide_loads.py`).
"""

from __future__ import annotations

from grader.feedback.meanings.meaning import Meaning

__all__ = ["COMPILER"]

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
