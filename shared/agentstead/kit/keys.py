"""Keys of a home: 32 random bytes in a file that its owner alone can read."""

import os
from pathlib import Path

from agentstead.state import Unavailable

KEY_BYTES = 32


def read_key(folder: Path, name: str) -> bytes:
    """Return the key `name`, making it where there is none; two makers at once get the same one.

    Raises `Unavailable` with `home.quarantined` for a file that others can read or that holds no key.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{name}.key"
    if not path.exists():
        _make(path)
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        loose = os.fstat(fd).st_mode & 0o077
        key = file.read(KEY_BYTES + 1)
    if loose or len(key) != KEY_BYTES:
        raise Unavailable(
            "home.quarantined",
            f"The key file {path} is readable by others or damaged.",
            remedy="Restore it with mode 0600, or remove it: open questions and proofs made with it end.",
        )
    return key


def _make(path: Path) -> None:
    """Write a new key beside its place and link it in: whoever comes first decides it."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(os.urandom(KEY_BYTES))
            file.flush()
            os.fsync(fd)
        try:
            os.link(fresh, path)
        except FileExistsError:
            return
    finally:
        fresh.unlink()
