"""How a warp of a simulated Numba kernel shares memory transactions: sectors of global memory, banks of shared memory.

The first warp of each launch is watched. Its threads run one after another here, so the k-th access of each lane in a
line counts as one request, if all lanes make equally many. A wasteful line gets a remark, without points.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from grader.words import plural
from grader.worker.simulator import tally
from grader.worker.simulator.accesses import NOTE, observe

WARP = 32
_REQUESTS = 4  # of each line
_SECTOR_BYTES, _BANKS, _BANK_BYTES = 32, 32, 4
_MOST_SECTORS, _LEAST_WASTE, _MOST_IN_A_BANK = 24, 3, 8  # from here on, they are worth a remark
_settled: set[tuple[int, str, str]] = set()  # places that were reported, or that waste nothing in an earlier launch


@dataclass
class _Place:
    """The accesses in one line to one array: their number by lane, and the addresses of the first requests."""

    size: int
    shared: bool
    turns: list[int] = field(default_factory=lambda: [0] * WARP)
    requests: list[list[int]] = field(default_factory=lambda: [[0] * WARP for _ in range(_REQUESTS)])


class Traffic:
    """The accesses of the watched warp in one launch."""

    def __init__(self) -> None:
        self._places: dict[tuple[int, str, str], _Place] = {}

    def access(self, lane: int, kind: str, name: str, line: int, address: int, size: int, shared: bool) -> None:
        """Record the load or store of an element of `size` bytes; `address` begins at 0 in a shared array."""
        key = (line, kind, name)
        if lane >= WARP or (key in _settled and not tally.is_counting()):
            return
        place = self._places.setdefault(key, _Place(size, shared))
        turn = place.turns[lane]
        if turn < _REQUESTS:
            place.requests[turn][lane] = address
        place.turns[lane] = turn + 1

    def judge(self) -> None:
        """Observe a note for each line that wastes transactions in all of its requests. Call it after the block."""
        for key, place in self._places.items():
            if len(set(place.turns)) > 1:
                continue
            count = conflicts if place.shared else sectors
            units = [count(addresses, place.size) for addresses in place.requests[: place.turns[0]]]
            least, (line, kind, name) = min(units), key
            tally.warp(kind, place.shared, line, sum(units) / len(units), place.size, place.turns[0])
            if key in _settled:
                continue
            _settled.add(key)
            what = f"{kind} of `{name}`" if kind == "load" else f"{kind} to `{name}`"
            if place.shared:
                if least >= _MOST_IN_A_BANK:
                    said = f"{least} lanes of each warp's {what} meet in one bank of shared memory and take turns."
                    observe(NOTE, f"{said} Pad each row by one element.", line)
            elif least >= max(_MOST_SECTORS, _LEAST_WASTE * place.size):
                said = f"Each warp's {what} touches {plural(least, 'sector')} of {_SECTOR_BYTES} bytes;"
                said += f" {place.size} would do."
                observe(NOTE, f"{said} Let neighbouring threads use neighbouring elements.", line)


def sectors(addresses: list[int], size: int) -> int:
    """Return how many sectors the lanes touch."""
    return len({part // _SECTOR_BYTES for each in addresses for part in (each, each + size - 1)})


def conflicts(addresses: list[int], size: int) -> int:
    """Return the largest number of different words in one bank. Lanes with 8 or 16 bytes take turns in any case."""
    together = WARP * _BANK_BYTES // max(size, _BANK_BYTES)
    most = 1
    for first in range(0, WARP, together):
        words = {each // _BANK_BYTES for each in addresses[first : first + together]}
        most = max(most, *Counter(word % _BANKS for word in words).values())
    return most
