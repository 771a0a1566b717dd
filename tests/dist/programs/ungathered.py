"""Functions whose results depend on all elements give what they give on one process, ungathered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tecomp.array as xp
from tecomp import dist

TEAM = dist.world()
N = TEAM.size
GATHERED = xp.counters.counters.gathered
SIZES = (0, 1, 3, 50, 1000)


def rows() -> Iterator[tuple[str, Any]]:
    """Elements of all kinds: few and many different ones, none, NaN, zeros of both signs."""
    random = np.random.default_rng(7)
    for size in SIZES:
        yield f"{size} floats", random.normal(size=size)
        yield f"{size} short integers", random.integers(-4, 4, size).astype(np.int8)
        special = random.choice([0.0, -0.0, np.nan, 1.5, -np.inf, 2.0], size).astype(np.float32)
        yield f"{size} special ones", special
        yield f"{size} truth values", random.random(size) > 0.9
        yield f"{size} in order", np.sort(random.integers(0, 9, size))


def same(where: str, found: Any, wanted: Any) -> None:
    """Equal, also in type and in the signs of zeros."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), (where, found, wanted)
    np.testing.assert_array_equal(found, wanted, err_msg=where)
    if found.dtype.kind == "f":
        signs = np.signbit(found[found == 0]), np.signbit(wanted[wanted == 0])
        np.testing.assert_array_equal(*signs, err_msg=where)


ORDERED: dict[str, Callable[[Any], Any]] = {
    "sort": xp.sort,
    "descending": lambda x: xp.sort(x, descending=True),
    "argsort": xp.argsort,
    "argsort descending": lambda x: xp.argsort(x, descending=True),
}

OTHERS: dict[str, Callable[[Any], Any]] = {
    "counts": lambda x: xp.unique_counts(x).counts,
    "indices": lambda x: xp.unique_all(x).indices,
    # With NaN: `unique_inverse` of one process leaves open which of them is which.
    "inverse": lambda x: xp.unique_all(x).inverse_indices,
    "mask": lambda x: x[x > 0] if x.dtype != xp.bool else x[x],
    "mask of few": lambda x: x[xp.astype(x, xp.float64) > 1.9],
    "nonzero": lambda x: xp.nonzero(x)[0],
    "isin": lambda x: xp.isin(x, x[:2]),
    "taken": lambda x: xp.take(x, xp.nonzero(x)[0]),
    "taken twice": lambda x: xp.concat([x, x])[xp.argsort(xp.astype(x, xp.float64))],
    "searched": lambda x: xp.searchsorted(xp.sort(x), x, side="right") if x.dtype != xp.bool else x,
}


def ordered() -> None:
    """Rows, cut in blocks of any sizes."""
    for name, data in rows():
        alone = xp.asarray(data)
        for placed in (None, [dist.Shard(0, sizes=(data.size, *(0,) * (N - 1)))]):
            x = xp.asarray(data, team=TEAM, placements=placed)
            functions = ORDERED if data.dtype != bool else {}
            functions = functions | (OTHERS if placed is None else {})
            for said, function in functions.items():
                same(f"{said} of {name}", function(x), function(alone))
        values = xp.unique_values(x)
        np.testing.assert_array_equal(np.asarray(values), np.asarray(xp.unique_values(alone)))


PLANES: dict[str, Callable[[Any], Any]] = {
    "sort 0": lambda x: xp.sort(x, axis=0),
    "argsort 1": lambda x: xp.argsort(x, axis=1, descending=True),
    "unique indices": lambda x: xp.unique_all(x).indices,
    "unique inverse": lambda x: xp.unique_inverse(x).inverse_indices,
    "nonzero": lambda x: xp.nonzero(x)[1],
    "mask": lambda x: x[x > 2],
    "rows by mask": lambda x: x[x[:, 0] > 2],
    "take": lambda x: xp.take(x, xp.nonzero(x[:, 1])[0], axis=0),
    "several indices": lambda x: xp.broadcast_to(x, (3, *x.shape))[
        xp.asarray([2, 0], team=x.team), xp.asarray([5, 1], team=x.team)],
    "along 0": lambda x: xp.take_along_axis(x, xp.argsort(x, axis=0)[:4], axis=0),
    "along 1": lambda x: xp.take_along_axis(x, xp.argsort(x[:1], axis=1), axis=1),
    "along a row": lambda x: xp.take_along_axis(x[:, 0], xp.argsort(x[:, 0]), axis=0),
    "tiled": lambda x: xp.tile(x, (2, 2)),
    "tiled before": lambda x: xp.tile(x, (3, 1, 2)),
    "tensordot": lambda x: xp.tensordot(x, x, axes=((0,), (0,))),
    "tensordot of all": lambda x: xp.tensordot(x, x, axes=2),
    "tensordot of none": lambda x: xp.tensordot(x, x[0], axes=0),
    "tensordot of three": lambda x: xp.tensordot(x[None] + 1, x, axes=((2,), (1,))),
    "argmax": lambda x: xp.argmax(x),
    "take of columns": lambda x: xp.take(x, xp.nonzero(x[1, :])[0], axis=1),
}


