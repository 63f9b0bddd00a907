"""Fuse an attention: softmax(q kᵀ / √d) v, tile by tile, without storing the matrix of scores.

Method: Dao, Fu, Ermon, Rudra and Ré, "FlashAttention", arXiv 2205.14135 (2022). The names of the cases say how their
inputs are drawn. Each kind of input shows a bug that normal random numbers hide.
"""

from __future__ import annotations

import math
import random
from typing import Any

from grader.exercise import Array, Baseline, Budget, Case, Exercise, Gate, Rules
from grader.exercises.triton.attention_bugs import BEYOND, CAUSAL, HIGH, LOW, PADDED, PADDED_SHAPES, SPIKE, suspects
from grader.exercises.triton.products import LIBRARY, NO_TENSOR_CORES

_OFFSET = 40.0  # 40² / √128 is 141
_ROUNDING = 2e-3  # of an output, for its own rounding to float16 and that of the weights.
# As a share of the outputs' spread: weights rounded to float16 cost up to 1e-3, float8 anywhere costs about 2e-2.
_OF_SPREAD = 4e-3
_OF_ONE_KEY = 2e-3  # absolute, where one key has nearly all of the weight


def _case(heads: int, length: int, head: int, note: str = "", *, causal: bool = False, padding: int = 0) -> Case:
    """Cases have arrays only: `causal` has two elements if the attention is causal, and one if not."""
    shape = (heads, length, head)
    arrays = (
        Array("q", shape, "float16", row_padding=padding, grows=None),
        Array("k", shape, "float16", row_padding=2 * padding, grows=None),
        Array("v", shape, "float16", row_padding=3 * padding, grows=None),
        Array("causal", (1 + causal,), "uint8", grows=None),
        Array("out", shape, "float16", role="out", row_padding=4 * padding, grows=None),
    )
    name = f"{heads} × {length} × {head}{CAUSAL if causal else ''}{note}"
    absolute = _OF_ONE_KEY if note == SPIKE else _OF_SPREAD * _spread(length, causal)
    return Case(name, arrays, budget=Budget(absolute, _ROUNDING))


def _spread(length: int, causal: bool) -> float:
    """The standard deviation of an output: a mean of `length` values, whose weights are exp of a normal number."""
    return min(1.0, math.sqrt(math.e / length / (1 + causal)))


