"""The statements of an operation, rewritten to the tensors of the program that are its operands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tecomp.compute.tensor import TensorLoad
from tecomp.compute.tensor_intrin import TensorIntrin
from tecomp.ir.language.dtype import INT64
from tecomp.ir.language.expr import BufferLoad, Const, Expr, Var, index_value, logical_and
from tecomp.ir.language.stmt import Buffer, BufferStore, For, ForKind, Stmt, seq
from tecomp.ir.language.tensor_op import TensorOp, Touch
from tecomp.ir.traversal.rewrite import bottom_up, substitute
from tecomp.poly.accesses.tiles import Access, Tile, view

Masks: TypeAlias = "Mapping[int, tuple[tuple[Var, ...], Expr]]"


@dataclass(frozen=True)
class Operands:
    """An operation at one place of the program.

    Attributes:
        tile: its axes and the points of the program.
        accesses: what its operands are: inputs in order, then the output.
        buffers: where they are.
        scalars: values of its scalar parameters.
        loads: the reads of the stage that are its inputs.
    """

    tile: Tile
    accesses: tuple[Access, ...]
    buffers: tuple[Buffer, ...]
    scalars: tuple[Expr, ...]
    loads: tuple[TensorLoad, ...]


def placed(statement: Stmt, intrin: TensorIntrin, place: Operands, masks: Masks) -> Stmt:
    """`statement` of an intrinsic on the tensors of the program.

    Args:
        statement: its body, reset or update.
        intrin: the operation.
        place: where it is.
        masks: for operands by number, which of their elements there are: variables for the
            indices, and a condition.
    """
    views: dict[Var, tuple[Buffer, tuple[Var, ...], tuple[Expr, ...], Any]] = {}
    for k, (own, access) in enumerate(
        zip(intrin.buffers, place.accesses, strict=True)
    ):
        if not access.own and not access.others and own.shape:
            continue  # a reset has no inputs
        names = tuple(Var(f"u{n}") for n in range(len(access.own)))
        views[own.data] = (place.buffers[k], names, view(access, place.tile, names),
                           masks.get(k))  # fmt: skip

    def moved(data: Var, indices: tuple[Expr, ...]) -> tuple[Any, ...]:
        buffer, names, exprs, mask = views[data]
        at = dict(zip(names, indices, strict=True))
        condition = None
        if mask is not None:
            condition = substitute(mask[1], dict(zip(mask[0], indices, strict=True)))
            if isinstance(condition, Const):
                condition = None
        return buffer, tuple(substitute(expr, at) for expr in exprs), condition

    def rule(node: Any) -> Any:
        match node:
            case BufferLoad(buffer, indices, predicate) if buffer.data in views:
                real, at, condition = moved(buffer.data, indices)
                return BufferLoad(real, at, _both(predicate, condition))
            case BufferStore(buffer, value, indices, predicate) if buffer.data in views:
                real, at, condition = moved(buffer.data, indices)
                return BufferStore(real, value, at, _both(predicate, condition))
        return None

    made = bottom_up(statement, rule)
    return substitute(made, dict(zip(intrin.scalar_params, place.scalars, strict=False)))


def operation(statement: Stmt, intrin: TensorIntrin, place: Operands, masks: Masks) -> Stmt:
    """As `placed`, with a note that the machine does it at once, and on which elements."""
    touched: list[Stmt] = []
    out = intrin.buffers[-1]
    for own in intrin.buffers:
        indices = tuple(Var(f"{own.name}{k}", INT64) for k in range(len(own.shape)))
        element = BufferLoad(own, indices)
        moves: list[Stmt] = [Touch(element)] if own is not out or statement is intrin.update else []
        moves += [Touch(element, is_written=True)] if own is out else []
        loops = seq(*moves)
        for var, extent in zip(reversed(indices), reversed(own.shape), strict=True):
            loops = For(var, index_value(0), index_value(extent), ForKind.SERIAL, loops)
        touched.append(loops)
    both = TensorOp(intrin.name, seq(*touched), statement, intrin.tile, intrin.unit, intrin.mode)
    return placed(both, intrin, place, masks)


def _both(a: Expr | None, b: Expr | None) -> Expr | None:
    given = [term for term in (a, b) if term is not None]
    return logical_and(*given) if given else None
