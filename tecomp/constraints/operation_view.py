"""Operations as constraints see them: operands, layouts, access functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import copysign
from typing import Any

from tecomp.compute.iter_var import IterVar
from tecomp.compute.limits import max_value
from tecomp.compute.operation import ComputeOp
from tecomp.compute.reduce import Reduce
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.errors import LayoutError
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import Binary, BinOp, Call, Cast, Const, Expr, Select, Var, index_value
from tecomp.ir.traversal.rewrite import children, free_variables, substitute, top_down, walk
from tecomp.layout.addressing.stored_tensor import check_layout, row_major
from tecomp.layout.core.layout import Layout
from tecomp.lowering.stages.index_expressions import index_of
from tecomp.machine.operand_constraints import Operand
from tecomp.machine.operand_constraints import Operation as Kind
from tecomp.poly.accesses.lane_access import Places


@dataclass(frozen=True, eq=False)
class View:
    """Elements of another tensor under indices of their own, in the memory of that tensor.

    Attributes:
        layout: of the other tensor.
        axes: the indices of an element.
        indices: the element of the other tensor that it is.
    """

    layout: Layout
    axes: tuple[Var, ...]
    indices: tuple[Expr, ...]

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The place of an element, as text, by indices called `i0`, `i1` and so on."""
        return _texts(self.layout, self.axes, self.indices)

    def of(self, axes: tuple[Var, ...], indices: Sequence[Expr]) -> View:
        """The view of these elements, `indices` of this one, under other indices."""
        return View(self.layout, axes, self.at(indices))

    def at(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        """Which element of the other tensor it has at some indices."""
        values = dict(zip(self.axes, indices, strict=True))
        return tuple(substitute(index, values) for index in self.indices)


@lru_cache(4096)
def texts_of(layout: Layout) -> tuple[str, ...]:
    """The same for the elements of a layout itself."""
    axes = layout.index_map.initial_indices
    return _texts(layout, axes, axes)


def _texts(layout: Layout, axes: Sequence[Var], indices: Sequence[Expr]) -> tuple[str, ...]:
    number = {axis: k for k, axis in enumerate(axes)}
    named = {axis: Var(f"i{k}", axis.dtype) for axis, k in number.items()}
    # An axis as it is needs no conversion to the type of indices of the layout.
    known = [
        Var(f"i{number[index]}", own.dtype)
        if isinstance(index, Var) and index in number else substitute(index, named)
        for own, index in zip(layout.index_map.initial_indices, indices, strict=True)
    ]
    return tuple(map(str, layout.index_map.at(known)))


@dataclass(frozen=True, eq=False)
class Use:
    """An operand of an operation: a read, or the result.

    Attributes:
        tensor: whose element it is.
        indices: the element of what has the layout, in terms of the axes of the operation.
        layout: where its elements lie.
        places: the place of that element.
    """

    tensor: Tensor
    indices: tuple[Expr, ...]
    layout: Layout
    places: Places

    @property
    def name(self) -> str:
        """Of the tensor."""
        return self.tensor.name

    def at(self, layout: Layout | View) -> Use:
        """The same in another layout, or as a view shows it."""
        if isinstance(layout, View):
            return replace(self, indices=layout.at(self.indices)).at(layout.layout)
        places = replace(self.places, exprs=layout.index_map.at(self.indices))
        return replace(self, layout=layout, places=places)

    def byte_offset(self, multiple: int | None = None) -> Expr | None:
        """Bytes before the element; None where an element is no whole number of bytes.

        With a multiple without those parts that are multiples of it wherever the element is.
        """
        per_place, rest = divmod(self.layout.nbytes, max(self.layout.num_places, 1))
        if rest:
            return None
        place: Expr = index_value(0)
        steps = row_major(self.layout.physical_shape)
        for expr, step in zip(self.places.exprs, steps, strict=True):
            if multiple is None or step * per_place % multiple:
                place = place + expr * step
        return place * per_place

    def dims_along_lanes(self) -> list[int]:
        """The dimensions of the tensor that run along the lanes."""
        axes = tuple(self.layout.index_map.initial_indices)
        own = Places(axes, self.layout.shape, tuple(self.layout.index_map.final_indices))
        return [dim for dim in range(len(axes)) if own.runs_along(dim)]


@dataclass(frozen=True, eq=False)
class Unknown:
    """An index that is read from a tensor: any number, the same where that has the same indices.

    Attributes:
        load: what is read.
        var: that stands for it.
        extent: of the dimension that it is an index of.
    """

    load: TensorLoad
    var: Var
    extent: int


@dataclass(frozen=True, eq=False)
class Computation:
    """An operation with the layouts of its operands.

    Attributes:
        op: the operation.
        kind: what rules call it.
        inputs: its reads, in the order of the expression.
        out: its result.
        unknown: indices that are read from tensors.
    """

    op: ComputeOp
    kind: Kind
    inputs: tuple[Use, ...]
    out: Use
    unknown: tuple[Unknown, ...] = ()

    @property
    def uses(self) -> tuple[Use, ...]:
        """Inputs, then the result."""
        return (*self.inputs, self.out)

    def named(self, operand: Operand) -> tuple[Use, ...]:
        """What a rule calls `a`, `b`, `inputs` or `out`."""
        if operand == "out":
            return (self.out,)
        if operand == "inputs":
            return self.inputs
        position = "ab".index(operand)
        return self.inputs[position : position + 1]

    @property
    def neutral(self) -> float | None:
        """What adds nothing in its reduction; None if that is no number, or there is none."""
        reduce = self.op.body[0]
        start = reduce.combiner.identity[0] if isinstance(reduce, Reduce) else None
        return float(start.value) if isinstance(start, Const) else None

    def neutral_in(self, layout: Layout) -> float | None:
        """What adds nothing in its reduction and can be stored: the least number for -inf."""
        return None if self.neutral is None else storable(self.neutral, layout)

    def with_inputs(self, inputs: tuple[Use, ...]) -> Computation:
        """The same with other reads."""
        return replace(self, inputs=inputs)

    def with_layout(self, tensor: Tensor, layout: Layout) -> Computation:
        """The same with one tensor in another layout."""
        inputs = tuple(use.at(layout) if use.tensor == tensor else use for use in self.inputs)
        out = self.out.at(layout) if self.out.tensor == tensor else self.out
        return replace(self, inputs=inputs, out=out)

    @property
    def axes(self) -> tuple[IterVar, ...]:
        """Of the result, then those of the reduction."""
        return (*self.op.axis, *self.op.reduce_axis)


def storable(value: float, layout: Layout) -> float:
    """A value, or the nearest that elements of a layout can have: the least number for -inf."""
    if layout.storage.holds(value):
        return value
    stored = layout.storage.nearest(value)
    greatest = max_value(layout.dtype)
    assert isinstance(greatest, Const)
    return copysign(min(abs(stored), float(greatest.value)), value)


def computation(
    op: ComputeOp, body: Expr, layouts: Mapping[Tensor, Layout]
) -> Computation:
    """What rules decide about an operation.

    Args:
        op: the operation.
        body: what it computes.
        layouts: of its operands; those without lie in the order of NumPy.

    Raises:
        LayoutError: an extent is no number, or a layout is for another shape.
    """
    loads = loads_of(body)
    unknown = _unknown(loads, op.name)
    axes = (*op.axis, *op.reduce_axis)
    extents = tuple(_number(axis.extent, op.name) for axis in axes)
    dims = (*axes, *(each.var for each in unknown))
    box = (*extents, *(each.extent for each in unknown))

    def use(tensor: Tensor, indices: tuple[Expr, ...]) -> Use:
        layout = _layout_of(tensor, layouts, op.name)
        return Use(tensor, indices, layout, Places(dims, box, ())).at(layout)

    inputs = tuple(
        use(n.tensor, tuple(_index(i, unknown) for i in n.indices)) for n in loads
    )
    out = use(op.output(0), tuple(index_value(axis) for axis in op.axis))
    return Computation(op, _kind(body, loads), inputs, out, unknown)


def _layout_of(tensor: Tensor, layouts: Mapping[Tensor, Layout], where: str) -> Layout:
    shape = tuple(_number(extent, where) for extent in tensor.shape)
    layout = layouts.get(tensor)
    if layout is None:
        return Layout.row_major(shape, tensor.dtype)
    check_layout(layout, f"check_constraints: the layout of {tensor.name}")
    if layout.shape != shape:
        raise LayoutError(
            f"check_constraints: {tensor.name} of {where} has shape {list(shape)}, its layout is "
            f"for {list(layout.shape)}; give a layout of the tensor's shape",
            kind="other-shape",
        )
    return layout


def _number(extent: object, where: str) -> int:
    if isinstance(extent, int):
        return extent
    raise LayoutError(
        f"check_constraints: {where} has the extent {extent}, which is no number; layouts are of "
        "constant shapes",
        kind="demand",
    )


def loads_of(body: Expr) -> list[TensorLoad]:
    """What an expression reads, but for what indices are read from: those have no lanes."""

    def parts(node: Any) -> Sequence[Any]:
        return () if isinstance(node, TensorLoad) else children(node)

    roots = body.source if isinstance(body, Reduce) else (body,)
    return [node for node in walk(*roots, parts=parts) if isinstance(node, TensorLoad)]


def _unknown(loads: Sequence[TensorLoad], where: str) -> tuple[Unknown, ...]:
    found: dict[int, Unknown] = {}
    for load in loads:
        for index, extent in zip(load.indices, load.tensor.shape, strict=True):
            for node in walk(index):
                if isinstance(node, TensorLoad) and id(node) not in found:
                    var = Var(str(node), INT64)
                    found[id(node)] = Unknown(node, var, _number(extent, where))
    return tuple(found.values())


def _index(index: Expr, unknown: Sequence[Unknown]) -> Expr:
    vars_of = {id(each.load): each.var for each in unknown}
    return index_of(top_down(index, lambda node: vars_of.get(id(node))), {})


def _kind(body: Expr, loads: list[TensorLoad]) -> Kind:
    if not isinstance(body, Reduce):
        return "copy" if isinstance(_value(body), TensorLoad) else "elementwise"
    if len(body.source) == 1 and body.combiner.name == "sum" and len(loads) == 2:
        product = _value(body.source[0])
        if isinstance(product, Binary) and product.op is BinOp.MUL:
            factors = [_value(side) for side in (product.a, product.b)]
            if all(isinstance(f, TensorLoad) and _reads(f, body) for f in factors):
                # Where both have the same axes, each term is of one element of the result.
                a, b = (_axes(f, body) for f in factors)
                return "reduction" if a == b else "contraction"
    return "reduction"


def only_moves(body: Expr) -> bool:
    """Whether an element is one of several, or a number, as its indices alone say.

    So are padding and concatenation. A copy does that, one part after the other.
    """
    value = _value(body)
    if isinstance(value, Select):
        parts: tuple[Expr, ...] = value.condition, value.a, value.b
    elif isinstance(value, Call) and value.name == "if_then_else":
        parts = value.args
    else:
        return isinstance(value, Const | TensorLoad)
    condition, *values = parts
    is_known = not any(isinstance(node, TensorLoad) for node in walk(condition))
    return is_known and all(map(only_moves, values))


def _axes(load: TensorLoad, reduce: Reduce) -> set[Var]:
    """The axes of the result that a factor depends on."""
    used = {var for index in load.indices for var in free_variables(index)}
    return used - set(reduce.axis)


def _value(expr: Expr) -> Any:
    """What is converted, if it is a conversion."""
    value: Any = expr
    while isinstance(value, Cast):
        value = value.value
    return value


def _reads(load: TensorLoad, reduce: Reduce) -> bool:
    used = {var for index in load.indices for var in free_variables(index)}
    return any(axis in used for axis in reduce.axis)


def places_along(layout: Layout, dim: int) -> int | None:
    """How many places memory has along a dimension; None where it shares results with others."""
    own = layout.index_map.initial_indices[dim]
    places = 1
    for expr, extent in zip(layout.index_map.final_indices, layout.physical_shape, strict=True):
        used = free_variables(expr)
        if own in used:
            if len(used) > 1:
                return None
            places *= extent
    return places


def padded_along(layout: Layout, dim: int) -> bool:
    """Whether memory has places beyond the end of a dimension."""
    places = places_along(layout, dim)
    return layout.padding_count > 0 if places is None else places > layout.shape[dim]
