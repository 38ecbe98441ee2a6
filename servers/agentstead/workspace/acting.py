"""What every operation on a place has in common: one id under the caller's key, one lock, recovery first."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio

from agentstead.identity import WorkspaceFacts
from agentstead.kit import Call, Home
from agentstead.state import Conflict, NotFound, Tx, canonical_json
from agentstead.workspace import forks, operations
from agentstead.workspace.beneath import opened_root
from agentstead.workspace.boundaries import check_boundary
from agentstead.workspace.exchange import Cas, probe
from agentstead.workspace.finishing import recover_place
from agentstead.workspace.operations import Operation
from agentstead.workspace.places import Place, live_place, locked
from agentstead.workspace.planning import Plan
from agentstead.workspace.snapshots import LIVE


async def take_id(call: Call) -> str:
    """Take an id for an operation under the caller's idempotency key: a repeated call gets the same one."""
    return await call.write(_new_id)


async def earlier(home: Home, operation_id: str) -> tuple[str, Operation | None]:
    """Return the operation that an earlier call with the same key ended, or the id under which to begin one.

    One that a crash took back did nothing: it is begun anew under another id. The caller holds the place's lock, so
    none of them is running.
    """
    known = await home.state.read(operations.find, operation_id)
    if known is not None and known.state == "failed" and not known.result.get("contested"):
        return await home.state.write(_new_id), None
    return operation_id, known


def _new_id(tx: Tx) -> str:
    return tx.new_id("opr_")


async def place_named(call: Call, facts: WorkspaceFacts, name: str) -> Place:
    """Return the live tree or an open fork of a workspace by its name."""
    if name == LIVE:
        await check_boundary(call.home, facts)
        return live_place(facts)
    fork = await call.read(forks.the_fork, name)
    if fork.workspace_id != facts.id:
        raise NotFound(
            "fork.not_found",
            f"fork {name} belongs to another workspace than {facts.name}",
            remedy="Name its workspace in the call.",
        )
    if fork.state in ("closed", "failed", "gone"):
        forks.writable(fork, call.home.clock.now_us())
    return fork.place


@asynccontextmanager
async def changing(home: Home, place: Place, *, doing: str) -> AsyncIterator[None]:
    """Hold a place for a change; what a dead process left unfinished there is ended first."""
    async with locked(home, place, doing=doing):
        with anyio.CancelScope(shield=True):
            await recover_place(home, place)
        yield


async def cas_of(home: Home, place: Place) -> Cas:
    """Find out whether the file system of a place can exchange names, with two files of ours."""
    return await home.blobs.run(lambda _store: _probe(place))


def _probe(place: Place) -> Cas:
    folder = place.base / "probe" if place.is_live else place.base
    for directory in (place.base, folder):
        directory.mkdir(mode=0o700, exist_ok=True)
    with opened_root(folder) as directory_handle:
        return probe(directory_handle)


async def keep_plan(home: Home, plan: Plan, digest: str) -> str:
    """Store a plan as it was shown; return its blob."""
    return await home.blobs.put(canonical_json({"digest": digest, "plan": plan.as_json()}))


async def kept_plan(home: Home, operation: Operation) -> tuple[Mapping[str, Any], str]:
    """Return the plan of an operation as it was shown, and its digest."""
    stored = json.loads(await home.blobs.get("blob", operation.plan))
    return stored["plan"], stored["digest"]


def plan_changed(present: str, digest: str) -> Conflict:
    """Return the error for a plan that is not the one the caller confirmed."""
    return Conflict(
        "workspace.plan_changed",
        "what this would do has changed since the plan was shown",
        remedy=f"Look at the plan again with dry_run=true; now it is plan_digest={digest!r}.",
        details={"plan_digest": digest, "given": present},
    )
