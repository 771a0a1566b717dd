"""Express loops as functions of root axes, and root axes as functions of loops."""

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
from tecomp.scheduling.state import Fuse, LayoutTransform, Relation, Split


@dataclass(frozen=True, slots=True)
class Frame:
    """Start and extent of an axis; loop values count from 0 relative to `base`."""

    base: Expr
    extent: Extent


Frames = dict[IterVar, Frame]
BoxOf = Callable[[LayoutTransform, Frames, Mapping[IterVar, Expr]], Sequence[Frame]]


def derive_frames(
    relations: Sequence[Relation], roots: Frames, box_of: BoxOf
) -> tuple[Frames, dict[IterVar, Expr]]:
    """Return the frame of every axis, and every axis relative to its base as a function of roots.

    Args:
        relations: Splits, fusions and layout transforms, in the order of the calls.
        roots: Frames of the root axes, which are the variables of the returned functions.
        box_of: Function that returns the frames of the results of a layout map.
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
            case LayoutTransform(before, after, index_map):
                absolute = [values[axis] + frames[axis].base for axis in before]
                boxes = box_of(relation, frames, values)
                for axis, index, frame in zip(
                    after, index_map.map_indices(absolute), boxes, strict=True
                ):
                    frames[axis] = frame
                    values[axis] = index - frame.base
    return frames, values


def recover(
    relations: Sequence[Relation],
    frames: Frames,
    leaves: Mapping[IterVar, Expr],
    inverse_of: Callable[[IndexMap, Sequence[Extent]], IndexMap],
) -> dict[IterVar, Expr]:
    """Return every axis determined by the given loops, relative to its base, as their function.

    Args:
        relations: Splits, fusions and layout transforms, in the order of the calls.
        frames: Frames of all axes.
        leaves: Values of the given loops.
        inverse_of: Function of a layout map and the extents of its domain that returns the inverse.
    """
    values: dict[IterVar, Expr] = dict(leaves)
    for relation in reversed(relations):
        match relation:
            case Split(parent, outer, inner) if outer in values and inner in values:
                start = part_start(relation, frames[parent].extent, values[outer])
                values[parent] = _sum(start, values[inner])
            case Fuse(parts, fused) if fused in values and not _are_known(parts, values):
                remaining, nontrivial = values[fused], _nontrivial_axes(parts, frames)
                values |= dict.fromkeys(parts, index_value(0))
                for part in reversed(nontrivial[1:]):
                    extent = divisor(frames[part].extent)
                    values[part] = remaining % extent
                    remaining = remaining // extent
                if nontrivial:
                    values[nontrivial[0]] = remaining
            case LayoutTransform(before, after, index_map) if all(axis in values for axis in after):
                inverse = inverse_of(index_map, [axis.extent for axis in before])
                indices = [values[axis] + frames[axis].base for axis in after]
                for axis, index in zip(before, inverse.map_indices(indices), strict=True):
                    values[axis] = index - frames[axis].base
    return values


def _nontrivial_axes(parts: Sequence[IterVar], frames: Frames) -> list[IterVar]:
    """Return the axes whose extent is not the constant 1.

    If a single axis remains, it equals the fused axis, also when its extent is symbolic.
    """
    extents = {part: frames[part].extent for part in parts}
    return [part for part, n in extents.items() if not (isinstance(n, int) and n == 1)]


def _are_known(parts: Sequence[IterVar], values: Mapping[IterVar, Expr]) -> bool:
    """Return whether the values of all fused axes are already known."""
    return bool(parts) and all(part in values for part in parts)


@dataclass(frozen=True, slots=True)
class Sums:
    """Axes as linear sums of loops, without quotients.

    With nested quotients and remainders whose factors do not divide one another, isl takes minutes.
    Sums with range constraints describe the same sets and are fast.

    Attributes:
        values: Axes that the loops determine, each relative to its base.
        parts: Fused axes, which are unknowns in addition to the loops.
        ranges: Pairs (expression, n) with the constraint `0 <= expression < n`.
    """

    values: Mapping[IterVar, Expr]
    parts: tuple[IterVar, ...]
    ranges: tuple[tuple[Expr, int], ...]


def add_up(
    relations: Sequence[Relation], frames: Frames, loops: Mapping[IterVar, Expr]
) -> Sums | None:
    """Return the axes as sums of the given loops, or None for layout maps and symbolic extents."""
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
                total, count, nontrivial = values[fused], 1, _nontrivial_axes(parts, frames)
                values |= dict.fromkeys(parts, index_value(0))
                for part in reversed(nontrivial):
                    extent = frames[part].extent
                    values[part] = index_value(part)
                    total = total - values[part] * count
                    if part is not nontrivial[0]:
                        if not isinstance(extent, int):
                            return None
                        ranges.append((values[part], extent))
                        count *= extent
                unknown += nontrivial
                ranges.append((total, 1))
            case LayoutTransform():
                return None
    return Sums(values, tuple(unknown), tuple(ranges))


def split_factor(relation: Split, extent: Extent) -> Extent:
    """Return the step of the outer loop of a split in iterations of `parent`.

    The step is at least the extent of the inner loop.
    """
    if relation.factor is not None:
        return relation.factor
    assert relation.nparts is not None
    return divisor(ceil_div(extent, relation.nparts))


def part_start(relation: Split, extent: Extent, part: Expr) -> Expr:
    """Return the first iteration of part number `part` of a loop with the given extent.

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
    # Use the operand order of isl's own case distinctions, so that differences cancel.
    return binary(BinOp.MIN, index_value(extent) - factor, part * factor)


