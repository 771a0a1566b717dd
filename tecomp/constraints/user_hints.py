"""Layout and work-division hints from the user."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Final, Literal, overload

from tecomp.compute.define import copy_of
from tecomp.compute.iter_var import IterVar
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.tensor import Tensor
from tecomp.errors import LayoutError
from tecomp.ir.arith.extents import constant_shape
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.layout.core.layout import Layout
from tecomp.layout.core.stick_layout import with_tensor_shape
from tecomp.layout.formats.stored_tensor import check_layout

Kind = Literal["cores", "num_tiles_per_dim"]

Parts = Mapping[str, int] | Mapping[IterVar, int] | Mapping[str | IterVar, int]
"""Number of parts along axes, by axis or axis name."""

_TEXT = {"cores": "is divided among cores", "num_tiles_per_dim": "is computed in tiles"}


@dataclass(frozen=True, slots=True, eq=False)
class DivisionHint:
    """Hint on the work division of a value, created by `hint`.

    Attributes:
        tensor: Value that the hint constrains.
        kind: `cores` for the division among cores, `num_tiles_per_dim` for tiles within a core.
        parts: Pairs of axis number and number of parts; reduction axes are numbered last.
        is_hard: Whether the hint must be satisfied.
    """

    tensor: Tensor
    kind: Kind
    parts: tuple[tuple[int, int], ...]
    is_hard: bool

    @property
    def axes(self) -> tuple[IterVar, ...]:
        """Data axes of the value, followed by its reduction axes."""
        return axes_of(self.tensor)

    def __str__(self) -> str:
        details = ", ".join(f"{count} along {self.axes[axis].name}" for axis, count in self.parts)
        return f"the hint that {self.tensor.name} {_TEXT[self.kind]}, {details},"


def axes_of(tensor: Tensor) -> tuple[IterVar, ...]:
    """Return the axes of the operation that computes a value, reduction axes last."""
    return (*tensor.op.axis, *tensor.op.reduce_axis)


def division_hint(
    tensor: Tensor, kind: Kind, parts: Parts, *, is_hard: bool
) -> DivisionHint:
    """Build a validated work-division hint.

    Raises:
        LayoutError: If the tensor is not computed by `te.compute`, an axis is unknown or specified
            twice, or a number of parts is not a positive integer.
    """
    remedy = "pass a mapping from axis or axis name to a number"
    check_kind(parts, Mapping, f"hint: {kind}", remedy, LayoutError)
    if not isinstance(tensor.op, ComputeOp):
        raise LayoutError(
            "hint: {tensor} is not computed by loops, so {parameter} is not supported; pass a "
            "result of te.compute",
            kind="layout-requirement", tensor=tensor.name, parameter=kind,
        )
    if not parts:
        raise LayoutError(
            "hint: {parameter} of {tensor} is empty; {remedy}",
            kind="layout-requirement", parameter=kind, tensor=tensor.name, remedy=remedy,
        )
    found: dict[int, int] = {}
    for axis, count in parts.items():
        number = _number(tensor, axis, kind)
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise LayoutError(
                "hint: {parameter} along {tensor} of {tensor_name} must be a positive integer, got "
                "{count!r}",
                kind="invalid-value", parameter=kind, tensor=axes_of(tensor)[number].name,
                tensor_name=tensor.name, count=count,
            )
        if found.setdefault(number, count) != count:
            raise LayoutError(
                "hint: {parameter} along {tensor} of {tensor_name} is specified twice ({found}, "
                "{count}); pass it once",
                kind="duplicate-argument", parameter=kind, tensor=axes_of(tensor)[number].name,
                tensor_name=tensor.name, found=found[number], count=count,
            )
    return DivisionHint(tensor, kind, tuple(sorted(found.items())), is_hard)


def _number(tensor: Tensor, axis: object, kind: Kind) -> int:
    axes = axes_of(tensor)
    matches = [k for k, candidate in enumerate(axes) if candidate is axis or candidate.name == axis]
    if len(matches) == 1:
        return matches[0]
    name = axis.name if isinstance(axis, IterVar) else repr(axis)
    names = ", ".join(candidate.name for candidate in axes) or "none"
    flaw = "is no axis" if not matches else f"names {len(matches)} axes"
    raise LayoutError(
        "hint: {parameter}: {name} {how} of {tensor} (its axes: {listed}); pass one of its "
        "op.axis{reduce_axes}",
        kind="layout-requirement", parameter=kind, name=name, how=flaw, tensor=tensor.name,
        listed=names, reduce_axes=" or op.reduce_axis" if tensor.op.reduce_axis else "",
    )


RELAYOUT: Final = "relayout"
"""Attribute of a copy that requests its layout: a `Layout`, or the axis along the lanes."""


@dataclass(frozen=True, slots=True, eq=False)
class Hint:
    """Layout hint on a value, created by `hint`.

    Attributes:
        tensor: Value that the hint constrains.
        stick: Number of the axis along the lanes.
        cost: Number of elements that relayouts may move to satisfy the hint; infinite if hard.

    >>> from tecomp import te
    >>> A = te.placeholder((128, 64), "float16", name="A")
    >>> wish = hint(A, stick=0)
    >>> wish.tensor.name, wish.stick, wish.cost, wish.is_hard
    ('A', 0, 8192.0, False)
    """

    tensor: Tensor
    stick: int
    cost: float

    @property
    def is_hard(self) -> bool:
        """Whether the hint must be satisfied."""
        return self.cost == inf

    def __str__(self) -> str:
        return f"the hint that {self.tensor.name} has axis {self.stick} along its lanes"


@overload
def hint(
    tensor: Tensor, *, stick: int | IterVar, hard: bool = ..., cost: float | None = ...
) -> Hint: ...


@overload
def hint(tensor: Tensor, *, cores: Parts, hard: bool = ...) -> DivisionHint: ...


@overload
def hint(tensor: Tensor, *, num_tiles_per_dim: Parts, hard: bool = ...) -> DivisionHint: ...


def hint(
    tensor: Tensor, *, stick: int | IterVar | None = None, cores: Parts | None = None,
    num_tiles_per_dim: Parts | None = None, hard: bool = False, cost: float | None = None,
) -> Hint | DivisionHint:
    """Build a hint for `tecomp.compile(..., hints=[...])`.

    Exactly one of `stick`, `cores` and `num_tiles_per_dim` is required.

    Args:
        tensor: Value of the program.
        stick: Axis, or number of the axis, that runs along sticks or rows of tiles. On targets
            without sticks, a hard hint makes elements along the axis contiguous in memory.
        cores: Number of cores along each axis, by axis or axis name; reduction axes are allowed.
            Axes that are not listed are not divided.
        num_tiles_per_dim: Number of blocks in which each core computes its part sequentially, along
            each axis. Axes that are not listed may have any number.
        hard: If True, the hint must be satisfied. Otherwise violating a `stick` hint has a cost,
            and a division is applied where the target supports it. Default: False.
        cost: Number of elements that relayouts may move for a `stick` hint. Default: the number of
            elements of the tensor.

    Raises:
        LayoutError: If the tensor has no such axis, a number is invalid, or not exactly one of the
            three hints is specified.

    >>> from tecomp import te
    >>> A = te.placeholder((128, 64), "float16", name="A")
    >>> print(hint(A, stick=-2))
    the hint that A has axis 0 along its lanes
    """
    check_kind(tensor, Tensor, "hint: the tensor", "give what te.compute makes", LayoutError)
    check_kind(hard, bool, "hint: hard", "give True or False", LayoutError)
    if sum(option is not None for option in (stick, cores, num_tiles_per_dim)) != 1:
        raise LayoutError(
            "hint: expected exactly one constraint on {tensor}; pass one of stick, cores and "
            "num_tiles_per_dim",
            kind="conflicting-options", tensor=tensor.name,
        )
    if stick is None and cost is not None:
        raise LayoutError(
            "hint: cost {cost!r} counts elements moved by relayouts, but a work division moves "
            "none; remove it",
            kind="conflicting-options", cost=cost,
        )
    if cores is not None:
        return division_hint(tensor, "cores", cores, is_hard=hard)
    if num_tiles_per_dim is not None:
        return division_hint(tensor, "num_tiles_per_dim", num_tiles_per_dim, is_hard=hard)
    assert stick is not None
    return _stick_hint(tensor, stick, hard=hard, cost=cost)


def _stick_hint(
    tensor: Tensor, stick: int | IterVar, *, hard: bool, cost: float | None
) -> Hint:
    axis = _axis(tensor, stick, "hint")
    if cost is None:
        elements = 1
        for extent in tensor.shape:
            elements *= extent if isinstance(extent, int) else 1
        cost = elements
    is_number = isinstance(cost, int | float) and not isinstance(cost, bool)
    if not is_number or not 0 <= cost <= sys.float_info.max:
        raise LayoutError(
            "hint: cost must be a non-negative number of elements, got {cost!r}",
            kind="invalid-value", cost=cost,
        )
    return Hint(tensor, axis, inf if hard else float(cost))


def restickify(tensor: Tensor, axis: int | IterVar, name: str | None = None) -> Tensor:
    """Build a copy of a tensor with an axis along its sticks, or along the rows of its tiles.

    The copy is an operation of the program; targets without layout constraints omit it.

    Args:
        tensor: Tensor to copy.
        axis: Axis of the tensor, or its number.
        name: Name of the copy. Default: the name of the tensor with the suffix `_relaid`.

    Raises:
        LayoutError: If the tensor has no such axis.

    >>> from tecomp import te
    >>> A = te.placeholder((128, 64), "float16", name="A")
    >>> print(restickify(A, 0, name="B").op)
    B[i0, i1] = A[i0, i1]
    """
    check_kind(tensor, Tensor, "restickify: the tensor", "give what te.compute makes", LayoutError)
    return _copy(tensor, _axis(tensor, axis, "restickify"), name)


def relayout_to(tensor: Tensor, layout: Layout, name: str | None = None) -> Tensor:
    """Build a copy of a tensor in a layout, as an operation of the program.

    Args:
        tensor: Tensor to copy.
        layout: Layout of the copy; a `StickLayout` without `size` takes the size of the tensor.
        name: Name of the copy. Default: the name of the tensor with the suffix `_relaid`.

    Raises:
        LayoutError: If the shape or dtype of the layout differs from that of the tensor.

    >>> from tecomp import Layout, te
    >>> A = te.placeholder((128, 64), "float16", name="A")
    >>> print(relayout_to(A, Layout.row_major((128, 64), "float16"), name="B").op)
    B[i0, i1] = A[i0, i1]
    """
    check_kind(tensor, Tensor, "relayout_to: the tensor", "give what te.compute makes", LayoutError)
    check_layout(layout, "relayout_to")
    layout = with_tensor_shape(layout, constant_shape(tensor.shape))
    if layout.shape != constant_shape(tensor.shape) or layout.dtype != tensor.dtype:
        raise LayoutError(
            "relayout_to: {tensor} is {dtype}{shape}, but the layout is for "
            "{layout_dtype}{layout_shape}; pass a layout of its shape and dtype",
            kind="layout-shape-mismatch", tensor=tensor.name, dtype=tensor.dtype,
            shape=list(tensor.shape),
            layout_dtype=layout.dtype, layout_shape=list(layout.shape),
        )
    return _copy(tensor, layout, name)


def requested_layout_of(op: Operation) -> Layout | int | None:
    """Return the requested layout or lane axis of a relayout copy; None for other operations."""
    found = op.attrs.get(RELAYOUT)
    return found if isinstance(found, Layout | int) else None


def _copy(tensor: Tensor, requested: Layout | int, name: str | None) -> Tensor:
    name = f"{tensor.name}_relaid" if name is None else name
    return copy_of(tensor, name, attrs={RELAYOUT: requested})


def _axis(tensor: Tensor, axis: int | IterVar, where: str) -> int:
    rank = len(tensor.shape)
    if isinstance(axis, IterVar):
        axes = tensor.op.axis if isinstance(tensor.op, ComputeOp) else ()
        if axis not in axes:
            raise LayoutError(
                "{where}: {axis} is not an axis of {tensor}; pass one of its op.axis, or its "
                "number",
                kind="layout-requirement", where=where, axis=axis.name, tensor=tensor.name,
            )
        return next(k for k, candidate in enumerate(axes) if candidate is axis)
    if isinstance(axis, bool) or not isinstance(axis, int) or not -rank <= axis < rank:
        raise LayoutError(
            "{where}: axis {axis!r} is out of range for {tensor} with {rank} axes; pass a number "
            "from 0 to {last}",
            kind="invalid-value", where=where, tensor=tensor.name, rank=rank, axis=axis,
            last=rank - 1,
        )
    return axis % rank
