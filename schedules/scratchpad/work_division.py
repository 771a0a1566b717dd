"""Divide a result among cores in whole sticks and tiles.

A part is a box: along each axis so many sticks, tiles, or single values. The largest part says how
long all take, so it is made as small as the grid allows; of parts that are as large, even ones are
taken, and the longest axis is cut first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import lcm, prod
from typing import Literal

from tecomp import ScheduleError, Target, TargetError, te
from tecomp.schedules.common import ceil_div

_SHARERS = 2  # axes of a result that share one of the grid: with three, loops are hard to count

Shares = Mapping[int, Sequence[tuple[str, int]]]
"""For axes of the result by number the axes of the grid, and how many cores along each."""


@dataclass(frozen=True)
class Cut:
    """How a result is to be cut, as somebody says.

    Attributes:
        cores: parts for cores along axes, by number; one along others. Any if there are none. The
            axes that are reduced over come after those of the result.
        tiles: blocks of the part of a core along axes; any along others.
        least: extents along axes of what is not to be cut, where no cores are asked for.
    """

    cores: Mapping[int, int] = field(default_factory=dict)
    tiles: Mapping[int, int] = field(default_factory=dict)
    least: Mapping[int, int] = field(default_factory=dict)

    def check(self, x: te.Tensor, depth: int) -> None:
        """Refuse axes that a tensor has not, and numbers of parts that are none.

        Args:
            x: the tensor.
            depth: how many axes are reduced over.

        Raises:
            ScheduleError: there are such.
        """
        for axis, count in (*self.cores.items(), *self.tiles.items()):
            if axis not in range(len(x.shape) + depth) or count < 1:
                reduced = f" and is reduced over {depth}" if depth else ""
                raise ScheduleError(
                    f"auto: {x.name} has {len(x.shape)} axes{reduced}, and is to have {count} "
                    f"parts along axis {axis}; give a number from 1 on for its own axes",
                    kind="not-divided",
                )

    def along(self, rank: int) -> Cut:
        """What is said of the axes of the result alone: no other cores are asked for."""
        cores = {axis: self.cores.get(axis, 1) for axis in range(rank)} if self.cores else {}
        return Cut(cores, {axis: n for axis, n in self.tiles.items() if axis < rank}, self.least)

    def pieces(self, shape: Sequence[int], units: Sequence[int]) -> tuple[int, ...]:
        """Extents of what is shared out: so many units that nothing is cut that is not to be."""
        least = [lcm(self.least.get(axis, 1), unit) for axis, unit in enumerate(units)]
        whole = [ceil_div(max(n, 1), unit) * unit for n, unit in zip(shape, units, strict=True)]
        return tuple(map(min, least, whole))

    def of_partial(self, rank: int) -> Cut:
        """The same for partial results: the part of the reduction is their first axis.

        Only one axis that is reduced over is shared out to cores.
        """
        cores = {0 if axis >= rank else axis + 1: n for axis, n in self.cores.items()}
        return Cut(cores, {axis + 1: n for axis, n in self.tiles.items()})


Cuts = Mapping[te.Tensor, Cut]
"""How results are to be cut, for those that somebody says it of."""


@dataclass(frozen=True)
class Division:
    """How a result is divided among cores.

    Attributes:
        part: pieces, such as sticks, of one core along each axis.
        count: parts along each axis.
        shares: which cores those are for.
    """

    part: tuple[int, ...]
    count: tuple[int, ...]
    shares: Shares

    @property
    def cores(self) -> int:
        """How many have a part."""
        return prod(self.count)


@dataclass(frozen=True)
class Outline:
    """How a result is cut, before there is a schedule.

    Attributes:
        count: parts along each axis.
        core: extents of the largest part.
        read: bytes that all cores together read of the memory of the device.
    """

    count: tuple[int, ...]
    core: tuple[int, ...]
    read: int


Reason = Literal["host", "steps", "reduction", "room"]
"""Why a result is not cut: links to the host, one step after another, several cores, its size."""


@dataclass(frozen=True)
class Uncut:
    """A result of which no core makes a part alone.

    Attributes:
        kind: why.
        reason: the same in words.
    """

    kind: Reason
    reason: str


def divide(
    pieces: Sequence[int],
    grid: Mapping[str, int],
    fits: Callable[[Sequence[int]], bool] = lambda part: True,
) -> Division:
    """The parts of a result.

    Args:
        pieces: what is not cut, along each axis.
        grid: cores along each of its axes.
        fits: whether a core can have such a part.

    Returns:
        The division whose largest part is the smallest, of those that fit if there are such.

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
) -> Division:
    """The division whose parts cost least; of equal ones that with short parts of the first axes.

    Args:
        pieces: what is not cut, along each axis.
        grid: cores along each of its axes.
        cost: of parts.
        sharers: how many axes may share one of the grid.

    >>> cheapest((4, 8), {"x": 8}, lambda part: (part[0] * part[1], part[0] + part[1])).part
    (2, 2)
    """
    best: tuple[tuple[object, ...], Division] | None = None
    for part in _parts(pieces, prod(grid.values())):
        found = cost(part)
        if best is not None and found >= best[0]:
            continue
        count = _count(pieces, part)
        if (shares := shares_of(count, grid, sharers)) is not None:
            best = found, Division(part, count, shares)
    assert best is not None  # One core can have it all.
    return best[1]


def _count(pieces: Sequence[int], part: Sequence[int]) -> tuple[int, ...]:
    """Parts along each axis."""
    return tuple(ceil_div(n, size) for n, size in zip(pieces, part, strict=True))


