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
    """What is sent is received, and a descriptor that travels beside it opens the same file."""
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
    """A message larger than a socket's buffer is put together again."""
    channel, raw = ends
    text = "x" * (3 << 20)
    sender = threading.Thread(target=Channel(raw).send, args=({"text": text},))
    sender.start()
    assert channel.receive(10)[0]["text"] == text
    sender.join()


def test_silence_ends_in_time(ends):
    """A peer that says nothing, or half a message, costs no more than the limit."""
    channel, raw = ends
    with pytest.raises(ChannelTimeout):
        channel.receive(0.05)
    raw.sendall(struct.pack("!I", 100) + b"half")
    with pytest.raises(ChannelTimeout):
        channel.receive(0.05)


def trickle(raw, data, pause_s):
    """Sends bytes one by one, from another thread, until the other end is closed."""

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
def test_idle_is_called_by_the_clock_whatever_comes(ends, comes, with_fds):
    """Silence, and bytes that come one by one, give it its turn as often as it asks for, and no oftener."""
    channel, raw = ends
    header = struct.pack("!I", 100)
    data = {"nothing": b"", "byte by byte": header + b"x" * 99, "a header byte by byte": header[:3]}[comes]
    called = []
    sender = trickle(raw, data, 0.004)
    with pytest.raises(ChannelTimeout):
        channel.receive(0.4, with_fds=with_fds, idle=lambda: called.append(1) or 0.0, idle_s=0.04)
    sender.join()
    assert 3 <= len(called) <= 10


def test_idle_has_its_turn_between_messages_that_come_at_once(ends):
    """It is not called where there is nothing to wait for."""
    channel, raw = ends
    called = []
    for number in range(20):
        Channel(raw).send({"n": number})
        assert channel.receive(5, idle=lambda: called.append(1) or 0.0, idle_s=0.5)[0] == {"n": number}
    assert called == []


@pytest.mark.parametrize("data", [b"", struct.pack("!I", 1000) + b"x" * 999])
def test_what_idle_raises_ends_the_wait(ends, data):
    """Whoever looks meanwhile, and finds enough, need not wait for the rest."""
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
def test_the_limit_is_put_off_by_what_idle_says(ends, put_off_s):
    """A look that waits for a lock does not end the patience with whoever is waited for; a slow look does."""
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


def test_bytes_that_come_one_by_one_do_not_prolong_the_limit(ends):
    """The limit is for the whole message, however busy the peer seems."""
    channel, raw = ends
    sender = trickle(raw, struct.pack("!I", 1000) + b"x" * 999, 0.005)
    started = time.monotonic()
    with pytest.raises(ChannelTimeout):
        channel.receive(0.3)
    assert 0.3 <= time.monotonic() - started < 2 * PACE
    channel.close()
    sender.join()


def test_a_message_that_comes_byte_by_byte_is_a_message(ends):
    """Slow is not wrong, within the limit."""
    channel, raw = ends
    payload = json.dumps({"a": 1}).encode()
    sender = trickle(raw, struct.pack("!I", len(payload)) + payload, 0.005)
    assert channel.receive(10)[0] == {"a": 1}
    sender.join()


def test_a_peer_that_does_not_read_is_taken_for_gone(ends):
    """Sending has a limit, too."""
    channel, _ = ends
    started = time.monotonic()
    with pytest.raises(ChannelClosed):
        channel.send({"text": "x" * (4 << 20)}, limit_s=0.2)
    assert time.monotonic() - started < 3 * PACE


def test_descriptors_that_nobody_asked_for_are_dropped(ends):
    """They do not fill this process's table."""
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
def test_what_is_no_message_closes_the_channel(ends, raw_bytes):
    """Too large, no JSON, no object, no UTF-8, nested too deep: each ends the conversation, not the reader."""
    channel, raw = ends
    sender = threading.Thread(target=raw.sendall, args=(raw_bytes,))
    sender.start()
    with pytest.raises(ChannelClosed):
        channel.receive(5)
    sender.join()


def test_a_peer_that_has_gone_is_noticed(ends):
    """A closed socket is an error at once, on reading and on writing."""
    channel, raw = ends
    raw.close()
    with pytest.raises(ChannelClosed):
        channel.receive(5)
    with pytest.raises(ChannelClosed):
        channel.send({"text": json.dumps("x" * 1000)})
