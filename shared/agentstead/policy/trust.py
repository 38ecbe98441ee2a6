"""The one record of trust: in hosts, and in exact bytes of a workspace. A person records it; servers ask."""

from dataclasses import dataclass

from agentstead.policy.machines import TrustKind, TrustMode
from agentstead.state import Invalid, NotFound, Reading, Tx

_FIND = """
SELECT mode
FROM policy_trust
WHERE workspace_id = :workspace_id
    AND kind = :kind
    AND sha256 = :sha256
    AND revoked_at IS NULL
LIMIT 1
"""
_LIST = """
SELECT path, sha256, mode, root_device_inode
FROM policy_trust
WHERE workspace_id = :workspace_id
    AND kind = :kind
    AND revoked_at IS NULL
ORDER BY path, trusted_at
"""
_FIND_HOST = """
SELECT mode
FROM policy_trust
WHERE workspace_id = ''
    AND kind = 'host'
    AND path = :path
    AND sha256 = ''
    AND revoked_at IS NULL
"""
_PUT = """
INSERT INTO policy_trust
    (workspace_id, kind, path, sha256, mode, root_device_inode, principal, trusted_at, revoked_at)
VALUES (:workspace_id, :kind, :path, :sha256, :mode, :root_device_inode, :principal, :now, NULL)
ON CONFLICT (workspace_id, kind, path, sha256) DO UPDATE
SET mode = excluded.mode,
    root_device_inode = excluded.root_device_inode,
    principal = excluded.principal,
    trusted_at = excluded.trusted_at,
    revoked_at = NULL
"""
_END = """
UPDATE policy_trust
SET revoked_at = :now
WHERE workspace_id = :workspace_id
    AND kind = :kind
    AND path = :path
    AND revoked_at IS NULL
"""


@dataclass(frozen=True, slots=True)
class TrustedBytes:
    """Bytes of one path that a person trusts, and the folder (device and inode of its root) that it was said of."""

    path: str
    sha256: str
    mode: TrustMode
    root_device_inode: str


def trusted(reading: Reading, workspace_id: str, kind: TrustKind, digest: str) -> bool:
    """Tell whether a person trusts exactly these bytes in this workspace; '' is never trusted."""
    if not digest:
        return False
    return reading.value(_FIND, workspace_id=workspace_id, kind=kind, sha256=digest) is not None


def trusted_bytes(reading: Reading, workspace_id: str, kind: TrustKind) -> list[TrustedBytes]:
    """Return everything of one kind that a person trusts in a workspace, by path, the latest last."""
    return [TrustedBytes(**dict(row)) for row in reading.all(_LIST, workspace_id=workspace_id, kind=kind)]


def host_trusted(reading: Reading, client_name: str, *, forms: bool = True) -> bool:
    """Tell whether a person trusts the host of this client name: for its forms, or (`forms=False`) for its own word."""
    mode = reading.value(_FIND_HOST, path=client_name) if client_name else None
    return mode is not None and (forms or mode == "all")


def trust_host(tx: Tx, client_name: str, *, forms_only: bool = False) -> None:
    """Trust a host: its forms are a person's answers, and unless `forms_only` its word is too."""
    if not client_name:
        raise Invalid("tool.invalid_arguments", "A host is trusted under its client name.", remedy="Give the name.")
    _put(tx, workspace_id="", kind="host", path=client_name, sha256="", mode="forms" if forms_only else "all")


def trust_bytes(
    tx: Tx,
    workspace_id: str,
    kind: TrustKind,
    *,
    path: str,
    digest: str,
    mode: TrustMode = "",
    root_device_inode: str = "",
) -> None:
    """Trust exact bytes of one path in a workspace; other bytes at that path stay untrusted."""
    if kind == "host" or not workspace_id or not digest:
        raise Invalid(
            "tool.invalid_arguments",
            f"Trust of kind {kind} needs a workspace and a digest.",
            remedy="Name the workspace and the file.",
        )
    _put(
        tx,
        workspace_id=workspace_id,
        kind=kind,
        path=path,
        sha256=digest,
        mode=mode,
        root_device_inode=root_device_inode,
    )


def untrust(tx: Tx, workspace_id: str, kind: TrustKind, *, path: str) -> int:
    """End the trust in a path (or, for kind `host`, in a client name); raises `NotFound` where there was none."""
    ended = tx.execute(_END, workspace_id=workspace_id, kind=kind, path=path, now=tx.now_us)
    if not ended:
        raise NotFound("ref.not_found", f"No trust in {kind} {path!r} is recorded.", remedy="Nothing needs to be done.")
    tx.journal("permissions.trust.ended", subject=path, workspace=workspace_id, body={"kind": kind, "path": path})
    return ended


def _put(tx: Tx, *, root_device_inode: str = "", **row: str) -> None:
    tx.execute(_PUT, **row, root_device_inode=root_device_inode, principal=tx.principal, now=tx.now_us)
    body = {name: row[name] for name in ("kind", "path", "sha256", "mode")}
    tx.journal("permissions.trust.recorded", subject=row["path"], workspace=row["workspace_id"], body=body)
