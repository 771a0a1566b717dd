"""Saved programs: loading restores them exactly, or rejects them before any code runs."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable
from dataclasses import dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import Layout, ShardLayout, StickLayout, TtnnLayout, te
from tecomp.driver import CompiledProgram
from tecomp.errors import CacheError, CallError
from tecomp.graph import definitions_from, definitions_text
from tests.graph.test_relayout_insertion import transposed_sum
from tests.messages import Diagnostic, diagnostic

SIZE = 12
ONES = np.ones((SIZE, SIZE), "float32")


def network(factor: float = 0.5, **attrs: object) -> CompiledProgram:
    """Return a product with packed and plain constants, and a table that is read by index."""
    X, W = (te.placeholder((SIZE, SIZE), name=name) for name in "XW")
    R, b = te.placeholder((SIZE,), "int32", name="R"), te.placeholder((), "bfloat16", name="b")
    k = te.reduce_axis((0, SIZE), name="k")
    P = te.compute((SIZE, SIZE), lambda i, j: te.sum(X[i, k] * W[k, j], axis=k), name="P")
    Y = te.compute(
        (SIZE, SIZE), lambda i, j: P[R[i], j] * factor + te.cast(b(), "float32"), name="Y",
        attrs=attrs,
    )
    scale = np.array(2.0, b.dtype.numpy)
    program: CompiledProgram = tecomp.compile(Y, [X, R], constants={W: ONES, b: scale}, name="net")
    return program


def rows(last: int = 0) -> np.ndarray[Any, Any]:
    return np.arange(SIZE, dtype="int32")[::-1] + last


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("saved") / "net"
    network().save(place)
    return place


def test_programs_round_trip(folder: Path) -> None:
    program, result = tecomp.load(folder), network()

    np.testing.assert_array_equal(program(ONES, rows()), result(ONES, rows()))
    assert [(x.name, x.shape, x.dtype) for x in program.inputs] == [
        (x.name, x.shape, x.dtype) for x in result.inputs
    ]
    assert str(program.outputs[0].op) == str(result.outputs[0].op)
    assert (repr(program), program.target) == (repr(result), result.target)
    assert str(program.report()) == str(result.report())
    reloaded = pickle.loads(pickle.dumps(program))
    np.testing.assert_array_equal(reloaded(ONES, rows()), result(ONES, rows()))


def scanned(X: te.Tensor) -> te.Tensor:
    state = te.placeholder(X.shape, name="state")
    first = te.compute((1, X.shape[1]), lambda t, i: X[0, i], name="first")
    step = te.compute(X.shape, lambda t, i: state[t - 1, i] + X[t, i], name="step")
    sums: te.Tensor = te.scan(first, step, state, inputs=[X], name="sums")
    return sums


def stated(X: te.Tensor) -> te.Tensor:
    def twice(ins: Any, outs: Any) -> Any:
        return te.for_range(0, 5, lambda i: te.for_range(
            0, 4, lambda j: te.if_stmt(
                ins[0][i, j] > 0.5, outs[0].store((i, j), ins[0][i, j] * 2.0),
                outs[0].store((i, j), te.exp(ins[0][i, j])),
            )
        ))

    copied: te.Tensor = te.extern(X.shape, X, twice, name="own")
    return te.compute(X.shape, lambda i, j: copied[i, j] + 1.0, name="more")


def largest(X: te.Tensor) -> list[te.Tensor]:
    larger = te.comm_reducer(
        lambda a, b: tuple(te.Select(a[1] >= b[1], x, y) for x, y in zip(a, b, strict=True)),
        lambda t0, t1: (te.const(-1, t0), te.min_value(t1)), name="larger",
    )
    k = te.reduce_axis((0, X.shape[1]), name="k")
    return list(te.compute((5,), lambda i: larger((te.cast(k, "int32"), X[i, k]), axis=k), name="m"))


@pytest.mark.parametrize("make", [scanned, stated, largest])
def test_operations_of_every_kind_round_trip(make: Callable[..., Any], tmp_path: Path) -> None:
    X = te.placeholder((5, 4), name="X")
    program = tecomp.compile(make(X), [X])
    program.save(tmp_path)
    reloaded = tecomp.load(tmp_path)
    x = np.random.default_rng(0).random((5, 4), np.float32)

    np.testing.assert_array_equal(reloaded(x), program(x))
    assert str(reloaded.report()) == str(program.report())


def test_errors_at_run_time_say_where_the_program_was_written(folder: Path) -> None:
    with pytest.raises(CallError) as error:
        tecomp.load(folder)(ONES, rows(1))

    line = network.__code__.co_firstlineno + 7
    assert diagnostic(error.value) == (
        Diagnostic(
            "out-of-bounds", value=SIZE,
            text=f"{__file__}:{line}: P[R[i], j] (axis 0 of P[{SIZE}, {SIZE}])",
        )
    )


def test_a_saved_program_is_replaced(tmp_path: Path) -> None:
    place = tmp_path / "net"
    network().save(place)
    network(factor=1.5).save(place)

    assert tecomp.load(place)(ONES, rows())[0, 0] == SIZE * 1.5 + 2
    assert os.listdir(tmp_path) == ["net"]


def test_a_program_that_is_loaded_outlives_its_folder(tmp_path: Path) -> None:
    network().save(tmp_path)
    program = tecomp.load(tmp_path)
    shutil.rmtree(tmp_path)

    assert pickle.loads(pickle.dumps(program))(ONES, rows())[0, 0] == SIZE / 2 + 2


def test_partial_files_are_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = network()
    monkeypatch.setattr(os, "fsync", _full)
    with pytest.raises(CacheError) as error:
        program.save(tmp_path / "net")

    assert diagnostic(error.value) == (
        Diagnostic("saved-program", path=f"{tmp_path}/net", reason="No space left on device")
    )
    assert os.listdir(tmp_path) == []


def _full(_: int) -> None:
    raise OSError(28, "No space left on device")


def test_save_keeps_foreign_directories(tmp_path: Path) -> None:
    note = tmp_path / "note"
    note.write_text("mine")
    for place in (tmp_path, note):
        with pytest.raises(CacheError) as error:
            network().save(place)
        assert diagnostic(error.value) == (
            Diagnostic("saved-program", path=str(place))
        )

    assert note.read_text() == "mine"


def test_definitions_of_things_that_have_no_text_are_not_saved(tmp_path: Path) -> None:
    with pytest.raises(CacheError) as error:
        network(note=object()).save(tmp_path / "net")

    assert diagnostic(error.value) == (
        Diagnostic("saved-program", output="net", qualname="object")
    )
    assert os.listdir(tmp_path) == []


def test_programs_with_target_layouts_round_trip(tmp_path: Path) -> None:
    A, X, _, Y = transposed_sum()
    program = tecomp.compile(Y, [A, X], "stick128")
    program.save(tmp_path)
    reloaded = tecomp.load(tmp_path)
    a, x = (np.arange(2800, dtype="float16").reshape(tensor.shape) % 13 for tensor in (A, X))

    np.testing.assert_array_equal(reloaded(a, x), a.T + x)
    assert (reloaded.picture(), reloaded.target) == (program.picture(), program.target)


@pytest.mark.exhaustive
def test_programs_with_user_layouts_and_hints_round_trip(tmp_path: Path) -> None:
    A, X, T, Y = transposed_sum()
    moved = tecomp.relayout_to(T, StickLayout((64, 128), "float16", [0, 1], size=(40, 70)))
    Z = te.compute(Y.shape, lambda i, j: te.exp(Y[i, j]) + moved[i, j], name="Z")
    W = te.compute(Z.shape, lambda i, j: Z[i, j] * Z[i, j], name="W")
    program = tecomp.compile(
        W, [A, X], "stick128", name="laid",
        layouts={A: StickLayout((128, 40), "float16", [1, 0], size=(70, 40)), X: ["default"]},
        hints=[
            tecomp.hint(Y, stick=0), tecomp.hint(Z, stick=1, hard=True),
            tecomp.hint(Z, cores={"i": 4}), tecomp.hint(W, num_tiles_per_dim={"i": 2}),
        ],
    )
    program.save(tmp_path)
    reloaded = tecomp.load(tmp_path)
    a, x = (np.arange(2800).reshape(tensor.shape) % 5 / 8 for tensor in (A, X))
    args = a.astype("float16"), x.astype("float16")

    np.testing.assert_array_equal(reloaded(*args), program(*args))
    assert str(reloaded.layouts) == str(program.layouts)
    assert str(reloaded.report()) == str(program.report())
    assert reloaded.picture() == program.picture()


INNER = tecomp.IndexMap.from_func(lambda i, j: [i // 4, i % 4, j])
LAYOUTS = [
    Layout.of((10, 6), "float16", INNER.then(tecomp.IndexMap.from_func(lambda a, b, c: [a * 4 + b, c])),
              pad_value=float("-inf"), memory="l1"),
    Layout.of((8, 6), "float32", lambda i, j: [i, te.AXIS_SEPARATOR, j ^ i % 2], grid_axes=[0]),
    StickLayout((5, 100), "float8_e4m3fn", pad_value=0.0),
    ShardLayout((64, 64), "float32", grid=(2, 2), tile=(32, 32), element="bfp8", oob_val="zero"),
    TtnnLayout((64, 64), "float32", memory_layout="block_sharded", shard_shape=(1, 1),
               tile=(32, 32), memory_space="l1"),
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: type(layout).__name__)
def test_layouts_round_trip_as_text(layout: Layout) -> None:
    repeated, other = definitions_from(definitions_text((layout, layout)))

    assert repeated is other
    assert type(repeated) is type(layout)
    for item in fields(layout):
        assert str(getattr(repeated, item.name)) == str(getattr(layout, item.name))
    assert repeated.describe() == layout.describe()
    assert repeated.physical_shape == layout.physical_shape
    assert repeated.nbytes == layout.nbytes
    assert [len(item.index_map.parts) for item in (repeated, layout)] in ([1, 1], [2, 2])


@dataclass(frozen=True)
class Note:
    """User note on a value."""

    text: str


def test_things_of_classes_of_the_user_are_not_saved(tmp_path: Path) -> None:
    with pytest.raises(CacheError) as error:
        network(note=Note("mine")).save(tmp_path / "net")

    assert diagnostic(error.value) == (
        Diagnostic("saved-program", output="net", qualname="Note")
    )


def test_programs_without_relayouts_round_trip(tmp_path: Path) -> None:
    A = te.placeholder((70, 40), "float16", name="A")
    Y = te.compute(A.shape, lambda i, j: -A[i, j], name="Y")
    tecomp.compile(Y, [A], "stick128", relayouts=False).save(tmp_path)

    reloaded: Any = tecomp.load(tmp_path)
    assert reloaded._asked.relayouts is False


def _say(key: str, value: object) -> Callable[[Path], None]:
    def change(place: Path) -> None:
        path = place / "program.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))

    return change


def _as_pipe(name: str) -> Callable[[Path], None]:
    def change(place: Path) -> None:
        (place / name).unlink()
        os.mkfifo(place / name)

    return change


def _signed(name: str, content: bytes) -> Callable[[Path], None]:
    """Return a change that replaces a file and updates its checksum."""

    def change(place: Path) -> None:
        (place / name).write_bytes(content)
        head = json.loads((place / "program.json").read_text())
        head["files"][name] = [len(content), sha256(content).hexdigest()]
        (place / "program.json").write_text(json.dumps(head))

    return change


def _other_code(place: Path) -> None:
    content = (place / "code").read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    _signed("code", content[:start] + bytes(len(content) - start))(place)


def _features(place: Path) -> None:
    features = json.loads((place / "program.json").read_text())["features"].split(",")
    _say("features", ",".join(["+more", *features[1:]]))(place)


COMPILE_AGAIN = "compile the program here and save it again"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            shutil.rmtree,
            {"head": "program.json"},
        ),
        (
            _say("form", "tecomp program 9"),
            {"version": "tecomp program 3"},
        ),
        (
            _say("cpu", "abacus"),
            {"subject": "cpu", "head": "abacus", "here": "HERE", "remedy": COMPILE_AGAIN},
        ),
        (
            _features,
            {"detail": "DIFFERENT", "remedy": COMPILE_AGAIN},
        ),
        (
            _say("version", "0.0.9"),
            {"head": "0.0.9", "here": "VERSION", "remedy": COMPILE_AGAIN},
        ),
        (
            _say("files", {}), {"how": "program.json lists other files"}
        ),
        (
            lambda place: (place / "program.json").write_text("{"),
            {"how": "program.json is incomplete"},
        ),
        (
            lambda place: (place / "program.json").write_text("[" * 100_000),
            {"how": "program.json is incomplete"},
        ),
        (
            _signed("definitions.json", b"[" * 100_000),
            {"how": "its parts are inconsistent"},
        ),
        (
            _signed("code", (100_000).to_bytes(8, "little") + b"[" * 100_000),
            {"how": "its parts are inconsistent"},
        ),
        (
            _other_code,
            {"how": "its code cannot be linked"},
        ),
        (
            lambda place: (place / "code").unlink(),
            {"how": "code cannot be read"},
        ),
        (
            _as_pipe("program.json"),
            {"head": "program.json"},
        ),
        (_as_pipe("code"), {"how": "code cannot be read"}),
        (_as_pipe("constants"), {"how": "constants cannot be read"}),
        (
            lambda place: os.truncate(place / "constants", 7),
            {"how": "constants has 7 bytes of 768"},
        ),
        (
            lambda place: (place / "constants").write_bytes(bytes(768)),
            {"how": "constants differs from what was written"},
        ),
    ],
)
def test_folders_that_are_refused(
    folder: Path, tmp_path: Path, change: Callable[[Path], object], expected: dict[str, str]
) -> None:
    place = tmp_path / "net"
    shutil.copytree(folder, place)
    head = json.loads((place / "program.json").read_text())
    change(place)
    with pytest.raises(CacheError) as error:
        tecomp.load(place)

    different = sorted(["+more", head["features"].split(",")[0]])
    here = {
        "HERE": head["cpu"], "DIFFERENT": ", ".join(different), "VERSION": tecomp.__version__
    }
    parameters = {name: here.get(value, value) for name, value in expected.items()}
    assert diagnostic(error.value) == Diagnostic("saved-program", path=str(place), **parameters)


def test_no_byte_can_be_changed(folder: Path, tmp_path: Path) -> None:
    """A program with any changed byte is rejected or is equal to the original."""
    place = tmp_path / "net"
    shutil.copytree(folder, place)
    rng = np.random.default_rng(0)
    for path in sorted(place.iterdir()):
        content = path.read_bytes()
        for number in rng.integers(len(content), size=40):
            changed = bytearray(content)
            changed[number] ^= 1 << int(rng.integers(8))
            path.write_bytes(changed)
            try:
                program = tecomp.load(place)
            except CacheError:
                continue
            assert program(ONES, rows())[0, 0] == SIZE / 2 + 2
        path.write_bytes(content)
