"""Everything that touches names which the MCP SDK keeps private, and nothing else; a contract test pins them."""

from collections.abc import Callable
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp_types import ClientCapabilities
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

Context = ServerRequestContext[Any, Any]


class LegacyConnection:
    """The connection behind a request of the 2025-11-25 era; the SDK's session object lives for one request only."""

    def __init__(self, context: Context) -> None:
        self._connection = context.session._connection  # noqa: SLF001

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LegacyConnection) and self._connection is other._connection

    def __hash__(self) -> int:
        return id(self._connection)

    def on_close(self, forget: Callable[[], None]) -> None:
        """Call `forget` when the client leaves."""
        self._connection.exit_stack.callback(forget)

    async def send_resource_updated(self, uri: str) -> None:
        """Send `notifications/resources/updated`."""
        await self._connection.send_resource_updated(uri)


def is_modern(context: Context) -> bool:
    """Tell whether this request speaks 2026-07-28 or later."""
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def client_name(context: Context) -> tuple[str, str]:
    """Return the client's name and version as it claims them; empty where it said nothing."""
    params = context.session.client_params
    info = None if params is None else params.client_info
    return ("", "") if info is None else (info.name, info.version)


def can_elicit(context: Context) -> bool:
    """Tell whether the client shows forms to its person, and can be asked on this request."""
    capabilities: ClientCapabilities | None = context.session.client_capabilities
    declared = None if capabilities is None else capabilities.elicitation
    if declared is None or (declared.form is None and declared.url is not None):
        return False
    return is_modern(context) or context.session.can_send_request
