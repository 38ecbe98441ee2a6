"""Looking up anything with an id, whichever package owns it, without importing that package."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agentstead.state.errors import NotFound
from agentstead.state.transaction import Reading


@dataclass(frozen=True, slots=True)
class RefFacts:
    """What others may know of a reference: that it exists, where, its state, and a few facts."""

    exists: bool
    workspace: str = ""
    state: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)


Look = Callable[[Reading, str], RefFacts | None]


class References:
    """The owners of id prefixes."""

    def __init__(self) -> None:
        self._looks: dict[str, Look] = {}

    def register(self, prefix: str, look: Look) -> None:
        """Let `look` answer for ids that begin with `prefix`; each prefix has one owner."""
        if self._looks.setdefault(prefix, look) is not look:
            raise ValueError(f"prefix {prefix} has two owners")

    def look(self, reading: Reading, ref: str) -> RefFacts:
        """Return the facts of `ref`; `exists` is false for an id that its owner does not know.

        Raises `NotFound` with `ref.not_found` for a prefix that nobody owns.
        """
        look = self._looks.get(ref[:4])
        if look is None:
            raise NotFound(
                "ref.not_found",
                f"No kind of object has ids like {ref[:40]!r}.",
                remedy="Use an id that an Agentstead tool returned.",
            )
        return look(reading, ref) or RefFacts(exists=False)
