"""The steps of `benchmarks.evidence`, the most telling first: what each runs, and its time limit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.__main__ import is_known
from grader.results import RESULTS
from tests.exploits.corpus import PREFIXES, exploits

ROOT = Path(__file__).parents[1]
_PYTEST = ("-m", "pytest", "-m", "gpu", "-q", "--tb=short", "--durations=10", "-p", "no:cacheprovider")
_MISTAKES = "tests/mistakes/test_mistakes.py::test_on_a_gpu_a_bug_is_named_and_right_work_passes"
_EXPLOITS = "tests/exploits/test_exploits.py::test_it_gains_nothing_on_a_gpu"
_GRADING = "tests/judge/test_grading_gpu.py"
_STAGED = "tests/judge/test_staged.py"  # the references again, by the practice clock
_MEASURE_THEMSELVES = ("time_gpu", "audit", "predict_ms")  # other work on the GPU changes the right answer
_CORRECT = (  # other tests that need a GPU: they check results, not speed
    "tests/protocol", "tests/exercises", "tests/test_hardware.py", "tests/test_doctor.py",
    "tests/bottleneck",
)  # fmt: skip
_NOTEBOOKS = ("-m", "pytest", "-q", "--tb=short", "--durations=40", "-p", "no:cacheprovider")  # they have no mark
_BENCHES_S = {  # time limits of benches; the others have `_BENCH_S`
    "ladder": 240, "matmuls": 200, "means": 120, "traces": 240, "fusion": 150, "lies": 150, "reductions": 180,
    "operators": 150, "kernels": 500, "clock:agreement": 200, "clock:repeats": 240, "clock:pairs": 420,
    "clock:noise": 180, "clock:looks": 180, "clock:streams": 180, "flips": 560, "throughput:ours": 560,
    "throughput:stock": 560, "throughput:stages": 180, "throughput:kernels": 400,
    "throughput:gpus": 560, "clock:practice": 560, "throughput:bare_ours": 300, "throughput:bare_stock": 560,
    "slow": 440, "slow:again": 400, "slow:why": 400, "soak": 560, "kills": 560, "serve": 320, "loop": 200,
    "matmuls:sweep": 500,
}  # fmt: skip
_BENCH_S = 90
START_AND_WRITE_S = 25.0  # of a bench's limit, for its start and its rows


@dataclass(frozen=True)
class Step:
    """`command`: the arguments for Python. `quiet`: it must run alone on its GPU."""

    name: str
    command: tuple[str, ...]
    limit_s: float = 300.0
    quiet: bool = True
    environment: dict[str, str] = field(default_factory=dict)


def known(out: Path) -> list[Step]:
    """Return all steps, the most telling first."""
    course = (
        "ladder", "past", "matmuls", "means", "widths", "periods", "stopwatches", "traces", "ceilings", "fusion",
        "graphs", "launches", "languages", "softmaxes", "lies", "bytes", "reductions", "operators", "kernels",
    )  # fmt: skip
    long = ("slow", "flips", "throughput:ours", "throughput:stock", "soak", "kills", "serve")
    return [
        _tests("judge-fused-and-sandbox", "tests/judge/checking/test_fused_compare.py", "tests/judge/sandbox"),
        _tests("grading", _GRADING, "-k", "reference_solution", limit_s=540),
        _tests("grading-staged", _STAGED, limit_s=540),
        _tests("grading-endings", _GRADING, "-k", "not reference_solution and not plot"),
        _tests("workers", "tests/worker", "tests/explore"),
        _tests("judge", "tests/judge", "tests/leaderboard/test_ranking.py",
               "--ignore=tests/judge/checking/test_fused_compare.py", "--ignore=tests/judge/sandbox",
               f"--ignore={_GRADING}", f"--ignore={_STAGED}"),
        _tests("others", *_CORRECT, quiet=False),
        *map(_bench, course),
        *_mistakes(),
        *_notebooks(out),
        *map(_bench, ("clock:noise", "clock:looks", "clock:streams")),
        *map(_bench, ("clock:agreement", "clock:repeats", "clock:pairs")),
        _tests("recovery", "tests/exploits/test_recovery.py", limit_s=560),
        *(_exploits(f"exploits-{kind}", kind) for kind in PREFIXES),
        _tests("honest", "tests/honest", limit_s=400),
        _disagreements("cuda"),
        _disagreements("simulator"),
        _tests("plots", _GRADING, "-k", "plot", limit_s=540),
        *map(_bench, long),
    ]  # fmt: skip


def step(name: str, out: Path) -> Step:
    """Return the step of this name.

    A name may also be `tests:PATH`, `mistakes:EXERCISE`, `notebook:CHAPTER/NAME` (solved), a bench, or a share
    (`exploits-timing/1-of-2`, `flips/1-of-2`). `exploits:WORD,WORD` are the exploits whose names have one of the words.

    Raises:
        LookupError: there is no such step.
    """
    kind, _, rest = name.partition(":")
    if found := [each for each in known(out) if each.name == name]:
        return found[0]
    if kind == "tests" and (ROOT / rest.partition("::")[0]).exists():
        return _tests(name, rest)
    if kind == "mistakes" and (ids := _ids({rest}, None)):
        return _tests(name, *ids)
    if kind == "notebook" and (ROOT / "source" / f"{rest}.py").exists():
        return _notebook(name, f"test_it_runs and {' and '.join(rest.split('/'))}", True, out)
    if part := re.fullmatch(rf"(exploits-({'|'.join(PREFIXES)})|flips)/(\d+)-of-(\d+)", name):
        share, shares = int(part[3]), int(part[4])
        if 1 <= share <= shares:
            return _exploits(name, part[2], share - 1, shares) if part[2] else _flips(name)
    if kind == "exploits" and rest and (chosen := _with_a_word(rest.split(","))):
        return _exploits_named(name, chosen)
    if is_known(name):
        return _bench(name)
    raise LookupError(f"There is no step {name!r}; --list names all.")


def _notebooks(out: Path) -> list[Step]:
    """Return one step per chapter, which runs alone because solved notebooks time their gates, and the others."""
    chapters = sorted(path.name for path in (ROOT / "source").iterdir() if path.is_dir())
    chosen = {f"notebooks-{chapter}": f"test_it_runs and {chapter}" for chapter in chapters}
    others = {"notebooks-others": "not test_it_runs or README"}
    return [_notebook(name, words, name in chosen, out) for name, words in (chosen | others).items()]


def _notebook(name: str, words: str, quiet: bool, out: Path) -> Step:
    command = (*_NOTEBOOKS, "tests/course/test_notebooks.py", "-k", words)
    return Step(name, command, 580, quiet, {"GRADER_NOTEBOOKS": str(out / "notebooks")})


def _tests(name: str, *arguments: str, limit_s: float = 300.0, quiet: bool = True) -> Step:
    return Step(name, (*_PYTEST, *arguments), limit_s, quiet)


def _disagreements(device: str) -> Step:
    """Return the step that grades both corpora on a device, as far as its time allows; a second run continues."""
    command = ("-m", "benchmarks.disagreements", device, "--at-once", "6", "--limit-s", "520")
    return Step(f"disagreements-{device}", command, 560, quiet=device == "cuda")


def _bench(name: str) -> Step:
    seconds = _BENCHES_S.get(name, _BENCH_S)
    limit = {"BENCH_LIMIT_S": str(seconds - START_AND_WRITE_S)}  # so that a bench stops in time
    return Step(name, ("-m", "benchmarks", name), seconds, environment=limit)


def _flips(name: str) -> Step:
    whole = _bench("flips")
    return replace(whole, name=name, environment={**whole.environment, "FLIPS_SHARE": name.partition("/")[2]})


def _exploits(name: str, kind: str, share: int = 0, shares: int = 1) -> Step:
    """Return a step for a kind's exploits, or for a contiguous share of them, as the judge loads the next ones ahead.

    The results go to `benchmarks/results/exploits`.
    """
    names = [each.name for each in exploits() if each.name.startswith(f"{kind}_")]
    return _exploits_named(name, names[share * len(names) // shares : (share + 1) * len(names) // shares])


def _with_a_word(words: Sequence[str]) -> list[str]:
    return [each.name for each in exploits() if any(word and word in each.name for word in words)]


def _exploits_named(name: str, chosen: Sequence[str]) -> Step:
    tests = _tests(name, *(f"{_EXPLOITS}[{each}]" for each in chosen), limit_s=560)
    return replace(tests, environment={"EXPLOITS_OUT": str(RESULTS / "exploits")})


def _mistakes() -> list[Step]:
    """Return two steps per chapter: mistakes that are wrong at any speed run in parallel, the others alone."""
    from grader.exercises import EXERCISES

    by_chapter: dict[str, set[str]] = {}
    for exercise in EXERCISES.values():
        by_chapter.setdefault(exercise.chapter, set()).add(exercise.id)
    return [
        _tests(f"mistakes-{chapter}{'-timed' * timed}", *_ids(exercises, timed), limit_s=400, quiet=timed)
        for timed in (False, True)
        for chapter, exercises in by_chapter.items()
    ]


def _ids(exercises: set[str], timed: bool | None) -> list[str]:
    """Return pytest's ids of the corpus's files. `timed`: only those that are, or are not, also judged by time."""
    from tests.mistakes.corpus import corpus

    return [
        f"{_MISTAKES}[{each.name}]"
        for each in corpus()
        if each.exercise in exercises and each.runs != "simulator"
        and timed in (None, each.right or each.runs == "gpu" or each.exercise in _MEASURE_THEMSELVES)
    ]  # fmt: skip
