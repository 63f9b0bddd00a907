"""Texts of PTX drawn at random, as Triton and nvcc write them, for an exercise that reads them."""

from __future__ import annotations

import random
from collections.abc import Callable

__all__ = ["KINDS", "ptx_text"]

_DICE = random.SystemRandom()
_TYPES = {1: ("b8", "u8", "s8"), 2: ("b16", "u16", "f16"), 4: ("b32", "u32", "s32", "f32"), 8: ("b64", "u64", "f64")}
_REGISTERS = {1: "rs", 2: "rs", 4: "r", 8: "rd"}
_PLAIN = ("ld.global",)
_QUALIFIED = (
    "ld.global.nc", "ld.volatile.global", "ld.global.L1::evict_last", "ld.global.nc.L1::no_allocate.L2::128B",
    "ld.relaxed.gpu.global", "ld.global.ca", "ld.global.cg", "ld.global.L2::256B",
)  # fmt: skip


class _Writer:
    """Lines of one kernel; every register and every predicate has a number of its own."""

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
    """Lanes and bytes of an element of one access."""
    fitting = [(lanes, size) for lanes in (1, 2, 4) for size in _TYPES if lanes * size <= most_bytes]
    return _DICE.choice(fitting)


def _loads(writer: _Writer, prefixes: tuple[str, ...], guarded: float, commented: float = 0.0, most: int = 16) -> None:
    """Some loads; one access is repeated, one has several lanes of four bytes and one has several of others."""
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
    """A kernel of this kind, drawn anew."""
    writer = _Writer()
    name = f"kernel_{_DICE.randrange(100, 1000)}"
    blackwell = kind.startswith("32")
    target = "sm_100a" if blackwell else _DICE.choice(("sm_80", "sm_89", "sm_90a"))
    version = 8 if blackwell else _DICE.randrange(4, 9)  # the first that has loads of 32 bytes
    head = ["//", "// Generated by LLVM NVPTX Back-End", "//", "", f".version 8.{version}",
            f".target {target}", ".address_size 64", "", f".visible .entry {name}(",
            f"\t.param .u64 .ptr .global .align 1 {name}_param_0,", f"\t.param .u32 {name}_param_1", ")", "{",
            "\t.reg .b32 \t%r<99>;", f"\tld.param.b64 %rd{writer.number()}, [{name}_param_0];",
            f"\tld.param.b32 %r{writer.number()}, [{name}_param_1];",
            f"\tcvta.to.global.u64 %rd{writer.number()}, %rd{writer.number()};"]  # fmt: skip
    KINDS[kind](writer)
    return "\n".join([*head, *writer.lines, "\tret;", "}", ""])
