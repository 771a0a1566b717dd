"""Index expressions and symbolic sizes of stages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, TypeAlias, TypeVar

from tecomp.compute.access_relations import variables_in, variables_of
from tecomp.compute.operation import ComputeOp
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.errors import LowerError
from tecomp.ir.arith.extents import product
from tecomp.ir.nodes.argument_checks import dictionary_of
from tecomp.ir.nodes.dtype import BOOL, INT32, INT64
from tecomp.ir.nodes.expr import (
    Binary,
    BufferLoad,
    Call,
    Cast,
    Compare,
    Expr,
    Select,
    Var,
    binary,
    cast,
    compare,
    if_then_else,
    index_value,
    select,
)
from tecomp.ir.nodes.printer import identifier, take_name
from tecomp.ir.nodes.stmt import Buffer, Extent
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.ir.traversal.rewrite import (
    bottom_up,
    cast_for_variable,
    children,
    free_variables,
    post_order,
    replace_children,
    walk,
)
from tecomp.scheduling.state import LayoutTransform, ScheduleState, Split, StageState

V = TypeVar("V", bound=Var)
LoadOf = Callable[[TensorLoad, tuple[Expr, ...]], BufferLoad]


def value_of(expr: Expr, values: Mapping[V, Expr], load: LoadOf) -> Expr:
    """Substitute `values` for axes in `expr`, and `load` results for reads.

    Comparisons of indices are computed in int64, so that they can be decided from loop bounds.
    """
    return _Meanings(expr, values, load).of_root()


class _Meanings:
    """Rewriter that computes each node of an expression as a value and as a part of an index.

    Attributes:
        values: Values of axes.
        load: Function that converts a tensor read to a buffer load.
        value: Rewritten nodes in their own dtype, by node id.
        index: Rewritten nodes in index (int64) arithmetic, by node id.
    """

    def __init__(self, root: Expr, values: Mapping[Any, Expr], load: LoadOf) -> None:
        self.values = values
        self.load = load
        self.value: dict[int, Expr] = {}
        self.index: dict[int, Expr] = {}
        self._root = root
        self._nodes = list(post_order(root))
        self._data: set[int] = set()
        for node in self._nodes:
            if isinstance(node, TensorLoad) or any(id(c) in self._data for c in children(node)):
                self._data.add(id(node))
        self._of_indices = {
            id(node) for node in self._nodes
            if isinstance(node, Compare) and _is_index(node.a) and _is_index(node.b)
        }
        # Reads and conditions on indices have one form in both contexts.
        self._alike = {
            id(node) for node in self._nodes
            if isinstance(node, TensorLoad) or (node.dtype == BOOL and id(node) not in self._data)
        }

    def of_root(self) -> Expr:
        """Return the whole expression as a value."""
        as_value, in_index = self._needed()
        for node in self._nodes:
            if id(node) in as_value:
                self.value[id(node)] = self._value(node)
            if id(node) in in_index:
                self.index[id(node)] = self._index(node)
        return self.value[id(self._root)]

    def _needed(self) -> tuple[set[int], set[int]]:
        """Return the ids of nodes that are required as values and in indices."""
        as_value, in_index = {id(self._root)}, set[int]()
        for node in reversed(self._nodes):
            inner = [id(child) for child in children(node)]
            if id(node) in in_index:
                if id(node) in self._data or id(node) in self._alike:
                    as_value.add(id(node))
                if id(node) not in self._alike:
                    in_index.update(inner)
            if id(node) in as_value:
                starts = isinstance(node, TensorLoad) or id(node) in self._of_indices
                (in_index if starts else as_value).update(inner)
        return as_value, in_index

    def _value(self, node: Expr) -> Expr:
        match node:
            case TensorLoad(_, indices):
                return self.load(node, tuple([cast(INT64, self.index[id(i)]) for i in indices]))
            case Var() if node in self.values:
                return cast_for_variable(node, self.values[node])
            case Compare(op, a, b) if id(node) in self._of_indices:
                return compare(op, *(cast(INT64, self.index[id(part)]) for part in (a, b)))
        return replace_children(node, self.value)

    def _index(self, node: Expr) -> Expr:
        """Return the index form of a node, which is its value form if no operand differs."""
        if id(node) in self._alike:
            return self.value[id(node)]
        if isinstance(node, Var):
            return self.values.get(node, node)
        if id(node) in self._data and all(
            self.index[id(child)] is self.value[id(child)] for child in children(node)
        ):
            return self.value[id(node)]
        rebuilt = replace_children(node, self.index)
        widened = _widen_index(rebuilt)
        return rebuilt if widened is None else widened


def index_of(expr: Expr, values: Mapping[V, Expr]) -> Expr:
    """Return the index `expr` as an int64 expression; reads are not rewritten.

    Index arithmetic uses int64 regardless of the declared dtype, so it cannot wrap around. Values
    computed from data keep their dtype until they are combined with an index.
    """
    known: Mapping[Any, Expr] = values

    def rule(node: Any) -> Expr | None:
        return known.get(node) if isinstance(node, Var) else _widen_index(node)

    return cast(INT64, bottom_up(expr, rule, parts=_before_reads))


def _widen_index(node: Expr) -> Expr | None:
    """Adapt an index node to operands that are now int64; None if no change is required."""
    match node:
        case Binary(op, a, b) if a.dtype != b.dtype:
            return binary(op, a, b)
        case Compare(op, a, b) if a.dtype != b.dtype:
            return compare(op, a, b)
        case Select(condition, a, b) if a.dtype != b.dtype:
            return select(condition, a, b)
        case Call():
            return _call(node)
        case Cast(dtype, inner) if dtype in (INT32, INT64) and _is_pure(inner):
            return inner if inner.dtype.is_integer else None
    return None


def _before_reads(node: Any) -> Sequence[Any]:
    return () if isinstance(node, TensorLoad) else children(node)


def _call(node: Call) -> Expr | None:
    """Adapt a call to operands that are now int64; None if no change is required."""
    match node:
        case Call("if_then_else", (condition, a, b)) if a.dtype != b.dtype:
            return if_then_else(condition, a, b)
        case Call("if_then_else" | "abs" as name, args) if node.dtype != args[-1].dtype:
            return Call(name, args, args[-1].dtype)
        case Call("popcount", (a,)) if node.dtype != a.dtype:
            # The popcount of a negative number depends on the width of its dtype.
            return Call("popcount", (cast(node.dtype, a),), node.dtype)
    return None


def _is_index(expr: Expr) -> bool:
    """Return whether `expr` is computed from axes and sizes only, in int32, int64 or bool."""
    return expr.dtype in (INT32, INT64) and all(
        node.dtype in (INT32, INT64, BOOL) and not isinstance(node, TensorLoad)
        for node in walk(expr)
    )


def _is_pure(expr: Expr) -> bool:
    """Return whether `expr` is int64 and contains no read."""
    return expr.dtype == INT64 and not any(
        isinstance(node, (BufferLoad, TensorLoad)) for node in walk(expr)
    )


Strides: TypeAlias = "tuple[tuple[Extent, ...] | None, ...]"
"""Strides of each argument in elements; None for a contiguous array, () if all are contiguous."""


def strides_of(
    binds: Mapping[Tensor, Buffer] | None, args: Sequence[object], where: str
) -> Strides:
    """Return the strides that the `te.decl_buffer`s in `binds` declare for arguments.

    Strides of contiguous arrays are returned as None.

    Raises:
        LowerError: If a buffer in `binds` belongs to no argument, or if its shape, dtype or scope
            differ from those of the tensor.
    """
    bound = dictionary_of(
        binds, Tensor, Buffer, f"{where}: binds", "pass a dict from tensors to te.decl_buffer",
        LowerError,
    )
    if not bound or not isinstance(args, list | tuple):
        return ()
    for tensor, buffer in bound.items():
        if not any(tensor == arg for arg in args if isinstance(arg, Tensor)):
            raise LowerError(
                "{where}: binds contains {tensor}, which is not an argument; remove it, or add it "
                "to the arguments",
                kind="argument-list", where=where, tensor=tensor.name,
            )
        _check_alike(tensor, buffer, f"{where}: binds: {tensor.name}")
    found = tuple(
        _gaps(bound[arg]) if isinstance(arg, Tensor) and arg in bound else None for arg in args
    )
    return found if any(strides is not None for strides in found) else ()


def offsets_of(
    binds: Mapping[Tensor, Buffer] | None, args: Sequence[object]
) -> tuple[Extent, ...]:
    """Return the `elem_offset` of each argument in validated `binds`; () if all are 0.

    A variable that is neither an argument nor a size is 0, as in TVM for arrays without an offset.
    """
    if not binds or not isinstance(args, list | tuple):
        return ()
    known = {arg for arg in args if isinstance(arg, Var)}
    known.update(
        var for arg in args if isinstance(arg, Tensor) for n in arg.shape for var in variables_in(n)
    )
    found: list[Extent] = []
    for arg in args:
        offset = binds[arg].elem_offset if isinstance(arg, Tensor) and arg in binds else 0
        found.append(0 if isinstance(offset, Var) and offset not in known else offset)
    return tuple(found) if any(not isinstance(n, int) or n for n in found) else ()


def _check_alike(tensor: Tensor, buffer: Buffer, where: str) -> None:
    """Raise if `buffer` cannot describe `tensor`.

    Raises:
        LowerError: If the shape, dtype or memory scope differ, or if a buffer of a vector dtype has
            strides.
    """
    is_same = len(tensor.shape) == len(buffer.shape) and all(
        map(_is_same, tensor.shape, buffer.shape))
    if not is_same or buffer.dtype != tensor.dtype or buffer.scope not in ("", "global"):
        raise LowerError(
            "{where}: buffer `{buffer}` does not match {tensor!r}; declare it with the same shape "
            "and dtype, and use set_scope for its memory",
            kind="conflicting-options", where=where, buffer=buffer, tensor=tensor,
        )
    if buffer.has_offset and buffer.dtype.lanes > 1:
        raise LowerError(
            "{where}: elem_offset counts scalars, but the elements are {dtype} vectors; declare a "
            "tensor of {scalar} with one more axis, or omit the offset",
            where=where, dtype=buffer.dtype, scalar=buffer.dtype.scalar,
        )
    if buffer.strides is not None and buffer.dtype.lanes > 1:
        raise LowerError(
            "{where}: strides count scalars, but the elements are {dtype} vectors; declare a "
            "tensor of {scalar} with one more axis, or omit the strides",
            where=where, dtype=buffer.dtype, scalar=buffer.dtype.scalar,
        )


def _gaps(buffer: Buffer) -> tuple[Extent, ...] | None:
    """Return the strides of a buffer, or None if they are those of a contiguous array."""
    compact = [product(buffer.shape[axis + 1 :]) for axis in range(len(buffer.shape))]
    if buffer.strides is None or all(map(_is_same, buffer.strides, compact)):
        return None
    return buffer.strides


def _is_same(a: Extent, b: Extent) -> bool:
    return structural_equal(index_value(a), index_value(b))


def extents_of(stage: StageState) -> list[Extent]:
    """Return the extents of the axes of a stage and the starts of its reduction axes."""
    found: list[Extent] = [n for shape in stage.op.shapes for n in shape]
    if isinstance(stage.op, ComputeOp):
        found += [n for axis in stage.op.reduce_axis for n in (axis.dom.min, axis.extent)]
    changed = (r for r in stage.relations if isinstance(r, LayoutTransform))
    return [*found, *(axis.extent for relation in changed for axis in relation.after)]


def sizes_of(
    state: ScheduleState, arguments: Sequence[Tensor | Var], strides: Strides = (),
    offsets: Sequence[Extent] = (),
) -> tuple[dict[Var, Var], Set[Var]]:
    """Return a function variable for each size and stride variable of the computation.

    The second result is the set of variables that are only used as strides.

    Raises:
        LowerError: If a stage depends on a variable that no argument determines, or if the shape of
            an argument determines a variable of 8 or 16 bits.
    """
    steps = [var for declared in strides for n in declared or () for var in variables_in(n)]
    found: dict[Var, None] = {a: None for a in arguments if isinstance(a, Var)}
    bound = set(found)
    taken: set[str] = set()
    for argument in arguments:
        if not isinstance(argument, Tensor):
            continue
        variables = dict.fromkeys([var for n in argument.shape for var in variables_in(n)])
        for var in variables:
            if var not in bound:
                _check_size(var, argument)
        found.update(variables)
        bound.update(variables)
    bound.update(steps)
    for var in (var for n in offsets for var in variables_in(n)):
        if var not in found:
            raise LowerError(
                "lower: an elem_offset depends on {var}, which cannot be inferred from the "
                "arguments; add {var} itself to the arguments",
                kind="argument-list", var=var.name,
            )
    for stage in state:
        used = dict.fromkeys((*variables_of(stage.op), *_schedule_variables(stage)))
        for var in used:
            if var not in bound:
                raise LowerError(
                    "lower: {stage} depends on {var}, which cannot be inferred from the arguments; "
                    "add {var} itself to the arguments",
                    kind="argument-list", stage=stage.name, var=var.name,
                )
        found.update(used)
    only_strides = set(steps) - found.keys()
    found.update(dict.fromkeys(steps))
    types = {var: INT64 if var.dtype.is_integer else var.dtype for var in found}
    new_vars = {
        var: Var(take_name(identifier(var.name), taken), types[var], bounds=var.bounds)
        for var in found
    }
    return new_vars, {new_vars[var] for var in only_strides}


def _check_size(var: Var, argument: Tensor) -> None:
    """Raise if extents of arrays may not be representable in the dtype of a size variable.

    Scalar arguments are checked in each call. Extents of arrays are not, so they need a dtype that
    represents all of them.
    """
    if var.dtype.is_integer and var.dtype.bits < INT32.bits:
        raise LowerError(
            "lower: the size variable {var} of {argument} has dtype {dtype}, which cannot "
            "represent all extents; declare it as int32 or int64, or add {var} itself to the "
            "arguments",
            kind="argument-list", var=var.name, argument=argument.name, dtype=var.dtype,
        )


def _schedule_variables(stage: StageState) -> list[Var]:
    """Return the variables in split factors and pad values."""
    found = [
        var
        for relation in stage.relations
        if isinstance(relation, Split)
        for extent in (relation.factor, relation.nparts)
        if extent is not None
        for var in variables_in(extent)
    ]
    pad = stage.layout.pad_value
    return [*found, *(free_variables(pad) if pad is not None else ())]
