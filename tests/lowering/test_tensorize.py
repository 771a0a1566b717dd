"""Tensorized loops, compared with NumPy after every pass and in compiled code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tecomp
from tecomp import te
from tests.messages import Diagnostic, diagnostic
from tests.strategies.intrinsics import tile_product

Agrees = Callable[..., Any]
Golden = Callable[[object], None]

gemm = partial(tile_product, name="gemm")


def numbers(*shape: int, dtype: str = "float32") -> NDArray[Any]:
    """Return small random integers, so that sums are exact in any order."""
    return np.random.default_rng(5).integers(-4, 5, shape).astype(dtype)


def product(
    m: int, n: int, depth: int, *, left: bool = False, right: bool = False
) -> tuple[te.Tensor, te.Tensor, te.Tensor, dict[Any, NDArray[Any]]]:
    """Build a matrix product with optionally transposed operands, and its values."""
    A = te.placeholder((depth, m) if left else (m, depth), name="A")
    B = te.placeholder((n, depth) if right else (depth, n), name="B")
    k = te.reduce_axis((0, depth), name="k")

    def element(i: Any, j: Any) -> Any:
        x, y = (A[k, i] if left else A[i, k]), (B[j, k] if right else B[k, j])
        return te.sum(y * x, axis=k)

    C = te.compute((m, n), element, name="C")
    a, b = numbers(*A.shape), numbers(*B.shape)  # type: ignore[arg-type]
    return A, B, C, {A: a, B: b, C: (a.T if left else a) @ (b.T if right else b)}


def tiled(
    C: te.Tensor, m: int, n: int, depth: int, *, split: bool = True
) -> tuple[te.Schedule, Sequence[te.IterVar]]:
    s = te.create_schedule(C.op)
    io, jo, i, j = s[C].tile(C.op.axis[0], C.op.axis[1], m, n)
    (k,) = C.op.reduce_axis
    if split:
        ko, ki = s[C].split(k, depth)
        s[C].reorder(io, jo, ko, i, j, ki)
        return s, (i, j, ki)
    return s, (i, j, k)


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("right", [False, True])
def test_matmul_of_transposed_operands(left: bool, right: bool, agrees: Agrees) -> None:
    A, B, C, values = product(8, 16, 12, left=left, right=right)
    s, (i, _, _) = tiled(C, 4, 8, 6)
    s[C].tensorize(i, gemm(4, 8, 6, transposed=left != right))

    agrees(s, [A, B, C], values)


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0), (1, 2, 0)])
def test_inner_loops_match_in_any_order(order: Sequence[int], agrees: Agrees) -> None:
    A, B, C, values = product(8, 8, 8)
    s, inside = tiled(C, 4, 4, 4)
    s[C].reorder(*(inside[k] for k in order))
    s[C].tensorize(inside[order[0]], gemm(4, 4, 4))

    agrees(s, [A, B, C], values)


def test_the_body_computes_whole_reductions(agrees: Agrees, golden: Golden) -> None:
    A, B, C, values = product(8, 8, 4)
    s, (i, _, _) = tiled(C, 4, 8, 4, split=False)
    s[C].tensorize(i, gemm(4, 8, 4))

    kernel = agrees(s, [A, B, C], values)

    golden(kernel.lowered.functions["nest"])


def test_reset_and_update_for_split_reductions(agrees: Agrees, golden: Golden) -> None:
    A, B, C, values = product(8, 8, 8)
    s, (i, _, _) = tiled(C, 4, 8, 4)
    s[C].tensorize(i, gemm(4, 8, 4))

    kernel = agrees(s, [A, B, C], values)

    golden(kernel.lowered.functions["nest"])


def test_update_alone_starts_from_the_stage_s_own_initial_values(agrees: Agrees) -> None:
    whole = gemm(4, 4, 4)
    only = te.TensorIntrin(
        "add", whole.op, whole.buffers, (), None, None, whole.update, whole.scopes
    )
    A, B, C, values = product(8, 8, 8)
    s, (i, _, _) = tiled(C, 4, 4, 4)
    s[C].tensorize(i, only)

    agrees(s, [A, B, C], values)


def test_a_reduction_that_starts_from_a_value(agrees: Agrees) -> None:
    A = te.placeholder((8, 8), name="A")
    B = te.placeholder((8, 8), name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute(
        (8, 8), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k, init=5.0), name="C"
    )
    s = te.create_schedule(C)
    s[C].tensorize(C.op.axis[0], gemm(8, 8, 8))
    a, b = numbers(8, 8), numbers(8, 8)

    agrees(s, [A, B, C], {A: a, B: b, C: a @ b + 5})


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("shape", [(10, 16, 16), (8, 13, 16), (8, 16, 19), (9, 9, 9), (3, 5, 7)])
def test_tails_are_masked(shape: tuple[int, int, int], agrees: Agrees) -> None:
    A, B, C, values = product(*shape)
    s, (i, _, _) = tiled(C, 4, 8, 6)
    s[C].tensorize(i, gemm(4, 8, 6))

    agrees(s, [A, B, C], values, check_bounds=True)


def test_full_tiles_have_no_masks(golden: Golden, agrees: Agrees) -> None:
    A, B, C, values = product(10, 16, 4)
    s, (i, _, _) = tiled(C, 4, 8, 4)
    s[C].tensorize(i, gemm(4, 8, 4))

    kernel = agrees(s, [A, B, C], values)

    golden(kernel.lowered.functions["nest"])


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("n", [1, 8, 12, 100])
def test_sizes_are_known_at_run_time(n: int, agrees: Agrees) -> None:
    size = te.var("n")
    A = te.placeholder((size, 8), name="A")
    B = te.placeholder((8, 8), name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((size, 8), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C)
    outer, inner = s[C].split(C.op.axis[0], 4)
    s[C].parallel(outer)
    s[C].tensorize(inner, gemm(4, 8, 8))
    a, b = numbers(n, 8), numbers(8, 8)

    agrees(s, [size, A, B, C], {size: n, A: a, B: b, C: a @ b})


def test_layouts_of_the_operands(agrees: Agrees, golden: Golden) -> None:
    """A in 4 x 4 tiles, B in panels of 8 columns, and the result in tiles."""
    A, B, C, values = product(8, 16, 8)
    s = te.create_schedule(C)
    s[A].transform_layout(lambda i, k: [i // 4, k // 4, i % 4, k % 4])
    s[B].transform_layout(lambda k, j: [j // 8, te.AXIS_SEPARATOR, k, j % 8])
    s[B].set_scope("global.texture")
    io, jo, i, j = s[C].transform_layout(lambda i, j: [i // 4, j // 8, i % 4, j % 8])
    ko, ki = s[C].split(C.op.reduce_axis[0], 4)
    s[C].reorder(io, jo, ko, i, j, ki)
    s[C].tensorize(i, gemm(4, 8, 4))

    kernel = agrees(s, [A, B, C], values)

    golden(kernel.lowered.functions["flatten_buffer"])


def test_operands_computed_inside(agrees: Agrees) -> None:
    """Tiles of the operands and of the result are cached in local memory."""
    A, B, C, values = product(12, 20, 10)
    s = te.create_schedule(C)
    local = s.cache_write(C, "local")
    io, jo, i, _ = s[C].tile(C.op.axis[0], C.op.axis[1], 4, 8)
    s[local].compute_at(s[C], jo)
    i, j = s[local].op.axis
    ko, ki = s[local].split(s[local].op.reduce_axis[0], 5)
    s[local].reorder(ko, i, j, ki)
    copies = [s.cache_read(t, "local", [local]) for t in (A, B)]
    for copy in copies:
        s[copy].compute_at(s[local], ko)
    s[local].tensorize(i, gemm(4, 8, 5))
    del io

    agrees(s, [A, B, C], values)


def test_tiles_at_the_edge_are_whole_where_padding_is_neutral(golden: Golden) -> None:
    """Copies of the operands are padded with zeros, and the tile of the result has padding."""
    A, B, C, values = product(10, 20, 7)
    s = te.create_schedule(C)
    local = s.cache_write(C, "local")
    _, jo, _, _ = s[C].tile(C.op.axis[0], C.op.axis[1], 8, 16)
    s[local].transform_layout(lambda i, j: [i // 4, j // 8, i % 4, j % 8], loops="logical")
    s[local].compute_at(s[C], jo)
    io, jo, i, j = s[local].tile(s[local].op.axis[0], s[local].op.axis[1], 4, 8)
    ko, ki = s[local].split(s[local].op.reduce_axis[0], 6)
    s[local].reorder(ko, io, jo, i, j, ki)
    for tensor, (rows, columns) in ((A, (4, 6)), (B, (6, 8))):
        copy = s.cache_read(tensor, "local", [local])
        s[copy].transform_layout(
            lambda x, y, rows=rows, columns=columns: [
                x // rows, y // columns, x % rows, y % columns],
            pad_value=0,
        )
        s[copy].compute_at(s[local], ko)
    s[local].tensorize(i, gemm(4, 8, 6))

    kernel = tecomp.build(s, [A, B, C], check_bounds=True)

    assert "where=" not in str(kernel.lowered.functions["nest"])
    golden(kernel.lowered.functions["fill_padding"])
    names = list(kernel.lowered.functions)
    for name in names[names.index("fill_padding"):]:
        c = np.full((10, 20), 77, np.float32)
        is_flat = "flatten_buffer" in names[: names.index(name) + 1]
        arrays = [values[A], values[B], c]
        tecomp.evaluate(
            kernel.lowered.functions[name], [x.reshape(-1) if is_flat else x for x in arrays])
        np.testing.assert_array_equal(c, values[C], name)
    c = np.full((10, 20), 77, np.float32)
    kernel(values[A], values[B], c)
    np.testing.assert_array_equal(c, values[C])


def test_axes_of_length_one_and_batches(agrees: Agrees) -> None:
    """A tile of a batched product is matched among additional axes."""
    A = te.placeholder((3, 1, 8, 8), name="A")
    B = te.placeholder((3, 8, 8), name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute(
        (3, 8, 1, 8), lambda b, i, one, j: te.sum(A[b, one, i, k] * B[b, k, j], axis=k), name="C"
    )
    s = te.create_schedule(C)
    s[C].tensorize(C.op.axis[1], gemm(8, 8, 8))
    a, b = numbers(3, 1, 8, 8), numbers(3, 8, 8)
    expected = np.einsum("boik,bkj->bioj", a, b)

    agrees(s, [A, B, C], {A: a, B: b, C: expected})


def test_a_convolution_is_a_product(agrees: Agrees) -> None:
    """Each position r of the kernel is one product, whose input is shifted by r."""
    X = te.placeholder((10, 16), name="X")  # width, channels
    W = te.placeholder((3, 16, 8), name="W")
    r, c = te.reduce_axis((0, 3), name="r"), te.reduce_axis((0, 16), name="c")
    Y = te.compute((8, 8), lambda x, o: te.sum(X[x + r, c] * W[r, c, o], axis=[r, c]), name="Y")
    s = te.create_schedule(Y)
    x, o = Y.op.axis
    s[Y].reorder(r, x, o, c)
    s[Y].tensorize(x, gemm(8, 8, 16))
    a, w = numbers(10, 16), numbers(3, 16, 8)
    windows = np.lib.stride_tricks.sliding_window_view(a, 3, axis=0)

    agrees(s, [X, W, Y], {X: a, W: w, Y: np.einsum("xcr,rco->xo", windows, w)})


def test_the_trace_replays_with_the_intrinsic() -> None:
    A, B, C, _ = product(8, 8, 8)
    s, (i, _, _) = tiled(C, 4, 4, 4)
    intrin = gemm(4, 4, 4)
    s[C].tensorize(i, intrin)

    replayed = tecomp.replay(s.trace.to_json(), C, s.trace.intrinsics)

    assert str(tecomp.lower(replayed, [A, B, C])) == str(tecomp.lower(s, [A, B, C]))
    assert "def schedule(C, gemm):" in str(s.trace)
    assert "    s[C].tensorize(i_inner, gemm)" in str(s.trace)
    with pytest.raises(tecomp.ScheduleError) as caught:
        tecomp.replay(s.trace.to_json(), C)
    assert diagnostic(caught.value) == (
        Diagnostic("replay", name="gemm")
    )
