"""A worker process: import what a submission needs, then run one submission on the judge's buffers.

It reports failures as text and answers by two words of the flag. It sees no expected value and gives no verdict.
"""

from __future__ import annotations

import ast
import contextlib
import ctypes
import functools
import gc
import importlib.util
import io
import linecache
import os
import re
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from grader.protocol.arena import POISON_BYTE, Arena, CudaArena, HostArena, Slot, StagedArena, tensor
from grader.protocol.channel import Channel, ChannelClosed
from grader.protocol.flag import Flag
from grader.worker.failures import accesses_in, describe, overflow_in
from grader.worker.stopwatch import GpuFlag, watch
from grader.worker.toolchain import forked

_PR_SET_PDEATHSIG = 1
_COMPILE_LIMIT_S = 30.0  # to wait for, after an error

# An empty match before a first line without code. Python looks for an encoding in the first two lines and takes the
# first it finds.
_BEFORE_CODE = re.compile(r"\A(?=[ \t\f]*(?:[#\r\n]|\Z))")


class Worker:
    """The state of one job: the functions to call, the arenas, and the planned launches."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.functions: dict[str, Callable[..., Any]] = {
            "": lambda x, out: out.copy_(x),
            "fill": lambda *arrays: arrays[-1].zero_(),  # the last array is an output
        }
        self.arenas: dict[str, Arena] = {}
        self.spans: dict[str, int] = {}  # the bytes of each arena that the plan uses
        self.flag: Flag | None = None
        self.gpu_flag: GpuFlag | None = None
        self.launches: list[tuple[Any, ...]] = []
        self.called: Callable[..., Any] | None = None
        self.written: Callable[..., Any] | None = None
        self.called_as: Callable[..., Any] | None = None  # by its harness, if it has one
        self.harness: Callable[..., Any] | None = None
        self.read_only: list[tuple[bool, ...]] = []  # of each tensor of each launch

    def handle(self, message: dict[str, Any], fds: list[int], channel: Channel) -> dict[str, Any]:
        """Carry out one message and return the answer."""
        operation = message["op"]
        if operation == "start" and self.device == "cuda":
            _cuda().start(message["one_queue"])
        elif operation == "warm" and self.device == "cuda":
            _cuda().warm(message["profiler"])
        elif operation == "map":
            self._map(message["arenas"], fds)
        elif operation == "load":
            if self.device == "simulator" and "load_inline" in message["source"]:
                from grader.worker.simulator import scratch

                scratch.watch()
            if message.get("zeroed"):
                from grader.worker.simulator import cuda_source

                cuda_source.zero_variables()
            harness = bind_harness(message["harness"], message["harness_entry"]) if "harness" in message else None
            with self._watching():
                function = self.written = _load(message["source"], message["entry"], "submission")
            if self.device == "simulator":
                _simulator().size_grids_as_on_a_gpu(function)
            self.harness = harness
            self.called_as = functools.partial(harness, function) if harness else function
            self.functions[message["name"]] = self.called_as
        elif operation == "rehearse":
            self._rehearse(message)
        elif operation == "compile":
            self._compile(message["launches"], message["cases"])
        elif operation == "compiled":
            found = forked.result(message["limit_s"])
            for name in "kernels", "codes":  # they are for this process
                found.pop(name, None)
            return {"done": operation} | found
        elif operation == "plan":
            launches = [list(map(Slot.from_dict, launch)) for launch in message["launches"]]
            self.launches = [tuple(tensor(self.arenas[slot.arena], slot) for slot in launch) for launch in launches]
            self.spans = message["spans"]
            self.read_only = [
                tuple(getattr(self.arenas[slot.arena], "read_only", False) for slot in launch) for launch in launches
            ]
        elif operation == "arm":
            self._observed()
            answer = {"done": operation, "event_s": self._run(message, channel)}
            return answer | ({"observed": observed} if (observed := self._observed()) else {})
        elif operation == "codes":
            return {"done": operation, "codes": self._codes(message)}
        elif operation == "evidence":
            return {"done": operation} | self._evidence(message)
        elif operation == "kernels":
            from grader.worker.call_profile import launched, ran

            function, profiled = self.functions[message["name"]], launched if message["launches"] else ran
            return {"done": operation, "kernels": profiled(lambda: function(*self.launches[0]))}
        return {"done": operation}

    def _evidence(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return evidence about one call on the first planned launch."""
        from grader.worker.evidence import gather

        function, arguments = self.functions[message["name"]], self.launches[0]
        harness, entry = self.harness if function is self.called_as else None, function
        if harness is not None and self.written is not None:
            entry = self.written

        def call(entry: Callable[..., Any]) -> None:
            harness(entry, *arguments) if harness is not None else entry(*arguments)

        if self.device != "simulator":
            return {"evidence": gather(call, entry, message["timed"])}
        _simulator().use_arguments(function, arguments, self.read_only[0])
        with self._watching(*arguments) if function is self.written else contextlib.nullcontext():
            found = gather(call, entry)
        self._observed()
        return {"evidence": found}

    def _codes(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        """Return facts about what a GPU's compilers make of the kernels that the submission launches."""
        from grader.worker.simulator import cuda_compiled, cupy_kernels, numba_compiled, planned_launches
        from grader.worker.simulator.triton_compiled import facts as facts_of_triton

        assert self.called_as is not None
        slots = [[Slot.from_dict(slot) for slot in launch] for launch in message["launches"]]
        limit_s = message["limit_s"]
        cases = list(zip(message["cases"], slots, strict=True))
        of_triton = facts_of_triton(self.called_as, cases, limit_s) if message["triton"] else []
        planned = planned_launches.launches(self.called_as, cases, limit_s)
        found = forked.result(limit_s)
        of_numba = [fact for code in found.get("codes", ()) for fact in numba_compiled.facts(code)]
        graphs = [fact for fact in found.get("facts", ()) if fact.get("captured")]
        return [*planned, *of_triton, *cuda_compiled.facts(), *cupy_kernels.facts(), *of_numba, *graphs]

    def _observed(self) -> list[dict[str, Any]]:
        """Return what the simulator saw since the last call, in kernels that ran to their end."""
        if self.device != "simulator":
            return []
        from grader.worker.simulator import accesses, cuda_library

        texts = _simulator().take_observed()
        remarks = [{"kind": accesses.NOTE, "message": said, "line": line} for line, said in cuda_library.take_traffic()]
        seen = [accesses_in(text) or overflow_in(text) or {"kind": accesses.CAUSE, "message": text} for text in texts]
        return [*seen, *accesses.take_observed(), *remarks]

    def _map(self, arenas: Sequence[dict[str, Any]], fds: list[int]) -> None:
        self.flag = Flag(fds[0])
        staged = any(arena["kind"] == "staged" for arena in arenas)
        self.gpu_flag = GpuFlag(self.flag, needed=not staged) if self.device == "cuda" else None
        for fd, arena in zip(fds[1:], arenas, strict=True):
            name, size, read_only = arena["name"], arena["size"], arena["read_only"]
            if arena["kind"] == "cuda":
                self.arenas[name] = CudaArena.open(fd, size, read_only)
            elif arena["kind"] == "staged":
                self.arenas[name] = StagedArena(HostArena(fd, size, read_only), self.device == "cuda")
            else:
                self.arenas[name] = HostArena(fd, size, read_only)
        for fd in fds:
            os.close(fd)  # the mappings remain

    def _rehearse(self, message: dict[str, Any]) -> None:
        from grader.worker.toolchain.rehearsal import rehearse

        launches = [[Slot.from_dict(slot) for slot in launch] for launch in message["launches"]]
        with contextlib.suppress(Exception):  # after a failure the kernels are compiled by the first real call
            rehearse(self.functions[message["name"]], launches, message["limit_s"])

    def _compile(self, launches: Sequence[Sequence[dict[str, Any]]], cases: Sequence[str]) -> None:
        """Start to compile what the submission launches, for a GPU that is not here."""
        from grader.worker.simulator import triton_compiled

        assert self.called_as is not None
        slots = [[Slot.from_dict(slot) for slot in launch] for launch in launches]
        triton_compiled.start(self.called_as, list(zip(cases, slots, strict=True)))

    def _run(self, message: dict[str, Any], channel: Channel) -> float | None:
        """Run one round and return its duration by this process's own events, in seconds.

        With a head start the calls are made before the flag is raised, and a function that synchronises waits for the
        flag. If the GPU can answer, it does so in the order of the current stream, unless the arenas are staged. The
        host answers when all work has ended.
        """
        assert self.flag is not None
        number, function = message["round"], self.functions[message["name"]]
        launches, own, gpu_flag = self.launches, watch(self.device), self.gpu_flag
        staged = "push" in message
        if staged:
            self._stage(message["zeroed"])
        if self.device == "simulator":
            self._report_writes(function, channel)
        channel.send({"armed": number})
        try:
            ahead = message["head_start"] and gpu_flag is not None and gpu_flag.wait_raised(number)
            if not ahead:
                self.flag.queue(number)
                self.flag.wait_raised(number)
            own.start()
            for number_of_launch, arguments in enumerate(launches):
                if self.device == "simulator":
                    _simulator().use_arguments(function, arguments, self.read_only[number_of_launch])
                with self._watching(*arguments) if function is self.written else contextlib.nullcontext():
                    function(*arguments)
            own.stop()
            if gpu_flag is not None and not staged:
                try:
                    gpu_flag.answer(number)
                except RuntimeError:
                    own.wait()  # if work on the GPU failed, this raises torch's error, which says more
                    raise
            if ahead:
                self.flag.queue(number)
                self.flag.wait_raised(number)
            own.wait()
        finally:
            self.flag.answer(number)
        for name in message.get("push", ()):
            arena = self.arenas[name]
            assert isinstance(arena, StagedArena)
            arena.push(self.spans[name])
        return own.seconds()

    def _stage(self, zeroed: bool) -> None:
        """Fill this process's own arenas: fresh inputs, and outputs that nobody has written."""
        for name, count in self.spans.items():
            arena = self.arenas[name]
            assert isinstance(arena, StagedArena)
            if arena.read_only:
                arena.pull(count)
            else:
                arena.bytes_at(0, count).fill_(POISON_BYTE)
        if zeroed:
            for launch, read_only in zip(self.launches, self.read_only, strict=True):
                for each, fixed in zip(launch, read_only, strict=True):
                    if not fixed:
                        each.zero_()
        if self.device == "cuda":
            _cuda().finish()

    def _watching(self, *tensors: Any) -> contextlib.AbstractContextManager[None]:
        """In the simulator, tell the GPU's tensors from the CPU's. A harness does so itself where it can."""
        if self.device != "simulator":
            return contextlib.nullcontext()
        from grader.worker.simulator import devices

        return devices.watching(*tensors)

    def _report_writes(self, function: Callable[..., Any], channel: Channel) -> None:
        """Let a write to an input of this function answer the round with a failure."""
        from grader.worker.simulator import input_writes

        self.called = function

        def inputs() -> list[tuple[str, int, int]]:
            names = input_writes.names_of(self.called) if self.called else []
            given = [(name, each) for name, each in zip(names, self.launches[0], strict=False) if each.numel()]
            return [
                (name, each.data_ptr(), each.data_ptr() + _bytes_spanned(each))
                for name, each in given
                if not self._writable(each.data_ptr())
            ]

        def report(failure: dict[str, Any]) -> None:
            assert self.flag is not None
            self.flag.answer(1 << 62)
            channel.send({"failure": failure})

        input_writes.report_writes(inputs, report)

    def _writable(self, address: int) -> bool:
        arena = self.arenas["inputs"]
        first = arena.bytes_at(0, 1).data_ptr()
        return not first <= address < first + arena.size


def _bytes_spanned(tensor: Any) -> int:
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return int((last + 1) * tensor.element_size())


def main(fd: int, device: str) -> None:
    """Serve one job on an inherited socket until it closes."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    channel = Channel(socket.socket(fileno=fd))
    gc.disable()  # garbage collection takes a quarter of the time of these imports and finds almost nothing
    _import(device)
    gc.enable()
    worker = Worker(device)
    channel.send({"imported": True})
    while True:
        try:
            message, fds = channel.receive(limit_s=None, with_fds=True)
        except ChannelClosed:
            return
        try:
            answer = worker.handle(message, fds, channel)
        except BaseException as error:
            found = _described(error)
            if device == "simulator" and found["kind"] == "exception":
                found = _said_by_kernel(error) or found | _only_interpreted(error)
            answer = {"failure": found}
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # a submission may have closed them
                stream.flush()
        channel.send(answer)


def _described(error: BaseException) -> dict[str, Any]:
    try:
        return describe(error, Path("submission.py"))
    except BaseException:
        return {"kind": "exception", "message": f"{type(error).__name__}, which cannot be shown", "line": None}


def _said_by_kernel(error: BaseException) -> dict[str, Any] | None:
    """Return the failure of a kernel of CUDA C++ if the submission passed on only its number, or None."""
    from grader.worker.simulator import cuda_library

    try:
        in_words = cuda_library.in_words(error) if isinstance(error, Exception) else error
    except BaseException:  # of the submission's own exception, when it is shown
        return None
    return None if in_words is error else _described(in_words)


def _only_interpreted(error: BaseException) -> dict[str, Any]:
    """Return another kind and message if Triton's interpreter fails where its compiler does not."""
    from grader.worker.simulator import triton_compiled

    said = triton_compiled.not_interpreted(error, _COMPILE_LIMIT_S)
    return {"kind": "not_simulated", "message": said} if said else {}


def _import(device: str) -> None:
    """Import what a submission needs, before there is one."""
    if device == "simulator":
        from grader.worker.simulator import (
            bfloat16,
            devices,
            torch_gpu,
            triton_compiled,
            triton_gpu,
            triton_language,
            triton_log,
        )

        start = _simulator()
        start.prepare()
        import torch
        import triton  # noqa: F401

        torch.set_num_threads(1)
        start.install()
        start.take_first()
        triton_compiled.remember()
        forked.enable()
        triton_language.install()
        bfloat16.install()
        triton_gpu.install()
        triton_log.watch()
        devices.install()
        torch_gpu.install()
    else:
        _cuda()


def _simulator() -> Any:
    from grader.worker.simulator import start

    return start


def _cuda() -> Any:
    from grader.worker import gpu_start

    return gpu_start


def _load(source: str, entry: str, name: str) -> Callable[..., Any]:
    """Turn the scanned text into a module and return its function `entry`.

    The string itself is compiled. Python would decode a file by the encoding in its first two lines, and could run a
    different program from the one that the judge scanned. Triton, Numba and tracebacks read source through `linecache`,
    which gets the same text and does not reread the file. Other processes read the file.
    """
    path = Path(f"{name}.py").absolute()
    code = compile(source, str(path), "exec", dont_inherit=True)
    path.write_text(_BEFORE_CODE.sub("# coding: utf-8 ", source, count=1), encoding="utf-8", newline="")
    linecache.cache[str(path)] = (len(source), None, io.StringIO(source + "\n", newline=None).readlines(), str(path))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    exec(code, module.__dict__)
    found = getattr(module, entry, None)
    if not callable(found):
        raise NameError(f"the cell ran, and afterwards there is no function {entry!r}")
    return found  # type: ignore[no-any-return]


def bind_harness(text: str, entry: str) -> Callable[..., Any]:
    """Return the function `entry` of a harness, with all of its imports done now instead of in each call.

    A submission that is loaded later cannot replace what the harness has imported. Modules of the grader that are first
    imported here belong to the harness: they leave `sys.modules`, and a later import makes another copy.
    """
    imports = _Imports()
    module = imports.visit(ast.parse(text))
    module.body[:0] = imports.found
    before = set(sys.modules)
    space: dict[str, Any] = {"__name__": "harness"}
    exec(compile(ast.fix_missing_locations(module), "harness.py", "exec"), space)
    for name in sys.modules.keys() - before:
        if name.startswith("grader."):
            del sys.modules[name]
            package, _, own = name.rpartition(".")
            if package in sys.modules:
                vars(sys.modules[package]).pop(own, None)
    return space[entry]  # type: ignore[no-any-return]


class _Imports(ast.NodeTransformer):
    """Take the imports out of functions and blocks."""

    def __init__(self) -> None:
        self.found: list[ast.stmt] = []

    def _take(self, node: ast.stmt) -> ast.Pass:
        self.found.append(node)
        return ast.Pass()

    visit_Import = visit_ImportFrom = _take


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
