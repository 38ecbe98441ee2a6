"""Prefixed, sortable ids: `ses_` and a ULID."""

import os
import re
from collections.abc import Callable

from ulid import ULID

from agentstead.state.clock import Clock

_ID = re.compile(r"^[a-z]{3}_[0-9A-HJKMNP-TV-Z]{26}$")

Randomness = Callable[[int], bytes]


def new_id(prefix: str, clock: Clock, *, randomness: Randomness = os.urandom) -> str:
    """Return `prefix` and a ULID of the clock's millisecond and 80 random bits."""
    milliseconds = clock.now_us() // 1000
    return prefix + str(ULID(milliseconds.to_bytes(6, "big") + randomness(10)))


def is_id(text: str, prefix: str) -> bool:
    """Tell whether `text` has the form of an id with this prefix."""
    return text.startswith(prefix) and _ID.match(text) is not None
