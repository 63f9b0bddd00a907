"""`make bench` measures and writes `benchmarks/results/<gpu>.json` and plots.

`ARGS="kernels loop"` picks benches, and `ARGS="kernels:softmax"` one exercise. If `BENCH_LIMIT_S` is set, `clock`,
`throughput`, `soak` and `kills` each end within that many seconds. `clock:pairs`, `kills` and `throughput` (except
`throughput:stages`) keep their state under `BENCH_STATE` (`build/bench`) and continue there when called again.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from benchmarks.limits import Fault
from benchmarks.readme import rewrite
from benchmarks.rows import Recorder
from grader.hardware import toolkit

# Module and function. Each is imported when it runs, because a GPU machine may not have the packages of all benches.
BENCHES = {
    "kernels": "kernels.kernels", "loop": "loop.loop", "builds": "builds.builds", "profiles": "profiles.profiles",
    "report": "report.report", "clock": "clock.clock", "throughput": "throughput.throughput", "soak": "soak.soak",
    "kills": "kills.kills", "serve": "serve.serve", "flips": "flips.flips",
    "lies": "lies.lies", "stopwatches": "stopwatches.stopwatches",
    "operators": "operators.operators", "ceilings": "ceilings.ceilings", "launches": "launches.launches",
    "softmaxes": "softmaxes.softmaxes",
    "bytes": "bytes.moves", "reductions": "reductions.reductions", "means": "means.means",
    "matmuls": "matmuls.matmuls", "languages": "languages.languages", "widths": "widths.widths",
    "fusion": "fusion.fusion", "traces": "traces.traces", "graphs": "graphs.graphs",
    "slow": "slow.slow", "periods": "periods.periods", "ladder": "ladder.ladder", "past": "past.past",
}  # fmt: skip
PARTS = {
    "clock:agreement": "clock.agreement", "clock:repeats": "clock.repeats", "clock:pairs": "pairs.pairs",
    "clock:noise": "noise.noise", "clock:looks": "looks.looks", "clock:streams": "streams.streams",
    "throughput:ours": "throughput.ours", "throughput:stock": "throughput.stock",
    "throughput:bare_ours": "throughput.bare_ours", "throughput:bare_stock": "throughput.bare_stock",
    "throughput:gpus": "throughput.gpus", "throughput:stages": "stages.stages",
    "throughput:kernels": "stages.kernel_looks",
    "clock:practice": "practice.practice", "slow:again": "slow.again", "slow:why": "slow.why",
    "matmuls:sweep": "matmuls.sweep", "bytes:divergence": "bytes.divergence",
}  # fmt: skip
_WITH_PLOTS = {"kernels", "loop", "builds"}  # a whole run of these also records the copy that shares refer to


def is_known(name: str) -> bool:
    """Whether a bench has this name: one of the above, or the kernels of one exercise."""
    from grader.exercises import EXERCISES

    kind, _, exercise = name.partition(":")
    return name in BENCHES | PARTS or (kind == "kernels" and exercise in EXERCISES and bool(EXERCISES[exercise].gates))


def bench(name: str) -> Callable[[Recorder], None]:
    """Return the bench of this name.

    Raises:
        ModuleNotFoundError: a package that it needs is not installed.
    """
    if name.startswith("kernels:"):
        from benchmarks.kernels import kernels

        return partial(kernels, only=name.partition(":")[2])
    module, function = (BENCHES | PARTS)[name].split(".")
    found: Callable[[Recorder], None] = getattr(importlib.import_module(f"benchmarks.{module}"), function)
    return found


def main(names: list[str]) -> int:
    """Run the named benches, or all. If one fails, the next still runs."""
    unknown = {name for name in names if not is_known(name)}
    if unknown:
        known = [*BENCHES, *PARTS, "kernels:EXERCISE"]
        print(f"There is no bench {', '.join(sorted(unknown))}. The benches are {', '.join(known)}.", file=sys.stderr)
        return 2
    os.environ.update(toolkit(os.environ))
    import torch  # here, because a caller may need only the names of the benches

    if not torch.cuda.is_available():
        print("A benchmark needs a GPU, and torch sees none here.", file=sys.stderr)
        return 2
    chosen = names or list(BENCHES)
    from grader.judge.gpu.ceilings import Machine  # imports torch

    recorder = Recorder(Machine.measure("cuda"), datetime.now(UTC).date().isoformat())
    if _WITH_PLOTS & set(chosen):
        recorder.add("copy", "512 MiB, device to device", "bandwidth_gbps", "GB/s", recorder.machine.copy_gbps)
    faults = []
    for name in chosen:
        try:
            bench(name)(recorder)
        except Fault as fault:
            faults.append(str(fault))
        except (Exception, SystemExit) as error:  # GPU time is expensive, and the next bench may work
            traceback.print_exc()
            faults.append(f"{name}: {type(error).__name__}: {error}")
    path = recorder.write()
    print("written:", path, sep="\n  ")
    if _WITH_PLOTS & {name.partition(":")[0] for name in chosen}:
        from benchmarks.plots import plots

        print(*plots(path), sep="\n  ")
    try:
        rewrite(path)
    except KeyError as missing:
        faults.append(f"README.md keeps its old figures: no row is recorded for {missing}.")
    print(*faults, sep="\n", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
