"""The home's HTTP token: `keys/http.token` (0600) and its row, brought in line at each start.

The file is written last, so a crash in between leaves a file whose token does not hold, and the next start renews it.
"""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from agentstead.identity.tokens import check_token, new_token, renew_home
from agentstead.state import CRASH_POINTS, State, Unavailable, crash_point

TOKEN_FILE = Path("keys") / "http.token"

CRASH_POINTS.declare("identity.token_file")


@dataclass(frozen=True, slots=True)
class HomeToken:
    """The token that holds now, and why it was renewed ('' where it was not)."""

    token: str
    renewed: str = ""


async def home_token(state: State, home: Path, *, renew: bool = False) -> HomeToken:
    """Return the home's token; make one at the first start, or where the file is missing, loose or out of step.

    Raises `Unavailable` where the file cannot be written.
    """
    path = home / TOKEN_FILE
    reason = "asked for" if renew else _fault(path)
    if not reason:
        token = _read(path)
        facts = await state.read(check_token, token)
        if facts is not None and facts.kind == "home":
            return HomeToken(token)
        reason = "the stored token does not hold"
    token = new_token("home")
    await state.write(renew_home, token)
    _write(path, token)
    return HomeToken(token, reason)


def _fault(path: Path) -> str:
    try:
        facts = path.lstat()
    except FileNotFoundError:
        return "there was none"
    if not stat.S_ISREG(facts.st_mode):
        return "its file was no regular file"
    if facts.st_mode & 0o077 or facts.st_uid != os.getuid():
        return "others could read its file"
    return ""


def _read(path: Path) -> str:
    return path.read_text("ascii", "replace").strip()


def _write(path: Path, token: str) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(token + "\n")
            file.flush()
            os.fsync(file.fileno())
        crash_point("identity.token_file.before")
        draft.replace(path)
        crash_point("identity.token_file.after")
    except OSError as error:
        raise Unavailable(
            "permission.unavailable",
            f"{path} cannot be written: {error.strerror}.",
            remedy="Make Agentstead's home writable.",
        ) from error
