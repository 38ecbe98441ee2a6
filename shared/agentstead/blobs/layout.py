"""Where the files of the store lie, and the lock that keeps its writers and its collector apart."""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from agentstead.blobs.objects import KINDS, ObjectKey
from agentstead.state import Unavailable

_PRIVATE: Final = 0o700
_FREE_BYTES: Final = 2 * 2**30
_FREE_SHARE: Final = 0.05


class Layout:
    """The directories of one store: `objects/<kind>/<2 digits>/<62 digits>`, `incoming/`, `lock`, `objects.db`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.objects = root / "objects"
        self.incoming = root / "incoming"
        self.lock = root / "lock"
        self.index = root / "objects.db"
        self._objects = f"{self.objects}/"

    def prepare(self) -> None:
        """Make what is missing, and remove the unfinished files of writers that died."""
        for directory in (self.root, self.incoming, self.objects, *(self.objects / kind for kind in KINDS)):
            directory.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        self.lock.touch(mode=0o600)
        with self.alone(wait=False) as got:
            for left_over in self.incoming.iterdir() if got else ():
                shutil.rmtree(left_over)

    def path(self, key: ObjectKey) -> Path:
        """Return where an object lies, or would lie."""
        return Path(self.file(key))

    def file(self, key: ObjectKey) -> str:
        """Return the same as plain text, for reading many: making paths took a third of the time of a fork."""
        return f"{self._objects}{key.kind}/{key.id[:2]}/{key.id[2:]}"

    def shard(self, key: ObjectKey) -> str:
        """Return the directory of an object's file."""
        return f"{self._objects}{key.kind}/{key.id[:2]}"

    def holds(self, key: ObjectKey) -> bool:
        """Tell whether the file of an object is there; its bytes are checked when they are read."""
        return os.access(self.file(key), os.F_OK)

    def stored(self) -> Iterator[tuple[ObjectKey, int]]:
        """Yield every stored object with its size in bytes."""
        for kind in KINDS:
            for shard in sorted((self.objects / kind).iterdir()):
                for file in sorted(shard.iterdir()):
                    yield ObjectKey(kind, shard.name + file.name), file.stat().st_size

    @contextmanager
    def together(self) -> Iterator[None]:
        """Keep the collector from removing anything; any number of writers may hold this at once.

        The lock file's time moves, which tells a collector that its marks may be out of date.
        """
        descriptor = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            now = time.time_ns()
            os.utime(descriptor, ns=(now, now))
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def alone(self, *, wait: bool) -> Iterator[bool]:
        """Keep every writer out; yields False at once where `wait` is false and one is at work."""
        descriptor = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            yield True
        except BlockingIOError:
            yield False
        finally:
            os.close(descriptor)

    def last_held_ns(self) -> int:
        """Return when a writer last began, in nanoseconds of the file system."""
        return self.lock.stat().st_mtime_ns

    def require_space(self) -> None:
        """Raise Unavailable `store.disk_low` where too little is free to begin a write."""
        facts = os.statvfs(self.root)
        free, whole = facts.f_bavail * facts.f_frsize, facts.f_blocks * facts.f_frsize
        floor = min(max(_FREE_BYTES, int(whole * _FREE_SHARE)), whole // 2)
        if free < floor:
            raise Unavailable(
                "store.disk_low",
                f"{free // 2**20} MiB are free on the disk of the store; {floor // 2**20} MiB must stay free",
                remedy="Free some space, or move the home to a larger disk, then call again.",
                retryable=True,
                details={"free_bytes": free, "floor_bytes": floor},
            )
