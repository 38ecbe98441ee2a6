"""From a tool's name and arguments to the facts that the policy judges: ours, another server's, or a host's own."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from agentstead.kit import Call, Context, Home, Operation
from agentstead.kit.arguments import read_arguments
from agentstead.kit.invoke import facts_of
from agentstead.policy import CallFacts
from agentstead.policy.model import Door
from agentstead.state import Invalid, NotFound

# the keys that `agentstead install` gives our servers in a host's settings
OWN_KEYS = ("stead-", "agentstead-")

_MCP = "mcp__"
_FOREIGN = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}/[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$")
_NATIVE = re.compile(r"^[A-Za-z][A-Za-z0-9_.-]{0,127}$")


def facts_for(call: Call, tool: str, arguments: Mapping[str, Any], *, session_id: str = "") -> CallFacts:
    """Return the facts of a call of `tool` by this caller: a tool of ours, `server/tool`, or `mcp__server__tool`.

    Raises `NotFound` for a tool that no server of ours has, `Invalid` for arguments that it would refuse.
    """
    own = own_tool(call.home, tool)
    if own is not None:
        facts = facts_of(call.home, own, read_arguments(own, arguments), _context(call))
        return replace(facts, session_id=facts.session_id or session_id)
    pair = tool.removeprefix(_MCP).replace("__", "/", 1) if tool.startswith(_MCP) else tool
    if not _FOREIGN.match(pair):
        raise NotFound(
            "tool.not_found",
            f"{tool[:80]!r} is no tool of ours, and no server/tool.",
            remedy="Name one of our tools (tree_promote), or another server's as server/tool.",
        )
    return foreign(call, pair, arguments, session_id=session_id, door="gateway")


def host_call(call: Call, tool: str, arguments: Mapping[str, Any]) -> CallFacts:
    """Return the facts of a call that a host asks about, under the host's own name of the tool."""
    if tool.startswith(_MCP):
        server, _, name = tool.removeprefix(_MCP).partition("__")
        pair = f"{server}/{name}"
    else:
        pair = f"host/{tool}" if _NATIVE.match(tool) else ""
    if not _FOREIGN.match(pair):
        raise Invalid(
            "tool.invalid_arguments", f"{tool[:80]!r} is no name of a tool.", remedy="Pass the host's name of the tool."
        )
    return foreign(call, pair, arguments, door="prompt")


def own_behind(home: Home, tool: str) -> Operation | None:
    """Return our operation behind a host's name of a tool (`mcp__stead-memory__memory_recall`), else None."""
    key, _, name = tool.removeprefix(_MCP).partition("__")
    found = own_tool(home, name) if tool.startswith(_MCP) else None
    return found if found is not None and any(key == prefix + found.server for prefix in OWN_KEYS) else None


def own_tool(home: Home, name: str) -> Operation | None:
    """Return the operation of one of our servers by its tool name."""
    return next((operations[name] for operations in _all(home) if name in operations), None)


def foreign(call: Call, pair: str, arguments: Mapping[str, Any], *, door: Door, session_id: str = "") -> CallFacts:
    """Return the facts of a call of somebody else's tool: external, whatever it says of itself."""
    server, _, name = pair.partition("/")
    return CallFacts(
        server=server,
        tool=name,
        action=pair,
        risk="external",
        arguments=dict(arguments),
        principal=call.principal,
        now_us=call.home.clock.now_us(),
        door=door,
        session_id=session_id,
        cwd=str(call.cwd or ""),
    )


def _all(home: Home) -> Iterator[Mapping[str, Operation]]:
    return (server.by_name for server in home.servers)


def _context(call: Call) -> Context:
    return Context(call.principal, cwd=call.cwd, environ=call.environ)
