"""From a field of an operation to a parameter of the command line, and from what was typed to an argument."""

import json
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, Union, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from agentstead.kit import Operation
from agentstead.state import Invalid

_PLAIN: tuple[type, ...] = (str, int, float, bool)
_JSON_NOTE = "JSON, or @FILE with it, or @- for standard input."
_METAVARS: Mapping[type, str] = {str: "TEXT", int: "N", float: "N"}
_LISTS = (list, tuple, set, frozenset, Sequence)


@dataclass(frozen=True, slots=True)
class CommandField:
    """One parameter of a verb: how typer reads it, how what was typed becomes an argument, and whether of an item."""

    name: str
    parameter: Parameter
    convert: Callable[[Any], Any]
    of_item: bool = False


def command_fields(
    operation: Operation,
    *,
    fixed: Sequence[str] = (),
    leading: Sequence[str] = (),
    item: str = "",
    only: Sequence[str] = (),
    without: Sequence[str] = (),
) -> list[CommandField]:
    """Build the parameters of a verb: required fields, and those of `leading`, as arguments, the others as options.

    Fields of `fixed` are given by the verb itself, those of `without` left to their defaults: neither is shown. Where
    `item` names an object or a list of objects, the fields of one object stand in its place (those of `only`, if any);
    of two fields with one name that of the object is meant.
    """
    inner = _item_fields(operation, item)
    inner = {name: field for name, field in inner.items() if name not in fixed and (not only or name in only)}
    left_out = {*fixed, *without, item, *inner}
    fields = {**inner, **{name: f for name, f in operation.arguments.model_fields.items() if name not in left_out}}
    order = [name for name in leading if name in fields]
    order += [name for name, field in fields.items() if field.is_required() and name not in order]
    built = [_argument(name, fields[name], last=name == order[-1]) for name in order]
    built += [_option(name, field) for name, field in fields.items() if name not in order]
    return [replace(field, of_item=field.name in inner) for field in built]


def typed_arguments(fields: Sequence[CommandField], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that were typed; what was not is left to the operation's defaults."""
    return {
        field.name: field.convert(given[field.name]) for field in fields if given.get(field.name) not in (None, [], ())
    }


def typed_item(
    operation: Operation, item: str, fields: Sequence[CommandField], typed: Mapping[str, Any]
) -> dict[str, Any]:
    """Put what belongs to the object into it, or into the list of which it is the only one."""
    inside = {field.name for field in fields if field.of_item} | (set(_item_fields(operation, item)) & set(typed))
    outside = {name: value for name, value in typed.items() if name not in inside}
    made = {name: value for name, value in typed.items() if name in inside}
    if not made:
        return outside
    is_list = _item(_without_none(operation.arguments.model_fields[item].annotation)) is not None
    return {**outside, item: [made] if is_list else made}


def _item_fields(operation: Operation, item: str) -> Mapping[str, FieldInfo]:
    """Return the fields of an object, or of one object of a list; none where neither is meant."""
    if not item:
        return {}
    whole = _without_none(operation.arguments.model_fields[item].annotation)
    kind = _item(whole) or whole
    assert isinstance(kind, type)
    assert issubclass(kind, BaseModel)
    return kind.model_fields


def _argument(name: str, field: FieldInfo, *, last: bool) -> CommandField:
    read = _read(field.annotation)
    if _is_list(read.kind) and not last:
        return _option(name, field)
    info = typer.Argument(
        help=_help(field, one_of=read.choices, note=_JSON_NOTE if read.convert is _from_json else ""),
        metavar=name.rstrip("_").upper(),
        show_default=False,
        autocompletion=_completing(read.choices),
    )
    return _field(name, field, read, info)


def _option(name: str, field: FieldInfo) -> CommandField:
    read = _read(field.annotation)
    flag = name.rstrip("_").replace("_", "-")
    info = typer.Option(
        f"--{flag}/--no-{flag}" if read.kind is bool else f"--{flag}",
        help=_help(field, repeated=_is_list(read.kind)),
        metavar=read.metavar,
        show_default=False,
        autocompletion=_completing(read.choices),
    )
    return _field(name, field, read, info)


def _field(name: str, field: FieldInfo, read: "_Read", info: Any) -> CommandField:
    required = field.is_required()
    kind = read.kind if required else Optional[read.kind]  # noqa: UP045 - typer reads it
    default = Parameter.empty if required else None
    parameter = Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info])
    return CommandField(name, parameter, read.convert)


def _help(field: FieldInfo, *, one_of: Sequence[str] = (), repeated: bool = False, note: str = "") -> str:
    parts = [field.description or "", f"One of {', '.join(one_of)}." if one_of else "", note]
    parts += ["May be given several times." if repeated else "", _default_text(field)]
    return " ".join(filter(None, parts))


@dataclass(frozen=True, slots=True)
class _Read:
    """How typer should read a field: type, conversion, what to show in its place, and what completes it."""

    kind: Any
    convert: Callable[[Any], Any]
    metavar: str | None = None
    choices: tuple[str, ...] = ()


def _read(annotation: Any) -> _Read:
    kind = _without_none(annotation)
    choices = _choices(kind)
    if choices:
        return _Read(str, _same, "|".join(choices), choices)
    if kind in _PLAIN:
        return _Read(kind, _same, _METAVARS.get(kind))
    if isinstance(kind, type) and issubclass(kind, (*_PLAIN, Path)) and not issubclass(kind, BaseModel):
        return _Read(str, _same, "TEXT")
    item = _item(kind)
    if item in (str, int, float):
        return _Read(list[item], list, _METAVARS[item])  # type: ignore[valid-type]
    if item is not None and _choices(item):
        return _Read(list[str], list, "|".join(_choices(item)), _choices(item))
    return _Read(str, _from_json, "JSON|@FILE")


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
    return f"[default: {str(default).lower() if isinstance(default, bool) else default}]"


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
