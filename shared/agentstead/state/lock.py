"""The home's lock: held for life by the coordinator, briefly by whoever migrates."""

import fcntl
import os
from pathlib import Path

LOCK_FILE = "coordinator.lock"


class HomeLock:
    """An exclusive lock on a home that the system drops when its holder dies, however it dies."""

    def __init__(self, home: Path) -> None:
        self.path = home / LOCK_FILE
        self._fd: int | None = None

    @property
    def held(self) -> bool:
        """Tell whether this object holds the lock."""
        return self._fd is not None

    def acquire(self) -> bool:
        """Take the lock if it is free; return whether it is held now."""
        if self._fd is not None:
            return True
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            return False
        self._fd = fd
        return True

    def release(self) -> None:
        """Give the lock back."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
