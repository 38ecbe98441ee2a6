"""What a shim remembers of a connection, so that the next coordinator can take it over. Pure; standard library only.

No call is sent twice: what was handed to a coordinator that went away is answered with `coordinator.lost`. Sent again
are only what makes a connection (`initialize`, `server/discover`) and what listens (`resources/subscribe`,
`subscriptions/listen`).
"""

import json
import re

Id = int | str

LOST = "coordinator.lost"
ERROR_META = "dev.agentstead/error"
# Of the range that JSON-RPC leaves to servers; the SDK uses -32000 and -32001 itself.
LOST_CODE = -32010

_MODERN = "io.modelcontextprotocol/protocolVersion"
_AGAIN = frozenset({"initialize", "server/discover", "subscriptions/listen"})
_SUBSCRIPTIONS = frozenset({"resources/subscribe", "resources/unsubscribe"})
# Our own writer begins every line so (a contract test holds it to that), so that no answer need be parsed whole.
_HEAD = re.compile(rb'\{"jsonrpc":"2\.0","id":(-?\d+|"(?:[^"\\]|\\.)*"|null),"(result|error|method)"')
_CANCELED = b'{"jsonrpc":"2.0","method":"notifications/cancelled"'
_OWN = "agentstead:again:"


class Request:
    """A request of the host that nobody has answered yet; `line` is kept where it may have to be sent again."""

    __slots__ = ("again", "line", "method", "modern", "name", "sent")

    def __init__(self, method: str, params: "dict[str, object]", line: bytes) -> None:
        self.method = method
        self.name = _text(params.get("name"))
        self.modern = _MODERN in _object(params.get("_meta"))
        self.line = line if method in _AGAIN or method in _SUBSCRIPTIONS else b""
        self.sent = False
        self.again = False


class Outgoing:
    """A line for the coordinator; `lasting` tells whether it outlives the coordinator it was meant for."""

    __slots__ = ("key", "lasting", "line", "method")

    def __init__(self, line: bytes, *, key: "Id | None" = None, method: str = "", lasting: bool = True) -> None:
        self.line = line
        self.key = key
        self.method = method
        self.lasting = lasting


