"""Requirements of the ladder's rungs on their compiled kernels, told by the PTX without a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

Facts = Sequence[Mapping[str, int]]

_SHORT = 16  # PTX instructions per sample: 12 with an unsigned index, 20 with `range` over one, 27 with a signed one
_FEW = 30  # float64 instructions: reducing the argument of a float32 sine takes 12, a literal in the loop 190


def typed(facts: Facts) -> str:
    """Say how many float64 instructions a float32 kernel has, if they are many."""
    most = max((fact.get("float64", 0) for fact in facts if not fact.get("double", 1)), default=0)
    if most <= _FEW:
        return ""
    return (
        f"Compiled for a GPU, the float32 kernel has {most} float64 instructions; a typed one has about a dozen. "
        "Which literal, product or sum is still float64?"
    )


def fast(facts: Facts) -> str:
    """Say that no kernel uses the fast sine."""
    return _without(facts, "fast_sines", "no kernel uses the fast sine or cosine (`MUFU`): is fast math turned on?")


def unsigned(facts: Facts) -> str:
    """Say that the loop over the samples is long, or that it has no fast sines."""
    if missing := fast(facts):
        return missing
    longest = max((fact.get("per_sine", 0) for fact in facts), default=0)
    if longest <= _SHORT:
        return ""
    return (
        f"Compiled for a GPU, the loop over the samples has {longest} PTX instructions per sample; with an unsigned "
        "32-bit index it has 12. Which index or bound can be negative? Does `range` keep a counter of its own?"
    )


def capped(facts: Facts) -> str:
    """Say that no kernel has a cap on its registers."""
    return _without(facts, "capped", "no kernel has a cap on its registers: pass `max_registers=…` to `cuda.jit`.")


def bound(facts: Facts) -> str:
    """Say that no kernel has launch bounds."""
    return _without(facts, "bound", "no kernel has launch bounds: write `__launch_bounds__(…)` before its name.")


def kept(facts: Facts) -> str:
    """Say that a kernel was compiled more than once for the same types."""
    if not any(fact.get("compiled_again") for fact in facts):
        return ""
    return "The kernel is compiled again in a later call for the same types. Keep it, under its type."


def _without(facts: Facts, name: str, sentence: str) -> str:
    known = [fact for fact in facts if name in fact]
    return f"Compiled for a GPU, {sentence}" if known and not any(fact[name] for fact in known) else ""


OF_COMPILED: dict[str, Callable[[Facts], str]] = {
    "ls_numba_typed": typed,
    "ls_numba_cached": kept,
    "ls_numba_fastmath": fast,
    "ls_numba_unsigned": unsigned,
    "ls_numba_registers": capped,
    "ls_cupy_typed": typed,
    "ls_cupy_fastmath": fast,
    "ls_cupy_launch_bounds": bound,
}
