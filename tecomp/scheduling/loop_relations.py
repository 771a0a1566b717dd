"""Relations between loops and root axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tecomp.compute.iter_var import IterVar
from tecomp.ir.arith.extents import are_equal, ceil_div, divisor, product
from tecomp.ir.arith.simplify import simplify
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import BinOp, Cast, Const, Expr, binary, cast, index_value, is_const
from tecomp.ir.nodes.stmt import Extent
from tecomp.poly.maps.index_map import IndexMap
from tecomp.scheduling.state import Fuse, Relation, Split, Transform


@dataclass(frozen=True, slots=True)
class Frame:
    """Where an axis starts and how far it runs; its loops count from 0 at `base`."""

    base: Expr
    extent: Extent


Frames = dict[IterVar, Frame]
BoxOf = Callable[[Transform, Frames, Mapping[IterVar, Expr]], Sequence[Frame]]


def derive_frames(
    relations: Sequence[Relation], roots: Frames, box_of: BoxOf
) -> tuple[Frames, dict[IterVar, Expr]]:
    """Frame of every axis, and each axis, relative to its base, as a function of the roots.

    `roots` are the frames of the root axes, which are what the functions are in terms of.
    `box_of` gives the frames that the results of a layout map have.
    """
    frames: Frames = dict(roots)
    values: dict[IterVar, Expr] = {
        axis: index_value(axis) - frame.base for axis, frame in roots.items()
    }
    for relation in relations:
        match relation:
            case Split(parent, outer, inner):
                extent = frames[parent].extent
                factor = split_factor(relation, extent)
                for part, count in zip(
                    (outer, inner), split_extents(extent, relation.factor, relation.nparts),
                    strict=True,
                ):
                    frames[part] = Frame(Const(0), count)
                values[outer] = values[parent] // factor
                values[inner] = (
                    values[parent] - part_start(relation, extent, values[outer])
                    if is_shifted(relation, extent) else values[parent] % factor
                )
            case Fuse(parts, fused):
                extent = 1
                value: Expr = index_value(0)
                for part in parts:
                    value = value * frames[part].extent + values[part]
                    extent = extent * frames[part].extent
                frames[fused] = Frame(Const(0), extent)
                values[fused] = value
            case Transform(before, after, index_map):
                absolute = [values[axis] + frames[axis].base for axis in before]
                boxes = box_of(relation, frames, values)
                for axis, place, frame in zip(
                    after, index_map.map_indices(absolute), boxes, strict=True
                ):
                    frames[axis] = frame
                    values[axis] = place - frame.base
    return frames, values


def recover(
    relations: Sequence[Relation],
    frames: Frames,
    leaves: Mapping[IterVar, Expr],
    inverse_of: Callable[[IndexMap, Sequence[Extent]], IndexMap],
) -> dict[IterVar, Expr]:
    """Every axis that the given loops determine, relative to its base, as a function of them.

    `inverse_of(map, extents of its domain)` gives the inverse of a layout map.
    """
    values: dict[IterVar, Expr] = dict(leaves)
    for relation in reversed(relations):
        match relation:
            case Split(parent, outer, inner) if outer in values and inner in values:
                start = part_start(relation, frames[parent].extent, values[outer])
                values[parent] = _sum(start, values[inner])
            case Fuse(parts, fused) if fused in values and not _are_known(parts, values):
                rest, several = values[fused], _of_several(parts, frames)
                values |= dict.fromkeys(parts, index_value(0))
                for part in reversed(several[1:]):
                    extent = divisor(frames[part].extent)
                    values[part] = rest % extent
                    rest = rest // extent
                if several:
                    values[several[0]] = rest
            case Transform(before, after, index_map) if all(axis in values for axis in after):
                inverse = inverse_of(index_map, [axis.extent for axis in before])
                places = [values[axis] + frames[axis].base for axis in after]
                for axis, index in zip(before, inverse.map_indices(places), strict=True):
                    values[axis] = index - frames[axis].base
    return values


def _of_several(parts: Sequence[IterVar], frames: Frames) -> list[IterVar]:
    """The axes but those of one value, beside which an axis of sizes is the fused one itself."""
    extents = {part: frames[part].extent for part in parts}
    return [part for part, n in extents.items() if not (isinstance(n, int) and n == 1)]


def _are_known(parts: Sequence[IterVar], values: Mapping[IterVar, Expr]) -> bool:
    """Whether axes that were fused need not be worked out from the fused one."""
    return bool(parts) and all(part in values for part in parts)


@dataclass(frozen=True, slots=True)
class Sums:
    """Axes as sums of loops, without quotients.

    Quotients and remainders of quotients take isl minutes where factors do not divide one another;
    of sums and their ranges it makes the same sets at once.

    Attributes:
        values: the axes that the loops determine, each relative to its base.
        parts: axes that were fused: unknowns beside the loops.
        ranges: what lies between 0 and less than a number.
    """

    values: Mapping[IterVar, Expr]
    parts: tuple[IterVar, ...]
    ranges: tuple[tuple[Expr, int], ...]


def add_up(
    relations: Sequence[Relation], frames: Frames, loops: Mapping[IterVar, Expr]
) -> Sums | None:
    """How axes add up from the given loops; None where a layout or a symbolic extent is between."""
    values: dict[IterVar, Expr] = dict(loops)
    unknown: list[IterVar] = []
    ranges: list[tuple[Expr, int]] = []
    for relation in reversed(relations):
        match relation:
            case Split(parent, outer, inner) if outer in values and inner in values:
                factor, width = split_factor(relation, frames[parent].extent), frames[inner].extent
                if not isinstance(factor, int) or not isinstance(width, int):
                    return None
                ranges.append((values[inner], width))
                extent, count = frames[parent].extent, frames[outer].extent
                if is_shifted(relation, extent) and isinstance(count, int):
                    ranges.append((values[outer], count))
                values[parent] = part_start(relation, extent, values[outer]) + values[inner]
            case Fuse(parts, fused) if fused in values and not _are_known(parts, values):
                total, count, several = values[fused], 1, _of_several(parts, frames)
                values |= dict.fromkeys(parts, index_value(0))
                for part in reversed(several):
                    extent = frames[part].extent
                    values[part] = index_value(part)
                    total = total - values[part] * count
                    if part is not several[0]:
                        if not isinstance(extent, int):
                            return None
                        ranges.append((values[part], extent))
                        count *= extent
                unknown += several
                ranges.append((total, 1))
            case Transform():
                return None
    return Sums(values, tuple(unknown), tuple(ranges))


def split_factor(relation: Split, extent: Extent) -> Extent:
    """How far apart iterations of the outer loop are: the extent of the inner one, or more."""
    if relation.factor is not None:
        return relation.factor
    assert relation.nparts is not None
    return divisor(ceil_div(extent, relation.nparts))


def part_start(relation: Split, extent: Extent, part: Expr) -> Expr:
    """Where part number `part` of a loop of some extent begins.

    >>> from tecomp.compute.iter_var import IterKind, make_axis
    >>> from tecomp.ir.nodes.expr import Var
    >>> axis = make_axis("i", 0, 10, IterKind.DATA)
    >>> print(part_start(Split(axis, axis, axis, 4, None, is_shifted=True), 10, Var("n")))
    min(6, n * 4)
    """
    factor = split_factor(relation, extent)
    if is_const(part, 0):
        return part
    if not is_shifted(relation, extent):
        return part * factor
    # In the order of isl's own case distinctions, so that differences to these vanish.
    return binary(BinOp.MIN, index_value(extent) - factor, part * factor)


def _sum(a: Expr, b: Expr) -> Expr:
    """`a + b`, where most are loops of one iteration."""
    if is_const(a, 0):
        return b
    return a if is_const(b, 0) else a + b


def is_shifted(relation: Relation, extent: Extent) -> bool:
    """Whether a relation is a split whose last part begins before the end of the one before.

    Of a part of a tensor, as others need it, fewer elements may be computed than a part has.
    """
    if not isinstance(relation, Split) or not relation.is_shifted:
        return False
    factor = relation.factor
    if not isinstance(extent, int) or not isinstance(factor, int):
        return False
    return extent > factor and extent % factor != 0


def split_extents(
    extent: Extent, factor: Extent | None, nparts: Extent | None
) -> tuple[Extent, Extent]:
    """The extents of the outer and the inner loop of a split: neither exceeds the loop's own.

    Source:
        PassDownDomain of TVM 0.18.
    """
    if factor is not None:
        return ceil_div(extent, factor), _shorter(factor, extent)
    assert nparts is not None
    return _shorter(nparts, extent), divisor(ceil_div(extent, nparts))


def _shorter(count: Extent, extent: Extent) -> Extent:
    if isinstance(count, int) and isinstance(extent, int):
        # Of an empty loop the parts keep their lengths, so that they are no division by 0.
        return min(count, extent) if extent else count
    return count


def made_from(leaves: Iterable[IterVar], relations: Sequence[Relation]) -> set[IterVar]:
    """The given loops and all axes that splits and fusions made them from."""
    found = set(leaves)
    for relation in reversed(relations):
        match relation:
            case Split(parent, outer, inner) if found & {outer, inner}:
                found.add(parent)
            case Fuse(parts, fused) if fused in found:
                found |= set(parts)
    return found


@dataclass(frozen=True, slots=True)
class Iterations:
    """What the values of loops mean for the axes that the loops were made from.

    Attributes:
        axes: these axes, as functions of the loops.
        loops: every loop as a function of these axes.
        conditions: what holds where the loops are at an iteration: splits with a tail and layouts
            with padding have more values than there are iterations.
    """

    axes: Mapping[IterVar, Expr]
    loops: Mapping[IterVar, Expr]
    conditions: tuple[Expr, ...]


def iterations(
    axes: Sequence[IterVar], relations: Sequence[Relation], loops: Mapping[IterVar, Expr]
) -> Iterations:
    """How loops with the values `loops`, made from `axes` by `relations`, correspond to these."""
    roots: Frames = {axis: Frame(axis.dom.min, axis.extent) for axis in axes}
    frames, places = derive_frames(relations, roots, _physical)
    values = recover(relations, frames, loops, _inverse)
    found = {axis: _from(frames[axis], values[axis], axis.dtype) for axis in axes}
    conditions = [
        each
        for relation in relations
        for axis in _exceeded(relation, frames)
        for each in _within(values[axis], frames[axis].extent, isinstance(relation, Split))
    ]
    at = {axis: _from(frames[axis], value, axis.dtype) for axis, value in places.items()}
    return Iterations(found, at, tuple(map(simplify, conditions)))


def _physical(relation: Transform, frames: Frames, values: object) -> Sequence[Frame]:
    return [Frame(Const(0), axis.extent) for axis in relation.after]


def _inverse(index_map: IndexMap, shape: Sequence[Extent]) -> IndexMap:
    inverse = index_map.inverse_or_none(shape)
    assert inverse is not None, "loops follow a layout only where its inverse is known"
    return inverse


def _from(frame: Frame, value: Expr, dtype: DType) -> Expr:
    short = simplify(value + frame.base)
    # An axis that is a loop itself was made wider on the way, which loses nothing.
    if isinstance(short, Cast) and short.value.dtype == dtype:
        return short.value
    return cast(dtype, short)


def _exceeded(relation: Relation, frames: Frames) -> Sequence[IterVar]:
    """The axes that get values beyond their extents from what a relation made of them."""
    match relation:
        case Split(parent, outer) if not relation.is_shifted:
            factor = split_factor(relation, frames[parent].extent)
            whole = product((frames[outer].extent, factor))
            return () if are_equal(whole, frames[parent].extent) else (parent,)
        case Transform(before, after):
            places, elements = (product([frames[axis].extent for axis in part])
                                for part in (after, before))
            return () if are_equal(places, elements) else before
    return ()


def _within(value: Expr, extent: Extent, is_counted: bool) -> list[Expr]:
    """The conditions of `0 <= value < extent`, of which loops that count need the second only."""
    below = value < index_value(extent)
    return [below] if is_counted else [value >= index_value(0), below]
