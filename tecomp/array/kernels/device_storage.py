"""Device buffers and their layouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from tecomp.array.graph.locking import placing
from tecomp.array.graph.node import Buffer, Node, looking
from tecomp.array.graph.pending import Step, pending
from tecomp.array.statistics import costs_of
from tecomp.compute.define import placeholder
from tecomp.errors import ArrayTypeError, ArrayValueError, LayoutError
from tecomp.graph.layout_candidates import along, candidates
from tecomp.graph.layout_demands import check_given
from tecomp.ir.nodes.dtype import DType
from tecomp.layout.core.layout import Layout
from tecomp.layout.formats.format import Format
from tecomp.layout.sticks.stick_layout import sized
from tecomp.ptensor.devices import is_apart, target_of
from tecomp.ptensor.operations.elementwise import Cast, Elementwise, Where
from tecomp.ptensor.types import PART, PTensorType, Shape, numpy_dtype
from tecomp.schedules.scratchpad.placement import device_of


class Stored:
    """Elements in the memory of a device.

    Attributes:
        type: of the array.
        layout: the one that programs know them in.
        data: the memory, in the places of the layout.
        program: what computed them; None if they came from the host.
    """

    __slots__ = ("_host", "data", "layout", "program", "type")

    def __init__(
        self, type: PTensorType, layout: Layout, data: Buffer, program: Any = None
    ) -> None:
        self.type = type
        self.layout = layout
        self.data = data
        self.program = program
        self._host: Buffer | None = None

    @property
    def shown(self) -> Layout:
        """The layout as users see it: `pack` of it gives these bytes."""
        return shown(self.layout, self.type.device)

    def elements(self) -> Buffer:
        """The elements in the memory of the host, which are not written."""
        if self._host is None:
            costs_of(self.type.device).to_host(self.data.nbytes)
            found = self.shown.unpack(self.data)
            if self.type.dtype in PART:
                found = found.view(numpy_dtype(self.type.dtype))[..., 0]
            found.flags.writeable = False
            self._host = found
        return self._host


@lru_cache(maxsize=4096)
def shown(layout: Layout, device: str | None) -> Layout:
    """A layout whose elements are of the types of the host, as those of programs are."""
    return replace(
        _plain(layout), memory=device_of(target_of(str(device)))
    )


def _plain(layout: Layout) -> Layout:
    return Layout(
        layout.shape, layout.dtype, layout.index_map, Format.plain(layout.dtype),
        layout.pad_value, layout.memory, layout.grid_axes,
    )


def parts_of(type: PTensorType) -> tuple[Shape, str]:
    """Shape and element type of the memory of an array; complex numbers are pairs."""
    part = PART.get(type.dtype)
    return (type.shape, type.dtype) if part is None else ((*type.shape, 2), part)


@lru_cache(maxsize=4096)
def default_layout(type: PTensorType) -> Layout:
    """The layout in which a device has arrays that come to it."""
    shape, dtype = parts_of(type)
    target = target_of(str(type.device))
    if type.dtype in PART and type.shape:
        return along(target, shape, DType(dtype), len(shape) - 2)
    return candidates(target, shape, DType(dtype))[0]


def along_axis(type: PTensorType, axis: int) -> Layout:
    """The layout of an array on its device with an axis along the lanes."""
    shape, dtype = parts_of(type)
    return along(target_of(str(type.device)), shape, DType(dtype), axis)


def known(type: PTensorType, layout: Layout) -> Layout:
    """A layout as programs know it: in the storage that the machine has for such elements."""
    shape, dtype = parts_of(type)
    for each in candidates(target_of(str(type.device)), shape, DType(dtype)):
        same = shown(each, type.device)
        if layout in (each, same) and layout.pad_value is None:
            return each
    return layout


def kept_layouts(
    leaves: Sequence[tuple[PTensorType, Layout | None]], steps: Sequence[Step],
    types: Sequence[PTensorType],
) -> list[Layout | None]:
    """Return the layouts that results of elementwise operations take over from their operands.

    A result has the layout of an operand that has its shape and dtype, directly or through further
    elementwise operations. The default layout of the device is not taken over: the compiler knows
    it as a candidate.

    Args:
        leaves: types and layouts of the operands that are evaluated.
        steps: the operations.
        types: types of their results.
    """
    own = [None if at in (None, default_layout(type)) else (type, at) for type, at in leaves]
    shapes = [type.shape for type, _ in leaves]
    carried: list[tuple[PTensorType, Layout | None] | None] = []
    for (op, places), type in zip(steps, types, strict=True):
        found = None
        if isinstance(op, Elementwise | Where | Cast):
            for k in places:
                shape = types[k].shape if k >= 0 else shapes[-1 - k]
                if shape == type.shape:
                    found = found or (carried[k] if k >= 0 else own[-1 - k])
        carried.append(found)
    return [
        each[1] if each is not None and each[0].dtype == type.dtype else None
        for each, type in zip(carried, types, strict=True)
    ]


def kept_layout(node: Node) -> Layout | None:
    """Return the layout of a node that arrays like it take over; None for the device's default."""
    layout = node.home if node.stored is None else node.stored.layout
    if layout is not None:
        return None if layout == default_layout(node.type) else layout
    with looking:
        work = pending((node,))
    if node not in work.nodes:
        return None
    leaves = [(x.type, x.stored.layout if x.stored else x.home) for x in work.leaves]
    types = [each.type for each in work.nodes]
    return kept_layouts(leaves, work.steps, types)[work.nodes.index(node)]


