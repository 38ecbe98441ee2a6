"""The dials of a policy: what a call gets by default. Each layer may set one; the strictest set value holds.

Of the specified three this version judges `risk`; a file that sets another one is refused, never half obeyed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Literal, get_args

from agentstead.policy.model import Risk, Verdict

RiskAxis = Literal["deny", "ask-all", "ask-writes", "auto"]

# strictest first
AXES: Mapping[str, tuple[str, ...]] = {
    "risk": get_args(RiskAxis),
}

_ASKED_UNDER_AUTO: frozenset[Risk] = frozenset({"destructive", "external", "secret"})


@dataclass(frozen=True, slots=True)
class Axes:
    """What one layer sets; None where it leaves an axis alone."""

    risk: RiskAxis | None = None


DEFAULT = Axes("ask-writes")


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
