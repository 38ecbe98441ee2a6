"""Why an envelope is refused: the wire's closed set of reasons, and the local codes that refine them."""

from typing import Final, Literal, get_args

Reason = Literal[
    "malformed",
    "expired",
    "duplicate",
    "unsupported_kind",
    "unsupported_profile",
    "verification_failed",
    "not_target",
    "not_found",
    "busy",
    "internal",
    "work_closed",
    "work_container_mismatch",
    "invalid_surface",
    "conversation_not_found",
    "legacy_field_rejected",
]
# Local codes stay in results and records; none ever travels in a receipt.
LocalCode = Literal[
    "envelope_too_large",
    "not_json",
    "duplicate_key",
    "integer_range",
    "too_deep",
    "not_object",
    "missing_field",
    "bad_type",
    "bad_identifier",
    "bad_timestamp",
    "bad_body",
    "digest_mismatch",
    "secret_material",
    "proof_invalid",
    "proof_stripped",
    "policy_denied",
    "reserved_peer",
    "peering_denied",
    "id_conflict",
    "direct_room_collision",
    "work_not_found",
    "work_actor_not_allowed",
    "invalid_transition",
]

REASONS: Final[tuple[Reason, ...]] = get_args(Reason)
LOCAL_CODES: Final[tuple[LocalCode, ...]] = get_args(LocalCode)


class Refused(Exception):
    """The envelope has no effect; `reason` is the wire's code, `local` refines it, `pointer` shows the place.

    Neither the message nor any field repeats content of the envelope.
    """

    def __init__(self, reason: Reason, local: LocalCode | None = None, *, what: str, pointer: str = "") -> None:
        super().__init__(reason, local, what, pointer)
        self.reason = reason
        self.local = local
        self.what = what
        self.pointer = pointer

    def __str__(self) -> str:
        code = f"{self.reason}/{self.local}" if self.local else self.reason
        place = f" at {self.pointer}" if self.pointer else ""
        return f"{code}{place}: {self.what}"


def pointer_of(path: list[str | int] | tuple[str | int, ...]) -> str:
    """Return the JSON Pointer (RFC 6901) of a path of members and indexes."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
