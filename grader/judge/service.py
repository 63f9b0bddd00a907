"""The judge as everything else sees it: a process of its own, kept warm, asked over a socket.

A caller imports no torch and holds no CUDA context; whatever happens to the judge's process costs it one sentence.
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
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from grader import errors
from grader.errors import GraderError, JudgeStopped
from grader.exercise import MAX_SOURCE_BYTES
from grader.exercises import find, found
from grader.judge.sandbox import import_folders, remove
from grader.protocol.channel import Channel, ChannelClosed, ChannelTimeout
from grader.verdict import Progress, Timing, Verdict

_IDLE_S = 900.0  # without a request, the judge ends: it holds memory of the GPU
_ENDING_S = 10.0  # for a judge that has closed its channel to end
_KNOBS = ("TRITON_", "MLIR_", "LLVM_", "NVPTX_", "PTXAS_", "DISABLE_", "USE_IR_LOC")
_PLACES = ("TRITON_LIBCUDA_PATH",)  # where the driver's library lies, which turns nothing
_AHEAD = 8  # submissions that a request names beside its own


class Judge:
    """Grades submissions, one at a time. The process starts at the first call.

    `sandbox`: True refuses to grade where there is none, as for other people's code; None uses one where there is one;
    False uses none.
    """

    def __init__(self, device: Literal["auto", "cuda", "simulator"] = "auto", sandbox: bool | None = None) -> None:
        self._device, self._sandbox = device, sandbox
        self._expected: list[tuple[str, str]] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._course: str | None = None  # whose exercises the process knows
        self._folder: str | None = None  # of the workers' homes: also those of a judge that was killed go with it

    def __enter__(self) -> Judge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        """The verdict on `source`, the text of a solution cell.

        `kernels`: also look, in an untimed launch, at the kernels that run, for the findings. The profiler takes three
        seconds to start, so it is for grading, where workers start ahead, and not for a learner who waits.

        Raises:
            UnknownExercise: no exercise has this id.
            MachineLacks: this machine lacks what grading needs.
            JudgeStopped: the judge reached no verdict; the next call starts afresh.
        """
        find(exercise_id)
        source = _cut(source)
        if (source, exercise_id) in self._expected:
            self._expected = self._expected[self._expected.index((source, exercise_id)) + 1 :]
        request = {"op": "grade", "source": source, "exercise": exercise_id, "timed": timed, "kernels": kernels}
        answer = self._ask(request | {"next": self._expected[:_AHEAD]}, progress)
        return Verdict.from_dict(answer["verdict"])

    def expect(self, submissions: Sequence[tuple[str, str]]) -> None:
        """Says what will be asked next, in order: pairs of source and exercise id.

        Those next in line are imported and built while another is graded. It changes no verdict, and nothing happens
        where one is not asked for after all.
        """
        self._expected = [(_cut(source), find(exercise).id) for source, exercise in submissions]

    def measure(self, source: str, exercise_id: str, *, progress: Progress | None = None) -> list[Timing]:
        """Times over the exercise's plot cases: the submission and every baseline. Needs a GPU.

        Raises:
            MachineLacks: there is no GPU.
            UnusableSubmission: the submission fails or is wrong.
            JudgeStopped: as `grade`.
        """
        find(exercise_id)
        answer = self._ask({"op": "measure", "source": _cut(source), "exercise": exercise_id}, progress)
        return [Timing(**timing) for timing in answer["timings"]]

    def close(self) -> None:
        """Ends the judge's process and its workers."""
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
            if idle:  # it ended itself just as the request was on its way
                return {"restart": "The judge ended itself."}
            raise JudgeStopped("The judge's process ended before its verdict; `grader doctor` may say why.") from None
        except BaseException:
            self._kill()  # interrupted: the judge is in the middle of something that nobody waits for
            raise

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
        self.close()

    def _start(self) -> Channel:
        place = found.folder()
        course = str(place.parent) if place is not None else None
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
                env=_environment(self._folder) | ({found.COURSE_VARIABLE: course} if course else {}),
                start_new_session=True,  # Ctrl-C is for the caller, who then ends this process
            )
            theirs.close()
            self._channel = Channel(ours)
        return self._channel


def _cut(source: str) -> str:
    """What need travel of a source: one that is a character too long is refused anyway."""
    return source[: MAX_SOURCE_BYTES + 1]


def _environment(folder: str) -> dict[str, str]:
    """The caller's, without what turns Triton's and its compilers' knobs: the judge's own kernel is to be compiled as
    it stands, and in a folder where nobody can have put another.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_KNOBS) or name in _PLACES}
    return kept | {"TMPDIR": folder, "TRITON_CACHE_DIR": f"{folder}/triton"}


@functools.cache
def shared_judge(device: Literal["auto", "cuda", "simulator"] = "auto", sandbox: bool | None = None) -> Judge:
    """This process's judge, ended with it."""
    judge = Judge(device, sandbox)
    atexit.register(judge.close)
    return judge


def serve(fd: int, device: str, sandbox: bool | None) -> None:
    """The judge's process: answers until the caller closes the socket."""
    from grader.judge.arbiter import Arbiter
    from grader.judge.gpu.health import TooLittle

    channel = Channel(socket.socket(fileno=fd))
    arbiter: Arbiter | None = None
    gc.disable()  # a quarter of the time of importing torch goes into looking for garbage, and it leaves next to none
    with contextlib.suppress(Exception):  # said again, to the caller, at the first request
        arbiter = Arbiter(device, sandbox)
    gc.enable()

    def progress(stage: str, done: int, total: int) -> None:
        channel.send({"progress": [stage, done, total]})

    with contextlib.suppress(ChannelClosed, ChannelTimeout):
        while True:
            request, _ = channel.receive(limit_s=_IDLE_S)
            try:
                arbiter = arbiter or Arbiter(device, sandbox)
                exercise = find(request["exercise"])
                if sick := arbiter.sick():
                    channel.send({"restart": sick})
                    break
                if request["op"] == "grade":
                    upcoming = [(source, find(name)) for source, name in request["next"]]
                    options = {"timed": request["timed"], "kernels": request["kernels"], "upcoming": upcoming}
                    verdict = arbiter.grade(request["source"], exercise, progress=progress, **options)
                    channel.send({"verdict": verdict.to_dict()})
                else:
                    times = arbiter.measure(request["source"], exercise, progress)
                    channel.send({"timings": [asdict(time) for time in times]})
            except TooLittle as error:  # of what is free now: a fresh judge makes do with less
                channel.send({"restart": str(error), "error": "JudgeStopped", "message": str(error)})
                break
            except GraderError as error:
                channel.send({"error": type(error).__name__, "message": str(error)})
            except ChannelClosed:
                raise
            except Exception as error:  # ours, or one that a submission found: the next is judged by a fresh arbiter
                traceback.print_exc()
                what = "The judge could not start" if arbiter is None else "The judge failed on this submission"
                said = f"{what} ({type(error).__name__}); the next try gets a fresh one."
                channel.send({"error": "JudgeStopped", "message": said, "ended": True})
                break
    channel.close()
    if arbiter is not None:
        arbiter.close()
    if "grader-judge-" in tempfile.gettempdir():  # the caller, who removes it, may have been killed
        remove(Path(tempfile.gettempdir()))
