"""Teaching aids for notebooks: pictures, counts and comparisons. Each is one call in one cell."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "Picture": "picture",
    "compare": "predictions",
    "count_traffic": "traffic",
    "draw_blocks": "blocks",
    "draw_eager_and_fused": "traffic",
    "draw_grid": "blocks",
    "draw_padded_rows": "rows",
    "draw_row_in_sram": "rows",
    "lines_after_includes": "build_files",
    "list_kernels": "kernels",
    "load_numba_cuda": "numba_cuda",
    "memory_instructions": "compiler",
    "recorded": "results",
    "show_build_files": "build_files",
    "side_by_side": "listings",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
