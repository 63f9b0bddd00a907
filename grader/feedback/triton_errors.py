"""Errors of Triton's compiler, interpreter and launcher: what each one means and how to fix it."""

from __future__ import annotations

import builtins

from grader.feedback.python_errors import Meaning

_UNEQUAL = r"equal reduction dimensions|[Ff]irst input shape .* second input shape .* not compatible"

PRODUCTS: tuple[Meaning, ...] = (
    Meaning(
        r"AssertionError(?:: AssertionError)?(?:\(\))?:?\s*$",
        "The block that is stored does not have the descriptor's `block_shape`.",
        "Compare the shape of the value with the `block_shape` of the descriptor that stores it.",
        code=r"\.store\(\[",
    ),
    Meaning(
        r"AssertionError(?:: AssertionError)?(?:\(\))?:?\s*$",  # Triton's assertion about the accumulator has no text
        "`tl.dot` refused the accumulator, its third argument: it must be float32 and have the shape of the product, "
        "BLOCK_M × BLOCK_N.",
        "Start it with `tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)`, and round to float16 when you store.",
        code=r"\btl\.dot\(.*,.*,",
    ),
    Meaning(
        _UNEQUAL,
        "The blocks come from tensor descriptors, and their `block_shape` is still the placeholder that they were made "
        "with: no `pre_hook` sets it.",
        "Pass `pre_hook=…` to every `triton.Config`: a function that sets each descriptor's `block_shape` from "
        "`BLOCK_M`, `BLOCK_N` and `BLOCK_K`. Without tuning, make the descriptor with the final block shape.",
        cell=r"(?s)\A(?!.*\bpre_hook\s*=).*\bTensorDescriptor\b",
    ),
    Meaning(
        _UNEQUAL,
        "The blocks come from tensor descriptors, so their shapes are the descriptors' `block_shape`: the columns of "
        "the first must match the rows of the second, the step along K.",
        "Give `a` the block shape `[BLOCK_M, BLOCK_K]` and `b` `[BLOCK_K, BLOCK_N]`. If a `pre_hook` sets them, does "
        "every `triton.Config` have it?",
        cell=r"\bTensorDescriptor\b",
        code=r"\.load\(\s*\[",
    ),
    Meaning(
        _UNEQUAL,
        "The two blocks of `tl.dot` have incompatible shapes: the columns of the first must match the rows of the "
        "second, the step along K.",
        "The block of `a` is BLOCK_M × BLOCK_K and that of `b` is BLOCK_K × BLOCK_N: did you swap `[:, None]` and "
        "`[None, :]` in one of them?",
    ),
    Meaning(
        r"must have equal ranks >= 2|Both inputs must be either 2D or 3D",
        "`tl.dot` multiplies two blocks of two axes each.",
        "Multiply a tile by a vector with `tl.sum(tile * vector[None, :], axis=1)`.",
    ),
    Meaning(
        r"Both operands must be same dtype\. Got (\w+) and (\w+)",
        "`tl.dot` needs two blocks of the same type, but got {0} and {1}.",
        "Make both float16, in the load or with `.to(tl.float16)`; only the accumulator is float32.",
    ),
    Meaning(
        r"Conflicting meta-parameters: (.+?)\. Make sure",
        "`triton.autotune` chooses {0}, but the launch passes it as well.",
        "Remove it from the launch. If the grid depends on it, make the grid a function: `lambda chosen: "
        '(triton.cdiv(M, chosen["BLOCK_M"]),)`.',
    ),
    Meaning(
        r"(?:strides?|base) must be 16-byte aligned|[Ll]ast dim(?:ension)? must be (?:contiguous|1)",
        "A tensor descriptor does not support this layout. It needs contiguous rows, and an address and a row stride "
        "that are multiples of 16 bytes.",
        "Check first: `x.stride(1) == 1 and x.stride(0) % 8 == 0` for float16. Use a kernel with pointers for all "
        "other layouts.",
    ),
    Meaning(
        r"block offset start must be 16-byte aligned",
        "A descriptor takes the tile's first element as its offset, and the last offset must be a multiple of 16 "
        "bytes.",
        "Pass row and column, such as `[row * BLOCK_M, k * BLOCK_K]`, not the index of the tile.",
    ),
)

