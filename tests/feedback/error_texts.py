"""Errors, word for word from the tools, each with a part of its advice.

Provoked with triton 3.7.1 (compiler and interpreter), g++ 12.2, NVIDIA's compiler 13.0, numba 0.68.1, torch 2.13. Those
marked "from its source" need a GPU; they were copied from the tool's own source or documentation.
"""

from __future__ import annotations

__all__ = ["TEXTS", "TEXTS_WITH_LINES"]

_NOT_ITERABLE = "TypeError: 'int' object is not iterable"
_SCALARS = "TypeError: only 0-dimensional arrays can be converted to Python scalars"

_UNEQUAL = "AssertionError: input and other must have equal reduction dimensions"

# Messages with several causes, each with the line of the submission that tells them apart.
TEXTS_WITH_LINES: tuple[tuple[str, str, str], ...] = (
    (
        "no match for ‘operator*’ (operand types are ‘cuda_on_cpu::Coordinate’ and ‘const dim3’)",
        "int i = blockIdx.x * blockDim + threadIdx.x;",
        "Write `blockDim.x`",
    ),
    (
        "ValueError: Cannot make_shape_compatible: incompatible dimensions at index 0: 64 and 32",
        "new_max = tl.maximum(row_max, tl.max(scores, axis=0))",
        "Does `tl.max` reduce the right axis?",
    ),
    ("TypeError: unexpected type fp32", "tl.store(out_ptr, total // n)", "Divide with `/`."),
    ("AssertionError", "out.store([row, column], low.to(tl.float16))", "does not have the descriptor's `block_shape`"),
    ("The kernel wrote to `x`, which is an input.", "return x.sub_(mean).div_(std)", "`sub_` changes `x` in place"),
    ("The kernel wrote to `x`, which is an input.", "out.copy_(module.square(x))", "the kernel was stopped there"),
    (
        "TypeError: 'tuple' object cannot be interpreted as an integer",
        "for i in range(cuda.grid(2), n):",
        "write `cuda.grid(1)`",
    ),
    ("KeyError: 'There are no fields in dtype float32.'", "    vector = real[::1]", "`from_dtype(out.dtype)[::1]`"),
    ('no operator "+" matches these operands', "int i = blockIdx.x * blockDim.x + threadIdx;", "Write `threadIdx.x`"),
    ('no suitable conversion function from "const uint3" to "int" exists', "int i = threadIdx;", "`threadIdx.x`"),
    ("cannot convert ‘const uint3’ to ‘int’ in initialization", "int i = threadIdx;", "`threadIdx.x`"),
    (
        "Outside: thread 0 of block 0 reads a `float` on line 10, at 0x7ff07ff03f5a2876, which is in no array that the "
        "kernel was given.",
        "__global__ void square_kernel(float** x, float** out, int h, int w) {",
        "take `float*`, not `float**`",
    ),
    (
        "RuntimeError: Cannot call @triton.jit'd outside of the scope of a kernel",
        "    kernel[(tl.cdiv(n, 1024),)](x, out, n)",
        "`triton.cdiv(…)`",
    ),
    (
        "TypeError: 'int' object is not callable",
        "@triton.jit … mask = i < x.numel()",
        "it has no `numel` there. Pass the number to the kernel",
    ),
    (
        "TypeError: 'LoopIndex' object is not iterable",
        "@triton.jit … out[i] = x[i] + y[i]",
        "brackets neither load nor store elements",
    ),
    (
        "AttributeError: 'Tuple' object has no attribute 'func'",
        "    for ptr in (x_ptr, y_ptr):",
        "can only go over `range`",
    ),
    (
        "AttributeError: 'numpy.ndarray' object has no attribute 'type'",
        "    i = first + np.arange(0, SIZE)",
        "`np.arange` is NumPy's",
    ),
    ("KeyError: 'BLOCK'", 'lambda meta: (triton.cdiv(n, meta["BLOCK"]),)', "asks for `BLOCK`"),
    ("IndexError: list index out of range", "@triton.jit … n = x.shape[0]", "it has no `shape` there"),
    ("AssertionError: x must be on a GPU", "    assert x.device.type == 'cuda'", "this says nothing about your work"),
    (
        "CUDADriverError: CUDA_ERROR_INVALID_VALUE: invalid argument",  # an H200, CUDA 13
        'extern "C" __global__ void __launch_bounds__(64) power(',
        "`__launch_bounds__` sets the largest block",
    ),
    ("AssertionError:", "        sums = tl.dot(a, b, sums)", "refused the accumulator"),  # an H200, Triton 3.6
    (_NOT_ITERABLE, "    denominator = sum(e)", "Python's `sum` was called on a block. Use `tl.sum("),
    (_NOT_ITERABLE, "    x = x - max(x)", "Python's `max` was called on a block. Use `tl.max("),
    (_NOT_ITERABLE, "@triton.jit … y = tl.sum(x, axis=0) + y_ptr[0]", "pointers and blocks cannot be indexed"),
    (
        "ValueError: unsupported tensor index: constexpr[0]",
        "@triton.jit … y = x[0]",
        "`tl.load(x_ptr + offsets, ",
    ),
    ("__setitem__ is not supported in triton", "@triton.jit … block[0] = 1.0", "or `tl.where`"),
    (_SCALARS, "@triton.jit … out_ptr[offsets] = x + y", "`tl.store(out_ptr + offsets, …)`"),
    (_SCALARS, "    x = math.exp(x)", "`tl.exp`, not `math.exp` or `torch.exp`"),
    ("error: expression must have integral or unscoped enum type", "out[i] = x[i] ^ 2;", "no power operator"),
    ("invalid type argument of unary '*' (have 'int')", "out[i] = x[i] ** 2;", "Multiply: `x[i] * x[i]`"),
    ('error: operand of "*" must be a pointer but has type "int"', "out[i] = x[i] ** 2;", "no power operator"),
    (
        "this declaration has no storage class or type specifier",
        'module = cp.RawModule(code="kernels.fatbin")',
        "The name of a file was compiled",
    ),
    ("KeyError: 'f'", '    code = source.substitute(T="float")', "The template has a `$f`"),
    ("AssertionError", "    sums = tl.dot(a, b, sums)", "it must be float32 and have the shape of the product"),
    (_UNEQUAL, "d = TensorDescriptor.from_tensor(a, [1, 8])", "no `pre_hook` sets it"),
    (
        _UNEQUAL,
        "TensorDescriptor, pre_hook=shapes; tl.dot(a.load([row, k]), b.load([k, column]))",
        "every `triton.Config`",
    ),
    ("TypeError: 'tuple' object cannot be interpreted as an integer", "k[(4,), 128](x)", "has no threads"),
    ("error: expected '(' before 'row'", "    if row < height {", "Write `if (…)`"),
    ("error: unrecognized token", "int row = 3; # the row", "C++ comments begin with `//`"),
    ("error: no match for 'operator<<'", "    kernel<<grid, block>>(x, n);", "`kernel<<<grid, block>>>(…)`"),
    (
        "error: expected identifier before '(' token",
        "    if (row < height) && (column < width) {",
        "`if ((…) && (…))`",
    ),
)

