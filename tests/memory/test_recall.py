"""Recall through the service."""

from pathlib import Path
from typing import Any

import pytest

from agentstead.kit import Home
from agentstead.memory.service import memory_recall, memory_write

pytestmark = pytest.mark.anyio


async def test_a_written_fact_is_recalled(home: Home, project: Path, invoke: Any) -> None:
    add = {"op": "add", "type": "fact", "text": "The staging database is Postgres 15 on port 5433."}
    written = await invoke(home, memory_write, operations=[add], cwd=project)
    assert written.state == "accepted"
    found = await invoke(home, memory_recall, query="which database does staging use?", cwd=project)
    assert [item.memory_id for item in found.items] == [written.decisions[0].memory_id]
