"""What ends with a session or a skill's activation: its grants and its open questions."""

from agentstead.policy.approvals import cancel_of_session
from agentstead.policy.grants import grants_end
from agentstead.state import Tx


def session_ended(tx: Tx, session_id: str) -> None:
    """End the grants of a session and cancel its open questions, in the transaction that closes it."""
    grants_end(tx, session_id, "its session ended")
    cancel_of_session(tx, session_id)
