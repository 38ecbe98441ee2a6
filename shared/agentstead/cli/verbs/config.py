"""`agentstead config`: settings with the layer and the line that each comes from."""

import os
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from agentstead.cli.exits import DONE, FAILED
from agentstead.cli.terminal import Terminal
from agentstead.config import WORKSPACE_FILE, Explanation, Setting, Settings, set_key
from agentstead.state import Invalid, NotFound

Key = Annotated[str, typer.Argument(help="A setting, as `agentstead config show` lists them.")]


def get(terminal: Terminal, *, key: Key) -> None:
    """Print the value of a setting that is in force here."""
    value = Settings(terminal.home).get(key, workspace=_workspace(terminal))
    if terminal.is_json:
        terminal.show({"key": key, "value": value})
    else:
        terminal.say(_text(value))


def set_value(
    terminal: Terminal,
    *,
    key: Key,
    value: Annotated[str, typer.Argument(help="Its new value; a list is written as a,b,c.")],
    layer: Annotated[
        Literal["home", "workspace"], typer.Option(help="Write the home's file, or that of the workspace here.")
    ] = "home",
) -> None:
    """Write a setting into the home's file, or a workspace's; comments in the file stay.

    What widens rights (`person` in `config explain`) only a person sets.
    """
    settings = Settings(terminal.home)
    setting = settings.setting(key)
    if setting.person:
        from agentstead.cli.person import refuse_agents

        refuse_agents(terminal, ("config", "set", key))
    path = settings.home_file
    if layer == "workspace":
        path = _needed_workspace(terminal) / WORKSPACE_FILE
    try:
        read = setting.read_text(value)
    except ValueError as error:
        raise Invalid("config.invalid", f"{key}: {error}.", remedy=f"Give {setting.expects()}.") from error
    digest = set_key(path, key, read, registry=settings.registry, scope=layer)
    note = "" if setting.live else "It counts from the coordinator's next start."
    terminal.show({"key": key, "value": read, "file": str(path), "sha256": digest, "note": note})


def show(terminal: Terminal) -> None:
    """List every setting with its value, the layer that gives it, and where it is written."""
    settings = Settings(terminal.home)
    workspace = _workspace(terminal)
    keys = [name for setting in settings.registry for name in _names(settings, setting, workspace)]
    rows = [_row(settings.explain(key, workspace=workspace)) for key in keys]
    terminal.show({"settings": rows})


def explain(terminal: Terminal, *, key: Key) -> None:
    """Say what a setting does, which layer gives its value, what that hides, and which written values are refused."""
    found = Settings(terminal.home).explain(key, workspace=_workspace(terminal))
    setting = found.setting
    terminal.show(
        {
            "key": key,
            "value": found.value if terminal.is_json else _text(found.value),
            "layer": found.origin.layer,
            "where": found.origin.where,
            "does": setting.doc,
            "takes": setting.expects(),
            "default": setting.default if terminal.is_json else _text(setting.default),
            "set_by": _set_by(setting),
            "counts": "at once" if setting.live else "from the next start",
            "hides": [{"layer": each.layer, "value": each.value, "where": each.where} for each in found.hides],
            "refused": [str(fault) for fault in found.faults],
        }
    )


def check(terminal: Terminal) -> int:
    """Look for unknown keys, values that do not fit and keys in the wrong file; exit code 1 where there are any."""
    faults = Settings(terminal.home).faults(workspace=_workspace(terminal))
    rows = [{"code": f.code, "key": f.key, "where": f.where, "what": f.what, "fix": f.remedy} for f in faults]
    if rows or terminal.is_json:
        terminal.show({"faults": rows})
    else:
        terminal.say("No faults.")
    return FAILED if rows else DONE


def path(terminal: Terminal) -> None:
    """Print where the settings of this home, and of the workspace here, are written."""
    workspace = _workspace(terminal)
    files = {"home": str(terminal.home / "config.toml")}
    if workspace is not None:
        files["workspace"] = str(workspace / WORKSPACE_FILE)
    terminal.show(files)


def _workspace(terminal: Terminal) -> Path | None:
    """Find the root that is meant: a path, the name of a registered workspace, or the project around this directory."""
    named = terminal.workspace or os.environ.get("AGENTSTEAD_WORKSPACE", "")
    if named and Path(named).expanduser().is_dir():
        return Path(named).expanduser().resolve()
    if named:
        return _registered(terminal, named)
    here, home = Path.cwd(), terminal.home.resolve()
    marked = (each for each in (here, *here.parents) if (each / WORKSPACE_FILE.parent).is_dir())
    return next((each for each in marked if (each / WORKSPACE_FILE.parent).resolve() != home), None)


def _needed_workspace(terminal: Terminal) -> Path:
    found = _workspace(terminal)
    if found is None:
        raise NotFound(
            "workspace.unknown",
            f"{Path.cwd()} is in no workspace.",
            remedy="Go into one, or name one with --workspace.",
        )
    return found


def _registered(terminal: Terminal, named: str) -> Path:
    from agentstead.cli.running import with_home
    from agentstead.identity import registry

    found = with_home(terminal, lambda home: home.state.read(registry.named, named))
    if found is None:
        raise NotFound(
            "workspace.unknown", f"No workspace is named {named!r}.", remedy="`agentstead registry list` shows them."
        )
    return found.root


def _names(settings: Settings, setting: Setting, workspace: Path | None) -> list[str]:
    """Return the keys that a declaration stands for: itself, or those that files use under an open one."""
    if not setting.key.endswith(".*"):
        return [setting.key]
    return [setting.key[:-1] + name for name in settings.names(setting.key, workspace=workspace)]


def _row(found: Explanation) -> dict[str, Any]:
    return {"key": found.key, "value": found.value, "layer": found.origin.layer, "where": found.origin.where}


def _set_by(setting: Setting) -> str:
    if setting.person:
        return "a person, in the home's file"
    if setting.workspace:
        only = " (only tighter)" if setting.tighter else ""
        return f"the home's file, a workspace's file{only}, {setting.variables[0]}"
    return f"the home's file, {setting.variables[0]}"


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
