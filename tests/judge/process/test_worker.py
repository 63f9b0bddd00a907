"""A worker as the arbiter sees it: whatever the process does, or does not, the arbiter waits only so long."""

import contextlib
import gc
import os
import resource
import socket
import threading
import time
from types import SimpleNamespace

import pytest

from grader.exercise import Array, Case
from grader.judge.checking import buffers as buffers_module
from grader.judge.checking.buffers import Buffers
from grader.judge.process import claims
from grader.judge.process import worker as worker_module
from grader.judge.process.worker import Round, Worker, WorkerFailed
from grader.protocol.channel import Channel
from grader.protocol.flag import Flag
from tests.pace import PACE

CASE = Case("case", (Array("x", (64,)), Array("out", (64,), role="out")))


class Caged:
    """A tree in a cage: what it takes and how it ends is up to the test. `theirs` is the worker's end of the socket."""

    def __init__(self, fd):
        self.theirs = socket.socket(fileno=os.dup(fd))
        read, write = os.pipe()
        self.printing = os.fdopen(write, "wb", buffering=0)
        self.process = SimpleNamespace(
            stdout=os.fdopen(read, "rb", buffering=0), poll=lambda: self.code, wait=lambda timeout: self.code,
            returncode=None,
        )  # fmt: skip
        self.code = None
        self.memory, self.tasks, self.looks, self.kills = 0, 1, 0, 0
        self.out_of_memory = False
        self.states = []

    def memory_bytes(self):
        self.looks += 1
        return self.memory

    def processes(self):
        return self.tasks

    def compiles(self):
        return False

    def ran_out_of_memory(self):
        return self.out_of_memory

    def freeze(self):
        self.states.append("frozen")

    def thaw(self):
        self.states.append("thawed")

    def die(self, code):
        self.code = self.process.returncode = code
        with contextlib.suppress(OSError):
            self.theirs.shutdown(socket.SHUT_RDWR)

    def kill(self):
        self.kills += 1
        if self.kills == 1:
            self.die(-9 if self.code is None else self.code)
            self.printing.close()

    def print(self, data):
        with contextlib.suppress(OSError, ValueError):
            self.printing.write(data)


class Peer:
    """The worker's side, in a thread: answers each message, but for those that the test answers otherwise."""

    def __init__(self, caged):
        self.caged, self.asked = caged, []
        self.answers = {}  # operation -> function of the message, giving an answer or None for silence
        self.flag = None
        self.on_arm = lambda number: self.flag.queue(number)
        self.on_round = lambda number: self.flag.answer(number)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        channel = Channel(self.caged.theirs)
        with contextlib.suppress(Exception):
            while True:
                message, fds = channel.receive(None, with_fds=True)
                self.asked.append(message)
                if message["op"] == "map":
                    self.flag = Flag(fds[0])
                    for fd in fds:
                        os.close(fd)
                answer = self.answers.get(message["op"], lambda message: {"done": True})(message)
                if answer is not None:
                    channel.send(answer)
                if message["op"] == "arm" and answer is not None:
                    self._round(channel, message["round"])

    def _round(self, channel, number):
        self.on_arm(number)
        while self.flag.words[0] < number and self.caged.code is None:
            time.sleep(0.0005)
        self.on_round(number)
        channel.send({"done": "arm", "event_s": 0.25})


@pytest.fixture
def worker(monkeypatch):
    """Makes workers over a fake cage; `worker.caged` and `worker.peer` are the test's hold on it."""
    made = []

    def start(code, fds, device, enabled):
        made.append(Caged(fds[0]))
        return made[-1]

    monkeypatch.setattr(worker_module, "start", start)
    monkeypatch.setattr(worker_module, "_LOOK_S", 0.02)
    monkeypatch.setattr(worker_module, "available_share", lambda: 1.0)

    def make(device="simulator", quiet=None):
        worker = Worker(device, False, quiet or contextlib.nullcontext())
        worker.caged = made[-1]
        worker.peer = Peer(made[-1])
        ends.callback(made[-1].theirs.close)
        ends.callback(worker.close)
        return worker

    with contextlib.ExitStack() as ends:
        yield make


