"""The coordinator's HTTP listener: uvicorn, run as a task of ours, with our signals and our log."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import uvicorn
from starlette.types import ASGIApp

from agentstead.kit.http import Exchanges
from agentstead.state import Unavailable

BACKLOG = 128
KEEP_ALIVE_S = 30
# uvicorn looks every 0.1 s; what is open is ended by ourselves before.
CLOSING_S = 1


class _Uvicorn(uvicorn.Server):
    """uvicorn without its signal handlers: the coordinator has its own."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield


class Web:
    """One bound HTTP listener."""

    def __init__(self, app: ASGIApp, bound: socket.socket, exchanges: Exchanges) -> None:
        self._bound = bound
        self._exchanges = exchanges
        self._leaving = False
        self._ended = anyio.Event()
        self._server = _Uvicorn(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                ws="none",
                lifespan="on",
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=CLOSING_S,
            )
        )

    async def serve(self) -> None:
        """Serve until `leave`; raises RuntimeError where the app could not start."""
        try:
            await self._server.serve(sockets=[self._bound])
        except SystemExit:
            pass  # uvicorn's way to say that the app could not start, would end the process without a word of ours
        finally:
            self._ended.set()
        if not self._leaving:
            raise RuntimeError("the HTTP listener ended by itself")

    async def leave(self, *, within_s: float) -> None:
        """Let the calls under way finish, up to a bound, end the streams, and close."""
        with anyio.move_on_after(within_s):
            await self._exchanges.settled()
        self._leaving = True
        self._exchanges.end()
        self._server.should_exit = True
        with anyio.move_on_after(2 * CLOSING_S):
            await self._ended.wait()


def bind(host: str, port: int) -> socket.socket:
    """Return a listening TCP socket; raises `Unavailable` with `coordinator.locked` where the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        raise Unavailable(
            "coordinator.locked",
            f"HTTP cannot be served on {host}:{port}: {error.strerror or error}.",
            remedy="Give another port: agentstead up --port PORT.",
        ) from None
    bound.setblocking(False)
    return bound


def base_url(bound: socket.socket) -> str:
    """Return the URL of a bound socket, without a path."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
