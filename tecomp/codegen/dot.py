"""Sums of the products of neighbouring numbers, in the form that LLVM knows instructions for.

Of int16 that is `vpmaddwd`, which adds up two products, and together with an addition `vpdpwssd`;
four bytes are two such pairs. Nothing here needs an instruction that a machine may not have.
"""

from __future__ import annotations

from tecomp.codegen.emit import Code
from tecomp.codegen.types import shuffle_mask, splat, suffix, vector_of
from tecomp.ir.dtype import DType


def dot(code: Code, a_type: DType, b_type: DType, a: str, b: str) -> str:
    """For each 32 bits of two vectors, the sum of the products of the numbers in them."""
    lanes = a_type.lanes * a_type.bits // 32
    if a_type.is_float:
        return dot_of_bfloats(code, lanes, a, b, "")
    if a_type.bits == 16:
        return _dot_of_shorts(code, lanes, a, b)
    even, odd = (
        _dot_of_shorts(code, lanes, x, y)
        for x, y in zip(_bytes(code, a_type, a), _bytes(code, b_type, b), strict=True)
    )
    return code.op(f"add {vector_of('i32', lanes)} {even}, {odd}")


def _bytes(code: Code, dtype: DType, value: str) -> tuple[str, str]:
    """The lower and the upper bytes of all pairs, as int16."""
    kind = vector_of("i16", dtype.lanes // 2)
    eight = splat("8", "i16", dtype.lanes // 2)
    down = "ashr" if dtype.kind == "int" else "lshr"
    pairs = code.op(f"bitcast {vector_of('i8', dtype.lanes)} {value} to {kind}")
    raised = code.op(f"shl {kind} {pairs}, {eight}")
    lower = code.op(f"{down} {kind} {raised}, {eight}")
    return lower, code.op(f"{down} {kind} {pairs}, {eight}")


def _dot_of_shorts(code: Code, lanes: int, a: str, b: str) -> str:
    short, wide = vector_of("i16", 2 * lanes), vector_of("i32", 2 * lanes)
    x, y = (code.op(f"sext {short} {value} to {wide}") for value in (a, b))
    products = code.op(f"mul {wide} {x}, {y}")
    kind = vector_of("i32", lanes)
    if lanes == 1:
        pair = [code.op(f"extractelement {wide} {products}, i64 {k}") for k in (0, 1)]
    else:
        masks = [shuffle_mask(list(range(k, 2 * lanes, 2))) for k in (0, 1)]
        pair = [
            code.op(f"shufflevector {wide} {products}, {wide} poison, {mask}") for mask in masks
        ]
    return code.op(f"add {kind} {pair[0]}, {pair[1]}")


def dot_of_bfloats(code: Code, lanes: int, a: str, b: str, start: str) -> str:
    """The sums of two products each, added to `start` if there is one.

    A bfloat16 is the upper half of a float32, and the product of two is exact in float32.
    """
    real, bits = vector_of("float", lanes), vector_of("i32", lanes)
    halves = vector_of("i16", 2 * lanes)
    low: list[str] = []
    high: list[str] = []
    for value in (a, b):
        pair = code.op(f"bitcast {halves} {value} to {bits}")
        lower = code.op(f"shl {bits} {pair}, {splat('16', 'i32', lanes)}")
        upper = code.op(f"and {bits} {pair}, {splat('-65536', 'i32', lanes)}")
        low.append(code.op(f"bitcast {bits} {lower} to {real}"))
        high.append(code.op(f"bitcast {bits} {upper} to {real}"))
    fused = f"llvm.fmuladd.{suffix(real)}"
    if start:
        first = code.call(real, fused, [(real, low[0]), (real, low[1]), (real, start)])
    else:
        first = code.op(f"fmul {real} {low[0]}, {low[1]}")
    return code.call(real, fused, [(real, high[0]), (real, high[1]), (real, first)])
