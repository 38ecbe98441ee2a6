"""Talking to a home's coordinator from a command: its state, drain, stop. Opens no database and starts nothing, but for
`ensure`, which brings a coordinator about as a shim does.
"""

import socket
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from agentstead.coordinator import greeting, places
from agentstead.coordinator.reach import Reach, Unreachable
from agentstead.coordinator.spawn import command
from agentstead.coordinator.statefile import Record, read_record
from agentstead.coordinator.version import installed_version
from agentstead.state import HomeLock, Unavailable

ANSWER_S = 5.0
LOOK_S = 0.02


@dataclass(frozen=True, slots=True)
class Status:
    """A home's coordinator as it is now.

    `record` is what it says of itself (or last said, where it does not answer), None where none runs; `live` holds its
    figures: links, shims (process ids), open_calls, work, streams, kept, up_s, rss_bytes.
    """

    record: Record | None
    answers: bool = False
    live: dict[str, Any] = field(default_factory=dict)

    @property
    def state(self) -> str:
        """Return its state; `unresponsive` for one that holds the home and does not answer."""
        if self.record is None:
            return "stopped"
        return self.record.state if self.answers or self.record.state == "starting" else "unresponsive"

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON-able values, addresses included."""
        if self.record is None:
            return {"state": self.state}
        return {**asdict(self.record), **self.live, "state": self.state, "addresses": self.record.addresses()}


@dataclass(frozen=True, slots=True)
class Drained:
    """How a drain ended: `left` pieces of work were still under way when its time was over."""

    left: int

    @property
    def done(self) -> bool:
        """Tell whether everything that was under way is done."""
        return self.left == 0


def status(home: Path) -> Status:
    """Return the state of the coordinator of `home`."""
    said = _ask(home, "status")
    if said is not None:
        names = set(Record.__dataclass_fields__)
        record = Record(**{key: value for key, value in said.items() if key in names})
        return Status(
            record, True, {k: v for k, v in said.items() if k not in names and k not in ("done", "agentstead")}
        )
    if not _is_held(home):
        return Status(None)
    return Status(read_record(Path(places.state_file(str(home)))) or _unknown(home))


def drain(home: Path, *, timeout_s: float = 60.0) -> Drained:
    """Have the coordinator refuse new work, and wait until what is under way is done or the time is over.

    Raises `Unavailable` where none answers.
    """
    left = 0
    for said in _told(home, "drain", timeout_s=timeout_s, patience_s=timeout_s + ANSWER_S):
        left = int(said.get("left", 0))
    return Drained(left)


def undrain(home: Path) -> str:
    """Have the coordinator take on new work again; return its state."""
    return str(_last(_told(home, "undrain")).get("state", ""))


def keep(home: Path) -> None:
    """Have a coordinator that a shim started stay when nobody is connected."""
    _last(_told(home, "keep"))


def stop(home: Path, *, timeout_s: float = 10.0) -> bool:
    """Stop the coordinator, giving open calls up to `timeout_s`; return False where none was running.

    Raises `Unavailable` for one that holds the home and does not end.
    """
    if not _is_held(home):
        return False
    until = time.monotonic() + timeout_s + ANSWER_S
    heard = False
    while _is_held(home):
        heard = heard or _ask(home, "stop", timeout_s=timeout_s) is not None
        if time.monotonic() > until:
            raise locked(home, "did not end")
        time.sleep(LOOK_S)
    return True


def ensure(home: Path, *, program: tuple[str, ...] = ()) -> Status:
    """Return the state of the coordinator, starting one where none runs; raises `Unavailable` with its reason."""
    version = installed_version()
    hello = greeting.say("control", verb="status")
    reach = Reach(str(home), hello, version, command=command(str(home), program))
    try:
        while (link := reach.step()) is None:
            time.sleep(LOOK_S / 4)
    except Unreachable as error:
        raise Unavailable(error.code, error.message, remedy=error.remedy) from None
    finally:
        reach.close()
    link.close()
    return status(home)


def locked(home: Path, why: str) -> Unavailable:
    """Return the error about a coordinator that is in the way, with what is known of it."""
    holder = read_record(Path(places.state_file(str(home))))
    who = f"process {holder.pid}, version {holder.version}, {holder.executable}" if holder else "an unknown process"
    return Unavailable(
        "coordinator.locked",
        f"The coordinator of {home} ({who}) {why}.",
        remedy=f"Run `agentstead stop`, or end process {holder.pid}." if holder else "Run `agentstead stop`.",
        retryable=True,
        details={"pid": holder.pid, "version": holder.version, "executable": holder.executable} if holder else {},
    )


def _told(home: Path, verb: str, *, patience_s: float = ANSWER_S, **fields: object) -> Iterator[dict[str, Any]]:
    """Yield what the coordinator answers to a command, up to the answer that is its last."""
    try:
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with link:
            link.settimeout(patience_s)
            link.connect(places.socket_path(str(home)))
            link.sendall(greeting.say("control", verb=verb, **fields))
            for line in link.makefile("rb"):
                said = greeting.hear(line)
                if said["agentstead"] == "refused":
                    raise Unavailable(str(said["code"]), str(said["message"]), remedy=str(said["remedy"]))
                yield said
                if said.get("done"):
                    return
    except (OSError, ValueError):
        pass
    raise locked(home, "does not answer") if _is_held(home) else _absent(home)


def _ask(home: Path, verb: str, **fields: float) -> dict[str, Any] | None:
    try:
        return _last(_told(home, verb, **fields))
    except Unavailable:
        return None


def _last(answers: Iterator[dict[str, Any]]) -> dict[str, Any]:
    return deque(answers, maxlen=1)[0]


def _is_held(home: Path) -> bool:
    if not home.is_dir():
        return False
    lock = HomeLock(home)
    try:
        return not lock.acquire()
    except OSError:
        return False
    finally:
        lock.release()


def _absent(home: Path) -> Unavailable:
    return Unavailable(
        "coordinator.lost", f"No coordinator of {home} is running.", remedy="Start one: agentstead up.", retryable=True
    )


def _unknown(home: Path) -> Record:
    return Record("starting", 0, "", "", 0, "user", places.socket_path(str(home)))
