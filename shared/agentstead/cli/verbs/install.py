"""`agentstead install HOST`: our entries in a host's own file, with the difference shown and a backup kept."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from agentstead.cli.hosts.change import Change, apply, plan_install, plan_uninstall
from agentstead.cli.hosts.entries import Installation, this_installation
from agentstead.cli.hosts.host import HOSTS, Host, Machine
from agentstead.cli.running import as_person, with_home
from agentstead.cli.terminal import Terminal
from agentstead.kit import Home, declarations
from agentstead.policy import Redactor, host_trusted, trust_host, untrust
from agentstead.state import Invalid

HostName = Annotated[
    Literal["claude-desktop", "claude-code", "codex", "cursor", "vscode", "zed"],
    typer.Argument(help="The host program.", metavar="HOST"),
]
Only = Annotated[
    str, typer.Option(help="Only these servers, as a,b,c; all that are installed without it.", metavar="SERVERS")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the difference and write nothing.")]
FollowLink = Annotated[
    bool, typer.Option("--follow-link", help="Write the file behind a link that leads out of your home folder.")
]


def install(
    terminal: Terminal, *, host: HostName, only: Only = "", dry_run: DryRun = False, follow_link: FollowLink = False
) -> None:
    """Write our servers into a host's own settings file, and let the forms that it shows count as your answers.

    Other entries, comments and layout stay. The difference is printed and a backup kept. Running it again changes
    nothing.
    """
    chosen, machine = HOSTS[host], Machine.this()
    installation = this_installation(_home_if_special(terminal.home, machine))
    change = plan_install(chosen, _servers(only), installation, machine=machine, follow=follow_link)
    if dry_run:
        _say(terminal, chosen, change, "planned", _warnings(installation))
        return
    backup = apply(change, backups=_backups(terminal, chosen))
    notes = [*_warnings(installation), *_trust(terminal, chosen)]
    _say(terminal, chosen, change, "written", notes, backup)


def uninstall(
    terminal: Terminal, *, host: HostName, only: Only = "", dry_run: DryRun = False, follow_link: FollowLink = False
) -> None:
    """Take our servers out of a host's settings file; entries of others are never touched."""
    chosen, machine = HOSTS[host], Machine.this()
    change = plan_uninstall(chosen, _servers(only), machine=machine, follow=follow_link)
    if dry_run:
        _say(terminal, chosen, change, "planned", [])
        return
    backup = apply(change, backups=_backups(terminal, chosen))
    _say(terminal, chosen, change, "written", [] if only else _distrust(terminal, chosen), backup)


def _backups(terminal: Terminal, host: Host) -> Path:
    return terminal.home / "backups" / "hosts" / host.name


def _say(
    terminal: Terminal, host: Host, change: Change, state: str, notes: Sequence[str], backup: Path | None = None
) -> None:
    diff = change.diff(Redactor().text)
    state = state if change.needed else "unchanged"
    then = host.then if state == "written" else ""
    said = [*change.notes, *notes]
    if terminal.is_json:
        shown = {"host": host.name, "file": str(change.path), "state": state, "entries": list(change.keys)}
        terminal.show({**shown, "backup": str(backup or ""), "diff": diff, "notes": said, "then": then})
        return
    lines = [f"{diff}\n" if diff else "", _sentence(host, change, state)]
    lines += [f"As it was before: {backup}" if backup else "", *said, then]
    for line in filter(None, lines):
        terminal.say(line)


def _sentence(host: Host, change: Change, state: str) -> str:
    match state:
        case "written":
            return f"{host.title}: {change.path} is written ({len(change.keys)} entries)."
        case "planned":
            return f"{host.title}: {change.path} would be changed so. Nothing was written."
        case _:
            return f"{host.title}: {change.path} needs no change."


def _servers(only: str) -> list[str]:
    installed = [server.name for server in declarations()]
    wanted = [name.strip() for name in only.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in (*installed, "servers")]
    if unknown:
        raise Invalid(
            "tool.invalid_arguments",
            f"{unknown[0]!r} is no installed server.",
            remedy=f"Installed: {', '.join(installed)}.",
        )
    return installed if not wanted or "servers" in wanted else wanted


def _home_if_special(home: Path, machine: Machine) -> Path | None:
    return None if home == machine.home / ".agentstead" else home


def _warnings(installation: Installation) -> list[str]:
    if not installation.passing:
        return []
    where = f"{installation.command[0]} lies in a cache and may be removed at any time"
    return [f"{where}: install Agentstead for good (`uv tool install agentstead`), then run this again."]


def _trust(terminal: Terminal, host: Host) -> list[str]:
    """Let the forms that this host shows count as a person's answer; a wider trust that it has stays."""

    async def trust(home: Home) -> list[str]:
        missing = [name for name in host.client_names if not await home.state.read(host_trusted, name)]
        for name in missing:
            await home.state.write(trust_host, name, forms_only=True)
        return missing

    fresh = with_home(terminal, as_person(trust))
    return [f"Forms that {', '.join(fresh)} shows count as your answers now."] if fresh else []


def _distrust(terminal: Terminal, host: Host) -> list[str]:
    async def distrust(home: Home) -> list[str]:
        known = [name for name in host.client_names if await home.state.read(host_trusted, name)]
        for name in known:
            await home.state.write(untrust, "", "host", path=name)
        return known

    ended = with_home(terminal, as_person(distrust))
    return [f"Forms that {', '.join(ended)} shows no longer count as your answers."] if ended else []
