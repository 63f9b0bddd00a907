"""`make bench` measures and writes `benchmarks/results/<gpu>.json` and plots; `ARGS="kernels loop"` picks benches."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import torch

from benchmarks.builds import builds
from benchmarks.kernels import kernels
from benchmarks.loop import loop
from benchmarks.plots import plots
from benchmarks.profiles import profiles
from benchmarks.readme import rewrite
from benchmarks.report import report
from benchmarks.rows import Recorder
from grader.judge.machine import Machine

BENCHES = {"kernels": kernels, "loop": loop, "builds": builds, "profiles": profiles, "report": report}


def main(names: list[str]) -> int:
    """Runs the named benches, or all."""
    unknown = set(names) - set(BENCHES)
    if unknown:
        print(f"There is no bench {', '.join(sorted(unknown))}; there are: {', '.join(BENCHES)}.", file=sys.stderr)
        return 2
    if not torch.cuda.is_available():
        print("A benchmark needs a GPU; torch sees none here.", file=sys.stderr)
        return 2
    recorder = Recorder(Machine.measure("cuda"), datetime.now(UTC).date().isoformat())
    recorder.add("copy", "512 MiB, device to device", "bandwidth_gbps", "GB/s", recorder.machine.copy_gbps)
    for name in names or BENCHES:
        BENCHES[name](recorder)
    path = recorder.write()
    rewrite(path)
    print("written:", path, *plots(path), sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
