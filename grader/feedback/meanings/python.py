"""Errors of Python, PyTorch and Numba."""

from __future__ import annotations

from grader.feedback.meanings.meaning import Meaning

__all__ = ["NUMBA", "PYTHON"]

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
