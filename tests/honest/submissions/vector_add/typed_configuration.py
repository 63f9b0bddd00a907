# honest: frozen dataclass, enum, protocol and type hints everywhere
# exercise: vector_add
# runs: anywhere
# gates: passes
from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

import torch
import triton
import triton.language as tl


class Size(enum.IntEnum):
    SMALL = 256
    LARGE = 1024


class Grid(NamedTuple):
    x: int
    y: int = 1
    z: int = 1


class Adds(Protocol):
    def __call__(self, x: torch.Tensor, y: torch.Tensor, out: torch.Tensor) -> None: ...


@dataclass(frozen=True)
class Config:
    block: Size = Size.LARGE
    warps: int = 4
    extra: dict[str, int] = field(default_factory=dict)

    def grid(self, n: int) -> Grid:
        return Grid(triton.cdiv(n, int(self.block)))


CONFIG: Final[Config] = Config(extra={"num_stages": 1})


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask), mask=mask)


def _add(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor) -> None:
    n: int = x.numel()
    match CONFIG:
        case Config(block=block, warps=warps):
            add_kernel[CONFIG.grid(n)](x, y, out, n, BLOCK=int(block), num_warps=warps, **CONFIG.extra)


vector_add: Adds = _add
