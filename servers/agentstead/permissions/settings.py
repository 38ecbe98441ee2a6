"""The settings of permissions: defaults by class, what holds where nobody can be asked, the wait of the prompt tool."""

from agentstead.config import Setting

SETTINGS = (
    Setting(
        key="permissions.axes.risk",
        kind="text",
        default="ask-writes",
        choices=("deny", "ask-all", "ask-writes", "auto"),
        person=True,
        doc="What a call gets when no rule speaks about it, by its class.",
    ),
    Setting(
        key="permissions.headless",
        kind="text",
        default="queue",
        choices=("deny", "queue"),
        person=True,
        doc="Where nobody can be asked: queue stores the question and the call is pending, deny refuses the call.",
    ),
    Setting(
        key="prompt.wait_s",
        kind="int",
        default=240,
        least=0,
        most=270,
        person=True,
        doc="How many seconds permission_prompt waits for a person's answer before it denies.",
    ),
)
