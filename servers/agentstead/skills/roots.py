"""Which folders are looked into for a caller, and in which order."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentstead.config import Settings
from agentstead.skills.candidates import Origin, Root

BUNDLED: Final = Path(__file__).parent / "bundled"
# The tree id of each bundled skill; a test holds it to the files.
SHIPPED: Final = {"agentstead": "0d8217c4b18b61e0e6dcc4aaa11bb197837078034781f67075d8407f2baf70bc"}
# The setting that turns a root off, and where it stands in a workspace and in a person's home folder.
_SHARED: Final = (
    ("skills.roots.agents", Path(".agents", "skills")),
    ("skills.roots.claude", Path(".claude", "skills")),
)


@dataclass(frozen=True, slots=True)
class Standing:
    """From where a caller looks: Agentstead's home, the person's home folder, and the workspace if one is known."""

    home: Path
    person: Path
    workspace_id: str = ""
    workspace: Path | None = None


def roots_of(standing: Standing, settings: Settings) -> list[Root]:
    """Return the roots of a caller, the strongest first."""
    found: list[Root] = []
    if standing.workspace is not None:
        paths = _paths(standing.workspace / ".agentstead" / "skills", standing.workspace, settings, standing.workspace)
        found += [Root(Origin.WORKSPACE, path, at, standing.workspace_id) for at, path in enumerate(paths)]
    own = [*_paths(standing.home / "skills", standing.person, settings, standing.workspace)]
    own += folders(settings.texts("skills.roots.extra"), person=standing.person)
    found += [Root(Origin.USER, path, at) for at, path in enumerate(own)]
    return [*found, Root(Origin.BUNDLED, BUNDLED)]


def folders(written: tuple[str, ...], *, person: Path) -> list[Path]:
    """Return the absolute folders of a setting, ``~`` read as the person's; a relative path names no folder."""
    expanded = (person / text.removeprefix("~").lstrip("/") if text.startswith("~") else Path(text) for text in written)
    return [path for path in expanded if path.is_absolute()]


def _paths(own: Path, folder: Path, settings: Settings, workspace: Path | None) -> Iterator[Path]:
    if settings.flag("skills.roots.own", workspace=workspace):
        yield own
    yield from (folder / path for key, path in _SHARED if settings.flag(key, workspace=workspace))
