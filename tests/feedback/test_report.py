"""The report: complete, self-contained, escaped, and the same story in HTML and in text."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from grader.exercises import find
from grader.feedback.report import as_html, as_text
from grader.feedback.summary import NEEDS_GPU, gate_words, notes, state_of, summarize, without_quotes
from grader.verdict import Breakdown, CaseResult, Failure, Finding, GateResult, Timing, Verdict
from tests.feedback.verdicts import ALL, CLOCK, GPU, SIMULATOR, SOURCE, failing, make

_VOID = {"br", "hr", "img", "input", "link", "meta", "rect", "line", "path"}


class Reader(HTMLParser):
    """The text that is shown, the attributes, and whether every tag is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(html)
        self.close()

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open, tag
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)


def test_a_missed_gate_is_explained() -> None:
    """Each cause has its line, its gain if known, and what it rests on; without one the report says so."""
    for said in (Reader(as_html(ALL["slow_and_why"], SOURCE)).text, " ".join(as_text(ALL["slow_and_why"]).split())):
        assert "Line 16: one call launches a kernel 99 times. Do all of it in one launch (up to 4.0× faster;" in said
        assert "Give each thread fewer values to hold (evidence: the compiled code)." in said
    assert "The evidence so far shows no cause." in " ".join(as_text(ALL["slow"]).split())
    assert "Why it is slow" not in as_text(ALL["passed"])


def test_a_missed_gate_is_shown_on_the_roofline() -> None:
    """There is a picture, and a text that says the same. Unknown ceilings and a passed gate show neither."""
    slow = ALL["slow_and_why"]
    known = replace(slow.environment, peak_tflops=50.0)
    html, text = as_html(replace(slow, environment=known)), as_text(replace(slow, environment=known))
    said = "operations per byte, memory is the limit of this GPU. The kernel reaches"
    assert said in " ".join(text.split())
    assert html.count(said) == 2
    for other in (slow, replace(ALL["passed"], environment=known)):
        assert "On the roofline" not in as_html(other) + as_text(other)


def test_a_missed_gate_shows_where_the_time_goes() -> None:
    """A bar with its parts in words, and the lines with their shares; as text, too, and nothing if none is known."""
    html, text = as_html(ALL["slow_and_why"]), as_text(ALL["slow_and_why"])
    assert 'aria-label="bytes that must move 40%; extra bytes 35%; launches and waiting 25%"' in html
    assert '<div style="width:35.0%;background:var(--gr-warn)" title="extra bytes 35%">' in html
    assert "10 75% x = tl.load(x_ptr + row * stride + offsets, mask=offsets < n)" in Reader(html).text
    assert "extra bytes           35% ██████████████\n" in text
    assert "    10   75%  x = tl.load(x_ptr + row * stride + offsets, mask=offsets < n)" in text
    assert "Where the time goes" in text
    for unknown in (None, Breakdown()):
        verdict = replace(ALL["slow_and_why"], breakdown=unknown)
        assert "Where the" not in as_html(verdict) + as_text(verdict)
    passed = replace(ALL["passed"], breakdown=ALL["slow_and_why"].breakdown)
    assert "Where the" not in as_html(passed) + as_text(passed)


@pytest.fixture(params=list(ALL))
def verdict(request: pytest.FixtureRequest) -> Verdict:
    """Each thing that can happen."""
    return ALL[request.param]


def test_html_is_one_closed_fragment_without_requests(verdict: Verdict) -> None:
    """Every tag is closed, nothing is fetched, no script runs, and no id could clash with the page's."""
    html = as_html(verdict, SOURCE)
    read = Reader(html)

    assert read.open == []
    assert read.tags.isdisjoint({"script", "link", "iframe", "img", "object", "form"})
    assert not {name for name, _ in read.attributes} & {"id", "href", "src", "onclick", "onload"}
    assert "url(" not in html
    assert "@import" not in html
    assert "http" not in html


def test_html_and_text_tell_the_same(verdict: Verdict) -> None:
    """Both reports have the headline, points, sentences, next step and environment."""
    summary = summarize(verdict)
    html, text = Reader(as_html(verdict)).text, " ".join(as_text(verdict).split())

    notes = [each.sentence for each in summary.notes]
    for said in (summary.headline, summary.points, *summary.sentences, *notes, summary.next_step, summary.environment):
        plain = said.replace("`", "")
        assert " ".join(plain.split()) in re.sub(r" ([?.,;:)])", r"\1", html.replace("“ ", "“")) or plain in html
        assert " ".join(said.split()) in text


