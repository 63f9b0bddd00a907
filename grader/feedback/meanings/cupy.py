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
        "Is the path that of nvcc's `-o`, and was the file built with `--fatbin`, for this GPU's architecture?",
    ),
)
