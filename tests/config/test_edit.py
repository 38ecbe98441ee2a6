"""Writing one key back keeps what the person wrote, and bad input changes nothing."""

import hashlib
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentstead.config import Registry, set_key
from agentstead.state import Conflict, Invalid

from .conftest import KINDS

TEXT = """# my settings
[tasks] # leases
lease_seconds = 100   # long

[log]
level = "debug"
"""


def test_a_key_is_changed_and_comments_stay(tmp_path: Path, registry: Registry) -> None:
    path = tmp_path / "config.toml"
    path.write_text(TEXT)
    set_key(path, "tasks.lease_seconds", 600, registry=registry, scope="home")
    assert path.read_text() == TEXT.replace("100", "600")


def test_a_key_is_added_to_its_table_or_to_a_new_one(tmp_path: Path, registry: Registry) -> None:
    path = tmp_path / "config.toml"
    path.write_text(TEXT)
    set_key(path, "tasks.factor", 2.5, registry=registry, scope="home")
    set_key(path, "rules.weights.one", 3.0, registry=registry, scope="home")
    set_key(path, "hosts.trusted", ("a", "b"), registry=registry, scope="home")
    read = tomllib.loads(path.read_text())
    assert read["tasks"] == {"lease_seconds": 100, "factor": 2.5}
    assert read["rules"] == {"weights": {"one": 3.0}}
    assert read["hosts"] == {"trusted": ["a", "b"]}
    assert path.read_text().startswith("# my settings\n[tasks] # leases\n")


def test_a_missing_file_is_made_for_its_owner_alone(tmp_path: Path, registry: Registry) -> None:
    path = tmp_path / "home" / "config.toml"
    digest = set_key(path, "watch.enabled", True, registry=registry, scope="home")
    assert tomllib.loads(path.read_text()) == {"watch": {"enabled": True}}
    assert path.stat().st_mode & 0o777 == 0o600
    assert digest == hashlib.sha256(path.read_bytes()).hexdigest()


def test_mode_and_link_of_the_file_stay(tmp_path: Path, registry: Registry) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text(TEXT)
    real.chmod(0o640)
    link = tmp_path / "config.toml"
    link.symlink_to(real)
    set_key(link, "log.level", "error", registry=registry, scope="home")
    assert link.is_symlink()
    assert tomllib.loads(real.read_text())["log"]["level"] == "error"
    assert real.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("key", "value", "scope", "code"),
    [
        ("log.lvl", "info", "home", "config.unknown_key"),
        ("log.level", "loud", "home", "config.invalid"),
        ("log.level", "info", "workspace", "config.scope"),
    ],
)
def test_what_may_not_be_set_changes_nothing(
    tmp_path: Path, registry: Registry, key: str, value: object, scope: str, code: str
) -> None:
    path = tmp_path / "config.toml"
    path.write_text("tasks.lease_seconds = 100\n")
    with pytest.raises(Invalid) as refused:
        set_key(path, key, value, registry=registry, scope="home" if scope == "home" else "workspace")
    assert refused.value.code == code
    assert "Nothing was written." in refused.value.remedy
    assert path.read_text() == "tasks.lease_seconds = 100\n"


def test_a_file_that_has_a_fault_is_not_written_over(tmp_path: Path, registry: Registry) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[tasks\n")
    with pytest.raises(Invalid, match=r"config\.invalid: .* is not TOML"):
        set_key(path, "log.level", "info", registry=registry, scope="home")
    assert path.read_text() == "[tasks\n"


def test_another_digest_than_expected_is_a_conflict(tmp_path: Path, registry: Registry) -> None:
    path = tmp_path / "config.toml"
    first = set_key(path, "log.level", "info", registry=registry, scope="home")
    second = set_key(path, "log.level", "error", registry=registry, scope="home", expected_digest=first)
    with pytest.raises(Conflict, match=r"version\.conflict") as refused:
        set_key(path, "log.level", "debug", registry=registry, scope="home", expected_digest=first)
    assert second in refused.value.message
    assert tomllib.loads(path.read_text())["log"]["level"] == "error"


EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("tasks.lease_seconds"), st.integers(30, 86_400)),
        st.tuples(st.just("tasks.factor"), st.floats(0, 10)),
        st.tuples(st.just("watch.enabled"), st.booleans()),
        st.tuples(st.just("hosts.trusted"), st.lists(st.text(max_size=5), max_size=3)),
        st.tuples(st.sampled_from(["rules.weights.a", "rules.weights.b"]), st.floats(0, 1)),
    ),
    max_size=6,
)


@given(EDITS)
def test_any_order_of_edits_reads_back_as_the_last_value_of_each_key(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[str, object]]
) -> None:
    path = tmp_path_factory.mktemp("edits") / "config.toml"
    path.write_text("# head\n")
    for key, value in edits:
        set_key(path, key, value, registry=Registry(*KINDS), scope="home")
    read = tomllib.loads(path.read_text())
    for key, value in dict(edits).items():
        found = read
        for part in key.split("."):
            found = found[part]
        assert found == value
    assert path.read_text().startswith("# head\n")
