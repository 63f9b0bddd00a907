"""The site has no names in it, loads nothing, and overwrites no other files."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from grader.errors import GraderError
from grader.leaderboard import site, standings
from grader.leaderboard.board_actions import View
from grader.leaderboard.board_run import run
from grader.leaderboard.site import as_text, publish
from grader.leaderboard.standings import (
    FLOOR,
    LIMIT_NAME,
    REFERENCE,
    REFERENCE_NAME,
    Ghost,
    boards,
    course_boards,
    from_json,
)
from grader.leaderboard.store import Store
from grader.verdict import Failure, Finding

STUDENTS = ("Xaverius-Quux", "zyxw1234", "Ökonøm")


class _Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.cells = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag in ("td", "th"):
            self.cells.append("")
        self.open.append(tag)

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.cells[-1] += data.strip()


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "private" / "s.sqlite") as opened:
        yield opened


def _measured(store, verdicts, exercise="softmax"):
    run_ = store.start_run(exercise, "f")
    for student, verdict in verdicts.items():
        if isinstance(verdict, str):
            store.add_unusable(run_.id, student, f"/home/{student}/softmax.py", verdict)
        else:
            store.add_entry(run_.id, student, f"/home/{student}/softmax.py", verdict)
    store.close_run(run_.id, "finished")


def _softmax(store, tmp_path, **options):
    """The text of the exercise's page, published now."""
    publish(store, tmp_path / "site", **options)
    return (tmp_path / "site/softmax.html").read_text(encoding="utf-8")


def _texts(folder):
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


def test_no_students_name_is_published(store, course, tmp_path, judge, text_of, verdict):
    """No student's name, path, or word of a submission leaves the store."""
    sources = {student: text_of(f"by {student}") for student in STUDENTS}
    folder = course(sources)
    course({"Dotty-Unusable": None})
    failure = Failure("exception", f"{STUDENTS[2]} was here", detail=f"File /home/{STUDENTS[2]}/x.py")

    seen = (Finding("rule", f"Line 2 calls `{STUDENTS[0]}`.", 2), Finding("rule", f"It is `/home/{STUDENTS[1]}`."))
    notes = (f"Another process (pid 7, `{STUDENTS[0]}`) used the GPU while this was timed; times may be off.",)

    def verdict_of(source):
        bad = STUDENTS[2] in source
        return verdict(source, failure=failure if bad else None, findings=seen, notes=notes)

    judge.verdict_of = verdict_of
    run("softmax", folder, store, judge)
    publish(store, tmp_path / "site")
    for name, text in _texts(tmp_path / "site").items():
        for student in (*STUDENTS, "Dotty-Unusable"):
            for form in (
                student,
                json.dumps(student).strip('"'),
                student.encode("ascii", "xmlcharrefreplace").decode(),
            ):
                assert form.lower() not in text.lower(), f"{student} is in {name}"
        assert "was here" not in text
        assert str(tmp_path) not in text
        assert "/home" not in text


def test_each_entry_is_shown_with_rank_name_time_ratio_and_share(store, tmp_path, verdict):
    """The exercise's page has one row per entry, sorted; unranked entries follow with their reasons."""
    _measured(
        store,
        {
            "a": verdict("1", speed=1.25),
            "b": verdict("2", speed=1.6),
            "c": verdict("3", wrong=2),
            "d": "There is no file.",
        },
    )
    page = _Page(_softmax(store, tmp_path))
    names = store.pseudonyms()
    at = page.cells.index(names["b"])
    assert page.cells[at - 1] == "1"
    assert page.cells[at + 1].startswith("113.6")
    assert page.cells[at + 2] == "1.600×1.584–1.616"
    assert page.cells[at + 4] == "96.0 %"
    assert page.cells[page.cells.index(names["a"]) - 1] == "2"
    assert page.cells.index(names["a"]) > at
    assert page.cells[page.cells.index(names["c"]) + 1] == "7 of 9 cases right"
    assert page.cells[page.cells.index(names["d"]) + 1] == "could not be graded"


def test_an_exercise_without_a_ceiling_has_no_share(store, tmp_path, verdict):
    """An exercise without a roofline shows none; for others the page says what the share refers to."""
    _measured(store, {"a": verdict("1", exercise_id="ls_open")}, "ls_open")
    _measured(store, {"a": verdict("1")})
    publish(store, tmp_path / "site")
    for name, there in (("ls_open", False), ("softmax", True)):
        assert ("Roofline" in (tmp_path / f"site/{name}.html").read_text(encoding="utf-8")) is there
        (board,) = [board for board in boards(store) if board.exercise == name]
        assert ("of roofline" in as_text([board], "")) is there


