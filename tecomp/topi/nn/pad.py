"""Tensors with more elements around them: of one value, or elements of their own once more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tecomp import DefinitionError, te
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.topi import tag
from tecomp.topi.extents import Size, equal, plus
from tecomp.topi.validation import Operand, constant_of, extents_of, one_of, tensor_of
from tecomp.topi.windows import Images

Counts = Sequence[Size]


def pad(
    data: te.Tensor,
    pad_before: Counts,
    pad_after: Counts | None = None,
    pad_value: Operand = 0.0,
    name: str = "PadInput",
    attrs: Mapping[str, object] | None = None,
) -> te.Tensor:
    """`data` with a value around it.

    Args:
        data: the tensor.
        pad_before: elements before it, for each axis.
        pad_after: elements after it; as many as before if None.
        pad_value: the value.
        name: of the result.
        attrs: free values, kept with the operation.

    Raises:
        DefinitionError: there is not one number for each axis, or one is negative.
        TypeMismatchError: the type of an element cannot hold the value.

    >>> pad(te.placeholder((4, 8), name="A"), [1, 0], [0, 2]).shape
    (5, 10)
    """
    where = "topi.nn.pad"
    before, after = _counts(data, pad_before, pad_after, where)
    # The default is a float, and a fine integer.
    is_whole = isinstance(pad_value, float) and pad_value.is_integer() and not data.dtype.is_float
    number = int(pad_value) if is_whole else pad_value
    value = constant_of(number, data.dtype, where, "pad_value")
    return padded(data, before, after, value, name, attrs)


def padded(
    data: te.Tensor, before: Counts, after: Counts, value: te.Expr, name: str,
    attrs: Mapping[str, object] | None = None,
) -> te.Tensor:
    """`data` with a value around it; the numbers are checked, and may be negative to cut it."""
    shape = tuple(
        plus(plus(extent, a), b) for extent, a, b in zip(data.shape, before, after, strict=True))
    sides = list(zip(data.shape, before, after, strict=True))

    def element(*i: te.Expr) -> te.Expr:
        inside, places = [], []
        for axis, (extent, low, high) in zip(i, sides, strict=True):
            place = axis if equal(low, 0) else axis - low
            inside += [] if equal(low, 0) else [place >= 0]
            inside += [] if equal(high, 0) else [place < extent]
            places.append(place)
        read = data(*places)
        return te.if_then_else(te.all(*inside), read, value) if inside else read

    return te.compute(shape, element, name=name, tag="injective,pad", attrs=attrs)


def surrounded(
    images: Images, before: Sequence[int], after: Sequence[int], value: te.Expr
) -> te.Tensor:
    """Images with a value around them, along the axes that windows move along."""
    x = images.tensor
    if not any((*before, *after)):
        return x
    low, high = [0] * x.ndim, [0] * x.ndim
    for axis, a, b in zip(images.spatial, before, after, strict=True):
        low[axis], high[axis] = a, b
    return padded(x, low, high, value, "pad_temp")


def _counts(
    data: te.Tensor, before: Counts, after: Counts | None, where: str
) -> tuple[list[Size], list[Size]]:
    data = tensor_of(data, where)
    low = extents_of(before, where, "pad_before")
    high = low if after is None else extents_of(after, where, "pad_after")
    known = [n for n in (*low, *high) if isinstance(n, int)]
    if len(low) != data.ndim or len(high) != data.ndim or any(n < 0 for n in known):
        raise DefinitionError(
            f"{where}: {data.name} has shape {shape_text(data.shape)}, and there are {tuple(low)} "
            f"elements before and {tuple(high)} after; give a number from 0 for each axis",
            kind="shapes",
        )
    return low, high


def _again(
    data: te.Tensor, before: Counts, after: Counts | None, where: str, name: str,
    place: Callable[[Any, Size], Any], spare: int,
) -> te.Tensor:
    """`data` with elements of its own around it; 0 where it turns out to have too few.

    Args:
        data: the tensor.
        before: elements before it, for each axis.
        after: elements after it.
        where: the call, for messages.
        name: of the result.
        place: from an index, which may be outside, to one that is inside.
        spare: elements of an axis that cannot be there once more on one side; -1 where all can
            be so any number of times.
    """
    low, high = _counts(data, before, after, where)
    for k, extent in enumerate(data.shape):
        most = max(n for n in (low[k], high[k], 0) if isinstance(n, int))
        limit = most
        if equal(extent, 0):
            limit = 0
        elif isinstance(extent, int) and spare >= 0:
            limit = extent - spare
        if most > limit:
            raise DefinitionError(
                f"{where}: axis {k} of {data.name}, shape {shape_text(data.shape)}, gets {most} "
                f"elements on one side, and has {limit} for that; pad it less",
                kind="shapes",
            )
    shape = tuple(
        plus(plus(extent, a), b) for extent, a, b in zip(data.shape, low, high, strict=True))

    def element(*i: te.Expr) -> te.Expr:
        places, inside = [], []
        for axis, a, b, extent in zip(i, low, high, data.shape, strict=True):
            is_padded = not (equal(a, 0) and equal(b, 0))
            places.append(place(axis - a, extent) if is_padded else axis)
            # An extent that comes at the call may be too small for this.
            if is_padded and not isinstance(extent, int):
                inside += [places[-1] >= 0, places[-1] < extent]
        read = data(*places)
        return te.if_then_else(te.all(*inside), read, te.const(0, data.dtype)) if inside else read

    return te.compute(shape, element, name=name, tag=tag.INJECTIVE)


def mirror_pad(
    data: te.Tensor,
    pad_before: Counts,
    pad_after: Counts | None = None,
    mode: str = "SYMMETRIC",
    name: str = "MirrorPadInput",
) -> te.Tensor:
    """`data` mirrored at its sides: with the outermost element twice, or for `REFLECT` once.

    Args:
        data: the tensor.
        pad_before: elements before it, for each axis.
        pad_after: elements after it; as many as before if None.
        mode: `SYMMETRIC` or `REFLECT`.
        name: of the result.

    Raises:
        DefinitionError: there is no such mode, not one number for each axis, or an axis has not so
            many elements.

    >>> mirror_pad(te.placeholder((4, 8), name="A"), [1, 0], [0, 2]).shape
    (5, 10)
    """
    where = "topi.nn.mirror_pad"
    one_of(mode, ("SYMMETRIC", "REFLECT"), where, "mode")
    return _mirrored(data, pad_before, pad_after, where, name, int(mode == "SYMMETRIC"))


def reflect_pad(
    data: te.Tensor, pad_before: Counts, pad_after: Counts | None = None,
    name: str = "ReflectPadInput",
) -> te.Tensor:
    """`data` mirrored at its outermost elements, as `mirror_pad` in mode `REFLECT`.

    Args:
        data: the tensor.
        pad_before: elements before it, for each axis.
        pad_after: elements after it; as many as before if None.
        name: of the result.

    Raises:
        DefinitionError: not one number for each axis, or an axis has not so many elements.

    >>> reflect_pad(te.placeholder((4, 8), name="A"), (0, 2), (0, 2)).shape
    (4, 12)
    """
    return _mirrored(data, pad_before, pad_after, "topi.nn.reflect_pad", name, 0)


def _mirrored(
    data: te.Tensor, before: Counts, after: Counts | None, where: str, name: str, twice: int
) -> te.Tensor:
    def place(index: Any, extent: Size) -> Any:
        low = te.Select(index < 0, -index - twice, index)
        return te.Select(index >= extent, 2 * extent - 2 + twice - index, low)

    return _again(data, before, after, where, name, place, 1 - twice)


def replicate_pad(
    data: te.Tensor, pad_before: Counts, pad_after: Counts | None = None,
    name: str = "ReplicatePadInput",
) -> te.Tensor:
    """`data` with its outermost elements repeated around it.

    Args:
        data: the tensor.
        pad_before: elements before it, for each axis.
        pad_after: elements after it; as many as before if None.
        name: of the result.

    Raises:
        DefinitionError: not one number for each axis, or an axis has no elements.

    >>> replicate_pad(te.placeholder((4, 8), name="A"), (0, 2), (0, 2)).shape
    (4, 12)
    """
    return _again(
        data, pad_before, pad_after, "topi.nn.replicate_pad", name,
        lambda index, extent: te.max(te.min(index, extent - 1), 0), -1)


def circular_pad(
    data: te.Tensor, pad_before: Counts, pad_after: Counts | None = None,
    name: str = "CircularPadInput",
) -> te.Tensor:
    """`data` with its other end on each side, as a ring.

    Args:
        data: the tensor.
        pad_before: elements before it, for each axis.
        pad_after: elements after it; as many as before if None.
        name: of the result.

    Raises:
        DefinitionError: not one number for each axis, or an axis has no elements.

    >>> circular_pad(te.placeholder((4, 8), name="A"), (0, 2), (0, 2)).shape
    (4, 12)
    """
    return _again(
        data, pad_before, pad_after, "topi.nn.circular_pad", name,
        lambda index, extent: index % extent, -1)
