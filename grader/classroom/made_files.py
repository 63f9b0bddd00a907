"""Find the files of a course folder that are still as `init` made them, so that an upgrade may replace them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grader.classroom.grading.verdict_store import write_in_one_step

RECORD = ".made-by-init.json"  # in the course folder: a hash per file


@dataclass
class Filled:
    """Files by what `fill` did with them. `edited`: newer in this version, but the instructor changed it."""

    created: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    edited: list[str] = field(default_factory=list)


def fill(dest: Path, made: Path, upgrade: bool) -> Filled:
    """Copy missing files from `made` into the course folder and, with `upgrade`, newer ones over unedited ones."""
    record, done = _record(dest), Filled()
    for path in sorted(path for path in made.rglob("*") if path.is_file()):
        name, target = path.relative_to(made).as_posix(), dest / path.relative_to(made)
        new = contents(path)
        if target.exists():
            old = contents(target)
            if old == new:
                record[name] = new  # so a later version may replace it
            if old == new or not upgrade or record.get(name) != old:
                done.kept.append(name)
                done.edited += [name] * (upgrade and old != new and record.get(name) != new)
                continue
            done.updated.append(name)
        else:
            done.created.append(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = target.with_name(f".{target.name}.new")
        shutil.copyfile(path, scratch)
        if target.exists():
            shutil.copymode(target, scratch)  # a group may share the course
        scratch.replace(target)
        record[name] = new
    write_in_one_step(dest / RECORD, json.dumps(record, indent=1, sort_keys=True))
    return done


def contents(path: Path) -> str:
    """A hash of a file; of a notebook, only the types, texts and nbgrader's marks of its cells, not its outputs."""
    data = path.read_bytes()
    if path.suffix == ".ipynb":
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):  # the instructor's own file
            data = json.dumps([_cell(cell) for cell in json.loads(data)["cells"]], sort_keys=True).encode()
    return hashlib.sha256(data).hexdigest()


def _cell(cell: dict[str, Any]) -> tuple[str, str, Any]:
    return cell["cell_type"], "".join(cell["source"]), cell["metadata"].get("nbgrader")


def _record(dest: Path) -> dict[str, str]:
    try:
        return dict(json.loads((dest / RECORD).read_bytes()))
    except (OSError, ValueError, TypeError):
        return {}
