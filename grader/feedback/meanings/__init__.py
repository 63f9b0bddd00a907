"""What the errors of Triton, CUDA, C++, Numba and PyTorch mean here, and what to do: a table, the first match counts.

The patterns were taken from the messages of triton 3.7.1 (its compiler and its interpreter), g++ 12, NVIDIA's compiler
13, numba 0.68 and torch 2.13; tests/feedback/error_texts.py keeps one of each.
"""

from __future__ import annotations

from grader.feedback.meanings.compiler import COMPILER
from grader.feedback.meanings.cpp import CPP
from grader.feedback.meanings.cuda import CUDA
from grader.feedback.meanings.cupy import CUPY
from grader.feedback.meanings.meaning import Advice, Meaning
from grader.feedback.meanings.operator import OPERATOR
from grader.feedback.meanings.products import PRODUCTS
from grader.feedback.meanings.python import NUMBA, PYTHON
from grader.feedback.meanings.triton import TRITON

__all__ = ["MEANINGS", "Advice", "Meaning", "explain"]

MEANINGS: tuple[Meaning, ...] = OPERATOR + PRODUCTS + TRITON + CUPY + CUDA + CPP + NUMBA + PYTHON + COMPILER


def explain(text: str, line: str = "") -> Advice | None:
    """The advice for an error's text, or None where the table knows nothing of it.

    `line` is the submission's line that raised it, if that is known.
    """
    return next((advice for meaning in MEANINGS if (advice := meaning.advice(text, line)) is not None), None)
