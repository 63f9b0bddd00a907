"""The public list of `grader.explore`."""

from __future__ import annotations

import pytest

import grader.explore


def test_the_name_of_every_aid_leads_to_it() -> None:
    """Each name in the list can be imported, and an unknown name raises."""
    for name in grader.explore.__all__:
        assert getattr(grader.explore, name) is not None
    with pytest.raises(AttributeError, match="draw_nothing"):
        _ = grader.explore.draw_nothing
