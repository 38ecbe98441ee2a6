"""Promotion: a tree becomes the live one by compare-and-swap, on evidence, with a person's yes to exactly this plan.

The live tree must still be what the fork was made from; an edit met on the way takes every step back.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import anyio

from agentstead.identity import WorkspaceFacts
from agentstead.kit import Call, Home
from agentstead.policy import subject_use
from agentstead.state import Conflict, Denied, Invalid, PendingAnswer, Tx, canonical_json, is_id, sha256_hex
from agentstead.workspace import evidence, forks, operations, promotions, snapshots
from agentstead.workspace.acting import cas_of, keep_plan, plan_changed
from agentstead.workspace.boundaries import RootIdentity, check_boundary
from agentstead.workspace.capturing import capture, look
from agentstead.workspace.changes import changes
from agentstead.workspace.contents import Trees
from agentstead.workspace.evidence import GATE_DIGEST, Verdict
from agentstead.workspace.finishing import carry_out
from agentstead.workspace.forking import capture_fork
from agentstead.workspace.operations import Begin, Operation
from agentstead.workspace.paths import is_within, shown
from agentstead.workspace.places import live_place
from agentstead.workspace.planning import Plan, Wanted, make_plan
from agentstead.workspace.promotions import Proposed
from agentstead.workspace.snapshots import Why

Then = Literal["close", "keep"]

_PROTECTED: Final = (
    *(b".agentstead", b".git", b".envrc", b".vscode/tasks.json"),
    *(b".github/workflows", b".githooks", b".husky"),
)
_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Source:
    """What is to be promoted: a fork or a snapshot, its tree, and the tree that the live one must still be."""

    ref: str
    tree: str
    base_tree: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """A plan for the live tree with what the gate says of its result, and the two digests that bind it."""

    source: Source
    plan: Plan
    verdict: Verdict
    proposed: Proposed
    subject_hash: str
    protected: tuple[bytes, ...]

    @property
    def is_weak(self) -> bool:
        """Tell whether names cannot be exchanged in one step on this file system."""
        return self.proposed.cas == "weak"

    @property
    def digest(self) -> str:
        """Return the digest by which a caller confirms the plan."""
        return self.proposed.plan_digest


async def source_of(home: Home, facts: WorkspaceFacts, ref: str, *, record: bool) -> Source:
    """Return what a reference promotes: a fork as it is now, or a snapshot of one.

    With `record` what the fork holds is recorded as its snapshot.
    """
    if is_id(ref, "frk_"):
        fork = await home.state.read(forks.the_fork, ref)
        forks.writable(fork, home.clock.now_us())
        tree = (await capture_fork(home, fork)).walked.tree if record else (await look(home, fork.place)).tree
        base = await home.state.read(snapshots.find, fork.base_snapshot)
        workspace_id = fork.workspace_id
    else:
        found = await home.state.read(snapshots.find, ref)
        fork_of = await home.state.read(forks.find, found.place) if found is not None else None
        if found is None or fork_of is None:
            raise Invalid(
                "ref.not_found",
                f"{ref[:60]!r} is no fork, and no snapshot of one",
                remedy="Promote a fork (frk_..) or a snapshot taken in one; fork_open makes a fork.",
            )
        tree, workspace_id = found.tree, found.workspace_id
        base = await home.state.read(snapshots.find, fork_of.base_snapshot)
    if workspace_id != facts.id or base is None:
        raise Invalid(
            "ref.foreign",
            f"{ref} belongs to another workspace than {facts.name} at {facts.root}",
            remedy="Name its workspace in the call.",
        )
    return Source(ref, tree, base.tree)


async def propose(home: Home, facts: WorkspaceFacts, source: Source, *, record: bool) -> Proposal:
    """Return what promoting a source would do to the live tree now, and what the receipts say of the result.

    Raises Conflict `promotion.stale` where the live tree is not the source's base, `promotion.live_moving` where it
    does not hold still.
    """
    root = await check_boundary(home, facts)
    place = live_place(facts)
    if record:
        walked = (await capture(home, place, Why("before"))).walked
    else:
        walked = await look(home, place)
    if walked.unstable:
        raise _moving([shown(path) for path in walked.unstable])
    if walked.tree != source.base_tree:
        raise await _stale(home, source, walked.tree)
    wanted = Wanted(source.tree, unknown="remove")
    plan = await home.blobs.run(make_plan, walked.tree, walked.omissions, wanted)
    if plan.refused or plan.protected:
        blocked = [*plan.protected, *plan.refused]
        raise Conflict(
            "promotion.protected",
            f"{len(blocked)} paths of the live tree hold what is not stored, {shown(blocked[0].path)!r} first",
            remedy="Move them aside, or leave these paths out of the fork; nothing was changed.",
            details={"paths": [each.as_json() for each in blocked[:_SHOWN]]},
        )
    verdict = await home.state.read(evidence.judge, facts.id, plan.result_tree)
    return await _bound(home, facts, source, plan, verdict, root)


async def promote(call: Call, facts: WorkspaceFacts, proposal: Proposal, *, operation_id: str, then: Then) -> Operation:
    """Carry a proposal out once a person has approved it; the caller holds the live tree's lock.

    Raises Denied `promotion.refused` where the gate does not pass, PendingAnswer while nobody has answered,
    Conflict `workspace.conflict` where somebody edited one of the paths meanwhile: nothing is changed then.
    """
    home = call.home
    refuse_unproved(proposal)
    try:
        approval_id = await call.subject(
            "promotion", proposal.subject_hash, question=question(facts, proposal), workspace=facts.id
        )
    except PendingAnswer as pending:
        approval_id = str(pending.details.get("approval_id", ""))
        await home.state.write(promotions.wait, proposal.proposed, approval_id)
        raise
    begin = Begin(
        operation_id,
        "promote",
        facts.id,
        "live",
        proposal.plan.live_tree,
        proposal.plan.result_tree,
        proposal.proposed.cas,
        plan=await keep_plan(home, proposal.plan, proposal.digest),
        options={"then": then},
    )
    with anyio.CancelScope(shield=True):
        operation = await home.state.write(_begin, begin, proposal, approval_id)
        ended = await carry_out(home, live_place(facts), operation)
    if ended.applied.undone:
        raise contested(ended.operation)
    return ended.operation


def contested(operation: Operation) -> Conflict:
    """Return the error for a promotion that met edits and was taken back."""
    paths = list(operation.result.get("contested", ()))
    first = paths[0]["path"] if paths else "a path"
    return Conflict(
        "workspace.conflict",
        f"{len(paths)} paths were edited while the promotion was applied, {first!r} first; every step was taken back",
        remedy="Look at the edits with tree_diff, open a fork of the live tree as it is now, and promote from there.",
        details={"operation_id": operation.id, "paths": paths[:_SHOWN]},
    )


def refuse_unproved(proposal: Proposal) -> None:
    """Raise Denied `promotion.refused` where a check fails or was not run; without any check a person may decide."""
    verdict = proposal.verdict
    if verdict.outcome == "pass" or verdict.why == "no_checks":
        return
    raise Denied(
        "promotion.refused",
        f"the gate does not pass: {verdict.why}",
        remedy=f"Run the checks on exactly this tree: check_run(ref='tree:{proposal.plan.result_tree}', checks=[..]).",
        details={"verdict": verdict.as_json(), "result_tree": proposal.plan.result_tree},
    )


def question(facts: WorkspaceFacts, proposal: Proposal) -> str:
    """Return what the person is asked: the same plan always gives the same words."""
    counts = {"added": 0, "modified": 0, "deleted": 0}
    for change in proposal.plan.changes:
        is_new, is_gone = change.old is None, change.new is None
        counts["added" if is_new else "deleted" if is_gone else "modified"] += 1
    paths = [f"  {change.status} {shown(change.path)}" for change in proposal.plan.changes[:_SHOWN]]
    more = len(proposal.plan.changes) - _SHOWN
    leaves = [f"  {leaf.check}: {leaf.status or 'not run'}" for leaf in proposal.verdict.leaves]
    proof = [f"Checks on exactly this tree: {proposal.verdict.outcome}", *leaves] if leaves else ["UNPROVEN: no check"]
    lines = [
        f"Promote a fork into the live workspace {facts.name} at {facts.root}?",
        f"{counts['added']} added, {counts['modified']} changed, {counts['deleted']} deleted:",
        *paths,
        *([f"  and {more} more"] if more > 0 else []),
        *proof,
        *[f"PROTECTED PATH: {shown(path)}" for path in proposal.protected],
        *(["Names cannot be exchanged in one step here: paths are empty for an instant."] if proposal.is_weak else []),
    ]
    return "\n".join(lines)


async def _bound(
    home: Home,
    facts: WorkspaceFacts,
    source: Source,
    plan: Plan,
    verdict: Verdict,
    root: RootIdentity,
) -> Proposal:
    place = live_place(facts)
    cas = await cas_of(home, place)
    protected = tuple(change.path for change in plan.changes if is_within(change.path, _PROTECTED))
    subject: dict[str, Any] = {
        "workspace": facts.id,
        "root": [root.device, root.inode],
        "base_tree": source.base_tree,
        "live_tree": plan.live_tree,
        "result_tree": plan.result_tree,
        "gate_digest": GATE_DIGEST,
        "cas": cas,
        "protected": [path.hex() for path in protected],
    }
    digest = plan.digest(**subject, source=source.ref, verdict=json.dumps(verdict.as_json(), sort_keys=True))
    proposed = Proposed(
        facts.id,
        source.ref,
        source.base_tree,
        plan.live_tree,
        plan.result_tree,
        digest,
        GATE_DIGEST,
        verdict.as_json(),
        cas,
    )
    subject_hash = sha256_hex(canonical_json({**subject, "verdict": verdict.outcome}))
    return Proposal(source, plan, verdict, proposed, subject_hash, protected)


def _begin(tx: Tx, begin: Begin, proposal: Proposal, approval_id: str) -> Operation:
    """Spend the approval and begin the operation in one transaction."""
    subject_use(tx, approval_id, proposal.subject_hash)
    operation = operations.begin(tx, begin, proposal.plan.steps)
    promotions.lock(tx, proposal.proposed, approval_id, operation.id)
    fork = forks.find(tx, proposal.source.ref)
    if fork is not None:
        forks.move(tx, fork.id, "promote")
    return operation


async def _stale(home: Home, source: Source, live_tree: str) -> Conflict:
    differing = await home.blobs.run(
        lambda store: [shown(change.path) for change in changes(Trees(store), source.base_tree, live_tree)]
    )
    return Conflict(
        "promotion.stale",
        f"the live tree is not what {source.ref} was made from: {len(differing)} paths differ, "
        f"first {_first(differing)}",
        remedy="Open a fork of the live tree as it is now, bring the change over (tree_diff detail=patch from the "
        "fork's base, then fork_write patch), check it, and promote that.",
        details={"paths": differing[:_SHOWN], "base_tree": source.base_tree, "live_tree": live_tree},
    )


def _moving(paths: Sequence[str]) -> Conflict:
    return Conflict(
        "promotion.live_moving",
        f"the live tree does not hold still: {_first(paths)} changed while it was read",
        remedy="Stop what writes there, then call again.",
        retryable=True,
        details={"paths": list(paths[:_SHOWN])},
    )


def _first(paths: Sequence[str]) -> str:
    return repr(paths[0]) if paths else "nothing"


def confirm(proposal: Proposal, digest: str) -> None:
    """Raise Conflict `workspace.plan_changed` unless the caller confirmed exactly this plan."""
    if proposal.digest != digest:
        raise plan_changed(digest, proposal.digest)