@pytest.fixture
def buffers(monkeypatch):
    monkeypatch.setattr(buffers_module, "_HOST_BYTES", 1 << 20)
    return Buffers("simulator")


@pytest.fixture
def ready(worker, buffers):
    """A worker in turn, mapped and planned, and the buffers."""

    def make(device="simulator", limit_s=60.0):
        one = worker(device)
        one.map(buffers)
        layout = buffers.lay(CASE)
        buffers.fill(layout)
        buffers.poison(layout)
        one.plan(layout)
        one.in_turn(limit_s, 90.0)
        return one

    return make


def failure(call, *arguments, within_s=5.0):
    """The failure that the call ends in, and soon."""
    started = time.monotonic()
    with pytest.raises(WorkerFailed) as raised:
        call(*arguments)
    assert time.monotonic() - started < within_s * PACE
    return raised.value.failure


def harness(entry, x, out):
    out.copy_(entry(x))


def silent(message):
    return None


def until(condition, within_s=10.0):
    """Waits for what other threads bring about."""
    deadline = time.monotonic() + within_s * PACE
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.002)


# Looking at what it takes


OVER = {
    "memory": lambda one, patch: patch.setattr(one.caged, "memory", worker_module.MEMORY_BYTES + 1),
    "processes and threads": lambda one, patch: patch.setattr(one.caged, "tasks", worker_module.TASKS + 1),
    "machine without memory": lambda one, patch: patch.setattr(worker_module, "available_share", lambda: 0.01),
}


@pytest.mark.parametrize("what", OVER)
@pytest.mark.parametrize("during", ["load", "round"])
def test_what_takes_too_much_is_stopped(ready, buffers, monkeypatch, what, during):
    """While it loads and in a round: the tree is gone at once, and a sentence says what it took."""
    one = ready()
    one.peer.answers["load"], one.peer.on_round = silent, lambda number: time.sleep(2)
    OVER[what](one, monkeypatch)
    call = (
        (one.load, "submission", "x", "f", 30.0) if during == "load" else (one.round, "submission", buffers, 30.0, True)
    )
    found = failure(*call)
    assert found.kind == "limit"
    assert what in found.message
    assert one.caged.kills > 0


@pytest.mark.parametrize(
    ("before", "now", "stopped"), [(0.5, 0.05, 0), (0.5, 0.03, 1), (0.03, 0.02, 0), (0.03, 0.01, 1)]
)
def test_a_machine_that_was_short_of_memory_already_is_not_its_fault(ready, monkeypatch, before, now, stopped):
    """It is stopped where little is left, and where it had half or more of that itself."""
    monkeypatch.setattr(worker_module, "available_share", lambda: before)
    one = ready()
    monkeypatch.setattr(worker_module, "available_share", lambda: now)
    one.peer.answers["load"] = lambda message: time.sleep(0.2) or {"done": True}
    with contextlib.suppress(WorkerFailed):
        one.load("submission", "x", "f", 30.0)
    assert one.caged.kills == stopped


@pytest.mark.parametrize("what", ["memory", "tasks"])
def test_what_takes_just_as_much_as_it_may_goes_on(ready, what):
    """Exactly the limit is allowed."""
    one = ready()
    setattr(one.caged, what, {"memory": worker_module.MEMORY_BYTES, "tasks": worker_module.TASKS}[what])
    one.peer.answers["load"] = lambda message: time.sleep(0.2) or {"done": True}
    one.load("submission", "x", "f", 30.0)
    assert one.caged.looks > 0


def test_a_flood_of_output_is_stopped(ready, monkeypatch):
    """The output is read up to a limit, and the log kept short."""
    monkeypatch.setattr(claims, "_MOST_BYTES", 1 << 20)
    one = ready()
    one.peer.answers["load"] = silent

    def flood():
        for _ in range(64):
            one.caged.print(b"x" * (1 << 16))

    threading.Thread(target=flood, daemon=True).start()
    found = failure(one.load, "submission", "x", "f", 30.0)
    assert found.kind == "limit"
    assert "printed more than 1 MiB" in found.message
    assert len(one.log) == claims.LOG_BYTES


