"""Read the hardware counters of one call from the table that Nsight Compute prints, and put them into sentences."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from grader.bottleneck.evidence import SECTOR_BYTES, Evidence, Run
from grader.exercise import Case, Exercise
from grader.verdict import Cause
from grader.words import kernel_name, plural

__all__ = ["METRICS", "TIME", "WAITS", "Counted", "agreement", "counted_in", "measured"]

TIME = "gpu__time_duration.sum"
DRAM_READ, DRAM_WRITTEN, L2 = "dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_bytes.sum"
SECTORS = {
    "load": "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
    "store": "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",
}
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
REGISTERS = "launch__registers_per_thread"
_LIMITS = {
    "launch__occupancy_limit_registers": "registers",
    "launch__occupancy_limit_shared_mem": "shared memory",
    "launch__occupancy_limit_warps": "its warps",
    "launch__occupancy_limit_blocks": "the number of blocks",
}
WAITS = {  # what a warp waits for, by the reason's name in metrics
    "long_scoreboard": "values from global memory or L2",
    "short_scoreboard": "values from shared memory or a slow instruction",
    "barrier": "the other warps at a barrier",
    "lg_throttle": "room in the queue for global memory",
    "mio_throttle": "room in the queue for shared memory",
    "math_pipe_throttle": "a busy arithmetic pipe",
    "wait": "a fixed delay between instructions",
    "not_selected": "its turn: other warps were ready too",
}
_STALLS = {f"smsp__average_warps_issue_stalled_{name}_per_issue_active.ratio": what for name, what in WAITS.items()}
TENSOR, FP64 = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", (
    "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active"
)  # fmt: skip
_PIPES = {
    TENSOR: "tensor cores",
    "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active": "FMA (float32)",
    FP64: "float64",
    "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active": "sines and other functions (XU)",
    "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active": "loads and stores (LSU)",
}
_SUMS = (TIME, DRAM_READ, DRAM_WRITTEN, L2)  # over all kernels; the others are of the longest one
METRICS = (
    *_SUMS, *SECTORS.values(), OCCUPANCY, CONFLICTS, WAVEFRONTS, REGISTERS, *_LIMITS, *_STALLS, *_PIPES,
)  # fmt: skip
_CLOSE = 1.5  # two ratios within this factor agree
_BUSY = 1.0  # percent: a pipe with at least this much was used
_NAME = "Kernel Name"


@dataclass(frozen=True)
class Counted:
    """The counters of one call. `values` are by metric, in bytes, ns, percent or counts, as far as the GPU has them.

    Times and bytes are sums over all `launches`; the rest is about `kernel`, the launch that took longest. With
    `cut`, the call launched more kernels than were counted. `lines` are sentences about single lines of that kernel.
    """

    case: Case
    kernel: str
    launches: int
    values: Mapping[str, float]
    cut: bool = False
    lines: tuple[str, ...] = ()

    @property
    def dram(self) -> float | None:
        """The bytes that DRAM delivered and took, None if they were not counted."""
        read, written = self.values.get(DRAM_READ), self.values.get(DRAM_WRITTEN)
        return None if read is None or written is None else read + written


def counted_in(printed: str, case: Case, most: int = 1 << 30) -> Counted | None:
    """Read what `ncu --csv --page raw --print-units base` prints; None if it has no kernel.

    `most` is the number of launches after which `ncu` stopped. Other lines, such as `==PROF==`, are skipped. A metric
    that this GPU does not have is "n/a" there, and missing here.
    """
    lines = [line for line in printed.splitlines() if line.startswith('"')]
    rows = [row for row in csv.DictReader(io.StringIO("\n".join(lines))) if row.get("ID")]  # the second has the units
    values = [{name: number for name in METRICS if (number := _number(row.get(name))) is not None} for row in rows]
    if not rows:
        return None
    longest = max(range(len(rows)), key=lambda at: values[at].get(TIME, 0.0))
    sums = {name: sum(each[name] for each in values) for name in _SUMS if all(name in each for each in values)}
    kept = {name: value for name, value in values[longest].items() if name not in _SUMS}
    return Counted(case, rows[longest].get(_NAME) or "", len(rows), kept | sums, len(rows) >= most)


def _number(text: str | None) -> float | None:
    try:
        return float((text or "").replace(",", ""))
    except ValueError:
        return None


def measured(exercise: Exercise, counted: Counted) -> list[str]:
    """Return what the counters say, each sentence with the metric that it rests on."""
    name = kernel_name(counted.kernel.replace("`", ""))
    said = [f"By Nsight Compute, in the case “{counted.case.name}”, not timed. The longest kernel is `{name}`."]
    if counted.cut:
        said.append(f"Only the first {plural(counted.launches, 'kernel')} of the call were counted.")
    return [*said, *_bytes(exercise, counted), *_accesses(counted.values), *_threads(counted.values), *counted.lines]


def _bytes(exercise: Exercise, counted: Counted) -> Iterator[str]:
    must, dram = exercise.bytes_moved(counted.case), counted.dram
    if dram is not None:
        read, written = counted.values[DRAM_READ] / 1e6, counted.values[DRAM_WRITTEN] / 1e6
        ratio = f", {dram / must:.2f} times the bytes that must move" if must and not counted.cut else ""
        yield f"DRAM: {read:,.1f} MB read and {written:,.1f} MB written{ratio} (`dram__bytes_*.sum`)."
        if dram < must and not counted.cut:
            yield "Less than all bytes: the end of the output was still in the L2 cache when the kernel ended."
    if L2 in counted.values:
        yield f"L2: {counted.values[L2] / 1e6:,.1f} MB passed through the cache (`{L2}`)."


def _accesses(values: Mapping[str, float]) -> Iterator[str]:
    for kind, metric in SECTORS.items():
        if values.get(metric):
            yield (
                f"Sectors of {SECTOR_BYTES} bytes per {kind} of a warp in global memory: {values[metric]:.1f} on "
                f"average; 4 hold 4 bytes for each of 32 threads, 16 hold 16 bytes (`{metric}`)."
            )
    if (turns := _turns(values)) is not None:
        yield (
            f"Shared memory: an access took {turns:.1f} times the turns that it would take without bank conflicts "
            f"(`{CONFLICTS}`)."
        )


def _turns(values: Mapping[str, float]) -> float | None:
    """All turns at shared memory over those without a bank conflict."""
    all_turns, conflicts = values.get(WAVEFRONTS), values.get(CONFLICTS)
    return (
        all_turns / (all_turns - conflicts) if all_turns and conflicts is not None and conflicts < all_turns else None
    )


def _threads(values: Mapping[str, float]) -> Iterator[str]:
    if OCCUPANCY in values:
        fits = {name: values[metric] for metric, name in _LIMITS.items() if metric in values}
        limit = min(fits, key=lambda name: fits[name], default="")
        why = f"; at most {plural(round(fits[limit]), 'block')} fit on an SM, because of {limit}" if limit else ""
        yield f"Achieved occupancy: {values[OCCUPANCY]:.0f}% of the warps that an SM can hold{why} (`{OCCUPANCY}`)."
    if REGISTERS in values:
        yield f"Registers: {values[REGISTERS]:.0f} per thread (`{REGISTERS}`)."
    waits = sorted((metric for metric in _STALLS if values.get(metric)), key=lambda metric: -values[metric])
    for metric in waits[:2]:
        yield f"For {values[metric]:.1f} cycles per instruction, a warp waited for {_STALLS[metric]} (`{metric}`)."
    busy = [f"{name} {values[metric]:.0f}%" for metric, name in _PIPES.items() if values.get(metric, 0.0) >= _BUSY]
    if busy:
        yield f"Busy pipes: {', '.join(busy)} of what they can do (`sm__*_pipe_*`)."


def agreement(exercise: Exercise, causes: Iterable[Cause], gathered: Sequence[Evidence], counted: Counted) -> list[str]:
    """For each cause that rests on a model, return whether the counters agree with the model's number."""
    simulated = (each.largest_row_major for each in gathered if each.simulated)
    run = next(filter(None, simulated), None)
    on_gpu = next((each for each in gathered if not each.simulated), None)
    said = []
    for cause in causes:
        for what, model, counter in _pairs(exercise, cause, run, on_gpu, counted):
            agree = max(model, counter) <= _CLOSE * max(1e-9, min(model, counter))
            judged = "the counters agree" if agree else "the counters do not confirm it"
            said.append(f"“{cause.kind}”: the model said {model:.1f} {what}, measured {counter:.1f}: {judged}.")
        if cause.kind == "no tensor cores" and TENSOR in counted.values:
            said.append(f"“{cause.kind}”: measured {counted.values[TENSOR]:.0f}% use of the tensor cores.")
        if cause.kind == "double precision" and FP64 in counted.values:
            said.append(f"“{cause.kind}”: measured {counted.values[FP64]:.0f}% use of the float64 pipe.")
    return said


