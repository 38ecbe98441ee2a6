"""Setting hosts up and taking us out again: only our entries change, whatever the file looks like."""

import json
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentstead.cli.hosts.change import Change, apply, plan_install, plan_uninstall, present_entries
from agentstead.cli.hosts.entries import Installation, served_by
from agentstead.cli.hosts.host import HOSTS, Host, Machine, System
from agentstead.state import Conflict, Invalid

SERVERS = ("sessions", "memory", "skills", "permissions", "workspace", "network")
HERE = Installation(("/opt/tools/bin/agentstead",))
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)

JSON_HOSTS = [name for name, host in HOSTS.items() if host.text != "toml"]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine("linux", tmp_path / "person")


def write(host: Host, machine: Machine, text: str) -> Path:
    path = host.place(machine)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def read_table(host: Host, path: Path) -> dict[str, dict[str, object]]:
    text = path.read_text()
    tree = tomllib.loads(text) if host.text == "toml" else json.loads(text)
    table: dict[str, dict[str, object]] = tree[host.table]
    return table


def install(host: Host, machine: Machine, installation: Installation = HERE) -> Change:
    change = plan_install(host, SERVERS, installation, machine=machine)
    apply(change, backups=machine.home / "backups")
    return change


PLACES: list[tuple[str, System, str]] = [
    ("claude-desktop", "darwin", "Library/Application Support/Claude/claude_desktop_config.json"),
    ("claude-desktop", "win32", "AppData/Roaming/Claude/claude_desktop_config.json"),
    ("claude-desktop", "linux", ".config/Claude/claude_desktop_config.json"),
    ("claude-code", "darwin", ".claude.json"),
    ("claude-code", "win32", ".claude.json"),
    ("claude-code", "linux", ".claude.json"),
    ("codex", "darwin", ".codex/config.toml"),
    ("codex", "win32", ".codex/config.toml"),
    ("codex", "linux", ".codex/config.toml"),
    ("cursor", "darwin", ".cursor/mcp.json"),
    ("cursor", "win32", ".cursor/mcp.json"),
    ("cursor", "linux", ".cursor/mcp.json"),
    ("vscode", "darwin", "Library/Application Support/Code/User/mcp.json"),
    ("vscode", "win32", "AppData/Roaming/Code/User/mcp.json"),
    ("vscode", "linux", ".config/Code/User/mcp.json"),
    ("zed", "darwin", ".config/zed/settings.json"),
    ("zed", "win32", "AppData/Roaming/Zed/settings.json"),
    ("zed", "linux", ".config/zed/settings.json"),
]


def test_every_host_has_a_place_on_every_system() -> None:
    assert {(host, system) for host, system, _ in PLACES} == {
        (host, system) for host in HOSTS for system in ("darwin", "win32", "linux")
    }


@pytest.mark.parametrize(("name", "system", "place"), PLACES)
def test_a_host_is_set_up_in_its_own_file_and_taken_out_of_it(
    tmp_path: Path, name: str, system: System, place: str
) -> None:
    host, machine = HOSTS[name], Machine(system, tmp_path)
    change = install(host, machine)
    path = tmp_path / place
    assert change.path == path
    table = read_table(host, path)
    assert list(table) == [f"stead-{server}" for server in SERVERS]
    for server in SERVERS:
        entry = table[f"stead-{server}"]
        assert entry == {**host.extra, "command": "/opt/tools/bin/agentstead", "args": ["serve", server]}
    assert path.read_text().endswith("\n")
    assert path.stat().st_mode & 0o777 == 0o600
    assert not install(host, machine).needed
    apply(plan_uninstall(host, SERVERS, machine=machine), backups=tmp_path / "backups")
    assert present_entries(host, machine) == {}


@pytest.mark.parametrize(
    ("variable", "name", "place"),
    [
        ("XDG_CONFIG_HOME", "vscode", "Code/User/mcp.json"),
        ("XDG_CONFIG_HOME", "zed", "zed/settings.json"),
        ("CODEX_HOME", "codex", "config.toml"),
        ("CLAUDE_CONFIG_DIR", "claude-code", ".claude.json"),
    ],
)
def test_variables_that_move_a_hosts_folder_are_followed(tmp_path: Path, variable: str, name: str, place: str) -> None:
    machine = Machine("linux", tmp_path / "person", {variable: str(tmp_path / "moved")})
    assert HOSTS[name].place(machine) == tmp_path / "moved" / place


def test_roaming_settings_of_windows_are_found_where_its_variable_says(tmp_path: Path) -> None:
    machine = Machine("win32", tmp_path / "person", {"APPDATA": str(tmp_path / "roaming")})
    assert HOSTS["vscode"].place(machine) == tmp_path / "roaming" / "Code" / "User" / "mcp.json"


