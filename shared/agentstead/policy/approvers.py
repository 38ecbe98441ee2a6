"""Whose answer counts. Never the asker's, never an agent's; a person's only where it is proved how they gave it."""

from collections.abc import Collection

from agentstead.identity.principals import Principal, Proof
from agentstead.policy.trust import host_trusted
from agentstead.state import Denied, Reading

_AGENTS = frozenset({"agent", "session", "extension"})
_HOW = (
    "A person answers with `agentstead answer ID` in a terminal of their own, or in the form of a host that they trust."
)


def check_approver(
    reading: Reading, *, asker: str, by: Principal, proof: Proof, trusted_hosts: Collection[str] = ()
) -> None:
    """Raise `Denied` unless `by` may answer what `asker` asked, with this proof.

    `approval.self`: an agent, a supervised process, or the asker itself. `approval.not_approver`: no person is proved.
    """
    if by.kind in _AGENTS or by.facts.supervised:
        raise Denied("approval.self", f"{by.text} is, or belongs to, an agent; agents never answer.", remedy=_HOW)
    if proof == "operator" and by.text == asker and by.kind != "user":
        raise Denied("approval.self", f"{by.text} asked this itself.", remedy=_HOW)
    if not _proved(reading, by, proof, trusted_hosts):
        raise Denied("approval.not_approver", f"{by.text} does not prove a person by {proof}.", remedy=_HOW)


def form_counts(reading: Reading, by: Principal, *, trusted_hosts: Collection[str] = ()) -> bool:
    """Tell whether a form that this host shows counts as its person's answer."""
    if by.kind != "host" or by.facts.supervised or not by.claims.client_name:
        return False
    return by.claims.client_name in trusted_hosts or host_trusted(reading, by.claims.client_name)


def _proved(reading: Reading, by: Principal, proof: Proof, trusted_hosts: Collection[str]) -> bool:
    match proof:
        case "terminal" | "operator":
            return by.proof == proof
        case "elicited":
            return form_counts(reading, by, trusted_hosts=trusted_hosts)
        case _:
            return False
