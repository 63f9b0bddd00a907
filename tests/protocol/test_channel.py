"""Messages between two processes that do not trust each other."""

import json
import os
import socket
import struct
import threading

import pytest

from grader.protocol.channel import MAX_MESSAGE_BYTES, Channel, ChannelClosed, ChannelTimeout


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
