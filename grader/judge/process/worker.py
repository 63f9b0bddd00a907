"""Workers as the arbiter sees them: started ahead of need, used for one submission, ended with their process tree."""

from __future__ import annotations

import contextlib
import gc
import math
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from grader.exercise import Case, text_of
from grader.judge.checking.buffers import Desk, Spread, laid
from grader.judge.process.claims import Printed, death, failure_of, time_of
from grader.judge.sandbox import FILES, MEMORY_BYTES, TASKS, Caged, TooManyFiles, available_share, start
from grader.judge.timing.output_probe import Glimpse
from grader.protocol.channel import Channel, ChannelClosed, ChannelTimeout
from grader.protocol.flag import Flag
from grader.verdict import Failure

# What comes of a round in a worker: its parts by the arbiter's clock, or a failure.

_NOT_AWAITED = (
    "Outputs changed after the function had returned: it must wait for its own threads and processes. Work on a stream "
    "of its own must be joined: `torch.cuda.current_stream().wait_stream(stream)`, or `stream.synchronize()`."
)


class WorkerFailed(Exception):
    """A submission failed in its worker; `failure` says how. After a crash, a limit or a timeout the worker is gone."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@dataclass(frozen=True)
class Round:
    """The parts of a round by the arbiter's clock, and the worker's own claim (None: it makes none that is a time)."""

    copy_in_s: float
    work_s: float  # from the inputs' arrival to the flag's answer: a last small copy of the judge's, then the launches
    glimpse_s: float
    event_s: float | None
    look: Glimpse
    seen: bytes  # by that look, before the clock stopped

    def must_be_unchanged(self) -> None:
        """To be called when all outputs were found to be right: what the clock's look saw must be just that.

        Raises:
            WorkerFailed: it was something else, so the answer came before the work was done.
        """
        if self.look.take() != self.seen:
            raise WorkerFailed(Failure("wrong_answer", _NOT_AWAITED))


# Workers as the arbiter sees them: started ahead of need, used for one submission, ended with their process tree.

START_LIMIT_S = 120.0
FILL = "fill"  # a function that every worker has: it fills the output, whatever an exercise's arrays are
_LEAST_AVAILABLE = 0.04  # of the machine's memory: below that the one in turn is stopped, as nothing else would see it
_LOOK_S = 0.5  # between two looks at how much memory it takes
_PLAN_LIMIT_S = 20.0  # to map memory and lay tensors over it: milliseconds, on a machine that is not overwhelmed
_QUEUE_S, _CALL_S = 0.02, 2e-4  # for the calls of a round to be queued; for each of them more, up to twice as much
_SPIN_S = {"cuda": 0.2, "simulator": 0.002}  # a longer wait measures no microseconds: sleep between looks


class Worker:
    """One worker process: `await_imports`, `start_up` and `warm_up` come first, once, in this order.

    `quiet` is held while another is timed: until `in_turn`, what this process prints is not read then, and nobody looks
    at how much memory it takes. Either would take the interpreter from the arbiter's spinning clock.
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
        self._spread: Spread | None = None
        self._looked_s = 0.0
        self.left_s = self._whole_s = math.inf  # of the time that is spent waiting for it, once it is its turn
        self._look_s = 4 * _LOOK_S  # a thread that wakes up takes the interpreter, too
        self.closed = False  # ended, with all of its processes
        self._is_ahead = True  # of its turn
        self._moving = threading.Lock()  # while its processes are stopped, or go on
        self._frozen = self._held = False
        self._available = 1.0  # share of the machine's memory, when its turn came

    @property
    def log(self) -> str:
        """What the process printed, up to a cap."""
        return self._printed.log

    def await_imports(self) -> None:
        """Waits for the imports.

        Raises:
            WorkerFailed: it did not come up; the log says why.
        """
        self._receive(START_LIMIT_S)

    def start_up(self, one_queue: bool) -> None:
        """Has it make its CUDA context: work on the GPU, so not while something is timed."""
        self._ask({"op": "start", "one_queue": one_queue}, START_LIMIT_S)

    def warm_up(self, profiler: bool) -> None:
        """Has it pay for what compilers, and if so the profiler, take at their first use."""
        self._ask({"op": "warm", "profiler": profiler}, START_LIMIT_S)

    def in_turn(self, left_s: float = math.inf, whole_s: float = math.inf) -> None:
        """From now on this is the one that is graded. All waits for it together may last `left_s`: what is left of the
        `whole_s` that its exercise allows.
        """
        self._look_s, self._is_ahead = _LOOK_S, False
        self._quiet = self._printed.quiet = contextlib.nullcontext()
        self._available = available_share()
        self.left_s, self._whole_s = left_s, whole_s

    def greet(self) -> None:
        """Hears from it that it is there.

        Raises:
            WorkerFailed: it is not, any more.
        """
        self._ask({"op": "greet"}, _PLAN_LIMIT_S)

    def load(
        self, name: str, source: str, entry: str, limit_s: float, harness: Callable[..., None] | None = None
    ) -> None:
        """Imports the source of a submission, or of a baseline, as `name`; `harness` calls it, where there is one."""
        message = {"op": "load", "name": name, "source": source, "entry": entry}
        if harness is not None:
            message |= {"harness": text_of(harness), "harness_entry": harness.__name__}
        self._ask(message, limit_s)

    def rehearse(self, name: str, cases: Sequence[Case], limit_s: float) -> None:
        """Has it compile what the function compiles when it is called with these cases; nothing runs on the GPU."""
        launches = [launch for case in cases for launch in laid(case, 1).plan()]
        message = {"op": "rehearse", "name": name, "launches": launches, "limit_s": limit_s}
        self._ask(message, limit_s + _PLAN_LIMIT_S)

    def map(self, desk: Desk, trusted: bool = False) -> None:
        """Hands over the arenas and a new flag; `trusted`: it runs nobody's submission. Others find nothing there
        of whoever had them before.
        """
        if not trusted:
            desk.clear()
        self._flag, flag_fd = Flag.create()
        mapped = desk.arenas_for(trusted)
        arenas = [
            {"name": name, "kind": arena.kind, "size": arena.size, "read_only": name == "inputs"}
            for name, arena in mapped.items()
        ]
        fds = (flag_fd, *(arena.fd for arena in mapped.values()))
        try:
            self._ask({"op": "map", "arenas": arenas}, _PLAN_LIMIT_S, fds)
        finally:
            os.close(flag_fd)

    def plan(self, spread: Spread) -> None:
        """Tells the worker where the tensors of the coming rounds lie."""
        self._spread = spread
        self._ask({"op": "plan", "launches": spread.plan()}, _PLAN_LIMIT_S)

    def round(self, name: str, desk: Desk, limit_s: float, head_start: bool) -> Round:
        """One round of `name` ("": one that copies; `FILL`) over the planned launches.

        The clock covers the copying-in of the inputs that were dealt, a small copy, the launches, and a look
        at random elements of every output. With a head start it begins when the calls have been made, and wait on the
        GPU: what Python takes for them does not count, unless that is long, or it waits for the GPU in between.

        Raises:
            WorkerFailed: the submission raised, crashed, or did not end in time.
        """
        assert self._flag is not None
        assert self._spread is not None
        self._round += 1
        self._send({"op": "arm", "name": name, "round": self._round, "head_start": head_start})
        self._receive(limit_s)
        flag, number = self._flag, self._round
        if head_start:
            self._await_queue(flag, number)
        glimpse = Glimpse(desk, self._spread)
        desk.wake()
        gc.disable()
        try:
            started = time.perf_counter()
            desk.hand_over()
            handed = time.perf_counter()
            desk.wake()
            flag.raise_(number)
            self._await_answer(flag, number, limit_s)
            answered = time.perf_counter()
            seen = glimpse.take()
            ended = time.perf_counter()
        finally:
            gc.enable()
        event_s = time_of(self._receive(limit_s).get("event_s"))
        return Round(handed - started, answered - handed, ended - answered, event_s, glimpse, seen)

    def _await_queue(self, flag: Flag, number: int) -> None:
        """Gives its calls a while to be queued. Who waits for the GPU between them, loads a kernel, or makes more calls
        than the driver queues (a thousand), waits for the flag; that is nobody's failure.
        """
        assert self._spread is not None
        ends = time.perf_counter() + _QUEUE_S + min(_QUEUE_S, _CALL_S * len(self._spread.launches))
        while not flag.queued(number) and time.perf_counter() < ends:
            time.sleep(20e-6)

    def _await_answer(self, flag: Flag, number: int, limit_s: float) -> None:
        raised, waited, most_s = time.perf_counter(), 0.0, min(limit_s, self.left_s)
        try:
            while not flag.answered(number):
                waited = time.perf_counter() - raised
                if waited > most_s:
                    raise WorkerFailed(self._too_slow(limit_s))
                if waited > _SPIN_S[self.device]:
                    time.sleep(0.001)
                    if self._caged.process.poll() is not None:
                        raise WorkerFailed(self._died())
                    self._watch()
        finally:
            self.left_s -= waited

    def kernels(self, name: str, limit_s: float) -> Any:
        """What ran on the GPU in one more launch, as the worker's own profiler tells it: untrusted, advice only."""
        return self._ask({"op": "kernels", "name": name}, limit_s).get("kernels")

    def freeze(self) -> None:
        """Stops every process of the tree until `thaw`, so that it disturbs nobody's time."""
        with self._moving:
            self._frozen = True
            self._caged.freeze()

    def thaw(self) -> None:
        with self._moving:
            self._frozen = False
            if not self._held:
                self._caged.thaw()

    def hold(self) -> None:
        """Stops it until `release`, unless it is in turn; one that was frozen stays so."""
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
        """Ends the whole process tree; whoever waits for it in another thread gets a WorkerFailed."""
        self._caged.kill()

    def close(self) -> None:
        """Ends the whole process tree and lets go of its channel and flag. A second call does nothing."""
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
            raise WorkerFailed(self._too_slow(limit_s)) from None
        except ChannelClosed:
            raise WorkerFailed(self._died()) from None
        finally:
            self.left_s -= time.monotonic() - asked
        if "failure" in answer:
            raise WorkerFailed(failure_of(answer["failure"]))
        return answer

    def _watch(self) -> float:
        """Looks, some times a second, whether the tree has outgrown what it may take. Returns the seconds for which it
        waited for others, in which the tree may have stood still; a look that is slow is the tree's own doing.

        Raises:
            WorkerFailed: it has, and is gone.
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

    def _too_slow(self, limit_s: float) -> Failure:
        self.close()
        if self.left_s < limit_s:
            said = f"Import, cases and timing together took more than the {self._whole_s:.0f} s that this exercise has"
            return Failure("timeout", f"{said}, and were stopped.")
        return Failure("timeout", f"It did not end within {limit_s:.0f} s and was stopped.")

    def _died(self) -> Failure:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._caged.process.wait(timeout=5)
        code = self._caged.process.returncode
        if self._caged.ran_out_of_memory():
            self.close()
            return Failure("limit", "It took more memory than it may and was ended by the system.")
        self.close()  # reads what it printed last
        return death(code, self.log)
