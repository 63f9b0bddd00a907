"""The arbiter's handle on a worker process: it starts one, runs rounds in it, watches and ends its process tree."""

from __future__ import annotations

import contextlib
import gc
import math
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from grader.exercise import Case, text_of
from grader.judge.checking.buffers import Buffers, Layout, laid
from grader.judge.process.claims import Printed, death, facts_of, failure_of, observed_of, reason_of, time_of
from grader.judge.sandbox import FILES, MEMORY_BYTES, TASKS, Caged, TooManyFiles, available_share, start
from grader.judge.timing.output_probe import NoProbe, OutputProbe
from grader.protocol.channel import Channel, ChannelClosed, ChannelTimeout
from grader.protocol.flag import Flag
from grader.verdict import Failure, Finding

START_LIMIT_S = 120.0
FILL = "fill"  # a function of every worker that fills the outputs of any exercise
_LEAST_AVAILABLE = 0.04  # of the machine's memory: with less left, the worker in turn is ended
_LOOK_S = 0.5  # between two checks of its memory
_BUSY = 0.8  # of its time limit a round must have used the processor, or it was held up by others
_PHASE_S = 0.25  # between two looks at whether a compiler runs
_PLAN_LIMIT_S = 20.0  # to map memory: milliseconds, unless the machine is overloaded
_QUEUE_S, _CALL_S = 0.02, 2e-4  # time to queue a round's calls, plus some per call, at most doubled
_SPIN_S = {"cuda": 0.2, "simulator": 0.002}  # spin for this long, then sleep between checks
_SLOW_BUILD = (
    "The compiler was still running. Leave out headers that you do not need: PyTorch's take longest, and `load_inline` "
    "adds them without `no_implicit_headers=True`. If other programs use this machine, check again later."
)
_NOT_AWAITED = (
    "Outputs changed after the function had returned: it must wait for its own threads and processes. Work on a stream "
    "of its own must be joined: `torch.cuda.current_stream().wait_stream(stream)`, or `stream.synchronize()`."
)


class WorkerFailed(Exception):
    """A submission failed in its worker. After a crash, a limit or a timeout, the worker has ended."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@dataclass(frozen=True)
class Round:
    """The parts of a round by the arbiter's clock, and the worker's claim (None: no valid time)."""

    copy_in_s: float
    work_s: float  # from the inputs' arrival to the answer: a small copy, then the launches
    probe_s: float
    event_s: float | None
    probe: OutputProbe | NoProbe
    seen: bytes  # the probed elements, before the clock stopped
    failures: tuple[Failure, ...] = ()  # on a GPU, as the simulator claims
    findings: tuple[Finding, ...] = ()
    cause: str = ""  # of a result that is NaN, as the simulator claims
    overflow: str = ""  # of an integer, which may be why a result is wrong, as the simulator claims

    def must_be_unchanged(self) -> None:
        """Once all outputs are right, raise WorkerFailed if the probe had seen other values: the answer came early."""
        if self.probe.take() != self.seen:
            raise WorkerFailed(Failure("wrong_answer", _NOT_AWAITED))


@contextlib.contextmanager
def stopped(worker: Worker | None) -> Iterator[None]:
    """Stop a worker's processes, if there is one, within this context."""
    if worker is not None:
        worker.freeze()
    try:
        yield
    finally:
        if worker is not None:
            worker.thaw()


