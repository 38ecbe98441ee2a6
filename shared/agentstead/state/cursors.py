"""Opaque list cursors: signed by the home, and bound to the filters that they were made for."""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

from agentstead.state.canonical import canonical_json
from agentstead.state.errors import Invalid

_SIGNATURE_BYTES = 12
_FILTER_BYTES = 8


class Cursors:
    """Seal and open cursors with the home's key (32 bytes)."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def seal(self, basis: Mapping[str, Any], filters: Mapping[str, Any]) -> str:
        """Return the cursor that goes on behind `basis` under the same filters."""
        body = _filter_digest(filters) + json.dumps(dict(basis), separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(self._sign(body) + body).rstrip(b"=").decode()

    def open(self, cursor: str, filters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the basis of a cursor.

        Raises `Invalid`: `cursor.invalid` for a damaged one, `cursor.foreign` for one of other filters.
        """
        body = self._verified(cursor)
        if body[:_FILTER_BYTES] != _filter_digest(filters):
            raise Invalid(
                "cursor.foreign",
                "This cursor was made for other filters.",
                remedy="Repeat the call without `cursor`, or with the filters it came from.",
            )
        basis: dict[str, Any] = json.loads(body[_FILTER_BYTES:])
        return basis

    def _verified(self, cursor: str) -> bytes:
        try:
            raw = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raw = b""
        signature, body = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, self._sign(body)) or len(body) <= _FILTER_BYTES:
            raise Invalid(
                "cursor.invalid", "This is no cursor of this home.", remedy="Repeat the call without `cursor`."
            )
        return body

    def _sign(self, body: bytes) -> bytes:
        return hmac.digest(self._key, body, "sha256")[:_SIGNATURE_BYTES]


def _filter_digest(filters: Mapping[str, Any]) -> bytes:
    return hashlib.sha256(canonical_json(dict(filters))).digest()[:_FILTER_BYTES]
