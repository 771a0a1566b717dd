"""What operations pass to functions: memory of its own for what does not lie as a call takes it.

A call takes arrays with strides, and a C function arrays without gaps. What is masked, lies in a
layout, or has gaps where none may be, is copied before the call and back after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from tecomp.errors import InternalError
from tecomp.ir.algebra.arrays import start_and_strides
from tecomp.ir.algebra.simplify import simplify
from tecomp.ir.language.equal import same
from tecomp.ir.language.expr import BinOp, BufferLoad, Const, Expr, Var, binary, index_value
from tecomp.ir.language.outside_call import (
    ArrayArgument,
    Convention,
    OutsideCall,
    array_argument,
)
from tecomp.ir.language.stmt import (
    Allocate,
    Buffer,
    BufferStore,
    Stmt,
    over_elements,
    seq,
)
from tecomp.ir.traversal.rewrite import bottom_up, substitute, walk

Lies: TypeAlias = "Callable[[ArrayArgument, Convention], bool]"
"""Whether an array lies as a function takes it."""


def with_copies(statement: Stmt, lies: Lies) -> Stmt:
    """`statement` with memory of its own for arrays that do not lie as their functions take them.

    Its calls stand on buffers of the operation; so do the copies.
    """
    if not any(isinstance(node, OutsideCall) for node in walk(statement)):
        return statement

    def rule(node: Any) -> Stmt | None:
        return _copied(node, lies) if isinstance(node, OutsideCall) else None

    return bottom_up(statement, rule)


def lies_as_taken(
    array: ArrayArgument, convention: Convention, shape: Sequence[Any], place: Sequence[Expr]
) -> bool:
    """Whether elements at `place` of a row-major tensor of `shape` are an array for a function.

    Args:
        array: what the function gets; its variables are those in `place`.
        convention: of the function.
        shape: of the tensor.
        place: the indices of the element.
    """
    flat: Expr = Const(0)
    for index, extent in zip(place, shape, strict=True):
        flat = binary(BinOp.ADD, binary(BinOp.MUL, flat, index_value(extent)), index)
    line = Buffer("line", (1,), array.place.buffer.dtype)
    try:
        _, strides = start_and_strides(
            array_argument(line, array.variables, array.shape, (flat,), is_written=False)
        )
    except InternalError:
        return False
    if convention is Convention.C:
        return _has_no_gaps(strides, array.shape)
    return not any(isinstance(stride, Const) and stride.value < 0 for stride in strides)


def _has_no_gaps(strides: Sequence[Expr], shape: Sequence[Expr]) -> bool:
    expected: Expr = Const(1)
    for stride, extent in zip(reversed(strides), reversed(shape), strict=True):
        is_one = isinstance(extent, Const) and extent.value == 1
        if not is_one and not same(simplify(stride), simplify(expected)):
            return False
        expected = binary(BinOp.MUL, expected, extent)
    return True


def _copied(call: OutsideCall, lies: Lies) -> Stmt | None:
    """The call on copies of what does not lie as it has to; None if all does."""
    arguments, before, after, memory = list(call.arguments), [], [], []
    for k, each in enumerate(call.arguments):
        if not isinstance(each, ArrayArgument) or lies(each, call.convention):
            continue
        plain = Buffer(f"{each.place.buffer.name}.plain", each.shape, each.place.dtype)
        memory.append(plain)
        place, at = _element(each)
        before.append(over_elements(at, each.shape, BufferStore(plain, place, at)))
        if each.is_written:
            back = BufferStore(place.buffer, BufferLoad(plain, at), place.indices)
            after.append(over_elements(at, each.shape, back))
        arguments[k] = array_argument(
            plain, each.variables, each.shape, each.variables, is_written=each.is_written)
    if not memory:
        return None
    made = seq(*before, replace(call, arguments=tuple(arguments)), *after)
    for plain in memory:
        made = Allocate(plain, made)
    return made


def _element(array: ArrayArgument) -> tuple[BufferLoad, tuple[Var, ...]]:
    """An element where it is, and its indices: variables of its own."""
    at = tuple(Var(var.name, var.dtype) for var in array.variables)
    return substitute(array.place, dict(zip(array.variables, at, strict=True))), at

