"""Sorts, sets, indexing and products give the results of one process without a gather."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tecomp.array as xp
from tecomp import dist
from tecomp.errors import ArrayValueError
from tests.messages import Diagnostic, diagnostic

TEAM = dist.world()
N = TEAM.size
GATHERED = xp.statistics.counters.gathered
SIZES = (0, 3, 300)


def rows() -> Iterator[tuple[str, Any]]:
    """Yield arrays: many or few distinct values, no elements, NaN, zeros of both signs."""
    random = np.random.default_rng(7)
    for size in SIZES:
        yield f"{size} floats", random.normal(size=size)
        yield f"{size} short integers", random.integers(-4, 4, size).astype(np.int8)
        special = random.choice([0.0, -0.0, np.nan, 1.5, -np.inf, 2.0], size).astype(np.float32)
        yield f"{size} special ones", special
        yield f"{size} truth values", random.random(size) > 0.9
        yield f"{size} in order", np.sort(random.integers(0, 9, size))
        pairs = random.choice([1, 0, np.nan, -1], (2, size))
        yield f"{size} complex ones", pairs[0] + 1j * pairs[1]


def same(where: str, found: Any, expected: Any) -> None:
    """Check equality, including dtype and signs of zeros, and that nothing was gathered."""
    if isinstance(found, xp.Array):
        xp.eval(found)
        assert not GATHERED, (where, GATHERED)
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), (where, found, expected)
    np.testing.assert_array_equal(found, expected, err_msg=where)
    if found.dtype.kind == "f":
        signs = np.signbit(found[found == 0]), np.signbit(expected[expected == 0])
        np.testing.assert_array_equal(*signs, err_msg=where)
    GATHERED.clear()


ORDERED: dict[str, Callable[[Any], Any]] = {
    "sort": xp.sort,
    "descending": lambda x: xp.sort(x, descending=True),
    "argsort": xp.argsort,
    "argsort descending": lambda x: xp.argsort(x, descending=True),
}

OTHERS: dict[str, Callable[[Any], Any]] = {
    "counts": lambda x: xp.unique_counts(x).counts,
    "indices": lambda x: xp.unique_all(x).indices,
    # For NaN, `unique_inverse` on one process does not determine which NaN an index denotes.
    "inverse": lambda x: xp.unique_all(x).inverse_indices,
    "mask": lambda x: x[x > 0] if x.dtype != xp.bool else x[x],
    "mask of few": lambda x: x[xp.astype(x, xp.float64) > 1.9],
    "nonzero": lambda x: xp.nonzero(x)[0],
    "isin": lambda x: xp.isin(x, x[:2]),
    "taken": lambda x: xp.take(x, xp.nonzero(x)[0]),
    "taken twice": lambda x: xp.concat([x, x])[xp.argsort(xp.astype(x, xp.float64))],
    "searched": lambda x: xp.searchsorted(xp.sort(x), x, side="right"),
    "searched by few": lambda x: xp.searchsorted(xp.sort(x), x[:9]),
    "searched by one": lambda x: xp.searchsorted(xp.sort(x), x[-1]) if x.size else x,
    "searched in few": lambda x: xp.searchsorted(xp.sort(x)[:2], x),
    "sorter": lambda x: xp.searchsorted(x, x, side="right", sorter=xp.argsort(x)),
    "is among many": lambda x: xp.isin(x[:2], x, invert=True),
    "repeated": lambda x: xp.repeat(x, xp.astype(x != 0, xp.int64) + 1),
}

REFUSED = {"b": ("searched", "sorter"), "c": ("mask", "taken twice", "searched", "sorter")}
"""First words of the names of functions that do not support boolean or complex dtypes."""


def ordered() -> None:
    """Check functions of vectors in blocks of any sizes."""
    for name, data in rows():
        alone = xp.asarray(data)
        for placed in (None, [dist.Shard(0, sizes=(data.size, *(0,) * (N - 1)))]):
            x = xp.asarray(data, team=TEAM, placements=placed)
            functions = ORDERED if data.dtype.kind not in "bc" else {}
            functions = functions | (OTHERS if placed is None else {})
            refused = REFUSED.get(data.dtype.kind, ())
            for message, function in functions.items():
                if message.startswith(refused):
                    continue
                same(f"{message} of {name}", function(x), function(alone))
        values = xp.unique_values(x)
        xp.eval(values)
        assert not GATHERED, (name, GATHERED)
        np.testing.assert_array_equal(np.asarray(values), np.asarray(xp.unique_values(alone)))
        GATHERED.clear()


def written(key: Callable[[Any], Any], value: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that writes elements at an index of arrays in a copy."""
    def function(x: Any) -> Any:
        result = x + 0
        result[key(x)] = value(x)
        return result

    return function


