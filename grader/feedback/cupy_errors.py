"""Errors of CuPy, and of NVRTC and nvcc as CuPy's rungs call them: what each one means and how to fix it."""

from __future__ import annotations

from grader.feedback.python_errors import Meaning

CUPY: tuple[Meaning, ...] = (
    Meaning(
        r"argument (\d+) of .* is (an array|a number), but",
        "The order of the arguments differs from the order of the kernel's parameters: argument {0} is {1}, and the "
        "parameter is not.",
        "Pass them in the order in which the kernel declares its parameters. A GPU's driver does not check it.",
    ),
    Meaning(
        r"wrong number of arguments for the kernel '\w+': (\d+) instead of (\d+)",
        "The launch passes {0} arguments, but the kernel has {1} parameters.",
        "Compare the tuple of arguments with the kernel's parameters, one by one.",
    ),
    Meaning(
        r"CUDA_ERROR_NOT_FOUND",
        "The module has no kernel with this name.",
        'C++ mangles names: declare the kernel `extern "C" __global__`, or it has a different symbol. List an '
        "instance of a template in `name_expressions`. Also check that the source you compiled uses this name.",
    ),
    Meaning(
        r"INVALID_VALUE|invalid argument|compiled for blocks of at most|CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
        "The GPU refused the launch, as it does if the block has more threads than the kernel was compiled for.",
        "`__launch_bounds__` sets the largest block: launch fewer threads or raise the bound. Neither grid nor block "
        "may be empty.",
        cell=r"__launch_bounds__",
    ),
    Meaning(
        r"compiled for blocks of at most|CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
        "The block has more threads than the kernel was compiled for.",
        "`__launch_bounds__` sets the largest block: launch fewer threads or raise the bound. Without it, a kernel "
        "that uses very many registers may not fit 1,024 threads.",
    ),
    Meaning(
        r"options must be a tuple|Argument 'options' has incorrect type|"
        r"can only concatenate (?:str|list) \(not \"tuple\"\) to (?:str|list)",
        "The compiler options must be a tuple of strings.",
        "A tuple with one element needs a comma: `options=('--use_fast_math',)`.",
    ),
    Meaning(
        r"the (?:grid|block) must be|Argument '(?:grid|block)' has incorrect type|"
        r"can only concatenate tuple(?!.*torch\.Size)|operand type\(s\) for \+: '\w+' and 'tuple'",
        "Grid and block must be tuples of ints.",
        "A tuple with one element needs a comma: `kernel((blocks,), (128,), (…))`. Divide ints with `//`.",
    ),
    Meaning(
        r"unrecognized option (-\S+)",
        "NVRTC has no option {0}: it is misspelled, or only nvcc has it.",
        "NVRTC optimises by default. It accepts `--use_fast_math`, `-std=c++17`, `-D…` and `--maxrregcount=…`.",
    ),
    Meaning(
        r"CUDA_ERROR_NO_BINARY_FOR_GPU",
        "The file that was loaded has no code for this GPU: it was built for another architecture.",
        "Give nvcc `-arch=sm_` followed by `cp.cuda.Device().compute_capability`.",
    ),
    Meaning(
        r"CUDA_ERROR_(?:FILE_NOT_FOUND|INVALID_IMAGE)",
        "The file that was loaded is missing or was not built by nvcc.",
        "Use `check=True` so that `subprocess.run` raises an error if nvcc fails. Check that the path matches `-o`, "
        "and that the file was built with `--fatbin` for this GPU's architecture.",
    ),
    Meaning(
        r"Argument '(?:path|filename)' has incorrect type \(expected str, got (\w+)\)",
        "CuPy expects the path of a module as a string, not as a {0}.",
        "Write `cp.RawModule(path=str(path))`.",
    ),
    Meaning(
        r"fatal error: '?([^':\s]+\.cu)'?: No such file",
        "nvcc cannot find the file `{0}`.",
        "Write the source to it first, with the types filled in: `Path('{0}').write_text(…)`.",
    ),
    Meaning(
        r"RawModule\.__init__\(\) (?:takes|got)",
        "`cp.RawModule` takes its arguments by name, and knows only some names.",
        "Write `cp.RawModule(code=…, options=('--use_fast_math',))`.",
    ),
    Meaning(
        r"FileNotFoundError: .*'nvcc [^']",
        "`subprocess` takes the whole text for the name of a program.",
        'Pass a list of words: `["nvcc", "--fatbin", …]`.',
    ),
    Meaning(
        r"Don't know what to do with '([^']+)'",
        "nvcc tells the language by a file's suffix, and does not know that of `{0}`.",
        "Let the name of the source end in `.cu`.",
    ),
    Meaning(
        r"is not defined for option 'gpu-architecture'|Unsupported gpu architecture",
        "nvcc does not know this architecture.",
        "The name is `sm_` followed by the compute capability: `-arch=sm_90`.",
    ),
    Meaning(
        r"CalledProcessError: Command .*nvcc.* returned non-zero",
        "nvcc failed. Its message is in the printed output below.",
        "Pass `capture_output=True` as well as `check=True`, and the report shows the line.",
    ),
    Meaning(
        r"no storage class or type specifier",
        "The name of a file was compiled as if it were source code.",
        "`code=` takes the source code itself. Load a compiled file with `path=`.",
        code=r"\.(?:fatbin|cubin|ptx)\b",
    ),
    Meaning(
        r"got '?Template|'Template' object has no attribute",
        "The template was passed unfilled, with `$T` still in it.",
        "Fill it in first: `source.substitute(T='float')` returns the source code.",
    ),
    Meaning(
        r"KeyError: '(\w+)'",
        "The template has a `${0}`, but `substitute` got no value for it.",
        "Give every name a value, even an empty one: `source.substitute(T='double', f='')`.",
        code=r"substitute\(",
    ),
    Meaning(
        r"user-defined literal operator not found",
        "An `f` suffix follows a number without a decimal point.",
        "Write `2.0f`: `2f` is not valid C++.",
    ),
    Meaning(
        r'more than one instance of overloaded function "(\w+)" has "C" linkage',
        "Two kernels have the same name, `{0}`.",
        "Kernels for two types need two names if they share a file.",
    ),
    Meaning(
        r'no instance of function template "(\w+)" matches the argument list',
        "`{0}` is a template, and its parameters do not fit the types or the number of these arguments.",
        "An instance such as `{0}<float>` takes pointers to float: does the type in brackets match the pointers?",
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
