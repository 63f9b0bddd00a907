"""Load on `grader classroom serve`: many clients at once on loopback, and a server that is killed meanwhile.

`python -m benchmarks.serve --clients 300 --within 60` starts a server with a real judge in the simulators. Each client
sends a text at a random moment, some send it twice, and all wait for their verdicts. Half-way the server is killed
(SIGKILL) and started again. Is a submission lost or judged twice, and how long does the answer to a submit take?
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import platform
import random
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.limits import Fault, Limit
from benchmarks.material import Text, honest, unique, wrong
from benchmarks.rows import Recorder, commit, replace_rows
from grader.classroom.settings import CONFIG_FILE, config_text
from grader.errors import GraderError
from grader.results import RESULTS
from grader.server.serving import FOLDER
from grader.server.submitting import ClassServer, Outcome
from grader.server.tokens import course_tokens
from grader.submission import Submission, from_source

_EXERCISE = "vector_add"
_PROCESSES = 4  # of clients, so that they do not wait for one another
_REPLAYED = 0.1  # of the clients send their request twice
_LIMIT_S = 280.0
_P95_S = 0.5
_START_S = 120.0
_ROWS = RESULTS / "serve" / "simulator.json"


@dataclass(frozen=True)
class Client:
    """A student with a text, and when to send it."""

    student: str
    token: str
    source: str
    right: bool
    at_s: float
    twice: bool


@dataclass(frozen=True)
class Seen:
    """A client's verdict, the seconds until each submit was answered, and how often the server was away."""

    student: str
    status: str
    as_expected: bool
    answers_s: tuple[float, ...]
    refused: int
    ended_at_s: float


@dataclass(frozen=True)
class Load:
    """The outcome of a run. `judged` counts the verdicts that the server wrote, `texts` the texts sent."""

    clients: int
    texts: int
    within_s: float
    killed: int
    verdicts: int
    lost: int
    unexpected: int
    judged: int
    judged_twice: int
    refused_while_down: int
    answer_p50_s: float
    answer_p95_s: float
    answer_max_s: float
    all_judged_after_s: float

    @property
    def faults(self) -> list[str]:
        """A sentence for each promise that was not kept."""
        said = {
            f"{self.lost} of {self.clients} submissions were lost": self.lost,
            f"{self.unexpected} verdicts are wrong": self.unexpected,
            f"{self.judged_twice} submissions were judged twice": self.judged_twice,
            f"{self.judged} verdicts were written for {self.texts} texts": self.judged != self.texts,
            f"95 % of the answers took up to {self.answer_p95_s:.2f} s": self.answer_p95_s >= _P95_S,
        }
        return [sentence for sentence, wrong in said.items() if wrong]


class _Timed(ClassServer):
    """Times each answered submit, and counts the attempts without an answer."""

    def __init__(self, url: str, token: str) -> None:
        super().__init__(url, token)
        self.answers_s: list[float] = []
        self.refused = 0

    def _ask(self, method: str, path: str, body: bytes | None) -> Any:
        began = time.perf_counter()
        try:
            answer = super()._ask(method, path, body)
        except (OSError, urllib.error.URLError):
            self.refused += 1
            raise
        if method == "POST":
            self.answers_s.append(time.perf_counter() - began)
        return answer


def load(
    clients: int, within_s: float, texts: int, kills: int, limit: Limit, device: str = "simulator", seed: int = 1
) -> Load:
    """Run the clients against a server in a scratch course. `device` is where its judge runs texts."""
    chance = random.Random(f"{seed} {clients}")
    with tempfile.TemporaryDirectory(prefix="serve-") as scratch:
        course = Path(scratch, "course")
        course.mkdir()
        text = config_text("load", Path(scratch, "exchange")) + f"c.JudgeCells.device = {device!r}\n"
        (course / CONFIG_FILE).write_text(text, encoding="utf-8")
        (course / FOLDER).mkdir()
        tokens = course_tokens(course / FOLDER)
        sources = _sources(texts)
        drawn = []
        for number in range(clients):
            student, (chosen, right) = f"student{number:03}", sources[number % texts]
            at_s, twice = chance.uniform(0, within_s), chance.random() < _REPLAYED
            drawn.append(Client(student, tokens.make(student, 1), chosen, right, at_s, twice))
        port = _free_port()
        log = Path(scratch, "log")
        with _server(course, port, log) as first:
            servers = [first]
            url = f"http://127.0.0.1:{port}"
            kill_at = [within_s * (number + 1) / (kills + 1) for number in range(kills)]
            with multiprocessing.get_context("spawn").Pool(_PROCESSES) as pool:
                began = time.monotonic()
                groups = [drawn[number::_PROCESSES] for number in range(_PROCESSES)]
                asked = pool.starmap_async(_run_clients, [(url, group, limit.left()) for group in groups])
                for at_s in kill_at:
                    time.sleep(max(0.0, began + at_s - time.monotonic()))
                    servers[-1].send_signal(signal.SIGKILL)
                    servers[-1].wait()
                    servers.append(_start(course, port, log))
                seen = [each for group in asked.get() for each in group]
            servers[-1].terminate()
            servers[-1].wait()
        return _counted(drawn, seen, course, log, texts, within_s, kills)


def _sources(texts: int) -> list[tuple[str, bool]]:
    """Different texts, and whether each is right; two of three are."""
    kinds: list[tuple[Text, bool]] = [(honest(_EXERCISE, "simulator")[0], True)] * 2 + [(wrong(_EXERCISE)[0], False)]
    made = [(unique(kinds[number % 3][0], f"text {number}"), kinds[number % 3][1]) for number in range(texts)]
    return [(text.source, right) for text, right in made]


