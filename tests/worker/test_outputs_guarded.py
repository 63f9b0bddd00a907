"""Memory that a submission allocates for its results is poisoned and guarded."""

import torch

from grader.judge.checking.compare import poisoned
from grader.worker.outputs import guarded


def _write_past(tensor):
    tensor.as_strided((tensor.numel() + 1,), (1,), tensor.storage_offset())[-1] = 5.0


def test_what_was_never_written_is_seen():
    """`torch.empty` and similar functions return poison, zeros are zeros, and shape and strides are unchanged."""
    x = torch.randn(3, 4, dtype=torch.float64).t()
    with guarded():
        for made in (torch.empty_like(x), torch.empty(4, 3), x.new_empty(4, 3), torch.empty_strided((4, 3), (1, 4))):
            assert poisoned(made).all()
            assert made.shape == x.shape
        assert torch.empty_like(x).stride() == x.stride()
        for made in (torch.zeros(4, 3), torch.zeros_like(x), x.new_zeros(2)):
            assert not made.any()
        assert torch.empty(3, dtype=torch.int64).shape == (3,)


def test_a_write_past_the_end_is_seen():
    """One element past a tensor is enough."""
    for make in (lambda: torch.empty(5), lambda: torch.randn(5).new_zeros(5), lambda: torch.empty_like(torch.ones(5))):
        with guarded() as overrun:
            made = make()
            made.fill_(1.0)
            assert not overrun()
            _write_past(made)
            assert overrun()


def test_torch_is_as_before_afterwards():
    """The names are restored, even after an exception, and nothing is replaced if it is disabled."""
    before = torch.empty_like, torch.zeros, torch.Tensor.new_empty
    try:
        with guarded():
            assert torch.empty_like is not before[0]
            raise ValueError
    except ValueError:
        pass
    assert (torch.empty_like, torch.zeros, torch.Tensor.new_empty) == before
    assert "new_empty" not in vars(torch.Tensor)
    with guarded(False) as overrun:
        assert torch.empty_like is before[0]
        assert not overrun()
