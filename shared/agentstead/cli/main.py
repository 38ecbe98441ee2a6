"""The console script. `serve` and `--version` are taken before anything heavy is imported: a host waits for them."""

import os
import sys
from collections.abc import Sequence

_TAKES_VALUE = ("--home", "--workspace", "--output", "-o")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    words, ahead = _first_word(given)
    if words[:1] in (["--version"], ["-V"]):
        return _version()
    if words[:1] == ["serve"]:
        from agentstead.coordinator.launch import main as launch

        _use_home(ahead)
        return launch(words)
    if not given and "_AGENTSTEAD_COMPLETE" not in os.environ:
        from agentstead.cli.overview import overview

        return overview()
    from agentstead.cli.front import run

    return run(given)


def _first_word(given: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Split off the common options that stand before the first word."""
    ahead: dict[str, str] = {}
    place = 0
    while place < len(given) and given[place].startswith("-"):
        name, equals, value = given[place].partition("=")
        if name not in _TAKES_VALUE:
            break
        if not equals:
            place += 1
            value = given[place] if place < len(given) else ""
        ahead[name] = value
        place += 1
    return list(given[place:]), ahead


def _use_home(ahead: dict[str, str]) -> None:
    if ahead.get("--home"):
        from agentstead.coordinator.places import home_path

        os.environ["AGENTSTEAD_HOME"] = home_path(ahead["--home"])
    if ahead.get("--workspace"):
        os.environ["AGENTSTEAD_WORKSPACE"] = ahead["--workspace"]


def _version() -> int:
    from agentstead.coordinator.version import installed_version

    print(f"agentstead {installed_version()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
