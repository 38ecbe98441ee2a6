"""Starting a coordinator that outlives the program that starts it. Standard library only."""

import json
import os
import sys

from agentstead.coordinator.places import output_file, private_folder

# `-P`: a folder that a host happens to stand in must not lend our process its modules.
COMMAND = ("-P", "-m", "agentstead.coordinator")
OUTPUT_BYTES = 256 * 1024
REPORT_FD = 3
# They speak of one host or one agent, not of the coordinator of all.
_OF_ONE_CALLER = (
    "AGENTSTEAD_WORKSPACE",
    "AGENTSTEAD_SESSION",
    "AGENTSTEAD_AGENT",
    "AGENTSTEAD_PROCESS",
    "AGENTSTEAD_TOKEN",
)


def command(home: str, program: "tuple[str, ...]" = ()) -> "list[str]":
    """Return the command that runs this home's coordinator for a shim; `program` replaces interpreter and module."""
    front = program or (sys.executable, *COMMAND)
    return [*front, "run", "--home", home, "--started-by", "shim", "--report-fd", str(REPORT_FD)]


class Start:
    """A coordinator under way, seen through the pipe on which it reports why it could not start."""

    def __init__(self, argv: "list[str]", home: str) -> None:
        self._fd = _detached(argv, home)
        self._said = b""

    def ended(self) -> bool:
        """Tell whether the coordinator has closed its pipe: it is ready, it failed, or it died."""
        while self._fd >= 0:
            try:
                chunk = os.read(self._fd, 4096)
            except BlockingIOError:
                return False
            self._said += chunk
            if not chunk:
                self.close()
        return True

    @property
    def failure(self) -> "dict[str, str]":
        """Return code, message and remedy of a failed start; empty where none was reported."""
        try:
            said = json.loads(self._said or b"{}")
        except ValueError:
            return {}
        return {key: str(value) for key, value in said.items()} if isinstance(said, dict) and "code" in said else {}

    def close(self) -> None:
        """Stop listening; the coordinator goes on."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _detached(argv: "list[str]", home: str) -> int:
    """Start `argv` in a session of its own, as nobody's child; return the reading end of its report.

    Hosts end the whole process group of a shim, and wait for the end of every pipe it inherited.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            if os.fork() == 0:
                _become(argv, home, writing)
        finally:
            os._exit(127)
    os.close(writing)
    os.waitpid(child, 0)
    os.set_blocking(reading, False)
    return reading


def _become(argv: "list[str]", home: str, report: int) -> None:
    try:
        os.umask(0o077)
        os.chdir("/")
        os.dup2(report, REPORT_FD, inheritable=True)
        _redirect(home)
        os.closerange(REPORT_FD + 1, os.sysconf("SC_OPEN_MAX"))
        environ = {name: value for name, value in os.environ.items() if name not in _OF_ONE_CALLER}
        os.execve(argv[0], argv, environ)  # noqa: S606 - our own program, without a shell on purpose
    except OSError as error:
        reason = {"code": "runner.start_failed", "message": f"{argv[0]} could not be started: {error}.", "remedy": ""}
        os.write(REPORT_FD, json.dumps(reason).encode())


def _redirect(home: str) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        path = output_file(home)
        private_folder(os.path.dirname(path))
        output = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        if os.fstat(output).st_size > OUTPUT_BYTES:
            os.truncate(path, 0)
    except OSError:
        output = nothing
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
