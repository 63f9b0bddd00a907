"""Errors of the C++ compilers: g++ on the CPU, NVIDIA's on a GPU machine."""

from __future__ import annotations

from grader.feedback.meanings.meaning import Meaning

__all__ = ["CPP"]

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
