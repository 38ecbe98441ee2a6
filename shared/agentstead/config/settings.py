"""Settings in force: built-in < home's file < workspace's file < environment < flags, each with its origin."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from agentstead.config.declared import PRODUCT
from agentstead.config.registry import Registry
from agentstead.config.setting import Setting
from agentstead.config.sheet import Fault, unknown_key
from agentstead.config.source import Source
from agentstead.state import Invalid

Layer = Literal["built-in", "home", "workspace", "environment", "flag"]

WORKSPACE_FILE = Path(".agentstead", "config.toml")
_REREAD_S = 1.0


@dataclass(frozen=True, slots=True)
class Origin:
    """One value of a key: the layer that gives it, and where (`path:line`, a variable, a flag; '' for built-in)."""

    layer: Layer
    value: Any
    where: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a key has its value: the origin in force, what it hides (nearest first), and what is refused."""

    setting: Setting
    key: str
    value: Any
    origin: Origin
    hides: tuple[Origin, ...]
    faults: tuple[Fault, ...]


class Settings:
    """The settings of one home, or with `at` of one workspace in it.

    Files are looked at again at most once a second, when a value is asked for. Safe to use from any thread.
    """

    def __init__(
        self,
        home: Path,
        *,
        environ: Mapping[str, str] | None = None,
        flags: Mapping[str, Any] | None = None,
        registry: Registry = PRODUCT,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.registry = registry
        self.home_file = home / "config.toml"
        self._kept = home / "cache" / "config"
        self._environ = dict(os.environ if environ is None else environ)
        self._flags = {key: self._flag(key, value) for key, value in (flags or {}).items()}
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._sources: dict[Path, Source] = {}
        self._pinned: dict[tuple[Path | None, str], Any] = {}
        self._due = monotonic() + _REREAD_S
        self._source(self.home_file)

    def get(self, key: str, *, workspace: Path | None = None) -> Any:
        """Return the value of a key in force, for the home or for the workspace at a root.

        A key that is not `live` keeps the value it had when it was first asked for.
        """
        setting = self.setting(key)
        self._reread()
        value = next(self._origins(setting, key, workspace)).value
        return value if setting.live else self._pinned.setdefault((workspace, key), value)

    def whole(self, key: str, *, workspace: Path | None = None) -> int:
        """Return a key of kind int."""
        return cast("int", self.get(key, workspace=workspace))

    def number(self, key: str, *, workspace: Path | None = None) -> float:
        """Return a key of kind float or int."""
        return float(self.get(key, workspace=workspace))

    def flag(self, key: str, *, workspace: Path | None = None) -> bool:
        """Return a key of kind bool."""
        return cast("bool", self.get(key, workspace=workspace))

    def text(self, key: str, *, workspace: Path | None = None) -> str:
        """Return a key of kind text."""
        return cast("str", self.get(key, workspace=workspace))

    def texts(self, key: str, *, workspace: Path | None = None) -> tuple[str, ...]:
        """Return a key of kind texts."""
        return cast("tuple[str, ...]", self.get(key, workspace=workspace))

    def setting(self, key: str) -> Setting:
        """Return the declaration of a key; raise Invalid `config.unknown_key` with the nearest one."""
        found = self.registry.look(key)
        if found is None:
            fault = unknown_key(key, self.registry, where="asked for")
            raise Invalid(fault.code, f"'{key}' is no setting.", remedy=fault.remedy)
        return found

    def explain(self, key: str, *, workspace: Path | None = None) -> Explanation:
        """Say which layer gives a key its value, what that hides, and which written values are refused."""
        setting = self.setting(key)
        self._reread()
        faults: list[Fault] = []
        origin, *hidden = self._origins(setting, key, workspace, faults)
        written = [fault for fault in self._file_faults(workspace) if fault.key == key]
        return Explanation(setting, key, origin.value, origin, tuple(hidden), (*written, *faults))

    def names(self, key: str, *, workspace: Path | None = None) -> tuple[str, ...]:
        """List the names that files use in the place of the `.*` of an open key."""
        self._reread()
        prefix = key.removesuffix("*")
        sheets = [self._source(path).sheet for path in self._files(workspace)]
        return tuple(
            sorted({name.removeprefix(prefix) for s in sheets for name in s.values if name.startswith(prefix)})
        )

    def faults(self, *, workspace: Path | None = None) -> tuple[Fault, ...]:
        """List what is wrong with the files and the environment now."""
        self._reread()
        faults = list(self._file_faults(workspace))
        for setting in self.registry:
            for _ in self._origins(setting, setting.key, workspace, faults):
                pass
        return tuple(faults)

    def reread(self) -> None:
        """Look at the files again now, whatever the time."""
        with self._lock:
            self._due = self._monotonic() + _REREAD_S
            for source in self._sources.values():
                source.refresh()

    def _reread(self) -> None:
        if self._monotonic() >= self._due:
            self.reread()

    def _files(self, workspace: Path | None) -> tuple[Path, ...]:
        return (self.home_file,) if workspace is None else (workspace / WORKSPACE_FILE, self.home_file)

    def _file_faults(self, workspace: Path | None) -> Iterator[Fault]:
        for path in self._files(workspace):
            yield from self._source(path).sheet.faults

    def _source(self, path: Path) -> Source:
        found = self._sources.get(path)
        if found is None:
            with self._lock:
                scope: Literal["home", "workspace"] = "home" if path == self.home_file else "workspace"
                fresh = Source(path, scope=scope, registry=self.registry, kept=self._kept)
                found = self._sources.setdefault(path, fresh)
        return found

    def _origins(
        self, setting: Setting, key: str, workspace: Path | None, faults: list[Fault] | None = None
    ) -> Iterator[Origin]:
        """Give every layer's value, the one in force first."""
        if key in self._flags:
            yield Origin("flag", self._flags[key], "command line")
        yield from self._from_environment(setting, faults if faults is not None else [])
        below = list(self._from_files(key, workspace=None))
        below.append(Origin("built-in", setting.default, ""))
        for origin in self._from_files(key, workspace=workspace) if workspace else ():
            if origin.layer == "workspace" and setting.loosens(origin.value, below[0].value):
                if faults is not None:
                    faults.append(_loosening(setting, origin, below[0]))
            elif origin.layer == "workspace":
                yield origin
        yield from below

    def _from_environment(self, setting: Setting, faults: list[Fault]) -> Iterator[Origin]:
        name = next((name for name in setting.variables if name in self._environ), None)
        if name is None:
            return
        if setting.person:
            remedy = f"Take it out, and use: agentstead config set {setting.key} VALUE."
            what = f"the environment may not set '{setting.key}' ({name})."
            faults.append(Fault("config.scope", setting.key, name, what, remedy))
            return
        try:
            yield Origin("environment", setting.read_text(self._environ[name]), name)
        except ValueError as error:
            remedy = f"Give {setting.expects()}."
            faults.append(Fault("config.invalid", setting.key, name, f"'{setting.key}' ({name}): {error}.", remedy))

    def _from_files(self, key: str, *, workspace: Path | None) -> Iterator[Origin]:
        for path in self._files(workspace):
            written = self._source(path).sheet.values.get(key)
            if written is not None:
                layer: Layer = "home" if path == self.home_file else "workspace"
                yield Origin(layer, written.value, f"{path}:{written.line}")

    def _flag(self, key: str, value: Any) -> Any:
        setting = self.setting(key)
        try:
            return setting.read_text(value) if isinstance(value, str) else setting.accept(value)
        except ValueError as error:
            raise Invalid("config.invalid", f"{key}: {error}.", remedy=f"Give {setting.expects()}.") from error


def _loosening(setting: Setting, origin: Origin, below: Origin) -> Fault:
    more = f"{origin.value!r} is looser than {below.value!r}"
    what = f"a workspace's file may only tighten '{setting.key}' ({origin.where}): {more}."
    remedy = f"Take it out there, or set it for the home: agentstead config set {setting.key} VALUE."
    return Fault("config.scope", setting.key, origin.where, what, remedy)