def _draw(case: Case, source: Any, machine: Any) -> dict[str, Any]:
    """Standard normal numbers, changed as the case's name says. A timed case is changed at random.

    The values of a causal case grow with the root of their key's number, because row i of its output averages over i
    keys. So all rows have the same spread, and one budget is equally strict for the first row and the last.
    """
    import torch

    arrays = {array.name: array for array in case.arrays}
    heads, length, head = arrays["q"].shape
    q, k, v = (torch.randn(heads, length, head, generator=source, device=source.device) for _ in range(3))
    chance = random.SystemRandom()
    kind = case.name
    if case.name in {timed.name for timed in (*_TIMED, *_PLOT)}:
        kind = chance.choice(("", HIGH, LOW, SPIKE))
    causal = arrays["causal"].shape[0] == 2
    if causal:
        v *= (torch.arange(1, length + 1, device=v.device) / length).sqrt()[:, None]
    if kind.endswith((HIGH, LOW)):
        q[..., 0], k[..., 0] = _OFFSET if kind.endswith(HIGH) else -_OFFSET, _OFFSET
    elif kind.endswith(BEYOND):
        q.zero_()
        v = 150 + 10 * v
    elif kind.endswith(SPIKE):  # the others together have a twentieth of its weight, each of them next to none
        q *= 0.25
        q[..., 0], k[..., 0] = 8.0, 0.0
        at = chance.randrange(length // 4)
        k[:, at, 0] = (math.log(length) + 3) * math.sqrt(head) / 8
        v += 1.0
        v[:, at] -= 2.0
    flag = torch.zeros(arrays["causal"].shape, dtype=torch.uint8, device=source.device)
    return {"q": q.half(), "k": k.half(), "v": v.half(), "causal": flag}


_CHUNK = 1 << 23  # scores at a time
_LARGE = 1 << 24  # scores; more are computed in float32 on a GPU, which may be slow at float64


def _oracle(inputs: Any) -> Any:
    """Row by row of scores; the last row of the mask sees everything."""
    import torch

    q, k, v = (inputs[name] for name in ("q", "k", "v"))
    causal = inputs["causal"].shape[0] == 2
    heads, length, head = q.shape
    kind = torch.float32 if q.is_cuda and heads * length * length > _LARGE else torch.float64
    out = torch.empty_like(q)
    backend: Any = torch.backends.cuda.matmul
    before = backend.fp32_precision
    backend.fp32_precision = "ieee"
    try:
        for which in range(heads):
            keys, values = k[which].to(kind), v[which].to(kind)
            for first in range(0, length, max(1, _CHUNK // length)):
                rows = torch.arange(first, min(first + max(1, _CHUNK // length), length), device=q.device)
                scores = (q[which, rows].to(kind) @ keys.T) / math.sqrt(head)
                if causal:
                    later = torch.arange(length, device=q.device)[None, :] > rows[:, None]
                    scores.masked_fill_(later, float("-inf"))
                out[which, rows] = (scores.softmax(1) @ values).to(out.dtype)
    finally:
        backend.fp32_precision = before
    return out


def _shape(case: Case) -> tuple[int, int, int]:
    heads, length, head = case.arrays[0].shape
    return heads, length, head


def _bytes_moved(case: Case) -> int:
    """`q`, `k` and `v` are read once, and `out` is written once."""
    return 4 * 2 * math.prod(_shape(case))


def _operations(case: Case) -> int:
    """Two products, each with a multiplication and an addition per score and element of a head."""
    heads, length, head = _shape(case)
    scores = length * (length + 1) // 2 if CAUSAL in case.name else length * length
    return 4 * heads * scores * head


def _with_causal(entry: Any, q: Any, k: Any, v: Any, causal: Any, out: Any) -> None:
    from grader.worker.simulator.devices import watching

    with watching(q, k, v, out):
        entry(q, k, v, out, causal.shape[0] == 2)


def _eager(q: Any, k: Any, v: Any, out: Any, causal: Any) -> None:
    import math

    import torch

    scores = torch.matmul(q, k.transpose(1, 2)) / math.sqrt(q.shape[2])
    if causal:
        later = torch.ones(q.shape[1], q.shape[1], dtype=torch.bool, device=q.device).triu_(1)
        scores = scores.masked_fill(later, float("-inf"))
    torch.matmul(scores.softmax(2), v, out=out)


def _sdpa(q: Any, k: Any, v: Any, out: Any, causal: Any) -> None:
    import torch

    attend = torch.nn.functional.scaled_dot_product_attention
    out.copy_(attend(q[None], k[None], v[None], is_causal=causal)[0])


def _compiled(q: Any, k: Any, v: Any, out: Any, causal: Any) -> None:
    import math

    import torch

    compiled = globals().get("_compiled_attention")
    if compiled is None:
        torch._dynamo.config.recompile_limit = 64  # one compilation per size, since dynamic=False

        def fused(q: Any, k: Any, v: Any, out: Any, causal: Any) -> None:
            scores = torch.matmul(q, k.transpose(1, 2)) / math.sqrt(q.shape[2])
            if causal:
                later = torch.ones(q.shape[1], q.shape[1], dtype=torch.bool, device=q.device).triu(1)
                scores = scores.masked_fill(later, float("-inf"))
            out.copy_(torch.matmul(scores.softmax(2), v))

        compiled = globals()["_compiled_attention"] = torch.compile(fused, dynamic=False)
    compiled(q, k, v, out, causal)


SIMULATOR_CASES = (
    _case(1, 1, 64),
    _case(2, 128, 64),
    _case(2, 128, 64, causal=True),
    _case(1, 77, 128),
    _case(2, 200, 64, causal=True),
    _case(*PADDED_SHAPES[0], PADDED, padding=8),
    _case(*PADDED_SHAPES[1], PADDED, causal=True, padding=8),
    _case(1, 160, 64, HIGH),
    _case(1, 160, 64, LOW),
    _case(1, 640, 64, BEYOND),
    _case(1, 600, 64, SPIKE),
    _case(1, 192, 64, HIGH, causal=True),
    _case(1, 320, 64, SPIKE, causal=True),
)
CASES = (
    *SIMULATOR_CASES,
    _case(2, 1000, 64, LOW, causal=True),
    _case(2, 1000, 128, BEYOND, causal=True),
    _case(2, 1000, 128, causal=True),
    _case(1, 16_381, 64, SPIKE),
    _case(1, 16_384, 64),
    _case(1, 16_384, 128, causal=True),
)
_TIMED = tuple(
    _case(heads, 4096, head, causal=causal) for heads, head in ((32, 64), (16, 128)) for causal in (False, True)
)
_PLOT = tuple(_case((1 << 16) // n, n, 64, causal=True) for n in (512, 1024, 2048, 4096, 8192, 16_384))


_LIBRARY = (
    *LIBRARY, "scaled_dot_product_attention", "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention", "_flash_attention_forward",
    "_efficient_attention_forward", "flex_attention", "MultiheadAttention", "multi_head_attention_forward", "softmax",
    "_softmax", "exp", "Softmax",
)  # fmt: skip


# On an H200 the reference was 10.7 times as fast as the eager sequence, and 0.87 times as fast as cuDNN's kernel, which
# `scaled_dot_product_attention` chose there.
ATTENTION = Exercise(
    id="attention",
    title="Fuse an attention",
    chapter="03_triton",
    notebook="06_fuse_an_attention",
    entry="attention",
    parameters=("q", "k", "v", "out", "causal"),
    backend="triton",
    cases=CASES,
    simulator_cases=SIMULATOR_CASES,
    timed_cases=_TIMED,
    plot_cases=_PLOT,
    oracle=_oracle,
    budget=Budget(_OF_ONE_KEY, _ROUNDING),
    bytes_moved=_bytes_moved,
    operations=_operations,
    correctness_points=6,
    baselines=(
        # The first one is a board's control, so it must be right in all cases.
        Baseline("sdpa", "scaled_dot_product_attention", _sdpa),
        Baseline("eager", "the eager sequence", _eager),
        Baseline("compile", "torch.compile of the sequence", _compiled),
    ),
    gates=(
        Gate("eager", 4.0, 3, tuple(case.name for case in _TIMED)),
        Gate("sdpa", 0.65, 3, tuple(case.name for case in _TIMED)),
    ),
    suspects=suspects(SIMULATOR_CASES),
    draw=_draw,
    harness=_with_causal,
    rules=Rules(_LIBRARY),
    hints=(
        "A program computes one tile of `out`: load its tile of `q` once, and go along the keys tile by tile.",
        "Per row it keeps a maximum, a sum, and a row of the accumulator. When the maximum rises, multiply the sum and "
        "the accumulator by `exp(old_max - new_max)`.",
        "Load `k` as a tile of (head, keys), and the scores are `tl.dot(q, k) * scale`. Set the scores of keys that a "
        "row must not see to -∞ with `tl.where`.",
        "The weights are float32: `tl.dot(weights.to(tl.float16), v, accumulator)` needs them as float16.",
        "A causal program ends at its diagonal. Only the last tiles need a mask: let a first loop go without.",
    ),
    time_limit_s=150.0,  # an autotuner compiles and times several configurations for each size
    wall_limit_s=180.0,
    limited_by="arithmetic",
    lacking=(NO_TENSOR_CORES,),
    plot_axis="n, length (65,536 rows in all heads, head size 64, causal, float16)",
    plot_value=lambda case: case.arrays[0].shape[1],
)
