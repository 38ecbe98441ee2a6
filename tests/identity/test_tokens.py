"""Tokens: what is stored, what each proves, how it ends; the home's file and its row in step."""

from pathlib import Path

import pytest

from agentstead.identity import TOKEN_FILE, check_token, home_token, tokens
from agentstead.state import Invalid, SimulatedClock, State, Unavailable

pytestmark = pytest.mark.anyio

DAY_S = 86_400


async def test_the_first_start_makes_a_private_file_and_a_row(state: State, home_path: Path) -> None:
    made = await home_token(state, home_path)
    path = home_path / TOKEN_FILE
    assert path.read_text() == made.token + "\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    facts = await state.read(check_token, made.token)
    assert facts is not None
    assert (facts.kind, facts.expires_at) == ("home", None)


async def test_a_later_start_keeps_it(state: State, home_path: Path) -> None:
    made = await home_token(state, home_path)
    again = await home_token(state, home_path)
    assert (again.token, again.renewed) == (made.token, "")


async def test_renewing_ends_the_old_one_at_once(state: State, home_path: Path) -> None:
    old = await home_token(state, home_path)
    new = await home_token(state, home_path, renew=True)
    assert new.token != old.token
    assert await state.read(check_token, old.token) is None
    assert await state.read(check_token, new.token) is not None


@pytest.mark.parametrize("fault", ["missing", "loose", "edited", "link", "half"])
async def test_a_file_that_is_out_of_step_is_renewed(state: State, home_path: Path, fault: str) -> None:
    old = (await home_token(state, home_path)).token
    path = home_path / TOKEN_FILE
    if fault == "missing":
        path.unlink()
    elif fault == "loose":
        path.chmod(0o644)
    elif fault == "edited":
        path.write_text("agst_home_of_my_own")
    elif fault == "link":
        path.rename(path.with_name("elsewhere"))
        path.symlink_to("elsewhere")
    else:
        path.write_text("")
    new = await home_token(state, home_path)
    assert new.renewed
    assert new.token != old
    assert await state.read(check_token, old) is None
    assert path.read_text().strip() == new.token
    assert not path.is_symlink()


async def test_a_crash_between_row_and_file_is_mended_by_the_next_start(state: State, home_path: Path) -> None:
    await home_token(state, home_path)
    await state.write(tokens.renew_home, tokens.new_token("home"))
    mended = await home_token(state, home_path)
    assert mended.renewed == "the stored token does not hold"
    assert await state.read(check_token, mended.token) is not None


async def test_a_home_that_cannot_be_written_is_said(state: State, home_path: Path) -> None:
    (home_path / "keys").write_text("in the way")
    with pytest.raises((Unavailable, OSError), match="keys"):
        await home_token(state, home_path)


async def test_neither_a_token_nor_its_file_is_in_database_or_journal(state: State, home_path: Path) -> None:
    made = await home_token(state, home_path)
    operator = tokens.new_token("operator")
    await state.write(tokens.add_operator, operator)
    await state.close()
    stored = b"".join(path.read_bytes() for path in home_path.glob("state.db*"))
    for token in (made.token, operator):
        assert token.encode() not in stored


async def test_an_operator_token_ends_by_itself(state: State, clock: SimulatedClock) -> None:
    token = tokens.new_token("operator")
    expires_at = await state.write(tokens.add_operator, token, days=2)
    facts = await state.read(check_token, token)
    assert facts is not None
    assert (facts.kind, facts.principal, facts.expires_at) == ("operator", "user", expires_at)
    clock.advance(seconds=2 * DAY_S)
    assert await state.read(check_token, token) is None


@pytest.mark.parametrize("days", [0, -1, 366])
async def test_an_operator_token_without_a_sensible_end_is_refused(state: State, days: int) -> None:
    with pytest.raises(Invalid, match="cannot last"):
        await state.write(tokens.add_operator, tokens.new_token("operator"), days=days)


async def test_the_tokens_of_a_process_end_with_their_run(state: State) -> None:
    now = state.clock.now_us()
    made = {run: tokens.new_token("process") for run in ("run_a", "run_b")}
    for run, token in made.items():
        await state.write(tokens.add_process, token, principal=f"agent:{run}", run_id=run, expires_at=now + 10**9)
    assert await state.write(tokens.end_of_run, "run_a") == 1
    assert await state.read(check_token, made["run_a"]) is None
    kept = await state.read(check_token, made["run_b"])
    assert kept is not None
    assert (kept.principal, kept.run_id) == ("agent:run_b", "run_b")
    assert await state.write(tokens.end_of_run, "run_a") == 0


@pytest.mark.parametrize("token", ["", "agst_home_", "x" * 10_000, "\ud800", "5879e4e3f2a3d821"])
async def test_what_was_never_minted_proves_nothing(state: State, token: str) -> None:
    assert await state.read(check_token, token) is None
