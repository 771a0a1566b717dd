"""Programs on scratchpad machines: a transformer layer, a residual block, random programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te, topi
from tecomp.driver import CompiledProgram
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close
from tests.strategies.machines import ACCELERATORS
from tests.strategies.te_programs import draw_program

Array = np.ndarray[Any, Any]
ACME = Path(__file__).parents[1] / "plugins" / "acme" / "acme_target" / "acme.toml"
MACHINES = {"stick128": "stick128", "tensix_wh": "tensix_wh", "acme": str(ACME)}
EVERY = {**MACHINES, **{name: name for name in ACCELERATORS}}
TOKENS, WIDE, HEADS, HIDDEN = 4, 32, 1, 32
D = WIDE // HEADS


def product(x: te.Tensor, w: te.Tensor, name: str) -> te.Tensor:
    k = te.reduce_axis((0, x.shape[1]), name="k")
    return te.compute(
        (x.shape[0], w.shape[1]), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), name=name
    )


def norm(x: te.Tensor, name: str) -> te.Tensor:
    rows, n = x.shape
    k, r = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, n), name="r")
    mean = te.compute((rows,), lambda i: te.sum(x[i, k] / float(n), axis=k), name=f"{name}_mean")
    square = te.compute((rows,), lambda i: te.sum(
        (x[i, r] - mean[i]) * (x[i, r] - mean[i]) / float(n), axis=r), name=f"{name}_square")
    found = te.compute(
        x.shape, lambda i, j: (x[i, j] - mean[i]) / te.sqrt(square[i] + 1e-5), name=name)
    assert isinstance(found, te.Tensor)
    return found


def attention(q: te.Tensor, k: te.Tensor, v: te.Tensor) -> te.Tensor:
    e, j, r, t = (te.reduce_axis((0, n), name=name) for n, name in (
        (D, "e"), (TOKENS, "j"), (TOKENS, "r"), (TOKENS, "t")))
    scores = te.compute(
        (HEADS, TOKENS, TOKENS), lambda h, i, m: te.sum(q[i, h * D + e] * k[m, h * D + e], axis=e),
        name="scores")
    most = te.compute((HEADS, TOKENS), lambda h, i: te.max(scores[h, i, j], axis=j), name="most")
    powers = te.compute(
        scores.shape, lambda h, i, m: te.exp(scores[h, i, m] - most[h, i]), name="powers")
    total = te.compute((HEADS, TOKENS), lambda h, i: te.sum(powers[h, i, r], axis=r), name="total")
    part = te.compute(
        scores.shape, lambda h, i, m: powers[h, i, m] / total[h, i], name="part")
    mixed = te.compute(
        (HEADS, TOKENS, D), lambda h, i, f: te.sum(part[h, i, t] * v[t, h * D + f], axis=t),
        name="mixed")
    joined = te.compute((TOKENS, WIDE), lambda i, f: mixed[f // D, i, f % D], name="joined")
    assert isinstance(joined, te.Tensor)
    return joined


def layer() -> tuple[te.Tensor, te.Tensor, dict[str, te.Tensor]]:
    """Return the input, the result and the weights of a transformer layer."""
    X = te.placeholder((TOKENS, WIDE), name="X")
    shapes = {name: (WIDE, WIDE) for name in ("Q", "K", "V", "O")}
    shapes |= {"up": (WIDE, HIDDEN), "down": (HIDDEN, WIDE)}
    w = {name: te.placeholder(shape, name=f"W_{name}") for name, shape in shapes.items()}
    joined = attention(*(product(X, w[name], name) for name in "QKV"))
    out = product(joined, w["O"], "O")
    added = te.compute(X.shape, lambda i, j: out[i, j] + X[i, j], name="added")
    first = norm(added, "first")
    up = product(first, w["up"], "up")
    curved = te.compute(up.shape, lambda i, j: up[i, j] * te.sigmoid(up[i, j]), name="curved")
    down = product(curved, w["down"], "down")
    Y = norm(te.compute(X.shape, lambda i, j: down[i, j] + first[i, j], name="sum"), "Y")
    return X, Y, w


def layer_by_numpy(x: Array, w: Mapping[str, Array]) -> Array:
    def heads(a: Array) -> Array:
        return a.reshape(TOKENS, HEADS, D).transpose(1, 0, 2)

    def normed(a: Array) -> Array:
        centred: Array = a - a.mean(1, keepdims=True)
        result: Array = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
        return result

    scores = heads(x @ w["Q"]) @ heads(x @ w["K"]).transpose(0, 2, 1)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = powers / powers.sum(-1, keepdims=True) @ heads(x @ w["V"])
    first = normed(mixed.transpose(1, 0, 2).reshape(TOKENS, WIDE) @ w["O"] + x)
    up = first @ w["up"]
    created: Array = normed(up / (1 + np.exp(-up)) @ w["down"] + first)
    return created


def check_plan(program: CompiledProgram) -> None:
    """Check that simultaneously live values share no byte and that all values fit."""
    values = program.memory.values
    for k, one in enumerate(values):
        for other in values[:k]:
            is_apart = one.last < other.first or other.last < one.first
            beside = one.offset >= other.offset + other.bytes or (
                other.offset >= one.offset + one.bytes)
            assert is_apart or beside
    capacities = [m.usable_bytes for m in program.target.memories.values() if m.scope == "chip"]
    assert all(program.memory.bytes <= capacity for capacity in capacities if capacity is not None)


@pytest.mark.exhaustive(most=1)
@pytest.mark.parametrize("name", MACHINES)
def test_a_layer_of_a_transformer(name: str) -> None:
    X, Y, w = layer()
    rng = np.random.default_rng(0)
    arrays = {
        key: (rng.standard_normal([int(n) for n in x.shape]) / 6).astype("float32")
        for key, x in w.items()
    }
    program = tecomp.compile(
        Y, [X], MACHINES[name], constants={x: arrays[key] for key, x in w.items()})
    x = rng.standard_normal((TOKENS, WIDE)).astype("float32")

    assert_close(program(x), layer_by_numpy(x, arrays), rtol=1e-3, atol=1e-4)
    check_plan(program)
    report = program.report()
    assert len(report.kernels) == len(program.kernels) > 7
    assert all(kernel.writes for kernel in report.kernels)
    # Several kernels have a result of the same name; lines and edges distinguish them.
    names = {kernel.name for kernel in report.kernels}
    assert len(names) == len(report.kernels)
    assert names.issuperset(name for edge in report.edges for name in (*edge.read_by,))
    assert any(name.endswith("#2") for name in names)
    assert report.cycles > 0
    (head,) = (line for line in str(report).splitlines() if line.startswith("kernel "))
    assert head.split()[-4:] == ["cycles", "cores", "imbalance", "tiles"]


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("name", MACHINES)
def test_a_residual_block(name: str) -> None:
    X = te.placeholder((1, 4, 4, 32), name="X")
    w = [te.placeholder((3, 3, 32, 32), name=f"W{k}") for k in (0, 1)]

    def convolution(x: te.Tensor, f: te.Tensor, name: str) -> te.Tensor:
        r, s, c = (te.reduce_axis((0, n), name=axis) for n, axis in ((3, "r"), (3, "s"), (32, "c")))
        padded = te.compute((1, 6, 6, 32), lambda n, i, j, k: te.if_then_else(
            te.all(i >= 1, i < 5, j >= 1, j < 5), x[n, i - 1, j - 1, k], te.const(0, "float32")),
            name=f"{name}_padded")
        return te.compute(x.shape, lambda n, i, j, k: te.sum(
            padded[n, i + r, j + s, c] * f[r, s, c, k], axis=[r, s, c]), name=name)

    def positive(x: te.Tensor, of: Callable[..., te.Expr], name: str) -> te.Tensor:
        return te.compute(x.shape, lambda *i: te.max(of(*i), 0.0), name=name)

    first = convolution(X, w[0], "first")
    second = convolution(positive(X, lambda *i: first(*i), "between"), w[1], "second")
    Y = positive(X, lambda *i: second(*i) + X(*i), "Y")
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 4, 4, 32)).astype("float32")
    f = [(rng.standard_normal((3, 3, 32, 32)) / 17).astype("float32") for _ in w]

    def by_numpy(a: Array, weights: Array) -> Array:
        padded = np.pad(a, ((0, 0), (1, 1), (1, 1), (0, 0)))
        parts = [padded[:, i : i + 4, j : j + 4] @ weights[i, j] for i in range(3) for j in range(3)]
        total: Array = np.sum(parts, 0)
        return total

    program = tecomp.compile(Y, [X], MACHINES[name], constants=dict(zip(w, f, strict=True)))

    expected = np.maximum(by_numpy(np.maximum(by_numpy(x, f[0]), 0), f[1]) + x, 0)
    assert_close(program(x), expected, rtol=1e-3, atol=1e-4)
    check_plan(program)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(("name", "seed"), [("acme", 3), ("texture2d", 7), ("tensix_bh", 5)])
def test_random_programs(name: str, seed: int) -> None:
    """Random programs run also with row and plane addresses that kernels receive as tables."""
    drawn = draw_program(seed)
    output, expected = drawn.values[-1]
    inputs, source = drawn.needed([output])

    program = tecomp.compile(output, inputs, EVERY[name])

    assert_close(program(*source), expected, rtol=2e-3, atol=2e-4)
    check_plan(program)


def test_products_of_tiles_are_counted() -> None:
    A, B = (te.placeholder((64, 64), "float16", name=name) for name in "AB")
    k = te.reduce_axis((0, 64), name="k")
    C = te.compute((64, 64), lambda i, j: te.sum(
        A[i, k].astype("float32") * B[k, j].astype("float32"), axis=k), name="C")
    program = tecomp.compile(C, [A, B], "stick128")
    a = np.ones((64, 64), "float16")

    assert (program(a, a) == 64).all()
    (by_unit,) = (kernel for kernel in program.report().kernels if kernel.tiles)
    assert (by_unit.tiles, by_unit.cores, by_unit.imbalance) == (8, 8, 1.0)


def test_values_have_to_fit_into_the_memory_of_the_device() -> None:
    X, W = te.placeholder((64, 64), name="X"), te.placeholder((64, 64), name="W")
    first = product(X, W, "first")
    Y = product(first, W, "Y")
    room = {"ddr": {"capacity_bytes": 16384 + 2 * 16384, "reserved_bytes": 0}}
    target = tecomp.Target.load("stick128")
    w = np.eye(64, dtype="float32")

    program = tecomp.compile(Y, [X], target.overridden(memory=room), constants={W: w})
    room["ddr"]["capacity_bytes"] -= 128
    with pytest.raises(tecomp.CapacityError) as error:
        tecomp.compile(Y, [X], target.overridden(memory=room), constants={W: w})

    assert (program(w) == w).all()
    assert diagnostic(error.value) == (
        Diagnostic(
            "capacity",
            message="compile: program needs 49152 bytes of ddr, which has 49024: 16384 for constants, 32768 between kernels; X (16384), first (16384) are live at the peak",
            remedy="without first it fits: reduce its size by 128 bytes, or recompute it where it is read",
        )
    )


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8", "bool"])
@pytest.mark.parametrize("name", ["stick128", "tensix_wh"])
def test_elements_are_scattered_in_every_type(name: str, dtype: str) -> None:
    """The operands of a statement operation may have sticks of different lane counts."""
    A, U = te.placeholder((9, 40), dtype, "A"), te.placeholder((6, 40), dtype, "U")
    where = te.placeholder((6, 40), "int32", "I")
    B = topi.scatter_elements(A, where, U, axis=0, reduction="max")
    random = np.random.default_rng(0)
    a, u = (random.integers(0, 2, x.shape).astype(dtype) for x in (A, U))
    places = random.integers(0, 9, (6, 40)).astype("int32")
    expected = a.copy()
    for i, j in np.ndindex(6, 40):
        expected[places[i, j], j] = max(expected[places[i, j], j], u[i, j])

    program = tecomp.compile(B, [A, where, U], name)

    np.testing.assert_array_equal(program(a, places, u), expected)


def test_factors_are_loaded_in_memory_order() -> None:
    """Dense weights in sticks of their first axis are loaded once per stick."""
    X = te.placeholder((128, 256), "float16", name="X")
    W = te.placeholder((256, 256), "float16", name="W")
    program = tecomp.compile(topi.nn.dense(X, W), [X, W], "stick128")
    (product,) = (
        call.kernel.report() for call in program.kernels
        if call.group.result.name == "T_matmul_NT" and not call.is_relayout
    )
    (load,) = (link for link in product.links if link.link == "load")

    # Each of 32 cores loads 16 rows of one factor and 64 of the other, in the unit's float16.
    assert load.bytes == 32 * (16 + 64) * 256 * 2
    assert load.bytes / load.bursts > 1024