@pytest.mark.parametrize("name", JSON_HOSTS)
def test_entries_of_others_stay_and_uninstall_gives_the_same_bytes(machine: Machine, name: str) -> None:
    host = HOSTS[name]
    other = '"other": {"command": "x", "env": {"T": "1"}}'
    before = f'{{\n    "{host.table}": {{\n        {other}\n    }},\n    "z": [1]\n}}'
    path = write(host, machine, before)
    path.chmod(0o640)
    install(host, machine)
    table = read_table(host, path)
    assert table["other"] == {"command": "x", "env": {"T": "1"}}
    assert len(table) == 1 + len(SERVERS)
    assert path.stat().st_mode & 0o777 == 0o640
    assert before.splitlines()[2] + "," in path.read_text().splitlines()
    apply(plan_uninstall(host, SERVERS, machine=machine), backups=machine.home / "backups")
    assert path.read_text() == before


def test_codex_keeps_comments_tables_and_order(machine: Machine) -> None:
    before = '# mine\nmodel = "gpt" # this one\n\n[mcp_servers.other]\ncommand = "x"\n\n[tools]\nweb_search = true\n'
    path = write(HOSTS["codex"], machine, before)
    install(HOSTS["codex"], machine)
    assert path.read_text().startswith(before)
    assert set(read_table(HOSTS["codex"], path)) == {"other", *(f"stead-{server}" for server in SERVERS)}
    apply(plan_uninstall(HOSTS["codex"], SERVERS, machine=machine), backups=machine.home / "backups")
    assert path.read_text() == before


@pytest.mark.parametrize("name", ["vscode", "zed"])
def test_comments_and_last_commas_stay_where_the_host_allows_them(machine: Machine, name: str) -> None:
    host = HOSTS[name]
    before = f'// settings\n{{\n  "theme": "x", // dark\n  "{host.table}": {{ /* none */ }},\n}}\n'
    path = write(host, machine, before)
    install(host, machine)
    after = path.read_text()
    for part in ("// settings\n", '"theme": "x", // dark\n', "/* none */"):
        assert part in after
    assert len(present_entries(host, machine)) == len(SERVERS)


@pytest.mark.parametrize("name", JSON_HOSTS)
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": 1', "line 1: ',' or '}' is expected"),
        ("[]", "an object is expected"),
        ('{\n"a": 1,\n"a": 2\n}', "line 3: the key 'a' is there twice"),
        ('{"%s": []}', "is no table of servers"),
        ("not json", "line 1: a value is expected"),
    ],
)
def test_a_broken_file_is_refused_with_the_reason_and_left_alone(
    machine: Machine, name: str, text: str, why: str
) -> None:
    host = HOSTS[name]
    path = write(host, machine, text.replace("%s", host.table))
    with pytest.raises(Invalid, match=r"config\.invalid") as installing:
        plan_install(host, SERVERS, HERE, machine=machine)
    with pytest.raises(Invalid, match=r"config\.invalid") as leaving:
        plan_uninstall(host, SERVERS, machine=machine)
    for refused in (installing, leaving):
        assert str(path) in refused.value.message
        assert why in refused.value.message
        assert "Nothing was written" in refused.value.remedy
    assert path.read_text() == text.replace("%s", host.table)


def test_a_broken_toml_file_is_refused(machine: Machine) -> None:
    path = write(HOSTS["codex"], machine, "[mcp_servers\n")
    with pytest.raises(Invalid, match=r"config\.invalid: .*config\.toml"):
        plan_install(HOSTS["codex"], SERVERS, HERE, machine=machine)
    assert path.read_text() == "[mcp_servers\n"


def test_comments_in_a_file_of_a_host_that_reads_plain_json_are_refused(machine: Machine) -> None:
    write(HOSTS["cursor"], machine, '{\n  // why\n  "mcpServers": {}\n}\n')
    with pytest.raises(Invalid, match="line 2: a comment, which this host's file may not have"):
        plan_install(HOSTS["cursor"], SERVERS, HERE, machine=machine)


def test_a_file_that_is_no_utf_8_text_is_refused(machine: Machine) -> None:
    path = HOSTS["cursor"].place(machine)
    path.parent.mkdir(parents=True)
    path.write_bytes('{"a": 1}'.encode("utf-16"))
    with pytest.raises(Invalid, match="not UTF-8 text"):
        plan_install(HOSTS["cursor"], SERVERS, HERE, machine=machine)


