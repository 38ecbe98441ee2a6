"""What versions of a tree cost: snapshot, fork, diff, restore and store, against a bare walk, a read and `cp -a`.

usage: python tests/benchmarks/bench_workspace.py [--files 1000,10000] [--at /dev/shm]

One seeded tree of mostly small text files; rounds alternate what is compared, the best of five counts. Prints a table
and one line of JSON with the ratios.
"""

import argparse
import hashlib
import json
import os
import random
import resource
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from agentstead.blobs import BlobStore
from agentstead.state import SystemClock
from agentstead.workspace.beneath import opened_root
from agentstead.workspace.changes import changes
from agentstead.workspace.contents import Trees
from agentstead.workspace.materialise import materialise
from agentstead.workspace.statcache import StatCache, load_cache, save_cache
from agentstead.workspace.walk import Walked, walk

ROUNDS = 5
KEY = b"k" * 32
WORDS = ["def", "class", "return", "self", "import", "async", "value", "index", "path", "error", "state", "agent"]


def make_tree(root: Path, files: int, seed: int = 7) -> None:
    """Write a tree of about twelve files a directory: 88 % text with a median of 2.2 KiB, the rest binary."""
    chance = random.Random(seed)
    folders = [root]
    while len(folders) < max(4, files // 12):
        folders.append(chance.choice(folders[-200:]) / f"{chance.choice(WORDS)}_{len(folders)}")
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        size = int(min(chance.lognormvariate(7.7, 1.2), 400_000))
        if chance.random() < 0.88:
            data = " ".join(chance.choice(WORDS) for _ in range(size // 6)).encode() + b" %d\n" % number
        else:
            data = chance.randbytes(size)
        (chance.choice(folders) / f"f{number:06}.py").write_bytes(data)


def bare_walk(root: Path) -> int:
    seen, pending = 0, [os.fspath(root)]
    while pending:
        with os.scandir(pending.pop()) as found:
            for entry in found:
                seen += 1
                if stat.S_ISDIR(entry.stat(follow_symlinks=False).st_mode):
                    pending.append(entry.path)
    return seen


def read_and_hash(root: Path) -> int:
    seen = 0
    for folder, _, names in os.walk(root):
        for name in names:
            hashlib.sha256(Path(folder, name).read_bytes()).digest()
            seen += 1
    return seen


class Bench:
    """Best wall and processor times by name, in milliseconds."""

    def __init__(self) -> None:
        self.wall: dict[str, float] = {}
        self.cpu: dict[str, float] = {}

    def run(self, name: str, work: Callable[[], object]) -> object:
        usage = _cpu()
        began = time.perf_counter()
        result = work()
        wall, cpu = (time.perf_counter() - began) * 1e3, (_cpu() - usage) * 1e3
        self.wall[name] = min(wall, self.wall.get(name, wall))
        self.cpu[name] = min(cpu, self.cpu.get(name, cpu))
        return result

    def ratio(self, name: str, other: str) -> float:
        return round(self.cpu[name] / max(self.cpu[other], 0.01), 2)


def _cpu() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def measure(files: int, base: Path) -> dict[str, float]:
    root = base / "tree"
    make_tree(root, files)
    time.sleep(0.1)  # older than the grain of the file system's times, so that a cache may trust them
    bench = Bench()
    store = BlobStore(base / "store", clock=SystemClock())

    def snapshot(cache: StatCache) -> Walked:
        with opened_root(root) as descriptor:
            return walk(store, descriptor, cache=cache, secret_key=KEY)

    def fork(tree: str) -> None:
        copy = base / "fork"
        copy.mkdir()
        with opened_root(copy) as descriptor:
            materialise(Trees(store), tree, descriptor)
        with opened_root(copy) as descriptor:
            assert walk(store, descriptor, cache=StatCache(), secret_key=KEY).tree == tree

    first = bench.run("first snapshot", lambda: snapshot(StatCache()))
    assert isinstance(first, Walked)
    for _ in range(ROUNDS):
        bench.run("bare walk", lambda: bare_walk(root))
        bench.run("read and hash", lambda: read_and_hash(root))
        bench.run("no change", lambda: snapshot(first.cache))
        bench.run("save cache", lambda: save_cache(first.cache, base / "cache"))
        bench.run("load cache", lambda: load_cache(base / "cache"))
        bench.run("cp -a", lambda: subprocess.run(["cp", "-a", root, base / "copy"], check=True))
        bench.run("verified fork", lambda: fork(first.tree))
        for made in ("copy", "fork"):
            shutil.rmtree(base / made)
    edited = sorted(root.rglob("*.py"))[:: max(1, files // 10)][:10]
    for path in edited:
        path.write_text("edited\n")
    second = bench.run("10 changed", lambda: snapshot(first.cache))
    assert isinstance(second, Walked)
    for _ in range(ROUNDS):
        found = bench.run("diff of 10", lambda: list(changes(Trees(store), first.tree, second.tree)))
    assert len(found) == len(edited)  # type: ignore[arg-type]
    for name, wall in bench.wall.items():
        print(f"  {name:<16} {wall:>9.1f} ms wall {bench.cpu[name]:>9.1f} ms cpu")
    return {
        "no change / bare walk": bench.ratio("no change", "bare walk"),
        "first / read and hash": bench.ratio("first snapshot", "read and hash"),
        "10 changed / no change": bench.ratio("10 changed", "no change"),
        "verified fork / cp -a": bench.ratio("verified fork", "cp -a"),
        "load cache / bare walk": bench.ratio("load cache", "bare walk"),
        "diff of 10, ms": round(bench.wall["diff of 10"], 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the workspace server's engine.")
    parser.add_argument("--files", default="1000,10000")
    parser.add_argument("--at", default="/dev/shm" if Path("/dev/shm").is_dir() else None)
    given = parser.parse_args()
    for files in map(int, given.files.split(",")):
        with tempfile.TemporaryDirectory(dir=given.at) as base:
            print(f"{files} files at {base}")
            print(json.dumps({"files": files, **measure(files, Path(base))}))


if __name__ == "__main__":
    main()
