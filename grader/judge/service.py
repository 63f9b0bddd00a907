"""The judge's service: a process of its own, kept warm, that answers requests over a socket.

A caller imports no torch and holds no CUDA context. If the judge's process dies, the caller gets an error message.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import os
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from grader import errors
from grader.bottleneck.evidence import Evidence
from grader.bottleneck.explanation import with_why
from grader.errors import GraderError, JudgeStopped
from grader.exercise import MAX_SOURCE_BYTES
from grader.exercises import find, found
from grader.hardware import gpus
from grader.judge.sandbox import import_folders, remove
from grader.protocol.channel import Channel, ChannelClosed, ChannelTimeout
from grader.verdict import Progress, Timing, Verdict

_IDLE_S = 900.0  # after this time without a request the judge exits, to free its GPU memory
_ENDING_S = 10.0  # time for a judge that has closed its channel to exit
_KNOBS = ("TRITON_", "MLIR_", "LLVM_", "NVPTX_", "PTXAS_", "DISABLE_", "USE_IR_LOC")
_PLACES = ("TRITON_LIBCUDA_PATH",)  # the path of the driver's library, which changes no compilation
_AHEAD = 8  # upcoming submissions in a request


class Judge:
    """Grades submissions, one at a time. The process starts at the first call.

    `sandbox`: True requires one, for other people's code; None uses one if the machine has one; False uses none.
    `gpu` is the value of CUDA_VISIBLE_DEVICES for the judge and its workers; None keeps the caller's.
    """

    def __init__(
        self, device: Literal["auto", "cuda", "simulator"] = "auto", sandbox: bool | None = None, gpu: str | None = None
    ) -> None:
        self._device, self._sandbox, self._gpu = device, sandbox, gpu
        self._expected: list[tuple[str, str]] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._course: str | None = None  # the course folder whose exercises the process has loaded
        self._folder: str | None = None  # holds the workers' homes; deleted even if the judge was killed
        self._simulator: Judge | None = None  # asked about slow work

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def grade(
        self,
        source: str,
        exercise_id: str,
        *,
        timed: bool = True,
        kernels: bool = False,
        progress: Progress | None = None,
    ) -> Verdict:
        """Return the verdict on `source`, the text of a solution cell.

        `kernels` also profiles an untimed launch for findings. The profiler takes three seconds to start. Graders start
        workers ahead, so use it there, not while a learner waits.

        Raises:
            UnknownExercise: no exercise has this id.
            MachineLacks: this machine is missing something that grading needs.
            JudgeStopped: the judge reached no verdict; the next call starts a new one.
        """
        find(exercise_id)
        source = _cut(source)
        request = {"op": "grade", "source": source, "exercise": exercise_id, "timed": timed, "kernels": kernels}
        answer = self._ask(request | {"next": self._next(source, exercise_id)}, progress)
        return Verdict.from_dict(answer["verdict"])

    def with_why(self, verdict: Verdict, source: str, *, progress: Progress | None = None) -> Verdict:
        """Return the verdict with what the simulator tells about its missed gates; as it is if that tells nothing.

        The simulator's judge stays for the next question.
        """
        if not any(gate.outcome == "failed" for gate in verdict.gates):
            return verdict
        self._simulator = self._simulator or Judge("simulator", self._sandbox)
        try:
            simulated = self._simulator.evidence(source, verdict.exercise, beside_gpu=True, progress=progress)
            self._simulator.settle()
            return with_why(verdict, source, simulated)
        except Exception:  # the points are known, even if this fails, for example on a full disk
            self._simulator.close()
            return verdict

    def settle(self) -> None:
        """Wait until no worker is starting here, which would disturb what another judge times next.

        Raises as `grade` does.
        """
        self._ask({"op": "settle"}, None)

    def expect(self, submissions: Sequence[tuple[str, str]]) -> None:
        """Announce the next submissions in order, as pairs of source and exercise id.

        The judge imports and builds them while it grades another. This changes no verdict and obliges to nothing.
        """
        self._expected = [(_cut(source), find(exercise).id) for source, exercise in submissions]

    def measure(self, source: str, exercise_id: str, *, progress: Progress | None = None) -> list[Timing]:
        """Time the submission and every baseline on the exercise's plot cases.

        Raises:
            MachineLacks: there is no GPU.
            UnusableSubmission: the submission fails or is wrong.
            JudgeStopped: see `grade`.
        """
        find(exercise_id)
        answer = self._ask({"op": "measure", "source": _cut(source), "exercise": exercise_id}, progress)
        return [Timing(**timing) for timing in answer["timings"]]

    def evidence(
        self, source: str, exercise_id: str, *, beside_gpu: bool = False, progress: Progress | None = None
    ) -> Evidence:
        """Return evidence about why a right submission is slow, on this judge's device. On a GPU, calls are timed.

        `beside_gpu` and errors are as for `claims`.
        """
        claims = self.claims(source, exercise_id, beside_gpu=beside_gpu, progress=progress)
        return Evidence.of_claims(find(exercise_id), claims)

    def claims(
        self, source: str, exercise_id: str, *, beside_gpu: bool = False, progress: Progress | None = None
    ) -> dict[str, Any]:
        """Return what `evidence` is made of: JSON, which can be kept. Those announced by `expect` are loaded meanwhile.

        `beside_gpu`: a GPU tells what Triton's kernels compile to, so the simulator need not compile them.

        Raises:
            UnknownExercise, MachineLacks, JudgeStopped: see `grade`.
        """
        find(exercise_id)
        request = {"op": "evidence", "source": _cut(source), "exercise": exercise_id, "beside_gpu": beside_gpu}
        claims: dict[str, Any] = self._ask(request | {"next": self._next(source, exercise_id)}, progress)["evidence"]
        return claims

    def _next(self, source: str, exercise_id: str) -> list[tuple[str, str]]:
        """Return the submissions that follow this one, as `expect` announced them."""
        if (one := (_cut(source), exercise_id)) in self._expected:
            self._expected = self._expected[self._expected.index(one) + 1 :]
        return self._expected[:_AHEAD]

    def close(self) -> None:
        """End the judge's process and its workers."""
        if self._channel is not None:
            self._channel.close()
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=5)
            self._process.kill()
            self._process.wait()
        if self._folder is not None:
            remove(Path(self._folder))
        self._process = self._channel = self._folder = None
        if self._simulator is not None:
            self._simulator.close()

    def interrupt(self) -> None:
        """End a running call, which another thread waits for: `grade` raises JudgeStopped."""
        if (process := self._process) is not None:
            process.kill()
        if self._simulator is not None:
            self._simulator.interrupt()

    def _variables(self, course: str | None) -> dict[str, str]:
        chosen = {found.COURSE_VARIABLE: course, "CUDA_VISIBLE_DEVICES": self._gpu}
        return {name: value for name, value in chosen.items() if value is not None}

    def _ask(self, message: dict[str, Any], progress: Progress | None) -> dict[str, Any]:
        for again in (True, False):
            answer = self._exchange(message, progress)
            if "ended" in answer:
                self._kill()
            if "restart" not in answer:
                break
            self._kill()
            if not again and "error" not in answer:
                raise JudgeStopped(f"{answer['restart']} Nothing is graded until it works; see `grader doctor`.")
        if "error" in answer:
            raise getattr(errors, answer["error"], GraderError)(answer["message"])
        return answer

    def _exchange(self, message: dict[str, Any], progress: Progress | None) -> dict[str, Any]:
        channel = self._start()
        try:
            channel.send(message)
            answer, _ = channel.receive(limit_s=None)
            while "progress" in answer:
                if progress is not None:
                    progress(*answer["progress"])
                answer, _ = channel.receive(limit_s=None)
            return answer
        except ChannelClosed:
            if self._process is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(timeout=_ENDING_S)
            idle = self._process is not None and self._process.returncode == 0
            self._kill()
            if idle:  # it exited while the request was on its way
                return {"restart": "The judge ended itself."}
            raise JudgeStopped("The judge's process ended before its verdict; `grader doctor` may say why.") from None
        except BaseException:
            self._kill()  # interrupted: nobody waits for the judge's answer any more
            raise

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
        self.close()

    def _start(self) -> Channel:
        place = found.course() if found.folder() or found.gates_file() else None
        course = str(place) if place is not None else None
        if self._process is not None and (self._process.poll() is not None or self._course != course):
            self.close()
        if self._process is None or self._channel is None:
            ours, theirs = socket.socketpair()
            self._course, self._folder = course, tempfile.mkdtemp(prefix="grader-judge-")
            setup = f"import sys; sys.path[:0] = {import_folders()!r}\n"
            arguments = f"{theirs.fileno()}, {self._device!r}, {self._sandbox}"
            serve = f"from grader.judge.service import serve; serve({arguments})"
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", setup + serve],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                env=_environment(self._folder) | self._variables(course),
                start_new_session=True,  # Ctrl-C is for the caller, who then ends this process
            )
            theirs.close()
            self._channel = Channel(ours)
        return self._channel


