"""One server in a process of its own, without the home's lock: on standard input and output, or over HTTP."""

import os
import signal
import stat
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskStatus

from agentstead.coordinator import control
from agentstead.coordinator.arguments import USAGE, serve_arguments
from agentstead.coordinator.process import Announce, real_opener, run_async
from agentstead.coordinator.statefile import Record
from agentstead.coordinator.suitability import check_home
from agentstead.coordinator.terms import Terms
from agentstead.state import AgentsteadError

if TYPE_CHECKING:
    from agentstead.coordinator.hosted import Opener

UNAVAILABLE = 7
FILE_S = 60.0


def main(argv: list[str], *, opener: "Opener | None" = None) -> int:
    """Serve one server on standard input and output until its end; return the exit status."""
    wanted = serve_arguments(argv)
    if wanted is None:
        print(USAGE, file=sys.stderr)
        return 2
    try:
        os.umask(0o077)
        check_home(Path(wanted.home))
        run_async(partial(_on_stdio, Path(wanted.home), wanted.name, wanted.toolset, opener or real_opener()))
    except AgentsteadError as error:
        print(f"agentstead: {error}", file=sys.stderr)
        return UNAVAILABLE
    return 0


def run_http(terms: Terms, name: str, *, announce: Announce, opener: "Opener | None" = None) -> int:
    """Serve one server over HTTP until a signal; return the exit status.

    Where a coordinator serves this home over HTTP at the same address, `announce` gets its record and True instead.
    """
    os.umask(0o077)
    check_home(terms.home)
    running = control.status(terms.home).record
    if running is not None and terms.http is not None and running.http.endswith(f":{terms.http.port}"):
        announce(running, True)
        return 0
    run_async(partial(_on_http, terms, name, announce, opener or real_opener()))
    return 0


async def _on_stdio(home: Path, name: str, toolset: str, opener: "Opener") -> None:
    from agentstead.coordinator.stdpipes import standard_streams
    from agentstead.kit.caller import ENVIRONMENT, Caller
    from agentstead.kit.connection import Connection

    caller = Caller(
        door="stdio",
        cwd=Path.cwd(),
        pid=os.getppid(),
        environ={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
    )
    whole = stat.S_ISREG(os.fstat(0).st_mode)
    async with opener(home, lock=None, only=name) as hosted:
        server = hosted.server(name, toolset=toolset)
        caller = replace(caller, descends=await hosted.supervises(os.getpid()))
        async with standard_streams() as (reader, writer):
            connection = Connection(server, reader, writer, caller=caller)
            if whole:
                # No host waits behind a file: its end says only that all was asked.
                connection.leave(FILE_S)
            await until_signal(connection.serve)


async def _on_http(terms: Terms, name: str, announce: Announce, opener: "Opener") -> None:
    from agentstead.coordinator.web import Web, base_url, bind
    from agentstead.kit.http import Exchanges, hosts_of, http_app

    assert terms.http is not None
    async with opener(terms.home, lock=None, only=name) as hosted:
        exchanges = Exchanges()
        app = http_app(
            {name: hosted.server(name)},
            check_token=hosted.check_token,
            standing=lambda: "serving",
            exchanges=exchanges,
            hosts=hosts_of(terms.http.host),
        )
        bound = bind(terms.http.host, terms.http.port)
        web = Web(app, bound, exchanges)
        record = _record(terms, name, base_url(bound), hosted.warnings)

        async def serve() -> None:
            announce(record, False)
            await anyio.sleep_forever()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(web.serve)
            await until_signal(serve)
            await web.leave(within_s=terms.stop_s)


def _record(terms: Terms, name: str, http: str, warnings: tuple[str, ...]) -> Record:
    return Record(
        state="serving",
        pid=os.getpid(),
        version=terms.version,
        executable=sys.executable,
        started_at_us=time.time_ns() // 1000,
        started_by="user",
        socket="",
        http=http,
        servers=(name,),
        warnings=warnings,
    )


async def until_signal(work: Callable[[], Awaitable[None]]) -> None:
    """Run `work` until it ends or the process is asked to end; teardown runs either way."""
    async with anyio.create_task_group() as tasks:

        async def watch(*, task_status: TaskStatus[None]) -> None:
            with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
                task_status.started()
                async for _ in signals:
                    tasks.cancel_scope.cancel()

        await tasks.start(watch)
        await work()
        tasks.cancel_scope.cancel()
