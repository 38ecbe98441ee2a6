"""`agentstead home`, `registry` and `verify`: copies that can be used, tokens, workspaces, and what was altered."""

import json
import os
import sqlite3
import stat
from pathlib import Path

import pytest

from agentstead.cli.copying import MANIFEST
from agentstead.state import DATABASE_FILE, sha256_hex

from .conftest import Run


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    return root


def record_something(run: Run, project: Path) -> str:
    """Open a session and record one event that is large enough to be stored as a blob."""
    opened = run("session", "open", "--name", "work", "--workspace", str(project), "-o", "json")
    session_id: str = opened.json["session_id"]
    text = "word " * 8000
    assert run("session", "record", session_id, "note", text, "-o", "json").json["last_seq"] == 1
    return session_id


def test_a_backup_is_a_home_that_works_and_verifies(run: Run, project: Path, tmp_path: Path) -> None:
    session_id = record_something(run, project)
    target = tmp_path / "copy"
    copied = run("home", "backup", str(target), "-o", "json").json
    assert copied["objects"] >= 1
    assert copied["missing"] == []
    assert stat.S_IMODE(target.stat().st_mode) == 0o700
    run("session", "record", session_id, "note", "later")
    manifest = json.loads((target / MANIFEST).read_text())
    assert manifest["journal_seq"] == copied["journal_seq"]
    for name, digest in manifest["files"].items():
        assert sha256_hex((target / name).read_bytes()) == digest
        assert stat.S_IMODE((target / name).stat().st_mode) == 0o600
    assert run("verify", "--home", str(target), "-o", "json").json["holds"] is True
    events = run("session", "events", session_id, "--home", str(target), "-o", "json").json["items"]
    assert len(events) == 1


def test_the_http_token_stays_behind(run: Run, tmp_path: Path) -> None:
    run("home", "token")
    run("home", "backup", str(tmp_path / "copy"))
    assert [path.name for path in tmp_path.glob("copy/keys/http.token")] == []


@pytest.mark.parametrize("where", ["taken", "home/inside"])
def test_a_backup_goes_into_an_empty_directory_outside_the_home_only(run: Run, tmp_path: Path, where: str) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    ran = run("home", "backup", str(tmp_path / where))
    assert ran.code == 2
    assert "nothing was copied" in ran.err
    assert not (tmp_path / where / DATABASE_FILE).exists()


def test_the_token_is_shown_kept_and_renewed(run: Run, home_path: Path) -> None:
    first = run("home", "token", "-o", "json").json
    assert Path(first["file"]).read_text().strip() == first["token"]
    assert stat.S_IMODE(Path(first["file"]).stat().st_mode) == 0o600
    assert run("home", "token", "-o", "json").json["token"] == first["token"]
    assert run("home", "token", "--renew", "-o", "json").json["token"] != first["token"]


def test_an_operator_token_is_made_at_a_terminal_only(run: Run) -> None:
    ran = run("home", "token", "--operator")
    assert ran.code == 3
    assert "Run this in a terminal" in ran.err


def test_a_workspace_is_registered_listed_and_forgotten(run: Run, project: Path) -> None:
    added = run("registry", "add", str(project), "--name", "mine", "-o", "json").json
    assert added["root"] == str(project)
    listed = run("registry", "list", "-o", "json").json["workspaces"]
    assert [(each["name"], each["id"]) for each in listed] == [("mine", added["id"])]
    assert run("registry", "forget", "mine", "--expected-version", "99").code == 6
    assert run("registry", "forget", "mine").code == 0
    assert run("registry", "list", "-o", "json").json["workspaces"] == []
    assert run("registry", "forget", "mine").code == 1


def test_a_copy_of_a_workspace_gets_an_id_of_its_own_on_demand(run: Run, project: Path, tmp_path: Path) -> None:
    first = run("registry", "add", str(project), "-o", "json").json
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / ".agentstead").mkdir()
    (copy / ".agentstead" / "workspace.json").write_bytes((project / ".agentstead" / "workspace.json").read_bytes())
    refused = run("registry", "add", str(copy))
    assert refused.code == 6
    assert refused.err.startswith("workspace.duplicate: ")
    fresh = run("registry", "add", str(copy), "--fresh-id", "-o", "json").json
    assert fresh["id"] != first["id"]