def alternatives(type: PTensorType, layout: Layout) -> list[Layout]:
    """Return a layout, and those that the machine knows for such an array; none if it knows it."""
    shape, dtype = parts_of(type)
    known = (default_layout(type), *candidates(target_of(str(type.device)), shape, DType(dtype)))
    return [] if layout in known else [layout, *dict.fromkeys(known)]


def stored_of(node: Node) -> Stored:
    """The elements of a node that is computed where its device has them."""
    with placing:
        if node.stored is None:
            assert node.data is not None
            node.placed(brought(node.data, node.type, node.home or default_layout(node.type)))
        assert isinstance(node.stored, Stored)
        return node.stored


def layout_for(type: PTensorType, layout: Layout | None) -> Layout:
    """The layout that is asked for, or the device's own."""
    return default_layout(type) if layout is None else known(type, layout)


def empty(type: PTensorType, layout: Layout) -> Stored:
    """Elements that nobody has said."""
    return Stored(type, known(type, layout), np.zeros(layout.physical_shape, layout.dtype.numpy))


def brought(data: Buffer, type: PTensorType, layout: Layout) -> Stored:
    """Elements of the host in a layout, in the memory of a device."""
    whole = np.ascontiguousarray(data).reshape(data.shape)
    if type.dtype in PART:
        whole = whole[..., None].view(whole.real.dtype)
    packed = np.asarray(shown(layout, type.device).pack(whole))
    if np.may_share_memory(packed, data):  # its owner can write it
        packed = packed.copy()
    costs_of(type.device).from_host(packed.nbytes)
    return Stored(type, layout, packed)


def layout_of(type: PTensorType, layout: Any, where: str) -> Layout:
    """Return a layout that a caller gives for an array on its device.

    A `StickLayout` without a size of its own takes the size of the array.

    Raises:
        ArrayTypeError: If `layout` is not a layout.
        ArrayValueError: If the device has no layouts, or not this layout for such an array.
    """
    if not isinstance(layout, Layout):
        raise ArrayTypeError(
            f"{where}: layout is {layout.__class__.__name__}; give a tecomp.Layout, as x.layout is"
        )
    if not is_apart(type.device):
        raise ArrayValueError(
            f"{where}: a layout is given for an array on {type.device!r}, which has the order of "
            "NumPy; give a device that has layouts, device='stick128'"
        )
    shape, dtype = parts_of(type)
    own = sized(layout, shape)
    try:
        check_given(placeholder(shape, dtype, "x"), own, target_of(str(type.device)))
    except LayoutError as error:
        raise ArrayValueError(f"{where}: {error.message}", kind=error.kind) from None
    return own
