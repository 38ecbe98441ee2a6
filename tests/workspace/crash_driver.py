"""A process that forks one child a job, so that a sweep of crash points pays for imports once.

Reads jobs as JSON lines, runs each in a child with the wanted crash point armed, and answers with how the child ended
and what it said. Every child opens the home as a coordinator does: with the lock, so that recovery runs first.
"""

import asyncio
import hashlib
import json
import os
import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from agentstead.identity import Principal
from agentstead.kit import Context, Home, Result, invoke, operation_of
from agentstead.state import CRASH_POINTS, HomeLock, Reading
from agentstead.workspace import keeping, operations, service, snapshots
from agentstead.workspace.server import SERVER

Job = Mapping[str, Any]


class Session:
    """An opened home with its lock, and the person at a terminal who calls."""

    def __init__(self, home: Home, root: Path) -> None:
        self.home = home
        self._root = root

    async def call(self, fn: Callable[..., Awaitable[Result]], **arguments: Any) -> Any:
        context = Context(Principal.user(at_terminal=True), cwd=self._root, environ={"PATH": os.environ["PATH"]})
        result, _ = await invoke(self.home, operation_of(fn), arguments, context)
        return result

    async def confirmed(self, fn: Callable[..., Awaitable[Result]], **arguments: Any) -> Any:
        plan = await self.call(fn, **arguments)
        return await self.call(fn, **arguments, dry_run=False, plan_digest=plan.plan_digest)


async def _prepare(session: Session, job: Job) -> Any:
    """Take a first snapshot, change files, snapshot again, and open a fork that holds other changes."""
    first = await session.call(service.snapshot_take, label="first")
    root = Path(job["root"])
    (root / "edited.txt").write_text("second version\n")
    (root / "later.txt").write_text("made after the first snapshot\n")
    (root / "gone.txt").unlink()
    second = await session.call(service.snapshot_take, label="second")
    opened = await session.call(service.fork_open)
    fork_id = opened.forks[0]["fork_id"]
    edits = [
        {"path": "edited.txt", "text": "the fork's version\n"},
        {"path": "new/deep/file.txt", "text": "new\n"},
        {"path": "later.txt", "delete": True},
        {"path": "run.sh", "mode": "755"},
    ]
    written = await session.call(service.fork_write, fork_id=fork_id, files=edits)
    return {"first": first.tree, "second": second.tree, "fork_id": fork_id, "fork": written.tree}


async def _promote(session: Session, job: Job) -> Any:
    done = await session.confirmed(service.tree_promote, **{"from": job["fork_id"]})
    return done.state


async def _restore(session: Session, job: Job) -> Any:
    done = await session.confirmed(service.tree_restore, to="@first")
    return done.state


async def _fork(session: Session, job: Job) -> Any:
    return [fork["tree"] for fork in (await session.call(service.fork_open, count=2)).forks]


async def _write(session: Session, job: Job) -> Any:
    files = [{"path": f"w{number}.txt", "text": f"{number}\n"} for number in range(3)]
    return (await session.call(service.fork_write, fork_id=job["fork_id"], files=files)).tree


async def _close(session: Session, job: Job) -> Any:
    return (await session.call(keeping.fork_close, fork_id=job["fork_id"])).item["state"]


async def _check(session: Session, job: Job) -> Any:
    ran = await session.call(service.check_run, ref=job["fork_id"], command={"argv": ["cat", "run.sh"]}, fresh=True)
    return ran.outcome


async def _look(session: Session, job: Job) -> Any:
    """Say what a restart found and made of it, with everything that must hold whatever happened before."""
    home, root = session.home, Path(job["root"])
    journal = await home.state.verify()
    live = await session.call(service.snapshot_take)
    stage = root / ".agentstead" / "stage"
    held = await home.state.read(_held, live)
    return {
        "wrong": list(await SERVER.verify(home)) if SERVER.verify else [],
        "journal": journal.holds,
        "live": live.tree,
        "files": _files(root),
        "staged": [path.name for path in stage.iterdir()] if stage.is_dir() else [],
        "incoming": [path.name for path in (home.path / "blobs" / "incoming").iterdir()],
        "trash": [path.name for path in (home.path / "trash").iterdir()] if (home.path / "trash").is_dir() else [],
        "forks": sorted(path.name for path in (home.path / "forks").glob("wsp_*/*")),
        **held,
    }


def _held(reading: Reading, live: Any) -> dict[str, Any]:
    workspace_id = next(iter(reading.all("SELECT id FROM workspaces")))["id"]
    return {
        "open": [each.id for each in operations.unfinished(reading)],
        "living": sorted(
            row["id"] for row in reading.all("SELECT id FROM forks WHERE state IN ('open', 'settled', 'promoting')")
        ),
        "making": [row["id"] for row in reading.all("SELECT id FROM forks WHERE state IN ('making', 'promoting')")],
        "receipts": [
            row["id"] for row in reading.all("SELECT id FROM receipts WHERE state IN ('preparing', 'running')")
        ],
        "snapshots": [each.id for each in snapshots.listed(reading, workspace_id, most=500)],
    }


def _files(root: Path) -> dict[str, str]:
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_file() and not path.is_symlink() and not name.startswith(".agentstead/"):
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


JOBS: Mapping[str, Callable[[Session, Job], Awaitable[Any]]] = {
    "prepare": _prepare,
    "promote": _promote,
    "restore": _restore,
    "fork": _fork,
    "write": _write,
    "close": _close,
    "check": _check,
    "look": _look,
}


async def _work(job: Job) -> Any:
    home_path = Path(job["home"])
    home_path.mkdir(mode=0o700, exist_ok=True)
    lock = HomeLock(home_path)
    assert lock.acquire()
    home = await Home.open(home_path, lock=lock, servers=[SERVER])
    try:
        return await JOBS[job["do"]](Session(home, Path(job["root"])), job)
    finally:
        await home.close()


def _child(job: Job, out: int) -> None:
    name, _, passage = job.get("crash", "").partition(":")
    CRASH_POINTS._wanted, CRASH_POINTS._passage = name, int(passage or 1)
    try:
        answer = {"result": asyncio.run(_work(job))}
    except BaseException:
        answer = {"error": traceback.format_exc()}
    with os.fdopen(out, "w") as pipe:
        json.dump(answer, pipe)


def main() -> None:
    for line in sys.stdin:
        job = json.loads(line)
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            try:
                _child(job, write)
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read) as pipe:
            said = pipe.read()
        _, status = os.waitpid(pid, 0)
        answer = {"killed": os.waitstatus_to_exitcode(status) == -9, **(json.loads(said) if said else {})}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
