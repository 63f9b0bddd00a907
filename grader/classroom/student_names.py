"""Valid student names in the exchange, where anyone can invent one, and names that look alike."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable

# The letters in which names are written today, by script. Phonetic letters and digits of other scripts are left out.
_SCRIPTS = {
    "Latin": "A-Za-z\u00c0-\u01bf\u01c4-\u024f\u0253\u0254\u0257\u0259\u025b\u1e00-\u1eff",
    "Greek": "\u0386-\u03ce",
    "Cyrillic": "\u0400-\u0481\u048a-\u052f",
    "Armenian": "\u0531-\u0556\u0561-\u0586",
    "Georgian": "\u10d0-\u10fa",
    "Hebrew": "\u05d0-\u05ea",
    "Arabic": "\u0620-\u063f\u0641-\u064a\u0671-\u06d3",
    "Ethiopic": "\u1200-\u135a",
    "Devanagari": "\u0900-\u094f\u0958-\u0963",
    "Bengali": "\u0980-\u09e3",
    "Gurmukhi": "\u0a00-\u0a5e\u0a70-\u0a75",
    "Gujarati": "\u0a80-\u0ae3",
    "Oriya": "\u0b00-\u0b63",
    "Tamil": "\u0b80-\u0bd7",
    "Telugu": "\u0c00-\u0c63",
    "Kannada": "\u0c80-\u0ce3",
    "Malayalam": "\u0d00-\u0d63",
    "Sinhala": "\u0d80-\u0df3",
    "Thai": "\u0e01-\u0e3a\u0e40-\u0e45\u0e47-\u0e4e",
    "Lao": "\u0e80-\u0ec4\u0ec8-\u0ecd",
    "Myanmar": "\u1000-\u103f",
    "Khmer": "\u1780-\u17b3\u17b6-\u17d2",  # without two invisible vowels
    "Chinese": "\u3105-\u312f\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0002a6df",
    "Japanese": "\u3005\u3041-\u3096\u30a1-\u30fa\u30fc\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0002a6df",
    "Korean": "\uac00-\ud7a3\u4e00-\u9fff",
}
_WITH_LATIN = {"Chinese", "Japanese", "Korean"}  # none of their letters looks like a Latin one
_MARKS = r"0-9_.@+-"
_NAME = re.compile(
    "|".join(
        f"[{letters}0-9_][{letters}{_MARKS}]*(?: [{letters}{_MARKS}]+)*"
        for letters in (
            latin + own if script in _WITH_LATIN else own
            for latin in [_SCRIPTS["Latin"]]
            for script, own in _SCRIPTS.items()
        )
    )
)
_LETTERS = {"Lu", "Ll", "Lt", "Lo", "Mn", "Mc"}
_OF_TWO_PARTS = "\u0e33\u0eb3"  # Thai and Lao vowels that NFKC decomposes, although people write them composed

# Pairs of a letter and the letter that it looks like. Python's `unicodedata` does not have them.
_DRAWN_ALIKE = dict(
    re.findall(
        r"(\S)>(\S)",
        """
    1>l I>l 0>O \u00d8>O \u00f8>o \u0110>D \u0111>d \u0126>H \u0127>h \u0166>T \u0167>t \u0141>L
    \u0131>i \u0237>j \u01c0>l \u0142>l \u0253>b \u0257>d \u025b>e \u0254>c
    \u0391>A \u0392>B \u0395>E \u0396>Z \u0397>H \u0399>l \u039a>K \u039c>M \u039d>N \u039f>O \u03a1>P \u03a4>T
    \u03a5>Y \u03a7>X \u03b1>a \u03b9>i \u03ba>k \u03bd>v \u03bf>o \u03c1>p \u03c3>o \u03c4>t \u03c5>u \u03c7>x
    \u03b3>y \u03b7>n \u03c9>w \u03b5>e
    \u0410>A \u0412>B \u0415>E \u0405>S \u0406>l \u0408>J \u041a>K \u041c>M \u041d>H \u041e>O \u0420>P \u0421>C
    \u0422>T \u0423>Y \u0425>X \u0417>3 \u0430>a \u0435>e \u0455>s \u0456>i \u0458>j \u043a>k \u043e>o \u0440>p
    \u0441>c \u0443>y \u0445>x \u0433>r \u043f>n \u0442>t \u043c>m \u0432>B \u043d>H \u044c>b \u0474>V \u0475>v
    \u04ae>Y \u04af>y \u04ba>h \u04bb>h \u04c0>l \u04cf>l \u0501>d \u051b>q \u051c>W \u051d>w \u0461>w
    \u0555>O \u0585>o \u0578>n \u057d>u \u0570>h \u0566>q \u0563>q \u0561>w \u0564>n \u0575>j \u054f>S \u053c>L
    \u05d5>l \u05df>l \u05d8>u \u05e1>o \u05d9>- \u0627>l \u0647>o \u06c1>o \u06be>o \u06d5>o
    \u06cc>\u064a \u0649>\u064a \u06a9>\u0643 \u0d20>o
    \u4e00>- \u30fc>- \u4e28>l \u30ce>/ \u30ab>\u529b \u30ed>\u53e3 \u30cb>\u4e8c \u30a8>\u5de5 \u30c8>\u535c
    \u30bf>\u5915 \u30cf>\u516b \u30d8>\u3078 \u56d7>\u53e3 \u571f>\u58eb \u672b>\u672a
    """,
    )
)
_TABLE = str.maketrans(_DRAWN_ALIKE)


def is_name(text: str) -> bool:
    """Whether it consists of visible letters of one script, digits, single spaces and a few marks.

    Chinese, Japanese and Korean names may also contain Latin letters. Letters must be in Unicode's normal form, so that
    two different names cannot look identical.
    """
    return (
        _NAME.fullmatch(text) is not None
        and unicodedata.is_normalized("NFC", text)
        and all(c.isascii() or _is_letter(c) for c in text)
    )


def _is_letter(c: str) -> bool:
    known = unicodedata.category(c) in _LETTERS or c in "\u3005\u30fc"
    return known and (c in _OF_TWO_PARTS or unicodedata.is_normalized("NFKC", c))


def skeleton(text: str) -> str:
    """A key that is equal for names that look alike, ignoring case and accents."""
    bare = re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFKD", text))
    drawn = unicodedata.normalize("NFKC", bare.translate(_TABLE).casefold())
    return drawn.replace("rn", "m").replace("vv", "w")


def look_alikes(names: Iterable[str]) -> dict[str, set[str]]:
    """The names that look like others, with those others."""
    alike: defaultdict[str, set[str]] = defaultdict(set)
    names = set(names)
    for name in names:
        for key in {skeleton(name), skeleton(name.casefold())}:  # a capital I looks like l, but is a capital i
            alike[key].add(name)
    found: defaultdict[str, set[str]] = defaultdict(set)
    for group in alike.values():
        for name in group:
            found[name] |= group - {name}
    return {name: others for name, others in found.items() if others}


def spelled(text: str) -> str:
    """The spelling in ASCII, such as ` (spelled \\u0430lice)`; empty if the text is ASCII already."""
    plain = text.encode("ascii", "backslashreplace").decode()
    return "" if plain == text else f" (spelled {plain})"
