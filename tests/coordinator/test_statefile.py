"""The file in which a coordinator says who it is."""

import json
from pathlib import Path

from agentstead.coordinator.statefile import Record, read_record, remove_record, write_record

RECORD = Record("serving", 42, "0.1.0", "/bin/python", 7, "shim", "/h/run/s", "http://127.0.0.1:1", servers=["memory"])


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    write_record(tmp_path / "c.json", RECORD)
    found = read_record(tmp_path / "c.json")
    assert found is not None
    assert (found.state, found.pid, found.addresses()) == ("serving", 42, {"memory": "http://127.0.0.1:1/memory/mcp"})


def test_the_file_is_its_owners_alone_and_leaves_nothing_beside(tmp_path: Path) -> None:
    write_record(tmp_path / "c.json", RECORD)
    write_record(tmp_path / "c.json", RECORD)
    assert [path.name for path in tmp_path.iterdir()] == ["c.json"]
    assert (tmp_path / "c.json").stat().st_mode & 0o777 == 0o600


def test_a_damaged_file_reads_as_none(tmp_path: Path) -> None:
    for text in ("", "{", "[]", "{}", '{"state": 1}'):
        (tmp_path / "c.json").write_text(text)
        assert read_record(tmp_path / "c.json") is None
    assert read_record(tmp_path / "missing.json") is None


def test_fields_of_a_later_version_are_ignored(tmp_path: Path) -> None:
    write_record(tmp_path / "c.json", RECORD)
    raw = json.loads((tmp_path / "c.json").read_text())
    (tmp_path / "c.json").write_text(json.dumps({**raw, "moon": "full"}))
    assert read_record(tmp_path / "c.json") is not None


def test_without_http_there_are_no_addresses() -> None:
    assert Record("serving", 1, "", "", 0, "user", "", servers=["memory"]).addresses() == {}


def test_removing_twice_is_fine(tmp_path: Path) -> None:
    write_record(tmp_path / "c.json", RECORD)
    remove_record(tmp_path / "c.json")
    remove_record(tmp_path / "c.json")
    assert read_record(tmp_path / "c.json") is None
