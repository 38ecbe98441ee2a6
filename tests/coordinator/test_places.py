"""Where the processes of a home meet."""

import os
from pathlib import Path

import pytest

from agentstead.coordinator import places


def test_the_home_that_is_named_comes_before_the_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(places.HOME_VARIABLE, str(tmp_path / "variable"))
    assert places.home_path(str(tmp_path / "named")) == str(tmp_path / "named")
    assert places.home_path() == str(tmp_path / "variable")


def test_without_either_the_home_is_in_the_users_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(places.HOME_VARIABLE, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert places.home_path() == str(tmp_path / ".agentstead")


def test_the_socket_lies_in_the_home_where_its_path_is_short_enough() -> None:
    assert places.socket_path("/h") == "/h/run/coordinator.sock"


def test_a_home_that_is_too_deep_has_its_socket_in_a_short_private_folder(tmp_path: Path) -> None:
    home = str(tmp_path / ("deep" * 30))
    path = places.socket_path(home)
    assert len(os.fsencode(path)) <= places.SOCKET_PATH_BYTES
    assert str(os.geteuid()) in path
    assert path == places.socket_path(home + "/")


def test_the_short_folder_does_not_depend_on_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = str(tmp_path / ("deep" * 30))
    before = places.socket_path(home)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert places.socket_path(home) == before


def test_two_homes_never_share_a_short_folder(tmp_path: Path) -> None:
    deep = "deep" * 30
    assert places.socket_path(str(tmp_path / deep / "a")) != places.socket_path(str(tmp_path / deep / "b"))


def test_a_private_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    places.private_folder(str(tmp_path / "new" / "run"))
    assert (tmp_path / "new" / "run").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


def test_a_loose_folder_is_closed(tmp_path: Path) -> None:
    loose = tmp_path / "run"
    loose.mkdir(mode=0o755)
    places.private_folder(str(loose))
    assert loose.stat().st_mode & 0o777 == 0o700


def test_a_link_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionError, match="not a folder of this user"):
        places.private_folder(str(tmp_path / "run"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    theirs = tmp_path / "run"
    theirs.mkdir()
    os.chown(theirs, 12345, 12345)
    with pytest.raises(PermissionError, match="not a folder of this user"):
        places.private_folder(str(theirs))
