"""The redactor that the state library, the log and the tracer are given."""

import os
import threading
from collections.abc import Mapping
from pathlib import Path

from agentstead.policy.redact.encodings import LEAST_CHARS, forms_of
from agentstead.policy.redact.members import replace_members
from agentstead.policy.redact.needles import Needles
from agentstead.policy.redact.shapes import HEADERS, SHAPES, replace_shapes

VARIABLE = "AGENTSTEAD_SECRET_"
_FILE = "_FILE"
_MOST_BYTES = 65_536


class Redactor:
    """Take registered secrets and what has the shape of one out of text; safe to use from any thread."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._lock = threading.Lock()
        self._marks: dict[str, str] = {}
        self._needles = Needles({})
        self._register_all(dict(_from_environment(os.environ if environ is None else environ)))

    def register(self, name: str, value: str) -> bool:
        """Have every form of `value` replaced by `[redacted:name]` from now on.

        Returns false for a value under 8 characters, which would take out words of ordinary text.
        """
        return self._register_all({name: value})

    def text(self, text: str) -> str:
        """Return `text` with every secret replaced by `[redacted:NAME]` or `[redacted:kind]`."""
        text = self._needles.replace(text)
        text = replace_shapes(text, SHAPES, searched=text)
        lower = text.lower()
        if len(lower) != len(text):  # a letter whose lower case is longer: keep places equal
            lower = "".join(char.lower() if len(char.lower()) == 1 else char for char in text)
        text = replace_members(text, lower=lower)
        return replace_shapes(text, HEADERS, searched=lower)

    def _register_all(self, values: Mapping[str, str]) -> bool:
        usable = {name: value for name, value in values.items() if len(value) >= LEAST_CHARS}
        with self._lock:
            marks = dict(self._marks)
            for name, value in usable.items():
                for form in forms_of(value):
                    marks.setdefault(form, f"[redacted:{name}]")
            self._marks, self._needles = marks, Needles(marks)
        return len(usable) == len(values)


def _from_environment(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for variable, value in environ.items():
        if not variable.startswith(VARIABLE):
            continue
        name = variable.removeprefix(VARIABLE).lower()
        if variable.endswith(_FILE):
            name, value = name.removesuffix(_FILE.lower()), _contents(value)
        found.append((name.replace("_", "-") or "secret", value))
    return found


def _contents(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            return file.read(_MOST_BYTES).decode("utf-8", "replace").strip("\r\n")
    except (OSError, ValueError):
        return ""
