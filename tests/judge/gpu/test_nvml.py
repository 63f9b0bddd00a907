"""The record of a timing: what NVML knows, silence where it knows nothing, and nobody accused without ground."""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from grader.judge.gpu.nvml import Monitor, OtherProcess, Record
from tests.pace import PACE

ALIKE = "The baselines ran in turn with yours, on the same clock."
PROPERTIES = SimpleNamespace(uuid="0f-1d", pci_domain_id=0, pci_bus_id=0x1B, pci_device_id=0)
EVERYTHING = (
    "nvmlInit", "nvmlDeviceGetHandleByUUID", "nvmlDeviceGetHandleByPciBusId", "nvmlDeviceGetClockInfo",
    "nvmlDeviceGetTemperature", "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons",
    "nvmlDeviceGetViolationStatus", "nvmlDeviceGetMigMode", "nvmlDeviceGetComputeRunningProcesses",
    "nvmlDeviceGetProcessUtilization",
)  # fmt: skip


class NvmlError(Exception):
    """The fake's error, named as in pynvml."""


class FakeNvml:
    """pynvml on one GPU. Functions in `lacking` are not supported; `nvmlX` means that the driver misses it too."""

    def __init__(self) -> None:
        self.lacking: set[str] = set()
        self.gpus = {"GPU-0f-1d": "gpu", "00000000:1b:00.0": "gpu"}
        self.clocks = {1: 1980, 2: 3201}
        self.temperature = 41
        self.reasons = 0x1  # idle
        self.held_ns = {0: 5_000_000_000, 1: 0}
        self.mig = [0, 0]
        self.pids = [os.getpid()]
        self.samples: list[tuple[int, int]] = []

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("nvml") and name in object.__getattribute__(self, "lacking"):
            raise NvmlError(name)
        return object.__getattribute__(self, name)

    def nvmlInit(self) -> None:
        pass

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if uuid not in self.gpus:
            raise NvmlError("Not Found")
        return self.gpus[uuid]

    nvmlDeviceGetHandleByPciBusId = nvmlDeviceGetHandleByUUID

    def nvmlDeviceGetClockInfo(self, handle: str, which: int) -> int:
        assert handle == "gpu"
        return self.clocks[which]

    def nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> int:
        assert sensor == 0
        return self.temperature

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: str) -> int:
        return self.reasons

    nvmlDeviceGetCurrentClocksThrottleReasons = nvmlDeviceGetCurrentClocksEventReasons

    def nvmlDeviceGetViolationStatus(self, handle: str, policy: int) -> SimpleNamespace:
        return SimpleNamespace(referenceTime=0, violationTime=self.held_ns[policy])

    def nvmlDeviceGetMigMode(self, handle: str) -> list[int]:
        return self.mig

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[SimpleNamespace]:
        return [SimpleNamespace(pid=pid, usedGpuMemory=1 << 20) for pid in self.pids]

    def nvmlDeviceGetProcessUtilization(self, handle: str, since_us: int) -> list[SimpleNamespace]:
        assert abs(since_us - time.time() * 1e6) < 600e6, "microseconds since 1970"
        if not self.samples:
            raise NvmlError("Not Found")
        return [SimpleNamespace(pid=pid, smUtil=util, timeStamp=since_us + 1) for pid, util in self.samples]


@pytest.fixture
def nvml() -> FakeNvml:
    return FakeNvml()


@pytest.fixture
def stranger() -> Iterator[int]:
    """The pid of a process that does not descend from this one: its parent ended before it."""
    code = "import subprocess; print(subprocess.Popen(['sleep', '600'], stdout=subprocess.DEVNULL).pid)"
    pid = int(subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout)
    try:
        yield pid
    finally:
        os.kill(pid, 9)


@pytest.fixture
def child() -> Iterator[int]:
    """The pid of a process below one that this one started."""
    code = "import subprocess; p = subprocess.Popen(['sleep', '600']); print(p.pid, flush=True); p.wait()"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        pid = int(process.stdout.readline())
        try:
            yield pid
        finally:
            os.kill(pid, 9)
            process.wait()


def watched(nvml: FakeNvml, **changes: Any) -> Record:
    """The record of a block in which the GPU changed like this."""
    with Monitor("cuda", nvml, PROPERTIES).watch() as record:
        for name, value in changes.items():
            setattr(nvml, name, value)
    return record


def test_a_quiet_run_has_its_figures_and_no_note(nvml):
    """The SM clock of both ends and the last temperature are kept, without a note."""
    record = watched(nvml, clocks={1: 1755, 2: 3201}, temperature=58)
    assert (record.sm_clock_before_mhz, record.sm_clock_mhz) == (1980, 1755)
    assert record.memory_clock_mhz == 3201
    assert record.temperature_c == 58
    assert record.throttle == ()
    assert record.notes() == ()


def test_the_simulator_has_no_record(nvml):
    """Without a GPU NVML is not even started."""
    nvml.lacking = set(EVERYTHING)
    with Monitor("simulator", nvml, PROPERTIES).watch() as record:
        pass
    assert record == Record()


