"""A learner's predictions next to the values that were found, and how many of them were right."""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Iterable
from numbers import Real
from typing import Any, Literal

__all__ = ["CLOSE", "ORDER_OF_MAGNITUDE", "compare", "count_predictions"]

CLOSE, ORDER_OF_MAGNITUDE = 1.25, 10.0  # factors

_RIGHT = "Right."
_ABOUT = r"(?:about|around|roughly|approximately|circa|ca\.|[~≈])?"
_outcomes: dict[tuple[str, int], bool] = {}  # whether a prediction was right or close, by the line that compares it


def compare(
    prediction: object, found: object, unit: str = "", *, how: Literal["measured", "computed", "recorded"] = "measured",
    within: float = CLOSE,
) -> None:  # fmt: skip
    """Print a prediction and the value found. A prediction that is still `...` is left out.

    Args:
        prediction: your prediction: a number, text, or several in a list, tuple or set; names count in any order.
            `...` if you wrote none.
        found: the value found, or None if this machine cannot measure it.
        unit: printed after both.
        how: how `found` was obtained; printed before it.
        within: the factor up to which numbers are close; `ORDER_OF_MAGNITUDE` where only that was asked.
    """
    if prediction is ...:
        print("You have not written a prediction: replace the three dots with one, then run both cells again.")
    else:
        print(f"predicted: {_text(prediction, unit)}")
    if found is None:
        print("measured:  not on this machine, and there is no recorded result yet")
        return
    print(f"{how}:  {_text(found, unit)}")
    if prediction is not ...:
        comment, right = _judge(prediction, found, within)
        caller = sys._getframe(1)
        _outcomes[caller.f_code.co_filename, caller.f_lineno] = right  # a cell that is run again counts once
        print(comment)


def count_predictions() -> None:
    """Print how many predictions were right or close since the notebook was started."""
    made, right = len(_outcomes), sum(_outcomes.values())
    if not made:
        print("You wrote no predictions. Replace the three dots before you run a cell: a wrong guess teaches the most.")
        return
    print(f"{right} of {made} prediction{'s' * (made > 1)} {'was' if right == 1 else 'were'} right or close.")


def _text(value: object, unit: str) -> str:
    if value == 1 and len(unit) > 3 and unit.isalpha():
        unit = unit.removesuffix("s")  # 1 kernel
    text = f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if _is_int(value) else str(value)
    return f"{text} {unit}".rstrip()


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _judge(prediction: object, found: object, within: float) -> tuple[str, bool]:
    """The comment on a prediction, and whether it is right or close."""
    got, want = _parts(prediction), _parts(found)
    if len(got) == len(want) == 1 and isinstance(got[0], str) and not isinstance(want[0], str):
        got = [_number(got[0])]
    names = _names(got), _names(want)
    if names[0] is not None and names[0] == names[1]:
        return _RIGHT, True
    factors = [_factor(*pair) for pair in zip(got, want, strict=True)] if len(got) == len(want) else [math.inf]
    worst = max(factors, default=math.inf)
    if worst <= 1 + 1e-9:
        return _RIGHT, True
    if worst <= within:
        return "Close." if within < ORDER_OF_MAGNITUDE else "Close: the order of magnitude is right.", True
    if worst < math.inf and len(want) == 1:
        return f"Off by a factor of {worst:.1f}. Read on to see why.", False
    return "Not the same. Read on to see why.", False


def _parts(value: Any) -> list[object]:
    """The values in a list, tuple, set or array; a list of the value itself if it is one."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, str) or not isinstance(value, Iterable):
        return [value]
    return [part for each in value for part in _parts(each)]


def _names(parts: list[object]) -> Counter[str] | None:
    """The names among texts such as "exp, sum", without case, quotes and article, or None if a part is not a text."""
    if not parts or not all(isinstance(part, str) for part in parts):
        return None
    words = (word.strip(" \t`'\"()[].").casefold() for part in parts for word in re.split(r",|;|\band\b", str(part)))
    return Counter(re.sub(r"^(an?|the) ", "", word) for word in words if word)


def _number(text: str) -> object:
    """The number in a text such as "2 kernels" or "about 1,024 B"; the text if it has none or several."""
    found = re.fullmatch(rf"\s*{_ABOUT}\s*([-+]?[\d,]*\.?\d+(?:e[-+]?\d+)?)[^\d]*", text, re.IGNORECASE)
    return float(found[1].replace(",", "")) if found else text


def _factor(got: object, want: object) -> float:
    """By what factor two numbers differ: 1 if they are equal, infinity if a factor does not tell."""
    if isinstance(got, bool) or isinstance(want, bool) or not (isinstance(got, Real) and isinstance(want, Real)):
        return 1.0 if got is want or (type(got) is type(want) and got == want) else math.inf
    one, other = float(got), float(want)
    if one == other:
        return 1.0
    finite = math.isfinite(one) and math.isfinite(other)
    return max(one / other, other / one) if finite and one * other > 0 else math.inf