def _run_clients(url: str, clients: Sequence[Client], limit_s: float) -> list[Seen]:
    """Run clients side by side, in a process of their own."""
    began, seen = time.monotonic(), []

    def run(client: Client) -> None:
        time.sleep(max(0.0, began + client.at_s - time.monotonic()))
        seen.append(_run_client(url, client, began))

    threads = [threading.Thread(target=run, args=(client,), daemon=True) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, began + limit_s - time.monotonic()))
    return list(seen)


def _run_client(url: str, client: Client, began: float) -> Seen:
    server, submission = _Timed(url, client.token), from_source(client.source, _EXERCISE)
    status, expected = "", False
    try:
        outcome = _submitted(server, submission, client.twice)
        outcome = server.wait(outcome, lambda *_: None)
        status, expected = outcome.status, (outcome.points > 0) == client.right
    except GraderError as error:
        status = f"refused: {error}"
    return Seen(client.student, status, expected, tuple(server.answers_s), server.refused, time.monotonic() - began)


def _submitted(server: ClassServer, submission: Submission, twice: bool) -> Outcome:
    outcome = server.submit(submission)
    if twice and server.submit(submission).id != outcome.id:
        raise GraderError("the replay is another job")
    return outcome


@contextlib.contextmanager
def _server(course: Path, port: int, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A server that is ready."""
    process = _start(course, port, log)
    try:
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline and process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.1)
        else:
            raise Fault(f"serve: the server does not start: {log.read_text(encoding='utf-8', errors='replace')[-500:]}")
        yield process
    finally:
        process.kill()


def _start(course: Path, port: int, log: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "grader", "classroom", "serve", str(course), "--port", str(port), "--watch", "0"]
    with log.open("ab") as out:
        return subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _counted(
    drawn: Sequence[Client], seen: Sequence[Seen], course: Path, log: Path, texts: int, within_s: float, kills: int
) -> Load:
    with contextlib.closing(sqlite3.connect(course / FOLDER / "queue.sqlite")) as queue:
        (ended,) = queue.execute("SELECT count(*) FROM jobs WHERE state = 'done'").fetchone()
        (tries,) = queue.execute("SELECT sum(tries) FROM jobs").fetchone()
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    resumed = sum(int(found[1]) for line in lines if (found := re.search(r"(\d+) resumed", line)))
    per_student = Counter(found[1] for line in lines if (found := re.search(r" (student\d+) \w+: .* waiting$", line)))
    answers = sorted(seconds for each in seen for seconds in each.answers_s) or [float("nan")]
    judged = [each for each in seen if each.status and not each.status.startswith("refused")]
    return Load(
        clients=len(drawn),
        texts=texts,
        within_s=within_s,
        killed=kills,
        verdicts=ended,
        lost=len(drawn) - len(judged),
        unexpected=sum(not each.as_expected for each in judged),
        judged=sum(1 for _ in (course / "verdicts").rglob("*.json")),
        judged_twice=max(tries - ended - resumed, sum(number - 1 for number in per_student.values())),
        refused_while_down=sum(each.refused for each in seen),
        answer_p50_s=answers[len(answers) // 2],
        answer_p95_s=answers[min(len(answers) - 1, int(0.95 * len(answers)))],
        answer_max_s=answers[-1],
        all_judged_after_s=max((each.ended_at_s for each in judged), default=float("nan")),
    )


def serve(recorder: Recorder) -> None:
    """Rows `serve`: 300 clients within a minute, 60 texts, one kill."""
    found = load(300, 60.0, 60, 1, Limit(_LIMIT_S))
    case = f"{found.clients} clients in {found.within_s:g} s, {found.texts} texts, killed once"
    for name in ("lost", "unexpected", "judged_twice", "judged"):
        recorder.add("serve", case, name, "1", getattr(found, name))
    for name in ("answer_p50_s", "answer_p95_s", "answer_max_s", "all_judged_after_s"):
        recorder.add("serve", case, name, "s", getattr(found, name))
    if found.faults:
        raise Fault(f"serve: {'; '.join(found.faults)}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--clients", type=int, default=300)
    parser.add_argument("--within", type=float, default=60.0, help="seconds")
    parser.add_argument("--texts", type=int, default=60, help="how many different texts they send")
    parser.add_argument("--kills", type=int, default=1)
    parser.add_argument("--device", default="simulator", choices=("auto", "cuda", "simulator"))
    parser.add_argument("--record", action="store_true", help=f"write {_ROWS.name}, for a run without a GPU")
    asked = parser.parse_args()
    found = load(asked.clients, asked.within, asked.texts, asked.kills, Limit(_LIMIT_S), asked.device)
    figures = {name: round(value, 5) for name, value in asdict(found).items()}
    row = figures | {"device": asked.device, "cores": os.cpu_count(), "python": platform.python_version()}
    for name, value in row.items():
        print(f"{name:24} {value:.4g}" if isinstance(value, float) else f"{name:24} {value}")
    if asked.record:
        command = f"python -m benchmarks.serve {' '.join(sys.argv[1:])}"
        row |= {"commit": commit(), "command": command, "date": datetime.now(UTC).date().isoformat()}
        replace_rows(_ROWS, [{"bench": "serve", **row}], "bench")
    sys.exit("\n".join(found.faults) or 0)


if __name__ == "__main__":
    main()
