"""Skill folders for tests."""

from collections.abc import Callable
from pathlib import Path

import pytest

WriteSkill = Callable[..., Path]


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    """Return an empty root for skills."""
    root = tmp_path / "skills"
    root.mkdir()
    return root


@pytest.fixture
def write_skill() -> WriteSkill:
    """Return the writer of skill folders: root, name, and if wanted description, further fields, body, files."""
    return _write


def _write(
    root: Path,
    name: str,
    *,
    description: str = "Looks up tides",
    fields: str = "",
    body: str = "Read this first.\n",
    files: dict[str, str | bytes] | None = None,
) -> Path:
    folder = root / name
    written: dict[str, str | bytes] = {
        "SKILL.md": f"---\nname: {folder.name}\ndescription: {description}\n{fields}---\n{body}"
    }
    for path, content in (written | (files or {})).items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder
