"""Bind intrinsic operands to buffers; copy them when needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from tecomp.compute.tensor import TensorLoad
from tecomp.compute.tensor_intrin import TensorIntrin
from tecomp.errors import InternalError
from tecomp.ir.arith.extents import start_and_strides
from tecomp.ir.arith.simplify import simplify
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import (
    BinOp,
    BufferLoad,
    Const,
    Expr,
    Var,
    binary,
    index_value,
    logical_and,
)
from tecomp.ir.nodes.stmt import (
    Allocate,
    ArrayArgument,
    Buffer,
    BufferStore,
    CallingConvention,
    ExternCall,
    For,
    ForKind,
    OperandTransfer,
    PrimFunc,
    Stmt,
    TensorOp,
    array_argument,
    loops_over_elements,
    seq,
)
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.ir.traversal.rewrite import bottom_up, contains, map_body, substitute
from tecomp.poly.accesses.tiles import IterationTile, OperandAccess, view

Lies: TypeAlias = "Callable[[ArrayArgument, CallingConvention], bool]"
"""Predicate: whether an array has the strides that the calling convention requires."""


def copy_noncontiguous_operands(statement: Stmt, is_in_place: Lies) -> Stmt:
    """Insert packing copies for call arguments that do not have the required strides.

    Calls and copies refer to the buffers of the intrinsic.
    """
    if not contains(ExternCall, statement):
        return statement

    def rule(node: Any) -> Stmt | None:
        return _copy(node, is_in_place) if isinstance(node, ExternCall) else None

    return bottom_up(statement, rule)


def has_required_strides(
    array: ArrayArgument, convention: CallingConvention, shape: Sequence[Any], point: Sequence[Expr]
) -> bool:
    """Return whether a part of a row-major tensor has the strides that a function requires.

    C functions require contiguous arrays; other conventions require nonnegative strides.

    Args:
        array: Array argument of the function; its variables occur in `point`.
        convention: Calling convention of the function.
        shape: Shape of the tensor.
        point: Tensor indices of an array element.
    """
    flat: Expr = Const(0)
    for index, extent in zip(point, shape, strict=True):
        flat = binary(BinOp.ADD, binary(BinOp.MUL, flat, index_value(extent)), index)
    line = Buffer("line", (1,), array.element.buffer.dtype)
    try:
        _, strides = start_and_strides(
            array_argument(line, array.variables, array.shape, (flat,), is_written=False)
        )
    except InternalError:
        return False
    if convention is CallingConvention.C:
        return _has_no_gaps(strides, array.shape)
    return not any(isinstance(stride, Const) and stride.value < 0 for stride in strides)


def _has_no_gaps(strides: Sequence[Expr], shape: Sequence[Expr]) -> bool:
    expected: Expr = Const(1)
    for stride, extent in zip(reversed(strides), reversed(shape), strict=True):
        is_one = isinstance(extent, Const) and extent.value == 1
        if not is_one and not structural_equal(simplify(stride), simplify(expected)):
            return False
        expected = binary(BinOp.MUL, expected, extent)
    return True


def _copy(call: ExternCall, is_in_place: Lies) -> Stmt | None:
    """Return the call with packing copies of its arguments; None if no copy is required."""
    arguments, before, after, memory = list(call.arguments), [], [], []
    for k, arg in enumerate(call.arguments):
        if not isinstance(arg, ArrayArgument) or is_in_place(arg, call.convention):
            continue
        packed = Buffer(f"{arg.element.buffer.name}.plain", arg.shape, arg.element.dtype)
        memory.append(packed)
        element, idx = _element(arg)
        before.append(loops_over_elements(idx, arg.shape, BufferStore(packed, element, idx)))
        if arg.is_written:
            copy_back = BufferStore(element.buffer, BufferLoad(packed, idx), element.indices)
            after.append(loops_over_elements(idx, arg.shape, copy_back))
        arguments[k] = array_argument(
            packed, arg.variables, arg.shape, arg.variables, is_written=arg.is_written)
    if not memory:
        return None
    result = seq(*before, replace(call, arguments=tuple(arguments)), *after)
    for packed in memory:
        result = Allocate(packed, result)
    return result


def _element(array: ArrayArgument) -> tuple[BufferLoad, tuple[Var, ...]]:
    """Return a load of an array element, and the fresh variables of its indices."""
    fresh = tuple(Var(var.name, var.dtype) for var in array.variables)
    return substitute(array.element, dict(zip(array.variables, fresh, strict=True))), fresh


def expand_tensor_ops(func: PrimFunc) -> PrimFunc:
    """Replace each `TensorOp` in `func` by its body.

    Cost counting runs on the function before this pass; code generation never sees a `TensorOp`.
    """
    if not contains(TensorOp, func.body):
        return func
    return map_body(func, lambda body: bottom_up(body, _body))


def _body(node: Any) -> Stmt | None:
    return node.body if isinstance(node, TensorOp) else None


Masks: TypeAlias = "Mapping[int, tuple[tuple[Var, ...], Expr]]"


@dataclass(frozen=True)
class BoundOperands:
    """Operands of a tensor intrinsic, bound to buffers of the program.

    Attributes:
        tile: Axes of the intrinsic and the points of the program.
        accesses: Accesses of the operands: inputs in order, then the output.
        buffers: Buffers of the operands.
        scalars: Values of the scalar parameters.
        loads: Reads of the stage that are the inputs.
        are_rows: Whether the memory of each operand is contiguous in row-major order.
    """

    tile: IterationTile
    accesses: tuple[OperandAccess, ...]
    buffers: tuple[Buffer, ...]
    scalars: tuple[Expr, ...]
    loads: tuple[TensorLoad, ...]
    are_rows: tuple[bool, ...]


@dataclass(frozen=True)
class _OperandView:
    """Operand of a tensor intrinsic in program memory.

    Attributes:
        buffer: Buffer of the program.
        names: Variables for the indices of the operand.
        exprs: Buffer indices as functions of `names`.
        mask: Variables and condition of valid elements. None: all elements are valid.
        is_in_rows: Whether the memory is contiguous in row-major order.
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

    def lies(self, array: ArrayArgument, convention: CallingConvention) -> bool:
        """Return whether a function can take the array in place, without a packing copy."""
        indices = self.at(array.element.indices)
        return self.mask is None and self.is_in_rows and has_required_strides(
            array, convention, self.buffer.shape, indices)


