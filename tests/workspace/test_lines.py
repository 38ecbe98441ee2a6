"""Line differences: applying them gives the new text, and within the bound no shorter script exists."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentstead.workspace.lines import Block, LineDiff, line_diff, split_lines

LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d\n"]), max_size=14)


def applied(old: Sequence[bytes], new: Sequence[bytes], difference: LineDiff) -> list[bytes]:
    out: list[bytes] = []
    at = 0
    for block in difference.blocks:
        out += [*old[at : block.old_start], *new[block.new_start : block.new_end]]
        at = block.old_end
    return [*out, *old[at:]]


def longest_common(old: Sequence[bytes], new: Sequence[bytes]) -> int:
    table = [0] * (len(new) + 1)
    for line in old:
        before = 0
        for at, other in enumerate(new, 1):
            before, table[at] = table[at], before + 1 if line == other else max(table[at], table[at - 1])
    return table[-1]


@given(LINES, LINES, st.sampled_from([0, 1, 3, 4_000]))
def test_applying_a_difference_gives_the_new_text(old: list[bytes], new: list[bytes], bound: int) -> None:
    difference = line_diff(old, new, max_edits=bound)

    assert applied(old, new, difference) == new
    for first, second in zip(difference.blocks, difference.blocks[1:], strict=False):
        assert first.old_end < second.old_start
        assert first.new_end < second.new_start


@given(LINES, LINES)
def test_within_the_bound_no_shorter_script_exists(old: list[bytes], new: list[bytes]) -> None:
    difference = line_diff(old, new)

    assert not difference.approximate
    assert difference.added + difference.deleted == len(old) + len(new) - 2 * longest_common(old, new)


def test_beyond_the_bound_lines_that_occur_once_hold_the_rest_in_place() -> None:
    old = [b"%d\n" % n for n in range(50)] + [b"here\n"] + [b"%d\n" % n for n in range(100, 150)]
    new = [b"%d\n" % n for n in range(200, 250)] + [b"here\n"] + [b"%d\n" % n for n in range(300, 350)]

    difference = line_diff(old, new, max_edits=3)

    assert difference.approximate
    assert difference.blocks == (Block(0, 50, 0, 50), Block(51, 101, 51, 101))


def test_two_texts_without_a_common_line_are_one_block() -> None:
    assert line_diff([b"a\n"] * 3, [b"b\n"] * 2).blocks == (Block(0, 3, 0, 2),)
    assert line_diff([b"a\n"] * 30, [b"b\n"] * 20, max_edits=1).blocks == (Block(0, 30, 0, 20),)
    assert line_diff([], []).blocks == ()


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (b"", []),
        (b"a", [b"a"]),
        (b"a\n", [b"a\n"]),
        (b"a\n\nb", [b"a\n", b"\n", b"b"]),
        (b"a\r\nb\x0cc\x85d\n", [b"a\r\n", b"b\x0cc\x85d\n"]),
    ],
)
def test_only_a_newline_ends_a_line(text: bytes, lines: list[bytes]) -> None:
    assert split_lines(text) == lines
    assert b"".join(lines) == text
