"""Errors of the CUDA runtime, and of the machine it runs on."""

from __future__ import annotations

from grader.feedback.meanings.meaning import Meaning

__all__ = ["CUDA"]

CUDA: tuple[Meaning, ...] = (
    Meaning(
        # CUDA 13 says the second of what CUDA 12 gave the first, and of too much shared memory both say the second.
        r"invalid configuration argument|(?:RuntimeError|CUDA error|CUDA_ERROR_INVALID_VALUE): invalid argument",
        "The GPU refused the launch: a block has at most 1024 threads, and neither grid nor block may be empty.",
        "An empty grid: was the division rounded down? `(n + block - 1) / block` is never 0. If that is not it, is "
        "block.x * block.y at most 1024, and the dynamic shared memory at most 48 KiB?",
    ),
    Meaning(
        r"no kernel image is available",
        "The kernel was built for another kind of GPU than this one.",
        "Take `-arch` and `TORCH_CUDA_ARCH_LIST` out; if that does not help, `grader doctor` compares the versions.",
    ),
    Meaning(
        r"illegal memory access|misaligned address|unspecified launch failure",
        "A kernel read or wrote memory that is not its own, or wrote to an input, and the GPU stopped it.",
        "Check every index against the bounds before it is used, with a mask or an `if`.",
    ),
    Meaning(
        r"device-side assert triggered",  # of "assertions" every CUDA error of torch's speaks
        "An assertion failed on the GPU, most often an index out of range.",
        "Check the index that is used for a lookup.",
    ),
    Meaning(
        r"threads wait at __sync",
        "A barrier waits for every thread of its block, and some of them never come.",
        "Move the barrier out of the `if`; threads without an element skip the work, not the barrier.",
    ),
    Meaning(
        r"too many resources requested for launch",
        "The block needs more registers or shared memory than the GPU has.",
        "Use fewer threads a block.",
    ),
    Meaning(
        r"CUDA out of memory|out of memory",
        "The GPU's memory is full.",
        "The function needs no tensors but those that it is given: write into `out`. Restart other notebooks' kernels.",
    ),
    Meaning(
        r"[Bb]oth events must be (?:recorded|completed)",
        "An event's time is not known before the GPU has come to it.",
        "Record both events, and wait with `end.synchronize()` before you ask for `start.elapsed_time(end)`.",
    ),
    Meaning(
        r"driver version is insufficient|unsupported toolchain|Found no NVIDIA driver",
        "The GPU's driver is too old for this build, or there is none.",
        "`grader doctor` names the versions and the command that mends it.",
    ),
    Meaning(
        r"Torch not compiled with CUDA enabled",
        "The code asks for a GPU, and this machine has none (or PyTorch was installed without CUDA).",
        'Use the device of the tensors that are given, `x.device`, in place of "cuda".',
    ),
    Meaning(
        r"CUDA_HOME environment variable is not set|nvcc: (?:command )?not found|Ninja is required",
        "CUDA C++ cannot be built: the compiler or ninja is missing.",
        "`grader doctor` names the command that installs it.",
    ),
    Meaning(
        r"unsupported GNU version",
        "The C++ compiler is newer than CUDA's compiler accepts.",
        "`grader doctor` names the versions that go together.",
    ),
)