def test_text_fits_a_terminal(verdict: Verdict) -> None:
    """No line of the report is longer than 100 columns."""
    assert [line for line in as_text(verdict).splitlines() if len(line) > 100] == []


def test_there_is_one_next_step_always(verdict: Verdict) -> None:
    """Every report says once what to do next, in whole sentences."""
    step = summarize(verdict).next_step

    assert as_text(verdict).count("Next: ") == 1
    assert step[-1] in ".?"
    assert step.count("check again") <= 1


@pytest.mark.parametrize(
    ("name", "state"),
    [("passed", "passed"), ("doubt", "passed"), ("simulated", "untimed"), ("slow", "slow"), ("mismatch", "wrong"),
     ("crash", "broken"), ("compile", "broken"), ("limit", "broken"), ("implausible", "held"), ("noted", "passed"),
     ("not_written", "not_written"), ("unusable", "unusable"), ("not_judged", "not_judged")],
)  # fmt: skip
def test_states(name: str, state: str) -> None:
    """Each verdict has its state."""
    assert state_of(ALL[name]) == state


def test_without_a_gpu_no_speed_is_claimed() -> None:
    """A simulated verdict says so and how many points need a GPU, and shows no bar and no ratio."""
    html, text = as_html(ALL["simulated"]), as_text(ALL["simulated"])

    assert NEEDS_GPU in html
    assert " ".join(NEEDS_GPU.split()) in " ".join(text.split())
    assert "4 of 10 points" in text
    assert "6 points for speed need a GPU" in " ".join(text.split())
    assert "needs a GPU" in html
    assert 'class="gr-gate"' not in html
    assert "GB/s" not in text


def test_right_in_the_simulator_says_what_it_cannot_see() -> None:
    """While points are open, the report names them and never says that nothing is left to do."""
    html, text = as_html(ALL["simulated"]), " ".join(as_text(ALL["simulated"]).split())

    assert text.startswith("✓ Right in the simulator: Fuse a softmax.")
    assert "It cannot see speed" in text
    assert "It cannot see speed" in html
    assert "Nothing is left" not in text + html
    assert "in the simulator:" not in as_text(ALL["passed"])


def test_what_the_simulator_does_not_have_is_not_held_against_the_work() -> None:
    """The report is not red, shows no failed case, no points lost, no hint, and where to have it judged."""
    html, text = as_html(ALL["not_judged"]), " ".join(as_text(ALL["not_judged"]).split())

    assert text.startswith("– Not judged here: Reduce to a mean. – of 5 points; 5 points need a GPU.")
    assert "The simulator has no header `mma.h`; on a GPU it will be judged; this says nothing about your work." in text
    assert "on a machine with a GPU" in text
    assert "gr-plain" in html
    assert "✗" not in text + html
    assert "Hint" not in text + html


def test_speed_is_shown_with_interval_and_mark() -> None:
    """A measured gate has its ratio, its interval, its mark and its points, in words and as a bar."""
    html, text = as_html(ALL["slow"]), as_text(ALL["slow"])

    assert "1.07× as fast as torch.softmax (95 %: 1.05 to 1.09), 1.2× needed: 0 of 3 points." in text
    assert html.count('class="gr-gate"') == 2
    assert html.count('class="gr-whisker"') == 6
    assert "59%" in html
    assert "2,500 GB/s" in text


@pytest.mark.parametrize(
    ("exercise_id", "said"),
    [
        ("matmul", "4096 × 4096 × 4096, 2 × the rows: yours"),
        ("vector_add", "33,554,432 elements, 2 × the elements: yours"),
        ("unblock", "2 × the columns: yours"),
        ("ls_open", "1,024 samples × 1,048,576 frequencies: yours"),  # it does not grow
    ],
)
def test_a_time_names_the_size_that_was_timed(exercise_id: str, said: str) -> None:
    """A fast GPU is timed on a larger size than the case's name says: time and rate must match."""
    name = find(exercise_id).timed_cases[0].name
    own = Timing(name, "submission", 300.0, 300.0, 300.0, 3000.0, 0.7, 7, 16, scale=2)
    verdict = make(exercise_id, GPU, status="failed", timings=(own,))
    assert said in " ".join(as_text(verdict).split())
    assert said.partition(":")[0] in as_html(verdict)


