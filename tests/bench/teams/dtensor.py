"""The multi-process cases with DTensor on gloo: needs RANK, WORLD_SIZE and MASTER_PORT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as td
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor, init_device_mesh

from tests.bench.teams.timing import STEPS, M, N, timed, told


def greatest(value: float) -> float:
    """Return the maximum over all processes."""
    found = torch.tensor([value])
    td.all_reduce(found, td.ReduceOp.MAX)
    return float(found[0])


def stencil(u: Any, rank: int, size: int) -> Any:
    """Compute steps on local rows with explicit messages, as DTensor has no roll."""
    v = u
    for _ in range(STEPS):
        above, below = torch.empty_like(v[:1]), torch.empty_like(v[:1])
        if size == 1:
            above, below = v[-1:], v[:1]
        else:
            ops = [
                td.P2POp(td.isend, v[:1].contiguous(), (rank - 1) % size, tag=1),
                td.P2POp(td.isend, v[-1:].contiguous(), (rank + 1) % size, tag=2),
                td.P2POp(td.irecv, below, (rank + 1) % size, tag=1),
                td.P2POp(td.irecv, above, (rank - 1) % size, tag=2),
            ]
            for request in td.batch_isend_irecv(ops):
                request.wait()
        padded = torch.cat([above, v, below])
        v = 0.25 * (padded[:-2] + padded[2:] + torch.roll(v, 1, 1) + torch.roll(v, -1, 1))
    return v


def main() -> None:
    """Run all cases that DTensor supports."""
    torch.set_num_threads(1)
    td.init_process_group("gloo")
    rank, size = td.get_rank(), td.get_world_size()
    mesh = init_device_mesh("cpu", (size,))
    torch.manual_seed(0)
    rows = [Shard(0)]
    a, b = (distribute_tensor(torch.rand(N, N, dtype=torch.float64), mesh, rows) for _ in range(2))
    m, k = (distribute_tensor(torch.rand(M, M, dtype=torch.float64), mesh, rows) for _ in range(2))
    line = distribute_tensor(torch.rand(N * N, dtype=torch.float64), mesh, rows)

    def whole(x: DTensor, placed: Any) -> Any:
        return x.redistribute(mesh, [placed]).to_local()

    cases: dict[str, Callable[[], object]] = {
        "elementwise": lambda: a * b + a,
        "sum": lambda: float(whole(a.sum(), Replicate())),
        "reshard": lambda: whole(m, Shard(1)),
        "transpose": lambda: whole(m.T, Shard(0)),
        "matmul": lambda: (m @ k).to_local(),
        "stencil": lambda: stencil(a.to_local(), rank, size),
        "sort": lambda: torch.sort(line)[0].to_local(),
    }
    times = {}
    for name, work in cases.items():
        try:
            times[name] = timed(work, td.barrier, greatest)
        except (RuntimeError, NotImplementedError) as error:
            if rank == 0:
                print(f"{name}: {str(error).splitlines()[0][:90]}")
    told(rank, times)
    td.destroy_process_group()


main()
