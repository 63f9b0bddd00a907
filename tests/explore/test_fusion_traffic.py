"""Traffic is counted, and the kernels before and after fusion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from grader.explore import count_traffic
from grader.explore.torch_compile.fusion_traffic import count_fused, generated_code, kernels_of, recorded_code

M, N = 16, 64


def test_the_eager_softmax_moves_8mn_plus_4m() -> None:
    """The softmax notebook explains this count: 5MN + 2M read, 3MN + 2M written."""

    def eager(x: torch.Tensor) -> torch.Tensor:
        numerator = (x - x.amax(dim=1, keepdim=True)).exp()
        return numerator / numerator.sum(dim=1, keepdim=True)

    traffic = count_traffic(eager, torch.randn(M, N))
    assert [step.operation for step in traffic.steps] == ["amax", "sub", "exp", "sum", "div"]
    assert sum(step.read_bytes for step in traffic.steps) == 4 * (5 * M * N + 2 * M)
    assert sum(step.written_bytes for step in traffic.steps) == 4 * (3 * M * N + 2 * M)
    assert traffic.total == pytest.approx(8 + 4 / N)


def test_views_move_nothing() -> None:
    """A transpose, a slice and a reshape are free; only the copy counts."""
    traffic = count_traffic(lambda x: x.t()[1:].clone(), torch.ones(M, N))
    assert [step.operation for step in traffic.steps] == ["clone"]
    assert traffic.total_bytes == 2 * 4 * M * (N - 1)
    batch = torch.ones(2, 3, 4)
    products = count_traffic(lambda x: x @ x.transpose(1, 2), batch)  # its last operation is `_unsafe_view`
    assert [step.operation for step in products.steps] == ["bmm"]


def test_a_result_written_to_out_is_written_once() -> None:
    """A destination is written, not read."""
    x, out = torch.ones(M, N), torch.empty(M, N)
    (step,) = count_traffic(lambda x: torch.exp(x, out=out), x).steps
    assert (step.read_bytes, step.written_bytes) == (4 * M * N, 4 * M * N)


def test_an_operation_in_place_reads_and_writes() -> None:
    """`x += 1` reads x and writes x."""
    (step,) = count_traffic(lambda x: x.add_(1), torch.ones(M, N)).steps
    assert (step.read_bytes, step.written_bytes) == (4 * M * N, 4 * M * N)


pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning"),  # torch's own, on importing Inductor
]

TRITON = """
triton_poi_fused_sin_0 = async_compile.triton('triton_poi_fused_sin_0', '''
import triton

@triton_heuristics.pointwise(size_hints=[8])
@triton.jit
def triton_poi_fused_sin_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    tmp0 = tl.load(in_ptr0)
''', device_str='cuda')
"""


def one(x: Any) -> Any:
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


def by_row(y: Any) -> Any:
    return y / y.sum(dim=1, keepdim=True)


def by_all(y: Any) -> Any:
    return y / y.sum()


@pytest.mark.parametrize(("function", "counts"), [(one, (5, 1)), (by_row, (2, 1)), (by_all, (2, 2))])
def test_kernels_are_counted_before_and_after_fusion(function: Any, counts: tuple[int, int]) -> None:
    """Pointwise operations become one kernel; a sum over everything ends the kernel."""
    assert count_fused(function, torch.rand(8, 40)) == counts


def test_counting_leaves_no_setting_behind() -> None:
    """The hook is removed after counting."""
    import torch._inductor.config as settings

    count_fused(one, torch.rand(8, 40))
    assert settings._post_fusion_custom_pass is None


def test_the_text_of_the_cpu_is_one_loop_in_cpp() -> None:
    """Five operations become one function in C++; the compiled function computes the same."""
    x = torch.rand(1 << 15)
    code = generated_code(one, x)
    assert (len(code), code.language, len(code.eager.steps)) == (1, "C++", 5)
    assert ".sin()" in repr(code)
    assert ".store(" in repr(code)
    assert torch.allclose(code.function(x), torch.ones(1 << 15))
    assert code.beside_eager().titles == ("eager: 5 kernels", "compiled, as C++: 1 kernel")


def test_a_kernel_in_triton_is_shown_from_its_decorator_on() -> None:
    """The lines that only Inductor needs are left out."""
    ((name, source),) = kernels_of(TRITON)
    assert name == "triton_poi_fused_sin_0"
    assert source.startswith("@triton.jit\ndef triton_poi_fused_sin_0")
    assert "import" not in source


def test_recorded_text_says_where_it_comes_from(tmp_path: Path) -> None:
    """The code is shown with its GPU and date; the latest recording is shown."""
    (tmp_path / "a-fusion-one.txt").write_text(f"# Recorded on one A on 2026-01-01.\n{TRITON}")
    (tmp_path / "b-fusion-one.txt").write_text(f"# Recorded on one B on 2025-01-01.\n{TRITON}")
    found = recorded_code("one", tmp_path)
    assert found.origin == "Recorded on one A on 2026-01-01."
    assert len(found) == 1
    titles = found.beside_eager(one, torch.rand(9)).titles
    assert titles == ("eager: 5 kernels", "compiled, as Triton: 1 kernel. Recorded on one A on 2026-01-01.")


def test_without_a_recording_nothing_is_made_up(tmp_path: Path) -> None:
    """A note says that there is no recording and how to make one."""
    found = recorded_code("one", tmp_path)
    assert len(found) == 0
    assert "No recorded code yet" in repr(found)
    assert "No recorded code yet" in repr(found.beside_eager(one, torch.rand(9)))
