"""The statements of an operation, rewritten to the tensors of the program that are its operands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tecomp.compute.tensor import TensorLoad
from tecomp.compute.tensor_intrin import TensorIntrin
from tecomp.ir.language.dtype import INT64
from tecomp.ir.language.expr import BufferLoad, Const, Expr, Var, index_value, logical_and
from tecomp.ir.language.outside_call import ArrayArgument, Convention
from tecomp.ir.language.stmt import Buffer, BufferStore, For, ForKind, Stmt, seq
from tecomp.ir.language.tensor_op import TensorOp, Touch
from tecomp.ir.traversal.rewrite import bottom_up, substitute
from tecomp.lowering.tensor_ops.calls import lies_as_taken, with_copies
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
        are_rows: for each operand whether its memory is in row-major order without gaps.
    """

    tile: Tile
    accesses: tuple[Access, ...]
    buffers: tuple[Buffer, ...]
    scalars: tuple[Expr, ...]
    loads: tuple[TensorLoad, ...]
    are_rows: tuple[bool, ...]


@dataclass(frozen=True)
class _View:
    """An operand in the memory of the program.

    Attributes:
        buffer: the memory.
        names: variables for the operand's own indices.
        exprs: the indices of the memory, of those.
        mask: which of its elements there are; None for all.
        is_in_rows: whether the memory is in row-major order without gaps.
    """

    buffer: Buffer
    names: tuple[Var, ...]
    exprs: tuple[Expr, ...]
    mask: tuple[tuple[Var, ...], Expr] | None
    is_in_rows: bool

    def at(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        values = dict(zip(self.names, indices, strict=True))
        return tuple(substitute(expr, values) for expr in self.exprs)

    def condition(self, indices: tuple[Expr, ...]) -> Expr | None:
        if self.mask is None:
            return None
        found = substitute(self.mask[1], dict(zip(self.mask[0], indices, strict=True)))
        return None if isinstance(found, Const) else found

    def lies(self, array: ArrayArgument, convention: Convention) -> bool:
        """Whether a function takes the array where it is."""
        at = self.at(array.place.indices)
        return self.mask is None and self.is_in_rows and lies_as_taken(
            array, convention, self.buffer.shape, at)


def _views(intrin: TensorIntrin, place: Operands, masks: Masks) -> dict[Var, _View]:
    views: dict[Var, _View] = {}
    for k, (own, access) in enumerate(zip(intrin.buffers, place.accesses, strict=True)):
        if not access.own and not access.others and own.shape:
            continue  # a reset has no inputs
        names = tuple(Var(f"u{n}") for n in range(len(access.own)))
        exprs = view(access, place.tile, names)
        assert own.data is not None
        views[own.data] = _View(
            place.buffers[k], names, exprs, masks.get(k), place.are_rows[k])
    return views


def placed(statement: Stmt, intrin: TensorIntrin, place: Operands, masks: Masks) -> Stmt:
    """`statement` of an intrinsic on the tensors of the program.

    Args:
        statement: its body, reset or update.
        intrin: the operation.
        place: where it is.
        masks: for operands by number, which of their elements there are: variables for the
            indices, and a condition.
    """
    views = _views(intrin, place, masks)

    def rule(node: Any) -> Any:
        match node:
            case BufferLoad(buffer, indices, predicate) if buffer.data in views:
                seen = views[buffer.data]
                there = _both(predicate, seen.condition(indices))
                return BufferLoad(seen.buffer, seen.at(indices), there)
            case BufferStore(buffer, value, indices, predicate) if buffer.data in views:
                seen = views[buffer.data]
                there = _both(predicate, seen.condition(indices))
                return BufferStore(seen.buffer, value, seen.at(indices), there)
        return None

    def lies(array: ArrayArgument, convention: Convention) -> bool:
        seen = views.get(array.place.buffer.data)
        return seen is None or seen.lies(array, convention)

    made = bottom_up(with_copies(statement, lies), rule)
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
