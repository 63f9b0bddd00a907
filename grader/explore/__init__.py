"""Teaching aids for notebooks: pictures, counts and comparisons. Each is one call in one cell."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "Picture": "picture",
    "PretendGpu": "lies",
    "ThisMachine": "lies",
    "active_warps": "reductions",
    "bank_access": "banks",
    "busy_gpu": "stopwatch",
    "compare": "predictions",
    "compare_rungs": "rungs",
    "count_fused": "inductor",
    "count_traffic": "traffic",
    "draw_banks": "banks",
    "draw_blocks": "blocks",
    "draw_claims": "lies",
    "draw_eager_and_fused": "traffic",
    "draw_graph": "graphs",
    "draw_grid": "blocks",
    "draw_operator": "operators",
    "draw_padded_rows": "rows",
    "draw_padded_tile": "banks",
    "draw_reduction_tree": "reductions",
    "draw_roofline": "roofline",
    "draw_row_in_sram": "rows",
    "draw_sectors": "sectors",
    "draw_shuffles": "reductions",
    "draw_timeline": "stopwatch",
    "draw_times": "stopwatch",
    "draw_transposed_tile": "transposed",
    "draw_waits": "lies",
    "experiment": "moves",
    "explore_banks": "banks",
    "explore_roofline": "roofline_view",
    "explore_sectors": "sectors",
    "generated_code": "inductor",
    "graph_breaks": "breaks",
    "joint_graph": "graphs",
    "land": "ceilings",
    "lines_after_includes": "build_files",
    "list_kernels": "kernels",
    "load_numba_cuda": "numba_cuda",
    "measure_ceilings": "ceilings",
    "measure_rungs": "rung_speeds",
    "memory_instructions": "compiler",
    "recorded": "results",
    "recorded_code": "inductor",
    "recorded_output": "traces",
    "recorded_roofline": "roofline",
    "recorded_trace": "traces",
    "run_rung": "rungs",
    "show_build_files": "build_files",
    "show_lies": "lies",
    "show_rung": "rungs",
    "show_timeline": "timeline",
    "side_by_side": "listings",
    "time_after": "stopwatch",
    "try_predictions": "trials",
    "warp_access": "sectors",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
