"""The bench of CUDA graphs measures the notebook's function."""

import ast
import inspect
from pathlib import Path

from benchmarks.graphs import many_small_steps

NOTEBOOK = Path(__file__).resolve().parents[2] / "source" / "01_profiling" / "03_free_a_pipeline.py"


def _body(text):
    """The statements of `many_small_steps`, without its docstring."""
    (found,) = (
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.name == "many_small_steps"
    )
    return [ast.dump(node) for node in found.body[ast.get_docstring(found) is not None :]]


def test_the_recorded_function_is_the_notebooks():
    """A reader compares times of the function that the notebook shows."""
    assert _body(NOTEBOOK.read_text(encoding="utf-8")) == _body(inspect.getsource(many_small_steps))