@pytest.mark.parametrize(
    ("exercise_id", "said"),
    [
        # 2 × 4096³ operations in 200 µs
        ("matmul", "687 TFLOPS, 90% of a float16 product's speed"),
        ("ls_open", "16 billion pairs/s"),
    ],
)
def test_speed_is_said_in_what_limits_it(exercise_id: str, said: str) -> None:
    """A product is not limited by GB/s, and a periodogram has no measured ceiling to have a share of."""
    exercise = find(exercise_id)
    case = exercise.timed_cases[0]
    us = 200.0 if exercise.work is None else exercise.work(case) / 16e3
    gbps = exercise.bytes_moved(case) / us / 1e3
    share = 0.9 if exercise.ceiling else None
    own = Timing(case.name, "submission", us, us, us, gbps, share, 7, 16)
    verdict = make(exercise_id, GPU, status="failed", timings=(own,))
    text, html = " ".join(as_text(verdict).split()), as_html(verdict)

    assert said in text
    assert "GB/s" not in text.replace("copy bandwidth 4,250 GB/s", "")
    assert f"yours, {exercise.rate_unit}" in html
    assert ("of a float16 product’s speed" in html) == bool(exercise.ceiling)
    assert (f"{said}," in text or "% of a" in text) == bool(exercise.ceiling)


def test_findings_take_no_points() -> None:
    """Both reports show each note once and say that notes take no points; they replace "Done"."""
    verdict, clean = ALL["noted"], ALL["passed"]
    html, text = Reader(as_html(verdict)).text, " ".join(as_text(verdict).split())

    for said in (
        "Rules: Line 14 calls", "this exercise asks for a Triton kernel that does this work.",
        "Clock: By its own CUDA events it took 0.71",
        "Timing: The GPU held its clock back: power cap, 1980 → 1410 MHz.",
        "Notes", "These notes take no points.",
    ):  # fmt: skip
        assert said in html
        assert html.count(said) == text.count(said) == 1
    assert html.count("pid 4242") == text.count("pid 4242") == 1
    assert "your instructor sees this note" not in html + text
    mine, plain = summarize(verdict), summarize(clean)
    assert (mine.headline, mine.tone, mine.sign, mine.points) == (plain.headline, plain.tone, plain.sign, plain.points)
    noted = "All cases are right. The person who grades will read the note about the rules."
    assert mine.next_step == plain.next_step.replace("Done.", noted)
    simulated = summarize(replace(ALL["simulated"], findings=verdict.findings))
    assert simulated.next_step == f"{noted} On a machine with a GPU, `check(softmax)` also measures the speed."


def test_without_findings_there_are_no_notes() -> None:
    """An undisturbed run has no empty part in its report."""
    assert "take no points" not in as_html(ALL["passed"])
    assert "take no points" not in as_text(ALL["passed"])


def test_what_may_be_published_quotes_nobody() -> None:
    """Names from a submission or a process are left out; the rest of each sentence stays."""
    said = [without_quotes(each) for each in notes(ALL["noted"])]

    assert said[0] == "Rules: Line 14 calls …: this exercise asks for a Triton kernel that does this work."
    assert said[2].startswith("Timing: Another process (pid 4242, …) used the GPU")
    assert "`" not in "".join(said)


def test_a_time_that_is_not_believed_is_held_and_not_condemned() -> None:
    """The report is not red: a person will review it, the judge may be mistaken, and the times are shown."""
    html, text = as_html(ALL["implausible"]), " ".join(as_text(ALL["implausible"]).split())

    assert "! Held for review: Fuse a softmax. 0 of 10 points" in text
    assert "gr-report gr-warn" in html
    assert "The judge may also be mistaken" in text
    assert "9 of 9 cases passed" in text
    assert "Times of one launch" in html
    assert "not measured" not in html + text
    assert "Hint" not in html + text


def test_the_foot_names_the_clock_and_the_gpus_state() -> None:
    """The report names clock, sandbox, clock rates and temperature; a simulator has none of these."""
    gpu, simulator = as_text(ALL["passed"]), as_text(make("softmax", replace(SIMULATOR, temperature_c=40)))

    assert f"clock: {CLOCK}" in " ".join(gpu.split())
    assert "at the end 1980 MHz, memory 3201 MHz, 41 °C" in " ".join(gpu.split())
    assert "clock" not in simulator
    assert "°C" not in simulator
    bare = make("softmax", replace(GPU, sm_clock_mhz=None, memory_clock_mhz=None, temperature_c=None))
    assert "at the end" not in as_text(bare)


def test_a_missing_sandbox_is_reported() -> None:
    """A report on a submission judged with --no-sandbox says so."""
    open_door = replace(GPU, sandbox="none: --no-sandbox was given")

    assert "sandbox: none: --no-sandbox was given" in as_html(make("softmax", open_door))
    assert "sandbox: none: --no-sandbox was given" in " ".join(as_text(make("softmax", open_door)).split())


