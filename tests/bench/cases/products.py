"""Matrix products: round, odd, thin and batched sizes, epilogues and small dtypes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.bench.case import Array, Case, Goal
from tests.bench.cases.functions import gelu

ROUND, ODD = (512, 1024, 2048), (511, 1000, 1023, 1025)
THIN = ((4096, 64, 64), (64, 64, 4096), (1, 4096, 4096))
"""Rows, depth and columns of thin products."""


def product(
    name: str, m: int, k: int, n: int, *, batch: tuple[int, ...] = (), **options: Any
) -> Case:
    """Return a case for (m, k) times (k, n); with one row or column there is no data reuse."""
    count = math.prod(batch)
    size = "x".join(str(extent) for extent in (*batch, m, k, n))
    options = {
        "title": f"{options.get('dtype', 'float32')} {size}", "kind": "matmul",
        "shapes": ((*batch, m, k), (*batch, k, n)), "oracle": np.matmul,
        **options,
    }
    return Case(
        name, terms=k, flops=2 * count * m * k * n, bytes=4 * count * (m * k + k * n + m * n),
        limit="fma" if min(m, k, n) > 1 else "copy", has_blas=True, **options,
    )


def _finished(a: Array, b: Array, bias: Array) -> Array:
    return gelu(a @ b + bias)


def _neighbour(size: int) -> str:
    """Return the name of the case with the nearest round size."""
    return f"matmul/{min(ROUND, key=lambda other: abs(other - size))}"


CASES = (
    *(
        product(f"matmul/{n}", n, n, n, goal=Goal(of_limit=0.85, of_best=1.05))
        for n in ROUND
    ),
    *(
        product(f"matmul/{n}", n, n, n, goal=Goal(of_best=1.0, of_case=(_neighbour(n), 0.9)))
        for n in ODD
    ),
    *(
        product(
            f"matmul/{m}x{k}x{n}", m, k, n,
            goal=Goal(of_best=1.0, of_case=("matmul/512", 0.9) if m > 1 else None),
        )
        for m, k, n in THIN
    ),
    product("matmul/batched", 64, 64, 64, batch=(64,), goal=Goal(of_best=1.2)),
    product(
        "matmul/batched-epilogue", 64, 64, 64, batch=(64,),
        title="float32 64x64x64x64 + bias, GELU", kind="matmul_bias_gelu",
        shapes=((64, 64, 64), (64, 64, 64), (64,)), oracle=_finished, goal=Goal(of_best=1.2),
    ),
    product(
        "matmul/epilogue", 1024, 1024, 1024,
        title="float32 1024x1024x1024 + bias, GELU", kind="matmul_bias_gelu",
        shapes=((1024, 1024), (1024, 1024), (1024,)), oracle=_finished, goal=Goal(of_best=1.2),
    ),
    product(
        "matmul/bfloat16", 1024, 1024, 1024, dtype="bfloat16", result_dtype="bfloat16",
        goal=Goal(of_best=0.8, peers=("torch",)),
    ),
    product(
        "matmul/int8", 1024, 1024, 1024, dtype="int8", result_dtype="int32",
        goal=Goal(of_best=0.8, peers=("torch",)),
    ),
)
