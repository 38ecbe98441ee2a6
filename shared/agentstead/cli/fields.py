"""From a field of an operation to a parameter of the command line, and from what was typed to an argument."""

import json
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, Union, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from agentstead.kit import Operation
from agentstead.state import Invalid

_PLAIN: tuple[type, ...] = (str, int, float, bool)
_LISTS = (list, tuple, set, frozenset, Sequence)


@dataclass(frozen=True, slots=True)
class CommandField:
    """One parameter of a verb: how typer reads it, and how what was typed becomes the operation's argument."""

    name: str
    parameter: Parameter
    convert: Callable[[Any], Any]


def command_fields(
    operation: Operation, *, fixed: Sequence[str] = (), leading: Sequence[str] = ()
) -> list[CommandField]:
    """Build the parameters of a verb: required fields, and those of `leading`, as arguments, the others as options.

    Fields of `fixed` are given by the verb itself and not shown.
    """
    model_fields = {name: field for name, field in operation.arguments.model_fields.items() if name not in fixed}
    order = [name for name in leading if name in model_fields]
    order += [name for name, field in model_fields.items() if field.is_required() and name not in order]
    built = [_argument(name, model_fields[name], last=name == order[-1]) for name in order]
    return built + [_option(name, field) for name, field in model_fields.items() if name not in order]


def typed_arguments(fields: Sequence[CommandField], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that were typed; what was not is left to the operation's defaults."""
    return {
        field.name: field.convert(given[field.name]) for field in fields if given.get(field.name) not in (None, [], ())
    }


def _argument(name: str, field: FieldInfo, *, last: bool) -> CommandField:
    kind, convert, metavar, choices = _read(field.annotation)
    if _is_list(kind) and not last:
        return _option(name, field)
    required = field.is_required()
    info = typer.Argument(
        help=field.description,
        metavar=(metavar or name).upper() if not _is_list(kind) else f"{name.upper()}...",
        show_default=False,
        autocompletion=_completing(choices),
    )
    default = Parameter.empty if required else None
    return _field(name, Annotated[kind if required else Optional[kind], info], convert, default)  # noqa: UP045


def _option(name: str, field: FieldInfo) -> CommandField:
    kind, convert, metavar, choices = _read(field.annotation)
    flag = name.replace("_", "-")
    declared = (f"--{flag}/--no-{flag}",) if kind is bool else (f"--{flag}",)
    default = _default_text(field)
    info = typer.Option(
        *declared,
        help=f"{field.description}{default}",
        metavar=metavar,
        show_default=False,
        autocompletion=_completing(choices),
    )
    annotation = kind if field.is_required() else Optional[kind]  # noqa: UP045
    return _field(name, Annotated[annotation, info], convert, Parameter.empty if field.is_required() else None)


def _field(name: str, annotation: Any, convert: Callable[[Any], Any], default: Any) -> CommandField:
    return CommandField(name, Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation), convert)


def _read(annotation: Any) -> tuple[Any, Callable[[Any], Any], str | None, tuple[str, ...]]:
    """Tell how typer should read a field: type, conversion, what to show in its place, and what completes it."""
    kind = _without_none(annotation)
    choices = _choices(kind)
    if choices:
        return str, _same, "|".join(choices), choices
    if kind in _PLAIN:
        return kind, _same, None, ()
    if isinstance(kind, type) and issubclass(kind, (*_PLAIN, Path)) and not issubclass(kind, BaseModel):
        return str, _same, None, ()
    item = _item(kind)
    if item in (str, int, float):
        return list[item], list, None, ()  # type: ignore[valid-type]
    if item is not None and _choices(item):
        return list[str], list, "|".join(_choices(item)), _choices(item)
    return str, _from_json, "JSON|@FILE", ()


def _without_none(annotation: Any) -> Any:
    if get_origin(annotation) is Annotated:
        return _without_none(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        kinds = [kind for kind in get_args(annotation) if kind is not types.NoneType]
        return _without_none(kinds[0]) if len(kinds) == 1 else annotation
    return annotation


def _choices(kind: Any) -> tuple[str, ...]:
    if get_origin(kind) is Literal:
        return tuple(map(str, get_args(kind)))
    return ()


def _item(kind: Any) -> Any:
    """Return the one type of a list's items, or None where it is no such list."""
    if get_origin(kind) not in _LISTS:
        return None
    kinds = {_without_none(item) for item in get_args(kind) if item is not Ellipsis}
    return kinds.pop() if len(kinds) == 1 else None


def _is_list(kind: Any) -> bool:
    return get_origin(kind) is list


def _default_text(field: FieldInfo) -> str:
    default = field.default
    if field.is_required() or default in (None, "", (), [], {}) or not isinstance(default, str | int | float):
        return ""
    return f" [default: {str(default).lower() if isinstance(default, bool) else default}]"


def _completing(choices: tuple[str, ...]) -> Callable[[str], list[str]] | None:
    if not choices:
        return None
    return lambda incomplete: [choice for choice in choices if choice.startswith(incomplete)]


def _same(value: Any) -> Any:
    return value


def _from_json(text: str) -> Any:
    """Read JSON as typed, from `@file`, or from standard input (`@-`)."""
    where = "what was typed"
    if text.startswith("@"):
        where = text[1:]
        text = _contents(text[1:])
    try:
        return json.loads(text)
    except ValueError as error:
        raise Invalid(
            "tool.invalid_arguments",
            f"{where} is not JSON: {error}.",
            remedy="Give JSON, or @FILE with JSON in it, or @- for standard input.",
        ) from None


def _contents(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise Invalid(
            "tool.invalid_arguments", f"{name} cannot be read: {reason}.", remedy="Name a file with JSON in it."
        ) from None
