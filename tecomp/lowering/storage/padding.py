"""Give the places that hold no element the value that was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tecomp.errors import LowerError
from tecomp.ir.algebra.simplify import simplify
from tecomp.ir.language.expr import Const, Expr, Var, index_value
from tecomp.ir.language.stmt import (
    Buffer,
    BufferRealize,
    BufferStore,
    PadValue,
    PrimFunc,
    Range,
    SeqStmt,
    Stmt,
    seq,
)
from tecomp.ir.traversal.rewrite import bottom_up, substitute
from tecomp.poly.loops.padding import padding_loops


def fill_padding(func: PrimFunc) -> PrimFunc:
    """Write the pad value to every place of a padded buffer that holds no element.

    The places are those that `apply_buffer_transforms` found. Parameters are filled at the start
    of the function, realized buffers at the start of the region, as far as it reaches. Buffers
    without a pad value, and without such places, are left alone. Pad values are gone afterwards,
    so that a second run changes nothing.

    Raises:
        LowerError: the layout maps of a buffer with a pad value are not applied yet.
    """
    pending = {data for data, _ in func.layout_maps}
    for data, _ in func.pad_values:
        if data in pending:
            raise LowerError(
                f"fill_padding: `{data.name}` still has layout maps; run apply_buffer_transforms "
                "first"
            )
    pads = {data: pad for data, pad in func.pad_values if pad.where is not None}
    if not pads:
        return replace(func, pad_values=()) if func.pad_values else func
    body = bottom_up(func.body, lambda node: _realized(node, pads))
    params = [p for p in func.params if isinstance(p, Buffer) and p.data in pads]
    fills = [_fill(p, pads[p.data], [_whole(n) for n in p.shape]) for p in params]
    return simplify(replace(func, body=seq(*fills, body), pad_values=()))


def _whole(extent: int | Expr) -> Range:
    return Range(index_value(0), index_value(extent))


def _realized(node: object, pads: Mapping[Var, PadValue]) -> Stmt | None:
    match node:
        case BufferRealize(buffer, bounds, body) if buffer.data in pads:
            fill = _fill(buffer, pads[buffer.data], list(bounds))
            return replace(node, body=seq(fill, body))
    return None


def _fill(buffer: Buffer, pad: PadValue, bounds: list[Range]) -> Stmt:
    assert pad.where is not None
    # Fresh variables: one buffer may be realized at several places, inside one another's loops.
    indices = tuple(Var(index.name) for index in pad.indices)
    renamed: dict[Var, Expr] = dict(zip(pad.indices, indices, strict=True))
    where, value = substitute(pad.where, renamed), substitute(pad.value, renamed)
    if isinstance(where, Const) and not where.value:
        return SeqStmt(())

    def store(place: tuple[Expr, ...]) -> Stmt:
        at = dict(zip(indices, place, strict=True))
        return BufferStore(buffer, substitute(value, at), place)

    return padding_loops(where, indices, bounds, store)
