"""A finding, and the running of probes: each alone, within 5 s, so that one that hangs or fails hides no other."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

Severity = Literal["error", "warning", "info"]

PROBE_S = 5.0


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong, how badly, what shows it, and the command (or the act) that mends it."""

    code: str
    severity: Severity
    what: str
    evidence: str = ""
    fix: str = ""


Look = Callable[[Path], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Probe:
    """One look at the home at a path."""

    name: str
    look: Look


@dataclass(frozen=True, slots=True)
class Seen:
    """What a probe found, and how long it took."""

    probe: str
    ms: int
    findings: Sequence[Finding]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON-able values."""
        return {"probe": self.probe, "ms": self.ms, "findings": [asdict(finding) for finding in self.findings]}


def run_probe(probe: Probe, home: Path, *, within_s: float = PROBE_S) -> Seen:
    """Run a probe on a thread of its own; its crash and its silence are findings."""
    found: list[Finding] = []
    ended = threading.Event()

    def look() -> None:
        try:
            found.extend(probe.look(home))
        except Exception as error:
            what = f"The probe {probe.name} failed: {type(error).__name__}."
            found.append(Finding(f"{probe.name}.crashed", "error", what, str(error)[:200], "agentstead logs"))
        ended.set()

    began = time.monotonic()
    threading.Thread(target=look, name=f"probe-{probe.name}", daemon=True).start()
    if not ended.wait(within_s):
        what = f"The probe {probe.name} did not end within {within_s:g} s."
        found = [Finding(f"{probe.name}.silent", "error", what, fix="agentstead logs")]
    return Seen(probe.name, round((time.monotonic() - began) * 1000), tuple(found))
