"""The bugs of a fused attention, each with the sentence that names it; and how the cases are named that show them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from grader.exercise import Case, Suspect

# Ends of the names of cases. They say how the inputs are drawn.
CAUSAL = ", causal"
BEYOND = ", equal scores, sums that pass 65,504"
HIGH, LOW = ", every score above 100", ", every score below -100"
SPIKE = ", one key far above the rest"
PADDED = ", rows padded"
PADDED_SHAPES = ((3, 131, 64), (1, 150, 128))  # heads, length and head size of the cases with padded rows

_MOST_SCORES = 1 << 21  # of all heads: more are not compared with bugs
_TILES = (64, 128, 32, 16, 256)  # usual tiles along the keys, the most likely first
_FAR_ABOVE = 4.0  # between the highest score and the mean of a row
_NEARER = 0.5  # a bug explains an output that is on average closer to it than to what was expected
_SHOWS = 0.02  # a bug that changes no output by more than this is not recognised
_LOG2E = 1.4426950408889634

Candidates = Callable[[Any, Any, Any, bool], Iterator[Any]]


def _one_of(candidates: Candidates) -> Callable[[Any], Any]:
    """The submission's output if one of the bugs explains it; without a submission, the first that shows."""

    def output(a: Any) -> Any:
        heads, length, _ = a["q"].shape
        if heads * length * length > _MOST_SCORES or length == 1:
            return None
        for bug in candidates(a["q"], a["k"], a["v"], a["causal"].shape[0] == 2):
            if not bool(((bug - a["expected"]).abs().nan_to_num(1.0) > _SHOWS).any()):
                continue
            if "got" not in a:
                return bug
            from_bug = (a["got"] - bug).abs().nan_to_num(0.0).mean()
            near = bool(from_bug < _NEARER * (a["got"] - a["expected"]).abs().nan_to_num(1.0).mean())
            if near and bool(bug.isclose(a["got"], 1e-2, 4e-3, equal_nan=True).all()):
                return a["got"]
        return None

    return output


def _seen(length: int, like: Any, causal: bool, shift: int = 0) -> Any:
    """The mask: whether row i sees key j. `shift` moves the diagonal."""
    import torch

    seen = torch.ones(length, length, dtype=torch.bool, device=like.device)
    return seen.tril(shift) if causal else seen


def _scores(q: Any, k: Any, causal: bool, factor: float = 1.0, seen: Any = None) -> Any:
    scores = factor * (q @ k.transpose(1, 2)) / math.sqrt(q.shape[2])
    mask = _seen(q.shape[1], q, causal) if seen is None else seen
    return scores.masked_fill(~mask, float("-inf"))


def _attend(q: Any, k: Any, v: Any, causal: bool, factor: float = 1.0, seen: Any = None) -> Any:
    return _scores(q, k, causal, factor, seen).softmax(2) @ v


def _scale_forgotten(q: Any, k: Any, v: Any, causal: bool) -> Iterator[Any]:
    yield _attend(q, k, v, causal, math.sqrt(q.shape[2]))


def _scale_of_another_head(q: Any, k: Any, v: Any, causal: bool) -> Iterator[Any]:
    yield _attend(q, k, v, causal, math.sqrt(q.shape[2] / (64 if q.shape[2] == 128 else 128)))


def _scale_twice(q: Any, k: Any, v: Any, causal: bool) -> Iterator[Any]:
    yield _attend(q, k, v, causal, 1 / math.sqrt(q.shape[2]))


def _scale_of_exp2(q: Any, k: Any, v: Any, causal: bool) -> Iterator[Any]:
    yield _attend(q, k, v, causal, _LOG2E)


def _scale_of_exp(q: Any, k: Any, v: Any, causal: bool) -> Iterator[Any]:
    yield _attend(q, k, v, causal, 1 / _LOG2E)


def _not_causal(q: Any, k: Any, v: Any, causal: bool) -> Iterator[Any]:
    if causal:
        yield _attend(q, k, v, False)


def _always_causal(q: Any, k: Any, v: Any, causal: bool) -> Iterator[Any]:
    if not causal:
        yield _attend(q, k, v, True)


def _wrong_triangle(q: Any, k: Any, v: Any, causal: bool) -> Iterator[Any]:
    if causal:
        yield _attend(q, k, v, False, seen=_seen(q.shape[1], q, True).T)


def _off_by_one(a: Any) -> Any:
    """Rows see one key more, or one less; then row 0 sees none, and may hold anything."""

    def shifted(q: Any, k: Any, v: Any, causal: bool) -> Iterator[Any]:
        for shift in (-1, 1) if causal else ():
            bug = _attend(q, k, v, causal, seen=_seen(q.shape[1], q, True, shift))
            if shift == -1:
                bug[:, 0] = a["got"][:, 0] if "got" in a else float("nan")
            yield bug

    return _one_of(shifted)(a)


