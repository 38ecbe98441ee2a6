"""Finding text that a reader cannot see, or takes for other letters; emoji and scripts that need joiners pass."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

MARKS_IN_A_ROW = 3
# One place is enough to refuse a text; a few help to mend it.
FINDINGS_MOST = 20

_ALWAYS = frozenset("\u200b\u2060\ufeff\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_JOINERS = frozenset("\u200c\u200d")
_JOINING_SCRIPTS = frozenset(
    {
        *("ARABIC", "SYRIAC", "MONGOLIAN", "DEVANAGARI", "BENGALI", "GURMUKHI", "GUJARATI", "ORIYA", "TAMIL", "TELUGU"),
        *("KANNADA", "MALAYALAM", "SINHALA", "KHMER", "MYANMAR", "TIBETAN"),
    }
)
_FLAG = "\U0001f3f4"
_FLAG_ENDS = tuple(
    "".join(chr(0xE0000 + ord(char)) for char in code) + "\U000e007f" for code in ("gbeng", "gbsct", "gbwls")
)
# In a word with Latin letters every Cyrillic letter is taken for a disguise, of the Greek ones those that look alike:
# units and formulas mix the others in.
_GREEK_LOOK_ALIKES = frozenset(
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf\u03b9\u03bd\u03c5\u03ba\u03c1"
)

_SUSPECT = re.compile(
    "[\u200b-\u200d\u2060\ufeff\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
_WORD = re.compile(r"[^\W\d_]+")

Action = Literal["hold", "reject"]


@dataclass(frozen=True, slots=True)
class Hidden:
    """One place of hidden or disguised text: `[start, end)` in characters."""

    rule: str
    action: Action
    start: int
    end: int


def find_hidden(text: str) -> list[Hidden]:
    """Return the first places of hidden text, and of words that mix look-alike scripts."""
    if text.isascii():
        return []
    looks = (_invisible(text), _stacked(text), _disguised(text))
    return [found for look in looks for found in islice(look, FINDINGS_MOST)]


def reveal(text: str) -> str:
    """Return `text` with every hidden character spelled out, for a person's review."""
    hidden = {place for found in _invisible(text) for place in range(found.start, found.end)}
    return "".join(f"[U+{ord(char):04X}]" if place in hidden else char for place, char in enumerate(text))


def _invisible(text: str) -> Iterator[Hidden]:
    allowed_until = 0
    for found in _SUSPECT.finditer(text):
        place = found.start()
        if place < allowed_until:
            continue
        if text[place - 1 : place] == _FLAG and text.startswith(_FLAG_ENDS, place):
            allowed_until = text.index("\U000e007f", place) + 1
        elif rule := _rule_of(text, place, found[0]):
            yield Hidden(rule, "reject", place, place + 1)


def _rule_of(text: str, place: int, char: str) -> str:
    code = ord(char)
    if char in _ALWAYS:
        return "hidden.zero_width" if code in (0x200B, 0x2060, 0xFEFF) else "hidden.direction"
    if 0xE0000 <= code <= 0xE007F:
        return "hidden.tag"
    if 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF:
        return "" if code in (0xFE0E, 0xFE0F) and _symbol(text[place - 1 : place]) else "hidden.variation"
    if char in _JOINERS:
        return "" if _joins(text, place) else "hidden.joiner"
    return ""


def _joins(text: str, place: int) -> bool:
    before, after = text[place - 1 : place], text[place + 1 : place + 2]
    if _script(before) in _JOINING_SCRIPTS:
        return True
    return text[place] == "\u200d" and (_symbol(before) or before == "\ufe0f") and _symbol(after)


def _symbol(char: str) -> bool:
    """Tell whether a character can carry emoji presentation: symbols, skin tones, and the keycap digits."""
    return (
        bool(char)
        and (unicodedata.category(char) in ("So", "Sm", "Sk", "Po") or char in "0123456789#*")
        and (ord(char) >= 0x203C or char in "0123456789#*©®")
    )


def _stacked(text: str) -> Iterator[Hidden]:
    start = None
    for place, char in enumerate(text + " "):
        if unicodedata.category(char) in ("Mn", "Me"):
            start = place if start is None else start
        elif start is not None:
            if place - start > MARKS_IN_A_ROW and not _is_variation(text[start:place]):
                yield Hidden("hidden.marks", "reject", start, place)
            start = None


def _is_variation(run: str) -> bool:
    return all(0xFE00 <= ord(char) <= 0xFE0F or 0xE0100 <= ord(char) <= 0xE01EF for char in run)


def _disguised(text: str) -> Iterator[Hidden]:
    for word in _WORD.finditer(text):
        if _mixes(word[0]):
            yield Hidden("hidden.look_alike", "hold", word.start(), word.end())


def _mixes(word: str) -> bool:
    if word.isascii() or not any(_script(char) == "LATIN" for char in word):
        return False
    return any(_script(char) == "CYRILLIC" or char in _GREEK_LOOK_ALIKES for char in word)


def _script(char: str) -> str:
    return unicodedata.name(char, "").partition(" ")[0] if char else ""
