"""Errors of Triton's compiler, interpreter and launcher."""

from __future__ import annotations

from grader.feedback.python_errors import Meaning

# Errors of matrix products in Triton: `tl.dot`, `triton.autotune` and tensor descriptors.

PRODUCTS: tuple[Meaning, ...] = (
    Meaning(
        r"equal reduction dimensions|[Ff]irst input shape .* second input shape .* not compatible",
        "The two blocks of `tl.dot` do not fit: the first one's columns and the second one's rows are steps along K.",
        "The block of `a` is BLOCK_M × BLOCK_K, that of `b` is BLOCK_K × BLOCK_N: which of them has `[:, None]` and "
        "`[None, :]` exchanged?",
    ),
    Meaning(
        r"Both operands must be same dtype\. Got (\w+) and (\w+)",
        "`tl.dot` multiplies blocks of one type, and here are {0} and {1}.",
        "Load both as they are, float16; the accumulator alone is float32.",
    ),
    Meaning(
        r"Conflicting meta-parameters: (.+?)\. Make sure",
        "{0} is chosen by `triton.autotune`, and the launch names it, too.",
        "Leave it out of the launch. A grid that needs it is a function: `lambda chosen: (triton.cdiv(M, "
        'chosen["BLOCK_M"]),)`.',
    ),
    Meaning(
        r"(?:strides|base) must be 16-byte aligned|Last dimension must be contiguous",
        "This tensor cannot have a descriptor: that asks for elements of a row that are neighbours, and for an address "
        "and a distance between rows that are multiples of 16 bytes.",
        "Ask first, `x.stride(1) == 1 and x.stride(0) % 8 == 0` for float16. Let a kernel with pointers do the rest.",
    ),
    Meaning(
        r"block offset start must be 16-byte aligned",
        "A descriptor loads and stores tiles whose corner is given in elements, the last of them a multiple of 16 "
        "bytes.",
        "Give rows and columns, such as `[row * BLOCK_M, k * BLOCK_K]`, and not the numbers of tiles.",
    ),
)


# Errors of Triton's compiler, interpreter and launcher.

_WORDED_ALIKE = r"'int' object is not iterable|only 0-dimensional arrays can be converted"

