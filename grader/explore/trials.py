"""A prediction of times, tried on operations that run on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from grader.explore.ceilings import Ceilings, figures, time_ms

__all__ = ["Trials", "try_predictions"]

_SIDE = {"cuda": 8192, "cpu": 4096}
_PRODUCT = {"cuda": 6144, "cpu": 1024}
_NOT_WRITTEN = "Nothing to try yet: write predict_ms first, then run this cell again."


@dataclass(frozen=True)
class Trials:
    """By operation: predicted and measured milliseconds; or why there are none."""

    rows: tuple[tuple[str, float, float], ...]
    note: str = ""

    def __repr__(self) -> str:
        if not self.rows:
            return self.note
        lines = [f"{'operation':<22}{'predicted':>11}{'measured':>11}  measured / predicted"]
        lines += [f"{name:<22}{_ms(p):>11}{_ms(m):>11}  {_ratio(p, m)}" for name, p, m in self.rows]
        return "\n".join([*lines, self.note])

    def _repr_html_(self) -> str:
        if not self.rows:
            return f"<p>{escape(self.note)}</p>"
        head = "".join(f"<th>{text}</th>" for text in ("operation", "predicted", "measured", "measured / predicted"))
        body = "".join(
            f"<tr><td>{escape(name)}</td><td>{_ms(p)}</td><td>{_ms(m)}</td><td>{_ratio(p, m)}</td></tr>"
            for name, p, m in self.rows
        )
        return f"<table><tr>{head}</tr>{body}</table><p>{escape(self.note)}</p>"


def try_predictions(
    predict_ms: Callable[[Mapping[str, Any], Mapping[str, float]], float], ceilings: Ceilings
) -> Trials:
    """Run operations of each kind in torch on this machine, and put their times beside those that `predict_ms` says."""
    import torch

    from grader.worker.operations import call_of

    device = "cuda" if torch.cuda.is_available() else "cpu"
    rows = []
    for operation in _operations(device, ceilings.dtype):
        try:
            predicted = float(predict_ms(dict(operation), ceilings.as_dict()))
        except NotImplementedError:
            return Trials((), _NOT_WRITTEN)
        except Exception as error:
            return Trials((), f"predict_ms fails for {dict(operation)}: {type(error).__name__}: {error}")
        rows.append((_name(operation), predicted, time_ms(call_of(operation, device))))
    return Trials(tuple(rows), f"Measured now on {ceilings.machine}.")


def _operations(device: str, product: str) -> list[dict[str, Any]]:
    side, n = _SIDE[device], _PRODUCT[device]
    shape = [side, side]
    half = "float16" if device == "cuda" else "float64"
    return [
        {"kind": "copy", "shape": shape, "dtype": "float32"},
        {"kind": "add", "shape": shape, "dtype": "float32"},
        {"kind": "sum", "shape": shape, "dtype": "float32"},
        {"kind": "convert", "shape": shape, "dtype": "float32", "to": half},
        {"kind": "add_row", "shape": shape, "dtype": "float32"},
        {"kind": "matmul", "batch": 1, "m": n, "n": n, "k": n, "dtype": product},
        {"kind": "matmul", "batch": 64, "m": n // 2, "n": n // 2, "k": 16, "dtype": product},
    ]


def _name(operation: Mapping[str, Any]) -> str:
    kind = str(operation["kind"])
    if kind == "convert":
        return f"convert to {operation['to']}"
    return "matmul, k = 16, batch" if kind == "matmul" and operation["batch"] > 1 else kind


def _ms(value: float) -> str:
    return f"{figures(value)} ms"


def _ratio(predicted: float, measured: float) -> str:
    return f"{measured / predicted:.2f}" if predicted > 0 else "–"