def at(x: Any, places: Any) -> Any:
    """Return an index array on the team of `x`."""
    return xp.asarray(places, team=x.team)


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
    "take of one": lambda x: xp.take(x, at(x, 7), axis=0),
    "pairs": lambda x: x[at(x, [[0, -1], [5, 5]]), at(x, [3, 0])],
    "pairs apart": lambda x: x[at(x, [1, 2]), None, at(x, [[3], [0]])],
    "repeated 0": lambda x: xp.repeat(x, xp.astype(x[:, 0], xp.int64), axis=0),
    "repeated 1": lambda x: xp.repeat(x, xp.astype(x[0, :], xp.int64), axis=1),
    "searchsorted": lambda x: xp.searchsorted(xp.sort(xp.reshape(x, (-1,))), x),
    "isin": lambda x: xp.isin(x, x[0] + 1),
    "tiled often": lambda x: xp.tile(x, (5, 6)),
    "along one": lambda x: xp.take_along_axis(x[:1, :], xp.argsort(x[:1, :], axis=1), axis=1),
    "along one of none": lambda x: xp.take_along_axis(x[:, :1], xp.argsort(x[:0, :1], axis=0), axis=0),
    "sort of one": lambda x: xp.sort(x[:, 2:3], axis=0, descending=True),
    "argsort of few": lambda x: xp.argsort(xp.tile(x[:, :2] * x[:, 2:4], (100, 1)), axis=0),
    "reshape to one": lambda x: xp.reshape(x[3:4, 2:3], ()),
    "vecdot of none": lambda x: xp.vecdot(x[:0], x[:1]),
    "vecdot": lambda x: xp.vecdot(x[:, :1], x, axis=-2),
    "written rows": written(lambda x: at(x, [3, -1, 3]), lambda x: x[:3] + 7),
    "written columns": written(
        lambda x: (slice(None), at(x, [3, 0])), lambda x: at(x, [[7.5, 8.5]])),
    "written pairs": written(
        lambda x: (at(x, [[0], [9]]), at(x, [1, 2, -1])), lambda x: at(x, [1.0, 2.0, 3.0])),
    "written by a mask": written(lambda x: x > 2, lambda x: -x[x > 2]),
    "written rows by a mask": written(
        lambda x: (x[:, 1] > 1, slice(1, 3)), lambda x: at(x, [[9.0, 10.0]])),
    "written beside a number": written(lambda x: (2, at(x, [1, 1, 0])), lambda x: x[:3, 0]),
    "written apart": written(
        lambda x: (at(x, [1, 2]), None, at(x, [[3], [0]])), lambda x: at(x, [[[5.0]], [[6.0]]])),
}


def planes() -> None:
    """Check functions of matrices that are sharded along either axis."""
    random = np.random.default_rng(8)
    data = random.integers(0, 5, (13, 8)).astype(np.float64)
    alone = xp.asarray(data)
    for axis in (0, 1):
        x = xp.asarray(data, team=TEAM, placements=[dist.Shard(axis)])
        for message, function in PLANES.items():
            same(f"{message} of a plane by {axis}", function(x), function(alone))


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


BLOCKS |= {
    said: PLANES[said] for said in (
        "sort 0", "argsort 1", "unique indices", "unique inverse", "nonzero", "mask", "rows by mask",
        "take of one", "pairs", "repeated 0", "searchsorted", "isin", "sort of one",
        "argsort of few", "tiled often", "written rows", "written columns", "written pairs",
        "written by a mask", "written rows by a mask",
    )
} | {
    "with a row": lambda x: x @ xp.reshape(x, (10, 12)),
    "with itself in rows": lambda x: xp.vecdot(x[:, 0], xp.reshape(x, (-1,))[:12]),
    "inner": lambda x: x[0, :] @ x[1, :],
}


