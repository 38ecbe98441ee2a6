"""The apply engine: it makes the planned tree, goes back from any point, and never loses what somebody else wrote."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agentstead.blobs import BlobStore, object_id
from agentstead.workspace import apply as apply_module
from agentstead.workspace import exchange as exchange_module
from agentstead.workspace.apply import Applier, Outcome
from agentstead.workspace.beneath import opened_root
from agentstead.workspace.changes import changes
from agentstead.workspace.contents import Trees
from agentstead.workspace.exchange import Cas, Name, Unsupported, probe
from agentstead.workspace.staging import opened_area, settle
from agentstead.workspace.steps import Step, plan_steps
from tests.workspace.conftest import Walk
from tests.workspace.directories import FOLDERS, File, Folder, Node, empty, make, seen

REUSED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
CAS: tuple[Cas, ...] = ("exchange", "weak")


class Killed(BaseException):
    """Stands for a SIGKILL at a crash point: nothing of ours cleans up after it."""


@dataclass
class Stage:
    """A directory, the steps that turn it into another, and the engine over them."""

    root: Path
    base: Path
    steps: list[Step]
    inodes: list[int]
    store: BlobStore

    @contextmanager
    def engine(self, cas: Cas) -> Iterator[Applier]:
        with opened_root(self.root) as root, opened_area(self.base, "opr_test") as area:
            yield Applier(self.store, root, area, cas=cas, plan=self.steps)

    def stage(self, cas: Cas) -> None:
        with self.engine(cas) as applier:
            self.inodes = [applier.stage(step) for step in self.steps]

    def forward(self, cas: Cas) -> list[Outcome]:
        with self.engine(cas) as applier:
            return [applier.forward(step, inode) for step, inode in zip(self.steps, self.inodes, strict=True)]

    def backward(self, cas: Cas) -> list[Outcome]:
        pairs = list(zip(self.steps, self.inodes, strict=True))
        with self.engine(cas) as applier:
            return [applier.backward(step, inode) for step, inode in reversed(pairs)]

    def kept(self) -> list[bytes]:
        """Return the contents of all files that were moved aside."""
        return [path.read_bytes() for path in self.base.rglob("*") if path.is_file() and not path.is_symlink()]


Prepare = Callable[[Folder, Folder], Stage]


@pytest.fixture
def prepare(tmp_path: Path, walk_at: Walk, store: BlobStore) -> Prepare:
    def run(old: Folder, new: Folder) -> Stage:
        wanted, root, base = (empty(tmp_path / name) for name in ("wanted", "root", "base"))
        make(new, wanted)
        make(old, root)
        trees = Trees(store)
        before, after = walk_at(root).tree, walk_at(wanted).tree
        steps = plan_steps(changes(trees, before, after), lambda path: trees.entry(before, path))
        return Stage(root, base, steps, [], store)

    return run


@pytest.mark.parametrize("cas", CAS)
@REUSED
@given(old=FOLDERS, new=FOLDERS)
def test_applying_a_plan_makes_the_new_tree(old: Folder, new: Folder, prepare: Prepare, cas: Cas) -> None:
    stage = prepare(old, new)
    stage.stage(cas)

    outcomes = stage.forward(cas)

    assert {outcome.phase for outcome in outcomes} <= {"verified"}
    assert seen(stage.root) == new
    with stage.engine(cas) as applier:
        assert applier.moved_on(stage.steps) == []


CLOSED = Folder(names={b"a": Folder(names={}), b"b": Folder(names={b"a": Folder(names={})}, mode=0o555)})


@pytest.mark.parametrize("cas", CAS)
@REUSED
@given(old=FOLDERS, new=FOLDERS)
@example(old=CLOSED, new=Folder(names={b"b": Folder(names={}, mode=0o700)}))
@example(old=CLOSED, new=Folder(names={b"b": Folder(names={}, mode=0o500)}))
@example(old=CLOSED, new=Folder(names={b"b": Folder(names={}, mode=0o555)}))
def test_a_plan_that_was_carried_out_is_found_done_when_it_is_done_again(
    old: Folder, new: Folder, prepare: Prepare, cas: Cas
) -> None:
    stage = prepare(old, new)
    stage.stage(cas)
    stage.forward(cas)

    outcomes = stage.forward(cas)

    assert {outcome.phase for outcome in outcomes} <= {"verified"}
    assert seen(stage.root) == new


@pytest.mark.parametrize("cas", CAS)
@REUSED
@given(old=FOLDERS, new=FOLDERS)
def test_going_back_makes_the_old_tree_again(old: Folder, new: Folder, prepare: Prepare, cas: Cas) -> None:
    stage = prepare(old, new)
    stage.stage(cas)
    stage.forward(cas)

    outcomes = stage.backward(cas)

    assert {outcome.phase for outcome in outcomes} <= {"reverted"}
    assert seen(stage.root) == old


@pytest.mark.parametrize("cas", CAS)
@REUSED
@given(old=FOLDERS, new=FOLDERS, data=st.data())
def test_killed_anywhere_it_can_be_finished_or_undone_and_killed_while_at_that(
    old: Folder, new: Folder, data: st.DataObject, prepare: Prepare, cas: Cas
) -> None:
    stage = prepare(old, new)
    stage.stage(cas)
    kills = data.draw(st.lists(st.integers(1, 30), min_size=1, max_size=3))
    onward = data.draw(st.booleans())

    for kill in kills:
        killed_at(kill, stage, cas, onward=onward)
    outcomes = stage.forward(cas) if onward else stage.backward(cas)

    assert "contested" not in {outcome.phase for outcome in outcomes}
    assert seen(stage.root) == (new if onward else old)


def killed_at(passage: int, stage: Stage, cas: Cas, *, onward: bool) -> None:
    """Run until the given passage of any effect of the engine: before it, or between its two halves."""
    left = passage

    def count(*_arguments: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(apply_module, "crash_point", count)
        for name in ("exchange", "rename_new"):
            patch.setattr(exchange_module, name, _then(getattr(exchange_module, name), count))
        rename = _then(os.rename, count)
        patch.setattr(os, "rename", rename)
        try:
            stage.forward(cas)
            if not onward:
                stage.backward(cas)
        except Killed:
            pass


def _then(effect: Callable[..., Any], count: Callable[[], None]) -> Callable[..., Any]:
    def run(*arguments: Any, **named: Any) -> Any:
        result = effect(*arguments, **named)
        count()
        return result

    return run


EDITS: dict[str, Callable[[Path], None]] = {
    "in place": lambda path: overwrite_in_place(path),
    "by rename": lambda path: overwrite_by_rename(path),
    "mode": lambda path: path.chmod(0o640),
    "deleted": lambda path: path.unlink(),
    "to a link": lambda path: to_a_link(path),
    "to a folder": lambda path: to_a_folder(path),
}


def to_a_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("elsewhere")


def to_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "x").write_bytes(b"EDIT")


def overwrite_in_place(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate()
        file.write(b"EDIT")


def overwrite_by_rename(path: Path) -> None:
    draft = path.with_name("draft~")
    draft.write_bytes(b"EDIT")
    draft.replace(path)


@pytest.mark.parametrize("cas", CAS)
@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("planned", ["replaced", "deleted"])
def test_an_edit_before_the_swap_stays_and_is_contested(prepare: Prepare, cas: Cas, edit: str, planned: str) -> None:
    new: dict[bytes, Node] = {b"file": File(b"NEW")} if planned == "replaced" else {}
    stage = prepare(Folder({b"file": File(b"OLD"), b"other": File(b"1")}), Folder({**new, b"other": File(b"2")}))
    stage.stage(cas)
    EDITS[edit](stage.root / "file")
    before = seen(stage.root).names.get(b"file")

    outcomes = {outcome.step.path: outcome for outcome in stage.forward(cas)}

    assert outcomes[b"file"].phase == "contested"
    assert outcomes[b"other"].phase == "verified"
    assert seen(stage.root).names.get(b"file") == before


@pytest.mark.parametrize("cas", CAS)
@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("planned", ["replaced", "added"])
def test_an_edit_after_the_swap_stays_when_the_step_goes_back(
    prepare: Prepare, cas: Cas, edit: str, planned: str
) -> None:
    old: dict[bytes, Node] = {b"file": File(b"OLD")} if planned == "replaced" else {}
    stage = prepare(Folder(old), Folder({b"file": File(b"NEW")}))
    stage.stage(cas)
    stage.forward(cas)
    EDITS[edit](stage.root / "file")
    before = seen(stage.root).names.get(b"file")

    (outcome,) = stage.backward(cas)

    if edit == "deleted":
        assert seen(stage.root) == Folder(old), "nothing of an edit is lost when the old content comes back"
    else:
        assert outcome.phase == "contested"
        assert seen(stage.root).names.get(b"file") == before
        assert planned == "added" or b"OLD" in stage.kept()


def test_a_save_between_the_swap_and_the_look_at_what_was_displaced_is_put_back(
    prepare: Prepare, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The person saves between our last look and the exchange, and once more while that save is put back."""
    stage = prepare(Folder({b"file": File(b"OLD")}), Folder({b"file": File(b"NEW")}))
    stage.stage("exchange")
    saves = iter([b"FIRST SAVE", b"SECOND SAVE", b"THIRD SAVE"])
    exchange = exchange_module.exchange

    def saved_before(first: Name, second: Name) -> None:
        for content in saves:
            draft = stage.root / "draft~"
            draft.write_bytes(content)
            draft.replace(stage.root / "file")
            break
        exchange(first, second)

    monkeypatch.setattr(exchange_module, "exchange", saved_before)
    (outcome,) = stage.forward("exchange")

    assert outcome.phase == "contested"
    assert (stage.root / "file").read_bytes() == b"THIRD SAVE", "the newest bytes are at the path"
    assert {b"FIRST SAVE", b"SECOND SAVE"} & set(stage.kept()), "and what they replaced is kept"