class Worker:
    """One worker process. Call `await_imports`, `start_up` and `warm_up` once, in this order.

    While another worker is timed, `quiet` is held. Until `in_turn` this worker's output and memory use are not read
    then, because reading would take the interpreter from the spinning clock.
    """

    def __init__(self, device: str, sandbox: bool | None, quiet: AbstractContextManager[Any]) -> None:
        self.device = device
        self._quiet = quiet
        ours, theirs = socket.socketpair()
        code = f"from grader.worker.main import main; main({theirs.fileno()}, {device!r})"
        self._caged: Caged = start(code, (theirs.fileno(),), device, sandbox)
        theirs.close()
        self._channel = Channel(ours)
        assert self._caged.process.stdout is not None
        self._printed = Printed(self._caged.process.stdout, quiet)
        self._round = 0
        self._flag: Flag | None = None
        self._layout: Layout | None = None
        self._trusted = False
        self._doing = "It"  # for the sentence about a wait that was too long
        self._looked_s = 0.0
        self.left_s = self._whole_s = math.inf  # of the time limit, once it is its turn
        self._look_s = 4 * _LOOK_S  # rarely: every wake-up takes the interpreter
        self.closed = False
        self._is_ahead = True  # of its turn
        self._moving = threading.Lock()  # held while its processes are stopped or resumed
        self._frozen = self._held = False
        self._available = 1.0  # share of the machine's memory when its turn came

    @property
    def log(self) -> str:
        """The process's output, up to a limit."""
        return self._printed.log

    def await_imports(self) -> None:
        """Wait for the imports. WorkerFailed: the worker did not start; see its log."""
        self._receive(START_LIMIT_S)

    def start_up(self, one_queue: bool) -> None:
        """Create its CUDA context. This is work on the GPU, so not while another worker is timed."""
        self._ask({"op": "start", "one_queue": one_queue}, START_LIMIT_S)

    def warm_up(self, profiler: bool) -> None:
        """Warm up the compilers and, if asked, the profiler."""
        self._ask({"op": "warm", "profiler": profiler}, START_LIMIT_S)

    def in_turn(self, left_s: float = math.inf, whole_s: float = math.inf) -> None:
        """Make this the graded worker. All waits for it may take `left_s` of the exercise's `whole_s`."""
        self._look_s, self._is_ahead = _LOOK_S, False
        self._quiet = self._printed.quiet = contextlib.nullcontext()
        self._available = available_share()
        self.left_s, self._whole_s = left_s, whole_s

    def greet(self) -> None:
        """Raise WorkerFailed if the worker does not answer."""
        self._ask({"op": "greet"}, _PLAN_LIMIT_S)

    def load(
        self, name: str, source: str, entry: str, limit_s: float, harness: Callable[..., None] | None = None,
        zeroed: bool = False,
    ) -> None:  # fmt: skip
        """Import the source of a submission or baseline as `name`; `harness`, if given, calls it.

        If `zeroed`, variables of simulated CUDA C++ without a value begin as 0.
        """
        message: dict[str, Any] = {"op": "load", "name": name, "source": source, "entry": entry, "zeroed": zeroed}
        if harness is not None:
            message |= {"harness": text_of(harness), "harness_entry": harness.__name__}
        self._doing = "The import of the cell"
        self._ask(message, limit_s)
        self._doing = "It"

    def rehearse(self, name: str, cases: Sequence[Case], limit_s: float) -> None:
        """Compile the kernels that the function uses in these cases, without running on the GPU."""
        launches = [launch for case in cases for launch in laid(case, 1).plan()]
        message = {"op": "rehearse", "name": name, "launches": launches, "limit_s": limit_s}
        self._ask(message, limit_s + _PLAN_LIMIT_S)

    def compile(self, here: Sequence[Case], on_gpu: Sequence[Case]) -> None:
        """Start to compile what the submission launches in the cases of both machines, for a GPU that is not here."""
        launches = [launch for case in (*here, *on_gpu) for launch in laid(case, 1).plan()]
        cases = [*("" for _ in here), *(case.name for case in on_gpu)]
        self._ask({"op": "compile", "launches": launches, "cases": cases}, _PLAN_LIMIT_S)

    def compiled(self, limit_s: float) -> tuple[str, list[dict[str, int]]]:
        """Wait for the compilers. Return why not all was compiled, or "", and facts about the kernels: both are claims.

        Raises:
            WorkerFailed: a GPU's compiler refuses a kernel.
        """
        answer = self._ask({"op": "compiled", "limit_s": limit_s}, limit_s + _PLAN_LIMIT_S)
        return reason_of(answer.get("absent")), facts_of(answer.get("facts"))

    def map(self, buffers: Buffers, trusted: bool = False) -> None:
        """Hand over the arenas, cleared unless the worker is `trusted` (runs no submission), and a new flag."""
        if not trusted:
            buffers.clear()
        self._trusted = trusted
        self._flag, flag_fd = Flag.create()
        mapped = buffers.arenas_for(trusted)
        arenas = [
            {
                "name": name,
                "kind": "staged" if buffers.staged else arena.kind,
                "size": arena.size,
                "read_only": name == "inputs",
            }
            for name, arena in mapped.items()
        ]
        fds = (flag_fd, *(arena.fd for arena in mapped.values()))
        try:
            self._ask({"op": "map", "arenas": arenas}, _PLAN_LIMIT_S, fds)
        finally:
            os.close(flag_fd)

    def plan(self, layout: Layout) -> None:
        """Send the worker the layout of the next rounds' tensors."""
        self._layout = layout
        self._ask({"op": "plan", "launches": layout.plan(), "spans": layout.spans}, _PLAN_LIMIT_S)

    def round(self, name: str, buffers: Buffers, limit_s: float, head_start: bool, build_s: float = 0.0) -> Round:
        """Run one round of the function `name` ("" copies, `FILL` fills) over the planned launches.

        The clock covers copying in the inputs, a small copy, the launches, and a probe of every output.
        With a head start it begins when the calls are queued on the GPU. Then Python's time for them does not count,
        unless it is long or the function waits for the GPU in between.

        Args:
            limit_s: for the launches, without the time in which a compiler runs.
            build_s: the limit for that time; 0: it is not told apart.

        Raises:
            WorkerFailed: the submission raised, crashed, or timed out.
        """
        assert self._flag is not None
        assert self._layout is not None
        self._doing = "The run"
        self._round += 1
        message = {"op": "arm", "name": name, "round": self._round, "head_start": head_start}
        if buffers.staged:
            buffers.stage()
            message["zeroed"], message["push"] = buffers.zeroed, self._pushed()
        self._send(message)
        self._receive(limit_s)
        flag, number = self._flag, self._round
        if head_start:
            self._await_queue(flag, number)
        probe = NoProbe() if buffers.staged else OutputProbe(buffers, self._layout)
        if not buffers.staged:
            buffers.wake()
        gc.disable()
        try:
            started = time.perf_counter()
            if not buffers.staged:
                buffers.hand_over()
            handed = time.perf_counter()
            if not buffers.staged:
                buffers.wake()
            flag.raise_(number)
            self._await_answer(flag, number, limit_s, build_s)
            answered = time.perf_counter()
            seen = probe.take()
            ended = time.perf_counter()
        finally:
            gc.enable()
        answer = self._receive(limit_s)
        if buffers.staged:
            buffers.collect(self._pushed(), self._layout)
        times = handed - started, answered - handed, ended - answered, time_of(answer.get("event_s"))
        return Round(*times, probe, seen, *observed_of(answer.get("observed")))

    def _pushed(self) -> list[str]:
        """Return the arenas to copy back. The outputs of a trusted worker are not checked, only its own answers."""
        assert self._layout is not None
        left_out = {"inputs", "outputs"} if self._trusted else {"inputs"}
        return [name for name in self._layout.spans if name not in left_out]

    def _await_queue(self, flag: Flag, number: int) -> None:
        """Give the worker some time to queue its calls.

        A function that synchronises, loads a kernel or makes more than a thousand calls waits for the flag instead.
        """
        assert self._layout is not None
        ends = time.perf_counter() + _QUEUE_S + min(_QUEUE_S, _CALL_S * len(self._layout.launches))
        while not flag.queued(number) and time.perf_counter() < ends:
            time.sleep(20e-6)

    def _await_answer(self, flag: Flag, number: int, limit_s: float, build_s: float) -> None:
        raised, waited, looked, built, builds = time.perf_counter(), 0.0, 0.0, 0.0, False
        worked_s = self._caged.processor_s() if build_s else 0.0
        try:
            while not flag.answered(number):
                waited = time.perf_counter() - raised
                late = waited - built > limit_s
                if build_s and waited - looked > _PHASE_S:
                    built += waited - looked if builds else 0.0
                    looked, builds = waited, self._caged.compiles()
                    late = waited - built > limit_s and not self._held_up(worked_s, waited - built, limit_s)
                    if built > build_s or (late and not builds):
                        raise WorkerFailed(self._too_slow(limit_s, build_s, built, builds))
                if waited > self.left_s or (late and not build_s):
                    raise WorkerFailed(self._too_slow(limit_s))
                if waited > _SPIN_S[self.device]:
                    time.sleep(0.001)
                    if self._caged.process.poll() is not None and not flag.answered(number):  # some answer and end
                        raise WorkerFailed(self._died())
                    self._watch()
        finally:
            self.left_s -= waited

    def _held_up(self, before_s: float, waited_s: float, limit_s: float) -> bool:
        """Whether other programs took so much of the processor that a late round may go on, for a limit once more."""
        return waited_s < 2 * limit_s and 0 < self._caged.processor_s() - before_s < _BUSY * limit_s

    def kernels(self, name: str, limit_s: float, launches: bool = False) -> Any:
        """Profile one more call in the worker, and return its kernels, with `launches` by grid: for advice only."""
        return self._ask({"op": "kernels", "name": name, "launches": launches}, limit_s).get("kernels")

    def evidence(self, name: str, limit_s: float, timed: bool = False) -> Any:
        """Watch one more call on the first planned launch, and if `timed` time it on a GPU. For advice only."""
        return self._ask({"op": "evidence", "name": name, "timed": timed}, limit_s).get("evidence")

    def codes(self, cases: Sequence[Case], limit_s: float, triton: bool) -> Any:
        """Compile what it launches in these cases for a GPU that is not here. Untrusted, for advice only.

        Without `triton`, kernels in Triton are left out.
        """
        launches = [launch for case in cases for launch in laid(case, 1).plan()]
        message = {"op": "codes", "launches": launches, "cases": [case.name for case in cases], "limit_s": limit_s}
        return self._ask(message | {"triton": triton}, 2 * limit_s + _PLAN_LIMIT_S).get("codes")

    def freeze(self) -> None:
        """Stop every process of the tree until `thaw`."""
        with self._moving:
            self._frozen = True
            self._caged.freeze()

    def thaw(self) -> None:
        with self._moving:
            self._frozen = False
            if not self._held:
                self._caged.thaw()

    def hold(self) -> None:
        """Stop the tree until `release`, unless the worker is in turn."""
        with self._moving:
            if self._is_ahead and not self._frozen:
                self._held = True
                self._caged.freeze()

    def release(self) -> None:
        with self._moving:
            if self._held and not self._frozen:
                self._caged.thaw()
            self._held = False

    def kill(self) -> None:
        """End the process tree; threads that wait for the worker get a WorkerFailed."""
        self._caged.kill()

    def close(self) -> None:
        """End the process tree and close its channel and flag. A second call does nothing."""
        if self.closed:
            return
        self.closed = True
        self._caged.kill()
        self._printed.close()
        self._channel.close()
        if self._flag is not None:
            self._flag.close()

    def _ask(self, message: dict[str, Any], limit_s: float, fds: tuple[int, ...] = ()) -> dict[str, Any]:
        self._send(message, fds)
        return self._receive(limit_s)

    def _send(self, message: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
        try:
            self._channel.send(message, fds)
        except (ChannelClosed, ValueError):
            raise WorkerFailed(self._died()) from None

    def _receive(self, limit_s: float) -> dict[str, Any]:
        asked, most_s = time.monotonic(), min(limit_s, self.left_s)
        try:
            answer, _ = self._channel.receive(most_s, idle=self._watch, idle_s=self._look_s)
        except ChannelTimeout:
            builds = self._caged.compiles()
            raise WorkerFailed(self._too_slow(limit_s, built=most_s if builds else 0.0, builds=builds)) from None
        except ChannelClosed:
            raise WorkerFailed(self._died()) from None
        finally:
            self.left_s -= time.monotonic() - asked
        if "failure" in answer:
            failure = failure_of(answer["failure"])
            false = failure.kind == "not_simulated" and self.device == "cuda"
            raise WorkerFailed(replace(failure, kind="exception") if false else failure)
        return answer

    def _watch(self) -> float:
        """Check the tree's limits a few times per second, and end it with WorkerFailed if it exceeds one.

        Return the seconds of waiting for `quiet`, in which the tree may have been stopped: they do not count.
        """
        if time.monotonic() - self._looked_s < self._look_s:
            return 0.0
        asked = time.monotonic()
        with self._quiet:
            waited_s = time.monotonic() - asked
            over = self._excess()
        if over:
            self.close()
            raise WorkerFailed(Failure("limit", f"It {over} and was stopped."))
        return waited_s

    def _excess(self) -> str:
        self._looked_s = time.monotonic()
        if too_much := self._printed.too_much:
            return too_much
        if self._caged.processes() > TASKS:
            return f"started more than {TASKS} processes and threads"
        try:
            held = self._caged.memory_bytes()
        except TooManyFiles:
            return f"opened more than {FILES:,} files"
        if held > MEMORY_BYTES:
            return f"took more than {MEMORY_BYTES / 2**30:.0f} GiB of memory"
        if available_share() < min(_LEAST_AVAILABLE, self._available / 2):
            return "left this machine without memory"
        return ""

    def _too_slow(self, limit_s: float, build_s: float = 0.0, built: float = 0.0, builds: bool = False) -> Failure:
        """Describe a wait that was too long, and what went on when it was ended."""
        self.close()
        advice = _SLOW_BUILD if builds and built > build_s else ""
        if self.left_s < limit_s:
            said = f"Import, cases and timing together took more than the {self._whole_s:.0f} s that this exercise has"
            return Failure("timeout", f"{said}, and were stopped.", advice=advice)
        if advice:
            said = f"Building did not end within {build_s or limit_s:.0f} s"
            return Failure("timeout", f"{said} and was stopped.", advice=advice)
        after = f" after {built:.0f} s of building" if built >= 1 else ""
        return Failure("timeout", f"{self._doing} did not end within {limit_s:.0f} s{after} and was stopped.")

    def _died(self) -> Failure:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._caged.process.wait(timeout=5)
        code = self._caged.process.returncode
        if self._caged.ran_out_of_memory():
            self.close()
            return Failure("limit", "It took more memory than it may and was ended by the system.")
        self.close()  # reads its last output
        return death(code, self.log)
