"""What is said on the local socket, and the command line of `serve`."""

import json
import os
from pathlib import Path

import pytest

from agentstead.coordinator import greeting
from agentstead.coordinator.arguments import serve_arguments
from agentstead.coordinator.terms import Listen, terms


def test_a_line_says_its_kind_first_and_is_heard_as_it_was_said() -> None:
    line = greeting.say("control", verb="drain", timeout_s=3)
    assert line == b'{"agentstead":"control","verb":"drain","timeout_s":3}\n'
    assert greeting.hear(line) == {"agentstead": "control", "verb": "drain", "timeout_s": 3}


@pytest.mark.parametrize("line", [b"", b"x", b"[]", b"7", b"{}", b'{"agentstead":1}', b"\xff"])
def test_anything_else_is_not_heard(line: bytes) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the reader's own errors are among them
        greeting.hear(line)
    assert str(caught.value)


def test_a_leaving_line_is_known_by_its_head_and_no_mcp_line_is() -> None:
    assert greeting.say("leaving", reason="stop").startswith(greeting.LEAVING_HEAD)
    assert not b'{"jsonrpc":"2.0","method":"leaving"}'.startswith(greeting.LEAVING_HEAD)


def test_only_listed_variables_are_handed_over_and_none_of_them_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("AGENTSTEAD_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AGENTSTEAD_SESSION", "s" * 10_000)
    monkeypatch.setenv("AGENTSTEAD_OTHER", "o")
    monkeypatch.setenv("API_KEY", "k")
    said = json.loads(greeting.hello("memory", toolset="core", version="1"))
    assert said["environ"] == {"AGENTSTEAD_SESSION": "s" * greeting.VALUE_CHARS}
    assert len(greeting.hello("memory", toolset="core", version="1")) < greeting.GREETING_BYTES


def test_a_working_directory_that_was_removed_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert json.loads(greeting.hello("memory", toolset="core", version="1"))["cwd"] == ""


def test_serve_takes_a_name_and_options_in_any_order(tmp_path: Path) -> None:
    for words in (
        ["memory", "--home", str(tmp_path), "--toolset", "full"],
        [f"--home={tmp_path}", "--toolset=full", "memory"],
    ):
        wanted = serve_arguments(words)
        assert wanted is not None
        assert (wanted.name, wanted.home, wanted.toolset, wanted.standalone) == ("memory", str(tmp_path), "full", False)


def test_serve_uses_the_core_toolset_and_the_users_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGENTSTEAD_HOME", str(tmp_path))
    wanted = serve_arguments(["memory", "--standalone"])
    assert wanted is not None
    assert (wanted.home, wanted.toolset, wanted.standalone) == (str(tmp_path), "core", True)


@pytest.mark.parametrize("words", [[], ["a", "b"], ["--nonsense"], ["memory", "--nonsense"], ["memory", "--toolset="]])
def test_serve_refuses_what_it_does_not_know(words: list[str]) -> None:
    assert serve_arguments(words) is None


def test_terms_come_from_the_settings_of_the_home(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[coordinator]\nport = 8123\nidle_exit_s = 33\n[log]\nlevel = "debug"\n')
    found = terms(tmp_path, started_by="shim", version="1")
    assert found.http == Listen("127.0.0.1", 8123, required=False)
    assert (found.idle_exit_s, found.log_level) == (33.0, "debug")


def test_what_is_named_counts_more_than_the_settings(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[coordinator]\nport = 8123\n")
    found = terms(tmp_path, started_by="user", version="1", host="::1", port=0, idle_exit_s=1)
    assert found.http == Listen("::1", 0, required=True)
    assert found.idle_exit_s == 1
