"""The command line of the coordinator's own programs; `agentstead up` and `serve` call the same functions."""

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from agentstead.coordinator.hosted import Opener
    from agentstead.coordinator.statefile import Record

UNAVAILABLE = 7


def main(argv: "list[str]", *, opener: "Opener | None" = None, program: "tuple[str, ...]" = ()) -> int:
    """Run the shim (`serve ...`) or the coordinator (`run ...`); return the exit status.

    `opener` takes the place of the real home, `program` of the command that a shim starts the coordinator with.
    """
    if argv[:1] == ["serve"]:
        from agentstead.coordinator.arguments import serve_arguments

        wanted = serve_arguments(argv[1:])
        if wanted is not None and wanted.standalone:
            from agentstead.coordinator import standalone

            return standalone.main(argv[1:], opener=opener)
        from agentstead.coordinator import shim

        return shim.main(argv[1:], program=program)
    return _run(argv, opener)


def _run(argv: "list[str]", opener: "Opener | None") -> int:
    from pathlib import Path

    from agentstead.coordinator import process, standalone
    from agentstead.coordinator.places import home_path
    from agentstead.coordinator.terms import terms
    from agentstead.coordinator.version import installed_version
    from agentstead.state import AgentsteadError

    given = _parser().parse_args(argv)
    report = Report(given.report_fd)
    try:
        wanted = terms(
            Path(home_path(given.home)),
            started_by=given.started_by,
            version=installed_version(),
            host=given.host,
            port=given.port,
            idle_exit_s=given.idle_exit_s,
            probe_s=given.probe_s,
        )
        if given.only:
            return standalone.run_http(wanted, given.only, announce=report.ready, opener=opener)
        return process.run(wanted, announce=report.ready, opener=opener, redact=None if opener is None else str)
    except AgentsteadError as error:
        report.failed(error.as_dict())
        return UNAVAILABLE
    finally:
        report.close()


class Report:
    """How the start went: as a line on the pipe that a shim gave, else on standard output and standard error."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def ready(self, record: "Record", running: bool) -> None:
        """Tell that `record` serves; `running` says that it did so before."""
        if self._fd < 0:
            print(json.dumps({"state": record.state, "pid": record.pid, **record.addresses()}), flush=True)
        self.close()

    def failed(self, error: "dict[str, object]") -> None:
        """Tell why nothing serves."""
        if self._fd >= 0:
            os.write(self._fd, json.dumps(error).encode())
        print(f"agentstead: {error['code']}: {error['message']} {error['remedy']}", file=sys.stderr)

    def close(self) -> None:
        """Let the shim go on."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _parser() -> "argparse.ArgumentParser":
    import argparse

    parser = argparse.ArgumentParser(prog="python -m agentstead.coordinator")
    run = parser.add_subparsers(required=True).add_parser("run", help="run the coordinator of a home")
    run.add_argument("--home", default="")
    run.add_argument("--started-by", choices=("user", "shim"), default="user")
    run.add_argument("--report-fd", type=int, default=-1)
    run.add_argument("--host", default="127.0.0.1")
    run.add_argument("--port", type=int)
    run.add_argument("--only", default="")
    run.add_argument("--idle-exit-s", type=float)
    run.add_argument("--probe-s", type=float, default=5.0)
    return parser