def test_doubt_is_explained() -> None:
    """If the interval includes the gate, the submission gets the benefit of the doubt."""
    assert "benefit of the doubt" in as_text(ALL["doubt"])
    assert "≈" in as_text(ALL["doubt"])


def test_the_line_that_failed_is_shown() -> None:
    """With the cell's source, the report shows the line, its neighbours and a mark."""
    html, text = as_html(ALL["compile"], SOURCE), as_text(ALL["compile"], SOURCE)

    assert "<mark>  9 ▸     offsets = tl.arange(0, 100)</mark>" in html
    assert "9 ▸     offsets = tl.arange(0, 100)" in text
    assert "in line 9 of the cell" in text


def test_a_line_that_is_not_in_the_cell_is_no_problem() -> None:
    """A line number past the end, which a submission can forge, shows no excerpt."""
    assert "<mark>" not in as_html(ALL["compile"], "one line")


def test_the_map_of_a_wrong_region() -> None:
    """A partly wrong output has a map; a totally wrong one has none, because it would show nothing."""
    html = as_html(ALL["mismatch"])

    assert 'aria-label="Map of out: 83 rows of 781 elements. All wrong elements lie in columns 768 to 780 of' in html
    assert html.count('class="gr-wrong"') == 1
    assert 'class="gr-map"' not in as_html(ALL["suspect"])
    assert 'class="gr-outside"' in as_html(ALL["outside"])


def test_hints_are_folded_and_in_order() -> None:
    """Each hint has its own fold, the general one first; a finished exercise shows none."""
    html = as_html(ALL["not_written"])
    hints = find("softmax").hints

    assert list(re.findall(r"Hint (\d) of 5", html)) == list("12345")
    assert html.count("<details>") >= 6
    assert "<details open" not in html
    text = as_text(ALL["not_written"])
    assert hints[0] in text.replace("\n    ", " ")
    assert hints[1][:20] not in text
    assert "Hint" not in as_html(ALL["passed"])


@pytest.mark.parametrize("name", ["mismatch", "suspect", "outside", "unwritten", "compile", "exception"])
def test_no_hint_where_the_cause_is_named(name: str) -> None:
    """A hint that is unrelated to the named bug would distract from it."""
    assert "Hint" not in as_html(ALL[name])
    assert "Hint" not in as_text(ALL[name])


def test_hints_where_no_cause_is_known() -> None:
    """A report that only says where the output is wrong, or that it crashed, has hints."""
    scattered = replace(ALL["mismatch"].cases[2].mismatch, region_low=(0, 3), region_high=(70, 700))  # type: ignore[type-var]

    assert "Hint 1 of 5" in as_text(failing("softmax", SIMULATOR, 2, CaseResult("", False, scattered)))
    assert "Hint 1 of 3" in as_text(ALL["crash"])


def test_a_stub_has_no_failed_case() -> None:
    """If the stub raises in the first case, no case is marked as failed."""
    base = failing("softmax", SIMULATOR, 0, CaseResult("", False, failure=Failure("not_written", "Not written.", 14)))

    text = as_text(base)

    cases = len(find("softmax").simulator_cases)
    assert f"0 of {cases} cases passed, {cases} not run" in text
    assert "  – 1 × 1" in text
    assert "✗" not in text
    assert 'gr-failed"' not in as_html(base)


def test_the_most_telling_case_is_described() -> None:
    """The report describes the wrong case with a pattern, not the one with a single element."""
    base = failing("vector_add", SIMULATOR, 0, ALL["unwritten"].cases[3])
    single = replace(base.cases[0].mismatch, shape=(1,), total=1, first_index=(0,), region_low=(0,), region_high=(0,))  # type: ignore[type-var]
    block = replace(single, shape=(98_432,), total=98_432, wrong=128, unwritten=128, first_index=(98_304,),
                    region_low=(98_304,), region_high=(98_431,))  # fmt: skip
    cases = (CaseResult("1 element", False, single), *base.cases[1:4], CaseResult("98,432 elements", False, block))

    summary = summarize(replace(base, cases=cases))

    assert summary.failing == cases[4]
    assert "98,432 elements" in summary.next_step


def test_wrong_values_are_described_before_narrow_loads() -> None:
    """Right values come first: the report describes the case with wrong ones, not the narrow loads of another."""
    wrong = ALL["unwritten"].cases[3].mismatch
    failure = Failure("exception", "NarrowLoads: k: its loads are too narrow")
    base = failing("widen", SIMULATOR, 2, CaseResult("", False, failure=failure))
    cases = (CaseResult(base.cases[0].name, False, mismatch=wrong), *base.cases[1:])

    assert state_of(base) == "broken"
    assert "loads are too narrow" in as_text(base)
    told = as_text(replace(base, cases=cases))
    assert f"What is wrong in “{cases[0].name}”" in told
    assert "loads are too narrow" not in told
    assert "1 of 4 cases passed, 1 not run" in told


