"""Fresh inputs: drawn by the arbiter from the system's randomness, never from a seed that anyone else has."""

from __future__ import annotations

import os
import random
from typing import Any

from grader.exercise import Array

__all__ = ["FILLS", "draw", "generator"]


def generator(device: str) -> Any:
    """A torch generator on `device`, seeded from `os.urandom`."""
    import torch

    return torch.Generator(device=device).manual_seed(int.from_bytes(os.urandom(8), "big") >> 1)


def draw(array: Array, fill: str, source: Any) -> Any:
    """A contiguous tensor of the array's shape and dtype, drawn as the fill says."""
    import torch

    device = source.device
    if not array.dtype.startswith(("float", "bfloat")):
        high = 256 if array.dtype == "uint8" else 1 << 16
        return torch.randint(0, high, array.shape, generator=source, device=device, dtype=getattr(torch, array.dtype))
    values = torch.randn(array.shape, generator=source, device=device, dtype=torch.float32)
    return FILLS[_chosen(fill)](values, source).to(getattr(torch, array.dtype))


def _chosen(fill: str) -> str:
    """One of the fills in "normal|heavy", drawn anew for each array of each launch."""
    return random.SystemRandom().choice(fill.split("|"))


def _heavy(values: Any, source: Any) -> Any:
    import torch

    return values * torch.exp(3 * torch.randn(values.shape, generator=source, device=values.device))


def _large(values: Any, source: Any) -> Any:
    import torch

    offset = torch.rand(values.shape[:1] + (1,) * (values.dim() - 1), generator=source, device=values.device)
    sign = torch.where(torch.arange(values.shape[0], device=values.device) % 2 == 0, 1.0, -1.0)
    return values + (5_000 + 5_000 * offset) * sign.reshape(offset.shape)


def _minus_inf(values: Any, source: Any) -> Any:
    import torch

    holes = torch.rand(values.shape, generator=source, device=values.device) < 0.1
    holes[..., 0] = False  # a row of nothing but minus infinity has no softmax
    return values.masked_fill(holes, float("-inf"))


FILLS = {
    "normal": lambda values, source: values,  # standard normal
    "heavy": _heavy,  # heavy tails: magnitudes from 1e-4 to 1e4
    "large": _large,  # rows around ±5,000 … ±10,000
    "below": lambda values, source: values - 200.0,  # exp of every value is 0 in float32
    "minus_inf": _minus_inf,  # one value in ten is minus infinity
}
