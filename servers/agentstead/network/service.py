"""What the network server offers: its operations, and what other packages may call."""

from agentstead.network.participating import peer_find, peer_join
from agentstead.network.reading import inbox_ack, inbox_read, network_view
from agentstead.network.talking import message_send, work_update

__all__ = [
    "inbox_ack",
    "inbox_read",
    "message_send",
    "network_view",
    "peer_find",
    "peer_join",
    "work_update",
]