def test_much_output_is_no_flood(ready):
    """Below the limit it is dropped without a word."""
    one = ready()

    def chatty(message):
        for _ in range(20):
            one.caged.print(b"y" * (1 << 16))
        return {"done": True}

    one.peer.answers["load"] = chatty
    one.load("submission", "x", "f", 30.0)
    assert set(one.log) == {"y"}
    assert len(one.log) <= claims.LOG_BYTES


def test_it_looks_by_the_clock_however_often_it_is_asked(ready, monkeypatch):
    """Once in each interval: a worker that sends bytes one by one is looked at as often as a silent one, no more."""
    one = ready()
    now = [1000.0]
    monkeypatch.setattr(worker_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    one._watch()
    before = one.caged.looks
    for _ in range(50):
        now[0] += 0.001
        one._watch()
    assert one.caged.looks == before + 2


def test_only_the_time_in_which_another_was_timed_puts_a_limit_off(ready):
    """A tree that takes long to look at does not live longer for it."""
    quiet, one = threading.RLock(), ready()
    one._quiet = quiet
    one.caged.memory_bytes = lambda: time.sleep(0.3) or 0
    one._looked_s = 0.0
    assert one._watch() < 0.1
    one._looked_s = 0.0
    held = threading.Event()

    def time_another():
        with quiet:
            held.set()
            time.sleep(0.2)

    other = threading.Thread(target=time_another)
    other.start()
    held.wait()
    assert 0.1 < one._watch() < 0.4
    other.join()


def test_one_that_waits_for_its_turn_is_looked_at_less_often(worker, monkeypatch):
    """A thread that wakes up takes the interpreter from the clock."""
    now = [1000.0]
    one = worker()
    looks = []
    monkeypatch.setattr(worker_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    for in_turn in (False, True):
        if in_turn:
            one.in_turn()
        before = one.caged.looks
        for _ in range(1000):
            now[0] += 0.001
            one._watch()
        looks.append(one.caged.looks - before)
    assert looks[1] >= 3 * looks[0] > 0


def test_while_another_is_timed_nobody_looks_and_nothing_is_read(worker):
    """Until its turn; then it is the one that is timed, and no lock holds the looking up."""
    quiet = threading.RLock()
    one = worker(quiet=quiet)
    one.peer.answers["load"] = lambda message: time.sleep(0.4) or {"done": True}
    with quiet:
        loading = threading.Thread(target=one.load, args=("submission", "x", "f", 30.0))
        loading.start()
        one.caged.print(b"hello")
        time.sleep(0.3)
        assert (one.caged.looks, one.log) == (0, "")
    loading.join()
    until(lambda: one.log == "hello")
    looks = one.caged.looks
    one.in_turn()
    held, release = threading.Event(), threading.Event()

    def hold():
        with quiet:
            held.set()
            release.wait(5)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10)
    one.load("submission", "x", "f", 30.0)
    assert one.caged.looks > looks
    assert holder.is_alive(), "it did not wait for the lock"
    release.set()
    holder.join()


# Waiting only so long


@pytest.mark.parametrize("operation", ["load", "arm"])
def test_silence_ends_in_time(ready, buffers, operation):
    """A worker that does not answer has so long, and is gone."""
    one = ready()
    one.peer.answers[operation] = silent
    call = (one.load, "s", "x", "f", 0.2) if operation == "load" else (one.round, "s", buffers, 0.2, True)
    found = failure(*call, within_s=3)
    assert found.kind == "timeout"
    assert "together" not in found.message
    assert one.caged.kills > 0


@pytest.mark.parametrize("device", ["simulator", "cuda"])
def test_a_flag_that_is_never_answered_ends_in_time(ready, buffers, monkeypatch, device):
    """An endless kernel, or an endless function, costs its limit."""
    monkeypatch.setitem(worker_module._SPIN_S, "cuda", 0.05)
    one = ready(device)
    one.peer.on_round = lambda number: time.sleep(3)
    found = failure(one.round, "submission", buffers, 0.3, True, within_s=2.5)
    assert found.kind == "timeout"
    assert one.caged.kills > 0


def test_an_answer_that_does_not_follow_the_flag_ends_in_time(ready, buffers):
    """The flag does not end a round without the worker's message."""
    one = ready()
    one.peer.on_round = lambda number: (one.peer.flag.answer(number), time.sleep(3))
    assert failure(one.round, "submission", buffers, 0.3, True, within_s=2.5).kind == "timeout"


@pytest.mark.parametrize("what", ["many answers", "one message", "the flag"])
def test_everything_together_has_a_deadline(ready, buffers, what):
    """Answers that each come in time, or one that does not, end with the time for all of them."""
    one = ready(limit_s=0.5)
    if what == "one message":
        one.peer.answers["load"] = silent
    if what == "the flag":
        one.peer.on_round = lambda number: time.sleep(3)
    one.peer.answers.setdefault("load", lambda message: time.sleep(0.05) or {"done": True})

    def go_on():
        for _ in range(100):
            if what == "the flag":
                one.round("submission", buffers, 30.0, True)
            else:
                one.load("submission", "x", "f", 30.0)

    found = failure(go_on, within_s=2.5)
    assert found.kind == "timeout"
    assert "together took more than" in found.message


def test_only_waits_for_it_count_and_only_in_its_turn(ready, buffers):
    """However long it was loaded ahead, and whatever the judge does in between."""
    one = ready(limit_s=60.0)
    one.peer.answers["load"] = lambda message: time.sleep(0.2) or {"done": True}
    time.sleep(0.3)
    assert one.left_s == 60.0
    one.load("submission", "x", "f", 30.0)
    assert one.left_s < 59.81
    one.peer.on_round = lambda number: (time.sleep(0.2), one.peer.flag.answer(number))
    one.round("submission", buffers, 30.0, True)
    assert one.left_s < 59.62
    one.left_s = 0.1
    said = "Import, cases and timing together took more than the 90 s that this exercise has, and were stopped."
    assert failure(one.load, "submission", "x", "f", 30.0).message == said


@pytest.mark.parametrize(("device", "kind"), [("simulator", "not_simulated"), ("cuda", "exception")])
def test_only_a_simulator_can_have_less_than_a_gpu(ready, device, kind):
    """A worker on a GPU that claims so has failed."""
    one = ready(device)
    claim = {"failure": {"kind": "not_simulated", "message": "The simulator has no time.", "line": 3}}
    one.peer.answers["load"] = lambda message: claim
    assert failure(one.load, "submission", "x", "f", 5.0).kind == kind


def test_a_deadline_in_a_round_leaves_the_garbage_collector_on(ready, buffers):
    """It is off while the clock spins, and only then: also where that ends badly."""
    one = ready("cuda", limit_s=0.15)  # shorter than the spinning
    one.peer.on_round = lambda number: time.sleep(2)
    try:
        assert failure(one.round, "submission", buffers, 30.0, True).kind == "timeout"
        assert gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("part", ["hand_over", "take"])
def test_an_error_of_ours_in_a_round_leaves_the_garbage_collector_on(ready, buffers, monkeypatch, part):
    """An arbiter that runs out of GPU memory goes on to the next submission."""

    def fail(*_):
        raise RuntimeError("out of memory")

    one = ready("cuda")
    monkeypatch.setattr(
        *((buffers, "hand_over", fail) if part == "hand_over" else (worker_module.OutputProbe, "take", fail))
    )
    try:
        with pytest.raises(RuntimeError):
            one.round("submission", buffers, 5.0, True)
        assert gc.isenabled()
    finally:
        gc.enable()


# How it ends


@pytest.mark.parametrize("during", ["load", "round"])
def test_a_death_is_told_with_what_was_printed(ready, buffers, during):
    """By its signal, in a message's wait and in a round's."""
    one = ready()

    def die(_):
        one.caged.print(b"last words")
        one.caged.die(-6)

    one.peer.answers["load"], one.peer.on_round = die, die
    call = (one.load, "s", "x", "f", 30.0) if during == "load" else (one.round, "s", buffers, 30.0, True)
    found = failure(*call)
    assert found.kind == "crash"
    assert "SIGABRT" in found.message
    assert found.detail == "last words"


def test_what_it_printed_last_is_read_though_another_is_timed_all_along(worker, monkeypatch):
    """A worker ahead may end then, and output not read before its pipe is closed is lost."""
    monkeypatch.setattr(claims, "_LAST_WORDS_S", 0.1)
    monkeypatch.setattr(worker_module, "_LOOK_S", 30.0)
    quiet = threading.RLock()
    one = worker(quiet=quiet)
    one._watch()  # the next look, which waits for the lock, is not due

    def die(_):
        one.caged.print(b"last words")
        time.sleep(0.2)  # the reader waits for the lock by now
        one.caged.die(-6)

    one.peer.answers["load"] = die
    found = []
    with quiet:
        loading = threading.Thread(target=lambda: found.append(failure(one.load, "s", "x", "f", 30.0)))
        loading.start()
        loading.join(10)
        assert [(each.kind, each.detail) for each in found] == [("crash", "last words")]
    assert one.log == "last words"


def test_what_it_prints_is_read_in_a_process_with_many_open_files(request):
    """Descriptors from 1024 on are more than `select` takes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip("no more than 1024 open files are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    taken = [os.open(os.devnull, os.O_RDONLY)]
    try:
        while taken[-1] < 1023:
            taken.append(os.dup(taken[0]))
        one = request.getfixturevalue("ready")()
        one.peer.answers["load"] = lambda message: one.caged.print(b"last words") or one.caged.die(-6)
        assert failure(one.load, "s", "x", "f", 30.0).detail == "last words"
    finally:
        for each in taken:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_death_for_want_of_memory_is_a_limit(ready):
    """The kernel that ended it says so."""
    one = ready()
    one.caged.out_of_memory = True
    one.peer.answers["load"] = lambda message: one.caged.die(-9)
    found = failure(one.load, "s", "x", "f", 30.0)
    assert found.kind == "limit"
    assert "memory" in found.message


def test_a_kill_from_another_thread_ends_the_wait(ready):
    """A pool that closes, or lets a submission go, waits for nobody's compiler."""
    one = ready()
    one.peer.answers["load"] = silent
    threading.Timer(0.1, one.kill).start()
    assert failure(one.load, "s", "x", "f", 30.0).kind == "crash"


def test_a_closed_worker_is_closed_once(ready):
    """Its tree, its socket and its pipe are gone; a second time there is nothing to do."""
    one = ready()
    before = one.caged.kills
    one.close()
    one.close()
    assert one.caged.kills == before + 1
    assert one.caged.process.stdout.closed
    assert one.caged.theirs.recv(1) == b""


def test_a_failure_that_the_worker_tells_is_the_submissions(ready):
    """It raised, and the worker lives on."""
    one = ready()
    one.peer.answers["load"] = lambda message: {"failure": {"kind": "compile", "message": "no such thing", "line": 3}}
    found = failure(one.load, "s", "x", "f", 30.0)
    assert (found.kind, found.message, found.line) == ("compile", "no such thing", 3)
    assert one.caged.kills == 0


@pytest.mark.parametrize("one_queue", [True, False])
def test_it_is_told_whether_its_streams_share_a_queue(worker, one_queue):
    """Before it makes its context."""
    one = worker()
    one.start_up(one_queue)
    assert one.peer.asked == [{"op": "start", "one_queue": one_queue}]


def test_a_harness_travels_with_the_submission_that_it_calls(ready):
    """The message has its text and name; without a harness it has neither."""
    one = ready()
    one.load("submission", "x", "f", 30.0, harness)
    one.load("submission", "x", "f", 30.0)
    loads = [message for message in one.peer.asked if message["op"] == "load"]
    assert loads[0]["harness_entry"] == "harness"
    assert "def harness(entry, x, out):" in loads[0]["harness"]
    assert not loads[1].keys() & {"harness", "harness_entry"}


def test_a_rehearsal_is_told_where_one_launch_of_each_case_lies(ready):
    """The message has shapes and strides, as for a round, and a time limit."""
    one = ready()
    larger = Case("larger", (Array("x", (3, 5), row_padding=8), Array("out", (3, 5), role="out")))
    one.rehearse("submission", [CASE, larger], 7.0)
    (asked,) = [message for message in one.peer.asked if message["op"] == "rehearse"]
    assert (asked["name"], asked["limit_s"]) == ("submission", 7.0)
    shapes = [[(tuple(slot["shape"]), tuple(slot["strides"])) for slot in launch] for launch in asked["launches"]]
    assert shapes == [[((64,), (1,))] * 2, [((3, 5), (13, 1)), ((3, 5), (5, 1))]]


def test_a_rehearsal_that_cannot_be_is_nobodys_failure():
    """A real worker, here without a GPU for which Triton could compile, goes on as if nothing had been asked."""
    one = Worker("simulator", True, contextlib.nullcontext())
    try:
        one.await_imports()
        one.load("submission", "def f(x, out):\n    raise ValueError\n", "f", 30.0)
        one.rehearse("submission", [CASE], 7.0)
        one.rehearse("nothing", [CASE], 7.0)
        one.in_turn()
        assert one.log == ""
    finally:
        one.close()


def test_what_it_is_told_to_do_to_its_tree_it_does(ready):
    """Freezing and thawing reach every process of the tree."""
    one = ready()
    one.freeze()
    one.thaw()
    assert one.caged.states == ["frozen", "thawed"]


def test_one_that_is_held_goes_on_when_it_is_released_but_for_one_that_was_frozen(worker):
    """A frozen worker stays frozen until its turn, even if another thread holds and releases it."""
    one = worker()
    one.hold()
    one.release()
    assert one.caged.states == ["frozen", "thawed"]
    one.freeze()
    one.hold()
    one.release()
    assert one.caged.states == ["frozen", "thawed", "frozen"]
    one.thaw()
    one.hold()
    one.freeze()  # it has just loaded
    one.release()
    assert one.caged.states[-1] == "frozen"
    one.hold()
    one.thaw()
    assert one.caged.states[-1] == "thawed"


def test_one_in_turn_is_not_held(ready):
    """It is the one that is timed."""
    one = ready()
    one.in_turn()
    one.hold()
    one.release()
    assert one.caged.states == []


# The round itself


def test_a_rounds_parts_are_where_the_time_went(ready, buffers, monkeypatch):
    """Copying in, the work and the look each have their own time; what comes before has none.

    A judge that has to wait for its turn on the GPU, once the inputs are there, waits for the worker: that is work.
    """
    one, now = ready(), [1000.0]

    def takes(seconds, call):
        def later(*arguments):
            now[0] += seconds
            return call(*arguments)

        return later

    clock = SimpleNamespace(perf_counter=lambda: now[0], monotonic=time.monotonic, sleep=time.sleep)
    monkeypatch.setattr(worker_module, "time", clock)
    monkeypatch.setattr(buffers, "wake", takes(8.0, buffers.wake))
    monkeypatch.setattr(buffers, "hand_over", takes(1.0, buffers.hand_over))
    monkeypatch.setattr(worker_module.OutputProbe, "__init__", takes(16.0, worker_module.OutputProbe.__init__))
    monkeypatch.setattr(worker_module.OutputProbe, "take", takes(4.0, worker_module.OutputProbe.take))
    one.peer.on_round = takes(2.0, one.peer.on_round)
    found = one.round("submission", buffers, 30.0, True)
    assert (found.copy_in_s, found.work_s, found.probe_s) == (1.0, 8.0 + 2.0, 4.0)
    assert found.event_s == 0.25


def test_inputs_come_after_the_clock_has_started_and_before_the_flag(ready, buffers, monkeypatch):
    """When the worker reports that it is armed the inputs have not arrived; when it sees the flag they have."""
    one = ready()
    slot = one._layout.launches[0]["x"]
    seen = []
    same = lambda: bool((buffers._view(slot) == buffers._private(slot)).all())  # noqa: E731
    one.peer.answers["arm"] = lambda message: seen.append(same()) or {"armed": True}
    one.peer.on_round = lambda number: seen.append(same()) or one.peer.flag.answer(number)
    one.round("submission", buffers, 30.0, True)
    assert seen == [False, True]


def test_rounds_are_numbered(ready, buffers):
    """An answer to an earlier round is none to this one."""
    one = ready()
    one.round("submission", buffers, 30.0, True)
    one.round("submission", buffers, 30.0, True)
    assert [message["round"] for message in one.peer.asked if message["op"] == "arm"] == [1, 2]
    one.peer.on_round = lambda number: (one.peer.flag.answer(number - 1), time.sleep(2))
    assert failure(one.round, "submission", buffers, 0.3, True).kind == "timeout"


def test_an_output_that_changes_after_the_look_is_a_wrong_answer(ready, buffers):
    """The probed elements must be unchanged; then the round counts."""
    one = ready()
    out = buffers._view(one._layout.launches[0]["out"])
    one.peer.on_round = lambda number: (out.fill_(1.0), one.peer.flag.answer(number))
    found = one.round("submission", buffers, 30.0, True)
    found.must_be_unchanged()
    out.fill_(2.0)
    late = failure(found.must_be_unchanged)
    assert late.kind == "wrong_answer"


def test_a_round_knows_its_look(ready, buffers):
    """The places were drawn before the clock started, and are those that are compared afterwards."""
    found = ready().round("submission", buffers, 30.0, True)
    assert isinstance(found, Round)
    assert found.seen == found.probe.take()


def test_the_clock_starts_when_the_calls_are_queued(ready, buffers, monkeypatch):
    """So Python's time for the calls does not count. The message says whether the worker may queue them in advance."""
    monkeypatch.setattr(worker_module, "_QUEUE_S", 10.0)
    one = ready()
    one.peer.on_arm = lambda number: (time.sleep(0.3), one.peer.flag.queue(number))
    found = one.round("submission", buffers, 30.0, True)
    assert found.copy_in_s + found.work_s < 0.25
    assert [message["head_start"] for message in one.peer.asked if message["op"] == "arm"] == [True]


def test_without_a_head_start_nobody_waits_for_calls(ready, buffers, monkeypatch):
    """They come after the flag, and what they take is part of the round."""
    monkeypatch.setattr(worker_module, "_QUEUE_S", 10.0)
    one = ready()
    one.peer.on_arm = lambda number: None
    begun = time.monotonic()
    one.round("submission", buffers, 30.0, False)
    assert time.monotonic() - begun < 5.0 * PACE
    assert [message["head_start"] for message in one.peer.asked if message["op"] == "arm"] == [False]


def test_calls_that_are_never_queued_are_waited_for_only_so_long(ready, buffers, monkeypatch):
    """A function that waits for the GPU between its calls waits for the flag."""
    monkeypatch.setattr(worker_module, "_QUEUE_S", 0.2)
    one = ready()
    one.peer.on_arm = lambda number: None
    begun = time.monotonic()
    one.round("submission", buffers, 30.0, True)
    assert 0.2 < time.monotonic() - begun < 5.0 * PACE


def test_a_round_that_fails_before_the_flag_is_not_waited_for(ready, buffers, monkeypatch):
    """It has answered: there is nothing that could still be queued."""
    monkeypatch.setattr(worker_module, "_QUEUE_S", 5.0)
    one = ready()
    one.peer.on_arm = lambda number: one.peer.flag.answer(number)
    begun = time.monotonic()
    one.round("submission", buffers, 30.0, True)
    assert time.monotonic() - begun < 4.0 * PACE


def test_a_look_that_is_slow_does_not_put_a_limit_off(ready, buffers, monkeypatch):
    """The time limit is checked before the look."""
    one = ready()
    one.peer.on_round = lambda number: None
    looks = []
    monkeypatch.setattr(one, "_watch", lambda: looks.append(time.sleep(0.3)))
    assert failure(one.round, "submission", buffers, 0.2, False).kind == "timeout"
    assert len(looks) == 1


def test_a_tree_with_more_files_than_anybody_looks_at_is_ended(ready):
    """A look goes through all of them."""
    one = ready()

    def memory_bytes():
        raise worker_module.TooManyFiles

    one.caged.memory_bytes = memory_bytes
    one.peer.answers["plan"] = lambda message: None
    found = failure(one.plan, one._layout)
    assert (found.kind, found.message) == ("limit", "It opened more than 16,384 files and was stopped.")


def test_who_maps_the_outputs_finds_nothing_of_whoever_had_them_before(worker, buffers):
    """This holds for a submission's worker; the baselines' worker may see a submission's data."""
    outputs = buffers.arenas["outputs"]
    outputs.bytes_at(0, outputs.size).fill_(7)
    worker().map(buffers, trusted=True)
    assert outputs.bytes_at(0, outputs.size).all()
    worker().map(buffers)
    assert not outputs.bytes_at(0, outputs.size).any()
