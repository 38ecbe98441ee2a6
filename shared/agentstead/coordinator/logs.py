"""The coordinator's log: a rotating file, written by a thread of its own, redacted before anything is queued."""

import logging
import logging.handlers
import os
import queue
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Literal, TextIO

Level = Literal["debug", "info", "warning", "error"]
LEVELS: tuple[Level, ...] = ("debug", "info", "warning", "error")
MAX_BYTES = 5 * 1024 * 1024
FILES = 3
# They tell of every request at info.
_TALKATIVE = ("mcp", "uvicorn", "asyncio", "httpx2", "httpcore2", "sse_starlette")
_ENTRY = re.compile(r"^\d{4}-\d\d-\d\dT\S+ (\w+)")


class Redaction:
    """The redaction of a log that begins before the home and its secrets are known: `before`, until `use`."""

    def __init__(self, before: Callable[[str], str]) -> None:
        self._redact = before

    def __call__(self, text: str) -> str:
        """Return `text` redacted."""
        return self._redact(text)

    def use(self, redact: Callable[[str], str]) -> None:
        """Redact by `redact` from now on."""
        self._redact = redact


class _Entry(logging.Formatter):
    """One entry: its first line begins with the time, every further one is indented."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        return self._redact(super().format(record)).replace("\n", "\n    ")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802 - the library's
        return datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def start_log(
    path: Path,
    *,
    level: Level = "info",
    max_bytes: int = MAX_BYTES,
    files: int = FILES,
    redact: Callable[[str], str] = str,
) -> Callable[[], None]:
    """Send everything that is logged in this process to `path`; return what ends that and writes the rest.

    `redact` takes secrets out of the whole text of an entry, its traceback too.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600)
    file = logging.handlers.RotatingFileHandler(path, maxBytes=max_bytes, backupCount=files, encoding="utf-8")
    waiting: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
    handler = logging.handlers.QueueHandler(waiting)
    handler.setFormatter(_Entry(redact))
    listener = logging.handlers.QueueListener(waiting, file)
    root = logging.getLogger()
    before = (root.level, root.handlers[:])
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.NOTSET if level == "debug" else logging.WARNING)
    _catch_uncaught()
    listener.start()

    def stop() -> None:
        if handler in root.handlers:
            root.level, root.handlers[:] = before
            listener.stop()
            file.close()

    return stop


def tail(path: Path, *, entries: int = 100, least: Level = "debug") -> list[str]:
    """Return the last entries of at least a level, oldest first, from files that were put aside too."""
    found: deque[str] = deque(maxlen=entries)
    for each in _oldest_first(path):
        with each.open(encoding="utf-8", errors="replace") as file:
            found.extend(entry for entry in _grouped(file) if _counts(entry, least))
    return list(found)


def follow(
    path: Path, *, least: Level = "debug", until: Callable[[], bool], pause: Callable[[], object]
) -> Iterator[str]:
    """Yield each line logged from now on, over rotations, until `until` says so; `pause` waits between looks."""
    file = _opened(path)
    if file is not None:
        file.seek(0, os.SEEK_END)
    counts = False
    try:
        while not until():
            line = file.readline() if file is not None else ""
            if line:
                counts = _counts(line, least) if _ENTRY.match(line) else counts
                if counts:
                    yield line.rstrip("\n")
                continue
            pause()
            if file is None or _was_put_aside(path, file):
                file = _opened(path)
    finally:
        if file is not None:
            file.close()


def _opened(path: Path) -> TextIO | None:
    try:
        return path.open(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None


def _was_put_aside(path: Path, file: TextIO) -> bool:
    """Tell whether `path` is another file now; the one that was followed, read to its end, is closed then."""
    try:
        aside = not os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
    if aside:
        file.close()
    return aside


def _oldest_first(path: Path) -> list[Path]:
    aside = sorted(path.parent.glob(path.name + ".[0-9]*"), key=lambda each: -int(each.suffix[1:]))
    return [*aside, path] if path.exists() else aside


def _grouped(lines: Iterable[str]) -> Iterator[str]:
    entry: list[str] = []
    for line in lines:
        if entry and _ENTRY.match(line):
            yield "".join(entry).rstrip("\n")
            entry = []
        entry.append(line)
    if entry:
        yield "".join(entry).rstrip("\n")


def _counts(entry: str, least: Level) -> bool:
    match = _ENTRY.match(entry)
    level = logging.getLevelNamesMapping().get(match[1], logging.NOTSET) if match else logging.NOTSET
    return level >= logging.getLevelNamesMapping()[least.upper()]


def _catch_uncaught() -> None:
    log = logging.getLogger("agentstead")

    def uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        log.critical("uncaught", exc_info=(kind, error, trace))

    sys.excepthook = uncaught
    threading.excepthook = lambda args: log.critical(
        "uncaught in thread %s", args.thread.name if args.thread else "?", exc_info=args.exc_value
    )
