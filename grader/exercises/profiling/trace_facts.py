"""Read three facts from a profiler trace: the number of kernels, the GPU's busy share, and its longest idle gap."""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from grader.exercise import Array, Budget, Case, Exercise, Suspect
from grader.protocol.channel import to_bytes

# By the name of the case: kernels, streams, and other contents of the trace.
KINDS: dict[str, dict[str, Any]] = {
    "one kernel": {"kernels": 1},
    "one stream": {"kernels": 40},
    "events in any order": {"kernels": 60, "shuffled": True},
    "copies and fills": {"kernels": 40, "copies": True, "shuffled": True},
    "ranges and synchronisations": {"kernels": 40, "ranges": True, "shuffled": True},
    "two streams that overlap": {"kernels": 40, "streams": 2, "shuffled": True},
    "short kernels during a long one": {"kernels": 30, "streams": 2, "long": True, "shuffled": True},
    "all of it, hundreds of kernels": {
        "kernels": 250, "streams": 3, "long": True, "copies": True, "ranges": True, "shuffled": True,
    },
}  # fmt: skip
_OPERATIONS = (
    ("aten::mul", "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float>>"),
    ("aten::add", "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"),
    ("aten::sum", "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>"),
    ("aten::mm", "sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x32"),
    ("triton_poi_fused_add_kernel_0", "triton_poi_fused_add_kernel_0"),
)


def trace(kind: str) -> list[dict[str, Any]]:
    """The events of a new random trace of one of the `KINDS`."""
    return _Writer(**KINDS[kind]).write()


