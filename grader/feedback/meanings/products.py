"""Errors of matrix products in Triton: `tl.dot`, `triton.autotune` and tensor descriptors."""

from __future__ import annotations

from grader.feedback.meanings.meaning import Meaning

__all__ = ["PRODUCTS"]

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
