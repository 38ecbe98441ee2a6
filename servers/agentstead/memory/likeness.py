"""How alike two texts are: the share of stems, and the marks in which near texts may not differ."""

import re
from collections import Counter

from agentstead.memory.folding import fold, stems_of
from agentstead.memory.normal import shingles
from agentstead.memory.words import words

NEAR_SHARE = 0.80
LOOP_SHARE = 0.60
LOOP_LEAST_WORDS = 8

_NUMBER = re.compile(r"\d+(?:[.,:/_-]\d+)*")
_CODE_SPAN = re.compile(r"`[^`\n]+`")
_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")


def shared_stems(left: str, right: str) -> float:
    """Return the Jaccard share of two texts' stems without stop words, between 0 and 1."""
    one, two = stems_of(fold(left)), stems_of(fold(right))
    together = one | two
    return len(one & two) / len(together) if together else 0.0


def marks(text: str) -> Counter[str]:
    """Return numbers, dates, code spans and negations with their counts."""
    plain = text.casefold().replace("\u2019", "'")
    negations = (word for word in _WORD.findall(plain) if word in words().negations)
    return Counter([*_NUMBER.findall(plain), *_CODE_SPAN.findall(plain), *negations])


def is_near(left: str, right: str) -> bool:
    """Tell whether two texts say nearly the same: most stems shared, and no mark different."""
    return shared_stems(left, right) >= NEAR_SHARE and marks(left) == marks(right)


def is_repeated(text: str, shown: str) -> bool:
    """Tell whether `text` was copied from what was shown: most runs of five words, or all words of a short text."""
    mine, theirs = fold(text), fold(shown)
    if len(mine) < LOOP_LEAST_WORDS:
        return mine == theirs
    runs = shingles(mine)
    return len(runs & shingles(theirs)) / len(runs) >= LOOP_SHARE
