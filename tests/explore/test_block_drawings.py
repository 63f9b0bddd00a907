"""A two-stage reduction is drawn block by block."""

from __future__ import annotations

import pytest
import torch

from grader.explore import draw_gpu, draw_images, draw_stages, partial_bytes, sample_image


def test_a_program_goes_on_as_many_blocks_further_as_there_are_programs() -> None:
    """43 elements in blocks of 4 for 4 programs: the blocks that program 0 reads, and the masked element."""
    alt = draw_stages(43, 4, 4).alt
    assert "11 blocks of 4, for 4 programs" in alt
    assert "Program 0 reads the blocks 0, 4, 8." in alt
    assert "The last element of the last block is masked." in alt
    assert "adds the 4 sums and divides by 43" in alt
    assert "masked" not in draw_stages(32, 4, 4).alt
    assert "The last 3 elements of the last block are masked" in draw_stages(41, 4, 4).alt


@pytest.mark.parametrize("wrong", [(0, 4, 4), (43, 0, 4), (43, 4, 0), (43, 4, 9), (1000, 4, 4)])
def test_what_cannot_be_drawn_is_refused_with_a_sentence(wrong: tuple[int, int, int]) -> None:
    """The message says which numbers can be drawn."""
    with pytest.raises(ValueError, match=r"must be|choose"):
        draw_stages(*wrong)


def test_partial_sums_are_written_once_and_read_once() -> None:
    """65,536 float32 sums are 256 KiB each way, in all 512 KiB."""
    assert partial_bytes(65_536) == 2 * 256 * 1024


def test_the_parts_of_a_gpu_are_in_the_picture_and_its_words() -> None:
    """The alternative text names each part, and how many SMs are drawn."""
    alt = draw_gpu(2).alt
    for part in ("2 are drawn", "registers", "shared memory", "L2 cache", "warps of 32"):
        assert part in alt
    with pytest.raises(ValueError, match="1 to 4"):
        draw_gpu(0)


def test_an_image_has_colours_and_is_drawn_with_its_shape() -> None:
    """The sample is a byte image whose channels differ; a grey image is drawn next to it."""
    image = sample_image(12, 16)
    assert (image.dtype, image.shape) == (torch.uint8, (12, 16, 3))
    assert not torch.equal(image[..., 0], image[..., 2])
    assert "grey: 12 × 16, uint8" in draw_images(colour=image, grey=image[..., 0]).alt
    with pytest.raises(ValueError, match="at least 2 × 2"):
        sample_image(1, 5)


@pytest.mark.parametrize("image", [torch.zeros(4, 4), torch.zeros(4, 4, 2, dtype=torch.uint8)])
def test_what_is_no_image_is_refused(image: torch.Tensor) -> None:
    """A wrong type or shape is named; so is a call without an image."""
    with pytest.raises(ValueError, match="x must be a uint8 tensor"):
        draw_images(x=image)
    with pytest.raises(ValueError, match="Name an image"):
        draw_images()
