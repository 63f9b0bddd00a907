"""Counts an output's wrong elements in one pass on the GPU, because timed rounds check gigabytes.

`compare.within` defines what is right. If the kernel does not compile or counts differently, torch counts.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterable
from typing import Any

import torch

from grader.exercise import Budget
from grader.judge.checking.compare import within
from grader.judge.gpu.health import out_of_memory

OPTIONS = {"num_warps": 4, "enable_fp_fusion": False}  # torch rounds the product, then the sum
_FLAT, _TILE = (1, 4096), (32, 64)  # rows × columns per program; a tile reads columns in whole sectors
_CHECK = Budget(absolute=float.fromhex("0x1.c475ce032502ap-3"), relative=float.fromhex("0x1.8e4f115c46a60p-1"))
_found: dict[str, bool] = {}  # by dtype: whether the kernel agrees with `within`
_ON_THE_EDGE = float.fromhex("0x1.fd67d46af82d1p-1")  # right only if product and sum are rounded once


def saves(device: str) -> bool:
    """Whether one pass is faster on this device."""
    return device == "cuda"


def add_wrong(got: Any, expected: Any, budget: Budget, wrong: Any) -> None:
    """Add the number of wrong elements of `got` to `wrong`, an int64 on the same device, without waiting."""
    plane = planes(got, expected)
    if plane is not None and got.is_cuda and _works(str(got.dtype)):
        launch(got, expected, budget, wrong, plane)
    else:
        wrong += (~within(got, expected, budget)).sum()


def warm(dtypes: Iterable[str]) -> None:
    """Compile the kernel for these dtypes and test it, before a clock runs."""
    for dtype in dtypes:
        if not _found.get(f"torch.{dtype}"):  # retried after a failure, which may have been temporary
            _try(f"torch.{dtype}")


def planes(got: Any, expected: Any) -> tuple[int, ...] | None:
    """Return rows, columns and the strides of both tensors; None if they do not form a plane or are not float64."""
    if got.shape != expected.shape or expected.dtype != torch.float64 or not got.numel():
        return None
    sides: list[list[int]] = []
    for size, own, other in zip(got.shape, got.stride(), expected.stride(), strict=True):
        if size == 1:
            continue
        if sides and sides[-1][1] == own * size and sides[-1][2] == other * size:
            sides[-1] = [sides[-1][0] * size, own, other]
        else:
            sides.append([size, own, other])
    if len(sides) > 2:
        return None
    row, column = [[1, 0, 0]] * (2 - len(sides)) + sides
    return (row[0], column[0], row[1], column[1], row[2], column[2])


def launch(got: Any, expected: Any, budget: Budget, wrong: Any, plane: tuple[int, ...]) -> None:
    kernel = importlib.import_module("grader.judge.checking.fused_kernel").add_wrong
    rows, columns = _FLAT if plane[0] == 1 else _TILE
    programs = -(-plane[0] // rows) * -(-plane[1] // columns)
    numbers = _numbers(budget, str(got.device))
    kernel[(programs,)](got, expected, numbers, wrong, *plane, ROWS=rows, COLUMNS=columns, **OPTIONS)


@functools.lru_cache(maxsize=64)
def _numbers(budget: Budget, device: str) -> Any:
    return torch.tensor([budget.absolute, budget.relative, float("inf")], dtype=torch.float64, device=device)


def _works(dtype: str) -> bool:
    if dtype not in _found:
        _try(dtype)
    return _found.get(dtype, False)


def _try(dtype: str) -> None:
    """Test the kernel. Without a compiler, or with another Triton, the judge is only slower."""
    try:
        _found[dtype] = agrees(dtype.removeprefix("torch."), "cuda")
        reason = "it counts something else"
    except Exception as error:
        if out_of_memory(error):  # perhaps a submission holds the memory: try again later
            return
        _found[dtype], reason = False, f"{type(error).__name__}: {error}"
    if not _found[dtype]:
        print(f"Outputs of {dtype} are compared by torch, not in one pass: {reason}", file=sys.stderr)


def agrees(dtype: str, device: str) -> bool:
    """Whether the kernel agrees with `within` on a row, padded rows and columns, with NaN and infinity."""
    for rows, columns in ((1, 5000), (40, 70)):
        expected = torch.linspace(0, 9, rows * columns, dtype=torch.float64, device=device).reshape(columns, rows).t()
        if rows == 1:
            expected = expected.contiguous()
        got = torch.empty(rows, columns + 3, device=device).to(getattr(torch, dtype))[:, :columns]
        got.copy_(expected)
        got[0, 7:9] = 100
        odd = [float("nan"), float("inf"), -float("inf"), _ON_THE_EDGE]
        expected[0, 11:15] = torch.tensor(odd, dtype=torch.float64, device=device)
        got[0, 14] = 0
        if got.is_floating_point():
            got[0, 12:14] = float("inf")
            got[-1, 17:19] = float("nan")
        wrong, plane = torch.zeros((), dtype=torch.int64, device=device), planes(got, expected)
        if plane is None:
            return False
        launch(got, expected, _CHECK, wrong, plane)
        if int(wrong) != int((~within(got, expected, _CHECK)).sum()):
            return False
    return True
