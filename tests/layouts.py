"""Notebooks with several cells that could be judged, and the number of the right one, from 1."""

from __future__ import annotations

__all__ = ["LAYOUTS", "SOLVED", "STUB"]

STUB = 'def softmax(x, out):\n    raise NotImplementedError("not written yet")\n'
SOLVED = "def softmax(x, out):\n    pass  # points: 7\n"
_WRONG = "def softmax(x, out):\n    pass  # points: 0\n"

# The texts of code cells; `*` marks the exercise's own cell.
LAYOUTS = {
    "the stub": (["import math", "*" + STUB, "x = 1"], 2),
    "solved": (["import math", "*" + SOLVED, "x = 1"], 2),
    "a new cell below the stub": (["*" + STUB, SOLVED, "x = 1"], 2),
    "a new cell above the stub": (["import math", SOLVED, "*" + STUB], 2),
    "two new cells around the stub": ([_WRONG, "*" + STUB, SOLVED], 3),
    "an attempt, and the solution below": (["*" + _WRONG, "x = 1", SOLVED], 3),
    "the solution, and a later attempt": (["*" + SOLVED, "x = 1", _WRONG], 3),
    "under another name": (["*" + STUB, SOLVED.replace("softmax", "mine") + "softmax = mine"], 2),
    "without its mark": ([STUB, SOLVED], 2),
    "more blanks than are shown": (["*" + SOLVED + "#" + " " * 3000 + "#", "x = 1"], 1),
    "a name longer than is shown": (["*" + SOLVED + "names = '" + "a.b*" * 300 + "'"], 1),
    "a cookie": (["*# -*- coding: latin-1 -*-\n" + SOLVED], 1),
    "a syntax error in the last": (["*" + SOLVED, "def softmax(x, out)\n    pass"], 2),
}
