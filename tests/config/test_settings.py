"""Layers in order, provenance by line, live reading, and the last good state of a faulty file."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from agentstead.config import Settings
from agentstead.state import Invalid

from .conftest import Files

KEY = "tasks.lease_seconds"


def bump(files: Files) -> None:
    files.now += 1.0


def test_without_files_the_built_in_values_are_in_force(files: Files) -> None:
    settings = files.settings()
    assert settings.whole(KEY) == 300
    assert settings.number("tasks.factor") == 1.5
    assert settings.flag("watch.enabled") is False
    assert settings.text("log.level") == "info"
    assert settings.texts("hosts.trusted") == ()
    assert settings.faults() == ()
    assert not files.home.exists()


@pytest.mark.parametrize("present", list(itertools.product([False, True], repeat=4)))
def test_the_highest_layer_that_has_the_key_gives_its_value(
    files: Files, with_flags: Callable[[dict[str, object]], Settings], present: tuple[bool, ...]
) -> None:
    home, workspace, environment, flag = present
    if home:
        files.write_home("[tasks]\nlease_seconds = 100\n")
    if workspace:
        files.write_workspace("tasks.lease_seconds = 200\n")
    if environment:
        files.environ["AGENTSTEAD_TASKS_LEASE_SECONDS"] = "301"
    settings = with_flags({KEY: 400} if flag else {})
    layers = [
        ("flag", 400, flag),
        ("environment", 301, environment),
        ("workspace", 200, workspace),
        ("home", 100, home),
    ]
    expected = [(layer, value) for layer, value, there in layers if there] + [("built-in", 300)]
    explained = settings.explain(KEY, workspace=files.workspace)
    assert settings.get(KEY, workspace=files.workspace) == expected[0][1]
    assert [(origin.layer, origin.value) for origin in (explained.origin, *explained.hides)] == expected


def test_another_workspace_does_not_see_a_workspaces_file(files: Files, tmp_path: Path) -> None:
    files.write_workspace("tasks.lease_seconds = 200\n")
    settings = files.settings()
    assert settings.whole(KEY, workspace=files.workspace) == 200
    assert settings.whole(KEY, workspace=tmp_path / "other") == 300
    assert settings.whole(KEY) == 300


def test_an_explanation_gives_file_and_line_of_each_value(files: Files) -> None:
    files.write_home("# mine\n[tasks]\nlease_seconds = 100\n")
    files.write_workspace("\n\ntasks.lease_seconds = 200\n")
    explained = files.settings().explain(KEY, workspace=files.workspace)
    assert explained.origin.where == f"{files.workspace / '.agentstead' / 'config.toml'}:3"
    assert explained.hides[0].where == f"{files.home / 'config.toml'}:3"
    assert explained.setting.doc == "A lease."


def test_tables_merge_and_arrays_replace(files: Files) -> None:
    files.write_home('hosts.trusted = ["a", "b"]\nrules.weights = { one = 2.0, two = 3 }\n')
    files.write_workspace("[rules.weights]\ntwo = 4.5\nthree = 1\n")
    settings = files.settings()
    assert settings.texts("hosts.trusted", workspace=files.workspace) == ("a", "b")
    names = settings.names("rules.weights.*", workspace=files.workspace)
    assert names == ("one", "three", "two")
    assert [settings.get(f"rules.weights.{name}", workspace=files.workspace) for name in names] == [2.0, 1.0, 4.5]
    assert settings.get("rules.weights.unwritten") == 1.0


def test_an_unknown_key_is_reported_with_file_line_and_nearest_name(files: Files) -> None:
    files.write_home("[tasks]\nlease_secs = 100\n")
    (fault,) = files.settings().faults()
    assert fault.code == "config.unknown_key"
    assert fault.where == f"{files.home / 'config.toml'}:2"
    assert str(fault) == f"config.unknown_key: 'tasks.lease_secs' ({fault.where}) is no setting. Did you mean '{KEY}'?"


def test_an_unknown_table_is_reported_once_under_its_own_name(files: Files) -> None:
    files.write_home("[nothing.of.ours]\na = 1\nb = 2\n")
    assert [fault.key for fault in files.settings().faults()] == ["nothing.of.ours.a", "nothing.of.ours.b"]


def test_while_a_file_has_a_fault_its_last_good_state_stays_in_force(files: Files) -> None:
    files.write_home("[tasks]\nlease_seconds = 100\nfactor = 2\n")
    settings = files.settings()
    assert settings.whole(KEY) == 100
    files.write_home("[tasks]\nlease_seconds = 50\nfactr = 3\n")
    bump(files)
    assert settings.whole(KEY) == 100
    assert settings.number("tasks.factor") == 2.0
    assert [fault.code for fault in settings.faults()] == ["config.unknown_key"]
    files.write_home("[tasks]\nlease_seconds = 50\n")
    bump(files)
    assert settings.whole(KEY) == 50
    assert settings.faults() == ()


def test_a_process_that_starts_while_the_file_is_broken_has_its_last_good_state_too(files: Files) -> None:
    files.write_home("[tasks]\nlease_seconds = 100\n")
    files.settings()
    files.write_home("[tasks\nlease_seconds = 50\n")
    later = files.settings()
    assert later.whole(KEY) == 100
    (fault,) = later.faults()
    assert fault.code == "config.invalid"
    assert "is not TOML" in fault.what


def test_a_file_that_was_never_good_gives_its_sound_keys(files: Files) -> None:
    files.write_home('[tasks]\nlease_seconds = 100\nfactor = "much"\n')
    settings = files.settings()
    assert settings.whole(KEY) == 100
    assert settings.number("tasks.factor") == 1.5
    (fault,) = settings.faults()
    assert (fault.code, fault.key) == ("config.invalid", "tasks.factor")
    assert "'much' is not a number, at least 0" in fault.what


def test_a_removed_file_takes_its_last_good_state_with_it(files: Files) -> None:
    files.write_home("[tasks]\nlease_seconds = 100\n")
    settings = files.settings()
    (files.home / "config.toml").unlink()
    bump(files)
    assert settings.whole(KEY) == 300
    files.write_home("broken = [\n")
    assert files.settings().whole(KEY) == 300


def test_a_change_is_seen_after_a_second_and_not_before(files: Files) -> None:
    files.write_home("[tasks]\nlease_seconds = 100\n")
    settings = files.settings()
    files.write_home("[tasks]\nlease_seconds = 1000\n")
    files.now = 0.9
    assert settings.whole(KEY) == 100
    files.now = 1.0
    assert settings.whole(KEY) == 1000


def test_a_change_can_be_read_at_once_on_demand(files: Files) -> None:
    settings = files.settings()
    files.write_home("[tasks]\nlease_seconds = 1000\n")
    settings.reread()
    assert settings.whole(KEY) == 1000


def test_a_key_that_is_not_live_keeps_the_value_it_started_with(files: Files) -> None:
    files.write_home("server.port = 8000\n")
    settings = files.settings()
    assert settings.whole("server.port") == 8000
    files.write_home("server.port = 9000\n")
    bump(files)
    assert settings.whole("server.port") == 8000
    assert settings.explain("server.port").value == 9000


def test_a_workspace_file_may_not_set_a_key_of_the_home(files: Files) -> None:
    files.write_workspace('log.level = "debug"\ntasks.lease_seconds = 60\n')
    settings = files.settings()
    assert settings.text("log.level", workspace=files.workspace) == "info"
    (fault,) = settings.faults(workspace=files.workspace)
    assert (fault.code, fault.key) == ("config.scope", "log.level")
    assert fault.where.endswith("config.toml:1")
    assert "agentstead config set log.level" in fault.remedy


def test_a_workspace_file_may_tighten_and_not_loosen(files: Files) -> None:
    files.write_home("forks.live = 8\n")
    files.write_workspace('forks.live = 4\nchecks.isolation = "none"\n')
    settings = files.settings()
    assert settings.whole("forks.live", workspace=files.workspace) == 4
    assert settings.text("checks.isolation", workspace=files.workspace) == "best"
    (fault,) = settings.faults(workspace=files.workspace)
    assert (fault.code, fault.key) == ("config.scope", "checks.isolation")
    assert "'none' is looser than 'best'" in fault.what
    assert settings.explain("checks.isolation", workspace=files.workspace).faults == (fault,)


def test_the_environment_may_not_set_what_widens_rights(files: Files) -> None:
    files.environ["AGENTSTEAD_HOSTS_TRUSTED"] = "evil"
    settings = files.settings()
    assert settings.texts("hosts.trusted") == ()
    (fault,) = settings.faults()
    assert (fault.code, fault.where) == ("config.scope", "AGENTSTEAD_HOSTS_TRUSTED")


def test_a_variable_that_does_not_fit_is_reported_and_passed_over(files: Files) -> None:
    files.environ["AGENTSTEAD_LOG_LEVEL"] = "loud"
    settings = files.settings()
    assert settings.text("log.level") == "info"
    (fault,) = settings.faults()
    assert fault.code == "config.invalid"
    assert "'loud' is not one of debug, info, error" in fault.what


def test_a_flag_that_does_not_fit_is_refused_at_once(with_flags: Callable[[dict[str, object]], Settings]) -> None:
    with pytest.raises(Invalid, match=r"config\.invalid: server\.port: 70000 is not a whole number") as refused:
        with_flags({"server.port": "70000"})
    assert refused.value.remedy == "Give a whole number from 1 to 65,535."


def test_asking_for_an_unknown_key_names_the_nearest(files: Files) -> None:
    with pytest.raises(Invalid, match=r"config\.unknown_key") as refused:
        files.settings().get("log.levl")
    assert refused.value.remedy == "Did you mean 'log.level'?"


def test_a_read_only_home_is_read_without_a_complaint(files: Files) -> None:
    files.write_home("[tasks]\nlease_seconds = 100\n")
    (files.home / "cache").write_text("a file where the folder would be made")
    assert files.settings().whole(KEY) == 100
