"""CuPy, the driver under it, and NVRTC's options."""

from __future__ import annotations

from grader.feedback.python_errors import Meaning

# Errors of the C++ compilers: g++ on the CPU, NVIDIA's on a GPU machine.

_QUOTE = "[‘'\"`]"  # g++ and NVIDIA's compiler quote differently
_END = "[’'\"`]"

_NO_POWER = ("C++ has no power operator.", "Multiply: `x[i] * x[i]`.")

CPP: tuple[Meaning, ...] = (
    Meaning(r"to binary .operator\^", *_NO_POWER),
    Meaning(r"expression must have integral", *_NO_POWER, code=r"\^"),
    Meaning(rf"invalid type argument of unary {_QUOTE}\*|operand of {_QUOTE}\*", *_NO_POWER, code=r"\*\*"),
    Meaning(
        rf"invalid types {_QUOTE}(?:const )?\w+\[\w+\]{_END} for array subscript"
        r"|expression must have pointer-to-object type",
        "A pointer takes one index, and here are two.",
        "A matrix lies in memory row after row: the index is `row * width + column`.",
    ),
    Meaning(
        rf"invalid preprocessing directive #|stray {_QUOTE}#{_END}|unrecognized preprocessing directive",
        "A `#` stands where C++ knows none.",
        "C++ comments begin with `//`.",
    ),
    Meaning(r"unrecognized token", "A `#` stands where C++ knows none.", "C++ comments begin with `//`.", code="#"),
    Meaning(
        rf"expected {_QUOTE},{_END} or {_QUOTE};{_END}|expected (?:a )?{_QUOTE};{_END}",
        "A semicolon is missing, often at the end of the line before.",
        "End the statement with `;`.",
    ),
    Meaning(
        rf"expected (?:a )?{_QUOTE}([)}}\]]){_END}",
        "A bracket is opened and never closed.",
        "Add the missing `{0}`.",
    ),
    Meaning(
        r"identifier \"(thread[iI]dx|block[iI]dx|block[dD]im|grid[dD]im)\" is undefined"
        rf"|{_QUOTE}(thread[iI]dx|block[iI]dx|block[dD]im|grid[dD]im){_END} was not declared",
        "`{0}{1}` is not known here.",
        "The names are `threadIdx`, `blockIdx`, `blockDim` and `gridDim`; they exist in kernels alone.",
    ),
    Meaning(
        rf"identifier \"([^\"]+)\" is undefined|{_QUOTE}([^’'\"`]+){_END} was not declared in this scope",
        "The name `{0}{1}` is used and was never declared.",
        "Declare it with its type before its use, for example `int row = …;`, or mend the spelling.",
    ),
    Meaning(
        r"must be a modifiable lvalue|assignment of read-only location",
        "The code writes through a `const` pointer.",
        "Write into `out`; the input is read-only.",
    ),
    Meaning(
        r"__global__ function must have a void return type",
        "A kernel returns nothing.",
        "Declare it `__global__ void` and write the result into an output pointer.",
    ),
    Meaning(
        r"calling a __host__ function\(\"?([^\")]*)\"?\)? .*from a __global__ function",
        "A kernel calls `{0}`, a function of the CPU.",
        "Mark the function `__device__`, or use CUDA's own, such as `expf`.",
    ),
    Meaning(
        r"too (few|many) arguments (?:in|to) function",
        "A call has too {0} arguments.",
        "Compare the call, or the launch, with the function's parameters.",
    ),
    Meaning(
        rf"(?:from|type) {_QUOTE}const (\w+) ?\*{_END} (?:to {_QUOTE}\w+ ?\*|is incompatible)",
        "A pointer to constant data is passed where it could be written through.",
        "Declare the kernel's parameter `const {0}*`, or pass the output.",
    ),
    Meaning(
        rf"cannot be used to initialize an entity of type|(?:invalid conversion from|cannot convert) {_QUOTE}",
        "A value of one type is put where another belongs, often a pointer for its element.",
        "Take an element with `x[i]`, and a tensor's pointer with `data_ptr<float>()`.",
    ),
    Meaning(
        r"expression must have integral|array subscript is not an integer",
        "An index must be a whole number.",
        "Use `int` for indices.",
    ),
    Meaning(
        rf"has no member {_QUOTE}(\w+){_END}|has no member named {_QUOTE}(\w+){_END}",
        "There is no member `{0}{1}`.",
        "`threadIdx`, `blockIdx`, `blockDim` and `gridDim` have `.x`, `.y` and `.z`.",
    ),
    Meaning(
        r"expected primary-expression before [‘'][<>][’']",
        "The C++ compiler met `<<<`, which it does not know.",
        "Launch kernels in `cuda_sources`, not in `cpp_sources`.",
    ),
    Meaning(
        r"could not open source file \"([^\"]+)\"|fatal error: (\S+): No such file",
        "The header `{0}{1}` is not found.",
        "Mend the `#include`; the exercise needs only those that are there at the start.",
    ),
    Meaning(
        r"undefined (?:symbol|reference)",
        "A function is declared and used, but defined nowhere, or with other types than it is declared with.",
        "Compare the declaration in `cpp_sources` with the definition, letter by letter.",
    ),
    Meaning(
        r"'_OpNamespace' '(\w+)' object has no attribute '(\w+)'",
        "The built library registers no `{0}::{1}`.",
        "Compare the names in `TORCH_LIBRARY` and `m.def` with those of the call.",
    ),
)