def _cut(source: str) -> str:
    """Cut the source one character past the limit: the judge refuses it anyway."""
    return source[: MAX_SOURCE_BYTES + 1]


def _environment(folder: str) -> dict[str, str]:
    """The caller's environment without the settings of Triton and its compilers, and with a private Triton cache.

    The judge's own kernel must be compiled unchanged, and nobody else may put a binary into its cache.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_KNOBS) or name in _PLACES}
    return kept | {"TMPDIR": folder, "TRITON_CACHE_DIR": f"{folder}/triton"}


@functools.cache
def shared_judge(device: Literal["auto", "cuda", "simulator"] = "auto", sandbox: bool | None = None) -> Judge:
    """Return this process's judge, which ends with the process."""
    judge = Judge(device, sandbox)
    atexit.register(judge.close)
    return judge


def devices_of(device: Literal["auto", "cuda", "simulator"] = "auto") -> tuple[Literal["cuda", "simulator"], ...]:
    """The devices on which to gather evidence: the GPU, if there is one and it may be used, and the simulator."""
    on_gpu = device == "cuda" or (device == "auto" and bool(gpus()))
    return ("cuda", "simulator") if on_gpu else ("simulator",)


def evidence_of(
    judges: Sequence[Judge], source: str, exercise_id: str, *, progress: Progress | None = None
) -> list[Evidence]:
    """Return the evidence of several judges, gathered at the same time; the last one reports the `progress`.

    Raises as `Judge.evidence` does. If one fails or the caller is interrupted, all end.
    """
    with ThreadPoolExecutor(len(judges)) as pool:
        asked = [
            pool.submit(judge.evidence, source, exercise_id, beside_gpu=len(judges) > 1, progress=shown)
            for judge, shown in zip(judges, [*[None] * (len(judges) - 1), progress], strict=True)
        ]
        try:
            return [each.result() for each in asked]
        except BaseException:
            for judge in judges:
                judge.interrupt()
            raise


