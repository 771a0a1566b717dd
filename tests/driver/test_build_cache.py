"""Kernels that were built before are found if everything is equal, and built again otherwise."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import tecomp
from tecomp import te
from tecomp.codegen import Kernel, Options, Store, current_store, process
from tecomp.codegen.llvm import code_cache as cached_code
from tecomp.driver import (
    BuildRequest,
    ScheduledKernel,
    build_cache,
    calibrate,
    fingerprint,
    layout_packing,
    program_keys,
)
from tecomp.driver.build import build
from tecomp.errors import CallError, LowerError, TargetError
from tecomp.lowering import pipeline
from tecomp.machine import Target, read_target
from tecomp.relayout_kernels import kernel_of
from tests.messages import Diagnostic, diagnostic
from tests.strategies.schedules import Case, cases

CPU = Target.load("cpu")
Made = tuple[te.Schedule, list[Any]]


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Store:
    process()  # create the process-wide runtime before the test, as the first kernel call caches it
    monkeypatch.setenv("TECOMP_CACHE", "on")
    monkeypatch.setenv("TECOMP_CACHE_DIR", str(tmp_path))
    forget()
    found = current_store()
    assert found is not None
    return found


def forget() -> None:
    """Clear the caches of the process, as in a new process."""
    build_cache.COMPILED.clear()
    cached_code.LINKED.clear()


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the calls that lower, compile and link."""
    notes: list[str] = []
    kernel_of.cache_clear()  # otherwise a copy kernel of another test would be reused
    for place, name in (
        (pipeline, "lower_all"), (cached_code, "object_code"), (cached_code, "link"),
    ):  # fmt: skip
        monkeypatch.setattr(place, name, partial(_noted, notes, name, getattr(place, name)))
    return notes


def _noted(
    notes: list[str], name: str, function: Callable[..., Any], *args: Any, **options: Any
) -> Any:
    notes.append(name)
    return function(*args, **options)