@pytest.mark.parametrize("lacking", [*EVERYTHING, "all"])
def test_what_nvml_does_not_tell_is_not_known(nvml, lacking):
    """Any question may go unanswered, in silence; the other figures are there all the same."""
    nvml.lacking = set(EVERYTHING) if lacking == "all" else {lacking}
    record = watched(nvml)
    assert record.notes() == ()
    if lacking in ("nvmlInit", "all"):
        assert record == Record()
    else:
        assert (record.sm_clock_mhz is None) == (lacking == "nvmlDeviceGetClockInfo")
        assert (record.temperature_c is None) == (lacking == "nvmlDeviceGetTemperature")


def test_a_gpu_that_nvml_does_not_know_has_no_record(nvml):
    """Neither its UUID nor its place on the bus is listed: nothing is known, rather than another GPU's figures."""
    nvml.gpus = {"GPU-other": "other"}
    assert watched(nvml) == Record()


def test_without_pynvml_there_is_no_record(monkeypatch):
    """The package may be missing, or broken."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with Monitor("cuda", None, PROPERTIES).watch() as record:
        pass
    assert record == Record()


@pytest.mark.parametrize(
    ("bits", "names"),
    [
        (0x1 | 0x2 | 0x100, ()),
        (0x4, ("power cap",)),
        (0x20, ("heat",)),
        (0x8 | 0x40, ("hardware slowdown", "heat")),
        (0x80, ("power brake",)),
    ],
)
def test_reasons_are_named_where_there_are_no_counters(nvml, bits, names):
    """Idleness, application clocks and a display's clocks hold nothing back; what does is named."""
    nvml.lacking = {"nvmlDeviceGetViolationStatus"}
    assert watched(nvml, reasons=bits).throttle == names


def test_the_counters_decide_where_there_are_some(nvml):
    """Time that was lost between the two looks is seen, and a reason that is over before the timing is not."""
    assert watched(nvml, held_ns={0: 9_000_000_000, 1: 0}).throttle == ("power cap",)
    nvml.held_ns = {0: 0, 1: 0}
    nvml.reasons = 0x4
    assert watched(nvml, reasons=0x1).throttle == ()


def test_a_moment_is_no_throttling(nvml):
    """Less than a hundredth of the time disturbs nothing."""
    with Monitor("cuda", nvml, PROPERTIES).watch() as record:
        time.sleep(0.05)
        nvml.held_ns = {0: 5_000_000_000 + 100_000, 1: 0}
    assert record.throttle == ()


@pytest.mark.parametrize(("own_s", "all_s", "held"), [(3, 3, ()), (3, 4, ("power cap",)), (0, 1, ("power cap",))])
def test_how_far_the_judges_own_work_holds_the_clock_back_is_not_recorded(nvml, own_s, all_s, held):
    """An oracle that multiplies large matrices may; what is timed is something else. The rest is recorded."""
    monitor = Monitor("cuda", nvml, PROPERTIES)
    for _ in range(2):  # nor does one record know of another's
        with monitor.watch() as record:
            for part_s in (1, own_s - 1):
                with monitor.aside():
                    nvml.held_ns[0] += part_s * 1_000_000_000 * bool(own_s)
            nvml.held_ns[0] += (all_s - own_s) * 1_000_000_000
        assert record.throttle == held


def test_own_work_that_fails_is_set_aside_too(nvml):
    """Otherwise a wrong output of a submission would put the judge's own throttling on record."""
    monitor = Monitor("cuda", nvml, PROPERTIES)
    with monitor.watch() as record, contextlib.suppress(ZeroDivisionError), monitor.aside():
        nvml.held_ns[0] += 1_000_000_000
        raise ZeroDivisionError
    assert record.throttle == ()
    with Monitor("simulator").aside():
        pass


def test_the_note_says_how_far_the_clock_fell(nvml):
    """With the clocks of both ends, where the second is the lower."""
    assert watched(nvml, clocks={1: 1410, 2: 3201}, held_ns={0: 9_000_000_000, 1: 0}).notes() == (
        f"The GPU held its clock back: power cap, 1980 → 1410 MHz. {ALIKE}",
    )
    assert watched(nvml, clocks={1: 1980, 2: 3201}, held_ns={0: 9_900_000_000, 1: 0}).notes() == (
        f"The GPU held its clock back: power cap. {ALIKE}",
    )


def test_another_process_at_work_is_noted(nvml, stranger):
    """With its pid and its name, so that a person can find it."""
    record = watched(nvml, pids=[os.getpid(), stranger], samples=[(os.getpid(), 90), (stranger, 7)])
    assert record.other_processes == (OtherProcess(stranger, "sleep", True),)
    assert record.notes() == (
        f"Another process (pid {stranger}, `sleep`) used the GPU while this was timed; times may be off.",
    )


