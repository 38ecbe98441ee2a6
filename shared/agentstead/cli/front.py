"""From a command line to one verb: load what it names, let typer read it, and end with a code, whatever happens."""

import os
from collections.abc import Sequence
from pathlib import Path

import typer

from agentstead.cli import leaves
from agentstead.cli.exits import FAILED, INTERRUPTED, USAGE
from agentstead.cli.routes import NOUNS, VERBS
from agentstead.cli.terminal import Terminal
from agentstead.cli.tree import build, named_words
from agentstead.coordinator.places import home_path
from agentstead.state import Invalid

_COMPLETING = "_AGENTSTEAD_COMPLETE"
_TRACE = "AGENTSTEAD_TRACEBACK"


def run(arguments: Sequence[str]) -> int:
    """Run a command line; usage errors, interrupts and broken pipes end in the documented way."""
    words = _completed_words() if _COMPLETING in os.environ else named_words(arguments)
    terminal = Terminal(Path(home_path()), form="json" if _wants_json(arguments) else "text")
    command = typer.main.get_command(build(_nouns(), _leaves(words), home=_use_home))
    try:
        code = command.main(list(arguments), prog_name="agentstead", standalone_mode=False)
    except typer.TyperException as error:
        return terminal.fail(_usage(error)) or USAGE
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except Exception as error:
        if os.environ.get(_TRACE):
            raise
        terminal.fault(error, f"a fault of Agentstead; {_TRACE}=1 shows where it happened")
        return FAILED
    return code if isinstance(code, int) else 0


def _leaves(words: Sequence[str]) -> list[leaves.Leaf]:
    noun = words[0] if words else ""
    return leaves.leaves_of(noun) if noun else []


def _nouns() -> dict[str, str]:
    """Return every first word with its line of help, those of other people's servers too."""
    return {verb.path[0]: verb.help for verb in VERBS if len(verb.path) == 1 and not verb.hidden} | {
        name: noun.help for name, noun in {**NOUNS, **leaves.foreign_nouns()}.items()
    }


def _use_home(named: Path | None) -> Path:
    """Return the home that is meant, and let all that this process starts mean the same."""
    path = home_path(str(named or ""))
    os.environ["AGENTSTEAD_HOME"] = path
    return Path(path)


def _usage(error: typer.TyperException) -> Invalid:
    context = getattr(error, "ctx", None)
    at = context.command_path if context is not None else "agentstead"
    what = " ".join(str(getattr(error, "format_message", error.__str__)()).split())
    return Invalid("tool.invalid_arguments", what, remedy=f"Try '{at} --help'.")


def _wants_json(arguments: Sequence[str]) -> bool:
    pairs = zip(arguments, [*arguments[1:], ""], strict=False)
    return any(
        (name in {"-o", "--output"} and value == "json") or name in {"-ojson", "--output=json"} for name, value in pairs
    )


def _completed_words() -> list[str]:
    typed = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
    words = named_words(typed.split()[1:])
    return words if len(words) > 1 or typed.endswith((" ", "\n")) else []
