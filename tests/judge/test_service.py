"""The judge as a process of its own: what its end costs the caller, and what stays behind."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import ClassVar

import pytest

from grader.bottleneck.evidence import Evidence
from grader.errors import JudgeStopped, MachineLacks, UnknownExercise
from grader.exercise import MAX_SOURCE_BYTES
from grader.exercises import find
from grader.judge import arbiter as arbiters
from grader.judge import service
from grader.judge.gpu.health import TooLittle
from grader.judge.service import Judge
from grader.protocol.channel import Channel
from grader.verdict import Environment, GateResult, Verdict
from tests.judge.submissions import VECTOR_ADD
from tests.pace import PACE

ENDLESS = "def vector_add(x, y, out):\n    while True: pass"


def children(pid: int) -> set[int]:
    """The processes that any of its threads started: the pool's threads start workers."""
    found = set()
    with contextlib.suppress(OSError):  # it, or a thread of it, has ended
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children") as file:
                found |= {int(child) for child in file.read().split()}
    return found


def descendants(pid: int) -> set[int]:
    found = children(pid)
    return found.union(*(descendants(child) for child in found)) if found else found


def gone(pids: set[int], within_s: float = 10) -> bool:
    deadline = time.monotonic() + within_s * PACE
    while time.monotonic() < deadline:
        if not any(os.path.exists(f"/proc/{pid}") for pid in pids):
            return True
        time.sleep(0.05)
    return False


def test_an_interrupt_ends_the_work_and_the_next_call_works():
    """Ctrl-C in the middle of a check: no process stays, and the next check gets its verdict."""
    with Judge("simulator") as judge:
        judge.grade(VECTOR_ADD, "vector_add")
        assert judge._process is not None
        family = descendants(judge._process.pid) | {judge._process.pid}
        threading.Timer(2.0, signal.raise_signal, (signal.SIGINT,)).start()
        with pytest.raises(KeyboardInterrupt):
            judge.grade(ENDLESS, "vector_add")
        assert gone(family)
        assert judge.grade(VECTOR_ADD, "vector_add").status == "passed"


def test_a_judge_that_is_killed_is_one_sentence_and_the_next_call_works():
    """If the judge's process dies for any reason, the caller gets an error to show and can go on."""
    with Judge("simulator") as judge:
        judge.grade(VECTOR_ADD, "vector_add")
        assert judge._process is not None
        process = judge._process
        threading.Timer(2.0, process.kill).start()
        with pytest.raises(JudgeStopped):
            judge.grade(ENDLESS, "vector_add")
        assert judge.grade(VECTOR_ADD, "vector_add").status == "passed"