def test_a_tie_is_shown_and_said(store, tmp_path, verdict):
    """Tied entries have the same rank, marked for the eye and for a screen reader."""
    _measured(store, {"a": verdict("1", speed=1.5), "b": verdict("2", speed=1.501)})
    assert _Page(_softmax(store, tmp_path)).cells.count("1=(tied)") == 2


def test_flagged_entries_have_a_mark_and_their_sentences(store, tmp_path, verdict):
    """Notes are marked in the table and explained below it; a refused claim is held for review."""
    held = verdict("3", speed=9.0, failure=Failure("implausible", "not believed"))
    finding = Finding("clock", "The worker's own events claim 0.71 of the time.")
    _measured(store, {"a": verdict("1", speed=1.2), "b": verdict("2", speed=1.6, findings=(finding,)), "c": held})
    publish(store, tmp_path / "quiet")
    assert "events claim" not in "".join(_texts(tmp_path / "quiet").values()), "notes are for the instructor"
    text = _softmax(store, tmp_path, notes=True)
    names = store.pseudonyms()
    page = _Page(text)
    at = page.cells.index(f"{names['b']}†(see the notes below)")
    assert page.cells[at - 1] == "1"
    assert page.cells[page.cells.index(names["a"]) - 1] == "2"
    assert page.cells[page.cells.index(names["c"]) + 1] == "held for review"
    assert "9.000" not in text
    assert text.count("The worker&#39;s own events claim 0.71") == 1
    assert "These notes change no rank" in text
    shown = str(View("softmax", tuple(boards(store))))
    assert f"{names['b']} †" in shown
    assert f"   {names['b']}: Clock: The worker's own events claim 0.71 of the time." in shown


def test_a_board_without_findings_has_no_notes(store, tmp_path, verdict):
    """Nothing hints at notes if there are none."""
    _measured(store, {"a": verdict("1")})
    assert "notes" not in _softmax(store, tmp_path).partition("</style>")[2]
    assert "†" not in str(View("softmax", tuple(boards(store))))


def test_the_clock_that_counted_is_said(store, verdict):
    """The verdicts' own words are used if they agree, otherwise the number of entries per clock."""
    _measured(store, {"a": verdict("1", clock="CUDA events"), "b": verdict("2", clock="CUDA events")})
    assert boards(store)[0].clock == "CUDA events"
    events = verdict("1", clock="CUDA events in 21 rounds")
    by_events = (replace(t, clock="events") if t.peer == "submission" else t for t in events.timings)
    events = replace(events, timings=tuple(by_events))
    _measured(store, {"a": events, "b": verdict("2", clock="the arbiter's"), "c": verdict("3", wrong=1, clock="none")})
    assert boards(store)[0].clock.startswith("CUDA events if")
    assert "(always in 1 of 2 entries)" in boards(store)[0].clock
    practice = [verdict(text, clock=f"practice clock, {text} rounds", practice=True) for text in "12"]
    _measured(store, dict(zip("ab", practice, strict=True)))
    assert boards(store)[0].clock.startswith("practice clock: good for learning, not for a board; CUDA events if")


def test_nothing_is_asked_of_anyone(store, tmp_path, verdict):
    """No page loads anything: no scripts, no links except to its siblings, no addresses in its style, and a policy."""
    _measured(store, {"a": verdict()})
    report = publish(store, tmp_path / "site")
    for name, text in _texts(tmp_path / "site").items():
        assert not re.search(r"https?://|url\(|@import|//[a-z]", text), name
        if name.endswith(".html"):
            tags = _Page(text).tags
            assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in tags}
            hrefs = {attributes["href"] for _, attributes in tags if "href" in attributes}
            assert hrefs <= set(report.files)
            policies = [a["content"] for _, a in tags if a.get("http-equiv") == "Content-Security-Policy"]
            assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]


def test_tables_can_be_used_without_seeing_them(store, tmp_path, verdict):
    """Every table has a caption and header cells with a scope; every plot says in words what it shows."""
    _measured(store, {"a": verdict("1"), "b": verdict("2", wrong=1)})
    publish(store, tmp_path / "site")
    for name, text in _texts(tmp_path / "site").items():
        if not name.endswith(".html"):
            continue
        tags = _Page(text).tags
        assert [tag for tag, _ in tags].count("table") == [tag for tag, _ in tags].count("caption") > 0
        assert all("scope" in attributes for tag, attributes in tags if tag == "th")
        assert all("aria-label" in a or a.get("aria-hidden") == "true" for tag, a in tags if tag == "svg")
        assert ("html", {"lang": "en"}) in tags
    softmax = (tmp_path / "site/softmax.html").read_text(encoding="utf-8")
    assert 'aria-label="1.500 times the speed of torch.softmax, 95 % interval 1.485 to 1.515"' in softmax


