"""Library operations: printed form, lowering and results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tecomp.errors import ArrayTypeError
from tecomp.ptensor import (
    Apply,
    Argsort,
    Cumulative,
    FindIndex,
    FourierTransformOp,
    Function,
    IsIn,
    LibraryOperation,
    MatMul,
    Matrices,
    Parameter,
    PseudoInverse,
    PTensorType,
    Rank,
    ReduceOp,
    SearchSorted,
    Solve,
    Sort,
    TensorDot,
    TruthTest,
    UniqueAll,
    UniqueValues,
    body_lines,
    compute,
    lower_ptensor,
)
from tecomp.ptensor.parse import parse
from tests.messages import Diagnostic, diagnostic

ROW = PTensorType((4,), "float64")
SQUARE = PTensorType((4, 4), "float64")
CASES: list[tuple[LibraryOperation, tuple[PTensorType, ...]]] = [
    (Sort(0, descending=True), (ROW,)), (Argsort(-1, stable=False), (SQUARE,)),
    (SearchSorted("right"), (ROW, SQUARE)), (IsIn(), (ROW, SQUARE)), (UniqueValues(), (SQUARE,)),
    (UniqueAll(), (SQUARE,)), (FourierTransformOp("rfftn", (3, None), (0, 1), "ortho"), (SQUARE,)),
    (Matrices("svd"), (SQUARE,)), (Matrices("inv"), (SQUARE,)), (Solve(), (SQUARE, ROW)),
    (PseudoInverse(), (SQUARE,)), (Rank(), (SQUARE, PTensorType((), "float64"))),
]


def applied(op: Any, *types: PTensorType) -> Function:
    names = tuple(f"x{k}" for k in range(len(types)))
    result = op.infer(*types)
    parameters = tuple(map(Parameter, names, types))
    return Function("f", parameters, (Apply("y", op, names, types, result),), ("y",))


def test_a_call_of_a_library_is_seen() -> None:
    function = applied(Sort(0, descending=True), ROW)
    assert str(function.body[0]) == (
        "%y = ptensor.sort(%x0, axis=0, descending=True, stable=True): (ptensor<4xfloat64>) -> "
        "ptensor<4xfloat64>"
    )
    assert body_lines(lower_ptensor(function).body)[0] == (
        "%rtensor = library_call{'numpy.sort'}(%x0[0], axis=0, descending=True, stable=True): "
        "(tensor<4xfloat64>) -> tensor<4xfloat64>"
    )


@pytest.mark.parametrize(("op", "types"), [
    *[case for case in CASES if len(case[0].results(*case[1])) == 1], (ReduceOp("var", (0,), True, 1), (SQUARE,)), (TruthTest("any"), (SQUARE,)),
    (Cumulative("sum", 1, True, "float32"), (SQUARE,)), (FindIndex("argmin"), (SQUARE,)),
    (MatMul(), (SQUARE, ROW)), (TensorDot(((0, 1), (1, 0))), (SQUARE, SQUARE)),
])  # fmt: skip
def test_printed_operations_are_read_back(op: Any, types: tuple[PTensorType, ...]) -> None:
    function = applied(op, *types)
    assert parse(str(function)) == function
    assert hash(op) == hash(parse(str(function)).body[0].op)


@pytest.mark.parametrize(("op", "types"), CASES)
def test_results_have_the_types_that_are_inferred(
    op: LibraryOperation, types: tuple[PTensorType, ...]
) -> None:
    rng = np.random.default_rng(1)
    operands = [np.sort(rng.random(type.size)).reshape(type.shape) for type in types]
    found, expected = compute(op, *operands), op.results(*types)
    for data, type in zip(found, expected, strict=True):
        assert data.dtype == type.dtype
        assert len(data.shape) == type.rank
        assert all(m in (n, None) for n, m in zip(data.shape, type.shape, strict=True))


def test_operations_with_several_results_have_no_single_type() -> None:
    with pytest.raises(ArrayTypeError) as refused:
        Matrices("svd").infer(SQUARE)
    assert diagnostic(refused.value) == (
        Diagnostic("array-type", where="svd", found_count=3)
    )
