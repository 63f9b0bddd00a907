"""Convert a colour image to greyscale: three bytes in, one byte out, in integers and rounded exactly."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from grader.exercise import Array, Baseline, Budget, Case, Exercise, Gate, Rules, Suspect

_FEW = 3  # of 256 shades
_MANY = 100  # pixels: with fewer, two bugs may give the same greys
_LIBRARY = (
    "mul", "multiply", "add", "sum", "mean", "matmul", "mm", "mv", "einsum", "dot", "tensordot", "__mul__", "__rmul__",
    "__add__", "__radd__",
)  # fmt: skip


def _case(height: int, width: int) -> Case:
    arrays = (
        Array("image", (height, width, 3), "uint8", grows=1),
        Array("out", (height, width), "uint8", role="out", grows=1),
    )
    return Case(f"{height} × {width}", arrays)


def _grey(red: Any, green: Any, blue: Any, *, half: int = 128) -> Any:
    return ((77 * red + 150 * green + 29 * blue + half) / 256).floor()


def _suspect(sentence: str, values: Callable[[Any], Any]) -> Suspect:
    """A suspect for images with enough pixels."""
    return Suspect(sentence, lambda a: values(a) if a["image"][..., 0].numel() >= _MANY else None)


def _oracle(inputs: Any) -> Any:
    return _grey(*inputs["image"].unbind(-1))


def _eager(image: Any, out: Any) -> None:
    red, green, blue = image.int().unbind(-1)  # reads 3MN bytes, writes 12MN: in uint8 the products would overflow
    out.copy_((77 * red + 150 * green + 29 * blue + 128) >> 8)  # eight more kernels, with 4 bytes per operand


def _planes(a: Any) -> Any:
    height, width, _ = a["image"].shape
    return _grey(*a["image"].reshape(3, height, width))


def _no_stride(a: Any) -> Any:
    flat, (height, width) = a["image"].flatten(), a["image"].shape[:2]
    pixels = height * width
    return _grey(*(flat[k : k + pixels] for k in range(3))).reshape(height, width)


def _short_rows(a: Any) -> Any:
    """Rows `width` bytes apart and pixels three: the row's stride has no factor 3."""
    height, width, _ = a["image"].shape
    if height == 1:
        return None
    rows = a["image"].flatten().as_strided((height, width, 3), (width, 3, 1))
    return _grey(*rows.unbind(-1))


def _transposed(a: Any) -> Any:
    height, width, _ = a["image"].shape
    return _oracle(a).t().reshape(height, width) if min(height, width) > 1 else None


def _low_byte(a: Any) -> Any:
    red, green, blue = a["image"].unbind(-1)
    return (77 * red + 150 * green + 29 * blue + 128) % 256


def _signed(a: Any) -> Any:
    image = a["image"]
    return _grey(*(image - 256 * (image > 127)).unbind(-1)) % 256


def _products_cut(a: Any) -> Any:
    red, green, blue = a["image"].unbind(-1)
    return ((77 * red % 256 + 150 * green % 256 + 29 * blue % 256 + 128) / 256).floor()


def _float_weights(a: Any, half: float) -> Any:
    """The weights 0.299, 0.587 and 0.114. Close to an integer, float32 may round to either side of it."""
    red, green, blue = a["image"].unbind(-1)
    exact = 0.299 * red + 0.587 * green + 0.114 * blue + half
    grey = exact.floor()
    got = a.get("got", grey)
    near_integer = (exact - exact.round()).abs() < 1e-3
    return got if bool(((got == grey) | (near_integer & ((got - grey).abs() <= 1))).all()) else grey