def program(
    *,
    n: Any = 24,
    dtype: str = "float32",
    constant: float = 2.0,
    name: str = "B",
    axis: str = "i",
    factor: int = 8,
    mark: str = "vectorize",
    scope: str = "global",
    layout: int = 4,
    pad: float | None = None,
    reverse: bool = False,
    read: Callable[[Any, Any], Any] = lambda A, i: A[i],
) -> Made:
    A = te.placeholder((n,), dtype, name="A")
    loop = {"i": lambda i: read(A, i) * te.const(constant, dtype),
            "j": lambda j: read(A, j) * te.const(constant, dtype)}[axis]
    B = te.compute((n,), loop, name=name)
    s = te.create_schedule(B.op)
    cached = s.cache_read(A, scope, [B])
    s[cached].transform_layout(lambda i: [i // layout, i % layout], pad_value=pad)
    _, inner = s[B].split(B.op.axis[0], factor)
    getattr(s[B], mark)(inner)
    return s, [B, A] if reverse else [A, B]


def check(kernel: ScheduledKernel, n: int = 24) -> None:
    a = np.arange(n, dtype="float32")
    b = np.zeros(n, "float32")
    kernel(a, b)

    np.testing.assert_array_equal(b, a * 2)


def test_a_kernel_is_found_in_memory_and_on_disk(counted: list[str]) -> None:
    check(build(*program()))
    assert counted == ["lower_all", "object_code", "link"]
    check(build(*program()))
    assert counted == ["lower_all", "object_code", "link"]
    forget()
    check(build(*program()))
    assert counted == ["lower_all", "object_code", "link", "link"]


def test_a_found_kernel_shows_the_same_as_a_new_one(counted: list[str]) -> None:
    new = build(*program(n=te.size_var("n")), name="scale")
    forget()
    found = build(*program(n=te.size_var("n")), name="scale")

    assert (repr(found), found.shapes.keys()) == (repr(new), new.shapes.keys())
    assert str(found.signature) == str(new.signature)
    assert found.compiled.interface.head == new.compiled.interface.head
    assert counted.count("lower_all") == 1
    assert found.lowered.dump() == new.lowered.dump()
    assert found.func == new.func
    for kind in ("ir", "llvm", "asm"):
        assert found.source(kind) == new.source(kind)
    check(found, 100)
    for kernel in (new, found):
        with pytest.raises(CallError) as error:
            kernel(np.zeros(4, "float32"), np.zeros(5, "float32"))
        assert diagnostic(error.value) == Diagnostic(
            "argument-mismatch", where="argument 1 (B) of scale",
            problem="axis 0 is 5, but n is 4 from axis 0 of A; pass an array of float32[4]",
        )


def test_code_of_the_same_text_is_found_for_other_schedules(counted: list[str]) -> None:
    for tag in ("one", "other"):
        A = te.placeholder((24,), name="A")
        B = te.compute((24,), lambda i, A=A: A[i] * 2.0, name="B", tag=tag)
        check(build(te.create_schedule(B), [A, B]))

    assert counted == ["lower_all", "object_code", "link", "lower_all"]


VARIANTS: dict[str, Callable[[], Made]] = {
    "plain": program,
    "shape": partial(program, n=25),
    "dtype": partial(program, dtype="float64"),
    "constant": partial(program, constant=3.0),
    "minus zero": partial(program, constant=-0.0),
    "zero": partial(program, constant=0.0),
    "tensor": partial(program, name="C"),
    "axis": partial(program, axis="j"),
    "factor": partial(program, factor=4),
    "mark": partial(program, mark="unroll"),
    "parallel": partial(program, mark="parallel"),
    "scope": partial(program, scope="local"),
    "layout": partial(program, layout=8),
    "pad": partial(program, pad=1.0),
    "other pad": partial(program, pad=2.0),
    "order": partial(program, reverse=True),
    "size": lambda: program(n=te.size_var("n")),
    "named size": lambda: program(n=te.size_var("m")),
    "wide size": lambda: program(n=te.size_var("n", "int64")),
    "index": partial(program, read=lambda A, i: A[23 - i]),
    "guard": partial(program, read=lambda A, i: te.if_then_else(i < 12, A[i], 0.0)),
    "select": partial(program, read=lambda A, i: te.Select(i < 12, A[i], te.const(0.0))),
}  # fmt: skip


def keys(result: Made, **changed: Any) -> list[str]:
    s, args = result
    source = {"name": "main", "target": CPU, "options": Options(), **changed}
    return list(program_keys(BuildRequest(s, args, **source)))


def test_every_difference_makes_another_key() -> None:
    found = {name: keys(make())[0] for name, make in VARIANTS.items()}

    assert len(set(found.values())) == len(VARIANTS)
    assert found == {name: keys(make())[0] for name, make in VARIANTS.items()}


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "other"},
        {"options": Options(check_bounds=True)},
        {"options": Options(fast_math=True)},
        {"options": Options(fp_contract=False)},
        {"target": read_target(Path("targets/cpu.toml").read_text().replace("= 64", "= 32"), "cpu")},
    ],
    ids=["name", "bounds", "fast", "contract", "target"],
)
def test_every_option_makes_another_key(changed: dict[str, Any]) -> None:
    assert keys(program(), **changed)[0] != keys(program())[0]


def test_another_compiler_makes_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = keys(program())
    monkeypatch.setattr(build_cache, "SOURCES", "changed")

    assert set(keys(program())).isdisjoint(before)


def test_the_fingerprint_follows_the_sources(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "a.py").write_text("x = 1\n")
    seen = {fingerprint(tmp_path)}
    (tmp_path / "room" / "a.pyc").write_text("ignored")
    (tmp_path / "notes.txt").write_text("ignored")
    assert fingerprint(tmp_path) in seen

    (tmp_path / "room" / "a.py").write_text("x = 10\n")
    seen.add(fingerprint(tmp_path))
    (tmp_path / "b.py").write_text("")
    seen.add(fingerprint(tmp_path))
    (tmp_path / "b.py").rename(tmp_path / "c.py")
    seen.add(fingerprint(tmp_path))
    assert len(seen) == 4


