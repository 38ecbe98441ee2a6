"""The tools end to end: list, activate, read, explain, end, in a home with a workspace."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agentstead.identity import Principal
from agentstead.kit import Call, Home
from agentstead.policy import answer
from agentstead.sessions.service import session_close, session_open
from agentstead.skills import activations
from agentstead.skills.activations import files_of
from agentstead.skills.service import skill_activate, skill_deactivate, skill_explain, skill_list, skill_read
from agentstead.skills.trusting import Trusted, trust_skills, untrust_skills
from agentstead.state import AgentsteadError, PendingAnswer, SimulatedClock

pytestmark = pytest.mark.anyio

Invoke = Callable[..., Awaitable[Any]]
WriteSkill = Callable[..., Path]
HOST = "host:editor"
PERSON = Principal.user(at_terminal=True)


async def code_of(call: Awaitable[Any]) -> str:
    with pytest.raises(AgentsteadError) as caught:
        await call
    assert caught.value.remedy
    return caught.value.code


async def trust(home: Home, project: Path, mode: Any = "content") -> Trusted:
    return await trust_skills(Call(home, PERSON, cwd=project), workspace_id=None, mode=mode)


async def listed(home: Home, invoke: Invoke, **arguments: Any) -> list[tuple[str, str]]:
    found = await invoke(home, skill_list, principal=HOST, **arguments)
    return [(item.qualified_name, item.ruling) for item in found.items if item.origin != "bundled"]


async def test_a_skill_is_found_activated_and_its_files_are_read(
    home: Home, mine: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    write_skill(mine, "tides", body="Look at tables/today.txt.\n", files={"tables/today.txt": "high 12:00\n"})
    (found,) = (await invoke(home, skill_list, principal=HOST, query="tides")).items
    assert (found.name, found.ruling, found.tier, found.files, found.active) == ("tides", "served", "own", 2, False)
    active = await invoke(home, skill_activate, principal=HOST, name="tides")
    assert active.activation_id.startswith("act_")
    assert active.tree_id == found.tree_id
    assert "Look at tables/today.txt." in active.content
    assert [file.path for file in active.files] == ["SKILL.md", "tables/today.txt"]
    reading = {"principal": HOST, "activation_id": active.activation_id, "path": "tables/today.txt"}
    read = await invoke(home, skill_read, **reading)
    assert (read.text, read.size, read.next_offset, read.media_type) == ("high 12:00\n", 11, None, "text/plain")
    (found,) = (await invoke(home, skill_list, principal=HOST, query="tides")).items
    assert found.active


async def test_without_a_workspace_the_answer_says_how_to_name_one(
    home: Home, mine: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    write_skill(mine, "tides")
    page = await invoke(home, skill_list, principal=HOST)
    assert "Skills of a workspace are left out." in page.note
    assert "AGENTSTEAD_WORKSPACE" in page.note
    assert await code_of(invoke(home, skill_list, principal=HOST, workspace_id="nowhere")) == "workspace.unknown"


async def test_every_root_is_looked_into_in_its_rank(
    home: Home, mine: Path, person: Path, project: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    roots = [project / ".agentstead", project / ".agents", project / ".claude", person / ".agents", person / ".claude"]
    for at, root in enumerate(roots):
        write_skill(root / "skills", "tides", description=f"number {at}")
    write_skill(mine, "tides", description="mine")
    await trust(home, project)
    page = await invoke(home, skill_list, principal=HOST, cwd=project, ruling="any", query="tides")
    shown = [(item.description, item.ruling) for item in page.items]
    assert shown == [
        ("number 0", "served"),
        ("number 1", "shadowed"),
        ("number 2", "shadowed"),
        ("mine", "shadowed"),
        ("number 3", "shadowed"),
        ("number 4", "shadowed"),
    ]


@pytest.mark.parametrize("key", ["own", "agents", "claude"])
async def test_a_root_that_is_switched_off_is_not_looked_into(
    home: Home, mine: Path, person: Path, invoke: Invoke, write_skill: WriteSkill, key: str
) -> None:
    for name, root in (("own", mine), ("agents", person / ".agents/skills"), ("claude", person / ".claude/skills")):
        write_skill(root, name)
    (home.path / "config.toml").write_text(f"[skills.roots]\n{key} = false\n")
    home.settings.reread()
    assert key not in [name.split(":")[1] for name, _ in await listed(home, invoke)]
    assert len(await listed(home, invoke)) == 2


async def test_extra_roots_and_link_targets_are_settings(
    home: Home, mine: Path, person: Path, tmp_path: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    write_skill(person / "more", "extra")
    write_skill(tmp_path / "elsewhere", "linked")
    mine.mkdir()
    (mine / "linked").symlink_to(tmp_path / "elsewhere" / "linked")
    assert await listed(home, invoke, ruling="any") == [("user:linked", "blocked")]
    text = f'[skills]\nlink_targets = ["{tmp_path}/elsewhere"]\n[skills.roots]\nextra = ["~/more", "relative"]\n'
    (home.path / "config.toml").write_text(text)
    home.settings.reread()
    assert await listed(home, invoke) == [("user:extra", "served"), ("user:linked", "served")]


async def test_a_workspaces_skills_are_served_only_once_a_person_trusted_them(
    home: Home, mine: Path, project: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    write_skill(project / ".claude/skills", "tides", description="of the workspace")
    write_skill(mine, "tides", description="my own")
    assert await listed(home, invoke, cwd=project) == [("user:tides", "served")]
    assert await code_of(invoke(home, skill_activate, principal=HOST, cwd=project, name="workspace:tides")) == (
        "skill.untrusted"
    )
    trusted = await trust(home, project)
    assert list(trusted.contents) == [".claude/skills/tides"]
    active = await invoke(home, skill_activate, principal=HOST, cwd=project, name="tides")
    assert active.origin == "workspace"
    explained = await invoke(home, skill_explain, principal=HOST, cwd=project, name="tides")
    assert (explained.winner.qualified_name, explained.trust.mode) == ("workspace:tides", "content")
    assert [loser.qualified_name for loser in explained.losers] == ["user:tides"]
    behind = await invoke(home, skill_activate, principal=HOST, cwd=project, name="user:tides")
    assert behind.origin == "user"


async def test_no_host_and_no_agent_can_trust(home: Home, project: Path, write_skill: WriteSkill) -> None:
    write_skill(project / ".claude/skills", "tides")
    for principal in (Principal("host", "editor"), Principal("agent", "a@ses_1")):
        assert await code_of(trust_skills(Call(home, principal, cwd=project), workspace_id=None, mode="all")) == (
            "skill.user_only"
        )


async def test_trust_needs_a_skill_and_names_what_it_left_out(
    home: Home, project: Path, write_skill: WriteSkill
) -> None:
    assert await code_of(trust(home, project)) == "skill.not_found"
    write_skill(project / ".claude/skills", "tides")
    hidden = write_skill(project / ".claude/skills", "hidden", body="a\u200bb")
    trusted = await trust(home, project)
    assert list(trusted.contents) == [".claude/skills/tides"]
    assert trusted.left_out == (f"{hidden.relative_to(project)}: workspace_untrusted, scan_blocked, never_asked",)


async def test_a_copy_of_a_trusted_folder_is_not_trusted(
    home: Home, project: Path, tmp_path: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    write_skill(project / ".claude/skills", "tides")
    await trust(home, project)
    moved = tmp_path / "moved"
    project.rename(moved)
    assert await listed(home, invoke, cwd=moved) == [("workspace:tides", "served")]
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in sorted(moved.rglob("*")):
        target = copy / path.relative_to(moved)
        target.mkdir() if path.is_dir() else target.write_bytes(path.read_bytes())
    moved.rename(tmp_path / "gone")
    assert await listed(home, invoke, cwd=copy) == []
    assert await listed(home, invoke, cwd=copy, ruling="untrusted") == [("workspace:tides", "untrusted")]


async def test_a_changed_skill_of_a_trusted_workspace_asks_again_and_keeps_its_name(
    home: Home, mine: Path, project: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    write_skill(mine, "tides")
    folder = write_skill(project / ".claude/skills", "tides")
    await trust(home, project)
    active = await invoke(home, skill_activate, principal=HOST, cwd=project, name="tides")
    (folder / "new.sh").write_text("echo\n")
    assert await listed(home, invoke, cwd=project) == []
    assert await listed(home, invoke, cwd=project, ruling="needs_consent") == [("workspace:tides", "needs_consent")]
    read = {"activation_id": active.activation_id, "path": "SKILL.md"}
    assert await code_of(invoke(home, skill_read, principal=HOST, **read)) == "skill.content_changed"
    activate = {"principal": HOST, "cwd": project, "name": "tides"}
    with pytest.raises(PendingAnswer) as pending:
        await invoke(home, skill_activate, **activate)
    approval_id = pending.value.details["approval_id"]
    question = await home.state.read(lambda r: r.one("SELECT summary FROM approvals"))
    assert question is not None
    assert "new.sh" in question["summary"]
    await home.state.write(answer, approval_id, "allow_once", by=PERSON, proof="terminal")
    again = await invoke(home, skill_activate, **activate)
    assert not again.already_active
    assert again.tree_id != active.tree_id
    assert await listed(home, invoke, cwd=project) == [("workspace:tides", "served")]
    (folder / "new.sh").write_text("echo other\n")
    assert await listed(home, invoke, cwd=project) == []


async def test_a_refused_consent_leaves_nothing_behind(
    home: Home, project: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    folder = write_skill(project / ".claude/skills", "tides")
    await trust(home, project)
    (folder / "new.txt").write_text("x")
    activate = {"principal": HOST, "cwd": project, "name": "tides"}
    with pytest.raises(PendingAnswer) as pending:
        await invoke(home, skill_activate, **activate)
    await home.state.write(
        answer, pending.value.details["approval_id"], "deny_once", by=PERSON, proof="terminal", note="not this one"
    )
    assert await code_of(invoke(home, skill_activate, **activate)) == "permission.denied"
    counts = await home.state.read(
        lambda r: [r.value(f"SELECT COUNT(*) FROM {table}") for table in ("activations", "consents", "tree_files")]
    )
    assert counts == [0, 0, 0]


async def test_trust_of_mode_all_follows_every_change(
    home: Home, project: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    folder = write_skill(project / ".claude/skills", "tides")
    await trust(home, project, "all")
    (folder / "new.txt").write_text("x")
    write_skill(project / ".agents/skills", "moon")
    assert await listed(home, invoke, cwd=project) == [("workspace:moon", "served"), ("workspace:tides", "served")]


async def test_ones_own_skills_ask_where_the_setting_says_so(
    home: Home, mine: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    write_skill(mine, "tides")
    (home.path / "config.toml").write_text('[skills.consent]\nuser = "ask"\n')
    home.settings.reread()
    with pytest.raises(PendingAnswer):
        await invoke(home, skill_activate, principal=HOST, name="tides")
    active = await invoke(home, skill_activate, principal="user", name="tides")
    assert active.state == "active"
    assert await listed(home, invoke) == [("user:tides", "served")]


async def test_a_trusted_workspace_is_enough_where_the_setting_says_so(
    home: Home, project: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    folder = write_skill(project / ".claude/skills", "tides")
    await trust(home, project)
    (folder / "new.txt").write_text("x")
    (home.path / "config.toml").write_text('[skills.consent]\nworkspace = "auto"\n')
    home.settings.reread()
    assert await listed(home, invoke, cwd=project) == [("workspace:tides", "served")]


async def test_the_same_content_is_activated_once_and_its_text_comes_again_when_asked(
    home: Home, mine: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    write_skill(mine, "tides")
    first = await invoke(home, skill_activate, principal=HOST, name="tides")
    second = await invoke(home, skill_activate, principal=HOST, name="tides")
    third = await invoke(home, skill_activate, principal=HOST, name="tides", again=True)
    other = await invoke(home, skill_activate, principal="host:other", name="tides")
    assert first.activation_id == second.activation_id == third.activation_id != other.activation_id
    assert (second.already_active, second.content) == (True, None)
    assert third.content == first.content


async def test_a_repeated_key_gives_the_stored_activation(
    home: Home, mine: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    write_skill(mine, "tides")
    keyed = {"principal": HOST, "name": "tides", "idempotency_key": "one"}
    first = await invoke(home, skill_activate, **keyed)
    await invoke(home, skill_deactivate, principal=HOST, activation_id=first.activation_id)
    again = await invoke(home, skill_activate, **keyed)
    assert (again.activation_id, again.already_active) == (first.activation_id, False)


async def test_a_long_body_is_cut_and_goes_on_in_skill_read(
    home: Home, mine: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    write_skill(mine, "tides", body="0123456789abcde\n" * 30_000)
    active = await invoke(home, skill_activate, principal=HOST, name="tides")
    read = {"principal": HOST, "activation_id": active.activation_id, "path": "SKILL.md"}
    rest = await invoke(home, skill_read, offset=active.next_offset, **read)
    whole = (mine / "tides" / "SKILL.md").read_text()
    shown = active.content.split("\n\n", 1)[1].rsplit("\n", 1)[0]
    assert whole[: active.next_offset].rstrip().endswith(shown[-64:])
    assert whole[active.next_offset :].startswith(rest.text)
    assert rest.next_offset == active.next_offset + 65_536


async def test_ending_an_activation_ends_reading_and_forgets_its_files(
    home: Home, mine: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    write_skill(mine, "tides")
    active = await invoke(home, skill_activate, principal=HOST, name="tides")
    ended = await invoke(home, skill_deactivate, principal=HOST, activation_id=active.activation_id)
    assert ended.end_reason == "deactivated"
    assert (await invoke(home, skill_deactivate, principal=HOST, activation_id=active.activation_id)) == ended
    read = {"activation_id": active.activation_id, "path": "SKILL.md"}
    assert await code_of(invoke(home, skill_read, principal=HOST, **read)) == "activation.ended"
    assert await home.state.read(files_of, active.tree_id) == ()
    assert await code_of(invoke(home, skill_deactivate, activation_id="act_nothing")) == "activation.not_found"


@pytest.mark.parametrize(("session", "hours"), [(False, 4), (True, 7 * 24)])
async def test_an_activation_ends_with_its_time(
    home: Home,
    mine: Path,
    project: Path,
    clock: SimulatedClock,
    invoke: Invoke,
    write_skill: WriteSkill,
    session: bool,
    hours: int,
) -> None:
    write_skill(mine, "tides")
    arguments = {"principal": HOST, "cwd": project, "name": "tides"}
    if session:
        arguments["session_id"] = (await invoke(home, session_open, principal=HOST, cwd=project)).session_id
    active = await invoke(home, skill_activate, **arguments)
    read = {"principal": HOST, "activation_id": active.activation_id, "path": "SKILL.md"}
    clock.advance(seconds=hours * 3600 - 1)
    assert (await invoke(home, skill_read, **read)).text
    clock.advance(seconds=1)
    assert await code_of(invoke(home, skill_read, **read)) == "activation.ended"
    ended = await home.state.read(activations.find, active.activation_id)
    assert (ended.state, ended.end_reason) == ("ended", "expired")


async def test_an_activation_ends_with_its_session(
    home: Home, mine: Path, project: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    write_skill(mine, "tides")
    session_id = (await invoke(home, session_open, principal=HOST, cwd=project)).session_id
    arguments = {"principal": HOST, "cwd": project, "name": "tides", "session_id": session_id}
    active = await invoke(home, skill_activate, **arguments)
    assert (await invoke(home, skill_activate, **{**arguments, "principal": "host:other"})).already_active
    await invoke(home, session_close, principal=HOST, session_id=session_id)
    read = {"principal": HOST, "activation_id": active.activation_id, "path": "SKILL.md"}
    assert await code_of(invoke(home, skill_read, **read)) == "activation.ended"
    ended = await home.state.read(activations.find, active.activation_id)
    assert ended.end_reason == "session_closed"
    assert await code_of(invoke(home, skill_activate, **arguments)) == "session.not_found"


async def test_an_activation_ends_when_its_skill_is_no_longer_served(
    home: Home, mine: Path, project: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    folder = write_skill(project / ".claude/skills", "tides")
    await trust(home, project)
    active = await invoke(home, skill_activate, principal=HOST, cwd=project, name="tides")
    read = {"principal": HOST, "cwd": project, "activation_id": active.activation_id, "path": "SKILL.md"}
    assert await untrust_skills(Call(home, PERSON, cwd=project), workspace_id=None) == [".claude/skills/tides"]
    assert await code_of(invoke(home, skill_read, **read)) == "activation.ended"
    await trust(home, project)
    active = await invoke(home, skill_activate, principal=HOST, cwd=project, name="tides")
    read["activation_id"] = active.activation_id
    folder.rename(folder.with_name("elsewhere-outside"))
    (folder.with_name("elsewhere-outside") / "SKILL.md").unlink()
    assert await code_of(invoke(home, skill_read, **read)) == "skill.content_changed"


async def test_a_skill_reserved_for_people_is_refused_to_hosts(
    home: Home, mine: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    write_skill(mine, "tides", fields="disable-model-invocation: true\n")
    assert await code_of(invoke(home, skill_activate, principal=HOST, name="tides")) == "skill.user_only"
    assert (await invoke(home, skill_activate, principal="user", name="tides")).state == "active"


async def test_the_number_of_live_activations_is_bounded(
    home: Home, mine: Path, invoke: Invoke, write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activations, "MOST_LIVE", 1)
    for name in ("tides", "moon"):
        write_skill(mine, name)
    await invoke(home, skill_activate, principal=HOST, name="tides")
    assert await code_of(invoke(home, skill_activate, principal=HOST, name="moon")) == "activation.limit"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("nothing", "skill.not_found"),
        ("bundled:tides", "skill.not_found"),
        ("broken", "skill.invalid"),
        ("hidden", "skill.blocked"),
        ("escaping", "skill.blocked"),
        ("elsewhere", "skill.inactive"),
    ],
)
async def test_a_skill_that_is_not_served_says_why(
    home: Home, mine: Path, invoke: Invoke, write_skill: WriteSkill, name: str, code: str
) -> None:
    write_skill(mine, "tides")
    write_skill(mine, "broken", description="''")
    write_skill(mine, "hidden", description="looks up\u200b tides")
    (write_skill(mine, "escaping") / "out").symlink_to("/etc/passwd")
    write_skill(mine, "elsewhere", fields="metadata:\n  agentstead.platforms: plan9\n")
    assert await code_of(invoke(home, skill_activate, principal=HOST, name=name)) == code
    assert await listed(home, invoke) == [("user:tides", "served")]
    assert await home.state.read(lambda r: r.value("SELECT COUNT(*) FROM activations")) == 0


async def test_a_misspelled_name_offers_served_ones_only(
    home: Home, mine: Path, project: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    write_skill(mine, "tides")
    write_skill(project / ".claude/skills", "tidez")
    with pytest.raises(AgentsteadError) as caught:
        await invoke(home, skill_activate, principal=HOST, cwd=project, name="tidees")
    assert caught.value.details["similar"] == ["tides"]


@pytest.mark.parametrize("path", ["../../config.toml", "/etc/passwd", "a\\b"])
async def test_a_path_that_leads_out_is_refused(
    home: Home, mine: Path, invoke: Invoke, write_skill: WriteSkill, path: str
) -> None:
    write_skill(mine, "tides")
    active = await invoke(home, skill_activate, principal=HOST, name="tides")
    read = {"principal": HOST, "activation_id": active.activation_id, "path": path}
    assert await code_of(invoke(home, skill_read, **read)) == "skill.path_escape"
    read["path"] = "missing.txt"
    assert await code_of(invoke(home, skill_read, **read)) == "skill.file_unlisted"
    read["path"] = "SKILL.md"
    assert (await invoke(home, skill_read, **read)).text


async def test_requested_tools_are_shown_and_not_granted(
    home: Home, mine: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    write_skill(mine, "tides", fields="allowed-tools: Bash(git:*) Read\n")
    active = await invoke(home, skill_activate, principal=HOST, name="tides")
    assert [(each.pattern, each.decision) for each in active.requested_tools] == [
        ("Bash(git:*)", "not_granted"),
        ("Read", "not_granted"),
    ]
    assert await home.state.read(lambda r: r.value("SELECT COUNT(*) FROM grants")) == 0


async def test_a_page_is_small_and_cursors_follow_the_catalogue(
    home: Home, mine: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    for number in range(60):
        write_skill(mine, f"skill-{number:02}", description="w" * 500)
    page = await invoke(home, skill_list, principal=HOST, query="skill")
    assert len(page.model_dump_json()) < 9_000
    assert all(len(item.description) <= 200 for item in page.items)
    names = [item.name for item in page.items]
    while page.next_cursor:
        page = await invoke(home, skill_list, principal=HOST, query="skill", cursor=page.next_cursor)
        names += [item.name for item in page.items]
    assert names == [f"skill-{number:02}" for number in range(60)]
    full = await invoke(home, skill_list, principal=HOST, query="skill", detail="full", limit=2)
    assert [len(item.description) for item in full.items] == [500, 500]
    write_skill(mine, "skill-99")
    again = {"principal": HOST, "query": "skill", "detail": "full", "cursor": full.next_cursor}
    assert await code_of(invoke(home, skill_list, **again)) == "cursor.expired"
    assert await code_of(invoke(home, skill_list, **{**again, "query": "other"})) == "cursor.foreign"


async def test_an_unchanged_catalogue_is_answered_by_its_etag(
    home: Home, mine: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    folder = write_skill(mine, "tides")
    first = await invoke(home, skill_list, principal=HOST)
    same = await invoke(home, skill_list, principal=HOST, etag=first.etag)
    assert (same.unchanged, same.items, same.etag) == (True, [], first.etag)
    (folder / "new.txt").write_text("x")
    changed = await invoke(home, skill_list, principal=HOST, etag=first.etag)
    assert not changed.unchanged
    assert changed.items


async def test_bounds_are_told_in_every_listing(
    home: Home, mine: Path, invoke: Invoke, write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentstead.skills.walk.MAX_CANDIDATES", 1)
    for name in ("a", "b"):
        write_skill(mine, name)
    page = await invoke(home, skill_list, principal=HOST)
    assert page.truncated_roots == [f"{mine}: more than 1 skills"]


async def test_a_blocked_skills_text_is_shown_with_code_points(
    home: Home, mine: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    write_skill(mine, "tides", description="looks up\u202e tides")
    page = await invoke(home, skill_list, principal=HOST, ruling="blocked")
    assert [item.description for item in page.items] == ["looks up<U+202E> tides"]
    explained = await invoke(home, skill_explain, principal=HOST, name="tides")
    assert explained.winner.fix.endswith("U+202E (direction) in line 3")


async def test_every_change_is_one_journal_entry_without_the_skills_text(
    home: Home, mine: Path, invoke: Invoke, write_skill: WriteSkill
) -> None:
    write_skill(mine, "tides", body="a secret recipe\n")
    active = await invoke(home, skill_activate, principal=HOST, name="tides")
    await invoke(home, skill_deactivate, principal=HOST, activation_id=active.activation_id)
    entries = await home.state.read(lambda r: r.entries(0, kinds=("skills.*",)))
    assert [entry.kind for entry in entries] == ["skills.activation.started", "skills.activation.ended"]
    assert all(entry.principal == HOST for entry in entries)
    assert "recipe" not in str(entries)
    assert entries[0].body is not None
    assert entries[0].body["tree_id"] == active.tree_id
