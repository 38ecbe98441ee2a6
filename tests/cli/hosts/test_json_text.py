"""An edit of a JSON text changes its own lines only; values, comments and layout of the rest stay."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentstead.cli.hosts.json_text import JsonText
from agentstead.cli.hosts.jsonc import JsonFault

SETTINGS = """// my settings
{
    "theme": "dark", // at night
    /* servers */
    "servers": {
        // the first
        "one": { "command": "one" }, // keep
        "two": {
            "command": "two",
            "args": []
        }
        // the end
    },
    "last": [1, 2],
}
"""


def edited(text: str, *, strict: bool = False) -> JsonText:
    return JsonText(text, strict=strict)


def test_a_key_is_added_after_the_last_one_and_comments_stay() -> None:
    text = edited(SETTINGS)
    text.set(("servers", "three"), {"command": "three", "args": ["serve", "x"]})
    added = """        },
        "three": {
            "command": "three",
            "args": ["serve", "x"]
        }
        // the end
"""
    assert text.text == SETTINGS.replace("        }\n        // the end\n", added)


def test_a_key_is_added_where_the_last_one_has_a_comma_and_keeps_that_style() -> None:
    text = edited(SETTINGS)
    text.set(("new",), True)
    assert text.text == SETTINGS.replace('"last": [1, 2],\n', '"last": [1, 2],\n    "new": true,\n')


def test_a_comment_behind_the_last_key_stays_with_it() -> None:
    text = edited('{\n  "a": 1 // one\n}\n')
    text.set(("b",), 2)
    assert text.text == '{\n  "a": 1, // one\n  "b": 2\n}\n'


def test_a_value_is_replaced_in_its_place() -> None:
    text = edited(SETTINGS)
    text.set(("servers", "one", "command"), "uno")
    assert text.text == SETTINGS.replace('"command": "one"', '"command": "uno"')


def test_objects_on_the_way_are_made() -> None:
    text = edited('{\n\t"a": 1\n}')
    text.set(("servers", "one"), {"command": "x"})
    assert text.text == '{\n\t"a": 1,\n\t"servers": {\n\t\t"one": {\n\t\t\t"command": "x"\n\t\t}\n\t}\n}'


@pytest.mark.parametrize("empty", ["", "\n", "{}", "{}\n", "{ }", "{\n}\n"])
def test_an_empty_text_becomes_an_object(empty: str) -> None:
    text = edited(empty, strict=True)
    text.set(("a",), {"b": 1})
    assert json.loads(text.text) == {"a": {"b": 1}}
    assert text.text.startswith('{\n  "a": {\n    "b": 1\n  }\n}')


def test_an_object_on_one_line_stays_on_it() -> None:
    text = edited('{"a": 1}')
    text.set(("b",), {"c": [1]})
    assert text.text == '{"a": 1, "b": {"c": [1]}}'


def test_line_ends_of_windows_stay() -> None:
    text = edited('{\r\n  "a": 1\r\n}\r\n')
    text.set(("b",), {"c": 1})
    assert text.text == '{\r\n  "a": 1,\r\n  "b": {\r\n    "c": 1\r\n  }\r\n}\r\n'


def test_a_key_in_the_middle_is_taken_away_with_its_line() -> None:
    text = edited(SETTINGS)
    text.remove(("servers", "one"))
    assert text.text == SETTINGS.replace('        "one": { "command": "one" }, // keep\n', "")


def test_the_last_key_is_taken_away_with_the_comma_before_it() -> None:
    text = edited(SETTINGS)
    text.remove(("servers", "two"))
    removed = '        "two": {\n            "command": "two",\n            "args": []\n        }\n'
    assert text.text == SETTINGS.replace(removed, "").replace("}, // keep", "} // keep")


def test_an_only_key_leaves_an_empty_object() -> None:
    text = edited('{\n  "servers": {\n    "one": 1\n  }\n}\n')
    text.remove(("servers", "one"))
    assert text.text == '{\n  "servers": {}\n}\n'


@pytest.mark.parametrize(
    ("key", "left"), [("a", '{"b": 2, "c": 3}'), ("b", '{"a": 1, "c": 3}'), ("c", '{"a": 1, "b": 2}')]
)
def test_a_key_on_a_shared_line_is_taken_out_of_it(key: str, left: str) -> None:
    text = edited('{"a": 1, "b": 2, "c": 3}')
    text.remove((key,))
    assert text.text == left


def test_taking_away_what_is_not_there_changes_nothing() -> None:
    text = edited(SETTINGS)
    text.remove(("servers", "absent"))
    text.remove(("absent", "absent"))
    assert text.text == SETTINGS


@pytest.mark.parametrize("broken", ["[]", "1", '{"a": 1'])
def test_a_text_that_is_no_object_is_refused(broken: str) -> None:
    with pytest.raises(JsonFault):
        edited(broken)


def test_a_path_through_something_else_is_refused_with_its_line() -> None:
    text = edited('{\n  "servers": [1]\n}')
    with pytest.raises(JsonFault, match="line 2: 'servers' is no object"):
        text.set(("servers", "one"), 1)


NAMES = st.sampled_from(["a", "b", "c", "d"])
LEAVES = st.integers(0, 9) | st.text('x,"{}/\\', max_size=4) | st.lists(st.integers(0, 3), max_size=2)
TREES = st.dictionaries(NAMES, LEAVES | st.dictionaries(NAMES, LEAVES, max_size=3), max_size=4)
EDITS = st.lists(
    st.tuples(st.sampled_from(["set", "remove"]), st.lists(NAMES, min_size=1, max_size=2).map(tuple), LEAVES),
    max_size=5,
)


def written(tree: dict[str, Any], indent: str, depth: int, commented: bool, last_comma: bool) -> str:
    """Write a tree as a person might: indented or not, with comments behind and between lines, with last commas."""
    if not tree:
        return "{}"
    pad = "\n" + indent * depth if indent else ""
    lines = []
    for place, (key, value) in enumerate(tree.items()):
        shown = (
            written(value, indent, depth + 1, commented, last_comma) if isinstance(value, dict) else json.dumps(value)
        )
        comma = "," if place + 1 < len(tree) or last_comma else ""
        note = " // note, }" if commented and indent else " /* , */" if commented else ""
        lines.append(f"{pad}{json.dumps(key)}: {shown}{comma}{note}")
    end = "\n" + indent * (depth - 1) if indent else ""
    between = f"{pad}// between" if commented and indent else ""
    return "{" + between.join(lines) + end + "}"


def apply_to(tree: dict[str, Any], act: str, path: tuple[str, ...], value: object) -> bool:
    """Do the same edit to a plain dictionary; False where the text must refuse it."""
    at = tree
    for key in path[:-1]:
        if act == "remove" and not isinstance(at.get(key), dict):
            return True
        at = at.setdefault(key, {})
        if not isinstance(at, dict):
            return False
    if act == "set":
        at[path[-1]] = value
    else:
        at.pop(path[-1], None)
    return True


@given(TREES, EDITS, st.sampled_from(["", "  ", "\t"]), st.booleans(), st.booleans())
def test_any_edits_give_what_the_same_edits_of_the_values_give(
    tree: dict[str, Any], edits: list[tuple[str, tuple[str, ...], object]], indent: str, commented: bool, comma: bool
) -> None:
    source = written(tree, indent, 1, commented, comma) + "\n"
    text, model = edited(source), copy.deepcopy(tree)
    assert text.tree() == tree
    for act, path, value in edits:
        wanted = copy.deepcopy(model)
        if not apply_to(wanted, act, path, value):
            with pytest.raises(JsonFault):
                text.set(path, value)
            continue
        if act == "set":
            text.set(path, value)
        else:
            text.remove(path)
        model = wanted
        assert text.tree() == model
    assert text.text.endswith("}\n")


@given(TREES, st.sampled_from(["", "  ", "\t"]), st.booleans())
def test_adding_a_key_and_taking_it_away_again_gives_the_same_text(
    tree: dict[str, Any], indent: str, commented: bool
) -> None:
    source = written(tree, indent, 1, commented, False) + "\n"
    text = edited(source)
    text.set(("fresh",), {"command": "x", "args": ["serve"]})
    assert text.text != source
    text.remove(("fresh",))
    assert text.text == source
