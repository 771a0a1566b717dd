"""Programs with packed inputs and outputs on the device: no host transfers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.errors import DefinitionError, LayoutError
from tecomp.graph import candidates, sizes_of
from tecomp.layout import Layout, StickLayout
from tecomp.machine import Target
from tests.messages import Diagnostic, diagnostic

MACHINES = ("stick128", "tensix_wh")


def _plain(layout: Layout) -> Layout:
    """Return the layout's address map alone, with host dtypes."""
    return Layout.of(layout.shape, layout.dtype, layout.index_map, pad_value=layout.pad_value)


def _tensors(dtype: str) -> tuple[list[te.Tensor], list[te.Tensor]]:
    X, W = te.placeholder((70, 100), dtype, name="X"), te.placeholder((100, 48), dtype, name="W")
    k = te.reduce_axis((0, 100), name="k")
    Y = te.compute((70, 48), lambda i, j: te.sum(X[i, k] * W[k, j], axis=k), name="Y")
    T = te.compute((48, 70), lambda i, j: Y[j, i], name="T")
    Z = te.compute((70, 100), lambda i, j: X[i, j] * X[i, j] + X[i, j], name="Z")
    S = te.compute((70,), lambda i: te.sum(X[i, k], axis=k), name="S")
    return [X, W], [Y, T, Z, S]


def _expected(x: Any, w: Any) -> list[Any]:
    x, w = x.astype("float64"), w.astype("float64")
    return [x @ w, (x @ w).T, x * x + x, x.sum(1)]


def _arrays(dtype: str) -> list[Any]:
    random = np.random.default_rng(7)
    return [random.integers(-2, 3, shape).astype(dtype) for shape in ((70, 100), (100, 48))]


@pytest.mark.exhaustive
@pytest.mark.parametrize("target", MACHINES)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_packed_arguments_give_the_numbers_of_numpy(target: str, dtype: str, tmp_path: Any) -> None:
    inputs, outputs = _tensors(dtype)
    machine = Target.load(target)
    layouts = {x: candidates(machine, sizes_of(x), x.dtype)[0] for x in inputs}
    program = tecomp.compile(
        outputs, inputs, target, layouts=layouts, packed=[*inputs, *outputs]
    )
    arrays = _arrays(dtype)
    for item in (program, _saved(program, tmp_path)):
        lie = {x: _plain(layout) for x, layout in item.packed.items()}
        operands = [lie[x].pack(array) for x, array in zip(item.inputs, arrays, strict=True)]
        found = [
            lie[x].unpack(result) for x, result in zip(item.outputs, item(*operands), strict=True)
        ]
        for one, other in zip(found, _expected(*arrays), strict=True):
            np.testing.assert_array_equal(one, other.astype(dtype))
    report = program.report()
    assert {item.kind for item in report.edges} <= {"input", "output", "copy"}
    copies = [item.name for item in report.kernels if item.name.endswith("_relaid")]
    assert len(copies) == len(report.relayouts)  # and no host transfers


def _saved(program: Any, folder: Any) -> Any:
    program.save(folder / "program")
    return tecomp.load(folder / "program")