class Ledger:
    """The open requests, the opening of the connection, its subscriptions, and the questions asked of the host."""

    def __init__(self) -> None:
        self.open: dict[Id, Request] = {}
        self._generation = 1
        self._opening = b""
        self._initialized = b""
        self._subscriptions: dict[str, bytes] = {}
        self._asked: dict[Id, Id] = {}
        self._swallow: set[Id] = set()

    @property
    def legacy(self) -> bool:
        """Tell whether an `initialize` of this host was accepted."""
        return bool(self._opening)

    @property
    def waiting(self) -> bool:
        """Tell whether the host waits for an answer, and not only for events."""
        return any(request.method != "subscriptions/listen" for request in self.open.values())

    def from_host(self, line: bytes) -> "Outgoing | None":
        """Note a line of the host and return what to send on; None for an answer that nobody waits for any more."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return Outgoing(line)  # the coordinator answers it as a parse error
        if not isinstance(message, dict):
            return Outgoing(line)
        method, key = message.get("method"), message.get("id")
        if not isinstance(method, str):
            return self._answer(message)
        params = _object(message.get("params"))
        if type(key) is int or type(key) is str:
            self.open[key] = Request(method, params, line)
            return Outgoing(line, key=key, method=method)
        if method == "notifications/cancelled":
            self.open.pop(_id(params.get("requestId")), None)
        return Outgoing(line, method=method)

    def sent(self, item: Outgoing) -> None:
        """Note that the whole line was handed to the coordinator."""
        if item.method == "notifications/initialized":
            self._initialized = item.line
        if item.key is not None and (request := self.open.get(item.key)) is not None:
            request.sent, request.again = True, False

    def from_coordinator(self, line: bytes) -> "bytes | None":
        """Return the line for the host, or None for an answer that the host does not wait for."""
        head = _HEAD.match(line)
        if head is None:
            return self._canceled(line) if line.startswith(_CANCELED) else line
        key: Id | None = json.loads(head[1])
        if head[2] == b"method":
            return self._question(key, line, head)
        if key is None:
            return line
        if key in self._swallow:
            self._swallow.discard(key)
            return None
        request = self.open.pop(key, None)
        if request is None:
            return None
        if head[2] == b"result":
            self._succeeded(request)
        return line

    def lost(self) -> "list[bytes]":
        """Begin the next generation; return the answers and withdrawals that the host gets at once."""
        told = [_withdrawal(asked) for asked in self._asked]
        for key, request in list(self.open.items()):
            if request.sent and request.method in _AGAIN:
                request.sent, request.again = False, True
            elif request.sent:
                told.append(lost_answer(key, request))
                del self.open[key]
        self._generation += 1
        self._asked.clear()
        self._swallow.clear()
        return told

    def again(self) -> "list[Outgoing]":
        """Return what the next coordinator must hear before anything else, in order."""
        items: list[Outgoing] = []
        if self._opening:
            items.append(self._own(self._opening))
            if self._initialized:
                items.append(Outgoing(self._initialized, method="notifications/initialized", lasting=False))
            items.extend(self._own(line) for line in self._subscriptions.values())
        for key, request in self.open.items():
            if request.again:
                items.append(Outgoing(request.line, key=key, method=request.method, lasting=False))
        return items

    def refuse(self, code: str, message: str, remedy: str) -> "list[bytes]":
        """Return an error for every open request and forget them: no coordinator can be had."""
        told = [failure(key, code, message, remedy, retryable=False) for key in self.open]
        self.open.clear()
        return told

    def _succeeded(self, request: Request) -> None:
        if request.method == "initialize":
            self._opening = request.line
        elif request.method in _SUBSCRIPTIONS:
            uri = _text(_object(json.loads(request.line).get("params")).get("uri"))
            if request.method == "resources/subscribe":
                self._subscriptions[uri] = request.line
            else:
                self._subscriptions.pop(uri, None)

    def _question(self, key: "Id | None", line: bytes, head: "re.Match[bytes]") -> bytes:
        """Give a question of a later coordinator an id of its own: each counts from 1, and old answers may be late."""
        if key is None:
            return line
        if self._generation == 1:
            self._asked[key] = key
            return line
        ours = f"{self._generation}.{key}"
        self._asked[ours] = key
        return line[: head.start(1)] + json.dumps(ours).encode() + line[head.end(1) :]

    def _answer(self, message: "dict[str, object]") -> "Outgoing | None":
        theirs = self._asked.pop(_id(message.get("id")), None)
        if theirs is None:
            return None
        return Outgoing(_dump({**message, "id": theirs}), lasting=False)

    def _canceled(self, line: bytes) -> bytes:
        """Forget a question that the coordinator takes back, and name it as the host knows it."""
        message = json.loads(line)
        theirs = _id(_object(message.get("params")).get("requestId"))
        for ours, key in self._asked.items():
            if key == theirs:
                del self._asked[ours]
                return _dump({**message, "params": {**message["params"], "requestId": ours}})
        return line

    def _own(self, line: bytes) -> Outgoing:
        """Return a request of the host under an id of ours; its answer is swallowed."""
        message = json.loads(line)
        key = f"{_OWN}{self._generation}.{len(self._swallow)}"
        self._swallow.add(key)
        return Outgoing(_dump({**message, "id": key}), lasting=False)


def lost_answer(key: Id, request: Request) -> bytes:
    """Return the answer to a request whose coordinator went away: a tool's error, or a JSON-RPC error."""
    what = f"The coordinator went away before it answered {request.name or request.method}."
    if request.method != "tools/call":
        return failure(key, LOST, what, "Send it again.", retryable=True)
    remedy = (
        "It may or may not have been carried out: call it again with the same idempotency_key, or read the state first."
    )
    result: dict[str, object] = {
        "content": [{"type": "text", "text": f"{LOST}: {what} {remedy}"}],
        "isError": True,
        "_meta": {ERROR_META: _error(LOST, what, remedy, retryable=True)},
    }
    if request.modern:
        result["resultType"] = "complete"
    return _dump({"jsonrpc": "2.0", "id": key, "result": result})


def failure(key: "Id | None", code: str, message: str, remedy: str, *, retryable: bool) -> bytes:
    """Return a JSON-RPC error that carries one of our codes."""
    text = f"{code}: {message} {remedy}".rstrip()
    error = {"code": LOST_CODE, "message": text, "data": _error(code, message, remedy, retryable=retryable)}
    return _dump({"jsonrpc": "2.0", "id": key, "error": error})


def oversize(head: bytes, limit: int) -> bytes:
    """Return the refusal of a line that was too long, under its id where the line begins with it."""
    match = re.search(rb'"id"\s*:\s*(-?\d+|"(?:[^"\\]|\\.)*")', head)
    text = f"a message may have {limit} bytes"
    error = {"code": -32600, "message": text}
    return _dump({"jsonrpc": "2.0", "id": json.loads(match[1]) if match else None, "error": error})


def _error(code: str, message: str, remedy: str, *, retryable: bool) -> "dict[str, object]":
    return {"code": code, "message": message, "remedy": remedy, "retryable": retryable, "details": {}}


def _withdrawal(asked: Id) -> bytes:
    params = {"requestId": asked, "reason": "the coordinator that asked went away"}
    return _dump({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})


def _dump(message: "dict[str, object]") -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def _object(value: object) -> "dict[str, object]":
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _id(value: object) -> Id:
    return value if type(value) is int or type(value) is str else ""