def _diagonal_not_masked(q: Any, k: Any, v: Any, causal: bool) -> Iterator[Any]:
    """Every key of a tile is seen if any row of the program sees it."""
    import torch

    length = q.shape[1]
    at = torch.arange(length, device=q.device)
    for down in _TILES if causal else ():
        for across in _TILES:
            ends = ((at // down + 1) * down).clamp(max=length)
            ends = (ends + across - 1) // across * across
            yield _attend(q, k, v, causal, seen=at[None, :] < ends[:, None])


def _masked_within_tiles(q: Any, k: Any, v: Any, causal: bool) -> Iterator[Any]:
    """The keys, or the keys and the rows, are counted from the start of their tile."""
    import torch

    at = torch.arange(q.shape[1], device=q.device)
    for across in _TILES if causal else ():
        yield _attend(q, k, v, causal, seen=at[None, :] % across <= at[:, None])
        for down in _TILES:
            yield _attend(q, k, v, causal, seen=at[None, :] % across <= at[:, None] % down)


def _later_keys_are_zero(q: Any, k: Any, v: Any, causal: bool) -> Iterator[Any]:
    """All later keys, or those up to the end of a tile."""
    import torch

    if not causal:
        return
    at = torch.arange(q.shape[1], device=q.device)
    scores = _scores(q, k, False).masked_fill(~_seen(q.shape[1], q, True), 0.0)
    yield scores.softmax(2) @ v
    for down in _TILES:
        ends = (at // down + 1) * down
        yield scores.masked_fill(at[None, :] >= ends[:, None], float("-inf")).softmax(2) @ v


def _divided_in_each_step(q: Any, k: Any, v: Any, causal: bool) -> Iterator[Any]:
    """Divided by the sum after each tile; and perhaps once more at the end."""
    scores = _scores(q, k, causal)
    for tile in _TILES:
        row_max, sums, total = scores[..., :1] * 0 - 1e38, scores[..., :1] * 0, 0.0 * q
        for start in range(0, q.shape[1], tile):
            some = scores[..., start : start + tile]
            new_max = row_max.maximum(some.amax(2, keepdim=True))
            weights, factor = (some - new_max).exp(), (row_max - new_max).exp()
            sums = sums * factor + weights.sum(2, keepdim=True)
            total = (total * factor + weights @ v[:, start : start + tile]) / sums
            row_max = new_max
        yield total
        yield total / sums


def _by_tiles(q: Any, k: Any, causal: bool, tile: int) -> tuple[Any, Any]:
    """The weights exp(score - maximum so far) of each key, and the factor that brings each to the last maximum."""
    import torch

    length = q.shape[1]
    pad = (0, -length % tile)
    scores = torch.nn.functional.pad(_scores(q, k, causal), pad, value=float("-inf"))
    scores = scores.reshape(q.shape[0], length, -1, tile)
    running = scores.amax(3, keepdim=True).cummax(2).values
    factor = (running - running[:, :, -1:]).exp().expand_as(scores)
    weights = (scores - running).exp()
    return weights.flatten(2)[..., :length], factor.flatten(2)[..., :length]


def _total_not_rescaled(q: Any, k: Any, v: Any, causal: bool) -> Iterator[Any]:
    for tile in _TILES:
        weights, factor = _by_tiles(q, k, causal, tile)
        yield (weights @ v) / (weights * factor).sum(2, keepdim=True)


def _sum_not_rescaled(q: Any, k: Any, v: Any, causal: bool) -> Iterator[Any]:
    for tile in _TILES:
        weights, factor = _by_tiles(q, k, causal, tile)
        yield ((weights * factor) @ v) / weights.sum(2, keepdim=True)


def _nothing_rescaled(q: Any, k: Any, v: Any, causal: bool) -> Iterator[Any]:
    for tile in _TILES:
        weights, _ = _by_tiles(q, k, causal, tile)
        yield (weights @ v) / weights.sum(2, keepdim=True)


def _last_tile(q: Any, k: Any, v: Any, causal: bool) -> Iterator[Any]:
    for tile in _TILES:
        if not causal and q.shape[1] > tile:
            first = (q.shape[1] - 1) // tile * tile
            weights = _scores(q, k, causal).softmax(2)[..., first:]
            yield weights @ v[:, first:]
            yield (weights / weights.sum(2, keepdim=True)) @ v[:, first:]


def _keys_past_the_end(q: Any, k: Any, v: Any, causal: bool) -> Iterator[Any]:
    """Each key past the end has a score of 0 and a value of 0."""
    scores = _scores(q, k, causal)
    highest = scores.amax(2, keepdim=True).clamp(min=0)
    weights = (scores - highest).exp()
    for tile in () if causal else _TILES:
        if missing := -q.shape[1] % tile:
            yield (weights @ v) / (weights.sum(2, keepdim=True) + missing * (-highest).exp())


def _not_divided(q: Any, k: Any, v: Any, causal: bool) -> Iterator[Any]:
    scores = _scores(q, k, causal)
    yield (scores - scores.amax(2, keepdim=True)).exp() @ v


def _q_and_k_exchanged(q: Any, k: Any, v: Any, causal: bool) -> Iterator[Any]:
    yield _attend(k, q, v, causal)


def _first_head(q: Any, k: Any, v: Any, causal: bool) -> Iterator[Any]:
    if q.shape[0] > 1:
        first_k, first_v = k[:1].expand_as(k), v[:1].expand_as(v)
        yield _attend(q[:1], k[:1], v[:1], causal).expand_as(q)
        yield _attend(q, first_k, first_v, causal)
        yield _attend(q, k, first_v, causal)
        yield _attend(q, first_k, v, causal)


def _float16_sums(a: Any) -> Any:
    """Infinity or NaN, where the sums of the values exceed float16."""
    v = a["v"]
    if float(v.sum(1).abs().min()) <= 65_504 or a["q"].any():
        return None
    if "got" not in a:
        return a["expected"] * float("inf")
    return None if a["got"].isfinite().any() else a["got"]


def _no_maximum(a: Any) -> Any:
    """NaN, where every exp of a score is infinite or 0 in float32."""
    if a["q"].shape[1] == 1 or _scores(a["q"], a["k"], False).abs().min() < 90:
        return None
    if "got" not in a:
        return a["expected"] * float("nan")
    return None if a["got"].isfinite().any() else a["got"]


def _small_weights_missing(a: Any) -> Any:
    """The value of the one key far above the rest, without the others."""

    def alone(q: Any, k: Any, v: Any, causal: bool) -> Iterator[Any]:
        scores = _scores(q, k, causal)
        at = scores.argmax(2)
        if not causal and bool((at == at[:, :1]).all() & (scores.amax(2) > scores.mean(2) + _FAR_ABOVE).all()):
            yield v[:, at[0, :1]].expand_as(v)

    return _one_of(alone)(a) if a["q"].shape[0] == 1 else None


def _nan_everywhere(a: Any) -> Any:
    return a["expected"] * float("nan")


def _rows_missing(a: Any) -> Any:
    """The output, if whole rows were never written and the others are right; a single row shows nothing."""
    expected = a["expected"]
    if expected.shape[1] == 1:
        return None
    got = a.get("got")
    if got is None:
        made = expected.clone()
        made[:, expected.shape[1] // 2 :] = float("nan")
        return made
    missing = got.isnan()
    rows = missing.all(2)
    right = missing | got.isclose(expected, 1e-2, 4e-3)
    return got if bool(rows.any()) and bool((missing.any(2) == rows).all()) and bool(right.all()) else None


def _read_padding(a: Any) -> Any:
    """NaN in a case with padded rows: only the padding holds NaN there."""
    if tuple(a["q"].shape) not in PADDED_SHAPES:
        return None
    if "got" not in a:
        return a["expected"] * float("nan")
    return a["got"] if a["got"].isnan().any() else None


def _read_past_the_end(a: Any) -> Any:
    """NaN where the length is not a multiple of a tile: what follows the last row is undefined."""
    if a["q"].shape[1] % min(_TILES) == 0 or a["q"].shape[1] == 1:
        return None
    if "got" not in a:
        return a["expected"] * float("nan")
    return a["got"] if a["got"].isnan().any() else None


def suspects(cases: Sequence[Case]) -> tuple[Suspect, ...]:
    """The bugs, the specific ones first. `cases` are the simulator's: a bug spares some of them."""

    def all_but(*ends: str) -> tuple[str, ...]:
        """The names of the cases that end in none of these."""
        return tuple(case.name for case in cases if not case.name.endswith(ends))

    return (
        Suspect(
            "The accumulator is a float16, but its sums here exceed 65,504, the largest float16. Accumulate in "
            "float32, `tl.zeros(…, dtype=tl.float32)`, and round at the store.",
            _float16_sums,
            spares=all_but(BEYOND, SPIKE),
        ),
        Suspect(
            "The maximum was not subtracted, or the running maximum started above every score: `exp` of these scores "
            "overflows or is 0. Subtract the running maximum of each row, and start it below any score.",
            _no_maximum,
            spares=all_but(HIGH, LOW),
        ),
        Suspect(
            "The causal mask is off by one: row i sees the keys 0 to i, key i included and key i + 1 not.", _off_by_one
        ),
        Suspect(
            "The rows are padded here, and NaN comes from the padding. Each tensor has its own strides: step through "
            "`q` by `q.stride(0)` and `q.stride(1)`, through `k` by those of `k`, and so on.",
            _read_padding,
            spares=all_but(PADDED),
        ),
        Suspect(
            "NaN appears if the length is not a multiple of the tile: memory past the last key was read. Mask "
            "the loads of `k` and `v` with `other=0.0`, both of them, because 0 times NaN is NaN.",
            _read_past_the_end,
            spares=tuple(case.name for case in cases if case.arrays[0].shape[1] % 128 == 0),
        ),
        Suspect(
            "Keys with small weights are missing: each has next to no weight here, but together they matter. No tile "
            "may be skipped for its scores.",
            _small_weights_missing,
            spares=all_but(SPIKE),
        ),
        Suspect("The scores were not scaled: divide them by √d, the root of the head size.", _one_of(_scale_forgotten)),
        Suspect(
            "The scale was applied twice, once to `q` or `k` and once to the scores, or it is 1 / d instead of 1 / √d.",
            _one_of(_scale_twice),
        ),
        Suspect(
            "The scale is that of another head size: it is 1 / √d, and d is 64 in some cases and 128 in others.",
            _one_of(_scale_of_another_head),
        ),
        Suspect(
            "The scale contains log₂ e, but the kernel calls `tl.exp`. That factor belongs to `tl.exp2`.",
            _one_of(_scale_of_exp2),
        ),
        Suspect(
            "The kernel calls `tl.exp2`, but the scale lacks log₂ e: 2 to the power of x log₂ e is exp(x).",
            _one_of(_scale_of_exp),
        ),
        Suspect("The causal mask is missing: a row sees later keys as well.", _one_of(_not_causal)),
        Suspect("Rows do not see later keys, although this attention is not causal.", _one_of(_always_causal)),
        Suspect(
            "The causal mask is the wrong way round: row i sees the keys 0 to i, so `key <= row`.",
            _one_of(_wrong_triangle),
        ),
        Suspect(
            "The causal mask compares places within a tile. It needs places in the sequence: add the start of the "
            "tile to the keys, and that of the program to the rows.",
            _one_of(_masked_within_tiles),
        ),
        Suspect(
            "Later keys are not masked: their scores are 0, and exp of that is in the sum. Set the scores to -∞.",
            _one_of(_later_keys_are_zero),
        ),
        Suspect(
            "Tiles on the diagonal are not masked: later tiles are skipped, but within the last tile a row sees later "
            "keys. Set those scores to -∞.",
            _one_of(_diagonal_not_masked),
        ),
        Suspect(
            "The accumulator was not rescaled when the maximum rose: multiply it by the same factor as the sum, "
            "`exp(old_max - new_max)`, before you add the next tile.",
            _one_of(_total_not_rescaled),
        ),
        Suspect(
            "The sum was not rescaled when the maximum rose: multiply it by the same factor as the accumulator, "
            "`exp(old_max - new_max)`.",
            _one_of(_sum_not_rescaled),
        ),
        Suspect(
            "Neither the sum nor the accumulator was rescaled when the maximum rose: multiply both by "
            "`exp(old_max - new_max)` before you add the next tile.",
            _one_of(_nothing_rescaled),
        ),
        Suspect(
            "Only the last tile of keys reached the output. Is each tile's product added to the accumulator, and is "
            "the new maximum kept for the next tile, `row_max = new_max`?",
            _one_of(_last_tile),
        ),
        Suspect(
            "Keys past the end were counted: loaded as 0 they have a score of 0, and exp of that is in the sum. Set "
            "their scores to -∞ with `tl.where`.",
            _one_of(_keys_past_the_end),
        ),
        Suspect("The accumulator was stored without division by the sum of its row.", _one_of(_not_divided)),
        Suspect(
            "The accumulator was divided by the sum in each step: divide once, after the loop.",
            _one_of(_divided_in_each_step),
        ),
        Suspect("`q` and `k` are exchanged: the rows of the scores belong to `q`.", _one_of(_q_and_k_exchanged)),
        Suspect(
            "`k` and `v` are exchanged: the scores are the product of `q` and `k`, the output that of the weights and "
            "`v`.",
            _one_of(lambda q, k, v, causal: iter([_attend(q, v, k, causal)])),
        ),
        Suspect(
            "Every result is NaN. Is the factor `exp(old_max - new_max)`? The other way round it is infinite in the "
            "first step, and infinity times 0 is NaN.",
            _nan_everywhere,
            breaks=tuple(case.name for case in cases),
        ),
        Suspect(
            "Some rows were never written, and what was written is right. The grid has `triton.cdiv(length, BLOCK_M)` "
            "programs per head, and its axes are in the order of `program_id(0)` and `program_id(1)`.",
            _rows_missing,
            missing=True,
        ),
        Suspect(
            "Every head read head 0, of all inputs or of one: do the pointers of `q`, `k`, `v` and `out` depend on the "
            "head?",
            _one_of(_first_head),
        ),
    )
