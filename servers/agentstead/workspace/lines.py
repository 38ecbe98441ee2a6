"""Line differences: the shortest edit script between two texts (Myers 1986, in linear space).

Beyond a bound on the work, common lines that occur once in both anchor the rest, and the result says so.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MAX_EDITS: Final = 4_000


@dataclass(frozen=True, slots=True)
class Block:
    """Lines old_start..old_end of the old text were replaced by new_start..new_end of the new one (half open)."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


@dataclass(frozen=True, slots=True)
class LineDiff:
    """The replaced blocks in order; `approximate` where a shorter script may exist."""

    blocks: tuple[Block, ...]
    approximate: bool

    @property
    def added(self) -> int:
        """Return how many lines are new."""
        return sum(block.new_end - block.new_start for block in self.blocks)

    @property
    def deleted(self) -> int:
        """Return how many lines are gone."""
        return sum(block.old_end - block.old_start for block in self.blocks)


def split_lines(data: bytes) -> list[bytes]:
    """Return the lines of a text with their ends; the last may lack one. Only a newline ends a line."""
    lines = data.split(b"\n")
    ended = [line + b"\n" for line in lines[:-1]]
    return ended + ([lines[-1]] if lines[-1] else [])


def line_diff(old: Sequence[bytes], new: Sequence[bytes], *, max_edits: int = MAX_EDITS) -> LineDiff:
    """Return the shortest set of replaced blocks that turns the old lines into the new ones."""
    numbers: dict[bytes, int] = {}
    intern = [[numbers.setdefault(line, len(numbers)) for line in lines] for lines in (old, new)]
    search = _Search(intern[0], intern[1], max_edits)
    search.between(0, len(old), 0, len(new))
    return LineDiff(tuple(_blocks(search.kept, len(old), len(new))), search.approximate)


def _blocks(kept: list[tuple[int, int, int]], old_length: int, new_length: int) -> list[Block]:
    """Turn the runs of kept lines (old start, new start, length) into the blocks between them."""
    found: list[Block] = []
    old_at = new_at = 0
    for old_start, new_start, length in [*kept, (old_length, new_length, 0)]:
        if old_start > old_at or new_start > new_at:
            found.append(Block(old_at, old_start, new_at, new_start))
        old_at, new_at = old_start + length, new_start + length
    return found


class _Search:
    """One comparison: `kept` collects the runs of common lines from first to last."""

    def __init__(self, old: list[int], new: list[int], max_edits: int) -> None:
        self.kept: list[tuple[int, int, int]] = []
        self.approximate = False
        self._old = old
        self._new = new
        self._max_edits = max_edits

    def between(self, old_start: int, old_end: int, new_start: int, new_end: int) -> None:
        """Add the common runs of one range of each text, without recursion on the longer side."""
        pending = [(old_start, old_end, new_start, new_end, False)]
        while pending:
            a, b, c, d, is_run = pending.pop()
            if is_run:
                self._keep(a, c, b - a)
                continue
            head = self._head(a, b, c, d)
            self._keep(a, c, head)
            a, c = a + head, c + head
            tail = self._tail(a, b, c, d)
            if tail:
                pending.append((b - tail, b, d - tail, d, True))
            b, d = b - tail, d - tail
            if a < b and c < d:
                pending += reversed(self._split(a, b, c, d))

    def _split(self, a: int, b: int, c: int, d: int) -> list[tuple[int, int, int, int, bool]]:
        """Return the two ranges left and right of a point on a best path, or those between anchors."""
        point = self._middle(a, b, c, d)
        if point is not None:
            x, y = point
            return [(a, x, c, y, False), (x, b, y, d, False)]
        self.approximate = True
        ranges: list[tuple[int, int, int, int, bool]] = []
        for x, y in self._anchors(a, b, c, d):
            ranges += [(a, x, c, y, False), (x, x + 1, y, y + 1, True)]
            a, c = x + 1, y + 1
        return [*ranges, (a, b, c, d, False)] if ranges else []

    def _middle(self, a: int, b: int, c: int, d: int) -> tuple[int, int] | None:
        """Return a point on a shortest path that splits it, or None beyond the bound.

        The search runs from both ends, one edit at a time, until the furthest points of a diagonal meet.
        """
        old, new = self._old, self._new
        width, height = b - a, d - c
        delta = width - height
        odd = delta % 2 != 0
        ahead: dict[int, int] = {1: 0}
        back: dict[int, int] = {1: 0}
        for edits in range(min((width + height + 1) // 2, self._max_edits) + 1):
            for k in range(-edits, edits + 1, 2):
                down = k == -edits or (k != edits and ahead.get(k - 1, -1) < ahead.get(k + 1, -1))
                x = ahead[k + 1] if down else ahead[k - 1] + 1
                y = x - k
                while x < width and y < height and old[a + x] == new[c + y]:
                    x, y = x + 1, y + 1
                ahead[k] = x
                if odd and abs(delta - k) < edits and x + back.get(delta - k, -1) >= width:
                    return a + x, c + y
            for k in range(-edits, edits + 1, 2):
                down = k == -edits or (k != edits and back.get(k - 1, -1) < back.get(k + 1, -1))
                x = back[k + 1] if down else back[k - 1] + 1
                y = x - k
                while x < width and y < height and old[b - x - 1] == new[d - y - 1]:
                    x, y = x + 1, y + 1
                back[k] = x
                if not odd and abs(delta - k) <= edits and x + ahead.get(delta - k, -1) >= width:
                    return b - x, d - y
        return None

    def _anchors(self, a: int, b: int, c: int, d: int) -> list[tuple[int, int]]:
        """Return the longest rising chain of lines that occur once in both ranges."""
        once_old = _once(self._old, a, b)
        once_new = _once(self._new, c, d)
        pairs = sorted((x, once_new[line]) for line, x in once_old.items() if line in once_new)
        return _rising(pairs)

    def _head(self, a: int, b: int, c: int, d: int) -> int:
        length = 0
        while a + length < b and c + length < d and self._old[a + length] == self._new[c + length]:
            length += 1
        return length

    def _tail(self, a: int, b: int, c: int, d: int) -> int:
        length = 0
        while b - length > a and d - length > c and self._old[b - length - 1] == self._new[d - length - 1]:
            length += 1
        return length

    def _keep(self, old_start: int, new_start: int, length: int) -> None:
        if length:
            self.kept.append((old_start, new_start, length))


def _once(lines: list[int], start: int, end: int) -> dict[int, int]:
    times = Counter(lines[start:end])
    return {lines[at]: at for at in range(start, end) if times[lines[at]] == 1}


def _rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence of pairs whose second numbers rise (patience sorting)."""
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for at, (_, y) in enumerate(pairs):
        pile = bisect_left(tops, y)
        before.append(ends[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [y]
        ends[pile : pile + 1] = [at]
    chain: list[tuple[int, int]] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        chain.append(pairs[at])
        at = before[at]
    return chain[::-1]