def test_the_mark_that_some_editors_put_first_stays_first(machine: Machine) -> None:
    path = write(HOSTS["cursor"], machine, '\ufeff{"mcpServers": {}}\r\n')
    install(HOSTS["cursor"], machine)
    text = path.read_bytes().decode()
    assert text.startswith("\ufeff{")
    assert len(json.loads(text.removeprefix("\ufeff"))["mcpServers"]) == len(SERVERS)


def test_a_moved_installation_is_brought_up_to_date_and_a_persons_additions_stay(machine: Machine) -> None:
    host = HOSTS["cursor"]
    old = '{"command": "/old/agentstead", "args": ["serve", "memory"], "disabled": true}'
    path = write(host, machine, f'{{"mcpServers": {{"stead-memory": {old}}}}}')
    install(host, machine)
    entry = read_table(host, path)["stead-memory"]
    assert entry == {"command": "/opt/tools/bin/agentstead", "args": ["serve", "memory"], "disabled": True}


def test_a_server_that_the_person_added_under_another_key_is_not_added_twice(machine: Machine) -> None:
    host = HOSTS["cursor"]
    path = write(host, machine, '{"mcpServers": {"memory": {"command": "agentstead", "args": ["serve", "memory"]}}}')
    install(host, machine)
    table = read_table(host, path)
    assert "stead-memory" not in table
    assert table["memory"]["command"] == "/opt/tools/bin/agentstead"
    assert len(table) == len(SERVERS)


def test_an_entry_of_somebody_else_under_our_key_is_never_overwritten(machine: Machine) -> None:
    host = HOSTS["cursor"]
    before = '{"mcpServers": {"stead-memory": {"command": "other"}}}'
    path = write(host, machine, before)
    with pytest.raises(Invalid, match="'stead-memory' is there already, and starts something else"):
        plan_install(host, SERVERS, HERE, machine=machine)
    assert not plan_uninstall(host, SERVERS, machine=machine).needed
    assert path.read_text() == before


def test_another_home_is_named_in_the_entry_and_goes_when_the_default_one_is_meant_again(machine: Machine) -> None:
    host = HOSTS["codex"]
    install(host, machine, Installation(("/opt/tools/bin/agentstead",), Path("/srv/home")))
    path = host.place(machine)
    assert {str(entry["env"]) for entry in read_table(host, path).values()} == {"{'AGENTSTEAD_HOME': '/srv/home'}"}
    install(host, machine, Installation(("/opt/tools/bin/agentstead",), Path("/srv/other")))
    assert {str(entry["env"]) for entry in read_table(host, path).values()} == {"{'AGENTSTEAD_HOME': '/srv/other'}"}
    install(host, machine)
    assert {str(entry.get("env", {})) for entry in read_table(host, path).values()} == {"{}"}


def test_some_servers_can_be_named_alone(machine: Machine) -> None:
    host = HOSTS["cursor"]
    install(host, machine)
    apply(plan_uninstall(host, ["memory"], machine=machine), backups=machine.home / "backups")
    assert set(present_entries(host, machine)) == {f"stead-{server}" for server in SERVERS if server != "memory"}


def test_a_backup_of_the_file_as_it_was_is_kept_for_its_owner_alone(machine: Machine) -> None:
    host = HOSTS["cursor"]
    path = write(host, machine, '{"mcpServers": {}}\r\n')
    change = plan_install(host, SERVERS, HERE, machine=machine)
    backup = apply(change, backups=machine.home / "backups", now=NOW)
    assert backup == machine.home / "backups" / "20261130T120000000000Z-mcp.json"
    assert backup.read_bytes() == b'{"mcpServers": {}}\r\n'
    assert backup.stat().st_mode & 0o777 == 0o600
    assert path.read_bytes() != backup.read_bytes()


def test_a_new_file_and_a_change_that_is_none_need_no_backup(machine: Machine) -> None:
    host = HOSTS["cursor"]
    backups = machine.home / "backups"
    assert apply(plan_install(host, SERVERS, HERE, machine=machine), backups=backups) is None
    assert apply(plan_install(host, SERVERS, HERE, machine=machine), backups=backups) is None
    assert not backups.exists()


def test_planning_writes_nothing(machine: Machine) -> None:
    change = plan_install(HOSTS["cursor"], SERVERS, HERE, machine=machine)
    assert change.needed
    assert not machine.home.exists()
    assert not plan_uninstall(HOSTS["cursor"], SERVERS, machine=machine).needed


def test_a_file_that_changed_since_it_was_planned_is_not_overwritten(machine: Machine) -> None:
    host = HOSTS["claude-code"]
    path = write(host, machine, '{"numStartups": 1}\n')
    change = plan_install(host, SERVERS, HERE, machine=machine)
    path.write_text('{"numStartups": 2}\n')
    with pytest.raises(Conflict, match=r"version\.conflict"):
        apply(change, backups=machine.home / "backups")
    assert path.read_text() == '{"numStartups": 2}\n'


