"""Errors of C++ compilers and the CUDA runtime: what each one means and how to fix it."""

from __future__ import annotations

from grader.feedback.python_errors import Meaning

_QUOTE = "[‘'\"`]"  # g++ and NVIDIA's compiler quote differently
_END = "[’'\"`]"

_OF_DIM3 = rf"{_QUOTE}(?:const )?(?:u?int3|dim3){_END}"

_NO_POWER = ("C++ has no power operator.", "Multiply: `x[i] * x[i]`.")

CPP: tuple[Meaning, ...] = (
    Meaning(
        rf"no (?:match for|operator) {_QUOTE}(?:operator)?<<{_END}|expression must have integral",
        "A launch has three angle brackets on each side: here are two, which shift bits in C++.",
        "Write `{0}<<<grid, block>>>(…)`.",
        code=r"\b(\w+)\s*<<(?!<)[^<;]+>>\s*\(",
    ),
    Meaning(r"to binary .operator\^", *_NO_POWER),
    Meaning(r"expression must have integral", *_NO_POWER, code=r"\^"),
    Meaning(rf"invalid type argument of unary {_QUOTE}\*|operand of {_QUOTE}\*", *_NO_POWER, code=r"\*\*"),
    Meaning(
        rf"no operator {_QUOTE}\S+{_END} matches these operands|no match for {_QUOTE}operator|{_OF_DIM3} to {_QUOTE}"
        rf"|conversion function from {_OF_DIM3}",
        "`{0}` is not one number: it has a part for each axis.",
        "Write `{0}.x`, `{0}.y` or `{0}.z`.",
        code=r"\b(threadIdx|blockIdx|blockDim|gridDim)\b(?!\s*\.)",
    ),
    Meaning(
        rf"invalid types {_QUOTE}(?:const )?\w+\[\w+\]{_END} for array subscript"
        r"|expression must have pointer-to-object type",
        "A pointer takes a single index, but this code uses two.",
        "A matrix is stored row by row, so the index is `row * width + column`.",
    ),
    Meaning(
        rf"invalid preprocessing directive #|stray {_QUOTE}#{_END}|unrecognized preprocessing directive",
        "C++ does not allow a `#` here.",
        "C++ comments begin with `//`.",
    ),
    Meaning(r"unrecognized token", "C++ does not allow a `#` here.", "C++ comments begin with `//`.", code="#"),
    Meaning(
        rf"expected {_QUOTE},{_END} or {_QUOTE};{_END}|expected (?:a )?{_QUOTE};{_END}",
        "A semicolon is missing, often at the end of the previous line.",
        "End the statement with `;`.",
    ),
    Meaning(
        rf"expected (?:a )?{_QUOTE}\({_END}",
        "In C++ the condition of `{0}` is in parentheses.",
        "Write `{0} (…)`, for example `if (row < height && column < width)`.",
        code=r"\b(if|while|for|switch)\b",
    ),
    Meaning(
        r"expected (?:an )?(?:identifier|expression)",
        "The condition of `{0}` ends at its first closing parenthesis, before the `{1}`.",
        "Put one pair of parentheses around the whole condition: `{0} ((…) {1} (…))`.",
        code=r"\b(if|while)\s*\(.*\)\s*(&&|\|\||and\b|or\b)\s*\(",
    ),
    Meaning(
        r"__global__ function call must be configured",
        "A kernel was called like a function.",
        "Launch it over a grid of blocks: `kernel<<<grid, block>>>(…)`.",
    ),
    Meaning(
        rf"expected (?:a )?{_QUOTE}([)}}\]]){_END}", "A bracket is opened but never closed.", "Add the missing `{0}`."
    ),
    Meaning(
        r"identifier \"(thread[iI]dx|block[iI]dx|block[dD]im|grid[dD]im)\" is undefined"
        rf"|{_QUOTE}(thread[iI]dx|block[iI]dx|block[dD]im|grid[dD]im){_END} was not declared",
        "`{0}{1}` is not a known name here.",
        "CUDA's names are `threadIdx`, `blockIdx`, `blockDim` and `gridDim`, and only kernels can use them.",
    ),
    Meaning(
        r"(?:host|device__) function call cannot be configured",
        "Only a kernel can be launched with `<<<grid, block>>>`, and this function is not one.",
        "Declare it `__global__ void`.",
    ),
    Meaning(
        r"static assertion failed: (atomic\w+) has no version for this type",
        "CUDA has no `{0}` for values of this type.",
        "`atomicAdd` takes `int`, `unsigned`, `float` and `double`; most of the others take only integers. For other "
        "types, loop around `atomicCAS`.",
    ),
    Meaning(
        r"uses too much shared data",
        "The kernel declares more than 48 KiB of `__shared__` memory.",
        "Use a smaller tile. Dynamic shared memory, `extern __shared__`, can be larger.",
    ),
    Meaning(
        r"too much global constant data",
        "The `__constant__` variables take up more than 64 KiB, which is all the constant memory of a GPU.",
        "Pass a large table to the kernel as an array in global memory.",
    ),
    Meaning(
        r"annotation on lambda requires --extended-lambda",
        "nvcc refuses a lambda with `__device__` unless it gets a flag.",
        'Pass `extra_cuda_cflags=["--extended-lambda"]` to `load_inline`, or use a struct with an `operator()`.',
    ),
    Meaning(
        r"calling a __host__ function\(\"lambda\"\)",
        "A kernel gets a lambda of the host, which runs on the CPU only.",
        'Write `[=] __device__ (…)` and pass `extra_cuda_cflags=["--extended-lambda"]` to `load_inline`.',
    ),
    Meaning(
        r"parameter of a __global__ function cannot be a reference",
        "A kernel gets an argument by reference, which is an address of the host.",
        "Pass it by value: leave out the `&`.",
    ),
    Meaning(
        r"identifier \"([^\"]+)\" is undefined in device code: an index that is not constant",
        "`{0}` is an array of the host: a kernel knows its elements only where the index is a constant.",
        "Write `__constant__` or `__device__` before `constexpr`, or declare the array in the kernel.",
    ),
    Meaning(
        r"identifier \"([^\"]+)\" is undefined in device code",
        "`{0}` belongs to the host, and a kernel cannot use it.",
        "Mark a variable `__device__` or `__constant__`, or pass its value to the kernel. To print, use `printf`.",
    ),
    Meaning(
        rf"identifier \"([^\"]+)\" is undefined|{_QUOTE}([^’'\"`]+){_END} was not declared in this scope",
        "The name `{0}{1}` is used but never declared.",
        "Declare it with its type first, for example `int row = …;`, or fix the spelling.",
    ),
    Meaning(
        r"must be a modifiable lvalue|assignment of read-only location",
        "The code writes through a `const` pointer.",
        "Write to `out`: the inputs are read-only.",
    ),
    Meaning(
        r"__global__ function must have a void return type",
        "A kernel cannot return a value.",
        "Declare it `__global__ void` and write the result through an output pointer.",
    ),
    Meaning(
        r"calling a (?:constexpr )?__host__ function\(\"?(.+?)\"?\) from a __(?:global|device)__ function",
        "Device code calls `{0}`, which is a CPU function.",
        "Mark the function `__device__`, or use a CUDA function such as `expf`.",
    ),
    Meaning(
        r"too (few|many) arguments (?:in|to) function",
        "A call passes too {0} arguments.",
        "Compare the call or the launch with the function's parameters.",
    ),
    Meaning(
        rf"(?:from|type) {_QUOTE}const (\w+) ?\*{_END} (?:to {_QUOTE}\w+ ?\*|is incompatible)",
        "A `const` pointer is passed to a parameter that is not `const`.",
        "Declare the kernel's parameter as `const {0}*`, or pass the output.",
    ),
    Meaning(
        rf"cannot be used to initialize an entity of type|(?:invalid conversion from|cannot convert) {_QUOTE}",
        "A value has the wrong type here. Often a pointer is used instead of an element.",
        "Read an element with `x[i]`, and get a tensor's pointer with `data_ptr<float>()`.",
    ),
    Meaning(
        r"expression must have integral|array subscript is not an integer",
        "An index must be an integer.",
        "Use `int` for indices.",
    ),
    Meaning(
        rf"has no member {_QUOTE}(\w+){_END}|has no member named {_QUOTE}(\w+){_END}",
        "There is no member `{0}{1}`.",
        "`threadIdx`, `blockIdx`, `blockDim` and `gridDim` have `.x`, `.y` and `.z`.",
    ),
    Meaning(
        r"expected primary-expression before [‘']<[’']",
        "The C++ compiler found `<<<`, which only CUDA's compiler understands.",
        "Launch kernels in `cuda_sources`, not in `cpp_sources`.",
    ),
    Meaning(
        r"could not open source file \"([^\"]+)\"|fatal error: (\S+): No such file",
        "The compiler cannot find the header `{0}{1}`.",
        "Fix the `#include`. The exercise needs only the headers that the cell starts with.",
    ),
    Meaning(
        r"AttributeError: \S*\.so: undefined symbol: (\w+)",
        "The library has no function with the name `{0}`.",
        'Declare it `extern "C"`, because C++ gives other functions longer names, and compare the spelling.',
    ),
    Meaning(
        r"undefined (?:symbol|reference)",
        "A function is declared and called, but it has no definition with these parameter types.",
        "Compare the declaration in `cpp_sources` with the definition: name and types must match exactly.",
    ),
    Meaning(
        r"'_OpNamespace' '(\w+)' object has no attribute '(\w+)'",
        "The library does not register an operator `{0}::{1}`.",
        "Compare the names in `TORCH_LIBRARY` and `m.def` with the name in the call.",
    ),
)


