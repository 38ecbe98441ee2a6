"""A process that sends and acknowledges until it is done or killed; what was answered stands on its standard output.

Started by `test_crashes.py`: `python talker.py HOME PROJECT PEER FIRST COUNT`.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from agentstead.identity import Principal
from agentstead.kit import Context, Home, invoke, operation_of
from agentstead.network.server import SERVER
from agentstead.network.service import inbox_ack, inbox_read, message_send
from agentstead.sessions.server import SERVER as SESSIONS
from agentstead.state import HomeLock

BATCH = 8


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def main(path: Path, project: Path, peer: str, numbers: range) -> None:
    lock = HomeLock(path)
    assert lock.acquire()
    home = await Home.open(path, lock=lock, servers=(SESSIONS, SERVER))

    async def call(who: str, fn: Any, **arguments: Any) -> Any:
        result, _ = await invoke(home, operation_of(fn), arguments, Context(Principal.host(who), cwd=project))
        return result

    async def send(number: int) -> None:
        key = f"message {number}"
        sent = await call("ada", message_send, channel="pruning", text=key, to=peer, idempotency_key=key)
        say("sent", number, sent.seq)

    for start in range(numbers.start, numbers.stop, BATCH):
        await asyncio.gather(*(send(number) for number in range(start, min(start + BATCH, numbers.stop))))
        read = await call("bob", inbox_read, only="unacked", limit=100)
        for item in read.items:
            say("read", item.seq, item.body.get("text", "greet"))
        if read.items:
            marked = await call("bob", inbox_ack, upto_seq=read.items[-1].seq)
            say("acked", marked.ack_seq)
    await home.close()
    say("done")


if __name__ == "__main__":
    home_path, project_path, peer_id, first, count = sys.argv[1:]
    asyncio.run(main(Path(home_path), Path(project_path), peer_id, range(int(first), int(first) + int(count))))