def test_cached_kernels_match_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    # All variants are in the store at once, so that a wrong hit gives a wrong result.
    for make in VARIANTS.values():
        build(*make())
    forget()
    found = {name: build(*make()) for name, make in VARIANTS.items()}
    monkeypatch.setenv("TECOMP_CACHE", "off")
    for name, make in VARIANTS.items():
        new = build(*make())
        assert found[name].source("llvm") == new.source("llvm"), name
        results = []
        for kernel in (found[name], new):
            arrays = [
                np.arange(25 if name == "shape" else 24, dtype=p.dtype.numpy)
                for p in kernel.signature
            ]
            kernel(*arrays)
            results.append(arrays)
        for one, other in zip(*results, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=name)


@pytest.mark.exhaustive
@given(cases())
def test_random_programs_with_one_key_are_one_function(case: Case) -> None:
    first, *_ = keys((case.schedule, case.args))
    text = str(case.build().func)

    assert SEEN.setdefault(first, text) == text


SEEN: dict[str, str] = {}


def gather_here() -> Made:
    A = te.placeholder((10,), name="A")
    I = te.placeholder((4,), "int32", name="I")  # noqa: E741
    B = te.compute((4,), lambda i: A[I[i]], name="B")
    return te.create_schedule(B.op), [A, I, B]


def gather_there() -> Made:
    A = te.placeholder((10,), name="A")
    I = te.placeholder((4,), "int32", name="I")  # noqa: E741
    B = te.compute((4,), lambda i: A[I[i]], name="B")
    return te.create_schedule(B.op), [A, I, B]


def copy_here() -> Made:
    A = te.placeholder((10,), name="A")
    B = te.compute((10,), lambda i: A[i], name="B")
    return te.create_schedule(B.op), [A, B]


def copy_there() -> Made:
    A = te.placeholder((10,), name="A")
    B = te.compute((10,), lambda i: A[i], name="B")
    return te.create_schedule(B.op), [A, B]


def test_a_line_counts_only_where_an_error_would_name_it(counted: list[str]) -> None:
    build(*copy_here())
    build(*copy_there())
    assert counted.count("lower_all") == 1

    for make in (gather_here, gather_there, gather_here, gather_there):
        forget()
        kernel = build(*make())
        with pytest.raises(CallError) as error:
            kernel(np.zeros(10, "float32"), np.array([1, 2, 77, 3], "int32"), np.zeros(4, "float32"))
        line = make.__code__.co_firstlineno + 3
        assert diagnostic(error.value) == Diagnostic(
            "out-of-bounds", value=77, text=f"{Path(__file__)}:{line}: A[I[i]] (axis 0 of A[10])",
        )
    assert counted.count("lower_all") == 3


def test_uncacheable_programs_are_rebuilt(counted: list[str]) -> None:
    A = te.placeholder((24,), name="A")
    B = te.compute((24,), lambda i: A[i] * 2.0, name="B", attrs={"thing": object()})
    for _ in range(2):
        check(build(te.create_schedule(B.op), [A, B]))

    assert counted == ["lower_all", "object_code", "link", "lower_all"]


def test_later_calls_on_the_schedule_do_not_change_a_kernel() -> None:
    build(*program())
    s, args = program()
    kernel = build(s, args)
    expected = kernel.source()
    kernel = build(s, args)
    s[args[1]].unroll(s[args[1]].leaf_iter_vars[0])

    assert kernel.lowered.final == kernel.func
    assert kernel.source() == expected
    assert build(s, args).source() != expected


@pytest.mark.parametrize("damage", ["cut", "gone", "code gone"])
def test_damaged_entries_are_rebuilt(damage: str, store: Store, counted: list[str]) -> None:
    check(build(*program()))
    forget()
    sizes = {path: path.stat().st_size for path in store.folder.iterdir()}
    code, *_ = [path for path in sizes if b"ELF" in path.read_bytes()]
    for path in sizes if damage in ("cut", "gone") else [code]:
        if damage == "cut":
            path.write_bytes(path.read_bytes()[:-7])
        else:
            path.unlink()
    check(build(*program()))

    assert counted == ["lower_all", "object_code", "link"] * 2
    assert {path: path.stat().st_size for path in store.folder.iterdir()} == sizes


def descriptions(store: Store) -> dict[str, bytes]:
    """Return the entries that describe the interface of compiled code, by key."""
    contents = {path.stem: store.get(path.stem) for path in store.folder.iterdir()}
    return {key: content for key, content in contents.items() if content and content[:1] == b"["}


