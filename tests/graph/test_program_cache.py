"""Program cache: a hit if everything except constants is equal, otherwise recompilation."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.codegen import Store, current_store
from tecomp.driver import CompiledProgram
from tecomp.errors import CallError
from tecomp.graph import compilation_steps, serialization, validate_request
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close

SIZE = 12


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Store:
    monkeypatch.setenv("TECOMP_CACHE", "on")
    monkeypatch.setenv("TECOMP_CACHE_DIR", str(tmp_path))
    found = current_store()
    assert found is not None
    return found


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which the name of each compiled program is appended."""
    names: list[str] = []
    make = compilation_steps.compile_native

    def noted(requested: Any) -> Any:
        names.append(requested.name)
        return make(requested)

    monkeypatch.setattr(compilation_steps, "compile_native", noted)
    return names


def network(
    factor: float = 0.5, name: str = "net", weight: float = 1.0, known: str = "W",
    runs: bool = True,
) -> tuple[CompiledProgram, np.ndarray[Any, Any]]:
    """Return a program and its output for inputs of ones."""
    X, W = (te.placeholder((SIZE, SIZE), name=item) for item in "XW")
    k = te.reduce_axis((0, SIZE), name="k")
    P = te.compute((SIZE, SIZE), lambda i, j: te.sum(X[i, k] * W[k, j], axis=k), name="P")
    V = te.compute((SIZE, SIZE), lambda i, j: te.exp(W[j, i]), name="V")
    Y = te.compute((SIZE, SIZE), lambda i, j: P[i, j] * factor + V[i, j], name="Y")
    ones = np.ones((SIZE, SIZE), "float32")
    source, constant = (X, W) if known == "W" else (W, X)
    program = tecomp.compile(Y, [source], constants={constant: ones * weight}, name=name)
    return program, program(ones) if runs else ones


def expected(factor: float, weight: float) -> Any:
    return np.full((SIZE, SIZE), SIZE * weight * factor + np.exp(weight), "float32")


def test_a_program_is_compiled_once(compiled: list[str]) -> None:
    for _ in range(3):
        program, found = network()
        assert_close(found, expected(0.5, 1.0), rtol=1e-5)

    assert compiled == ["net"]
    assert [call.group.result.name for call in program.kernels] == ["Y"]
    assert (program.memory.bytes, repr(program)) == (0, "<Program net(X) -> Y: 1 kernel>")
    assert str(program.report()).startswith("net on cpu: 1 call of 1 kernel")


def test_cached_programs_pack_new_constants(compiled: list[str]) -> None:
    for weight in (1.0, 2.0, 3.0):
        assert_close(network(weight=weight)[1], expected(0.5, weight), rtol=1e-5)

    assert compiled == ["net"]


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(
    "other",
    [
        lambda: network(factor=0.25),
        lambda: network(name="other"),
        lambda: network(known="X"),
    ],
)
def test_different_programs_are_compiled(
    compiled: list[str], other: Callable[[], tuple[CompiledProgram, Any]]
) -> None:
    network()
    other()

    assert len(compiled) == 2


def _asked(**message: Any) -> list[str]:
    """Return the cache keys of a program with a user-requested layout or hint."""
    A = te.placeholder((64, 64), "float16", name="A")
    B = te.compute((64, 64), lambda i, j: te.exp(A[i, j]), name="B")
    layouts = {B: message["layout"]} if "layout" in message else {}
    hints = [tecomp.hint(B, **message["hint"])] if "hint" in message else []
    return list(serialization._keys(validate_request(B, [A], "stick128", {}, "net", layouts, hints)))


def test_layouts_and_hints_are_part_of_the_key() -> None:
    def sticks(**more: Any) -> tecomp.Layout:
        return tecomp.StickLayout((64, 64), "float16", [0, 1], **more)

    message: list[dict[str, Any]] = [
        {}, {"layout": sticks()}, {"layout": sticks(pad_value=0.0)}, {"layout": [sticks()]},
        {"layout": sticks(memory="lx")}, {"layout": "default"},
        {"layout": replace(tecomp.Layout.row_major((64, 64), "float16"), grid_axes=(0,))},
        {"hint": {"stick": 0}}, {"hint": {"stick": 0, "hard": True}}, {"hint": {"cores": {"i": 2}}},
    ]
    keys = [_asked(**item)[0] for item in message]

    assert len(set(keys)) == len(message)
    assert keys == [_asked(**item)[0] for item in message]


