"""NVML's record of a timing: clocks, temperature, throttling, and other processes on the GPU.

It reads NVML at the start and the end, and the driver's counters for the time between; a thread would disturb the
clock. Values that NVML does not report (MIG, containers, old drivers) stay unknown.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from grader.judge.gpu.ceilings import Device

_REASONS = {  # NVML's bits of throttling; idleness and application clocks do not count
    0x04: "power cap", 0x08: "hardware slowdown", 0x10: "sync boost", 0x20: "heat", 0x40: "heat", 0x80: "power brake",
}  # fmt: skip
_COUNTERS = {0: "power cap", 1: "heat"}  # NVML's performance policies, in nanoseconds
_LEAST_SHARE = 0.01  # of the time: shorter throttling is ignored
_SM, _MEMORY, _GPU_SENSOR = 1, 2, 0


class OtherProcess(NamedTuple):
    """Another process with the GPU open. `busy`: whether its kernels ran during the timing, None if unknown."""

    pid: int
    name: str
    busy: bool | None
    above_us: bool = False  # a parent of this process, such as a learner's notebook


@dataclass
class Record:
    """The record of a timing. None and () mean unknown."""

    sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    temperature_c: int | None = None
    sm_clock_before_mhz: int | None = None
    throttle: tuple[str, ...] = ()
    other_processes: tuple[OtherProcess, ...] = ()

    def notes(self) -> tuple[str, ...]:
        """Return sentences on what may have disturbed the timing; other processes' text is in `backticks`."""
        found = []
        if busy := [each for each in self.other_processes if each.busy]:
            found.append(f"{_who(busy)} used the GPU while this was timed; times may be off.")
        if idle := [each for each in self.other_processes if each.busy is None and not each.above_us]:
            found.append(f"{_who(idle)} had the GPU open while this was timed; if it was used, times may be off.")
        if self.throttle:
            before, after = self.sm_clock_before_mhz, self.sm_clock_mhz
            fell = f", {before} → {after} MHz" if before and after and after < before else ""
            held = f"The GPU held its clock back: {', '.join(self.throttle)}{fell}."
            found.append(f"{held} The baselines ran in turn with yours, on the same clock.")
        return tuple(found)


