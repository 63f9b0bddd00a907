"""Errors of Numba: what each one means and how to fix it."""

from __future__ import annotations

from grader.feedback.python_errors import Meaning

NUMBA: tuple[Meaning, ...] = (
    Meaning(
        r"A block of this launch has ([\d,]+) threads",
        "A block of {0} threads is too large: no GPU has more than 1,024 threads in a block.",
        "Launch more blocks of fewer threads: 128 or 256 are usual.",
    ),
    Meaning(
        r"The (block|grid) of this launch has length ([\d,]+) along (\w)",
        "The {0} has length {1} along {2}, which a GPU refuses.",
        "Use the x axis for the longest dimension. A block may have up to 1,024 × 1,024 × 64 threads, but no more than "
        "1,024 in all. A grid may have 65,535 blocks along y and along z.",
    ),
    Meaning(
        r"A block has ([\d,]+) B of shared memory",
        "A block uses {0} bytes of shared memory, more than a GPU gives it.",
        "Use a smaller tile, or reuse one array for several purposes.",
    ),
    Meaning(
        r"waits for lanes of its mask that never reach it",
        "A function of a warp waits for every lane of its mask, and some of them return or branch away before it.",
        "Let all lanes of the mask reach the call: skip the work, not the call.",
    ),
    Meaning(
        r"threads of a block wait at (cuda\.\w+\(\)) .* ended without reaching it",
        "`{0}` waits for all threads of its block, but some of them never reach it.",
        "Move the barrier out of the `if`: threads without work skip the work, not the barrier. For the same reason no "
        "thread may return before it.",
    ),
    Meaning(
        r"all of them must reach the same one",
        "The threads of a block wait at different barriers.",
        "Move the barrier out of the `if` and `else`: every thread of a block must reach the same call.",
    ),
    Meaning(
        r"CUDA kernel must have void return type",
        "A kernel cannot return a value.",
        "Write the result to an output array.",
    ),
    Meaning(
        r"(?:Unsupported array index type|getitem\(array\([^)]*\), )float",
        "An index is a float: `/` returns a float.",
        "Divide indices with `//`.",
    ),
    Meaning(
        r"Unknown attribute '(\w+)' of type (\S+)",
        "Numba cannot compile `.{0}` in a kernel.",
        "Use plain arithmetic, `math` and `numba.cuda`.",
    ),
    Meaning(
        r"No implementation of function[^\n]*<function (shared|local)\.array[^>]*>[\s\S]{,80}?array\((?:shape=)?u?int",
        "The shape of a {0} array is computed: Numba needs a constant.",
        "Write a number, or the name of a global variable that holds one.",
    ),
    Meaning(
        r"No implementation of function Function\(<(?:built-in )?function "
        r"(zeros|empty|ones|full|dot|sum|mean|linspace)\b",
        "Numba cannot compile NumPy's `{0}` in a kernel.",
        "Loop over the elements and add them up in a scalar. `cuda.local.array` makes an array for each thread.",
    ),
    Meaning(
        r"<ufunc '(\w+)'>",
        "Numba has no `np.{0}` for kernels.",
        "Use the function of `math`, such as `math.sqrt`, or an operator.",
    ),
    Meaning(
        r"No implementation of function[^\n]*\((?:reflected )?(?:list|set|DictType|unicode_type)\b",
        "Numba cannot compile Python's lists, dicts, sets and strings in a kernel.",
        "Use a scalar for each value, or `cuda.local.array`.",
    ),
    Meaning(
        r"The use of yield in a closure|Unsupported use of (?:generator|yield)",
        "Numba cannot compile a generator or comprehension in a kernel, such as `sum(… for …)`.",
        "Write a loop that adds to a variable.",
    ),
    Meaning(
        r"UnsupportedBytecodeError|not supported yet\. Raised from|(?:Use of unsupported|unsupported) opcode",
        "Numba cannot compile this Python statement.",
        "Use plain arithmetic, `if`, loops over `range`, `math` and `numba.cuda`. `print` takes values without a "
        "format.",
    ),
    Meaning(
        r"(grid|block)dim must be a sequence of integers, got \[[^\]]*\d\.\d",
        "The {0} has a size that is not an integer: `/` returns a float.",
        "Divide with `//`: `(n + threads - 1) // threads`.",
    ),
    Meaning(
        r"Kernel launch configuration was not specified",
        "The kernel was called like a function, without a grid.",
        "Launch it over a grid of blocks: `kernel[blocks, threads](…)`.",
    ),
    Meaning(
        r"IndexError: index -?[\d,]+ is out of bounds for axis \d+ with size ([\d,]+)",
        "An index is past the end of the array, which has {0} elements there.",
        "Compare the index with that array's own size before you use it. If it is compared already, are the arguments "
        "of the call in the order of the function's parameters?",
    ),
    Meaning(
        r"<intrinsic exception_match>|[Ee]xception matching is limited",
        "Numba cannot catch this exception in a kernel: a GPU does not raise it.",
        "Remove `try`. Compare indices with the sizes before you use them.",
    ),
    Meaning(
        r"_ol_array_allocate|NRT required",
        "An operation on a whole array would make a new array in the kernel: Numba cannot do that on a GPU.",
        "Loop over the elements and add them up in a scalar. `cuda.local.array` makes an array for each thread.",
    ),
    Meaning(
        r"No implementation of function",
        "Numba does not support this operation for these types.",
        "Check the types in the message: is an array used instead of its element?",
    ),
    Meaning(
        r"No matching definition for argument type\(s\) (.+)",
        "The kernel was compiled for different types than these: {0}.",
        "Does the signature list one type for each argument? If you cache kernels, is each stored under its type?",
    ),
    Meaning(
        r"_Kernel\.__init__\(\) got an unexpected keyword argument '(\w+)'",
        "`cuda.jit` has no option {0}.",
        "Fast math is `fastmath=True`, and a register limit is `max_registers=…`.",
    ),
    Meaning(
        r"Type\.__call__\(\) got an unexpected keyword argument '(\w+)'",
        "`{0}` is passed to the signature, which takes only the types of the arguments.",
        "Options belong to `cuda.jit`, after the signature: `cuda.jit(void(…), {0}=…)`.",
    ),
    Meaning(
        r"This kernel was compiled for (\w+), and gets (?:readonly )?array\(",
        "The signature declares a number of type {0}, but the argument is an array.",
        "A contiguous vector is `{0}[::1]`.",
    ),
    Meaning(
        r"compiled for another number of arguments: (\d+), and gets (\d+)",
        "The signature lists {0} types, but the launch passes {1} arguments.",
        "List one type for each argument, in the order of the kernel's parameters.",
    ),
    Meaning(
        r"compiled for array\((\w+), (\d)d, \w\), and gets (?:readonly )?array\(\w+, (?!\2)(\d)d",
        "The signature declares an array with {1} dimensions, but the argument has {2}.",
        "A contiguous vector is `{0}[::1]`, and a contiguous matrix `{0}[:, ::1]`.",
    ),
    Meaning(
        r"'tuple' object cannot be interpreted as an integer",
        "`cuda.{0}({1})` returns {1} numbers, one for each axis.",
        "If the grid has one axis, write `cuda.{0}(1)`.",
        code=r"\bcuda\.(grid|gridsize)\(\s*([23])\s*\)",
    ),
    Meaning(
        r"There are no fields in dtype (\w+)",
        "`{0}[::1]` does not make a vector's type, because `{0}` is a type of NumPy.",
        "Take Numba's type: `from_dtype(out.dtype)[::1]`.",
        code=r"\[::",
    ),
)
