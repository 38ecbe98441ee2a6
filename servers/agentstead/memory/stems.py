"""Porter's stemmer as SQLite's FTS5 applies it, so that the words of the index can be named outside of it.

Source of the rules: M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980, with the later
departures `bli` and `logi`. A test holds it against the stems that FTS5 itself stores.
"""

from functools import lru_cache
from itertools import pairwise

_VOWELS = frozenset("aeiou")
_LEAST_BYTES = 3
_MOST_BYTES = 64

_STEP_2 = {
    "a": (("ational", "ate"), ("tional", "tion")),
    "c": (("enci", "ence"), ("anci", "ance")),
    "e": (("izer", "ize"),),
    "g": (("logi", "log"),),
    "l": (("bli", "ble"), ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous")),
    "o": (("ization", "ize"), ("ation", "ate"), ("ator", "ate")),
    "s": (("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous")),
    "t": (("aliti", "al"), ("iviti", "ive"), ("biliti", "ble")),
}
_STEP_3 = {
    "a": (("ical", "ic"),),
    "s": (("ness", ""),),
    "t": (("icate", "ic"), ("iciti", "ic")),
    "u": (("ful", ""),),
    "v": (("ative", ""),),
    "z": (("alize", "al"),),
}
_STEP_4 = {
    "a": ("al",),
    "c": ("ance", "ence"),
    "e": ("er",),
    "i": ("ic",),
    "l": ("able", "ible"),
    "n": ("ant", "ement", "ment", "ent"),
    "o": ("ion", "ou"),
    "s": ("ism",),
    "t": ("ate", "iti"),
    "u": ("ous",),
    "v": ("ive",),
    "z": ("ize",),
}


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return the stem of one lower-case word; words under 3 or over 64 bytes stay as they are."""
    raw = word.encode()
    if not _LEAST_BYTES <= len(raw) <= _MOST_BYTES:
        return word
    # FTS5 works on bytes and takes every byte outside a-z for a consonant.
    text = _step_1c(_step_1b(_step_1a(raw.decode("latin-1"))))
    text = _step_5(_step_4(_replace(_replace(text, _STEP_2), _STEP_3)))
    return text.encode("latin-1").decode("utf-8", "replace")


def _step_1a(text: str) -> str:
    if text.endswith(("sses", "ies")):
        return text[:-2] if len(text) > (4 if text.endswith("sses") else 3) else text[:-1]
    return text[:-1] if text.endswith("s") and not text.endswith("ss") else text


def _step_1b(text: str) -> str:
    if len(text) > 3 and text.endswith("eed"):
        return text[:-1] if _measure(text[:-3]) > 0 else text
    for suffix in ("ing", "ed"):
        if len(text) > len(suffix) and text.endswith(suffix):
            root = text[: -len(suffix)]
            return _tidy(root) if _has_vowel(root) else text
    return text


def _tidy(text: str) -> str:
    if len(text) > 2 and text.endswith(("at", "bl", "iz")):
        return text + "e"
    last = text[-1]
    if len(text) > 1 and last == text[-2] and last not in _VOWELS and last not in "lsz":
        return text[:-1]
    return text + "e" if _measure(text) == 1 and _ends_short(text) else text


def _step_1c(text: str) -> str:
    return text[:-1] + "i" if text.endswith("y") and _has_vowel(text[:-1]) else text


def _replace(text: str, table: dict[str, tuple[tuple[str, str], ...]]) -> str:
    for suffix, other in table.get(text[-2:-1], ()):
        if len(text) > len(suffix) and text.endswith(suffix):
            root = text[: -len(suffix)]
            return root + other if _measure(root) > 0 else text
    return text


def _step_4(text: str) -> str:
    for suffix in _STEP_4.get(text[-2:-1], ()):
        if len(text) > len(suffix) and text.endswith(suffix):
            root = text[: -len(suffix)]
            kept = _measure(root) <= 1 or (suffix == "ion" and root[-1] not in "st")
            return text if kept else root
    return text


def _step_5(text: str) -> str:
    if text.endswith("e"):
        measure = _measure(text[:-1])
        if measure > 1 or (measure == 1 and not _ends_short(text[:-1])):
            text = text[:-1]
    return text[:-1] if text.endswith("ll") and _measure(text[:-1]) > 1 else text


def _consonants(text: str) -> list[bool]:
    found: list[bool] = []
    before = False
    for char in text:
        before = not (char in _VOWELS or (char == "y" and before))
        found.append(before)
    return found


def _measure(text: str) -> int:
    kinds = _consonants(text)
    return sum(1 for left, right in pairwise(kinds) if right and not left)


def _has_vowel(text: str) -> bool:
    return any(char in _VOWELS or (char == "y" and place > 0) for place, char in enumerate(text))


def _ends_short(text: str) -> bool:
    return text[-1:] not in ("w", "x", "y", "") and _consonants(text)[-3:] == [True, False, True]