def test_everything_is_escaped(store, tmp_path, verdict):
    """A machine's or a note's text is text on the page, never markup."""
    evil = '"><script>alert(1)</script>'
    _measured(
        store,
        {
            "a": verdict(
                gpu=f"GPU {evil}",
                driver=evil,
                clock=evil,
                sandbox=evil,
                notes=(evil,),
                findings=(Finding("rule", evil * 2),),
            )
        },
    )
    publish(store, tmp_path / "site")
    for name, text in _texts(tmp_path / "site").items():
        assert name == "standings.json" or "<script" not in text
    assert "&lt;script&gt;" in (tmp_path / "site/softmax.html").read_text(encoding="utf-8")


def test_without_a_gpu_there_is_no_time(store, tmp_path, verdict):
    """A run in the simulator lists its entries unranked and shows no microsecond."""
    _measured(store, {"a": verdict("1", gpu=""), "b": verdict("2", gpu="", wrong=1)})
    text = _softmax(store, tmp_path)
    assert "needs a GPU" in text
    assert "µs" not in text
    assert "<svg" not in text


def test_each_gpu_has_its_board_and_the_newest_run_counts(store, verdict):
    """Runs on two GPUs are shown together; on one GPU only the last; without a GPU only if there is no other."""
    _measured(store, {"a": verdict("1", speed=1.1)})
    _measured(store, {"a": verdict("1", gpu="NVIDIA H200")})
    _measured(store, {"a": verdict("1", speed=1.9)})
    _measured(store, {"a": verdict("1", gpu="")})
    store.start_run("softmax", "f")
    found = boards(store)
    assert [board.gpu for board in found] == ["NVIDIA H100 80GB HBM3", "NVIDIA H200"]
    assert found[0].rows[0].ratio.value == 1.9


def test_the_json_holds_what_the_pages_show(store, tmp_path, verdict):
    """`standings.json` read back gives the same boards."""
    _measured(store, {"a": verdict("1"), "b": verdict("2", wrong=1), "c": "nothing there",
                     "d": verdict("4", findings=(Finding("clock", "c"),), notes=("n",))})  # fmt: skip
    publish(store, tmp_path / "site", notes=True)
    text = (tmp_path / "site/standings.json").read_text(encoding="utf-8")
    assert from_json(text, "standings.json") == boards(store)


def test_publishing_again_gives_the_same_bytes_and_leaves_others_alone(store, tmp_path, verdict):
    """A second publication of the same store changes nothing, and other files are kept."""
    _measured(store, {"a": verdict()})
    site = tmp_path / "site"
    publish(store, site)
    (site / "CNAME").write_text("example.org")
    (site / "vector_add.html").write_text("of the course, not of the leaderboard")
    before = _texts(site)
    report = publish(store, site)
    assert _texts(site) == before
    assert set(report.files) == {"index.html", "softmax.html", "standings.json"}


def test_a_file_that_is_not_ours_is_not_overwritten(store, tmp_path, verdict):
    """A foreign page of the same name is an error, before anything is written."""
    _measured(store, {"a": verdict()})
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text("<h1>My page</h1>")
    with pytest.raises(GraderError, match="not made by the leaderboard"):
        publish(store, site)
    assert _texts(site) == {"index.html": "<h1>My page</h1>"}


def test_a_publication_that_fails_midway_leaves_whole_pages(store, tmp_path, verdict, monkeypatch):
    """A reader never sees half a page: each file is the old one or the new one, and no temporary file is left."""
    _measured(store, {"a": verdict(speed=1.1)})
    site = tmp_path / "site"
    publish(store, site)
    before = _texts(site)
    _measured(store, {"a": verdict(speed=1.9)})
    real, calls = os.replace, []

    def fail_at_the_second(source, target):
        calls.append(target)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        real(source, target)

    monkeypatch.setattr(os, "replace", fail_at_the_second)
    with pytest.raises(GraderError, match="No space left"):
        publish(store, site)
    after = _texts(site)
    assert set(after) == set(before)
    assert after["index.html"] == before["index.html"]
    assert "1.900×" in after["softmax.html"]