TEXTS: tuple[tuple[str, str], ...] = (
    ("CUDA_ERROR_INVALID_VALUE: wrong number of arguments for the kernel 'f': 5 instead of 6.", "has 6 parameters"),
    ("TypeError: This kernel was compiled for another number of arguments: 3, and gets 4.", "lists 3 types"),
    (
        "TypeError: This kernel was compiled for array(float32, 2d, C), and gets readonly array(float32, 1d, C).",
        "an array with 2 dimensions, but the argument has 1",
    ),
    ("KeyError: 'us_per_launch'", "has no key `us_per_launch`"),
    ("TypeError: unhashable type: 'ndarray'", "such as `out.dtype`"),
    ("TypeError: can only concatenate tuple (not int) to torch.Size", "`x.numel()` is the number of elements"),
    (
        "ValueError: operands could not be broadcast together with shapes (1000,) (256,)",
        "arrays of the shapes (1000,) and (256,)",
    ),
    ("AttributeError: /tmp/square_matrix.so: undefined symbol: square", "no function with the name `square`"),
    ("ArgumentError: argument 1: TypeError: wrong type", "`x.data_ptr()`"),
    ("TypeError: 'function' object is not subscriptable", "the kernel's decorator is missing"),
    (
        "opcheck, test_faketensor: When comparing the output of course.f.default on FakeTensor and concrete Tensors, "
        "found mismatch in outputs_alias_inputs check True != False",
        "The fake kernel returns its input",
    ),
    (
        "RuntimeError: course::f() Expected a value of type 'int' for argument 'slope' but instead found type 'float'.",
        "Write `slope: float`",
    ),
    ("ValueError: assignment destination is read-only", "Write to `out`"),
    # the simulators, and nvcc
    ("The kernel wrote to `x`, which is an input.", "Are `x` and the output exchanged"),
    ("argument 1 of 'k' is an array, but the kernel's parameter is a number", "argument 1 is an array"),
    ("error: a __global__ function call must be configured", "`kernel<<<grid, block>>>(…)`"),
    # the simulator of CUDA C++
    (
        "Race: thread 0 of block 7 reads `partials[0]` on line 9, and thread 0 of block 0 wrote it on line "
        "4. An atomic "
        "alone does not order them: a `__threadfence()` is missing between the write and the atomic.",
        "Call `__threadfence()` between",
    ),
    (
        "Race: thread 0 of block 1 reads element 0 of `out` on line 9, and thread 0 of block 0 wrote it on "
        "line 9. Blocks "
        "run at the same time and in no order: use an atomic, or a second launch.",
        "Add with `atomicAdd`",
    ),
    (
        "Race: thread 1 of block 0 reads `s[2]` on line 9, and thread 2 of block 0 wrote it on line 9. No "
        "`__syncwarp()` "
        "or `__syncthreads()` is between the two, and the lanes of a warp need not run in step.",
        "`__syncwarp()` if no other warp",
    ),
    (
        "Race: thread 1 of block 0 reads `s[200]` on line 9, and thread 200 of block 0 wrote it on line 8. No "
        "`__syncthreads()` is between the two.",
        "Put `__syncthreads()` between",
    ),
    (
        "Race: thread 1 of block 0 writes `s[0]` on line 9, and thread 0 of block 0 wrote it on line 9. Both are in "
        "the same statement, so no barrier orders them: let one thread write, or use an atomic.",
        "Let one thread store",
    ),
    (
        "Race: thread 1 of block 0 reads `s` on line 9, and thread 0 of block 0 wrote it on line 9. Each thread reads, "
        "changes and writes it, and no barrier orders that: use an atomic, or a sum of each thread.",
        "Add with `atomicAdd`, or",
    ),
    (
        "Host: code of the host reads element 0 of `out` on line 9, which is in the GPU's memory. Only kernels can use "
        "it there.",
        "Copy the values to the host with `cudaMemcpy`",
    ),
    (
        "Host: code of the host writes `weights[0]` on line 9, which is a variable of the GPU: the host has another "
        "one of the same name.",
        "Copy with `cudaMemcpyToSymbol`",
    ),
    (
        "Host: the launch on line 9 passes the address of a variable of the host as argument 3.",
        "Pass numbers by value",
    ),
    (
        "Host: the launch on line 9 passes memory that the host allocated as argument 3.",
        "Copy it to memory from `cudaMalloc`",
    ),
    (
        'identifier "std::cout" is undefined in device code: it is the host\'s',
        "To print, use `printf`",
    ),
    (
        'identifier "WEIGHTS" is undefined in device code: an index that is not constant needs a `__constant__` array',
        "`WEIGHTS` is an array of the host",
    ),
    ("__host__ or __device__ annotation on lambda requires --extended-lambda nvcc flag", '["--extended-lambda"]'),
    ('calling a __host__ function("lambda") from a __global__ function is not allowed', "`[=] __device__ (…)`"),
    ("a parameter of a __global__ function cannot be a reference", "leave out the `&`"),
    (
        "Race: the kernel launched on line 25 reads `cudaMalloc's memory`, and the one launched on line 24 writes it. "
        "They are on two streams, and neither waits for the other.",
        "`cudaStreamWaitEvent`",
    ),
    (
        "Unfinished: the function returns, but nothing waits for the stream of its own on which work is started on "
        "line 9. On a GPU, the output may be read before it is written.",
        "`cudaStreamWaitEvent`",
    ),
    (
        "Unfinished: the host reads element 0 of `cudaMallocManaged's memory` on line 9, but it does not wait for the "
        "GPU: what was started on line 8 may still use that memory.",
        "Call `cudaDeviceSynchronize()`",
    ),
    (
        "Outside: thread 0 of block 512 writes 4 bytes on line 9, past the end of `torch.empty(512, device=x.device)`, "
        "which has 512 elements: element 512.",
        "sums of blocks need one element per block",
    ),
    (
        "invalid argument: a block has 256 threads; `__launch_bounds__` of the kernel allows 128.",
        "Use the same number in the launch and in `__launch_bounds__`",
    ),
    (
        "Outside: thread 0 of block 0 reads 4 bytes on line 9, past its dynamic shared memory: the launch on "
        "line 20 gives "
        "it 0 bytes, as the third value between <<< and >>>.",
        "Pass its size in bytes",
    ),
    (
        "Outside: thread 0 of block 0 writes element 0 of `x` on line 9, which is an input: only outputs may "
        "be written.",
        "Write to the output",
    ),
    (
        "Outside: thread (0, 0, 0) of block (0, 0, 0) uses the index 8 on line 9, past the end of `tile`, a "
        "`float [8][33]` "
        "declared on line 3.",
        "`tile` has fewer elements",
    ),
    (
        "Outside: thread 31 of block 0 writes 4 bytes on line 9, past the end of `x`, which has 31 elements: "
        "element 31.",
        "Check every index",
    ),
    (
        "Misaligned: thread 1 of block 0 reads a `const float4` at byte 4 of `x` on line 9. A GPU can access "
        "it only where "
        "its address is a multiple of 16.",
        "Check the offset before you cast",
    ),
    ("invalid configuration argument: a block has 2,048 threads; 1,024 are the limit", "`dim3(32, 8)` has 256"),
    ("invalid configuration argument: the grid has 65,536 blocks in y; 65,535 are the limit", "be large be x"),
    (
        "invalid argument: a block asks for 49,153 bytes of dynamic shared memory; 49,152 are the limit without "
        "cudaFuncSetAttribute",
        "Use a smaller tile",
    ),
    # events, from torch's source
    ("RuntimeError: Both events must be completed before calculating elapsed time.", "wait with `end.synchronize()`"),
    ("ValueError: Both events must be recorded before calculating elapsed time.", "Record both events"),
    # PyTorch's operators
    (
        "OperatorError: opcheck, test_faketensor: There was no fake impl registered for "
        "<CustomOpDef(course::cube)>. This is necessary for torch.compile/export/fx tracing to work. Please "
        "use `cube.register_fake` to add an fake impl.",
        "Register one with `register_fake`",
    ),
    (
        "OpCheckError: opcheck(op, ...): test_faketensor failed with When comparing the output of "
        "course.cube.default on FakeTensor and concrete Tensors, found mismatched tensor metadata: Shapes "
        "torch.Size([3, 4]) and torch.Size([12]) are not equal! (scroll up for stack trace)",
        "returns a different tensor than the real one",
    ),
    (
        "OpCheckError: opcheck(op, ...): test_schema failed with Argument x is not defined as mutable but "
        "was mutated (scroll up for stack trace)",
        "The operator writes to `x`",
    ),
    (
        "RuntimeError: cube (with implementation in <module 'torch._library.custom_ops' from "
        "'custom_ops.py'>): The output of this custom operator (1) must not also be an input to this custom "
        "operator and (2) may not alias any inputs to this custom operator or other returns.",
        "The operator returned its input",
    ),
    (
        "RuntimeError: Trying to backward through course.cube.default but no autograd formula was "
        "registered. Please use register_autograd to add one.",
        "The operator has no gradient",
    ),
    (
        "RuntimeError: Cannot access data pointer of Tensor (e.g. FakeTensor, FunctionalTensor). If you're "
        "using torch.compile/export/fx, it is likely that we are erroneously tracing into a custom kernel.",
        "inside an operator",
    ),
    (
        "OperatorError: torch.compile cannot make one graph: Unsupported method call Explanation: Dynamo "
        "does not know how to trace method `__call__` of class `_FuncPtr`",
        "a call that it cannot trace",
    ),
    (
        "OperatorError: torch.autograd.gradcheck says: Backward is not reentrant, i.e., running backward "
        "with same input and grad_output multiple times gives different values",
        "gave different results",
    ),
    (
        "OperatorError: torch.autograd.gradcheck says: Jacobian mismatch for output 0 with respect to input 0",
        "does not match the finite differences",
    ),
    (
        "RuntimeError: function GeneratedBackwardFor_course_cube_defaultBackward returned an incorrect "
        "number of gradients (expected 3, got 2)",
        "wrong number of values",
    ),
    (
        "RuntimeError: function GeneratedBackwardFor_course_cube_defaultBackward returned a gradient "
        "different than None at position 2, but the corresponding forward input was not a Variable",
        "Return None for it instead",
    ),
    (
        "AttributeError: 'GeneratedBackwardFor_course_cube_defaultBackward' object has no attribute 'slope'",
        "`ctx.slope = …`",
    ),
    (
        "TypeError: keep() got an unexpected keyword argument 'inputs'",
        "`ctx`, `inputs` and `output`",
    ),
    (
        "ValueError: infer_schema(func): Parameter slope must have a type annotation. Got func with "
        "signature (x: torch.Tensor, slope) -> torch.Tensor)",
        "one is missing",
    ),
    # Triton's compiler
    ("TypeError: cannot add pointers together", "Two addresses were added, not the values"),
    ("TypeError: unsupported operand type(s) for @: 'tensor' and 'tensor'", "`tl.dot(a, b)`"),
    ("AttributeError: 'InterpreterBuilder' object has no attribute 'grid_idx'", "Launch the kernel over a grid"),
    ("TypeError: g() got an unexpected keyword argument 'num_warps'", "`num_warps` is a launch option"),
    ("ValueError: arange's range must be a power of 2", "triton.next_power_of_2"),
    ("ValueError: arange's arguments must be of type tl.constexpr", "BLOCK_SIZE: tl.constexpr"),
    (
        "NameError(\"Cannot access global variable SCALE from within @jit'ed function. Triton kernels can only access "
        "global variables that are instanstiated as constexpr (`x = triton.language.constexpr(42)`). Note that this is "
        "different from annotating a variable as constexpr (`x: triton.language.constexpr = 42`), which is not "
        "supported.  Alternatively, set the envvar TRITON_ALLOW_NON_CONSTEXPR_GLOBALS=1, but we do not promise to "
        'support this forever.")',
        "Pass `SCALE` to the kernel",
    ),
    ("NameError('offs is not defined')", "Set `offs` before."),
    ("NameError('sum is not defined')", "cannot compile Python's `sum`"),
    ("TypeError(\"object of type 'tensor' has no len()\")", "cannot compile Python's `len`"),
    ("TypeError(\"float() argument must be a string or a real number, not 'tensor'\")", "`x.to(tl.float32)`"),
    ("AttributeError(\"'In' object has no attribute '__name__'\")", "cannot compile Python's `In`"),
    ("StopIteration()", "outside of the kernel, with `@triton.jit`"),
    ("For loop bounds and step must all be ints, are (int32, fp32, int32)", "are single integers"),
    ("AssertionError: int32[] used as tl.static_range end value is not a constexpr", "are constants"),
    ("Mismatched type for v between then block (int32) and else block (fp32)", "`v` is int32 or fp32"),
    ("initial value for `v` is of type int32, but the then block redefines it as fp32')", "`v` is int32 or fp32,"),
    ("ValueError: S is already defined. constexpr cannot be reassigned.", "`S` is a `tl.constexpr`"),
    ("Simultaneous multiple assignment is not supported.", "assign one name per line"),
    ("AttributeError(\"'tensor' object has no attribute '__pow__'\")", "`x * x`"),
    ("Cannot have `return` statements inside `while` or `for` statements in triton.", "no `continue` and no `return`"),
    ("Expected pointer argument to have shape [64, 64] but got [64]", "The pointers have one shape"),
    ("Shape element 0 must have type `constexpr[int]`, got `constexpr[tensor]", "known at compile time"),
    ("AssertionError: input and other must have equal ranks >= 2", "two blocks of two axes"),
    (
        "`if` conditionals can only accept values of type {NoneType, bool, int}, not objects of type JITFunction",
        "`if ACTIVATION is not None:`",
    ),
    ("Block pointers have been removed in favor of the tensor descriptor API", "no block pointers"),  # Triton 3.9
    ("NameError('math is not defined')", "use `tl` instead of `math`"),
    (
        "ValueError('Cannot make_shape_compatible: incompatible dimensions at index 0: 128 and 64')",
        "different lengths in dimension 0: 128 and 64",
    ),
    ("ValueError: Unsupported ptr type <['128'], int32> in `tl.load`", "`x_ptr + offsets`"),
    ("ValueError: Value argument cannot be block type if pointer argument is not a block", "is a single address"),
    ("IncompatibleTypeErrorImpl('invalid operands of type pointer<fp32> and triton.language.float32')", "`//`"),
    ("ValueError: `other` cannot be provided without `mask`", "mask=mask, other=0.0"),
    ("simultaneous multiple comparison is not supported", "(0 <= x) & (x < n)"),
    ("Boolean value of Tensor with more than one value is ambiguous", "`tl.where`"),
    ("ValueError: numel (2097152) exceeds triton maximum tensor numel (1048576)", "2097152 elements is too large"),
    (
        "ValueError: A block of this launch has 2,048 threads, and a GPU allows at most 1,024",
        "2,048 threads is too large",
    ),
    ("ValueError: The grid of this launch has length 70,000 along y, and a GPU allows 1 to 65,535", "70,000 along y"),
    ("ValueError: A block has 65,536 B of shared memory, and a GPU allows at most 49,152 B", "Use a smaller tile"),
    ("RuntimeError: `shfl_sync` waits for lanes of its mask that never reach it", "skip the work, not the call"),
    (
        "RuntimeError: The launch on line 12 was refused (invalid configuration argument): a grid must have at least "
        "one block. It asked for a grid of (0, 1, 1) blocks of (256, 1, 1) threads.",
        "The grid of this launch is empty.",
    ),
    ('a host function call cannot be configured: "k" is not a kernel', "Declare it `__global__ void`."),
    ("static assertion failed: atomicMax has no version for this type", "CUDA has no `atomicMax` for values"),
    ("Entry function '_Z1kPKfPfi' uses too much shared data (0x10000 bytes, 0xc000 max)", "more than 48 KiB"),
    ("File uses too much global constant data (0x13880 bytes, 0x10000 max)", "more than 64 KiB"),
    (
        "No implementation of function Function(<built-in function zeros>) found for signature: zeros(Literal[int](5))",
        "Numba cannot compile NumPy's `zeros` in a kernel.",
    ),
    (
        "No implementation of function Function(<built-in function getitem>) found for signature: "
        "getitem(DictType[unicode_type,float64]<iv=None>, Literal[str](xc))",
        "Python's lists, dicts, sets and strings",
    ),
    ("The use of yield in a closure is unsupported.", "Write a loop that adds to a variable."),
    ("format spec in f-strings not supported yet. Raised from submission.py (23)", "`print` takes values without a"),
    (
        "No implementation of function Function(<intrinsic exception_match>) found for signature: exception_match("
        "none, IndexError) … UnsupportedError: Exception matching is limited to <class 'Exception'>",
        "Remove `try`.",
    ),
    ("TypeError: griddim must be a sequence of integers, got [3.015625]", "`(n + threads - 1) // threads`"),
    ("ValueError: Kernel launch configuration was not specified. Use the syntax:", "`kernel[blocks, threads](…)`"),
    ("IndexError: index 70 is out of bounds for axis 0 with size 70", "the array, which has 70 elements there"),
    (
        "RuntimeError: In block (0, 0, 0), lane 1 of warp 0 ended without reaching __shfl_down_sync() on line 15, "
        "where 1 other lane waits. Every lane that the mask names must reach it: is it inside an `if`?",
        "skip the work, not the call",
    ),
    ("AttributeError: 'tuple' object has no attribute append", "a tuple, which cannot grow"),
    (
        "RuntimeError: 64 of 128 threads of a block wait at cuda.syncthreads() on line 33, and the other 64 ended "
        "without reaching it",
        "threads without work skip the work, not the barrier",
    ),
    (
        "RuntimeError: 32 of 64 threads of a block wait at cuda.syncthreads() on line 5, and others wait at "
        "cuda.syncthreads() on line 6: all of them must reach the same one",
        "wait at different barriers",
    ),
    (
        "No implementation of function Function(<function _ol_array_allocate>) found for signature: "
        "_ol_array_allocate(typeref[<class 'numba.core.types.npytypes.Array'>], int64, uint32)",
        "would make a new array in the kernel",
    ),
    (
        "AssertionError('Loop-carried variable acc has initial type int32 but is re-assigned to fp32 in loop! Please "
        "make sure that the type stays consistent.')",
        "`acc` starts as int32 and becomes fp32",
    ),
    (
        "AssertionError(\"Loop-carried variable sums has initial type <['4096'], fp16> but is re-assigned to "
        "<['4096'], fp32> in loop! Please make sure that the type stays consistent.\")",
        "`sums` starts as <['4096'], fp16> and becomes <['4096'], fp32>",
    ),
    ("unsupported AST node type: Break", "no `break`"),
    ("unsupported AST node type: Try", "cannot compile Python's `Try`"),
    ("NotImplementedError('only tuple comprehensions are supported')", "cannot compile this"),
    (
        "Cannot evaluate f-string containing non-constexpr conversion values, found conversion of type <class "
        "'triton.language.core.tensor'>",
        "`tl.device_print`",
    ),
    ("ValueError: Expected dtype ['fp32', 'fp64'] but got int32", "got int32"),
    ("ValueError: invalid axis 1. Expected -1 <= axis < 1", "`axis=0`"),
    ("ValueError: program_id axis must be 0, 1, or 2 but got 3", "three axes"),
    ("AssertionError: min requires at least 2 values", "`tl.max(x, axis=0)`"),
    ("InterpreterError: AssertionError('input and other must have equal reduction dimensions')", "BLOCK_K × BLOCK_N"),
    (
        "InterpreterError: AssertionError('Both operands must be same dtype. Got fp16 and fp32')",
        "got fp16 and fp32. Make both float16",
    ),
    (
        "ValueError: Conflicting meta-parameters: BLOCK_M. Make sure that you don't re-define auto-tuned symbols.",
        "`triton.autotune` chooses BLOCK_M",
    ),
    ("AssertionError: strides must be 16-byte aligned", "Use a kernel with pointers for all other layouts"),
    ("AssertionError: base must be 16-byte aligned", "multiples of 16 bytes"),
    ("InterpreterError: AssertionError('block offset start must be 16-byte aligned')", "not the index of the tile"),
    ("AssertionError: Input shapes should have M >= 1, N >= 1 and K >= 16", "at least 1 × 1 elements, and 16"),
    ("AttributeError(\"module 'triton.language' has no attribute 'softmaxx'\")", "`tl.softmaxx` does not exist"),
    ("RuntimeError: Unsupported function referenced: <function offsets_of>", "`@triton.jit` above it"),
    ("<ufunc 'sqrt'>", "Numba has no `np.sqrt`"),
    ("RuntimeError: Unsupported function referenced: <built-in method exp of type object at 0x7f>", "`tl.exp`"),
    (
        "ValueError: Did you forget to add @triton.jit ? (`_semantic` argument must be provided outside of JIT "
        "functions.)",
        "`@triton.jit` above other functions",
    ),
    ("AttributeError(\"'tensor' object has no attribute 'load'\")", "has no `load`"),
    # Triton's interpreter and launcher
    ("InterpreterError: ValueError(\"axis 1 out of bounds for shape ['constexpr[128]']\")", "`axis=0`"),
    ("InterpreterError: ValueError('axis 0 out of bounds for shape []')", "`tl.exp`, not `math.exp`"),
    (
        "InterpreterError: TypeError(\"exp(): argument 'input' (position 1) must be Tensor, not tensor\")",
        "`tl.exp`, not `math.exp` or `torch.exp`",
    ),
    (
        "InterpreterError: TypeError('only 0-dimensional arrays can be converted to Python scalars')",
        "`tl.exp`, not `math.exp` or `torch.exp`",
    ),
    ("InterpreterError: NameError(\"name 'offs' is not defined\")", "`offs` is not defined"),
    ("InterpreterError: AttributeError(\"'numpy.ndarray' object has no attribute 'type'\")", "Pass torch tensors"),
    (
        "InterpreterError: AttributeError(\"'builtin_function_or_method' object has no attribute 'scalar'\")",
        "`kernel[(programs,)]",
    ),
    ("RuntimeError: Cannot call @triton.jit'd outside of the scope of a kernel", "`kernel[(programs,)]"),
    ("TypeError: object of type 'int' has no len()", "with the comma"),
    ("InterpreterError: TypeError(\"'float' object cannot be interpreted as an integer\")", "`triton.cdiv"),
    ("TypeError: k() missing 1 required positional argument: 'B'", "`k` was called without 'B'"),
    ("TypeError: k() takes 4 positional arguments but 8 were given", "takes 4 arguments but got 8"),
    ("KeyError: 'Keyword argument BLOCK was specified but unrecognised'", "no parameter `BLOCK`"),  # from its source
    ("AssertionError: num_warps must be a power of 2", "1, 2, 4, 8, 16 or 32"),  # from its source
    ("ValueError: Pointer argument cannot be accessed from Triton (cpu tensor?)", "device=x.device"),  # from its source
    ("ValueError: Pointer argument (at 0) cannot be accessed from Triton (cpu tensor?)", "device=x.device"),  # 3.6
    ("TypeError: Pointer argument must be either uint64 or have data_ptr method", "Pass torch tensors"),
    (
        "OutOfResources: out of resource: shared memory, Required: 262144, Hardware limit: 232448. Reducing block "
        "sizes or `num_stages` may help.",
        "more shared memory than the GPU has: 262144",
    ),
    ("RuntimeError: Triton Error [CUDA]: invalid argument", "at most 65,535"),
    # the CUDA runtime (the first as the CPU build gives it, too)
    ("RuntimeError: invalid configuration argument", "the division was probably rounded down"),
    (
        "RuntimeError: invalid argument",
        "the division was probably rounded down",
    ),  # CUDA 13 on an H200, for 2048 threads per block
    ("torch.AcceleratorError: CUDA error: invalid argument", "block.x * block.y is at most 1024"),
    ("RuntimeError: CUDA error: no kernel image is available for execution on the device", "TORCH_CUDA_ARCH_LIST"),
    ("RuntimeError: CUDA error: an illegal memory access was encountered", "against the bounds"),
    ("RuntimeError: Triton Error [CUDA]: an illegal memory access was encountered", "against the bounds"),
    ("RuntimeError: CUDA error: device-side assert triggered", "index was out of range"),
    ("RuntimeError: CUDA error: too many resources requested for launch", "fewer threads"),
    (
        "torch.AcceleratorError: CUDA error: too many resources requested for launch\nCUDA kernel errors might be "
        "asynchronously reported at some other API call, so the stacktrace below might be incorrect.\nFor debugging "
        "consider passing CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
        "fewer threads",
    ),
    ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 GiB.", "Write to `out`"),
    ("RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime version", "grader doctor"),
    ("#error -- unsupported GNU version! gcc versions later than 14 are not supported!", "grader doctor"),
    ("AssertionError: Torch not compiled with CUDA enabled", "`x.device`"),
    (
        "TypeError: can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
        "memory first.",
        "NumPy cannot read",
    ),
    ("BufferError: Unsupported device in DLTensor.", "NumPy cannot read"),
    (
        "SegmentationFault: `ctypes.memmove` runs on the CPU and gets an address of a GPU's memory",
        "`ctypes.memmove` is a function of the CPU",
    ),
    ("NotATensor: the result is on cpu; it must be on cuda:0", "returns a tensor of the CPU"),
    ("OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.", "grader doctor"),
    ("RuntimeError: Ninja is required to load C++ extensions (pip install ninja to get it)", "grader doctor"),
    ("RuntimeError: CuPy failed to load libnvrtc.so.13: OSError: cannot open shared object file", "grader doctor"),
    (
        "RuntimeError: Lane 16 calls __shfl_down_sync() on line 11 with the mask 0x0000ffff, which does not name it.",
        "the mask is `0xffffffff`",
    ),
    (
        "RuntimeError: In block (0, 0, 0), 8 of 256 threads wait at __syncthreads() on line 10, and the other 248 "
        "ended without reaching it.",
        "out of the `if`",
    ),
    # g++
    ("error: invalid operands of types ‘const float’ and ‘int’ to binary ‘operator^’", "`x[i] * x[i]`"),
    ("invalid types 'const float[int]' for array subscript", "`row * width + column`"),  # as the simulator hands it on
    ("cell:9:7: error: invalid preprocessing directive #the", "begin with `//`"),
    ("stray '#' in program", "begin with `//`"),  # as the simulator hands it on
    ("main.cpp:4:3: error: expected ‘,’ or ‘;’ before ‘return’", "`;`"),
    ("expected ',' or ';' before 'if'", "`;`"),  # as the simulator hands it on
    ("b.cpp:1:23: error: ‘row’ was not declared in this scope", "The name `row` is used"),
    ("'rows' was not declared in this scope; did you mean 'row'?", "The name `rows` is used"),
    ("c.cpp:1:36: error: expected ‘}’ at end of input", "Add the missing `}`"),
    (
        "d.cpp:1:45: error: invalid conversion from ‘const float*’ to ‘float*’ [-fpermissive]",
        "`const float*`",
    ),
    ("d.cpp:1:58: error: cannot convert ‘float’ to ‘int*’ in initialization", "`x[i]`"),
    ("d.cpp:1:65: error: too many arguments to function ‘void g(float*)’", "too many arguments"),
    ("f.cpp:2:12: error: too few arguments to function ‘void f(const float*)’", "too few arguments"),
    ("e.cpp:1:32: error: expected primary-expression before ‘<’ token", "`cuda_sources`"),
    ("e.cpp:1:51: error: ‘threadIdx’ was not declared in this scope", "only kernels can use them"),
    ("f.cpp:1:30: error: assignment of read-only location ‘* x’", "through a `const` pointer"),
    ("f.cpp:3:10: fatal error: nosuch.h: No such file or directory", "the header `nosuch.h`"),
    ("OSError: /tmp/x/square.so: undefined symbol: _Z6squarePKfPfii", "no definition"),
    ("AttributeError: '_OpNamespace' 'foo' object has no attribute 'bar'", "`foo::bar`"),
    # NVIDIA's compiler
    (
        'main.cu(4): error: expression must have pointer-to-object type but it has type "float"',
        "`row * width + column`",
    ),
    ("main.cu(3): error: unrecognized preprocessing directive", "begin with `//`"),
    ('main.cu(2): error: expected a ";"', "`;`"),
    ('main.cu(1): error: identifier "row" is undefined', "The name `row` is used"),
    ('main.cu(1): error: identifier "threadidx" is undefined', "CUDA's names are `threadIdx`"),
    ("main.cu(1): error: expression must be a modifiable lvalue", "through a `const` pointer"),
    ('At end of source: error: expected a "}"', "Add the missing `}`"),
    ("main.cu(1): error: a __global__ function must have a void return type", "`__global__ void`"),
    (
        'main.cu(1): error: a value of type "float *" cannot be used to initialize an entity of type "float"',
        "`x[i]`",
    ),
    (
        'main.cu(2): error: argument of type "const float *" is incompatible with parameter of type "float *"',
        "`const float*`",
    ),
    ("main.cu(2): error: too few arguments in function call", "too few arguments"),
    ('main.cu(1): error: class "uint3" has no member "w"', "no member `w`"),
    ("main.cu(1): error: expression must have integral or unscoped enum type", "must be an integer"),
    (
        'main.cu(1): catastrophic error: could not open source file "torch/extension.h" (no directories in search '
        "list)",
        "the header `torch/extension.h`",
    ),
    (
        'main.cu(3): error: calling a __host__ function("g(float *)") from a __global__ function("k(float *)") is not '
        "allowed",
        "Mark the function `__device__`",
    ),
    # Numba
    (
        "TypeError: No matching definition for argument type(s) array(float64, 1d, C), array(float64, 1d, C)",
        "If you cache kernels, is each stored under its type?",
    ),
    (
        "TypeError: _Kernel.__init__() got an unexpected keyword argument 'fast_math'",
        "Fast math is `fastmath=True`",
    ),
    ("TypeError: CUDA kernel must have void return type.", "to an output array"),
    (
        "TypingError: Failed in cuda mode pipeline (step: nopython frontend)\nUnknown attribute 'foo' of type float32",
        "cannot compile `.foo`",
    ),
    (
        "Runs in the simulator, but does not compile for a GPU: No implementation of function Function(<function "
        "shared.array>) found for signature: array(shape=int32, dtype=class(float32))",
        "The shape of a shared array is computed",
    ),
    (
        "TypingError: No implementation of function Function(<function shared.array at 0x7f6d27620720>) found for "
        "signature:\n \n >>> array(int64, class(float32))\n \nThere are 2 candidate implementations:",
        "The shape of a shared array is computed",
    ),
    (
        "No implementation of function Function(<built-in function getitem>) found for signature:\n \n >>> getitem("
        "array(float32, 1d, A), float64)",
        "`//`",
    ),
    (
        "No implementation of function Function(<built-in function setitem>) found for signature:\n \n >>> setitem("
        "array(float32, 1d, A), int64, list(int64)<iv=[1, 2, 3]>)",
        "an array used instead of its element",
    ),
    ("NameError: name 'undefinedname' is not defined\nDuring: Pass nopython_type_inference", "`undefinedname`"),
    # Python and PyTorch
    ("NameError: name 'tl' is not defined", "`tl` is not imported in this cell"),
    ("NameError: name 'helper' is not defined", "`helper` is not defined in this cell"),
    ("NameError: name 'get_ipython' is not defined", "a separate cell"),
    ("UnboundLocalError: cannot access local variable 'n' where it is not associated with a value", "`n` is read"),
    ("ModuleNotFoundError: No module named 'einops'", "`einops` is not installed"),
    (
        "RuntimeError: The size of tensor a (4) must match the size of tensor b (5) at non-singleton dimension 1",
        "4 and 5",
    ),
    (
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
        "device=x.device",
    ),
    ("RecursionError: maximum recursion depth exceeded", "calls itself"),
    # torch.compile, as grader/worker/harnesses/compiled_graph.py passes it on
    (
        "GraphBreak: Data-dependent branching: Detected data-dependent branching (e.g. `if my_tensor.sum() > 0:`). "
        "Dynamo does not support tracing dynamic control flow.",
        "torch.where(condition, a, b)",
    ),
    (
        "GraphBreak: Consider annotating your code using torch._check*(). Could not guard on data-dependent expression "
        "Eq(u0, 1) (unhinted: Eq(u0, 1)).  (Size-like symbols: none)",
        "torch.where(condition, a, b)",
    ),
    (
        "GraphBreak: Tensor.tolist() with non-integer tensor: Dynamo currently does not support tracing `tolist()` on "
        "non-integer tensors.",
        "range(w.shape[0])",
    ),
    (
        "GraphBreak: Unsupported Tensor.item() call with capture_scalar_outputs=False: Dynamo does not support tracing "
        "`Tensor.item()` with config.capture_scalar_outputs=False.",
        "Keep the one-element tensor",
    ),
    ("TripToTheCpu: the graph fetches a value to the CPU: `.item()`", "`.item()` copies values to the CPU"),
    (
        "GraphBreak: Failed to trace builtin operator: Dynamo does not know how to trace builtin operator `print` with "
        "argument types ['str'] (has_kwargs False)",
        "Remove `print`",
    ),
    (
        "GraphBreak: Consider annotating your code using torch._check*(). Could not extract specialized integer from "
        "data-dependent expression TruncToInt(zuf0) (unhinted: TruncToInt(zuf0)).  (Size-like symbols: none)",
        "Keep the shape and use a mask",
    ),
    (
        "GraphBreak: Attempted to call function marked as skipped: Dynamo does not know how to trace the builtin "
        "`time.perf_counter.` This function is either a Python builtin (e.g. _warnings.warn) or a third-party C/C++ "
        "Python extension (perhaps created with pybind).",
        "such as a clock or a file",
    ),
    (
        "GraphBreak: Unresolved GetAttrVariable comparison: Cannot compare GetAttrVariable(LoggingLoggerVariable(), "
        "name) because the attribute could not be resolved to a concrete value.",
        "Use only torch operations",
    ),
    ("TooManyKernels: fused into more kernels than allowed: 5, at most 2", "needs 5 kernels"),
    (
        "Recompiled: a second call with the same shapes was compiled again, because something else changed",
        "Move counters, logs and lists out",
    ),
    ("InputChanged: the function wrote to a tensor that it was given", "`y = y / peak`"),
    ("NotATensor: the result is torch.float64; it must be torch.float32", "`.double()`"),
    ("NotATensor: the function must return a tensor, not NoneType", "`return`"),
    # grader/worker/harnesses/triton_kernels.py, and the harness of vector_width
    (
        "NarrowLoads: wide_kernel: its loads are too narrow, 4 B per thread instead of 16 B; the block is "
        "too small (threads: 128, elements per thread: 2)",
        "The block is too small for its threads: with 2 elements per thread, none of the 128 threads",
    ),
    (
        "NarrowLoads: wide_kernel: its loads are too narrow, 4 B per thread instead of 16 B; each "
        "thread has runs of length 1, because the compiler does not know that 4 are contiguous",
        "`tl.multiple_of(row * x_stride, 4)`",
    ),
    (
        "NarrowLoads: wide_kernel: its loads are too narrow, 4 B per thread instead of 16 B; the "
        "addresses allow more, but the mask does not",
        "Declare it: `tl.max_constancy(column < columns, 4)`",
    ),
    (
        "NarrowLoads: wide_kernel: its loads are too narrow, 4 B per thread instead of 16 B; the layout "
        "allows more, but the addresses of the loads do not",
        "Declare it for these rows as well",
    ),
    (
        "NarrowLoads: wide_kernel: its loads are too narrow, 4 B per thread instead of 16 B; the addresses or "
        "the mask do not allow more",
        "Declare both",
    ),
    # grader/worker/harnesses/triton_kernels.py
    (
        "FalseHint: tl.max_contiguous(…, 4) is false: neighbours in a run are 1 and 5",
        "so that `tl.max_contiguous` holds",
    ),
    ("NoTritonKernel: no Triton kernel was launched", "`@triton.jit`"),
    ("ValueError: vector_width counts 128-byte loads: no load of a thread is that wide", "8 bits are one byte"),
    # CuPy 14, the driver and NVRTC 13
    ("CUDADriverError: CUDA_ERROR_NOT_FOUND: named symbol not found", '`extern "C" __global__`'),
    (
        "CUDADriverError: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: too many resources requested for launch",
        "`__launch_bounds__`",
    ),
    ("CUDA error: misaligned address", "only at a multiple of that many bytes"),  # from CUDA's documentation
    # The next three are from an H200, with CuPy 14.2 and Triton 3.6.
    ("TypeError: Argument 'grid' has incorrect type (expected tuple, got int)", "Grid and block must be tuples"),
    ("TypeError: Argument 'options' has incorrect type (expected tuple, got str)", "must be a tuple of strings"),
    ("TypeError('must be real number, not tensor')", "`tl.exp`, not `math.exp`"),
    ('TypeError: can only concatenate str (not "tuple") to str', "options=('--use_fast_math',)"),
    ("TypeError: unsupported operand type(s) for +: 'int' and 'tuple'", "Grid and block must be tuples"),
    ("nvrtc: error: unrecognized option -O3 found", "NVRTC has no option -O3"),
    ("CUDADriverError: CUDA_ERROR_FILE_NOT_FOUND: file not found", "if nvcc fails"),
    ("CUDADriverError: CUDA_ERROR_NO_BINARY_FOR_GPU: no kernel image is available", "has no code for this GPU"),
    ("gcc: fatal error: 'kernels.cu': No such file or directory", "nvcc cannot find the file `kernels.cu`"),
    ("TypeError: Argument 'path' has incorrect type (expected str, got PosixPath)", "path=str(path)"),
    ("nvcc fatal   : Value 'hopper' is not defined for option 'gpu-architecture'", "`-arch=sm_90`"),
    ("nvcc fatal   : Unsupported gpu architecture '90'", "`-arch=sm_90`"),
    (
        "CalledProcessError: Command '['nvcc', '--fatbin', 'f.cu']' returned non-zero exit status 2.",
        "`capture_output=True`",
    ),
    ("TypeError: expected string or bytes-like object, got 'Template'", "Fill it in first: `source.substitute("),
    (
        'more than one instance of overloaded function "power" has "C" linkage',
        "Two kernels have the same name, `power`",
    ),
    ("TypeError: 'NoneType' object is not subscriptable", "A function without `return` returns None"),
    ("TypeError: This kernel was compiled for float32, and gets readonly array(float32, 1d, C).", "`float32[::1]`"),
    ("TypeError: RawModule.__init__() takes from 1 to 2 positional arguments but 3 were given", "`cp.RawModule(code=…"),
    (
        "ValueError: A block of this launch has 20 threads per multiprocessor, on an H100 2,640, and a GPU allows at "
        "most 1,024: are grid and block exchanged?",
        "The grid comes first",
    ),
    (
        "FileNotFoundError: [Errno 2] No such file or directory: 'nvcc --fatbin -o kernels.fatbin kernels.cu'",
        "Pass a list of words",
    ),
    ("nvcc fatal   : Don't know what to do with 'power.txt'", "end in `.cu`"),
    ('no instance of function template "power" matches the argument list', "An instance such as `power<float>`"),
    ("TypeError: Type.__call__() got an unexpected keyword argument 'fastmath'", "after the signature"),
    ('more than one instance of overloaded function "atan2" matches the argument list:', "The arguments of `atan2`"),
    ("error: user-defined literal operator not found", "Write `2.0f`"),
    ("__launch_bounds__ is only allowed on a __global__ function", "at each `__global__` function"),
    ('this declaration may not have extern "C" linkage', "not at the template"),
)
