"""Halide, with the schedules of its repository for these computations.

Sources:
    github.com/halide/Halide: apps/blur (for float32 here), test/performance/matrix_multiplication.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import halide as hl
import numpy as np

from tests.bench.case import Array, Case, NoFormError
from tests.bench.worker import Bind, Call, serve

LANES = hl.get_host_target().natural_vector_size(hl.Float(32))


def blur(_: Case, image: Any) -> Any:
    """Schedule parallel row strips with a sliding window of input rows."""
    x, y, inner = hl.Var("x"), hl.Var("y"), hl.Var("inner")
    across, down = hl.Func("across"), hl.Func("down")
    across[x, y] = (image[x, y] + image[x + 1, y] + image[x + 2, y]) * (1.0 / 3)
    down[x, y] = (across[x, y] + across[x, y + 1] + across[x, y + 2]) * (1.0 / 3)
    down.split(y, y, inner, 32).parallel(y).vectorize(x, LANES)
    across.store_at(down, y).compute_at(down, inner).vectorize(x, LANES)
    return down


def gelu(_: Case, image: Any) -> Any:
    """Vectorize within parallel rows."""
    x, y = hl.Var("x"), hl.Var("y")
    out, value = hl.Func("out"), image[x, y]
    out[x, y] = 0.5 * value * (1.0 + hl.erf(value * (1 / math.sqrt(2))))
    out.vectorize(x, LANES).parallel(y, 16)
    return out


def matmul(case: Case, a: Any, b: Any) -> Any:
    """Tile by 3 vectors and 4 rows, for sizes that the larger tiles divide."""
    (rows, depth), (_, columns) = case.shapes[0][-2:], case.shapes[1][-2:]
    width, height = 3 * LANES, 32
    if len(case.shapes[0]) > 2 or case.dtype != "float32" or rows < height or columns < width:
        raise NoFormError("Halide's example is for large products of float32")
    x, y, k = hl.Var("x"), hl.Var("y"), hl.RDom([(0, depth)])
    total, out = hl.Func("total"), hl.Func("out")
    total[x, y] = 0.0
    total[x, y] += a[k.x, y] * b[x, k.x]
    out[x, y] = total[x, y]
    inner_x, inner_y, tile_y, both = hl.Var("ix"), hl.Var("iy"), hl.Var("ty"), hl.Var("both")
    out.tile(x, y, inner_x, inner_y, width, height).fuse(x, y, both).parallel(both)
    out.split(inner_y, inner_y, tile_y, 4).vectorize(inner_x, LANES)
    out.unroll(inner_x).unroll(tile_y)
    total.compute_at(out, inner_y).vectorize(x, LANES).unroll(y)
    update = total.update(0)
    update.reorder(x, y, k.x).vectorize(x, LANES).unroll(x).unroll(y).unroll(k.x, 2)
    return out


def add(_: Case, a: Any, b: Any) -> Any:
    """Add without a schedule."""
    x, out = hl.Var("x"), hl.Func("out")
    out[x] = a[x] + b[x]
    return out


PIPELINES: dict[str, Callable[..., Any]] = {
    "blur": blur, "gelu": gelu, "matmul": matmul, "add": add,
}


def pipeline(case: Case) -> tuple[Any, list[Any]]:
    """Return the pipeline and its inputs."""
    if case.kind not in PIPELINES:
        raise NoFormError("Halide's repository has no example of it")
    images = [
        hl.ImageParam(hl.Float(32), len(shape), f"in{k}") for k, shape in enumerate(case.shapes)
    ]
    return PIPELINES[case.kind](case, *images), images


def prepared(case: Case) -> Bind:
    """Return calls of the compiled pipeline with a preallocated result."""
    function, images = pipeline(case)
    compiled = function.compile_to_callable(images, hl.get_jit_target_from_environment())

    def bind(*inputs: Array) -> tuple[Call, Array]:
        out = np.empty(case.expected(list(inputs)).shape, np.float32)
        buffers = [hl.Buffer(array) for array in (*inputs, out)]
        return partial(compiled, *buffers), out

    return bind


def building(case: Case) -> Bind:
    """Measure definition to callable, after a warm-up compilation."""
    if case.options["is_kept"]:
        raise NoFormError("Halide keeps nothing on disk by itself")
    part: Case = case.options["part"]
    target = hl.get_jit_target_from_environment()
    x, first = hl.Var("x"), hl.Func("first")
    first[x] = x + 1
    first.compile_jit(target)

    def call() -> Any:
        function, images = pipeline(part)
        return function.compile_to_callable(images, target)

    pipeline(part)
    return lambda *_: call


if __name__ == "__main__":
    serve({**dict.fromkeys(PIPELINES, prepared), "build": building}, "halide")