def test_an_interval_that_reaches_below_zero_is_published(store, tmp_path, verdict):
    """Old stores have such entries: page, notebook and terminal show them, ranked by their ratio."""
    given = verdict(speed=0.5)
    gates = tuple(replace(gate, low=-0.07, high=1.07) for gate in given.gates)
    times = tuple(replace(time, low_us=-5.0) for time in given.timings)
    _measured(store, {"a": verdict("1"), "b": replace(given, gates=gates, timings=times)})
    report = publish(store, tmp_path / "site")
    assert report.left_out == ()
    view = View("softmax", tuple(boards(store)))
    for shown in ((tmp_path / "site/softmax.html").read_text(encoding="utf-8"), view._repr_html_(), str(view)):
        assert "0.500–0.500" in shown
        assert "-0.07" not in shown


def _cannot_show(monkeypatch, *exercises):
    """No page of these can be made: one fails when it is ranked, the others when they are rendered."""
    real_page, real_rank = site.page, standings.rank

    def rank_(entries, exercise):
        if exercise.id == exercises[-1]:
            raise ZeroDivisionError("of ours")
        return real_rank(entries, exercise)

    def page(template, **values):
        if template == "exercise" and values["boards"][0].exercise in exercises:
            raise ValueError("of ours")
        return real_page(template, **values)

    monkeypatch.setattr(standings, "rank", rank_)
    monkeypatch.setattr(site, "page", page)


def test_an_exercise_of_which_no_page_can_be_made_keeps_no_other_back(store, tmp_path, verdict, monkeypatch):
    """The others are published, the failure is reported with the exception's type, and its earlier page is kept."""
    for exercise in ("vector_add", "softmax", "matmul"):
        _measured(store, {"a": verdict("1", exercise_id=exercise)}, exercise)
    publish(store, tmp_path / "site")
    before = _texts(tmp_path / "site")
    _cannot_show(monkeypatch, "vector_add", "matmul")
    report = publish(store, tmp_path / "site")
    assert report.exercises == ("softmax",)
    assert [sentence.split()[0] for sentence in report.left_out] == ["vector_add", "matmul"]
    assert "vector_add is left out: its page cannot be made (ValueError)." in report.as_text()
    assert "(ZeroDivisionError)" in report.as_text()
    assert report.to_dict()["left_out"] == report.left_out
    after = _texts(tmp_path / "site")
    assert after["vector_add.html"] == before["vector_add.html"]
    assert "vector_add" not in after["index.html"] + after["standings.json"]
    assert "softmax.html" in after["index.html"]


def test_where_no_page_can_be_made_nothing_is_published(store, tmp_path, verdict, monkeypatch):
    """A site that says that nothing has been measured would be wrong, so the earlier one is kept."""
    _measured(store, {"a": verdict()})
    publish(store, tmp_path / "site")
    before = _texts(tmp_path / "site")
    _cannot_show(monkeypatch, "softmax")
    with pytest.raises(GraderError, match=r"softmax .*\(ZeroDivisionError\)"):
        publish(store, tmp_path / "site")
    assert _texts(tmp_path / "site") == before


def test_a_students_name_forges_no_line_in_a_terminal(store, verdict):
    """The instructor's table has one line per entry, whatever a file was called."""
    forged = "mallory\n   1  ann: wrong\x1b[2K\u202e"
    _measured(store, {forged: verdict("1"), forged + "2": "There is no file."})
    found = tuple(boards(store))
    names = {pseudonym: student for student, pseudonym in store.pseudonyms().items()}
    shown = str(View("softmax", found, names=names))
    assert len(shown.splitlines()) == len(str(View("softmax", found)).splitlines())
    assert shown.count("mallory 1 ann: wrong?[2K?") == 2


def test_the_board_says_how_far_intervals_count(store, tmp_path, verdict):
    """The page and the table explain ties correctly."""
    _measured(store, {"a": verdict()})
    assert _softmax(store, tmp_path).count("±3&nbsp;%") == 2


def test_the_store_is_never_put_among_what_is_served(tmp_path, verdict):
    """Publishing into the folder of the store is refused, because a web server would serve the names."""
    with Store(tmp_path / "site" / "s.sqlite") as store:
        _measured(store, {"a": verdict()})
        with pytest.raises(GraderError, match="names"):
            publish(store, tmp_path / "site")
    assert not (tmp_path / "site/index.html").exists()


def test_an_empty_store_gives_a_page_that_says_so(store, tmp_path):
    """Before the first run the index says that nothing has been measured."""
    assert publish(store, tmp_path / "site").exercises == ()
    assert "Nothing has been measured" in (tmp_path / "site/index.html").read_text(encoding="utf-8")


