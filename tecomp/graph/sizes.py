"""Constant and symbolic sizes of tensors and buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from types import MappingProxyType
from typing import Any

from tecomp.compute.expression_analysis import post_order
from tecomp.compute.iter_var import IterVar
from tecomp.compute.operation import ComputeOp, PlaceholderOp
from tecomp.compute.reduce import Reduce
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.driver.static_shapes import extent_at
from tecomp.ir.arith.extents import constant_shape
from tecomp.ir.arith.simplify import simplify
from tecomp.ir.nodes.expr import BinOp, Const, Expr, Var, binary, index_value
from tecomp.ir.nodes.printer import identifier
from tecomp.ir.nodes.stmt import Buffer, Extent, Range
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.ir.traversal.rewrite import bottom_up, substitute
from tecomp.layout.core.layout import Layout
from tecomp.lowering.stages.index_expressions import index_of


def sizes_of(
    x: Tensor | Buffer, sizes: Mapping[str, int] = MappingProxyType({})
) -> tuple[int, ...]:
    """Return the shape, for the given values of size variables."""
    shape = constant_shape(x.shape)
    if shape is None:
        extents = (extent_at(extent, sizes) for extent in x.shape)
        shape = tuple(extent for extent in extents if extent is not None)
    assert len(shape) == len(x.shape), f"{x.name} has an extent that is no number"
    return shape


def elements_of(x: Tensor | Buffer, sizes: Mapping[str, int] = MappingProxyType({})) -> int:
    """Return the number of elements, for the given values of size variables."""
    return prod(sizes_of(x, sizes))


def bytes_of(
    x: Tensor | Buffer, stored: Mapping[Tensor, Layout] = MappingProxyType({}),
    sizes: Mapping[str, int] = MappingProxyType({}),
) -> int:
    """Return the size in bytes, including the padding of its layout in `stored`, if any."""
    if isinstance(x, Tensor) and x in stored:
        return stored[x].num_places * x.dtype.bytes
    return elements_of(x, sizes) * x.dtype.bytes


def are_equal(a: Sequence[Extent], b: Sequence[Extent]) -> bool:
    """Return whether extents are equal numbers or equal expressions."""
    return len(a) == len(b) and all(
        x == y if isinstance(x, int) and isinstance(y, int)
        else not (isinstance(x, int) or isinstance(y, int)) and structural_equal(x, y)
        for x, y in zip(a, b, strict=True)
    )


def plain_layout(x: Tensor) -> Layout:
    """Return the row-major layout of a tensor."""
    return Layout.row_major(sizes_of(x), x.dtype)


def in_int64(extent: Extent, variables: Mapping[Var, Expr]) -> Extent:
    """Return an extent in int64 arithmetic, in which kernels compute sizes.

    Args:
        extent: Extent.
        variables: int64 variable of each size variable.
    """
    if isinstance(extent, int):
        return extent
    found = simplify(index_of(extent, variables))
    return int(found.value) if isinstance(found, Const) else found


def symbolic_bytes(x: Tensor, variables: Mapping[Var, Expr]) -> Extent:
    """Return the size in bytes as a function of int64 size variables."""
    total: Expr = index_value(x.dtype.bytes)
    for extent in x.shape:
        total = binary(BinOp.MUL, total, index_of(index_value(extent), variables))
    return in_int64(total, {})


def with_sizes(
    outputs: Sequence[Tensor], sizes: Mapping[Var, int]
) -> Mapping[Tensor, Tensor] | None:
    """Build the values of some size variables into definitions.

    Args:
        outputs: Tensors.
        sizes: Values of size variables.

    Returns:
        Replacement of each tensor that `outputs` depend on, including placeholders; None if there
        are operations of other kinds than `te.compute`.

    >>> from tecomp import te
    >>> n = te.var("n")
    >>> A = te.placeholder((n, 4), name="A")
    >>> B = te.compute((n, 4), lambda i, j: A[n - 1 - i, j], name="B")
    >>> C = with_sizes([B], {n: 5})[B]
    >>> print(C.op, C.shape)
    B[i, j] = A[int32(5) - int32(1) - i, j] (5, 4)
    """
    found: dict[Tensor, Tensor] = {}
    for op in post_order([x.op for x in outputs]):
        if isinstance(op, PlaceholderOp):
            shape = tuple(_extent_with(extent, sizes) for extent in op.shape)
            found[op.output(0)] = replace(op, shape=shape).output(0)
        elif type(op) is ComputeOp:
            found.update(zip(op.outputs, _definition_with(op, sizes, found).outputs, strict=True))
        else:
            return None
    return found


def _extent_with(extent: Extent, sizes: Mapping[Var, int]) -> Extent:
    value = extent_at(extent, {identifier(var.name): size for var, size in sizes.items()})
    if value is not None or isinstance(extent, int):
        return value if value is not None else extent
    return simplify(substitute(extent, _constants(sizes)))


def _constants(sizes: Mapping[Var, int]) -> dict[Var, Expr]:
    return {var: Const(size, var.dtype) for var, size in sizes.items()}


def _definition_with(
    op: ComputeOp, sizes: Mapping[Var, int], tensors: Mapping[Tensor, Tensor]
) -> ComputeOp:
    axes: dict[Var, IterVar] = {axis: _axis_with(axis, sizes) for axis in op.loops}
    variables: dict[Var, Expr] = {**_constants(sizes), **axes}

    def rule(node: Any) -> Expr | None:
        if isinstance(node, TensorLoad):
            return TensorLoad(tensors[node.tensor], node.indices, node.location)
        if isinstance(node, Reduce):
            return replace(node, axis=tuple(axes[axis] for axis in node.axis))
        return variables.get(node) if isinstance(node, Var) else None

    axis = tuple(axes[x] for x in op.axis)
    return replace(op, axis=axis, body=tuple(bottom_up(expr, rule) for expr in op.body))


def _axis_with(axis: IterVar, sizes: Mapping[Var, int]) -> IterVar:
    low, extent = (_extent_with(bound, sizes) for bound in (axis.dom.min, axis.dom.extent))
    first, count = (Const(x, axis.dtype) if isinstance(x, int) else x for x in (low, extent))
    return replace(axis, dom=Range(first, count))
