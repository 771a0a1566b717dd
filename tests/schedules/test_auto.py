"""Automatic scheduling: fusion groups and the schedules chosen for them."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.schedules import argreduce, auto, conv2d, matmul, reduce, softmax, transpose
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close, assert_product

CPU = replace(tecomp.Target.load("cpu"), core=tecomp.Core(4, 32, 16, (32768, 1 << 20)))


def product(A: te.Tensor, B: te.Tensor, name: str) -> te.Tensor:
    k = te.reduce_axis((0, A.shape[1]), name="k")
    return te.compute(
        (A.shape[0], B.shape[1]), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name=name
    )


def test_build_takes_tensors_in_place_of_a_schedule() -> None:
    A, B = te.placeholder((30, 40), name="A"), te.placeholder((40, 50), name="B")
    C = product(A, B, "C")
    D = te.compute((30,), lambda i: C[i, 0] * 2.0, name="D")
    a, b = np.ones((30, 40), np.float32), np.ones((40, 50), np.float32)
    c, d = np.empty((30, 50), np.float32), np.empty(30, np.float32)

    tecomp.build([C, D], [A, B, C, D])(a, b, c, d)

    assert (c == 40).all()
    assert (d == 80).all()


@pytest.mark.parametrize("name", ["product", "sum", "turned", "softmax", "convolution"])
def test_one_operation_is_scheduled_as_that_of_the_library(name: str) -> None:
    A, B = te.placeholder((64, 300), name="A"), te.placeholder((300, 200), name="B")
    X, W = te.placeholder((1, 9, 9, 16), name="X"), te.placeholder((3, 3, 16, 32), name="W")
    output, schedule = {
        "product": (matmul.define(A, B), matmul.schedule),
        "sum": (reduce.define(A, 0), reduce.schedule),
        "turned": (transpose.define(A), transpose.schedule),
        "softmax": (softmax.define(A), softmax.schedule),
        "convolution": (conv2d.define(X, W), conv2d.schedule),
    }[name]

    assert auto(output, CPU).trace.to_json() == schedule(output, CPU).trace.to_json()


def test_formulas_of_products_are_materialized() -> None:
    A, B = te.placeholder((64, 300), "float16", name="A"), te.placeholder((900, 200), name="B")
    index, scale = te.placeholder((300,), "int32", name="I"), te.placeholder((200,), name="S")
    k = te.reduce_axis((0, 300), name="k")
    C = te.compute((64, 200), lambda i, j: te.sum(
        te.cast(A[i, k], "float32") * 0.5 * B[index[k], j] / scale[j], axis=k), name="C")

    s = auto(C, CPU)

    results = [str(stage.op) for stage in s.stages]
    assert 'C_factor[i, k] = cast("float32", A[i, k])' in results
    assert "C_factor[k, j] = float32(0.5) * B[I[k], j] / S[j]" in results


def test_epilogues_are_fused_into_products() -> None:
    A, B = te.placeholder((64, 300), name="A"), te.placeholder((300, 200), name="B")
    bias = te.placeholder((200,), name="bias")
    C = product(A, B, "C")
    shifted = te.compute(C.shape, lambda i, j: C[i, j] + bias[j], name="shifted")
    D = te.compute(C.shape, lambda i, j: te.tanh(shifted[i, j]), name="D")

    text = str(tecomp.lower(auto(D, CPU), [A, B, bias, D]))

    assert text.count("parallel(") == 2  # a copy of the columns, and blocks of rows
    assert "shifted" not in text


def test_epilogues_are_fused_into_products_of_expressions() -> None:
    A, B = te.placeholder((64, 300), "float16", name="A"), te.placeholder((300, 200), name="B")
    k = te.reduce_axis((0, 300), name="k")
    C = te.compute((64, 200), lambda i, j: te.sum(
        te.cast(A[i, k], "float32") * te.exp(B[k, j]), axis=k), name="C")
    shifted = te.compute(C.shape, lambda i, j: C[i, j] + 1.0, name="shifted")
    D = te.compute(C.shape, lambda i, j: te.tanh(shifted[i, j]), name="D")

    text = str(tecomp.lower(auto(D, CPU), [A, B, D]))

    assert text.count("parallel(") == 2
    assert "shifted" not in text


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize(("m", "n"), [(70, 90), (2, 90), (70, 1)])
def test_reductions_of_two_matrices_are_cut_as_products_are(m: int, n: int) -> None:
    A, B = te.placeholder((m, 33), name="A"), te.placeholder((n, 33), name="B")
    k = te.reduce_axis((0, 33), name="k")
    C = te.compute((m, n), lambda i, j: te.max(te.abs(A[i, k] - B[j, k]), axis=k), name="C")
    random = np.random.default_rng(0)
    a, b = random.random((m, 33), np.float32), random.random((n, 33), np.float32)
    c = np.empty((m, n), np.float32)

    tecomp.build(C, [A, B, C])(a, b, c)

    np.testing.assert_array_equal(c, np.abs(a[:, None] - b).max(-1))


def test_user_reducers_combine_in_order() -> None:
    A, k = te.placeholder((40, 300), name="A"), te.reduce_axis((0, 300), name="k")
    best = te.comm_reducer(
        lambda x, y: [te.Select(x[1] >= y[1], x[n], y[n]) for n in (0, 1)],
        lambda index, value: [te.const(-1, index), te.min_value(value)],
    )
    first, _ = te.compute((40,), lambda i: best((k, A[i, k]), axis=k), name="first")
    a = np.random.default_rng(0).integers(0, 4, (40, 300)).astype(np.float32)
    places, values = np.empty(40, np.int32), np.empty(40, np.float32)

    tecomp.build(first, [A, first, first.op.output(1)])(a, places, values)

    np.testing.assert_array_equal(places, a.argmax(1))


def test_frequently_read_stages_are_stored() -> None:
    A, B = te.placeholder((64, 320), name="A"), te.placeholder((320, 200), name="B")
    E = te.compute(A.shape, lambda i, j: te.exp(A[i, j]), name="E")
    C = product(E, B, "C")
    k = te.reduce_axis((0, 320), name="k")
    total = te.compute((64,), lambda i: te.sum(E[i, k], axis=k), name="total")
    D = te.compute(C.shape, lambda i, j: C[i, j] / total[i], name="D")

    text = str(tecomp.lower(auto(D, CPU), [A, B, D]))

    assert text.count("exp(") == 1


def test_the_trace_can_be_replayed() -> None:
    A, B = te.placeholder((64, 300), name="A"), te.placeholder((300, 200), name="B")
    C = product(A, B, "C")
    D = te.compute((64, 200), lambda i, j: C[i, j] + 1.0, name="D")
    s = auto(D, CPU)

    replayed = tecomp.replay(s.trace.to_json(), D)

    assert str(tecomp.lower(replayed, [A, B, D])) == str(tecomp.lower(s, [A, B, D]))


def test_user_scans_and_statements_are_unchanged() -> None:
    A = te.placeholder((20, 8), name="A")
    state = te.placeholder((20, 8), name="state")
    start = te.compute((1, 8), lambda _, i: A[0, i], name="start")
    step = te.compute((20, 8), lambda t, i: state[t - 1, i] + A[t, i], name="step")
    S = te.scan(start, step, state, [A], name="S")
    B = te.compute((20, 8), lambda t, i: S[t, i] * 2.0, name="B")
    a = np.random.default_rng(0).random((20, 8), np.float32)
    b = np.empty((20, 8), np.float32)

    tecomp.build(B, [A, B])(a, b)

    assert_close(b, 2 * np.cumsum(a, 0), rtol=1e-5)


def test_inputs_and_outputs_of_statements_are_stored() -> None:
    A = te.placeholder((20, 30), name="A")
    B = te.compute((20, 30), lambda i, j: A[i, j] * 2.0, name="B")
    E = te.extern(
        (20,), [B],
        lambda ins, outs: te.for_range(0, 20, lambda i: outs[0].store(i, ins[0][i, 3]), "i"),
        name="E", dtype="float32",
    )
    C = te.compute((20,), lambda i: E[i] + 1.0, name="C")
    a, c = np.ones((20, 30), np.float32), np.empty(20, np.float32)

    tecomp.build(C, [A, C])(a, c)

    assert (c == 3).all()


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("rows", [1, 7, 40])
def test_sizes_known_at_the_call(rows: int) -> None:
    n = te.var("n")
    A, B = te.placeholder((n, 30), name="A"), te.placeholder((30, 50), name="B")
    C = product(A, B, "C")
    k = te.reduce_axis((0, 50), name="k")
    total = te.compute((n,), lambda i: te.sum(C[i, k], axis=k), name="total")
    D = te.compute((n, 50), lambda i, j: C[i, j] / total[i], name="D")
    a, b = np.ones((rows, 30), np.float32), np.ones((30, 50), np.float32)
    d = np.empty((rows, 50), np.float32)

    tecomp.build(D, [A, B, D])(a, b, d)

    assert_close(d, np.full((rows, 50), 1 / 50), rtol=1e-6)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("name", ["stick128", "tensix_wh", "vtcm2d", "texture2d"])
def test_machines_with_scratchpads(name: str) -> None:
    machine = tecomp.Target.load(name)
    A, B = te.placeholder((40, 70), name="A"), te.placeholder((70, 50), name="B")
    C = product(A, B, "C")
    kernel = tecomp.build(C, [A, B, C], machine)
    a, b = np.ones((40, 70), np.float32), np.ones((70, 50), np.float32)
    c = kernel.empty(C)

    kernel(kernel.pack(A, a), kernel.pack(B, b), c)

    assert (kernel.unpack(C, c) == 70).all()


@pytest.mark.parametrize("name", ["stick128", "tensix_wh", "vtcm2d"])
def test_rows_on_machines_with_scratchpads(name: str) -> None:
    machine = tecomp.Target.load(name)
    A = te.placeholder((40, 70), name="A")
    B = softmax.define(A)

    assert auto(B, machine).trace.to_json() == softmax.schedule(B, machine).trace.to_json()


@pytest.mark.exhaustive(keep=2, most=8)
@pytest.mark.parametrize("name", ["cpu", "stick128", "tensix_wh", "vtcm2d"])
@pytest.mark.parametrize("kind", ["product", "sum", "formula"])
def test_layouts_of_arguments(name: str, kind: str) -> None:
    A, B = te.placeholder((40, 70), name="A"), te.placeholder((70, 50), name="B")
    k = te.reduce_axis((0, 40), name="k")
    C = {
        "product": product(A, B, "C"),
        "sum": te.compute((70,), lambda i: te.sum(A[k, i], axis=k), name="C"),
        "formula": te.compute((40, 70), lambda i, j: A[i, j] * B[j, 0], name="C"),
    }[kind]
    turned = tecomp.Layout.of((40, 70), "float32", lambda i, j: [j // 4, i, j % 4])
    blocks = tecomp.IndexMap.from_func(
        lambda *i: [i[-1] % 7, *i[:-1], i[-1] // 7], ndim=len(C.shape)
    )
    target = tecomp.Target.load(name)
    s = auto(C, target, layouts={A: turned, C: blocks})
    args = [x for x in (A, B, C) if x in (A, C) or kind != "sum"]
    kernel = tecomp.build(s, args, target)
    a, b = np.random.default_rng(0).random((2, 70, 50), np.float32)
    a = a.ravel()[:2800].reshape(40, 70)
    c = kernel.empty(C)

    kernel(*(kernel.pack(x, value) for x, value in ((A, a), (B, b)) if x in args), c)

    assert kernel.pack(A, a).shape == turned.physical_shape
    assert c.shape[0] == 7
    expected = {"product": a @ b, "sum": a.sum(0), "formula": a * b[:, 0]}[kind]
    magnitude = {"product": np.abs(a) @ np.abs(b), "sum": np.abs(a).sum(0), "formula": None}[kind]
    assert_close(kernel.unpack(C, c), expected, rtol=1e-5, magnitude=magnitude)


def computed(output: te.Tensor, inputs: list[te.Tensor], *args: np.ndarray[Any, Any]) -> Any:
    out = np.full([int(str(n)) for n in output.shape], np.nan, np.float32)
    tecomp.build(output, [*inputs, output])(*args, out)
    return out


def running(A: te.Tensor, n: int, m: int, name: str) -> te.Tensor:
    """Return cumulative sums of `n` steps along the last axis of a tensor with `m` rows."""
    state = te.placeholder((n, m), name="state")
    start = te.compute((1, m), lambda _, i: A[i, 0], name="start")
    step = te.compute((n, m), lambda t, i: state[t - 1, i] + A[i, t], name="step")
    result = te.scan(start, step, state, [A], name=name)
    assert isinstance(result, te.Tensor)
    return result


@pytest.mark.parametrize(("m", "n"), [(40, 50), (3, 7), (17, 1), (33, 200)])
def test_scans_along_rows_process_blocks_of_rows(m: int, n: int) -> None:
    A = te.placeholder((m, n), name="A")
    sums = running(A, n, m, "sums")
    B = te.compute((m, n), lambda i, j: sums[j, i] * 2.0, name="B")
    a = np.random.default_rng(0).standard_normal((m, n), np.float32)

    assert "s[sums].compute_at(" in str(auto(B, CPU).trace)
    assert_close(computed(B, [A], a), 2 * a.cumsum(1), rtol=1e-4, atol=1e-4)


def test_steps_that_are_read_in_their_order_run_in_strips() -> None:
    A = te.placeholder((40, 50), name="A")
    sums = running(A, 50, 40, "sums")
    B = te.compute((50, 40), lambda i, j: sums[i, j] * 2.0, name="B")
    a = np.random.default_rng(0).standard_normal((40, 50), np.float32)

    assert "s[sums].vectorize" in str(auto(B, CPU).trace)
    assert_close(computed(B, [A], a), 2 * a.cumsum(1).T, rtol=1e-4, atol=1e-4)


def test_row_invariant_stages_are_vectorized() -> None:
    A, b = te.placeholder((90, 200), name="A"), te.placeholder((200,), name="b")
    B = te.compute(A.shape, lambda i, j: A[i, j] * te.exp(b[j]), name="B")
    C = te.compute(A.shape, lambda i, j: te.exp(A[i, j]) * b[j], name="C")

    assert "i_inner" in str(auto(B, CPU).trace)
    assert "i_inner" not in str(auto(C, CPU).trace)
    a, c = np.full(A.shape, 2, np.float32), np.linspace(0, 1, 200, dtype=np.float32)
    assert_close(computed(B, [A, b], a, c), a * np.exp(c), rtol=1e-5)


@pytest.mark.parametrize("shape", [(900, 18, 15), (900, 1, 3), (30, 5, 4, 9), (20, 1, 1, 2)])
def test_short_rows_are_reduced_across_first(shape: tuple[int, ...]) -> None:
    A = te.placeholder(shape, name="A")
    r, *q = (te.reduce_axis((0, shape[k]), name="r") for k in (0, *range(2, len(shape))))
    most = te.compute((shape[1],), lambda i: te.max(A(r, i, *q) * 2.0, axis=[r, *q]), name="most")
    B = te.compute(most.shape, lambda i: most[i] + 1.0, name="B")
    a = np.random.default_rng(0).standard_normal(shape, np.float32)

    assert "s.rfactor(most" in str(auto(B, CPU).trace)
    expected = (2 * a).max((0, *range(2, len(shape)))) + 1
    assert_close(computed(B, [A], a), expected, rtol=1e-6)


def test_conversions_of_bytes_are_part_of_dot_products() -> None:
    A, B = (te.placeholder((32, 32), "int8", name) for name in "AB")
    k = te.reduce_axis((0, 32), name="k")
    C = te.compute((32, 32), lambda i, j: te.sum(
        te.cast(A[i, k], "int32") * te.cast(B[k, j], "int32"), axis=k), name="C")
    machine = replace(CPU, core=tecomp.Core(4, 64, 32, (32768, 1 << 20), dots=("uint8*int8",)))

    assert "into_dots" in str(auto(C, machine).trace)


def test_copies_in_another_order_are_part_of_dot_products() -> None:
    core = tecomp.Core(4, 32, 16, (32768, 1 << 20), dots=("uint8*int8",))
    target = replace(tecomp.Target.load("cpu"), core=core)
    A, B = te.placeholder((64, 300), "int8", name="A"), te.placeholder((300, 200), "int8", name="B")
    turned = te.compute((200, 300), lambda j, c: te.cast(B[c, j], "int32"), name="turned")
    k = te.reduce_axis((0, 300), name="k")
    C = te.compute((64, 200), lambda i, j: te.sum(
        te.cast(A[i, k], "int32") * turned[j, k], axis=k), name="C")

    trace = auto(C, target).trace.to_python()

    assert "s[turned].compute_inline()" in trace
    assert "s.into_dots(C, k, " in trace


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("is_given", [True, False])
@pytest.mark.parametrize("n", [1, 3, 40])
def test_permuted_factors_are_read_in_memory_order(n: int, is_given: bool) -> None:
    A = te.placeholder((300, 40), name="A")
    source = A if is_given else te.compute(A.shape, lambda i, j: te.exp(A[i, j]), name="source")
    other = source if n == 40 else te.placeholder((300, n), name="B")
    transposed = te.compute((40, 300), lambda i, j: source[j, i], name="turned")
    C = product(transposed, other, "C")
    a, b = (np.random.default_rng(0).uniform(-1, 1, x.shape).astype(np.float32) for x in (A, other))
    exact = a if is_given else np.exp(a)
    inputs, arrays = ([A], [a]) if n == 40 else ([A, other], [a, b])

    assert "s.merge_formula(turned)" in auto(C, CPU).trace.to_python()
    assert_product(computed(C, inputs, *arrays), exact.T, exact if n == 40 else b)


def test_a_result_with_cached_factors_stays_a_result() -> None:
    A, B = te.placeholder((40, 30), name="A"), te.placeholder((30, 50), name="B")
    k = te.reduce_axis((0, 30), name="k")
    C = te.compute((40, 50), lambda i, j: te.sum(te.exp(A[i, k]) * B[k, j], axis=k), name="C")
    D = te.compute((40, 50), lambda i, j: C[i, j] * 2.0, name="D")
    a, b = (np.random.default_rng(0).uniform(-1, 1, x.shape).astype(np.float32) for x in (A, B))
    c, d = (np.empty((40, 50), np.float32) for _ in "cd")

    tecomp.build([C, D], [A, B, C, D])(a, b, c, d)

    assert_product(c, np.exp(a), b)
    np.testing.assert_array_equal(d, 2 * c)


@pytest.mark.parametrize("shape", [(40, 50), (16, 16), (5, 3), (33, 129)])
def test_pairs_along_rows_are_reduced_side_by_side_or_by_lanes(shape: tuple[int, int]) -> None:
    A, k = te.placeholder(shape, name="A"), te.reduce_axis((0, shape[1]), name="k")
    best = te.comm_reducer(
        lambda x, y: [te.Select(x[1] >= y[1], x[n], y[n]) for n in (0, 1)],
        lambda index, value: [te.const(-1, index), te.min_value(value)], name="best")
    place, _ = te.compute((shape[0],), lambda i: best((k, A[i, k]), axis=k), name="best")
    B = te.compute(place.shape, lambda i: te.cast(place[i], "float32"), name="B")
    a = np.random.default_rng(0).integers(0, 9, shape).astype(np.float32)

    assert ("order=0" if shape[1] >= 40 else "unroll(k_inner)") in str(auto(B, CPU).trace)
    np.testing.assert_array_equal(computed(B, [A], a), a.argmax(1))


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("n", [1000, 5000, 100000])
def test_unaligned_rows_are_read_sequentially(n: int) -> None:
    """Blocks of one row are read contiguously; the last block starts earlier to be full."""
    A = te.placeholder((n,), name="A")
    B = argreduce.define(A)
    a = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    found = np.zeros((), np.int64)

    tecomp.build(B, [A, B])(a, found)

    assert found == a.argmax()
    reads = re.findall(r"A\[ramp\((.*), (\d+), \d+\)\]", str(tecomp.lower(auto(B, "cpu"), [A, B])))
    assert reads
    assert {step for _, step in reads} == {"1"}


def test_strided_filters_are_packed_once() -> None:
    X, W = te.placeholder((1, 20, 20, 32), name="X"), te.placeholder((32, 3, 3), name="W")
    r, q = te.reduce_axis((0, 3), name="r"), te.reduce_axis((0, 3), name="s")
    Y = te.compute((1, 18, 18, 32), lambda n, y, x, c: te.sum(
        X[n, y + r, x + q, c] * W[c, r, q], axis=[r, q]), name="Y")
    random = np.random.default_rng(0)
    x, w = (random.standard_normal(t.shape, np.float32) for t in (X, W))

    assert "cache_read(W" in str(auto(Y, CPU).trace)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))
    expected = np.einsum("nyxcrs,crs->nyxc", windows, w)
    assert_close(computed(Y, [X, W], x, w), expected, rtol=1e-4, atol=1e-4)


def test_windows_that_overlap_share_rows_in_registers() -> None:
    X, W = te.placeholder((2, 5, 20, 21), name="X"), te.placeholder((5, 3, 3), name="W")
    r, q = te.reduce_axis((0, 3), name="r"), te.reduce_axis((0, 3), name="s")
    Y = te.compute((2, 5, 18, 19), lambda n, c, y, x: te.sum(
        X[n, c, y + r, x + q] * W[c, r, q], axis=[r, q]), name="Y")
    random = np.random.default_rng(0)
    x, w = (random.standard_normal(t.shape, np.float32) for t in (X, W))

    assert "unroll(y_inner)" in str(auto(Y, CPU).trace)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
    expected = np.einsum("ncyxrs,crs->ncyx", windows, w)
    assert_close(computed(Y, [X, W], x, w), expected, rtol=1e-4, atol=1e-4)


def test_an_index_0_of_one_element_is_the_axis_at_its_place() -> None:
    A, B = te.placeholder((1, 40, 30), name="A"), te.placeholder((30, 50), name="B")
    k = te.reduce_axis((0, 30), name="k")
    C = te.compute((1, 40, 50), lambda n, i, j: te.sum(A[n, i, k] * B[k, j], axis=k), name="C")
    D = te.compute(C.shape, lambda n, i, j: te.max(C[0, i, j], 0.0), name="D")

    assert "s[C].set_scope('local')" in str(auto(D, CPU).trace)


def test_views_of_views_are_composed() -> None:
    A = te.placeholder((9, 10, 33), name="A")
    B = te.compute((9, 33, 10), lambda i, j, k: A[i, k, j], name="B")
    C = te.compute((10, 9, 33), lambda i, j, k: B[j, k, i], name="C")
    D = te.compute(C.shape, lambda i, j, k: C[i, j, k] + 1.0, name="D")
    a = np.arange(9 * 10 * 33, dtype=np.float32).reshape(9, 10, 33)

    assert "unroll" not in str(auto(D, CPU).trace)
    np.testing.assert_array_equal(computed(D, [A], a), a.transpose(1, 0, 2) + 1)


def test_reshaped_inputs_are_read_in_place() -> None:
    A = te.placeholder((64, 59, 48), name="A")
    flat = te.compute((4, 45312), lambda g, i: A[
        g * 16 + i // 2832, i // 48 % 59, i % 48], name="flat")
    k = te.reduce_axis((0, 45312), name="k")
    total = te.compute((4,), lambda g: te.sum(flat[g, k], axis=k), name="total")
    B = te.compute((64, 2832), lambda c, i: (
        flat[c // 16, c % 16 * 2832 + i] - total[c // 16]), name="B")
    a = np.random.default_rng(0).random((64, 59, 48), np.float32)

    text = str(tecomp.lower(auto(B, CPU), [A, B]))

    groups = a.reshape(4, -1)
    expected = (groups - groups.sum(1, keepdims=True, dtype="float64")).reshape(64, 2832)
    assert_close(computed(B, [A], a), expected, rtol=1e-5)
    assert "flat" not in text
    assert "A[ramp(" in text
    assert "A[broadcast(" not in text


def test_rows_of_a_transposed_value_are_transposed_first() -> None:
    A = te.placeholder((200, 90), name="A")
    B = te.compute((90, 200), lambda i, j: A[j, i], name="B")
    k = te.reduce_axis((0, 200), name="k")
    total = te.compute((90,), lambda i: te.sum(B[i, k], axis=k), name="total")
    C = te.compute(B.shape, lambda i, j: B[i, j] - total[i] / 200.0, name="C")
    a = np.random.default_rng(0).standard_normal((200, 90), np.float32)
    text = str(auto(C, CPU).trace)

    assert "s[total].compute_at(C" in text
    assert "s[B].compute_" not in text
    assert_close(computed(C, [A], a), a.T - a.T.mean(1, keepdims=True), atol=1e-5)


def test_targets_have_names() -> None:
    A = te.placeholder((100, 200), name="A")
    B = te.compute((100, 200), lambda i, j: A[i, j] + 1.0, name="B")

    assert str(auto(B, "cpu").trace) == str(auto(B, tecomp.Target.load("cpu")).trace)


@pytest.mark.parametrize(("outputs", "expected"), [
    (3, Diagnostic("invalid-type", where="create_schedule", handle=3)),
    ([], Diagnostic("missing-input")),
])  # fmt: skip
@pytest.mark.parametrize("target", ["cpu", "stick128"])
def test_bad_outputs(outputs: Any, expected: Diagnostic, target: str) -> None:
    with pytest.raises(tecomp.ScheduleError) as error:
        auto(outputs, target)

    assert diagnostic(error.value) == expected


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("seed", range(12))
def test_column_accesses_are_not_scheduled_by_rows(seed: int) -> None:
    """Row reductions of a transposed tensor, and formulas of them, read along contiguous memory."""
    dice = Random(seed)
    rows, columns = dice.choice([5, 33, 128]), dice.choice([7, 40, 300])
    A = te.placeholder((columns, rows), name="A")
    k, r = (te.reduce_axis((0, columns), name=x) for x in "kr")
    moved, total, result = dice.random() < 0.5, dice.choice([te.sum, te.max]), dice.random() < 0.5
    least = te.compute((rows,), lambda i: te.min(A[k, i], axis=k), name="least")

    def term(i: Any, j: Any) -> Any:
        return te.exp(A[j, i] - least[i]) if moved else A[j, i] * A[j, i]

    whole = te.compute((rows,), lambda i: total(term(i, r), axis=r), name="whole")
    shape = (rows, columns) if result else (columns, rows)
    B = te.compute(
        shape, lambda i, j: term(i, j) / whole[i] if result else term(j, i) / whole[j], name="B")
    a = np.random.default_rng(seed).standard_normal((columns, rows), np.float32)
    per_group = np.exp(a - a.min(0)) if moved else a * a
    per_group = per_group / (per_group.sum(0) if total is te.sum else per_group.max(0))

    assert_close(computed(B, [A], a), per_group.T if result else per_group, rtol=1e-5)
    assert "s[whole].compute_at" not in str(auto(B, CPU).trace)


@pytest.mark.parametrize(("count", "is_written_out"), [(1, True), (2, True), (20, False)])
def test_terms_of_few_operations_are_written_out(count: int, is_written_out: bool) -> None:
    A, k = te.placeholder((40, 70), name="A"), te.reduce_axis((0, 12), name="k")

    def term(i: te.Expr, j: te.Expr) -> te.Expr:
        x = A[i, j]
        for step in range(count):
            x = x * 0.5 + te.if_then_else(i + step < 40, A[i + step, j], 1.0)
        return x

    B = te.compute((40, 70), lambda i, j: te.max(term(i, j), axis=k, init=A[39 - i, j]), name="B")
    a = np.random.default_rng(0).uniform(size=(40, 70)).astype("float32")
    expected, padded = a, np.pad(a, [(0, count), (0, 0)], constant_values=1)
    for step in range(count):
        expected = expected * np.float32(0.5) + padded[step : step + 40]
    expected = np.maximum(expected, a[::-1])
    b = np.full((40, 70), np.nan, np.float32)

    assert (".unroll(k)" in auto(B, "cpu").trace.to_python()) == is_written_out
    tecomp.build(B, [A, B])(a, b)
    assert_close(b, expected, rtol=1e-5)
