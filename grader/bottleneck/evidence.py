"""The evidence about one submission: its launches, accesses, compiled kernels and operations of torch.

All of it comes from a worker, which a submission can falsify: it supports advice, never points.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from grader.exercise import Case, Exercise
from grader.words import kernel_name

__all__ = [
    "Access", "Code", "Evidence", "Graph", "HostWork", "Launch", "LoopOfSome", "Operation", "Run", "Wait", "WarpAccess",
]  # fmt: skip

_MOST = 1 << 60
_CHARACTERS, _SIGNATURE = 60, 300  # of a name, and of a kernel's C++ signature
_COUNTS = ("float64", "cycles", "double_cycles", "access_cycles", "indexed", "tensor_cores", "atomics", "async_copies",
           "fast_sines")  # fmt: skip
_WIDTHS = (1, 2, 4, 8, 16)  # bytes per thread
SECTOR_BYTES, WARP = 32, 32


@dataclass(frozen=True)
class Access:
    """The accesses of one line of a Triton kernel in a launch, counted in the simulator.

    `bytes` are those of the elements, `fetched` those of the sectors that hold them, and `idle` the elements that a
    mask left out. `tensor` is the tensor's number in the call, 0 if it is not known: each kernel has its own names.
    """

    kind: str  # load, store or atomic
    name: str  # of the tensor
    line: int | None
    count: int
    elements: int
    bytes: int
    fetched: int
    idle: int
    tensor: int = 0

    @property
    def block(self) -> float:
        """The elements of one access, those that a mask left out included."""
        return (self.elements + self.idle) / max(1, self.count)

    @property
    def of(self) -> int | str:
        """The tensor's number, or its name if the number is not known."""
        return self.tensor or self.name


