"""What comes of a round in a worker: its parts by the arbiter's clock, or a failure."""

from __future__ import annotations

from dataclasses import dataclass

from grader.judge.glimpse import Glimpse
from grader.verdict import Failure

__all__ = ["Round", "WorkerFailed"]

_NOT_AWAITED = (
    "Outputs changed after the function had returned: it must wait for its own threads and processes. Work on a stream "
    "of its own must be joined: `torch.cuda.current_stream().wait_stream(stream)`, or `stream.synchronize()`."
)


class WorkerFailed(Exception):
    """A submission failed in its worker; `failure` says how. After a crash, a limit or a timeout the worker is gone."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@dataclass(frozen=True)
class Round:
    """The parts of a round by the arbiter's clock, and the worker's own claim (None: it makes none that is a time)."""

    copy_in_s: float
    work_s: float  # from the inputs' arrival to the flag's answer: a last small copy of the judge's, then the launches
    glimpse_s: float
    event_s: float | None
    look: Glimpse
    seen: bytes  # by that look, before the clock stopped

    def must_be_unchanged(self) -> None:
        """To be called when all outputs were found to be right: what the clock's look saw must be just that.

        Raises:
            WorkerFailed: it was something else, so the answer came before the work was done.
        """
        if self.look.take() != self.seen:
            raise WorkerFailed(Failure("wrong_answer", _NOT_AWAITED))