def test_a_new_file_where_one_is_added_stays(prepare: Prepare) -> None:
    stage = prepare(Folder(), Folder({b"d": Folder({b"file": File(b"NEW")})}))
    stage.stage("exchange")
    (stage.root / "d").write_bytes(b"EDIT")

    outcomes = stage.forward("exchange")

    assert [outcome.phase for outcome in outcomes] == ["contested", "contested"]
    assert outcomes[0].found is not None
    assert outcomes[0].found.id == object_id(b"EDIT")
    assert (stage.root / "d").read_bytes() == b"EDIT"


def test_a_directory_in_which_something_new_lies_is_not_removed(prepare: Prepare) -> None:
    stage = prepare(Folder({b"d": Folder({b"file": File(b"OLD")})}), Folder())
    stage.stage("exchange")
    (stage.root / "d" / "unknown").write_bytes(b"EDIT")

    phases = {outcome.step.path: outcome.phase for outcome in stage.forward("exchange")}

    assert phases == {b"d/file": "verified", b"d": "contested"}
    assert (stage.root / "d" / "unknown").read_bytes() == b"EDIT"


@pytest.mark.parametrize("cas", CAS)
def test_a_file_cannot_take_the_place_of_a_directory_that_is_not_empty(prepare: Prepare, cas: Cas) -> None:
    stage = prepare(Folder({b"d": Folder({b"file": File(b"OLD")})}), Folder({b"d": File(b"NEW")}))
    stage.stage(cas)
    (stage.root / "d" / "unknown").write_bytes(b"EDIT")

    phases = {outcome.step.path: outcome.phase for outcome in stage.forward(cas)}

    assert phases[b"d"] == "contested"
    assert (stage.root / "d" / "unknown").read_bytes() == b"EDIT"


