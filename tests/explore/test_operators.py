"""What is drawn of an operator is what is registered."""

import pytest
import torch

from grader.explore import draw_operator
from grader.explore.operators import registered


@pytest.fixture
def twice():
    @torch.library.custom_op("tests_explore::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    return twice


def test_each_part_shows_once_it_is_registered(twice):
    """A fresh operator has a kernel alone; fake and gradient appear when they are given."""
    assert registered(twice) == {"kernel": True, "fake": False, "gradient": False}
    assert "hatched: fake and gradient." in draw_operator(twice).alt
    twice.register_fake(torch.empty_like)
    assert registered(twice) == {"kernel": True, "fake": True, "gradient": False}
    twice.register_autograd(lambda ctx, grad: 2 * grad)
    assert registered(twice) == {"kernel": True, "fake": True, "gradient": True}


def test_the_picture_names_the_operator(twice):
    """The alt text holds the schema that PyTorch made of the type hints, and says when nothing is missing."""
    twice.register_fake(torch.empty_like)
    twice.register_autograd(lambda ctx, grad: 2 * grad)
    picture = draw_operator(twice)
    assert "tests_explore::twice(Tensor x) -> Tensor" in picture.alt
    assert "All three are registered." in picture.alt
    assert picture.svg.startswith("<?xml")


def test_what_is_no_operator_is_refused():
    """A plain function has nothing registered: the message says what is wanted."""
    with pytest.raises(TypeError, match="custom_op"):
        draw_operator(len)
