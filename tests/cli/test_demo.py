"""The demonstration over real stdio: it promotes what the receipts prove, and nothing else."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agentstead.cli.demo.material import Candidate
from agentstead.cli.demo.play import Attempt, Outcome, choose
from agentstead.cli.demo.report import page
from agentstead.cli.demo.stage import Event
from tests.acceptance.doors import PROGRAM, environ

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

GOOD = "--- a/n.txt\n+++ b/n.txt\n@@ -1 +1 @@\n-1\n+2\n"
BAD = "--- a/n.txt\n+++ b/n.txt\n@@ -1 +1 @@\n-1\n+3\n"


def demo(place: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [*PROGRAM, "demo", "--dir", str(place), "-o", "json", *arguments],
        env=environ(place / "unused"),
        capture_output=True,
        timeout=150,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout.splitlines()[-1])


def repository(place: Path, *patches: str) -> tuple[Path, Path]:
    repo, folder = place / "repo", place / "patches"
    (repo / ".git").mkdir(parents=True)
    (repo / "n.txt").write_text("1\n")
    folder.mkdir()
    for number, patch in enumerate(patches):
        (folder / f"p{number}.patch").write_text(patch)
    return repo, folder


def attempt(name: str, status: str, changed: int) -> Attempt:
    receipt = {"status": status, "receipt_id": f"rcp_{name}", "tree_in": "0" * 64}
    return Attempt(Candidate(name, "-a\n+<b>\n"), "frk_1", receipt, changed)


def test_the_bundled_project_ends_in_a_proved_promotion(tmp_path: Path) -> None:
    code, told = demo(tmp_path)
    assert code == 0, told
    assert told["promoted"] == "round-half-up"
    assert {each["name"]: each["status"] for each in told["candidates"]} == {
        "float-rounding": "fail",
        "never-below-one": "fail",
        "round-half-up": "pass",
    }
    assert "+ 50) // 100" in (tmp_path / "basket" / "basket.py").read_text()
    report = Path(told["report"]).read_text()
    assert "round-half-up" in report
    assert told["candidates"][0]["receipt_id"] in report
    assert not (tmp_path / "unused").exists()


def test_a_repository_of_ones_own_is_copied_and_its_winner_promoted_in_the_copy(tmp_path: Path) -> None:
    repo, patches = repository(tmp_path, BAD, GOOD)
    code, told = demo(
        tmp_path / "stage", "--repo", str(repo), "--check", "grep -q 2 n.txt", "--candidates", str(patches)
    )
    assert code == 0, told
    assert told["promoted"] == "p1"
    assert (tmp_path / "stage" / "repo" / "n.txt").read_text() == "2\n"
    assert (repo / "n.txt").read_text() == "1\n"
    assert [path.name for path in repo.iterdir() if path.name == ".agentstead"] == []


def test_without_a_proof_nothing_is_promoted(tmp_path: Path) -> None:
    repo, patches = repository(tmp_path, BAD)
    code, told = demo(
        tmp_path / "stage", "--repo", str(repo), "--check", "grep -q 2 n.txt", "--candidates", str(patches)
    )
    assert code == 1
    assert told["promoted"] is None
    assert (tmp_path / "stage" / "repo" / "n.txt").read_text() == "1\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--repo", "/nowhere"], "go together"),
        (["--repo", "/nowhere", "--candidates", "/nowhere", "--check", "true"], "no folder"),
    ],
)
def test_a_wrong_command_line_says_what_is_missing(tmp_path: Path, arguments: list[str], said: str) -> None:
    code, told = demo(tmp_path, *arguments)
    assert code == 2
    assert said in told["error"]["message"]


def test_the_smallest_proved_change_wins_and_a_claim_counts_for_nothing() -> None:
    attempts = [attempt("big", "pass", 9), attempt("tiny", "fail", 1), attempt("small", "pass", 2)]
    chosen = choose(attempts)
    assert chosen is not None
    assert chosen.candidate.name == "small"
    assert choose([attempt("tiny", "fail", 1)]) is None


def test_the_report_escapes_what_comes_from_files() -> None:
    attempts = [attempt("<script>", "pass", 1)]
    html = page(Outcome(attempts, attempts[0], "ses_1"), [Event(0.5, "who", "<img>", "<b>")])
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "<img>" not in html
    assert "+&lt;b&gt;" in html
