"""What the holder of the home's lock does all the while: sweep what is due, and deliver queued effects."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

import anyio

from agentstead.state import deliver_due
from agentstead.state.outbox import Deliver

if TYPE_CHECKING:
    from agentstead.kit.home import Home

log = logging.getLogger(__name__)

TICK_S = 15.0


async def keep_house(home: "Home", *, tick_s: float = TICK_S) -> None:
    """Sweep and deliver every `tick_s` seconds until cancelled; an effect that was just queued goes out sooner.

    A sweep that fails is logged and tried again with the next tick; it stops no other one.
    """
    receivers: dict[str, Deliver] = {}
    for server in home.servers:
        receivers.update(server.receivers)
    while True:
        await sweep_once(home)
        await _deliver_until(home, receivers, home.clock.monotonic() + tick_s, tick_s)


async def _deliver_until(home: "Home", receivers: Mapping[str, Deliver], end: float, tick_s: float) -> None:
    if not receivers:
        await anyio.sleep(tick_s)
        return
    while (left := end - home.clock.monotonic()) > 0:
        after = (await home.state.head()).seq
        await deliver_due(home.state, receivers)
        await home.state.wait(after, timeout_s=left, most=1)


async def sweep_once(home: "Home") -> None:
    """Run the sweep of every server."""
    for server in home.servers:
        try:
            await server.sweep(home)
        except Exception:
            log.exception("the sweep of %s failed", server.name)
