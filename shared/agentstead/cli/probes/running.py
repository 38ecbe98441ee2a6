"""Probes of what runs: lock and socket, the port, the installed servers, and the entries in the hosts' files."""

import socket
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path

from agentstead.cli.hosts.change import present_entries
from agentstead.cli.hosts.entries import ours
from agentstead.cli.hosts.host import HOSTS, Host, Machine
from agentstead.cli.probes.finding import Finding
from agentstead.config import SERVERS_GROUP, Settings
from agentstead.coordinator import control, places
from agentstead.coordinator.version import installed_version, is_older
from agentstead.state import Invalid

_LOOPBACK = "127.0.0.1"


def coordinator(home: Path) -> Iterator[Finding]:
    """Look whether who holds the home's lock answers on its socket, and is of this installation's version."""
    if not home.exists():
        return
    found = control.status(home)
    if found.state == "unresponsive":
        pid = found.record.pid if found.record else 0
        what = "A coordinator holds this home and does not answer."
        yield Finding("coordinator.unresponsive", "error", what, f"process {pid}", "agentstead stop")
    elif found.record is not None and is_older(found.record.version, installed_version()):
        what = f"The coordinator is of version {found.record.version}, this installation of {installed_version()}."
        yield Finding("coordinator.older", "warning", what, found.record.executable, "agentstead stop")
    elif found.record is None and Path(places.socket_path(str(home))).exists():
        what = "A socket is left of a coordinator that ended."
        yield Finding("coordinator.stale", "info", what, places.socket_path(str(home)), "agentstead up")


def port(home: Path) -> Iterator[Finding]:
    """Look whether the port is free, where nothing of ours serves on it."""
    if control.status(home).record is not None:
        return
    number = Settings(home).whole("coordinator.port")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_LOOPBACK, number))
        except OSError as error:
            what = f"Port {number} cannot be used for HTTP."
            fix = f"agentstead config set coordinator.port {number + 1}"
            yield Finding("port.taken", "warning", what, error.strerror or str(error), fix)


def servers(_home: Path) -> Iterator[Finding]:
    """Look whether every installed server can be loaded."""
    for entry in entry_points(group=SERVERS_GROUP):
        try:
            entry.load()
        except Exception as error:
            what = f"The server {entry.name} cannot be loaded."
            fix = "Install Agentstead, and the package that brings this server, once more."
            yield Finding("server.broken", "error", what, f"{entry.value}: {type(error).__name__}: {error}"[:300], fix)


def hosts(_home: Path) -> Iterator[Finding]:
    """Look whether the entries in hosts' files start a program that is there, and whether some are missing."""
    machine = Machine.this()
    for host in HOSTS.values():
        try:
            table = present_entries(host, machine)
        except Invalid as error:
            yield Finding("host.broken", "warning", error.message, host.title, error.remedy)
            continue
        mine = dict(ours(table))
        if mine:
            yield from _entries(host, table, mine)


def _entries(host: Host, table: Mapping[str, Mapping[str, str]], mine: Mapping[str, str]) -> Iterator[Finding]:
    fix = f"agentstead install {host.name}"
    for key in mine:
        program = Path(table[key]["command"])
        if program.is_absolute() and not program.exists():
            what = f"{host.title} starts {key} by a program that is gone."
            yield Finding("host.stale", "warning", what, str(program), fix)
    missing = {entry.name for entry in entry_points(group=SERVERS_GROUP)} - set(mine.values())
    if missing:
        what = f"{host.title} has only {len(mine)} of our servers."
        yield Finding("host.missing", "info", what, ", ".join(sorted(missing)), fix)
