"""Taking secrets out of text before it is stored, logged or traced: registered values first, known shapes next."""

from agentstead.policy.redact.redactor import Redactor

__all__ = ["Redactor"]