def test_a_link_inside_the_persons_folder_is_followed_and_said(machine: Machine) -> None:
    host = HOSTS["cursor"]
    real = machine.home / "dotfiles" / "mcp.json"
    real.parent.mkdir(parents=True)
    real.write_text('{"mcpServers": {}}\n')
    path = host.place(machine)
    path.parent.mkdir()
    path.symlink_to(real)
    change = install(host, machine)
    assert change.notes == (f"{path} is a link: {real} is the file that is written.",)
    assert path.is_symlink()
    assert len(json.loads(real.read_text())["mcpServers"]) == len(SERVERS)


@pytest.mark.parametrize("linked", ["file", "folder"])
def test_a_link_out_of_the_persons_folder_is_followed_only_on_demand(
    machine: Machine, tmp_path: Path, linked: str
) -> None:
    host = HOSTS["cursor"]
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mcp.json").write_text("{}\n")
    path = host.place(machine)
    if linked == "file":
        path.parent.mkdir(parents=True)
        path.symlink_to(outside / "mcp.json")
    else:
        machine.home.mkdir()
        path.parent.symlink_to(outside)
    with pytest.raises(Invalid, match=r"path\.symlink") as refused:
        plan_install(host, SERVERS, HERE, machine=machine)
    assert "--follow-link" in refused.value.remedy
    assert (outside / "mcp.json").read_text() == "{}\n"
    change = plan_install(host, SERVERS, HERE, machine=machine, follow=True)
    apply(change, backups=machine.home / "backups")
    assert change.notes
    assert "stead-memory" in (outside / "mcp.json").read_text()


def test_a_file_that_cannot_be_read_is_a_clear_refusal(machine: Machine) -> None:
    HOSTS["cursor"].place(machine).mkdir(parents=True)
    with pytest.raises(Invalid, match=r"it cannot be read \(Is a directory\)"):
        plan_install(HOSTS["cursor"], SERVERS, HERE, machine=machine)


def test_a_folder_that_is_a_file_is_a_clear_refusal(machine: Machine) -> None:
    machine.home.mkdir()
    (machine.home / ".cursor").write_text("no folder")
    with pytest.raises(Invalid, match=r"config\.invalid"):
        install(HOSTS["cursor"], machine)


def test_the_difference_shows_the_change_and_masks_its_neighbours(machine: Machine) -> None:
    host = HOSTS["cursor"]
    write(host, machine, '{\n  "mcpServers": {\n    "x": {"command": "x", "env": {"KEY": "hunter2"}}\n  }\n}\n')
    change = plan_install(host, ["memory"], HERE, machine=machine)
    shown = change.diff(lambda line: line.replace("hunter2", "***"))
    assert "hunter2" not in shown
    assert f"--- {host.place(machine)}" in shown
    assert '+    "stead-memory": {' in shown
    assert max(len(line) for line in shown.splitlines()) <= 160


@pytest.mark.parametrize(
    ("entry", "server"),
    [
        ({"command": "agentstead", "args": ["serve", "memory"]}, "memory"),
        ({"command": "C:\\Tools\\agentstead.exe", "args": ["serve", "skills"]}, "skills"),
        ({"command": "/usr/bin/python3", "args": ["-m", "agentstead.cli", "serve", "network"]}, "network"),
        ({"command": "agentstead", "args": ["serve"]}, ""),
        ({"command": "agentstead", "args": ["gateway", "run", "x"]}, ""),
        ({"command": "agentstead-like", "args": ["serve", "memory"]}, ""),
        ({"command": "/usr/bin/python3", "args": ["-m", "other", "serve", "memory"]}, ""),
        ({"command": {"path": "agentstead"}, "args": ["serve", "memory"]}, ""),
        ({"url": "http://127.0.0.1/memory/mcp"}, ""),
        ("agentstead serve memory", ""),
    ],
)
def test_our_entries_are_told_from_those_of_others(entry: object, server: str) -> None:
    assert served_by(entry) == server


def test_keys_leave_room_for_the_longest_tool_name() -> None:
    for server in SERVERS:
        assert len(f"mcp__stead-{server}__{'x' * 32}") < 60


def test_a_program_in_a_cache_is_known_as_one_that_may_go() -> None:
    assert Installation(("/home/p/.cache/uv/archive-v0/x/bin/agentstead",)).passing
    assert not Installation(("/home/p/.local/bin/agentstead",)).passing
