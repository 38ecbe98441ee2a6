"""How one invocation talks: results to standard output as text or JSON, errors to standard error, and its exit code."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TextIO

from agentstead.cli.exits import exit_code
from agentstead.cli.plain import clean
from agentstead.cli.rendering import plain, print_rich
from agentstead.state import AgentsteadError, Redactor
from agentstead.state.ports import redact_value

Form = Literal["text", "json"]


@dataclass(frozen=True, slots=True)
class Terminal:
    """The streams and the form of one invocation, with the home and the workspace that it names."""

    home: Path
    workspace: str | None = None
    form: Form = "text"
    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)

    @property
    def is_json(self) -> bool:
        """Say whether results are wanted as JSON."""
        return self.form == "json"

    @property
    def at_terminal(self) -> bool:
        """Say whether a person can be asked: input and output are a terminal."""
        return sys.stdin.isatty() and self.out.isatty()

    def show(self, result: Mapping[str, Any]) -> None:
        """Print a result: one line of JSON, or text that fits the terminal."""
        if self.is_json:
            self.line(compact(result))
            return
        if self.out.isatty():
            print_rich(result, self.out, colour=coloured(self.out))
        else:
            self.line(plain(result))

    def line(self, text: str) -> None:
        """Print a line as it is."""
        print(text, file=self.out, flush=True)

    def say(self, text: str) -> None:
        """Print a line for a person; nothing where JSON is wanted."""
        if not self.is_json:
            self.line(clean(text))

    def note(self, text: str) -> None:
        """Print a line beside the result, to standard error."""
        print(clean(text), file=self.err, flush=True)

    def fail(self, error: AgentsteadError) -> int:
        """Print an error without the secrets that it may repeat, and return the exit code that goes with it."""
        redactor = _redactor()
        if self.is_json:
            self.line(compact({"error": redact_value(redactor, error.as_dict())}))
        else:
            self.note(redactor.text(str(error)))
        return exit_code(error)

    def fault(self, error: Exception, hint: str) -> None:
        """Print a fault of ours as one line."""
        self.note(f"{type(error).__name__}: {_redactor().text(str(error))} ({hint})")


def _redactor() -> Redactor:
    from agentstead import policy  # an error may wait for it, a result may not

    return policy.Redactor()


def compact(value: Mapping[str, Any]) -> str:
    """Return one line of JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def coloured(stream: TextIO) -> bool:
    """Say whether a stream takes colours: a terminal, without NO_COLOR, that is not a dumb one."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
