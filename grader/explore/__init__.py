"""Drawings, counts and experiments for the course's notebooks: `from grader.explore import …`.

This is the only public list. Each name is imported from its module on first use, so a cell loads only what it uses.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_PUBLIC: dict[str, tuple[str, ...]] = {
    "reductions": (
        "active_warps", "compare_rungs", "draw_reduction_tree", "draw_shuffles", "measure_rungs", "run_rung",
        "show_rung",
    ),
    "drawing.displays": ("Picture", "side_by_side"),
    "drawing.predictions": ("compare", "count_predictions"),
    "drawing.recorded_results": ("recorded",),
    "hopper.language_views": (
        "compiled_products", "count_hopper_instructions", "count_lines", "hopper_product", "show_product",
        "time_products",
    ),
    "ladder.machine_code": ("compiled_ladder", "draw_loops", "ladder_loop", "nvrtc_view"),
    "ladder.period_search": (
        "draw_drift", "draw_fast_sine", "draw_folded", "draw_power", "draw_sampled", "drift",
        "load_light_curve", "search_star",
    ),
    "ladder.rung_times": ("H200", "climb_cupy", "draw_ladder", "last_rung_view", "published_ladder"),
    "memory.attention_drawings": ("draw_running_maximum", "draw_score_tiles", "tile_kinds"),
    "memory.bandwidth_experiments": ("experiment",),
    "memory.block_drawings": (
        "draw_blocks", "draw_gpu", "draw_grid", "draw_images", "draw_padded_rows", "draw_row_in_sram",
        "draw_stages", "draw_transposed_tile", "partial_bytes", "sample_image",
    ),
    "memory.sectors_and_banks": (
        "bank_access", "draw_banks", "draw_padded_tile", "draw_sectors", "explore_banks", "explore_sectors",
        "warp_access",
    ),
    "memory.tiled_matmul": (
        "draw_grouped_order", "draw_pipeline", "draw_ring", "draw_thread_tile", "draw_tile_loop", "draw_waves",
        "explore_grouped_order", "explore_pipeline", "grouped_order",
    ),
    "profiling.benchmark_lies": ("PretendGpu", "ThisMachine", "draw_claims", "draw_waits", "show_lies"),
    "profiling.call_timing": (
        "busy_gpu", "draw_timeline", "draw_times", "list_kernels", "load_cupy", "load_numba_cuda", "time_after",
    ),
    "profiling.machine_ceilings": ("land", "measure_ceilings", "try_predictions"),
    "profiling.roofline": ("draw_roofline", "explore_roofline", "recorded_roofline"),
    "profiling.trace_timeline": ("recorded_output", "recorded_trace", "show_timeline"),
    "torch_compile.captured_graphs": ("draw_graph", "graph_breaks", "joint_graph"),
    "torch_compile.cpp_extensions": ("draw_operator", "lines_after_includes", "show_build_files"),
    "torch_compile.fusion_traffic": (
        "count_fused", "count_traffic", "draw_eager_and_fused", "generated_code", "recorded_code",
    ),
    "triton_compiler.compiled_stages": (
        "compile_kernel", "count_instructions", "explore_compiler", "memory_instructions",
    ),
    "triton_compiler.layout_drawings": (
        "draw_compiler_stages", "draw_layout", "draw_program", "draw_shared_memory", "loaded_layouts",
    ),
}  # fmt: skip
_HOMES = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
