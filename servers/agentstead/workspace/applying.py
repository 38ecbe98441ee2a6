"""Carrying out a journaled plan on a place: staged, swapped in batches, finished or taken back; after a crash too.

The caller holds the place's lock. What is written to the journal comes after what was done to the files, and what the
files say is read again before it is trusted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from agentstead.blobs import FEW_FILES, BlobStore, sync_file_system, sync_paths
from agentstead.kit import Home
from agentstead.workspace import operations
from agentstead.workspace.apply import Applier, Outcome
from agentstead.workspace.beneath import opened_root
from agentstead.workspace.operations import JournaledStep, Operation
from agentstead.workspace.places import Place
from agentstead.workspace.staging import STAGE, has_area, opened_area, settle
from agentstead.workspace.steps import Step

BATCH_STEPS: Final = 64


@dataclass(frozen=True, slots=True)
class Applied:
    """How an apply ended: what was contested, and which paths somebody wrote after they were done.

    `undone` says that every step was taken back.
    """

    contested: tuple[Outcome, ...]
    moved_on: tuple[bytes, ...]
    undone: bool


async def stage(home: Home, place: Place, operation: Operation) -> list[JournaledStep]:
    """Prepare the new content of every step beside the tree, durably, and journal it."""
    steps = [each.step for each in await home.state.read(operations.steps_of, operation.id)]
    inodes = await home.blobs.run(_stage, place, operation, steps)
    await home.state.write(operations.note_staged, operation.id, inodes)
    return await home.state.read(operations.steps_of, operation.id)


async def forward(
    home: Home, place: Place, operation: Operation, steps: Sequence[JournaledStep], *, all_or_nothing: bool
) -> Applied:
    """Do every step; with `all_or_nothing` the first contested one takes all back.

    Without it a contested path stays as somebody else made it, and the rest is finished.
    """
    contested: list[Outcome] = []
    for start in range(0, len(steps), BATCH_STEPS):
        batch = steps[start : start + BATCH_STEPS]
        outcomes = await home.blobs.run(
            _forward, place, operation, batch, [each.step for each in steps], all_or_nothing
        )
        await home.state.write(operations.note_outcomes, operation.id, outcomes)
        contested += [outcome for outcome in outcomes if outcome.phase == "contested"]
        if contested and all_or_nothing:
            await home.state.write(operations.note_direction, operation.id, "back")
            return await backward(home, place, operation, steps, contested=contested)
    return await _settled(home, place, operation, steps, contested, undone=False)


async def backward(
    home: Home,
    place: Place,
    operation: Operation,
    steps: Sequence[JournaledStep],
    *,
    contested: Sequence[Outcome] = (),
) -> Applied:
    """Take every step back, the last first; an edit that was made since stays where it is and is named."""
    found = list(contested)
    for end in range(len(steps), 0, -BATCH_STEPS):
        batch = steps[max(0, end - BATCH_STEPS) : end]
        outcomes = await home.blobs.run(_backward, place, operation, batch)
        await home.state.write(operations.note_outcomes, operation.id, outcomes)
        known = {outcome.step.path for outcome in found}
        found += [each for each in outcomes if each.phase == "contested" and each.step.path not in known]
    return await _settled(home, place, operation, steps, found, undone=True)


async def recover(home: Home, place: Place, operation: Operation, *, all_or_nothing: bool) -> Applied | None:
    """Finish what a dead process left: forward if it may, else back; None where nothing had been swapped.

    Everything staged goes forward, but an all-or-nothing plan only if every step was done; what was on its way back
    goes on back.
    """
    steps = await home.state.read(operations.steps_of, operation.id)
    if not all(each.phase != "planned" for each in steps):
        return None
    if not has_area(place.base, operation.id):
        return await _settled(home, place, operation, steps, [], undone=operation.goes_back)
    done = not all_or_nothing or await home.blobs.run(_all_done, place, operation, steps)
    if operation.goes_back or not done:
        await home.state.write(operations.note_direction, operation.id, "back")
        return await backward(home, place, operation, steps)
    return await forward(home, place, operation, steps, all_or_nothing=False)


async def _settled(
    home: Home,
    place: Place,
    operation: Operation,
    steps: Sequence[JournaledStep],
    contested: Sequence[Outcome],
    *,
    undone: bool,
) -> Applied:
    moved_on = await home.blobs.run(_settle, place, operation, [each.step for each in steps], undone)
    touched = {outcome.step.path for outcome in contested}
    return Applied(tuple(contested), tuple(path for path in moved_on if path not in touched), undone)


def _stage(store: BlobStore, place: Place, operation: Operation, steps: Sequence[Step]) -> list[int]:
    folder = place.base / STAGE / operation.id / "new"
    one_by_one = sum(step.is_staged for step in steps) <= FEW_FILES
    with opened_root(place.root) as root, opened_area(place.base, operation.id) as area:
        one_by_one = one_by_one or not sync_file_system(folder)
        applier = Applier(store, root, area, cas=operation.cas)
        inodes = [applier.stage(step, durable=one_by_one) for step in steps]
        if not one_by_one:
            sync_file_system(folder)
    sync_paths([folder, folder.parent, folder.parent.parent], within=folder)
    return inodes


def _forward(
    store: BlobStore,
    place: Place,
    operation: Operation,
    batch: Sequence[JournaledStep],
    plan: Sequence[Step],
    all_or_nothing: bool,
) -> list[Outcome]:
    outcomes: list[Outcome] = []
    with opened_root(place.root) as root, opened_area(place.base, operation.id) as area:
        applier = Applier(store, root, area, cas=operation.cas, plan=plan)
        for each in batch:
            outcomes.append(applier.forward(each.step, each.inode))
            if all_or_nothing and outcomes[-1].phase == "contested":
                break
    return outcomes


def _backward(store: BlobStore, place: Place, operation: Operation, steps: Sequence[JournaledStep]) -> list[Outcome]:
    with opened_root(place.root) as root, opened_area(place.base, operation.id) as area:
        applier = Applier(store, root, area, cas=operation.cas)
        return [applier.backward(each.step, each.inode) for each in reversed(steps)]


def _all_done(store: BlobStore, place: Place, operation: Operation, steps: Sequence[JournaledStep]) -> bool:
    with opened_root(place.root) as root, opened_area(place.base, operation.id) as area:
        applier = Applier(store, root, area, cas=operation.cas)
        last = {each.step.path: each for each in steps}
        return all(applier.is_done(each.step, each.inode) for each in last.values())


def _settle(store: BlobStore, place: Place, operation: Operation, steps: Sequence[Step], undone: bool) -> list[bytes]:
    """Make the touched names durable, move what was displaced to the trash, and read the plan's paths back."""
    with opened_root(place.root) as root:
        if has_area(place.base, operation.id):
            with opened_area(place.base, operation.id) as area:
                applier = Applier(store, root, area, cas=operation.cas)
                applier.sync(steps, str(place.root))
                moved_on = [] if undone else applier.moved_on(steps)
            settle(place.base, operation.id)
            return moved_on
    return []
