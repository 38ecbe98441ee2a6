"""Tree ids are exact: the vectors of the format, one encoding for one content, and nothing else decodes."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentstead.blobs import EMPTY_TREE, TREE_HEADER, TreeEntry, TreeFormatError, decode_tree, encode_tree, tree_id
from agentstead.blobs.objects import object_id

NAMES = st.binary(min_size=1, max_size=40).filter(lambda name: name not in {b".", b".."} and not {47, 0} & set(name))
IDS = st.binary(min_size=32, max_size=32).map(bytes.hex)
MODES = st.integers(0, 0o777)
SIZES = st.integers(0, 2**64 - 1)
ENTRIES = st.one_of(
    st.builds(TreeEntry, NAMES, st.just("f"), MODES, SIZES, IDS),
    st.builds(TreeEntry, NAMES, st.just("d"), MODES, SIZES, IDS),
    st.builds(TreeEntry, NAMES, st.just("l"), st.just(0), SIZES, IDS),
)
TREES = st.lists(ENTRIES, max_size=12, unique_by=lambda entry: entry.name)

HI = TreeEntry(b"a", "f", 0o644, 3, object_id(b"hi\n"))
FOUR = (
    TreeEntry(b"B\xff", "f", 0o755, 0, object_id(b"")),
    HI,
    TreeEntry(b"e", "d", 0o755, 0, EMPTY_TREE),
    TreeEntry(b"ln", "l", 0, 4, object_id(b"../x")),
)


def test_the_three_published_vectors_hold() -> None:
    assert EMPTY_TREE == "88b2442de5225ad9a79e6fd64756cc72ac547a9329bdef278b1e5009b509b6c8"
    assert tree_id([HI]) == "2d5b99010451edbab98fc22c42257238d00c9848522a455a7d108b18197e46c2"
    assert tree_id(FOUR) == "0bf8607d96528e6a63fa5f521652000ae20ed743f0c7559e2321bb9f7247cc87"


def test_the_order_in_which_entries_are_given_does_not_matter() -> None:
    assert {tree_id(order) for order in permutations(FOUR)} == {tree_id(FOUR)}


@given(TREES)
def test_what_is_encoded_decodes_to_the_same_entries_in_byte_order(entries: list[TreeEntry]) -> None:
    decoded = decode_tree(encode_tree(entries))

    assert decoded == tuple(sorted(entries, key=lambda entry: entry.name))
    assert encode_tree(decoded) == encode_tree(entries)


@given(TREES.filter(bool), st.data())
def test_bytes_that_were_cut_or_altered_never_decode_to_another_canonical_tree(
    entries: list[TreeEntry], data: st.DataObject
) -> None:
    good = encode_tree(entries)
    at = data.draw(st.integers(0, len(good) - 1))
    altered = good[:at] + bytes([good[at] ^ data.draw(st.integers(1, 255))]) + good[at + 1 :]

    for bad in (altered, good[:at]):
        try:
            decoded = decode_tree(bad)
        except TreeFormatError:
            continue
        assert encode_tree(decoded) == bad


@pytest.mark.parametrize("name", [b"", b".", b"..", b"a/b", b"a\0b", b"x" * 256])
def test_a_name_that_could_leave_its_directory_is_refused_both_ways(name: bytes) -> None:
    with pytest.raises(TreeFormatError, match="cannot be a name"):
        encode_tree([TreeEntry(name, "f", 0o644, 0, object_id(b""))])

    harmless = encode_tree([TreeEntry(b"n" * len(name), "f", 0o644, 0, object_id(b""))]) if 0 < len(name) < 256 else b""
    if harmless:
        with pytest.raises(TreeFormatError, match="cannot be a name"):
            decode_tree(harmless[: -len(name)] + name)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([HI, HI], "occurs twice"),
        ([TreeEntry(b"a", "f", 0o1755, 0, object_id(b""))], "has mode 1755"),
        ([TreeEntry(b"a", "l", 0o777, 1, object_id(b"x"))], "has mode 777"),
    ],
)
def test_entries_that_cannot_stand_in_a_directory_are_refused(entries: list[TreeEntry], words: str) -> None:
    with pytest.raises(TreeFormatError, match=words):
        encode_tree(entries)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "header is missing"),
        (b"agentstead.tree/2\n", "header is missing"),
        (TREE_HEADER + b"f", "cut off"),
        (encode_tree([HI]) + encode_tree([HI])[len(TREE_HEADER) :], "out of order"),
        (encode_tree([HI]).replace(TREE_HEADER + b"f", TREE_HEADER + b"x"), "has type"),
    ],
)
def test_bytes_that_are_no_directory_are_refused(data: bytes, words: str) -> None:
    with pytest.raises(TreeFormatError, match=words):
        decode_tree(data)
