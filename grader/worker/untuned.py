"""`triton.autotune` in the simulator: nothing can be timed there, so the first configuration is taken."""

from __future__ import annotations

from typing import Any

__all__ = ["take_first"]


def take_first() -> None:
    """Has every autotuner without a clock of its own take its first configuration. A second call changes nothing."""
    from triton.runtime.autotuner import Autotuner

    Autotuner.do_bench = property(_clock)


def _clock(tuner: Any) -> Any:
    """The learner's own `do_bench`, or one that runs nothing and finds all as fast."""
    return tuner._do_bench or (lambda call, quantiles: [0.0] * len(quantiles))