def test_nothing_stays_behind(tmp_path):
    """After `close` no new process, descriptor or worker folder is left, in a process without other judges."""
    code = "from tests.judge.test_service import open_and_close; open_and_close()"
    beside = os.environ | {"TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run([sys.executable, "-c", code], env=beside, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert list(tmp_path.iterdir()) == []


def open_and_close():
    """Grade with a new judge, close it, and check what is left."""
    descriptors = len(os.listdir("/proc/self/fd"))
    judge = Judge("simulator")
    for source in (VECTOR_ADD, "def vector_add(x, y, out): import os; os._exit(3)"):
        judge.grade(source, "vector_add")
    assert judge._process is not None
    family = descendants(judge._process.pid) | {judge._process.pid}
    judge.close()
    assert gone(family)
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_a_callers_knobs_do_not_reach_the_judges_kernel(monkeypatch):
    """Neither does a cache that may hold another kernel. The caller chooses the paths of programs and libraries."""
    started, popen = {}, subprocess.Popen

    def failing(command, env, **_):
        started.update(env)
        return popen([sys.executable, "-c", "raise SystemExit(1)"])  # in place of the judge

    knobs = {
        "TRITON_INTERPRET": "1", "TRITON_CACHE_DIR": "/tmp/mine", "TRITON_KERNEL_OVERRIDE": "1",
        "TRITON_PTXAS_PATH": "x", "PTXAS_OPTIONS": "--fmad=true", "DISABLE_PTXAS_OPT": "1",
        "LLVM_PASS_PLUGIN_PATH": "x", "MLIR_ENABLE_DUMP": "1",
    }  # fmt: skip
    for name, value in (knobs | {"CUDA_HOME": "/opt/cuda", "TRITON_LIBCUDA_PATH": "/opt/lib"}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("subprocess.Popen", failing)
    with Judge("simulator") as judge, pytest.raises(JudgeStopped):
        judge.grade(VECTOR_ADD, "vector_add")
    own = {name: started.pop(name) for name in ("TMPDIR", "TRITON_CACHE_DIR")}
    assert own["TRITON_CACHE_DIR"].startswith(own["TMPDIR"] + "/")
    assert not os.path.exists(own["TMPDIR"]), "it ends with the judge"
    assert not knobs.keys() & started.keys()
    assert started["TRITON_LIBCUDA_PATH"] == "/opt/lib", "which turns nothing"
    assert (started["CUDA_HOME"], started["PATH"]) == ("/opt/cuda", os.environ["PATH"])


def test_progress_is_told_case_by_case(simulator_judge):
    """The caller hears of the stages in order, and how many there are."""
    told = []
    simulator_judge.grade(VECTOR_ADD, "vector_add", progress=lambda *stage: told.append(stage))
    counted = [done for stage, done, _ in told if stage.startswith("checking")]
    assert counted == list(range(len(counted)))
    assert len(counted) == told[-1][2] > 3


# What is asked and answered, without a process


VERDICT = Verdict("vector_add", "", "passed", 3, 5, 3, "", Environment("simulator")).to_dict()


class Told(Judge):
    """A judge whose process is a list of answers; `asked` are the requests, `ended` how often it was ended."""

    def __init__(self, *answers):
        super().__init__("simulator")
        self.answers, self.asked, self.ended = list(answers), [], 0

    def _exchange(self, message, progress):
        self.asked.append(message)
        return self.answers.pop(0) if self.answers else {"verdict": VERDICT}

    def _kill(self):
        self.ended += 1
        super()._kill()

    def next(self):
        """The upcoming sources of the last request."""
        return [source for source, _ in self.asked[-1]["next"]]


def expected(*sources):
    return [(source, "vector_add") for source in sources]


def test_what_is_expected_is_told_in_order_and_forgotten_when_it_is_asked():
    """Each request names those that come after it, and what was passed over is not asked for any more."""
    judge = Told()
    judge.expect(expected(*"abcdef"))
    for asked, told in (("a", "bcdef"), ("b", "cdef"), ("d", "ef"), ("f", ""), ("a", "")):
        judge.grade(asked, "vector_add")
        assert judge.next() == list(told)


def test_only_a_missed_gate_is_explained_by_the_simulator_and_the_verdict_needs_no_explanation():
    """Passed work asks nobody. If the simulator stops or cannot start, the verdict stays as it is.

    Each time the simulator settles or ends, so that it starts nothing while the next submission is timed.
    """
    judge, simulator = Told(), SimpleNamespace(asked=[])
    judge._simulator = simulator
    simulator.close, simulator.settle = (partial(simulator.asked.append, word) for word in ("closed", "settled"))
    fails = {"stop": JudgeStopped("It stopped."), "full": OSError("No space left on device"), "odd": KeyError("runs")}
    claims = {"simulated": True, "runs": [], "codes": [{"kernel": "k", "programs": 4096, "spilled": 96}]}

    def evidence(source, exercise_id, beside_gpu, progress=None):
        simulator.asked.append(source)
        if source in fails:
            raise fails[source]
        return Evidence.of_claims(find(exercise_id), claims)

    simulator.evidence = evidence
    passed, missed = Verdict.from_dict(VERDICT), GateResult("torch", "torch", 0.9, "failed", 0, 2, 0.5, 0.5, 0.5)
    slow = replace(passed, gates=(missed,))
    assert judge.with_why(passed, "a") == passed
    assert [judge.with_why(slow, source) for source in fails] == [slow] * 3
    assert [cause.kind for cause in judge.with_why(slow, "b").causes] == ["spills"]
    assert simulator.asked == ["stop", "closed", "full", "closed", "odd", "closed", "b", "settled"]


def test_the_simulator_ends_with_its_judge():
    """An interrupt reaches it, because it may be what a grader waits for."""
    judge, ended = Told(), []
    judge._simulator = SimpleNamespace(interrupt=lambda: ended.append("interrupt"), close=lambda: ended.append("close"))
    judge.interrupt()
    judge.close()
    assert ended == ["interrupt", "close"]


def test_what_is_not_expected_changes_nothing():
    """A check in between leaves those in line where they are; the same text for another exercise is another thing."""
    judge = Told()
    judge.expect(expected(*"abc"))
    judge.grade("x", "vector_add")
    assert judge.next() == list("abc")
    judge.grade("a", "softmax")
    assert judge.next() == list("abc")


def test_a_request_names_no_more_than_eight():
    """A class of three hundred does not travel with each submission; the others follow."""
    judge = Told()
    sources = [f"source {number}" for number in range(300)]
    judge.expect(expected(*sources))
    for at in (0, 1, 2, 295):
        judge.grade(sources[at], "vector_add")
        assert judge.next() == sources[at + 1 : at + 9]


def test_the_same_source_twice_is_two_submissions():
    """Two learners hand in the same: the second still waits its turn."""
    judge = Told()
    judge.expect(expected("a", "a", "b"))
    for told in (["a", "b"], ["b"]):
        judge.grade("a", "vector_add")
        assert judge.next() == told


def test_a_new_expectation_takes_the_place_of_the_old():
    """The last announcement counts."""
    judge = Told()
    judge.expect(expected(*"abc"))
    judge.expect(expected("z"))
    judge.grade("a", "vector_add")
    assert judge.next() == ["z"]


def test_a_source_that_is_too_long_travels_cut_and_is_recognised():
    """It is refused whatever else it holds, so megabytes of it need not travel, nor wait in line."""
    judge = Told()
    long = "x" * (MAX_SOURCE_BYTES + 1000)
    judge.expect(expected(long, long + "y", "b"))
    judge.grade(long, "vector_add")
    assert len(judge.asked[-1]["source"]) == MAX_SOURCE_BYTES + 1
    assert [len(source) for source in judge.next()] == [MAX_SOURCE_BYTES + 1, 1]
    with pytest.raises(KeyError, match="timings"):  # the fake sends none here
        judge.measure(long, "vector_add")
    assert len(judge.asked[-1]["source"]) == MAX_SOURCE_BYTES + 1


def test_an_exercise_that_does_not_exist_is_said_at_once():
    """Every method raises before anything is sent."""
    judge = Told()
    for call in (lambda: judge.expect([("a", "nothing")]), lambda: judge.grade("a", "nothing")):
        with pytest.raises(UnknownExercise):
            call()
    assert judge.asked == []


def test_a_sick_gpu_gets_a_fresh_process_and_the_question_again():
    """The verdict comes from the second process, and nobody hears of the first."""
    judge = Told({"restart": "The GPU computes wrong sums."})
    assert judge.grade("a", "vector_add").points == 3
    assert judge.ended == 1
    assert len(judge.asked) == 2
    assert judge.asked[0] == judge.asked[1]


def test_a_gpu_that_stays_sick_stops_the_judge():
    """A second process with the same problem is the last. The caller gets the sentence; the next call starts again."""
    sick = {"restart": "The GPU computes wrong sums."}
    judge = Told(sick, sick)
    with pytest.raises(JudgeStopped, match="wrong sums"):
        judge.grade("a", "vector_add")
    assert (judge.ended, len(judge.asked)) == (2, 2)
    assert judge.grade("a", "vector_add").points == 3


def test_a_judge_that_runs_out_of_the_gpus_memory_is_followed_by_a_smaller_one():
    """A fresh process takes a share of what is free by then; if that is too little, too, there is no verdict."""
    short = {"restart": "Too little is free.", "error": "JudgeStopped", "message": "Too little is free."}
    judge = Told(short)
    assert judge.grade("a", "vector_add").points == 3
    assert (judge.ended, len(judge.asked)) == (1, 2)
    judge = Told(short, short)
    with pytest.raises(JudgeStopped, match="Too little is free"):
        judge.grade("a", "vector_add")
    assert (judge.ended, len(judge.asked)) == (2, 2)


@pytest.mark.parametrize("error", [MachineLacks, JudgeStopped])
def test_an_error_of_the_process_is_the_callers(error):
    """By its type and its sentence, and the process lives on."""
    judge = Told({"error": error.__name__, "message": "It lacks something."})
    with pytest.raises(error, match="It lacks something"):
        judge.grade("a", "vector_add")
    assert (judge.ended, len(judge.asked)) == (0, 1)


def test_a_judge_that_ended_itself_is_ended_here_too():
    """The caller gets its error, and the next call starts a new judge."""
    judge = Told({"error": "JudgeStopped", "message": "It failed on this one.", "ended": True})
    with pytest.raises(JudgeStopped, match="failed on this one"):
        judge.grade("a", "vector_add")
    assert (judge.ended, len(judge.asked)) == (1, 1)
    assert judge.grade("a", "vector_add").points == 3


ENDING = """
import socket, sys, time
channel = socket.socket(fileno={fd})
channel.recv(4)
channel.close()
time.sleep({seconds})  # an interpreter with torch in it takes a moment to end
sys.exit({code})
"""


class Ending(Judge):
    """A judge whose first process ends itself as a request arrives; the second one answers."""

    def __init__(self, code, seconds):
        super().__init__("simulator")
        self.code, self.seconds, self.started = code, seconds, 0

    def _start(self):
        if self._channel is None:
            ours, self.theirs = socket.socketpair()
            self.started += 1
            if self.started == 1:
                script = ENDING.format(fd=self.theirs.fileno(), code=self.code, seconds=self.seconds)
                self._process = subprocess.Popen([sys.executable, "-c", script], pass_fds=[self.theirs.fileno()])
                self.theirs.close()
            else:
                Channel(self.theirs).send({"verdict": VERDICT})
            self._channel = Channel(ours)
        return self._channel

    def close(self):
        super().close()
        self.theirs.close()


@pytest.mark.parametrize("seconds", [0.0, 0.5])
def test_a_request_that_meets_a_judge_ending_itself_is_asked_again(seconds):
    """It went for want of requests, at that moment: nobody hears of it, however long its end takes."""
    with Ending(0, seconds) as judge:
        assert judge.grade("a", "vector_add").points == 3
        assert judge.started == 2


def test_a_judge_that_dies_on_a_request_is_not_asked_again():
    """A request that killed one judge would kill the next."""
    with Ending(1, 0.0) as judge:
        with pytest.raises(JudgeStopped):
            judge.grade("a", "vector_add")
        assert judge.started == 1


# The process itself, with another arbiter in it


class Grader:
    """An arbiter that gives the same verdict on all, but for what a test changes."""

    made: ClassVar[list] = []

    def __init__(self, device, sandbox):
        self.made.append(self)
        self.graded, self.closed, self.sickness, self.error = [], 0, "", None

    def sick(self):
        return self.sickness

    def grade(self, source, exercise, progress, **options):
        self.graded.append((source, exercise.id, [(text, of.id) for text, of in options["upcoming"]]))
        if self.error is not None:
            raise self.error
        progress("checking", 1, 2)
        return Verdict.from_dict(VERDICT)

    def close(self):
        self.closed += 1


@pytest.fixture
def served(monkeypatch):
    """Starts `serve` in a thread: the channel to it, the thread, and the list of its arbiters."""
    made = []
    monkeypatch.setattr(Grader, "made", made)
    monkeypatch.setattr(arbiters, "Arbiter", Grader)
    ours, theirs = socket.socketpair()
    channel, served = Channel(ours), Channel(theirs)
    monkeypatch.setattr(service, "Channel", lambda sock: sock.detach() and served)  # a process's end would close it
    thread = threading.Thread(target=service.serve, args=(theirs.fileno(), "simulator", True))

    def start():
        thread.start()
        return channel, thread, made

    yield start
    channel.close()
    thread.join(10)
    served.close()
    assert not thread.is_alive()
    assert all(one.closed == 1 for one in made)


def request(source="a", upcoming=()):
    said = {"op": "grade", "source": source, "exercise": "vector_add", "timed": True, "kernels": False}
    return said | {"next": expected(*upcoming)}


def asked(channel, **what):
    channel.send(request(**what))
    answers = [channel.receive(10)[0]]
    while "progress" in answers[-1]:
        answers.append(channel.receive(10)[0])
    return answers


def test_the_process_answers_with_progress_and_a_verdict(served):
    """And hands on what comes next, with each exercise found by its id."""
    channel, _, made = served()
    verdict = json.loads(json.dumps(VERDICT))
    assert asked(channel, upcoming="bc") == [{"progress": ["checking", 1, 2]}, {"verdict": verdict}]
    assert made[0].graded == [("a", "vector_add", [("b", "vector_add"), ("c", "vector_add")])]


def test_a_settled_judge_has_waited_for_its_workers(served):
    channel, _, made = served()
    asked(channel)
    made[0].bench = SimpleNamespace(pool=SimpleNamespace(be_still=lambda: made[0].graded.append("still")))
    channel.send({"op": "settle"})
    assert channel.receive(10)[0] == {"settled": True}
    assert made[0].graded[1:] == ["still"]


def test_a_sick_gpu_is_said_and_nothing_graded_on_it(served):
    """The process ends, for only another one can have a GPU that works."""
    channel, thread, made = served()
    asked(channel)
    made[0].sickness = "It computes wrong sums."
    assert asked(channel, source="b") == [{"restart": "It computes wrong sums."}]
    thread.join(10)
    assert not thread.is_alive()
    assert [source for source, _, _ in made[0].graded] == ["a"]


def test_what_a_machine_lacks_is_said_and_the_next_is_graded(served):
    """An error of the grader's own is an answer."""
    channel, _, made = served()
    asked(channel)
    made[0].error = MachineLacks("No memory.")
    assert asked(channel) == [{"error": "MachineLacks", "message": "No memory."}]
    made[0].error = None
    assert "verdict" in asked(channel)[-1]
    assert len(made) == 1


def test_too_little_memory_ends_the_process_for_another_to_begin(served):
    """Only a process that ends gives back what its buffers hold."""
    channel, thread, made = served()
    asked(channel)
    made[0].error = TooLittle("Too little.")
    assert asked(channel) == [{"restart": "Too little.", "error": "JudgeStopped", "message": "Too little."}]
    thread.join(10)
    assert not thread.is_alive()


def test_an_error_of_ours_ends_the_process(served):
    """Its state is gone with it, and the caller gets a message."""
    channel, thread, made = served()
    asked(channel)
    made[0].error = ZeroDivisionError()
    (answer,) = asked(channel)
    assert (answer["error"], answer["ended"]) == ("JudgeStopped", True)
    assert answer["message"].startswith("The judge failed on this submission (ZeroDivisionError)")
    thread.join(10)
    assert not thread.is_alive()


def test_a_judge_that_does_not_come_up_blames_no_submission(served, monkeypatch):
    """It has not looked at one yet."""
    monkeypatch.setattr(arbiters, "Arbiter", lambda device, sandbox: 1 / 0)
    channel, thread, _ = served()
    (answer,) = asked(channel)
    assert answer["message"].startswith("The judge could not start (ZeroDivisionError)")
    thread.join(10)
    assert not thread.is_alive()


def test_a_judge_that_nobody_asks_ends(served, monkeypatch):
    """It holds GPU memory. A request resets the time."""
    monkeypatch.setattr(service, "_IDLE_S", 1.0)
    channel, thread, _ = served()
    for _ in range(3):
        time.sleep(0.4)
        assert "verdict" in asked(channel)[-1]
    thread.join(10)
    assert not thread.is_alive()


# What is left of a judge whose caller is gone


CALLER = """
import os, sys, time
from grader.judge.service import Judge
judge = Judge("simulator", sandbox=False)  # then the homes of workers are folders here
judge._start()
deadline = time.monotonic() + 60
while not os.listdir(judge._folder) and time.monotonic() < deadline:
    time.sleep(0.02)
print(judge._folder, judge._process.pid, len(os.listdir(judge._folder)), flush=True)
time.sleep(60)
"""


def test_a_caller_that_is_killed_leaves_no_process_and_no_folder(tmp_path):
    """The judge sees that nobody asks any more, ends its workers, and removes their homes itself."""
    command = [sys.executable, "-c", CALLER]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    limit = time.monotonic() + 60 * PACE
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as caller:
        try:
            folder, pid, homes = caller.stdout.readline().split()
            while len(family := descendants(caller.pid)) < 2 and time.monotonic() < limit:
                time.sleep(0.05)  # a home is made before the worker that lives there
        finally:
            caller.kill()
    assert int(homes) > 0, "a worker has its home there"
    assert int(pid) in family
    assert len(family) > 1, "and lives"
    assert gone(family, within_s=30)
    assert not os.path.exists(folder)
    assert list(tmp_path.iterdir()) == []
