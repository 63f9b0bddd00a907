"""What a check-up finds, and how it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Finding", "as_text", "healthy", "to_dicts"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `mend` is a command, or "" where there is nothing to mend.

    With `needed`, a learner's work depends on it. Otherwise a lack makes something weaker or slower, or only matters
    to the tests.
    """

    name: str
    ok: bool
    value: str
    mend: str = ""
    needed: bool = True


def healthy(findings: Sequence[Finding]) -> bool:
    """Whether everything that a learner needs works."""
    return all(finding.ok for finding in findings if finding.needed)


def as_text(findings: Sequence[Finding]) -> str:
    """A table for people; the lacks' commands stand below them."""
    width = max(len(finding.name) for finding in findings)
    lines = []
    for finding in findings:
        mark = "ok  " if finding.ok else "LACK" if finding.needed else "weak"
        lines.append(f"{mark}  {finding.name:<{width}}  {finding.value}")
        if finding.mend:
            lines.append(f"      {'':<{width}}  mend: {finding.mend}")
    lacks = [finding.name for finding in findings if finding.needed and not finding.ok]
    if lacks:
        lines += ["", f"Not everything works here yet; what is lacking: {', '.join(lacks)}."]
    else:
        lines += ["", "Everything that a learner needs works here."]
    return "\n".join(lines)


def to_dicts(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Ready for `json.dumps`."""
    return [asdict(finding) for finding in findings]
