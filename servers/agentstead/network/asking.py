"""Who asks and from where: the caller's own peer that a call means, found in one snapshot, with nothing registered."""

from dataclasses import dataclass
from pathlib import Path

from agentstead.identity import Principal, registry
from agentstead.kit import Call
from agentstead.network.peers import Peer, choose, usable_peers
from agentstead.state import Reading

WORKSPACE_VARIABLE = "AGENTSTEAD_WORKSPACE"


@dataclass(frozen=True, slots=True)
class Asker:
    """A caller, the workspace that its environment names ('' for none), and its directory."""

    principal: Principal
    named: str
    cwd: Path | None

    @classmethod
    def of(cls, call: Call) -> "Asker":
        """Return who makes a call."""
        return cls(call.principal, call.environ.get(WORKSPACE_VARIABLE, ""), call.cwd)

    def workspace(self, reading: Reading) -> str | None:
        """Return the registered workspace that the caller is in, or None."""
        found = registry.named(reading, self.named) if self.named else None
        if found is None and self.cwd is not None:
            found = registry.enclosing(reading, self.cwd.resolve())
        return None if found is None else found.id

    def acting(self, reading: Reading, *, peer: str | None, channel: str | None) -> list[Peer]:
        """Return the one identity that a call means, with a row for each channel that it is in.

        The caller's workspace decides where an identity stands in several. Raises what `usable_peers` and `choose` do.
        """
        fitting = usable_peers(reading, self.principal, peer=peer, channel=channel)
        if len({each.workspace for each in fitting}) > 1:
            here = self.workspace(reading)
            fitting = [each for each in fitting if each.workspace == here] or fitting
        return choose(fitting)
