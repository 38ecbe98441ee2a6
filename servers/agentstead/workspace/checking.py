"""Running a check on exactly one tree: in a scratch copy that nothing else sees, measured by us, sealed at the end."""

import hashlib
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio

from agentstead.blobs import BlobStore
from agentstead.kit import Home
from agentstead.policy import Redactor
from agentstead.runner import (
    ENFORCED_UNKNOWN,
    ISOLATION,
    Command,
    Exit,
    Limits,
    Stream,
    environment,
    runner_of,
)
from agentstead.state import AgentsteadError, Invalid, canonical_json, sha256_hex
from agentstead.workspace import receipts
from agentstead.workspace.beneath import opened_root
from agentstead.workspace.capturing import KEYED_DIGESTS
from agentstead.workspace.changes import changes
from agentstead.workspace.checks import Check, body_of
from agentstead.workspace.contents import Trees
from agentstead.workspace.materialise import materialise
from agentstead.workspace.paths import given, shown
from agentstead.workspace.places import Place, fork_place, locked
from agentstead.workspace.receipts import Sealed, Status
from agentstead.workspace.removing import put_away
from agentstead.workspace.statcache import StatCache
from agentstead.workspace.walk import walk

RECEIPT_KEY: Final = "receipts"
_CHANGED_SHOWN: Final = 200
_PRIVATE: Final = "(private)"


@dataclass(frozen=True, slots=True)
class Run:
    """One run that was asked for: the check, the exact tree, and what is known of the caller's environment."""

    receipt_id: str
    workspace_id: str
    check: Check
    tree_in: str
    caller: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A scratch copy of a tree and the command as it will be run there."""

    place: Place
    command: Command
    facts: Mapping[str, Any]


async def run_check(home: Home, run: Run) -> None:
    """Run one check to its recorded receipt; whatever goes wrong ends in the receipt's state or status."""
    place = fork_place(run.workspace_id, run.receipt_id, home.path / "forks" / run.workspace_id / run.receipt_id)
    async with locked(home, place, doing=f"check_run {run.check.name or 'command'}"):
        try:
            await _run(home, run, place)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await _give_up(home, run.receipt_id)
            raise
        finally:
            with anyio.CancelScope(shield=True):
                await home.blobs.run(put_away, Path(place.base), home.path / "trash")


async def recover_receipts(home: Home) -> list[str]:
    """Record as lost the runs that a dead process left, and remove their scratch copies; return their ids."""
    lost: list[str] = []
    for receipt in await home.state.read(receipts.unfinished):
        base = home.path / "forks" / receipt.workspace_id / receipt.id
        place = fork_place(receipt.workspace_id, receipt.id, base)
        try:
            async with locked(home, place, doing="recovery", wait_s=0):
                await home.state.write(receipts.move, receipt.id, "lost")
                await home.blobs.run(put_away, base, home.path / "trash")
        except AgentsteadError:
            continue
        lost.append(receipt.id)
    return lost


async def environment_digest(home: Home, check: Check, caller: Mapping[str, str]) -> str:
    """Return the digest of everything outside the tree that a run of this check would see, as far as we know it."""
    environ = _environment(home.path, check, caller)
    return _digest(await home.blobs.run(_outside, check, environ))


async def _run(home: Home, run: Run, place: Place) -> None:
    await home.state.write(receipts.move, run.receipt_id, "ready")
    try:
        prepared = await home.blobs.run(_prepare, run, place)
        await home.state.write(receipts.move, run.receipt_id, "started")
        result = await runner_of(home.state).run(prepared.command, owner=run.receipt_id)
    except AgentsteadError as error:
        await _record(home, run, place, None, await home.blobs.run(_unstarted, run, place), error)
        return
    await _record(home, run, place, result, prepared.facts, None)


async def _record(
    home: Home, run: Run, place: Place, result: Exit | None, facts: Mapping[str, Any], error: AgentsteadError | None
) -> None:
    if error is not None and (await home.state.read(receipts.the_receipt, run.receipt_id)).state == "preparing":
        await home.state.write(receipts.move, run.receipt_id, "started")
    await home.state.write(receipts.move, run.receipt_id, "ended")
    async with home.blobs.holding():
        sealed = await home.blobs.run(_seal, home, run, place, result, facts, error)
        await home.state.write(receipts.seal, run.receipt_id, sealed)


async def _give_up(home: Home, receipt_id: str) -> None:
    receipt = await home.state.read(receipts.the_receipt, receipt_id)
    if receipt.state in receipts.OPEN:
        await home.state.write(receipts.move, receipt_id, "lost" if receipt.state == "settling" else "cancel")


def _environment(scratch: Path, check: Check, caller: Mapping[str, str]) -> dict[str, str]:
    command = check.command
    return environment(
        home=scratch / "home",
        temporary=scratch / "tmp",
        caller=caller,
        allowed=command.env_allow,
        values=command.env,
    )


def _prepare(store: BlobStore, run: Run, place: Place) -> _Prepared:
    """Write the tree, and nothing else, into a fresh directory."""
    for directory in (place.base.parent, place.base, place.root, place.base / "home", place.base / "tmp"):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with opened_root(place.root) as root:
        materialise(Trees(store), run.tree_in, root)
    environ = _environment(place.base, run.check, run.caller)
    cwd = place.root / (Path(shown(given(run.check.command.cwd, what="cwd"))) if run.check.command.cwd else "")
    if not cwd.is_dir() or not cwd.resolve().is_relative_to(place.root.resolve()):
        raise Invalid(
            "check.invalid",
            f"{run.check.command.cwd!r} is no directory of the tree",
            remedy="Correct cwd of the check.",
        )
    limits = Limits(wall_s=run.check.command.timeout_s)
    command = Command(tuple(run.check.command.argv), cwd, environ, limits)
    command.program()
    return _Prepared(place, command, _outside(store, run.check, environ))