TRITON: tuple[Meaning, ...] = (
    Meaning(
        r"'NoneType' object has no attribute 'to_tensor'",
        "Triton's interpreter cannot call `.{0}()` as a method of a block.",
        "Write `tl.{0}(x)` in place of `x.{0}()`.",
        code=r"\.(exp2?|log2?|sqrt|rsqrt|abs|sin|cos|floor|ceil|erf|sigmoid)\(\s*\)",
    ),
    Meaning(
        r"'NoneType' object has no attribute 'to_tensor'",
        "A method of a block was called that Triton's interpreter does not know as a method.",
        "Call the function of `tl` with the block as its argument, for example `tl.exp(x)` in place of `x.exp()`.",
    ),
    Meaning(
        r"'int' object is not iterable",
        "Python's `{0}` was called on a block.",
        "Use `tl.{0}(…, axis=0)`, with the block for the dots.",
        code=r"(?<![\w.])(sum|max|min)\(",
    ),
    Meaning(
        _WORDED_ALIKE,
        "A pointer is not indexed.",
        "Store with `tl.store({0} + offsets, …, mask=…)`.",
        code=r"^\s*(\w*ptr\w*)\s*\[.*\]\s*[-+*/]?=(?!=)",
    ),
    Meaning(
        _WORDED_ALIKE,
        "A pointer is not indexed.",
        "Load with `tl.load({0} + offsets, mask=…)`.",
        code=r"\b(\w*ptr\w*)\s*\[",
    ),
    Meaning(
        r"'int' object is not iterable",
        "Inside a kernel neither pointers nor blocks are indexed.",
        "Load the elements that you need with `tl.load(x_ptr + offsets, mask=…)`, or reduce a block with `tl.sum`.",
        code=r"\w\s*\[",
    ),
    Meaning(
        r"axis \d+ out of bounds for shape \[\]",
        "This is a single number, not a block: it was reduced before, or computed by a function that is not of `tl`.",
        "Reduce a block once, and compute it with the functions of `tl`: `tl.exp`, not `math.exp`.",
    ),
    Meaning(
        r"arange's range must be a power of (?:2|two)",
        "The length of a `tl.arange` must be a power of two.",
        "Round it up with `triton.next_power_of_2(n)`, pass that as a `tl.constexpr`, and mask the lanes past n.",
    ),
    Meaning(
        r"arange's arguments must be of type tl\.constexpr",
        "`tl.arange` needs numbers that are known when the kernel is compiled.",
        "Declare the block size as a parameter `BLOCK_SIZE: tl.constexpr` and compute it before the launch.",
    ),
    Meaning(
        r"arange\(\) missing 1 required positional argument: 'end'",
        "`tl.arange` has no one-argument form.",
        "Write `tl.arange(0, BLOCK_SIZE)`.",
    ),
    Meaning(
        r"Cannot access global variable (\w+) from within @jit",
        "A kernel cannot read the Python variable `{0}`, which stands outside of it.",
        "Pass `{0}` as an argument of the kernel, or declare it as `{0} = tl.constexpr(…)`.",
    ),
    Meaning(
        r"incompatible dimensions at index (\d+): (\d+) and (\d+)",
        "Two blocks of different lengths meet in one operation: {1} and {2} (dimension {0}).",
        "Derive both from the same `tl.arange`, or give one of them a length of 1 there: `[:, None]`, `[None, :]`.",
    ),
    Meaning(
        r"Unsupported ptr type .* in `tl\.(load|store)`",
        "`tl.{0}` was given something that is no pointer.",
        "Add the offsets to a pointer argument of the kernel: `x_ptr + offsets`.",
    ),
    Meaning(
        r"Value argument cannot be block type if pointer argument is not a block",
        "A whole block is stored to a single address.",
        "Add the offsets to the pointer: `tl.store(out_ptr + offsets, …, mask=mask)`.",
    ),
    Meaning(
        r"cannot add pointers together",
        "Two addresses were added, not the values that lie there.",
        "Load both first: `x = tl.load(x_ptr + offsets, mask=mask)`.",
    ),
    Meaning(
        r"unsupported operand type\(s\) for @: '(?:tensor|Tensor)'",
        "Blocks have no `@`.",
        "Multiply two tiles with `tl.dot(a, b)`; of a running sum, `total = tl.dot(a, b, total)`.",
    ),
    Meaning(
        r"invalid operands of type pointer<\w+> and (?:triton\.language\.)?(?:float\w+|fp\w+)",
        "An offset is not an integer: `/` gives a float.",
        "Divide integers with `//`.",
    ),
    Meaning(
        r"`other` cannot be provided without `mask`",
        "`other` says what masked lanes hold, and this load has no mask.",
        "Give it both: `tl.load(x_ptr + offsets, mask=mask, other=0.0)`.",
    ),
    Meaning(
        r"simultaneous multiple comparison is not supported"
        r"|Boolean value of Tensor with more than one value is ambiguous",
        "A block has many truth values, so `if`, `and` and `0 < x < n` cannot be used on it.",
        "Compare element by element, `(0 < x) & (x < n)`, and choose with a mask or `tl.where`.",
    ),
    Meaning(
        r"numel \((\d+)\) exceeds triton maximum tensor numel \((\d+)\)",
        "A block of {0} elements is too large: {1} is the most.",
        "Work through the data in smaller blocks, in a loop or with more programs.",
    ),
    Meaning(
        r"Loop-carried variable (\w+) has initial type (\S+) but is re-assigned to (\S+) in loop",
        "`{0}` begins as {1} and becomes {2} inside the loop; in a kernel a variable keeps its type.",
        "Begin with the type that it has later, for example `0.0` or `tl.zeros((BLOCK_SIZE,), tl.float32)`.",
    ),
    Meaning(
        r"unsupported AST node type: (\w+)",
        "A kernel is compiled, and the compiler does not know Python's `{0}`.",
        "Use arithmetic, `for … in range`, `if` on single values, and the functions of `tl`.",
    ),
    Meaning(
        r"only tuple comprehensions are supported|Cannot evaluate f-string",
        "A kernel is compiled, and this piece of Python cannot be.",
        "Use arithmetic, `for … in range` and the functions of `tl`; `tl.device_print` prints.",
    ),
    Meaning(
        r"Expected dtype .*'fp32', 'fp64'.* but got (\w+)",
        "This function takes floating-point numbers and was given {0}.",
        "Convert first: `.to(tl.float32)`.",
    ),
    Meaning(
        r"invalid axis (\d+)\. Expected|axis (\d+) out of bounds for shape",
        "A block has no axis {0}{1}.",
        "A one-dimensional block, such as one row, is reduced over `axis=0`.",
    ),
    Meaning(
        r"program_id axis must be 0, 1, or 2",
        "A grid has three axes at most.",
        "Ask for `tl.program_id(0)`, `(1)` or `(2)`.",
    ),
    Meaning(
        r"min requires at least 2 values",
        "Python's `max` and `min` compare two values inside a kernel; they do not reduce a block.",
        "Reduce with `tl.max(x, axis=0)` or `tl.min(x, axis=0)`.",
    ),
    Meaning(
        r"Input shapes should have M >= (\d+), N >= (\d+) and K >= (\d+)",
        "The blocks of `tl.dot` are too small: at least {0} × {1}, and {2} along the inner dimension.",
        "Choose larger tiles.",
    ),
    Meaning(
        r"module 'triton\.language' has no attribute '(\w+)'",
        "There is no `tl.{0}`.",
        "Look for its name in Triton's documentation of `triton.language`; not all of PyTorch is there.",
    ),
    Meaning(
        r"Unsupported function referenced|must be Tensor, not tensor|only 0-dimensional arrays can be converted",
        "A function that is not Triton's was called inside a kernel.",
        "Use the one of `triton.language`, for example `tl.exp` in place of `torch.exp` or `math.exp`.",
    ),
    Meaning(
        r"unsupported tensor index|Did you forget to add @triton\.jit",
        "Inside a kernel neither pointers nor blocks are indexed with `[i]`, and only functions of Triton are called.",
        "Load with `tl.load(x_ptr + offsets)`, store with `tl.store`, and compute sizes before the launch.",
    ),
    Meaning(
        r"'tensor' object has no attribute '(\w+)'",
        "A block in a kernel is no torch tensor: it has no `{0}`.",
        "Use the functions of `triton.language`, such as `tl.load`, `tl.sum`, `tl.max`.",
    ),
    Meaning(
        r"Cannot call @triton\.jit'd outside|'builtin_function_or_method' object has no attribute '(?:scalar|is_ptr)'"
        r"|Did you forget to add \[grid\]|'InterpreterBuilder' object has no attribute 'grid_idx'",
        "A kernel, or a function of `tl`, was called like a Python function.",
        "Launch the kernel over a grid: `kernel[(programs,)](x, out, n, BLOCK_SIZE=1024)`.",
    ),
    Meaning(
        r"got an unexpected keyword argument '(num_warps|num_stages|num_ctas)'",
        "`{0}` is for a launch, and this is a call of a function.",
        "Launch the kernel over a grid: `kernel[(programs,)](…, {0}=4)`.",
    ),
    Meaning(
        r"object of type 'int' has no len\(\)|'int' object is not subscriptable",
        "The grid of a launch must be a tuple.",
        "Write `kernel[(programs,)](…)`, with the comma.",
    ),
    Meaning(
        r"'float' object cannot be interpreted as an integer",
        "A number of programs, or a length, is a float: `/` gives one even where the division is exact.",
        "Use `triton.cdiv(n, BLOCK_SIZE)`, which rounds up, or `//`.",
    ),
    Meaning(
        r"Pointer argument.* cannot be accessed from Triton \(cpu tensor\?\)",
        "A kernel on the GPU was given a tensor that lies in the CPU's memory.",
        "Use the tensors that the function is given; make others with `device=x.device`.",
    ),
    Meaning(
        r"must be either uint64 or have data_ptr"
        r"|'(?:numpy\.ndarray|list|tuple|float)' object has no attribute '(?:type|data_ptr)'",
        "A kernel was given something that is neither a tensor nor a number.",
        "Pass torch tensors for pointers, and plain numbers for the rest.",
    ),
    Meaning(
        r"Keyword argument (\w+) was specified but unrecognised",
        "The kernel has no parameter `{0}`.",
        "Compare the launch with the kernel's parameters.",
    ),
    Meaning(
        r"num_warps must be a power of 2",
        "`num_warps` must be 1, 2, 4, 8, 16 or 32.",
        "Choose one of these.",
    ),
    Meaning(
        r"out of resource: ([\w ]+), Required: (\d+), Hardware limit: (\d+)",
        "One program needs more {0} than the GPU has: {1}, and {2} is the most.",
        "Make the block smaller, or lower `num_stages`.",
    ),
    Meaning(
        r"Triton Error \[CUDA\]: invalid argument",
        "The GPU refused the launch.",
        "The grid must hold at least one program, and at most 65,535 along its second and third axis.",
    ),
)
