"""The tree of verbs as typer sees it: the noun that is named in full, of every other one its line of help."""

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import typer

from agentstead.cli.exits import BROKEN_PIPE
from agentstead.cli.leaves import Leaf
from agentstead.cli.terminal import Form, Terminal
from agentstead.state import AgentsteadError

HomeOption = Annotated[
    Optional[Path],  # noqa: UP045 - typer reads the annotation
    typer.Option("--home", help="The home to work in; AGENTSTEAD_HOME or ~/.agentstead without it.", metavar="DIR"),
]
WorkspaceOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--workspace", help="The workspace that is meant, by name, id or path.", metavar="NAME"),
]
FormOption = Annotated[
    Optional[Literal["text", "json"]],  # noqa: UP045
    typer.Option("--output", "-o", help="Print text, or one line of JSON.", show_default=False),
]
_COMMON: Mapping[str, Any] = {"home": HomeOption, "workspace": WorkspaceOption, "output": FormOption}
_PANEL = "Everywhere"
_SETTINGS: dict[str, Any] = {"rich_markup_mode": None, "no_args_is_help": True, "pretty_exceptions_enable": False}


@dataclass(slots=True)
class Given:
    """What was said before the verb, for every verb."""

    home: Path | None = None
    workspace: str | None = None
    output: Form | None = None


def build(nouns: Mapping[str, str], leaves: Iterable[Leaf], *, home: Callable[[Path | None], Path]) -> typer.Typer:
    """Build the tree: `leaves` in full, and of every other noun its line of help."""
    root = typer.Typer(name="agentstead", add_completion=True, **_SETTINGS)
    root.callback()(_callback("A local-first home for agents' work: sessions, memory, skills, permissions, versions."))
    groups: dict[tuple[str, ...], typer.Typer] = {(): root}
    for leaf in leaves:
        group = _group(groups, leaf.path[:-1], nouns)
        group.command(leaf.path[-1], help=leaf.help, hidden=leaf.hidden)(_command(leaf, home))
    known = {path[0] for path in groups if path} | {leaf.path[0] for leaf in leaves}
    for noun, text in nouns.items():
        if noun not in known:
            root.command(noun, help=text, context_settings={"ignore_unknown_options": True})(_unloaded)
    return root


def _group(groups: dict[tuple[str, ...], typer.Typer], path: tuple[str, ...], nouns: Mapping[str, str]) -> typer.Typer:
    if path not in groups:
        fresh = typer.Typer(**_SETTINGS)
        fresh.callback()(_callback(nouns.get(path[-1], "")))
        _group(groups, path[:-1], nouns).add_typer(fresh, name=path[-1], help=nouns.get(path[-1], ""))
        groups[path] = fresh
    return groups[path]


def _unloaded() -> None:
    raise AssertionError("the noun that is named is always loaded")


def _callback(text: str) -> Callable[..., None]:
    def said(
        context: typer.Context,
        home: HomeOption = None,
        workspace: WorkspaceOption = None,
        output: FormOption = None,
    ) -> None:
        given = context.ensure_object(Given)
        given.home = home or given.home
        given.workspace = workspace or given.workspace
        given.output = output or given.output

    said.__doc__ = text
    return said


def _command(leaf: Leaf, home: Callable[[Path | None], Path]) -> Callable[..., None]:
    own = list(leaf.parameters)
    names = {parameter.name for parameter in own}
    common = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in _COMMON.items()
        if name not in names
    ]
    context = Parameter("typer_context", Parameter.KEYWORD_ONLY, annotation=typer.Context)

    def command(*, typer_context: typer.Context, **typed: Any) -> None:
        given = typer_context.ensure_object(Given)
        workspace = _located(typed.get("workspace") or given.workspace)
        if "workspace" in names:
            typed["workspace"] = workspace
        terminal = Terminal(
            home(typed.get("home") or given.home), workspace, form=typed.get("output") or given.output or "text"
        )
        mine = {name: value for name, value in typed.items() if name in names}
        try:
            code = leaf.run(terminal, mine)
        except AgentsteadError as error:
            code = terminal.fail(error)
        except BrokenPipeError:
            # The reader of our output has left; the interpreter must not complain once more when it flushes.
            os.dup2(os.open(os.devnull, os.O_WRONLY), terminal.out.fileno())
            code = BROKEN_PIPE
        raise typer.Exit(code)

    parameters = [context, *own, *common]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _located(workspace: str | None) -> str | None:
    """Return a workspace that is meant by a path as an absolute one; names and ids stay."""
    if workspace and (os.sep in workspace or workspace.startswith((".", "~"))):
        return str(Path(workspace).expanduser().resolve())
    return workspace


def named_words(arguments: Sequence[str]) -> list[str]:
    """Return the words of a command line that are no options nor their values, as far as the common ones tell."""
    words: list[str] = []
    skip = False
    for argument in arguments:
        if skip:
            skip = False
        elif argument in {"--home", "--workspace", "--output", "-o"}:
            skip = True
        elif argument == "--":
            break
        elif not argument.startswith("-"):
            words.append(argument)
    return words
