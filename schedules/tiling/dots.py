"""Sums of products by instructions that add up several: which of them, and how it comes about."""

from __future__ import annotations

from tecomp import Target, te
from tecomp.schedules.structure.stages import copied
from tecomp.schedules.tiling.tiles import core_of

_BYTES = ("int8", "uint8")


def dot_types(a: str, b: str, total: str, target: Target) -> tuple[str, str] | None:
    """Types of the short vectors of both factors; None where single numbers are as good.

    Where bytes are multiplied with those of the other sign only, the first factor is moved. Pairs
    of int16 every machine multiplies quickly.

    >>> from tecomp import Core
    >>> cpu = Target("vnni", "", {}, Core(1, 64, 32, (32768,), dots=("uint8*int8",)))
    >>> dot_types("int8", "int8", "int32", cpu), dot_types("int8", "int16", "int32", cpu)
    (('uint8x4', 'int8x4'), ('int16x2', 'int16x2'))
    """
    has = core_of(target).dots
    if total == "int32" and {a, b} <= set(_BYTES):
        if f"{a}*{b}" in has or f"{b}*{a}" in has:
            return f"{a}x4", f"{b}x4"
        if "uint8*int8" in has:
            return ("uint8x4", "int8x4") if b == "int8" else ("int8x4", "uint8x4")
    if total == "int32" and {a, b} <= {*_BYTES, "int16"}:
        return "int16x2", "int16x2"
    if total == "float32" and a == b == "bfloat16" and "bfloat16*bfloat16" in has:
        return "bfloat16x2", "bfloat16x2"
    return None


def lanes_of_dots(types: tuple[str, str] | None) -> int:
    """Terms of the sum that one step of the depth adds up.

    >>> lanes_of_dots(("int16x2", "int16x2")), lanes_of_dots(None)
    (2, 1)
    """
    return int(types[0].rpartition("x")[2]) if types else 1


def add_dots(
    s: te.Schedule, total: te.Tensor, axis: te.IterVar, types: tuple[str, str], output: te.Tensor
) -> tuple[te.Tensor, tuple[te.Tensor, te.Tensor], te.Tensor | None]:
    """Add up dot products along an axis of a sum; conversions before it are not needed then.

    The sum is computed where its elements are used, unless it is the `output` of its loops.

    Returns:
        The sum of dot products, its factors, and what is subtracted from it if one of them was
        moved by 128.
    """
    for factor in total.op.input_tensors:
        if copied(factor) is not None:
            s[factor].compute_inline()
    sums, first, second, *moved = s.into_dots(total, axis, *types)
    if total is not output:
        s[total].compute_inline()
    return sums, (first, second), moved[0] if moved else None


def sum_in_vectors(s: te.Schedule, moved: te.Tensor, width: int) -> None:
    """Add up what a moved factor adds for each column, so many columns at a time."""
    stage = s[moved]
    *outer, j = stage.op.axis
    column, lane = stage.split(j, factor=width)
    stage.reorder(*outer, column, *stage.op.reduce_axis, lane)
    stage.vectorize(lane)
    stage.parallel(stage.fuse(*outer, column))
