"""Time queries of partitions: `python tests/dist/time_partitions.py`."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from timeit import repeat

from tecomp.dist import Halo, Mesh, Partition, Redistribution, Shard, redistribution

SHAPE = (1200, 1200)


def tell(subject: str, call: Callable[[], object]) -> None:
    """Print the minimum and the median time in microseconds."""
    times = [1e6 * seconds for seconds in repeat(call, number=1, repeat=50)]
    print(f"{subject:<40}{min(times):9.1f}{median(times):9.1f}", flush=True)


def rows(count: int, axis: int = 0, block: int | None = None) -> Partition:
    """Return a new partition over `count` processes."""
    return Partition(SHAPE, "float64", Mesh((count,)), [Shard(axis, block)])


def time_mesh(count: int) -> None:
    """Print the times for a one-dimensional mesh of `count` processes."""
    a, b, dealt = rows(count), rows(count, 1), rows(count, 0, 1)
    print(f"{count} processes")
    tell("a partition", lambda: rows(count))
    tell("and a local shape", lambda: rows(count).local_shape(1))
    tell("what one rank receives", lambda: Redistribution(a, b).received_by(1))
    tell("what one rank sends", lambda: Redistribution(a, b).sent_by(1))
    tell("the same, to single indices", lambda: Redistribution(a, dealt).sent_by(1))
    tell("all messages", lambda: Redistribution(a, b).messages)
    tell("a redistribution that is known", lambda: redistribution(rows(count), rows(count, 1)))
    tell("a halo of one rank", lambda: Halo(a, ((1, 1), (0, 0)), (False, False)).received_by(1))


def main() -> None:
    """Print all times for meshes of several sizes."""
    print(f"{'':<40}{'min us':>9}{'median':>9}")
    for count in (4, 16, 64):
        time_mesh(count)


if __name__ == "__main__":
    main()
