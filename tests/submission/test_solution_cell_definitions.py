"""Parsing untrusted text: no text takes too much memory or time."""

import ast
import warnings

import pytest

from grader.submission.solution_cell import bindings, parsed


@pytest.mark.timeout(20)
@pytest.mark.parametrize("dots", [".a", ".\ufdf2", "\\\n.a", " . a"])
def test_a_name_with_endless_dots_is_refused_before_it_is_parsed(dots):
    """64 kB of it took gigabytes: the parser stores every prefix of the name. `\ufdf2` becomes four letters."""
    with pytest.raises(ValueError, match="more than 32 dots"):
        parsed("import \U00010400" + dots * 10_000)


@pytest.mark.parametrize(
    "text",
    [
        "import torch.utils.cpp_extension as x\ny = x.load_inline.a.b.c",
        "y = " + "x.a().b[0]." * 50 + "c",
        "y = [" + "1.5, 2., .5, x.y, " * 50 + "]",
        "# " + "." * 200 + "\n" + "x = ...\n" * 50,
        '"""' + "A sentence of words. " * 50 + '"""',
    ],
)
def test_ordinary_code_has_no_endless_name(text):
    """Calls, indices, numbers, dots in a row and sentences end a name."""
    assert ast.dump(parsed(text)) == ast.dump(ast.parse(text))


def test_parsing_does_not_warn_of_an_invalid_escape():
    """Python warns when the cell runs, not when it is parsed."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [name for name, _ in bindings(parsed('x = "\\d"'))] == ["x"]
