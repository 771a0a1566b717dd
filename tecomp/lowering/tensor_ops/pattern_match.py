"""Match loop nests against tensor intrinsics, and bind the operands to buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any, TypeAlias, TypeVar

from tecomp.compute.iter_var import IterVar
from tecomp.compute.reduce import Reduce
from tecomp.compute.tensor import TensorLoad
from tecomp.compute.tensor_intrin import TensorIntrin, length
from tecomp.errors import InternalError
from tecomp.ir.arith.extents import start_and_strides
from tecomp.ir.arith.simplify import simplify
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    BufferLoad,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Not,
    Select,
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
from tecomp.ir.traversal.rewrite import (
    bottom_up,
    children,
    contains,
    fold,
    map_body,
    substitute,
    walk,
)
from tecomp.poly.accesses.tiles import IterationTile, OperandAccess, TileDigit, view

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


_CHAINS = frozenset((
    BinOp.ADD, BinOp.MUL, BinOp.MIN, BinOp.MAX, BinOp.AND, BinOp.OR, BinOp.BITAND, BinOp.BITOR,
    BinOp.BITXOR,
))  # fmt: skip
_MAX_LEAVES = 7
Key: TypeAlias = "tuple[Any, ...]"
E = TypeVar("E", bound=Expr)


@dataclass(frozen=True, slots=True)
class IntrinsicMatch:
    """Correspondence of the reads and scalars of a stage and an intrinsic.

    Attributes:
        loads: Read of the stage for each input of the intrinsic, in input order.
        scalars: Values of the scalar parameters of the intrinsic.
    """

    loads: tuple[TensorLoad, ...]
    scalars: tuple[Expr, ...]


def intrinsic_loads(intrin: TensorIntrin) -> tuple[TensorLoad, ...]:
    """Return the read of each input in the definition of an intrinsic."""
    loads = _distinct_loads(_values(intrin.op.body[0]))
    return tuple(
        next(load for load in loads if load.tensor == tensor) for tensor in intrin.inputs
    )


def pairings(body: Expr, intrin: TensorIntrin) -> Iterator[IntrinsicMatch]:
    """Yield all matches of the stage body `body` with the body of an intrinsic."""
    intrin_body = intrin.op.body[0]
    if isinstance(body, Reduce) and isinstance(intrin_body, Reduce):
        if not same_reducer(body, intrin_body):
            return
    elif isinstance(body, Reduce) or isinstance(intrin_body, Reduce):
        return
    value, intrin_value = _values(body)[0], _values(intrin_body)[0]
    intrin_loads, scalars = intrinsic_loads(intrin), intrin.scalar_params
    goal = _key(intrin_value, _marks(intrin_value, intrin_loads, scalars))
    loads = _distinct_loads((value,))
    if len(loads) != len(intrin_loads) or len(loads) > _MAX_LEAVES:
        return
    for chosen in _in_order(loads, intrin_loads):
        for numbers in _in_order(_numbers(value) if scalars else (), scalars):
            if _key(value, _marks(value, chosen, numbers)) == goal:
                yield IntrinsicMatch(chosen, numbers)


def _in_order(items: Sequence[E], expected: Sequence[Expr]) -> Iterator[tuple[E, ...]]:
    """Yield ordered selections from `items` whose dtypes match `expected`."""
    for chosen in permutations(items, len(expected)):
        if all(a.dtype == b.dtype for a, b in zip(chosen, expected, strict=True)):
            yield chosen


def _marks(
    root: Expr, loads: Sequence[TensorLoad], scalars: Sequence[Expr]
) -> dict[int, Key]:
    """Return match keys of the operands and scalar parameters in an expression, by node id."""
    found: dict[int, Key] = {id(value): ("scalar", k) for k, value in enumerate(scalars)}
    for node in walk(root):
        for k, load in enumerate(loads):
            if isinstance(node, TensorLoad) and structural_equal(node, load):
                found[id(node)] = ("operand", k)
    return found


def same_reducer(a: Reduce, b: Reduce) -> bool:
    """Return whether two reductions have the same combiner and identity."""
    keys = []
    for reduce in (a, b):
        combiner = reduce.combiner
        marks = {id(var): ("side", side) for side, group in enumerate((combiner.lhs, combiner.rhs))
                 for var in group}  # fmt: skip
        keys.append((
            len(combiner.result), *(_key(e, marks) for e in combiner.result),
            *(_key(e, {}) for e in combiner.identity),
        ))
    return bool(keys[0] == keys[1])


def uses_axes(body: Expr) -> IterVar | None:
    """Return an axis that a body uses outside the indices of its reads, or None."""
    nodes = walk(*_values(body), parts=_outside_of_indices)
    return next((node for node in nodes if isinstance(node, IterVar)), None)


def _values(body: Expr) -> tuple[Expr, ...]:
    return body.source if isinstance(body, Reduce) else (body,)


def _outer_nodes(root: Expr) -> Iterator[Any]:
    """Iterate over the nodes of an expression outside the indices of reads."""
    return walk(root, parts=_outside_of_indices)


def _outside_of_indices(node: Any) -> Sequence[Any]:
    return () if isinstance(node, TensorLoad) else children(node)


def _distinct_loads(values: Sequence[Expr]) -> list[TensorLoad]:
    found: list[TensorLoad] = []
    for value in values:
        for node in _outer_nodes(value):
            if isinstance(node, TensorLoad) and not any(structural_equal(node, other) for other
                    in found):
                found.append(node)
    return found


def _numbers(root: Expr) -> list[Expr]:
    """Return the subexpressions without reads and axes, which are uniform for all elements."""
    is_number: dict[int, bool] = {}

    def combine(node: Any, parts: list[bool]) -> bool:
        found = all(parts) and not isinstance(node, TensorLoad | IterVar)
        is_number[id(node)] = found
        return found

    fold(root, combine, _outside_of_indices)
    return [node for node in _outer_nodes(root) if is_number[id(node)]]


def _key(root: Expr, marks: Mapping[int, Key]) -> Key:
    """Return a key that is equal for expressions equal up to the order of operands."""

    def inside(node: Any) -> Sequence[Any]:
        return () if id(node) in marks or isinstance(node, TensorLoad) else children(node)

    def combine(node: Any, parts: list[Key]) -> Key:
        if id(node) in marks:
            return marks[id(node)]
        match node:
            case Const(value, dtype):
                return ("const", repr(value), str(dtype))
            case Binary(op) if op in _CHAINS:
                head = ("chain", op.name, str(node.dtype))
                flat = [p for part in parts for p in (part[3:] if part[:3] == head else (part,))]
                return (*head, *sorted(flat, key=repr))
            case Call("dot"):
                return ("dot", *sorted(parts, key=repr))
            case Binary() | Compare() | Call() | Cast() | Select() | Not():
                return (type(node).__name__, _describe_value(node), str(node.dtype), *parts)
        return ("other", id(node))

    return fold(root, combine, inside)


def _describe_value(node: Any) -> str:
    match node:
        case Binary(op) | Compare(op):
            return str(op.name)
        case Call(name):
            return str(name)
    return ""


@dataclass(frozen=True, slots=True)
class SharedDigit:
    """Digit of an intrinsic axis that corresponds to a digit of a program dimension.

    `(var // weight) % extent` counts steps of `stride` along dimension `axis`.
    """

    var: IterVar
    weight: int
    extent: int
    axis: int
    stride: int


def correspondences(
    axes: Sequence[IterVar], digits: Sequence[TileDigit]
) -> Iterator[tuple[SharedDigit, ...]]:
    """Yield the correspondences between intrinsic axes and digits of the program.

    An axis can correspond to several digits, and a digit to several axes. Correspondences that
    probably follow the memory order come first: whole axes, and the last axes of the intrinsic
    matched with the last axes of the program.
    """
    start = tuple((axis, 1, length(axis)) for axis in axes if axis.extent != 1)
    visited: set[frozenset[SharedDigit]] = set()
    worklist: list[tuple[Any, tuple[TileDigit, ...], tuple[SharedDigit, ...]]]
    worklist = [(start, tuple(digits), ())]
    while worklist:
        axes_left, digits_left, pieces = worklist.pop()
        if frozenset(pieces) in visited:
            continue
        visited.add(frozenset(pieces))
        if not axes_left and not digits_left:
            yield pieces
            continue
        steps = [
            (-n, axis_rest is not None, -digit.axis, k,
             (_drop(axes_left, n, axis_rest), _drop(digits_left, k, digit_rest), (*pieces, piece)))
            for k, digit in enumerate(digits_left)
            for n, (axis, weight, extent) in enumerate(axes_left)
            if (step := _step(axis, weight, extent, digit)) is not None
            for piece, axis_rest, digit_rest in [step]
        ]
        worklist += [state for *_, state in sorted(steps, key=lambda s: s[:-1], reverse=True)]


def _step(
    axis: IterVar, weight: int, extent: int, digit: TileDigit
) -> tuple[SharedDigit, Any, TileDigit | None] | None:
    """Match the fastest-varying parts of an axis and a digit; return the match and both rests."""
    count = min(extent, digit.extent)
    if extent % count or digit.extent % count:
        return None
    piece = SharedDigit(axis, weight, count, digit.axis, digit.stride)
    axis_rest = (axis, weight * count, extent // count) if extent > count else None
    digit_rest = None
    if digit.extent > count:
        digit_rest = TileDigit(digit.axis, digit.stride * count, digit.extent // count)
    return piece, axis_rest, digit_rest


def _drop(items: tuple[Any, ...], position: int, instead: Any) -> tuple[Any, ...]:
    inserted = () if instead is None else (instead,)
    return (*items[:position], *inserted, *items[position + 1 :])
