"""Vectors of which one known lane takes part: nothing beside that lane is written or counts."""

from __future__ import annotations

import numpy as np

from tecomp.codegen import Kernel
from tecomp.ir.language.dtype import DType
from tecomp.ir.parsing.parser import parse
from tests.strategies.pairwise import pairwise

NARROW = ("bool", "int8", "uint8", "int16", "uint16", "float16", "bfloat16", "int32", "float32")
WIDE = ("int32", "int64", "float32", "float64")


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

        wanted, back = before.copy(), np.full(64, 77).astype(source)
        wanted[8 + lane] = a[lane].astype(kind)
        back[8 + lane] = wanted[8 + lane].astype(source)
        np.testing.assert_array_equal(b, wanted, err_msg=f"lane {lane}")
        np.testing.assert_array_equal(out, back, err_msg=f"lane {lane}")
