"""Split an ``allowed-tools`` value into its patterns. It is a request of the skill's author and grants nothing."""

import re
from typing import Final

_PATTERN: Final = re.compile(r"[A-Za-z_*][A-Za-z0-9_.*-]*(?:\(.*\))?", re.DOTALL)


def split_patterns(value: str) -> tuple[tuple[str, ...], str]:
    """Return the patterns that can be read, and what is wrong with the value, or an empty text.

    Patterns are parted by blanks outside parentheses; commas are taken as blanks and reported.
    """
    words, balanced = _words(value)
    patterns = tuple(word for word in words if _PATTERN.fullmatch(word))
    if not balanced:
        return patterns, "A parenthesis is not closed, or closes nothing."
    if not words:
        return (), "The value is empty."
    if odd := next((word for word in words if not _PATTERN.fullmatch(word)), None):
        return patterns, f"'{odd[:64]}' is no tool pattern."
    if "," in re.sub(r"\(.*?\)", "", value, flags=re.DOTALL):
        return patterns, "The patterns are parted by commas."
    return patterns, ""


def _words(value: str) -> tuple[list[str], bool]:
    words, word, depth, balanced = [], "", 0, True
    for character in f"{value} ":
        if depth == 0 and (character.isspace() or character == ","):
            if word:
                words.append(word)
            word = ""
            continue
        depth += (character == "(") - (character == ")")
        balanced = balanced and depth >= 0
        depth = max(depth, 0)
        word += character
    return words, balanced and depth == 0
