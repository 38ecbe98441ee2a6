"""Coming to a greeted connection with the home's coordinator, starting or replacing it where needed; never blocks.

Of many shims that find none, the one that gets the start lock starts it. Connecting and greeting are one step that is
tried again as a whole: a connection can succeed on the backlog of a coordinator that is just going away.
"""

import fcntl
import os
import socket
import time

from agentstead.coordinator import greeting, places
from agentstead.coordinator.spawn import Start
from agentstead.coordinator.version import is_older

PATIENCE_S = 30.0
GREETING_S = 5.0
STARTS = 3


class Unreachable(Exception):
    """No coordinator can be had; carries one of our codes, what happened, and what to do."""

    def __init__(self, code: str, message: str, remedy: str = "") -> None:
        super().__init__(f"{code}: {message} {remedy}".rstrip())
        self.code, self.message, self.remedy = code, message, remedy


class Reach:
    """Call `step` until it returns the connected socket; `wanted` says whether a coordinator may be started for it."""

    def __init__(self, home: str, hello: bytes, version: str, *, command: "list[str]", wanted: bool = True) -> None:
        self.wanted = wanted
        self.tail = b""
        self.version = ""
        self._home = home
        self._hello = hello
        self._ours = version
        self._command = command
        self._socket: socket.socket | None = None
        self._said = b""
        self._asked_to_leave = False
        self._replacing = False
        self._lock = -1
        self._start: Start | None = None
        self._starts = 0
        self._since = 0.0
        self._greeted_at = 0.0

    def fileno(self) -> int:
        """Return the socket on which a greeting is awaited, or -1."""
        return self._socket.fileno() if self._socket is not None else -1

    def step(self) -> "socket.socket | None":
        """Go one step further; raises Unreachable once no coordinator can be expected any more."""
        if self.wanted:
            self._bear()
        if self._socket is None and not self._connected():
            if self.wanted:
                self._bring_about()
            return None
        said = self._listened()
        return self._judged(said) if said is not None else None

    def close(self) -> None:
        """Let go of everything that is held."""
        self._hang_up()
        self._release()

    def _connected(self) -> bool:
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        link.setblocking(False)
        try:
            link.connect(places.socket_path(self._home))
            link.send(greeting.say("control", verb="handover", version=self._ours) if self._replacing else self._hello)
        except OSError:
            link.close()
            return False
        self._socket, self._said, self._greeted_at = link, b"", time.monotonic()
        return True

    def _listened(self) -> "dict[str, object] | None":
        """Return the answer to the greeting once it is whole; a connection that ends before is tried again."""
        assert self._socket is not None
        try:
            chunk = self._socket.recv(greeting.GREETING_BYTES)
        except BlockingIOError:
            if time.monotonic() - self._greeted_at > GREETING_S:
                raise self._silent() from None
            return None
        except OSError:
            chunk = b""
        self._said += chunk
        line, end, self.tail = self._said.partition(b"\n")
        if not end:
            if not chunk:
                self._hang_up()
            return None
        try:
            return greeting.hear(line)
        except ValueError:
            raise self._silent() from None

    def _judged(self, said: "dict[str, object]") -> "socket.socket | None":
        if self._replacing:
            self._replacing, self._asked_to_leave, self.wanted = False, True, True
            self._hang_up()
            return None
        if said["agentstead"] == "refused":
            raise Unreachable(*(str(said.get(key, "")) for key in ("code", "message", "remedy")))
        self.version = str(said.get("version", ""))
        if is_older(self.version, self._ours) and not self._asked_to_leave:
            self._hang_up()
            self._replacing = self._locked()
            return None
        link, self._socket = self._socket, None
        self._release()
        return link

    def _bring_about(self) -> None:
        """Start a coordinator, unless another shim is at it or one is on its way."""
        if self._start is not None and self._start.ended():
            failure, self._start = self._start.failure, None
            if failure:
                raise Unreachable(failure["code"], failure.get("message", ""), failure.get("remedy", ""))
        elif self._start is None and self._locked() and self._starts_again():
            self._start = Start(self._command, self._home)

    def _bear(self) -> None:
        """Have patience up to a bound, with a start that takes long as with a coordinator that hangs up each time."""
        now = time.monotonic()
        self._since = self._since or now
        if now - self._since > PATIENCE_S:
            raise Unreachable(
                "coordinator.locked",
                f"No coordinator of {self._home} answered within {PATIENCE_S:.0f} s.",
                "See `agentstead status` and `agentstead logs`, then `agentstead stop`.",
            )

    def _starts_again(self) -> bool:
        """Tell whether one more start is due: another try after the lock came, then one for each that died."""
        if self._connected():
            return False
        self._starts += 1
        if self._starts > STARTS:
            raise Unreachable(
                "runner.start_failed",
                f"The coordinator of {self._home} ended {STARTS} times while it started.",
                f"See {places.output_file(self._home)}.",
            )
        return True

    def _locked(self) -> bool:
        """Hold the start lock if it is free."""
        if self._lock >= 0:
            return True
        try:
            places.private_folder(places.run_folder(self._home))
            lock = os.open(places.start_lock(self._home), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Unreachable(
                "home.quarantined",
                f"Agentstead's home {self._home} cannot be written: {error.strerror or error}.",
                "Make it writable, or point AGENTSTEAD_HOME to a folder that is.",
            ) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            return False
        self._lock = lock
        return True

    def _release(self) -> None:
        if self._start is not None:
            self._start.close()
            self._start = None
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _hang_up(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _silent(self) -> Unreachable:
        self.close()
        return Unreachable(
            "coordinator.locked",
            f"The coordinator of {self._home} does not answer on its socket.",
            "See `agentstead status`, then `agentstead stop`.",
        )
