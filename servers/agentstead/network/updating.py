"""What each action on a work says on the wire: a receipt answers a request, a trace reports on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, assert_never

from agentstead.identity import Principal
from agentstead.network.peers import Peer, usable_peers
from agentstead.network.refusals import as_error
from agentstead.network.sending import Address, Draft
from agentstead.network.wire import Refused
from agentstead.network.wire.grammar import trim
from agentstead.network.works import Work, find_work
from agentstead.state import Invalid, Reading

Action = Literal["accept", "refuse", "progress", "need_input", "complete", "fail", "cancel"]

_OPENED_BY = "SELECT message_id FROM net_message WHERE seq = :seq"
_TRACED: Final[Mapping[str, str]] = {
    "progress": "working",
    "need_input": "needs_input",
    "complete": "completed",
    "fail": "failed",
    "cancel": "canceled",
}


@dataclass(frozen=True, slots=True)
class Party:
    """One of the two sides of a work, and the message that opened it."""

    peer: Peer
    work: Work
    opened_by: str

    @property
    def is_initiator(self) -> bool:
        """Tell whether this side opened the work."""
        return self.peer.peer_id == self.work.initiator


def party_of(reading: Reading, principal: Principal, work_id: str, *, peer: str | None) -> Party:
    """Return which of a caller's peers is a party of a work.

    Raises `network.rejected` for unknown work, `network.work_not_yours` for that of others, and what `usable_peers`
    does.
    """
    own = usable_peers(reading, principal, peer=peer)
    works = [work for each in {mine.workspace for mine in own} if (work := find_work(reading, each, work_id))]
    for work in works:
        for mine in own:
            if mine.channel == work.channel and work.other_party(mine.peer_id):
                return Party(mine, work, reading.value(_OPENED_BY, seq=work.opened_seq))
    if not works:
        raise as_error(Refused("not_found", "work_not_found", what="No work has that id.", pointer="/work_id"))
    raise as_error(
        Refused("not_target", "work_actor_not_allowed", what=f"You are no party of work {work_id}.", pointer="/from")
    )


def update_of(
    party: Party,
    action: Action,
    *,
    message: str | None,
    reason_code: str | None,
    result: Mapping[str, Any] | None,
    artifact_refs: Sequence[Mapping[str, Any]] | None,
) -> Draft:
    """Return the receipt or trace of an action, addressed to the other party.

    Raises `Invalid` for a refusal without a reason, or a reason or result that the action does not carry.
    """
    sends_receipt = action in ("accept", "refuse") or (action == "cancel" and party.is_initiator)
    _check(
        action, sends_receipt=sends_receipt, reason_code=reason_code, has_result=(result, artifact_refs) != (None, None)
    )
    match action:
        case "accept":
            return _receipt(party, "accepted", None, message)
        case "refuse":
            return _receipt(party, "rejected", reason_code, message)
        case "cancel" if party.is_initiator:
            return _receipt(party, "canceled", reason_code, message)
        case "progress" | "need_input" | "complete" | "fail" | "cancel":
            report = {"message": message, "result": result, "artifact_refs": artifact_refs}
            body = {"state": _TRACED[action]} | {name: value for name, value in report.items() if value is not None}
            return Draft("trace", party.peer, body, _address(party), causation_id=party.opened_by)
        case _:
            assert_never(action)


def _receipt(party: Party, status: str, reason_code: str | None, message: str | None) -> Draft:
    body = {"for_id": party.opened_by, "status": status}
    if reason_code is not None:
        body["reason_code"] = reason_code
    if message is not None and trim(message):
        body["detail"] = message
    return Draft("receipt", party.peer, body, _address(party), reply_to=party.opened_by)


def _address(party: Party) -> Address:
    work = party.work
    return Address(work.surface, work.container_id, work.other_party(party.peer.peer_id), work.work_id)


def _check(action: Action, *, sends_receipt: bool, reason_code: str | None, has_result: bool) -> None:
    if action == "refuse" and reason_code is None:
        raise _misfit("reason_code: a refusal says why", "Pass reason_code, e.g. busy or unsupported_kind.")
    if reason_code is not None and (action == "accept" or not sends_receipt):
        raise _misfit(f"reason_code: {action} carries none", "Leave it out, or explain in message.")
    if has_result and sends_receipt:
        raise _misfit(f"result: {action} carries none here", "Report results with action=complete.")


def _misfit(what: str, remedy: str) -> Invalid:
    return Invalid("tool.invalid_arguments", f"{what}.", remedy=f"{remedy} Nothing was changed.")
