"""Messages between judge and worker: length-prefixed JSON, optionally with file descriptors; and JSON in tensors.

A worker's message is untrusted, so it is read with a limit on size and time, and only as JSON data.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Callable
from typing import Any


def to_bytes(value: Any, size: int) -> Any:
    """A uint8 tensor of `size` elements with the value as JSON, padded with spaces. Raises ValueError if too long."""
    import torch

    text = json.dumps(value, separators=(",", ":")).encode()
    if len(text) > size:
        raise ValueError(f"The JSON text is too long: {len(text)} B of at most {size} B.")
    return torch.frombuffer(bytearray(text.ljust(size)), dtype=torch.uint8).clone()


def from_bytes(tensor: Any) -> Any:
    """The value in such a tensor, on any device and after a conversion to any type."""
    import torch

    return json.loads(bytes(tensor.cpu().to(torch.uint8).numpy()))


MAX_MESSAGE_BYTES = 8 << 20
_HEADER = struct.Struct("!I")
_MAX_FDS = 8


class ChannelClosed(Exception):
    """The other side has closed the channel or sent an invalid message."""


class ChannelTimeout(Exception):
    """No whole message arrived within the time limit."""


class Channel:
    """One end of a stream socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

    def send(self, message: dict[str, Any], fds: tuple[int, ...] = (), limit_s: float = 30.0) -> None:
        """Send one message. Raises ChannelClosed if the other side has gone or does not read within `limit_s`."""
        payload = json.dumps(message).encode()
        if len(payload) > MAX_MESSAGE_BYTES:
            raise ValueError(f"the message is too large: {len(payload)} B of at most {MAX_MESSAGE_BYTES} B")
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
        self, limit_s: float | None, with_fds: bool = False, idle: Callable[[], float] = lambda: 0.0,
        idle_s: float = 1.0,
    ) -> tuple[dict[str, Any], list[int]]:  # fmt: skip
        """One message and its descriptors; without `with_fds` the system drops them.

        Until the whole message has arrived, `idle` is called every `idle_s`. It returns the seconds to add to the
        deadline, for the time in which the other side could not run; an exception from it ends the wait.

        Raises:
            ChannelTimeout: the whole message did not arrive within `limit_s`.
            ChannelClosed: end of stream, too large, or not a JSON object.
        """
        deadline = None if limit_s is None else time.monotonic() + limit_s
        header, fds, deadline = self._exactly(_HEADER.size, deadline, idle, idle_s, with_fds)
        (length,) = _HEADER.unpack(header)
        if length > MAX_MESSAGE_BYTES:
            raise ChannelClosed(f"a message of {length} B is too large")
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
        """The bytes, the descriptors, and the deadline, extended by `idle`."""
        parts: list[bytes] = []
        fds: list[int] = []
        last_idle = time.monotonic()
        while count:
            if time.monotonic() - last_idle >= idle_s:  # also between bytes that arrive one by one
                extension = idle()
                last_idle = time.monotonic()
                deadline = None if deadline is None else deadline + extension
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