def _views(intrin: TensorIntrin, bound: BoundOperands, masks: Masks) -> dict[Var, _OperandView]:
    views: dict[Var, _OperandView] = {}
    for k, (buffer, access) in enumerate(zip(intrin.buffers, bound.accesses, strict=True)):
        if not access.operand_indices and not access.tensor_indices and buffer.shape:
            continue  # a reset has no inputs
        names = tuple(Var(f"u{n}") for n in range(len(access.operand_indices)))
        exprs = view(access, bound.tile, names)
        assert buffer.data is not None
        views[buffer.data] = _OperandView(
            bound.buffers[k], names, exprs, masks.get(k), bound.are_rows[k])
    return views


def bind_statement(
    statement: Stmt, intrin: TensorIntrin, bound: BoundOperands, masks: Masks
) -> Stmt:
    """Rewrite `statement` of an intrinsic to the buffers of the program.

    Args:
        statement: Body, reset or update of the intrinsic.
        intrin: Tensor intrinsic.
        bound: Bound operands.
        masks: Variables and condition of valid elements, by operand number.
    """
    views = _views(intrin, bound, masks)

    def rule(node: Any) -> Any:
        match node:
            case BufferLoad(buffer, indices, predicate) if buffer.data in views:
                view = views[buffer.data]
                mask = _conjunction(predicate, view.condition(indices))
                return BufferLoad(view.buffer, view.at(indices), mask)
            case BufferStore(buffer, value, indices, predicate) if buffer.data in views:
                view = views[buffer.data]
                mask = _conjunction(predicate, view.condition(indices))
                return BufferStore(view.buffer, value, view.at(indices), mask)
        return None

    def is_in_place(array: ArrayArgument, convention: CallingConvention) -> bool:
        view = views.get(array.element.buffer.data)
        return view is None or view.lies(array, convention)

    result = bottom_up(copy_noncontiguous_operands(statement, is_in_place), rule)
    return substitute(result, dict(zip(intrin.scalar_params, bound.scalars, strict=False)))


def operation(statement: Stmt, intrin: TensorIntrin, bound: BoundOperands, masks: Masks) -> Stmt:
    """Return `bind_statement` wrapped in a `TensorOp` that lists the elements it accesses."""
    touched: list[Stmt] = []
    out = intrin.buffers[-1]
    for buffer in intrin.buffers:
        indices = tuple(Var(f"{buffer.name}{k}", INT64) for k in range(len(buffer.shape)))
        element = BufferLoad(buffer, indices)
        moves: list[Stmt] = [
            OperandTransfer(element)] if buffer is not out or statement is intrin.update else []
        moves += [OperandTransfer(element, is_written=True)] if buffer is out else []
        loops = seq(*moves)
        for var, extent in zip(reversed(indices), reversed(buffer.shape), strict=True):
            loops = For(var, index_value(0), index_value(extent), ForKind.SERIAL, loops)
        touched.append(loops)
    node = TensorOp(intrin.name, seq(*touched), statement, intrin.tile, intrin.unit, intrin.mode)
    return bind_statement(node, intrin, bound, masks)


def _conjunction(a: Expr | None, b: Expr | None) -> Expr | None:
    terms = [term for term in (a, b) if term is not None]
    return logical_and(*terms) if terms else None
