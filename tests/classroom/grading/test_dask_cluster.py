"""Tests of grader.classroom.grading.dask_cluster on a local cluster: equal grades, and workers that die."""

from __future__ import annotations

import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from grader.classroom.grading import dask_cluster
from grader.classroom.grading.verdict_store import Task
from grader.errors import ClassroomError, JudgeStopped
from grader.verdict import Verdict
from tests.classroom.grading.test_workers import verdict_on

distributed = pytest.importorskip("distributed", reason="needs the extra `cluster`")

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # of Dask's own shutdown
    pytest.mark.xdist_group("dask"),
]


class PretendJudge(distributed.WorkerPlugin):  # type: ignore[misc]
    """Puts a judge into each worker, also a replaced one, that answers without running anything.

    A text "die: FILE" ends the worker's process unless the file exists, which it creates.
    """

    def setup(self, worker: Any) -> None:
        dask_cluster.judge_of_thread = lambda sandbox: self  # type: ignore[assignment, return-value]

    def expect(self, submissions: Any) -> None:
        pass

    def grade(self, source: str, exercise_id: str, *, timed: bool, kernels: bool) -> Verdict:
        word, _, file = source.partition(": ")
        if word == "die" and not Path(file).exists():
            Path(file).touch()
            os._exit(1)
        if word == "always die":
            os._exit(1)
        if word == "stop":
            raise JudgeStopped("The judge stopped.")
        return verdict_on(source)

    def with_why(self, verdict: Verdict, source: str) -> Verdict:
        return verdict


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two worker processes, each replaced when it dies."""
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
        import dask

        with (
            dask.config.set({"distributed.scheduler.allowed-failures": 1}),
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=logging.CRITICAL
            ) as made,
            distributed.Client(made, set_as_default=False) as client,
        ):
            client.register_plugin(PretendJudge(), name="judge")
            yield made


@pytest.fixture
def workers(cluster: Any, tmp_path: Path) -> Iterator[dask_cluster.DaskCluster]:
    """The class's connection to the cluster."""
    made = dask_cluster.DaskCluster(cluster.scheduler_address, tmp_path, "simulator", sandbox=False)
    yield made
    made.close()


def test_verdicts_come_from_the_workers(workers: dask_cluster.DaskCluster) -> None:
    """Each task is judged, the verdict is the judge's, and it is kept as soon as it has arrived."""
    kept: dict[Task, Verdict] = {}
    workers.keep = kept.__setitem__
    tasks = [Task(text, "softmax") for text in "abcd"]
    workers.expect(tasks)
    assert [workers.judge(task) for task in tasks] == [verdict_on(text) for text in "abcd"]
    assert workers.device_class == "simulator"


def test_a_worker_that_dies_is_replaced_and_its_task_judged_again(
    workers: dask_cluster.DaskCluster, tmp_path: Path
) -> None:
    """The verdict arrives all the same, and so do those that were waiting."""
    tasks = [Task(f"die: {tmp_path / 'died'}", "softmax"), Task("a", "softmax"), Task("b", "softmax")]
    workers.expect(tasks)
    assert [workers.judge(task).submission_sha256 for task in tasks] == [task.source for task in tasks]
    assert (tmp_path / "died").exists()


def test_a_task_that_kills_every_worker_is_an_error_of_its_own(workers: dask_cluster.DaskCluster) -> None:
    """It is left to a person, as where a judge stops twice, and the others are judged."""
    with pytest.raises(JudgeStopped, match="died, one after another"):
        workers.judge(Task("always die", "softmax"))
    with pytest.raises(JudgeStopped, match="The judge stopped"):
        workers.judge(Task("stop", "softmax"))
    assert workers.judge(Task("a", "softmax")).submission_sha256 == "a"


def test_other_versions_are_refused(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class is judged by one version only."""
    ours = dask_cluster.verdict_store.versions()
    monkeypatch.setattr(dask_cluster.verdict_store, "versions", lambda: {**ours, "torch": "0.1"})
    with pytest.raises(ClassroomError, match=r"has torch .* instead of 0\.1"):
        dask_cluster.DaskCluster(cluster.scheduler_address, tmp_path, "simulator", sandbox=False)


def test_different_machines_are_refused(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Verdicts of different GPU models are not comparable."""
    ours = dask_cluster.verdict_store.versions()
    answers = {"tcp://a": {**ours, "device": "H100"}, "tcp://b": {**ours, "device": "H200"}}
    monkeypatch.setattr(distributed.Client, "run", lambda *_: answers)
    with pytest.raises(ClassroomError, match=r"different kinds of machine \(H100, H200\)"):
        dask_cluster.DaskCluster(cluster.scheduler_address, tmp_path, "auto", sandbox=False)


def test_another_version_of_an_exercise_is_refused() -> None:
    """A worker that joins later does not judge by an exercise or a package that the class does not have."""
    task = Task("a", "softmax")
    for changed in ("the exercise 'softmax'", "torch"):
        versions = {**dask_cluster._versions(task), changed: "other"}
        with pytest.raises(ClassroomError, match=f"another version of {changed}\\.$"):
            dask_cluster.judge_on_worker(".", task, versions, "simulator", False)


def test_workers_that_do_not_declare_their_gpu_are_refused(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dask would wait for one that does, without a word."""
    answer = {**dask_cluster.verdict_store.versions(), "device": "H100", "declares_gpu": ""}
    monkeypatch.setattr(distributed.Client, "run", lambda *_: {"tcp://a": answer})
    with pytest.raises(ClassroomError, match="--resources GPU=1"):
        dask_cluster.DaskCluster(cluster.scheduler_address, tmp_path, "auto", sandbox=False)


def test_a_cluster_without_workers_is_an_error(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what is missing."""

    def nobody(*_: Any, **__: Any) -> None:
        raise TimeoutError

    monkeypatch.setattr(distributed.Client, "wait_for_workers", nobody)
    with pytest.raises(ClassroomError, match="No worker has joined"):
        dask_cluster.DaskCluster(cluster.scheduler_address, tmp_path, "simulator", sandbox=False)


def test_a_wrong_address_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_port: int) -> None:
    """The message has the address."""
    monkeypatch.setattr(dask_cluster, "_CONNECT_S", 1)
    with pytest.raises(ClassroomError, match=f"answers at tcp://127.0.0.1:{free_port}"):
        dask_cluster.DaskCluster(f"tcp://127.0.0.1:{free_port}", tmp_path, "simulator", sandbox=False)


def test_each_thread_of_a_worker_without_a_gpu_has_its_own_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a worker with several threads judges as many submissions at once; a thread keeps its judge."""
    monkeypatch.setattr("grader.judge.service.Judge", lambda *_: _Nameless())
    monkeypatch.setattr(dask_cluster, "_own", threading.local())
    here = dask_cluster.judge_of_thread(False)
    with ThreadPoolExecutor(1) as other:
        there = other.submit(dask_cluster.judge_of_thread, False).result()
    assert dask_cluster.judge_of_thread(False) is here
    assert there is not here


class _Nameless:
    """A judge that only ends."""

    def close(self) -> None: ...