class Monitor:
    """NVML on CUDA's device 0; the simulator has none. Tests replace pynvml (`nvml`) and torch (`properties`)."""

    def __init__(self, device: Device, nvml: Any = None, properties: Any = None) -> None:
        self._nvml: Any = None
        self._handle: Any = None
        self._aside_ns: dict[str, int] = {}
        self._aside_s = 0.0
        if device != "cuda":
            return
        with contextlib.suppress(Exception):
            self._nvml = nvml or importlib.import_module("pynvml")
            self._nvml.nvmlInit()
            self._handle = self._find(properties or importlib.import_module("torch").cuda.get_device_properties(0))

    @contextlib.contextmanager
    def watch(self) -> Iterator[Record]:
        """Yield a record that is filled in when the block ends. This process's descendants do not count as others."""
        record = Record()
        began, since_us = time.perf_counter(), int(time.time() * 1e6)
        record.sm_clock_before_mhz = self._clock(_SM)
        reasons, counters, others = self._reasons(), self._counters(), self._others()
        self._aside_ns, self._aside_s = {}, 0.0
        try:
            yield record
        finally:
            record.sm_clock_mhz, record.memory_clock_mhz = self._clock(_SM), self._clock(_MEMORY)
            record.temperature_c = self._number("nvmlDeviceGetTemperature", _GPU_SENSOR)
            least_ns = _LEAST_SHARE * (time.perf_counter() - began - self._aside_s) * 1e9
            after = self._counters()
            spent_ns = {name: ns - counters.get(name, ns) - self._aside_ns.get(name, 0) for name, ns in after.items()}
            held = [name for name, ns in spent_ns.items() if ns > least_ns]
            # The counters are more exact than the reasons.
            seen = [name for name in reasons + self._reasons() if name not in after]
            record.throttle = tuple(dict.fromkeys(held + seen))
            others |= self._others()
            busy = self._busy(since_us) if others else None
            parents = set(_line_of(os.getpid()))
            record.other_processes = tuple(
                OtherProcess(pid, name, None if busy is None else pid in busy, pid in parents)
                for pid, name in sorted(others.items())
            )

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Exclude this block's throttling from the current record."""
        began, before = time.perf_counter(), self._counters()
        try:
            yield
        finally:
            for name, ns in self._counters().items():
                self._aside_ns[name] = self._aside_ns.get(name, 0) + ns - before.get(name, ns)
            self._aside_s += time.perf_counter() - began

    def _find(self, properties: Any) -> Any:
        uuid = str(getattr(properties, "uuid", ""))
        for name in (f"GPU-{uuid}", f"MIG-{uuid}") if uuid else ():
            handle = self._ask("nvmlDeviceGetHandleByUUID", name)
            if handle is not None:
                return handle
        numbers = [getattr(properties, f"pci_{part}_id", None) for part in ("domain", "bus", "device")]
        if None in numbers:
            return None
        domain, bus, device = numbers
        return self._ask("nvmlDeviceGetHandleByPciBusId", f"{domain:08x}:{bus:02x}:{device:02x}.0")

    def _ask(self, name: str, *arguments: Any) -> Any:
        with contextlib.suppress(Exception):
            return getattr(self._nvml, name)(*arguments)
        return None

    def _of_gpu(self, name: str, *arguments: Any) -> Any:
        return None if self._handle is None else self._ask(name, self._handle, *arguments)

    def _number(self, name: str, *arguments: Any) -> int | None:
        value = self._of_gpu(name, *arguments)
        return value if isinstance(value, int) else None

    def _clock(self, which: int) -> int | None:
        return self._number("nvmlDeviceGetClockInfo", which)

    def _reasons(self) -> list[str]:
        bits = self._number("nvmlDeviceGetCurrentClocksEventReasons")
        if bits is None:
            bits = self._number("nvmlDeviceGetCurrentClocksThrottleReasons") or 0
        return [name for bit, name in _REASONS.items() if bits & bit]

    def _counters(self) -> dict[str, int]:
        """Return the nanoseconds of throttling so far, by reason."""
        asked = {name: self._of_gpu("nvmlDeviceGetViolationStatus", policy) for policy, name in _COUNTERS.items()}
        return {name: int(answer.violationTime) for name, answer in asked.items() if answer is not None}

    def _others(self) -> dict[int, str]:
        """Return pid and name of the processes that have the GPU open and do not descend from this one.

        If NVML's list does not contain this process, the pids belong to another namespace: return nothing.
        """
        mode = self._of_gpu("nvmlDeviceGetMigMode")  # current and pending
        if mode and mode[0]:
            return {}
        pids = {process.pid for process in self._of_gpu("nvmlDeviceGetComputeRunningProcesses") or ()}
        if os.getpid() not in pids:
            return {}
        lines = {pid: _line_of(pid) for pid in pids}
        return {pid: _name_of(pid) for pid, line in lines.items() if line and os.getpid() not in line}

    def _busy(self, since_us: int) -> set[int] | None:
        """Return the pids whose kernels ran since then; None if NVML's samples show no process at all."""
        samples = self._of_gpu("nvmlDeviceGetProcessUtilization", since_us) or ()
        return {sample.pid for sample in samples if sample.smUtil > 0} or None


def _who(processes: list[OtherProcess]) -> str:
    named = "; ".join(f"pid {each.pid}, `{each.name}`" for each in processes)
    return f"Another process ({named})" if len(processes) == 1 else f"{len(processes)} other processes ({named})"


def _line_of(pid: int) -> list[int]:
    """Return a process and its ancestors; empty if the process does not exist or is not visible."""
    line: list[int] = []
    while pid > 0 and pid not in line:
        try:
            parent = int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
        except (OSError, IndexError):
            break
        line.append(pid)
        pid = parent
    return line


def _name_of(pid: int) -> str:
    """Return a process's name. It is untrusted, so only letters, digits and a few marks are kept."""
    with contextlib.suppress(OSError):
        name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
        return "".join(c if c.isascii() and (c.isalnum() or c in "-_.+") else "?" for c in name) or "?"
    return "?"
