"""Array pictures: dtype, device, parts and pending kernels, without evaluation."""

from __future__ import annotations

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
from tecomp.dist import Mesh, Replicate, Shard
from tecomp.dist.partition.partition import Partition
from tecomp.drawing import Canvas
from tecomp.viz.array import _parts
from tests.array.arrays import array
from tests.messages import Diagnostic, diagnostic
from tests.strategies.pictures import check_picture
from tests.viz.test_iteration_domain import words

Golden = Callable[[object], None]


def softmax() -> Array:
    """Return a pending softmax of a small array."""
    x = array(np.ones((3, 4), "float32"))
    powers = xp.exp(x - xp.max(x, axis=1, keepdims=True))
    return powers / xp.sum(powers, axis=1, keepdims=True)


def test_operations_that_are_to_come(golden: Golden) -> None:
    before = counters.called
    golden(softmax().picture())
    assert counters.called == before


def test_an_array_that_is_there() -> None:
    found = words(array(np.ones((3, 4), "float32")).picture())

    assert found[:3] == ["array float32[3, 4]", "48 B on the processor, computed",
                         "(index0, index1) -> (index0, index1)"]
    assert "Memory" in found


def test_an_array_on_a_device_shows_its_layout() -> None:
    x = array(np.ones((100, 70), "float16")).to_device("stick128")
    found = words(x.picture())

    assert found[1] == "14,000 B on stick128, computed"
    assert found[2] == "(i0, i1) -> (i1 // 64, i0, i1 % 64)"
    assert "Operations" in words((x + x).picture())


def test_a_view_has_no_layout_of_its_own() -> None:
    assert words(array(np.ones((8, 8))[:, ::2]).picture()) == [
        "array float64[8, 4]", "256 B on the processor, computed"]


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (2, 3, 4, 5)])
@pytest.mark.parametrize("dtype", ["bool", "int8", "complex64", "float64"])
def test_any_type(shape: tuple[int, ...], dtype: str) -> None:
    check_picture(array(np.zeros(shape, dtype)).picture())
    check_picture(xp.asarray(array(np.zeros(shape, dtype)) == 0).picture())


def test_long_chains_are_cut() -> None:
    x = array(np.ones(3))
    for _ in range(60):
        x = xp.sin(x)
    found = words(x.picture())

    assert "⋮ 13 more" in found
    assert found.count("sin: float64[3]") == 47


def test_what_is_there_comes_before_its_first_reader() -> None:
    """Inputs come before their first reader; long lists are elided before the array itself."""
    x = array(np.ones(3))
    for k in range(60):
        x = x + array(np.full(3, k))
    found = words(x.picture())[3:]

    assert found[1:7] == [
        "x0: float64[3]", "x1: int64[3]", "add: float64[3]", "x2: int64[3]", "add: float64[3]",
        "x3: int64[3]",
    ]
    assert found[-5:] == [
        "⋮ 73 more", "add: float64[3]", "is there", "an operation to come", "the array"]


def test_what_is_saved(tmp_path: Path) -> None:
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
    picture = check_picture(canvas.finished("parts"))
    seen = {title.text for title in picture.iter("{http://www.w3.org/2000/svg}title")}

    for rank in range(mesh.size):
        if all(partition.local_shape(rank)):
            assert any(str(rank) in (t or "").split(":")[0].replace(",", "").split() for t in seen)
