"""Lease strings: `<subject>.<fence>.<secret>`; only their SHA-256 is stored."""

import hashlib
import hmac
import os
from collections.abc import Callable
from dataclasses import dataclass

from agentstead.state.errors import LeaseLost

_SECRET_BYTES = 16


@dataclass(frozen=True, slots=True)
class Lease:
    """A parsed lease: what it is on, its fence, and the hash to compare with the stored one."""

    subject: str
    fence: int
    sha256: str

    def matches(self, stored_sha256: str | None, fence: int) -> bool:
        """Tell whether this is the lease that the row holds now."""
        return self.fence == fence and stored_sha256 is not None and hmac.compare_digest(self.sha256, stored_sha256)


def lease_mint(subject: str, fence: int, *, randomness: Callable[[int], bytes] = os.urandom) -> tuple[str, str]:
    """Return a fresh lease string and the hash to store; the string is shown once."""
    text = f"{subject}.{fence}.{randomness(_SECRET_BYTES).hex()}"
    return text, _hash(text)


def lease_parse(text: str) -> Lease:
    """Return the parts of a lease string; raises `LeaseLost` with `run.lease_lost` for anything else."""
    subject, _, rest = text.partition(".")
    fence, _, secret = rest.partition(".")
    if not subject or not fence.isascii() or not fence.isdigit() or len(secret) != 2 * _SECRET_BYTES:
        raise LeaseLost("run.lease_lost", "This is no lease of this home.", remedy="Claim the work again.")
    return Lease(subject, int(fence), _hash(text))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
