"""Constant sizes of tensors and buffers; programs are compiled for constant shapes."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import MappingProxyType

from tecomp.compute.tensor import Tensor
from tecomp.ir.arith.extents import constant_shape
from tecomp.ir.nodes.stmt import Buffer
from tecomp.layout.core.layout import Layout


def sizes_of(x: Tensor | Buffer) -> tuple[int, ...]:
    """Return the constant shape."""
    sizes = constant_shape(x.shape)
    assert sizes is not None, f"{x.name} has an extent that is no number"
    return sizes


def elements_of(x: Tensor | Buffer) -> int:
    """Return the number of elements."""
    return prod(sizes_of(x))


def bytes_of(
    x: Tensor | Buffer, stored: Mapping[Tensor, Layout] = MappingProxyType({})
) -> int:
    """Return the size in bytes, including the padding of its layout in `stored`, if any."""
    if isinstance(x, Tensor) and x in stored:
        return stored[x].num_places * x.dtype.bytes
    return elements_of(x) * x.dtype.bytes


def plain_layout(x: Tensor) -> Layout:
    """Return the row-major layout of a tensor."""
    return Layout.row_major(sizes_of(x), x.dtype)
