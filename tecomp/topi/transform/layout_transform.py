"""Conversion of tensors between blocked layouts such as NCHW and NCHW16c."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tecomp import DefinitionError, te
from tecomp.errors import safe_str
from tecomp.topi import tag
from tecomp.topi.extents import Size, differ, quotient, times
from tecomp.topi.validation import check_rank, tensor_of


@dataclass(frozen=True)
class LayoutAxis:
    """Axis of a layout: a whole axis or its blocks (`C`), or the positions within a block (`16c`).

    Attributes:
        name: Axis letter in upper case.
        block: Block size for an axis within blocks. None for a whole axis or an axis of blocks.
    """

    name: str
    block: int | None = None


def layout_transform(
    array: te.Tensor, src_layout: str, dst_layout: str, schedule_rule: str = "None"
) -> te.Tensor:
    """Convert a tensor to another layout; `C` names an axis, `16c` positions in blocks of 16 of C.

    Args:
        array: Tensor with one axis per axis of `src_layout`.
        src_layout: Source layout, such as "NCHW".
        dst_layout: Result layout, such as "NCHW16c".
        schedule_rule: Ignored; `tecomp.compile` schedules the operation.

    Raises:
        DefinitionError: If a layout is malformed, if the layouts have different axes, or if a block
            size does not divide the extent of its axis.

    >>> layout_transform(te.placeholder((1, 32, 8, 8), name="A"), "NCHW", "NCHW16c").shape
    (1, 2, 8, 8, 16)
    """
    where = "topi.layout_transform"
    array = tensor_of(array, where, "array")
    source, target = _axes(src_layout, where), _axes(dst_layout, where)
    if {axis.name for axis in source} != {axis.name for axis in target}:
        raise DefinitionError(
            "{where}: {src_layout} and {dst_layout} do not have the same axes; write the same "
            "capital letters in both",
            kind="layout-text", where=where, src_layout=src_layout, dst_layout=dst_layout,
        )
    check_rank(array, len(source), where, array.name, src_layout)
    extents = _extents(array, source, src_layout, where)
    shape = [_extent(axis, target, extents, dst_layout, where) for axis in target]

    def value(*i: te.Expr) -> te.Expr:
        joined = _join_split_axes(target, i)
        return array(*(_part(axis, source, joined[axis.name]) for axis in source))

    return te.compute(tuple(shape), value, name="T_layout_trans", tag=tag.INJECTIVE)


def _axes(layout: object, where: str) -> list[LayoutAxis]:
    """Parse a layout into its axes, in order.

    Raises:
        DefinitionError: If the layout is malformed.
    """
    text = safe_str(layout)
    parts = re.findall(r"([A-Z])|(\d{1,18})([a-z])", text)
    axes = [
        LayoutAxis(capital) if capital else LayoutAxis(small.upper(), int(size))
        for capital, size, small in parts
    ]
    outer = [axis.name for axis in axes if axis.block is None]
    inner = [axis.name for axis in axes if axis.block is not None]
    is_read = "".join(f"{capital}{size}{small}" for capital, size, small in parts) == text
    is_consistent = len(set(outer)) == len(outer) and set(inner) <= set(outer) and len(
        set(inner)) == len(inner) and all(axis.block != 0 for axis in axes)
    if is_read and is_consistent and outer:
        return axes
    raise DefinitionError(
        "{where}: {layout!r} is not a valid layout; write one capital letter per axis, each once, "
        "and blocks as a size and a lower-case letter, as in NCHW16c",
        kind="unknown-choice", where=where, layout=layout,
    )


def _blocks(axes: list[LayoutAxis], name: str) -> int | None:
    return next((axis.block for axis in axes if axis.name == name and axis.block), None)


def _extents(
    array: te.Tensor, source: list[LayoutAxis], layout: str, where: str
) -> Mapping[str, Size]:
    """Return the full extent of each axis letter."""
    extents: dict[str, Size] = {}
    for axis, extent in zip(source, array.shape, strict=True):
        if axis.block is not None and differ(extent, axis.block):
            raise DefinitionError(
                "{where}: {layout} has blocks of {block} along {axis}, but {array} has extent "
                "{extent} there; pass a tensor with that layout",
                kind="shapes", where=where, layout=layout, block=axis.block, axis=axis.name,
                array=array.name, extent=extent,
            )
        extents[axis.name] = times(extents.get(axis.name, 1), extent)
    return extents


def _extent(
    axis: LayoutAxis, target: list[LayoutAxis], extents: Mapping[str, Size], layout: str, where: str
) -> Size:
    """Return the extent of one axis of the result."""
    block, extent = _blocks(target, axis.name), extents[axis.name]
    if axis.block is not None or block is None:
        return axis.block or extent
    if isinstance(extent, int) and extent % block:
        raise DefinitionError(
            "{where}: {layout} has blocks of {block} along {axis}, which do not divide its extent "
            "{extent}; pad it to a multiple with topi.nn.pad, or use transform_layout",
            kind="shapes", where=where, layout=layout, block=block, axis=axis.name, extent=extent,
        )
    return quotient(extent, block)


def _join_split_axes(target: list[LayoutAxis], index: tuple[te.Expr, ...]) -> dict[str, Any]:
    """Return the index along each full axis."""
    joined: dict[str, Any] = {}
    for axis, i in zip(target, index, strict=True):
        part = i if axis.block is not None else i * (_blocks(target, axis.name) or 1)
        joined[axis.name] = joined[axis.name] + part if axis.name in joined else part
    return joined


def _part(axis: LayoutAxis, source: list[LayoutAxis], index: Any) -> Any:
    """Return the index along one source axis from the index along the full axis."""
    block = _blocks(source, axis.name)
    if block is None:
        return index
    return index // block if axis.block is None else index % block
