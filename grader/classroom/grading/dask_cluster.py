"""Judging on a Dask cluster: one task per text, exercise version and kind of machine.

The workers run the same version of this package, and see the course folder at the same path if the course has
exercises of its own. A worker with a GPU declares it: `dask worker ADDRESS --nthreads 1 --resources GPU=1`. A worker
without a GPU judges as many submissions at once as it has threads.
"""

from __future__ import annotations

import atexit
import importlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.classroom.grading import verdict_store
from grader.classroom.grading.verdict_store import Task, class_of, exercise_version
from grader.classroom.grading.workers import Device, ThisProcess, with_second_try
from grader.errors import ClassroomError, JudgeStopped, MachineLacks
from grader.exercises import found
from grader.verdict import Verdict

if TYPE_CHECKING:
    from grader.judge.service import Judge

_CONNECT_S = 30
_on_the_gpu = threading.Lock()  # one submission at a time, however many threads the worker has
_own = threading.local()  # a thread's judge in the simulators


class DaskCluster:
    """The workers of a Dask cluster. A task is judged again, elsewhere if need be, when its worker dies."""

    def __init__(self, address: str, course: Path, device: Device, sandbox: bool) -> None:
        """Connect to the scheduler at `address`, such as "tcp://10.0.0.1:8786".

        Raises:
            ClassroomError: nothing answers, no worker is suitable, or the workers differ in what verdicts depend on.
            MachineLacks: `distributed` is not installed.
        """
        try:
            distributed: Any = importlib.import_module("distributed")
        except ImportError:
            raise MachineLacks("--cluster needs Dask: pip install 'grader[cluster]'.") from None
        self._course, self._device, self._sandbox = str(Path(course).absolute()), device, sandbox
        self._futures: dict[Task, Any] = {}
        self._kept: set[Task] = set()
        self._arriving = threading.Lock()
        self.keep: Callable[[Task, Verdict], None] = lambda task, verdict: None
        try:
            self._client: Any = distributed.Client(address, timeout=_CONNECT_S, set_as_default=False)
        except (OSError, ValueError) as error:
            raise ClassroomError(f"No Dask scheduler answers at {address} ({type(error).__name__}: {error}).") from None
        try:
            self.device_class = self._only_kind()
        except BaseException:
            self._client.close()
            raise
        self._resources = {} if self.device_class == "simulator" else {"GPU": 1}

    def expect(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            if task not in self._futures:
                self._futures[task] = self._submit(task)

    def judge(self, task: Task) -> Verdict:
        self.expect([task])
        future = self._futures[task]
        try:
            verdict = self._checked(Verdict.from_dict(future.result()))
        except Exception as error:
            del self._futures[task]  # the next request tries again
            if type(error).__name__ != "KilledWorker":
                raise
            raise JudgeStopped("The workers that judged this submission died, one after another.") from None
        self._arrived(task, future)
        return verdict

    def close(self) -> None:
        self._client.cancel(list(self._futures.values()))
        self._client.close()

    def _submit(self, task: Task) -> Any:
        future = self._client.submit(
            judge_on_worker, self._course, task, _versions(task), self._device, self._sandbox,
            pure=False, priority=-len(self._futures), resources=self._resources, retries=1,
        )  # fmt: skip
        future.add_done_callback(lambda done: self._arrived(task, done))
        return future

    def _arrived(self, task: Task, future: Any) -> None:
        with self._arriving:
            if future.status != "finished" or task in self._kept:
                return
            verdict = Verdict.from_dict(future.result())
            if class_of(verdict) == self.device_class:
                self.keep(task, verdict)
                self._kept.add(task)

    def _checked(self, verdict: Verdict) -> Verdict:
        if class_of(verdict) != self.device_class:
            raise JudgeStopped(
                f"A worker that joined later has another kind of machine, {class_of(verdict)} instead of "
                f"{self.device_class}."
            )
        return verdict

    def _only_kind(self) -> str:
        """The kind of machine that all workers are; they must agree in all versions, too."""
        try:
            self._client.wait_for_workers(1, timeout=_CONNECT_S)
            described: dict[str, dict[str, str]] = self._client.run(describe, self._device)
        except TimeoutError:
            raise ClassroomError(f"No worker has joined the cluster within {_CONNECT_S} s: start one.") from None
        except (ImportError, AttributeError) as error:
            raise ClassroomError(f"A worker of the cluster cannot import this grader: {error}.") from None
        ours = verdict_store.versions()
        kinds = {each["device"] for each in described.values()}
        if len(kinds) > 1:
            raise ClassroomError(
                f"The workers are different kinds of machine ({', '.join(sorted(kinds))}): start workers of one GPU "
                "model, so that all students are timed on the same."
            )
        for worker, each in described.items():
            other = [
                f"{name} {each.get(name)} instead of {ours[name]}" for name in ours if each.get(name) != ours[name]
            ]
            if other:
                raise ClassroomError(f"The worker {worker} has {', '.join(other)}: install the same versions.")
        if kinds != {"simulator"} and not any(each["declares_gpu"] for each in described.values()):
            raise ClassroomError("No worker of the cluster declares its GPU: start each with `--resources GPU=1`.")
        return kinds.pop()


def describe(device: Device, dask_worker: Any) -> dict[str, str]:
    """On a worker, which Dask passes: the kind of machine, and the versions that a verdict depends on.

    `declares_gpu` is empty if the worker gets no task that needs a GPU.
    """
    declares = "yes" if dask_worker.state.total_resources.get("GPU") else ""
    kind = verdict_store.device_class(device)
    return {**verdict_store.versions(), "device": kind, "declares_gpu": declares}


def _versions(task: Task) -> dict[str, str | None]:
    """The versions of the packages and of the task's exercise."""
    return {**verdict_store.versions(), f"the exercise {task.exercise_id!r}": exercise_version(task.exercise_id)}


def judge_on_worker(
    course: str, task: Task, versions: dict[str, str | None], device: Device, sandbox: bool
) -> dict[str, Any]:
    """On a worker: judge a task, and return the verdict as plain data.

    Raises:
        ClassroomError: the worker, which may have joined later, has other versions than the class.
        JudgeStopped, MachineLacks: as `Workers.judge`.
    """
    found.use(Path(course))
    ours = _versions(task)
    if other := [name for name in versions if ours.get(name) != versions[name]]:
        raise ClassroomError(f"A worker of the cluster has another version of {', '.join(other)}.")
    if verdict_store.device_class(device) == "simulator":
        return with_second_try(judge_of_thread(sandbox), task).to_dict()
    with _on_the_gpu:
        return ThisProcess(device, sandbox).judge(task).to_dict()


def judge_of_thread(sandbox: bool) -> Judge:
    """The judge of this thread of a worker without a GPU; it ends with the process.

    Raises:
        MachineLacks: this machine has no sandbox, but `sandbox` is true.
    """
    from grader.judge.sandbox import must_be_caged
    from grader.judge.service import Judge

    if sandbox:
        must_be_caged()
    judges: dict[bool, Judge] = _own.__dict__.setdefault("judges", {})
    if sandbox not in judges:
        judges[sandbox] = Judge("simulator", sandbox)
        atexit.register(judges[sandbox].close)
    return judges[sandbox]