def serve(fd: int, device: str, sandbox: bool | None) -> None:
    """Answer requests, in the judge's process, until the caller closes the socket."""
    gc.disable()  # importing torch creates next to no garbage, but collection takes a quarter of its time
    from grader.judge.arbiter import Arbiter
    from grader.judge.gpu.health import TooLittle

    channel = Channel(socket.socket(fileno=fd))
    arbiter: Arbiter | None = None
    with contextlib.suppress(Exception):  # the first request tries again and reports the error
        arbiter = Arbiter(device, sandbox)
    gc.enable()

    def progress(*stage: str | int) -> None:
        channel.send({"progress": [*stage]})

    with contextlib.suppress(ChannelClosed, ChannelTimeout):
        while True:
            request, _ = channel.receive(limit_s=_IDLE_S)
            try:
                arbiter = arbiter or Arbiter(device, sandbox)
                if sick := arbiter.sick():
                    channel.send({"restart": sick})
                    break
                if request["op"] == "settle":
                    arbiter.bench.pool.be_still()
                    channel.send({"settled": True})
                    continue
                exercise = find(request["exercise"])
                upcoming = [(source, find(name)) for source, name in request.get("next", ())]
                if request["op"] == "grade":
                    options = {"timed": request["timed"], "kernels": request["kernels"], "upcoming": upcoming}
                    verdict = arbiter.grade(request["source"], exercise, progress=progress, **options)
                    channel.send({"verdict": verdict.to_dict()})
                elif request["op"] == "evidence":
                    beside_gpu = request["beside_gpu"]
                    found = arbiter.evidence(request["source"], exercise, progress, upcoming, beside_gpu)
                    channel.send({"evidence": found})
                else:
                    times = arbiter.measure(request["source"], exercise, progress)
                    channel.send({"timings": [asdict(time) for time in times]})
            except TooLittle as error:  # a new judge sizes its buffers by the memory that is free now
                channel.send({"restart": str(error), "error": "JudgeStopped", "message": str(error)})
                break
            except GraderError as error:
                channel.send({"error": type(error).__name__, "message": str(error)})
            except ChannelClosed:
                raise
            except Exception as error:  # a bug of the judge: a new arbiter grades the next submission
                traceback.print_exc()
                what = "The judge could not start" if arbiter is None else "The judge failed on this submission"
                said = f"{what} ({type(error).__name__}); the next try gets a fresh one."
                channel.send({"error": "JudgeStopped", "message": said, "ended": True})
                break
    channel.close()
    if arbiter is not None:
        arbiter.close()
    if "grader-judge-" in tempfile.gettempdir():  # the caller usually removes it, but may have been killed
        remove(Path(tempfile.gettempdir()))
