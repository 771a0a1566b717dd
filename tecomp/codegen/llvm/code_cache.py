"""In-memory and on-disk caches of machine code."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import platformdirs

from tecomp.caches import LRUCache
from tecomp.codegen.llvm import jit
from tecomp.codegen.llvm.ir_builder import LlvmSource
from tecomp.codegen.llvm.jit import LoadedCode, host, link, llvm_version, object_code
from tecomp.errors import CacheError
from tecomp.ir.extern.binding import NOTHING, ExternBindings
from tecomp.progress import log_debug

SWITCH, FOLDER, SIZE = "TECOMP_CACHE", "TECOMP_CACHE_DIR", "TECOMP_CACHE_SIZE"
DEFAULT_MEGABYTES = 512

_MAGIC = b"tecomp 2\n"
_HEAD = len(_MAGIC) + 32
_SUFFIX, _UNFINISHED = ".entry", ".part"
_HOUR = 3600.0
# Scanning the folder is expensive, so it is done once for each limit / _SCANS_PER_LIMIT bytes
# written.
_SCANS_PER_LIMIT = 16
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoreContents:
    """Contents of a cache folder.

    Attributes:
        entries: Number of entries.
        bytes: Total size of the entries in bytes.
    """

    entries: int
    bytes: int


@dataclass(slots=True)
class Store:
    """Cache entries in a folder.

    Attributes:
        folder: Folder, created with the first entry, accessible to this user only.
        limit: Maximum total size in bytes; least recently used entries are evicted first.
    """

    folder: Path
    limit: int
    _unchecked: int | None = field(default=None, init=False)

    def get(self, key: str) -> bytes | None:
        """Return the content stored under `key`, or None."""
        if not self._is_trusted():
            return None
        path = self._path(key)
        try:
            # `open` closes the descriptor of an opener even if it fails.
            with open(path, "rb", opener=_open_nonblocking) as file:
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
        """Remove the entry of `key`, if it exists."""
        with contextlib.suppress(OSError):
            self._path(key).unlink()

    def read(self, key: str, decode: Callable[[bytes], T]) -> T | None:
        """Decode the content stored under `key`; on any failure remove the entry, return None.

        Entries can be regenerated, so a damaged or crafted entry must not raise an error.
        """
        content = self.get(key)
        if content is None:
            return None
        try:
            return decode(content)
        except Exception as error:  # for example RecursionError of the parser or AttributeError
            log_debug("%s: entry %s cannot be read (%s)", self.folder, key, type(error).__name__)
            self.remove(key)
            return None

    def put(self, key: str, content: bytes) -> None:
        """Store `content` under `key`, and evict old entries if the limit is exceeded."""
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
        if self._unchecked is None or self._unchecked > self.limit // _SCANS_PER_LIMIT:
            self._shrink()
            self._unchecked = 0
        self._unchecked += len(content)

    def contents(self) -> StoreContents:
        """Return the number of entries and their total size."""
        sizes = [size for _, size, path in self._files() if path.endswith(_SUFFIX)]
        return StoreContents(len(sizes), sum(sizes))

    def clear(self) -> StoreContents:
        """Remove all entries; return the contents before the removal."""
        before = self.contents()
        for _, _, path in self._files():
            with contextlib.suppress(OSError):
                os.unlink(path)
        return before

    def _shrink(self) -> None:
        """Evict least recently used entries until the size is below the limit with a margin."""
        files = sorted(self._files())
        total = sum(size for _, size, _ in files)
        target = self.limit - self.limit // _SCANS_PER_LIMIT if total > self.limit else total
        now = time.time()
        for last_used, size, path in files:
            # A process that was killed during a write leaves an unfinished file.
            stale = path.endswith(_UNFINISHED) and now - last_used > _HOUR
            if total > target or stale:
                with contextlib.suppress(OSError):
                    os.unlink(path)
                total -= size

    def _files(self) -> Iterator[tuple[float, int, str]]:
        """Yield the time of last use, size and path of all cache files in the folder."""
        with contextlib.suppress(OSError), os.scandir(self.folder) as found:
            for item in found:
                if item.name.endswith((_SUFFIX, _UNFINISHED)):
                    with contextlib.suppress(OSError):
                        state = item.stat(follow_symlinks=False)
                        yield state.st_mtime, state.st_size, item.path

    def _is_trusted(self) -> bool:
        """Return whether the folder belongs to the user and is inaccessible to other users."""
        try:
            state = os.lstat(self.folder)
        except OSError:
            return False
        is_private = state.st_uid == os.geteuid() and not state.st_mode & 0o077
        return is_private and stat.S_ISDIR(state.st_mode)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{_SUFFIX}"


def _open_nonblocking(path: str, flags: int) -> int:
    """Open a file without blocking, in case the path is a named pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def _head(key: str, content: bytes) -> bytes:
    """Return the file header; its checksum covers the key, so entries cannot be swapped."""
    name = key.encode()
    return _MAGIC + sha256(b"%d\n%b%b" % (len(name), name, content)).digest()


