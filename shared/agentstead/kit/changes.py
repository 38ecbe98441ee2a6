"""Telling subscribers of both protocol eras which resources a journal entry changed, whichever process wrote it."""

import logging
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress

import anyio
from anyio.abc import TaskStatus
from mcp.server.subscriptions import InMemorySubscriptionBus
from mcp.shared.subscriptions import ResourceUpdated

from agentstead.kit.declaration import ServerDeclaration
from agentstead.kit.sdk import LegacyConnection
from agentstead.state import State

log = logging.getLogger(__name__)

WAIT_S = 25.0


class ChangeHub:
    """The subscribers of every server in this process."""

    def __init__(self, declarations: Sequence[ServerDeclaration]) -> None:
        self.bus = InMemorySubscriptionBus()
        self._declarations = declarations
        self._legacy: dict[str, set[LegacyConnection]] = defaultdict(set)

    def subscribe(self, uri: str, connection: LegacyConnection) -> None:
        """Tell a legacy connection of changes of `uri` until it leaves."""
        self._legacy[uri].add(connection)
        connection.on_close(lambda: self.unsubscribe(uri, connection))

    def unsubscribe(self, uri: str, connection: LegacyConnection) -> None:
        """Stop telling a legacy connection of `uri`."""
        self._legacy[uri].discard(connection)
        if not self._legacy[uri]:
            del self._legacy[uri]

    async def publish(self, uri: str) -> None:
        """Tell everybody who asked for `uri` that it changed."""
        await self.bus.publish(ResourceUpdated(uri=uri))
        for connection in list(self._legacy.get(uri, ())):
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
                await connection.send_resource_updated(uri)

    async def follow(self, state: State, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Publish what each new journal entry changes, until cancelled; started once nothing can be missed."""
        after = (await state.head()).seq
        task_status.started()
        while True:
            for entry in await state.wait(after, timeout_s=WAIT_S):
                after = entry.seq
                for uri in {uri for each in self._declarations for uri in each.changes(entry)}:
                    await self.publish(uri)
