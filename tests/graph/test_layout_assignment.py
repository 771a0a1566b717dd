"""Layout assignment for sticks: published relayout costs, and random graphs by brute force."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import product
from math import inf
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import StickFormat, StickLayout, Target, te
from tecomp.compute import ComputeOp, Operation
from tecomp.constraints import computation, satisfies_constraints
from tecomp.errors import LayoutError
from tecomp.graph import ProgramLayouts, choose_layouts, graph_of
from tecomp.poly import isl_work
from tests.bench.layouts_table import MACHINES, residual
from tests.graph.forward import forward_relayouts
from tests.messages import Diagnostic, diagnostic

STICK = Target.load("stick128")
SIZE = 128
SQUARE = SIZE * SIZE
NONE: Mapping[te.Tensor, StickLayout] = MappingProxyType({})


def given(name: str) -> te.Tensor:
    return te.placeholder((SIZE, SIZE), "float16", name=name)


def t(x: te.Tensor) -> te.Tensor:
    return te.compute((x.shape[1], x.shape[0]), lambda i, j: x[j, i], name=f"{x.name}_t")


def add(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    return te.compute(x.shape, lambda i, j: x[i, j] + y[i, j], name="add")


def product_of(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, x.shape[1]), name="k")
    return te.compute(
        (x.shape[0], y.shape[1]), lambda i, j: te.sum(x[i, k] * y[k, j], axis=k), name="product"
    )


def least(x: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, x.shape[1]), name="k")
    return te.compute((x.shape[0],), lambda i: te.min(x[i, k], axis=k), name="least")


def broadcast(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    return te.compute(y.shape, lambda i, j: x[j] + y[i, j], name="broadcast")


def layouts_of(
    output: te.Tensor, inputs: list[te.Tensor], known: Mapping[te.Tensor, StickLayout] = NONE
) -> ProgramLayouts:
    return choose_layouts(graph_of([output], inputs, []), STICK, known)


A, B, C, X, Y = (given(name) for name in "ABCXY")


def fan_out(x: te.Tensor) -> te.Tensor:
    return add(add(x, X), add(x, Y))


def diamond(x: te.Tensor) -> te.Tensor:
    return add(add(x, X), add(t(x), Y))


PUBLISHED: dict[str, tuple[Callable[[], te.Tensor], int]] = {
    "A.t() + X": (lambda: add(t(A), X), 1),
    "A.t() + X + B.t() + Y": (lambda: add(add(add(t(A), X), t(B)), Y), 2),
    "a @ (b + c.t())": (lambda: product_of(A, add(B, t(C))), 1),
    "(a @ b) @ c": (lambda: product_of(product_of(A, B), C), 0),
    "A.t() + B.t()": (lambda: add(t(A), t(B)), 0),
    "a.amin(-1) + b": (lambda: broadcast(least(A), B), 1),
    "x = A.t(); (x + X) + (x + Y)": (lambda: fan_out(t(A)), 1),
    "x = A + B; (x + X) + (x.t() + Y)": (lambda: diamond(add(A, B)), 1),
}


@pytest.mark.exhaustive(keep=6)
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_costs(name: str) -> None:
    make, squares = PUBLISHED[name]
    found = layouts_of(make(), [A, B, C, X, Y])

    assert found.certificate.cost == found.certificate.lower_bound == squares * SQUARE
    assert found.certificate.cost == sum(copy.elements for copy in found.relayouts)
    assert "exact" in found.certificate.method


def test_inputs_in_other_stick_layouts_need_no_relayout() -> None:
    across = StickLayout((SIZE, SIZE), "float16", [1, 0])
    found = layouts_of(broadcast(least(A), B), [A, B], {B: across})

    assert found.certificate.cost == 0
    assert found.of[B] is across


def test_a_view_has_the_strides_of_its_base() -> None:
    V = te.compute((30, 20), lambda i, j: A[2 * i + 1, j + 3], name="V")
    Y = te.compute((30, 20), lambda i, j: V[i, j] + 1.0, name="Y")

    assert layouts_of(Y, [A])[V].stride == (2 * SIZE, 1)


def test_reshapes_of_reshapes_are_decided_soon() -> None:
    """Nested reshapes are decided in bounded time; the lane comparison in isl alone takes 40 s."""
    M = te.placeholder((33, 65), name="M")
    flat = te.compute((33 * 65,), lambda i: M[i // 65, i % 65], name="flat")
    R = te.compute((65, 33), lambda i, j: flat[i * 33 + j], name="R")
    Y = te.compute((65, 33), lambda i, j: R[i, j] * 2.0, name="Y")
    graph = graph_of([Y], [M], [])
    begin = time.thread_time()
    found = choose_layouts(graph, Target.load("tensix_wh"))

    assert time.thread_time() - begin < 15
    assert found.certificate.cost == found.certificate.lower_bound == 33 * 65


def test_relayouts_name_their_readers() -> None:
    (copy,) = layouts_of(add(t(A), X), [A, X]).relayouts

    assert (copy.tensor.name, [op.name for op in copy.readers]) == ("A_t", ["add"])
    assert (copy.source, copy.layout) == (
        StickLayout((SIZE, SIZE), "float16", [1, 0]), StickLayout((SIZE, SIZE), "float16")
    )


def test_infeasible_operations() -> None:
    """Sparse and dense sticks are infeasible; the message refers to the layouts of the target."""
    lone = StickLayout((SIZE, SIZE), "float16", [0, 1], StickFormat.Sparse)
    total = add(A, B)
    with pytest.raises(LayoutError) as error:
        choose_layouts(graph_of([total], [A, B], []), STICK, {A: lone, B: "default"})

    assert diagnostic(error.value) == (
        Diagnostic(
            "layout-requirement", operation="add", target="stick128",
            problems="add: its elements at (i=0, j=0) and (i=0, j=1) are at [0, 0, 0] and [0, 0, 1], and those of A that they read at [0, 0, 0] and [1, 0, 0], which are neither the next lane of one stick, at one offset in all sticks, nor one element (rule lane_access of elementwise: torch-spyre: pointwise operations, one stick variable for all operands that have one)",
            reads="A, B",
        )
    )


def test_propagation_alone_where_no_relayout_of_one_operand_helps() -> None:
    places = te.placeholder((SIZE, SIZE), "int32", name="places")
    found = te.compute((SIZE, SIZE), lambda i, j: X[i, places[i, j]], name="found")
    with pytest.raises(LayoutError) as error:
        choose_layouts(graph_of([found], [X, places], []), STICK, relayouts=False)

    assert diagnostic(error.value) == (
        Diagnostic(
            "layout-requirement", operation="found", target="stick128",
            problems="found: which lane of X it reads depends on `places[i, j]` only (rule lane_access of copy: torch-spyre: restickify, clone)",
        )
    )


@pytest.mark.parametrize(("machine", "squares"), [("tensix_wh", (0, 0)), ("stick128", (0, 3))])
def test_factors_are_exchanged_where_no_rule_has_roles(
    machine: str, squares: tuple[int, int]
) -> None:
    """Factors are exchanged where rules assign no operand roles: `A @ B = (B.T @ A.T).T`."""
    k = te.reduce_axis((0, SIZE), name="k")
    target = Target.load(machine)
    costs = []
    for is_turned in (False, True):
        P = te.compute((SIZE, SIZE), lambda i, j, is_turned=is_turned: te.sum(
            B[k, j] * A[i, k] if is_turned else A[i, k] * B[k, j], axis=k), name="P")
        Z = add(P, C)
        costs.append(choose_layouts(graph_of([Z], [A, B, C], []), target).certificate.cost)

    assert costs == [count * SQUARE for count in squares]


@pytest.mark.exhaustive
@pytest.mark.parametrize("machine", ["stick128", "tensix_wh", MACHINES[-1]])
def test_a_residual_block_moves_less_than_going_forward(machine: str) -> None:
    passed, constants, output = residual(32, 128, 32)
    graph, target = graph_of([output], passed, constants), Target.load(machine)
    found, forward = choose_layouts(graph, target), forward_relayouts(graph, target)

    assert found.certificate.cost == found.certificate.lower_bound
    assert forward is not None
    assert (found.certificate.cost, found.moved_bytes) < forward
    assert found.moved_bytes < forward[1]


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize("seed", range(12))
def test_no_choice_of_layouts_is_cheaper(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = [A, B]
    for _ in range(int(rng.integers(1, 4))):
        x, y = (values[k] for k in rng.integers(len(values), size=2))
        kind = int(rng.integers(3))
        values.append(t(x) if kind == 0 else add(x, y) if kind == 1 else product_of(x, y))
    graph = graph_of([values[-1]], [A, B], [])
    found = choose_layouts(graph, STICK)

    assert found.certificate.cost == by_trying(graph.operations)
    forward = forward_relayouts(graph, STICK)
    assert forward is None or forward[0] >= found.certificate.cost


def by_trying(operations: tuple[Operation, ...]) -> float:
    """Return the minimum of relayout elements over all layouts of values and reads."""
    rows, across = StickLayout((SIZE, SIZE), "float16"), StickLayout((SIZE, SIZE), "float16", [1, 0])
    best = inf
    slots = [(op, x) for op in operations for x in op.input_tensors]
    results = [op.output(0) for op in operations]
    for result in product((rows, across), repeat=len(results)):
        at = dict(zip(results, result, strict=True)) | {A: rows, B: rows}
        for read in product((rows, across), repeat=len(slots)):
            requested = dict(zip(slots, read, strict=True))
            copies = {(x, requested[op, x]) for op, x in slots if requested[op, x] != at[x]}
            cost = len(copies) * SQUARE
            if cost < best and all(
                fits(op, {x: requested[op, x] for x in op.input_tensors}, at[op.output(0)])
                for op in operations
            ):
                best = cost
    return best


FITS: dict[object, bool] = {}


def fits(op: Operation, reads: Mapping[te.Tensor, StickLayout], out: StickLayout) -> bool:
    """Return whether an operation supports these layouts; a transpose moves no elements."""
    key = op, tuple(reads.items()), out
    if key not in FITS:
        assert isinstance(op, ComputeOp)
        if op.name.endswith("_t"):
            (source,) = reads.values()
            FITS[key] = source.dim_map == [1 - dim for dim in out.dim_map]
        else:
            with isl_work("layouts"):
                every = computation(op, op.body[0], {**reads, op.output(0): out})
                FITS[key] = satisfies_constraints(every, STICK)
    return FITS[key]


CUBE = 64


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("seed", range(40))
def test_one_tensor_may_be_read_in_several_layouts(seed: int) -> None:
    """A sum of permuted, partly reversed reads of one tensor needs minimal relayouts."""
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(3) for _ in range(int(rng.integers(1, 5)))]
    reads = [orders[k] for k in (*range(len(orders)), *rng.integers(len(orders), size=3))]
    ends = [int(rng.integers(6)) for _ in reads]
    P = te.placeholder((CUBE, CUBE, CUBE), "float16", name="P")

    def element(*axes: te.Expr) -> Any:
        counts = [
            [CUBE - 1 - x if k == end else x for k, x in enumerate(axes)] for end in ends
        ]
        found = [P[tuple(at[k] for k in order)] for at, order in zip(counts, reads, strict=True)]
        return sum(found[1:], found[0])

    graph = graph_of([te.compute(P.shape, element, name="R")], [P], [])
    # The axis along the lanes of the result must be the lane axis of all reads, from their start.
    costs = [
        len({list(order).index(lanes) for order in reads} - {2}) for lanes in range(3)
        if lanes not in ends
    ]
    found = choose_layouts(graph, STICK)

    assert found.certificate.cost == found.certificate.lower_bound
    # Reads reversed along the lanes of a result come from forward relayouts.
    assert (len(found.graph.operations) > 1) == (not costs)
    assert not costs or found.certificate.cost == min(costs) * CUBE**3


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("machine", ["stick128", "tensix_wh"])
def test_an_operation_reads_copies_of_a_tensor_in_several_layouts(machine: str) -> None:
    M = te.placeholder((70, 70), "float16", name="M")
    Z = te.compute(
        M.shape, lambda i, j: M[i, j] + M[j, i] * M[i, 0] - M[69 - i, j] + M[0, j], name="Z"
    )
    program = tecomp.compile(Z, [M], machine)
    m = np.random.default_rng(0).integers(-4, 5, (70, 70)).astype("float16")

    assert program.layouts.certificate.cost == 70 * 70
    np.testing.assert_array_equal(program(m), m + m.T * m[:, :1] - m[::-1] + m[:1])


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("machine", ["stick128", "tensix_wh"])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("is_view", [True, False])
def test_outputs_with_scattered_rows_are_relaid_out(
    machine: str, dtype: str, is_view: bool
) -> None:
    """An output with strided rows is relaid out on the device, as host element reads cost more."""
    X = te.placeholder((256, 320), dtype, name="X")
    T = te.compute((320, 256), lambda i, j: X[j, i] if is_view else X[j, i] + X[j, i], name="T")
    x = np.random.default_rng(0).standard_normal(X.shape).astype(dtype)

    program = tecomp.compile(T, [X], machine)
    across = tecomp.compile(T, [X], machine, layouts={T: [program.layouts[T].device_layout]})

    np.testing.assert_array_equal(program(x), x.T if is_view else (x + x).T)
    (copy,) = program.layouts.for_host
    assert (copy.tensor, copy.readers, copy.elements) == (T, (), 256 * 320)
    assert "T for the host: " in str(program.layouts)
    assert program.layouts.certificate.cost == 0
    assert [relayout.name for relayout in program.report().relayouts] == ["T"]
    assert program.report().cycles * 2 < across.report().cycles


def test_outputs_that_stay_on_the_device_are_not_relaid() -> None:
    """Packed outputs, requested layouts and `relayouts=False` suppress output relayouts."""
    X = te.placeholder((256, 320), "float16", name="X")
    T = te.compute((320, 256), lambda i, j: X[j, i] + X[j, i], name="T")
    requested: list[dict[str, Any]] = [
        {"packed": [T]}, {"hints": [tecomp.hint(T, stick=0, hard=True)]}, {"relayouts": False},
    ]

    for argument in requested:
        assert not tecomp.compile(T, [X], "stick128", **argument).layouts.for_host
