"""Operand constraints: decided examples from the document and planner of torch-spyre."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import StickFormat, StickLayout, check_constraints, te
from tecomp.machine import (
    LaneAccess,
    LaneReduction,
    OperandMemory,
    OperandPadding,
    OperandRank,
    SharedLanes,
)
from tests.messages import Diagnostic, diagnostic

STICK = tecomp.Target.load("stick128")
POINTWISE = replace(STICK, rules=tuple(r for r in STICK.rules if r.operation == "elementwise"))
PRODUCTS = replace(STICK, rules=tuple(
    r for r in STICK.rules if isinstance(r, SharedLanes) and r.operation == "contraction"
))  # fmt: skip
REDUCTIONS = replace(STICK, rules=tuple(r for r in STICK.rules if isinstance(r, LaneReduction)))


def tensor(name: str, *shape: int, dtype: str = "float16") -> te.Tensor:
    return te.placeholder(shape, dtype, name=name)


def sticks(of: te.Tensor, dim: int = -1, **fields: Any) -> StickLayout:
    """Return a stick layout along one axis; only this axis is padded."""
    shape = [int(n) for n in of.shape if isinstance(n, int)]
    order = [k for k in range(len(shape)) if k != dim % len(shape)] + [dim % len(shape)]
    padded = list(shape)
    lanes = 32 if of.dtype == "float32" else 64
    padded[dim] = -(-padded[dim] // lanes) * lanes
    return StickLayout(padded, of.dtype, order, size=shape, **fields)


def sparse(of: te.Tensor, dim: int = -1) -> StickLayout:
    shape = [int(n) for n in of.shape if isinstance(n, int)]
    order = [k for k in range(len(shape)) if k != dim % len(shape)] + [dim % len(shape)]
    return StickLayout(shape, of.dtype, order, StickFormat.Sparse)


def found(
    subject: te.Tensor, layouts: Mapping[te.Tensor, tecomp.Layout], target: tecomp.Target = POINTWISE
) -> list[tuple[tuple[str, ...], str | None]]:
    """Return the operands of each violation, and the operands that a relayout would fix."""
    return [(check_constraint.operands, check_constraint.relayout) for check_constraint in check_constraints(subject, target, layouts)]


class TestPointwise:
    """Point-wise operands share the stick axis or broadcast."""

    def test_the_same_layout(self) -> None:
        A, B = tensor("A", 512, 512), tensor("B", 512, 512)
        C = te.compute((512, 512), lambda i, j: A[i, j] + B[i, j], name="C")

        for dim in (0, 1):
            assert found(C, {t: sticks(t, dim) for t in (A, B, C)}) == []

    def test_a_transposed_operand(self) -> None:
        """`A + B.t()` is a violation: the stick axes differ in spite of equal extents."""
        A, B = tensor("A", 512, 512), tensor("B", 512, 512)
        C = te.compute((512, 512), lambda i, j: A[i, j] + B[j, i], name="C")
        (violation,) = check_constraints(C, POINTWISE, {t: sticks(t) for t in (A, B, C)})

        assert violation.operands == ("B",)
        assert violation.relayout == "B"
        assert violation.layout == sticks(B, 0)
        assert violation.rule == next(r for r in STICK.rules if isinstance(r, LaneAccess))
        assert violation.message == (
            "C: its elements at (i=0, j=0) and (i=0, j=1) are at [0, 0, 0] and [0, 0, 1], and those "
            "of B that they read at [0, 0, 0] and [0, 1, 0], which are neither the next lane of "
            "one stick, at one offset in all sticks, nor one element"
        )
        assert str(violation) == (
            violation.message + "; B as lambda i0, i1: [i0 // 64, i1, i0 % 64] would do"
        )
        assert found(C, {A: sticks(A), B: sticks(B, 0), C: sticks(C)}) == []

    def test_two_transposed_operands_of_four(self) -> None:
        """`A.t() + X + B.t() + Y` takes two relayouts; `A.t() + B.t()` takes none."""
        A, X, B, Y = (tensor(name, 128, 128) for name in "AXBY")
        C = te.compute((128, 128), lambda i, j: A[j, i] + X[i, j] + B[j, i] + Y[i, j], name="C")
        D = te.compute((128, 128), lambda i, j: A[j, i] + B[j, i], name="D")
        rows = {t: sticks(t) for t in (A, X, B, Y, C)}

        assert found(C, rows) == [(("A",), "A"), (("B",), "B")]
        assert found(D, {A: sticks(A), B: sticks(B), D: sticks(D, 0)}) == []

    def test_broadcasts(self) -> None:
        """A broadcast row uses the lanes; columns and scalars have no lane axis."""
        X, R, K, S = tensor("X", 70, 130), tensor("R", 130), tensor("K", 70, 1), tensor("S")
        C = te.compute((70, 130), lambda i, j: X[i, j] * R[j] + K[i, 0] + S[()], name="C")

        assert found(C, {t: sticks(t) for t in (X, R, K, C)}) == []

    def test_sparse_and_dense(self) -> None:
        """No mechanism gathers elements of several sticks into one stick, or scatters one."""
        A, B = tensor("A", 64, 64), tensor("B", 64, 64)
        C = te.compute((64, 64), lambda i, j: A[i, j] + B[i, j], name="C")

        assert found(C, {A: sparse(A), B: sparse(B), C: sparse(C)}) == []
        gathered = check_constraints(C, POINTWISE, {A: sparse(A), B: sticks(B), C: sticks(C)})
        assert [item.operands for item in gathered] == [("A",)]
        assert "those of A that they read at [0, 0, 0] and [1, 0, 0]" in gathered[0].message
        scattered = check_constraints(C, POINTWISE, {A: sparse(A), B: sticks(B), C: sparse(C)})
        assert [item.operands for item in scattered] == [("B",)]
        assert (
            "its elements at (i=0, j=0) and (i=0, j=1) are at [0, 0, 0] and [1, 0, 0], and those "
            "of B that they read at [0, 0, 0] and [0, 0, 1]"
        ) in scattered[0].message

    def test_a_sparse_row_and_a_matrix(self) -> None:
        """`a.amin(-1) + b` is a violation if b has sticks along axis 1, and valid along axis 0."""
        A, B = tensor("A", 64), tensor("B", 64, 64)
        C = te.compute((64, 64), lambda i, j: A[j] + B[i, j], name="C")

        assert found(C, {A: sparse(A), B: sticks(B), C: sticks(C)}) == [(("A",), "A")]
        assert found(C, {A: sparse(A), B: sticks(B, 0), C: sticks(C, 0)}) == []

    @pytest.mark.parametrize(("start", "fits"), [(0, True), (64, True), (60, False), (1, False)])
    def test_slices_of_the_sticks(self, start: int, fits: bool) -> None:
        """torch-spyre #3264: an offset of a partial stick silently gave wrong results."""
        X = tensor("X", 40, 192)
        C = te.compute((40, 128), lambda i, j: te.exp(X[i, j + start]), name="C")
        violations = check_constraints(C, POINTWISE, {X: sticks(X), C: sticks(C)})

        assert (violations == ()) is fits
        if not fits:
            assert {violation.operands for violation in violations} == {("X",)}
            assert violations[-1].message == (
                f"C: lane 0 of C at (i=0, j=0) has byte {2 * start} of X, which is not a multiple of "
                "128"
            )

    def test_rows_of_a_padded_tensor(self) -> None:
        """torch-spyre #3797: valid full rows of a padded (4, 100) tensor were rejected."""
        X = tensor("X", 4, 100)
        C = te.compute((3, 100), lambda i, j: te.exp(X[i + 1, j]), name="C")

        assert found(C, {X: sticks(X), C: sticks(C)}) == []

    def test_reshapes(self) -> None:
        """Fused rows are valid; a reshape that splits a stick is not (torch-spyre #3634)."""
        X, Y = tensor("X", 3, 5, 128), tensor("Y", 4, 96)
        C = te.compute((15, 128), lambda r, c: te.exp(X[r // 5, r % 5, c]), name="C")
        D = te.compute(
            (8, 48), lambda r, c: te.exp(Y[(r * 48 + c) // 96, (r * 48 + c) % 96]), name="D"
        )

        assert found(C, {X: sticks(X), C: sticks(C)}) == []
        assert found(D, {Y: sticks(Y), D: sticks(D)})[0][0] == ("Y",)

    def test_other_lanes_of_another_type(self) -> None:
        X = tensor("X", 4, 128, dtype="float32")
        C = te.compute((4, 128), lambda i, j: te.exp(X[i, j].astype("float16")), name="C")

        assert found(C, {X: sticks(X), C: sticks(C)})[0][0] == ("X",)

    def test_a_copy_may_change_the_sticks(self) -> None:
        X = tensor("X", 128, 256)
        C = te.compute((128, 256), lambda i, j: X[i, j], name="C")

        assert found(C, {X: sticks(X), C: sticks(C, 0)}, STICK) == []


class TestCopies:
    """Copies may change the stick axis, but not between sparse and dense sticks."""

    def copy(self, *shape: int) -> tuple[te.Tensor, te.Tensor]:
        A = tensor("A", *shape)
        B = te.compute(shape, lambda *i: A[i], name="B")
        assert isinstance(B, te.Tensor)
        return A, B

    def test_another_axis(self) -> None:
        A, B = self.copy(128, 192)

        for a, b in ((sticks(A), sticks(B, 0)), (sparse(A), sparse(B, 0)), (sticks(A), sticks(B))):
            assert found(B, {A: a, B: b}, STICK) == []

    def test_gathering_sticks_into_lanes_is_rejected(self) -> None:
        A, B = self.copy(128, 192)
        (violation,) = check_constraints(B, STICK, {A: sparse(A), B: sticks(B)})

        assert violation.message == (
            "B: A has one element per stick: those at (i0=0, i1=0) and (i0=0, i1=1) are at "
            "[0, 0, 0] and [1, 0, 0], and B has i1 along its lanes; nothing gathers elements of "
            "several sticks into one, so compute both in full sticks"
        )
        assert violation.operands == ("A", "B")
        assert violation.relayout == "B"
        assert violation.layout is not None
        assert check_constraints(B, STICK, {A: sparse(A), B: violation.layout}) == ()

    def test_scattering_lanes_to_sticks_is_rejected(self) -> None:
        A, B = self.copy(128, 192)
        (violation,) = check_constraints(B, STICK, {A: sticks(A), B: sparse(B)})

        assert violation.message == (
            "B: B has one element per stick: those at (i0=0, i1=0) and (i0=0, i1=1) are at "
            "[0, 0, 0] and [1, 0, 0], and A has i1 along its lanes; nothing scatters the elements "
            "of one stick to several, so compute both in full sticks"
        )

    def test_a_copy_that_does_not_exist_is_no_cure(self) -> None:
        """No relayout is suggested for a sparse and a dense operand, as none of them exists."""
        A, B = tensor("A", 128, 128), tensor("B", 128, 128)
        C = te.compute((128, 128), lambda i, j: A[i, j] + B[i, j], name="C")

        assert found(C, {A: sparse(A), B: sticks(B), C: sticks(C)}, STICK) == [(("A",), None)]


class TestProducts:
    """Products need sticks of A along k, and sticks of B and C along n."""

    def product(self) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
        A, B = tensor("A", 128, 192), tensor("B", 192, 256)
        k = te.reduce_axis((0, 192), name="k")
        C = te.compute((128, 256), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
        return A, B, C

    def test_constraints_use_the_stored_layout(self) -> None:
        A, B, C = self.product()

        assert found(C, {t: sticks(t) for t in (A, B, C)}, PRODUCTS) == []

    def test_sticks_of_m(self) -> None:
        A, B, C = self.product()
        violations = check_constraints(C, PRODUCTS, {A: sticks(A, 0), B: sticks(B), C: sticks(C)})

        assert [(v.operands, v.relayout) for v in violations] == [
            (("A", "B"), "A"), (("A",), "A"),
        ]
        assert violations[0].message == (
            "C: A has dimension -2 and B has dimension -1 along its lanes; they must be the same"
        )
        assert violations[1].message == (
            "C: A has i along its lanes, but it must be an axis that C sums over"
        )
        assert all(v.layout == sticks(A) for v in violations)

    def test_sticks_of_k_in_both(self) -> None:
        A, B, C = self.product()
        violations = check_constraints(C, PRODUCTS, {A: sticks(A), B: sticks(B, 0), C: sticks(C)})

        assert {v.relayout for v in violations} == {"B"}
        assert (
            "C: B has k along its lanes, but it must be an axis that C keeps"
        ) in {v.message for v in violations}

    def test_a_result_in_sticks_of_m(self) -> None:
        A, B, C = self.product()
        violations = check_constraints(C, PRODUCTS, {A: sticks(A), B: sticks(B), C: sticks(C, 0)})

        assert [(v.operands, v.relayout, v.layout) for v in violations] == [
            (("B", "C"), "C", sticks(C)),
        ]
        assert violations[0].message == (
            "C: B has axis j and C has axis i along its lanes; they must be the same"
        )

    def test_the_two_inputs_share_a_dimension(self) -> None:
        """By the rule in the document, both inputs may have stick axis 0."""
        rule = next(r for r in PRODUCTS.rules if isinstance(r, SharedLanes) and
                    r.by == "dimension")  # fmt: skip
        document = replace(STICK, rules=(rule,))
        A, B, C = self.product()

        assert found(C, {A: sticks(A, 0), B: sticks(B, 0)}, document) == []
        assert found(C, {A: sticks(A, 0), B: sticks(B)}, document) == [(("A", "B"), "A")]

    def test_chains(self) -> None:
        """`(a @ b) @ c` takes no relayout, `a @ (b + c.t())` takes one."""
        A, B, C = (tensor(name, 128, 128) for name in "ABC")
        k, r = (te.reduce_axis((0, 128), name=name) for name in "kr")
        D = te.compute((128, 128), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="D")
        E = te.compute((128, 128), lambda i, j: te.sum(D[i, r] * C[r, j], axis=r), name="E")
        S = te.compute((128, 128), lambda i, j: B[i, j] + C[j, i], name="S")
        T = te.compute((128, 128), lambda i, j: te.sum(A[i, k] * S[k, j], axis=k), name="T")
        rows = {t: sticks(t) for t in (A, B, C, D, E, S, T)}

        assert [found(t, rows, PRODUCTS) for t in (D, E, T)] == [[], [], []]
        assert found(S, rows) == [(("C",), "C")]

    def test_padding_along_k_is_zero(self) -> None:
        A, B = tensor("A", 64, 100), tensor("B", 100, 64)
        k = te.reduce_axis((0, 100), name="k")
        C = te.compute((64, 64), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
        padded = StickLayout((128, 64), "float16", [0, 1], size=(100, 64), memory="lx")
        lx = {A: sticks(A, memory="lx"), B: padded, C: sticks(C, memory="lx")}
        (violation,) = check_constraints(C, STICK, lx)

        assert violation.message == (
            "C: the padding of B along dimension 0 holds undefined data, but must hold 0.0"
        )
        assert violation.relayout == "B"
        assert violation.layout is not None
        assert violation.layout.pad_value == 0.0
        zeros = StickLayout(
            (128, 64), "float16", [0, 1], size=(100, 64), memory="lx", pad_value=0.0
        )
        assert check_constraints(C, STICK, {**lx, B: zeros}) == ()

    @pytest.mark.parametrize("which", "ABC")
    def test_no_operand_has_one_element_to_a_stick(self, which: str) -> None:
        operands = dict(zip("ABC", self.product(), strict=True))
        changed = operands[which]
        layouts: dict[te.Tensor, tecomp.Layout] = {t: sticks(t) for t in operands.values()}
        anywhere = replace(
            STICK, rules=tuple(r for r in STICK.rules if not isinstance(r, OperandMemory)))
        violations = check_constraints(
            operands["C"], anywhere, {**layouts, changed: sparse(changed)}
        )

        neighbour, axis = ("(i=0, j=0, k=1)", "k") if which == "A" else ("(i=0, j=1, k=0)", "j")
        instead = f"it must have {axis} along its lanes" if which == "C" else (
            f"it requires full sticks of {axis}, which no relayout produces, so compute it in "
            "full sticks")
        assert [v.message for v in violations] == [
            f"C: {which} has one element per stick: those at (i=0, j=0, k=0) and {neighbour} are "
            f"at [0, 0, 0] and [1, 0, 0]; {instead}"
        ]
        assert violations[0].operands == (which,)
        assert (violations[0].relayout, violations[0].layout) == (
            ("C", sticks(changed)) if which == "C" else (None, None)
        )

    def test_one_column_fills_the_unit(self) -> None:
        A, B = tensor("A", 128, 1), tensor("B", 1, 256)
        k = te.reduce_axis((0, 1), name="k")
        C = te.compute((128, 256), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")

        assert found(C, {A: sparse(A), B: sticks(B), C: sticks(C)}, PRODUCTS) == []

    def test_rows_of_b_are_whole_sticks(self) -> None:
        A, B = tensor("A", 64, 100), tensor("B", 100, 64)
        k = te.reduce_axis((0, 100), name="k")
        C = te.compute((64, 64), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
        lx = {t: sticks(t, memory="lx") for t in (A, B, C)}
        (violation,) = check_constraints(C, STICK, lx)

        assert violation.message == (
            "C: B has 100 places along dimension 0, 200 bytes, the last with element (99, 0); that "
            "is not a multiple of 128, and must be padded with 0.0"
        )
        assert violation.relayout == "B"
        assert violation.layout is not None
        assert violation.layout.physical_shape == (1, 128, 64)
        assert violation.layout.pad_value == 0.0
        assert check_constraints(C, STICK, {**lx, B: violation.layout}) == ()

    def test_operands_are_in_the_scratchpad(self) -> None:
        A, B, C = self.product()
        layouts = {t: sticks(t, memory="lx") for t in (A, B, C)}
        (violation,) = check_constraints(C, STICK, {**layouts, A: sticks(A, memory="ddr")})

        assert violation.message == "C: A is in memory ddr, but must be in lx"
        assert violation.layout is not None
        assert (violation.relayout, violation.layout.memory) == ("A", "lx")


class TestGathers:
    """The indexed axis of a table is not the stick axis; the index tensor may have any layout."""

    @pytest.mark.parametrize("value", [lambda x: x, te.exp], ids=["copy", "elementwise"])
    def test_rows_of_a_table(self, value: Callable[[te.Expr], te.Expr]) -> None:
        W, R = tensor("W", 1000, 256), tensor("R", 40, dtype="int32")
        C = te.compute((40, 256), lambda i, j: value(W[R[i], j]), name="C")
        target = replace(STICK, rules=tuple(r for r in STICK.rules if isinstance(r, LaneAccess)))

        assert found(C, {W: sticks(W), C: sticks(C)}, target) == []
        (violation,) = check_constraints(C, target, {W: sticks(W, 0), C: sticks(C)})
        assert violation.message == "C: which lane of W it reads depends on `R[i]` only"
        assert (violation.relayout, violation.layout) == ("W", sticks(W))

    @pytest.mark.parametrize("value", [lambda x: x, te.exp], ids=["copy", "elementwise"])
    def test_gathers_across_lanes_violate_constraints(self, value: Callable[[te.Expr], te.Expr]) -> None:
        W, J = tensor("W", 40, 256), tensor("J", 256, dtype="int32")
        C = te.compute((40, 256), lambda i, j: value(W[i, J[j]]), name="C")
        target = replace(STICK, rules=tuple(r for r in STICK.rules if isinstance(r, LaneAccess)))

        (violation,) = check_constraints(C, target, {W: sticks(W, 0), C: sticks(C)})
        assert violation.message == (
            "C: each of its lanes reads a different address of W, which depends on `J[j]` only"
        )
        assert found(C, {W: sticks(W, 0), C: sticks(C, 0)}, target) == []


class TestConvolutions:
    """Images have sticks of input channels, weights and results of output channels."""

    def convolution(self) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
        X, F = tensor("X", 1, 16, 16, 64), tensor("F", 3, 3, 64, 128)
        sizes = ((3, "ry"), (3, "rx"), (64, "rc"))
        ry, rx, rc = (te.reduce_axis((0, n), name=name) for n, name in sizes)
        C = te.compute(
            (1, 14, 14, 128),
            lambda n, y, x, k: te.sum(X[n, y + ry, x + rx, rc] * F[ry, rx, rc, k],
                                      axis=[ry, rx, rc]),
            name="C",
        )  # fmt: skip
        return X, F, C

    def test_sticks_of_channels(self) -> None:
        X, F, C = self.convolution()

        assert found(C, {t: sticks(t) for t in (X, F, C)}, PRODUCTS) == []

    @pytest.mark.parametrize(
        ("changed", "dim", "message"),
        [
            ("X", 2, "C: X has x, rx along its lanes, but it must be an axis that C sums over"),
            ("F", 2, "C: F has rc along its lanes, but it must be an axis that C keeps"),
            ("C", 2, "C: F has axis k and C has axis x along its lanes; they must be the same"),
        ],
    )
    def test_operands_with_other_stick_axes(self, changed: str, dim: int, message: str) -> None:
        tensors = dict(zip("XFC", self.convolution(), strict=True))
        layouts = {t: sticks(t, dim if name == changed else -1) for name, t in tensors.items()}
        violations = check_constraints(tensors["C"], PRODUCTS, layouts)

        assert message in {violation.message for violation in violations}
        assert {violation.relayout for violation in violations} == {changed}
        assert {violation.layout for violation in violations} == {sticks(tensors[changed])}


class TestSmallFloats:
    """8-bit weights use sticks of two rows: [2, 64]."""

    def product(self) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
        A, B = tensor("A", 128, 192), tensor("B", 192, 256)
        k = te.reduce_axis((0, 192), name="k")
        C = te.compute((128, 256), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
        return A, B, C

    def test_two_rows_in_a_stick(self) -> None:
        A, B, C = self.product()
        rows = replace(
            tecomp.Layout.of((192, 256), "float16", lambda k, n: [k // 2, n // 64, k % 2, n % 64]),
            storage=tecomp.storage_format("float8_e4m3fn"),
        )

        assert rows.nbytes == 192 * 256
        assert found(C, {A: sticks(A), B: rows, C: sticks(C)}, PRODUCTS) == []

    def test_pairs_of_rows_side_by_side(self) -> None:
        A, B, C = self.product()
        pairs = replace(
            tecomp.Layout.of((192, 256), "float16", lambda k, n: [k // 2, n // 64, n % 64, k % 2]),
            storage=tecomp.storage_format("float8_e4m3fn"),
        )
        violations = check_constraints(C, PRODUCTS, {A: sticks(A), B: pairs, C: sticks(C)})

        assert "C: B has k along its lanes, but it must be an axis that C keeps" in {
            violation.message for violation in violations
        }


class TestReductions:
    """Reductions along the stick axis give sparse sticks."""

    def test_along_the_sticks(self) -> None:
        A = tensor("A", 128, 128)
        k = te.reduce_axis((0, 128), name="k")
        C = te.compute((128,), lambda i: te.max(A[i, k], axis=k), name="C")
        (violation,) = check_constraints(C, REDUCTIONS, {A: sticks(A), C: sticks(C)})

        assert violation.message == (
            "C: it reduces along the lanes of A, so that each stick of C has one element, in lane "
            "0; those at (i=0, k=0) and (i=1, k=0) are at [0, 0] and [0, 1]"
        )
        assert violation.layout == sparse(C)
        assert found(C, {A: sticks(A), C: sparse(C)}, REDUCTIONS) == []

    def test_across_the_sticks(self) -> None:
        A = tensor("A", 128, 128)
        k = te.reduce_axis((0, 128), name="k")
        C = te.compute((128,), lambda j: te.max(A[k, j], axis=k), name="C")

        assert found(C, {A: sticks(A), C: sticks(C)}, REDUCTIONS) == []

    def test_operands_with_different_layouts(self) -> None:
        """Operands of a reduction share lanes: RFC 0047, dot products."""
        A, B = tensor("A", 128, 128), tensor("B", 128, 128)
        k = te.reduce_axis((0, 128), name="k")
        for term in (lambda a, b: te.sum(a * b, axis=k), lambda a, b: te.max(a + b, axis=k)):
            C = te.compute((128,), lambda i, term=term: term(A[i, k], B[i, k]), name="C")

            assert found(C, {A: sticks(A), B: sticks(B), C: sparse(C)}, STICK) == []
            assert found(C, {A: sticks(A, 0), B: sticks(B, 0), C: sticks(C)}, STICK) == []
            (along,) = check_constraints(
                C, STICK, {A: sticks(A), B: sticks(B, 0), C: sparse(C)}
            )
            assert along.message == (
                "C: its terms at (i=0, k=0) and (i=0, k=1) read A at [0, 0, 0] and [0, 0, 1], and "
                "B at [0, 0, 0] and [0, 1, 0]; operands of a reduction along lanes must read the "
                "next lane of one stick, at one offset in all sticks, or one element"
            )
            assert (along.operands, along.relayout, along.layout) == (("A", "B"), "B", sticks(B))

    def test_column_and_matrix_operands(self) -> None:
        """A per-row operand of a row reduction must be sparse, in lane 0 of all sticks."""
        A, B = tensor("A", 128, 128), tensor("B", 128)
        k = te.reduce_axis((0, 128), name="k")
        C = te.compute((128,), lambda i: te.max(A[i, k] + B[i], axis=k), name="C")

        assert found(C, {A: sticks(A), B: sparse(B), C: sparse(C)}, STICK) == []
        assert found(C, {A: sticks(A, 0), B: sticks(B), C: sticks(C)}, STICK) == []
        (wrong,) = check_constraints(C, STICK, {A: sticks(A), B: sticks(B), C: sparse(C)})
        assert wrong.operands == ("A", "B")
        assert wrong.message.endswith("or one element in one lane of all sticks")

    def test_a_wider_result(self) -> None:
        """Float32 sums of float16 keep the stick axis, with fewer lanes."""
        A, B = tensor("A", 4, 128), tensor("B", 4, 128)
        k = te.reduce_axis((0, 4), name="k")
        C = te.compute((128,), lambda j: te.sum(A[k, j].astype("float32"), axis=k), name="C")
        D = te.compute(
            (128,), lambda j: te.max(A[k, j].astype("float32") + B[k, j].astype("float32"), axis=k),
            name="D",
        )

        assert found(C, {A: sticks(A), C: sticks(C)}, STICK) == []
        assert found(C, {A: sticks(A, 0), C: sticks(C)}, STICK) == [(("C",), "C")]
        assert found(D, {A: sticks(A), B: sticks(B), D: sticks(D)}, STICK) == []
        assert found(D, {A: sticks(A), B: sparse(B), D: sticks(D)}, STICK)[0][0] == ("A", "B")

    def test_a_result_in_other_lanes(self) -> None:
        """Lanes that are not reduced are the lanes of the result."""
        A = tensor("A", 128, 128, 4)
        k = te.reduce_axis((0, 4), name="k")
        C = te.compute((128, 128), lambda i, j: te.max(A[i, j, k], axis=k), name="C")

        assert found(C, {A: sticks(A, 1), C: sticks(C, 1)}, STICK) == []
        assert found(C, {A: sticks(A, 1), C: sticks(C, 0)}, STICK) == [(("A",), "A")]

    @pytest.mark.parametrize(("result", "expected"), [
        ("refused", [(("A",), "A")]), ("dense", []),
    ])
    def test_other_machines(self, result: Any, expected: Any) -> None:
        A = tensor("A", 128, 128)
        k = te.reduce_axis((0, 128), name="k")
        C = te.compute((128,), lambda i: te.max(A[i, k], axis=k), name="C")
        rule = LaneReduction("lane_reduction", "reduction", result, "a test")

        assert found(C, {A: sticks(A), C: sticks(C)}, replace(STICK, rules=(rule,))) == expected


class TestMemories:
    """Ranks of memories, and layouts set by a schedule."""

    def test_the_rank_of_a_memory(self) -> None:
        A = tensor("A", 8, 8)
        C = te.compute((8, 8), lambda i, j: A[i, j] + A[i, j], name="C")
        flat = tecomp.Layout.of((8, 8), "float16", lambda i, j: [i, j], memory="global.texture")
        rows = tecomp.Layout.of(
            (8, 8), "float16", lambda i, j: [i, te.AXIS_SEPARATOR, j], memory="global.texture"
        )
        (violation,) = check_constraints(C, "cpu", {A: flat})

        assert violation.rule is None
        assert violation.message == (
            "C: A has 1 physical axes, but memory `global.texture` of target cpu takes 2; use 1 "
            "AXIS_SEPARATOR in its layout"
        )
        assert check_constraints(C, "cpu", {A: rows}) == ()
        rank = OperandRank("operand_rank", "elementwise", ("inputs",), (2,), "a test")
        machine = replace(tecomp.Target.load("cpu"), rules=(rank,))
        (second,) = check_constraints(C, machine, {})
        assert second.message == "C: A has 1 physical axes instead of 2"

    def test_all_of_a_schedule(self) -> None:
        A, B = tensor("A", 128, 128), tensor("B", 128, 128)
        T = te.compute((128, 128), lambda i, j: te.exp(B[j, i]), name="T")
        C = te.compute((128, 128), lambda i, j: A[i, j] + T[i, j], name="C")
        D = te.compute((128, 128), lambda i, j: te.exp(C[i, j]), name="D")
        s = te.create_schedule(D)
        s[T].compute_inline()
        for item in (A, B, C, D):
            s[item].transform_layout(lambda i, j: [j // 64, i, j % 64])
        (violation,) = check_constraints(s, POINTWISE)

        assert (violation.operation, violation.operands) == ("C", ("B",))
        assert violation.relayout == "B"
        assert violation.layout is not None
        assert violation.layout.place((65, 3)) == (3, 1, 1)
        repeated = te.create_schedule(D)
        repeated[T].compute_inline()
        repeated[B].transform_layout(lambda i, j: [i // 64, j, i % 64])
        for item in (A, C, D):
            repeated[item].transform_layout(lambda i, j: [j // 64, i, j % 64])
        assert check_constraints(repeated, POINTWISE) == ()

    def test_padding_of_another_reduction(self) -> None:
        A = tensor("A", 4, 100)
        k = te.reduce_axis((0, 100), name="k")
        C = te.compute((4,), lambda i: te.max(A[i, k], axis=k), name="C")
        rule = OperandPadding("operand_padding", "reduction", ("inputs",), "reduced", "neutral", "")
        machine = replace(STICK, rules=(rule,))
        (violation,) = check_constraints(C, machine, {A: sticks(A, pad_value=0.0)})

        assert violation.message == (
            "C: the padding of A along dimension 1 holds 0.0, but must hold -65504.0"
        )
        assert violation.layout is not None
        # DLFloat16 has no infinity, so the fill is the smallest finite value.
        assert violation.layout.pad_value == np.finfo(np.float16).min


class TestRefusals:
    """Errors for undecidable cases."""

    def test_messages(self) -> None:
        anything: Any = (8, 8)
        A, P, n = tensor("A", 8, 8), tensor("P", 8, dtype="int32"), te.var("n")
        C = te.compute((8, 8), lambda i, j: A[i * j % 8, j] + 1.0, name="C")
        N = te.placeholder((n,), name="N")
        M = te.compute((n,), lambda i: N[i] + 1.0, name="M")
        D = te.compute((8, 8), lambda i, j: A[i, j] + 1.0, name="D")
        cases: list[tuple[Callable[[], object], Diagnostic]] = [
            (lambda: check_constraints(A, STICK),
             Diagnostic("invalid-type", subject="Tensor(A, shape=(8, 8), dtype=float16)")),
            (lambda: check_constraints(D, STICK, {A: anything}),
             Diagnostic("invalid-type", where="check_constraints: the layout of A", value=(8, 8))),
            (lambda: check_constraints(D, STICK, {anything: anything}),
             Diagnostic("invalid-type", tensor=(8, 8))),
            (lambda: check_constraints(C, STICK),
             Diagnostic("layout-requirement", reason="i * j", op="C")),
            (lambda: check_constraints(M, STICK),
             Diagnostic("layout-requirement", where="M", extent="n")),
            (lambda: check_constraints(te.create_schedule(M), STICK),
             Diagnostic("layout-requirement", tensor="N", shape="[n]")),
            (lambda: check_constraints(D, STICK, {A: sticks(P)}),
             Diagnostic("layout-shape-mismatch", tensor="A", where="D", shape="[8, 8]", layout_shape=[8])),
        ]
        for call, expected in cases:
            with pytest.raises(tecomp.LayoutError) as caught:
                call()
            assert diagnostic(caught.value) == expected

    def test_a_tensor_without_axes_in_a_layout(self) -> None:
        A = tensor("A", 64)
        k, r = (te.reduce_axis((0, 64), name=name) for name in "kr")
        S = te.compute((), lambda: te.sum(A[k], axis=k), name="S")
        T = te.compute((), lambda: te.sum(A[r] * S[()], axis=r), name="T")
        s = te.create_schedule(T)
        s[S].transform_layout(lambda: [te.const(0, "int64")])

        assert check_constraints(s, POINTWISE) == ()
