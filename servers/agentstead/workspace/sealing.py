"""Sealing a run: its tree read back, its output stored without secrets, and one document that only this home makes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agentstead.blobs import BlobStore
from agentstead.kit import Home
from agentstead.policy import Redactor
from agentstead.runner import ENFORCED_UNKNOWN, ISOLATION, Exit, Stream
from agentstead.state import AgentsteadError, canonical_json, sha256_hex
from agentstead.workspace import receipts
from agentstead.workspace.beneath import opened_root
from agentstead.workspace.capturing import KEYED_DIGESTS
from agentstead.workspace.changes import changes
from agentstead.workspace.checks import Check, body_of
from agentstead.workspace.contents import Trees
from agentstead.workspace.paths import shown
from agentstead.workspace.places import Place
from agentstead.workspace.receipts import Sealed, Status
from agentstead.workspace.statcache import StatCache
from agentstead.workspace.surroundings import digest_of_facts
from agentstead.workspace.walk import walk

RECEIPT_KEY: Final = "receipts"
_CHANGED_SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class Run:
    """One run that was asked for: the check, the exact tree, and what is known of the caller's environment."""

    receipt_id: str
    workspace_id: str
    check: Check
    tree_in: str
    caller: Mapping[str, str]


def seal_run(
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
        "environment_digest": digest_of_facts(facts),
        "unpinned_inputs": ["the file system outside the tree", "the network"],
        "process_id": result.process_id if result else None,
        "at_us": home.clock.now_us(),
    }
    sealed = canonical_json(document)
    return Sealed(
        status=status,
        tree_out=tree_out,
        environment_digest=digest_of_facts(facts),
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
