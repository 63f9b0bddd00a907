"""The drawings that introduce a GPU."""

from __future__ import annotations

import pytest
import torch

from grader.explore import draw_gpu, draw_images, sample_image


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
