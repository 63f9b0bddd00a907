"""Arenas and the flag: access, the places of tensors, and clearing."""

import gc
import mmap
import os
from pathlib import Path

import pytest
import torch

from grader.protocol.arena import GUARD_BYTES, HostArena, Slot, place, tensor
from grader.protocol.flag import Flag


def test_a_sealed_arena_is_read_only_for_other_processes():
    """A process with the input arena's descriptor can only map it for reading, and cannot resize it."""
    arena = HostArena.create(1 << 20, sealed=True)
    other = os.open(f"/proc/self/fd/{arena.fd}", os.O_RDWR)
    with pytest.raises(PermissionError):
        mmap.mmap(other, 4096)
    with pytest.raises(PermissionError):
        os.ftruncate(other, 0)
    with pytest.raises(PermissionError):
        os.pwrite(other, b"x", 0)
    os.close(other)


def test_a_deleted_arena_closes_its_descriptor():
    """A judge creates one per job."""
    arena = HostArena.create(4096, sealed=False)
    descriptor = Path(f"/proc/self/fd/{arena.fd}")
    assert descriptor.exists()
    del arena
    gc.collect()
    assert not descriptor.exists()


def test_both_mappings_show_the_same_bytes():
    """A reader's mapping shows what the judge writes."""
    arena = HostArena.create(1 << 20, sealed=True)
    reader = HostArena(arena.fd, arena.size, read_only=True)
    slot, _ = place("inputs", 0, (3, 5), "float32", row_padding=3)
    tensor(arena, slot).fill_(2.0)
    seen = tensor(reader, slot)
    assert seen.sum() == 30
    assert seen.stride() == (8, 1)


def test_tensors_have_guards_on_both_sides():
    """At least one guard is between any two tensors, before the first and after the last."""
    first, end = place("a", 0, (7,), "float32", 0)
    second, end = place("a", end - GUARD_BYTES, (5, 3), "float16", 2)
    assert first.offset >= GUARD_BYTES
    assert second.offset - (first.offset + first.bytes) >= GUARD_BYTES
    assert end - (second.offset + second.bytes) >= GUARD_BYTES
    assert first.offset % 512 == second.offset % 512 == 0
    assert Slot.from_dict(second.to_dict()) == second


def test_a_flag_is_seen_by_a_thread_that_spins():
    """Raising the flag releases the waiting thread, and its answer arrives."""
    import threading

    flag, fd = Flag.create()
    other = Flag(fd)

    def answer():
        other.wait_raised(1)
        other.answer(1)

    thread = threading.Thread(target=answer)
    thread.start()
    assert not flag.answered(1, spins=10)
    flag.raise_(1)
    thread.join(5)
    assert flag.answered(1)
    os.close(fd)


@pytest.mark.gpu
def test_a_cuda_arena_shares_its_memory():
    """A tensor over CUDA virtual memory shares the arena's bytes and has the given strides."""
    from grader.protocol.arena import CudaArena

    torch.zeros(1, device="cuda")
    arena = CudaArena.create(1 << 20)
    slot, _ = place("inputs", 0, (3, 5), "float32", row_padding=3)
    tensor(arena, slot).fill_(2.0)
    assert tensor(arena, slot).sum().item() == 30


def test_a_cleared_host_arena_holds_no_old_data():
    """Every mapping reads zeros up to its end, and the memory is returned to the system."""
    arena = HostArena.create(1 << 20, sealed=False)
    other = HostArena(arena.fd, arena.size, read_only=False)
    other.bytes_at(0, arena.size).fill_(7)
    arena.clear()
    assert not other.bytes_at(0, arena.size).any()
    arena.bytes_at(0, 64).fill_(3)
    arena.clear()
    assert os.fstat(arena.fd).st_blocks == 0


@pytest.mark.gpu
def test_a_cleared_cuda_arena_holds_no_old_data():
    """Every byte is 0."""
    from grader.protocol.arena import CudaArena

    torch.zeros(1, device="cuda")
    arena = CudaArena.create(1 << 20)
    arena.bytes_at(0, arena.size).fill_(7)
    arena.clear()
    assert not arena.bytes_at(0, arena.size).any()
