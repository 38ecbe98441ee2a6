"""Every key of a TOML text is found on the line that writes it."""

import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from agentstead.config.positions import key_lines, line_of

TEXT = '''# comment with key = 1
top = 1
a.b = 2  # [not.a.header]

[table]
text = "# not a comment = \\" ["
"quoted key" = 'lit # eral'
long = """
inner = 1
[inner]
"""
list = [
  "x", # ]
  { y = 1 },
]
after = true

[table.sub]
inline = { one = 1, two = [1, 2] }
'''


def test_keys_are_found_on_their_lines_past_comments_strings_and_lists() -> None:
    lines = key_lines(TEXT)
    expected = {
        "top": 2,
        "a": 3,
        "a.b": 3,
        "table": 5,
        "table.text": 6,
        "table.quoted key": 7,
        "table.long": 8,
        "table.list": 12,
        "table.after": 16,
        "table.sub": 18,
        "table.sub.inline": 19,
    }
    assert lines == expected


def test_a_key_inside_an_inline_value_has_the_line_of_that_value() -> None:
    lines = key_lines(TEXT)
    assert line_of(lines, "table.sub.inline.one") == 19
    assert line_of(lines, "table.absent") == 5
    assert line_of(lines, "absent") == 0


def test_a_quoted_key_is_read_with_its_escapes() -> None:
    assert key_lines('"a\\u0062" = 1\n') == {"ab": 1}


def test_a_text_that_ends_in_the_middle_of_a_value_does_not_hang() -> None:
    assert key_lines('a = """never closed\nb = 1') == {"a": 1, "b": 2}
    assert key_lines("a = [1,") == {"a": 1}
    assert key_lines("") == {}


KEYS = st.text("abcdefgh_-", min_size=1, max_size=6)
VALUES = st.one_of(
    st.integers(-9, 9),
    st.booleans(),
    st.text("ab#\"'[]{}=\\\n ", max_size=12),
    st.lists(st.text("a#]\n'\"", max_size=5), max_size=3),
)


@given(st.dictionaries(KEYS, st.dictionaries(KEYS, VALUES, min_size=1, max_size=4), min_size=1, max_size=4))
def test_each_key_stands_on_the_line_that_starts_with_it(tables: dict[str, dict[str, object]]) -> None:
    text = tomlkit.dumps(tables)
    written = text.split("\n")
    lines = key_lines(text)
    for table, values in tables.items():
        assert written[lines[table] - 1].strip() == f"[{table}]"
        for key in values:
            assert written[lines[f"{table}.{key}"] - 1].startswith(f"{key} = ")
