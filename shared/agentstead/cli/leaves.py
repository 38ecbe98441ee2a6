"""The verbs of the tree, those written by hand and those made from operations, as one kind of leaf."""

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import entry_points
from inspect import Parameter
from typing import TYPE_CHECKING, Any

from agentstead.cli.routes import NOUNS, PERSON, ROUTES, VERBS, Noun, Route, Verb, default_path
from agentstead.cli.terminal import Terminal
from agentstead.config import SERVERS_GROUP

if TYPE_CHECKING:
    from agentstead.kit import Operation

Run = Callable[[Terminal, Mapping[str, Any]], int]

_FOR_PERSONS = "Only a person may run this: it is refused to agents, and to what a connected host started."


@dataclass(frozen=True, slots=True)
class Leaf:
    """One verb: its words, its help, its parameters as typer reads them, and what it does."""

    path: tuple[str, ...]
    help: str
    parameters: Sequence[Parameter]
    run: Run
    hidden: bool = False


def leaves_of(noun: str) -> list[Leaf]:
    """Load the verbs of one noun; [] where no installed package has it."""
    written = [_written(verb) for verb in VERBS if verb.path[0] == noun]
    servers = [NOUNS[noun].server] if noun in NOUNS else [] if written else _foreign_servers()
    generated = (leaf for server in servers if server for leaf in _generated(server) if leaf.path[0] == noun)
    taken = {leaf.path for leaf in written}
    return written + [leaf for leaf in generated if leaf.path not in taken]


def all_leaves() -> list[Leaf]:
    """Load every verb of every installed package."""
    nouns = {verb.path[0]: None for verb in VERBS} | dict.fromkeys(NOUNS) | dict.fromkeys(foreign_nouns())
    return [leaf for noun in nouns for leaf in leaves_of(noun)]


def foreign_nouns() -> dict[str, Noun]:
    """Return the nouns of servers that other people's packages brought; these have to be loaded to be known."""
    nouns: dict[str, Noun] = {}
    for server in _foreign_servers():
        with suppress(Exception):  # one that cannot be loaded is a finding of `agentstead doctor`, and hides no verb
            nouns |= {leaf.path[0]: Noun(f"Verbs of the server {server}.", server) for leaf in _generated(server)}
    return {name: noun for name, noun in nouns.items() if name not in NOUNS}


def _foreign_servers() -> list[str]:
    ours = {noun.server for noun in NOUNS.values()}
    return sorted({entry.name for entry in entry_points(group=SERVERS_GROUP)} - ours)


def _written(verb: Verb) -> Leaf:
    module, _, name = verb.target.partition(":")
    fn = getattr(importlib.import_module(module), name)
    parameters = list(inspect.signature(fn, eval_str=True).parameters.values())[1:]

    def run(terminal: Terminal, typed: Mapping[str, Any]) -> int:
        return fn(terminal, **typed) or 0

    return _leaf(verb.path, inspect.cleandoc(fn.__doc__ or verb.help), parameters, run, hidden=verb.hidden)


def _generated(server: str) -> Iterator[Leaf]:
    from agentstead.cli.fields import command_fields
    from agentstead.cli.running import operation_run
    from agentstead.kit import declarations, operation_of

    for declaration in declarations(server):
        for operation in map(operation_of, declaration.operations):
            for route in routes_of(operation):
                fields = command_fields(
                    operation,
                    fixed=tuple(route.fixed),
                    leading=route.leading,
                    item=route.item,
                    only=route.only,
                    without=route.without,
                )
                run = operation_run(operation, route, fields)
                yield _leaf(route.path, operation.description, [field.parameter for field in fields], run)


def _leaf(path: tuple[str, ...], text: str, parameters: Sequence[Parameter], run: Run, *, hidden: bool = False) -> Leaf:
    """Make a leaf; what is for a person refuses others before anything else happens."""
    if path not in PERSON:
        return Leaf(path, text, parameters, run, hidden)

    def guarded(terminal: Terminal, typed: Mapping[str, Any]) -> int:
        from agentstead.cli.person import refuse_agents

        refuse_agents(terminal, path)
        return run(terminal, typed)

    return Leaf(path, f"{text}\n\n{_FOR_PERSONS}", parameters, guarded, hidden)


def routes_of(operation: "Operation") -> list[Route]:
    """Return the paths of an operation: those of the table, or its name in two words where it is for the terminal."""
    if any(verb.operation == operation.name for verb in VERBS):
        return []
    named = [route for route in ROUTES if route.operation == operation.name]
    return named or ([Route(default_path(operation.name), operation.name)] if operation.cli else [])
