"""Starting: end what a crash left and remove what has served; and this server's part of the check of a home."""

from agentstead.identity import registry
from agentstead.kit import Home
from agentstead.runner import end_left_overs
from agentstead.state import AgentsteadError, Conflict, Reading
from agentstead.workspace import forks, operations, receipts
from agentstead.workspace.checking import recover_receipts
from agentstead.workspace.displaced import sweep_displaced
from agentstead.workspace.finishing import recover_place
from agentstead.workspace.forking import TRASH, sweep_forks
from agentstead.workspace.operations import Operation
from agentstead.workspace.places import Place, fork_place, live_place, locked
from agentstead.workspace.removing import empty_trash, put_away
from agentstead.workspace.snapshots import LIVE


async def start(home: Home) -> None:
    """End left-over processes, finish or take back unfinished operations, and sweep; no step needs a person."""
    await end_left_overs(home.state)
    await recover_receipts(home)
    for operation in await home.state.read(operations.unfinished):
        await _recover(home, operation)
    await sweep_forks(home)
    await _sweep_directories(home)
    await sweep_displaced(home)
    await home.blobs.run(empty_trash, home.path / TRASH)


async def verify(home: Home) -> list[str]:
    """Return what is wrong with this server's records: references that cannot be read, operations left open."""
    found = await home.blobs.verify(home.state)
    wrong = [f"object {key} is referred to and cannot be read" for key in found.missing]
    unfinished = await home.state.read(operations.unfinished)
    return wrong + [f"operation {each.id} ({each.kind}) has not ended" for each in unfinished]


async def _recover(home: Home, operation: Operation) -> None:
    place = await home.state.read(_place_of, operation)
    if place is None or not place.root.is_dir():
        await home.state.write(operations.abandon, operation.id, "its directory is gone")
        return
    try:
        async with locked(home, place, doing="recovery", wait_s=0):
            await recover_place(home, place)
    except AgentsteadError as error:
        if error.code != "workspace.busy":
            await home.state.write(operations.note_trouble, operation.id, f"{error.code}: {error.message}")


async def _sweep_directories(home: Home) -> None:
    """Remove the directories of forks and runs that have ended; what no row names is left alone."""
    for directory in sorted((home.path / "forks").glob("wsp_*/*")):
        if await home.state.read(_has_ended, directory.name):
            try:
                async with locked(home, fork_place("", directory.name, directory), doing="sweep", wait_s=0):
                    await home.blobs.run(put_away, directory, home.path / TRASH)
            except Conflict:
                continue


def _has_ended(reading: Reading, name: str) -> bool:
    fork, receipt = forks.find(reading, name), receipts.find(reading, name)
    if fork is not None:
        return fork.state not in forks.LIVING
    return receipt is not None and receipt.state not in receipts.OPEN


def _place_of(reading: Reading, operation: Operation) -> Place | None:
    if operation.place == LIVE:
        workspace = registry.by_id(reading, operation.workspace_id)
        return live_place(workspace) if workspace is not None else None
    fork = forks.find(reading, operation.place)
    return fork.place if fork is not None else None
