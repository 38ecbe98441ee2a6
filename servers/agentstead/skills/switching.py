"""Switching skills off and on again; what is off is served nowhere, and what was active of it ends at its next use."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from agentstead.kit import Call, operation
from agentstead.kit.operation import Risk
from agentstead.skills.resolver import resolve, whereabouts
from agentstead.skills.results import SkillSwitched
from agentstead.skills.switches import Scope, switch
from agentstead.state import Invalid

PREFIX = "skill:"


def _action(arguments: Mapping[str, Any]) -> tuple[str, Risk]:
    """Switching off narrows; switching on lets foreign text back in, so a person is asked."""
    return ("skills.disable", "write") if arguments.get("enabled") is False else ("skills.enable", "execute")


@operation("skill_switch", action=_action, risk="execute", title="Switch a skill off or on", idempotent=True)
async def skill_switch(
    call: Call,
    *,
    selector: Annotated[str, Field(description="skill:<qualified name>, as skill:user:pdf.", max_length=320)],
    enabled: Annotated[bool, Field(description="false switches off; true asks a person.")],
    scope: Annotated[Scope, Field(description="The whole home, or this workspace.")] = "home",
    workspace_id: Annotated[str | None, Field(description="Workspace; default: the caller's.")] = None,
) -> SkillSwitched:
    """Switch a skill off where it does harm or is not wanted, or on again.

    A skill that is off is listed only with ruling=disabled, cannot be activated, and leaves its name to the next one.
    """
    if not selector.startswith(PREFIX) or ":" not in selector.removeprefix(PREFIX):
        raise Invalid(
            "tool.invalid_arguments",
            f"{selector[:80]!r} is no selector.",
            remedy="Write skill:<origin>:<name>, as qualified_name in skill_list.",
        )
    where = await whereabouts(call, workspace_id=workspace_id)
    if scope == "workspace" and where.workspace is None:
        raise Invalid("workspace.unknown", where.note, remedy="Name a workspace, or use scope=home.")
    resolution = await resolve(call, where)
    found = resolution.named(selector.removeprefix(PREFIX))[0].candidate
    await call.write(switch, found.selector, enabled=enabled, scope=scope, workspace_id=resolution.workspace_id)
    return SkillSwitched(selector=found.selector, enabled=enabled, scope=scope)