def test_a_directory_that_became_a_link_is_never_followed(prepare: Prepare, tmp_path: Path) -> None:
    outside = empty(tmp_path / "outside")
    (outside / "file").write_bytes(b"OLD")
    old = Folder({b"d": Folder({b"file": File(b"OLD"), b"gone": File(b"x")})})
    stage = prepare(old, Folder({b"d": Folder({b"file": File(b"NEW")})}))
    stage.stage("exchange")
    (stage.root / "d").rename(stage.root / "real")
    (stage.root / "d").symlink_to(outside)

    forward = [outcome.phase for outcome in stage.forward("exchange")]
    backward = [outcome.phase for outcome in stage.backward("exchange")]

    assert (forward, backward) == (["contested"] * 2, ["reverted"] * 2)
    assert seen(outside) == Folder({b"file": File(b"OLD")})
    assert seen(stage.root / "real") == old.names[b"d"]


def test_what_was_written_after_the_plan_was_done_is_named(prepare: Prepare) -> None:
    stage = prepare(Folder({b"a": File(b"1"), b"b": File(b"1")}), Folder({b"a": File(b"2"), b"c": Folder({}, 0o555)}))
    stage.stage("exchange")
    stage.forward("exchange")
    (stage.root / "a").write_bytes(b"3")
    (stage.root / "b").write_bytes(b"again")

    with stage.engine("exchange") as applier:
        assert applier.moved_on(stage.steps) == [b"a", b"b"]


def test_settling_moves_everything_aside_in_one_step_and_can_be_repeated(prepare: Prepare) -> None:
    stage = prepare(Folder({b"file": File(b"OLD")}), Folder({b"file": File(b"NEW")}))
    stage.stage("exchange")
    stage.forward("exchange")

    settle(stage.base, "opr_test")
    settle(stage.base, "opr_test")

    assert (stage.base / "trash" / "opr_test" / "old" / "0").read_bytes() == b"OLD"
    assert list((stage.base / "stage").iterdir()) == []


def test_the_probe_tells_what_the_file_system_can_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened_root(tmp_path) as directory:
        found = probe(directory)

        def unsupported(*_arguments: object) -> None:
            raise Unsupported

        monkeypatch.setattr(exchange_module, "exchange", unsupported)
        assert probe(directory) == "weak"
    assert found in CAS
    assert list(tmp_path.iterdir()) == []


def test_where_no_rename_can_refuse_a_taken_name_a_link_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange_module, "_CALL", (None, "linux"))
    with opened_root(tmp_path) as directory:
        for name, data in (("a", b"A"), ("b", b"B")):
            (tmp_path / name).write_bytes(data)
        with pytest.raises(FileExistsError):
            exchange_module.rename_new(Name(directory, b"a"), Name(directory, b"b"))
        exchange_module.rename_new(Name(directory, b"a"), Name(directory, b"c"))
        (tmp_path / "d").mkdir()
        exchange_module.rename_new(Name(directory, b"d"), Name(directory, b"e"))

    assert seen(tmp_path) == Folder({b"b": File(b"B"), b"c": File(b"A"), b"e": Folder()})
