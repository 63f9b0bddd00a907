"""The comparison in one pass: it says what `compare` says, to the last bit, or it is not used."""

import json
import os
import random
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
import torch

from grader.exercise import Budget
from grader.judge.checking import fused_compare
from grader.judge.checking.compare import within

SCRIPT = Path(__file__).with_name("fused_in_the_interpreter.py")
DTYPES = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "uint8"]


@pytest.fixture(scope="module")
def interpreted():
    """The kernel's results by type: its counts, torch's counts, and whether `compare` finds a mismatch."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::RuntimeWarning", str(SCRIPT), str(random.randrange(1 << 30)), *DTYPES],
        env=os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(SCRIPT.parents[2])},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_kernel_counts_what_torch_counts_and_compare_finds(interpreted, dtype):
    """NaN, infinity, subnormal and huge numbers; rows, padded rows, columns, single elements; with every budget."""
    rows = interpreted[dtype]["rows"]
    assert [kernel for kernel, _, _ in rows] == [counted for _, counted, _ in rows]
    assert all((kernel > 0) is mismatch for kernel, _, mismatch in rows)
    assert {kernel > 0 for kernel, _, _ in rows} == {True, False}, "both verdicts occur"


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_right_kernel_passes_its_own_trial(interpreted, dtype):
    """Without that it would not be used."""
    assert interpreted[dtype]["agrees"] is True


def once(relative, expected, absolute):
    """Product and sum in one operation, rounded once."""
    found = [float(Fraction(relative) * Fraction(abs(e)) + Fraction(absolute)) if abs(e) < 1e300 else abs(e)
             for e in expected.flatten().tolist() if e == e]  # fmt: skip
    return torch.tensor(found, dtype=torch.float64)


def right(got, expected, budget):
    return within(got, expected, budget)


def contracted(got, expected, budget):
    known = ~expected.isnan()
    allowed = torch.full_like(expected, float("nan"))
    allowed[known] = once(budget.relative, expected, budget.absolute)
    near = ((got.double() - expected).abs() <= allowed) & expected.isfinite()
    return near | (got.double() == expected)


def in_float32(got, expected, budget):
    return within(got.float(), expected.float(), budget)


def nan_is_right(got, expected, budget):
    return within(got, expected, budget) | got.isnan()


def infinity_is_near(got, expected, budget):
    return within(got, expected, budget) | expected.isinf()


def last_row_left_out(got, expected, budget):
    found = within(got, expected, budget)
    found[-1] = True
    return found


@pytest.mark.parametrize(
    ("verdict", "agrees"),
    [(right, True), (contracted, False), (in_float32, False), (nan_is_right, False), (infinity_is_near, False),
     (last_row_left_out, False)],
)  # fmt: skip
def test_a_kernel_that_counts_anything_else_fails_its_trial(monkeypatch, verdict, agrees):
    """Among others, a kernel that rounds once while torch rounds twice."""

    def launch(got, expected, budget, wrong, plane):
        wrong += (~verdict(got, expected, budget)).sum()

    monkeypatch.setattr(fused_compare, "launch", launch)
    assert fused_compare.agrees("float32", "cpu") is agrees


@pytest.fixture
def afresh():
    """Nothing is known of any type, before and after."""
    fused_compare._found.clear()
    yield
    fused_compare._found.clear()


def test_where_there_is_no_kernel_torch_counts(monkeypatch, afresh):
    """Without a compiler, or with another Triton, the judge goes on with the same count."""
    asked = []

    def broken(dtype, device):
        asked.append((dtype, device))
        raise RuntimeError("no C compiler")

    monkeypatch.setattr(fused_compare, "agrees", broken)
    monkeypatch.setattr(fused_compare, "launch", lambda *_: pytest.fail("it does not work here"))
    fused_compare.warm(["float32", "uint8", "float32"])
    assert {dtype for dtype, _ in asked} == {"float32", "uint8"}
    got, expected = torch.tensor([1.0, 2.0, float("nan")]), torch.tensor([1.0, 2.5, 3.0], dtype=torch.float64)
    wrong = torch.tensor(5)
    fused_compare.add_wrong(got, expected, Budget(0.1, 0.0), wrong)
    assert int(wrong) == 7


def test_a_full_gpu_is_no_answer(monkeypatch, afresh):
    """A submission that holds the memory does not choose how the judge compares from then on."""
    answers = [torch.cuda.OutOfMemoryError("CUDA out of memory."), RuntimeError("Triton Error: out of memory"), True]

    def agrees(dtype, device):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(fused_compare, "agrees", agrees)
    for _ in range(2):
        fused_compare.warm(["float32"])
        assert fused_compare._found == {}
    fused_compare.warm(["float32"])
    assert fused_compare._found == {"torch.float32": True}
    assert answers == []


def test_what_failed_once_is_tried_again_before_the_next_clock(monkeypatch, afresh, capfd):
    """A compiler that ran out of memory once does not make the judge slow forever; stderr names each failure."""
    answers = [OSError("cannot fork"), True]

    def agrees(dtype, device):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(fused_compare, "agrees", agrees)
    fused_compare.warm(["float32"])
    assert "torch.float32 are compared by torch, not in one pass: OSError: cannot fork" in capfd.readouterr().err
    assert not fused_compare._works("torch.float32")
    fused_compare.warm(["float32"])
    assert fused_compare._works("torch.float32")
    fused_compare.warm(["float32"])
    assert answers == []


def test_what_is_in_no_plane_is_left_to_torch():
    """Other types and shapes of what is expected, nothing at all, and strides that two axes cannot describe."""
    full = torch.zeros(4, 6, 8, dtype=torch.float64)
    assert fused_compare.planes(full.float(), full) == (1, 4 * 6 * 8, 0, 1, 0, 1)
    assert fused_compare.planes(full[:, :, :5].float(), full[:, :, :5]) == (24, 5, 5, 1, 8, 1)
    assert fused_compare.planes(full[0].t(), full[0].t()) == (8, 6, 1, 8, 1, 8)
    assert fused_compare.planes(full[:1, :1, :1], full[:1, :1, :1]) == (1, 1, 0, 0, 0, 0)
    assert fused_compare.planes(full[:, :5, :5], full[:, :5, :5]) is None
    assert fused_compare.planes(full, full.float()) is None
    assert fused_compare.planes(full, full.long()) is None
    assert fused_compare.planes(full, full[0]) is None
    assert fused_compare.planes(full[:0], full[:0]) is None


@pytest.mark.parametrize("capability", [75, 90, 120])
@pytest.mark.parametrize(("dtype", "tile"), [("fp32", (1, 4096)), ("bf16", (32, 64)), ("u8", (1, 4096))])
def test_compiled_for_a_gpu_it_rounds_product_and_sum_apart(monkeypatch, tmp_path, capability, dtype, tile):
    """As it is launched; and it adds to the count at the end, for a whole tile at once."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from grader.judge.checking.fused_kernel import add_wrong

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    pointers = {"got_ptr": f"*{dtype}", "expected_ptr": "*fp64", "budget_ptr": "*fp64", "wrong_ptr": "*i64"}
    sizes = dict.fromkeys(add_wrong.arg_names[4:10], "i32")
    tiles = dict(zip(("ROWS", "COLUMNS"), tile, strict=True))
    source = ASTSource(add_wrong, pointers | sizes | dict.fromkeys(tiles, "constexpr"), constexprs=tiles, attrs={})
    ptx = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=fused_compare.OPTIONS).asm["ptx"]
    assert "fma." not in ptx
    assert "mul.rn.f64" in ptx
    assert ptx.count("atom") == 1


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
def test_on_a_gpu_the_kernel_works(dtype, afresh):
    """It compiles, and rounds product and sum separately. Otherwise the judge would silently compare by torch."""
    assert fused_compare.agrees(dtype, "cuda")
    got = torch.randn(3000, 1000, device="cuda").to(getattr(torch, dtype))
    for expected in (got.double(), got.double().t().contiguous().t()):
        for at in (0, 1234, 2999):
            other = expected.clone()
            other[at, at % 1000] += 3
            wrong = torch.zeros((), dtype=torch.int64, device="cuda")
            fused_compare.add_wrong(got, expected, Budget(0.5, 0.0), wrong)
            assert int(wrong) == 0
            fused_compare.add_wrong(got, other, Budget(0.5, 0.0), wrong)
            assert int(wrong) == 1