def test_a_destination_that_cannot_be_is_named(store, tmp_path):
    """A file where the folder should be gives one sentence."""
    (tmp_path / "site").write_text("a file")
    with pytest.raises(GraderError, match="cannot be written"):
        publish(store, tmp_path / "site")


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"made_by": "someone"}', "{ no json"])
def test_json_that_is_no_standings_is_named(text):
    """Any other JSON gives one sentence."""
    with pytest.raises(GraderError, match="has no standings in it"):
        from_json(text, "x.json")


@pytest.mark.parametrize("version", [2, 99])
def test_standings_of_another_grader_are_named(version):
    """An unknown version is an error and is not misread."""
    text = json.dumps({"made_by": standings.MADE_BY, "version": version, "boards": []})
    with pytest.raises(GraderError, match="another version"):
        from_json(text, "x.json")


def test_hidden_students_are_left_out(store, tmp_path, verdict):
    """Neither rank nor number nor pseudonym of theirs is published, and the others move up."""
    _measured(store, {"a": verdict("1", speed=3.0), "b": verdict("2", speed=1.5)})
    boards(store)
    store.set_hidden("a", True)
    publish(store, tmp_path / "site")
    (board,) = boards(store)
    assert [(row.rank, row.pseudonym) for row in board.rows] == [(1, store.pseudonyms()["b"])]
    assert store.pseudonyms()["a"] not in "".join(_texts(tmp_path / "site").values())
    store.set_hidden("a", False)
    assert len(boards(store)[0].rows) == 2


def test_ghost_rows_show_baseline_limit_and_reference(store, tmp_path, verdict):
    """They have no rank and no interval, are where their speed puts them, and are nobody's entry."""
    _measured(store, {"a": verdict("1", speed=1.25), "b": verdict("2", speed=0.8), REFERENCE: verdict("3", speed=1.1)})
    (board,) = boards(store)
    assert [row.pseudonym for row in board.rows] == [store.pseudonyms()["a"], store.pseudonyms()["b"]]
    assert REFERENCE not in store.pseudonyms()
    ratios = [(line.name if isinstance(line, Ghost) else line.rank, line.ratio) for line in board.lines]
    order = [LIMIT_NAME, 1, REFERENCE_NAME, board.baseline, 2]
    assert [name for name, _ in ratios] == order
    limit, reference = board.ghosts[0], board.ghosts[1]
    assert limit.share_of_roofline == 1.0
    assert limit.ratio == pytest.approx(1 / 0.6)
    assert reference.ratio == pytest.approx(1.1)
    assert _softmax(store, tmp_path).count('<tr class="ghost">') == 3
    assert LIMIT_NAME in str(View("softmax", (board,)))


def test_the_course_board_is_a_geometric_mean_with_a_floor(store, tmp_path, verdict):
    """An exercise without a rank counts as the floor, so a student with one fast kernel is behind."""
    _measured(store, {"a": verdict("1", speed=1.2), "b": verdict("2", speed=2.0)})
    _measured(store, {"a": verdict("1", "vector_add", speed=1.2)}, "vector_add")
    (course,) = course_boards(boards(store))
    names = store.pseudonyms()
    found = {row.pseudonym: (row.rank, row.ranked, row.mean.value) for row in course.rows}
    assert found[names["a"]] == (1, 2, pytest.approx(1.2))
    assert found[names["b"]] == (2, 1, pytest.approx((2.0 * FLOOR) ** 0.5))
    report = publish(store, tmp_path / "site")
    assert "course.html" in report.files
    assert 'href="course.html"' in (tmp_path / "site/index.html").read_text(encoding="utf-8")
    assert (
        json.loads((tmp_path / "site/standings.json").read_text(encoding="utf-8"))["course"][0]["rows"][0]["rank"] == 1
    )
    store.set_hidden("a", True)  # so one exercise is left, and there is no board of the course
    publish(store, tmp_path / "site")
    assert names["a"] not in (tmp_path / "site/course.html").read_text(encoding="utf-8")


def test_a_board_shows_its_earlier_runs(store, tmp_path, verdict):
    """Those of the same GPU and version, oldest first; a single run has no history."""
    _measured(store, {"a": verdict("1", speed=1.2)})
    assert boards(store)[0].history == ()
    _measured(store, {"a": verdict("1", speed=1.5), "b": verdict("2", speed=1.1)})
    _measured(store, {"a": verdict("1", gpu="another")})
    history = next(board.history for board in boards(store) if board.gpu != "another")
    assert [(past.ranked, past.best, past.median) for past in history] == [
        (1, pytest.approx(1.2), pytest.approx(1.2)), (2, pytest.approx(1.5), pytest.approx(1.3)),
    ]  # fmt: skip
    assert "Over the term" in _softmax(store, tmp_path)