def divide_as(x: te.Tensor, cut: Cut, units: Sequence[int], target: Target) -> Division:
    """The parts of a result that somebody asks for.

    Args:
        x: the result.
        cut: how it is to be cut.
        units: extents of what is not cut, along each axis.
        target: the machine.

    Raises:
        TargetError: it has too few cores, or sticks or tiles would be cut.
    """
    asked = [cut.cores.get(axis, 1) for axis in range(len(units))]
    listed = " x ".join(map(str, asked))
    if prod(asked) > target.cores:
        raise TargetError(
            f"{x.name}: {listed} parts are for {prod(asked)} cores, and target {target.name} has "
            f"{target.cores}; ask for fewer",
            kind="not-divided",
        )
    part = tuple(
        even_part(x, x.op.axis[axis], int(x.shape[axis]), count, unit) // unit
        for axis, (count, unit) in enumerate(zip(asked, units, strict=True))
    )
    shares = shares_of(asked, target.grid)
    if shares is None:
        grid = ", ".join(f"{name}: {count}" for name, count in target.grid.items())
        raise TargetError(
            f"{x.name}: {listed} parts have no place on the cores of target {target.name} "
            f"({grid}), each of which two axes can share; ask for numbers that divide those, or "
            "along fewer axes",
            kind="not-divided",
        )
    return Division(part, tuple(asked), shares)


def blocks_as(
    x: te.Tensor, cut: Cut, core: Sequence[int], units: Sequence[int]
) -> dict[int, int]:
    """Extents of the blocks that somebody asks for, along the axes that are named.

    Args:
        x: the result.
        cut: how it is to be cut.
        core: extents of the part of a core.
        units: extents of what is not cut.

    Raises:
        TargetError: sticks or tiles would be cut.
    """
    return {
        axis: even_part(x, x.op.axis[axis], core[axis], count, units[axis])
        for axis, count in cut.tiles.items() if axis < len(units)
    }


def pieces_as(
    x: te.Tensor, cut: Cut, depth: Sequence[te.IterVar], units: Mapping[te.IterVar, int]
) -> dict[te.IterVar, int]:
    """Extents of the pieces of a reduction that somebody asks for, along the axes that are named.

    Args:
        x: the result.
        cut: how it is to be cut.
        depth: the axes that are reduced over.
        units: extents of what is not cut along them.

    Raises:
        TargetError: it would be.
    """
    asked = {depth[axis - len(x.shape)]: n for axis, n in cut.tiles.items() if axis >= len(x.shape)}
    return {axis: even_part(x, axis, int(axis.extent), n, units[axis]) for axis, n in asked.items()}


def even_part(x: te.Tensor, axis: te.IterVar, extent: int, count: int, unit: int) -> int:
    """The extent of each of so many parts, in whole units.

    Raises:
        TargetError: there are not as many.
    """
    pieces = ceil_div(max(extent, 1), unit)
    part: int = ceil_div(pieces, count)
    if ceil_div(pieces, part) == count:
        return part * unit
    what = f"sticks or tiles of {unit}" if unit > 1 else "values"
    raise TargetError(
        f"{x.name}: {count} parts along {axis.name} would cut what is whole there, or "
        f"leave parts empty ({pieces} {what}); ask for a number that divides {pieces}",
        kind="not-divided",
    )


def _parts(pieces: Sequence[int], cores: int) -> Iterator[tuple[int, ...]]:
    """All sizes of parts of which there are no more than cores, the shortest first."""
    if not pieces:
        yield ()
        return
    first, *others = pieces
    whole = max(first, 1)
    for size in sorted({ceil_div(whole, n) for n in range(1, min(whole, cores) + 1)}):
        for part in _parts(others, cores // ceil_div(whole, size)):
            yield (size, *part)


def divide_depth(pieces: Sequence[int], cores: int) -> tuple[int, ...]:
    """The parts of a reduction where cores are left: of one axis at most, and even ones.

    Args:
        pieces: what is not cut, along each axis that is reduced over.
        cores: how many there are for each part of the result.

    >>> divide_depth((8,), 8), divide_depth((6, 100), 16), divide_depth((7,), 4)
    ((8,), (1, 10), (1,))
    """
    most = [
        max(n for n in range(1, max(min(count, cores), 1) + 1) if count % n == 0)
        for count in pieces
    ]
    best = max(range(len(most)), key=most.__getitem__, default=0)
    return tuple(n if axis == best else 1 for axis, n in enumerate(most))


def shares_of(
    count: Sequence[int], grid: Mapping[str, int], sharers: int = _SHARERS
) -> Shares | None:
    """Which cores the parts along each axis are for; None if there are too few of them.

    Parts go to the shortest axis of the grid that is long enough, else to several that they fill
    evenly. No more than `sharers` axes of the result share one of the grid: which part a core has
    stays a short formula.
    """
    free = dict(grid)
    shared = dict.fromkeys(grid, 0)
    found: dict[int, list[tuple[str, int]]] = {}
    for axis in sorted(range(len(count)), key=lambda axis: -count[axis]):
        left = count[axis]
        while left > 1:
            fitting = [name for name, many in free.items() if many >= left]
            name = min(fitting, key=free.__getitem__, default=max(free, key=free.__getitem__))
            many = next(n for n in range(min(left, free[name]), 0, -1) if left % n == 0)
            if many == 1:
                return None
            found.setdefault(axis, []).append((name, many))
            shared[name] += 1
            free[name] = free[name] // many if shared[name] < sharers else 1
            left //= many
    return found
