"""The settings of this server, each with what it changes."""

from agentstead.config import Setting

SETTINGS = (
    Setting(
        key="skills.roots.own",
        kind="bool",
        default=True,
        doc="Look for skills in `.agentstead/skills` of the workspace and in `skills` of the home.",
    ),
    Setting(
        key="skills.roots.agents",
        kind="bool",
        default=True,
        doc="Look for skills in `.agents/skills` of the workspace and of your home folder.",
    ),
    Setting(
        key="skills.roots.claude",
        kind="bool",
        default=True,
        doc="Look for skills in `.claude/skills` of the workspace and of your home folder.",
    ),
    Setting(
        key="skills.roots.extra",
        kind="texts",
        default=(),
        most=32,
        person=True,
        doc="Further folders whose skills count as your own; absolute paths, `~` is your home folder.",
    ),
    Setting(
        key="skills.link_targets",
        kind="texts",
        default=(),
        most=32,
        person=True,
        doc="Folders in which a skill may really stand whose folder under a root is only a link.",
    ),
    Setting(
        key="skills.consent.user",
        kind="text",
        default="auto",
        choices=("ask", "auto"),
        workspace=True,
        tighter="lower",
        doc="auto: your own skills are used without a question. ask: each content of each skill is asked about once.",
    ),
    Setting(
        key="skills.consent.workspace",
        kind="text",
        default="ask",
        choices=("ask", "auto"),
        person=True,
        doc="ask: each content of each skill of a trusted workspace is asked about once. auto: trust is enough.",
    ),
    Setting(
        key="skills.activation.ttl_hours",
        kind="int",
        default=4,
        least=1,
        most=168,
        doc="How many hours an activation without a session lasts.",
    ),
    Setting(
        key="skills.activation.session_days",
        kind="int",
        default=7,
        least=1,
        most=90,
        doc="How many days an activation in a session lasts at most; it ends with its session.",
    ),
)