def test_one_that_was_there_at_the_start_is_remembered(nvml, stranger):
    """It may have closed the GPU before the end."""
    nvml.pids = [os.getpid(), stranger]
    record = watched(nvml, pids=[os.getpid()], samples=[(stranger, 7)])
    assert [each.pid for each in record.other_processes] == [stranger]


def test_one_that_only_has_the_gpu_open_is_recorded_and_not_noted(nvml, stranger):
    """A notebook that keeps a tensor on the GPU and idles disturbs nobody."""
    record = watched(nvml, pids=[os.getpid(), stranger], samples=[(os.getpid(), 90), (stranger, 0)])
    assert record.other_processes == (OtherProcess(stranger, "sleep", False),)
    assert record.notes() == ()


def test_where_the_use_is_not_known_the_note_says_so(nvml, stranger):
    """Samples without anyone at work, not even us, tell nothing: the note is a careful one."""
    (note,) = watched(nvml, pids=[os.getpid(), stranger]).notes()
    assert "had the GPU open" in note
    assert "if it was used" in note


def test_the_notebook_that_asked_is_not_blamed_for_being_there(nvml):
    """A parent of this process may have the GPU open; only its running kernels are reported."""
    nvml.pids = [os.getpid(), os.getppid()]
    idle = watched(nvml)
    assert [each.above_us for each in idle.other_processes] == [True]
    assert idle.notes() == ()
    assert "used the GPU" in watched(nvml, samples=[(os.getppid(), 50)]).notes()[0]


def test_what_is_ours_is_never_another(nvml, child):
    """Descendants of this process, such as the sandboxed worker below its cage."""
    nvml.pids = [os.getpid(), child]
    assert watched(nvml, samples=[(child, 99)]).other_processes == ()


def test_pids_of_another_namespace_accuse_nobody(nvml, stranger):
    """Where this process is not in NVML's list the pids are the host's: they may be anyone's here."""
    nvml.pids = [stranger]
    assert watched(nvml, samples=[(stranger, 99)]).other_processes == ()


def test_a_pid_that_is_gone_accuses_nobody(nvml):
    """A worker that was just killed is listed for a while."""
    nvml.pids = [os.getpid(), 2**22 - 1]
    assert watched(nvml, samples=[(2**22 - 1, 99)]).other_processes == ()


def test_a_share_of_a_gpu_accuses_nobody(nvml, stranger):
    """Under MIG the list is of the whole GPU, and others work on shares of their own."""
    nvml.mig = [1, 1]
    assert watched(nvml, pids=[os.getpid(), stranger], samples=[(stranger, 99)]).other_processes == ()


def test_a_name_is_text_that_harms_nobody(nvml):
    """A process chooses its own name; what is not a plain word is replaced."""
    name = "a`<b>\x1b[2J"
    code = f"import ctypes, time; ctypes.CDLL(None).prctl(15, {name.encode()!r}); print(1, flush=True); time.sleep(600)"
    start = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', sys.argv[1]], stdout=2).pid)"
    with subprocess.Popen(
        [sys.executable, "-c", start, code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        pid = int(process.stdout.readline())
        try:
            process.stderr.readline()  # it has its name
            nvml.pids = [os.getpid(), pid]
            (other,) = watched(nvml).other_processes
        finally:
            os.kill(pid, 9)
    assert other.name == "a??b???2J"


def test_the_record_is_filled_where_the_block_fails(nvml):
    """A submission that crashes while it is timed leaves its record, and its own error passes."""
    kept = []

    def fail() -> None:
        with Monitor("cuda", nvml, PROPERTIES).watch() as record:
            kept.append(record)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert kept[0].sm_clock_mhz == 1980


def test_no_thread_and_little_time(nvml, stranger):
    """A thread would disturb the clock; the monitor takes well under 2 ms at each end."""
    nvml.pids = [os.getpid(), stranger]
    monitor, before, taken = Monitor("cuda", nvml, PROPERTIES), threading.active_count(), []
    for _ in range(15):
        start = time.perf_counter()
        with monitor.watch():
            assert threading.active_count() == before
        taken.append(time.perf_counter() - start)
    assert statistics.median(taken) < 4e-3 * PACE


@pytest.mark.gpu
def test_a_real_gpu_is_recorded_quickly():
    """Clocks and temperature are there, this process is no other, and both ends together cost less than 4 ms."""
    torch = pytest.importorskip("torch")
    x = torch.ones(1 << 24, device="cuda")
    monitor, taken = Monitor("cuda"), []
    for _ in range(9):
        start = time.perf_counter()
        with monitor.watch() as record:
            begun = time.perf_counter() - start
            x.add_(1)
            torch.cuda.synchronize()
            start = time.perf_counter()
        taken.append(begun + time.perf_counter() - start)
    assert record.sm_clock_mhz
    assert record.memory_clock_mhz
    assert 0 < (record.temperature_c or 0) < 120
    assert os.getpid() not in [each.pid for each in record.other_processes]
    assert statistics.median(taken) < 4e-3, taken
