"""CuPy, the driver under it, and NVRTC's options."""

from __future__ import annotations

from grader.feedback.meanings.meaning import Meaning

__all__ = ["CUPY"]

CUPY: tuple[Meaning, ...] = (
    Meaning(
        r"CUDA_ERROR_NOT_FOUND",
        "The module has no kernel of this name.",
        'C++ writes types into names: without `extern "C"` before `__global__` the symbol is another. An instance of a '
        "template has to stand in `name_expressions`. And is it the name that is in the text that was compiled?",
    ),
    Meaning(
        r"compiled for blocks of at most|CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
        "The block has more threads than the kernel was compiled for.",
        "`__launch_bounds__` promises how many threads a block has at most: launch no more, or promise more. Without "
        "it, a kernel that takes very many registers leaves room for fewer than 1,024 threads.",
    ),
    Meaning(
        r"options must be a tuple|can only concatenate (?:str|list) \(not \"tuple\"\) to (?:str|list)",
        "The compiler's options are a tuple of texts.",
        "A tuple of one has a comma: `options=('--use_fast_math',)`.",
    ),
    Meaning(
        r"the (?:grid|block) must be|can only concatenate tuple|operand type\(s\) for \+: '\w+' and 'tuple'",
        "Grid and block are tuples of ints.",
        "A tuple of one has a comma: `kernel((blocks,), (128,), (…))`. A quotient of ints is one with `//`.",
    ),
    Meaning(
        r"unrecognized option (-\S+)",
        "NVRTC has no option {0}: it is nvcc's, or misspelt.",
        "NVRTC optimises without being asked. It takes `--use_fast_math`, `-std=c++17`, `-D…` and `--maxrregcount=…`.",
    ),
    Meaning(
        r"CUDA_ERROR_(?:FILE_NOT_FOUND|INVALID_IMAGE)",
        "What was loaded is no file that nvcc made here.",
        "Did nvcc fail? With `check=True`, `subprocess.run` raises if it did. Is the path that of its `-o`, and was "
        "the file built with `--fatbin`, for this GPU's architecture?",
    ),
    Meaning(
        r"Argument '(?:path|filename)' has incorrect type \(expected str, got (\w+)\)",
        "CuPy takes the path of a module as a string, not as a {0}.",
        "`cp.RawModule(path=str(path))`.",
    ),
    Meaning(
        r"fatal error: '?([^':\s]+\.cu)'?: No such file",
        "nvcc finds no file `{0}`.",
        "Write the source into it first, with the types filled in: `Path('{0}').write_text(…)`.",
    ),
    Meaning(
        r"is not defined for option 'gpu-architecture'|Unsupported gpu architecture",
        "nvcc knows no such architecture.",
        "Its name is `sm_` and the compute capability: `-arch=sm_90`.",
    ),
    Meaning(
        r"CalledProcessError: Command .*nvcc.* returned non-zero",
        "nvcc failed. Its message is in the printed output, below.",
        "With `capture_output=True` beside `check=True` the report shows the line.",
    ),
    Meaning(
        r"no storage class or type specifier",
        "The name of a file was compiled as if it were the source.",
        "`code=` takes the source's text. A file that was built beforehand is loaded with `path=`.",
        code=r"\.(?:fatbin|cubin|ptx)\b",
    ),
    Meaning(
        r"got '?Template|'Template' object has no attribute",
        "The template was handed over as it is, with `$T` in it.",
        "Fill it in: `source.substitute(T='float')` gives the text.",
    ),
    Meaning(
        r"KeyError: '(\w+)'",
        "The text holds `${0}`, and `substitute` is given nothing for it.",
        "Give each name its text, an empty one too: `source.substitute(T='double', f='')`.",
        code=r"substitute\(",
    ),
    Meaning(
        r"user-defined literal operator not found",
        "A suffix `f` stands behind a number without a point.",
        "Write `2.0f`: `2f` is no number.",
    ),
    Meaning(
        r'more than one instance of overloaded function "(\w+)" has "C" linkage',
        "Two kernels have the name `{0}`.",
        "A file that holds kernels for two types needs two names.",
    ),
    Meaning(
        r'more than one instance of overloaded function "(\w+)" matches the argument list',
        "The arguments of `{0}` have different types, and C++ does not choose between its versions.",
        "Give them one type. A literal such as `2.0` is a double, and so is what it is multiplied with; `2` is an int "
        "and changes no type.",
    ),
    Meaning(
        r"__launch_bounds__ is only allowed on a __global__ function",
        "Only a kernel, a `__global__` function, can have `__launch_bounds__`.",
        "Write `__launch_bounds__` at each `__global__` function, not at the function that it calls.",
    ),
    Meaning(
        r'may not have extern "C" linkage',
        "A template is one name for many functions, which C does not have.",
        'Write `extern "C"` at each kernel that calls it, not at the template.',
    ),
)
