"""The code cache on disk: hits, checksums, size limit, and unusable folders."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import platformdirs
import pytest

from tecomp.codegen import LlvmSource, Store, StoreContents, current_store
from tecomp.codegen.llvm import code_cache, jit
from tecomp.errors import CacheError, InternalError
from tests.messages import Diagnostic, diagnostic

DAY = 86400.0


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "deep" / "compiled", 10_000)


def entry(store: Store, key: str) -> Path:
    return store.folder / f"{key}.entry"


def test_stored_entries_are_found(store: Store) -> None:
    assert store.get("a") is None
    store.put("a", b"code")
    store.put("b", b"")
    store.put("a", b"better code")

    assert store.get("a") == b"better code"
    assert store.get("b") == b""
    assert store.contents() == StoreContents(2, 2 * 41 + 11)


def test_only_the_user_can_read_the_folder(store: Store) -> None:
    store.put("a", b"code")

    assert store.folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data[:20],
        lambda data: b"",
        lambda data: data + b"x",
        lambda data: data[:-1] + b"?",
        lambda data: b"tecomp 0\n" + data[9:],
        lambda data: data[:9] + b"\0" * 32 + data[41:],
    ],
    ids=["cut", "head", "empty", "longer", "changed", "version", "checksum"],
)
def test_a_damaged_entry_is_no_entry(store: Store, damage: object) -> None:
    assert callable(damage)
    store.put("a", b"code")
    entry(store, "a").write_bytes(damage(entry(store, "a").read_bytes()))

    assert store.get("a") is None
    assert not entry(store, "a").exists()
    store.put("a", b"code")
    assert store.get("a") == b"code"


def test_the_content_of_another_entry_is_no_entry(store: Store) -> None:
    store.put("a", b"code")
    store.put("b", b"other code")
    entry(store, "a").write_bytes(entry(store, "b").read_bytes())

    assert store.get("a") is None
    assert not entry(store, "a").exists()
    assert store.get("b") == b"other code"


def test_keys_and_contents_are_distinguished(store: Store) -> None:
    store.put("a", b"bc")
    store.folder.joinpath(entry(store, "a").name.replace("a", "ab", 1)).write_bytes(
        entry(store, "a").read_bytes()[:-2] + b"c")

    assert store.get("ab") is None


@pytest.mark.parametrize("error", [RecursionError, ValueError, AttributeError, InternalError])
def test_an_entry_that_cannot_be_decoded_is_removed(
    store: Store, error: type[Exception]
) -> None:
    def decode(content: bytes) -> int:
        if content == b"crafted":
            raise error("no")
        return len(content)

    store.put("a", b"code")
    assert store.read("a", decode) == 4
    store.put("a", b"crafted")
    assert store.read("a", decode) is None
    assert not entry(store, "a").exists()
    assert store.read("a", decode) is None


@pytest.mark.parametrize("image", [b"", b"ELF", b"\x7fELF" + bytes(60), "cut", "other"])
def test_code_that_does_not_link_is_rebuilt(
    image: bytes | str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Crafted entries with a correct checksum are compiled again."""
    monkeypatch.setenv("TECOMP_CACHE", "on")
    monkeypatch.setenv("TECOMP_CACHE_DIR", str(store.folder.parent))
    kept = code_cache.current_store()
    assert kept is not None
    source, other = (
        LlvmSource(f"define i32 @{name}(ptr %p) {{\n  ret i32 {number}\n}}\n")
        for name, number in (("first", 7), ("second", 8))
    )
    key = code_cache.code_key(source, "first")
    code = jit.object_code(source)
    argument = {"cut": code[: len(code) // 2], "other": jit.object_code(other)}
    content = argument[image] if isinstance(image, str) else image
    code_cache.LINKED.clear()
    kept.put(key, content)

    assert code_cache.lookup_code(key, "first") is None
    kept.put(key, content)
    linked = code_cache.machine_code(source, "first")
    assert linked.entry(None) == 7
    assert kept.get(key) == code


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o702])
def test_directories_writable_by_other_users_are_not_used(store: Store, mode: int) -> None:
    store.put("a", b"code")
    store.folder.chmod(mode)
    store.put("b", b"code")

    assert store.get("a") is None
    assert not entry(store, "b").exists()


