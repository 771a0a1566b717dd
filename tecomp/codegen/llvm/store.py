"""Compiled code in files: entries by key in one folder, checked, bounded, shared by processes.

An entry is a file of its own, which appears under its name complete (a rename), is read in one
piece and begins with a checksum, so that nobody needs a lock: whoever finds an entry missing, cut
short or changed makes it again. Code from it is executed, so the folder must belong to the user and
be closed to everybody else. Whatever goes wrong with the file system means that there is no entry,
and never an error.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path

import platformdirs

from tecomp.errors import CacheError

SWITCH, FOLDER, SIZE = "TECOMP_CACHE", "TECOMP_CACHE_DIR", "TECOMP_CACHE_SIZE"
DEFAULT_MEGABYTES = 512

_MAGIC = b"tecomp 1\n"
_HEAD = len(_MAGIC) + 32
_SUFFIX, _UNFINISHED = ".entry", ".part"
_HOUR = 3600.0
# Looking at the whole folder costs as much as some entries: it is done once for so many bytes.
_SHARE = 16


@dataclass(frozen=True, slots=True)
class Contents:
    """What a folder holds.

    Attributes:
        entries: how many files.
        bytes: how much they take together.
    """

    entries: int
    bytes: int


@dataclass(slots=True)
class Store:
    """The entries in a folder.

    Attributes:
        folder: made when the first entry is written, for this user only.
        limit: bytes that all entries may take together; the ones unused for longest go first.
    """

    folder: Path
    limit: int
    _unchecked: int | None = field(default=None, init=False)

    def get(self, key: str) -> bytes | None:
        """What was stored under `key`, or None."""
        if not self._is_trusted():
            return None
        path = self._path(key)
        try:
            # What `open` is given an opener for, it closes whatever happens.
            with open(path, "rb", opener=_open_at_once) as file:
                state = os.fstat(file.fileno())
                if state.st_uid != os.geteuid() or not stat.S_ISREG(state.st_mode):
                    return None
                read = file.read()
                if time.time() - state.st_mtime > _HOUR:
                    os.utime(path)
        except OSError:
            return None
        content = read[_HEAD:]
        if read[:_HEAD] == _head(content):
            return content
        with contextlib.suppress(OSError):
            path.unlink()
        return None

    def put(self, key: str, content: bytes) -> None:
        """Store `content` under `key`, and remove old entries where there are too many."""
        with contextlib.suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if len(content) > self.limit or not self._is_trusted():
            return
        part = self.folder / f"{key}.{os.getpid()}.{os.urandom(4).hex()}{_UNFINISHED}"
        try:
            with part.open("xb") as file:
                file.write(_head(content) + content)
            part.replace(self._path(key))
        except OSError:
            with contextlib.suppress(OSError):
                part.unlink()
            return
        if self._unchecked is None or self._unchecked > self.limit // _SHARE:
            self._shrink()
            self._unchecked = 0
        self._unchecked += len(content)

    def contents(self) -> Contents:
        """How many entries there are, and how many bytes they take."""
        sizes = [size for _, size, path in self._files() if path.endswith(_SUFFIX)]
        return Contents(len(sizes), sum(sizes))

    def clear(self) -> Contents:
        """Remove everything that `put` has made; returns what it was."""
        before = self.contents()
        for _, _, path in self._files():
            with contextlib.suppress(OSError):
                os.unlink(path)
        return before

    def _shrink(self) -> None:
        """Remove the entries unused for longest, down to some less than the limit."""
        files = sorted(self._files())
        total = sum(size for _, size, _ in files)
        target = self.limit - self.limit // _SHARE if total > self.limit else total
        now = time.time()
        for used, size, path in files:
            # A process that died while it was writing leaves its unfinished file.
            stale = path.endswith(_UNFINISHED) and now - used > _HOUR
            if total > target or stale:
                with contextlib.suppress(OSError):
                    os.unlink(path)
                total -= size

    def _files(self) -> Iterator[tuple[float, int, str]]:
        """Time of the last use, bytes and path of all that is ours in the folder."""
        with contextlib.suppress(OSError), os.scandir(self.folder) as found:
            for item in found:
                if item.name.endswith((_SUFFIX, _UNFINISHED)):
                    with contextlib.suppress(OSError):
                        state = item.stat(follow_symlinks=False)
                        yield state.st_mtime, state.st_size, item.path

    def _is_trusted(self) -> bool:
        """Whether the folder is the user's own, and nobody else can write to it."""
        try:
            state = os.lstat(self.folder)
        except OSError:
            return False
        owned = state.st_uid == os.geteuid() and not state.st_mode & 0o077
        return owned and stat.S_ISDIR(state.st_mode)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{_SUFFIX}"


def _open_at_once(path: str, flags: int) -> int:
    """A descriptor without waiting: nobody may be at the other end of a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def _head(content: bytes) -> bytes:
    return _MAGIC + sha256(content).digest()


def current_store() -> Store | None:
    """The store that the environment asks for; None where it asks for none.

    `TECOMP_CACHE=off` switches it off, `TECOMP_CACHE_DIR` says where it is instead of the folder
    that the system has for such files, `TECOMP_CACHE_SIZE` how many megabytes it may take.

    Raises:
        CacheError: one of them has no meaning.
    """
    return store_of(
        os.environ.get(SWITCH, ""), os.environ.get(FOLDER, ""), os.environ.get(SIZE, "")
    )


@cache
def store_of(switch: str, folder: str, size: str) -> Store | None:
    """The store for what the three variables say; the same object for the same words.

    Raises:
        CacheError: one of them has no meaning.
    """
    if switch not in ("", "on", "off"):
        raise CacheError(f"{SWITCH}: expected on or off, got {switch!r}; unset it for on")
    if size and not size.isdecimal():
        raise CacheError(
            f"{SIZE}: expected a number of megabytes, got {size!r}; unset it for "
            f"{DEFAULT_MEGABYTES}"
        )
    if switch == "off" or not hasattr(os, "geteuid"):
        return None
    place = Path(folder) if folder else platformdirs.user_cache_path("tecomp")
    return Store(place / "compiled", int(size or DEFAULT_MEGABYTES) * 1_000_000)
