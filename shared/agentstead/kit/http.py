"""Every server over streamable HTTP in one app: `/{server}/mcp`, behind checks that read no body before they pass.

In this order: Host (421), Origin (403), bearer token (401), length of the body (413). `/healthz` and `/readyz` need no
token, and say nothing but how the process is.
"""

import hashlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Literal

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from agentstead.kit.caller import CALLER, Caller

TokenKind = Literal["home", "operator", "process"]
CheckToken = Callable[[str], Awaitable[TokenKind | None]]
Standing = Literal["starting", "serving", "draining", "stopping"]

BODY_BYTES = 4 * 1024 * 1024
LOOPBACK = ("127.0.0.1", "localhost", "::1")
REALM = "agentstead"
WORKSPACE_HEADER = "agentstead-workspace"
WORKSPACE_CHARS = 4096

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(\d{1,5}))?", re.IGNORECASE)
_TOKEN = re.compile(r"bearer +([A-Za-z0-9._~+/-]+=*) *", re.IGNORECASE)


class Exchanges:
    """The HTTP requests under way; streams, which last as long as their client likes, are counted apart."""

    def __init__(self) -> None:
        self.calls = 0
        self.streams = 0
        self.last = 0.0
        self._scopes: set[anyio.CancelScope] = set()
        self._idle = anyio.Event()
        self._idle.set()

    async def settled(self) -> None:
        """Wait until no call is under way."""
        while self.calls:
            await self._idle.wait()

    def end(self) -> None:
        """End every request that is still open."""
        for scope in list(self._scopes):
            scope.cancel()

    @asynccontextmanager
    async def counted(self, *, stream: bool) -> AsyncIterator[None]:
        """Count one request while it lasts."""
        self._count(stream, 1)
        try:
            with anyio.CancelScope() as scope:
                self._scopes.add(scope)
                yield
        finally:
            self._scopes.discard(scope)
            self._count(stream, -1)
            self.last = anyio.current_time()

    def _count(self, stream: bool, step: int) -> None:
        if stream:
            self.streams += step
            return
        if not self.calls:
            self._idle = anyio.Event()
        self.calls += step
        if not self.calls:
            self._idle.set()


def hosts_of(host: str) -> tuple[str, ...]:
    """Return the names by which a listener on `host` may be spoken to."""
    return LOOPBACK if host in LOOPBACK else (*LOOPBACK, host)


def http_app(
    servers: Mapping[str, Server[Any]],
    *,
    check_token: CheckToken,
    standing: Callable[[], Standing],
    exchanges: Exchanges | None = None,
    hosts: Sequence[str] = LOOPBACK,
    body_bytes: int = BODY_BYTES,
) -> ASGIApp:
    """Return the app that serves `servers`; its lifespan must be run.

    `check_token` returns the kind of a token in force, and compares nothing but its SHA-256. `hosts` are the names by
    which this listener may be spoken to, on any port. While `standing` is stopping, everything but `/healthz` is a 503.
    """
    managers = {
        name: StreamableHTTPSessionManager(server, max_request_body_size=body_bytes) for name, server in servers.items()
    }

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for manager in managers.values():
                await stack.enter_async_context(manager.run())
            yield

    async def alive(_request: object) -> Response:
        return JSONResponse({"status": "ok"})

    async def ready(_request: object) -> Response:
        now = standing()
        return JSONResponse({"status": "ready"}) if now == "serving" else _unready(now)

    app = Starlette(
        routes=[
            Route("/healthz", alive),
            Route("/readyz", ready),
            *(Route(f"/{name}/mcp", StreamableHTTPASGIApp(manager)) for name, manager in managers.items()),
        ],
        lifespan=lifespan,
    )
    return _Gate(app, check_token=check_token, standing=standing, exchanges=exchanges or Exchanges(), hosts=hosts)


class _Gate:
    """The checks in front of the app, for every path."""

    _OPEN = frozenset({"/healthz", "/readyz"})

    def __init__(
        self,
        app: ASGIApp,
        *,
        check_token: CheckToken,
        standing: Callable[[], Standing],
        exchanges: Exchanges,
        hosts: Sequence[str],
    ) -> None:
        self._app = app
        self._check_token = check_token
        self._standing = standing
        self._exchanges = exchanges
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # HTTP allows blanks around a field's value, and the parser in C leaves them there.
        scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        headers = Headers(scope=scope)
        refusal = self._foreign(headers)
        if refusal is None and scope["path"] not in self._OPEN:
            refusal = await self._admit(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        async with self._exchanges.counted(stream=scope["method"] == "GET" or _listens(headers)):
            await self._app(scope, receive, send)

    def _foreign(self, headers: Headers) -> Response | None:
        """Refuse a page of another origin, and a name that was bent to point here."""
        named = headers.getlist("host")
        if len(named) != 1 or self._name(named[0]) not in self._hosts:
            return PlainTextResponse("This host name is not served here.", 421)
        origin = headers.get("origin")
        if origin is None:
            return None
        scheme, separator, host = origin.partition("://")
        if not separator or scheme not in ("http", "https") or self._name(host) not in self._hosts:
            return PlainTextResponse("Pages of this origin are not served here.", 403)
        return None

    async def _admit(self, scope: Scope, headers: Headers) -> Response | None:
        """Check the bearer token, and put the caller where the handlers find it."""
        given = headers.getlist("authorization")
        match = _TOKEN.fullmatch(given[0]) if len(given) == 1 else None
        if match is None:
            return _unauthorized("")
        kind = await self._check_token(match[1])
        if kind is None:
            return _unauthorized(', error="invalid_token", error_description="The token is unknown or has ended."')
        if self._standing() == "stopping":
            return _unready("stopping")
        # The SDK opens a session only to the credential that began it.
        client = hashlib.sha256(match[1].encode()).hexdigest()
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=client, scopes=[]))
        CALLER.set(Caller(door="http", token=kind, environ=_environ(headers)))
        return None

    @staticmethod
    def _name(host: str) -> str:
        match = _HOST.fullmatch(host)
        return match[1].strip("[]").lower() if match else ""


def _environ(headers: Headers) -> dict[str, str]:
    """Read the workspace that an HTTP host names in a header; it has no working directory to find one by."""
    named = headers.get(WORKSPACE_HEADER, "")
    return {"AGENTSTEAD_WORKSPACE": named} if 0 < len(named) <= WORKSPACE_CHARS else {}


def _listens(headers: Headers) -> bool:
    return headers.get("mcp-method") == "subscriptions/listen"


def _unauthorized(why: str) -> Response:
    body = {"error": "unauthorized", "remedy": "Send `Authorization: Bearer TOKEN`; `agentstead home token` shows it."}
    return JSONResponse(body, 401, headers={"WWW-Authenticate": f'Bearer realm="{REALM}"{why}'})


def _unready(standing: Standing) -> Response:
    return JSONResponse({"status": standing, "code": "coordinator.draining"}, 503, headers={"Retry-After": "5"})
