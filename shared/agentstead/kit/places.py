"""Which workspace a call means."""

from typing import TYPE_CHECKING

from agentstead.identity import Asked, WorkspaceFacts, resolve

if TYPE_CHECKING:
    from agentstead.kit.call import Call

SESSION_VARIABLE = "AGENTSTEAD_SESSION"


async def resolve_workspace(call: "Call", name: str | None, *, session_id: str | None) -> WorkspaceFacts:
    """Return the workspace of a call; see `identity.resolve` for the order and the errors."""
    asked = Asked(
        home=call.home.path,
        name=name or "",
        environ=call.environ,
        session_id=session_id or call.environ.get(SESSION_VARIABLE, ""),
        cwd=call.cwd,
    )
    return await resolve(call.home.state, asked)