def test_a_kernel_is_not_found_under_the_name_of_another(store: Store, counted: list[str]) -> None:
    """A file that is moved to another key is not accepted under that key."""
    check(build(*program()))
    (first,) = descriptions(store)
    build(*program(constant=3.0))
    (second,) = descriptions(store).keys() - {first}
    one, two = (store.folder / f"{key}.entry" for key in (first, second))
    one.write_bytes(two.read_bytes())
    forget()
    check(build(*program()))

    assert counted.count("lower_all") == 3


@pytest.mark.exhaustive(keep=10)
@pytest.mark.parametrize("content", [
    b"[" * 100_000, b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 100_000, b"", b"null", b"7", b"\xff",
    b"[]", b'["(9"]', b'["(-1"]', b'["#0"]', b'["@tecomp.ir.nodes.stmt.PrimFunc"]', b'["d9"]',
    b'[null, null, null, null, null, null, null, null, null, "(9"]',
], ids=lambda content: str(content[:20]))
def test_crafted_entries_are_rebuilt(content: bytes, store: Store, counted: list[str]) -> None:
    check(build(*program()))
    (key,) = descriptions(store)
    store.put(key, content)
    forget()
    check(build(*program()))

    assert counted.count("lower_all") == 2


def copied() -> Kernel:
    """Return a kernel that packs arrays of a symbolic size."""
    n = te.size_var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i], name="B")
    s = te.create_schedule(B)
    s[B].transform_layout(lambda i: [i // 4, i % 4])
    return layout_packing._compile(s, [A, B], "pack")


def product() -> Kernel:
    """Return a kernel that `calibrate` measures."""
    return calibrate._product("float32", 2, 8, is_vector=True)[0]


def unscheduled() -> ScheduledKernel:
    A = te.placeholder((24,), name="A")
    B = te.compute((24,), lambda i: A[i] * 2.0, name="B")
    return build(B, [A, B])


def scheduled() -> ScheduledKernel:
    return build(*program())


def pickled() -> ScheduledKernel:
    found: ScheduledKernel = pickle.loads(pickle.dumps(scheduled()))
    return found


def packed() -> None:
    """Pack and unpack arrays of a symbolic size, for which there is no compiled copy."""
    n = te.size_var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    s = te.create_schedule(B)
    s[A].transform_layout(lambda i: [i // 4, i % 4])
    kernel = build(s, [A, B])
    a = np.arange(10, dtype="float32")
    places = kernel.pack(A, a)

    np.testing.assert_array_equal(places, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 0]])
    np.testing.assert_array_equal(kernel.unpack(A, places, n=10), a)


def measured() -> None:
    kernel = product()
    x, y, tiles = [np.ones(kernel.shapes[name], "float32") for name in ("x", "y", "tiles")]
    kernel(x, y, tiles)

    np.testing.assert_array_equal(tiles, x.shape[1])


def compiled() -> None:
    A = te.placeholder((24,), name="A")
    B = te.compute((24,), lambda i: A[i] * 2.0, name="B")
    a = np.arange(24, dtype="float32")

    np.testing.assert_array_equal(tecomp.compile(B, [A])(a), a * 2)


@pytest.mark.exhaustive(most=1)
@pytest.mark.parametrize("make", [scheduled, copied, product, unscheduled, pickled])
def test_entries_with_random_words_are_rebuilt(store: Store, make: Callable[[], Kernel]) -> None:
    """If words of a signed entry are replaced, deleted or swapped, the kernel is built again."""
    make()
    found = [(key, json.loads(content)) for key, content in descriptions(store).items()]
    random = Random(0)
    for _ in range(100):
        key, words = random.choice(found)
        changed = list(words)
        for _ in range(random.choice((1, 1, 2))):
            k = random.randrange(len(changed))
            match random.randrange(4):
                case 0:
                    changed[k] = random.choice((None, True, 1 << 70, -1, "'", "(0", "f", [], {}, 0.5))
                case 1:
                    del changed[k]
                case 2:
                    changed.insert(k, random.choice(words))
                case 3:
                    j = random.randrange(len(changed))
                    changed[k], changed[j] = changed[j], changed[k]
        store.put(key, json.dumps(changed).encode())
        forget()
        make()


@pytest.mark.exhaustive(keep=9)
@pytest.mark.parametrize("run", [
    lambda: check(scheduled()), lambda: check(unscheduled()), lambda: check(pickled()), packed, measured,
    compiled], ids=["scheduled", "unscheduled", "pickled", "packed", "measured", "compiled"])
@pytest.mark.parametrize("content", [b"", b"x" * 1000, b"\x7fELF" + b"x" * 1000, b"[" * 100_000],
                         ids=lambda content: str(content[:8]))
def test_every_crafted_entry_is_rebuilt(
    store: Store, run: Callable[[], None], content: bytes
) -> None:
    """Entries of code and of programs are made again too."""
    run()
    for path in list(store.folder.iterdir()):
        store.put(path.stem, content)
    forget()
    run()


@pytest.mark.parametrize("thing", ["pipe", "folder", "device", "loop"])
def test_other_things_in_the_place_of_an_entry(
    thing: str, store: Store, counted: list[str]
) -> None:
    check(build(*program()))
    forget()
    for path in list(store.folder.iterdir()):
        path.unlink()
        match thing:
            case "pipe":
                os.mkfifo(path)
            case "folder":
                path.mkdir()
            case "device":
                path.symlink_to("/dev/zero")
            case "loop":
                path.symlink_to(path)
    check(build(*program()))

    assert counted == ["lower_all", "object_code", "link"] * 2


def test_without_a_folder_everything_works(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, counted: list[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TECOMP_CACHE_DIR", str(tmp_path / "file"))
    for _ in range(2):
        check(build(*program()))
        forget()

    assert counted == ["lower_all", "object_code", "link"] * 2


def test_off_means_neither_memory_nor_disk(
    monkeypatch: pytest.MonkeyPatch, store: Store, counted: list[str]
) -> None:
    monkeypatch.setenv("TECOMP_CACHE", "off")
    for _ in range(2):
        check(build(*program()))

    assert counted[:: len(counted) // 2] == ["lower_all"] * 2
    assert not store.folder.exists()


def test_refusals_are_the_same_the_second_time() -> None:
    for _ in range(2):
        s, args = program()
        with pytest.raises(LowerError) as error:
            build(s, args[:1])
        assert diagnostic(error.value) == (
            Diagnostic("argument-list", name="B")
        )
        s, args = program(scope="nowhere")
        with pytest.raises(TargetError) as refused:
            build(s, args)
        assert diagnostic(refused.value) == Diagnostic(
            "unsupported-by-target", buffer="A_nowhere",
            problem="target cpu has no memory `nowhere`; its memories are global, global.texture, "
                    "global.stream, shared, local",
        )


PROGRAM = '''
import sys, numpy as np, tecomp
from tecomp import te
from tecomp.codegen.llvm import code_cache as cached
if sys.argv[1:] == ["found"]:
    cached.object_code = None
A = te.placeholder((64,), name="A")
B = te.compute((64,), lambda i: te.exp(A[i]), name="B")
s = te.create_schedule(B.op)
s[B].parallel(B.op.axis[0])
kernel = tecomp.build(s, [A, B])
a, b = np.linspace(0, 1, 64, dtype="float32"), np.zeros(64, "float32")
kernel(a, b)
np.testing.assert_allclose(b, np.exp(a), rtol=1e-6)
'''


@pytest.mark.exhaustive
def test_other_processes_find_it() -> None:
    def start(*words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *words], stderr=subprocess.PIPE, text=True
        )

    concurrent = [start() for _ in range(3)]
    assert [process.communicate()[1] for process in concurrent] == [""] * 3
    assert start("found").communicate()[1] == ""


def test_relayout_kernels_are_cached(counted: list[str]) -> None:
    A = te.placeholder((6,), name="A")
    B = te.compute((6,), lambda i: A[i], name="B")
    for _ in range(2):
        s = te.create_schedule(B.op)
        s[A].transform_layout(lambda i: [i // 4, i % 4])
        packed = tecomp.build(s, [A, B]).pack(A, np.arange(6, dtype="float32"))
        assert packed.tolist() == [[0, 1, 2, 3], [4, 5, 0, 0]]

    assert counted.count("object_code") == 2
