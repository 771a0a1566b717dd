"""Memories with a fixed number of rows, and matrix units that accumulate in another memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tecomp
from tecomp import CapacityError, Target, TargetError, te, topi
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.stmt import Buffer
from tecomp.schedules import auto, softmax
from tecomp.schedules.scratchpad.placement import placement_of
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close, assert_product
from tests.schedules.test_scratchpads import run

NEURON = Target.load("neuroncore_v2")
ROWS = 128
RANDOM = np.random.default_rng(0)


def test_a_buffer_takes_the_same_bytes_of_all_rows() -> None:
    A = te.placeholder((40, 64), name="A")
    B = te.compute(A.shape, lambda i, j: A[i, j] + 1.0, name="B")
    s = te.create_schedule(B)
    copy = s.cache_read(A, "sbuf", [B])
    s[copy].transform_layout(lambda i, j: [i, te.AXIS_SEPARATOR, j], loops="logical")

    found, report = run(s, [A, B], [np.ones(A.shape, "float32")], NEURON)

    np.testing.assert_array_equal(found, np.full(A.shape, 2, "float32"))
    assert {m.memory: m.peak_bytes for m in report.memories}["sbuf"] == ROWS * 64 * 4


def test_buffers_with_more_rows_are_refused() -> None:
    A = te.placeholder((ROWS + 1, 64), name="A")
    B = te.compute(A.shape, lambda i, j: A[i, j] + 1.0, name="B")
    s = te.create_schedule(B)
    copy = s.cache_read(A, "sbuf", [B])
    s[copy].transform_layout(lambda i, j: [i, te.AXIS_SEPARATOR, j])

    with pytest.raises(CapacityError) as error:
        tecomp.build(s, [A, B], NEURON)

    assert diagnostic(error.value) == Diagnostic(
        "capacity", buffer="A_sbuf", rows=ROWS + 1, memory="sbuf", limit=ROWS)


@pytest.mark.parametrize(("rows", "columns", "fits"), [
    (ROWS, 192 * 1024, True), (ROWS, 192 * 1024 + 1, False), (1, 192 * 1024 + 1, False),
])
def test_a_row_has_a_share_of_the_capacity(rows: int, columns: int, fits: bool) -> None:
    buffer = Buffer("A", (rows, columns), DType("int8"), "sbuf", (0,))
    if fits:
        assert NEURON.check_buffer(buffer) is NEURON.memory("sbuf")
        return
    with pytest.raises(CapacityError) as error:
        NEURON.check_buffer(buffer)
    assert diagnostic(error.value).parameters["size"] == ROWS * columns


@pytest.mark.parametrize(
    "changes", [{"rank": 1}, {"takes_flat": True}, {"capacity_bytes": 1000}, {"rows": 100}],
)
def test_descriptions_of_rows_are_checked(changes: dict[str, object]) -> None:
    with pytest.raises(TargetError, match="rows = "):
        NEURON.overridden(memory={"sbuf": changes})


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("shape", [(7,), (3, 40), (300, 40), (2, 300, 40)])
def test_layouts_distribute_rows_cyclically(shape: tuple[int, ...]) -> None:
    where = placement_of(NEURON)
    assert where is not None
    layout = tecomp.Layout.of(shape, "float32", where.layout(shape, "float32"))

    for index in np.ndindex(shape):
        row, *inside = layout.place(index)
        assert row == (index[-2] % ROWS if len(index) > 1 else 0)
        assert inside[-3] == (index[-2] // ROWS if len(index) > 1 else 0)


@dataclass(frozen=True)
class Product:
    """Product of matrices, with or without an epilogue."""

    m: int
    k: int
    n: int
    dtype: str
    has_epilogue: bool

    def tensors(self) -> list[te.Tensor]:
        A = te.placeholder((self.m, self.k), self.dtype, name="A")
        B = te.placeholder((self.k, self.n), self.dtype, name="B")
        k = te.reduce_axis((0, self.k), name="k")
        C = te.compute(
            (self.m, self.n),
            lambda i, j: te.sum(A[i, k].astype("float32") * B[k, j].astype("float32"), axis=k),
            name="C",
        )
        if self.has_epilogue:
            D = te.placeholder((self.n,), name="D")
            return [A, B, D, te.compute(
                C.shape, lambda i, j: te.max(C[i, j] + D[j], 0.0), name="E")]
        return [A, B, C]


PRODUCTS = st.builds(
    Product, st.integers(1, 300), st.integers(1, 300), st.integers(1, 700),
    st.sampled_from(["float32", "float16"]), st.booleans(),
)


@pytest.mark.exhaustive
@settings(max_examples=10, deadline=None)
@given(product=PRODUCTS)
def test_products_accumulate_in_the_memory_of_the_unit(product: Product) -> None:
    tensors = product.tensors()
    inputs = [
        RANDOM.standard_normal([int(n) for n in x.shape]).astype(x.dtype) for x in tensors[:-1]
    ]

    found, report = run(auto(tensors[-1], NEURON), tensors, inputs, NEURON)

    if product.has_epilogue:
        expected = np.maximum(inputs[0].astype("f8") @ inputs[1].astype("f8") + inputs[2], 0)
        assert_close(found, expected, rtol=1e-4, atol=1e-4)
    else:
        assert_product(found, inputs[0], inputs[1])
    unit: Any = NEURON.engine["matmul"]
    tiles = -(-product.m // unit.m) * -(-product.n // unit.n) * -(-product.k // unit.k)
    assert report.tiles == {f"matmul_{product.dtype}": tiles}
    peaks = {memory.memory: memory for memory in report.memories}
    assert peaks["psum"].peak_bytes % (unit.m * unit.n * 4) == 0
    for memory in peaks.values():
        assert 0 < memory.peak_bytes <= (memory.usable_bytes or 0)
    read = {(t.memory, t.direction) for t in report.traffic if t.bytes}
    assert ("psum", "read") in read


def test_sums_that_exceed_their_memory_are_computed_in_blocks() -> None:
    tensors = Product(512, 256, 1536, "float16", False).tensors()
    inputs = [
        RANDOM.standard_normal([int(n) for n in x.shape]).astype(x.dtype) for x in tensors[:2]
    ]

    found, report = run(auto(tensors[-1], NEURON), tensors, inputs, NEURON)

    assert_product(found, *inputs)
    (psum,) = [memory for memory in report.memories if memory.memory == "psum"]
    # A core computes 6 blocks of 128 x 512 sums; its memory has space for 8.
    assert psum.peak_bytes == 6 * 128 * 512 * 4


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("rows", [100, 128, 150, 1024, 1100])
def test_rows_that_straddle_cycles_fit(rows: int) -> None:
    A = te.placeholder((rows, 4000), name="A")
    B = softmax.define(A)
    target = NEURON.overridden(memory={"sbuf": {"capacity_bytes": 6 << 20}})
    a = RANDOM.standard_normal((rows, 4000)).astype("float32")

    found, report = run(auto(B, target), [A, B], [a], target)

    powers = np.exp(a - a.max(1, keepdims=True).astype("f8"))
    assert_close(found, powers / powers.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)
    assert len(report.cores) == 2


def mlp(x: Any, w: Any, b: Any, v: Any, c: Any) -> Any:
    return np.maximum(x @ w + b, 0) @ v + c


def test_a_multilayer_perceptron() -> None:
    shapes = {"X": (200, 300), "W": (300, 150), "b": (150,), "V": (150, 70), "c": (70,)}
    tensors = [te.placeholder(shape, name=name) for name, shape in shapes.items()]
    X, W, b, V, c = tensors
    hidden = topi.nn.relu(topi.add(topi.matmul(X, W), b))
    Y = topi.add(topi.matmul(hidden, V), c)
    inputs = [RANDOM.standard_normal(shape).astype("float32") for shape in shapes.values()]

    program = tecomp.compile(Y, tensors, NEURON)

    assert_close(program(*inputs), mlp(*(x.astype("f8") for x in inputs)), rtol=1e-4, atol=1e-3)
    assert "matmul unit" in str(program.report())


@pytest.mark.parametrize(("name", "dtype", "lanes", "cycles"), [
    ("vector", "float32", 128, 1.25), ("vector", "int8", 128, 1.25), ("scalar", "float16", 128, 1),
])
def test_lanes_do_not_grow_with_narrow_dtypes(
    name: str, dtype: str, lanes: int, cycles: float
) -> None:
    unit: Any = NEURON.engine[name]

    assert (unit.lanes(dtype), unit.cycles["default"]) == (lanes, cycles)


Function = Callable[[te.Expr], te.Expr]


@pytest.mark.parametrize(("function", "cycles"), [(te.exp, 1.0), (lambda x: x + x, 1.25)])
def test_the_unit_that_lists_an_operation_executes_it(function: Function, cycles: float) -> None:
    A = te.placeholder((256, 512), name="A")
    B = te.compute(A.shape, lambda i, j: function(A[i, j]), name="B")

    report = tecomp.build(auto(B, NEURON), [A, B], NEURON).report()

    assert max(core.cycles["compute"] for core in report.cores) == cycles * 512
