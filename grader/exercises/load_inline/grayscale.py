"""Turn a colour image into shades of grey: three bytes in, one out, in integers and rounded exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grader.exercise import Array, Baseline, Budget, Case, Exercise, Gate, Rules, Suspect

_MANY = 100  # pixels: of fewer, two bugs may well give the same greys


def _case(height: int, width: int) -> Case:
    arrays = (
        Array("image", (height, width, 3), "uint8", grows=1),
        Array("out", (height, width), "uint8", role="out", grows=1),
    )
    return Case(f"{height} × {width}", arrays)


def _grey(red: Any, green: Any, blue: Any) -> Any:
    return ((77 * red + 150 * green + 29 * blue + 128) / 256).floor()


def _suspect(sentence: str, values: Callable[[Any], Any]) -> Suspect:
    """A suspect that is silent of few pixels."""
    return Suspect(sentence, lambda a: values(a) if a["image"][..., 0].numel() >= _MANY else None)


def _cut(red: Any, green: Any, blue: Any) -> Any:
    return ((77 * red + 150 * green + 29 * blue) / 256).floor()


def _oracle(inputs: Any) -> Any:
    return _grey(*inputs["image"].unbind(-1))


def _eager(image: Any, out: Any) -> None:
    red, green, blue = image.int().unbind(-1)  # reads 3MN bytes, writes 12MN: in uint8 the products would overflow
    out.copy_((77 * red + 150 * green + 29 * blue + 128) >> 8)  # eight kernels more, with 4 bytes an operand


def _planes(a: Any) -> Any:
    height, width, _ = a["image"].shape
    return _grey(*a["image"].reshape(3, height, width))


def _no_stride(a: Any) -> Any:
    flat, (height, width) = a["image"].flatten(), a["image"].shape[:2]
    pixels = height * width
    return _grey(*(flat[k : k + pixels] for k in range(3))).reshape(height, width)


def _short_rows(a: Any) -> Any:
    """Rows `width` bytes apart, pixels three: the row's stride lacks its factor."""
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
    """With 0.299, 0.587 and 0.114. Within rounding of a whole number, float32 may fall on either side of it."""
    red, green, blue = a["image"].unbind(-1)
    exact = 0.299 * red + 0.587 * green + 0.114 * blue + half
    said, got = exact.floor(), a.get("got")
    if got is None:
        return said
    on_the_edge = (exact - exact.round()).abs() < 1e-3
    return got if bool(((got == said) | (on_the_edge & ((got - said).abs() <= 1))).all()) else said


_TIMED = (_case(4096, 4096),)

GRAYSCALE = Exercise(
    id="grayscale",
    title="Turn an image grey",
    chapter="02_load_inline",
    notebook="01_square_a_matrix",
    entry="grayscale",
    parameters=("image", "out"),
    backend="cuda",
    cases=(
        _case(1, 1),
        _case(3, 3),
        _case(37, 53),
        _case(1, 1000),
        _case(1000, 1),
        _case(1080, 1921),
    ),
    simulator_cases=(
        _case(1, 1),
        _case(3, 3),
        _case(37, 53),
        _case(1, 300),
        _case(300, 1),
        _case(65, 49),
    ),
    timed_cases=_TIMED,
    plot_cases=tuple(_case(n, n) for n in (256, 512, 1024, 2048, 4096, 8192)),
    oracle=_oracle,
    budget=Budget(absolute=0.5, relative=0.0),  # whole numbers: none may be off
    bytes_moved=lambda case: 4 * case.arrays[1].shape[0] * case.arrays[1].shape[1],
    operations=lambda case: 5 * case.arrays[1].shape[0] * case.arrays[1].shape[1],
    correctness_points=3,
    baselines=(Baseline("eager", "the eager expression", _eager),),
    gates=(Gate("eager", 2.0, 2, (_TIMED[0].name,)),),
    suspects=(
        _suspect(
            "Red and blue are swapped: in each pixel red comes first, then green, then blue.",
            lambda a: _grey(*a["image"].flip(-1).unbind(-1)),
        ),
        _suspect(
            "The sum was cut, not rounded: add 128 before you shift.",
            lambda a: _cut(*a["image"].unbind(-1)),
        ),
        _suspect(
            "The three bytes were read one plane apart, as if all red came first. Here the three bytes of a pixel are "
            "neighbours: 3 * pixel, and the next two.",
            _planes,
        ),
        _suspect("Pixels lie three bytes apart, not one: where does pixel number p begin?", _no_stride),
        _suspect(
            "Rows lie 3 * width bytes apart, not width: the factor 3 belongs to the whole of `row * width + column`.",
            _short_rows,
        ),
        _suspect(
            "The values are right but lie transposed: is the index `row * width + column`?",
            _transposed,
        ),
        _suspect("The sum was stored without the shift: what is left is its low byte.", _low_byte),
        _suspect(
            "Bytes above 127 were read as negative numbers: `char` has a sign on most machines: use `unsigned char`.",
            _signed,
        ),
        _suspect(
            "Everything is 0: was the sum kept in an `unsigned char`, which holds 255 at most? Keep it in an `int`.",
            lambda a: 0 * a["image"][..., 0],
        ),
        _suspect(
            "Each product was cut to 8 bits: 77 * red does not fit into an `unsigned char`. Keep it in an `int`.",
            _products_cut,
        ),
        _suspect(
            "These are the weights 0.299, 0.587 and 0.114, cut to a whole number. Asked for are 77, 150 and 29 parts "
            "of 256, rounded, and integers do that exactly.",
            lambda a: _float_weights(a, 0.0),
        ),
        _suspect(
            "These are the weights 0.299, 0.587 and 0.114. Asked for are 77, 150 and 29 parts of 256, which differ in "
            "the third decimal.",
            lambda a: _float_weights(a, 0.5),
        ),
        _suspect(
            "This is the plain mean of red, green and blue; the three have weights.",
            lambda a: (a["image"].sum(-1) / 3).floor(),
        ),
        _suspect("This is the red channel alone.", lambda a: a["image"][..., 0]),
    ),
    rules=Rules(
        (
            "mul",
            "multiply",
            "add",
            "sum",
            "mean",
            "matmul",
            "mm",
            "mv",
            "einsum",
            "dot",
            "tensordot",
            "__mul__",
            "__rmul__",
            "__add__",
            "__radd__",
        ),
    ),
    hints=(
        "Pixel number p = row * width + column begins at byte 3 * p of `image`, and is byte p of `out`.",
        "`77 * image[i]` is an `int`, even though `image[i]` is a byte: C++ widens small integers before it computes.",
        "`(sum + 128) >> 8` divides by 256 and rounds to the nearest.",
    ),
    time_limit_s=180.0,  # torch's default headers take 20 s on a fast machine, 120 s on a busy slow one
    plot_axis="N, rows and columns of the image (3 bytes a pixel)",
    plot_value=lambda case: case.arrays[1].shape[1],
)
