"""What would let a call through: said only where it is true, the narrowest way first."""

from collections.abc import Mapping, Sequence
from typing import Any

Access = Mapping[str, Any]


def ways(verdict: str, accesses: Sequence[Access], *, approval_id: str = "") -> list[str]:
    """Return what a person could do so that the same call passes; nothing where it passes already."""
    if verdict == "allow":
        return []
    if verdict == "deny":
        found = [_against(access) for access in accesses if access["verdict"] == "deny"]
        return found or ["A person's standing no: it ends by itself, or they revoke it (grant_list shows it)."]
    once = f"A person answers it: agentstead answer {approval_id}." if approval_id else "Call it: a person is asked."
    return [once, *(_for_good(access) for access in accesses if access["verdict"] == "ask")]


def _against(access: Access) -> str:
    denying = _rules(access, "deny")
    if denying:
        return f"No grant lifts a deny rule: a person removes or narrows {denying}."
    return f"No grant lifts a denied default: a person adds a rule that allows `{access['text']}`, or loosens the axis."


def _for_good(access: Access) -> str:
    asking = ", ".join(filter(None, (_rules(access, "ask"), _rules(access, "deny"))))
    if asking:
        return f"For good: a person removes or narrows {asking}."
    if "layer.broken" in access["reasons"]:
        return "For good: a person mends the policy file that permission_status names."
    kind, _, name = access["text"].partition(" ")
    server, _, tool = name.partition("/")
    selector = f'mcp = {{ server = "{server}", tool = "{tool}" }}' if kind == "mcp" else f'action = ["{name}"]'
    return f'For good: a person adds to policy.d a [[rule]] with effect = "allow" and {selector}.'


def _rules(access: Access, effect: str) -> str:
    found = (rule for rule in access["rules"] if rule["effect"] == effect)
    return ", ".join(f"rule {rule['id']} ({rule['file']}:{rule['line']})" for rule in found)
