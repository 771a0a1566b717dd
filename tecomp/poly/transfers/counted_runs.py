"""Contiguous runs of a copy, found by looking at every element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tecomp.ir.algebra.intervals import Box
from tecomp.ir.language.expr import Var
from tecomp.poly.transfers.nests import Nest, Side, merged

Array: TypeAlias = "npt.NDArray[Any]"
Runs: TypeAlias = tuple[Array, Array, Array]
"""First addresses on either side, and lengths, in order of the first address."""

_MOST_LISTED = 2**16


def listed_runs(first: Side, second: Side, axes: Sequence[Var], box: Box[int]) -> Runs:
    """The runs of the elements of a box."""
    shape = tuple(count for _, count in box)
    slices = tuple(slice(low, low + count) for low, count in box)
    points = list(np.ogrid[slices]) if slices else []
    a, b = (np.broadcast_to(side.at(axes, points), shape).ravel() for side in (first, second))
    return joined(a, b, np.ones(a.shape, np.int64))


def joined(a: Array, b: Array, lengths: Array) -> Runs:
    """Runs as long as they get, from runs in any order."""
    if np.any(a[1:] < a[:-1]):
        order = np.argsort(a, kind="stable")
        a, b, lengths = a[order], b[order], lengths[order]
    follows = (a[1:] == a[:-1] + lengths[:-1]) & (b[1:] == b[:-1] + lengths[:-1])
    starts = np.flatnonzero(np.concatenate([np.ones(min(len(a), 1), bool), ~follows]))
    return a[starts], b[starts], np.add.reduceat(lengths, starts) if len(a) else lengths


def run_nests(
    first: Side, second: Side, axes: Sequence[Var], box: Box[int]
) -> tuple[Nest, ...]:
    """Nests that visit every element of a box once: its runs, and loops over equal ones.

    There are no loops over them if they are very many.
    """
    runs = listed_runs(first, second, axes, box)
    found = [
        Nest((length,), (1,), (1,), a, b)
        for a, b, length in zip(*(column.tolist() for column in runs), strict=True)
    ]
    if len(found) > _MOST_LISTED:
        return tuple(found)
    looped = _looped(found)
    while len(looped) < len(found):
        found, looped = looped, _looped(looped)
    return merged(found)


def _looped(found: list[Nest]) -> list[Nest]:
    """Neighbours of one form and with equal distances as one nest with one more loop."""
    made: list[Nest] = []
    k = 0
    while k < len(found):
        nest, end = found[k], k + 1
        if end < len(found) and _form(found[end]) == _form(nest):
            step = _distance(nest, found[end])
            while (
                end < len(found)
                and _form(found[end]) == _form(nest)
                and _distance(found[end - 1], found[end]) == step
            ):
                end += 1
            nest = Nest(
                (end - k, *nest.ranges), (step[0], *nest.first), (step[1], *nest.second),
                nest.first_offset, nest.second_offset,
            )
        made.append(nest)
        k = end
    return made


def _form(nest: Nest) -> tuple[tuple[int, ...], ...]:
    return nest.ranges, nest.first, nest.second


def _distance(nest: Nest, other: Nest) -> tuple[int, int]:
    return other.first_offset - nest.first_offset, other.second_offset - nest.second_offset
