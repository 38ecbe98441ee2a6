"""The settings of the shared packages, and the registry of the product that server packages add theirs to.

A server package declares its own in a module `settings` beside its `server`: `SETTINGS = (Setting(...), ...)`.
"""

from agentstead.config.registry import Registry
from agentstead.config.setting import Setting

SERVERS_GROUP = "agentstead.servers"

COORDINATOR = (
    Setting(
        key="coordinator.port",
        kind="int",
        default=7433,
        least=1,
        most=65_535,
        live=False,
        doc="The port on the loopback address on which `agentstead up` serves the six servers over HTTP.",
    ),
    Setting(
        key="coordinator.idle_exit_s",
        kind="int",
        default=900,
        least=1,
        most=604_800,
        live=False,
        doc="A coordinator that a host's shim started ends after so many seconds without a connection.",
    ),
    Setting(
        key="coordinator.drain_s",
        kind="int",
        default=60,
        least=1,
        most=3_600,
        doc="How many seconds a drain lets running work finish before it says that it did not.",
    ),
)

LOG = (
    Setting(
        key="log.level",
        kind="text",
        default="info",
        choices=("debug", "info", "warning", "error"),
        live=False,
        doc="The least severe entry that the coordinator writes to its log file.",
    ),
    Setting(
        key="log.max_bytes",
        kind="int",
        default=5_242_880,
        least=65_536,
        most=1_073_741_824,
        live=False,
        doc="The size at which the log file is put aside and a new one begun.",
    ),
    Setting(
        key="log.files",
        kind="int",
        default=3,
        least=1,
        most=100,
        live=False,
        doc="How many log files that were put aside are kept.",
    ),
)

STATE = (
    Setting(
        key="state.synchronous",
        kind="text",
        default="full",
        choices=("full", "normal"),
        live=False,
        person=True,
        doc=(
            "full: what was acknowledged is on disk. normal: commits are faster, and a loss of power (not a crash of a "
            "program) may take back the last acknowledged changes; the database stays whole."
        ),
    ),
)

ASKING = (
    Setting(
        key="approvals.ttl_s",
        kind="int",
        default=86_400,
        least=60,
        most=604_800,
        person=True,
        doc="How many seconds a question about a permission stays open before it expires.",
    ),
    Setting(
        key="approvals.max_pending",
        kind="int",
        default=200,
        least=1,
        most=10_000,
        person=True,
        doc="How many questions about permissions one workspace may have open.",
    ),
    Setting(
        key="elicitation.wait_s",
        kind="int",
        default=120,
        least=1,
        most=120,
        person=True,
        doc="How many seconds a call waits for the form that the host shows; afterwards the question stays pending.",
    ),
    Setting(
        key="elicitation.trusted_hosts",
        kind="texts",
        default=(),
        most=64,
        person=True,
        doc="Further client names whose forms count as a person's answer, beside those of `agentstead install`.",
    ),
)


def _complete(registry: Registry) -> None:
    """Add what every installed server package declares; only a key that is met nowhere else is worth this search."""
    import importlib
    import importlib.util
    from importlib.metadata import entry_points

    for entry in entry_points(group=SERVERS_GROUP):
        module = entry.module.rpartition(".")[0] + ".settings"
        try:
            found = importlib.util.find_spec(module)
        except ImportError:
            continue  # a server that cannot be imported is a finding of `agentstead doctor`, and must not hide the rest
        if found is not None:
            registry.add(*importlib.import_module(module).SETTINGS)


PRODUCT = Registry(*COORDINATOR, *LOG, *STATE, *ASKING, complete=_complete)
