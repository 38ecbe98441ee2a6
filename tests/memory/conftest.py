"""Short ways to write, recall and look at memory as different callers."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agentstead.kit import Home
from agentstead.memory import service

HOST = "host:desk"
OTHER_HOST = "host:editor"


class Desk:
    """Calls of memory's operations as one caller, from one folder."""

    def __init__(self, home: Home, invoke: Callable[..., Awaitable[Any]], *, principal: Any, cwd: Path | None) -> None:
        self.home = home
        self._invoke = invoke
        self.principal = principal
        self.cwd = cwd

    def by(self, principal: Any, *, cwd: Path | None = None) -> "Desk":
        return Desk(self.home, self._invoke, principal=principal, cwd=cwd or self.cwd)

    def at(self, cwd: Path | None) -> "Desk":
        return Desk(self.home, self._invoke, principal=self.principal, cwd=cwd)

    async def call(self, fn: Any, **arguments: Any) -> Any:
        return await self._invoke(self.home, fn, principal=self.principal, cwd=self.cwd, **arguments)

    async def write(self, *operations: dict[str, Any], **arguments: Any) -> Any:
        return await self.call(service.memory_write, operations=list(operations), **arguments)

    async def add(self, text: str, *, type: str = "fact", **fields: Any) -> Any:  # noqa: A002
        written = await self.write({"op": "add", "type": type, "text": text, **fields})
        return written.decisions[0]

    async def recall(self, query: str, **arguments: Any) -> Any:
        return await self.call(service.memory_recall, query=query, **arguments)

    async def found(self, query: str, **arguments: Any) -> list[str]:
        return [item.memory_id for item in (await self.recall(query, **arguments)).items]

    async def get(self, memory_id: str, *with_: str) -> Any:
        got = await self.call(service.memory_get, ids=[memory_id], **{"with": list(with_)})
        return got.items[0]

    async def list(self, what: str, **arguments: Any) -> list[dict[str, Any]]:
        listed = await self.call(service.memory_list, what=what, **arguments)
        rows: list[dict[str, Any]] = listed.rows
        return rows

    async def review(self, action: str, *proposal_ids: str, **arguments: Any) -> Any:
        return await self.call(service.memory_review, proposal_ids=list(proposal_ids), action=action, **arguments)


@pytest.fixture
def other_project(tmp_path: Path) -> Path:
    root = tmp_path / "elsewhere"
    (root / ".git").mkdir(parents=True)
    return root


@pytest.fixture
def user(home: Home, project: Path, invoke: Any) -> Desk:
    """The person, in the project's folder."""
    return Desk(home, invoke, principal="user", cwd=project)


@pytest.fixture
def host(user: Desk) -> Desk:
    """A host that works in the project."""
    return user.by(HOST)
