"""Tensors of constant values, and sums of several tensors."""

from __future__ import annotations

import numpy as np
import pytest

import tecomp
from tecomp import te, topi
from tecomp.ir import SCALARS
from tests.messages import Diagnostic, diagnostic
from tests.topi.running import SHAPES, assert_close, assert_results, given, numpy_type, values


@pytest.mark.parametrize("dtype", SCALARS)
def test_one_value(dtype: str) -> None:
    a = values((2, 3), dtype)
    A = given(a)
    expected = np.full((2, 3), 1, numpy_type(dtype))

    assert_results({topi.full_like(A, 1): expected}, {A: a})
    program = tecomp.compile(topi.full((2, 3), dtype, 1), [])()
    assert_close(program, expected)


@pytest.mark.parametrize("shape", SHAPES)
def test_any_shape(shape: tuple[int, ...]) -> None:
    a = values(shape, "float32")
    A = given(a)

    assert_results({
        topi.full_like(A, 2.5): np.full(shape, 2.5, "float32"),
        topi.elemwise_sum([A, A, A]): 3 * a,
    }, {A: a})


@pytest.mark.parametrize(("n", "m", "k"), [(3, None, 0), (3, 5, 1), (4, 2, -2), (0, 3, 0), (2, 2, 9)])
def test_diagonals(n: int, m: int | None, k: int) -> None:
    program = tecomp.compile(topi.eye(n, m, k, "int8"), [])()

    assert_close(program, np.eye(n, m, k, "int8"))


def test_refusals() -> None:
    with pytest.raises(tecomp.TypeMismatchError) as caught:
        topi.full((3,), "uint8", 256)
    assert diagnostic(caught.value) == (
        Diagnostic(
            "literal", where="topi.full", subject="fill_value",
            reason="256 is out of range for uint8 (0 to 255)",
        )
    )
    with pytest.raises(tecomp.TypeMismatchError) as caught:
        topi.full_like(te.placeholder((3,), "int32", name="A"), 2.5)
    assert diagnostic(caught.value) == (
        Diagnostic(
            "literal", where="topi.full_like", subject="fill_value",
            reason="2.5 is not a valid int32; pass a representable number, or use another dtype",
        )
    )
    for extents, subject in (((-1,), "n"), ((2, -3), "m")):
        with pytest.raises(tecomp.DefinitionError) as short:
            topi.eye(*extents)
        assert diagnostic(short.value) == (
            Diagnostic("invalid-value", where="topi.eye", subject=subject, value=extents[-1], minimum=0)
        )
    with pytest.raises(tecomp.DefinitionError) as empty:
        topi.elemwise_sum([])
    assert diagnostic(empty.value) == Diagnostic("missing-input", where="topi.elemwise_sum", subject="xs")
    with pytest.raises(tecomp.TypeMismatchError) as single:
        topi.elemwise_sum(te.placeholder((3,), name="A"))  # type: ignore[arg-type]
    assert diagnostic(single.value) == (
        Diagnostic(
            "invalid-type", where="topi.elemwise_sum", subject="xs",
            values="Tensor(A, shape=(3,), dtype=float32)", type="Tensor",
        )
    )
