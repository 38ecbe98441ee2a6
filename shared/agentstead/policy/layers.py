"""The layers of a home's policy as files: loaded whole, watched by size and time, never loosened by a fault.

A file with a fault is refused and the last good state of its layer stays; with no good state every access is at least
ask. The first load of a new home writes `policy.d/suite.toml`.
"""

import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from agentstead.config import Settings
from agentstead.policy.axes import AXES, Axes, strictest_axes
from agentstead.policy.decide import Decider, PolicySet
from agentstead.policy.grammar import Fault, Faulty, PolicyFile, read_policy
from agentstead.policy.model import ENGINE, Layer
from agentstead.state import Clock, canonical_json, sha256_hex

FOLDER = "policy.d"
SUITE = "suite.toml"
LOOK_AGAIN_S = 1.0

Signature = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class LayerFile:
    """One file of a revision: its layer, its name, and the digest of its bytes."""

    layer: Layer
    path: str
    sha256: str

    def as_dict(self) -> dict[str, str]:
        """Return the stored form."""
        return {"layer": self.layer, "path": self.path, "sha256": self.sha256}


@dataclass(frozen=True, slots=True)
class Loaded:
    """A policy set with what it was made of, and every fault of the files as they stand."""

    decider: Decider
    files: tuple[LayerFile, ...]
    faults: tuple[Fault, ...]
    axes_of: tuple[tuple[str, Axes], ...]

    @property
    def policy(self) -> PolicySet:
        """Return the rules and axes in force."""
        return self.decider.policy


@dataclass(frozen=True, slots=True)
class _Good:
    """The last good state of a layer."""

    files: tuple[LayerFile, ...] = ()
    parsed: tuple[PolicyFile, ...] = ()


class LayerFiles:
    """The user layer of one home with the configured axes; safe to use from any thread."""

    def __init__(self, home: Path, *, settings: Settings, clock: Clock) -> None:
        self.folder = home / FOLDER
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._loaded: Loaded | None = None
        self._signature: tuple[Signature, Axes] | None = None
        self._good: _Good | None = None
        self._look_again = 0.0

    def current(self, *, force: bool = False) -> Loaded:
        """Return what is in force; the files are looked at again once a second at most, or now with `force`."""
        loaded = self._loaded
        if loaded is not None and not force and self._clock.monotonic() < self._look_again:
            return loaded
        with self._lock:
            return self._look()

    def _look(self) -> Loaded:
        if self._loaded is None:
            seed(self.folder)
        self._look_again = self._clock.monotonic() + LOOK_AGAIN_S
        signature = (_signature(self.folder), self._configured())
        if self._loaded is None or signature != self._signature:
            self._loaded = self._load(signature[1])
            self._signature = signature
        return self._loaded

    def _configured(self) -> Axes:
        """Return the axes that the configuration sets; a built-in default is no setting, so a file may move it."""
        chosen: dict[str, Any] = {}
        for axis in AXES:
            found = self._settings.explain(f"permissions.axes.{axis}")
            if found.origin.layer != "built-in":
                chosen[axis] = found.value
        return Axes(**chosen)

    def _load(self, configured: Axes) -> Loaded:
        faults: list[Fault] = []
        found = _read_layer(self.folder, "user", faults)
        stale = bool(faults) and self._good is not None
        broken = bool(faults) and self._good is None
        if not faults:
            self._good = found
        good = self._good or _Good()
        by_source = (("config", configured), *((each.file, each.axes) for each in good.parsed))
        rules = tuple(rule for each in good.parsed for rule in each.rules)
        revision = _revision(good.files, configured, broken=broken)
        policy = PolicySet(
            revision,
            rules,
            strictest_axes(axes for _, axes in by_source),
            broken=("user",) if broken else (),
            stale=("user",) if stale else (),
        )
        return Loaded(Decider(policy), good.files, tuple(faults), by_source)


def seed(folder: Path) -> None:
    """Give a home without a policy folder the suite's rules; a folder that exists is the person's own."""
    if folder.exists() or not folder.parent.is_dir():
        return
    try:
        _put_suite(folder)
    except OSError:  # the home cannot be written, or another process was first: then its folder or the package's holds
        return


def _put_suite(folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=".policy-", dir=folder.parent, ignore_cleanup_errors=True) as draft:
        made = Path(draft) / FOLDER
        made.mkdir()
        (made / SUITE).write_bytes(suite_text())
        made.rename(folder)


def suite_text() -> bytes:
    """Return the rules that a new home starts with."""
    return (resources.files("agentstead.policy") / SUITE).read_bytes()


def _read_layer(folder: Path, layer: Layer, faults: list[Fault]) -> _Good:
    files: list[LayerFile] = []
    parsed: list[PolicyFile] = []
    for name, data in _texts(folder, layer, faults).items():
        files.append(LayerFile(layer, name, sha256_hex(data)))
        try:
            parsed.append(read_policy(data.decode("utf-8"), file=name, layer=layer))
        except Faulty as error:
            faults.append(error.fault)
        except UnicodeDecodeError as error:
            faults.append(Fault("policy.syntax", name, 1, f"the file is no UTF-8 text: {error.reason}"))
    _refuse_repeated(parsed, faults)
    return _Good(tuple(files), tuple(parsed))


def _texts(folder: Path, layer: Layer, faults: list[Fault]) -> Mapping[str, bytes]:
    if not folder.is_dir():
        return {SUITE: suite_text()}
    found: dict[str, bytes] = {}
    for path in _toml_files(folder):
        try:
            found[path.name] = path.read_bytes()
        except OSError as error:
            faults.append(Fault("policy.syntax", path.name, 1, f"the file cannot be read: {error.strerror}"))
    return found


def _refuse_repeated(parsed: Sequence[PolicyFile], faults: list[Fault]) -> None:
    seen: dict[str, str] = {}
    for each in parsed:
        for rule in each.rules:
            first = seen.setdefault(rule.id, each.file)
            if first != each.file:
                what = f"rule id {rule.id} is used in {first} too"
                faults.append(Fault("policy.duplicate_id", each.file, rule.line, what))


def _toml_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix == ".toml" and not path.name.startswith("."))


def _signature(folder: Path) -> Signature:
    try:
        facts = [(path.name, path.stat()) for path in _toml_files(folder)]
    except OSError:
        return ()
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in facts)


def _revision(files: Sequence[LayerFile], configured: Axes, *, broken: bool) -> str:
    axes = {axis: getattr(configured, axis) for axis in AXES}
    return sha256_hex(canonical_json([ENGINE, [file.as_dict() for file in files], axes, broken]))