TRITON: tuple[Meaning, ...] = (
    Meaning(
        r"^\w*(?:Error|Exception)\b",
        "The simulator's tensors are in CPU memory, so this check fails here. On a GPU it holds: this says nothing "
        "about your work.",
        "Write `x.is_cuda`, which is true in the simulator as well.",
        code=r"\.device(?:\.type)?\s*[!=]=\s*[\"']cuda",
    ),
    Meaning(
        r"'int' object is not iterable",
        "Python's `{0}` was called on a block.",
        "Use `tl.{0}(block, axis=0)`.",
        code=r"(?<![\w.])(sum|max|min)\(",
    ),
    Meaning(
        r"'(?:int|LoopIndex)' object is not iterable|only 0-dimensional arrays can be converted"
        r"|unsupported tensor index|__setitem__ is not supported"
        r"|'\w+' object (?:is not subscriptable|does not support item assignment)",
        "Inside a kernel, pointers and blocks cannot be indexed: brackets neither load nor store elements.",
        "Write `tl.load(x_ptr + offsets, mask=…)` and `tl.store(out_ptr + offsets, …)`. From a block, take elements "
        "with `tl.sum` or `tl.where`.",
        code=r"\w\s*\[",
        cell=r"triton\.jit",
    ),
    Meaning(
        r"axis \d+ out of bounds for shape \[\]",
        "This is a single number, not a block. It is already reduced, or comes from a function outside `tl`.",
        "Reduce a block only once, and use `tl` functions: `tl.exp`, not `math.exp`.",
    ),
    Meaning(
        r"arange's range must be a power of (?:2|two)",
        "The length of a `tl.arange` must be a power of two.",
        "Round it up with `triton.next_power_of_2(n)`, pass it as a `tl.constexpr`, and mask the elements past n.",
    ),
    Meaning(
        r"arange's arguments must be of type tl\.constexpr|Shape element \d+ must have type `constexpr",
        "The length of a block must be known at compile time.",
        "Declare the block size as a parameter, `BLOCK_SIZE: tl.constexpr`, and compute it before the launch.",
    ),
    Meaning(
        r"Cannot access global variable (\w+) from within @jit",
        "A kernel cannot read the Python variable `{0}`, which is defined outside it.",
        "Pass `{0}` to the kernel as an argument, or define it as `{0} = tl.constexpr(…)`.",
    ),
    Meaning(
        r"unexpected type (fp\d+|bf16)",
        "`//` divides integers, and here it gets an {0}.",
        "Divide with `/`.",
        code=r"//",
    ),
    Meaning(
        r"incompatible dimensions at index (\d+): (\d+) and (\d+)",
        "Two blocks have different lengths in dimension {0}: {1} and {2}. Does `tl.{3}` reduce the right axis?",
        "A reduction over `axis=1` leaves one number per row of the block, and one over `axis=0` one per column.",
        code=r"\btl\.(max|min|sum)\(.*axis",
    ),
    Meaning(
        r"incompatible dimensions at index (\d+): (\d+) and (\d+)",
        "Two blocks have different lengths in dimension {0}: {1} and {2}.",
        "Build both from the same `tl.arange`, or give one of them length 1 in that dimension: `[:, None]`, `[None, "
        ":]`.",
    ),
    Meaning(
        r"Expected pointer argument to have shape",
        "The pointers have one shape, and the values or the mask have another.",
        "Give all of them the same `[:, None]` and `[None, :]`.",
    ),
    Meaning(
        r"'int' object is not callable|'tensor' object has no attribute '(?:size|stride)|list index out of range",
        "A tensor becomes a pointer in a kernel: it has no `{0}` there.",
        "Pass the number to the kernel as an argument: `kernel[grid](x, …, x.numel())`.",
        code=r"\b\w+\.(numel|size|stride|shape)\b",
        cell=r"triton\.jit",
    ),
    Meaning(
        r"'tuple' object has no attribute '?(?:append|extend|insert)",
        "Triton compiles a list to a tuple, which cannot grow.",
        "Use a variable for each value, or a block of them.",
    ),
    Meaning(
        r"Unsupported ptr type .* in `tl\.(load|store)`",
        "`tl.{0}` got something that is not a pointer.",
        "Add the offsets to one of the kernel's pointer arguments: `x_ptr + offsets`.",
    ),
    Meaning(
        r"(?:Value|Mask|Other) argument cannot be block type if pointer argument is not a block",
        "The pointer is a single address, but its value or mask is a whole block.",
        "Add the offsets to the pointer: `tl.load(x_ptr + offsets, mask=mask)`, `tl.store(out_ptr + offsets, …)`.",
    ),
    Meaning(
        r"cannot add pointers together",
        "Two addresses were added, not the values stored there.",
        "Load both first: `x = tl.load(x_ptr + offsets, mask=mask)`.",
    ),
    Meaning(
        r"unsupported operand type\(s\) for (?:@|\*\*)[^:]*: '(?:tensor|Tensor)'"
        r"|'tensor' object has no attribute '__pow__'",
        "Blocks support neither `@` nor `**`.",
        "Multiply two tiles with `tl.dot(a, b)` or `tl.dot(a, b, total)`, and elements with `x * x`.",
    ),
    Meaning(
        r"invalid operands of type pointer<\w+> and (?:triton\.language\.)?(?:float\w+|fp\w+)",
        "An offset is not an integer: `/` returns a float.",
        "Divide integers with `//`.",
    ),
    Meaning(
        r"`other` cannot be provided without `mask`",
        "`other` is the value of masked elements, but this load has no mask.",
        "Pass both: `tl.load(x_ptr + offsets, mask=mask, other=0.0)`.",
    ),
    Meaning(
        r"simultaneous multiple comparison is not supported",
        "Triton cannot compile a chained comparison, such as `0 <= x < n`.",
        "Write `(0 <= x) & (x < n)`.",
    ),
    Meaning(
        r"Boolean value of Tensor with more than one value is ambiguous",
        "A block has one truth value per element, so `if`, `and` and `0 < x < n` do not work on it.",
        "Compare element by element, `(0 < x) & (x < n)`, and select with a mask or `tl.where`.",
    ),
    Meaning(
        r"numel \((\d+)\) exceeds triton maximum tensor numel \((\d+)\)",
        "A block of {0} elements is too large. A block's length is a power of two, and the largest is 2^20 = {1}.",
        "Process the data in smaller blocks, with a loop or with more programs.",
    ),
    Meaning(
        r"Loop-carried variable (\w+) has initial type (.+?) but is re-assigned to (.+?) in loop",
        "`{0}` starts as {1} and becomes {2} inside the loop, but a variable in a kernel keeps its type.",
        "Start with the type it has later, for example `0.0` or `tl.zeros((BLOCK_SIZE,), tl.float32)`.",
    ),
    Meaning(
        r"Mismatched type for (\w+) between then block \((.+?)\) and else block \((.+?)\)"
        r"|nitial value for `(\w+)` is of type (.+?), but the \w+ block redefines it as (.+?)(?:'\)|$)",
        "`{0}{3}` is {1}{4} or {2}{5}, depending on an `if`, but a variable in a kernel has one type.",
        "Convert in one branch, for example `.to(tl.float32)`, and load with the same shape in both.",
    ),
    Meaning(
        r"cannot reassign constexpr (\w+) in the loop|(\w+) is already defined\. constexpr cannot be reassigned",
        "`{0}{1}` is a `tl.constexpr`, whose value cannot change.",
        "Give the new value a name of its own.",
    ),
    Meaning(
        r"unsupported AST node type: (?:Break|Continue)|Cannot have `return` statements inside `(?:while|for)`",
        "A loop in a kernel has no `break`, no `continue` and no `return`.",
        "Put the condition into the bound of the loop, into an `if` around its body, or into a mask.",
    ),
    Meaning(
        r"Only `range` and `static_range` iterators|'\w+' object has no attribute 'func'",
        "A `for` loop in a kernel can only go over `range`, `tl.range` or `tl.static_range`.",
        "Loop over numbers: `for k in tl.static_range(2)` can index a tuple.",
        code=r"\bfor\b",
    ),
    Meaning(
        r"For (?:loop bounds|lower bound|upper bound|step)\b.* must|tl\.static_range \w+ value is not a constexpr",
        "The bounds of a loop in a kernel are single integers, and those of `tl.static_range` are constants.",
        "Divide with `//` or `tl.cdiv`, not with `/`, and use `range` if a bound is computed.",
    ),
    Meaning(
        rf"NameError\(['\"]({'|'.join(filter(str.islower, dir(builtins)))}) is not defined"
        r"|object of type 'tensor' has no (len)\(\)|\b(float|int)\(\) argument must be .* not 'tensor'",
        "Triton cannot compile Python's `{0}{1}{2}`.",
        "Use `triton.language`: `tl.sum(x, axis=0)`, `tl.abs(x)`, `x.to(tl.float32)`.",
    ),
    Meaning(
        r"unsupported AST node type: (\w+)|'((?:Not)?In)' object has no attribute '__name__'",
        "Triton cannot compile Python's `{0}{1}`.",
        "Use arithmetic, `for … in range`, `if` on scalars, and `tl` functions.",
    ),
    Meaning(
        r"only tuple comprehensions are supported|Cannot evaluate f-string|StopIteration\(\)|nested function definition"
        r"|ultiple assignments? (?:is|are) not supported",
        "Triton cannot compile this Python.",
        "Use arithmetic, `for … in range` and `tl` functions. Define functions outside of the kernel, with "
        "`@triton.jit`; assign one name per line; print with `tl.device_print`.",
    ),
    Meaning(
        r"Expected dtype .*'fp32', 'fp64'.* but got (\w+)",
        "This function takes floating-point numbers, but got {0}.",
        "Convert first: `.to(tl.float32)`.",
    ),
    Meaning(
        r"invalid axis (\d+)\. Expected|axis (\d+) out of bounds for shape",
        "This block has no axis {0}{1}.",
        "Reduce a one-dimensional block, such as one row, over `axis=0`.",
    ),
    Meaning(
        r"program_id axis must be 0, 1, or 2",
        "A grid has at most three axes.",
        "Use `tl.program_id(0)`, `tl.program_id(1)` or `tl.program_id(2)`.",
    ),
    Meaning(
        r"min requires at least 2 values",
        "Inside a kernel, Python's `max` and `min` compare two values. They do not reduce a block.",
        "Reduce with `tl.max(x, axis=0)` or `tl.min(x, axis=0)`.",
    ),
    Meaning(
        r"Input shapes should have M >= (\d+), N >= (\d+) and K >= (\d+)",
        "The blocks of `tl.dot` are too small: they need at least {0} × {1} elements, and {2} along K.",
        "Use larger tiles.",
    ),
    Meaning(
        r"Block pointers have been removed|module 'triton\.language' has no attribute 'advance'",
        "This version of Triton has no block pointers.",
        "Write `tl.load(x_ptr + offsets, mask=…)`, or make a tensor descriptor with `tl.make_tensor_descriptor`.",
    ),
    Meaning(
        r"module 'triton\.language' has no attribute '(\w+)'",
        "`tl.{0}` does not exist.",
        "Look it up in the documentation of `triton.language`, which has only some of PyTorch's functions.",
    ),
    Meaning(
        r"Unsupported function referenced: <function (\w+)>",
        "`{0}` is a plain Python function, and a kernel can only call functions that Triton compiles.",
        "If `{0}` is yours, write `@triton.jit` above it. Otherwise use one from `triton.language`.",
    ),
    Meaning(
        r"Unsupported function referenced|must be (?:Tensor|real number), not tensor"
        r"|only 0-dimensional arrays can be converted",
        "A kernel called a function that is not part of Triton.",
        "Use the one from `triton.language`: `tl.exp`, not `math.exp` or `torch.exp`.",
    ),
    Meaning(
        r"`if` conditionals can only accept values of type .*, not objects of type (\w+)",
        "An `if` in a kernel takes a number or a truth value, but this is a {0}.",
        "Compare, for example `if ACTIVATION is not None:`.",
    ),
    Meaning(
        r"'tensor' object has no attribute '(\w+)'",
        "A block in a kernel is not a torch tensor and has no `{0}`.",
        "Use functions of `triton.language`, such as `tl.load`, `tl.sum` and `tl.max`.",
    ),
    Meaning(
        r"Cannot call @triton\.jit'd outside",
        "`tl.{0}` works only inside a kernel.",
        "Outside of one, write `triton.cdiv(…)`.",
        code=r"\btl\.(cdiv)\(",
    ),
    Meaning(
        r"Cannot call @triton\.jit'd outside|'builtin_function_or_method' object has no attribute '(?:scalar|is_ptr)'"
        r"|Did you forget to add (?:\[grid\]|@triton\.jit)|'InterpreterBuilder' object has no attribute 'grid_idx'",
        "A kernel or a `tl` function was called like a Python function.",
        "Launch the kernel over a grid: `kernel[(programs,)](x, out, n, BLOCK_SIZE=1024)`. Write `@triton.jit` above "
        "other functions that call `tl`.",
    ),
    Meaning(
        r"got an unexpected keyword argument '(num_warps|num_stages|num_ctas)'",
        "`{0}` is a launch option, but this is a plain function call.",
        "Launch the kernel over a grid: `kernel[(programs,)](…, {0}=4)`.",
    ),
    Meaning(
        r"^KeyError: '(\w+)'$",
        "The grid function asks for `{0}`, but neither the launch nor the `triton.Config` has that name.",
        "Write the name of the kernel's parameter.",
        code=r"\bcdiv\(.*\w\[[\"']",
    ),
    Meaning(
        r"object of type 'int' has no len\(\)|'int' object is not subscriptable",
        "The grid must be a tuple.",
        "Write `kernel[(programs,)](…)`, with the comma.",
    ),
    Meaning(
        r"'tuple' object cannot be interpreted as an integer",
        "The grid has a tuple in it. A Triton grid counts programs and has no threads: the block size is a "
        "`tl.constexpr`, and `num_warps` an option of the launch.",
        "Write `kernel[(programs,)](…)`, not `kernel[(programs,), threads](…)` as in Numba.",
        code=r"\w\[",
    ),
    Meaning(
        r"'float' object cannot be interpreted as an integer",
        "The number of programs, or a length, is a float: `/` returns one even if the division is exact.",
        "Use `triton.cdiv(n, BLOCK_SIZE)`, which rounds up, or `//`.",
    ),
    Meaning(
        r"Pointer argument.* cannot be accessed from Triton \(cpu tensor\?\)",
        "A GPU kernel got a tensor that is in CPU memory.",
        "Use the tensors that the function gets, and create others with `device=x.device`.",
    ),
    Meaning(
        r"'numpy\.ndarray' object has no attribute",
        "`{0}` is NumPy's, and a kernel can only call functions that Triton compiles.",
        "Use `triton.language`: `tl.arange`, `tl.zeros`, `tl.exp`.",
        code=r"^(?!.*\]\().*\b((?:np|numpy)\.\w+)\(",
    ),
    Meaning(
        r"must be either uint64 or have data_ptr"
        r"|'(?:numpy\.ndarray|list|tuple|float)' object has no attribute '(?:type|data_ptr)'",
        "A kernel got an argument that is neither a tensor nor a number.",
        "Pass torch tensors as pointers and plain numbers for the rest.",
    ),
    Meaning(
        r"Keyword argument (\w+) was specified but unrecognised",
        "The kernel has no parameter `{0}`.",
        "Compare the launch with the kernel's parameters.",
    ),
    Meaning(r"num_warps must be a power of 2", "`num_warps` must be 1, 2, 4, 8, 16 or 32.", "Use one of these values."),
    Meaning(
        r"out of resource: ([\w ]+), Required: (\d+), Hardware limit: (\d+)",
        "One program needs more {0} than the GPU has: {1}, but the limit is {2}.",
        "Use a smaller block or a lower `num_stages`.",
    ),
    Meaning(
        r"Triton Error \[CUDA\]: invalid argument",
        "The GPU refused the launch.",
        "The grid needs at least one program, and at most 65,535 along its second and third axes.",
    ),
)
