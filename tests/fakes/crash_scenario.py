"""One life of a home, told line by line: after each acknowledged call, the journal's head. A crash point may end it.

Usage: crash_scenario.py HOME PROJECT. It runs in one process that holds the home's lock, so every point is its own.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from agentstead.identity import Principal
from agentstead.kit import Context, Home, invoke
from agentstead.kit.housekeeping import sweep_once
from agentstead.state import HomeLock

SURE = ["true"]


async def live(home_path: Path, project: Path) -> None:
    lock = HomeLock(home_path)
    home_path.mkdir(mode=0o700, exist_ok=True)
    assert lock.acquire()
    home = await Home.open(home_path, lock=lock)
    operations = {name: each for server in home.servers for name, each in server.by_name.items()}
    context = Context(Principal.user(at_terminal=True), cwd=project)

    async def call(tool: str, **arguments: Any) -> Any:
        result, _ = await invoke(home, operations[tool], arguments, context)
        head = await home.state.head()
        print(json.dumps({"tool": tool, "seq": head.seq, "hash": head.hash}), flush=True)
        return result.model_dump(mode="json")

    session = (await call("session_open", name="life"))["session_id"]
    await call("session_record", session_id=session, events=[{"kind": "prompt", "text": "x" * 20_000}], turn="begin")
    await call("task_save", tasks=[{"key": "a", "title": "A"}, {"key": "b", "title": "B", "after": ["a"]}])
    packet = await call("task_claim", session_id=session)
    await call("task_report", lease=packet["lease"], state="completed", summary="done")
    before = await call("snapshot_take", label="before")
    fork = (await call("fork_open", **{"from": before["snapshot_id"]}))["forks"][0]["fork_id"]
    files = [{"path": "answer.txt", "text": "42\n"}, {"path": "new/deep.txt", "text": "new\n"}]
    await call("fork_write", fork_id=fork, files=[*files, {"path": "old.txt", "delete": True}])
    receipt = (await call("check_run", ref=fork, command={"argv": SURE}, wait_s=20))["receipts"][0]
    plan = await call("tree_promote", **{"from": fork}, dry_run=True)
    await call("tree_promote", **{"from": fork}, dry_run=False, plan_digest=plan["plan_digest"])
    back = await call("tree_restore", to=before["snapshot_id"], dry_run=True)
    await call("tree_restore", to=before["snapshot_id"], dry_run=False, plan_digest=back["plan_digest"])
    fact = {"op": "add", "type": "fact", "text": "It worked.", "evidence": [receipt["receipt_id"]]}
    await call("memory_write", operations=[fact])
    peer = (await call("peer_join", channel="life", session=session))["peer_id"]
    await call("message_send", channel="life", peer=peer, text="hello")
    await call("session_close", session_id=session)
    await sweep_once(home)
    await home.close()
    lock.release()


if __name__ == "__main__":
    asyncio.run(live(Path(sys.argv[1]), Path(sys.argv[2])))
