"""The demands of the Lomb–Scargle ladder on compiled kernels, and a sentence for each that is not met."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from grader.words import plural

Facts = Sequence[Mapping[str, int]]

_SHORT = 16  # PTX instructions per sample: 12 with an unsigned index, 19 if it counts down, 27 with a signed one
_TRIALS = 2  # a cell may build both of its kernels once more, for example to try them
_FEW = 30  # float64 instructions, if the compiler's reduction of large angles is not known
_REDUCTION = 3  # float64 instructions of one reduction: a float32 kernel with accurate sines has four of them
_SPARE = 3  # more float64 instructions than those


def typed(facts: Facts) -> str:
    """Say how many float64 instructions a float32 kernel has, if they are more than its accurate sines have."""
    for fact in facts:
        most, own = fact.get("float64", 0), _REDUCTION * fact.get("reductions", 0)
        if not fact.get("double", 1) and most > (own + _SPARE if own else _FEW):
            return (
                f"Compiled for a GPU, the float32 kernel has {most} float64 instructions; a typed one has about a "
                "dozen. Which literal, product or sum is still float64?"
            )
    return ""


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
        "32-bit index it has 12. Which index or bound can be negative? Does `range` keep a counter of its own? If the "
        "index counts down, count up from 0: `uint32(j - uint32(1))` costs more instructions per iteration."
    )


def capped(facts: Facts) -> str:
    """Say that no kernel has a cap on its registers, or that one has a lower cap than the exercise asks for."""
    for fact in facts:
        kind, asked = ("float64", 64) if fact.get("double") else ("float32", 32)
        if 0 < fact.get("capped", 0) < asked:
            return (
                f"The {kind} kernel is capped at {plural(fact['capped'], 'register')}, and the exercise asks for "
                f"{asked}: with fewer than it needs, it spills to memory."
            )
    return _without(facts, "capped", "no kernel has a cap on its registers: pass `max_registers=…` to `cuda.jit`.")


def bound(facts: Facts) -> str:
    """Say that no kernel of a type has launch bounds."""
    for kind in ("float32", "float64"):
        found = [fact["bound"] for fact in facts if "bound" in fact and bool(fact.get("double")) == (kind == "float64")]
        if found and not any(found):
            return (
                f"Compiled for a GPU, no {kind} kernel has launch bounds: write `__launch_bounds__(…)` before the name "
                "of each kernel."
            )
    return ""


def kept(facts: Facts) -> str:
    """Say that a kernel was compiled more than once for the same types."""
    if not any(fact.get("compiled_again") for fact in facts):
        return ""
    return "The kernel is compiled again in a later call for the same types. Keep it, under its type."


def loaded_once(facts: Facts) -> str:
    """Say that a module was loaded in several calls."""
    if sum(bool(fact.get("loaded_again")) for fact in facts) <= _TRIALS:
        return ""
    return (
        "The module is loaded again in later calls: CuPy finds what it has compiled, but the host has to look for it. "
        "Keep the function from the first call, under its type and nothing else."
    )


def _without(facts: Facts, name: str, sentence: str) -> str:
    known = [fact for fact in facts if name in fact]
    return f"Compiled for a GPU, {sentence}" if known and not any(fact[name] for fact in known) else ""


OF_COMPILED: dict[str, Callable[[Facts], str]] = {
    "ls_numba_typed": typed,
    "ls_numba_cached": kept,
    "ls_numba_fastmath": fast,
    "ls_numba_unsigned": unsigned,
    "ls_numba_registers": lambda facts: fast(facts) or capped(facts),
    "ls_cupy_cached": loaded_once,
    "ls_cupy_typed": typed,
    "ls_cupy_fastmath": fast,
    "ls_cupy_fatbin": fast,
    "ls_cupy_launch_bounds": lambda facts: fast(facts) or bound(facts),
}
