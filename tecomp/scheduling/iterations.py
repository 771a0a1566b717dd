"""Loops of a stage as axes of another: which iteration they are at, and where they are at none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tecomp.compute.axis import IterVar
from tecomp.ir.algebra.extents import are_equal, product
from tecomp.ir.algebra.simplify import simplify
from tecomp.ir.language.dtype import DType
from tecomp.ir.language.expr import Cast, Const, Expr, cast, index_value
from tecomp.ir.language.stmt import Extent
from tecomp.poly.maps.index_map import IndexMap
from tecomp.scheduling.relations import (
    Frame,
    Frames,
    derive_frames,
    recover,
    split_factor,
)
from tecomp.scheduling.state import Relation, Split, Transform


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