def test_wrong_values_are_described_before_a_case_that_takes_too_long() -> None:
    """Both may come from one bug, and wrong values tell more about it."""
    wrong = ALL["unwritten"].cases[3].mismatch
    base = failing("widen", SIMULATOR, 2, CaseResult("", False, failure=Failure("timeout", "It did not end.")))
    told = as_text(replace(base, cases=(CaseResult(base.cases[0].name, False, mismatch=wrong), *base.cases[1:])))
    assert "It did not end" in as_text(base)
    assert "What is wrong" in told
    assert "It did not end" not in told


_NASTY = '<script>alert("x")</script> & <img src=x onerror=alert(1)> `code` \x1b[2J\u202e'


def test_everything_of_the_submissions_is_escaped() -> None:
    """Markup, escape sequences and direction marks from a submission have no effect."""
    failure = Failure("exception", _NASTY, 3, _NASTY * 3)
    base = failing("softmax", SIMULATOR, 1, CaseResult("", False, failure=failure))
    base = replace(base, log=_NASTY, findings=(Finding("rule", _NASTY),))
    base = replace(base, environment=replace(GPU, notes=(f"Note: {_NASTY}",)))
    html = as_html(replace(base, title=_NASTY), _NASTY + "\n" + _NASTY + "\n" + _NASTY)
    text = as_text(base, "\n\n" + _NASTY)

    read = Reader(html)
    assert read.tags.isdisjoint({"script", "img"})
    assert not {name for name, _ in read.attributes} & {"onerror", "src"}
    assert read.open == []
    for bad in ("\x1b", "\u202e"):
        assert bad not in html
        assert bad not in text


def test_sentences_are_escaped_before_their_code_is_set() -> None:
    """Values and known bugs go through the same escaping, and backticks become code."""
    base = ALL["suspect"].cases[3].mismatch
    nasty = replace(base, suspect=_NASTY, got=_NASTY, output=_NASTY)  # type: ignore[type-var]

    html = as_html(failing("softmax", GPU, 3, CaseResult("", False, mismatch=nasty)))

    assert Reader(html).tags.isdisjoint({"script", "img"})
    assert "<code>code</code>" in html


def test_an_exercise_that_is_not_known_here() -> None:
    """A stored verdict on an exercise that this version does not have is still shown."""
    old = replace(ALL["mismatch"], exercise="gone", title="Gone")

    assert "Not right yet" in as_html(old)
    assert "Gone" in as_text(old)


def test_warnings_of_the_interpreter_are_left_out() -> None:
    """The report shows the printed output without the warnings of Triton's interpreter."""
    log = (
        "hello\n/usr/lib/site-packages/triton/runtime/interpreter.py:999: RuntimeWarning: All-NaN slice encountered\n"
        "  val = self.to_tensor(x)\nworld\n"
    )
    text = as_text(make("softmax", GPU, log=log))

    assert "  | hello\n  | world\n" in text
    assert "RuntimeWarning" not in text


def test_a_round_trip_through_json_tells_the_same(verdict: Verdict) -> None:
    """A verdict that was stored and read again has the same report."""
    import json

    again = Verdict.from_dict(json.loads(json.dumps(verdict.to_dict())))

    assert as_html(again, SOURCE) == as_html(verdict, SOURCE)
    assert as_text(again) == as_text(verdict)


@pytest.mark.parametrize(
    ("most", "said"), [(1.0, "earns 1 point:"), (2.0, "earns 2 points:"), (0.5, "earns 0.5 points:")]
)
def test_one_point_is_no_points(most, said):
    """A gate uses the singular for one point."""
    words = gate_words(GateResult("eager", "the eager sequence", 2.0, "needs_gpu", 0.0, most))
    assert said in words


def test_a_gate_says_which_share_of_the_hardware_would_do_and_which_was_reached():
    """Both ways to the points are in the line, before and after the measurement."""
    gate = GateResult("torch", "torch.softmax", 1.2, "needs_gpu", 0.0, 3.0, or_share=0.9)
    assert "1.2× as fast as torch.softmax, or 90% of what the hardware allows, earns 3 points" in gate_words(gate)
    words = gate_words(replace(gate, outcome="passed", points=3.0, ratio=1.01, low=1.0, high=1.02, share=0.93))
    assert words.endswith("and 93% of what the hardware allows, 1.2× or 90% needed: 3 of 3 points.")
