"""Available memory: of the machine, or of the container if that has less."""

import pytest

from grader.judge.sandbox import cgroup

GIB = 1 << 30


@pytest.fixture
def group(tmp_path, monkeypatch):
    """A control group of 1 GiB that uses 768 MiB, 512 MiB of it for file cache."""
    monkeypatch.setattr(cgroup, "_CGROUP", tmp_path)
    monkeypatch.setattr(cgroup, "_machine", lambda: {"MemTotal": 16 * GIB, "MemAvailable": 15 * GIB})
    (tmp_path / "memory.max").write_text(f"{GIB}\n")
    (tmp_path / "memory.current").write_text(f"{3 * GIB // 4}\n")
    (tmp_path / "memory.stat").write_text(f"anon {GIB // 4}\nactive_file {GIB // 4}\ninactive_file {GIB // 4}\n")
    return tmp_path


def test_a_lower_container_limit_counts(group):
    """A container of 1 GiB on a large machine has 1 GiB, and file cache counts as available."""
    assert cgroup.total_bytes() == GIB
    assert cgroup.available_share() == pytest.approx(0.75)


def test_without_a_limit_the_machine_counts(group):
    """A group without a limit says "max"."""
    (group / "memory.max").write_text("max\n")
    assert cgroup.total_bytes() > GIB
    assert 0 < cgroup.available_share() <= 1
