"""Array pictures: dtype, device, parts and pending kernels, without evaluation."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tecomp.array as xp
from tecomp import CallError
from tecomp.array.array_object import Array
from tecomp.array.statistics import counters
from tecomp.dist import Mesh, Partition, Replicate, Shard
from tecomp.drawing import Canvas
from tecomp.viz.array import _parts
from tests.array.arrays import array
from tests.messages import Diagnostic, diagnostic
from tests.viz.figure import check_figure, linear_map, one_to_one, only, without_style

Golden = Callable[[object], None]


def softmax() -> Array:
    """Return a pending softmax of a small array."""
    x = array(np.ones((3, 4), "float32"))
    powers = xp.exp(x - xp.max(x, axis=1, keepdims=True))
    return powers / xp.sum(powers, axis=1, keepdims=True)


def test_drawn(golden: Golden) -> None:
    before = counters.called
    golden(without_style(softmax().picture()))
    assert counters.called == before


def test_pending_operations_are_drawn() -> None:
    """Each value is a row in the colour of its kind; lines go to its readers."""
    figure = check_figure(softmax().picture())
    rows = [box for _, box in figure.boxes_titled(r"\w+: float32\[3, \d\]")]
    meanings = {fill: words for words, fill in figure.legend.items()}

    assert figure.texts[:2] == ["array float32[3, 4]", "48 B on the processor, 5 operations to come"]
    assert [figure.label_of(row) for row in rows] == [row.title for row in rows]
    assert [(row.title.partition(":")[0], meanings[row.fill]) for row in rows] == [
        ("x0", "is there"), *((name, "a pending operation") for name in ("max", "subtract", "exp", "sum")),
        ("divide", "the array")]
    linear_map((k, row.top) for k, row in enumerate(rows))
    assert {(title.partition(":")[0], rows[end].title.partition(":")[0], rows[start].title.partition(":")[0])
            for title, start, end in figure.connections(rows)} == {
        ("x0", "max", "x0"), ("x0", "subtract", "x0"), ("max", "subtract", "max"),
        ("subtract", "exp", "subtract"), ("exp", "sum", "exp"), ("exp", "divide", "exp"),
        ("sum", "divide", "sum")}


def test_a_computed_array() -> None:
    found = check_figure(array(np.ones((3, 4), "float32")).picture()).texts

    assert found[:3] == ["array float32[3, 4]", "48 B on the processor, computed",
                         "(index0, index1) -> (index0, index1)"]
    assert "Memory" in found


def test_an_array_on_a_device_shows_its_layout() -> None:
    x = array(np.ones((100, 70), "float16")).to_device("stick128")
    found = check_figure(x.picture()).texts

    assert found[1] == "14,000 B on stick128, computed"
    assert found[2] == "(i0, i1) -> (i1 // 64, i0, i1 % 64)"
    assert "Operations" in check_figure((x + x).picture()).texts


def test_a_view_has_no_layout_of_its_own() -> None:
    assert check_figure(array(np.ones((8, 8))[:, ::2]).picture()).texts == [
        "array float64[8, 4]", "256 B on the processor, computed"]


@pytest.mark.exhaustive(keep=15)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (2, 3, 4, 5)])
@pytest.mark.parametrize("dtype", ["bool", "int8", "complex64", "float64"])
def test_any_type(shape: tuple[int, ...], dtype: str) -> None:
    check_figure(array(np.zeros(shape, dtype)).picture())
    check_figure(xp.asarray(array(np.zeros(shape, dtype)) == 0).picture())


def test_long_chains_are_cut() -> None:
    x = array(np.ones(3))
    for _ in range(60):
        x = xp.sin(x)
    found = check_figure(x.picture()).texts

    assert "⋮ 13 more" in found
    assert found.count("sin: float64[3]") == 47


def test_values_precede_their_first_reader() -> None:
    """Inputs come before their first reader; long lists are elided before the array itself."""
    x = array(np.ones(3))
    for k in range(60):
        x = x + array(np.full(3, k))
    found = check_figure(x.picture()).texts[3:]

    assert found[1:7] == [
        "x0: float64[3]", "x1: int64[3]", "add: float64[3]", "x2: int64[3]", "add: float64[3]",
        "x3: int64[3]",
    ]
    assert found[-5:] == [
        "⋮ 73 more", "add: float64[3]", "is there", "a pending operation", "the array"]


def test_saved_files(tmp_path: Path) -> None:
    x = array(np.ones(3))
    x.save(tmp_path / "x.svg")
    assert (tmp_path / "x.svg").read_text(encoding="utf-8") == x.picture()
    with pytest.raises(CallError) as caught:
        x.save(tmp_path / "x.txt")
    assert diagnostic(caught.value) == (
        Diagnostic("unknown-choice", path=f"{tmp_path}/x.txt", kinds=".svg or .html")
    )


@settings(max_examples=30)
@given(st.lists(st.integers(0, 9), max_size=3), st.data())
def test_parts_of_processes(shape: list[int], data: st.DataObject) -> None:
    mesh = Mesh(tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=2))))
    kinds: list[Replicate | Shard] = [Replicate(), *(Shard(k) for k in range(len(shape))),
             *(Shard(k, block=2) for k in range(len(shape)))]
    placed = [data.draw(st.sampled_from(kinds)) for _ in mesh.shape]
    partition = Partition(shape, "float32", mesh, placed)
    canvas = Canvas()
    _parts(canvas, partition, 40)
    figure = check_figure(canvas.finished("parts"))
    (whole,) = (box for box in figure.boxes if box.title == "the array")
    parts = [(found, box) for found, box in figure.boxes_titled(r"process ([\d, ]+): (.*)")]
    axes = [int(name) for name in re.findall(r"axis (\d)", only(t for t in figure.texts if t.startswith("numbers are")))]

    assert {line.text for line in figure.words if whole.has(line.middle)} <= {found[1] for found, _ in parts}
    assert all(whole.contains(box, 1.2) for _, box in parts)
    if axes:
        wide = whole.width / shape[axes[-1]] if shape[axes[-1]] else 0.0
        high = whole.height / shape[axes[0]] if len(axes) > 1 and shape[axes[0]] else whole.height
        for rank in range(mesh.size):
            if not all(partition.local_shape(rank)):
                continue
            actual = [box for found, box in parts if str(rank) in found[1].split(", ")]
            index = [np.r_[places] if isinstance(places, slice) else places for places in partition.local_index(rank)]
            rows = {*index[axes[0]].tolist()} if len(axes) > 1 else {0}
            seen = {
                (row, column) for box in actual
                for row in range(round((box.top - whole.top) / high), round((box.bottom + 2 - whole.top) / high))
                for column in range(round((box.left - whole.left) / wide), round((box.right + 2 - whole.left) / wide))
            }
            assert seen == {(row, column) for row in rows for column in index[axes[-1]].tolist()}
    one_to_one((found[1], box.fill) for found, box in parts)
