"""The settings of memory."""

from agentstead.config import Setting

SETTINGS = (
    Setting(
        key="memory.accept.workspace",
        kind="text",
        default="auto",
        choices=("review", "auto"),
        workspace=True,
        tighter="lower",
        doc=(
            "auto: what an agent notes about its own workspace is kept at once, if no rule of the write controller "
            "speaks against it. review: it waits for a person like everything else."
        ),
    ),
    Setting(
        key="memory.writes.minute",
        kind="int",
        default=60,
        least=1,
        most=10_000,
        doc="How many accepted writes an agent or host has in one workspace within a minute.",
    ),
    Setting(
        key="memory.writes.day",
        kind="int",
        default=2_000,
        least=1,
        most=1_000_000,
        doc="How many accepted writes an agent or host has in one workspace within a day.",
    ),
    Setting(
        key="memory.proposals.pending",
        kind="int",
        default=200,
        least=1,
        most=10_000,
        doc="How many proposals of one workspace may wait for a person.",
    ),
)
