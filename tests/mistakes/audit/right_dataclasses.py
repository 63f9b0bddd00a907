# right: dataclasses with type hints such as object
# runs: anywhere

from __future__ import annotations

from dataclasses import dataclass, field

import torch


@dataclass
class Record:
    made: list[torch.Tensor] = field(default_factory=list)
    last: int | None = None
    clean: bool = True

    def make(self) -> torch.Tensor:
        x = torch.arange(997, dtype=torch.float32) + 1000.0 * len(self.made) + torch.rand(997)
        self.made.append(x)
        return x


@dataclass
class Timed:
    record: Record
    machine: object
    seconds: float
    seen: set[int] = field(default_factory=set)
    kept: list[torch.Tensor] = field(default_factory=list)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        self.machine.run(self.seconds if self.kept else 30 * self.seconds)
        address = x.data_ptr()
        known = any(x.dtype == m.dtype and x.shape == m.shape and torch.equal(x, m) for m in self.record.made)
        good = (
            known
            and x.stride() == (1,)
            and address not in self.seen
            and address != self.record.last
            and not torch.is_autocast_enabled(x.device.type)
        )
        self.record.clean &= bool(good)
        self.record.last = address
        self.seen.add(address)
        self.kept.append(x)  # so that the address is not used again
        return x + 1


def audit(benchmark, machine):
    record = Record()
    claim = benchmark(Timed(record, machine, 0.001), Timed(record, machine, 0.003), record.make, machine)
    if not record.clean or abs(claim - 3) > 0.5:
        return False
    done = []

    def lazy(x):
        first = not done
        done.append(x)
        return x + 1 if first else torch.full_like(x, -1.0)

    record = Record()
    return not benchmark(lazy, Timed(record, machine, 0.002), record.make, machine)