@dataclass(frozen=True)
class WarpAccess:
    """The accesses of one warp in one line of CUDA C++, counted in the simulator.

    `units` are the sectors per access, or for shared memory the lanes that meet in one bank. `size` is bytes per lane.
    """

    kind: str
    name: str  # global or shared
    line: int | None
    units: float
    size: int
    count: int  # accesses of this warp

    @property
    def needed(self) -> int:
        """The sectors that would do for neighbouring lanes and neighbouring elements."""
        return max(1, WARP * self.size // SECTOR_BYTES)


@dataclass(frozen=True)
class LoopOfSome:
    """A long loop that only some lanes of a warp run: these as bits, and the turns, counted in the simulator."""

    line: int | None
    lanes: int
    turns: int


@dataclass(frozen=True)
class Code:
    """A compiled kernel, by its PTX and the assembler. A number is None if it is not known."""

    kernel: str
    case: str = ""  # for which it was compiled
    line: int | None = None  # of the launch
    count: int = 1  # launches in one call
    programs: int | None = None
    threads: int | None = None
    registers: int | None = None
    spilled: int | None = None  # bytes per thread
    shared: int | None = None  # bytes per block
    stages: int | None = None  # of Triton's pipeline
    double: bool = False  # whether its arrays are float64
    float64: int = 0
    cycles: int = 0  # of a warp, by an estimate, with float32 in place of float64
    double_cycles: int = 0  # that float64 adds
    access_cycles: int = 0  # that memory takes
    indexed: int = 0  # bytes per thread in local memory, because an index is known only at run time
    tensor_cores: int = 0
    atomics: int = 0
    async_copies: int = 0  # to shared memory
    fast_sines: int = 0
    loads: Mapping[int, int] = field(default_factory=dict)  # instructions by bytes per thread
    stores: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Launch:
    """The launches of one kernel from one line, in one call.

    Accesses are counted for the busiest thread of each block: `most` is their maximum, and `total` their sum. `alone`
    is how many more they are, in all, than those of any thread in another warp of the block.
    """

    kernel: str
    line: int | None
    grid: tuple[int, ...]
    threads: int
    count: int
    shared: int = 0
    atomics: int = 0
    most: int = 0
    total: int = 0
    alone: int = 0
    accesses: tuple[Access, ...] = ()
    warps: tuple[WarpAccess, ...] = ()
    partly: tuple[LoopOfSome, ...] = ()
    code: Code | None = None

    @property
    def programs(self) -> int:
        return prod(self.grid)


@dataclass(frozen=True)
class Operation:
    """An operation of torch that the submission calls, and the bytes that it reads and writes in one call.

    `double` are those of its results in float64.
    """

    name: str
    line: int | None
    count: int
    bytes: int
    double: int = 0


@dataclass(frozen=True)
class HostWork:
    """Work of the host in one call: it "waits" for the GPU, "builds" a kernel, or "asks" for properties of the GPU."""

    kind: str
    name: str  # of the function that was called or built, or ""
    line: int | None
    count: int


@dataclass(frozen=True)
class Graph:
    """A graph that torch.compile captured: how many special functions, and results in float64, each element takes.

    Each count has the line of the first.
    """

    special: int
    special_names: str
    special_line: int | None
    double: int
    double_line: int | None


@dataclass(frozen=True)
class Wait:
    """A call of CUDA's runtime that makes the host wait for the GPU, or the GPU for the host."""

    name: str
    line: int | None


@dataclass(frozen=True)
class Kernel:
    """A kernel, copy or fill that ran on the GPU in one call, by torch's profiler.

    For a kernel, it also tells the grid, the threads and shared memory of a block, the registers of a thread, and the
    occupancy in percent by CUDA's calculator.
    """

    name: str
    count: int
    us: float
    grid: tuple[int, ...] = ()
    threads: int = 0
    registers: int = 0
    shared: int = 0
    occupancy: float = 0.0

    @property
    def programs(self) -> int:
        return prod(self.grid) if self.grid else 0


@dataclass(frozen=True)
class Run:
    """One call of the submission, for a case. `us` is its time on the GPU, None in the simulator."""

    case: Case
    launches: tuple[Launch, ...] = ()
    operations: tuple[Operation, ...] = ()
    host: tuple[HostWork, ...] = ()
    us: float | None = None
    waits: tuple[Wait, ...] = ()

    @property
    def elements(self) -> int:
        return sum(prod(array.shape) for array in self.case.arrays)


@dataclass(frozen=True)
class Evidence:
    """The evidence about a submission. `simulated` says that the runs were.

    `copy_gbps` and `peak_tflops` are the GPU's measured ceilings. They and its `multiprocessors`, which are its SMs,
    are 0 in the simulator. `planned` is the largest timed case with the launches that CUDA C++ would make in it.
    """

    simulated: bool
    runs: tuple[Run, ...] = ()
    planned: Run | None = None
    codes: tuple[Code, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    graphs: tuple[Graph, ...] = ()
    copy_gbps: float = 0.0
    peak_tflops: float = 0.0
    gpu: str = ""
    multiprocessors: int = 0

    @classmethod
    def of_claims(cls, exercise: Exercise, claims: Mapping[str, Any]) -> Evidence:
        """Return the evidence that `judge/inquiry.py` has gathered, as far as it is readable."""
        every = (*exercise.timed_cases, *exercise.plot_cases, *exercise.cases, *exercise.simulator_cases)
        known = {case.name: case for case in reversed(every)}
        runs = [
            run_of(known[one["case"]].times(one.get("scale", 1)), one["claim"])
            for one in claims["runs"]
            if one["case"] in known
        ]
        machine, codes = dict(claims), _dicts(claims["codes"])
        planned = [each for each in codes if each.get("planned") and _is_in(known, each.get("case"))]
        of = known[planned[0]["case"]] if planned else None
        return cls(
            simulated=bool(claims["simulated"]),
            runs=tuple(runs),
            planned=Run(of, tuple(map(_launch, planned))) if of is not None else None,
            codes=codes_of([each for each in codes if not each.get("planned")]),
            kernels=tuple(map(_kernel, _dicts(claims.get("kernels")))),
            graphs=tuple(_graph(one) for one in _dicts(claims["codes"]) if one.get("captured")),
            copy_gbps=_real(machine, "copy_gbps"),
            peak_tflops=_real(machine, "peak_tflops"),
            gpu=_text(machine, "gpu").removeprefix("NVIDIA "),
            multiprocessors=_number(machine, "multiprocessors"),
        )

    @property
    def main_kernel(self) -> Kernel | None:
        """The kernel that took most of the time on the GPU, if one took more than half of it."""
        main = max(self.kernels, key=lambda kernel: kernel.us, default=None)
        return main if main is not None and 2 * main.us > self.kernels_us else None

    @property
    def kernels_us(self) -> float:
        """The time of all kernels, copies and fills of a call for the largest case."""
        return sum(kernel.us for kernel in self.kernels)

    @property
    def largest(self) -> Run | None:
        """The run on the case with the most elements."""
        return max(self.runs, key=lambda run: run.elements, default=None)

    @property
    def largest_row_major(self) -> Run | None:
        """The largest run without a transposed matrix: no timed case has one, and it makes other lines scattered."""
        plain = [run for run in self.runs if not any(array.transposed for array in run.case.arrays)]
        return max(plain, key=lambda run: run.elements, default=self.largest)


def run_of(case: Case, claim: Any) -> Run:
    """Return the run that a worker claims, as far as it is readable."""
    found = claim if isinstance(claim, dict) else {}
    operations = (
        Operation(_text(one, "name"), _line(one), *(_number(one, key) for key in ("count", "bytes", "double")))
        for one in _dicts(found.get("operations"))
    )
    launches = map(_launch, _dicts(found.get("launches")))
    host = (
        HostWork(_text(one, "kind"), _text(one, "name"), _line(one), _number(one, "count"))
        for one in _dicts(found.get("host"))
    )
    waits = (Wait(_text(one, "name"), _line(one)) for one in _dicts(found.get("waits")))
    return Run(case, tuple(launches), tuple(operations), tuple(host), _real(found, "us") or None, tuple(waits))


def codes_of(claim: Any) -> tuple[Code, ...]:
    """Return the compiled kernels that a worker claims, each once."""
    return tuple(
        dict.fromkeys(
            _code(one)
            for one in _dicts(claim)
            if (one.get("kernel") or one.get("name")) and not one.get("compiled_again")
        )
    )


def _sizes(one: dict[str, Any], key: str) -> tuple[int, ...]:
    value = one.get(key)
    return tuple(n for n in value if type(n) is int and 0 < n < 1 << 31)[:3] if isinstance(value, list) else ()


def _kernel(one: dict[str, Any]) -> Kernel:
    block = _sizes(one, "block")
    return Kernel(
        name=kernel_name(_text(one, "name", _SIGNATURE)),
        count=_number(one, "count"),
        us=_real(one, "microseconds"),
        grid=_sizes(one, "grid"),
        threads=prod(block) if block else 0,
        registers=_number(one, "registers"),
        shared=_number(one, "shared"),
        occupancy=_real(one, "occupancy_percent"),
    )


def _graph(one: dict[str, Any]) -> Graph:
    return Graph(
        special=_number(one, "special"),
        special_names=_text(one, "special_names"),
        special_line=_line(one, "special_line"),
        double=_number(one, "double_results"),
        double_line=_line(one, "double_line"),
    )


def _launch(one: dict[str, Any]) -> Launch:
    code = one.get("code")
    numbers = {name: _number(one, name) for name in ("threads", "shared", "atomics", "most", "total", "alone")}
    return Launch(
        kernel=_text(one, "kernel"),
        line=_line(one),
        grid=_sizes(one, "grid"),
        count=max(1, _number(one, "count")),
        accesses=tuple(
            Access(_text(each, "kind"), _text(each, "name"), _line(each),
                   *(_number(each, name) for name in ("count", "elements", "bytes", "fetched", "idle", "tensor")))
            for each in _dicts(one.get("accesses"))
        ),
        warps=tuple(
            WarpAccess(_text(each, "kind"), _text(each, "name"), _line(each), _real(each, "units"),
                       _number(each, "size"), _number(each, "count"))
            for each in _dicts(one.get("warps"))
        ),
        partly=tuple(
            LoopOfSome(_line(each), _number(each, "lanes"), _number(each, "turns"))
            for each in _dicts(one.get("partly"))
        ),
        code=_code(code) if isinstance(code, dict) else None,
        **numbers,
    )  # fmt: skip


def _code(one: dict[str, Any]) -> Code:
    def optional(name: str) -> int | None:
        return _number(one, name) if type(one.get(name)) is int else None

    def widths(kind: str) -> Mapping[int, int]:
        return _Widths((width, _number(one, f"{kind}_{width}")) for width in _WIDTHS if f"{kind}_{width}" in one)

    return Code(
        kernel=kernel_name(_text(one, "kernel") or _text(one, "name")),
        case=_text(one, "case"),
        line=_line(one),
        count=max(1, _number(one, "count")),
        programs=optional("programs"),
        threads=optional("threads"),
        registers=optional("registers"),
        spilled=optional("spilled"),
        shared=optional("shared"),
        stages=optional("stages"),
        double=bool(one.get("double")),
        loads=widths("load"),
        stores=widths("store"),
        **{name: _number(one, name) for name in _COUNTS},
    )


class _Widths(dict[int, int]):
    """A dict that counts as a value, so that equal kernels are one."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(sorted(self.items())))


def _dicts(claim: Any) -> Iterable[dict[str, Any]]:
    return [each for each in claim[:200] if isinstance(each, dict)] if isinstance(claim, list) else []


def _is_in(known: Mapping[str, Any], name: Any) -> bool:
    return isinstance(name, str) and name in known  # a list cannot be a key


def _text(one: dict[str, Any], key: str, limit: int = _CHARACTERS) -> str:
    value = one.get(key)
    plain = value if isinstance(value, str) else ""
    return "".join(letter if letter.isprintable() and letter != "`" else "?" for letter in plain[:limit])


def _number(one: dict[str, Any], key: str) -> int:
    value = one.get(key)
    return value if type(value) is int and 0 <= value < _MOST else 0


def _real(one: dict[str, Any], key: str) -> float:
    value = one.get(key)
    return float(value) if isinstance(value, int | float) and 0 <= value < _MOST else 0.0


def _line(one: dict[str, Any], key: str = "line") -> int | None:
    value = one.get(key)
    return value if type(value) is int and 0 < value < 1_000_000 else None
