"""Element-wise functions, row-wise functions and reductions: all memory-bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.bench.case import Array, Case, Goal
from tests.bench.cases.functions import gelu, layer_norm, rms_norm, softmax

SIZE = 2048
_ALL = (SIZE, SIZE)


def _row(
    kind: str, oracle: Callable[..., Array], *further: tuple[int, ...], terms: int = SIZE
) -> Case:
    """Return a function that reads and writes a square array."""
    return Case(
        f"rows/{kind}", f"{kind} of 2048x2048", kind, (_ALL, *further), oracle,
        terms=terms, bytes=8 * SIZE * SIZE, limit="copy",
        goal=Goal(of_best=1.0, peers=("torch", "torch.compile", "jax")),
    )


def _reduction(name: str, title: str, oracle: Callable[..., Array], **options: Any) -> Case:
    """Return a reduction, which writes little; `cumsum` writes as much as it reads."""
    writes = 2 if options["op"] == "cumsum" else 1
    return Case(
        f"reduce/{name}", f"{title} of 2048x2048", "reduce", (_ALL,), oracle,
        terms=SIZE * SIZE if options.get("axis") is None else SIZE, options=options,
        result_dtype="int64" if options["op"] == "argmax" else "float32",
        bytes=4 * writes * SIZE * SIZE, limit="copy", goal=Goal(of_best=1.0),
    )


CASES = (
    _row("softmax", softmax),
    _row("layer_norm", layer_norm, (SIZE,), (SIZE,)),
    _row("gelu", gelu, terms=4),
    _row("rms_norm", rms_norm, (SIZE,)),
    *(
        _reduction(
            f"{op}-{'all' if axis is None else axis}",
            f"{op} over {'everything' if axis is None else f'axis {axis}'}",
            lambda x, op=op, axis=axis: np.asarray(getattr(np, op)(x, axis=axis)),
            op=op, axis=axis,
        )
        for op in ("sum", "max")
        for axis in (0, 1, None)
    ),
    *(
        _reduction(
            f"{op}-{axis}", f"{op} along axis {axis}",
            lambda x, op=op, axis=axis: np.asarray(getattr(np, op)(x, axis=axis)),
            op=op, axis=axis,
        )
        for op in ("argmax", "cumsum")
        for axis in (0, 1)
    ),
)
