"""`agentstead doctor`: every probe, and for each finding what to do."""

from collections.abc import Sequence
from typing import Annotated

import typer

from agentstead.cli.exits import DONE, FAILED
from agentstead.cli.probes import machine, running, stored
from agentstead.cli.probes.finding import Finding, Probe, Seen, run_probe
from agentstead.cli.terminal import Terminal
from agentstead.state import Invalid

PROBES: tuple[Probe, ...] = (
    Probe("python", machine.python),
    Probe("home", machine.folder),
    Probe("disk", machine.disk),
    Probe("settings", stored.settings),
    Probe("servers", running.servers),
    Probe("database", stored.database),
    Probe("journal", stored.journal),
    Probe("coordinator", running.coordinator),
    Probe("port", running.port),
    Probe("hosts", running.hosts),
)


def doctor(
    terminal: Terminal,
    *,
    only: Annotated[str, typer.Option(help="Only these probes, as a,b.", metavar="PROBES")] = "",
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing where nothing is found.")] = False,
) -> int:
    """Look at this machine, this home and the hosts' files; exit code 1 where something needs to be done.

    Each probe has 5 s; one that fails or hangs is a finding and hides no other.
    """
    seen = [run_probe(probe, terminal.home) for probe in _chosen(only)]
    findings = [finding for each in seen for finding in each.findings]
    serious = [finding for finding in findings if finding.severity != "info"]
    if findings or not quiet:
        _show(terminal, seen, findings)
    return FAILED if serious else DONE


def _chosen(only: str) -> Sequence[Probe]:
    wanted = [name.strip() for name in only.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in {probe.name for probe in PROBES}]
    if unknown:
        known = ", ".join(probe.name for probe in PROBES)
        raise Invalid("tool.invalid_arguments", f"{unknown[0]!r} is no probe.", remedy=f"Probes: {known}.")
    return [probe for probe in PROBES if not wanted or probe.name in wanted]


def _show(terminal: Terminal, seen: Sequence[Seen], findings: Sequence[Finding]) -> None:
    if terminal.is_json:
        healthy = all(finding.severity == "info" for finding in findings)
        terminal.show({"healthy": healthy, "probes": [each.as_dict() for each in seen]})
        return
    for finding in findings:
        evidence = f" ({finding.evidence})" if finding.evidence else ""
        terminal.say(f"{finding.severity:<8} {finding.code}: {finding.what}{evidence}")
        if finding.fix:
            terminal.say(f"         fix: {finding.fix}")
    terminal.say(f"{len(seen)} probes, {len(findings)} findings.")
