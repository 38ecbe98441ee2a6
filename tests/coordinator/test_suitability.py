"""Which folders can be a home, and what a person is told of one that cannot."""

from pathlib import Path

import pytest

from agentstead.coordinator.suitability import NETWORK_TYPES, check_home, clock_warning, file_system
from agentstead.state import Unavailable

SECOND = 1_000_000


def mounts(tmp_path: Path, *lines: tuple[str, str]) -> Path:
    table = tmp_path / "mountinfo"
    rows = [f"{n} 1 0:{n} / {point} rw,relatime shared:1 - {kind} source rw" for n, (point, kind) in enumerate(lines)]
    table.write_text("\n".join(["garbage", *rows, ""]))
    return table


def test_the_nearest_mount_decides(tmp_path: Path) -> None:
    table = mounts(tmp_path, ("/", "ext4"), (str(tmp_path), "nfs4"), (str(tmp_path / "local"), "xfs"))
    assert file_system(tmp_path / "home", mounts=table) == "nfs4"
    assert file_system(tmp_path / "local" / "home", mounts=table) == "xfs"
    assert file_system(Path("/"), mounts=table) == "ext4"


def test_a_mount_point_is_no_prefix_of_a_name(tmp_path: Path) -> None:
    table = mounts(tmp_path, ("/", "ext4"), (str(tmp_path / "ho"), "nfs"))
    assert file_system(tmp_path / "home", mounts=table) == "ext4"


def test_the_later_mount_on_one_point_hides_the_earlier(tmp_path: Path) -> None:
    table = mounts(tmp_path, (str(tmp_path), "nfs"), (str(tmp_path), "tmpfs"))
    assert file_system(tmp_path, mounts=table) == "tmpfs"


def test_a_mount_point_with_a_space_is_read(tmp_path: Path) -> None:
    (tmp_path / "my disk").mkdir()
    table = mounts(tmp_path, ("/", "ext4"), (str(tmp_path / "my disk").replace(" ", "\\040"), "cifs"))
    assert file_system(tmp_path / "my disk" / "home", mounts=table) == "cifs"


@pytest.mark.parametrize("kind", sorted(NETWORK_TYPES))
def test_a_home_on_a_network_file_system_is_refused_with_its_name(tmp_path: Path, kind: str) -> None:
    with pytest.raises(Unavailable, match=kind) as caught:
        check_home(tmp_path / "home", mounts=mounts(tmp_path, (str(tmp_path), kind)))
    assert caught.value.code == "home.quarantined"
    assert "AGENTSTEAD_HOME" in caught.value.remedy
    assert not (tmp_path / "home").exists()


def test_a_home_on_a_local_disk_is_accepted(tmp_path: Path) -> None:
    check_home(tmp_path / "not" / "yet" / "there", mounts=mounts(tmp_path, ("/", "ext4")))


def test_a_system_without_a_mount_table_says_nothing(tmp_path: Path) -> None:
    assert file_system(tmp_path, mounts=tmp_path / "missing") == ""
    check_home(tmp_path, mounts=tmp_path / "missing")


def test_a_read_only_file_system_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="read-only"):
        check_home(Path("/proc/self/home"), mounts=tmp_path / "missing")


def test_the_machine_that_runs_this_has_a_mount_table_that_is_understood(tmp_path: Path) -> None:
    if Path("/proc/self/mountinfo").exists():
        assert file_system(tmp_path)


def test_a_clock_that_goes_on_is_nothing_to_tell() -> None:
    assert clock_warning(100 * SECOND, 99 * SECOND) == ""
    assert clock_warning(100 * SECOND, 103 * SECOND) == ""
    assert clock_warning(100 * SECOND, 0) == ""


def test_a_clock_that_was_set_back_is_told_with_its_distance() -> None:
    assert "3600 s before the last change" in clock_warning(100 * SECOND, 3700 * SECOND)