def current_store() -> Store | None:
    """Return the store that the environment configures, or None if the cache is disabled.

    `TECOMP_CACHE=off` disables the cache, `TECOMP_CACHE_DIR` replaces the default user cache
    folder, and `TECOMP_CACHE_SIZE` is the size limit in megabytes.

    Raises:
        CacheError: If one of the variables has an invalid value.
    """
    return store_of(
        os.environ.get(SWITCH, ""), os.environ.get(FOLDER, ""), os.environ.get(SIZE, "")
    )


@cache
def store_of(switch: str, folder: str, size: str) -> Store | None:
    """Return the store for values of the three variables; equal values give the same object.

    Raises:
        CacheError: If `switch` or `size` has an invalid value.
    """
    if switch not in ("", "on", "off"):
        raise CacheError(
            "{switch}: expected on or off, got {value!r}; unset it for the default, on",
            switch=SWITCH, value=switch,
        )
    if size and not size.isdecimal():
        raise CacheError(
            "{size}: expected a number of megabytes, got {value!r}; unset it for the default, "
            "{default_megabytes}",
            size=SIZE, value=size, default_megabytes=DEFAULT_MEGABYTES,
        )
    if switch == "off" or not hasattr(os, "geteuid"):
        return None
    directory = Path(folder) if folder else platformdirs.user_cache_path("tecomp")
    return Store(directory / "compiled", int(size or DEFAULT_MEGABYTES) * 1_000_000)


LINKED: LRUCache[str, LoadedCode] = LRUCache("codegen.linked_code")


def digest(*parts: object) -> str:
    """Return a SHA-256 digest of JSON-serializable values."""
    return sha256(json.dumps(parts).encode()).hexdigest()


def code_key(source: LlvmSource, entry: str) -> str:
    """Return the cache key of a module: a digest of everything the code depends on."""
    return digest(astuple(source), entry, compiler_fingerprint())


@cache
def compiler_fingerprint() -> list[str]:
    """Return what code depends on besides its source: the host, LLVM and the pass pipeline."""
    machine = host()
    passes = sha256(Path(jit.__file__).read_bytes()).hexdigest()
    return [machine.triple, machine.cpu, machine.features, llvm_version(), passes]


def lookup_code(key: str, entry: str, outside: ExternBindings = NOTHING) -> LoadedCode | None:
    """Return the linked code of a cache key, or None."""
    store = current_store()
    if store is None:
        return None
    return LINKED.get(key, None) or _load_entry(store, key, entry, outside)


def _load_entry(store: Store, key: str, entry: str, outside: ExternBindings) -> LoadedCode | None:
    """Return the linked code of a stored entry; on failure remove the entry, return None."""
    return store.read(key, lambda image: _link(key, image, entry, outside))


def _link(key: str, image: bytes, entry: str, outside: ExternBindings) -> LoadedCode:
    """Link code; code with external calls is not cached in memory, as bindings may change."""
    loaded = link([image], entry, outside)
    return loaded if outside.addresses else LINKED.keep(key, loaded)


def get_or_compile_object(source: LlvmSource, *, is_fresh: bool = False) -> bytes:
    """Return the object code of a module for the host, from the cache if possible.

    Args:
        source: LLVM module.
        is_fresh: If True, compile the module even if there is an entry, and replace the entry.

    Raises:
        InternalError: If LLVM rejects the module.
    """
    store = current_store()
    if store is None:
        return object_code(source)
    key = code_key(source, "")
    found = None if is_fresh else store.get(key)
    if found is None:
        return _compile_and_store(store, key, source)
    log_debug("machine code: found in %s", store.folder)
    return found


def machine_code(
    source: LlvmSource,
    entry: str,
    key: str | None = None,
    effort: int = 2,
    outside: ExternBindings = NOTHING,
) -> LoadedCode:
    """Return the linked machine code of a module for the host, from the cache if possible.

    Args:
        source: LLVM module.
        entry: Name of the entry function.
        key: `code_key` of `source` and `entry`, if known.
        effort: Optimization level of the LLVM code generator; it must be fixed for each text.
        outside: External functions that the code calls.

    Raises:
        InternalError: If LLVM rejects the module, or if a symbol cannot be resolved.
    """
    store = current_store()
    if store is None:
        return link([object_code(source, effort)], entry, outside)
    key = key or code_key(source, entry)
    found = LINKED.get(key, None)
    if found is None and (found := _load_entry(store, key, entry, outside)) is not None:
        log_debug("machine code: found in %s", store.folder)
    return found or _link(key, _compile_and_store(store, key, source, effort), entry, outside)


def _compile_and_store(store: Store, key: str, source: LlvmSource, effort: int = 2) -> bytes:
    """Compile a module to object code and store it."""
    image = object_code(source, effort)
    store.put(key, image)
    return image
