"""Padding with a constant, or with reflected, replicated or wrapped elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tecomp import DefinitionError, te
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.topi import tag
from tecomp.topi.extents import Size, equal, plus
from tecomp.topi.validation import Operand, constant_of, extents_of, tensor_of, validate_choice
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
    """Pad a tensor with a constant.

    Args:
        data: Input tensor.
        pad_before: Number of elements before each axis.
        pad_after: Number of elements after each axis. Default: `pad_before`.
        pad_value: Padding value.
        name: Name of the operation.
        attrs: Arbitrary attributes, stored with the operation.

    Raises:
        DefinitionError: If there is not one number per axis, or if a number is negative.
        TypeMismatchError: If `pad_value` is not representable in the dtype of `data`.

    >>> pad(te.placeholder((4, 8), name="A"), [1, 0], [0, 2]).shape
    (5, 10)
    """
    where = "topi.nn.pad"
    before, after = _counts(data, pad_before, pad_after, where)
    # The default is the float 0.0, which has to become an int for integer tensors.
    is_whole = isinstance(pad_value, float) and pad_value.is_integer() and not data.dtype.is_float
    number = int(pad_value) if is_whole else pad_value
    value = constant_of(number, data.dtype, where, "pad_value")
    return define_padded(data, before, after, value, name, attrs)


def define_padded(
    data: te.Tensor, before: Counts, after: Counts, value: te.Expr, name: str,
    attrs: Mapping[str, object] | None = None,
) -> te.Tensor:
    """Define `data` padded with a constant; negative counts crop.

    The caller validates the counts.
    """
    shape = tuple(
        plus(plus(extent, a), b) for extent, a, b in zip(data.shape, before, after, strict=True))
    sides = list(zip(data.shape, before, after, strict=True))

    def element(*i: te.Expr) -> te.Expr:
        inside, index = [], []
        for axis, (extent, low, high) in zip(i, sides, strict=True):
            position = axis if equal(low, 0) else axis - low
            inside += [] if equal(low, 0) else [position >= 0]
            inside += [] if equal(high, 0) else [position < extent]
            index.append(position)
        read = data(*index)
        return te.if_then_else(te.all(*inside), read, value) if inside else read

    return te.compute(shape, element, name=name, tag="injective,pad", attrs=attrs)


def pad_images(
    images: Images, before: Sequence[int], after: Sequence[int], value: te.Expr
) -> te.Tensor:
    """Define images padded with a constant along the spatial axes."""
    x = images.tensor
    if not any((*before, *after)):
        return x
    low, high = [0] * x.ndim, [0] * x.ndim
    for axis, a, b in zip(images.spatial, before, after, strict=True):
        low[axis], high[axis] = a, b
    return define_padded(x, low, high, value, "pad_temp")


def _counts(
    data: te.Tensor, before: Counts, after: Counts | None, where: str
) -> tuple[list[Size], list[Size]]:
    data = tensor_of(data, where)
    low = extents_of(before, where, "pad_before")
    high = low if after is None else extents_of(after, where, "pad_after")
    known = [n for n in (*low, *high) if isinstance(n, int)]
    if len(low) != data.ndim or len(high) != data.ndim or any(n < 0 for n in known):
        raise DefinitionError(
            "{where}: {data} has shape {shape}, but padding is {low!r} before and {high!r} after; "
            "pass one non-negative number per axis",
            kind="shapes", where=where, data=data.name, shape=shape_text(data.shape),
            low=tuple(low), high=tuple(high),
        )
    return low, high


def _again(
    data: te.Tensor, before: Counts, after: Counts | None, where: str, name: str,
    map_index: Callable[[Any, Size], Any], spare: int,
) -> te.Tensor:
    """Define `data` padded with elements of its own.

    An index that turns out of bounds at run time, because a symbolic extent is too small, gives 0.

    Args:
        data: Input tensor.
        before: Number of elements before each axis.
        after: Number of elements after each axis.
        where: Name of the caller, for messages.
        name: Name of the operation.
        map_index: Function that maps a possibly out-of-bounds index to an index in bounds.
        spare: Number of elements of an axis that one side cannot repeat; the padding of a side is
            at most the extent minus `spare`. -1 for padding without limit.
    """
    low, high = _counts(data, before, after, where)
    for k, extent in enumerate(data.shape):
        max_pad = max(n for n in (low[k], high[k], 0) if isinstance(n, int))
        limit = max_pad
        if equal(extent, 0):
            limit = 0
        elif isinstance(extent, int) and spare >= 0:
            limit = extent - spare
        if max_pad > limit:
            raise DefinitionError(
                "{where}: padding of {padding} elements on one side of axis {k} of {data}, shape "
                "{shape}, exceeds the {limit} elements available; reduce the padding",
                kind="shapes", where=where, k=k, data=data.name, shape=shape_text(data.shape),
                padding=max_pad, limit=limit,
            )
    shape = tuple(
        plus(plus(extent, a), b) for extent, a, b in zip(data.shape, low, high, strict=True))

    def element(*i: te.Expr) -> te.Expr:
        index, inside = [], []
        for axis, a, b, extent in zip(i, low, high, data.shape, strict=True):
            is_padded = not (equal(a, 0) and equal(b, 0))
            index.append(map_index(axis - a, extent) if is_padded else axis)
            # A symbolic extent may be too small at run time.
            if is_padded and not isinstance(extent, int):
                inside += [index[-1] >= 0, index[-1] < extent]
        read = data(*index)
        return te.if_then_else(te.all(*inside), read, te.const(0, data.dtype)) if inside else read

    return te.compute(shape, element, name=name, tag=tag.INJECTIVE)


def mirror_pad(
    data: te.Tensor,
    pad_before: Counts,
    pad_after: Counts | None = None,
    mode: str = "SYMMETRIC",
    name: str = "MirrorPadInput",
) -> te.Tensor:
    """Pad a tensor by reflection, with or without a second copy of the outermost elements.

    Args:
        data: Input tensor.
        pad_before: Number of elements before each axis.
        pad_after: Number of elements after each axis. Default: `pad_before`.
        mode: "SYMMETRIC" repeats the outermost elements, "REFLECT" does not.
        name: Name of the operation.

    Raises:
        DefinitionError: If `mode` is unknown, if there is not one number per axis, or if an axis
            has too few elements to reflect.

    >>> mirror_pad(te.placeholder((4, 8), name="A"), [1, 0], [0, 2]).shape
    (5, 10)
    """
    where = "topi.nn.mirror_pad"
    validate_choice(mode, ("SYMMETRIC", "REFLECT"), where, "mode")
    return _mirror(data, pad_before, pad_after, where, name, int(mode == "SYMMETRIC"))


def reflect_pad(
    data: te.Tensor, pad_before: Counts, pad_after: Counts | None = None,
    name: str = "ReflectPadInput",
) -> te.Tensor:
    """Pad a tensor by reflection without a second copy of the outermost elements.

    Args:
        data: Input tensor.
        pad_before: Number of elements before each axis.
        pad_after: Number of elements after each axis. Default: `pad_before`.
        name: Name of the operation.

    Raises:
        DefinitionError: If there is not one number per axis, or if an axis has too few elements to
            reflect.

    >>> reflect_pad(te.placeholder((4, 8), name="A"), (0, 2), (0, 2)).shape
    (4, 12)
    """
    return _mirror(data, pad_before, pad_after, "topi.nn.reflect_pad", name, 0)


def _mirror(
    data: te.Tensor, before: Counts, after: Counts | None, where: str, name: str, repeat_edge: int
) -> te.Tensor:
    def place(index: Any, extent: Size) -> Any:
        low = te.Select(index < 0, -index - repeat_edge, index)
        return te.Select(index >= extent, 2 * extent - 2 + repeat_edge - index, low)

    return _again(data, before, after, where, name, place, 1 - repeat_edge)


def replicate_pad(
    data: te.Tensor, pad_before: Counts, pad_after: Counts | None = None,
    name: str = "ReplicatePadInput",
) -> te.Tensor:
    """Pad a tensor by repeating its outermost elements.

    Args:
        data: Input tensor.
        pad_before: Number of elements before each axis.
        pad_after: Number of elements after each axis. Default: `pad_before`.
        name: Name of the operation.

    Raises:
        DefinitionError: If there is not one number per axis, or if a padded axis is empty.

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
    """Pad a tensor with wrap-around: each side continues with the elements of the opposite end.

    Args:
        data: Input tensor.
        pad_before: Number of elements before each axis.
        pad_after: Number of elements after each axis. Default: `pad_before`.
        name: Name of the operation.

    Raises:
        DefinitionError: If there is not one number per axis, or if a padded axis is empty.

    >>> circular_pad(te.placeholder((4, 8), name="A"), (0, 2), (0, 2)).shape
    (4, 12)
    """
    return _again(
        data, pad_before, pad_after, "topi.nn.circular_pad", name,
        lambda index, extent: index % extent, -1)