def test_an_untouched_home_verifies_part_by_part(run: Run, project: Path) -> None:
    record_something(run, project)
    whole = run("verify", "-o", "json")
    assert whole.code == 0
    assert [part["part"] for part in whole.json["parts"]][:2] == ["journal", "blobs"]
    assert run("verify", "--only", "journal", "-o", "json").json["parts"][0]["part"] == "journal"
    assert run("verify", "--quiet").out == ""
    unknown = run("verify", "--only", "nonsense")
    assert unknown.code == 2
    assert "Parts: journal, blobs" in unknown.err


def test_an_altered_journal_body_is_found_with_its_place(run: Run, project: Path, home_path: Path) -> None:
    record_something(run, project)
    with sqlite3.connect(home_path / DATABASE_FILE) as connection:
        triggers = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]
        for name in triggers:
            connection.execute(f'DROP TRIGGER "{name}"')
        connection.execute("UPDATE journal SET body = '{}' WHERE seq = 2")
    ran = run("verify", "--only", "journal", "-o", "json")
    assert ran.code == 1
    assert ran.json["parts"][0]["wrong"] == ["entry 2: its body is not the one that was written"]


def test_an_altered_object_is_found_unless_bytes_are_not_read(run: Run, project: Path, home_path: Path) -> None:
    record_something(run, project)
    (stored,) = [path for path in (home_path / "blobs" / "objects").rglob("*") if path.is_file()]
    stored.chmod(0o600)
    with stored.open("r+b") as stream:
        stream.seek(-1, os.SEEK_END)
        stream.write(b"!")
    ran = run("verify", "--only", "blobs", "-o", "json")
    assert ran.code == 1
    assert ran.json["parts"][0]["wrong"][0].startswith("altered: blob ")
    assert run("verify", "--only", "blobs", "--quick").code == 0


def test_objects_that_are_gone_are_named_in_the_backup(
    run: Run, project: Path, home_path: Path, tmp_path: Path
) -> None:
    record_something(run, project)
    (stored,) = [path for path in (home_path / "blobs" / "objects").rglob("*") if path.is_file()]
    stored.chmod(0o600)
    stored.unlink()
    copied = run("home", "backup", str(tmp_path / "copy"), "-o", "json").json
    assert copied["objects"] == 0
    assert copied["missing"][0].startswith("blob ")


def test_settings_and_keys_are_copied_for_their_owner_alone(run: Run, home_path: Path, tmp_path: Path) -> None:
    run("registry", "list")
    run("config", "set", "log.level", "debug")
    (home_path / "keys" / "proofs.key").write_bytes(b"k" * 32)
    run("home", "backup", str(tmp_path / "copy"))
    assert (tmp_path / "copy" / "config.toml").read_bytes() == (home_path / "config.toml").read_bytes()
    assert (tmp_path / "copy" / "keys" / "proofs.key").read_bytes() == b"k" * 32
    assert stat.S_IMODE((tmp_path / "copy" / "keys" / "proofs.key").stat().st_mode) == 0o600


def test_versions_of_a_workspace_are_copied_with_all_their_files(
    run: Run, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "deep" / "er").mkdir(parents=True)
    for name in ("a.txt", "deep/b.txt", "deep/er/c.txt"):
        (project / name).write_text(f"{name}\n" * 100)
    monkeypatch.chdir(project)
    taken = run("snapshot", "take", "-o", "json").json
    copied = run("home", "backup", str(tmp_path / "copy"), "-o", "json").json
    assert copied["objects"] >= 6
    shown = run(
        "workspace", "view", "file", taken["snapshot_id"], "--path", "deep/er/c.txt", "--home", str(tmp_path / "copy")
    )
    assert "deep/er/c.txt" in shown.out


def test_a_directory_that_cannot_be_made_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ran = run("home", "backup", str(tmp_path / "file" / "copy"))
    assert ran.code == 2
    assert "cannot be written (Not a directory)" in ran.err
