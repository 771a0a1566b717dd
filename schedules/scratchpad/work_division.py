"""Divide a result among cores in whole sticks and tiles.

A part is a box: a number of sticks, tiles or single values along each axis. The largest part
determines the run time, so it is made as small as the grid allows. Among parts of equal size, even
divisions are preferred, and the longest axis is divided first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop
from math import lcm, prod
from typing import Literal, TypeVar

from tecomp import ScheduleError, Target, TargetError, knob, te
from tecomp.schedules.common import ceil_div

_MAX_DIVISIONS = 6
"""Number of divisions that the knob of a result offers, by their modelled cost."""
_MAX_HALVINGS = 3
"""Number of times that the knob of a block halves it."""
_SHARERS = 2  # result axes per grid axis: three make loop extents hard to bound

_Axis = TypeVar("_Axis")

Shares = Mapping[int, Sequence[tuple[str, int]]]
"""Grid axes with core counts along each, for each divided axis of the result by number."""


@dataclass(frozen=True)
class DivisionSpec:
    """Work division of a result that the caller requests.

    Attributes:
        cores: Number of parts for cores along axes, by number; 1 along the other axes. The division
            is automatic if the mapping is empty. Reduction axes are numbered after the axes of the
            result.
        tiles: Number of blocks of a core's part along axes, by number; automatic along the other
            axes.
        min_extents: Indivisible extents along axes, by number, which apply if `cores` is empty.
    """

    cores: Mapping[int, int] = field(default_factory=dict)
    tiles: Mapping[int, int] = field(default_factory=dict)
    min_extents: Mapping[int, int] = field(default_factory=dict)

    def check(self, x: te.Tensor, depth: int) -> None:
        """Raise if an axis is out of bounds or a number of parts is not positive.

        Args:
            x: Tensor.
            depth: Number of reduction axes.

        Raises:
            ScheduleError: If an axis is out of bounds or a number of parts is less than 1.
        """
        for axis, count in (*self.cores.items(), *self.tiles.items()):
            if axis not in range(len(x.shape) + depth) or count < 1:
                reduced = f" and a reduction of rank {depth}" if depth else ""
                raise ScheduleError(
                    "auto: {count} parts along axis {axis} are not valid for {x}, which has "
                    "{rank} axes{reduced}; pass an axis of {x} and at least 1 part",
                    kind="indivisible", x=x.name, rank=len(x.shape), reduced=reduced, count=count,
                    axis=axis,
                )

    def for_result_axes(self, rank: int) -> DivisionSpec:
        """Return the request for the axes of the result only; no other cores are requested."""
        cores = {axis: self.cores.get(axis, 1) for axis in range(rank)} if self.cores else {}
        return DivisionSpec(
            cores, {axis: n for axis, n in self.tiles.items() if axis < rank}, self.min_extents
        )

    def indivisible_extents(self, shape: Sequence[int], units: Sequence[int]) -> tuple[int, ...]:
        """Return the indivisible extents along each axis, as multiples of the units."""
        min_extents = [lcm(self.min_extents.get(axis, 1), unit) for axis, unit in enumerate(units)]
        full = [ceil_div(max(n, 1), unit) * unit for n, unit in zip(shape, units, strict=True)]
        return tuple(map(min, min_extents, full))

    def of_partial(self, rank: int) -> DivisionSpec:
        """Return the request for partial results, whose first axis is the part of the reduction.

        Only one reduction axis can be divided among cores.
        """
        cores = {0 if axis >= rank else axis + 1: n for axis, n in self.cores.items()}
        return DivisionSpec(cores, {axis + 1: n for axis, n in self.tiles.items()})


Cuts = Mapping[te.Tensor, DivisionSpec]
"""Requested work divisions, for the results that have one."""


@dataclass(frozen=True)
class WorkDivision:
    """Work division of a result.

    Attributes:
        part: Pieces, such as sticks, of one core along each axis.
        count: Number of parts along each axis.
        shares: Assignment of the parts to cores.
    """

    part: tuple[int, ...]
    count: tuple[int, ...]
    shares: Shares

    @property
    def cores(self) -> int:
        """Number of cores that have a part."""
        return prod(self.count)


@dataclass(frozen=True)
class DivisionPlan:
    """Summary of a work division, available before there is a schedule.

    Attributes:
        count: Number of parts along each axis.
        core: Extents of the largest part.
        read: Bytes that all cores together read from device memory.
    """

    count: tuple[int, ...]
    core: tuple[int, ...]
    read: int


Reason = Literal["host", "steps", "reduction", "capacity"]
"""Reason why a result is not divided.