def test_some_arguments_are_packed() -> None:
    inputs, outputs = _tensors("float32")
    arrays = _arrays("float32")
    program = tecomp.compile(outputs, inputs, "stick128", packed=outputs[2:3])
    found = program(*arrays)
    assert found[2].shape == program.packed[outputs[2]].physical_shape == (4, 96, 32)
    unpacked = _plain(program.packed[outputs[2]]).unpack(found[2])
    expected = _expected(*arrays)
    for one, other in zip([*found[:2], unpacked, found[3]], expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("target", [*MACHINES, "cpu"])
def test_packed_arguments_in_the_layouts_of_the_machine(target: str) -> None:
    inputs, outputs = _tensors("float32")
    layouts: dict[te.Tensor, Any] = dict.fromkeys((*inputs, outputs[2]), "default")
    program = tecomp.compile(
        outputs, inputs, target, layouts=layouts, packed=[*inputs, outputs[2]]
    )
    machine = Target.load(target)
    for x in (*inputs, outputs[2]):
        assert program.packed[x] == candidates(machine, sizes_of(x), x.dtype)[0]
    arrays = _arrays("float32")
    found = program(*[
        _plain(program.packed[x]).pack(array) for x, array in zip(inputs, arrays, strict=True)])
    expected = _expected(*arrays)
    unpacked = _plain(program.packed[outputs[2]]).unpack(found[2])
    for one, other in zip([*found[:2], unpacked, found[3]], expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_padded_layout_takes_the_size_of_its_tensor() -> None:
    X = te.placeholder((5, 100, 150), "float16", name="X")
    Y = te.compute(X.shape, lambda i, j, k: X[i, j, k] + 1, name="Y")
    padded = StickLayout((5, 128, 192), "float16", [0, 1, 2])
    copied = tecomp.relayout_to(Y, padded, name="copied")
    layouts: dict[te.Tensor, Any] = {X: padded, Y: [padded, "default"]}
    program = tecomp.compile([Y, copied], [X], "stick128", layouts=layouts)
    assert program.layouts[X].device_layout == padded.with_size((5, 100, 150))
    assert program.layouts[copied].device_layout == padded.with_size((5, 100, 150))
    x = (np.arange(75_000) % 512).astype("float16").reshape(5, 100, 150)
    for found in program(x):
        np.testing.assert_array_equal(found, x + 1)

    others = (
        StickLayout((5, 128, 192), "float16", [0, 1, 2], size=(5, 128, 192)),
        StickLayout((5, 64, 192), "float16", [0, 1, 2]), StickLayout((128, 192), "float16", [0, 1]),
    )
    for other in others:
        with pytest.raises(LayoutError) as error:
            tecomp.compile(Y, [X], "stick128", layouts={X: other})
        assert diagnostic(error.value) == (
            Diagnostic(
                "layout-shape-mismatch", tensor="X", dtype="float16", shape="[5, 100, 150]",
                layout_dtype="float16", layout_shape=list(other.shape),
            )
        )


def test_inputs_can_be_outputs() -> None:
    X = te.placeholder((5, 40), "float32", name="X")
    machine = Target.load("stick128")
    layout = candidates(machine, (5, 40), X.dtype)[0]
    C = te.compute((5, 40), lambda i, j: X[i, j], name="C")
    Y = te.compute((5, 40), lambda i, j: X[i, j] + 1.0, name="Y")
    program = tecomp.compile([C, Y], [X], machine, layouts={X: layout}, packed=[X, C, Y])
    x = np.arange(200, dtype="float32").reshape(5, 40)
    c, y = program(_plain(layout).pack(x))
    np.testing.assert_array_equal(_plain(program.packed[C]).unpack(c), x)
    np.testing.assert_array_equal(_plain(program.packed[Y]).unpack(y), x + 1)


def test_a_processor_has_packed_arguments_too() -> None:
    X = te.placeholder((6, 8), "float32", name="X")
    Y = te.compute((6, 8), lambda i, j: X[i, j] * 2.0, name="Y")
    columns = Layout.of((6, 8), "float32", lambda i, j: [j, i])
    program = tecomp.compile(Y, [X], layouts={X: columns, Y: columns}, packed=[X, Y])
    x = np.arange(48, dtype="float32").reshape(6, 8)
    np.testing.assert_array_equal(program(np.ascontiguousarray(x.T)), 2 * x.T)


def test_unpackable_arguments_are_rejected() -> None:
    X = te.placeholder((6, 8), "float32", name="X")
    H = te.compute((6, 8), lambda i, j: X[i, j] * 2.0, name="H")
    Y = te.compute((6, 8), lambda i, j: H[i, j] + 1.0, name="Y")
    with pytest.raises(DefinitionError) as error:
        tecomp.compile(Y, [X], "stick128", packed=[X])
    assert diagnostic(error.value) == (
        Diagnostic("program", tensor="X")
    )
    with pytest.raises(DefinitionError) as error:
        tecomp.compile(Y, [X], "stick128", packed=[H])
    assert diagnostic(error.value) == (
        Diagnostic("program", tensor="H", remedy="pass a list of inputs and outputs")
    )
    with pytest.raises(DefinitionError) as error:
        tecomp.compile(Y, [X], "stick128", packed=[3])  # type: ignore[list-item]
    assert diagnostic(error.value) == Diagnostic(
        "invalid-type", where="compile: packed", value=[3],
        remedy="pass a list of inputs and outputs",
    )
