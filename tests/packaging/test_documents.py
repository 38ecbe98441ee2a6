"""The documents of the repository: links that lead somewhere, and claims that can be looked up."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

_LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives a page's headings."""
    headings = _HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_link_leads_to_a_file_that_is_there(page: Path) -> None:
    for target in _LINK.findall(page.read_text(encoding="utf-8")):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors(there), f"{page.name}: {target}"


def test_each_page_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    open_pages = [ROOT / "README.md"]
    while open_pages:
        page = open_pages.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        for target in _LINK.findall(page.read_text(encoding="utf-8")):
            there = (page.parent / target.partition("#")[0]).resolve()
            open_pages.append(there / "README.md" if there.is_dir() else there)
    assert [str(page.relative_to(ROOT)) for page in PAGES if page not in seen] == []


def test_each_decision_is_numbered_and_listed_in_order() -> None:
    notes = sorted(path.name for path in (ROOT / "docs/decisions").glob("0*.md"))
    assert [name[:4] for name in notes] == [f"{number:04}" for number in range(1, len(notes) + 1)]
    assert re.findall(r"\((0.+?\.md)\)", (ROOT / "docs/decisions/README.md").read_text(encoding="utf-8")) == notes


@pytest.mark.parametrize("part", ["**Context.**", "**Choice.**", "**Cost.**", "**Look again**"])
def test_each_decision_has_each_part(part: str) -> None:
    for note in (ROOT / "docs/decisions").glob("0*.md"):
        assert part in note.read_text(encoding="utf-8"), note.name


def test_each_dependency_has_a_line_on_its_page() -> None:
    page = (ROOT / "docs/dependencies.md").read_text(encoding="utf-8")
    project = PROJECT["project"]
    extras = project.get("optional-dependencies", {}).values()
    lines = [*project["dependencies"], *(line for extra in extras for line in extra)]
    lines += PROJECT["dependency-groups"]["dev"]
    names = [re.split(r"[\[>]", line)[0] for line in lines]
    assert [name for name in names if f"`{name}`" not in page] == []


def test_the_dependency_table_names_nothing_that_is_gone() -> None:
    page = (ROOT / "docs/dependencies.md").read_text(encoding="utf-8")
    declared = {re.split(r"[\[>]", line)[0] for line in PROJECT["project"]["dependencies"]}
    assert set(re.findall(r"^\| `([a-z0-9-]+)` \|", page, re.MULTILINE)) == declared


def test_the_change_log_tells_of_this_version_or_of_what_comes() -> None:
    log = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "## [Unreleased]" in log or f"## [{PROJECT['project']['version']}]" in log
    assert set(re.findall(r"^### (.+)$", log, re.MULTILINE)) <= {
        "Added",
        "Changed",
        "Deprecated",
        "Removed",
        "Fixed",
        "Security",
    }


def test_no_package_registry_is_named_in_a_tracked_file() -> None:
    patterns = "https?://[^ ]*(/simple/|/packages/[0-9a-f]{2}/)"
    argv = ["git", "grep", "-nIE", patterns, "--", f":!{Path(__file__).relative_to(ROOT).as_posix()}"]
    assert subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False).stdout == ""