class _Writer:
    """The trace of an imaginary program: the CPU starts work, streams run it. Times are whole nanoseconds."""

    def __init__(self, kernels: int, streams: int = 1, *, long: bool = False, copies: bool = False,
                 ranges: bool = False, shuffled: bool = False) -> None:  # fmt: skip
        self.random = random.SystemRandom()
        self.kernels, self.long, self.copies, self.ranges, self.shuffled = kernels, long, copies, ranges, shuffled
        self.streams = [7, 20, 24][:streams]
        self.cpu = self.random.randrange(10**12, 4 * 10**12)  # since the machine started
        self.free = dict.fromkeys(self.streams, 0)
        self.pid = self.random.randrange(2_000, 30_000)
        self.number = 0
        self.events: list[dict[str, Any]] = []

    def write(self) -> list[dict[str, Any]]:
        begin = self.cpu
        self._metadata()
        self.cpu += self._between(50, 200)
        special = set(self.random.sample(range(2, self.kernels - 2), 4)) if self.kernels > 8 else set()
        rest, step = self.kernels, 0
        while rest:
            rest -= self._graph() if step in special and self.kernels >= 40 and rest > 4 else self._kernel()
            step += 1
            if step in special:
                self._pause()
            elif self.copies and self.random.random() < 0.1:
                self._copy()
        if self.ranges:
            self._range(begin)
        self._add("X", "Trace", "PyTorch Profiler (0)", begin, self.cpu - begin, pid="Spans", tid="PyTorch Profiler")
        self.events.append(
            {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": _us(self.cpu)}
        )
        if self.shuffled:
            self.random.shuffle(self.events)
        else:  # as the profiler writes them: CPU first, then GPU
            self.events.sort(key=lambda event: (event["pid"] == 0, event["ph"] != "M"))
        return self.events

    def _kernel(self) -> int:
        """An operation that starts one kernel."""
        name, kernel = self.random.choice(_OPERATIONS)
        took = self._between(8, 30)
        self._add("X", "cpu_op", name, self.cpu, took)
        if self.random.random() < 0.3:
            self._add("X", "cpu_op", "aten::empty", self.cpu + 500, 1_500)
        category, call = ("cuda_driver", "cuLaunchKernel") if name == kernel else ("cuda_runtime", "cudaLaunchKernel")
        self._start(category, call, self.cpu + took // 2, [("kernel", kernel, self._between(2, 90))])
        self.cpu += took + self._between(1, 10)
        return 1

    def _graph(self) -> int:
        """One call that starts three kernels."""
        kernels = [("kernel", self.random.choice(_OPERATIONS)[1], self._between(2, 20)) for _ in range(3)]
        self._start("cuda_runtime", "cudaGraphLaunch", self.cpu, kernels)
        self.cpu += self._between(10, 20)
        return 3

    def _copy(self) -> None:
        what = [("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", self._between(1, 40))]
        call = "cudaMemcpyAsync"
        if self.random.random() < 0.5:
            what, call = [("gpu_memset", "Memset (Device)", self._between(1, 5))], "cudaMemsetAsync"
        self._start("cuda_runtime", call, self.cpu, what)
        self.cpu += self._between(5, 15)

    def _pause(self) -> None:
        """The CPU waits for the GPU and then does something else, so the GPU idles; a copy may run in between."""
        if self.long and len(self.streams) > 1:  # a kernel that ends after later ones
            for stream, took in zip(self.streams, (self._between(700, 900), self._between(5, 10)), strict=False):
                self._start("cuda_runtime", "cudaLaunchKernel", self.cpu, [("kernel", _OPERATIONS[3][1], took)], stream)
                self.cpu += 9_000
        end = max(self.cpu + 1_000, *self.free.values(), 0)
        self._add("X", "cuda_runtime", "cudaStreamSynchronize", self.cpu, end - self.cpu)
        self.cpu = end + self._between(150, 350)
        if self.ranges:
            self._on_gpu("cuda_sync", "Stream Synchronize", self.streams[0], end, self.cpu - end)
        if self.copies:
            self._start("cuda_runtime", "cudaMemcpyAsync", self.cpu, [("gpu_memset", "Memset (Device)", 2_000)])
            self._start("cuda_runtime", "cudaMemcpyAsync", self.cpu + 4_000,
                        [("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", self._between(3, 9))])  # fmt: skip
            self.cpu += self._between(100, 250)

    def _start(self, category: str, call: str, at: int, work: list[tuple[str, str, int]], stream: int = 0) -> None:
        """A runtime call, the work that it starts on a stream, and the arrow between the two."""
        self.number += 1
        stream = stream or self.random.choice(self.streams)
        self._add("X", category, call, at, 4_000, args={"correlation": self.number})
        arrow = {"id": self.number, "cat": "ac2g", "name": "ac2g"}
        self.events.append({"ph": "s", **arrow, "pid": self.pid, "tid": self.pid, "ts": _us(at)})
        for kind, name, took in work:
            begin = max(self.free[stream] + self.random.randrange(0, 1_500), at + self._between(4, 6))
            self.free[stream] = begin + took
            self._on_gpu(kind, name, stream, begin, took)
            self.events.append({"ph": "f", "bp": "e", **arrow, "pid": 0, "tid": stream, "ts": _us(begin)})

    def _on_gpu(self, category: str, name: str, stream: int, begin: int, took: int) -> None:
        args = {"device": 0, "stream": stream, "correlation": self.number}
        self._add("X", category, name, begin, took, pid=0, tid=stream, args=args)

    def _range(self, begin: int) -> None:
        """A range of the program, on the CPU's row and, from before its first kernel, on the GPU's."""
        last = max(self.free.values())
        self._add("X", "user_annotation", "step", begin, last - begin)
        self._on_gpu("gpu_user_annotation", "step", self.streams[0], begin + 20_000, last + 9_000 - begin)

    def _metadata(self) -> None:
        for pid, label in ((self.pid, "CPU"), (0, "GPU 0")):
            fields = {"pid": pid, "tid": 0, "ts": _us(self.cpu)}
            self.events.append({"ph": "M", "name": "process_name", **fields, "args": {"name": "python"}})
            self.events.append({"ph": "M", "name": "process_labels", **fields, "args": {"labels": label}})

    def _add(self, ph: str, category: str, name: str, begin: int, took: int, pid: Any = None, tid: Any = None,
             args: dict[str, Any] | None = None) -> None:  # fmt: skip
        pid, tid = (self.pid, self.pid) if pid is None else (pid, tid)
        self.events.append({"ph": ph, "cat": category, "name": name, "pid": pid, "tid": tid, "ts": _us(begin),
                            "dur": _us(took), "args": args or {}})  # fmt: skip

    def _between(self, least_us: int, most_us: int) -> int:
        return self.random.randrange(1_000 * least_us, 1_000 * most_us + 1)


def _us(nanoseconds: int) -> float:
    return nanoseconds / 1e3


_BYTES = 400_001
_WORK = ("kernel", "gpu_memcpy", "gpu_memset")
_Span = tuple[float, float]  # start and end, in µs


def _case(name: str) -> Case:
    return Case(name, (Array("events", (_BYTES,), "uint8"), Array("out", (3,), "float64", role="out")))


def _draw(case: Case, source: Any, machine: Any = None) -> dict[str, Any]:
    return {"events": to_bytes(trace(case.name), _BYTES)}


def _three_numbers(entry: Any, events: Any, out: Any) -> None:
    import torch

    from grader.protocol.channel import from_bytes

    answers = entry(from_bytes(events))
    if not isinstance(answers, tuple | list) or len(answers) != 3:
        raise TypeError(f"trace_facts must return a tuple of three numbers, but returned {answers!r:.80}")
    out.copy_(torch.tensor([float(answer) for answer in answers], dtype=torch.float64))


def _spans(events: Iterable[dict[str, Any]], categories: Sequence[str] = _WORK) -> list[_Span]:
    return [(e["ts"], e["ts"] + e["dur"]) for e in events if e["ph"] == "X" and e["cat"] in categories]


def _merged(spans: Iterable[_Span]) -> list[_Span]:
    """The union of the spans: disjoint stretches in time order."""
    merged: list[_Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _length(spans: Iterable[_Span]) -> float:
    return sum(end - start for start, end in spans)


def _extent(spans: Sequence[_Span]) -> float:
    return max(end for _, end in spans) - min(start for start, _ in spans)


def _share(spans: Sequence[_Span]) -> float:
    return _length(_merged(spans)) / _extent(spans) if spans else 0.0


def _signed(spans: Iterable[_Span]) -> float:
    """The busy time, from which work that ends before earlier work is subtracted."""
    busy, latest = 0.0, -math.inf
    for start, end in spans:
        busy += end - max(start, latest)
        latest = max(latest, end)
    return busy


def _gap(spans: Sequence[_Span]) -> float:
    """The longest time from an end to the next start, in the given order, or 0."""
    return max((after[0] - before[1] for before, after in itertools.pairwise(spans)), default=0.0)


@functools.lru_cache(maxsize=16)
def _found(text: bytes) -> dict[str, float]:
    """The right answers and those of bugs, by name."""
    import json

    events = json.loads(text)
    complete = [e for e in events if e["ph"] == "X"]
    kernels = [e for e in complete if e["cat"] == "kernel"]
    work, only_kernels = _spans(events), _spans(events, ("kernel",))
    no_fills, no_copies = _spans(events, ("kernel", "gpu_memcpy")), _spans(events, ("kernel", "gpu_memset"))
    rows = _spans(events, (*_WORK, "gpu_user_annotation", "cuda_sync"))
    streams = {e["args"]["stream"] for e in complete if e["cat"] in _WORK}
    of_streams = [_spans(e for e in complete if e["args"].get("stream") == stream) for stream in streams]
    in_order, starts = sorted(work), sorted(start for start, _ in work)
    everything = [(e["ts"], e["ts"] + e["dur"]) for e in complete]
    share, gap = _share(work), max(0.0, _gap(_merged(work)))
    return {
        "count": len(kernels),
        "count: copies": len(work),
        "count: names": sum("kernel" in e["name"].lower() for e in complete),
        "count: launches": sum(e["name"] == "cudaLaunchKernel" for e in complete),
        "count: operations": sum(e["cat"] == "cpu_op" for e in complete),
        "count: rows": len(rows),
        "count: distinct": len({e["name"] for e in kernels}),
        "share": share,
        "share: summed": _length(work) / _extent(work),
        "share: kernels": _share(only_kernels),
        "share: no fills": _share(no_fills),
        "share: no copies": _share(no_copies),
        "share: rows": _share(rows),
        "share: idle": 1 - share,
        "share: time": _length(_merged(work)),
        "share: percent": 100 * share,
        "share: trace": _length(_merged(work)) / _extent(everything),
        "share: from 0": _length(_merged(work)) / max(end for _, end in work),
        "share: signed": _signed(in_order) / _extent(work),
        "share: order": gap,
        "share: streams": _length(work) / _extent(work) / len(streams),
        "gap": gap,
        "gap: file": _gap(work),
        "gap: starts": max((b - a for a, b in itertools.pairwise(starts)), default=0.0),
        "gap: end": _gap(in_order),
        "gap: kernels": _gap(_merged(only_kernels)),
        "gap: rows": _gap(_merged(rows)),
        "gap: ms": gap / 1e3,
        "gap: sum": _extent(work) - _length(_merged(work)),
        "gap: last": max(0.0, _gap(_merged(work)[-2:])),
        "gap: streams": max(_gap(_merged(spans)) for spans in of_streams),
    }


def _of(inputs: Any) -> dict[str, float]:
    import torch

    return _found(bytes(inputs["events"].cpu().to(torch.uint8).numpy()))


def _oracle(inputs: Any) -> Any:
    import torch

    answers = [_of(inputs)[name] for name in ("count", "share", "gap")]
    return torch.tensor(answers, dtype=torch.float64, device=inputs["events"].device)


def _suspect(bug: str, sentence: str) -> Suspect:
    """A suspect for one wrong answer, whatever the other two are."""
    name = bug.partition(":")[0]
    at = ("count", "share", "gap").index(name)

    def output(inputs: Any) -> Any:
        found = _of(inputs)
        others = [value for key, value in found.items() if key != bug and key.partition(":")[0] == name]
        if any(abs(found[bug] - value) <= 2e-3 * abs(value) + 1e-6 for value in others):
            return None  # the bug does not show here, or another bug gives the same answer
        answers = inputs.get("got", inputs.get("expected", _oracle(inputs))).clone()
        answers[at] = found[bug]
        return answers

    return Suspect(sentence, output)


_nothing: Callable[[Case], int] = lambda case: case.arrays[0].shape[0]  # noqa: E731
_CASES = tuple(_case(name) for name in KINDS)

TRACE_FACTS = Exercise(
    id="trace_facts",
    title="Read facts from a trace",
    chapter="01_profiling",
    notebook="02_read_a_profile",
    entry="trace_facts",
    parameters=("events",),
    backend="torch",
    cases=_CASES,
    simulator_cases=_CASES,
    timed_cases=(),
    plot_cases=(),
    harness=_three_numbers,
    draw=_draw,
    oracle=_oracle,
    budget=Budget(absolute=1e-6, relative=1e-4),
    answers=("kernel count", "busy share", "longest idle gap (µs)"),
    bytes_moved=_nothing,
    operations=_nothing,
    correctness_points=4,
    suspects=(
        _suspect("count: copies", 'Copies and fills were counted as kernels: a kernel has `cat` "kernel".'),
        _suspect(
            "count: names",
            "The count uses names. `cudaLaunchKernel` is a CPU call, and a CPU operation may have the name of its "
            'kernel: only `cat == "kernel"` is reliable.',
        ),
        _suspect(
            "count: launches",
            "These are the calls of `cudaLaunchKernel`. Kernels can be started in other ways, such as a whole graph "
            'with one call: count the kernels themselves, `cat == "kernel"`.',
        ),
        _suspect("count: operations", "These are the CPU operations. An operation may start several kernels, or none."),
        _suspect(
            "count: rows",
            "Everything on the GPU's rows was counted. Ranges and synchronisations are on these rows as well, but "
            "run nothing.",
        ),
        _suspect("count: distinct", "These are the distinct names: a kernel that ran twice counts twice."),
        _suspect(
            "share: summed",
            "The durations were added although streams overlap, so time with two running kernels was counted twice. "
            "Merge the intervals first.",
        ),
        _suspect("share: kernels", "The busy share includes only kernels: copies and fills keep the GPU busy as well."),
        _suspect("share: no fills", "Fills are missing in the busy share: `gpu_memset` keeps the GPU busy as well."),
        _suspect("share: no copies", "Copies are missing in the busy share: `gpu_memcpy` keeps the GPU busy as well."),
        _suspect(
            "share: rows",
            "Ranges or synchronisations were counted as work: they are on the GPU's rows, but run nothing.",
        ),
        _suspect(
            "share: order", "The answers are in another order: first the count, then the busy share, then the gap."
        ),
        _suspect(
            "share: from 0",
            "The span was counted from time 0. It should run from the GPU's first start to its last end.",
        ),
        _suspect(
            "share: signed",
            "Work that ends before earlier work was counted as a negative time: it adds nothing, `max(0, …)`.",
        ),
        _suspect("share: idle", "This is the idle share: the answer is 1 minus it."),
        _suspect("share: time", "This is the busy time in µs, not its share of the span."),
        _suspect("share: percent", "The share is in per cent: return a number from 0 to 1."),
        _suspect(
            "share: trace", "The span covers the whole trace. It should run from the GPU's first start to its last end."
        ),
        _suspect(
            "share: streams", "The share was averaged over the streams. The GPU is busy while any stream has work."
        ),
        _suspect("gap: sum", "This is the sum of all gaps: the answer is the longest one."),
        _suspect("gap: last", "This is the last gap. Keep the longest one so far: `gap = max(gap, …)`."),
        _suspect("gap: ms", "The gap is in ms: traces use µs, and so must the answer."),
        _suspect(
            "gap: starts", "This is the longest time between two starts: a gap starts when the previous work ends."
        ),
        _suspect(
            "gap: kernels", "The longest gap considers only kernels: while a copy or a fill runs, the GPU is not idle."
        ),
        _suspect(
            "gap: rows", "Ranges or synchronisations hide the longest gap: they are on the GPU's rows, but run nothing."
        ),
        _suspect(
            "gap: end",
            "The gap was measured from the end of the work that started last, but earlier work may still be running: "
            "keep the latest end so far.",
        ),
        _suspect("gap: streams", "This is the longest gap of one stream, but another stream had work in that time."),
        _suspect("gap: file", "The gap was computed in file order, but events come in any order: sort by `ts`."),
    ),
    hints=(
        'Keep the events with `ph` "X" and a `cat` of "kernel", "gpu_memcpy" or "gpu_memset". The others are not GPU '
        "work.",
        "Sort by start and keep the latest end so far: an event that starts after it begins a new busy stretch.",
        "The busy time is the sum of the stretches; the span runs from the first start to the last end.",
    ),
)
