"""One judge for the tests of a process: starting one costs seconds, and it must survive every submission anyway."""

import pytest

from grader.judge.service import Judge


@pytest.fixture(scope="session")
def judge():
    with Judge("simulator") as judge:
        yield judge


@pytest.fixture(scope="session")
def gpu_judge():
    with Judge("cuda") as judge:
        yield judge
