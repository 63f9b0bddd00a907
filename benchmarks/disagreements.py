"""Where the verdict without a GPU differs from the verdict with one: every file of the mistakes and the honest corpus.

    python -m benchmarks.disagreements simulator|cuda [--at-once N] [--limit-s S] [--only WORD …] [--anew]
    python -m benchmarks.disagreements table

The first form grades for correctness, without timing, several files at a time. Each verdict is a line of
`results/disagreements/<simulator or gpu>.jsonl`; a later run grades only files that are new or changed, and on another
GPU only those that no GPU graded. The second form compares both sides, and writes `results/disagreements/table.md`.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import re
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from benchmarks.limits import Limit, keep, kept
from benchmarks.rows import commit, file_stem
from grader.errors import GraderError
from grader.feedback.report import as_text
from grader.feedback.summary import summarize
from grader.hardware import gpus, toolkit
from grader.judge.service import Judge
from grader.results import RESULTS
from grader.verdict import Verdict
from tests.honest import corpus as honest
from tests.mistakes import corpus as mistakes

FOLDER = RESULTS / "disagreements"
_LIMIT_S = 3000.0
_MEASURED = ("time_gpu", "audit", "predict_ms")  # they compare with times: other work on the GPU changes the answer
_NO_VERDICT = "no verdict"
_OF_NEIGHBOURS = ("limit", "timeout")  # kinds of failures that other gradings may have caused
_NO_ROOM = re.compile(r"holds so much of the GPU's memory|CUDA out of memory")
_FOLDERS = re.compile(r"/[^\s'\"]*/site-packages/")
_VERDICTS = {"passed": "right", "failed": "wrong", "unusable": "wrong", "not_judged": "not judged"}
_OF_TIME = "Without a GPU the compiled code decides; on one, the time does, with the gate's points."
_OFTEN_ZERO = "New memory of a GPU often holds zeros; the simulator fills it with NaN."
_OF_WAITS = (
    "Without a GPU the calls that ask it for a value are counted; on one, the time decides, with the gate's points."
)
_ONLY_SPEED = "It is right but slow: only the points for speed, which this comparison leaves out, are lost."
_RACE_OF_STREAMS = "A race: untimed, the other stream's work is done when it is looked at."
_OF_NEIGHBOURS_TIMES = "It depends on measured times, which other work on the GPU changed."
_TOO_SLOW = "On a GPU, one thread takes longer for all frequencies than the time limit."
_OTHER_WORDS = "Each compiler has its own words for it; both name the bug."
_NAMED_SINCE = "The verdict is older than the sentence that names it from the source, which has not run on a GPU."
_ONLY_ADDRESSES = "A GPU reports an illegal address, but not the argument from which it came."
_ONLY_VALUES = "The simulator sees each access; a GPU gives only wrong values, which many bugs explain."
_LADDER = (
    "ls_cupy_fastmath/no_fast_math", "ls_cupy_typed/doubles_inside_the_loop", "ls_numba_cached/compiled_in_each_call",
    "ls_numba_fastmath/not_fast", "ls_numba_typed/float64_literals", "ls_numba_unsigned/not_fast",
    "ls_numba_unsigned/range_of_unsigned", "ls_numba_unsigned/signed_bound", "ls_numba_unsigned/signed_index",
    "ls_cupy_cached/dict_in_the_function", "ls_cupy_launch_bounds/no_promise_for_doubles",
    "ls_cupy_typed/literals_in_the_phase", "ls_numba_registers/low_cap_for_doubles",
    "ls_numba_registers/without_fast_math", "ls_cupy_fatbin/without_fast_math", "ls_numba_unsigned/counts_down",
)  # fmt: skip

# Why a file may differ. A file that is not here should get the same verdict twice.
REASONS = {
    **{f"mistakes/{name}": _OF_TIME for name in _LADDER},
    "mistakes/grayscale/four_bytes_a_pixel": _ONLY_VALUES,
    "mistakes/matmul_tiled/tile_edges_not_zeroed": _ONLY_VALUES,
    "mistakes/mean_triton/too_few_parts": _ONLY_VALUES,
    "mistakes/mean_cuda/error_as_a_number": _ONLY_VALUES,
    "mistakes/ls_open/arguments_exchanged": _ONLY_ADDRESSES,
    "mistakes/ls_cupy_baseline/arrays_before_numbers": _ONLY_ADDRESSES,
    "mistakes/square_matrix/pointers_to_rows": _ONLY_ADDRESSES,
    "mistakes/mean_cuda/threads_add_without_an_atomic": _NAMED_SINCE,
    "mistakes/mean_cuda/vector_of_the_host": _NAMED_SINCE,
    "mistakes/square_matrix/function_of_the_host": _OTHER_WORDS,
    "mistakes/ls_cupy_baseline/stream_is_not_joined": _OTHER_WORDS,
    "mistakes/transpose/tile_too_large": _OTHER_WORDS,
    "mistakes/mean_cuda/mask_of_half_a_warp": "Undefined in CUDA; this GPU's warps exchanged all values nevertheless.",
    "mistakes/grayscale/weights_of_24_bits": "Undefined in C++; on this GPU the sum wraps around, and "
    "its low byte is right.",
    "mistakes/leaky_relu_op/default_stream": "The simulator has one stream and no CUDA graphs.",
    "mistakes/ls_numba_baseline/y_dot_unwritten": _OFTEN_ZERO,
    "mistakes/ls_cupy_baseline/uninitialised_y_dot": _OFTEN_ZERO,
    "mistakes/ls_open/tile_read_to_its_end": "A GPU's shared memory holds what was there before; the simulator fills "
    "it with NaN, which shows in every power.",
    "mistakes/ls_open/one_thread_recurs_down": _TOO_SLOW,
    "mistakes/ls_open/one_thread_recurs_over_all": _TOO_SLOW,
    "mistakes/mean_cuda/scratch_too_short": "A GPU does not notice writes past a tensor where the memory is PyTorch's, "
    "too.",
    "mistakes/mean_cuda/warp_in_step": "A race: the threads of a warp happened to run in step.",
    "mistakes/mean_triton/no_other": "A masked load without `other` may return anything; a GPU often returns 0.",
    "mistakes/square_matrix/refusal_as_a_number": "The GPU's own launch tells only the number of the error.",
    "mistakes/square_matrix/stream_is_not_joined": _RACE_OF_STREAMS,
    "mistakes/time_gpu/maximum": _OF_NEIGHBOURS_TIMES,
    "mistakes/time_gpu/single_call_after_ten": _OF_NEIGHBOURS_TIMES,
    "mistakes/mean_triton/one_element_at_a_time": "The simulator is too slow for it. On a GPU the loop ends in time, "
    "and one float32 sum of all elements has lost digits.",
    "mistakes/mean_triton/tickets_not_set_back": "On a GPU each case has several launches, and the second already "
    "fails; without one, the first is right.",
    "mistakes/ls_numba_registers/cap_too_low": _ONLY_SPEED,
    "mistakes/transpose/slow": _ONLY_SPEED,
    "mistakes/softmax/over_columns": "The simulator is too slow for it where other work shares the processor.",
    "mistakes/unblock/one_wait_left": _OF_WAITS,
    "mistakes/unblock/still_blocking": _OF_WAITS,
    "mistakes/unblock/synchronizes": _OF_WAITS,
    "mistakes/vector_add/nobody_waits_for_its_stream": _RACE_OF_STREAMS,
    "mistakes/vector_add/threads_in_the_grid": "It is slow, not wrong: too slow for the simulator, and on a GPU the "
    "time decides.",
}


@dataclass(frozen=True)
class Text:
    """A file. `expected`: right or wrong. `says`: the words that name the bug, without and with a GPU."""

    name: str
    exercise: str
    source: str
    expected: Literal["right", "wrong"]
    says: tuple[str, str] = ("", "")
    runs: str = "anywhere"

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.source.encode()).hexdigest()


@dataclass(frozen=True)
class Graded:
    """A line of the results. `named`: whether the report has the words that name the bug; None for right work."""

    file: str
    exercise: str
    expected: str
    verdict: str
    said: str
    named: bool | None
    notes: tuple[str, ...]
    seconds: float
    sha256: str
    gpu: str
    commit: str


def texts(only: Sequence[str] = ()) -> list[Text]:
    """All files whose names have one of the words `only`; one of each exercise, then the next of each.

    Files that need a package that is missing here are left out. Those of exercises that measure times come last.
    """
    found = [
        Text(f"mistakes/{each.name}.py", each.exercise, each.source, "right" if each.right else "wrong",
             (each.says, each.on_gpu), each.runs)
        for each in mistakes.corpus()
    ] + [
        Text(f"honest/{each.name}", each.exercise, each.source, "right")
        for each in honest.corpus() if not (each.needs and each.lacks)
    ]  # fmt: skip
    groups: dict[str, list[Text]] = defaultdict(list)
    for each in found:
        if not only or any(word in each.name for word in only):
            groups[each.exercise].append(each)
    turns = [each for turn in zip_longest(*groups.values()) for each in turn if each is not None]
    return sorted(turns, key=lambda each: each.exercise in _MEASURED)


def said(verdict: Verdict, source: str) -> str:
    """The first sentence of the report about what is wrong, or ""."""
    failing = next((case.failure for case in verdict.cases if case.failure), None)
    if (failure := verdict.failure or failing) is not None:
        return failure.message
    if verdict.status == "passed":
        return ""
    words = summarize(verdict, source)
    return words.sentences[0] if words.sentences else words.failure_name


def grade_all(
    todo: Sequence[Text], device: str, at_once: int, lines: Path, limit: Limit, judge: Callable[[], Judge]
) -> None:
    """Grade the files in `at_once` threads with a judge each. Each verdict is written at once.

    A verdict that other gradings may have caused is not written. These files follow, one at a time. When the limit is
    over, the gradings that still run are ended.
    """
    lines.parent.mkdir(parents=True, exist_ok=True)
    crowded = _grade_group(todo, device, at_once, lines, limit, judge)
    _grade_group(crowded, device, 1, lines, limit, judge)


def _grade_group(
    todo: Sequence[Text], device: str, threads: int, lines: Path, limit: Limit, judge: Callable[[], Judge]
) -> list[Text]:
    """Return the files whose verdict the other gradings may have caused; these are not written."""
    waiting, crowded, lock = list(reversed(todo)), list[Text](), threading.Lock()
    judges = [judge() for _ in range(min(threads, len(todo)))]

    def work(own: Judge) -> None:
        while limit.left() > 0:
            with lock:
                if not waiting:
                    return
                text = waiting.pop()
            row, of_neighbours = _graded(own, text, device)
            if limit.left() <= 0:
                return  # it was interrupted
            with lock:
                if of_neighbours and threads > 1:
                    crowded.append(text)
                    continue
                keep(lines, asdict(row))
                print(f"{row.file:64} {row.verdict:10} {row.seconds:6.1f} s  {row.said[:100]}", flush=True)

    running = [threading.Thread(target=work, args=(each,), daemon=True) for each in judges]
    for each in running:
        each.start()
    for each in running:
        each.join(max(0.0, limit.left()))
    for own, each in zip(judges, running, strict=True):
        if each.is_alive():
            own.interrupt()
        each.join()
        own.close()
    return crowded


def _graded(judge: Judge, text: Text, device: str) -> tuple[Graded, bool]:
    """Return the row, and whether other gradings at that time may have caused its verdict.

    They may if the file ran out of memory or time, or compares its answer with times. A verdict that is the expected
    one, with the words that name the bug, is beyond doubt.
    """
    begun = time.monotonic()
    gpu, notes, named, kind = "", tuple[str, ...](), None, ""
    try:
        verdict = judge.grade(text.source, text.exercise, timed=False)
    except GraderError as error:
        outcome, sentence = _NO_VERDICT, f"{type(error).__name__}: {error}"
    else:
        outcome, sentence, gpu = _VERDICTS[verdict.status], said(verdict, text.source), verdict.environment.gpu
        notes = tuple(each.sentence for each in verdict.findings)
        failures = [verdict.failure, *(case.failure for case in verdict.cases)]
        kind = next((each.kind for each in failures if each is not None), "")
        if text.expected == "wrong":
            report = " ".join(as_text(verdict, text.source).split())
            named = text.says[device == "cuda"] in report
    as_expected = outcome == text.expected and named is not False
    if _NO_ROOM.search(sentence) and not as_expected:
        outcome = _NO_VERDICT  # other work on the GPU has the memory
    row = Graded(
        text.name, text.exercise, text.expected, outcome, _FOLDERS.sub("", " ".join(sentence.split())), named, notes,
        round(time.monotonic() - begun, 1), text.sha256, gpu, commit(),
    )  # fmt: skip
    measures = device == "cuda" and text.exercise in _MEASURED
    return row, (kind in _OF_NEIGHBOURS or measures) and not as_expected


def _of_today(rows: Iterable[dict[str, object]], chosen: Sequence[Text]) -> dict[str, dict[str, object]]:
    """The last row of each file whose text is unchanged."""
    known = {each.name: each.sha256 for each in chosen}
    return {str(row["file"]): row for row in rows if known.get(str(row["file"])) == row["sha256"]}


def table(
    without: dict[str, dict[str, object]], on_gpus: Mapping[str, dict[str, dict[str, object]]], chosen: Sequence[Text]
) -> str:
    """The page: how many verdicts agree, then a row per file and GPU with two different ones, and why.

    `without`: the rows by file; `on_gpus`: the same by the GPU's name. Only files that both sides graded count.
    """
    pairs = [
        (each, gpu, without[each.name], rows[each.name])
        for each in sorted(chosen, key=lambda each: each.name)
        for gpu, rows in on_gpus.items() if _judged(without, each) and _judged(rows, each)
    ]  # fmt: skip
    differing = [pair for pair in pairs if pair[2]["verdict"] != pair[3]["verdict"]]
    both, apart = {each.name for each, *_ in pairs}, {each.name for each, *_ in differing}
    agree = Counter(str(without[name]["verdict"]) for name in both - apart)
    graded = ", ".join(f"{number} on an {gpu}" for gpu, number in Counter(gpu for _, gpu, *_ in pairs).items())
    lines = [
        "# Verdicts without a GPU and with one", "",
        f"{len(both)} of {len(chosen)} files of `tests/mistakes` and `tests/honest` were graded on both sides, for "
        f"correctness only ({graded}). "
        f"On {len(both - apart)} the verdicts agree "
        f"({', '.join(f'{number} {verdict}' for verdict, number in sorted(agree.items()))}). "
        f"On {len(apart)} they differ:", "",
        "| File | It is | Without a GPU | With a GPU | GPU | Reason |", "| --- | --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    for each, gpu, ours, theirs in differing:
        lacks = "" if ours["verdict"] != "not judged" else "The simulator lacks it, and says so."
        cells = (each.name.removesuffix(".py"), each.expected, _cell(ours), _cell(theirs), gpu, lacks or _reason(each))
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    unnamed = {
        f"- `{each.name.removesuffix('.py')}` {where}: {row['said'] or 'right'} {_reason(each)}".rstrip(): None
        for each, gpu, ours, theirs in pairs
        for where, row in (("without a GPU", ours), (f"on an {gpu}", theirs))
        if row["named"] is False and row["verdict"] == "wrong"
    }
    if unnamed:
        lines += ["", "Wrong on both or on one, but the report lacks the words that name the bug:", "", *unnamed]
    return "\n".join(lines) + "\n"


def _judged(rows: dict[str, dict[str, object]], text: Text) -> bool:
    return text.name in rows and rows[text.name]["verdict"] != _NO_VERDICT


def _cell(row: dict[str, object]) -> str:
    return f"{row['verdict']}: {str(row['said'])[:160]}" if row["said"] else str(row["verdict"])


def _reason(text: Text) -> str:
    return REASONS.get(text.name.removesuffix(".py")) or REASONS.get(text.exercise, "")


def _by_gpu(chosen: Sequence[Text]) -> dict[str, dict[str, dict[str, object]]]:
    """The rows of today by the GPU's name."""
    found: dict[str, dict[str, dict[str, object]]] = {}
    for path in sorted(FOLDER.glob("*.jsonl")):
        rows = _of_today(kept(path), chosen)
        if gpu := next((str(row["gpu"]) for row in rows.values() if row["gpu"]), ""):
            found[gpu] = rows
    return found


