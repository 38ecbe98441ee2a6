"""The environment that a process gets: a short fixed list, and the variables that its caller allowed by name."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

MARKER: Final = "AGENTSTEAD_PROCESS"
DEFAULT_PATH: Final = "/usr/local/bin:/usr/bin:/bin"

# The token of a supervised process comes from the runner alone.
_RESERVED: Final = "AGENTSTEAD_"


def environment(
    *,
    home: Path,
    temporary: Path,
    caller: Mapping[str, str],
    allowed: Iterable[str] = (),
    values: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the whole environment of a process.

    `home` and `temporary` are private directories of this run, `caller` the variables known of the caller, `allowed`
    names to take from it, `values` what the command sets itself. Names of our own can be neither taken nor set.
    """
    taken = {name: caller[name] for name in allowed if name in caller}
    given = {name: value for name, value in {**taken, **(values or {})}.items() if not name.startswith(_RESERVED)}
    return {
        "PATH": caller.get("PATH") or os.environ.get("PATH") or DEFAULT_PATH,
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "USER": "agentstead",
        "SHELL": "/bin/sh",
        **given,
    }
