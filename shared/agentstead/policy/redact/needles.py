"""Finding many known texts in a long one: pieces of the text, taken at a fixed stride, are looked up in one set.

Every needle of 15 bytes or more covers a whole aligned piece of 8 bytes, every shorter one (of 8 or more) a piece of
4, whatever its place. So clean text costs one pass in C, and only needles with a piece in the text are searched for.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

_WIDE, _NARROW = 8, 4
_WIDE_LEAST = 2 * _WIDE - 1
_CODES: Mapping[int, Literal["Q", "I"]] = {_WIDE: "Q", _NARROW: "I"}


class Needles:
    """A set of texts with the mark that replaces each; immutable once made."""

    def __init__(self, marks: Mapping[str, str]) -> None:
        self._marks = dict(marks)
        self._wide = _pieces([text for text in marks if _size(text) >= _WIDE_LEAST], _WIDE)
        self._narrow = _pieces([text for text in marks if _size(text) < _WIDE_LEAST], _NARROW)

    def __len__(self) -> int:
        return len(self._marks)

    def replace(self, text: str) -> str:
        """Return `text` with every needle replaced, longer ones first."""
        if not self._marks:
            return text
        data = text.encode("utf-8", "surrogatepass")
        found = _candidates(data, self._wide, _WIDE) | _candidates(data, self._narrow, _NARROW)
        for needle in sorted(found, key=lambda needle: (-len(needle), needle)):
            text = text.replace(needle, self._marks[needle])
        return text


def _candidates(data: bytes, pieces: Mapping[int, Sequence[str]], width: int) -> set[str]:
    if not pieces:
        return set()
    whole = memoryview(data)[: len(data) // width * width].cast(_CODES[width])
    if pieces.keys().isdisjoint(whole):
        return set()
    return {needle for piece in whole if piece in pieces for needle in pieces[piece]}


def _pieces(texts: Iterable[str], width: int) -> dict[int, list[str]]:
    """Map each piece that a needle can show at an aligned place to the needles that show it."""
    found: dict[int, list[str]] = defaultdict(list)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        for offset in range(width):
            piece = data[offset : offset + width]
            if len(piece) == width:
                found[memoryview(piece).cast(_CODES[width])[0]].append(text)
    return dict(found)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
