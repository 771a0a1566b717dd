"""The multi-process cases with JAX on gloo: needs RANK, WORLD_SIZE and MASTER_PORT."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from tests.bench.teams.timing import STEPS, M, N, timed, told

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def main() -> None:
    """Run all cases, compiled."""
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.config.update("jax_enable_x64", True)
    jax.distributed.initialize(f"localhost:{os.environ['MASTER_PORT']}", SIZE, RANK)
    jnp, P = jax.numpy, jax.sharding.PartitionSpec
    mesh = jax.make_mesh((SIZE,), ("p",), axis_types=(jax.sharding.AxisType.Auto,))

    def placed(*names: Any) -> Any:
        return jax.sharding.NamedSharding(mesh, P(*names))

    def spread(data: Any) -> Any:
        return jax.make_array_from_callback(data.shape, placed("p"), lambda index: data[index])

    random = np.random.default_rng(0)
    a, b = (spread(random.random((N, N))) for _ in range(2))
    m, k = (spread(random.random((M, M))) for _ in range(2))
    line = spread(random.random(N * N))

    def stencil(u: Any) -> Any:
        for _ in range(STEPS):
            u = 0.25 * (
                jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1))
        return u

    def made(function: Callable[..., Any], *arrays: Any, out: Any = None) -> Callable[[], object]:
        compiled = jax.jit(function, out_shardings=out)
        return lambda: jax.block_until_ready(compiled(*arrays))

    cases: dict[str, Callable[[], object]] = {
        "elementwise": made(lambda x, y: x * y + x, a, b, out=placed("p")),
        "sum": made(jnp.sum, a, out=placed()),
        "reshard": made(lambda x: x, m, out=placed(None, "p")),
        "transpose": made(lambda x: x.T, m, out=placed("p")),
        "matmul": made(jnp.matmul, m, k, out=placed("p")),
        "stencil": made(stencil, a, out=placed("p")),
        "sort": made(jnp.sort, line, out=placed("p")),
    }

    def wait() -> None:
        multihost_utils.sync_global_devices("x")

    def greatest(value: float) -> float:
        return float(np.max(multihost_utils.process_allgather(np.array([value]))))

    told(RANK, {name: timed(work, wait, greatest) for name, work in cases.items()})


main()
