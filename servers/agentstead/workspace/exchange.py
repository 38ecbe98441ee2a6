"""Putting a prepared name in place of another without ever overwriting what nobody has looked at.

`exchange` swaps two names in one step where the system can; else the old name steps aside first, and for that
moment the path is empty.
"""

import ctypes
import errno
import os
import sys
from contextlib import suppress
from typing import Final, Literal, NamedTuple

Cas = Literal["exchange", "weak"]

_EXCHANGE_LINUX: Final = 2
_NO_REPLACE_LINUX: Final = 1
_EXCHANGE_MACOS: Final = 2
_NO_REPLACE_MACOS: Final = 4
_UNSUPPORTED: Final = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP)


class Name(NamedTuple):
    """A name in an open directory."""

    directory: int
    name: bytes


class Unsupported(OSError):
    """The file system or the system has no such rename."""


def exchange(first: Name, second: Name) -> None:
    """Swap two existing names in one step; raise Unsupported, or FileNotFoundError where one of them is gone."""
    _rename_with(first, second, _EXCHANGE_LINUX, _EXCHANGE_MACOS)


def rename_new(source: Name, target: Name) -> None:
    """Rename to a name that must be free; raise FileExistsError where it is not."""
    try:
        _rename_with(source, target, _NO_REPLACE_LINUX, _NO_REPLACE_MACOS)
    except Unsupported:
        _rename_new_weakly(source, target)


def place(source: Name, target: Name, aside: Name, *, cas: Cas) -> None:
    """Put `source` under the name `target`, and what stood there under the free name `aside`.

    Raises FileNotFoundError where nothing stands at the target, FileExistsError where something new came there while
    it was empty (only with `weak`); `source` is still there then.
    """
    if cas == "exchange":
        exchange(source, target)
        os.rename(source.name, aside.name, src_dir_fd=source.directory, dst_dir_fd=aside.directory)
        return
    os.rename(target.name, aside.name, src_dir_fd=target.directory, dst_dir_fd=aside.directory)
    rename_new(source, target)


def probe(directory: int) -> Cas:
    """Find out by two files of ours in an open directory whether its file system can exchange names."""
    first, second = (Name(directory, b"exchange.%d.%d" % (os.getpid(), number)) for number in (1, 2))
    try:
        for each in (first, second):
            os.close(os.open(each.name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600, dir_fd=directory))
        exchange(first, second)
    except Unsupported:
        return "weak"
    finally:
        for each in (first, second):
            with suppress(FileNotFoundError):
                os.unlink(each.name, dir_fd=directory)
    return "exchange"


def _rename_with(source: Name, target: Name, linux: int, macos: int) -> None:
    call, flags = _CALL
    if call is None:
        raise Unsupported(errno.ENOSYS, os.strerror(errno.ENOSYS))
    chosen = {"linux": linux, "macos": macos}[flags]
    if call(source.directory, source.name, target.directory, target.name, chosen) == 0:
        return
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        raise Unsupported(code, os.strerror(code))
    raise OSError(code, os.strerror(code), os.fsdecode(source.name))


def _rename_new_weakly(source: Name, target: Name) -> None:
    """Link, so that an existing name is an error, then drop the old name; a directory cannot be linked."""
    try:
        os.link(
            source.name,
            target.name,
            src_dir_fd=source.directory,
            dst_dir_fd=target.directory,
            follow_symlinks=False,
        )
    except PermissionError:
        # Renaming a directory onto a name replaces at most an empty directory.
        os.rename(source.name, target.name, src_dir_fd=source.directory, dst_dir_fd=target.directory)
        return
    os.unlink(source.name, dir_fd=source.directory)


def _find_call() -> "tuple[ctypes._NamedFuncPointer | None, str]":
    library = ctypes.CDLL(None, use_errno=True)
    names = {"linux": "renameat2", "darwin": "renameatx_np"}
    call = getattr(library, names.get(sys.platform, ""), None) if sys.platform in names else None
    if call is not None:
        call.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    return call, "macos" if sys.platform == "darwin" else "linux"


_CALL: Final = _find_call()
