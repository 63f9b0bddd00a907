"""The judges of a test process: starting one costs seconds."""

from collections.abc import Iterator

import pytest

from grader.judge.service import Judge


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    with Judge("simulator") as judge:
        yield judge


@pytest.fixture(scope="session")
def gpu_judge() -> Iterator[Judge]:
    with Judge("cuda") as judge:
        yield judge
