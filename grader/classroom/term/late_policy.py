"""The penalty for late work, which `nbgrader_config.py` chooses."""

from __future__ import annotations

import math

from nbgrader.plugins import LateSubmissionPlugin
from traitlets import Enum, Float

_DAY_S = 24 * 3600


class LatePolicy(LateSubmissionPlugin):  # type: ignore[misc]
    """nbgrader's penalties, and one that grows with each day begun."""

    penalty_method = Enum(
        ("none", "zero", "per day"),
        "none",
        help='"none": no penalty; "zero": no points; "per day": a share of the points for each day begun.',
    ).tag(config=True)
    percent_per_day = Float(10.0, min=0.0, max=100.0, help='Used by "per day".').tag(config=True)
    grace_minutes = Float(0.0, min=0.0, help='Used by "per day": work this late is not late yet.').tag(config=True)

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float | None:
        """The points to deduct from a notebook's score; None for no penalty."""
        if self.penalty_method != "per day":
            penalty: float | None = super().late_submission_penalty(student_id, score, total_seconds_late)
            return penalty
        if total_seconds_late <= 60 * self.grace_minutes:
            return None
        days = math.ceil(total_seconds_late / _DAY_S)
        return float(score) * min(1.0, days * self.percent_per_day / 100)
