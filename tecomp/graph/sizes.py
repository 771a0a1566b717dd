"""Constant and symbolic sizes of tensors and buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from types import MappingProxyType

from tecomp.compute.tensor import Tensor
from tecomp.driver.static_shapes import extent_at
from tecomp.ir.arith.extents import constant_shape
from tecomp.ir.arith.simplify import simplify
from tecomp.ir.nodes.expr import BinOp, Const, Expr, Var, binary, index_value
from tecomp.ir.nodes.stmt import Buffer, Extent
from tecomp.ir.nodes.structural_equality import structural_equal
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
