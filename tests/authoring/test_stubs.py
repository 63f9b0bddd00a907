"""Solution regions and the stubs that take their place."""

from __future__ import annotations

import pytest

from grader.authoring import stubs
from grader.authoring.source_tree import SourceError

CELL = '''\
import triton

SOURCE = """
__global__ void f() {
    // BEGIN SOLUTION
    int i = threadIdx.x;
    // END SOLUTION
}
"""


@triton.autotune(configs=[], key=[])
@triton.jit
def kernel(x):
    row = 1
    ### BEGIN SOLUTION
    y = row
    ### END SOLUTION


def launch(x):
    if x:
        ### BEGIN SOLUTION
        kernel[1](x)
        return x
        ### END SOLUTION


# BEGIN SOLUTION
BLOCK = 128
# END SOLUTION
'''


def test_each_stub_fits_its_place() -> None:
    """C++ gets a comment, a kernel `pass`, a function a `raise`, a module a comment; the indent stays."""
    text = stubs.without_solutions(CELL)
    assert "__global__ void f() {\n    // YOUR CODE HERE\n}" in text
    assert "    row = 1\n    pass  # YOUR CODE HERE\n" in text
    assert '    if x:\n        raise NotImplementedError("not written yet")\n' in text
    assert text.endswith("\n\n# YOUR CODE HERE\n")
    assert "SOLUTION" not in text


def test_a_stub_leaves_a_cell_that_defines() -> None:
    """A cell with stubs runs as Python, and what it defined is still defined; calling it says what is missing."""
    cell = "def f(x):\n    ### BEGIN SOLUTION\n    return x\n    ### END SOLUTION\n"
    namespace: dict[str, object] = {}
    exec(stubs.without_solutions(cell), namespace)
    with pytest.raises(NotImplementedError, match="not written yet"):
        namespace["f"](1)  # type: ignore[operator]


def test_without_markers_keeps_the_solution() -> None:
    """Only the marker lines are removed."""
    kept = stubs.without_markers(CELL).split("\n")
    assert kept == [line for line in CELL.split("\n") if "SOLUTION" not in line]


def test_lines_inside_and_outside_make_up_the_cell() -> None:
    """A line is inside a solution, or visible, or a marker."""
    inside, outside = stubs.solution_lines(CELL), stubs.visible_lines(CELL)
    assert [line.strip() for line in inside] == [
        "int i = threadIdx.x;", "y = row", "kernel[1](x)", "return x", "BLOCK = 128",
    ]  # fmt: skip
    assert len(inside) + len(outside) + 8 == len(CELL.split("\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f():\n    # BEGIN SOLUTION\n    pass", "no END SOLUTION"),
        ("def f():\n    pass\n    # END SOLUTION", "no BEGIN SOLUTION"),
        ("# BEGIN SOLUTION\n# BEGIN SOLUTION\n# END SOLUTION", "inside the solution of line 1"),
        ("# BEGIN SOLUTION\nx = 1\n// END SOLUTION", "began with `#`"),
        ("x = 1  # BEGIN SOLUTION\n# END SOLUTION", "alone on its line"),
        ('x = """\n# BEGIN SOLUTION\n# END SOLUTION\n"""', "must be `//`"),
        ("x = (\n# BEGIN SOLUTION\n# END SOLUTION\n", "not Python"),
    ],
)
def test_wrong_markers_are_refused(text: str, message: str) -> None:
    """A marker that could leave a part of a solution in the course is an error, not a guess."""
    with pytest.raises(SourceError, match=message):
        stubs.without_solutions(text)
