"""Whatever a host's file holds: setting up and taking out changes our entries alone, and is repeatable."""

import copy
import json
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from agentstead.cli.hosts.change import apply, plan_install, plan_uninstall
from agentstead.cli.hosts.entries import Installation, ours
from agentstead.cli.hosts.host import HOSTS, Host, Machine

SERVERS = ["sessions", "memory"]
HERE = Installation(("/opt/bin/agentstead",))

NAMES = st.text("abcäß._- \"'\\", min_size=1, max_size=6)
SCALARS = st.booleans() | st.integers(-9, 9) | st.text("x#/*{}[],:\"'\\\n é", max_size=8)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(SCALARS, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=6
)
ENTRIES = st.dictionaries(
    NAMES,
    st.fixed_dictionaries(
        {"command": st.sampled_from(["npx", "/usr/bin/other", "agentstead-like"])},
        optional={
            "args": st.lists(st.text(max_size=4), max_size=2),
            "env": st.dictionaries(NAMES, st.text(max_size=4)),
        },
    ),
    max_size=3,
)


@st.composite
def trees(draw: st.DrawFn) -> dict[str, Any]:
    """Draw what a host's file may hold, with its table of servers under the key `servers` or without one."""
    tree = draw(st.dictionaries(NAMES, VALUES, max_size=3))
    if draw(st.booleans()):
        tree["servers"] = draw(ENTRIES)
    return tree


def written(host: Host, tree: dict[str, Any], indent: int | None) -> str:
    named = {host.table if name == "servers" else name: value for name, value in tree.items()}
    if host.text == "toml":
        return tomlkit.dumps(named)
    return json.dumps(named, indent=indent, ensure_ascii=False) + ("\n" if indent else "")


def read(host: Host, path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    values: dict[str, Any] = tomllib.loads(text) if host.text == "toml" else json.loads(text)
    return values


def without_an_empty_table(host: Host, tree: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in tree.items() if name != host.table or value}


@pytest.mark.parametrize("name", HOSTS)
@given(tree=trees(), indent=st.sampled_from([None, 2, 4]))
@settings(max_examples=40, deadline=None)
def test_only_our_entries_come_and_go(name: str, tree: dict[str, Any], indent: int | None) -> None:
    host = HOSTS[name]
    with TemporaryDirectory() as folder:
        machine = Machine("linux", Path(folder))
        path = host.place(machine)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(written(host, tree, indent), encoding="utf-8", newline="")
        before = read(host, path)
        apply(plan_install(host, SERVERS, HERE, machine=machine), backups=machine.home / "backups")
        after = read(host, path)
        expected = copy.deepcopy(before)
        expected.setdefault(host.table, {}).update({f"stead-{each}": HERE.entry(each, host) for each in SERVERS})
        assert after == expected
        assert not plan_install(host, SERVERS, HERE, machine=machine).needed
        apply(plan_uninstall(host, SERVERS, machine=machine), backups=machine.home / "backups")
        left = read(host, path)
        assert without_an_empty_table(host, left) == without_an_empty_table(host, before)
        assert list(ours(left.get(host.table, {}))) == []
        assert not plan_uninstall(host, SERVERS, machine=machine).needed
