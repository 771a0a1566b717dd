"""Steps of two stencils during which ranks are killed; the survivors check the result.

Arguments: ranks to kill, step, and point of the step (start, middle or end); or `time` with
milliseconds after the start of the loop instead of the step.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

import numpy as np

from tecomp import dist

VICTIMS = [int(rank) for rank in sys.argv[1].split(",") if rank]
AT, WHERE = int(sys.argv[2]), sys.argv[3]
STEPS, EVERY = 60, 10

team = dist.world()
rank = team.rank


def die(where: str, step: int) -> None:
    if where == WHERE and step == AT and rank in VICTIMS and loop.losses == 0:
        os.kill(os.getpid(), signal.SIGKILL)


def smoothed(u: np.ndarray, axis: int) -> np.ndarray:
    middle = [slice(None)] * u.ndim
    left, right = list(middle), list(middle)
    middle[axis], left[axis], right[axis] = slice(1, -1), slice(None, -2), slice(2, None)
    result: np.ndarray = 0.25 * u[tuple(left)] + 0.5 * u[tuple(middle)] + 0.25 * u[tuple(right)]
    return result


def padded(field: dist.Field, widths: list[int]) -> np.ndarray:
    neighbors = dist.halo(field.partition, widths, periodic=True)
    result = np.empty(neighbors.shape(loop.team.rank))
    result[neighbors.core(loop.team.rank)] = field.local
    dist.update_halo(loop.team, neighbors, result)
    return result


line = dist.Partition((241,), "float64", dist.Mesh((team.size,)), [dist.Shard(0)])
plane = dist.Partition((30, 7), "float64", dist.Mesh((team.size,)), [dist.Shard(0)])
first = np.sin(np.arange(241) * 0.1)
second = np.cos(np.arange(210.0)).reshape(30, 7)

loop = dist.protect(STEPS, every=EVERY)
u = loop.field(line, first[line.local_slice(rank)], gather=True)
v = loop.field(plane, second[plane.local_slice(rank)], gather=True)
if WHERE == "time" and rank in VICTIMS:
    threading.Timer(AT / 1000, os.kill, (os.getpid(), signal.SIGKILL)).start()
for step in loop:
    with loop.step():
        die("step", step)
        u.local = smoothed(padded(u, [1]), 0)
        die("middle", step)
        v.local = smoothed(padded(v, [1, 0]), 0) if v.local.size else v.local
        v.local = v.local + dist.allreduce(loop.team, np.array([1])) / loop.team.size
        die("end", step)

for _ in range(STEPS):
    first = smoothed(np.pad(first, 1, mode="wrap"), 0)
    second = smoothed(np.pad(second, [(1, 1), (0, 0)], mode="wrap"), 0) + 1
np.testing.assert_array_equal(u.whole, first)
np.testing.assert_array_equal(v.whole, second)
if loop.team.rank == 0:
    print("exact, losses", loop.losses, "ranks left", loop.team.size, flush=True)