def test_another_library_of_schedules_compiles_again(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    network()
    monkeypatch.setattr(serialization, "schedules", lambda: "of another day")
    network()

    assert compiled == ["net", "net"]


def _rows(offset: int) -> CompiledProgram:
    """Return a program that gathers rows; `offset` changes only the source line of its formula."""
    X, R = te.placeholder((4, 4), name="X"), te.placeholder((4,), "int32", name="R")
    Y = te.compute((4, 4), lambda i, j: X[R[i], j], name="Y")
    if offset:
        Y = te.compute((4, 4), lambda i, j: X[R[i], j], name="Y")
    program: CompiledProgram = tecomp.compile(Y, [X, R])
    return program


def test_errors_at_run_time_say_where_the_program_is_written(compiled: list[str]) -> None:
    x, rows = np.zeros((4, 4), "float32"), np.full(4, 9, "int32")
    first = _rows.__code__.co_firstlineno
    for offset in (0, 1, 0, 1):
        with pytest.raises(CallError) as error:
            _rows(offset)(x, rows)
        assert diagnostic(error.value) == Diagnostic(
            "out-of-bounds", value=9,
            text=f"{__file__}:{first + 3 + 2 * offset}: X[R[i], j] (axis 0 of X[4, 4])",
        )

    assert compiled == ["program"] * 2


@pytest.mark.exhaustive
def test_crafted_entries_are_rebuilt(compiled: list[str], store: Store) -> None:
    """Entries with a valid checksum but malformed content are recompiled."""
    program: Any = network()[0]
    keys = list(serialization._keys(program._asked))
    (key,) = [key for key in keys if store.get(key) is not None]
    content = store.get(key)
    assert content is not None
    start = 8 + int.from_bytes(content[:8], "little")
    words, images = json.loads(content[8:start]), content[start:]
    text = json.dumps(words).encode()
    # Values of types that no serialized program contains.
    others: list[Any] = [None, "'", "(0", "{0", [], {}, 0.5]
    crafted = [
        b"", b"\xff" * 8, _entry(b"[" * 100_000, images), _entry(text, bytes(len(images))),
        _entry(b"[" * 100_000 + b"]" * 100_000, images), _entry(text, images[::-1]),
    ]
    random = Random(0)
    for _ in range(30):
        k = random.randrange(len(words))
        changed = [*words[:k], random.choice(others), *words[k + 1 :]]
        crafted.append(_entry(json.dumps(changed).encode(), images))
    for item in crafted:
        store.put(key, item)
        network(runs=False)

    assert len(compiled) > 6
    store.put(key, crafted[2])
    np.testing.assert_allclose(network()[1], expected(0.5, 1.0), rtol=1e-5)


def _entry(text: bytes, images: bytes) -> bytes:
    return len(text).to_bytes(8, "little") + text + images


def test_damaged_entries_are_rebuilt(compiled: list[str], store: Store) -> None:
    program: Any = network()[0]
    for entry in store.folder.iterdir():
        entry.write_bytes(entry.read_bytes()[:-9])
    assert_close(network()[1], expected(0.5, 1.0), rtol=1e-5)
    (key,) = list(serialization._keys(program._asked))[:1]
    store.put(key, b"\x01\x00\x00\x00\x00\x00\x00\x00 of another form")
    assert_close(network()[1], expected(0.5, 1.0), rtol=1e-5)

    assert len(compiled) == 3


def test_disabled_cache_stores_nothing(
    compiled: list[str], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TECOMP_CACHE", "off")
    network()
    network()

    assert len(compiled) == 2
    assert not list(store.folder.parent.iterdir())


@pytest.mark.exhaustive
def test_another_process_finds_the_program() -> None:
    network()
    code = (
        "import tecomp.graph.compile as c; c._steps = None; "
        "from tests.graph.test_program_cache import network; print(network()[1][0, 0])"
    )
    root = Path(__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root
    )

    assert float(run.stdout) == pytest.approx(expected(0.5, 1.0)[0, 0])
