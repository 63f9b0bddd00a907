"""Find the causes that the evidence about a right submission supports, in the order of what they may bring."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from grader.bottleneck import (
    attention_causes,
    balance_causes,
    code_causes,
    host_causes,
    launch_causes,
    memory_causes,
    tail_causes,
    torch_causes,
)
from grader.bottleneck.cause import WORTH, ranked
from grader.bottleneck.evidence import Evidence
from grader.bottleneck.time_model import headroom as headroom_on
from grader.exercise import Exercise
from grader.verdict import Cause

__all__ = ["causes"]

_IMPLIES = {
    "many launches": ("few programs",),  # each launch is small, but they are many
    "serial tail": ("few programs",),  # of the launch that is the tail
    "spills": ("low occupancy", "small blocks", "small programs"),  # as many registers as a thread can have
}


def causes(exercise: Exercise, source: str, *gathered: Evidence, headroom: float | None = None) -> tuple[Cause, ...]:
    """The causes, one of each kind, the one with the largest gain first; empty if nothing explains it.

    Args:
        gathered: evidence from a GPU, the simulator, or both; what comes first counts.
        headroom: the measured time over a good solution's: no cure brings more. By default that of a GPU's evidence.
    """
    found = [*launch_causes.source_causes(exercise, source)]
    on_gpu = next((each for each in gathered if not each.simulated), None)
    if headroom is None and on_gpu is not None:
        headroom = headroom_on(exercise, on_gpu)
    for evidence in gathered:
        if on_gpu is not None and evidence.simulated:
            evidence = replace(evidence, gpu=on_gpu.gpu, multiprocessors=on_gpu.multiprocessors)
        found += _of(exercise, source, evidence)
    if on_gpu is not None and (most := launch_causes.gain_of_fewer(on_gpu)):
        found = [replace(cause, at_most=most) if cause.kind == "many launches" else cause for cause in found]
        found = [cause for cause in found if cause.kind != "many launches" or most >= WORTH]
    implied = {kind for cause in found for kind in _IMPLIES.get(cause.kind, ())}
    found = [cause for cause in found if cause.kind not in implied]
    if not found and on_gpu is not None:
        found = [*launch_causes.host_time(on_gpu)]
    return ranked(found, headroom)


def _of(exercise: Exercise, source: str, evidence: Evidence) -> Iterator[Cause]:
    yield from memory_causes.wasted_sectors(evidence)
    yield from memory_causes.bank_conflicts(evidence)
    yield from memory_causes.repeated_reads(exercise, evidence)
    yield from memory_causes.extra_operations(exercise, evidence)
    yield from memory_causes.extra_kernels(exercise, evidence)
    yield from memory_causes.stored_between(exercise, evidence)
    yield from balance_causes.atomics(exercise, evidence)
    yield from balance_causes.divergence(evidence)
    yield from balance_causes.serial_tail(exercise, evidence)
    yield from balance_causes.runtime_waits(evidence)
    yield from memory_causes.idle_elements(exercise, evidence)
    yield from memory_causes.small_tiles(exercise, evidence)
    yield from attention_causes.tiles_of_attention(exercise, evidence)
    yield from memory_causes.no_grouped_order(exercise, source, evidence)
    yield from torch_causes.extra_traffic(exercise, evidence)
    yield from torch_causes.sorting(exercise, evidence)
    yield from torch_causes.double_precision(exercise, evidence)
    yield from torch_causes.special_functions(exercise, evidence)
    yield from host_causes.host_work(exercise, evidence)
    yield from launch_causes.many_launches(exercise, evidence)
    yield from launch_causes.small_programs(exercise, evidence)
    yield from launch_causes.small_blocks(exercise, evidence)
    yield from launch_causes.few_programs(exercise, source, evidence)
    yield from tail_causes.last_wave(exercise, source, evidence)
    yield from tail_causes.serial_tail(evidence)
    yield from launch_causes.low_occupancy(exercise, evidence)
    yield from code_causes.spills(evidence)
    yield from code_causes.capped_registers(source, evidence)
    yield from code_causes.no_pipelining(exercise, evidence)
    yield from code_causes.no_tensor_cores(exercise, evidence)
    yield from code_causes.double_precision(exercise, source, evidence)
    yield from code_causes.slow_sines(exercise, source, evidence)
