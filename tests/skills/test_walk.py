"""Finding skill folders: where they may stand, what ends the descent, and bounds that are never silent."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agentstead.skills import walk as walking
from agentstead.skills.walk import Walked, walk

WriteSkill = Callable[..., Path]


def names(walked: Walked) -> list[str]:
    return [found.shown.name for found in walked.found]


def test_skills_are_found_at_any_depth_in_byte_order(skills: Path, write_skill: WriteSkill) -> None:
    for name in ("b", "a", "group/c", "group/inner/d", "Z"):
        write_skill(skills, name)
    walked = walk(skills, allowed=[skills])
    assert names(walked) == ["Z", "a", "b", "c", "d"]
    assert walked.truncated == []


def test_a_skill_ends_the_descent(skills: Path, write_skill: WriteSkill) -> None:
    write_skill(skills, "outer")
    write_skill(skills / "outer" / "references", "nested")
    assert names(walk(skills, allowed=[skills])) == ["outer"]


@pytest.mark.parametrize("folder", [".git", "node_modules", "__pycache__", ".venv", ".hidden"])
def test_folders_of_tools_are_passed_over(skills: Path, write_skill: WriteSkill, folder: str) -> None:
    write_skill(skills / folder, "x")
    assert names(walk(skills, allowed=[skills])) == []


def test_a_lower_case_skill_md_makes_a_skill_and_a_folder_of_that_name_does_not(skills: Path) -> None:
    (skills / "one").mkdir()
    (skills / "one" / "skill.md").write_text("x")
    (skills / "two" / "SKILL.md").mkdir(parents=True)
    assert names(walk(skills, allowed=[skills])) == ["one"]


def test_a_missing_root_and_a_file_as_root_hold_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for root in ("none", "file"):
        walked = walk(tmp_path / root, allowed=[])
        assert (walked.found, walked.truncated, walked.unreadable) == ([], [], [])


def test_a_root_may_be_a_link(skills: Path, tmp_path: Path, write_skill: WriteSkill) -> None:
    write_skill(skills, "tides")
    (tmp_path / "link").symlink_to(skills)
    (found,) = walk(tmp_path / "link", allowed=[]).found
    assert found.shown == tmp_path / "link" / "tides"
    assert found.place is not None
    assert found.place.path == skills / "tides"


def test_a_linked_skill_counts_where_its_target_is_allowed(
    skills: Path, tmp_path: Path, write_skill: WriteSkill
) -> None:
    write_skill(tmp_path / "elsewhere", "tides")
    (skills / "tides").symlink_to(tmp_path / "elsewhere" / "tides")
    (refused,) = walk(skills, allowed=[skills]).found
    assert refused.place is None
    (allowed,) = walk(skills, allowed=[skills, tmp_path / "elsewhere"]).found
    assert allowed.place is not None
    assert allowed.place.path == tmp_path / "elsewhere" / "tides"


def test_a_link_to_a_folder_without_a_skill_is_not_entered(skills: Path, write_skill: WriteSkill) -> None:
    write_skill(skills, "group/tides")
    (skills / "again").symlink_to("group")
    (skills / "group" / "round").symlink_to("..")
    (skills / "gone").symlink_to("nowhere")
    assert names(walk(skills, allowed=[skills])) == ["tides"]


def test_depth_is_bounded_and_said(skills: Path, write_skill: WriteSkill) -> None:
    write_skill(skills, "1/2/3/4/5/6")
    write_skill(skills, "a/2/3/4/5/6/7")
    write_skill(skills, "z")
    walked = walk(skills, allowed=[skills])
    assert names(walked) == ["6", "z"]
    assert walked.truncated == ["folders nested deeper than 6"]


def test_the_number_of_entries_is_bounded_and_said(
    skills: Path, write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walking, "MAX_ENTRIES", 20)
    for number in range(40):
        (skills / f"{number:02}").mkdir()
    assert walk(skills, allowed=[skills]).truncated == ["more than 20 files and folders"]


def test_the_number_of_candidates_is_bounded_and_said(
    skills: Path, write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walking, "MAX_CANDIDATES", 2)
    for name in ("a", "b", "c"):
        write_skill(skills, name)
    walked = walk(skills, allowed=[skills])
    assert names(walked) == ["a", "b"]
    assert walked.truncated == ["more than 2 skills"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every folder")
def test_a_folder_that_cannot_be_read_is_said(skills: Path, write_skill: WriteSkill) -> None:
    write_skill(skills, "closed/tides")
    (skills / "closed").chmod(0)
    walked = walk(skills, allowed=[skills])
    (skills / "closed").chmod(0o755)
    assert walked.unreadable == [f"{skills / 'closed'}: Permission denied"]
