"""Cutting bytes into lines."""

from hypothesis import given
from hypothesis import strategies as st

from agentstead.coordinator.lines import Lines, TooLong

LIMIT = 32


def fed(chunks: list[bytes], limit: int = LIMIT) -> list[bytes | TooLong]:
    lines = Lines(limit)
    return [line for chunk in chunks for line in lines.feed(chunk)]


def test_a_line_comes_out_whole_whatever_the_chunks_are() -> None:
    assert fed([b"one\ntw", b"o\n", b"", b"three"]) == [b"one\n", b"two\n"]


def test_half_a_line_stays_inside_and_is_told_of() -> None:
    lines = Lines(LIMIT)
    assert lines.feed(b"half") == []
    assert lines.unfinished
    assert lines.feed(b"\n") == [b"half\n"]
    assert not lines.unfinished


def test_empty_lines_are_dropped() -> None:
    assert fed([b"\n \r\n\na\n"]) == [b"a\n"]


def test_a_line_over_the_bound_is_reported_once_and_the_next_one_comes_through() -> None:
    found = fed([b"x" * 30, b"x" * 30, b"x" * 30, b"\nnext\n"])
    assert isinstance(found[0], TooLong)
    assert found[0].head.startswith(b"xxx")
    assert found[1:] == [b"next\n"]


def test_a_line_over_the_bound_within_one_chunk_is_reported_too() -> None:
    found = fed([b"a\n" + b"y" * 40 + b"\nb\n"])
    assert [type(line) for line in found] == [bytes, TooLong, bytes]


def test_a_dropped_line_holds_no_memory() -> None:
    lines = Lines(LIMIT)
    for _ in range(1000):
        lines.feed(b"z" * 1000)
    assert not lines.unfinished


@given(
    st.lists(st.binary(min_size=1, max_size=LIMIT - 1).filter(lambda b: b"\n" not in b and b.strip())),
    st.integers(1, 7),
)
def test_any_cut_gives_the_same_lines(parts: list[bytes], step: int) -> None:
    whole = b"".join(part + b"\n" for part in parts)
    chunks = [whole[at : at + step] for at in range(0, len(whole), step)]
    assert fed(chunks) == [part + b"\n" for part in parts]
