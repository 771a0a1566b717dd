"""Operations as seen by constraints: operands, layouts and access functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import copysign
from typing import Any

from tecomp.caches import memoize
from tecomp.compute.float_bits import max_value
from tecomp.compute.iter_var import IterVar
from tecomp.compute.operation import ComputeOp
from tecomp.compute.reduce import Reduce
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.errors import LayoutError
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import Binary, BinOp, Call, Cast, Const, Expr, Select, Var, index_value
from tecomp.ir.traversal.rewrite import (
    children,
    contains,
    free_variables,
    substitute,
    top_down,
    walk,
)
from tecomp.layout.core.layout import Layout
from tecomp.layout.formats.stored_tensor import check_layout, row_major
from tecomp.lowering.stages.index_expressions import index_of
from tecomp.machine.operand_constraints import Operand
from tecomp.machine.operand_constraints import Operation as Kind
from tecomp.poly.accesses.lane_access import LaneAddresses


@dataclass(frozen=True, eq=False)
class IndirectAccess:
    """Access to elements of another tensor through index expressions, in the memory of that tensor.

    Attributes:
        layout: Layout of the other tensor.
        axes: Index variables of the view.
        indices: Index of the element in the other tensor, in terms of `axes`.
    """

    layout: Layout
    axes: tuple[Var, ...]
    indices: tuple[Expr, ...]

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Address expressions of an element as text, with indices named `i0`, `i1` and so on."""
        return _texts(self.layout, self.axes, self.indices)

    def of(self, axes: tuple[Var, ...], indices: Sequence[Expr]) -> IndirectAccess:
        """Return the view with index variables `axes` that accesses this view at `indices`."""
        return IndirectAccess(self.layout, axes, self.at(indices))

    def at(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        """Return the index in the other tensor of the element at `indices`."""
        values = dict(zip(self.axes, indices, strict=True))
        return tuple(substitute(index, values) for index in self.indices)


@memoize("constraints.addresses")
def texts_of(layout: Layout) -> tuple[str, ...]:
    """Return the address expressions of an element as text, as in `IndirectAccess.texts`."""
    axes = layout.index_map.initial_indices
    return _texts(layout, axes, axes)


def _texts(layout: Layout, axes: Sequence[Var], indices: Sequence[Expr]) -> tuple[str, ...]:
    number = {axis: k for k, axis in enumerate(axes)}
    named = {axis: Var(f"i{k}", axis.dtype) for axis, k in number.items()}
    # Plain axes take the index dtype of the layout directly, to avoid casts in the text.
    known = [
        Var(f"i{number[index]}", axis_var.dtype)
        if isinstance(index, Var) and index in number else substitute(index, named)
        for axis_var, index in zip(layout.index_map.initial_indices, indices, strict=True)
    ]
    return tuple(map(str, layout.index_map.at(known)))


@dataclass(frozen=True, eq=False)
class OperandUse:
    """Operand of an operation: a read or the result.

    Attributes:
        tensor: Tensor that the operand refers to.
        indices: Index of the accessed element in `layout`, in terms of the operation's axes.
        layout: Layout of the tensor.
        addresses: Physical index of the accessed element.
    """

    tensor: Tensor
    indices: tuple[Expr, ...]
    layout: Layout
    addresses: LaneAddresses

    @property
    def name(self) -> str:
        """Name of the tensor."""
        return self.tensor.name

    def at(self, layout: Layout | IndirectAccess) -> OperandUse:
        """Return the operand in another layout, or as accessed through a view."""
        if isinstance(layout, IndirectAccess):
            return replace(self, indices=layout.at(self.indices)).at(layout.layout)
        addresses = replace(self.addresses, exprs=layout.index_map.at(self.indices))
        return replace(self, layout=layout, addresses=addresses)

    def byte_offset(self, multiple: int | None = None) -> Expr | None:
        """Return the byte offset of the element, or None if elements do not occupy whole bytes.

        Args:
            multiple: If given, omit terms that are always multiples of this number of bytes.
        """
        per_place, remainder = divmod(self.layout.nbytes, max(self.layout.num_places, 1))
        if remainder:
            return None
        offset: Expr = index_value(0)
        steps = row_major(self.layout.physical_shape)
        for expr, step in zip(self.addresses.exprs, steps, strict=True):
            if multiple is None or step * per_place % multiple:
                offset = offset + expr * step
        return offset * per_place

    def dims_along_lanes(self) -> list[int]:
        """Return the dimensions of the tensor that run along the lanes."""
        axes = tuple(self.layout.index_map.initial_indices)
        lanes = LaneAddresses(axes, self.layout.shape, tuple(self.layout.index_map.final_indices))
        return [dim for dim in range(len(axes)) if lanes.runs_along(dim)]


@dataclass(frozen=True, eq=False)
class DataDependentIndex:
    """Data-dependent index; equal loads at equal indices give equal values.

    Attributes:
        load: Tensor load that gives the index.
        var: Variable that represents the index.
        extent: Extent of the indexed dimension.
    """

    load: TensorLoad
    var: Var
    extent: int


@dataclass(frozen=True, eq=False)
class AnalyzedOperation:
    """Operation with the layouts of its operands.

    Attributes:
        op: Operation.
        kind: Operation kind that target rules refer to.
        inputs: Reads, in the order of the expression.
        out: Result.
        unknown: Data-dependent indices.
    """

    op: ComputeOp
    kind: Kind
    inputs: tuple[OperandUse, ...]
    out: OperandUse
    unknown: tuple[DataDependentIndex, ...] = ()

    @property
    def uses(self) -> tuple[OperandUse, ...]:
        """Inputs, followed by the result."""
        return (*self.inputs, self.out)

    def named(self, operand: Operand) -> tuple[OperandUse, ...]:
        """Return the operands that a rule calls `a`, `b`, `inputs` or `out`."""
        if operand == "out":
            return (self.out,)
        if operand == "inputs":
            return self.inputs
        position = "ab".index(operand)
        return self.inputs[position : position + 1]

    @property
    def neutral(self) -> float | None:
        """Identity of the reduction; None without a reduction or a constant identity."""
        reduce = self.op.body[0]
        start = reduce.combiner.identity[0] if isinstance(reduce, Reduce) else None
        return float(start.value) if isinstance(start, Const) else None

    def neutral_in(self, layout: Layout) -> float | None:
        """Return the identity of the reduction as a storable value; -inf may become finite."""
        return None if self.neutral is None else storable(self.neutral, layout)

    def with_inputs(self, inputs: tuple[OperandUse, ...]) -> AnalyzedOperation:
        """Return the operation with other inputs."""
        return replace(self, inputs=inputs)

    def with_layout(self, tensor: Tensor, layout: Layout) -> AnalyzedOperation:
        """Return the operation with one tensor in another layout."""
        inputs = tuple(use.at(layout) if use.tensor == tensor else use for use in self.inputs)
        out = self.out.at(layout) if self.out.tensor == tensor else self.out
        return replace(self, inputs=inputs, out=out)

    @property
    def axes(self) -> tuple[IterVar, ...]:
        """Axes of the result, followed by the reduction axes."""
        return (*self.op.axis, *self.op.reduce_axis)


def storable(value: float, layout: Layout) -> float:
    """Return `value`, or the nearest finite value that the storage format of a layout has."""
    if layout.storage.holds(value):
        return value
    stored = layout.storage.nearest(value)
    greatest = max_value(layout.dtype)
    assert isinstance(greatest, Const)
    return copysign(min(abs(stored), float(greatest.value)), value)


def computation(
    op: ComputeOp, body: Expr, layouts: Mapping[Tensor, Layout]
) -> AnalyzedOperation:
    """Return the constraint view of an operation.

    Args:
        op: Operation.
        body: Body of the operation, with inlined stages.
        layouts: Layouts of the operands. Default: row-major.

    Raises:
        LayoutError: If an extent is not constant, or a layout has another shape than its tensor.
    """
    loads = loads_of(body)
    found: dict[int, DataDependentIndex] = {}
    for load in loads:
        for index, extent in zip(load.indices, load.tensor.shape, strict=True):
            for node in walk(index):
                if isinstance(node, TensorLoad) and id(node) not in found:
                    var = Var(str(node), INT64)
                    found[id(node)] = DataDependentIndex(node, var, _number(extent, op.name))
    unknown = tuple(found.values())
    axes = (*op.axis, *op.reduce_axis)
    extents = tuple(_number(axis.extent, op.name) for axis in axes)
    dims = (*axes, *(entry.var for entry in unknown))
    box = (*extents, *(entry.extent for entry in unknown))

    def use(tensor: Tensor, indices: tuple[Expr, ...]) -> OperandUse:
        layout = _layout_of(tensor, layouts, op.name)
        return OperandUse(tensor, indices, layout, LaneAddresses(dims, box, ())).at(layout)

    inputs = tuple(
        use(n.tensor, tuple(_index(i, unknown) for i in n.indices)) for n in loads
    )
    out = use(op.output(0), tuple(index_value(axis) for axis in op.axis))
    return AnalyzedOperation(op, _kind(body, loads), inputs, out, unknown)


def _layout_of(tensor: Tensor, layouts: Mapping[Tensor, Layout], where: str) -> Layout:
    shape = tuple(_number(extent, where) for extent in tensor.shape)
    layout = layouts.get(tensor)
    if layout is None:
        return Layout.row_major(shape, tensor.dtype)
    check_layout(layout, f"check_constraints: the layout of {tensor.name}")
    if layout.shape != shape:
        raise LayoutError(
            "check_constraints: {tensor} of {where} has shape {shape}, but its layout is for "
            "{layout_shape}; pass a layout of the tensor's shape",
            kind="layout-shape-mismatch", tensor=tensor.name, where=where, shape=list(shape),
            layout_shape=list(layout.shape),
        )
    return layout


def _number(extent: object, where: str) -> int:
    if isinstance(extent, int):
        return extent
    raise LayoutError(
        "check_constraints: {where} has the non-constant extent {extent}, but layouts require "
        "constant shapes",
        kind="layout-requirement", where=where, extent=extent,
    )


def loads_of(body: Expr) -> list[TensorLoad]:
    """Return the loads of an expression, excluding loads inside of indices, which have no lanes."""

    def parts(node: Any) -> Sequence[Any]:
        return () if isinstance(node, TensorLoad) else children(node)

    roots = body.source if isinstance(body, Reduce) else (body,)
    return [node for node in walk(*roots, parts=parts) if isinstance(node, TensorLoad)]


def _index(index: Expr, unknown: Sequence[DataDependentIndex]) -> Expr:
    vars_of = {id(entry.load): entry.var for entry in unknown}
    return index_of(top_down(index, lambda node: vars_of.get(id(node))), {})


def _kind(body: Expr, loads: list[TensorLoad]) -> Kind:
    if not isinstance(body, Reduce):
        return "copy" if isinstance(_value(body), TensorLoad) else "elementwise"
    if len(body.source) == 1 and body.combiner.name == "sum" and len(loads) == 2:
        product = _value(body.source[0])
        if isinstance(product, Binary) and product.op is BinOp.MUL:
            factors = [_value(operand) for operand in (product.a, product.b)]
            if all(isinstance(f, TensorLoad) and _reads(f, body) for f in factors):
                # With equal result axes, no factor element is reused by several result elements.
                a, b = (_axes(f, body) for f in factors)
                return "reduction" if a == b else "contraction"
    return "reduction"


def is_pure_movement(body: Expr) -> bool:
    """Return whether each element is a load or a constant, selected by conditions on indices only.

    Padding and concatenation are examples. A target can execute such operations as several copies.
    """
    value = _value(body)
    if isinstance(value, Select):
        parts: tuple[Expr, ...] = value.condition, value.a, value.b
    elif isinstance(value, Call) and value.name == "if_then_else":
        parts = value.args
    else:
        return isinstance(value, Const | TensorLoad)
    condition, *values = parts
    is_known = not contains(TensorLoad, condition)
    return is_known and all(map(is_pure_movement, values))


def _axes(load: TensorLoad, reduce: Reduce) -> set[Var]:
    """Return the axes of the result that a factor depends on."""
    used = {var for index in load.indices for var in free_variables(index)}
    return used - set(reduce.axis)


def _value(expr: Expr) -> Any:
    """Return the expression without enclosing casts."""
    value: Any = expr
    while isinstance(value, Cast):
        value = value.value
    return value


def _reads(load: TensorLoad, reduce: Reduce) -> bool:
    used = {var for index in load.indices for var in free_variables(index)}
    return any(axis in used for axis in reduce.axis)


def physical_extent_along(layout: Layout, dim: int) -> int | None:
    """Return the number of physical positions along a dimension.

    Returns:
        The number, or None if a physical axis combines the dimension with other dimensions.
    """
    axis_var = layout.index_map.initial_indices[dim]
    count = 1
    for expr, extent in zip(layout.index_map.final_indices, layout.physical_shape, strict=True):
        used = free_variables(expr)
        if axis_var in used:
            if len(used) > 1:
                return None
            count *= extent
    return count


def has_padding_along(layout: Layout, dim: int) -> bool:
    """Return whether a layout has padding at the end of a dimension."""
    count = physical_extent_along(layout, dim)
    return layout.padding_count > 0 if count is None else count > layout.shape[dim]
