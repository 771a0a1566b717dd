"""Constant and symbolic sizes of tensors and buffers."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import MappingProxyType

from tecomp.compute.tensor import Tensor
from tecomp.driver.static_shapes import extent_at
from tecomp.errors import DefinitionError
from tecomp.ir.arith.extents import constant_shape
from tecomp.ir.arith.simplify import simplify
from tecomp.ir.nodes.expr import Binary, BinOp, Cast, Const, Expr, Var, binary, index_value
from tecomp.ir.nodes.stmt import Buffer, Extent
from tecomp.layout.core.layout import Layout


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


def plain_layout(x: Tensor) -> Layout:
    """Return the row-major layout of a tensor."""
    return Layout.row_major(sizes_of(x), x.dtype)


def in_int64(extent: Extent, variables: Mapping[Var, Var]) -> Extent:
    """Return an extent with int64 arithmetic, in which kernels compute sizes.

    Args:
        extent: Extent.
        variables: int64 variable of each size variable.

    Raises:
        DefinitionError: If the extent is neither affine nor a quotient, remainder, minimum or
            maximum of such terms.
    """
    match extent:
        case int():
            return extent
        case Var():
            return variables[extent]
        case Const():
            return int(extent.value)
        case Cast():
            return in_int64(extent.value, variables)
        case Binary():
            a, b = (index_value(in_int64(x, variables)) for x in (extent.a, extent.b))
            return simplify(binary(extent.op, a, b))
    raise DefinitionError(
        "compile: the extent `{extent}` is no sum, product, quotient, minimum or maximum of sizes; "
        "pass it as a size variable of its own",
        kind="unbound-size", extent=extent,
    )


def symbolic_bytes(x: Tensor, variables: Mapping[Var, Var]) -> Extent:
    """Return the size in bytes as a function of int64 size variables."""
    total: Expr = index_value(x.dtype.bytes)
    for extent in x.shape:
        total = binary(BinOp.MUL, total, index_value(in_int64(extent, variables)))
    total = simplify(total)
    return int(total.value) if isinstance(total, Const) else total
