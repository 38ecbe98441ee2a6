"""A change to a host's file: planned without a write, shown as a difference, written in one step after a backup."""

import difflib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from agentstead.cli.hosts.entries import Installation, key_of, ours, served_by
from agentstead.cli.hosts.host import Host, Machine
from agentstead.cli.hosts.json_text import JsonText
from agentstead.cli.hosts.toml_text import TomlText
from agentstead.state import Conflict, Invalid

_BOM = "\ufeff"
_WIDEST = 160
_HOME = "AGENTSTEAD_HOME"


class _Text(Protocol):
    @property
    def text(self) -> str: ...
    def tree(self) -> dict[str, Any]: ...
    def set(self, path: Sequence[str], value: Any) -> None: ...
    def remove(self, path: Sequence[str]) -> None: ...


@dataclass(frozen=True, slots=True)
class Change:
    """What a host's file is (None: not there) and what it would become; `target` is the file that is written."""

    path: Path
    target: Path
    before: str | None
    after: str
    keys: tuple[str, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def needed(self) -> bool:
        """Say whether the file would differ at all."""
        return self.after != (self.before or "")

    def diff(self, mask: Callable[[str], str]) -> str:
        """Show the difference; every line passes `mask`, since a neighbour's line may hold a secret."""
        old, new = (self.before or "").splitlines(), self.after.splitlines()
        lines = difflib.unified_diff(old, new, str(self.path), str(self.path), n=1, lineterm="")
        return "\n".join(_short(mask(line)) for line in lines)


def plan_install(
    host: Host, servers: Sequence[str], installation: Installation, *, machine: Machine, follow: bool = False
) -> Change:
    """Plan the entries of these servers; entries of others, and what a person added to ours, stay."""

    def edit(text: _Text) -> Iterator[str]:
        table = _table(text.tree(), host)
        for server in servers:
            key = key_of(server, table)
            wanted = installation.entry(server, host)
            yield key
            if key not in table:
                text.set((host.table, key), wanted)
            elif served_by(table[key]):
                _merge(text, (host.table, key), table[key], wanted)
            else:
                raise ValueError(f"the entry {key!r} is there already, and starts something else")

    return _plan(host, edit, machine=machine, follow=follow)


def plan_uninstall(host: Host, servers: Sequence[str], *, machine: Machine, follow: bool = False) -> Change:
    """Plan to take out our entries of these servers, and nothing else."""

    def edit(text: _Text) -> Iterator[str]:
        for key, server in tuple(ours(_table(text.tree(), host))):
            if server in servers:
                text.remove((host.table, key))
                yield key

    return _plan(host, edit, machine=machine, follow=follow)


def present_entries(host: Host, machine: Machine) -> Mapping[str, Any]:
    """Read the servers' table of a host's file; empty where there is no file. Raise Invalid where it is broken."""
    path = host.place(machine)
    before = _read(path)
    return {} if before is None else _table(_open(host, path, before.removeprefix(_BOM)).tree(), host)


def apply(change: Change, *, backups: Path, now: datetime | None = None) -> Path | None:
    """Write a planned change and return the backup; raise Conflict where the file has moved on since it was planned."""
    if not change.needed:
        return None
    if _read(change.target) != change.before:
        raise Conflict(
            "version.conflict", f"{change.path} changed while it was being edited.", remedy="Run the command again."
        )
    backup = _back_up(change, backups, now or datetime.now(UTC)) if change.before is not None else None
    _replace(change.target, change.after.encode())
    return backup


def _plan(host: Host, edit: Callable[[_Text], Iterator[str]], *, machine: Machine, follow: bool) -> Change:
    path = host.place(machine)
    target, notes = _target(path, machine, follow=follow)
    before = _read(target)
    bom = _BOM if before is not None and before.startswith(_BOM) else ""
    text = _open(host, path, (before or "").removeprefix(_BOM))
    others = _without_ours(text.tree(), host)
    try:
        keys = tuple(edit(text))
        after = _open(host, path, text.text)
    except ValueError as error:
        raise _broken(path, error) from error
    if _without_ours(after.tree(), host) != others:
        raise _broken(path, "its layout cannot be changed without touching other entries")
    return Change(path, target, before, bom + text.text if keys else before or "", keys, notes)


def _merge(text: _Text, path: tuple[str, ...], present: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Bring what starts the server up to date; whatever else a person wrote into the entry is theirs."""
    for name, value in wanted.items():
        if name not in present or (name in {"command", "args"} and present[name] != value):
            text.set((*path, name), value)
    env = present.get("env")
    if isinstance(env, Mapping) and env.get(_HOME) != wanted.get("env", {}).get(_HOME):
        if "env" in wanted:
            text.set((*path, "env", _HOME), wanted["env"][_HOME])
        else:
            text.remove((*path, "env", _HOME))


def _open(host: Host, path: Path, text: str) -> _Text:
    try:
        opened: _Text = TomlText(text) if host.text == "toml" else JsonText(text, strict=host.text == "json")
        _table(opened.tree(), host)
    except ValueError as error:
        raise _broken(path, error) from error
    return opened


def _table(tree: Mapping[str, Any], host: Host) -> Mapping[str, Any]:
    table = tree.get(host.table, {})
    if not isinstance(table, Mapping):
        raise ValueError(f"{host.table!r} is no table of servers")
    return table


def _without_ours(tree: Mapping[str, Any], host: Host) -> dict[str, Any]:
    table = dict(_table(tree, host))
    for key, _ in tuple(ours(table)):
        del table[key]
    return {**tree, host.table: table}


def _target(path: Path, machine: Machine, *, follow: bool) -> tuple[Path, tuple[str, ...]]:
    """Find the file behind links; one that leads out of the person's folder is followed only on demand."""
    link = _first_link(path, machine.home)
    if link is None:
        return path, ()
    target = path.resolve()
    if not follow and not target.is_relative_to(machine.home.resolve()):
        raise Invalid(
            "path.symlink",
            f"{link} is a link, and leads to {target}, outside {machine.home}.",
            remedy="Nothing was written. Add --follow-link if that file is meant.",
        )
    return target, (f"{link} is a link: {target} is the file that is written.",)


def _first_link(path: Path, home: Path) -> Path | None:
    beneath = path.relative_to(home).parts if path.is_relative_to(home) else (path.name,)
    at = home if path.is_relative_to(home) else path.parent
    for part in beneath:
        at = at / part
        if at.is_symlink():
            return at
    return None


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise _broken(path, "it is not UTF-8 text") from error
    except OSError as error:
        raise _broken(path, f"it cannot be read ({error.strerror})") from error


def _broken(path: Path, why: object) -> Invalid:
    return Invalid(
        "config.invalid", f"{path}: {why}.", remedy="Nothing was written. Mend the file, then run this again."
    )


def _back_up(change: Change, backups: Path, now: datetime) -> Path:
    backups.mkdir(parents=True, exist_ok=True, mode=0o700)
    stamp = now.strftime("%Y%m%dT%H%M%S%fZ")
    backup = backups / f"{stamp}-{change.path.name.lstrip('.')}"
    descriptor = os.open(backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write((change.before or "").encode())
    return backup


def _replace(target: Path, data: bytes) -> None:
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
        with fresh.open("wb") as stream:
            fresh.chmod(mode)
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(target)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise Invalid(
            "config.invalid", f"{target} cannot be written ({error.strerror}).", remedy="Nothing was written."
        ) from error


def _short(line: str) -> str:
    return line if len(line) <= _WIDEST else line[: _WIDEST - 1] + "…"
