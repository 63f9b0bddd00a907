"""Traces such as `torch.profiler` exports, of programs that never ran: for `trace_facts`, which reads them."""

from __future__ import annotations

import random
from typing import Any

__all__ = ["KINDS", "trace"]

# By the name of the case: kernels, streams, and what else is in the trace.
KINDS: dict[str, dict[str, Any]] = {
    "one kernel": {"kernels": 1},
    "one stream": {"kernels": 40},
    "events in any order": {"kernels": 60, "shuffled": True},
    "copies and fills": {"kernels": 40, "copies": True, "shuffled": True},
    "ranges and synchronisations": {"kernels": 40, "ranges": True, "shuffled": True},
    "two streams that overlap": {"kernels": 40, "streams": 2, "shuffled": True},
    "short kernels beside a long one": {"kernels": 30, "streams": 2, "long": True, "shuffled": True},
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
    """The events of a new trace of one of the `KINDS`, drawn from the system's randomness."""
    return _Writer(**KINDS[kind]).write()


class _Writer:
    """Runs an imaginary program: the CPU starts work, streams do it. Times are whole nanoseconds."""

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
        end = {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": _us(self.cpu)}
        self.events.append(end)
        if self.shuffled:
            self.random.shuffle(self.events)
        else:  # as the profiler writes them: first what the CPU did, then the GPU
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
        """The CPU waits for the GPU and then does something else, so that the GPU idles; a copy may fall into it."""
        if self.long and len(self.streams) > 1:  # a kernel that outlasts what starts after it
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
        """A call of the runtime, and what it has a stream do, with the arrow between the two."""
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
        """A range of the program, drawn on the CPU's row and, from before its first kernel, on the GPU's."""
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
        self.events.append(
            {"ph": ph, "cat": category, "name": name, "pid": pid, "tid": tid, "ts": _us(begin), "dur": _us(took),
             "args": args or {}}
        )  # fmt: skip

    def _between(self, least_us: int, most_us: int) -> int:
        return self.random.randrange(1_000 * least_us, 1_000 * most_us + 1)


def _us(nanoseconds: int) -> float:
    return nanoseconds / 1e3
