"""Messages between arbiter and worker: length-prefixed JSON with a size cap, file descriptors beside it.

A worker's message is untrusted: it is read with a limit in size and time, and it is data, never an object.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

# JSON in a tensor of bytes: how an exercise whose input is a text hands it to a submission.


def to_bytes(value: Any, size: int) -> Any:
    """A uint8 tensor of `size` elements that holds the value as JSON, with spaces behind it.

    Raises:
        ValueError: it does not fit.
    """
    import torch

    text = json.dumps(value, separators=(",", ":")).encode()
    if len(text) > size:
        raise ValueError(f"The text has {len(text)} bytes, and there is room for {size}.")
    return torch.frombuffer(bytearray(text.ljust(size)), dtype=torch.uint8).clone()


def from_bytes(tensor: Any) -> Any:
    """The value in such a tensor, wherever it lies and whatever type its elements were given since."""
    import torch

    return json.loads(bytes(tensor.cpu().to(torch.uint8).numpy()))


# Messages between arbiter and worker: length-prefixed JSON with a size cap, file descriptors beside it.
#
# A worker's message is untrusted: it is read with a limit in size and time, and it is data, never an object.

MAX_MESSAGE_BYTES = 8 << 20
_HEADER = struct.Struct("!I")
_MAX_FDS = 8


class ChannelClosed(Exception):
    """The other side has gone, or sent what is no message."""


class ChannelTimeout(Exception):
    """Nothing came within the limit."""


class Channel:
    """One end of a stream socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

    def send(self, message: dict[str, Any], fds: tuple[int, ...] = (), limit_s: float = 30.0) -> None:
        """Sends one message.

        Raises:
            ChannelClosed: the other side has gone, or does not read within `limit_s`.
        """
        payload = json.dumps(message).encode()
        if len(payload) > MAX_MESSAGE_BYTES:
            raise ValueError(f"a message of {len(payload)} bytes is larger than {MAX_MESSAGE_BYTES}")
        self._socket.settimeout(limit_s)
        try:
            if fds:
                socket.send_fds(self._socket, [_HEADER.pack(len(payload))], list(fds))
            else:
                self._socket.sendall(_HEADER.pack(len(payload)))
            self._socket.sendall(payload)
        except OSError as error:
            raise ChannelClosed(str(error)) from None

    def receive(
        self,
        limit_s: float | None,
        with_fds: bool = False,
        idle: Callable[[], float] = lambda: 0.0,
        idle_s: float = 1.0,
    ) -> tuple[dict[str, Any], list[int]]:
        """One message and the descriptors that came with it; without `with_fds` the system drops any that come.

        `idle` is called every `idle_s` until the whole message is there; what it raises ends the wait. It returns the
        seconds by which that is put off: those in which the other side may not have run.

        Raises:
            ChannelTimeout: the whole message did not come within `limit_s`.
            ChannelClosed: end of stream, too large, or no JSON object.
        """
        deadline = None if limit_s is None else time.monotonic() + limit_s
        header, fds, deadline = self._exactly(_HEADER.size, deadline, idle, idle_s, with_fds)
        (length,) = _HEADER.unpack(header)
        if length > MAX_MESSAGE_BYTES:
            raise ChannelClosed(f"a message of {length} bytes is too large")
        payload, _, _ = self._exactly(length, deadline, idle, idle_s)
        try:
            message = json.loads(payload)
        except (ValueError, RecursionError) as error:
            raise ChannelClosed(f"not JSON: {error}") from None
        if not isinstance(message, dict):
            raise ChannelClosed("not a JSON object")
        return message, fds

    def close(self) -> None:
        self._socket.close()

    def _exactly(
        self, count: int, deadline: float | None, idle: Callable[[], float], idle_s: float, with_fds: bool = False
    ) -> tuple[bytes, list[int], float | None]:
        """The bytes, the descriptors, and the deadline, put off by what `idle` said."""
        parts: list[bytes] = []
        fds: list[int] = []
        idled = time.monotonic()
        while count:
            if time.monotonic() - idled >= idle_s:  # by the clock, not by silence: bytes may come one by one
                put_off = idle()
                idled = time.monotonic()
                deadline = None if deadline is None else deadline + put_off
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise ChannelTimeout
            self._socket.settimeout(idle_s if left is None else min(left, idle_s))
            try:
                if with_fds:
                    part, new, _, _ = socket.recv_fds(self._socket, count, _MAX_FDS)
                    fds += new
                else:
                    part = self._socket.recv(min(count, 1 << 20))
            except TimeoutError:
                continue
            except OSError as error:
                raise ChannelClosed(str(error)) from None
            if not part:
                raise ChannelClosed("end of stream")
            parts.append(part)
            count -= len(part)
        return b"".join(parts), fds, deadline
