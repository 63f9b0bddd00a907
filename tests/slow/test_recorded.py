"""The evidence that was recorded on a GPU names the causes, and predicts the gains."""

from __future__ import annotations

import json

import pytest

from benchmarks import slow
from tests.slow.corpus import corpus

_RECORDED = sorted(slow.EVIDENCE.glob("nvidia-*.jsonl"))


@pytest.mark.parametrize("path", _RECORDED, ids=lambda path: path.stem)
def test_recorded_evidence_names_the_causes_and_predicts_the_gains(path, monkeypatch) -> None:
    """Nine of ten causes, eight of ten gains within a quarter, and no cause of fast work."""
    monkeypatch.setattr(slow, "gpus", lambda: ())
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    hashes = {row["name"]: row["sha256"] for row in rows}
    texts = [each for each in slow.texts() if hashes.get(each.name) == each.sha256]
    found = slow.answers(texts)
    every = [each for each in corpus() if f"slow/{each.name}" in found]
    named = [each for each in every if each.cause in [c.kind for c in found[f"slow/{each.name}"].with_gpu][:2]]
    gains = [(slow.reached(each, found), slow.predicted(each, found[f"slow/{each.name}"])) for each in every]
    near = [1 for reached, said in gains if reached and said and abs(said / reached - 1) <= 0.25]
    fast = {name: answer.with_gpu for name, answer in found.items() if not name.startswith("slow/")}
    assert len(named) >= 0.9 * len(every), sorted(each.name for each in every if each not in named)
    assert len(near) >= 0.8 * len(every)
    assert not any(fast.values()), fast
