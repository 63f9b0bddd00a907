"""nbgrader's collecting and autograding, changed so that one learner cannot make them fail for the class."""

from __future__ import annotations

import os
from collections.abc import Collection
from datetime import datetime
from fnmatch import fnmatch
from functools import partial
from glob import escape
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook
from nbgrader.converters import Autograde
from nbgrader.exchange.default import ExchangeCollect

from grader.classroom.copying import SECRET, copy_submission
from grader.classroom.course_folder import first_names, notebooks, timestamp, unreadable
from grader.classroom.inbox import Entry, changed_ns, sift
from grader.errors import UnusableSubmission
from grader.words import on_one_line


class Collect(ExchangeCollect):  # type: ignore[misc]
    """Collects only the assignment's own notebooks, the time and nbgrader's secret; anyone can put other things there.

    Links are not followed. A browser would run other files with the instructor's rights when Formgrader shows them.
    `problems` are messages about skipped entries. For the students in `accept`, owners and times are not checked.
    """

    accept: Collection[str] = ()

    def init_src(self) -> None:
        """Find the submissions to collect."""
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
        """Copy each new or newer submission completely or not at all."""
        own = notebooks(self.coursedir, self.coursedir.assignment_id)
        released = Path(self.coursedir.format_path(self.coursedir.release_directory, ".", self.coursedir.assignment_id))
        handed_out = {path.name for path in released.iterdir()} if released.is_dir() else set()
        wanted = {SECRET, *(f"{name}.ipynb" for name in own)}
        for record in self.src_records:
            entry: Entry = record["entry"]
            where = self.coursedir.format_path(
                self.coursedir.submitted_directory, entry.student, self.coursedir.assignment_id
            )
            dest = Path(where)
            if dest.is_dir() and not self._replaces(entry):
                continue
            dest.parent.mkdir(parents=True, exist_ok=True)
            most_bytes = 1000 * self.coursedir.max_dir_size
            try:
                left = copy_submission(entry.path, dest, entry.text, wanted, most_bytes, partial(_is_as_found, entry))
            except (OSError, UnusableSubmission) as error:
                why = getattr(error, "strerror", None) or str(error)
                self._say(f"the submission of {entry.student} at {entry.path} cannot be collected: {why}")
                continue
            ignored = (*self.coursedir.ignore, *map(escape, handed_out))
            if left := [name for name in left if not any(fnmatch(name, each) for each in ignored)]:
                others = first_names(left)
                self._say(f"{entry.student} also submitted {others}; only the assignment's notebooks are collected")

    def _replaces(self, entry: Entry) -> bool:
        before = timestamp(self.coursedir, self.coursedir.assignment_id, entry.student)
        newer = before is None or entry.when > before
        may_be_older = self.before_duedate or entry.student in self.accept
        return bool((self.update and newer) or (may_be_older and before != entry.when))

    def _say(self, problem: str) -> None:
        problem = on_one_line(problem)
        self.log.error(problem)
        self.problems.append(problem.rstrip("."))


def _is_as_found(entry: Entry) -> bool:
    return changed_ns(entry.path) == entry.changed_ns


class GradeReadable(Autograde):  # type: ignore[misc]
    """Grades a student's readable notebooks; unreadable ones count as missing, unless all are unreadable."""

    def init_notebooks(self) -> None:
        """Find the readable notebooks; nbgrader would grade none if it cannot read one."""
        super().init_notebooks()
        for folder, paths in self.assignments.items():
            skipped = {path.name for path in unreadable(Path(folder))}
            self.assignments[folder] = [path for path in paths if Path(path).name not in skipped] or paths

    def init_assignment(self, assignment_id: str, student_id: str) -> None:
        """Make the gradebook's entries. Unreadable notebooks get 0 points, even if an earlier version had some.

        No penalty of an earlier version is left: nbgrader sets new ones for the notebooks that it grades.
        """
        super().init_assignment(assignment_id, student_id)
        submitted = Path(self._format_source(assignment_id, student_id))
        known = notebooks(self.coursedir, assignment_id)
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            for notebook in gradebook.find_submission(assignment_id, student_id).notebooks:
                notebook.late_submission_penalty = None
            for path in unreadable(submitted):
                if path.stem in known:
                    for grade in gradebook.find_submission_notebook(path.stem, assignment_id, student_id).grades:
                        grade.auto_score, grade.needs_manual_grade = 0, False
            gradebook.db.commit()
