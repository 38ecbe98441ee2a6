"""One settings file, read and checked: values with their lines, and the faults that a person must see."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agentstead.config.positions import key_lines, line_of
from agentstead.config.registry import Registry

Scope = Literal["home", "workspace"]


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a setting as somebody wrote it: its code, where it stands, what to do."""

    code: Literal["config.unknown_key", "config.invalid", "config.scope"]
    key: str
    where: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.code}: {self.what} {self.remedy}"


@dataclass(frozen=True, slots=True)
class Written:
    """A value as a file gives it, and the line that gives it."""

    value: Any
    line: int


@dataclass(frozen=True, slots=True)
class Sheet:
    """The sound keys of one file and its faults; `path` is the file as the person knows it."""

    path: Path
    values: Mapping[str, Written]
    faults: tuple[Fault, ...] = ()


def read_sheet(text: str, path: Path, *, registry: Registry, scope: Scope) -> Sheet:
    """Check a file's text key by key. A text that is not TOML gives no values and one fault."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        remedy = "Mend the file; until then its last good state counts."
        return Sheet(path, {}, (Fault("config.invalid", "", str(path), f"{path} is not TOML: {error}.", remedy),))
    lines = key_lines(text)
    values: dict[str, Written] = {}
    faults: list[Fault] = []
    for key, value in _leaves(tables, registry):
        line = line_of(lines, key)
        found = _check(key, value, where=f"{path}:{line}", registry=registry, scope=scope)
        if isinstance(found, Fault):
            faults.append(found)
        else:
            values[key] = Written(found[0], line)
    return Sheet(path, values, tuple(faults))


def unknown_key(key: str, registry: Registry, *, where: str) -> Fault:
    """Say that a key is no setting, and which one was probably meant."""
    near = registry.nearest(key)
    remedy = f"Did you mean '{near}'?" if near else "`agentstead config show` lists every setting."
    return Fault("config.unknown_key", key, where, f"'{key}' ({where}) is no setting.", remedy)


def _check(key: str, value: object, *, where: str, registry: Registry, scope: Scope) -> Fault | tuple[Any]:
    setting = registry.look(key)
    if setting is None:
        return unknown_key(key, registry, where=where)
    if scope == "workspace" and not setting.workspace:
        remedy = f"Take it out there, and set it for the home: agentstead config set {key} VALUE."
        return Fault("config.scope", key, where, f"a workspace's file may not set '{key}' ({where}).", remedy)
    try:
        return (setting.accept(value),)
    except ValueError as error:
        remedy = f"Write {setting.expects()}."
        return Fault("config.invalid", key, where, f"'{key}' ({where}): {error}.", remedy)


def _leaves(table: Mapping[str, Any], registry: Registry, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Walk down while the key is a table of settings; what lies deeper, or is unknown, is one leaf."""
    for name, value in table.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping) and (value or registry.is_table(key)) and registry.look(key) is None:
            yield from _leaves(value, registry, key + ".")
        else:
            yield key, value
