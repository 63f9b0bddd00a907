"""The judges of a class: the one of this process, or several side by side on this machine."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Literal, Protocol

from grader.classroom.grading.verdict_store import Task, device_class
from grader.errors import ClassroomError, JudgeStopped
from grader.hardware import gpus
from grader.verdict import Verdict
from grader.words import plural

if TYPE_CHECKING:
    from grader.judge.service import Judge

Device = Literal["auto", "cuda", "simulator"]
_AGAIN_S = 0.5
_OWN = 2  # tasks that a judge has for itself: the one it judges, and the one it loads meanwhile


class Workers(Protocol):
    """Judges submissions. `keep` is called with each verdict as soon as it is there, in any thread."""

    keep: Callable[[Task, Verdict], None]

    def expect(self, tasks: Sequence[Task]) -> None:
        """Announce all tasks to come, in order. Repeating some changes nothing."""

    def judge(self, task: Task) -> Verdict:
        """Wait for the verdict on a task.

        Raises:
            MachineLacks: the machine is missing something that grading needs.
            JudgeStopped: two judges reached no verdict.
        """

    def close(self) -> None:
        """End the judges that were started for these tasks."""


class ThisProcess:
    """The judge of this process, one task at a time. It loads the next submissions while it judges one."""

    def __init__(self, device: Device, sandbox: bool) -> None:
        self._device, self._sandbox = device, sandbox
        self.keep: Callable[[Task, Verdict], None] = lambda task, verdict: None

    @property
    def _judge(self) -> Judge:
        from grader.judge.sandbox import must_be_caged
        from grader.judge.service import shared_judge

        if self._sandbox:
            must_be_caged()
        return shared_judge(self._device, self._sandbox)

    def expect(self, tasks: Sequence[Task]) -> None:
        self._judge.expect([(task.source, task.exercise_id) for task in tasks])

    def judge(self, task: Task) -> Verdict:
        verdict = with_second_try(self._judge, task)
        self.keep(task, verdict)
        return verdict

    def close(self) -> None:
        pass  # it ends with the process


class SideBySide:
    """Judges that share the tasks; each has its own process, and its own GPU if it has one.

    Each loads its next task while it judges one. Another judge takes that task only if nothing else is left. A judge
    that stops is replaced and its task judged again.
    """

    def __init__(self, judges: Sequence[Judge]) -> None:
        self._waiting: deque[Task] = deque()
        self._next: list[deque[Task]] = [deque() for _ in judges]
        self._known: dict[Task, Future[Verdict]] = {}
        self._changed = threading.Condition()
        self._closed = False
        self._judges = list(judges)
        self.keep: Callable[[Task, Verdict], None] = lambda task, verdict: None
        own = zip(judges, self._next, strict=True)
        self._threads = [threading.Thread(target=self._work, args=each, daemon=True) for each in own]
        for thread in self._threads:
            thread.start()

    def expect(self, tasks: Sequence[Task]) -> None:
        with self._changed:
            for task in tasks:
                if task not in self._known:
                    self._known[task] = Future()
                    self._waiting.append(task)
            self._changed.notify_all()

    def judge(self, task: Task) -> Verdict:
        self.expect([task])
        future = self._known[task]
        try:
            return future.result()
        finally:
            if future.done() and future.exception() is not None:
                del self._known[task]  # the next request tries again

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for judge in self._judges:
            judge.interrupt()
        for judge, thread in zip(self._judges, self._threads, strict=True):
            thread.join(timeout=_AGAIN_S)
            while thread.is_alive():  # its judge was about to start when it was interrupted
                judge.interrupt()
                thread.join(timeout=_AGAIN_S)
        for judge in self._judges:
            judge.close()

    def _work(self, judge: Judge, own: deque[Task]) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or any(self._next) or self._closed)
                if self._closed:
                    return
                while self._waiting and len(own) < _OWN:
                    own.append(self._waiting.popleft())
                task = (own or next(filter(None, self._next))).popleft()
                future, ahead = self._known[task], list(own)
            try:
                judge.expect([(each.source, each.exercise_id) for each in (task, *ahead)])
                verdict = with_second_try(judge, task, lambda: not self._closed)
                self.keep(task, verdict)
                future.set_result(verdict)
            except BaseException as error:  # the thread that waits for the verdict raises it
                future.set_exception(error)


def side_by_side(jobs: int, gpu_indices: Sequence[int], device: Device, sandbox: bool) -> SideBySide:
    """`jobs` judges in the simulators or, with `gpu_indices`, one judge on each of these GPUs.

    Raises:
        ClassroomError: the judges would disturb each other's timings, or students be timed on different models.
        MachineLacks: this machine has no sandbox, but `sandbox` is true.
    """
    from grader.judge.sandbox import must_be_caged
    from grader.judge.service import Judge

    if sandbox:
        must_be_caged()
    if gpu_indices:
        return SideBySide([Judge("cuda", sandbox, gpu=name) for name in _visible(gpu_indices)])
    if device_class(device) != "simulator":
        raise ClassroomError(
            "Several judges on one GPU would disturb each other's timings: use --gpus with one judge per GPU, or set "
            'c.JudgeCells.device = "simulator" in nbgrader_config.py to grade correctness only.'
        )
    return SideBySide([Judge("simulator", sandbox) for _ in range(jobs)])


def _visible(indices: Sequence[int]) -> list[str]:
    """The values of CUDA_VISIBLE_DEVICES for these GPUs, which are counted as this process sees them."""
    found = gpus()
    missing = sorted(set(indices) - set(range(len(found))))
    if missing or len(set(indices)) < len(indices):
        raise ClassroomError(
            f"--gpus {','.join(map(str, indices))}: name each GPU once; this machine has "
            f"{plural(len(found), 'GPU')}, counted from 0."
        )
    models = sorted({found[index].name for index in indices})
    if len(models) > 1:
        raise ClassroomError(f"These GPUs are different models ({', '.join(models)}): time all students on one model.")
    names = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    return [names[index] if names else str(index) for index in indices]


def with_second_try(judge: Judge, task: Task, may_try_again: Callable[[], bool] = lambda: True) -> Verdict:
    """The verdict, from a new judge if the first one stops, and what the simulator tells about slow work."""
    try:
        verdict = judge.grade(task.source, task.exercise_id, timed=task.timed, kernels=task.kernels)
    except JudgeStopped:
        if not may_try_again():
            raise
        judge.expect([])  # loading the next submissions may have stopped it
        verdict = judge.grade(task.source, task.exercise_id, timed=task.timed, kernels=task.kernels)
    return judge.with_why(verdict, task.source)