def blocks() -> None:
    """Check functions of matrices that are sharded along both axes of a two-dimensional mesh."""
    data = np.random.default_rng(10).integers(0, 5, (12, 10)).astype(np.float64)
    alone = xp.asarray(data)
    mesh = dist.Mesh((N // 2, 2)) if N % 2 == 0 else dist.Mesh((1, N))
    ways: list[list[dist.Placement]] = [
        [dist.Shard(0), dist.Shard(1)], [dist.Shard(1), dist.Replicate()]]
    for kinds in ways:
        placed = dist.Partition(data.shape, data.dtype, mesh, kinds)
        for message, function in BLOCKS.items():
            x = xp.asarray(data, team=TEAM, placements=placed)
            same(f"{message} of {kinds}", function(x), function(alone))


def products() -> None:
    """Products on meshes of one and two axes gather nothing and take the cheapest communication."""
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
        before = xp.statistics.counters.sent.total()
        xp.eval(wide @ narrow)  # each process gathers three quarters of the second operand
        assert xp.statistics.counters.sent.total() - before == 3 * 16 * 2 * 8
        assert (narrow @ wide[:2]).partition.placements == (dist.Shard(0),)


def batches() -> None:
    """Batched matrices that are local to one process work, and an error is raised on all ranks."""
    data = np.random.default_rng(12).integers(0, 5, (5, 3, 3)).astype(np.float64) + 9 * np.eye(3)
    x = xp.asarray(data, team=TEAM)
    same("inv", xp.linalg.inv(x), np.linalg.inv(data))
    for k, part in enumerate(np.linalg.svd(data)):
        same("svd", xp.linalg.svd(x)[k], part)
    same("solve", xp.linalg.solve(x, x[:, :, :2] + 1), np.linalg.solve(data, data[:, :, :2] + 1))
    same("fftn", xp.fft.fftn(x, axes=(2, 1)), np.fft.fftn(data, axes=(2, 1)))
    x[4, 0, :] = 0.0
    try:
        xp.linalg.inv(x)
    except ArrayValueError as error:
        found = diagnostic(error)
        assert found == Diagnostic(
            "array-value", where="inv", library="numpy.linalg.inv", shapes="(5, 3, 3)",
            reason="Singular matrix",
        ), found
    else:
        raise AssertionError("a singular matrix has an inverse")
    expected = np.asarray(x) + 1
    GATHERED.clear()  # ignore the gathers so far
    same("after an error", x + 1, expected)


def on_a_mesh() -> None:
    """On block partitions, stencils send edges and products send parts of the vector."""
    data = np.random.default_rng(11).integers(0, 9, (12, 10)).astype(np.float64)
    mesh = dist.Mesh((2, 2))
    blocks = dist.Partition(data.shape, data.dtype, mesh, [dist.Shard(0), dist.Shard(1)])
    counters = xp.statistics.counters
    x = xp.asarray(data, team=TEAM, placements=blocks)
    before = counters.messages, counters.sent.total()
    y = x + 0
    y[1:-1, 1:-1] = x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2]
    xp.eval(y)
    # An edge of 6 rows is sent along one mesh axis, an edge of 5 columns along the other.
    assert counters.messages - before[0] == 2
    assert counters.sent.total() - before[1] <= (6 + 5) * 8
    assert y.partition == x.partition
    v = xp.asarray(data[0], team=TEAM)
    before = counters.messages, counters.sent.total()
    product = x @ v
    xp.eval(product)
    assert counters.sent.total() - before[1] <= (5 + 2 * 6) * 8
    same("blocks @ vector", product, data @ data[0])
    rows = xp.asarray(data[:2], team=TEAM)
    for axis in (0, 1):
        sides = (rows, x) if axis == 0 else (xp.asarray(data[:, :3], team=TEAM), x)
        expected = np.concatenate([np.asarray(side) for side in sides], axis=axis)
        GATHERED.clear()
        same("rows and blocks in one", xp.concat(sides, axis=axis), expected)
    same("stacked", xp.stack([xp.asarray(data, team=TEAM), x]), np.stack([data, data]))
    flat = xp.asarray(data[:1, :1], team=TEAM, placements=dist.Partition(
        (1, 1), data.dtype, mesh, [dist.Shard(0), dist.Shard(1)]))
    same("one in blocks", xp.reshape(flat, (1, 1, 1)), data[:1, :1, None])


GATHERED.clear()
if N == 4:
    on_a_mesh()
for part in (ordered, planes, blocks, products, batches):
    part()
if TEAM.rank == 0:
    print("ungathered")
