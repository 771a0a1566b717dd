"""Map array axes and strides to kernel loops.

Axes along which all operands go on in memory as they do along the next one are one loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tecomp import te
from tecomp.array.graph.node import Buffer, Node
from tecomp.array.graph.pending import Step
from tecomp.ptensor.formulas.tables import element
from tecomp.ptensor.types import PART, PTensorType, Shape
from tecomp.ptensor.values import Complex, Element

Strides = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Operand:
    """How an array is passed: which axes of the loops it has, in the shape of these.

    Attributes:
        axes: the loops that it has elements along.
        index: that takes away what the loops do not go along; None if there is nothing.
        shape: the extents along its loops; None if that is the array's own shape.
        strided: whether there are places between its elements.
        unit: whether elements along the last of its loops lie side by side.
        part: the type of real and imaginary part, which lie side by side; None of real numbers.
    """

    axes: tuple[int, ...]
    index: tuple[Any, ...] | None
    shape: Shape | None
    strided: bool
    unit: bool
    part: np.dtype[Any] | None

    @property
    def lies(self) -> object:
        """What a kernel has to know of it."""
        return self.axes, self.strided, self.unit

    def view(self, data: Buffer) -> Buffer:
        """The array as it is passed."""
        if self.index is not None:
            data = data[self.index]
        if self.shape is not None:
            data = data.reshape(self.shape)
        return data if self.part is None else data[..., None].view(self.part)


def dense(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of an array without places between its elements, in elements.

    None is 0, which would say that elements are repeated, also where there are none.
    """
    return tuple([prod([n or 1 for n in shape[axis + 1 :]]) for axis in range(len(shape))])


def strides_of(nodes: Sequence[Node], shape: Shape) -> list[Strides] | None:
    """How far arrays go on along each axis of a shape that they broadcast to, in elements.

    None if that is no whole number for one of them.
    """
    found = []
    for node in nodes:
        own = _strides_of(node, shape)
        if own is None:
            return None
        found.append(own)
    return found


def _strides_of(node: Node, shape: Shape) -> Strides | None:
    data = node.data
    assert data is not None
    if any(stride % data.itemsize for stride in data.strides):
        return None
    missing = len(shape) - data.ndim
    # NumPy's strides of an array without elements say nothing: some of its versions make all 0.
    steps = [stride // data.itemsize for stride in data.strides] if data.size else dense(data.shape)
    own = [0 if extent == 1 else step for extent, step in zip(data.shape, steps, strict=True)]
    return (0,) * missing + tuple(own)


def merged(
    shape: Shape, strides: Sequence[Strides], kinds: Sequence[object]
) -> tuple[tuple[int, ...], ...]:
    """Axes that are one loop, outermost first; axes of one place are none.

    Args:
        shape: the extents.
        strides: of all operands.
        kinds: of the axes: those of two kinds are never one.
    """
    groups: list[list[int]] = []
    for axis, extent in enumerate(shape):
        if extent == 1:
            continue
        last = groups[-1][-1] if groups else None
        if last is not None and kinds[last] == kinds[axis] and all(
            s[last] == s[axis] * extent for s in strides
        ):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return tuple(map(tuple, groups))


def operand_of(
    node: Node, groups: Sequence[Sequence[int]], loops: Shape, strides: Strides
) -> Operand:
    """How an array is passed.

    Args:
        node: of the array.
        groups: the axes of each loop.
        loops: their extents.
        strides: of the array along these axes.
    """
    data = node.data
    assert data is not None
    steps = [strides[group[-1]] for group in groups]
    axes = tuple([k for k, step in enumerate(steps) if step])
    extents = tuple([loops[k] for k in axes])
    held = [0 if extent > 1 and stride == 0 else slice(None) for extent, stride in zip(
        data.shape, data.strides, strict=True)]
    index = (*held, ...) if 0 in held else None  # dots, so that it stays an array
    rest = tuple([e for e, part in zip(data.shape, held, strict=True) if part != 0])
    strided = tuple([steps[k] for k in axes]) != dense(extents)
    unit = not strided or not axes or steps[axes[-1]] == 1
    part = data.real.dtype if data.dtype.kind == "c" else None
    return Operand(axes, index, None if rest == extents else extents, strided, unit, part)


def argument(shape: list[te.Expr], dtype: str, name: str) -> te.Tensor:
    """What stands for an array; complex numbers have one axis more."""
    part = PART.get(dtype)
    if part is None:
        return te.placeholder(shape, dtype, name=name)
    return te.placeholder([*shape, 2], part, name=name)


def read(tensor: te.Tensor, how: Operand, index: Sequence[te.Expr]) -> Element:
    """The element of an argument at an index of the loops that it has."""
    if how.part is None:
        return tensor(*index)
    return Complex(tensor(*index, 0), tensor(*index, 1))


def memory(tensor: te.Tensor, how: Operand) -> Any:
    """Memory with strides that come with the call."""
    strides: list[Any] = [te.var(f"{tensor.name}_s{k}") for k in range(len(how.axes))]
    if how.unit:
        strides[-1] = 1 if how.part is None else 2
    if how.part is not None:
        strides.append(1)
    return te.decl_buffer(tensor.shape, tensor.dtype, strides=strides)


def elements_of(
    steps: Sequence[Step], leaves: Sequence[Element], dtypes: Sequence[str]
) -> list[Element]:
    """What elementwise operations make of the elements of the leaves, one for each step."""
    values: list[Element] = []
    kinds = dtypes_of(steps, dtypes)
    for op, places in steps:
        given = [values[k] if k >= 0 else leaves[-1 - k] for k in places]
        types = [kinds[k] if k >= 0 else dtypes[-1 - k] for k in places]
        values.append(element(op, given, types))
    return values


def dtypes_of(steps: Sequence[Step], dtypes: Sequence[str]) -> list[str]:
    """The types of what operations make of leaves of some types."""
    kinds: list[str] = []
    for op, places in steps:
        types = [kinds[k] if k >= 0 else dtypes[-1 - k] for k in places]
        kinds.append(op.infer(*[PTensorType((1,), dtype) for dtype in types]).dtype)
    return kinds
