"""Looking at skill folders: what a candidate is, whatever stands in its place."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agentstead.skills.candidates import Candidate, Origin, Root
from agentstead.skills.store import Place
from agentstead.skills.survey import look, survey
from agentstead.skills.walk import Found
from agentstead.skills.warm import WarmIds

WriteSkill = Callable[..., Path]


def only(skills: Path) -> Candidate:
    (candidate,) = survey([Root(Origin.USER, skills)]).candidates
    return candidate


def test_a_candidate_says_what_it_is_and_what_it_holds(skills: Path, write_skill: WriteSkill) -> None:
    folder = write_skill(skills, "group/tides", files={"a.txt": "a"})
    found = only(skills)
    assert (found.name, found.qualified_name, found.origin_key) == ("tides", "user:tides", "user/-/tides")
    assert found.shown == folder
    assert found.tree is not None
    assert [file.path for file in found.tree.files] == ["SKILL.md", "a.txt"]
    assert (found.refusal, found.unseen) == (None, "")


def test_a_folder_that_cannot_be_held_still_has_its_own_name(skills: Path, write_skill: WriteSkill) -> None:
    folder = write_skill(skills, "tides")
    folder.rename(skills / "renamed")
    (skills / "renamed" / "out").symlink_to("/etc/hostname")
    found = only(skills)
    assert (found.name, found.tree) == ("tides", None)
    assert found.refusal is not None
    assert found.refusal.reason == "path_escape"


def test_a_skill_md_that_is_a_link_inside_is_read_and_one_that_leads_out_is_not(
    skills: Path, write_skill: WriteSkill
) -> None:
    folder = write_skill(skills, "tides")
    (folder / "SKILL.md").rename(folder / "real.md")
    (folder / "SKILL.md").symlink_to("real.md")
    assert only(skills).document is not None
    (folder / "SKILL.md").unlink()
    (folder / "SKILL.md").symlink_to("/etc/passwd")
    found = only(skills)
    assert (found.judged, found.name) == (None, "tides")
    assert found.refusal is not None


def test_a_pipe_as_skill_md_does_not_hang(skills: Path) -> None:
    (skills / "tides").mkdir()
    os.mkfifo(skills / "tides" / "SKILL.md")
    found = only(skills)
    assert found.judged is None
    assert found.refusal is not None
    assert found.refusal.reason == "path_escape"


@pytest.mark.parametrize("body", ["run\u200b this", "\U000e0068\U000e0069", "a \u202e b"])
def test_unseen_characters_are_named_with_their_line(skills: Path, write_skill: WriteSkill, body: str) -> None:
    write_skill(skills, "tides", body=f"one\n{body}\n")
    assert only(skills).unseen.endswith("in line 6")


def test_a_lone_byte_order_mark_and_a_soft_hyphen_do_not_count(skills: Path, write_skill: WriteSkill) -> None:
    folder = write_skill(skills, "tides", body="co\u00adoperate\n")
    text = (folder / "SKILL.md").read_bytes()
    (folder / "SKILL.md").write_bytes(b"\xef\xbb\xbf" + text)
    assert only(skills).unseen == ""


def test_an_invalid_skill_md_says_why(skills: Path) -> None:
    (skills / "tides").mkdir()
    (skills / "tides" / "SKILL.md").write_bytes(b"\xff\xfe")
    found = only(skills)
    assert found.document is None
    assert found.judged is not None
    assert [remark.code for remark in found.judged.diagnostics] == ["file.encoding"]


def test_a_link_out_of_every_root_is_shown_and_never_read(
    skills: Path, tmp_path: Path, write_skill: WriteSkill
) -> None:
    write_skill(tmp_path / "elsewhere", "tides")
    (skills / "tides").symlink_to(tmp_path / "elsewhere" / "tides")
    found = only(skills)
    assert (found.judged, found.tree) == (None, None)
    assert found.refusal is not None
    assert found.refusal.reason == "link_refused"
    (found,) = survey([Root(Origin.USER, skills)], link_targets=[tmp_path / "elsewhere"]).candidates
    assert found.document is not None


def test_a_folder_that_vanished_is_no_candidate(skills: Path) -> None:
    gone = Found(skills / "gone", Place(skills, ("gone",)))
    assert look(Root(Origin.USER, skills), gone) is None


def test_bounds_and_roots_are_told_together(
    skills: Path, tmp_path: Path, write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentstead.skills.walk.MAX_CANDIDATES", 1)
    for name in ("a", "b"):
        write_skill(skills, name)
        write_skill(tmp_path / "more", name)
    seen = survey([Root(Origin.USER, skills), Root(Origin.USER, tmp_path / "more", 1)])
    assert [found.shown.parent.name for found in seen.candidates] == ["skills", "more"]
    assert seen.cut == (f"{skills}: more than 1 skills", f"{tmp_path / 'more'}: more than 1 skills")


def test_warm_and_cold_looks_agree_after_a_change(
    skills: Path, write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentstead.skills.warm.SETTLED_NS", 0)
    warm = WarmIds()
    folder = write_skill(skills, "tides", files={"a.txt": "one"})
    roots = [Root(Origin.USER, skills)]
    assert survey(roots, warm=warm) == survey(roots, warm=warm) == survey(roots)
    (folder / "a.txt").write_text("two!")
    assert survey(roots, warm=warm) == survey(roots)
