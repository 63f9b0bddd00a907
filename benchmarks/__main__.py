"""`make bench` measures and writes `benchmarks/results/<gpu>.json` and plots; `ARGS="kernels loop"` picks benches.

`clock`, `throughput`, `soak` and `kills` write what they have as they go, end within `BENCH_LIMIT_S` seconds each where
that is set, and keep their state under `BENCH_STATE` (`build/bench`): called again, `throughput:stock`, `clock:pairs`
and `kills` go on where they were.
"""

from __future__ import annotations

import sys
import traceback
from datetime import UTC, datetime

import torch

from benchmarks.builds import builds
from benchmarks.bytes import moves
from benchmarks.ceilings import ceilings
from benchmarks.clock import agreement, clock, repeats
from benchmarks.flips import flips
from benchmarks.fusion import fusion
from benchmarks.kernels import kernels
from benchmarks.kills import kills
from benchmarks.lies import lies
from benchmarks.limits import Fault
from benchmarks.loop import loop
from benchmarks.operators import operators
from benchmarks.pairs import pairs
from benchmarks.plots import plots
from benchmarks.profiles import profiles
from benchmarks.readme import rewrite
from benchmarks.reductions import reductions
from benchmarks.report import report
from benchmarks.rows import Recorder
from benchmarks.soak import soak
from benchmarks.stopwatches import stopwatches
from benchmarks.throughput import ours, stock, throughput
from benchmarks.traces import traces
from grader.judge.machine import Machine

BENCHES = {
    "kernels": kernels, "loop": loop, "builds": builds, "profiles": profiles, "report": report,
    "clock": clock, "throughput": throughput, "soak": soak, "kills": kills, "flips": flips,
    "lies": lies, "stopwatches": stopwatches,
    "operators": operators, "ceilings": ceilings,
    "bytes": moves, "reductions": reductions,
    "fusion": fusion, "traces": traces,
}  # fmt: skip
PARTS = {
    "clock:agreement": agreement, "clock:repeats": repeats, "clock:pairs": pairs,
    "throughput:ours": ours, "throughput:stock": stock,
}  # fmt: skip
_IN_THE_README = {"kernels", "loop", "builds"}  # these write all of the rows that it states


def main(names: list[str]) -> int:
    """Runs the named benches, or all; one whose figures are not what is needed does not keep the next from running."""
    known = BENCHES | PARTS
    unknown = set(names) - set(known)
    if unknown:
        print(f"There is no bench {', '.join(sorted(unknown))}; there are: {', '.join(known)}.", file=sys.stderr)
        return 2
    if not torch.cuda.is_available():
        print("A benchmark needs a GPU; torch sees none here.", file=sys.stderr)
        return 2
    chosen = names or list(BENCHES)
    recorder = Recorder(Machine.measure("cuda"), datetime.now(UTC).date().isoformat())
    in_readme = bool(_IN_THE_README & set(chosen))
    if in_readme:
        recorder.add("copy", "512 MiB, device to device", "bandwidth_gbps", "GB/s", recorder.machine.copy_gbps)
    faults = []
    for name in chosen:
        try:
            known[name](recorder)
        except Fault as fault:
            faults.append(str(fault))
        except (Exception, SystemExit) as error:  # GPU time is dear: the next bench may still work
            traceback.print_exc()
            faults.append(f"{name}: {type(error).__name__}: {error}")
        recorder.write()
    path = recorder.write()
    print("written:", path, sep="\n  ")
    if in_readme:
        rewrite(path)
        print(*plots(path), sep="\n  ")
    print(*faults, sep="\n", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
