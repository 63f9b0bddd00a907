"""The GPU waits for the flag and answers it: the calls to the driver, and its errors."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from grader.protocol.flag import Flag
from grader.worker.stopwatch import GpuFlag

ASKED = ["cuMemHostRegister", "cuMemHostGetDevicePointer", "cuStreamWaitValue64"]
ANSWER = "cuStreamWriteValue64"


class Answer(int):
    name = ""


def answer(name):
    found = Answer(name != "CUDA_SUCCESS")
    found.name = name
    return found


@pytest.fixture
def driver(monkeypatch):
    """Make a driver that records its calls; `answers` has an error's name or an exception per function."""
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

    fake = SimpleNamespace(**{name: asks(name) for name in (*ASKED, ANSWER)})
    monkeypatch.setattr("torch.cuda.current_stream", lambda: SimpleNamespace(cuda_stream=7))
    monkeypatch.setattr(bindings, "driver", fake, raising=False)
    return found


@pytest.fixture
def flag():
    made, fd = Flag.create()
    yield made
    made.close()
    import os

    os.close(fd)


def test_the_current_stream_waits_until_the_flag_is_no_less_than_the_round(driver, flag):
    """The page is registered once, and each round has its own wait."""
    found = GpuFlag(flag)
    assert [found.wait_raised(number) for number in (1, 2)] == [True, True]
    assert [name for name, *_ in driver.asked] == [*ASKED, ASKED[-1]]
    assert driver.asked[0][1:] == (flag.address, Flag.BYTES, 2)
    assert driver.asked[-1][1:] == (7, 4096, 2, 0)


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("said", ["CUDA_ERROR_NOT_SUPPORTED", "CUDA_ERROR_NOT_PERMITTED", RuntimeError("not found")])
def test_where_the_gpu_cannot_wait_there_is_no_head_start(driver, flag, name, said):
    """This is not an error, and the driver is not asked again."""
    driver.answers[name] = said
    found = GpuFlag(flag)
    assert [found.wait_raised(number) for number in (1, 2)] == [False, False]
    assert [asked for asked, *_ in driver.asked].count(name) == 1


@pytest.mark.parametrize("name", ASKED)
def test_any_other_error_is_one(driver, flag, name):
    """Otherwise a worker without memory, for example, would be timed differently from the others."""
    driver.answers[name] = "CUDA_ERROR_OUT_OF_MEMORY"
    with pytest.raises(RuntimeError, match=f"{name}.*OUT_OF_MEMORY"):
        GpuFlag(flag).wait_raised(1)


@pytest.mark.parametrize("name", ASKED)
def test_with_the_practice_clock_any_error_means_that_the_host_waits(driver, flag, name):
    """The judge chooses that clock after any error, so the submission does not fail."""
    driver.answers[name] = "CUDA_ERROR_INVALID_VALUE"
    assert not GpuFlag(flag, needed=False).wait_raised(1)


def test_the_gpu_answers_in_the_second_word(driver, flag):
    """The write is on the current stream, and becomes visible after all earlier writes."""
    GpuFlag(flag).answer(3)
    assert driver.asked[-1] == (ANSWER, 7, 4096 + 8, 3, 0)
    flag.answer(3)
    assert flag.words[Flag.ANSWERED_AT // 8] == 3


@pytest.mark.parametrize("name", ASKED)
def test_where_the_gpu_cannot_wait_the_host_answers(driver, flag, name):
    """Nothing is queued."""
    driver.answers[name] = "CUDA_ERROR_NOT_SUPPORTED"
    found = GpuFlag(flag)
    found.wait_raised(1)
    found.answer(1)
    assert ANSWER not in [asked for asked, *_ in driver.asked]


@pytest.mark.parametrize("said", ["CUDA_ERROR_NOT_SUPPORTED", RuntimeError("not found")])
def test_where_the_gpu_cannot_answer_the_host_does(driver, flag, said):
    driver.answers[ANSWER] = said
    found = GpuFlag(flag)
    for number in (1, 2):
        found.answer(number)
    assert [asked for asked, *_ in driver.asked].count(ANSWER) == 1


def test_an_answer_that_fails_is_an_error(driver, flag):
    """An illegal access in a kernel makes every later call fail."""
    driver.answers[ANSWER] = "CUDA_ERROR_ILLEGAL_ADDRESS"
    with pytest.raises(RuntimeError, match="ILLEGAL_ADDRESS"):
        GpuFlag(flag).answer(1)


ON_A_GPU = """
import time
import torch
from grader.protocol.flag import Flag
from grader.worker.stopwatch import GpuFlag

x = torch.ones(1 << 20, device="cuda")
y = x + 1  # its kernel is loaded before anything waits
flag, _ = Flag.create()
gpu_flag = GpuFlag(flag)
assert gpu_flag.wait_raised(1)
torch.add(x, 1, out=y)
gpu_flag.answer(1)
ended = torch.cuda.Event()
ended.record()
time.sleep(0.05)
assert not flag.answered(1) and not ended.query(), "it waits for the flag"
flag.raise_(1)
ends = time.monotonic() + 5
while not flag.answered(1) and time.monotonic() < ends:
    pass
assert flag.answered(1), "nobody but the GPU could answer"
torch.cuda._sleep(200_000_000)
gpu_flag.answer(2)
assert not flag.answered(2), "the work before it has not ended"
torch.cuda.synchronize()
assert flag.answered(2)
"""


@pytest.mark.gpu
def test_on_a_gpu_it_waits_and_answers():
    """It runs in a separate process, because an endless wait would block this one forever."""
    subprocess.run([sys.executable, "-c", ON_A_GPU], check=True, timeout=120)
