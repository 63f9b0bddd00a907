"""nbgrader's own collecting and autograding, where one learner could make them fail, or worse, for a class."""

from __future__ import annotations

import os
from collections.abc import Collection
from datetime import datetime
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook
from nbgrader.converters import Autograde
from nbgrader.exchange.default import ExchangeCollect

from grader.classroom.copying import SECRET, copy_submission
from grader.classroom.course_folder import unreadable
from grader.classroom.inbox import Entry, changed_ns, sift
from grader.errors import UnusableSubmission
from grader.words import on_one_line

_MOST_NAMED = 5  # files of a stranger's, in a sentence


class Collect(ExchangeCollect):  # type: ignore[misc]
    """Anyone may put anything into the inbox: what is no submission is passed over, links are not followed, and only
    the assignment's own notebooks, the time and nbgrader's secret are collected. Where Formgrader shows it, a browser
    would run much of the rest with the instructor's rights, and no score rests on it.

    `problems`: what is the matter with what was passed over, as sentences. `accept`: names whose entries are believed.
    """

    accept: Collection[str] = ()

    def init_src(self) -> None:
        """Find each student's submission that is to be collected."""
        self.problems: list[str] = []
        inbox = Path(self.root, self.coursedir.course_id, "inbound")
        assignment = self.coursedir.assignment_id
        sifted = sift(self.coursedir, assignment, inbox, check_owner=self.check_owner, accept=self.accept)
        for problem in sifted.problems:
            self._say(problem)
        self._found = {entry.path.name: entry for entry in sifted.entries}
        super().init_src()
        found: list[dict[str, Any]] = self.src_records  # type: ignore[has-type]
        self.src_records = [record for record in found if record["username"] is not None]

    def _path_to_record(self, path: str) -> dict[str, Any]:
        name = os.path.basename(path)
        if entry := self._found.get(name):
            return {"username": entry.student, "filename": name, "timestamp": entry.when, "entry": entry}
        return {"username": None, "filename": name, "timestamp": datetime.min}

    def copy_files(self) -> None:
        """Copy what is new or newer, all that is wanted of it or nothing."""
        wanted = {*_own_notebooks(self.coursedir), SECRET}
        for record in self.src_records:
            entry: Entry = record["entry"]
            where = self.coursedir.format_path(
                self.coursedir.submitted_directory, entry.student, self.coursedir.assignment_id
            )
            dest = Path(where)
            if dest.is_dir() and not self._replaces(dest, entry):
                continue
            dest.parent.mkdir(parents=True, exist_ok=True)
            most_bytes = 1000 * self.coursedir.max_dir_size
            try:
                left = copy_submission(entry.path, dest, entry.text, wanted, most_bytes, partial(_is_as_found, entry))
            except (OSError, UnusableSubmission) as error:
                why = getattr(error, "strerror", None) or str(error)
                self._say(f"what {entry.student} submitted cannot be collected from {entry.path}: {why}")
                continue
            if left := [name for name in left if not any(fnmatch(name, each) for each in self.coursedir.ignore)]:
                named = ", ".join(left[:_MOST_NAMED])
                named += f" and {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else ""
                self._say(f"{entry.student} also submitted {named}; only the assignment's notebooks are collected")

    def _replaces(self, dest: Path, entry: Entry) -> bool:
        try:
            before = self.coursedir.get_existing_timestamp(str(dest))
        except (ValueError, OverflowError, OSError):  # it came another way, and says nothing
            before = None
        newer = before is None or entry.when > before
        another = self.before_duedate or entry.student in self.accept
        return bool((self.update and newer) or (another and before != entry.when))

    def _say(self, problem: str) -> None:
        problem = on_one_line(problem)
        self.log.error(problem)
        self.problems.append(problem.rstrip("."))


def _is_as_found(entry: Entry) -> bool:
    return changed_ns(entry.path) == entry.changed_ns


def _own_notebooks(coursedir: Any) -> set[str]:
    """The file names of the assignment's notebooks."""
    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        return {f"{notebook.name}.ipynb" for notebook in gradebook.find_assignment(coursedir.assignment_id).notebooks}


class GradeReadable(Autograde):  # type: ignore[misc]
    """Grades a student's notebooks that can be read; the others count as not handed in, unless all are so."""

    def init_notebooks(self) -> None:
        """Find the notebooks; nbgrader would grade none where one cannot be read."""
        super().init_notebooks()
        for folder, notebooks in self.assignments.items():
            without = {path.name for path in unreadable(Path(folder))}
            self.assignments[folder] = [path for path in notebooks if Path(path).name not in without] or notebooks

    def init_assignment(self, assignment_id: str, student_id: str) -> None:
        """Make the gradebook's entries; what cannot be read has no points, also where an earlier one had."""
        super().init_assignment(assignment_id, student_id)
        submitted = Path(self._format_source(assignment_id, student_id))
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            known = {notebook.name for notebook in gradebook.find_assignment(assignment_id).notebooks}
            for path in unreadable(submitted):
                if path.stem in known:
                    for grade in gradebook.find_submission_notebook(path.stem, assignment_id, student_id).grades:
                        grade.auto_score, grade.needs_manual_grade = 0, False
            gradebook.db.commit()