def _three_apart(a: Any) -> Any:
    """The pixels are stored three bytes apart, so every third one is another pixel's; the others are not written."""
    got, expected = a.get("got", a["expected"] * 0).clone(), a["expected"].flatten()
    pixels = -(-expected.numel() // 3)
    right = expected[:pixels]
    if "got" not in a:
        got.view(-1)[::3] = right
    return got if bool((got.flatten()[::3] == right).all()) else None


def _other_bytes(a: Any) -> Any:
    """The weights go to other bytes of the pixel, two of them perhaps to the same."""
    channels = a["image"].unbind(-1)
    made = [_grey(*(channels[k] for k in order)) for order in itertools.product((1, 0, 2), repeat=3)]
    made = [each for each in made if not bool((each == a["expected"]).all())]
    fits = (each for each in made if "got" in a and bool((each == a["got"]).all()))
    return next(fits, made[0] if made else None)


def _other_divisor(a: Any) -> Any:
    red, green, blue = a["image"].unbind(-1)
    weighted = 77 * red + 150 * green + 29 * blue
    made = [((weighted + half) / by).floor() % 256 for by in (128, 255, 512, 100, 1000, 64) for half in (128, 0)]
    made.append(weighted % 256)
    return next((each for each in made if "got" in a and bool((each == a["got"]).all())), made[0])


def _near(a: Any) -> Any:
    """The submission's output, if no pixel is off by more than a few."""
    got = a.get("got", (a["expected"] + 1).clamp(max=255))
    return got if bool(((got - a["expected"]).abs() <= _FEW).all()) else None


_SMALL = (_case(1, 1), _case(3, 3), _case(37, 53))
_TIMED = (_case(4096, 4096),)

GRAYSCALE = Exercise(
    id="grayscale",
    title="Turn an image grey",
    chapter="02_load_inline",
    notebook="01_square_a_matrix",
    entry="grayscale",
    parameters=("image", "out"),
    backend="cuda",
    cases=(*_SMALL, _case(1, 1000), _case(1000, 1), _case(1080, 1921)),
    simulator_cases=(*_SMALL, _case(1, 300), _case(300, 1), _case(65, 49)),
    timed_cases=_TIMED,
    plot_cases=tuple(_case(n, n) for n in (256, 512, 1024, 2048, 4096, 8192)),
    oracle=_oracle,
    budget=Budget(absolute=0.5, relative=0.0),  # integers must be exact
    bytes_moved=lambda case: 4 * case.arrays[1].shape[0] * case.arrays[1].shape[1],
    operations=lambda case: 5 * case.arrays[1].shape[0] * case.arrays[1].shape[1],
    correctness_points=3,
    baselines=(Baseline("eager", "the eager expression", _eager),),
    gates=(Gate("eager", 2.0, 2, (_TIMED[0].name,)),),
    suspects=(
        _suspect(
            "Red and blue are swapped: each pixel is stored as red, green, blue.",
            lambda a: _grey(*a["image"].flip(-1).unbind(-1)),
        ),
        _suspect(
            "The sum was truncated, not rounded: add 128 before the shift.",
            lambda a: _grey(*a["image"].unbind(-1), half=0),
        ),
        _suspect(
            "The three bytes were read as separate planes, all red first. Here the bytes of a pixel are adjacent: 3 "
            "* pixel and the next two.",
            _planes,
        ),
        _suspect("Pixels are three bytes apart, not one: where does pixel p start?", _no_stride),
        _suspect(
            "Rows are 3 * width bytes apart, not width: the factor 3 applies to all of `row * width + column`.",
            _short_rows,
        ),
        _suspect("The values are right but transposed: is the index `row * width + column`?", _transposed),
        _suspect("The sum was stored without the shift, so only its low byte is left.", _low_byte),
        _suspect(
            "Bytes above 127 were read as negative numbers. `char` is signed on most machines: use `unsigned char`.",
            _signed,
        ),
        _suspect(
            "Every value is 0: is the sum an `unsigned char`, which holds at most 255? Use an `int`.",
            lambda a: 0 * a["image"][..., 0],
        ),
        _suspect(
            "Each product was truncated to 8 bits: 77 * red does not fit into an `unsigned char`. Use an `int`.",
            _products_cut,
        ),
        _suspect(
            "These are the weights 0.299, 0.587 and 0.114, truncated. The exercise requires 77, 150 and 29 parts of "
            "256, rounded, which integers compute exactly.",
            lambda a: _float_weights(a, 0.0),
        ),
        _suspect(
            "These are the weights 0.299, 0.587 and 0.114. The exercise requires 77, 150 and 29 parts of 256, which "
            "differ in the third decimal.",
            lambda a: _float_weights(a, 0.5),
        ),
        _suspect(
            "This is the unweighted mean of red, green and blue: multiply each by its weight.",
            lambda a: (a["image"].sum(-1) / 3).floor(),
        ),
        _suspect("This is only the red channel.", lambda a: a["image"][..., 0]),
        _suspect(
            "A weight was multiplied with another byte: red is byte `3 * pixel` and has 77, green is the next and has "
            "150, blue is the one after and has 29.",
            _other_bytes,
        ),
        _suspect(
            "The sum was not divided by 256, the sum of the weights: the result is `(sum + 128) >> 8`.", _other_divisor
        ),
        _suspect(
            "The pixels were stored three bytes apart. `out` has one byte per pixel: only the index of `image` has the "
            "factor 3.",
            _three_apart,
        ),
        _suspect(
            "Every pixel is nearly right: are the weights 77, 150 and 29, and is the result `(sum + 128) >> 8`?", _near
        ),
    ),
    rules=Rules(_LIBRARY),
    hints=(
        "Pixel p = row * width + column starts at byte 3 * p of `image` and is byte p of `out`.",
        "`77 * image[i]` is an `int` although `image[i]` is a byte: C++ widens small integers before it computes.",
        "`(sum + 128) >> 8` divides by 256 and rounds to the nearest integer.",
    ),
    time_limit_s=180.0,  # torch's default headers take 20 s on a fast machine, 120 s on a busy slow one
    plot_axis="N, rows and columns of the image (3 bytes per pixel)",
    plot_value=lambda case: case.arrays[1].shape[1],
)
