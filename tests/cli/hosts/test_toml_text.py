"""An edit of a TOML text keeps comments and order, in each way in which its tables may be written."""

import copy
import tomllib
from typing import Any

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from agentstead.cli.hosts.toml_text import TomlText

ENTRY = {"command": "/bin/agentstead", "args": ["serve", "memory"], "env": {"AGENTSTEAD_HOME": "/h"}}

SHAPES = {
    "nothing": "",
    "other tables": '# mine\nmodel = "x"\n\n[tools]\nweb = true # yes\n',
    "a table": '[mcp_servers.other]\ncommand = "other" # keep\n\n[tools]\nweb = true\n',
    "a headed table": '[mcp_servers]\n\n[mcp_servers.other]\ncommand = "other"\n',
    "an inline table": 'mcp_servers = { other = { command = "other" } }\n',
    "an inline table in a table": '[mcp_servers]\nother = { command = "other" } # keep\n',
    "dotted keys": 'mcp_servers.other.command = "other"\n',
    "tables apart": '[mcp_servers.a]\ncommand = "a"\n\n[tools]\nweb = true\n\n[mcp_servers.b]\ncommand = "b"\n',
}


@pytest.mark.parametrize("shape", SHAPES)
def test_an_entry_is_added_whatever_the_shape_and_taken_away_again(shape: str) -> None:
    source = SHAPES[shape]
    wanted = copy.deepcopy(tomllib.loads(source))
    wanted.setdefault("mcp_servers", {})["stead-memory"] = ENTRY
    text = TomlText(source)
    text.set(("mcp_servers", "stead-memory"), ENTRY)
    assert tomllib.loads(text.text) == wanted
    for line in source.splitlines():
        assert line in text.text or shape == "an inline table"
    again = TomlText(text.text)
    again.remove(("mcp_servers", "stead-memory"))
    del wanted["mcp_servers"]["stead-memory"]
    left = tomllib.loads(again.text)
    assert left.get("mcp_servers", {}) == wanted["mcp_servers"]
    assert {**left, "mcp_servers": {}} == {**wanted, "mcp_servers": {}}


def test_one_value_of_an_entry_is_replaced_and_its_comments_stay() -> None:
    source = SHAPES["a table"]
    text = TomlText(source)
    text.set(("mcp_servers", "other", "command"), "new")
    assert text.text == source.replace('"other" #', '"new" #')


def test_taking_away_what_is_not_there_changes_nothing() -> None:
    for source in SHAPES.values():
        text = TomlText(source)
        text.remove(("absent", "entry"))
        text.remove(("mcp_servers", "absent"))
        assert text.text == source


def test_two_entries_are_written_as_a_person_would_and_leave_no_trace_when_taken_away() -> None:
    source = SHAPES["tables apart"]
    text = TomlText(source)
    for server in ("memory", "skills"):
        text.set(("mcp_servers", f"stead-{server}"), {"command": "/x", "args": ["serve", server], "env": {"A": "b"}})
    block = '\n[mcp_servers.stead-{0}]\ncommand = "/x"\nargs = ["serve", "{0}"]\nenv = {{A = "b"}}\n'
    assert text.text == source + block.format("memory") + block.format("skills")
    for server in ("memory", "skills"):
        text.remove(("mcp_servers", f"stead-{server}"))
    assert text.text == source


@pytest.mark.parametrize("broken", ["[a\n", "a = \n", "a = 1\na = 2\n"])
def test_a_text_that_is_not_toml_is_refused(broken: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        TomlText(broken)


def test_a_path_through_something_else_is_refused() -> None:
    text = TomlText("mcp_servers = 1\n")
    with pytest.raises(ValueError, match="'mcp_servers' is no table"):
        text.set(("mcp_servers", "a"), 1)


NAMES = st.sampled_from(["a", "b", "c"])
SERVERS = st.dictionaries(NAMES, st.fixed_dictionaries({"command": st.text("x\"'# ", max_size=4)}), max_size=3)


@given(SERVERS, NAMES, st.booleans())
def test_any_entry_set_or_removed_reads_back_as_that(servers: dict[str, Any], name: str, remove: bool) -> None:
    text = TomlText(tomlkit.dumps({"model": "m", "mcp_servers": servers, "z": {"k": 1}}))
    wanted = copy.deepcopy(servers)
    if remove:
        text.remove(("mcp_servers", name))
        wanted.pop(name, None)
    else:
        text.set(("mcp_servers", name), ENTRY)
        wanted[name] = ENTRY
    read = tomllib.loads(text.text)
    assert read.pop("mcp_servers", {}) == wanted
    assert read == {"model": "m", "z": {"k": 1}}
