"""Stencil steps with asynchronous halo exchange, and reductions, compared with NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tecomp import dist
from tecomp.operations import COMBINERS
from tests.numerics import assert_close

team = dist.world()
STEPS = 5


def step(u: np.ndarray) -> np.ndarray:
    result: np.ndarray = u[1:-1, 1:-1] + 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
    return result


def stencil(mesh: dist.Mesh, placements: list[dist.Placement], shape: tuple[int, int]) -> None:
    plane = dist.Partition(shape, "float64", mesh, placements)
    neighbors = dist.halo(plane, [1, 1], periodic=True, corners=False)
    whole = np.random.default_rng(3).random(shape)
    padded = np.zeros(neighbors.shape(team.rank))
    core = neighbors.core(team.rank)
    rows, columns = plane.local_slice(team.rank)
    padded[core] = whole[rows, columns]
    for _ in range(STEPS):
        pending = dist.start_halo(team, neighbors, padded)
        inside = padded[core].sum()  # the core may be read while the exchange is pending
        pending.wait()
        assert padded[core].sum() == inside
        if padded.size:
            padded[core] = step(padded)
        whole = step(np.pad(whole, 1, mode="wrap"))
    assert_close(padded[core], whole[rows, columns], rtol=1e-12, magnitude=np.abs(whole).max())


stencil(dist.Mesh((team.size,)), [dist.Shard(0)], (9, 6))
stencil(dist.Mesh((team.size,)), [dist.Shard(1)], (4, 7))
stencil(dist.Mesh((1, team.size)), [dist.Shard(0), dist.Shard(1)], (5, 3))
if team.size == 4:
    stencil(dist.Mesh((2, 2)), [dist.Shard(0), dist.Shard(1)], (7, 8))

for dtype in ("float64", "float32", "int64", "uint8", "complex64", "float16", "bool"):
    every = (np.arange(team.size * 6).reshape(team.size, 2, 3) % 5).astype(dtype)
    for op, row in COMBINERS.items():
        combine = getattr(np, row.ufunc)
        wanted = combine.reduce(every, axis=0).astype(dtype)
        made = dist.allreduce(team, every[team.rank], op)
        assert made.dtype == wanted.dtype
        np.testing.assert_array_equal(made, wanted)
        at_last = dist.reduce(team, every[team.rank], op, root=team.size - 1)
        if team.rank == team.size - 1:
            np.testing.assert_array_equal(at_last, wanted)
        before = dist.exscan(team, every[team.rank], op)
        if before is not None:
            np.testing.assert_array_equal(before, combine.reduce(every[: team.rank], axis=0).astype(dtype))

mine = np.array([1.0, np.nan if team.rank == 0 else 2.0])
np.testing.assert_array_equal(dist.allreduce(team, mine, "max"), [1.0, np.nan])
for many in (np.arange(3000.0), np.where(np.arange(3000) == 7, np.nan, 1.0)):
    for op, combine in (("min", np.minimum), ("max", np.maximum)):
        wanted = combine.reduce([many - rank for rank in range(team.size)])
        np.testing.assert_array_equal(dist.allreduce(team, many - team.rank, op), wanted)
half = dist.allreduce(team, np.ones(3, ml_dtypes.bfloat16))
assert half.dtype == ml_dtypes.bfloat16
np.testing.assert_array_equal(half.astype(float), team.size)
assert dist.allreduce(team, 2.0).shape == ()
assert dist.allreduce(team, team.rank == 0, "any")

uneven = np.full((team.rank, 2), team.rank)
gathered = dist.allgather(team, uneven)
np.testing.assert_array_equal(gathered, np.concatenate([np.full((r, 2), r) for r in range(team.size)]))

sent = dist.alltoall(team, [np.full((rank, 2), team.rank, "int8") for rank in range(team.size)])
assert [part.tolist() for part in sent] == [[[rank] * 2] * team.rank for rank in range(team.size)]
assert dist.bcast(team, {"from": team.rank}, root=team.size - 1) == {"from": team.size - 1}
sums = dist.allreduce_all(team, [np.float64(team.rank), [1, 2], np.full((2, 2), 0.5)])
total = team.size * (team.size - 1) / 2
assert [each.tolist() for each in sums] == [
    total, [team.size, 2 * team.size], [[team.size / 2] * 2] * 2]

part = team.split(team.rank % 2)
assert dist.team_of(part.id) is part
np.testing.assert_array_equal(dist.allreduce(part, np.array([team.rank])), sum(range(team.rank % 2, team.size, 2)))
numbers = {part.id for part in (part, team)} | {dist.init_dtensor(t, (4,)) for t in (part, team)}
assert len(numbers) == 4
dist.barrier(team)
if team.rank == 0:
    print("all as on one")