def _pairs(
    exercise: Exercise, cause: Cause, run: Run | None, on_gpu: Evidence | None, counted: Counted
) -> Iterator[tuple[str, float, float]]:
    """The model's number and the counters', with what they count."""
    values = counted.values
    if cause.kind == "wasted sectors" and run is not None:
        for kind, metric in SECTORS.items():
            if (model := _sectors(run, kind)) is not None and values.get(metric):
                yield f"sectors per {kind}", model, values[metric]
    elif cause.kind in ("repeated reads", "extra traffic") and run is not None and not counted.cut:
        moved = sum(each.bytes for launch in run.launches for each in launch.accesses)
        must, dram = exercise.bytes_moved(run.case), counted.dram
        if moved and must and dram is not None:
            yield "times the bytes that must move", moved / must, dram / exercise.bytes_moved(counted.case)
    elif cause.kind == "bank conflicts" and run is not None and (turns := _turns(values)) is not None:
        shared = [each for launch in run.launches for each in launch.warps if each.name == "shared" and each.count]
        if total := sum(each.count for each in shared):
            yield "turns per access of shared memory", sum(each.units * each.count for each in shared) / total, turns
    elif cause.kind in ("low occupancy", "small blocks", "small programs") and values.get(OCCUPANCY):
        main = on_gpu.main_kernel if on_gpu is not None else None
        if main is not None and main.occupancy:
            yield "% occupancy", main.occupancy, values[OCCUPANCY]


def _sectors(run: Run, kind: str) -> float | None:
    """The sectors that a warp's access touches on average in the simulator, with one element per thread in Triton."""
    warps = [each for launch in run.launches for each in launch.warps if each.name == "global" and each.kind == kind]
    if count := sum(each.count for each in warps):
        return sum(each.units * each.count for each in warps) / count
    blocks = [each for launch in run.launches for each in launch.accesses if each.kind == kind and each.elements]
    elements = sum(each.elements for each in blocks)
    if not elements:
        return None
    fetched = sum(max(each.fetched, each.bytes) for each in blocks)
    return min(32.0, 32 * fetched / SECTOR_BYTES / elements)
