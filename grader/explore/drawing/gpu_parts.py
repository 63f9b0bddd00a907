"""Drawings that introduce a GPU: its parts, and an image next to what a kernel made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grader.explore.drawing.displays import BLUE, DARK, LIGHT, ORANGE, PALE, Picture, canvas, finish, rectangle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PARTS_OF_AN_SM = (("warps", PALE), ("registers", LIGHT), ("shared memory, L1", LIGHT))
_MOST_PIXELS = 1 << 20


def draw_gpu(sms: int = 3) -> Picture:
    """Draw a GPU's parts: some SMs with their registers and shared memory, the L2 cache, and memory.

    Raises:
        ValueError: fewer than 1 or more than 4 SMs.
    """
    if not 1 <= sms <= 4:
        raise ValueError("sms must be 1 to 4.")
    width = 3.2 * sms + 1.6
    figure, axes = canvas(1.05 * width, 5.4)
    axes.set_xlim(-0.2, width + 0.2)
    axes.set_ylim(6.6, -0.3)
    for number in range(sms):
        left = 3.2 * number
        rectangle(axes, (left, 0), 2.9, 3.2, facecolor="white", edgecolor=DARK, linewidth=1.4)
        _text(axes, left + 1.45, 0.35, f"SM {number}", 12.5)
        for row, (name, colour) in enumerate(_PARTS_OF_AN_SM):
            _box(axes, left + 0.2, 0.7 + 0.8 * row, 2.5, name, colour)
    _text(axes, 3.2 * sms + 0.6, 1.6, "…", 18)
    _box(axes, 0, 3.7, width - 0.3, "L2 cache, shared by all SMs", ORANGE)
    _box(axes, 0, 5.0, width - 0.3, "memory (HBM): every tensor", BLUE, "white")
    for y in (3.45, 4.6):
        _text(axes, (width - 0.3) / 2, y, "↕", 14)
    _text(axes, (width - 0.3) / 2, 6.1, "a block runs on one SM; its threads run in warps of 32", 11.5)
    alt = (
        f"A GPU has many streaming multiprocessors (SMs); {sms} are drawn. Each runs warps of 32 threads and has its "
        "own registers and its own shared memory with the L1 cache. All SMs share the L2 cache. Below it is the GPU's "
        "memory, which holds every tensor. A block runs on one SM."
    )
    return finish(figure, alt, width=640)


def _box(axes: Axes, left: float, top: float, width: float, name: str, colour: str, ink: str = DARK) -> None:
    height = 0.65 if width < 3 else 0.8
    rectangle(axes, (left, top), width, height, facecolor=colour, edgecolor=DARK, linewidth=0.9)
    axes.text(left + width / 2, top + height / 2, name, ha="center", va="center", fontsize=11.5, color=ink)


def _text(axes: Axes, x: float, y: float, text: str, size: float) -> None:
    axes.text(x, y, text, ha="center", va="center", fontsize=size, color=DARK)


def sample_image(height: int = 120, width: int = 160) -> Any:
    """Return a small colour image: a uint8 tensor (height, width, 3) of a sunset over the sea, on the CPU.

    Raises:
        ValueError: a size below 2, or more than a million pixels.
    """
    import torch

    if min(height, width) < 2 or height * width > _MOST_PIXELS:
        raise ValueError("An image needs at least 2 × 2 pixels and at most a million.")
    down = torch.linspace(0, 1, height)[:, None].expand(height, width)
    across = torch.linspace(0, 1, width)[None, :].expand(height, width)
    sky = torch.stack((0.35 + 0.6 * down, 0.45 + 0.1 * down, 0.85 - 0.7 * down), -1)
    waves = 0.08 * torch.sin(60 * down * down + 9 * across)
    sea = torch.stack((0.10 + waves, 0.30 + waves, 0.45 + waves), -1)
    sun = ((across - 0.6) * width / height) ** 2 + (down - 0.45) ** 2 < 0.03
    image = torch.where((down > 0.62)[..., None], sea, sky)
    image = torch.where((sun & (down <= 0.62))[..., None], torch.tensor([1.0, 0.85, 0.3]), image)
    return (255 * image.clamp(0, 1)).to(torch.uint8)


def draw_images(**images: Any) -> Picture:
    """Draw images next to each other, by name: uint8 tensors (height, width, 3), or (height, width) for grey ones.

    Raises:
        ValueError: no image, another type or shape, or more than a million pixels.
    """
    import torch

    for name, image in images.items():
        grey_or_colour = image.dim() == 2 or (image.dim() == 3 and image.shape[-1] == 3)
        if image.dtype != torch.uint8 or not grey_or_colour or image.numel() > 3 * _MOST_PIXELS:
            raise ValueError(
                f"{name} must be a uint8 tensor (height, width, 3) or (height, width) of a million pixels."
            )
    if not images:
        raise ValueError("Name an image to draw: draw_images(before=image).")
    figure, axes = canvas(4.3 * len(images), 3.7)
    axes.remove()
    for number, (name, image) in enumerate(images.items()):
        one = figure.add_axes((number / len(images) + 0.01, 0.0, 1 / len(images) - 0.02, 0.9))
        one.imshow(image.cpu().numpy(), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        one.set_axis_off()
        one.set_title(name, fontsize=12, color=DARK)
    shapes = ", ".join(f"{name}: {' × '.join(map(str, image.shape))}, uint8" for name, image in images.items())
    return finish(figure, f"Images next to each other. {shapes}.", width=320 * len(images))
