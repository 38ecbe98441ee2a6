"""Migrations go forward only, once, under the home's lock, and after a backup."""

import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentstead.state import DATABASE_FILE, HomeLock, Migrations, State, Unavailable
from agentstead.state.migrations import statements

pytestmark = pytest.mark.anyio


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Path]:
    name = f"migrating_{abs(hash(request.node.name)) % 10**8}"
    folder = tmp_path / "code" / name
    (folder / "migrations").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "migrations" / "0001_first.sql").write_text("CREATE TABLE first (id TEXT PRIMARY KEY) STRICT;\n")
    monkeypatch.syspath_prepend(str(tmp_path / "code"))
    yield folder
    sys.modules.pop(name, None)


def tables(home: Path) -> set[str]:
    connection = sqlite3.connect(home / DATABASE_FILE)
    found = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    connection.close()
    return found


async def reopen(home: Path, package: Path, **kwargs: object) -> None:
    state = await State.open(home, sets=[Migrations(package="test", anchor=package.name)], **kwargs)  # type: ignore[arg-type]
    await state.close()


async def test_a_new_home_gets_every_package_and_no_backup(tmp_path: Path, package: Path) -> None:
    await reopen(tmp_path / "home", package)
    assert {"journal", "first", "migrations"} <= tables(tmp_path / "home")
    assert not (tmp_path / "home" / "backups").exists()


async def test_a_later_file_is_applied_once_after_a_backup(tmp_path: Path, package: Path) -> None:
    await reopen(tmp_path / "home", package)
    (package / "migrations" / "0002_second.sql").write_text("CREATE TABLE second (id TEXT PRIMARY KEY) STRICT;\n")
    await reopen(tmp_path / "home", package)
    await reopen(tmp_path / "home", package)
    assert "second" in tables(tmp_path / "home")
    (backup,) = (tmp_path / "home" / "backups").iterdir()
    old = sqlite3.connect(backup)
    assert old.execute("SELECT COUNT(*) FROM sqlite_master WHERE name = 'second'").fetchone() == (0,)
    old.close()
    assert backup.stat().st_mode & 0o077 == 0


async def test_a_newer_home_is_refused_unchanged(tmp_path: Path, package: Path) -> None:
    later = package / "migrations" / "0002_second.sql"
    later.write_text("CREATE TABLE second (id TEXT PRIMARY KEY) STRICT;\n")
    await reopen(tmp_path / "home", package)
    later.unlink()
    with pytest.raises(Unavailable) as caught:
        await reopen(tmp_path / "home", package)
    assert caught.value.code == "home.newer"
    assert "Update Agentstead" in caught.value.remedy


async def test_a_broken_file_leaves_the_schema_as_it_was(tmp_path: Path, package: Path) -> None:
    await reopen(tmp_path / "home", package)
    (package / "migrations" / "0002_second.sql").write_text(
        "CREATE TABLE second (id TEXT PRIMARY KEY) STRICT;\nCREATE TABLE first (id TEXT PRIMARY KEY) STRICT;\n"
    )
    with pytest.raises(sqlite3.OperationalError, match="already exists"):
        await reopen(tmp_path / "home", package)
    assert "second" not in tables(tmp_path / "home")


async def test_an_older_schema_under_anothers_lock_is_refused(
    tmp_path: Path, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    await reopen(home, package)
    (package / "migrations" / "0002_second.sql").write_text("CREATE TABLE second (id TEXT PRIMARY KEY) STRICT;\n")
    monkeypatch.setattr("agentstead.state.database.MIGRATION_WAIT_S", 0.1)
    lock = HomeLock(home)
    assert lock.acquire()
    with pytest.raises(Unavailable) as caught:
        await reopen(home, package)
    assert caught.value.code == "coordinator.locked"
    assert "agentstead stop" in caught.value.remedy
    await reopen(home, package, lock=lock)
    assert lock.held
    lock.release()
    assert "second" in tables(home)


def test_only_one_holds_the_lock(tmp_path: Path) -> None:
    one, two = HomeLock(tmp_path), HomeLock(tmp_path)
    assert one.acquire()
    assert one.acquire()
    assert not two.acquire()
    one.release()
    assert two.acquire()
    two.release()


async def test_numbers_without_a_gap_are_demanded(package: Path) -> None:
    (package / "migrations" / "0003_third.sql").write_text("SELECT 1;\n")
    with pytest.raises(ValueError, match="not numbered"):
        Migrations(package="test", anchor=package.name).load()


def test_a_trigger_stays_one_statement() -> None:
    sql = "CREATE TABLE a (b TEXT);\nCREATE TRIGGER t BEFORE DELETE ON a\nBEGIN\n    SELECT 1;\n    SELECT 2;\nEND;\n"
    assert len(statements(sql)) == 2
    with pytest.raises(ValueError, match="unfinished"):
        statements("CREATE TABLE a (")


@given(st.lists(st.sampled_from(["SELECT 1;", "SELECT ';';", "-- a comment;\nSELECT 2;"]), max_size=6))
def test_splitting_loses_no_statement(parts: list[str]) -> None:
    assert len(statements("\n".join(parts))) == len(parts)
