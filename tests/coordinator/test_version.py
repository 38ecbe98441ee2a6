"""The order of versions, and where ours is read."""

from importlib import metadata
from pathlib import Path

import pytest

from agentstead.coordinator import version

RISING = ["", "nonsense", "0", "0.1.0.dev3", "0.1.0rc1", "0.1.0", "0.1.0.post1", "0.1.1", "0.9", "0.10.0", "1", "1.0.1"]


@pytest.mark.parametrize("at", range(1, len(RISING) - 1))
def test_versions_are_ordered_as_releases_are(at: int) -> None:
    if RISING[at] != "nonsense":
        assert version.is_older(RISING[at], RISING[at + 1])
    assert not version.is_older(RISING[at + 1], RISING[at])


@pytest.mark.parametrize(("one", "other"), [("1", "1.0.0"), ("0.1.0", "0.1"), ("0.1.0+local.4", "0.1.0")])
def test_equal_versions_are_not_older_in_either_direction(one: str, other: str) -> None:
    assert not version.is_older(one, other)
    assert not version.is_older(other, one)


def test_the_version_is_the_one_of_the_installed_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(version.OVERRIDE, raising=False)
    try:
        installed = metadata.version("agentstead")
    except metadata.PackageNotFoundError:
        installed = version.UNKNOWN
    assert version.installed_version() == installed


def test_the_version_is_read_from_the_name_of_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(version.OVERRIDE, raising=False)
    (tmp_path / "agentstead-7.8.9.dist-info").mkdir()
    (tmp_path / "agentstead_extra-1.0.dist-info").mkdir()
    monkeypatch.setattr("sys.path", [str(tmp_path / "missing"), str(tmp_path)])
    assert version.installed_version() == "7.8.9"


def test_a_copy_that_is_not_installed_has_the_lowest_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(version.OVERRIDE, raising=False)
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    assert version.installed_version() == version.UNKNOWN
    assert version.is_older(version.UNKNOWN, "0.0.1")