def _write_table() -> int:
    chosen = texts()
    page = table(_of_today(kept(FOLDER / "simulator.jsonl"), chosen), _by_gpu(chosen), chosen)
    FOLDER.joinpath("table.md").write_text(page, encoding="utf-8")
    print(page)
    return 0


def main(arguments: Sequence[str]) -> int:
    """The command. Return 1 if files are left."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.disagreements")
    parser.add_argument("what", choices=("simulator", "cuda", "table"))
    parser.add_argument("--at-once", type=int, default=2, help="how many files to grade at a time")
    parser.add_argument("--limit-s", type=float, default=_LIMIT_S)
    parser.add_argument("--only", nargs="*", default=[], help="words of which a file's name must have one")
    parser.add_argument("--anew", action="store_true", help="also grade files that have a verdict")
    parser.add_argument("--unforked", action="store_true", help="start each worker anew, as in a learner's session")
    asked = parser.parse_args(arguments)
    if asked.what == "table":
        return _write_table()
    device: Literal["cuda", "simulator"] = asked.what
    limit = Limit(asked.limit_s)
    names = gpus() if device == "cuda" else []
    lines = FOLDER / (f"{file_stem(names[0].name)}.jsonl" if names else f"{device}.jsonl")
    chosen = texts(asked.only)
    sides = _by_gpu(chosen).values() if device == "cuda" else [_of_today(kept(lines), chosen)]
    todo = [each for each in chosen if asked.anew or not any(_judged(rows, each) for rows in sides)]
    with contextlib.ExitStack() as stack:
        if device == "simulator" and not asked.unforked:
            from tests.forked import fork_servers, use

            use(*stack.enter_context(fork_servers()))
        gpu = "" if device == "simulator" else None
        grade_all(todo, device, asked.at_once, lines, limit, lambda: Judge(device, gpu=gpu))
    left = [each for each in todo if not _judged(_of_today(kept(lines), chosen), each)]
    print(f"{len(chosen) - len(left)} of {len(chosen)} files have a verdict.")
    return 1 if left else 0


if __name__ == "__main__":
    os.environ.update(toolkit(os.environ))
    sys.exit(main(sys.argv[1:]))