def planes() -> None:
    """Arrays of two axes, cut along each of them."""
    random = np.random.default_rng(8)
    data = random.integers(0, 5, (13, 8)).astype(np.float64)
    alone = xp.asarray(data)
    for axis in (0, 1):
        x = xp.asarray(data, team=TEAM, placements=[dist.Shard(axis)])
        for said, function in PLANES.items():
            same(f"{said} of a plane by {axis}", function(x), function(alone))


BLOCKS: dict[str, Callable[[Any], Any]] = {
    "reshape": lambda x: xp.reshape(x, (4, -1)),
    "reshape T": lambda x: xp.reshape(x.T, (-1, 2)),
    "row": lambda x: xp.reshape(x, (-1,)),
    "running 0": lambda x: xp.cumulative_sum(x, axis=0, include_initial=True),
    "running 1": lambda x: xp.cumulative_prod(x, axis=1),
    "argmax": lambda x: xp.argmax(x),
    "argmin 0": lambda x: xp.argmin(x, axis=0, keepdims=True),
    "take": lambda x: xp.take(x, xp.asarray([3, 1, 1], team=x.team), axis=0),
    "along 1": lambda x: xp.take_along_axis(x, xp.astype(x, xp.int64) + 2, axis=1),
    "along both": lambda x: xp.take_along_axis(x[:1], xp.astype(x, xp.int64), axis=1),
    "std": lambda x: xp.std(x * 0 + 3),
    "tensordot": lambda x: xp.tensordot(x, x, axes=((1,), (1,))),
}


def blocks() -> None:
    """Arrays cut along both axes, by processes in rows and columns."""
    data = np.random.default_rng(10).integers(0, 5, (12, 10)).astype(np.float64)
    alone = xp.asarray(data)
    mesh = dist.Mesh((N // 2, 2)) if N % 2 == 0 else dist.Mesh((1, N))
    placed = dist.Partition(data.shape, data.dtype, mesh, [dist.Shard(0), dist.Shard(1)])
    for said, function in BLOCKS.items():
        x = xp.asarray(data, team=TEAM, placements=placed)
        same(f"{said} of blocks", function(x), function(alone))


def products() -> None:
    """On processes in rows and columns; nothing is gathered, and the cheapest way is taken."""
    random = np.random.default_rng(9)
    a, b = random.integers(0, 9, (12, 20)).astype(float), random.integers(0, 9, (20, 8)).astype(float)
    for mesh in (dist.Mesh((N,)), dist.Mesh((N // 2, 2)) if N % 2 == 0 else dist.Mesh((1, N))):
        kinds: list[dist.Placement] = [dist.Shard(0), dist.Shard(1), dist.Replicate()]
        for first in kinds:
            for second in kinds:
                pair = (first,) if mesh.ndim == 1 else (first, second)
                other = (second,) if mesh.ndim == 1 else (second, first)
                if mesh.ndim == 2 and first == second:
                    continue
                x = xp.asarray(a, team=TEAM, placements=dist.Partition(a.shape, a.dtype, mesh, pair))
                y = xp.asarray(b, team=TEAM, placements=dist.Partition(b.shape, b.dtype, mesh, other))
                same(f"{pair} @ {other}", x @ y, a @ b)
                same(f"{pair} @ vector", x @ y[:, 0], a @ b[:, 0])
    if N == 4:
        wide, narrow = (xp.asarray(np.ones(shape), team=TEAM) for shape in ((8, 64), (64, 2)))
        before = xp.counters.counters.sent.total()
        xp.eval(wide @ narrow)  # the second is gathered: three quarters of it reach each process
        assert xp.counters.counters.sent.total() - before == 3 * 16 * 2 * 8
        assert (narrow @ wide[:2]).partition.placements == (dist.Shard(0),)


GATHERED.clear()
for part in (ordered, planes, blocks, products):
    part()
assert set(GATHERED) <= {"values"}, GATHERED
if TEAM.rank == 0:
    print("ungathered")
