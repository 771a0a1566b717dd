"""Programs on targets with layout rules: results, layouts and relayouts."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import StickLayout, te
from tecomp.errors import LayoutError
from tecomp.graph import bytes_of, group_inputs
from tests.messages import Diagnostic, diagnostic

HALF = "float16"
random = np.random.default_rng(0)


def transposed_sum() -> tuple[te.Tensor, te.Tensor, te.Tensor, te.Tensor]:
    """Return `A.t() + X`, whose operands need a common stick axis, so one requires a relayout."""
    A, X = te.placeholder((70, 40), HALF, name="A"), te.placeholder((40, 70), HALF, name="X")
    T = te.compute((40, 70), lambda i, j: A[j, i], name="T")
    Y = te.compute((40, 70), lambda i, j: T[i, j] + X[i, j], name="Y")
    return A, X, T, Y


def check_sizes(program: Any) -> None:
    """Check that each kernel parameter has the size planned for its value."""
    stored = program.details.stored
    for call in program.kernels:
        neighbors = [*group_inputs(call.group), *call.group.result.outputs]
        params = call.kernel.lowered.final.params
        assert [prod(p.shape) * p.dtype.bytes for p in params] == [
            bytes_of(x, stored) for x in neighbors
        ]


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("machine", ["stick128", "tensix_wh"])
def test_a_report_has_layouts_and_relayouts(
    machine: str, golden: Callable[[object], None]
) -> None:
    A, X, _, Y = transposed_sum()
    program = tecomp.compile(Y, [A, X], machine)
    report = program.report()
    (relayout,) = report.relayouts

    assert relayout.elements == program.layouts.certificate.cost
    assert relayout.bytes == program.layouts.moved_bytes
    assert relayout.readers == ("Y",)
    read = [group_inputs(call.group) for call in program.kernels]
    stored = program.details.stored
    assert [kernel.reads for kernel in report.kernels] == [
        sum(bytes_of(x, stored) for x in values) for values in read
    ]
    assert sum(len(edge.read_by) for edge in report.edges) == sum(map(len, read))
    golden(report)


def half(*shape: int) -> np.ndarray[Any, Any]:
    return random.integers(-4, 5, shape).astype(HALF)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("machine", ["stick128", "tensix_wh"])
def test_a_relayout_is_a_kernel(machine: str) -> None:
    A, X, T, Y = transposed_sum()
    program = tecomp.compile(Y, [A, X], machine)
    a, x = half(70, 40), half(40, 70)

    np.testing.assert_array_equal(program(a, x), a.T + x)
    check_sizes(program)
    (relayout,) = program.layouts.relayouts
    assert relayout.elements == program.layouts.certificate.cost == 2800
    names = [call.group.result.name for call in program.kernels]
    assert f"{relayout.tensor.name}_relaid" in names
    assert program.layouts[T].size == (40, 70)


def test_layouts_print_as_the_document_has_them() -> None:
    A, X, _, Y = transposed_sum()
    layouts = tecomp.compile(Y, [A, X], "stick128").layouts
    lines = str(layouts).splitlines()

    assert str(layouts[A]) == (
        "FixedTiledLayout(size=[70, 40], stride=[40, 1], device_layout=SpyreTensorLayout("
        "device_size=[1, 128, 64], dim_map =[1, 0, 1], num_stick_dims=1, "
        "format=StickFormat.Dense, device_dtype=DataFormats.SEN169_FP16))"
    )
    assert lines[0] == f"A: {layouts[A]}"
    assert lines[-1] == (
        "relayouts move 2,800 elements, lower bound 2,800 (variable elimination along a "
        "tree decomposition, exact)"
    )
    assert [x.name for x in layouts] == ["A", "X", "T", "Y"]
    other = te.placeholder((3,), name="other")
    with pytest.raises(LayoutError) as error:
        layouts[other]
    assert diagnostic(error.value) == (
        Diagnostic("layout-requirement", tensor="Tensor(other, shape=(3,), dtype=float32)", seats="A, X, T, Y")
    )


def test_explicit_layouts() -> None:
    A, X, _, Y = transposed_sum()
    across = StickLayout((128, 40), HALF, [1, 0], size=(70, 40))
    a, x = half(70, 40), half(40, 70)
    program = tecomp.compile(Y, [A, X], "stick128", layouts={A: across})

    assert program.layouts.certificate.cost == 0
    assert program.layouts[A].device_layout is across
    np.testing.assert_array_equal(program(a, x), a.T + x)
    several = tecomp.compile(Y, [A, X], "stick128", layouts={A: ["default", across], X: "default"})
    assert several.layouts[A].device_layout is across


def test_constants_may_have_any_layout() -> None:
    A, X, _, Y = transposed_sum()
    a, x = half(70, 40), half(40, 70)
    program = tecomp.compile(Y, [X], "stick128", constants={A: a})

    assert program.layouts.certificate.cost == 0
    np.testing.assert_array_equal(program(x), a.T + x)


def test_propagation_alone() -> None:
    A, X, _, Y = transposed_sum()
    with pytest.raises(LayoutError) as error:
        tecomp.compile(Y, [A, X], "stick128", relayouts=False)

    assert diagnostic(error.value) == (
        Diagnostic(
            "layout-requirement", operation="Y", target="stick128",
            problems="Y: its elements at (i=0, j=0) and (i=0, j=1) are at [0, 0, 0] and [0, 0, 1], and those of T that they read at [0, 0, 0] and [0, 1, 0], which are neither the next lane of one stick, at one offset in all sticks, nor one element (rule lane_access of elementwise: torch-spyre: pointwise operations, one stick variable for all operands that have one); a relayout of T to lambda i0, i1: [i1 // 64, i0, i1 % 64] resolves it",
        )
    )


def test_operations_without_rules() -> None:
    """Scans and multi-value reductions have no layout rule, so they use row-major layouts."""
    A = te.placeholder((6, 8), HALF, name="A")
    k = te.reduce_axis((0, 8), name="k")
    total = te.compute((6,), lambda i: te.sum(A[i, k] * te.const(2, HALF), axis=k), name="total")
    state = te.placeholder((6,), HALF, name="state")
    start = te.compute((1,), lambda i: total[i], name="start")
    step = te.compute((6,), lambda i: state[i - 1] + total[i], name="step")
    summed = te.scan(start, step, state, name="summed")
    Y = te.compute((6,), lambda i: summed[i] + total[i], name="Y")
    a = half(6, 8)
    across = StickLayout((64, 64), HALF, [1, 0], size=(6, 8))
    program = tecomp.compile(Y, [A], "stick128", layouts={A: across})
    rows = (a * 2).sum(1)
    check_sizes(program)

    np.testing.assert_array_equal(program(a), rows.cumsum() + rows)


def test_the_processor_has_one_layout() -> None:
    A, X, T, Y = transposed_sum()
    program = tecomp.compile(Y, [A, X])

    assert program.layouts.certificate.cost == 0
    assert program.layouts[T].stride == (1, 40)
    assert str(program.layouts[A].device_layout.index_map).endswith("[index0, index1]")


@pytest.mark.parametrize("wrong", ["A", 3, [], None])
def test_layouts_are_of_tensors(wrong: Any) -> None:
    A, X, T, Y = transposed_sum()
    layouts = tecomp.compile(Y, [A, X]).layouts
    with pytest.raises(LayoutError) as error:
        layouts[wrong]

    assert (wrong in layouts, layouts.get(wrong, 5)) == (False, 5)
    assert (T in layouts, layouts.get(T)) == (True, layouts[T])
    assert diagnostic(error.value) == (
        Diagnostic("layout-requirement", tensor=wrong, seats="A, X, T, Y")
    )


def test_programs_travel_with_their_layouts() -> None:
    A, X, _, Y = transposed_sum()
    across = StickLayout((128, 40), HALF, [1, 0], size=(70, 40))
    program = tecomp.compile(Y, [A, X], "stick128", layouts={A: across}, name="laid")
    a, x = half(70, 40), half(40, 70)

    assert copy.copy(program) is program
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(program))(a, x), a.T + x)


@pytest.mark.parametrize(("layouts", "expected"), [
    ({"A": 3}, Diagnostic("invalid-type", where="compile: the layout of A", value=3)),
    ({"A": []}, Diagnostic("layout-requirement", tensor="A")),
    ({"A": StickLayout((64, 64), HALF)},
     Diagnostic(
         "layout-shape-mismatch", tensor="A", dtype="float16", shape="[70, 40]", layout_dtype="float16",
         layout_shape=[64, 64],
     )),
])  # fmt: skip
def test_bad_layouts(layouts: dict[str, Any], expected: Diagnostic) -> None:
    A, X, _, Y = transposed_sum()
    with pytest.raises(LayoutError) as error:
        tecomp.compile(Y, [A, X], "stick128", layouts={A: layouts["A"]})

    assert diagnostic(error.value) == expected
