"""The three dials of a policy: the default by class, how far outside the roots, and how far into the network.

Each layer may set any of them; the strictest set value holds.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Literal, get_args

from agentstead.policy.model import Risk, Verdict

RiskAxis = Literal["deny", "ask-all", "ask-writes", "auto"]
ReachAxis = Literal["workspace", "listed", "any"]
NetworkAxis = Literal["off", "listed", "open"]

# strictest first
AXES: Mapping[str, tuple[str, ...]] = {
    "risk": get_args(RiskAxis),
    "reach": get_args(ReachAxis),
    "network": get_args(NetworkAxis),
}

_ASKED_UNDER_AUTO: frozenset[Risk] = frozenset({"destructive", "external", "secret"})


@dataclass(frozen=True, slots=True)
class Axes:
    """What one layer sets; None where it leaves an axis alone."""

    risk: RiskAxis | None = None
    reach: ReachAxis | None = None
    network: NetworkAxis | None = None


DEFAULT = Axes("ask-writes", "listed", "listed")


def strictest_axes(layers: Iterable[Axes], *, default: Axes = DEFAULT) -> Axes:
    """Return the strictest set value of each axis; `default` where no layer sets one."""
    found = list(layers)
    chosen = {}
    for field in fields(Axes):
        values = [value for axes in found if (value := getattr(axes, field.name)) is not None]
        order = AXES[field.name]
        chosen[field.name] = min(values, key=order.index) if values else getattr(default, field.name)
    return Axes(**chosen)


def default_verdict(axis: RiskAxis, risk: Risk) -> Verdict:
    """Return what an access of this class gets when no rule speaks."""
    match axis:
        case "deny":
            return "deny"
        case "ask-all":
            return "ask"
        case "ask-writes":
            return "allow" if risk == "read" else "ask"
        case "auto":
            return "ask" if risk in _ASKED_UNDER_AUTO else "allow"
