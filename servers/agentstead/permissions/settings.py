"""The settings of permissions: the axes, what happens when nobody can be asked, and how long the prompt tool waits."""

from agentstead.config import Setting

SETTINGS = (
    Setting(
        key="permissions.axes.risk",
        kind="text",
        default="ask-writes",
        choices=("deny", "ask-all", "ask-writes", "auto"),
        workspace=True,
        tighter="lower",
        person=True,
        doc="What a call gets when no rule speaks about it, by its class.",
    ),
    Setting(
        key="permissions.axes.reach",
        kind="text",
        default="listed",
        choices=("workspace", "listed", "any"),
        workspace=True,
        tighter="lower",
        person=True,
        doc="How paths outside every workspace root are judged.",
    ),
    Setting(
        key="permissions.axes.network",
        kind="text",
        default="listed",
        choices=("off", "listed", "open"),
        workspace=True,
        tighter="lower",
        person=True,
        doc="How network destinations are judged.",
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
