"""Make a kernel's loads 16 bytes wide: access order, alignment of rows and mask, and block size."""

from __future__ import annotations

from typing import Any

from grader.exercise import Array, Baseline, Budget, Case, Exercise, Gate, Rules, Suspect

# Rows start at multiples of 4 elements, but not all at multiples of 16, which Triton would detect.


def _case(rows: int, columns: int, padding: tuple[int, int] = (0, 0), fill: str = "normal") -> Case:
    arrays = (
        Array("x", (rows, columns), row_padding=padding[0]),
        Array("gain", (rows,)),
        Array("out", (rows, columns), role="out", row_padding=padding[1]),
    )
    note = f", rows padded to {columns + padding[0]} and to {columns + padding[1]}" if any(padding) else ""
    return Case(f"{rows} × {columns}{note}", arrays, fill)


def _with_wide_loads(entry: Any, x: Any, gain: Any, out: Any) -> None:
    from grader.worker.simulator.devices import watching

    wide = globals().get("_wide")
    if wide is None:
        from grader.worker.harnesses.triton_kernels import WideLoads

        wide = globals()["_wide"] = WideLoads(entry, wide_bytes=16)
    with watching(x, gain, out):
        (wide if x.shape[1] >= 1000 else entry)(x, gain, out)


def _as_it_is(entry: Any, x: Any, gain: Any, out: Any) -> None:
    entry(x, gain, out)


def _given(x: Any, gain: Any, out: Any) -> None:
    import triton
    import triton.language as tl

    kernel = globals().get("_kernel")
    if kernel is None:

        @triton.jit  # type: ignore[untyped-decorator]
        def scale_kernel(  # type: ignore[no-untyped-def]
            x_ptr, gain_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr
        ):
            row = tl.program_id(0)
            column = tl.program_id(1) + tl.arange(0, BLOCK) * tl.num_programs(1)
            mask = column < columns
            gain = tl.load(gain_ptr + row)
            x = tl.load(x_ptr + row * x_stride + column, mask=mask)
            tl.store(out_ptr + row * out_stride + column, x * gain, mask=mask)

        kernel = globals()["_kernel"] = scale_kernel
    rows, columns = x.shape
    grid = rows, triton.cdiv(columns, 256)
    kernel[grid](x, gain, out, x.stride(0), out.stride(0), columns, BLOCK=256)


def _torch_mul(x: Any, gain: Any, out: Any) -> None:
    import torch

    torch.mul(x, gain[:, None], out=out)


def _oracle(inputs: Any) -> Any:
    return inputs["x"] * inputs["gain"][:, None]


def _one_gain(a: Any) -> Any:
    return a["x"] * a["gain"][0] if a["x"].shape[0] > 1 else None


def _gain_by_column(a: Any) -> Any:
    """The gain selected by column, not by row, for as many columns as there are rows."""
    x, gain = a["x"], a["gain"]
    rows, columns = x.shape
    if not 1 < rows < columns:
        return None
    out = a["got"].clone()
    out[:, :rows] = x[:, :rows] * gain
    return out


def _stored_in_another_order(a: Any) -> Any:
    """Loaded in runs and stored with a stride, or the reverse, for any usual block size."""
    import torch

    got, expected = a["got"], _oracle(a)
    columns = expected.shape[1]
    for block in (1 << power for power in range(6, 14)):
        programs = -(-columns // block)
        if programs < 2:
            continue
        place = torch.arange(programs * block, device=expected.device).reshape(programs, block)
        strided = place.reshape(block, programs).t()
        for source, target in ((place, strided), (strided, place)):
            both = (source < columns) & (target < columns)
            out = got.clone()
            out[:, target[both]] = expected[:, source[both]]
            if torch.allclose(out, got, rtol=1e-5, atol=1e-12, equal_nan=True):
                return out
    return None


_SHORT = (_case(1, 4), _case(5, 100, (4, 8)))
_SIZES = (4092, 16_380)
_TIMED = tuple(_case((1 << 25) // (columns + 4), columns, (8, 16), "normal|heavy") for columns in _SIZES)

WIDEN = Exercise(
    id="widen",
    title="Widen the loads",
    chapter="03_triton",
    notebook="07_look_inside_the_compiler",
    entry="widen",
    parameters=("x", "gain", "out"),
    backend="triton",
    cases=(*_SHORT, _case(64, 1000), _case(33, 2052, (8, 16), "heavy"), _case(1823, 4092, (8, 16))),
    simulator_cases=(*_SHORT, _case(3, 1000), _case(3, 2052, (8, 16), "heavy")),
    timed_cases=_TIMED,
    plot_cases=tuple(_case(4096, n, (8, 16)) for n in (508, 1020, 2044, 4092, 8188, 16_380)),
    oracle=_oracle,
    budget=Budget(absolute=1e-30, relative=1e-6),
    bytes_moved=lambda case: 2 * 4 * case.arrays[0].shape[0] * case.arrays[0].shape[1],
    operations=lambda case: case.arrays[0].shape[0] * case.arrays[0].shape[1],
    correctness_points=4,
    baselines=(
        Baseline("given", "the original kernel", _given, _as_it_is),
        Baseline("torch", "torch.mul", _torch_mul, _as_it_is),
    ),
    gates=(Gate("given", 1.5, 2, tuple(case.name for case in _TIMED), or_share=0.9),),
    suspects=(
        Suspect(
            "Elements were loaded in one order and stored in another: use the same columns for both.",
            _stored_in_another_order,
            relative=1e-5,
        ),
        Suspect(
            "Every row was multiplied by the gain of row 0: does the load from `gain_ptr` depend on the row?", _one_gain
        ),
        Suspect("The gain was selected by column: each row has one gain, at `gain_ptr + row`.", _gain_by_column, 1e-6),
        Suspect("The rows were copied without being multiplied by their gain.", lambda a: a["x"]),
    ),
    rules=Rules(("mul", "multiply", "mm", "matmul", "einsum")),
    harness=_with_wide_loads,
    hints=(
        "Which columns do adjacent threads load, and which does one thread load? A load is 16 bytes wide only if the "
        "thread's four elements are contiguous.",
        "A row starts at `row * x_stride`. You know that this is a multiple of 4, so declare it for the product: "
        "`tl.multiple_of(row * x_stride, 4)`.",
        "Four adjacent elements share one mask value, since `columns` is a multiple of 4: `tl.max_constancy(mask, 4)`.",
        "A program has 4 warps of 32 threads. How many elements must a block have so that each thread gets four?",
    ),
    time_limit_s=60.0,  # without a GPU, a compiler runs as well as the simulator …
    case_limit_s=60.0,  # … in each case
    round_limit_s=60.0,  # the first case that is wide enough compiles
    plot_axis="N, columns of a row (4096 rows, float32)",
    plot_value=lambda case: case.arrays[0].shape[1],
)
