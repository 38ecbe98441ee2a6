"""What HTTP says of header fields holds for the app, whichever parser stands before it."""

from collections.abc import MutableMapping
from typing import Any

import pytest

from agentstead.kit.http import http_app


async def no_token(_token: str) -> None:
    return None


async def status_of(path: str, headers: list[tuple[bytes, bytes]]) -> int:
    app = http_app({}, check_token=no_token, standing=lambda: "serving")
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 5),
        "server": ("127.0.0.1", 6),
    }
    await app(scope, receive, send)
    status: int = sent[0]["status"]
    return status


@pytest.mark.anyio
@pytest.mark.parametrize("value", [b"127.0.0.1:7433", b" 127.0.0.1:7433", b"127.0.0.1:7433 \t", b"\t127.0.0.1:7433 "])
async def test_blanks_around_a_value_mean_nothing(value: bytes) -> None:
    assert await status_of("/healthz", [(b"host", value)]) == 200


@pytest.mark.anyio
@pytest.mark.parametrize("value", [b"127.0.0.1 .example", b"exa mple", b""])
async def test_blanks_inside_a_value_still_count(value: bytes) -> None:
    assert await status_of("/healthz", [(b"host", value)]) == 421
