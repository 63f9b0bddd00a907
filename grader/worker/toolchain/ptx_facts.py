"""Facts about a kernel, read from its PTX, for exercises about compilation."""

from __future__ import annotations

import re
from typing import Any

_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(")
_FLOAT64 = re.compile(r"^\s*(?:@\S+\s+)?[a-z][\w.]*\.f64[\w.]*\s", re.MULTILINE)
_STORES_DOUBLE = re.compile(r"\bst\.global[\w.]*\.f64\b")
_FAST = re.compile(r"^\s*(?:@\S+\s+)?(?:sin|cos)\.approx", re.MULTILINE)


def facts(ptx: str) -> list[dict[str, Any]]:
    """Return, for each kernel, its name, float64 and fast sine instructions, and whether its results are doubles."""
    parts = _ENTRY.split(ptx)
    return [
        {
            "name": name,
            "float64": len(_FLOAT64.findall(body)),
            "double": bool(_STORES_DOUBLE.search(body)),
            "fast_sines": len(_FAST.findall(body)),
            "bound": ".maxntid" in body.partition("{")[0],
        }
        for name, body in zip(parts[1::2], parts[2::2], strict=True)
    ]
