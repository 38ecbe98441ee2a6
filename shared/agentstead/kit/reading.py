"""Judging a resource read or a prompt like a tool that reads, and making the call that its function gets."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from agentstead.kit.call import Call
from agentstead.kit.invoke import Context
from agentstead.policy import CallFacts

if TYPE_CHECKING:
    from agentstead.kit.home import Home


async def call_for_reading(
    home: "Home",
    server: str,
    context: Context,
    *,
    kind: Literal["resource", "prompt"],
    name: str,
    arguments: Mapping[str, str],
) -> Call:
    """Return a call that may read; raises what the policy says where it may not."""
    facts = CallFacts(
        server=server,
        tool=name,
        action=f"{server}.{kind}",
        risk="read",
        arguments=dict(arguments),
        principal=context.principal,
        now_us=home.clock.now_us(),
        kind=kind,
        cwd=str(context.cwd or ""),
    )
    ticket = await home.enforcement.enter(facts)
    return Call(
        home=home,
        principal=context.principal,
        arguments=dict(arguments),
        cwd=context.cwd,
        environ=context.environ,
        operation=f"{kind}:{name}",
        ticket=ticket,
        report=context.report,
    )