_ALIGNED = "A GPU loads and stores 2, 4, 8 or 16 bytes at once only at a multiple of that many bytes."

# A kernel's accesses, as the simulator sees them, and launches that it refuses: see `accesses.h` and `launch.h`.
SIMULATOR: tuple[Meaning, ...] = (
    Meaning(
        r"are grid and block exchanged\?",
        "The block depends on the number of multiprocessors, and the grid does not.",
        "The grid comes first: as many blocks as the multiprocessors need, then the threads of a block.",
    ),
    Meaning(
        r"Race: .*`__threadfence\(\)` is missing",
        "Other blocks may see the atomic before they see what was written earlier.",
        "Call `__threadfence()` between the write and the atomic.",
        title="It has a race",
    ),
    Meaning(
        r"Race: .*Both are in the same statement",
        "Several threads store to the same element, and only one of the values is left.",
        "Let one thread store it, add with `atomicAdd`, or give each thread its own element.",
        title="It has a race",
    ),
    Meaning(
        r"Race: .*Each thread reads, changes and writes it",
        "Several threads update the same element at once, and updates are lost.",
        "Add with `atomicAdd`, or let each thread sum in a variable of its own and combine these sums.",
        title="It has a race",
    ),
    Meaning(
        r"Race: .*They are on two streams",
        "Kernels on two streams may run at the same time, and the result depends on which of them comes first.",
        "Record an event after the first one, and let the other's stream wait for it with `cudaStreamWaitEvent`. Or "
        "launch both on one stream.",
        title="It has a race",
    ),
    Meaning(
        r"Race: .*Blocks run at the same time",
        "Two blocks use the same memory, and the result depends on which of them comes first.",
        "Add with `atomicAdd`, or let each block write its own element and combine these in a second launch.",
        title="It has a race",
    ),
    Meaning(
        r"Race: .*lanes of a warp need not run in step",
        "Two threads of one warp use the same memory, and the result depends on which of them comes first.",
        "Put a barrier between writing and reading, each time: `__syncwarp()` if no other warp uses this memory, "
        "otherwise `__syncthreads()`. `volatile` does not replace it.",
        title="It has a race",
    ),
    Meaning(
        r"Race: ",
        "Two threads use the same memory, and the result depends on which of them comes first.",
        "Put `__syncthreads()` between the two, where every thread of the block reaches it, or use an atomic.",
        title="It has a race",
    ),
    Meaning(
        r"Host: the launch .*passes the address",
        "A kernel cannot use the host's variables by their address.",
        "Pass numbers by value. Copy an array to memory from `cudaMalloc` with `cudaMemcpy`.",
        title="A kernel gets an address of the host",
    ),
    Meaning(
        r"Host: the launch .*memory that the host allocated",
        "A kernel cannot use memory from `malloc`, `new` or a `std::vector`: most GPUs cannot reach it.",
        "Copy it to memory from `cudaMalloc` with `cudaMemcpy`, or allocate it with `cudaMallocManaged`.",
        title="A kernel gets an address of the host",
    ),
    Meaning(
        r"Host: .*a variable of the GPU",
        "A `__device__` or `__constant__` variable exists twice, and the host's code sees only its own copy.",
        "Copy with `cudaMemcpyToSymbol` or `cudaMemcpyFromSymbol`.",
        title="The host uses a variable of the GPU",
    ),
    Meaning(
        r"Host: ",
        "Host code uses GPU memory, and on a GPU it crashes there.",
        "Copy the values to the host with `cudaMemcpy`, which also waits for the kernel, or compute in a kernel.",
        title="The host uses the GPU's memory",
    ),
    Meaning(
        r"Unfinished: the function returns",
        "The grader and PyTorch use the output on the current stream, which does not wait for a non-blocking stream.",
        "Record an event after the work, and let the caller's stream wait for it with `cudaStreamWaitEvent`.",
        title="It does not wait for its own stream",
    ),
    Meaning(
        r"Unfinished: ",
        "A launch returns before its kernel has run, so the host uses memory that the GPU is not done with.",
        "Call `cudaDeviceSynchronize()`, or wait for the stream, before the host uses the memory.",
        title="It does not wait for the GPU",
    ),
    Meaning(
        r"Outside: .*(?:past the end|before the beginning) of `([^`]*\([^`]*)`",
        "`{0}` has fewer elements than the kernel uses.",
        "Compare its size with the largest index: sums of blocks need one element per block.",
    ),
    Meaning(
        r"Outside: .*past its dynamic shared memory",
        "The launch gives the block less shared memory than the kernel uses.",
        "Pass its size in bytes as the third value: `<<<grid, block, bytes>>>`.",
    ),
    Meaning(
        r"Outside: .*which is an input",
        "A kernel writes to an input.",
        "Write to the output. Does the launch pass the pointers in the kernel's order?",
    ),
    Meaning(
        r"Outside: .*past the end of `(\w+)`, (?:a `[^`]*` )?declared",
        "`{0}` has fewer elements than the kernel uses.",
        "Compare the size in its declaration with the largest index.",
    ),
    Meaning(
        r"Outside: .* in no array that the kernel was given",
        "This address is in none of the arrays: it was read from memory as a pointer, or computed.",
        "A matrix is one array: take `float*`, not `float**`, and use the index `row * width + column`.",
        cell=r"\b(?:float|double|int|char)\s*\*\s*\*\s*\w+\s*[,)]",
    ),
    Meaning(
        r"Outside: (?!.* in no array that the kernel was given)",  # there the cell's text may tell more
        "A kernel accessed memory outside its buffers.",
        "Check every index against the bounds before you use it, with an `if`.",
    ),
    Meaning(
        r"Misaligned: ",
        _ALIGNED,
        "Check the offset before you cast the pointer, or access single elements.",
    ),
    Meaning(
        r"a grid must have at least one block",
        "The grid of this launch is empty.",
        "Round up: `(n + threads - 1) / threads` is never 0. `n / threads` is 0 if n is smaller.",
    ),
    Meaning(
        r"with the mask 0x\w+, which does not name it",
        "The mask has a bit for each lane that takes part, but a lane whose bit is 0 calls the function, too.",
        "If the whole warp calls it, the mask is `0xffffffff`.",
    ),
    Meaning(
        r"Every lane that the mask names must reach it",
        "A function of a warp waits for every lane of its mask, and some of them return or branch away before it.",
        "Let all lanes of the mask reach the call: lanes without an element pass a 0 and skip the work, not the call.",
    ),
    Meaning(
        r"a block has [\d,]+ threads; 1,024 are the limit",
        "The GPU refused the launch: a block has at most 1024 threads.",
        "A block of `dim3(x, y, z)` has x * y * z threads: `dim3(32, 8)` has 256.",
    ),
    Meaning(
        r"a block has ([\d,]+) threads; `__launch_bounds__` of the kernel allows ([\d,]+)",
        "The kernel promises blocks of at most {1} threads, and the launch asks for {0}.",
        "Use the same number in the launch and in `__launch_bounds__`: a constant that both name keeps them equal.",
    ),
    Meaning(
        r"deep in z; 64 are the limit|blocks in [xyz]; [\d,]+ are the limit",
        "The GPU refused the launch: a grid has at most 65,535 blocks in y and in z, and a block 64 threads in z.",
        "Let the dimension that can be large be x.",
    ),
    Meaning(
        r"bytes of (?:dynamic shared|`__shared__`) memory; [\d,]+ are the limit",
        "A block has 48 KiB of shared memory, or up to 227 KiB of dynamic shared memory if the kernel may use more.",
        "Use a smaller tile, or call `cudaFuncSetAttribute` with `cudaFuncAttributeMaxDynamicSharedMemorySize`.",
    ),
)

