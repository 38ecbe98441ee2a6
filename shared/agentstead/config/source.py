"""A settings file that is watched: read again when it changed; a faulty state of it never comes into force."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from agentstead.config.registry import Registry
from agentstead.config.sheet import Scope, Sheet, read_sheet

_EMPTY: tuple[int, int, int] = (0, -1, 0)


class Source:
    """One file of one scope.

    `sheet` holds what is in force: the file, or while it has a fault its last good text (kept under `kept`, so that a
    process that starts later has it too), or where there is none the file's sound keys. `sheet.faults` are those of the
    file as it is now.
    """

    def __init__(self, path: Path, *, scope: Scope, registry: Registry, kept: Path | None = None) -> None:
        self.path = path
        self._scope: Scope = scope
        self._registry = registry
        self._kept = kept / f"{scope}-{hashlib.sha256(os.fsencode(path)).hexdigest()[:16]}.toml" if kept else None
        self._good: Sheet | None = None
        self._seen: tuple[int, int, int] = _EMPTY
        self.sheet = Sheet(path, {})
        self.refresh()

    def refresh(self) -> bool:
        """Read the file again if its time or size changed; True if what is in force may have changed."""
        seen = _signature(self.path)
        if seen == self._seen:
            return False
        self._seen = seen
        self.sheet = self._read() if seen != _EMPTY else self._without()
        return True

    def _read(self) -> Sheet:
        try:
            text = self.path.read_bytes().decode("utf-8", errors="replace")
        except OSError:
            return self._without()
        sheet = self._parse(text)
        if not sheet.faults:
            self._good = sheet
            self._keep(text)
            return sheet
        good = self._good or self._recall()
        return Sheet(self.path, good.values if good else sheet.values, sheet.faults)

    def _parse(self, text: str) -> Sheet:
        return read_sheet(text, self.path, registry=self._registry, scope=self._scope)

    def _without(self) -> Sheet:
        """Forget the last good text with the file: who removed the file wants nothing of it."""
        self._good = None
        if self._kept is not None and _signature(self._kept) != _EMPTY:
            _try(lambda path: path.unlink(missing_ok=True), self._kept)
        return Sheet(self.path, {})

    def _recall(self) -> Sheet | None:
        if self._kept is None or _signature(self._kept) == _EMPTY:
            return None
        try:
            sheet = self._parse(self._kept.read_bytes().decode("utf-8", errors="replace"))
        except OSError:
            return None
        return None if sheet.faults else sheet

    def _keep(self, text: str) -> None:
        if self._kept is not None:
            _try(lambda path: _store(path, text.encode()), self._kept)


def _signature(path: Path) -> tuple[int, int, int]:
    try:
        stat = path.stat()
    except OSError:
        return _EMPTY
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def _store(path: Path, data: bytes) -> None:
    if _signature(path) != _EMPTY and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.write_bytes(data)
    fresh.replace(path)


def _try(act: Callable[[Path], object], path: Path) -> None:
    """Keeping the last good text is a comfort: a read-only home must not stop the reading of settings."""
    try:
        act(path)
    except OSError:
        return
