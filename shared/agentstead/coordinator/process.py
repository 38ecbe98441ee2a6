"""The coordinator's process: checks the home, takes its lock for life, and only then loads what is heavy."""

import gc
import logging
import os
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from agentstead.coordinator import control, places
from agentstead.coordinator.logs import Redaction, start_log
from agentstead.coordinator.statefile import Record, remove_record, write_record
from agentstead.coordinator.suitability import check_home, make_private
from agentstead.coordinator.terms import Terms
from agentstead.state import AgentsteadError, HomeLock, Unavailable

if TYPE_CHECKING:
    from agentstead.coordinator.hosted import Opener

log = logging.getLogger(__name__)

# A coordinator that hands over, or a standalone server that migrates, holds the lock a little longer.
LOCK_S = 15.0
LOOK_S = 0.02
OPEN_FILES = 4096

Announce = Callable[[Record, bool], None]


def run(
    terms: Terms,
    *,
    announce: Announce,
    opener: "Opener | None" = None,
    redact: Callable[[str], str] | None = None,
) -> int:
    """Run the coordinator of a home in this process until it ends; return the exit status.

    Where one is running already, `announce` gets its record and True, and 0 is returned. Raises `Unavailable` where the
    home cannot be used or held. `redact` serves the log until the home is open.
    """
    os.umask(0o077)
    check_home(terms.home)
    make_private(Path(places.run_folder(str(terms.home))))
    lock = HomeLock(terms.home)
    running = _held_or_running(lock, terms)
    if running is not None:
        announce(running, True)
        return 0
    try:
        record = _record(terms)
        write_record(Path(places.state_file(str(terms.home))), record)
        _serve(terms, record, lock, announce, opener or real_opener(), redact or _shapes())
    finally:
        remove_record(Path(places.state_file(str(terms.home))))
        lock.release()
    return 0


def _held_or_running(lock: HomeLock, terms: Terms) -> Record | None:
    """Take the lock, waiting for a holder that is about to leave it; return the record of one that serves."""
    until = time.monotonic() + LOCK_S
    while not lock.acquire():
        status = control.status(terms.home)
        if status.answers and status.record is not None and status.state in ("serving", "draining"):
            with suppress(Unavailable):
                if terms.started_by == "user":
                    control.keep(terms.home)
                return status.record
        if time.monotonic() > until:
            raise control.locked(terms.home, "holds the home and does not answer")
        time.sleep(LOOK_S)
    return None


def _record(terms: Terms) -> Record:
    return Record(
        state="starting",
        pid=os.getpid(),
        version=terms.version,
        executable=sys.executable,
        started_at_us=time.time_ns() // 1000,
        started_by=terms.started_by,
        socket=places.socket_path(str(terms.home)),
    )


def _serve(
    terms: Terms,
    record: Record,
    lock: HomeLock,
    announce: Announce,
    opener: "Opener",
    redact: Callable[[str], str],
) -> None:
    gc.disable()  # the imports make many objects and no garbage
    from agentstead.coordinator.serving import Coordinator

    redaction = Redaction(redact)
    stop_log = start_log(
        Path(places.log_file(str(terms.home))),
        level=terms.log_level,
        max_bytes=terms.log_bytes,
        files=terms.log_files,
        redact=redaction,
    )

    def ready(record: Record) -> None:
        gc.enable()
        gc.freeze()
        announce(record, False)

    async def serve() -> None:
        async with opener(terms.home, lock=lock, only="") as hosted:
            redaction.use(hosted.redact)
            await Coordinator(terms, hosted, record, announce=ready).run()

    try:
        _allow_many_files()
        run_async(serve)
    except AgentsteadError as error:
        log.error("the coordinator ends: %s", error)
        raise
    except Exception:
        log.exception("the coordinator ends by a fault of its own")
        raise
    finally:
        stop_log()


def run_async(work: Callable[[], Awaitable[None]]) -> None:
    """Run `work` to its end; an error that came alone out of its task groups is raised as itself."""
    import anyio

    try:
        anyio.run(work)
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        raise error from None


def real_opener() -> "Opener":
    """Return what opens a real home; loads all that is heavy."""
    from agentstead.coordinator.opened import open_home

    return open_home


def _shapes() -> Callable[[str], str]:
    from agentstead.policy import Redactor

    return Redactor().text


def _allow_many_files() -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
