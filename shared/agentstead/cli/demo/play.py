"""The demonstration itself: every step a call of a tool that any host has, and no model anywhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio

from agentstead.cli.demo.material import Candidate, Material
from agentstead.cli.demo.stage import Stage, Timeline

CHANNEL = "demo"
WAIT_S = 25
POLL_S = 0.5
ENDED = ("recorded", "refused", "canceled", "lost")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One candidate with its fork, what Agentstead measured of it, and how much it changes."""

    candidate: Candidate
    fork_id: str
    receipt: Mapping[str, Any]
    changed_lines: int

    @property
    def passed(self) -> bool:
        """Tell whether the check passed."""
        return bool(self.receipt["status"] == "pass")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it ended: the attempts, the one that was promoted (None where none was proved), and what was learned."""

    attempts: Sequence[Attempt]
    winner: Attempt | None
    session_id: str
    memory: str = ""
    thread_id: str = ""


async def play(stage: Stage, material: Material, timeline: Timeline) -> Outcome:
    """Prove candidates in forks, promote what the receipts prove, remember it, and tell a thread."""
    session = await _open(stage, material, timeline)
    attempts = await _attempts(stage, material, session, timeline)
    winner = choose(attempts)
    if winner is None:
        timeline.add("receipts", "no candidate is proved", "nothing was promoted")
        await _close(stage, session, "No candidate passed the check; nothing was promoted.")
        return Outcome(attempts, None, session)
    timeline.add("receipts", f"{winner.candidate.name} is proved", f"receipt {winner.receipt['receipt_id']}")
    await _promote(stage, winner, timeline)
    learned = await _remember(stage, winner, timeline)
    thread = await _tell(stage, winner, session, timeline)
    await _close(stage, session, f"Promoted {winner.candidate.name}: {winner.receipt['receipt_id']} proves it.")
    timeline.add("sessions", "session closed", "any host can open it again and read what happened")
    return Outcome(attempts, winner, session, learned, thread)


def choose(attempts: Sequence[Attempt]) -> Attempt | None:
    """Return the proved attempt that changes least; a candidate's own word counts for nothing."""
    proved = [attempt for attempt in attempts if attempt.passed]
    return min(proved, key=lambda attempt: (attempt.changed_lines, attempt.candidate.name), default=None)


async def _open(stage: Stage, material: Material, timeline: Timeline) -> str:
    opened = await stage.call("sessions", "session_open", name="demo", agent=CHANNEL)
    session = str(opened["session_id"])
    timeline.add("sessions", f"session {opened['name']} opened", f"workspace {opened['workspace']['name']}")
    prompt = {"kind": "prompt", "text": f"Make `{' '.join(material.check)}` pass."}
    await stage.call("sessions", "session_record", session_id=session, events=[prompt], turn="begin")
    return session


async def _attempts(stage: Stage, material: Material, session: str, timeline: Timeline) -> list[Attempt]:
    taken = await stage.call("workspace", "snapshot_take", label="before")
    timeline.add("workspace", "snapshot @before", f"tree {taken['tree'][:12]}")
    names = [candidate.name for candidate in material.candidates]
    opened = await stage.call(
        "workspace", "fork_open", **{"from": taken["snapshot_id"]}, count=len(names), labels=names, session_id=session
    )
    timeline.add("workspace", f"{len(names)} forks", ", ".join(names))
    found = []
    for candidate, fork in zip(material.candidates, opened["forks"], strict=True):
        found.append(await _attempt(stage, material, candidate, fork["fork_id"], timeline))
    return found


async def _attempt(stage: Stage, material: Material, candidate: Candidate, fork_id: str, timeline: Timeline) -> Attempt:
    await stage.call("workspace", "fork_write", fork_id=fork_id, patch=candidate.patch)
    ran = await stage.call("workspace", "check_run", ref=fork_id, command={"argv": list(material.check)}, wait_s=WAIT_S)
    receipt = await _recorded(stage, ran["receipts"][0])
    changed = sum(line[:1] in "+-" and line[:3] not in ("+++", "---") for line in candidate.patch.splitlines())
    timeline.add(
        "workspace", f"check in fork {candidate.name}: {receipt['status']}", f"receipt {receipt['receipt_id']}"
    )
    return Attempt(candidate, fork_id, receipt, changed)


async def _recorded(stage: Stage, receipt: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the receipt once its check has ended; the check has a time limit of its own."""
    while receipt["state"] not in ENDED:
        await anyio.sleep(POLL_S)
        seen = await stage.call("workspace", "workspace_view", view="receipt", ref=receipt["receipt_id"])
        receipt = seen["item"]
    return receipt


async def _promote(stage: Stage, winner: Attempt, timeline: Timeline) -> None:
    planned = await stage.call("workspace", "tree_promote", **{"from": winner.fork_id}, dry_run=True)
    timeline.add("workspace", "promotion planned", f"plan {planned['plan_digest'][:12]}")
    done = await stage.call(
        "workspace", "tree_promote", **{"from": winner.fork_id}, dry_run=False, plan_digest=planned["plan_digest"]
    )
    timeline.add("workspace", f"promotion {done['state']}", f"operation {done['operation_id']}, undone by tree_restore")


async def _remember(stage: Stage, winner: Attempt, timeline: Timeline) -> str:
    text = f"{winner.candidate.name} is the change that makes the check pass."
    operation = {"op": "add", "type": "fact", "text": text, "evidence": [winner.receipt["receipt_id"]]}
    written = await stage.call("memory", "memory_write", operations=[operation], reason="proved in the demonstration")
    recalled = await stage.call("memory", "memory_recall", query="which change makes the check pass")
    timeline.add("memory", f"stored what was learned ({written['state']})", text)
    timeline.add("memory", f"recalled it among {len(recalled['items'])}", f"mode {recalled['mode']}")
    return text


async def _tell(stage: Stage, winner: Attempt, session: str, timeline: Timeline) -> str:
    """Ask a second agent's session to look at it; its answer and the receipt end the work."""
    reviewer = (await stage.call("sessions", "session_open", name="reviewer", agent="reviewer"))["session_id"]
    asker, looker = [
        (await stage.call("network", "peer_join", channel=CHANNEL, session=each, display_name=name))["peer_id"]
        for each, name in ((session, "worker"), (reviewer, "reviewer"))
    ]
    sent = await stage.call(
        "network",
        "message_send",
        channel=CHANNEL,
        peer=asker,
        to=looker,
        title="A promoted change",
        text=f"{winner.candidate.name} was promoted on receipt {winner.receipt['receipt_id']}. Please take note.",
        work="new",
    )
    inbox = await stage.call("network", "inbox_read", peer=looker)
    await stage.call("network", "inbox_ack", peer=looker, message_ids=[sent["message_id"]])
    await stage.call("network", "work_update", peer=looker, work_id=sent["work_id"], action="accept")
    done = await stage.call(
        "network",
        "work_update",
        peer=looker,
        work_id=sent["work_id"],
        action="complete",
        message="Noted.",
        result={"receipt": winner.receipt["receipt_id"], "tree": winner.receipt["tree_in"]},
    )
    timeline.add("network", f"told thread {sent['thread_id']}", f"{len(inbox['items'])} message read and acknowledged")
    timeline.add("network", f"work {done['state']}", f"receipt {winner.receipt['receipt_id']}")
    return str(sent["thread_id"])


async def _close(stage: Stage, session: str, text: str) -> None:
    reply = {"kind": "reply", "text": text}
    await stage.call("sessions", "session_record", session_id=session, events=[reply], turn="end", close=True)
