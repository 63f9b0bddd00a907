"""One float16 product for Hopper GPUs in several languages, against cuBLAS in the same run: rows `languages`.

Two variants take part. The reference solution of `matmul_open` is a kernel in Triton without warp specialization. In
the other, the consumers of the product in CUDA C++ wait for each multiplication before they issue the next.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.kernels import load
from benchmarks.limits import Fault
from benchmarks.matmuls import CUBLAS, drawn, must_be_right
from benchmarks.rows import Recorder
from benchmarks.timing import HEAD_START_CYCLES, in_turn
from grader.exercises import find
from grader.explore.hopper.language_views import FILES, PRODUCTS, hopper_product, load_file
from grader.judge.score import interval

FLATTENED = "Triton, one flattened loop"
WAITING = "CUDA C++, no WGMMA in flight"
_SIZE = 4096
_REPEATS = 60

Product = Callable[[Any, Any, Any], Any]


def products(folder: Path) -> dict[str, Product]:
    """Return the products by name. The output names those whose package is not installed."""
    found: dict[str, Product] = {}
    for language in FILES:
        try:
            found[language] = hopper_product(language)
        except ModuleNotFoundError as error:
            print(f"languages: {language} is not measured: {error.name} is not installed.", flush=True)
    return found | {WAITING: _waiting(folder), FLATTENED: load(find("matmul_open"), folder)}


def _waiting(folder: Path) -> Product:
    text = (PRODUCTS / "cuda_product.py").read_text(encoding="utf-8")
    for old, new in (
        ("wait_group.sync.aligned 1;", "wait_group.sync.aligned 0;"),
        ("hopper_product", "waiting_product"),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    path = folder / "waiting_product.py"
    path.write_text(text, encoding="utf-8")
    return load_file(path).product  # type: ignore[no-any-return]


def languages(recorder: Recorder) -> None:
    """Record the rate of each product and its ratio to cuBLAS, call by call.

    Raises:
        ArithmeticError: a product is wrong. No row is written.
        Fault: some products do not compile or cannot be launched. The others were measured.
    """
    arrays, faults = drawn(_SIZE), []
    calls: dict[str, Callable[[], Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, product in products(Path(folder)).items():
            try:
                must_be_right(name, product, arrays)
            except ArithmeticError:
                raise
            except Exception as error:
                faults.append(f"languages: {name}: {type(error).__name__}: {error}")
            else:
                calls[name] = partial(product, *arrays)
        calls[CUBLAS] = partial(find("matmul").baseline("cublas").function, *arrays)
        times = in_turn(calls, HEAD_START_CYCLES, _REPEATS)
    for name, samples in times.items():
        rates = [2 * _SIZE**3 / us / 1e6 for us in samples]
        recorder.add("languages", name, "rate_tflops", "TFLOPS", *astuple(interval(rates)))
        ratios = [theirs / ours for theirs, ours in zip(times[CUBLAS], samples, strict=True)]
        recorder.add("languages", name, "ratio_vs_cublas", "1", *astuple(interval(ratios)))
    if faults:
        raise Fault("\n".join(faults))
