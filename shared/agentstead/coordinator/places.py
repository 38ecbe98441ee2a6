"""Where the processes of one home meet: the socket, the start lock, the state file, the logs. Standard library only."""

import os
import stat
from contextlib import suppress

HOME_VARIABLE = "AGENTSTEAD_HOME"
# A unix socket's path has 107 bytes on Linux and 103 on macOS, its closing zero not counted.
SOCKET_PATH_BYTES = 103
PRIVATE = 0o700


def home_path(named: str = "") -> str:
    """Return the absolute path of the home: the one named, `AGENTSTEAD_HOME`, or `~/.agentstead`."""
    chosen = named or os.environ.get(HOME_VARIABLE, "") or os.path.join("~", ".agentstead")
    return os.path.abspath(os.path.expanduser(chosen))


def run_folder(home: str) -> str:
    """Return the folder of what only lives while processes do."""
    return os.path.join(home, "run")


def start_lock(home: str) -> str:
    """Return the file whose lock decides which shim starts the coordinator."""
    return os.path.join(run_folder(home), "start.lock")


def state_file(home: str) -> str:
    """Return the file in which the coordinator says who it is and where it listens."""
    return os.path.join(run_folder(home), "coordinator.json")


def log_file(home: str) -> str:
    """Return the coordinator's log."""
    return os.path.join(home, "logs", "coordinator.log")


def output_file(home: str) -> str:
    """Return the file that takes what a coordinator started by a shim prints before its log is open."""
    return os.path.join(home, "logs", "coordinator.out")


def socket_path(home: str) -> str:
    """Return the path of the local socket: in the home, or in a private folder where that path would be too long."""
    inside = os.path.join(run_folder(home), "coordinator.sock")
    return inside if len(os.fsencode(inside)) <= SOCKET_PATH_BYTES else os.path.join(_short_folder(home), "socket")


def private_folder(path: str) -> None:
    """Make `path` (0700) where it is missing; raises PermissionError where somebody else could put files into it."""
    os.makedirs(os.path.dirname(path), PRIVATE, exist_ok=True)
    with suppress(FileExistsError):
        os.mkdir(path, PRIVATE)
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise PermissionError(f"{path} is not a folder of this user")
    if found.st_mode & 0o077:
        os.chmod(path, PRIVATE)


def _short_folder(home: str) -> str:
    """Return a short private folder of this home.

    It depends on no variable: hosts start their servers with environments of their own, and all must meet.
    """
    import hashlib

    user = os.geteuid()
    root = f"/run/user/{user}"
    if not os.path.isdir(root):
        root = "/tmp"  # noqa: S108 - the folder in it is checked by `private_folder`
    digest = hashlib.sha256(os.fsencode(os.path.realpath(home))).hexdigest()[:16]
    return os.path.join(root, f"agentstead-{user}-{digest}")