"host": it is copied over links to the host. "steps": it is computed in several steps. "reduction":
several cores share each element. "capacity": it exceeds the scratchpad.
"""


@dataclass(frozen=True)
class UndividedResult:
    """Result that is not divided among cores.

    Attributes:
        kind: Reason.
        reason: Description of the reason.
    """

    kind: Reason
    reason: str


def divide(
    pieces: Sequence[int],
    grid: Mapping[str, int],
    fits: Callable[[Sequence[int]], bool] = lambda part: True,
) -> WorkDivision:
    """Return the division of a result whose largest part is the smallest.

    Args:
        pieces: Number of indivisible pieces along each axis.
        grid: Number of cores along each grid axis.
        fits: Predicate whether a core can process a part. Default: always True.

    Returns:
        The best division among those that fit; among all divisions if none fits.

    >>> divide((128, 4), {"x": 32}).count, divide((16, 16), {"x": 32}).count
    ((32, 1), (16, 2))
    >>> divide((37,), {"x": 32}).part
    (2,)
    """
    order = sorted(range(len(pieces)), key=lambda axis: -pieces[axis])

    def cost(part: Sequence[int]) -> tuple[object, ...]:
        count = _count(pieces, part)
        uneven = sum(n % size > 0 for n, size in zip(pieces, part, strict=True))
        return not fits(part), prod(part), uneven, [-count[axis] for axis in order]

    return cheapest(pieces, grid, cost)


def cheapest(
    pieces: Sequence[int],
    grid: Mapping[str, int],
    cost: Callable[[Sequence[int]], tuple[object, ...]],
    sharers: int = _SHARERS,
) -> WorkDivision:
    """Return the division with the lowest cost; ties prefer short parts along the first axes.

    Args:
        pieces: Number of indivisible pieces along each axis.
        grid: Number of cores along each grid axis.
        cost: Cost function of parts.
        sharers: Maximum number of result axes that share a grid axis. Default: 2.

    >>> cheapest((4, 8), {"x": 8}, lambda part: (part[0] * part[1], part[0] + part[1])).part
    (2, 2)
    """
    parts = [(cost(part), k, part) for k, part in enumerate(_parts(pieces, prod(grid.values())))]
    heapify(parts)
    found: dict[str, WorkDivision] = {}
    lowest: object = None
    while parts and len(found) < _MAX_DIVISIONS:
        (is_unfit, *_), _, part = heappop(parts)
        if found and is_unfit != lowest:
            break
        count = _count(pieces, part)
        if (shares := shares_of(count, grid, sharers)) is not None:
            lowest = is_unfit
            found.setdefault("x".join(map(str, count)), WorkDivision(part, count, shares))
    # A single core can always compute the whole result, so that `found` is not empty.
    return found[knob("division", [*found])]


def _count(pieces: Sequence[int], part: Sequence[int]) -> tuple[int, ...]:
    """Return the number of parts along each axis."""
    return tuple(ceil_div(n, size) for n, size in zip(pieces, part, strict=True))


def divide_as(
    x: te.Tensor, cut: DivisionSpec, units: Sequence[int], target: Target
) -> WorkDivision:
    """Return the division of a result that the caller requests.

    Args:
        x: Result.
        cut: Requested work division.
        units: Indivisible extents along each axis.
        target: Target.

    Raises:
        TargetError: If the target has too few cores, or sticks or tiles would be split.
    """
    counts = [cut.cores.get(axis, 1) for axis in range(len(units))]
    text = " x ".join(map(str, counts))
    if prod(counts) > target.cores:
        raise TargetError(
            "{x}: {listed} parts require {size} cores, but target {target} has {cores}; request "
            "fewer parts",
            kind="indivisible", x=x.name, listed=text, size=prod(counts), target=target.name,
            cores=target.cores,
        )
    part = tuple(
        even_part(x, x.op.axis[axis], int(x.shape[axis]), count, unit) // unit
        for axis, (count, unit) in enumerate(zip(counts, units, strict=True))
    )
    shares = shares_of(counts, target.grid)
    if shares is None:
        grid = ", ".join(f"{name}: {count}" for name, count in target.grid.items())
        raise TargetError(
            "{x}: {listed} parts cannot be mapped to the core grid of target {target} ({grid}), "
            "where at most two axes share a grid axis; request numbers that divide the grid "
            "extents, or divide fewer axes",
            kind="indivisible", x=x.name, listed=text, target=target.name, grid=grid,
        )
    return WorkDivision(part, tuple(counts), shares)


def blocks_as(
    x: te.Tensor, cut: DivisionSpec, core: Sequence[int], units: Sequence[int]
) -> dict[int, int]:
    """Return the extents of the requested blocks, for the axes that `cut.tiles` names.

    Args:
        x: Result.
        cut: Requested work division.
        core: Extents of the part of a core.
        units: Indivisible extents along each axis.

    Raises:
        TargetError: If sticks or tiles would be split.
    """
    return {
        axis: even_part(x, x.op.axis[axis], core[axis], count, units[axis])
        for axis, count in cut.tiles.items() if axis < len(units)
    }


def pieces_as(
    x: te.Tensor, cut: DivisionSpec, depth: Sequence[te.IterVar], units: Mapping[te.IterVar, int]
) -> dict[te.IterVar, int]:
    """Return the extents of the requested pieces of a reduction, for the axes in `cut.tiles`.

    Args:
        x: Result.
        cut: Requested work division.
        depth: Reduction axes.
        units: Indivisible extents along the reduction axes.

    Raises:
        TargetError: If an indivisible extent would be split.
    """
    tiles = {depth[axis - len(x.shape)]: n for axis, n in cut.tiles.items() if axis >= len(x.shape)}
    return {axis: even_part(x, axis, int(axis.extent), n, units[axis]) for axis, n in tiles.items()}


def even_part(x: te.Tensor, axis: te.IterVar, extent: int, count: int, unit: int) -> int:
    """Return the extent of each of `count` parts, in whole units.

    Raises:
        TargetError: If the extent does not split into `count` nonempty parts.
    """
    pieces = ceil_div(max(extent, 1), unit)
    part: int = ceil_div(pieces, count)
    if ceil_div(pieces, part) == count:
        return part * unit
    unit_text = f"sticks or tiles of {unit}" if unit > 1 else "values"
    raise TargetError(
        "{x}: {count} parts along {axis} would split sticks or tiles, or leave parts empty "
        "({pieces} {subject}); request a number that divides {pieces}",
        kind="indivisible", x=x.name, count=count, axis=axis.name, pieces=pieces, subject=unit_text,
    )


def _parts(pieces: Sequence[int], cores: int) -> Iterator[tuple[int, ...]]:
    """Yield all sizes of parts that need at most `cores` cores, shortest first."""
    if not pieces:
        yield ()
        return
    first, *others = pieces
    extent = max(first, 1)
    for size in sorted({ceil_div(extent, n) for n in range(1, min(extent, cores) + 1)}):
        for part in _parts(others, cores // ceil_div(extent, size)):
            yield (size, *part)


def divide_depth(pieces: Sequence[int], cores: int) -> tuple[int, ...]:
    """Return the number of even parts of a reduction, of which at most one axis is divided.

    Args:
        pieces: Number of indivisible pieces along each reduction axis.
        cores: Number of cores for each part of the result.

    >>> divide_depth((8,), 8), divide_depth((6, 100), 16), divide_depth((7,), 4)
    ((8,), (1, 10), (1,))
    """
    parts = [
        max(n for n in range(1, max(min(count, cores), 1) + 1) if count % n == 0)
        for count in pieces
    ]
    best = max(range(len(parts)), key=parts.__getitem__, default=0)
    return tuple(n if axis == best else 1 for axis, n in enumerate(parts))


def pieces_of(shape: Sequence[int], units: Sequence[int]) -> list[int]:
    """Return the number of units along each axis; an empty axis counts as one."""
    return [ceil_div(max(n, 1), unit) for n, unit in zip(shape, units, strict=True)]


def shares_of(
    count: Sequence[int], grid: Mapping[str, int], sharers: int = _SHARERS
) -> Shares | None:
    """Assign the parts along each axis to cores; return None if there are too few cores.

    Parts are assigned to the shortest grid axis that is long enough, else to several grid axes that
    they fill evenly. At most `sharers` result axes share a grid axis, so that the part of a core
    remains a short expression.
    """
    free = dict(grid)
    shared = dict.fromkeys(grid, 0)
    found: dict[int, list[tuple[str, int]]] = {}
    for axis in sorted(range(len(count)), key=lambda axis: -count[axis]):
        remaining = count[axis]
        while remaining > 1:
            fitting = [name for name, extent in free.items() if extent >= remaining]
            name = min(fitting, key=free.__getitem__, default=max(free, key=free.__getitem__))
            extent = next(n for n in range(min(remaining, free[name]), 0, -1) if remaining % n == 0)
            if extent == 1:
                return None
            found.setdefault(axis, []).append((name, extent))
            shared[name] += 1
            free[name] = free[name] // extent if shared[name] < sharers else 1
            remaining //= extent
    return found


def largest(most: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number for which a monotonic predicate holds, by bisection.

    Args:
        most: Upper bound.
        fits: Predicate that holds for all numbers up to some bound.

    Returns:
        The number; at least 1, for which the predicate is not evaluated.

    >>> largest(100, lambda n: n * n < 50), largest(5, lambda n: True), largest(5, lambda n: False)
    (7, 5, 1)
    """
    low, high = 1, max(most, 1)
    while low < high:
        middle = ceil_div(low + high, 2)
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def grow_block(
    block: Mapping[_Axis, int],
    limit: Mapping[_Axis, int],
    axes: Iterable[_Axis],
    fits: Callable[[Mapping[_Axis, int]], bool],
    cost: Callable[[Mapping[_Axis, int]], int],
) -> Mapping[_Axis, int]:
    """Return the largest block that fits, doubled step by step along the cheapest axis.

    Args:
        block: Extents of the initial block.
        limit: Maximum extents.
        axes: Axes that may grow; the first one wins ties.
        fits: Predicate whether a block fits.
        cost: Cost function of blocks.

    >>> grow_block({"m": 1, "n": 1}, {"m": 8, "n": 3}, "nm", lambda b: b["m"] * b["n"] < 9,
    ...            lambda b: -b["n"])
    {'m': 2, 'n': 3}
    """
    axes, smaller = tuple(axes), [block]
    while True:
        longer = [
            {**block, axis: min(2 * block[axis], limit[axis])}
            for axis in axes if block[axis] < limit[axis]
        ]
        fitting = [candidate for candidate in longer if fits(candidate)]
        if not fitting:
            halvings: int = knob("halvings", [*range(min(len(smaller), _MAX_HALVINGS + 1))])
            return smaller[-1 - halvings]
        block = min(fitting, key=cost)
        smaller.append(block)
