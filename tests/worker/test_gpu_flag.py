"""The GPU's wait for the flag: what the driver is asked, and what its answers mean."""

from types import SimpleNamespace

import pytest

from grader.protocol.flag import Flag
from grader.worker.head_start import HeadStart

ASKED = ["cuMemHostRegister", "cuMemHostGetDevicePointer", "cuStreamWaitValue64"]


class Answer(int):
    name = ""


def answer(name):
    found = Answer(name != "CUDA_SUCCESS")
    found.name = name
    return found


@pytest.fixture
def driver(monkeypatch):
    """A driver that notes what it is asked; `answers`: an error's name, or an exception, by function."""
    from cuda import bindings

    found = SimpleNamespace(asked=[], answers={})

    def asks(name):
        def ask(*arguments):
            found.asked.append((name, *arguments))
            said = found.answers.get(name, "CUDA_SUCCESS")
            if isinstance(said, Exception):
                raise said
            return (answer(said), 4096) if name == "cuMemHostGetDevicePointer" else (answer(said),)

        return ask

    fake = SimpleNamespace(**{name: asks(name) for name in ASKED})
    monkeypatch.setattr(bindings, "driver", fake)
    monkeypatch.setattr("torch.cuda.current_stream", lambda: SimpleNamespace(cuda_stream=7))
    return found


@pytest.fixture
def flag():
    made, fd = Flag.create()
    yield made
    made.close()
    import os

    os.close(fd)


def test_the_current_stream_waits_until_the_flag_is_no_less_than_the_round(driver, flag):
    """The page is registered once; each round has a wait of its own."""
    found = HeadStart(flag)
    assert [found.begin(number) for number in (1, 2)] == [True, True]
    assert [name for name, *_ in driver.asked] == [*ASKED, ASKED[-1]]
    assert driver.asked[0][1:] == (flag.address, Flag.BYTES, 2)
    assert driver.asked[-1][1:] == (7, 4096, 2, 0)


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("said", ["CUDA_ERROR_NOT_SUPPORTED", "CUDA_ERROR_NOT_PERMITTED", RuntimeError("not found")])
def test_where_the_gpu_cannot_wait_there_is_no_head_start(driver, flag, name, said):
    """That is no failure, and it is not asked again."""
    driver.answers[name] = said
    found = HeadStart(flag)
    assert [found.begin(number) for number in (1, 2)] == [False, False]
    assert [asked for asked, *_ in driver.asked].count(name) == 1


@pytest.mark.parametrize("name", ASKED)
def test_any_other_error_is_one(driver, flag, name):
    """A worker that is out of memory, say, would else be timed otherwise than the others."""
    driver.answers[name] = "CUDA_ERROR_OUT_OF_MEMORY"
    with pytest.raises(RuntimeError, match=f"{name}.*OUT_OF_MEMORY"):
        HeadStart(flag).begin(1)
