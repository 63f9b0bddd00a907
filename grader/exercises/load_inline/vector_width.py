"""Count the loads from global memory in PTX by their width, in random PTX as Triton and nvcc write it."""

from __future__ import annotations

import functools
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from grader.exercise import Array, Budget, Case, Exercise, Suspect
from grader.protocol.channel import from_bytes, to_bytes

_DICE = random.SystemRandom()
_TYPES = {1: ("b8", "u8", "s8"), 2: ("b16", "u16", "f16"), 4: ("b32", "u32", "s32", "f32"), 8: ("b64", "u64", "f64")}
_REGISTERS = {1: "rs", 2: "rs", 4: "r", 8: "rd"}
_PLAIN = ("ld.global",)
_QUALIFIED = (
    "ld.global.nc", "ld.volatile.global", "ld.global.L1::evict_last", "ld.global.nc.L1::no_allocate.L2::128B",
    "ld.relaxed.gpu.global", "ld.global.ca", "ld.global.cg", "ld.global.L2::256B",
)  # fmt: skip


class _Writer:
    """The lines of one kernel. Every register and predicate has its own number."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._next = _DICE.randrange(1, 40)

    def number(self) -> int:
        self._next += _DICE.randrange(1, 3)
        return self._next

    def vector(self, lanes: int, size: int) -> str:
        names = [f"%{_REGISTERS[size]}{self.number()}" for _ in range(lanes)]
        return names[0] if lanes == 1 and _DICE.random() < 0.5 else "{ " + ", ".join(names) + " }"

    def access(self, prefix: str, lanes: int, size: int, guarded: bool = False, store: bool = False) -> str:
        kind = ("" if lanes == 1 else f".v{lanes}") + "." + _DICE.choice(_TYPES[size])
        address = f"[ %rd{self.number()} + {16 * _DICE.randrange(0, 9)} ]"
        registers = self.vector(lanes, size)
        operands = f"{address}, {registers}" if store else f"{registers}, {address}"
        guard = f"@{'!' * (_DICE.random() < 0.2)}%p{self.number()} " if guarded else ""
        return f"{guard}{prefix}{kind} {operands};"

    def add(self, line: str, comment: str = "") -> None:
        self.lines.append(f"\t{line}" + (f"  // {comment}" if comment else ""))

    def arithmetic(self) -> None:
        for _ in range(_DICE.randrange(1, 4)):
            a, b, c = (self.number() for _ in range(3))
            self.add(_DICE.choice((f"mul.f32 %f{a}, %f{b}, %f{c};", f"add.s64 %rd{a}, %rd{b}, {16 * c};",
                                   f"mad.lo.s32 %r{a}, %r{b}, %r{c}, %r{a};", f"mov.b32 %r{a}, 0x0;")))  # fmt: skip


def _sizes(most_bytes: int = 16) -> tuple[int, int]:
    """The vector length and the element size of one access."""
    fitting = [(lanes, size) for lanes in (1, 2, 4) for size in _TYPES if lanes * size <= most_bytes]
    return _DICE.choice(fitting)


def _loads(writer: _Writer, prefixes: tuple[str, ...], guarded: float, commented: float = 0.0, most: int = 16) -> None:
    """Random loads: one access is repeated, one is a vector of four-byte elements and one of other elements."""
    accesses = [(4, 4), (2, 8), _sizes(), _sizes(), _sizes(), *([(8, 4), (4, 8), (1, 1)] if most == 32 else [])]
    accesses += _DICE.choices(accesses, k=_DICE.randrange(2, 5))
    _DICE.shuffle(accesses)
    for at, (lanes, size) in enumerate(accesses):
        prefix, under = prefixes[at % len(prefixes)], at < 2 or _DICE.random() < guarded
        line = writer.access(prefix, lanes, size, under)
        noted = commented > 0 and (at == 0 or _DICE.random() < commented)
        was = writer.access("ld.global", *_sizes()) if noted else ""
        writer.add(line, f"was: {was}" if was else "")
        writer.arithmetic()


def _triton(writer: _Writer) -> None:
    for _ in range(_DICE.randrange(3, 6)):
        line = writer.access("ld.global", *_DICE.choice(((4, 4), (1, 4), (2, 4), (1, 2), (2, 8))), guarded=True)
        writer.add("// begin inline asm")
        writer.add(f"mov.u32 %r{writer.number()}, 0x0;")
        writer.add(line)
        writer.add("// end inline asm")
    writer.add(writer.access("ld.global", 4, 4))
    writer.add(writer.access("ld.global", 4, 4, guarded=True))


def _stores(writer: _Writer) -> None:
    _loads(writer, _PLAIN, 0.2)
    for lanes, size in ((4, 4), (1, 1), (2, 4)):
        writer.add(writer.access("st.global", lanes, size, _DICE.random() < 0.5, store=True))
    writer.add(f"red.global.add.f32 [ %rd{writer.number()} ], %f{writer.number()};")
    writer.add(f"prefetch.global.L2 [ %rd{writer.number()} ];")


def _elsewhere(writer: _Writer) -> None:
    _loads(writer, _PLAIN, 0.2)
    for space in ("shared", "local", "const", "shared::cta"):
        writer.add(writer.access(f"ld.{space}", *_DICE.choice(((4, 4), (1, 4), (2, 2), (1, 8)))))
    writer.arithmetic()
    writer.add(writer.access("ld.shared", 4, 4))
    writer.add(re.sub(r"%rd\d+", "global_smem", writer.access("ld.shared", 4, 4)))  # Triton's name for shared memory


def _asynchronous(writer: _Writer) -> None:
    _loads(writer, _PLAIN, 0.3)
    for way, size in (("cg", 16), ("ca", 4), ("ca", 8)):
        addresses = f"[ %r{writer.number()} + 0 ], [ %rd{writer.number()} + 0 ]"
        writer.add(f"cp.async.{way}.shared.global {addresses}, {size};")
    writer.add("cp.async.commit_group;")
    writer.add("cp.async.wait_group 0;")


def _qualified(writer: _Writer) -> None:
    _loads(writer, _QUALIFIED + _PLAIN, 0.2)


def _commented(writer: _Writer) -> None:
    _loads(writer, _PLAIN, 0.2, commented=0.5)
    writer.add(f"// {writer.access('ld.global', 4, 4)}")
    writer.add(f"// {writer.access('ld.global', 1, 8)}")


def _wide(writer: _Writer) -> None:
    _loads(writer, (*_PLAIN, "ld.global.nc"), 0.4, most=32)


KINDS: dict[str, Callable[[_Writer], None]] = {
    "masked loads, as Triton writes them": _triton,
    "loads and stores": _stores,
    "other memories": _elsewhere,
    "asynchronous copies": _asynchronous,
    "loads with qualifiers": _qualified,
    "loads in comments": _commented,
    "32 bytes, for Blackwell": _wide,
}


def ptx_text(kind: str) -> str:
    """A new random kernel of this kind."""
    writer = _Writer()
    name = f"kernel_{_DICE.randrange(100, 1000)}"
    blackwell = kind.startswith("32")
    target = "sm_100a" if blackwell else _DICE.choice(("sm_80", "sm_89", "sm_90a"))
    version = 8 if blackwell else _DICE.randrange(4, 9)  # the first with 32-byte loads
    head = ["//", "// Generated by LLVM NVPTX Back-End", "//", "", f".version 8.{version}",
            f".target {target}", ".address_size 64", "", f".visible .entry {name}(",
            f"\t.param .u64 .ptr .global .align 1 {name}_param_0,", f"\t.param .u32 {name}_param_1", ")", "{",
            "\t.reg .b32 \t%r<99>;", f"\tld.param.b64 %rd{writer.number()}, [{name}_param_0];",
            f"\tld.param.b32 %r{writer.number()}, [{name}_param_1];",
            f"\tcvta.to.global.u64 %rd{writer.number()}, %rd{writer.number()};"]  # fmt: skip
    KINDS[kind](writer)
    return "\n".join([*head, *writer.lines, "\tret;", "}", ""])


WIDTHS = (1, 2, 4, 8, 16, 32)  # bytes; the harness below repeats them
_BYTES = 20_001
_COUNTS = tuple[int, ...]
_ACCESS = re.compile(r"(?P<name>ld|st)(?P<parts>(?:\.[\w:]+)+)")
_COPY = re.compile(r"cp\.async\.c[ag]\.shared\.global .*, (\d+);")


def _case(name: str) -> Case:
    return Case(name, (Array("ptx", (_BYTES,), "uint8"), Array("out", (len(WIDTHS),), "float64", role="out")))


def _draw(case: Case, source: Any, machine: Any = None) -> dict[str, Any]:
    return {"ptx": to_bytes(ptx_text(case.name), _BYTES)}


def _six_counts(entry: Any, ptx: Any, out: Any) -> None:
    import torch

    from grader.protocol.channel import from_bytes

    widths = (1, 2, 4, 8, 16, 32)
    found = entry(from_bytes(ptx))
    if not hasattr(found, "items"):
        raise TypeError(f"vector_width must return a dictionary {{bytes: number of loads}}, but returned {found!r:.80}")
    for width in found:
        if width not in widths:
            raise ValueError(f"vector_width counts {width!r:.40}-byte loads: no load of a thread is that wide")
    out.copy_(torch.tensor([float(found.get(width, 0)) for width in widths], dtype=torch.float64))


def _counts(widths: Iterable[int]) -> _COUNTS:
    counted = Counter(widths)
    return tuple(counted[width] for width in WIDTHS)


@functools.lru_cache(maxsize=32)
def _found(text: str) -> dict[str, _COUNTS]:
    """The right answer, under "", and those of bugs, by name."""
    seen: list[tuple[set[str], int, int]] = []  # notes on an access, its vector length, element size
    for line in text.splitlines():
        code = line.partition("//")[0]
        for place in (line, code):
            if found := _ACCESS.search(place):
                parts = found["parts"].split(".")[1:]
                notes = {"store"} if found["name"] == "st" else set()
                notes |= set() if "global" in parts else {"named"} if "global" in code else {"elsewhere"}
                notes |= {"guarded"} if place.lstrip().startswith("@") else set()
                plain = re.fullmatch(r"\.global(\.v\d)?\.[bufs]\d+", found["parts"])
                notes |= set() if plain else {"qualified"}
                notes |= {"comment"} if place is line and place != code and not _ACCESS.search(code) else set()
                lanes = next((int(part[1:]) for part in parts if re.fullmatch(r"v\d", part)), 1)
                seen.append((notes, lanes, int(re.sub(r"\D", "", parts[-1])) // 8))
                break
    copies = [int(found[1]) for found in _COPY.finditer(text)]
    return _answers(text, seen, copies)


def _answers(text: str, seen: list[tuple[set[str], int, int]], copies: list[int]) -> dict[str, _COUNTS]:
    def of(*allowed: str, without: str = "") -> list[tuple[int, int]]:
        known = {"guarded", "qualified", *allowed} - {without}
        return [(lanes, size) for notes, lanes, size in seen if notes <= known]

    right = [lanes * size for lanes, size in of()]
    trailing = [
        int((found := _ACCESS.search(note)) is not None and _bytes(found["parts"]))
        for note in (line.partition("//")[2] for line in text.splitlines())
        if "ld.global" in note
    ]
    return {
        "": _counts(right),
        "lanes": _counts(size for _, size in of()),
        "types": _counts(4 * lanes for lanes, _ in of()),
        "registers": _counts(size for lanes, size in of() for _ in range(lanes)),
        "comments": _counts([*right, *trailing]),
        "comment lines": _counts(lanes * size for lanes, size in of("comment")),
        "eight as one": _counts(size * (1 if lanes == 8 else lanes) for lanes, size in of()),
        "no eight": _counts(lanes * size for lanes, size in of() if lanes != 8),
        "guarded": _counts(lanes * size for lanes, size in of(without="guarded")),
        "qualified": _counts(lanes * size for lanes, size in of(without="qualified")),
        "stores": _counts(lanes * size for lanes, size in of("store")),
        "elsewhere": _counts(lanes * size for lanes, size in of("elsewhere", "named")),
        "named": _counts(lanes * size for lanes, size in of("named")),
        "copies": _counts([*right, *copies]),
        "distinct": _counts(set(right)),
    }


def _bytes(parts: str) -> int:
    lanes = re.search(r"\.v(\d)", parts)
    return int(lanes[1] if lanes else 1) * int(re.sub(r"\D", "", parts.split(".")[-1])) // 8


def _of(inputs: Any) -> dict[str, _COUNTS]:
    return _found(from_bytes(inputs["ptx"]))


def _tensor(counts: _COUNTS, inputs: Any) -> Any:
    import torch

    return torch.tensor(counts, dtype=torch.float64, device=inputs["ptx"].device)


def _suspect(bug: str, sentence: str) -> Suspect:
    def output(inputs: Any) -> Any:
        found = _of(inputs)
        same = [name for name, counts in found.items() if counts == found[bug]]
        return _tensor(found[bug], inputs) if same == [bug] else None  # otherwise another case shows the bug

    return Suspect(sentence, output)


_nothing: Callable[[Case], int] = lambda case: case.arrays[0].shape[0]  # noqa: E731
_COMMENTS = "Loads in comments were counted: text after `//` is not code."
_CASES = tuple(_case(name) for name in KINDS)

VECTOR_WIDTH = Exercise(
    id="vector_width",
    title="Read the width of loads",
    chapter="03_triton",
    notebook="07_look_inside_the_compiler",
    entry="vector_width",
    parameters=("ptx",),
    backend="torch",
    cases=_CASES,
    simulator_cases=_CASES,
    timed_cases=(),
    plot_cases=(),
    harness=_six_counts,
    draw=_draw,
    oracle=lambda inputs: _tensor(_of(inputs)[""], inputs),
    budget=Budget(absolute=1e-6, relative=0.0),
    answers=tuple(f"loads of {width} byte{'s' if width > 1 else ''}" for width in WIDTHS),
    bytes_moved=_nothing,
    operations=_nothing,
    correctness_points=4,
    suspects=(
        _suspect("lanes", "Only the type was counted: a `v4` before it means four of them."),
        _suspect("types", "Every element was counted as 4 bytes: `b64` has 8, `f16` has 2, `u8` has 1."),
        _suspect(
            "registers",
            "Registers were counted, not loads: a load into `{ %r1, %r2, %r3, %r4 }` is one load of 16 bytes.",
        ),
        _suspect("comments", _COMMENTS),
        _suspect("comment lines", _COMMENTS),
        _suspect("eight as one", "`v8` was ignored: it means eight of the type that follows."),
        _suspect("no eight", "Loads with `v8` are missing: they are loads from global memory as well."),
        _suspect(
            "guarded", "Loads under a predicate are missing: a mask is compiled to `@%p1 ld.global…`, which is a load."
        ),
        _suspect(
            "qualified",
            "Loads with qualifiers are missing: `.nc`, `.L1::…` or `.volatile` may come before or after `.global`, "
            "and the type is last.",
        ),
        _suspect("stores", "Stores were counted as well: they start with `st`."),
        _suspect(
            "elsewhere",
            "Loads from other memory spaces were counted as well, such as shared memory, parameters or constants. "
            "Count only those with `.global`.",
        ),
        _suspect(
            "named",
            "A load from shared memory was counted because its address is called `global_smem`: `global` must be one "
            "of the parts of the instruction's name.",
        ),
        _suspect("copies", "`cp.async` was counted: it copies to shared memory and is not a load."),
        _suspect("distinct", "Each width was counted only once: count the instructions."),
    ),
    hints=(
        "Cut each line at `//`, then look for `ld.`: a predicate such as `@%p1` may come before it.",
        "Split the instruction's name at the dots. If `global` is one of the parts, the last part is the type, and a "
        "part `v2`, `v4` or `v8` is the number of elements.",
        "The digits in the type are bits, and 8 bits are one byte.",
        "`collections.Counter` does the counting.",
    ),
)
