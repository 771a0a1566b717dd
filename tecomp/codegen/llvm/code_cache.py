"""In-memory and on-disk caches of machine code."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Generic, TypeVar

import platformdirs

from tecomp.codegen.llvm import jit
from tecomp.codegen.llvm.ir_builder import Source
from tecomp.codegen.llvm.jit import Linked, host, link, llvm_version, object_code
from tecomp.errors import CacheError
from tecomp.ir.extern.binding import NOTHING, Outside
from tecomp.progress import tell

SWITCH, FOLDER, SIZE = "TECOMP_CACHE", "TECOMP_CACHE_DIR", "TECOMP_CACHE_SIZE"
DEFAULT_MEGABYTES = 512

_MAGIC = b"tecomp 2\n"
_HEAD = len(_MAGIC) + 32
_SUFFIX, _UNFINISHED = ".entry", ".part"
_HOUR = 3600.0
# Looking at the whole folder costs as much as some entries: it is done once for so many bytes.
_SHARE = 16
T = TypeVar("T")


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
        if read[:_HEAD] == _head(key, content):
            return content
        self.remove(key)
        return None

    def remove(self, key: str) -> None:
        """Remove the entry of `key`, if there is one."""
        with contextlib.suppress(OSError):
            self._path(key).unlink()

    def read(self, key: str, decode: Callable[[bytes], T]) -> T | None:
        """Decode what was stored under `key`; None, and no entry, if that fails in any way.

        Entries are made again. So what a damaged or crafted one leads to is no error of the user.
        """
        content = self.get(key)
        if content is None:
            return None
        try:
            return decode(content)
        except Exception as error:  # a RecursionError of the parser, an AttributeError of a part
            tell("%s: entry %s cannot be read (%s)", self.folder, key, type(error).__name__)
            self.remove(key)
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
                file.write(_head(key, content) + content)
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


def _head(key: str, content: bytes) -> bytes:
    """The beginning of a file: the checksum covers the key, so no entry passes for another one."""
    name = key.encode()
    return _MAGIC + sha256(b"%d\n%b%b" % (len(name), name, content)).digest()


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


_IN_MEMORY = 256


class Recent(Generic[T]):
    """The last values that were used, by key; calls from several threads at once are safe.

    Attributes:
        limit: how many are kept.
    """

    def __init__(self, limit: int = _IN_MEMORY) -> None:
        self.limit = limit
        self._values: OrderedDict[str, T] = OrderedDict()

    def get(self, key: str) -> T | None:
        """The value under `key`, or None."""
        found = self._values.pop(key, None)
        if found is not None:
            self._values[key] = found
        return found

    def put(self, key: str, value: T) -> T:
        """Keep `value` under `key`, and forget what was not used for longest; returns `value`."""
        self._values[key] = value
        while len(self._values) > self.limit:
            try:
                self._values.popitem(last=False)
            except KeyError:
                break
        return value

    def remove(self, key: str) -> None:
        """Forget the value under `key`, if there is one."""
        self._values.pop(key, None)

    def clear(self) -> None:
        """Forget everything."""
        self._values.clear()


LINKED: Recent[Linked] = Recent()


def digest(*parts: object) -> str:
    """A name for plain values that no others have."""
    return sha256(json.dumps(parts).encode()).hexdigest()


def code_key(source: Source, entry: str) -> str:
    """The name under which the code of a module is kept: all that it depends on."""
    return digest(astuple(source), entry, made_by())


@cache
def made_by() -> list[str]:
    """What code depends on besides its text: the machine at hand, and how it is generated."""
    machine = host()
    passes = sha256(Path(jit.__file__).read_bytes()).hexdigest()
    return [machine.triple, machine.cpu, machine.features, llvm_version(), passes]


def cached_code(key: str, entry: str, outside: Outside = NOTHING) -> Linked | None:
    """The code that was made under this key, ready to be called, or None."""
    store = current_store()
    if store is None:
        return None
    return LINKED.get(key) or _stored(store, key, entry, outside)


def _stored(store: Store, key: str, entry: str, outside: Outside) -> Linked | None:
    """The code of an entry, ready to be called; None, and no entry, if it cannot be linked."""
    return store.read(key, lambda image: _linked(key, image, entry, outside))


def _linked(key: str, image: bytes, entry: str, outside: Outside) -> Linked:
    """Code in memory; what calls functions outside of the program may call others next time."""
    made = link([image], entry, outside)
    return made if outside.addresses else LINKED.put(key, made)


def cached_object(source: Source) -> bytes:
    """Machine code of a module for the machine at hand, to be linked.

    Raises:
        InternalError: LLVM refuses the module.
    """
    store = current_store()
    if store is None:
        return object_code(source)
    key = code_key(source, "")
    found = store.get(key)
    if found is None:
        return _put(store, key, source)
    tell("machine code: found in %s", store.folder)
    return found


def machine_code(
    source: Source,
    entry: str,
    key: str | None = None,
    effort: int = 2,
    outside: Outside = NOTHING,
) -> Linked:
    """Machine code of a module for the machine at hand, ready to be called.

    Args:
        source: the module.
        entry: name of the function that is called.
        key: `code_key` of these, if it is known.
        effort: of LLVM's code generator; the same for one text at any time.
        outside: functions outside of the program that it calls.

    Raises:
        InternalError: LLVM refuses the module, or it calls a function that does not exist.
    """
    store = current_store()
    if store is None:
        return link([object_code(source, effort)], entry, outside)
    key = key or code_key(source, entry)
    found = LINKED.get(key)
    if found is None and (found := _stored(store, key, entry, outside)) is not None:
        tell("machine code: found in %s", store.folder)
    return found or _linked(key, _put(store, key, source, effort), entry, outside)


def _put(store: Store, key: str, source: Source, effort: int = 2) -> bytes:
    """Make the machine code of a module, and store it."""
    made = object_code(source, effort)
    store.put(key, made)
    return made
