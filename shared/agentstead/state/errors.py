"""The one tree of errors that callers can meet.

AgentsteadError
├── NotFound        look the reference up again
├── Conflict        read the present value, then decide
├── LeaseLost       stop: somebody else holds the work now
├── Denied          ask a person, or do something else
├── PendingAnswer   a person must answer first; retry the same call afterwards
├── Exhausted       a stated limit is used up
├── Invalid         correct the input
└── Unavailable     retry later, or repair what is named
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class AgentsteadError(Exception):
    """Carry a stable code, what happened, and what to do next.

    `code` is `noun.reason`, `details` is JSON-able and holds no secret.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        remedy: str = "",
        retryable: bool = False,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.remedy = remedy
        self.retryable = retryable
        self.details = details if details is not None else _NOTHING

    def __str__(self) -> str:
        return f"{self.code}: {self.message} {self.remedy}".rstrip()

    def as_dict(self) -> dict[str, Any]:
        """Return the structure that faces publish: code, message, remedy, retryable, details."""
        return {
            "code": self.code,
            "message": self.message,
            "remedy": self.remedy,
            "retryable": self.retryable,
            "details": dict(self.details),
        }


class NotFound(AgentsteadError):
    """Nothing has that reference."""


class Conflict(AgentsteadError):
    """The state moved, or the same key was used for something else."""


class LeaseLost(AgentsteadError):
    """The right to finish this work has passed to somebody else."""


class Denied(AgentsteadError):
    """A rule or a reserved right refuses the call."""


class PendingAnswer(AgentsteadError):
    """A question to a person is stored; its id is in `details`."""


class Exhausted(AgentsteadError):
    """A limit is used up."""


class Invalid(AgentsteadError):
    """The input breaks a stated rule."""


class Unavailable(AgentsteadError):
    """Something that the call needs cannot be reached now."""