def test_a_folder_that_is_a_link_or_a_file_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "file").write_text("")
    for name in ("link", "file", "file/below"):
        store = Store(tmp_path / name, 1000)
        store.put("a", b"code")

        assert store.get("a") is None
        assert store.contents() == StoreContents(0, 0)
        assert store.clear() == StoreContents(0, 0)


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="no such folder")
@pytest.mark.parametrize("kind", ["directory", "pipe", "link", "none", "file"])
def test_corrupt_entries_leave_no_open_file_descriptor(store: Store, kind: str) -> None:
    store.put("other", b"code")
    place = entry(store, "a")
    if kind == "directory":
        place.mkdir()
    elif kind == "pipe":
        os.mkfifo(place)
    elif kind == "link":
        place.symlink_to(store.folder)
    elif kind == "file":
        store.put("a", b"code")
    before = len(list(Path("/proc/self/fd").iterdir()))
    found = [store.get("a") for _ in range(8)]

    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert found == [b"code" if kind == "file" else None] * 8


def test_a_full_disk_is_no_error(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    store.put("a", b"code")
    monkeypatch.setattr(Path, "replace", refuse)
    store.put("b", b"code")

    assert [path.name for path in store.folder.iterdir()] == ["a.entry"]


def test_the_entries_unused_for_longest_go_first(store: Store) -> None:
    now = time.time()
    for k in range(8):
        store.put(f"old{k}", b"x" * 1000)
        os.utime(entry(store, f"old{k}"), (now - (9 - k) * DAY,) * 2)
    assert store.get("old0") == b"x" * 1000
    for k in range(4):
        store.put(f"new{k}", b"x" * 1000)

    assert store.contents().bytes <= store.limit
    assert store.get("old0") is not None
    assert [store.get(f"old{k}") for k in (1, 2)] == [None, None]
    assert all(store.get(f"new{k}") for k in range(4))


def test_entries_beyond_the_cache_size_are_not_stored(store: Store) -> None:
    store.put("a", b"x" * 10_001)

    assert store.get("a") is None


def test_stale_temporary_files_are_removed(store: Store) -> None:
    store.put("a", b"code")
    for name, age in (("dead", DAY), ("alive", 0.0)):
        (store.folder / f"{name}.1.x.part").write_bytes(b"half")
        os.utime(store.folder / f"{name}.1.x.part", (time.time() - age,) * 2)
    Store(store.folder, store.limit).put("b", b"code")

    assert sorted(path.name for path in store.folder.iterdir()) == [
        "a.entry", "alive.1.x.part", "b.entry",
    ]  # fmt: skip


def test_clear_keeps_foreign_files(store: Store) -> None:
    store.put("a", b"code")
    (store.folder / "notes.txt").write_text("mine")

    assert store.clear() == StoreContents(1, 45)
    assert [path.name for path in store.folder.iterdir()] == ["notes.txt"]


@pytest.mark.exhaustive
def test_many_processes_at_once(store: Store) -> None:
    # Each process writes, reads and evicts in one small folder; entries are always complete.
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from tecomp.codegen.llvm.code_cache import Store\n"
        "seed, store = int(sys.argv[2]), Store(Path(sys.argv[1]), 60_000)\n"
        "for k in range(120):\n"
        "    key = str((seed * 31 + k * 7) % 40)\n"
        "    content = key.encode() * 1000\n"
        "    assert store.get(key) in (None, content), key\n"
        "    store.put(key, content)\n"
        "    assert k % 30 or store.clear()\n"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(store.folder), str(seed)],
            stderr=subprocess.PIPE, text=True,
        )
        for seed in range(4)
    ]  # fmt: skip

    assert [process.communicate()[1] for process in running] == [""] * 4
    assert not list(store.folder.glob("*.part"))


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("TECOMP_CACHE", "TECOMP_CACHE_DIR", "TECOMP_CACHE_SIZE"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_the_environment_decides(clean: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store = current_store()
    assert store is not None
    assert store.folder == platformdirs.user_cache_path("tecomp") / "compiled"
    assert store.limit == 512_000_000

    clean.setenv("TECOMP_CACHE_DIR", str(tmp_path))
    clean.setenv("TECOMP_CACHE_SIZE", "3")
    store = current_store()
    assert store is not None
    assert (store.folder, store.limit) == (tmp_path / "compiled", 3_000_000)
    assert current_store() is store

    clean.setenv("TECOMP_CACHE", "off")
    assert current_store() is None


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("TECOMP_CACHE", "no", Diagnostic("cache", switch="TECOMP_CACHE", value="no")),
        ("TECOMP_CACHE_SIZE", "1GB",
         Diagnostic("cache", size="TECOMP_CACHE_SIZE", value="1GB", default_megabytes=512)),
        ("TECOMP_CACHE_SIZE", "-1",
         Diagnostic("cache", size="TECOMP_CACHE_SIZE", value="-1", default_megabytes=512)),
    ],
)  # fmt: skip
def test_words_without_meaning(
    clean: pytest.MonkeyPatch, name: str, text: str, expected: Diagnostic
) -> None:
    clean.setenv(name, text)
    with pytest.raises(CacheError) as error:
        current_store()

    assert diagnostic(error.value) == expected
