"""Vectors of every length do not read or write elements before or after them."""

from __future__ import annotations

import platform
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tecomp.ir import (
    SCALARS,
    Buffer,
    BufferLoad,
    BufferStore,
    Cast,
    Const,
    DType,
    For,
    ForKind,
    PrimFunc,
    Ramp,
    Stmt,
    Var,
    evaluate,
    seq,
)
from tests.strategies.arrays import Array, assert_equal
from tests.strategies.draws import Draw
from tests.strategies.fenced import PROCESSORS, Fenced, kernel_for

MOST = 70
ROWS = 2

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="memory is fenced by mprotect, and code is for processors of this family",
)


def converted_rows(source: DType, target: DType, counts: list[int], step: int) -> PrimFunc:
    """Build a function that converts rows of each count at once, read with stride `step`."""
    params: list[Buffer] = []
    body: list[Stmt] = []
    i = Var("i")
    for count in counts:
        reach = abs(step) * (count - 1) + 1
        a = Buffer(f"A{count}", (ROWS * reach,), source)
        b = Buffer(f"B{count}", (ROWS * count,), target)
        first = i * reach + (reach - 1 if step < 0 else 0)
        read: Any = first if count == 1 else Ramp(first, Const(step), count)
        place: Any = i * count if count == 1 else Ramp(i * count, Const(1), count)
        kind = target.with_lanes(count)
        body.append(BufferStore(b, Cast(kind, BufferLoad(a, (read,))), (place,)))
        params += [a, b]
    loop = For(i, Const(0), Const(ROWS), ForKind.SERIAL, seq(*body))
    return PrimFunc("rows", tuple(params), loop)


def numbers(dtype: DType, count: int) -> Array:
    """Return values from 1 to 97, which all dtypes represent."""
    return (np.arange(count) % 97 + 1).astype(dtype.numpy)


def check(source: DType, target: DType, counts: list[int], step: int, cpu: str) -> None:
    """Run on fenced memory and compare with the interpreter."""
    func = converted_rows(source, target, counts, step)
    arrays = [numbers(p.dtype, int(str(p.shape[0]))) for p in func.params if isinstance(p, Buffer)]
    fenced = [Fenced(array) for array in arrays]
    kernel_for(func, cpu)(*(item.array for item in fenced))
    evaluate(func, arrays)
    for item, expected, param in zip(fenced, arrays, func.params, strict=True):
        item.check()
        assert_equal(item.array, expected, param.name)


@st.composite
def lengths(draw: Draw) -> list[int]:
    return sorted(draw(st.sets(st.integers(1, MOST), min_size=4, max_size=4)))


@given(st.sampled_from(SCALARS), st.sampled_from(SCALARS), lengths(),
       st.sampled_from((1, 1, 1, -1, 2, 3, -2)), st.sampled_from(PROCESSORS))
def test_conversions_touch_their_own_elements(
    source: str, target: str, counts: list[int], step: int, cpu: str
) -> None:
    check(DType(source), DType(target), counts, step, cpu)


def test_nine_doubles_become_eighteen_bytes() -> None:
    check(DType("float64"), DType("bfloat16"), [9], 1, "")
