"""Running a check on exactly one tree: in a scratch copy that nothing else sees, measured by us, sealed at the end."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from agentstead.blobs import BlobStore
from agentstead.kit import Home
from agentstead.runner import Command, Exit, Limits, runner_of
from agentstead.state import AgentsteadError, Invalid
from agentstead.workspace import receipts
from agentstead.workspace.beneath import opened_root
from agentstead.workspace.contents import Trees
from agentstead.workspace.materialise import materialise
from agentstead.workspace.paths import given
from agentstead.workspace.places import Place, fork_place, locked
from agentstead.workspace.removing import put_away
from agentstead.workspace.sealing import Run, seal_run
from agentstead.workspace.surroundings import environment_of, outside_of


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A scratch copy of a tree and the command as it will be run there."""

    place: Place
    command: Command
    facts: Mapping[str, Any]


async def run_check(home: Home, run: Run) -> None:
    """Run one check to its recorded receipt; whatever goes wrong ends in the receipt's state or status."""
    place = fork_place(run.workspace_id, run.receipt_id, home.path / "forks" / run.workspace_id / run.receipt_id)
    async with locked(home, place, doing=f"check_run {run.check.name or 'command'}"):
        try:
            await _run(home, run, place)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await _give_up(home, run.receipt_id)
            raise
        finally:
            with anyio.CancelScope(shield=True):
                await home.blobs.run(put_away, Path(place.base), home.path / "trash")


async def recover_receipts(home: Home) -> list[str]:
    """Record as lost the runs that a dead process left, and remove their scratch copies; return their ids."""
    lost: list[str] = []
    for receipt in await home.state.read(receipts.unfinished):
        base = home.path / "forks" / receipt.workspace_id / receipt.id
        place = fork_place(receipt.workspace_id, receipt.id, base)
        try:
            async with locked(home, place, doing="recovery", wait_s=0):
                await home.state.write(receipts.move, receipt.id, "lost")
                await home.blobs.run(put_away, base, home.path / "trash")
        except AgentsteadError:
            continue
        lost.append(receipt.id)
    return lost


async def _run(home: Home, run: Run, place: Place) -> None:
    await home.state.write(receipts.move, run.receipt_id, "ready")
    try:
        prepared = await home.blobs.run(_prepare, run, place)
        await home.state.write(receipts.move, run.receipt_id, "started")
        result = await runner_of(home.state).run(prepared.command, owner=run.receipt_id)
    except AgentsteadError as error:
        await _record(home, run, place, None, await home.blobs.run(_unstarted, run, place), error)
        return
    await _record(home, run, place, result, prepared.facts, None)


async def _record(
    home: Home, run: Run, place: Place, result: Exit | None, facts: Mapping[str, Any], error: AgentsteadError | None
) -> None:
    if error is not None and (await home.state.read(receipts.the_receipt, run.receipt_id)).state == "preparing":
        await home.state.write(receipts.move, run.receipt_id, "started")
    await home.state.write(receipts.move, run.receipt_id, "ended")
    async with home.blobs.holding():
        sealed = await home.blobs.run(seal_run, home, run, place, result, facts, error)
        await home.state.write(receipts.seal, run.receipt_id, sealed)


async def _give_up(home: Home, receipt_id: str) -> None:
    receipt = await home.state.read(receipts.the_receipt, receipt_id)
    if receipt.state in receipts.OPEN:
        await home.state.write(receipts.move, receipt_id, "lost" if receipt.state == "settling" else "cancel")


def _prepare(store: BlobStore, run: Run, place: Place) -> _Prepared:
    """Write the tree, and nothing else, into a fresh directory."""
    for directory in (place.base.parent, place.base, place.root, place.base / "home", place.base / "tmp"):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with opened_root(place.root) as root:
        materialise(Trees(store), run.tree_in, root)
    environ = environment_of(place.base, run.check, run.caller)
    cwd = place.root / (os.fsdecode(given(run.check.command.cwd, what="cwd")) if run.check.command.cwd else "")
    if not cwd.is_dir() or not cwd.resolve().is_relative_to(place.root.resolve()):
        raise Invalid(
            "check.invalid",
            f"{run.check.command.cwd!r} is no directory of the tree",
            remedy="Correct cwd of the check.",
        )
    limits = Limits(wall_s=run.check.command.timeout_s)
    command = Command(tuple(run.check.command.argv), cwd, environ, limits)
    command.program()
    return _Prepared(place, command, outside_of(store, run.check, environ))


def _unstarted(store: BlobStore, run: Run, place: Place) -> Mapping[str, Any]:
    return outside_of(store, run.check, environment_of(place.base, run.check, run.caller))
