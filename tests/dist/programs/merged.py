"""Halos of several arrays, and sums, are sent in one message per process."""

from __future__ import annotations

import numpy as np

from tecomp import dist
from tecomp.dist.runtime import Transfer, TransferJob

team = dist.world()
mesh = dist.Mesh((team.size,))
line = dist.halo(dist.Partition((9,), "int8", mesh, [dist.Shard(0)]), [1], periodic=True)
rows = dist.halo(dist.Partition((8, 3), "float64", mesh, [dist.Shard(0)]), [(2, 1), 0])


def padded(neighbors: dist.Halo) -> np.ndarray:
    """Return the padded local array, in which each element is its index along the first axis."""
    result = np.zeros(neighbors.shape(team.rank), neighbors.partition.dtype)
    numbers = np.arange(neighbors.partition.shape[0])[neighbors.partition.local_slice(team.rank)[0]]
    result[neighbors.core(team.rank)] = numbers if result.ndim == 1 else numbers[:, None]
    return result


first, second = padded(line), padded(rows)
pending = dist.start_halos(team, [(line, first), (rows, second)])
senders = {m.source for around in (line, rows) for m in around.received_by(team.rank)}
receivers = {m.target for around in (line, rows) for m in around.sent_by(team.rank)}
assert len(pending._requests) == len(senders - {team.rank}) + len(receivers - {team.rank})
pending.wait()

for around, array, wanted in (
    (line, first, np.arange(-1, 10) % 9), (rows, second[:, 2], np.arange(8)),
):
    part = around.partition.local_slice(team.rank)[0]
    assert isinstance(part, slice)
    if around is line:
        wanted = wanted[part.start : part.stop + 2]
    else:
        wanted = wanted[max(part.start - 2, 0) : part.stop + 1]
    if part.stop > part.start:
        np.testing.assert_array_equal(array, wanted)

# Summands of two sums that are received in the same boxes.
operands = dist.Partition((6,), "float64", mesh, [dist.Partial()])
moves = dist.redistribution(operands, dist.Partition((6,), "float64", mesh, [dist.Shard(0)]))
sums = [np.full(moves.target.local_shape(team.rank), 7.0) for _ in range(2)]
jobs = [TransferJob(moves, np.full(6, k + 1.0), made, moves.op) for k, made in enumerate(sums)]
Transfer(team, "two sums", jobs).wait()
for k, made in enumerate(sums):
    np.testing.assert_array_equal(made, (k + 1) * team.size)
if team.rank == 0:
    print("merged")
