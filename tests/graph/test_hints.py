"""User hints on layouts and core division, explicit relayouts, and conflicts between hints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import StickLayout, Target, te
from tecomp.constraints import DivisionHint, Hint
from tecomp.errors import LayoutError
from tecomp.graph import ProgramLayouts, choose_layouts, graph_of
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close

HALF, SIZE = "float16", 128
STICK = Target.load("stick128")
ROWS, ACROSS = StickLayout((SIZE, SIZE), HALF), StickLayout((SIZE, SIZE), HALF, [1, 0])
random = np.random.default_rng(0)


def chain() -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    A = te.placeholder((SIZE, SIZE), HALF, name="A")
    B = te.compute((SIZE, SIZE), lambda i, j: te.exp(A[i, j]), name="B")
    return A, B, te.compute((SIZE, SIZE), lambda i, j: B[i, j] + A[i, j], name="C")


def chosen(C: te.Tensor, A: te.Tensor, hints: list[Hint], **more: Any) -> ProgramLayouts:
    return choose_layouts(graph_of([C], [A], []), STICK, more.pop("given", {}), hints, **more)


def test_a_hard_hint_binds() -> None:
    A, B, C = chain()
    found = chosen(C, A, [tecomp.hint(B, stick=0, hard=True)])

    assert found[B].device_layout == ACROSS
    assert found.certificate.cost == SIZE * SIZE
    assert str(found.wishes[0]) == "the hint that B has axis 0 along its lanes is honoured"


def test_a_soft_hint_costs() -> None:
    A, _, C = chain()
    cheap = chosen(C, A, [tecomp.hint(C, stick=C.op.axis[0], cost=10)])
    dear = chosen(C, A, [tecomp.hint(C, stick=0, cost=10 * SIZE * SIZE)])

    assert (cheap[C].device_layout, cheap.certificate.cost) == (ROWS, 10)
    assert str(cheap).splitlines()[-1] == (
        "the hint that C has axis 0 along its lanes is not honoured, at a cost of 10 elements"
    )
    assert (dear[C].device_layout, dear.certificate.cost) == (ACROSS, SIZE * SIZE)


def test_hints_change_input_layouts() -> None:
    A, _, C = chain()
    found = chosen(C, A, [tecomp.hint(A, stick=0), tecomp.hint(C, stick=0)])

    assert found[A].device_layout == ACROSS
    assert found.certificate.cost == 0


def test_a_hint_on_an_inlined_value_names_its_kernel() -> None:
    A, B, C = chain()
    program = tecomp.compile(C, [A], "stick128", hints=[tecomp.hint(B, stick=1)])

    assert [str(wish) for wish in program.layouts.wishes] == [
        "the hint that B has axis 1 along its lanes is honoured; B is not stored, but fused into C"
    ]


def test_requested_layouts_are_stored() -> None:
    A, B, C = chain()
    a = random.standard_normal((SIZE, SIZE)).astype(HALF)
    program = tecomp.compile(C, [A], "stick128", layouts={B: ACROSS})

    assert "B" in [call.group.result.name for call in program.kernels]
    assert_close(program(a), np.exp(a) + a, rtol=1e-2, magnitude=np.exp(a) + np.abs(a))


def test_requested_copies() -> None:
    A, B, _ = chain()
    D = tecomp.restickify(B, 0)
    E = tecomp.relayout_to(D, ROWS, name="E")
    F = te.compute((SIZE, SIZE), lambda i, j: E[i, j] + A[i, j], name="F")
    program = tecomp.compile(F, [A], "stick128")
    a = random.standard_normal((SIZE, SIZE)).astype(HALF)

    assert [program.layouts[x].device_layout for x in (B, D, E)] == [ROWS, ACROSS, ROWS]
    assert program.layouts.certificate.cost == 2 * SIZE * SIZE
    assert [call.group.result.name for call in program.kernels][1:4] == ["B", "B_relaid", "E"]
    assert_close(program(a), np.exp(a) + a, rtol=1e-2, magnitude=np.exp(a) + np.abs(a))


def test_a_copy_to_sticks_is_none_on_a_processor() -> None:
    A, B, _ = chain()
    C = te.compute((SIZE, SIZE), lambda i, j: tecomp.restickify(B, 0)[i, j] * A[i, j], name="C")
    a = random.standard_normal((SIZE, SIZE)).astype(HALF)

    assert_close(tecomp.compile(C, [A])(a), np.exp(a) * a, rtol=1e-2)


def test_a_hard_hint_is_a_layout_on_a_processor() -> None:
    A, B, C = chain()
    program = tecomp.compile(C, [A], hints=[tecomp.hint(B, stick=0, hard=True)])
    a = random.standard_normal((SIZE, SIZE)).astype(HALF)

    assert program.layouts[B].device_layout == tecomp.Layout.row_major((SIZE, SIZE), HALF, [1, 0])
    assert [call.group.result.name for call in program.kernels] == ["B", "C"]
    assert [str(wish) for wish in program.layouts.wishes] == [
        "the hint that B has axis 0 along its lanes is honoured"
    ]
    assert_close(program(a), np.exp(a) + a, rtol=1e-2, magnitude=np.exp(a) + np.abs(a))


def test_a_soft_hint_is_worth_nothing_on_a_processor() -> None:
    A, B, C = chain()
    hints = [tecomp.hint(B, stick=0), tecomp.hint(C, stick=0), tecomp.hint(C, stick=1)]
    program = tecomp.compile(C, [A], hints=hints)

    assert len(program.kernels) == 1
    why = "as target cpu has no lanes; only a hard hint determines the memory layout"
    assert [str(wish) for wish in program.layouts.wishes] == [
        f"the hint that B has axis 0 along its lanes is not honoured, {why}; B is not stored, but "
        "fused into C",
        f"the hint that C has axis 0 along its lanes is not honoured, {why}",
        "the hint that C has axis 1 along its lanes is honoured",
    ]


CLASHES: list[tuple[Callable[[te.Tensor, te.Tensor, te.Tensor], Any], Diagnostic]] = [
    (lambda A, B, C: chosen(C, A, [], given={A: ACROSS, C: ROWS}, relayouts=False),
     Diagnostic("layout-requirement", demands="the layout of A and the layout of C")),
    (lambda A, B, C: chosen(C, A, [tecomp.hint(B, stick=0, hard=True)], given={B: ROWS}),
     Diagnostic("layout-requirement", demands="the layout of B and the hint that B has axis 0 along its lanes")),
    (lambda A, B, C: chosen(C, A, [tecomp.hint(A, stick=0, hard=True)], given={A: ROWS}),
     Diagnostic("layout-requirement", demands="the layout of A and the hint that A has axis 0 along its lanes")),
    (lambda A, B, C: chosen(C, A, [tecomp.hint(B, stick=0, hard=True)], relayouts=False),
     Diagnostic(
         "layout-requirement", demand="the hint that B has axis 0 along its lanes", target="stick128",
         instead=", so allow more layouts",
         reason="B is infeasible on stick128: B: its elements at (i=0, j=0) and (i=1, j=0) are at [0, 0, 0] and [0, 0, 1], and those of A that they read at [0, 0, 0] and [0, 1, 0], which are neither the next lane of one stick, at one offset in all sticks, nor one element (rule lane_access of elementwise: torch-spyre: pointwise operations, one stick variable for all operands that have one); a relayout of A to lambda i0, i1: [i0 // 64, i1, i0 % 64] resolves it",
     )),
    (lambda A, B, C: chosen(B, A, [tecomp.hint(C, stick=0)]),
     Diagnostic("layout-requirement", tensor="C", names="A, B")),
    (lambda A, B, C: tecomp.compile(B, [A], hints=[tecomp.hint(C, stick=0)]),
     Diagnostic("layout-requirement", tensor="C", names="A, B")),
    (lambda A, B, C: tecomp.compile(C, [A], hints=[
        tecomp.hint(B, stick=0, hard=True), tecomp.hint(B, stick=1, hard=True)]),
     Diagnostic(
         "layout-requirement",
         demands="the hint that B has axis 0 along its lanes and the hint that B has axis 1 along its lanes",
     )),
    (lambda A, B, C: tecomp.hint(A, stick=2),
     Diagnostic("invalid-value", where="hint", tensor="A", rank=2, axis=2, last=1)),
    (lambda A, B, C: tecomp.hint(C, stick=B.op.axis[0]),
     Diagnostic("layout-requirement", where="hint", axis="i", tensor="C")),
    (lambda A, B, C: tecomp.hint(C, stick=0, cost=-1),
     Diagnostic("invalid-value", cost=-1)),
    (lambda A, B, C: tecomp.relayout_to(C, StickLayout((64, 64), HALF)),
     Diagnostic(
         "layout-shape-mismatch", tensor="C", dtype="float16", shape="[128, 128]", layout_dtype="float16",
         layout_shape=[64, 64],
     )),
    (lambda A, B, C: tecomp.relayout_to(te.placeholder((te.var("n"), 64), HALF, name="N"), ROWS),
     Diagnostic(
         "layout-shape-mismatch", tensor="N", dtype="float16", shape="[n, 64]", layout_dtype="float16",
         layout_shape=[128, 128],
     )),
    (lambda A, B, C: tecomp.compile(C, [A], "stick128", layouts={B: 3}),
     Diagnostic("invalid-type", where="compile: the layout of B", value=3)),
    (lambda A, B, C: tecomp.compile(C, [A], "stick128", layouts={B: ["default", "rows"]}),
     Diagnostic("invalid-type", where="compile: the layout of B", value="rows")),
]


@pytest.mark.exhaustive(keep=7)
@pytest.mark.parametrize(("make", "expected"), CLASHES)
def test_conflicting_soft_hints(make: Callable[..., Any], expected: Diagnostic) -> None:
    with pytest.raises(LayoutError) as error:
        make(*chain())

    assert diagnostic(error.value) == expected


MACHINES = ["stick128", "tensix_wh"]


def small() -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    A = te.placeholder((SIZE, 2 * SIZE), HALF, name="A")
    B = te.compute(A.shape, lambda i, j: te.exp(A[i, j]), name="B")
    return A, B, te.compute(A.shape, lambda i, j: B[i, j] + A[i, j], name="C")


def divided(target: str, *hints: tuple[str, dict[str, Any]]) -> tuple[list[str], list[int]]:
    """Return the outcome of hints on values of a small program, and the cores of its kernel."""
    A, B, C = small()
    own = [tecomp.hint({"B": B, "C": C}[name], **message) for name, message in hints]
    program = tecomp.compile(C, [A], target, hints=own)
    a = random.standard_normal((SIZE, 2 * SIZE)).astype(HALF)
    assert_close(program(a), np.exp(a) + a, rtol=1e-2, magnitude=np.exp(a) + np.abs(a))
    every = [kernel.cores for kernel in program.report().kernels if len(kernel.operations) > 1]
    return [str(wish) for wish in program.layouts.wishes], every


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("target", MACHINES)
def test_division_hints_over_cores_are_satisfied(target: str) -> None:
    wishes, cores = divided(target, ("C", {"cores": {"i": 4, "j": 2}, "hard": True}))

    assert wishes == ["the hint that C is divided among cores, 4 along i, 2 along j, is honoured"]
    assert cores == [8]


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("target", MACHINES)
def test_hints_on_fused_values_apply_to_the_kernel(target: str) -> None:
    wishes, cores = divided(
        target, ("B", {"cores": {"i": 2}}), ("C", {"num_tiles_per_dim": {"i": 2}})
    )

    assert wishes == [
        "the hint that B is divided among cores, 2 along i, is honoured; B is not stored, but fused "
        "into C",
        "the hint that C is computed in tiles, 2 along i, is honoured",
    ]
    assert cores == [2]


def test_infeasible_soft_division_hints_are_dropped() -> None:
    many = {"cores": {"i": 64}}
    wishes, cores = divided("stick128", ("C", many), ("C", {"num_tiles_per_dim": {"i": 2}}))

    assert wishes == [
        "the hint that C is divided among cores, 64 along i, is not honoured: C: 64 x 1 parts require "
        "64 cores, but target stick128 has 32; request fewer parts",
        "the hint that C is computed in tiles, 2 along i, is honoured",
    ]
    assert cores == [32]


def test_a_processor_reports_no_division() -> None:
    wishes, _ = divided("cpu", ("C", {"cores": {"i": 4}}))

    assert wishes == [
        "the hint that C is divided among cores, 4 along i, is not honoured: auto: division of C is "
        "not supported: target cpu has no scratchpads, and its threads share loops dynamically; omit "
        "division"
    ]


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("target", MACHINES)
@pytest.mark.parametrize("which", [0, 1])
def test_division_hints_of_products_are_satisfied(target: str, which: int) -> None:
    X = te.placeholder((128, 256), "float32", name="X")
    W = te.placeholder((256, 256), "float32", name="W")
    k = te.reduce_axis((0, 256), name="k")
    Y = te.compute((128, 256), lambda i, j: te.sum(X[i, k] * W[k, j], axis=k), name="Y")
    Z = te.compute((128, 256), lambda i, j: te.max(Y[i, j], 0.0), name="Z")
    hints = [
        tecomp.hint([Y, Z][which], cores={"i": 2, "j": 4}, hard=True),
        tecomp.hint(Z, num_tiles_per_dim={Z.op.axis[1]: 2}, hard=True),
    ]
    program = tecomp.compile(Z, [X, W], target, hints=hints)
    x, w = (random.integers(-2, 3, x.shape).astype("float32") for x in (X, W))

    np.testing.assert_array_equal(program(x, w), np.maximum(x @ w, 0))  # exact integers
    assert [k.cores for k in program.report().kernels if "Y" in k.operations] == [8]
    assert all(wish.is_kept for wish in program.layouts.wishes)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("target", MACHINES)
def test_division_hints_of_reductions_are_satisfied(target: str) -> None:
    X = te.placeholder((128, 512), "float32", name="X")
    W = te.placeholder((512, 256), "float32", name="W")
    k = te.reduce_axis((0, 512), name="k")
    Y = te.compute((128, 256), lambda i, j: te.sum(X[i, k] * W[k, j], axis=k), name="Y")
    Z = te.compute((128, 256), lambda i, j: te.max(Y[i, j], 0.0), name="Z")
    hints = [
        tecomp.hint(Y, cores={"k": 4, "i": 2}, hard=True),
        tecomp.hint(Y, num_tiles_per_dim={k: 2}, hard=True),
    ]
    program = tecomp.compile(Z, [X, W], target, hints=hints)
    x, w = (random.integers(-2, 3, x.shape).astype("float32") for x in (X, W))

    np.testing.assert_array_equal(program(x, w), np.maximum(x @ w, 0))
    assert [str(wish) for wish in program.layouts.wishes] == [
        "the hint that Y is divided among cores, 2 along i, 4 along k, is honoured; Y is not stored, "
        "but fused into Z",
        "the hint that Y is computed in tiles, 2 along k, is honoured; Y is not stored, but fused into "
        "Z",
    ]
    assert [kernel.cores for kernel in program.report().kernels if "Y" in kernel.operations] == [8]


def test_division_hints_of_casts_are_satisfied() -> None:
    X = te.placeholder((64, 64), HALF, name="X")
    Z = te.compute((64, 64), lambda i, j: X[i, j] * 0.5, name="Z")
    program = tecomp.compile(
        Z, [X], "stick128", hints=[tecomp.hint(Z, cores={"i": 2}, hard=True)]
    )
    x = random.standard_normal((64, 64)).astype(HALF)

    np.testing.assert_array_equal(program(x), x.astype("float32") * np.float32(0.5))
    assert [kernel.cores for kernel in program.report().kernels] == [1, 2, 1]
    assert [wish.is_kept for wish in program.layouts.wishes] == [True]


def test_hints_apply_to_source_values() -> None:
    """Hints apply to values as the user wrote them, also when legalization splits their formula."""
    A = te.placeholder((66, 66), name="A")
    Y = te.compute((64, 64), lambda i, j: A[i, j + 1] + A[i + 1, j], name="Y")
    Z = te.compute((64, 64), lambda i, j: Y[i, j] * 0.25, name="Z")
    program = tecomp.compile(
        Z, [A], "stick128",
        hints=[tecomp.hint(Y, stick=1, hard=True), tecomp.hint(Y, cores={"i": 4}, hard=True)],
    )
    a = random.integers(-4, 5, (66, 66)).astype("float32")

    np.testing.assert_array_equal(program(a), (a[:-2, 1:-1] + a[1:-1, :-2]) / 4)  # exact
    assert [str(wish) for wish in program.layouts.wishes] == [
        "the hint that Y has axis 1 along its lanes is honoured",
        "the hint that Y is divided among cores, 4 along i, is honoured",
    ]
    assert program.layouts[Y].size == (64, 64)


def softmax() -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    X = te.placeholder((128, 256), "float32", name="X")
    k = te.reduce_axis((0, 256), name="k")
    m = te.compute((128,), lambda i: te.max(X[i, k], axis=k), name="m")
    e = te.compute((128, 256), lambda i, j: te.exp(X[i, j] - m[i]), name="e")
    n = te.reduce_axis((0, 256), name="n")
    t = te.compute((128,), lambda i: te.sum(e[i, n], axis=n), name="t")
    return X, t, te.compute((128, 256), lambda i, j: e[i, j] / t[i], name="Z")


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(("machine", "tiles"), [
    ("stick128", 2), ("tensix_wh", 2), ("vtcm2d", 4), ("texture2d", 8),
])
def test_division_hints_of_rows_are_satisfied(machine: str, tiles: int) -> None:
    """Hints on a row-wise value and on its per-row reduction hold in one kernel or in several."""
    X, t, Z = softmax()
    hints = [
        tecomp.hint(t, cores={"i": 2}, hard=True),
        tecomp.hint(Z, cores={"i": 2}, hard=True),
        tecomp.hint(Z, num_tiles_per_dim={"i": tiles}, hard=True),
    ]
    program = tecomp.compile(Z, [X], machine, hints=hints)
    x = np.random.default_rng(0).standard_normal((128, 256)).astype("float32")

    powers = np.exp(x - x.max(1, keepdims=True))
    assert_close(program(x), powers / powers.sum(1, keepdims=True), rtol=1e-5)
    (kernel,) = (item for item in program.report().kernels if "t" in item.operations)
    assert kernel.cores == 2
    assert program.layouts is not None
    assert [wish.is_kept for wish in program.layouts.wishes] == [True, True, True]


def test_columns_of_a_softmax_are_divided() -> None:
    X, _, Z = softmax()
    hint = tecomp.hint(Z, cores={"j": 2}, hard=True)
    program = tecomp.compile(Z, [X], "tensix_wh", hints=[hint])
    x = np.random.default_rng(0).standard_normal((128, 256)).astype("float32")

    powers = np.exp(x - x.max(1, keepdims=True))
    assert_close(program(x), powers / powers.sum(1, keepdims=True), rtol=1e-5)
    kernels = [kernel for kernel in program.report().kernels if "Z" in kernel.operations]
    assert kernels[0].cores == 2


def hard(target: str, **message: Any) -> Callable[..., Any]:
    """Return a function that compiles with hard hints; `message` maps value names to arguments."""

    def compiled(A: te.Tensor, B: te.Tensor, C: te.Tensor) -> Any:
        hints: list[Hint | DivisionHint] = [
            tecomp.hint({"B": B, "C": C}[name[0]], hard=True, **parts)
            for name, parts in message.items()
        ]
        return tecomp.compile(C, [A], target, hints=hints)

    return compiled


ANY_HINT: Any = tecomp.hint


def row_sums(A: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, A.shape[1]), name="k")
    return te.compute((A.shape[0],), lambda i: te.sum(A[i, k], axis=k), name="S")


def reduced(A: te.Tensor, target: str, **message: Any) -> Any:
    """Return a function that compiles row sums with a hard hint."""
    S = row_sums(A)
    return tecomp.compile(S, [A], target, hints=[tecomp.hint(S, hard=True, **message)])


DIVISIONS: list[tuple[Callable[..., Any], Diagnostic]] = [
    (hard("stick128", B={"cores": {"i": 2}}, C={"cores": {"i": 4}}),
     Diagnostic(
         "layout-requirement",
         hints="the hint that B is divided among cores, 2 along i, and the hint that C is divided among cores, 4 along i,",
         how="clash",
         reason="C: its axis i must have 2 and 4 parts; remove one of them, or make it a soft hint",
     )),
    (hard("stick128", B={"cores": {"i": 16}}, C={"cores": {"j": 4}}),
     Diagnostic(
         "layout-requirement",
         hints="the hint that B is divided among cores, 16 along i, and the hint that C is divided among cores, 4 along j,",
         how="clash",
         reason="C: 16 x 4 parts require 64 cores, but target stick128 has 32; request fewer parts",
     )),
    (hard("stick128", B={"cores": {"i": 64}}, C={"cores": {"j": 4}}),
     Diagnostic(
         "layout-requirement", hints="the hint that B is divided among cores, 64 along i,",
         how="cannot be satisfied",
         reason="C: 64 x 1 parts require 64 cores, but target stick128 has 32; request fewer parts",
     )),
    (hard("stick128", C={"cores": {"j": 8}}),
     Diagnostic(
         "layout-requirement", hints="the hint that C is divided among cores, 8 along j,",
         how="cannot be satisfied",
         reason="C: 8 parts along j would split sticks or tiles, or leave parts empty (4 sticks or tiles of 64); request a number that divides 4",
     )),
    (hard("tensix_wh", C={"num_tiles_per_dim": {"i": 3}}),
     Diagnostic(
         "layout-requirement", hints="the hint that C is computed in tiles, 3 along i,", how="cannot be satisfied",
         reason="C: 3 parts along i would split sticks or tiles, or leave parts empty (1 sticks or tiles of 32); request a number that divides 1",
     )),
    (hard("cpu", C={"num_tiles_per_dim": {"i": 4}}),
     Diagnostic(
         "layout-requirement", hints="the hint that C is computed in tiles, 4 along i,", how="cannot be satisfied",
         reason="auto: division of C is not supported: target cpu has no scratchpads, and its threads share loops dynamically; omit division",
     )),
    (lambda A, B, C: tecomp.compile(B, [A], hints=[tecomp.hint(C, cores={"i": 2})]),
     Diagnostic("layout-requirement", tensor="C", computed="B")),
    (lambda A, B, C: tecomp.hint(row_sums(A), cores={"n": 2}),
     Diagnostic(
         "layout-requirement", parameter="cores", name="'n'", how="is no axis", tensor="S", listed="i, k",
         reduce_axes=" or op.reduce_axis",
     )),
    (lambda A, B, C: reduced(A, "stick128", cores={"k": 3}),
     Diagnostic(
         "layout-requirement", hints="the hint that S is divided among cores, 3 along k,",
         how="cannot be satisfied",
         reason="S: 3 parts of the reduction along k would be uneven (256 values, in sticks or tiles of 64); request a number that divides 4",
     )),
    (lambda A, B, C: reduced(A, "tensix_wh", cores={"k": 4}),
     Diagnostic(
         "layout-requirement", hints="the hint that S is divided among cores, 4 along k,",
         how="cannot be satisfied",
         reason="S: the reduction cannot be divided into 4 parts with partial results S.rf: S.rf: 4 parts along k.outer would split sticks or tiles, or leave parts empty (1 sticks or tiles of 32); request a number that divides 1",
     )),
    (lambda A, B, C: reduced(A, "stick128", num_tiles_per_dim={"k": 3}),
     Diagnostic(
         "layout-requirement", hints="the hint that S is computed in tiles, 3 along k,", how="cannot be satisfied",
         reason="S: 3 parts along k would split sticks or tiles, or leave parts empty (4 sticks or tiles of 64); request a number that divides 4",
     )),
    (lambda A, B, C: tecomp.hint(C, cores={"k": 2}),
     Diagnostic(
         "layout-requirement", parameter="cores", name="'k'", how="is no axis", tensor="C", listed="i, j",
         reduce_axes="",
     )),
    (lambda A, B, C: tecomp.hint(C, cores={B.op.axis[0]: 2}),
     Diagnostic(
         "layout-requirement", parameter="cores", name="i", how="is no axis", tensor="C", listed="i, j",
         reduce_axes="",
     )),
    (lambda A, B, C: tecomp.hint(C, cores={}),
     Diagnostic(
         "layout-requirement", parameter="cores", tensor="C", remedy="pass a mapping from axis or axis name to a number",
     )),
    (lambda A, B, C: tecomp.hint(C, num_tiles_per_dim={"i": 0}),
     Diagnostic("invalid-value", parameter="num_tiles_per_dim", tensor="i", tensor_name="C", count=0)),
    (lambda A, B, C: tecomp.hint(C, cores={"i": 2, C.op.axis[0]: 4}),
     Diagnostic("duplicate-argument", parameter="cores", tensor="i", tensor_name="C", found=2, count=4)),
    (lambda A, B, C: tecomp.hint(A, cores={"i": 2}),
     Diagnostic("layout-requirement", tensor="A", parameter="cores")),
    (lambda A, B, C: ANY_HINT(C),
     Diagnostic("conflicting-options", tensor="C")),
    (lambda A, B, C: ANY_HINT(C, cores={"i": 2}, cost=3.0),
     Diagnostic("conflicting-options", cost=3.0)),
]


@pytest.mark.exhaustive(keep=6)
@pytest.mark.parametrize(("make", "expected"), DIVISIONS)
def test_divisions_that_are_refused(make: Callable[..., Any], expected: Diagnostic) -> None:
    with pytest.raises(LayoutError) as error:
        make(*small())

    assert diagnostic(error.value) == expected


@pytest.mark.parametrize("target", ["cpu", "stick128"])
def test_hints_for_tensors_outside_the_program(target: str) -> None:
    A, B, C = chain()
    with pytest.raises(LayoutError) as error:
        tecomp.compile(B, [A], target, layouts={C: "default"})

    assert diagnostic(error.value) == (
        Diagnostic("layout-requirement", tensor="C", names="A, B")
    )


def test_unsupported_dtypes_are_reported_once() -> None:
    A = te.placeholder((4,), "float64", name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    with pytest.raises(LayoutError) as error:
        tecomp.compile(B, [A], "stick128")

    assert diagnostic(error.value) == (
        Diagnostic(
            "unsupported-by-target", tensor="A", target="stick128",
            reason="layout: target stick128 does not support dtype float64; convert to a supported dtype: float16, bfloat16, float32, int64, int32, int16, int8, uint8, bool",
        )
    )
