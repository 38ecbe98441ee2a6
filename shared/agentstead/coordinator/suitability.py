"""Whether a folder can be a home at all: told before anything is opened in it, with what to do."""

import os
import re
from pathlib import Path

from agentstead.coordinator.places import private_folder
from agentstead.state import Unavailable

MOUNTS = Path("/proc/self/mountinfo")
# SQLite's write-ahead log needs memory that all processes share, and a lock that holds: neither works across machines.
_NETWORK = "9p afs beegfs ceph cifs coda davfs glusterfs gpfs lustre ncpfs nfs nfs4 ocfs2 pvfs2 smb smb2 smb3 smbfs"
_FUSE = "ceph davfs2 gcsfuse glusterfs rclone s3fs smbnetfs sshfs"
NETWORK_TYPES = frozenset([*_NETWORK.split(), *(f"fuse.{name}" for name in _FUSE.split())])
# Small corrections of a clock are everyday.
CLOCK_SLACK_US = 5_000_000

_OCTAL = re.compile(r"\\([0-7]{3})")


def check_home(home: Path, *, mounts: Path = MOUNTS) -> None:
    """Raise `Unavailable` with `home.quarantined` for a home on a network file system, or one that is read-only."""
    ground = _nearest(home)
    kind = file_system(ground, mounts=mounts)
    if kind in NETWORK_TYPES:
        raise _unusable(
            home, f"it lies on a network file system ({kind}), where SQLite's locks do not hold", "on a local disk"
        )
    if os.statvfs(ground).f_flag & os.ST_RDONLY or not os.access(ground, os.W_OK | os.X_OK):
        raise _unusable(home, f"{ground} is read-only for this user", "that can be written")


def file_system(path: Path, *, mounts: Path = MOUNTS) -> str:
    """Return the type of the file system that `path` lies on; '' where the system does not say."""
    try:
        lines = mounts.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    real = str(path.resolve())
    best, kind = -1, ""
    for line in lines:
        front, separator, back = line.partition(" - ")
        fields = front.split(" ")
        if separator and len(fields) > 4:
            point = _OCTAL.sub(lambda match: chr(int(match[1], 8)), fields[4])
            # The later of two mounts on one point hides the earlier.
            if len(point) >= best and _is_under(real, point):
                best, kind = len(point), back.split(" ")[0]
    return kind


def clock_warning(now_us: int, last_us: int) -> str:
    """Return what to tell a person whose clock stands before the journal's last entry; '' where it does not."""
    behind = now_us - last_us
    if last_us == 0 or behind >= -CLOCK_SLACK_US:
        return ""
    return (
        f"The clock stands {-behind // 1_000_000} s before the last change in this home: it was set back, or the home "
        "was used on a machine whose clock is ahead. Leases and expiries wait until it has caught up; set the clock."
    )


def make_private(folder: Path) -> None:
    """Make a folder of ours; raises `Unavailable` with `home.quarantined` where it is not, or cannot be, ours alone."""
    try:
        private_folder(str(folder))
    except OSError as error:
        raise Unavailable(
            "home.quarantined",
            f"{folder} cannot be used: {error.strerror or error}.",
            remedy="Remove it if it is not yours, or point AGENTSTEAD_HOME to another folder.",
        ) from None


def _nearest(path: Path) -> Path:
    return next(each for each in (path, *path.parents) if each.exists())


def _is_under(path: str, point: str) -> bool:
    return path == point or path.startswith(point.rstrip("/") + "/")


def _unusable(home: Path, why: str, where: str) -> Unavailable:
    return Unavailable(
        "home.quarantined",
        f"The home {home} cannot be used: {why}.",
        remedy=f"Point AGENTSTEAD_HOME to a folder {where}.",
    )
