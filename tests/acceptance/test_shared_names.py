"""Names that all packages share, read from the source itself: tables, error codes and id prefixes.

The list of agreed names lies beside the checkout of the project's own developers; without it, what needs it is skipped.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentstead.state import errors

ROOT = Path(__file__).parents[2]
AGREED = ROOT.parent / "shared/spec/codes.md"

ERRORS = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}
# Raised here before the agreed list could take them in.
NOT_YET_AGREED = {"tool.failed"}
# The wire ids of the network have prefixes that its protocol gives; deliveries are the state library's own.
UNLISTED = {"network", "state"}
PARTS_OF_SESSIONS = {"sessions", "loops", "teams"}

_TABLE = re.compile(r"^CREATE (?:VIRTUAL )?TABLE (?:IF NOT EXISTS )?(\w+)", re.MULTILINE)
_CODE = re.compile(r"[a-z_]+\.[a-z_]+")

needs_agreed = pytest.mark.skipif(not AGREED.exists(), reason="the list of agreed names is not beside this checkout")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a literal stands."""

    package: str
    line: str


def packages() -> Iterator[Path]:
    for side in ("shared", "servers"):
        yield from sorted(path for path in (ROOT / side / "agentstead").iterdir() if path.is_dir())


def calls(package: Path) -> Iterator[tuple[str, list[ast.expr], str]]:
    """Yield each call's last name, its arguments, and where it stands."""
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                yield name, node.args, f"{path.relative_to(ROOT)}:{node.lineno}"


def literals(name_of_call: set[str], argument: int) -> dict[str, list[Place]]:
    """Return the literal texts at one argument of these calls."""
    found: dict[str, list[Place]] = defaultdict(list)
    for package in packages():
        for name, arguments, line in calls(package):
            if name in name_of_call and len(arguments) > argument:
                value = arguments[argument]
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    found[value.value].append(Place(package.name, line))
    return found


def rows(heading: str) -> Iterator[list[str]]:
    """Yield the cells of the table below a heading of the agreed list."""
    section = AGREED.read_text(encoding="utf-8").split(heading, 1)[1].split("\n## ", 1)[0]
    for line in section.splitlines():
        if line.startswith("|") and not line.startswith("|---"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def agreed_codes() -> list[str]:
    codes = []
    for cells in rows("## 4. Error codes"):
        if re.fullmatch(r"`\w+`", cells[0]):
            reasons = re.split(r", | \(", cells[1].replace(")", ""))
            codes += [f"{cells[0].strip('`')}.{reason}" for reason in reasons if re.fullmatch(r"[a-z_]+", reason)]
    return codes


def agreed_prefixes() -> dict[str, set[str]]:
    """Return the owners of each id prefix."""
    owners: dict[str, set[str]] = {}
    for cells in rows("## 3. Id prefixes"):
        for prefix in re.findall(r"\b([a-z]{3}_)", cells[1]):
            owners[prefix] = {owner.strip() for owner in cells[0].split(",")}
    return owners


def test_each_table_is_made_by_one_package() -> None:
    makers: dict[str, set[str]] = defaultdict(set)
    for package in packages():
        for path in package.rglob("migrations/*.sql"):
            for table in _TABLE.findall(path.read_text(encoding="utf-8")):
                makers[table].add(package.name)
    assert len(makers) > 10
    assert {table: names for table, names in makers.items() if len(names) > 1} == {}


def test_each_raised_code_has_the_form_noun_reason() -> None:
    raised = literals(ERRORS, 0)
    assert len(raised) > 20
    assert {code: places for code, places in raised.items() if not _CODE.fullmatch(code)} == {}


@needs_agreed
def test_each_agreed_code_is_agreed_once() -> None:
    codes = agreed_codes()
    assert len(codes) > 200
    assert sorted(code for code in set(codes) if codes.count(code) > 1) == []


@needs_agreed
def test_each_raised_code_is_agreed() -> None:
    agreed = set(agreed_codes()) | NOT_YET_AGREED
    raised = literals(ERRORS, 0)
    strange = {code: places for code, places in raised.items() if code not in agreed}
    assert {code: places for code, places in strange.items() if not code.endswith(".transition_refused")} == {}


@needs_agreed
def test_each_id_prefix_is_minted_by_its_owner_alone() -> None:
    agreed = agreed_prefixes()
    wrong = {}
    for prefix, places in literals({"new_id"}, 0).items():
        owners = agreed.get(prefix, UNLISTED)
        if owners & PARTS_OF_SESSIONS:
            owners = {"sessions"}
        strangers = [place for place in places if place.package not in owners]
        if strangers:
            wrong[prefix] = strangers
    assert wrong == {}
