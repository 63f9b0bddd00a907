"""How a long call tells its caller how far it is."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Progress"]

Progress = Callable[[str, int, int], None]  # what is going on, how many are done, of how many