# Errors of the CUDA runtime, and of the machine it runs on.

CUDA: tuple[Meaning, ...] = (
    Meaning(
        # CUDA 13 says the second of what CUDA 12 gave the first, and of too much shared memory both say the second.
        r"invalid configuration argument|(?:RuntimeError|CUDA error|CUDA_ERROR_INVALID_VALUE): invalid argument",
        "The GPU refused the launch: a block has at most 1024 threads, and neither grid nor block may be empty.",
        "An empty grid: was the division rounded down? `(n + block - 1) / block` is never 0. If that is not it, is "
        "block.x * block.y at most 1024, and the dynamic shared memory at most 48 KiB?",
    ),
    Meaning(
        r"no kernel image is available",
        "The kernel was built for another kind of GPU than this one.",
        "Take `-arch` and `TORCH_CUDA_ARCH_LIST` out; if that does not help, `grader doctor` compares the versions.",
    ),
    Meaning(
        r"illegal memory access|misaligned address|unspecified launch failure",
        "A kernel read or wrote memory that is not its own, or wrote to an input, and the GPU stopped it.",
        "Check every index against the bounds before it is used, with a mask or an `if`.",
    ),
    Meaning(
        r"device-side assert triggered",  # of "assertions" every CUDA error of torch's speaks
        "An assertion failed on the GPU, most often an index out of range.",
        "Check the index that is used for a lookup.",
    ),
    Meaning(
        r"threads wait at __sync",
        "A barrier waits for every thread of its block, and some of them never come.",
        "Move the barrier out of the `if`; threads without an element skip the work, not the barrier.",
    ),
    Meaning(
        r"too many resources requested for launch",
        "The block needs more registers or shared memory than the GPU has.",
        "Use fewer threads a block.",
    ),
    Meaning(
        r"CUDA out of memory|out of memory",
        "The GPU's memory is full.",
        "The function needs no tensors but those that it is given: write into `out`. Restart other notebooks' kernels.",
    ),
    Meaning(
        r"[Bb]oth events must be (?:recorded|completed)",
        "An event's time is not known before the GPU has come to it.",
        "Record both events, and wait with `end.synchronize()` before you ask for `start.elapsed_time(end)`.",
    ),
    Meaning(
        r"driver version is insufficient|unsupported toolchain|Found no NVIDIA driver",
        "The GPU's driver is too old for this build, or there is none.",
        "`grader doctor` names the versions and the command that mends it.",
    ),
    Meaning(
        r"Torch not compiled with CUDA enabled",
        "The code asks for a GPU, and this machine has none (or PyTorch was installed without CUDA).",
        'Use the device of the tensors that are given, `x.device`, in place of "cuda".',
    ),
    Meaning(
        r"CUDA_HOME environment variable is not set|nvcc: (?:command )?not found|Ninja is required",
        "CUDA C++ cannot be built: the compiler or ninja is missing.",
        "`grader doctor` names the command that installs it.",
    ),
    Meaning(
        r"unsupported GNU version",
        "The C++ compiler is newer than CUDA's compiler accepts.",
        "`grader doctor` names the versions that go together.",
    ),
)


# CuPy, the driver under it, and NVRTC's options.

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
