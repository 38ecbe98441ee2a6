"""One declaration of an operation: the tool, the command-line verb and the reference page are all made from it."""

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Concatenate, Literal, ParamSpec, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.fields import FieldInfo

from agentstead.kit.call import Call
from agentstead.kit.result import Result
from agentstead.state import AgentsteadError

Risk = Literal["read", "write", "execute", "destructive", "external", "secret"]
ActionOf = Callable[[Mapping[str, Any]], tuple[str, Risk]]
Asks = Literal["enforcement", "subject"]

P = ParamSpec("P")
R = TypeVar("R", bound=Result)
Function = Callable[Concatenate[Call, P], Awaitable[R]]

NAME = re.compile(r"^[a-z][a-z0-9]*(_[a-z0-9]+)+$")
NAME_CHARS = 32
DESCRIPTION_CHARS = 600
KEY = "idempotency_key"

_Key = Annotated[str | None, Field(min_length=1, max_length=200)]


class Strict(BaseModel):
    """Arguments of an operation: unknown names are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


@dataclass(frozen=True, slots=True)
class Operation:
    """What was declared of one service function.

    What `starts_work` is refused while the coordinator drains.
    `lenient` ignores unknown arguments and `raw_text` publishes no output schema and the summary alone, and `failure`
    words an error as an ordinary answer: these exist for the one tool whose host fixes its shape.
    """

    name: str
    title: str
    description: str
    action: str | ActionOf
    risk: Risk
    fn: Callable[..., Awaitable[Result]]
    arguments: type[BaseModel]
    result: type[Result]
    idempotent: bool
    open_world: bool
    asks: Asks
    cli: bool
    starts_work: bool
    raw_text: bool
    lenient: bool
    failure: Callable[[AgentsteadError], str] | None

    @property
    def server(self) -> str:
        """Return the server whose action this is."""
        action = self.action if isinstance(self.action, str) else self.action({})[0]
        return action.partition(".")[0]

    def action_for(self, arguments: Mapping[str, Any]) -> tuple[str, Risk]:
        """Return action name and risk class of a call with these validated arguments."""
        return (self.action, self.risk) if isinstance(self.action, str) else self.action(arguments)


_DECLARED: dict[Callable[..., Any], Operation] = {}


def operation(
    name: str,
    *,
    action: str | ActionOf,
    risk: Risk,
    title: str,
    idempotent: bool | None = None,
    open_world: bool = False,
    asks: Asks = "enforcement",
    cli: bool = True,
    starts_work: bool = False,
    raw_text: bool = False,
    lenient: bool = False,
    failure: Callable[[AgentsteadError], str] | None = None,
) -> Callable[[Callable[Concatenate[Call, P], Awaitable[R]]], Callable[Concatenate[Call, P], Awaitable[R]]]:
    """Declare a service function as the operation `noun_verb`; the function itself is returned unchanged.

    Its first parameter is a `Call`, all others are keyword-only and described; its docstring is the tool's
    description. `action` is the policy's name for it, or a function of the arguments where one tool carries several;
    `risk` is then the worst. Raises TypeError or ValueError at import for a declaration that breaks a rule.
    """
    if not NAME.match(name) or len(name) > NAME_CHARS:
        raise ValueError(f"operation {name!r} is not noun_verb within {NAME_CHARS} characters")

    def declare(fn: Callable[Concatenate[Call, P], Awaitable[R]]) -> Callable[Concatenate[Call, P], Awaitable[R]]:
        _DECLARED[fn] = Operation(
            name=name,
            title=title,
            description=_description(name, fn),
            action=action,
            risk=risk,
            fn=fn,
            arguments=_arguments(name, fn, keyed=risk != "read" and not raw_text, lenient=lenient),
            result=_result(name, fn),
            idempotent=risk == "read" if idempotent is None else idempotent,
            open_world=open_world,
            asks=asks,
            cli=cli,
            starts_work=starts_work,
            raw_text=raw_text,
            lenient=lenient,
            failure=failure,
        )
        return fn

    return declare


def operation_of(fn: Callable[..., Any]) -> Operation:
    """Return the declaration of a service function; raises KeyError for a function that was not declared."""
    return _DECLARED[fn]


def _description(name: str, fn: Callable[..., Any]) -> str:
    text = inspect.cleandoc(fn.__doc__ or "")
    if not text or len(text) > DESCRIPTION_CHARS:
        raise ValueError(f"the docstring of {name} has {len(text)} characters; 1 to {DESCRIPTION_CHARS} are allowed")
    return " ".join(text.split())


def _result(name: str, fn: Callable[..., Any]) -> type[Result]:
    annotation = inspect.signature(fn, eval_str=True).return_annotation
    if not (isinstance(annotation, type) and issubclass(annotation, Result)):
        raise TypeError(f"{name} must return a subclass of Result")
    return annotation


def _arguments(name: str, fn: Callable[..., Any], *, keyed: bool, lenient: bool) -> type[BaseModel]:
    parameters = list(inspect.signature(fn, eval_str=True).parameters.values())
    fields: dict[str, Any] = {each.name: _field(name, each) for each in parameters[1:]}
    if keyed:
        fields[KEY] = (_Key, None)
    model = create_model(f"{name}_arguments", __base__=Strict, **fields)
    if lenient:
        model.model_config["extra"] = "ignore"
        model.model_rebuild(force=True)
    return model


def _field(name: str, parameter: inspect.Parameter) -> tuple[Any, Any]:
    if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
        raise TypeError(f"parameter {parameter.name} of {name} must be keyword-only")
    if get_origin(parameter.annotation) is not Annotated or not _described(parameter.annotation):
        raise TypeError(f"parameter {parameter.name} of {name} has no description")
    default = ... if parameter.default is inspect.Parameter.empty else parameter.default
    return parameter.annotation, default


def _described(annotation: Any) -> bool:
    return any(isinstance(each, FieldInfo) and each.description for each in get_args(annotation)[1:])
