"""Built libraries of CUDA C++ on the CPU: the buffers that their kernels may use, their failures and observations."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from typing import Any

__all__ = [
    "Buffer",
    "counted",
    "in_words",
    "instance",
    "is_used",
    "launched_instances",
    "raise_failure",
    "returned",
    "send_buffers",
    "synchronize",
    "take_observed",
    "take_traffic",
    "use_buffers",
    "use_scratch",
    "waits",
    "watch",
]

_failures: dict[str, Callable[[], bytes | None]] = {}  # by path of the extension
_libraries: dict[str, ctypes.CDLL] = {}
_OF_LAUNCH = re.compile(r"cuda|launch|kernel|\berr|\bcode\b|\bstatus\b|\b[19]\W*$", re.IGNORECASE)  # 1, 9: refused
_NAME_OF_FUNCTION = re.compile(r"[\w:]+\Z", re.ASCII)
_ARGUMENTS = re.compile(r"; (?=(?:[\w:]+ )*[\w:]+ = )")  # the last ones are aliases such as `std::size_t = …`
waits: list[Callable[[], None]] = []  # to call when the host waits for the GPU
_launched: dict[str, None] = {}  # kernels that were listed, in their order
_buffers: tuple[Buffer, ...] = ()
_scratch: tuple[Buffer, ...] = ()


class Buffer(ctypes.Structure):
    """Memory that kernels may use: an address, its bytes, those around it that nobody may use, and bytes per element.

    It is `cuda_on_cpu_Buffer` in `regions.h`.
    """

    _fields_ = (
        ("begin", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t),
        ("guard", ctypes.c_size_t),
        ("item", ctypes.c_uint),
        ("read_only", ctypes.c_int),
        ("name", ctypes.c_char_p),
    )


def use_buffers(buffers: Sequence[Buffer]) -> None:
    """Let all extensions report accesses outside of these buffers, which are the arguments of the next call."""
    global _buffers
    _buffers = tuple(buffers)
    for library in _libraries.values():
        send_buffers(library)


def use_scratch(buffers: Sequence[Buffer]) -> None:
    """Let all extensions know these tensors, too, which the submission has made."""
    global _scratch
    _scratch = tuple(buffers)
    for library in _libraries.values():
        send_buffers(library)


def send_buffers(library: ctypes.CDLL, more: Sequence[Buffer] = ()) -> None:
    """Tell one extension of the buffers of `use_buffers`, and of `more`."""
    each = (*more, *_buffers, *_scratch)
    library.cuda_on_cpu_buffers((Buffer * len(each))(*each), len(each))


def synchronize() -> None:
    """Wait for the GPU and raise `RuntimeError` if an earlier kernel failed, as `torch.cuda.synchronize` does.

    It also reports a refused launch whose launcher did not read the error.
    """
    for wait in waits:
        wait()
    raise_failure()


def raise_failure() -> None:
    """Raise `RuntimeError` if an earlier kernel failed."""
    for failure in _failures.values():
        if text := failure():
            raise RuntimeError(text.decode())


def in_words(error: Exception) -> Exception:
    """The error, or one that also says why a kernel failed, if the submission passed on no more than CUDA's number.

    A submission may have handled a refused launch that it asked about, so only an error about a launch names that one.
    """
    said = str(error)
    for library in _libraries.values():
        asked = [library.cuda_on_cpu_failure]
        if not said or _OF_LAUNCH.search(said):
            asked.append(library.cuda_on_cpu_refused)
        for ask in asked:
            ask.restype = ctypes.c_char_p
            if (text := (ask() or b"").decode(errors="replace")) and text not in said:
                return RuntimeError(f"{said}: {text}".removeprefix(": ")).with_traceback(error.__traceback__)
    return error


def returned() -> None:
    """Let an extension report work on a stream of its own for which nothing waits, now that the function has returned.

    Two extensions may share streams, and neither knows what the other one waits for.
    """
    if len(_libraries) == 1:
        for library in _libraries.values():
            library.cuda_on_cpu_returned()


def take_observed() -> list[str]:
    """Return what was wrong with kernels that ran to their end, such as races, and why a result is NaN, once."""
    found = []
    for library in _libraries.values():
        take = library.cuda_on_cpu_observed
        take.restype = ctypes.c_char_p
        found += [text.decode() for text in iter(take, None)]
    return found


def take_traffic() -> list[tuple[int | None, str]]:
    """Return remarks about how warps use memory, once: the line of each, and a sentence."""
    found: list[tuple[int | None, str]] = []
    for library in _libraries.values():
        take = library.cuda_on_cpu_traffic
        take.restype = ctypes.c_char_p
        for remark in (take() or b"").decode(errors="replace").splitlines():
            line, _, sentence = remark.partition(" ")
            found.append((int(line) or None, sentence))
    return found


def is_used() -> bool:
    """Return whether the submission has CUDA C++."""
    return bool(_libraries)


def counted(on: int) -> list[list[str]]:
    """Let all extensions list their launches from now on (1) or no longer (0), or list what they do not run (2).

    Return the lists up to now, as words per line.

    `cuda_on_cpu_counted` in `errors.h` describes them.
    """
    found: list[list[str]] = []
    for library in _libraries.values():
        take = library.cuda_on_cpu_counted
        take.restype = ctypes.c_char_p
        found += [line.split() for line in (take(on) or b"").decode(errors="replace").splitlines()]
    _launched.update((" ".join(words[1:]), None) for words in found if words[0] == "kernel")
    return found


def launched_instances() -> list[str]:
    """Return the instances of kernel templates whose launches were listed, such as `power<float, 2>`."""
    return [found for found in map(instance, _launched) if "<" in found]


def instance(function: str) -> str:
    """Return the name of a kernel in GCC's `__PRETTY_FUNCTION__`, with its template arguments, or "".

    For `void power(const T*, T*) [with T = float; int N = 2]`, it is `power<float, 2>`.
    """
    head, _, tail = function.partition(" [with ")
    name = _NAME_OF_FUNCTION.search(head.partition("(")[0])
    if name is None:
        return ""
    pairs = [each.partition(" = ") for each in _ARGUMENTS.split(tail.removesuffix("]"))]
    given = ", ".join(value.strip("{}") for of, _, value in pairs if not of.endswith("_t"))
    return f"{name[0]}<{given}>" if tail else name[0]


def watch(extension: Any) -> None:
    """Let `synchronize` ask this extension whether a kernel failed, and tell it of the buffers."""
    path = extension if isinstance(extension, str) else extension.__file__
    library = _libraries[path] = ctypes.CDLL(path)
    ask = library.cuda_on_cpu_failure
    ask.restype = ctypes.c_char_p
    _failures[path] = ask
    send_buffers(library)
