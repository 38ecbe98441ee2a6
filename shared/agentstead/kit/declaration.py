"""What a server package declares of itself; the MCP face, the command line and the reference are built from it."""

import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from agentstead.kit.call import Call
from agentstead.kit.operation import Operation, operation_of
from agentstead.kit.result import Result
from agentstead.state import Entry, Look, Migrations, Repair
from agentstead.state.outbox import Deliver

if TYPE_CHECKING:
    from agentstead.kit.home import Home

log = logging.getLogger(__name__)

ENTRY_POINTS = "agentstead.servers"

OperationFunction = Callable[..., Awaitable[Result]]


@dataclass(frozen=True)
class Resource:
    """A readable thing under a URI or a URI template (`memory://{id}`); `read` gets the variables by name.

    `entries` lists those that exist now as (uri, name); a tool reads each of them too.
    """

    uri_template: str
    title: str
    description: str
    read: Callable[..., Awaitable[str | bytes]]
    mime: str = "application/json"
    entries: Callable[[Call], Awaitable[Sequence[tuple[str, str]]]] | None = None

    @property
    def is_template(self) -> bool:
        """Tell whether the URI holds variables."""
        return "{" in self.uri_template

    def match(self, uri: str) -> Mapping[str, str] | None:
        """Return the variables of `uri` under this template, or None."""
        found = self._pattern.fullmatch(uri)
        return None if found is None else found.groupdict()

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        parts = re.split(r"\{(\+?)(\w+)\}", self.uri_template)
        pattern = re.escape(parts[0])
        for plus, name, literal in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
            pattern += f"(?P<{name}>{'.+' if plus else '[^/]+'})" + re.escape(literal)
        return re.compile(pattern)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A short text over the core tools; `arguments` maps names to descriptions, those in `optional` may be absent."""

    name: str
    title: str
    description: str
    render: Callable[..., Awaitable[str]]
    arguments: Mapping[str, str] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()


def _no_changes(_entry: Entry) -> Iterable[str]:
    return ()


async def _nothing(_home: "Home") -> None:
    return None


@dataclass(frozen=True)
class ServerDeclaration:
    """One server: its operations and toolsets, its resources and prompts, and what it adds to the state library.

    `changes` names the resource URIs that a journal entry changed. `startup` runs once where the home's lock is held,
    and `sweep` there again and again. `roots` are queries that yield the blob ids it holds; `verify` returns what is
    wrong with its own records.
    """

    name: str
    title: str
    instructions: str
    operations: Sequence[OperationFunction]
    toolsets: Mapping[str, Sequence[str]]
    migrations: Sequence[Migrations] = ()
    resources: Sequence[Resource] = ()
    prompts: Sequence[Prompt] = ()
    refs: Mapping[str, Look] = field(default_factory=dict)
    repairs: Sequence[Repair] = ()
    receivers: Mapping[str, Deliver] = field(default_factory=dict)
    roots: Mapping[str, str] = field(default_factory=dict)
    changes: Callable[[Entry], Iterable[str]] = _no_changes
    startup: Callable[["Home"], Awaitable[None]] = _nothing
    sweep: Callable[["Home"], Awaitable[None]] = _nothing
    verify: Callable[["Home"], Awaitable[Sequence[str]]] | None = None

    @cached_property
    def by_name(self) -> Mapping[str, Operation]:
        """Return the operations by tool name; raises ValueError where two share one."""
        found: dict[str, Operation] = {}
        for fn in self.operations:
            declared = operation_of(fn)
            if found.setdefault(declared.name, declared) is not declared:
                raise ValueError(f"{self.name} declares {declared.name} twice")
        return found

    def tools(self, toolset: str = "core") -> list[Operation]:
        """Return the operations of a toolset: `full`, a declared name, or a comma-separated list of tool names."""
        if toolset == "full":
            return list(self.by_name.values())
        names: Any = self.toolsets.get(toolset) or toolset.split(",")
        missing = [name for name in names if name not in self.by_name]
        if missing:
            known = ", ".join(["full", *self.toolsets])
            raise ValueError(f"{self.name} has no toolset or tool {missing[0]!r}; toolsets: {known}")
        return [self.by_name[name] for name in names]


def declarations(only: str | None = None) -> list[ServerDeclaration]:
    """Return the declarations of every installed server, or of the one named.

    A server that cannot be imported is left out with a warning, so that it takes no other one down.
    """
    found = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    wanted = [only] if only is not None else list(found)
    loaded = [_load(found[name]) for name in wanted if name in found]
    return [each for each in loaded if each is not None]


def _load(point: EntryPoint) -> ServerDeclaration | None:
    try:
        declared: ServerDeclaration = point.load()
    except Exception as error:
        log.warning("server %s cannot be loaded: %s: %s", point.name, type(error).__name__, error)
        return None
    return declared
