"""TVM 0.27, with hand-written schedules as in its tutorials."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import tvm
from llvmlite import binding
from tvm import s_tir, te, topi

from tests.bench.case import Array, Case, NoFormError
from tests.bench.machine import flags
from tests.bench.worker import Bind, Call, serve

LANES = 16 if "avx512f" in flags() else 8
TARGET = tvm.target.Target({"kind": "llvm", "mcpu": binding.get_host_cpu_name()})


def matmul(case: Case, A: Any, B: Any) -> Any:
    """Keep a tile of sums in registers, with packed columns ("How to optimize GEMM")."""
    (m, depth), (_, n) = A.shape, B.shape
    k = te.reduce_axis((0, depth), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = s_tir.Schedule(te.create_prim_func([A, B, C]))
    # 16 sums of 32 registers, or 8 of 16, keep two FMA units busy; the rest holds operands.
    rows, columns = (8, 2 * LANES) if LANES == 16 else (4, 2 * LANES)
    if m % 64 or n % columns or depth % 4:
        raise NoFormError("its hand schedule is for sizes that the tiles divide")
    block = s.get_sblock("C")
    i, j, k = s.get_loops(block)
    i0, i1, i2 = s.split(i, [None, 64 // rows, rows])
    j0, j1 = s.split(j, [None, columns])
    k0, k1 = s.split(k, [None, 4])
    s.reorder(i0, j0, i1, k0, k1, i2, j1)
    s.vectorize(j1)
    s.unroll(i2)
    s.unroll(k1)
    s.parallel(i0)
    packed = s.cache_read(block, 1, "global")
    s.transform_layout(block, ("read", 1), lambda k, j: (j // columns, k, j % columns))
    *_, lane = s.get_loops(packed)
    copy_k, copy_j = s.get_loops(packed)
    outer, lane = s.split(copy_j, [None, columns])
    s.reorder(outer, copy_k, lane)
    s.vectorize(lane)
    s.parallel(outer)
    sums = s.cache_write(block, 0, "global")
    s.reverse_compute_at(sums, i1)
    s.vectorize(s.get_loops(sums)[-1])
    s.decompose_reduction(block, k0)
    return s


def gelu(_: Case, X: Any) -> Any:
    """Vectorize within parallel rows, with TVM's polynomial for erf."""
    scaled = te.compute(X.shape, lambda i, j: X[i, j] * np.float32(2**-0.5), name="scaled")
    curve = topi.fast_erf(scaled)
    Y = te.compute(X.shape, lambda i, j: X[i, j] * (curve[i, j] * 0.5 + 0.5), name="Y")
    s = s_tir.Schedule(te.create_prim_func([X, Y]))
    for name in ("scaled", curve.op.name):
        s.compute_inline(s.get_sblock(name))
    _rows_of_vectors(s, "Y")
    return s


def blur(_: Case, X: Any) -> Any:
    """Schedule parallel row strips; sums along rows are computed per strip."""
    m, n = (extent - 2 for extent in X.shape)
    third = np.float32(1 / 3)
    R = te.compute(
        (m + 2, n), lambda i, j: (X[i, j] + X[i, j + 1] + X[i, j + 2]) * third, name="R"
    )
    Y = te.compute(
        (m, n), lambda i, j: (R[i, j] + R[i + 1, j] + R[i + 2, j]) * third, name="Y"
    )
    s = s_tir.Schedule(te.create_prim_func([X, Y]))
    i, j = s.get_loops(s.get_sblock("Y"))
    strip, i = s.split(i, [None, 32])
    tile, j = s.split(j, [None, 256])
    s.reorder(strip, tile, i, j)
    _, lane = s.split(j, [None, LANES])
    s.compute_at(s.get_sblock("R"), tile)
    _, along = s.split(s.get_loops(s.get_sblock("R"))[-1], [None, LANES])
    s.vectorize(along)
    s.vectorize(lane)
    s.parallel(strip)
    return s


def add(_: Case, A: Any, B: Any) -> Any:
    """Add without a schedule."""
    C = te.compute(A.shape, lambda i: A[i] + B[i], name="C")
    return s_tir.Schedule(te.create_prim_func([A, B, C]))


def _rows_of_vectors(s: Any, name: str) -> None:
    i, j = s.get_loops(s.get_sblock(name))
    _, lane = s.split(j, [None, LANES])
    s.vectorize(lane)
    s.parallel(i)


SCHEDULES: dict[str, Callable[..., Any]] = {
    "matmul": matmul, "gelu": gelu, "blur": blur, "add": add,
}


def build(case: Case) -> Any:
    """Build a callable."""
    if case.kind not in SCHEDULES:
        raise NoFormError("it has no hand schedule here")
    if case.dtype != "float32" or len(case.shapes[0]) > 2:
        raise NoFormError("its hand schedule is for two axes of float32")
    inputs = [te.placeholder(shape, case.dtype, f"in{k}") for k, shape in enumerate(case.shapes)]
    compiled = tvm.compile(SCHEDULES[case.kind](case, *inputs).mod, target=TARGET)
    return compiled["main"]


def prepared(case: Case) -> Bind:
    """Return calls with a preallocated result."""
    function = build(case)

    def bind(*inputs: Array) -> tuple[Call, Any]:
        out = tvm.runtime.empty(case.expected(list(inputs)).shape, "float32")
        arrays = [tvm.runtime.tensor(array) for array in inputs]
        return partial(function, *arrays, out), out

    return bind


def building(case: Case) -> Bind:
    """Measure definition to function, after a warm-up build."""
    if case.options["is_kept"]:
        raise NoFormError("TVM keeps nothing on disk by itself")
    part: Case = case.options["part"]
    X = te.placeholder((3,), name="X")
    first = te.compute((3,), lambda i: X[i] * 2.0, name="first")
    tvm.compile(te.create_prim_func([X, first]), target=TARGET)
    return lambda *_: partial(build, part)


if __name__ == "__main__":
    serve(
        {**dict.fromkeys(SCHEDULES, prepared), "build": building}, "apache-tvm",
        lambda _, result: result.numpy(),
    )
