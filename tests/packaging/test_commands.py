"""Each command that a document names is one that the command line knows."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
AGENTSTEAD = Path(sys.executable).parent / "agentstead"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_FENCED = re.compile(r"^(?:uv run |env/bin/|\$ )?agentstead ([^#\n]+)", re.MULTILINE)
_INLINE = re.compile(r"`agentstead ([^`]+)`")
_WORD = re.compile(r"[a-z][a-z-]*")


def named_commands() -> list[str]:
    """Return what stands behind `agentstead`, up to the first value or option, of every command named."""
    found = set()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for line in [*_FENCED.findall(text), *_INLINE.findall(text)]:
            words = []
            for word in line.split():
                if not _WORD.fullmatch(word):
                    break
                words.append(word)
            if words:
                found.add(" ".join(words))
    return sorted(found)


@pytest.mark.parametrize("command", [name for name in named_commands() if not name.startswith("serve")])
def test_each_documented_command_has_help(command: str) -> None:
    done = subprocess.run(
        [AGENTSTEAD, *command.split(), "--help"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Usage: agentstead" in done.stdout


def test_the_documents_name_the_commands_of_the_first_day() -> None:
    first = {command.split()[0] for command in named_commands()}
    assert {"up", "serve", "install", "uninstall", "demo", "status", "doctor", "verify", "answer", "stop"} <= first
