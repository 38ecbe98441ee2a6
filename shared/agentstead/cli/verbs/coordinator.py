"""`agentstead up`, `drain`, `stop`, `status`: the home's coordinator, seen and steered from a terminal."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from agentstead.cli.exits import DONE, FAILED, TIMED_OUT
from agentstead.cli.terminal import Terminal
from agentstead.config import Settings
from agentstead.coordinator import control
from agentstead.coordinator.statefile import Record
from agentstead.coordinator.version import installed_version
from agentstead.identity import TOKEN_FILE

_CONNECT = """
Connect a host: agentstead install HOST   (claude-desktop, claude-code, codex, cursor, vscode, zed)
Over HTTP: send `Authorization: Bearer TOKEN`; `agentstead home token` shows the token.
Ctrl-C stops it."""


def up(
    terminal: Terminal,
    *,
    only: Annotated[
        str, typer.Option(help="Serve this one server over HTTP, beside whatever runs.", metavar="NAME")
    ] = "",
    port: Annotated[
        int | None, typer.Option(help="The port instead of coordinator.port; 0 takes a free one.", min=0, max=65_535)
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"] | None, typer.Option(help="The level instead of log.level.")
    ] = None,
) -> int:
    """Serve the servers of this home over HTTP and to every host, until it is stopped.

    Beside a coordinator that runs already it prints the addresses and ends.
    """
    from agentstead.coordinator import process, standalone
    from agentstead.coordinator.terms import terms

    settings = Settings(terminal.home, flags={"log.level": log_level} if log_level else None)
    for fault in settings.faults():
        terminal.note(str(fault))
    wanted = terms(
        terminal.home, started_by="user", version=installed_version(), settings=settings, host=host, port=port
    )

    def announce(record: Record, running: bool) -> None:
        _announce(terminal, record, running=running)

    if only:
        return standalone.run_http(wanted, only, announce=announce)
    return process.run(wanted, announce=announce)


def drain(
    terminal: Terminal,
    *,
    timeout: Annotated[
        int | None, typer.Option(help="Seconds to wait for running work; coordinator.drain_s without it.", min=1)
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Take on new work again.")] = False,
) -> int:
    """Refuse new work and wait until what is under way is done; exit code 5 where it is not done in time."""
    if undo:
        terminal.show({"state": control.undrain(terminal.home)})
        return DONE
    timeout_s = timeout or Settings(terminal.home).number("coordinator.drain_s")
    drained = control.drain(terminal.home, timeout_s=timeout_s)
    terminal.show({"state": "draining", "left": drained.left})
    return DONE if drained.done else TIMED_OUT


def stop(
    terminal: Terminal,
    *,
    timeout: Annotated[int, typer.Option(help="Seconds that open calls get.", min=1)] = 10,
) -> None:
    """Stop the coordinator; what was acknowledged is on disk, and hosts start another when they need one."""
    stopped = control.stop(terminal.home, timeout_s=timeout)
    terminal.show({"state": "stopped", "note": "" if stopped else "None was running."})


def status(terminal: Terminal) -> int:
    """Show whether the coordinator runs, what it serves and where; exit code 1 where one does not answer."""
    found = control.status(terminal.home)
    shown: dict[str, Any] = {"home": str(terminal.home), **found.as_dict()}
    terminal.show(shown if terminal.is_json else _readable(shown))
    return FAILED if found.state == "unresponsive" else DONE


def _announce(terminal: Terminal, record: Record, *, running: bool) -> None:
    if terminal.is_json:
        terminal.show({"state": record.state, "pid": record.pid, "running": running, "addresses": record.addresses()})
        return
    verb = "runs already" if running else "serves"
    terminal.say(f"Agentstead {record.version} {verb} {terminal.home} (process {record.pid}).")
    for name, address in record.addresses().items():
        terminal.say(f"  {name:<12} {address}")
    for line in filter(None, (record.no_http and f"No HTTP: {record.no_http}", *record.warnings)):
        terminal.say(line)
    terminal.say(_CONNECT if not running else _CONNECT.rpartition("\n")[0])


def _readable(shown: dict[str, Any]) -> dict[str, Any]:
    """Leave out what a person has no use for, and give the rest in the order of interest."""
    started_at = shown.get("started_at_us")
    first = {"state": shown["state"], "home": shown["home"], "started_at": started_at}
    hidden = {*first, "started_at_us", "servers", "http", "socket", "shims"}
    token = Path(shown["home"]) / TOKEN_FILE
    rest = {name: value for name, value in shown.items() if name not in hidden}
    return {**first, **rest, "token_file": str(token) if token.exists() else ""}