def _sum(a: Expr, b: Expr) -> Expr:
    """Return `a + b`, without an addition if an operand is 0, as for loops of one iteration."""
    if is_const(a, 0):
        return b
    return a if is_const(b, 0) else a + b


def is_shifted(relation: Relation, extent: Extent) -> bool:
    """Return whether a relation is a split whose last part is shifted to overlap the previous one.

    The result is False if the extent is at most the factor: a consumer may need a region with
    fewer elements than one part.
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
    """Return the extents of the outer and inner loop of a split, neither larger than `extent`.

    Source:
        PassDownDomain of TVM 0.18.
    """
    if factor is not None:
        return ceil_div(extent, factor), _shorter(factor, extent)
    assert nparts is not None
    return _shorter(nparts, extent), divisor(ceil_div(extent, nparts))


def _shorter(count: Extent, extent: Extent) -> Extent:
    if isinstance(count, int) and isinstance(extent, int):
        # Parts of an empty loop keep their length, which avoids a division by 0.
        return min(count, extent) if extent else count
    return count


def derived_from_axes(leaves: Iterable[IterVar], relations: Sequence[Relation]) -> set[IterVar]:
    """Return the given loops and all axes from which splits and fusions derived them."""
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
    """Correspondence between the values of loops and the root axes of these loops.

    Attributes:
        axes: Root axes as functions of the loops.
        loops: Every loop as a function of the root axes.
        conditions: Conditions under which loop values belong to an iteration. Splits with a tail
            and layouts with padding have more loop values than iterations.
    """

    axes: Mapping[IterVar, Expr]
    loops: Mapping[IterVar, Expr]
    conditions: tuple[Expr, ...]


def iterations(
    axes: Sequence[IterVar], relations: Sequence[Relation], loops: Mapping[IterVar, Expr]
) -> Iterations:
    """Return the correspondence between `axes` and loops that `relations` derive from them.

    Args:
        axes: Root axes.
        relations: Splits, fusions and layout transforms, in the order of the calls.
        loops: Value of each loop.
    """
    roots: Frames = {axis: Frame(axis.dom.min, axis.extent) for axis in axes}
    frames, places = derive_frames(relations, roots, _physical)
    values = recover(relations, frames, loops, _inverse)
    found = {axis: _axis_from_loops(frames[axis], values[axis], axis.dtype) for axis in axes}
    conditions = [
        condition
        for relation in relations
        for axis in _overshooting_axes(relation, frames)
        for condition
        in _range_conditions(values[axis], frames[axis].extent, isinstance(relation, Split))
    ]
    at = {axis: _axis_from_loops(frames[axis], value, axis.dtype) for axis, value in places.items()}
    return Iterations(found, at, tuple(map(simplify, conditions)))


def _physical(relation: LayoutTransform, frames: Frames, values: object) -> Sequence[Frame]:
    return [Frame(Const(0), axis.extent) for axis in relation.after]


def _inverse(index_map: IndexMap, shape: Sequence[Extent]) -> IndexMap:
    inverse = index_map.inverse_or_none(shape)
    assert inverse is not None, "loops follow a layout only where its inverse is known"
    return inverse


def _axis_from_loops(frame: Frame, value: Expr, dtype: DType) -> Expr:
    short = simplify(value + frame.base)
    # A root axis that is itself a loop was widened to the index dtype; dropping that cast is exact.
    if isinstance(short, Cast) and short.value.dtype == dtype:
        return short.value
    return cast(dtype, short)


def _overshooting_axes(relation: Relation, frames: Frames) -> Sequence[IterVar]:
    """Return the axes of a relation whose recovered values can exceed their extents."""
    match relation:
        case Split(parent, outer) if not relation.is_shifted:
            factor = split_factor(relation, frames[parent].extent)
            covered = product((frames[outer].extent, factor))
            return () if are_equal(covered, frames[parent].extent) else (parent,)
        case LayoutTransform(before, after):
            volume, elements = (product([frames[axis].extent for axis in part])
                                for part in (after, before))
            return () if are_equal(volume, elements) else before
    return ()


def _range_conditions(value: Expr, extent: Extent, is_counted: bool) -> list[Expr]:
    """Return the conditions of `0 <= value < extent`; counted values need the second only."""
    upper = value < index_value(extent)
    return [upper] if is_counted else [value >= index_value(0), upper]
