"""Messages between two processes that do not trust each other."""

import contextlib
import json
import os
import socket
import struct
import threading
import time

import pytest

from grader.protocol.channel import MAX_MESSAGE_BYTES, Channel, ChannelClosed, ChannelTimeout
from tests.pace import PACE


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    yield Channel(ours), theirs
    ours.close()
    theirs.close()


def test_a_message_and_its_descriptor_arrive(ends):
    """The received message equals the sent one, and its descriptor opens the same file."""
    channel, raw = ends
    fd = os.memfd_create("x")
    os.write(fd, b"hello")
    Channel(raw).send({"op": "map", "n": 3}, fds=(fd,))
    message, fds = channel.receive(5, with_fds=True)
    assert message == {"op": "map", "n": 3}
    assert os.pread(fds[0], 5, 0) == b"hello"
    os.close(fd)
    os.close(fds[0])


def test_a_large_message_arrives_whole(ends):
    """A message larger than a socket's buffer is reassembled."""
    channel, raw = ends
    text = "x" * (3 << 20)
    sender = threading.Thread(target=Channel(raw).send, args=({"text": text},))
    sender.start()
    assert channel.receive(10)[0]["text"] == text
    sender.join()


def test_a_silent_peer_causes_a_timeout(ends):
    """A peer that sends nothing, or half a message, costs no more than the limit."""
    channel, raw = ends
    with pytest.raises(ChannelTimeout):
        channel.receive(0.05)
    raw.sendall(struct.pack("!I", 100) + b"half")
    with pytest.raises(ChannelTimeout):
        channel.receive(0.05)


def trickle(raw, data, pause_s):
    """Send bytes one by one, from another thread, until the other end is closed."""

    def send():
        with contextlib.suppress(OSError):
            for byte in data:
                raw.sendall(bytes([byte]))
                time.sleep(pause_s)

    sender = threading.Thread(target=send)
    sender.start()
    return sender


@pytest.mark.parametrize("with_fds", [False, True])
@pytest.mark.parametrize("comes", ["nothing", "byte by byte", "a header byte by byte"])
def test_idle_is_called_regularly_whatever_arrives(ends, comes, with_fds):
    """It is called at its interval, both in silence and between bytes that arrive one by one."""
    channel, raw = ends
    header = struct.pack("!I", 100)
    data = {"nothing": b"", "byte by byte": header + b"x" * 99, "a header byte by byte": header[:3]}[comes]
    called = []
    sender = trickle(raw, data, 0.004)
    with pytest.raises(ChannelTimeout):
        channel.receive(0.4, with_fds=with_fds, idle=lambda: called.append(1) or 0.0, idle_s=0.04)
    sender.join()
    assert 3 <= len(called) <= 10


def test_idle_is_not_called_for_complete_messages(ends):
    """A message that is already complete needs no wait."""
    channel, raw = ends
    called = []
    for number in range(20):
        Channel(raw).send({"n": number})
        assert channel.receive(5, idle=lambda: called.append(1) or 0.0, idle_s=0.5)[0] == {"n": number}
    assert called == []


@pytest.mark.parametrize("data", [b"", struct.pack("!I", 1000) + b"x" * 999])
def test_an_exception_from_idle_ends_the_wait(ends, data):
    """A caller that finds a reason to stop need not wait for the rest of the message."""
    channel, raw = ends
    sender = trickle(raw, data, 0.005)

    def enough():
        raise RuntimeError("enough")

    started = time.monotonic()
    with pytest.raises(RuntimeError, match="enough"):
        channel.receive(30, idle=enough, idle_s=0.05)
    assert time.monotonic() - started < 3 * PACE
    channel.close()
    sender.join()


@pytest.mark.parametrize("put_off_s", [0.6, 0.0])
def test_idle_extends_the_limit(ends, put_off_s):
    """Only the returned seconds extend the limit, such as a wait for a lock; a slow `idle` does not."""
    channel, raw = ends
    slept = []

    def slow():
        if slept:
            return 0.0
        slept.append(time.sleep(0.6))
        Channel(raw).send({"n": 1})
        return put_off_s

    if put_off_s:
        assert channel.receive(0.4, idle=slow, idle_s=0.05)[0] == {"n": 1}
    else:
        with pytest.raises(ChannelTimeout):
            channel.receive(0.4, idle=slow, idle_s=0.05)


def test_single_bytes_do_not_extend_the_limit(ends):
    """The limit applies to the whole message, even if the peer keeps sending."""
    channel, raw = ends
    sender = trickle(raw, struct.pack("!I", 1000) + b"x" * 999, 0.005)
    started = time.monotonic()
    with pytest.raises(ChannelTimeout):
        channel.receive(0.3)
    assert 0.3 <= time.monotonic() - started < 2 * PACE
    channel.close()
    sender.join()


def test_a_message_may_arrive_byte_by_byte(ends):
    """A slow message is valid within the limit."""
    channel, raw = ends
    payload = json.dumps({"a": 1}).encode()
    sender = trickle(raw, struct.pack("!I", len(payload)) + payload, 0.005)
    assert channel.receive(10)[0] == {"a": 1}
    sender.join()


def test_a_peer_that_does_not_read_counts_as_gone(ends):
    """Sending has a time limit too."""
    channel, _ = ends
    started = time.monotonic()
    with pytest.raises(ChannelClosed):
        channel.send({"text": "x" * (4 << 20)}, limit_s=0.2)
    assert time.monotonic() - started < 3 * PACE


def test_unrequested_descriptors_are_dropped(ends):
    """They do not fill this process's descriptor table."""
    channel, raw = ends
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        Channel(raw).send({"n": 1}, fds=(0, 0, 0))
        assert channel.receive(5) == ({"n": 1}, [])
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    "raw_bytes",
    [
        struct.pack("!I", MAX_MESSAGE_BYTES + 1),
        struct.pack("!I", 9) + b"not json!",
        struct.pack("!I", 2) + b"[]",
        struct.pack("!I", 5) + b"\xff\xff\xff\xff\xff",
        struct.pack("!I", 100_000) + b"[" * 100_000,
    ],
)
def test_an_invalid_message_closes_the_channel(ends, raw_bytes):
    """Messages that are too large or deep, or not UTF-8, JSON or an object end the channel, not the reader."""
    channel, raw = ends
    sender = threading.Thread(target=raw.sendall, args=(raw_bytes,))
    sender.start()
    with pytest.raises(ChannelClosed):
        channel.receive(5)
    sender.join()


def test_a_closed_peer_is_noticed(ends):
    """A closed socket causes an error at once, for reading and for writing."""
    channel, raw = ends
    raw.close()
    with pytest.raises(ChannelClosed):
        channel.receive(5)
    with pytest.raises(ChannelClosed):
        channel.send({"text": json.dumps("x" * 1000)})
