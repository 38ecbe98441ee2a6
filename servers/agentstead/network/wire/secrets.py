"""Finding secret material in what a sender wrote: by the name of a member, or by the form of a string."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from agentstead.network.wire.refusal import Refused, pointer_of

SCANNED: Final = ("body", "proof", "ext")
SECRET_NAMES: Final = frozenset(
    {
        "apikey",
        "accesstoken",
        "refreshtoken",
        "mcpauthtoken",
        "oauthcode",
        "authorizationcode",
        "codeverifier",
        "pkceverifier",
        "secretbinding",
        "clientsecret",
        "authorization",
        "password",
        "secret",
        "token",
        "claimtoken",
    }
)
_DROPPED: Final = str.maketrans("", "", "_-.")

IsSecret = Callable[[str], bool]


def refuse_secrets(fields: Mapping[str, Any], is_secret: IsSecret) -> None:
    """Raise `Refused` with `secret_material` and a JSON Pointer; the secret itself is never repeated."""
    for name in SCANNED:
        for path, key, value in _walk(fields.get(name), (name,)):
            if is_secret(key):
                # A member's name is the secret here, so the pointer ends at the object that holds it.
                raise _found(path[:-1])
            if _is_named_secret(key, value) or (isinstance(value, str) and is_secret(value)):
                raise _found(path)


def _found(path: tuple[str | int, ...]) -> Refused:
    what = "The message carries what looks like a secret."
    return Refused("malformed", "secret_material", what=what, pointer=pointer_of(path))


def _is_named_secret(key: str, value: Any) -> bool:
    name = key.lower().translate(_DROPPED)
    return name in SECRET_NAMES and value not in (None, "", [], {})


def _walk(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str, Any]]:
    """Yield (path, member name or '', value) of everything inside `value`."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield (*path, key), key, item
            yield from _walk(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield (*path, index), "", item
            yield from _walk(item, (*path, index))
