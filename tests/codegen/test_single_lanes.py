"""Vectors with one known active lane: other lanes are neither written nor evaluated."""

from __future__ import annotations

import numpy as np
import pytest

from tecomp.codegen import Kernel
from tecomp.ir import DType, parse
from tests.strategies.pairwise import pairwise

NARROW = ("bool", "int8", "uint8", "int16", "uint16", "float16", "bfloat16", "int32", "float32")
WIDE = ("int32", "int64", "float32", "float64")


@pytest.mark.exhaustive(keep=9)
@pairwise(dtype=NARROW, source=WIDE, lanes=[2, 4, 7, 8, 16, 33])
def test_one_lane_is_stored_and_loaded(dtype: str, source: str, lanes: int) -> None:
    kind = DType(dtype).numpy
    for lane in dict.fromkeys((0, 1, lanes // 2, lanes - 1)):
        kernel = Kernel(parse(f'''def f(A: Buffer("{source}", (64,)), B: Buffer("{dtype}", (64,)), O: Buffer("{source}", (64,))):
    with Let(ramp(0, 1, {lanes}) == broadcast({lane}, {lanes})) as mask:
        store(B[ramp(8, 1, {lanes})], cast("{dtype}x{lanes}", A[ramp(0, 1, {lanes})]), where=mask)
    with Let(ramp(0, 1, {lanes}) == broadcast({lane}, {lanes})) as mask:
        store(O[ramp(8, 1, {lanes})], cast("{source}x{lanes}", B.load(ramp(8, 1, {lanes}), where=mask)), where=mask)
'''))
        a = (np.arange(64) % 2 + 1).astype(source)
        before = (np.arange(64) % 2).astype(kind)
        b, out = before.copy(), np.full(64, 77).astype(source)
        kernel(a, b, out)

        expected, back = before.copy(), np.full(64, 77).astype(source)
        expected[8 + lane] = a[lane].astype(kind)
        back[8 + lane] = expected[8 + lane].astype(source)
        np.testing.assert_array_equal(b, expected, err_msg=f"lane {lane}")
        np.testing.assert_array_equal(out, back, err_msg=f"lane {lane}")


@pytest.mark.exhaustive(keep=13)
@pairwise(dtype=NARROW, source=WIDE, extent=[8, 9, 11, 13, 15, 17, 25, 32], kind=["all", "some", "pairs"])
def test_loops_vectorized_by_llvm_store_their_own_elements(
    dtype: str, source: str, extent: int, kind: str
) -> None:
    """The last vector has a single lane, or a condition leaves a single lane."""
    last = extent // 2 + 1 if kind == "some" else extent
    where = f"if i < {last}:\n            " if kind == "some" else ""
    other = "P[i] = popcount(P[i])\n        " if kind == "pairs" else ""
    kernel = Kernel(parse(f'''def f(A: Buffer("{source}", (64,)), P: Buffer("int64", (64,)), B: Buffer("{dtype}", (64,))):
    for i in range({extent}):
        {other}{where}B[i + 8] = select(i <= 3, cast("{dtype}", 1), cast("{dtype}", A[i]))
'''))
    a = (np.arange(64) % 2).astype(source)
    b = (np.arange(64) % 3 % 2).astype(DType(dtype).numpy)
    expected = b.copy()
    expected[8 : 8 + last] = np.where(np.arange(last) <= 3, 1, a[:last]).astype(expected.dtype)

    kernel(a, np.ones(64, np.int64), b)

    np.testing.assert_array_equal(b, expected)
