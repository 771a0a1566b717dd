"""Programs with symbolic sizes: one compilation serves all sizes."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te, topi
from tecomp.errors import CallError, DefinitionError
from tecomp.graph import program as program_class
from tecomp.graph import with_sizes
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close

Array = np.ndarray[Any, Any]
SIZES = (0, 1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 32, 33, 61, 64, 100, 127, 128, 131, 257)


def attention(n: Any, width: int) -> tuple[list[te.Tensor], te.Tensor, list[te.Tensor]]:
    """Return outputs, the input and the constants of a layer of attention over n rows."""
    X = te.placeholder((n, width), name="X")
    W, V = (te.placeholder((width, width), name=name) for name in "WV")
    scores = topi.matmul(topi.matmul(X, W), topi.matmul(X, V), transp_b=True)
    weights = topi.nn.softmax(scores)
    return [topi.nn.relu(topi.add(topi.matmul(weights, X), X)), weights], X, [W, V]


def exact_attention(x: Array, w: Array, v: Array) -> tuple[Array, Array]:
    x, w, v = (a.astype(np.float64) for a in (x, w, v))
    scores = (x @ w) @ (x @ v).T
    powers = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
    weights = powers / powers.sum(-1, keepdims=True)
    return np.maximum(weights @ x + x, 0), weights


def test_a_layer_of_attention_of_any_length() -> None:
    random = np.random.default_rng(0)
    outputs, X, constants = attention(te.var("n"), 24)
    w, v = random.standard_normal((2, 24, 24), np.float32) * np.float32(0.2)
    program = tecomp.compile(outputs, [X], constants=dict(zip(constants, (w, v), strict=True)))

    for n in SIZES:
        x = random.standard_normal((n, 24), np.float32)
        for got, expected in zip(program(x), exact_attention(x, w, v), strict=True):
            assert got.shape == expected.shape
            assert_close(got, expected, rtol=1e-4, atol=1e-5)


def steps(random: np.random.Generator, x: te.Tensor, value: Array) -> tuple[te.Tensor, Array]:
    """Append a random operation to a tensor and to its value at one size."""
    kind = random.integers(7)
    if kind == 0:
        return topi.exp(topi.multiply(x, 0.1)), np.exp(value * 0.1)
    if kind == 1:
        total = topi.sum(x, axis=1, keepdims=True)
        return topi.subtract(x, topi.multiply(total, 0.1)), value - value.sum(1, keepdims=True) * 0.1
    if kind == 2:
        return topi.transpose(x), value.T
    if kind == 3:
        return topi.matmul(x, topi.transpose(x)), value @ value.T
    if kind == 4:
        return topi.concatenate([x, topi.negative(x)], axis=0), np.concatenate([value, -value])
    if kind == 5:
        shape = x.shape
        padded = te.compute(
            (shape[0] + 2, shape[1]), lambda i, j: te.if_then_else(
                te.all(i >= 1, i <= shape[0]), x[te.max(te.min(i - 1, shape[0] - 1), 0), j], 0.0))
        return padded, np.pad(value, ((1, 1), (0, 0)))
    return topi.tanh(topi.add(x, topi.multiply(x, x))), np.tanh(value + value * value)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("seed", range(24))
def test_random_programs(seed: int) -> None:
    """One program of several kernels is compared with NumPy at sizes drawn with 0 and 1."""
    n, m = te.var("n"), te.var("m", "int64")
    A, B = te.placeholder((n, m), name="A"), te.placeholder((m, n), name="B")

    def chain(a: Array, b: Array) -> tuple[list[te.Tensor], list[Array]]:
        random = np.random.default_rng(seed)
        pairs: list[tuple[te.Tensor, Array]] = [(A, a), (B, b), (topi.matmul(A, B), a @ b)]
        for _ in range(int(random.integers(2, 6))):
            pairs.append(steps(random, *pairs[int(random.integers(len(pairs)))]))
        tensors, values = zip(*pairs[2:][-2:], strict=True)
        return [*tensors], [*values]

    outputs, _ = chain(np.zeros((2, 2)), np.zeros((2, 2)))
    program = tecomp.compile(outputs, [A, B])
    random = np.random.default_rng(seed + 100)
    for rows, columns in [(0, 3), (1, 1), (4, 0), *random.choice(SIZES[:14], (6, 2))]:
        a = random.standard_normal((rows, columns), np.float32) * np.float32(0.3)
        b = random.standard_normal((columns, rows), np.float32) * np.float32(0.3)
        _, expected = chain(a.astype(np.float64), b.astype(np.float64))
        for got, value in zip(program(a, b), expected, strict=True):
            assert got.shape == value.shape
            scale = max(1.0, float(np.abs(value).max(initial=0)))
            assert_close(got / scale, value / scale, rtol=1e-4, atol=1e-4)


def test_extents_that_are_expressions() -> None:
    """Windows and strides give extents such as (n - 3) // 2 + 1 to values between kernels."""
    n = te.var("n")
    X = te.placeholder((n, 8), name="X")
    k = te.reduce_axis((0, 3), name="k")
    windows = te.compute(
        ((n - 3) // 2 + 1, 8), lambda i, j: te.sum(X[i * 2 + k, j], axis=k), name="windows")
    r = te.reduce_axis((0, (n - 3) // 2 + 1), name="r")
    total = te.compute((8,), lambda j: te.sum(windows[r, j], axis=r), name="total")
    program = tecomp.compile([total, topi.exp(windows)], [X])

    for size in (3, 4, 5, 8, 21, 64):
        x = np.random.default_rng(size).standard_normal((size, 8), np.float32)
        expected = np.stack([x[i : i + 3].sum(0) for i in range(0, size - 2, 2)])
        got = program(x)
        assert_close(got[0], expected.sum(0), rtol=1e-5, atol=1e-5)
        assert_close(got[1], np.exp(expected), rtol=1e-5, atol=1e-6)


def test_values_that_live_at_the_same_time_share_no_slot() -> None:
    outputs, X, constants = attention(te.var("n"), 24)
    program = tecomp.compile(
        outputs, [X], constants={x: np.zeros((24, 24), np.float32) for x in constants})

    memory: Any = program.memory

    assert len(memory.slots) < len(memory.values)
    for one, other in combinations(memory.values, 2):
        is_live_together = one.first <= other.last and other.first <= one.last
        assert not (is_live_together and one.slot == other.slot)
    for n in SIZES:
        plan = memory.at({"n": n})
        assert plan.bytes >= plan.lower_bound
        starts = sorted({value.offset for value in plan.values})
        for value in plan.values:
            after = next((start for start in starts if start > value.offset), plan.bytes)
            assert value.offset + value.bytes <= after
        assert all(a < b for a, b in pairwise(starts))


def test_reports_take_sizes() -> None:
    outputs, X, constants = attention(te.var("n"), 24)
    values = {x: np.zeros((24, 24), np.float32) for x in constants}
    program = tecomp.compile(outputs, [X], constants=values)

    small, large = program.report(n=16), program.report(n=160)

    assert small.edges[0].bytes == 16 * 24 * 4
    assert large.edges[0].bytes == 160 * 24 * 4
    assert large.cycles > 20 * small.cycles
    assert "traceEvents" in program.timeline(n=16)
    with pytest.raises(CallError) as error:
        program.report()
    assert diagnostic(error.value) == Diagnostic(
        "unbound-size", where="program.report", func="program", name="n", function="report")


def test_saved_and_pickled_programs(tmp_path: Path) -> None:
    outputs, X, constants = attention(te.var("n"), 24)
    values = {x: np.ones((24, 24), np.float32) for x in constants}
    program = tecomp.compile(outputs, [X], constants=values)
    x = np.random.default_rng(1).standard_normal((9, 24), np.float32)
    program.save(tmp_path / "saved")

    for other in (tecomp.load(tmp_path / "saved"), pickle.loads(pickle.dumps(program))):
        for got, expected in zip(other(x), program(x), strict=True):
            np.testing.assert_array_equal(got, expected)


def test_memory_that_a_call_cannot_get() -> None:
    n = te.var("n")
    X = te.placeholder((n, 1), name="X")
    k, r = te.reduce_axis((0, 1), name="k"), te.reduce_axis((0, n), name="r")
    square = te.compute((n, n), lambda i, j: te.sum(X[i, k] * X[j, k], axis=k), name="square")
    total = te.compute((n,), lambda j: te.sum(square[r, j], axis=r), name="total")
    program = tecomp.compile([total, topi.sum(square, axis=1)], [X])
    x = np.ones((1 << 24, 1), np.float32)

    assert_close(program(x[:5])[0], np.full(5, 5.0), rtol=1e-6, atol=0)
    with pytest.raises(CallError) as error:
        program(x)
    assert error.value.kind == "out-of-memory"
    assert int(str(error.value.parameters["size"]).split()[0]) >= 1 << 50
    assert_close(program(x[:7])[1], np.full(7, 7.0), rtol=1e-6, atol=0)


def test_names_of_tensors_and_sizes_do_not_clash() -> None:
    n = te.var("n")
    X, Y = te.placeholder((n, 4), name="n"), te.placeholder((4, n), name="slot")
    product = topi.matmul(X, Y)
    program = tecomp.compile([topi.exp(product), topi.sum(product, axis=0)], [X, Y], name="n")

    x = np.full((3, 4), 0.5, np.float32)
    assert_close(program(x, x.T.copy())[1], (x @ x.T).sum(0), rtol=1e-6, atol=0)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("name", ["seq len", "class", "1n", "größe", "slot", "A", "n_1"])
def test_a_size_has_any_name(name: str) -> None:
    n = te.var(name)
    A, B = te.placeholder((n, 3), name="A"), te.placeholder((n, n), name="n")
    product = topi.matmul(A, A, transp_b=True)
    weights = topi.nn.softmax(topi.add(product, B))
    program = tecomp.compile([topi.matmul(weights, A), topi.sum(A, axis=0)], [A, B])

    a, b = np.full((5, 3), 0.25, np.float32), np.eye(5, dtype=np.float32)
    result, total = program(a, b)
    powers = np.exp(a.astype(float) @ a.T + b)
    assert_close(result, powers / powers.sum(-1, keepdims=True) @ a, rtol=1e-5, atol=1e-6)
    assert_close(total, a.sum(0), rtol=1e-6, atol=0)
    [size] = (var.name for var in program.kernels[0].kernel.sizes)
    report = program.report(measured=False, **{size: 5})
    assert [k.reads for k in report.kernels if k.operations[-1] == "T_sum"] == [5 * 3 * 4]
    assert program.memory.at({size: 40}).bytes >= 40 * 40 * 4


def test_reports_of_sizes_whose_product_exceeds_int32() -> None:
    n = te.var("n")
    A = te.placeholder((n, n, 4), name="A")
    program = tecomp.compile(topi.exp(topi.reshape(A, (n * n, 4))), [A])

    assert program.report(n=1 << 17).kernels[0].reads == (1 << 34) * 16


def of_names(*names: str) -> object:
    A, B = (te.placeholder((te.var(name),), name=f"A{k}") for k, name in enumerate(names))
    return tecomp.compile([topi.exp(A), topi.exp(B)], [A, B])


def named_alike() -> object:
    A, B = (te.placeholder((te.var("n"),), name=name) for name in "AB")
    return tecomp.compile([topi.exp(A), topi.exp(B)], [A, B])


def of_a_constant() -> object:
    A, B = te.placeholder((4,), name="A"), te.placeholder((te.var("n"),), name="B")
    return tecomp.compile([topi.exp(A), topi.exp(B)], [A], constants={B: np.zeros(3, "float32")})


def in_an_expression_only() -> object:
    A = te.placeholder((te.var("n") * 2,), name="A")
    return tecomp.compile(topi.exp(A), [A])


def of_a_machine() -> object:
    A = te.placeholder((te.var("n"),), name="A")
    return tecomp.compile(topi.exp(A), [A], "stick128")


@pytest.mark.parametrize(("make", "expected"), [
    (named_alike, Diagnostic("duplicate-argument", name="n", count=2)),
    (partial(of_names, "a b", "a.b"), Diagnostic("duplicate-argument", name="a_b", count=2)),
    (of_a_constant, Diagnostic("unbound-size", name="B", extent="n")),
    (in_an_expression_only, Diagnostic("unbound-size", op="A", var="n")),
    (of_a_machine, Diagnostic(
        "unbound-size", name="A", extent="n", subject="the target stick128")),
])
def test_sizes_that_are_rejected(make: Callable[[], object], expected: Diagnostic) -> None:
    with pytest.raises(DefinitionError) as error:
        make()

    assert diagnostic(error.value) == expected


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("shapes", [[(3, 5), (4, 3)], [(3,), (4, 3)], [(3, 4), (4, 2)]])
def test_arrays_of_wrong_shapes_are_rejected(shapes: Sequence[tuple[int, ...]]) -> None:
    n = te.var("n")
    A, B = te.placeholder((n, 4), name="A"), te.placeholder((4, n), name="B")
    program = tecomp.compile(topi.matmul(A, B), [A, B])

    with pytest.raises(CallError):
        program(*(np.zeros(shape, np.float32) for shape in shapes))


def test_values_of_symbolic_sizes_are_no_constants() -> None:
    n = te.var("n")
    X, W = te.placeholder((n, 4), name="X"), te.placeholder((10, 4), name="W")
    row = te.compute((n,), lambda i: te.cast(i, "int64") % 10, name="row")
    k = te.reduce_axis((0, n), name="k")
    total = te.compute((n,), lambda i: te.sum(te.cast(row[k], "float32"), axis=k), name="total")
    Y = te.compute((n, 4), lambda i, j: X[i, j] + W[row[i], j] + total[i], name="Y")
    w = np.random.default_rng(0).random((10, 4), np.float32)
    program = tecomp.compile(Y, [X], constants={W: w})

    for size in (3, 0, 1, 12):
        x, rows = np.full((size, 4), 0.5, np.float32), np.arange(size) % 10
        assert_close(program(x), x + w[rows] + rows.sum())


def test_values_of_sizes_alone_are_computed_in_each_call() -> None:
    """A value that reads no tensor is no constant if its shape or elements depend on sizes."""
    n = te.var("n")
    X = te.placeholder((n,), name="X")
    numbers = te.compute((n,), lambda i: te.exp(te.cast(i % 7 + n, "float32") * 0.1), name="numbers")
    reverse = te.compute((n,), lambda i: numbers[n - 1 - i] * X[i] + numbers[i], name="reverse")
    program = tecomp.compile([reverse, topi.sum(numbers)], [X])

    for size in (0, 1, 5, 64):
        exact = np.exp((np.arange(size) % 7 + size) * 0.1)
        got = program(np.full(size, 2, "float32"))
        assert_close(got[0], exact[::-1] * 2 + exact, rtol=1e-5, atol=0)
        assert_close(got[1], exact.sum(), rtol=1e-5, atol=0)


def test_tensors_of_symbolic_and_constant_shapes() -> None:
    n = te.var("n")
    A, B = te.placeholder((n,), name="A"), te.placeholder((3,), name="B")
    C = te.compute((n,), lambda i: A[i] + B[0], name="C")
    D = te.compute((3,), lambda i: te.if_then_else(i < n, A[i], 0.0) * B[i], name="D")
    program = tecomp.compile([C, D], [A, B])

    for size in (0, 2, 3, 9):
        a, b = np.arange(size, dtype="float32") + 1, np.array([2, 3, 4], "float32")
        got = program(a, b)
        assert_close(got[0], a + 2, rtol=0, atol=0)
        assert_close(got[1], np.resize(np.append(a, [0, 0, 0])[:3], 3) * b, rtol=0, atol=0)


@pytest.mark.parametrize("is_exp", [False, True])
def test_values_of_constants_and_sizes_are_computed_in_each_call(is_exp: bool) -> None:
    """A factor of a product is packed in each call if it has a symbolic extent."""
    n = te.var("n")
    X, W = te.placeholder((6, n), name="X"), te.placeholder((16,), name="W")
    function = te.exp if is_exp else lambda x: x
    factor = te.compute((n, 16), lambda i, j: function(W[(i + j) % 16]), name="factor")
    w = np.arange(16, dtype="float32") / 16
    program = tecomp.compile(topi.matmul(X, factor), [X], constants={W: w})

    for size in (0, 1, 5, 33):
        x = np.random.default_rng(size).standard_normal((6, size), np.float32)
        i, j = np.indices((size, 16))
        exact = w[(i + j) % 16].astype(float)
        assert_close(program(x), x @ (np.exp(exact) if is_exp else exact), rtol=1e-5, atol=1e-5)


def rows_and_columns() -> tuple[Any, Callable[[Array, Array], Array]]:
    """Return a program of sizes n and m, and its exact result."""
    n, m = te.var("n"), te.var("m", "int64")
    X, W = te.placeholder((n, m), name="X"), te.placeholder((m, 8), name="W")
    turned = te.compute((n, m), lambda i, j: X[n - 1 - i, m - 1 - j] + te.cast(m, "float32"))
    program = tecomp.compile(topi.nn.softmax(topi.matmul(turned, W)), [X, W])

    def exact(x: Array, w: Array) -> Array:
        scores = (x[::-1, ::-1] + x.shape[1]).astype(float) @ w
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return np.asarray(powers / powers.sum(-1, keepdims=True))

    return program, exact


def test_frequent_sizes_are_built_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values of sizes that repeat are built in after some calls, and results remain right."""
    monkeypatch.setattr(program_class, "_COMPILED", 1e-9)
    program, exact = rows_and_columns()
    used: list[frozenset[tuple[str, int]]] = []
    random = np.random.default_rng(0)

    for call in range(60):
        n, m = (call % 20 + 1, 5) if call < 40 else (7, 5)
        x, w = (random.standard_normal(shape, np.float32) for shape in [(n, m), (m, 8)])
        assert_close(program(x, w), exact(x, w), rtol=1e-4, atol=1e-6)
        found = program._specializer.programs
        used.append(frozenset(item for key in found for item in key))

    assert used[14] == set()
    assert used[15] == used[39] == {("m", 5)}
    assert used[-1] == {("m", 5), ("n", 7)}
    specialized = [known.program() for known in program._specializer.programs.values()]
    assert [[x.shape for x in other.inputs] for other in specialized][-1] == [(7, 5), (5, 8)]
    with pytest.raises(CallError):
        program(np.zeros((7, 5), np.float32), np.zeros((4, 8), np.float32))


def test_sizes_are_built_in_while_threads_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_class, "_COMPILED", 1e-9)
    program, exact = rows_and_columns()
    x, w = np.full((3, 4), 0.5, np.float32), np.linspace(0, 1, 32, dtype="float32").reshape(4, 8)
    expected = exact(x, w)

    def calls(_: int) -> None:
        for _ in range(30):
            assert_close(program(x, w), expected, rtol=1e-4, atol=1e-6)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(calls, range(4)))
    assert len(program._specializer.programs) == 1


def test_scans_are_not_specialized() -> None:
    n = te.var("n")
    X, S = te.placeholder((n, 2), name="X"), te.placeholder((n, 2), name="S")
    start = te.compute((1, 2), lambda t, i: X[0, i], name="start")
    step = te.compute((n, 2), lambda t, i: S[t - 1, i] + X[t, i], name="step")

    assert with_sizes([te.scan(start, step, S)], {n: 5}) is None
