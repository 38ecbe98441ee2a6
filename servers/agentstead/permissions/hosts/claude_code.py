"""The answer that `claude --permission-prompt-tool` reads: one JSON object, allow or deny, nothing else ever.

`updatedInput` is always the input as it came; grants stay here, so `updatedPermissions` is never sent.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal

Classification = Literal["user_temporary", "user_permanent", "user_reject"]


def allow(
    tool_input: Mapping[str, Any], *, tool_use_id: str | None, classification: Classification | None = None
) -> str:
    """Return the text that lets the call go with exactly this input."""
    return _text({"behavior": "allow", "updatedInput": dict(tool_input)}, tool_use_id, classification)


def deny(message: str, *, tool_use_id: str | None = None, classification: Classification | None = None) -> str:
    """Return the text that stops the call and tells the model why; the host's turn goes on."""
    return _text({"behavior": "deny", "message": message, "interrupt": False}, tool_use_id, classification)


def _text(answer: dict[str, Any], tool_use_id: str | None, classification: Classification | None) -> str:
    if tool_use_id is not None:
        answer["toolUseID"] = tool_use_id
    if classification is not None:
        answer["decisionClassification"] = classification
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
