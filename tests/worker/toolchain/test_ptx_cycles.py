"""The cost of doubles in a kernel, and arrays in local memory, in code that NVRTC compiles without a GPU."""

from __future__ import annotations

from typing import Any

import pytest

from grader.worker.toolchain.machine_facts import kernel_facts
from grader.worker.toolchain.nvrtc import compiled, no_cache_options

pytest.importorskip("cuda.bindings.nvrtc")

_KERNEL = """struct Point {{ float at[8]; }};
__device__ __noinline__ void move(Point* point, float by) {{ for (int i = 0; i < 8; ++i) point->at[i] += i * by; }}
extern "C" __global__ void kernel(const float* x, float* out, int n) {{
    int t = threadIdx.x;
    {}
}}
"""
_SUM = "double sum = 0; for (int i = t; i < n; i += 256) sum += x[i]; out[t] = sum;"
_ARRAY = """float a[32]; for (int i = 0; i < 32; ++i) a[i] = x[32 * t + i];
    for (int i = 0; i < 32; ++i) out[32 * t + i] = a[{}];"""
_EACH = "for (int i = t; i < n; i += 256) out[i] = {};"


def _facts(body: str) -> dict[str, Any]:
    options = ["--gpu-architecture=sm_90", "-w", "--ptxas-options=-v", *no_cache_options()]
    answer = compiled(_KERNEL.format(body).encode(), "kernel.cu", options)
    assert answer.error == ""
    (facts,) = kernel_facts(answer.ptx, answer.log)
    return facts


@pytest.mark.parametrize(
    ("body", "share", "over_memory"),
    [
        (_SUM, (0.3, 2.0), False),
        (_EACH.format("2.0f * x[i]"), (0.0, 0.0), False),
        (_EACH.format("sinf(x[i])"), (0.0, 0.05), False),
        (_EACH.format("pow((double)x[i], (double)n)"), (0.3, 2.0), True),
        (_EACH.format("x[i]") + " out[t] = (double)x[t] / n + sin((double)n);", (0.0, 0.3), False),
    ],
    ids=["sum", "float", "sine", "power", "once"],
)
def test_what_doubles_add_depends_on_where_they_are(body: str, share: tuple[float, float], over_memory: bool) -> None:
    """Memory hides a sum, and what is outside of loops hardly counts."""
    facts = _facts(body)
    assert share[0] <= facts["double_cycles"] / facts["cycles"] <= share[1]
    assert (facts["cycles"] + facts["double_cycles"] > 2 * facts["access_cycles"]) == over_memory


@pytest.mark.parametrize(
    ("body", "bytes_"),
    [
        (_ARRAY.format("(i + t) % 32"), 128),
        (_ARRAY.format("31 - i"), 0),
        ("Point p = {}; for (int i = t; i < n; i += 256) move(&p, x[i]); out[t] = p.at[0] + p.at[7];", 0),
        (_EACH.format('(x[i] > 9 ? printf("%f %d %d", x[i], i, n) : 0) + x[i]'), 0),
    ],
    ids=["index at run time", "constant indices", "address", "printf"],
)
def test_only_an_index_at_run_time_puts_an_array_into_memory(body: str, bytes_: int) -> None:
    """The arguments of `printf`, and a variable whose address is passed, have a frame as well, and do not count."""
    assert _facts(body)["indexed"] == bytes_
