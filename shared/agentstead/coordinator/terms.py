"""How a coordinator is run: whose home, by whom, for how long, and under which addresses."""

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from agentstead.config import Settings
from agentstead.coordinator.logs import FILES, MAX_BYTES, Level
from agentstead.coordinator.statefile import StartedBy

LOOPBACK_HOST = "127.0.0.1"

IDLE_EXIT_S = 900.0
STOP_S = 10.0
HANDOVER_S = 5.0
PROBE_S = 5.0


@dataclass(frozen=True, slots=True)
class Listen:
    """Where HTTP is served; port 0 takes a free one. `required` makes a taken port an error, else HTTP is left out."""

    host: str
    port: int
    required: bool = True


@dataclass(frozen=True, slots=True)
class Terms:
    """What one coordinator was started with. `idle_exit_s` counts only where a shim started it."""

    home: Path
    version: str
    started_by: StartedBy
    http: Listen | None
    idle_exit_s: float = IDLE_EXIT_S
    probe_s: float = PROBE_S
    stop_s: float = STOP_S
    handover_s: float = HANDOVER_S
    log_level: Level = "info"
    log_bytes: int = MAX_BYTES
    log_files: int = FILES


def terms(
    home: Path,
    *,
    started_by: StartedBy,
    version: str,
    settings: Settings | None = None,
    host: str = LOOPBACK_HOST,
    port: int | None = None,
    idle_exit_s: float | None = None,
    probe_s: float = PROBE_S,
) -> Terms:
    """Return the terms that a home's settings give; what is named here counts more."""
    settings = settings or Settings(home)
    return Terms(
        home=home,
        version=version,
        started_by=started_by,
        http=Listen(host, settings.whole("coordinator.port") if port is None else port, started_by == "user"),
        idle_exit_s=settings.number("coordinator.idle_exit_s") if idle_exit_s is None else idle_exit_s,
        probe_s=probe_s,
        log_level=cast("Level", settings.text("log.level")),
        log_bytes=settings.whole("log.max_bytes"),
        log_files=settings.whole("log.files"),
    )