def _unstarted(store: BlobStore, run: Run, place: Place) -> Mapping[str, Any]:
    return _outside(store, run.check, _environment(place.base, run.check, run.caller))


def _outside(_store: BlobStore, check: Check, environ: Mapping[str, str]) -> Mapping[str, Any]:
    """Return what is known of the environment: the machine, the program and every variable."""
    private = dict.fromkeys(("HOME", "TMPDIR"), _PRIVATE)
    return {
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()),
        "program": _program(check.command.argv[0], environ),
        "variables": {**environ, **private},
    }


def _program(name: str, environ: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the path and digest of a program outside the tree; one inside is part of the tree's id."""
    if "/" in name and not name.startswith("/"):
        return {"path": name, "sha256": None}
    try:
        path = Command((name,), Path("/"), environ).program()
    except Invalid:
        return {"path": name, "sha256": None}
    digest = hashlib.sha256()
    with path.open("rb") as source:
        while chunk := source.read(2**20):
            digest.update(chunk)
    return {"path": str(path), "sha256": digest.hexdigest()}


def _digest(facts: Mapping[str, Any]) -> str:
    return sha256_hex(canonical_json(facts))


def _seal(
    store: BlobStore,
    home: Home,
    run: Run,
    place: Place,
    result: Exit | None,
    facts: Mapping[str, Any],
    error: AgentsteadError | None,
) -> Sealed:
    """Read the tree back, store the output, and seal the document of the run."""
    key, secret = home.key(RECEIPT_KEY), home.key(KEYED_DIGESTS)
    tree_out = run.tree_in
    if result is not None:
        with opened_root(place.root) as root:
            tree_out = walk(store, root, cache=StatCache(), secret_key=secret).tree
    status = _status(run.check, result)
    streams = [_kept(store, home.redactor, stream) for stream in (_stream(result, 0), _stream(result, 1))]
    exit_facts = _exit_facts(result, error)
    environment_of_run = _redacted(home.redactor, facts)
    document = {
        "schema": "agentstead.receipt/1",
        "receipt_id": run.receipt_id,
        "purpose": "evidence",
        "check_name": run.check.name,
        "check_digest": run.check.digest,
        "check": _redacted(home.redactor, body_of(run.check.command)),
        "tree_in": run.tree_in,
        "tree_out": tree_out,
        "changed": _changed(store, run.tree_in, tree_out),
        "status": status,
        "exit": exit_facts,
        "streams": {name: facts for name, (_, facts) in zip(("stdout", "stderr"), streams, strict=True)},
        "tests": None,
        "metrics": {},
        "controls": {},
        "isolation": ISOLATION,
        "enforced": dict(ENFORCED_UNKNOWN),
        "environment": environment_of_run,
        "environment_digest": _digest(facts),
        "unpinned_inputs": ["the file system outside the tree", "the network"],
        "process_id": result.process_id if result else None,
        "at_us": home.clock.now_us(),
    }
    sealed = canonical_json(document)
    return Sealed(
        status=status,
        tree_out=tree_out,
        environment_digest=_digest(facts),
        isolation=ISOLATION,
        enforced=ENFORCED_UNKNOWN,
        exit=exit_facts,
        body=store.put(sealed),
        stdout=streams[0][0],
        stderr=streams[1][0],
        mac=receipts.mac_of(key, sealed),
    )


def _status(check: Check, result: Exit | None) -> Status:
    if result is None or result.reason in ("stopped", "output_limit"):
        return "error"
    if result.reason == "wall_limit":
        return "timeout"
    return "pass" if result.exit_code in check.command.expect_exit else "fail"


def _exit_facts(result: Exit | None, error: AgentsteadError | None) -> dict[str, Any]:
    """Return what was measured; what nobody measured is null, never 0."""
    if result is None:
        return {"reason": "not_started", "error": error.code if error else None, "code": None, "signal": None}
    return {
        "reason": result.reason,
        "code": result.exit_code,
        "signal": result.signal,
        "wall_us": result.wall_us,
        "cpu_user_us": result.cpu_user_us if result.usage_complete else None,
        "cpu_system_us": result.cpu_system_us if result.usage_complete else None,
        "peak_rss_bytes": result.peak_rss_bytes,
        "orphans_killed": result.orphans_killed,
    }


def _stream(result: Exit | None, which: int) -> Stream:
    if result is None:
        return Stream(sha256_hex(b""), 0, b"")
    return (result.stdout, result.stderr)[which]


def _kept(store: BlobStore, redactor: Redactor, stream: Stream) -> tuple[str, dict[str, Any]]:
    """Store the kept part of an output without secrets; its digest is that of all bytes as they came."""
    text = redactor.text(stream.kept.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    kept = store.put(text)
    facts = {"sha256": stream.sha256, "bytes": stream.size_bytes, "truncated": stream.truncated, "kept": kept}
    return kept, {**facts, "redacted": text != stream.kept}


def _changed(store: BlobStore, tree_in: str, tree_out: str) -> Sequence[str]:
    found = [shown(change.path) for change in changes(Trees(store), tree_in, tree_out)]
    more = len(found) - _CHANGED_SHOWN
    return found if more <= 0 else [*found[:_CHANGED_SHOWN], f"(and {more} more)"]


def _redacted(redactor: Redactor, value: Any) -> Any:
    """Return a JSON value with every text in it redacted."""
    if isinstance(value, str):
        return redactor.text(value)
    if isinstance(value, Mapping):
        return {name: _redacted(redactor, each) for name, each in value.items()}
    return [_redacted(redactor, each) for each in value] if isinstance(value, list | tuple) else value