CUDA: tuple[Meaning, ...] = (
    Meaning(
        r"wrote to `([^`]+)`, which is an input",
        "`{1}` changes `{0}` in place, and inputs are read-only.",
        "Call the method without the underscore at its end: it returns a new tensor.",
        title="It wrote to an input",
        code=r"(?<!\bout)\.([a-z]\w*_)\(",
    ),
    Meaning(
        r"wrote to `([^`]+)`, which is an input",
        "Inputs are read-only, and the kernel was stopped there.",
        "Are `{0}` and the output exchanged in the launch, or in the kernel's parameters?",
        title="It wrote to an input",
    ),
    Meaning(
        # CUDA 12 gives the first message for a bad grid, CUDA 13 the second; both give it for too much shared memory.
        r"invalid configuration argument|(?:RuntimeError|CUDA error|CUDA_ERROR_INVALID_VALUE): invalid argument",
        "The GPU refused the launch: a block has at most 1024 threads, and neither grid nor block may be empty.",
        "If the grid is empty, the division was probably rounded down: `(n + block - 1) / block` is never 0. "
        "Otherwise, check that block.x * block.y is at most 1024 and the dynamic shared memory at most 48 KiB.",
    ),
    Meaning(
        r"no kernel image is available",
        "The kernel was built for a different GPU architecture.",
        "Remove `-arch` and `TORCH_CUDA_ARCH_LIST`. If that does not help, `grader doctor` compares the versions.",
    ),
    Meaning(
        r"misaligned address",
        _ALIGNED,
        "Cast a pointer to a wider type only where its address is a multiple of 4, 8 or 16, as the type needs.",
        title="It accessed memory at a misaligned address",
    ),
    Meaning(
        r"illegal memory access|unspecified launch failure",
        "A kernel accessed memory outside its buffers, or wrote to an input, and the GPU stopped it.",
        "Check every index against the bounds before you use it.",
    ),
    Meaning(
        r"device-side assert triggered",  # torch mentions assertions in every CUDA error
        "An assertion failed on the GPU, usually because an index was out of range.",
        "Check the indices that you use for lookups.",
    ),
    Meaning(
        r"threads wait at __sync",
        "A barrier waits for all threads of its block, but some of them never reach it.",
        "Move the barrier out of the `if`: threads without an element skip the work, not the barrier.",
    ),
    Meaning(
        r"too many resources requested for launch",
        "The block needs more registers or shared memory than the GPU has.",
        "Use fewer threads per block.",
    ),
    Meaning(
        r"CUDA out of memory|out of memory",
        "The GPU is out of memory.",
        "Write to `out` and allocate no other large tensors. If other notebooks use the GPU, restart their kernels.",
    ),
    Meaning(
        r"[Bb]oth events must be (?:recorded|completed)",
        "An event has no time until the GPU has reached it.",
        "Record both events, then wait with `end.synchronize()` before you call `start.elapsed_time(end)`.",
    ),
    Meaning(
        r"driver version is insufficient|unsupported toolchain|Found no NVIDIA driver",
        "The GPU's driver is missing or too old for this build.",
        "Run `grader doctor`: it shows the versions and the command that fixes this.",
    ),
    Meaning(
        r"Torch not compiled with CUDA enabled",
        "The code needs a GPU, but this machine has none or PyTorch was installed without CUDA.",
        'Use the device of the given tensors, `x.device`, instead of "cuda".',
    ),
    Meaning(
        r"CUDA_HOME environment variable is not set|nvcc: (?:command )?not found|Ninja is required|load libnvrtc|"
        r"which compiles CUDA C\+\+; this says",
        "CUDA C++ cannot be compiled here: this machine has no compiler. Your code is not the reason.",
        "Run `grader doctor`: it shows the command that installs it.",
        title="This machine has no compiler",
    ),
    Meaning(
        r"unsupported GNU version",
        "The C++ compiler is newer than the ones that CUDA's compiler supports.",
        "Run `grader doctor`: it shows which versions work together.",
    ),
)
