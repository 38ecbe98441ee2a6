"""One declaration, two doors: whatever is typed for a verb is what its operation is called with, field by field."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, get_args, get_origin

import pytest

from agentstead.cli import running
from agentstead.cli.fields import CommandField, command_fields, typed_item
from agentstead.cli.leaves import routes_of
from agentstead.cli.routes import PERSON, Route
from agentstead.cli.terminal import Terminal
from agentstead.kit import Operation, Result, declarations, operation_of

from .conftest import Run

ROUTED = [
    (operation, route)
    for server in declarations()
    for operation in map(operation_of, server.operations)
    for route in routes_of(operation)
]
NAMES = [" ".join(route.path) for _, route in ROUTED]


class Nothing(Result):
    """What a captured call comes back with."""


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Mapping[str, Any]]]:
    """Catch calls where they leave the command line, and open no home for them."""
    calls: list[tuple[str, Mapping[str, Any]]] = []

    async def caught(
        _home: object, operation: Operation, raw: Mapping[str, Any], _context: object
    ) -> tuple[Result, bool]:
        await asyncio.sleep(0)
        calls.append((operation.name, raw))
        return Nothing(), False

    def without_home(_terminal: Terminal, use: Callable[[None], Awaitable[int]]) -> int:
        async def used() -> int:
            return await use(None)

        return asyncio.run(used())

    monkeypatch.setattr(running, "invoke", caught)
    monkeypatch.setattr(running, "with_home", without_home)
    return calls


def fields_of(operation: Operation, route: Route) -> list[CommandField]:
    return command_fields(
        operation,
        fixed=tuple(route.fixed),
        leading=route.leading,
        item=route.item,
        only=route.only,
        without=route.without,
    )


def kind_of(field: CommandField) -> Any:
    """Return the type that typer reads: str, int, float, bool, or list of one of these."""
    kind = field.parameter.annotation.__origin__
    inner = [each for each in get_args(kind) if each is not type(None)]
    return kind if get_origin(kind) is list or not inner else inner[0]


def is_argument(field: CommandField) -> bool:
    return type(field.parameter.annotation.__metadata__[0]).__name__ == "ArgumentInfo"


def example(field: CommandField, place: int) -> tuple[list[str], Any]:
    """Return texts to type for a field, and the value they stand for."""
    info = field.parameter.annotation.__metadata__[0]
    choices = (info.metavar or "").split("|") if "|" in (info.metavar or "") and "@FILE" not in info.metavar else []
    kind = kind_of(field)
    if kind is int:
        return [str(place)], place
    if kind is float:
        return [f"{place}.5"], place + 0.5
    if get_origin(kind) is list:
        (item,) = get_args(kind)
        values = choices[:2] if choices else [item(place), item(place + 1)]
        return [str(value) for value in values], list(values)
    if field.convert.__name__ == "_from_json":
        value = {"place": place}
        return [json.dumps(value)], value
    return [choices[0] if choices else f"text {place}"], choices[0] if choices else f"text {place}"


def typed_line(fields: list[CommandField]) -> tuple[list[str], dict[str, Any]]:
    """Return a command line that gives every field, and what it gives."""
    ahead: list[str] = []
    behind: list[str] = []
    values: dict[str, Any] = {}
    for place, field in enumerate(fields, 1):
        flag = f"--{field.name.rstrip('_').replace('_', '-')}"
        if kind_of(field) is bool:
            values[field.name] = bool(place % 2)
            ahead.append(flag if place % 2 else flag.replace("--", "--no-", 1))
            continue
        texts, values[field.name] = example(field, place)
        if is_argument(field):
            behind += texts
        else:
            ahead += [part for text in texts for part in (flag, text)]
    return [*ahead, "--", *behind], values


def wanted(operation: Operation, route: Route, fields: list[CommandField], values: Mapping[str, Any]) -> dict[str, Any]:
    arguments = {**values, **route.fixed}
    return typed_item(operation, route.item, fields, arguments) if route.item else arguments


@pytest.mark.parametrize(("operation", "route"), ROUTED, ids=NAMES)
def test_every_field_that_is_typed_arrives_as_it_was_meant(
    run: Run, called: list[tuple[str, Mapping[str, Any]]], operation: Operation, route: Route
) -> None:
    fields = fields_of(operation, route)
    line, values = typed_line(fields)
    ran = run(*route.path, "-o", "json", *line)
    assert (ran.code, ran.err) == (0, ""), line
    assert called == [(operation.name, wanted(operation, route, fields, values))]


@pytest.mark.parametrize(("operation", "route"), ROUTED, ids=NAMES)
def test_what_is_not_typed_is_left_to_the_operation(
    run: Run, called: list[tuple[str, Mapping[str, Any]]], operation: Operation, route: Route
) -> None:
    fields = fields_of(operation, route)
    needed = [field for field in fields if field.parameter.default is field.parameter.empty]
    line, values = typed_line(needed)
    ran = run(*route.path, *line)
    assert ran.code == 0, ran.err
    ((name, raw),) = called
    expected = wanted(operation, route, fields, values)
    generated = set(raw) - set(expected)
    assert name == operation.name
    assert generated <= {"idempotency_key"}
    assert {key: value for key, value in raw.items() if key not in generated} == expected


@pytest.mark.parametrize(("operation", "route"), ROUTED, ids=NAMES)
def test_an_argument_that_is_needed_and_not_typed_is_missed(
    run: Run, called: list[tuple[str, Mapping[str, Any]]], operation: Operation, route: Route
) -> None:
    needed = [f for f in fields_of(operation, route) if f.parameter.default is f.parameter.empty]
    ran = run(*route.path)
    assert ran.code == (2 if needed else 0)
    assert ("Missing" in ran.err) is bool(needed)
    assert bool(called) is not bool(needed)


def test_operations_of_a_person_stop_before_anything_is_called(
    run: Run, called: list[tuple[str, Mapping[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTSTEAD_PROCESS", "prc_1")
    for operation, route in ROUTED:
        if route.path in PERSON:
            line, _ = typed_line(fields_of(operation, route))
            assert run(*route.path, *line).code == 3
    assert called == []
