"""Hold a prediction against what came out."""

from __future__ import annotations

import math
from numbers import Real
from typing import Literal

__all__ = ["compare"]


def compare(
    prediction: object,
    found: object,
    unit: str = "",
    *,
    how: Literal["measured", "computed", "recorded"] = "measured",
) -> None:
    """Print what was predicted beside what was found. A prediction that is still `...` is left out.

    Args:
        prediction: what you wrote down before, a number, text or a list; `...` when you wrote nothing.
        found: what came out, or None where this machine cannot measure it.
        unit: printed after both.
        how: where `found` comes from; printed before it.
    """
    if prediction is ...:
        print("You wrote no prediction: put it in place of the three dots, then run both cells again.")
    else:
        print(f"predicted: {_text(prediction, unit)}")
    if found is None:
        print("measured:  not on this machine, and there is no recorded result yet")
        return
    print(f"{how}:  {_text(found, unit)}")
    if prediction is not ...:
        print(_judge(prediction, found))


def _text(value: object, unit: str) -> str:
    if value == 1 and len(unit) > 3 and unit.isalpha():
        unit = unit.removesuffix("s")  # one kernel
    text = f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if _is_int(value) else str(value)
    return f"{text} {unit}".rstrip()


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _judge(prediction: object, found: object) -> str:
    if prediction == found:
        return "Right."
    numbers = isinstance(prediction, Real) and isinstance(found, Real)
    if numbers and not isinstance(prediction, bool) and not isinstance(found, bool):
        got, want = float(prediction), float(found)  # type: ignore[arg-type]
        if got > 0 and want > 0 and math.isfinite(got) and math.isfinite(want):
            factor = max(got / want, want / got)
            return "Close: within 10 %." if factor <= 1.1 else f"Off by a factor of {factor:.1f}. Read on: why?"
    return "Not the same. Read on: why?"
