"""Library operators as users write them in `te`: three unscheduled variants each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import pi, sqrt
from typing import Any

from tecomp import te
from tecomp.schedules import (
    activations,
    argreduce,
    attention,
    conv2d,
    cumsum,
    elementwise,
    matmul,
    norm,
    pool,
    reduce,
    softmax,
    stencil,
    transpose,
)

Built = tuple[list[te.Tensor], te.Tensor]
Way = Callable[[], Built]


@dataclass(frozen=True)
class Operator:
    """Operator of the library with alternative definitions.

    Attributes:
        name: Name of the operator.
        define: Function that returns inputs and result of the library definition.
        schedule: Schedule of the library.
        ways: Alternative definitions by name; their inputs have equally many elements.
    """

    name: str
    define: Way
    schedule: Callable[..., te.Schedule]
    ways: dict[str, Way]


def _given(*shapes: tuple[int, ...], dtype: str = "float32") -> list[te.Tensor]:
    return [te.placeholder(shape, dtype, f"I{k}") for k, shape in enumerate(shapes)]


def _run(extent: int, name: str = "k") -> te.IterVar:
    return te.reduce_axis((0, extent), name=name)


def _compute(shape: Sequence[Any], value: Callable[..., Any], name: str) -> te.Tensor:
    """Return a compute operation with one output."""
    result = te.compute(tuple(shape), value, name=name)
    assert isinstance(result, te.Tensor)
    return result


def _of(define: Callable[..., Any], *shapes: tuple[int, ...], dtype: str = "float32") -> Way:
    def way() -> Built:
        inputs = _given(*shapes, dtype=dtype)
        return inputs, define(*inputs)

    return way


def _sum(x: te.Tensor, axis: int = -1, op: Callable[..., Any] = te.sum) -> te.Tensor:
    """Sum over one axis."""
    rank = len(x.shape)
    at = axis % rank
    k = te.reduce_axis((0, x.shape[at]), name="k")
    shape = (*x.shape[:at], *x.shape[at + 1 :])
    return _compute(shape, lambda *i: op(x(*i[:at], k, *i[at:]), axis=k), name="total")


_M, _K, _N = 256, 384, 512


def _product(dtype: str, total: str) -> Operator:
    def inside(a: te.Tensor, b: te.Tensor) -> te.Tensor:
        k = _run(_K)
        return _compute((_M, _N), lambda i, j: te.sum(
            te.cast(a[i, k], total) * te.cast(b[k, j], total), axis=k), name="C")

    def swapped(a: te.Tensor, b: te.Tensor) -> te.Tensor:
        k = _run(_K)
        widened = _compute(b.shape, lambda i, j: te.cast(b[i, j], total), name="wide")
        return _compute(
            (_M, _N), lambda i, j: te.sum(widened[k, j] * te.cast(a[i, k], total), axis=k), name="C")

    def viewed(a: te.Tensor, b: te.Tensor) -> te.Tensor:
        k = _run(_K)
        turned = _compute((_N, _K), lambda j, c: te.cast(b[c, j], total), name="turned")
        return _compute(
            (_M, _N), lambda i, j: te.sum(te.cast(a[i, k], total) * turned[j, k], axis=k), name="C")

    shapes = (_M, _K), (_K, _N)
    return Operator(
        f"matmul {dtype}",
        _of(lambda a, b: matmul.define(a, b, out_dtype=total), *shapes, dtype=dtype),
        matmul.schedule,
        {"in one sum": _of(inside, *shapes, dtype=dtype),
         "the other factor first": _of(swapped, *shapes, dtype=dtype),
         "of a view": _of(viewed, *shapes, dtype=dtype)})


def _vector() -> Operator:
    def columns(a: te.Tensor, x: te.Tensor) -> te.Tensor:
        k = _run(2000)
        return _compute((2000,), lambda i: te.sum(a[i, k] * x[k], axis=k), name="y")

    def rows(a: te.Tensor, x: te.Tensor) -> te.Tensor:
        k = _run(2000)
        return _compute((2000,), lambda j: te.sum(x[k] * a[k, j], axis=k), name="y")

    def one(a: te.Tensor, x: te.Tensor) -> te.Tensor:
        k = _run(2000)
        return _compute((2000, 1), lambda i, j: te.sum(a[i, k] * x[k], axis=k), name="y")

    return Operator(
        "matmul with a vector", _of(matmul.define, (2000, 2000), (2000, 1)), matmul.schedule,
        {"matrix x vector": _of(columns, (2000, 2000), (2000,)),
         "vector x matrix": _of(rows, (2000, 2000), (2000,)),
         "with one column": _of(one, (2000, 2000), (2000,))})


def _convolution() -> Operator:
    def padded(x: te.Tensor, w: te.Tensor) -> te.Tensor:
        r, s, c = _run(3, "r"), _run(3, "s"), _run(64, "c")

        def value(n: te.Expr, y: te.Expr, z: te.Expr, k: te.Expr) -> te.Expr:
            inside = te.all(y + r >= 1, y + r < 29, z + s >= 1, z + s < 29)
            return te.sum(te.if_then_else(
                inside, x[n, y + r - 1, z + s - 1, c], 0.0) * w[r, s, c, k], axis=[r, s, c])

        return _compute((1, 28, 28, 64), value, name="Y")

    def framed(x: te.Tensor) -> te.Tensor:
        return _compute((1, 30, 30, 64), lambda n, y, z, c: te.if_then_else(
            te.all(y >= 1, y < 29, z >= 1, z < 29), x[n, y - 1, z - 1, c], 0.0), name="framed")

    def apart(x: te.Tensor, w: te.Tensor) -> te.Tensor:
        r, s, c, frame = _run(3, "r"), _run(3, "s"), _run(64, "c"), framed(x)
        return _compute((1, 28, 28, 64), lambda n, y, z, k: te.sum(
            frame[n, y + r, z + s, c] * w[r, s, c, k], axis=[r, s, c]), name="Y")

    def results_first(x: te.Tensor, w: te.Tensor) -> te.Tensor:
        r, s, c, frame = _run(3, "r"), _run(3, "s"), _run(64, "c"), framed(x)
        return _compute((1, 28, 28, 64), lambda n, y, z, k: te.sum(
            w[k, r, s, c] * frame[n, y + r, z + s, c], axis=[c, r, s]), name="Y")

    image, filters = (1, 28, 28, 64), (3, 3, 64, 64)
    return Operator(
        "conv2d", _of(lambda x, w: conv2d.define(x, w, padding=1), image, filters), conv2d.schedule,
        {"padding in the sum": _of(padded, image, filters),
         "padding in a stage": _of(apart, image, filters),
         "filters (k, r, s, c)": _of(results_first, image, (64, 3, 3, 64))})


def _depthwise() -> Operator:
    def last(x: te.Tensor, w: te.Tensor) -> te.Tensor:
        r, s = _run(3, "r"), _run(3, "s")
        return _compute((1, 54, 54, 128), lambda n, y, z, c: te.sum(
            x[n, y + r, z + s, c] * w[r, s, c], axis=[r, s]), name="Y")

    def first(x: te.Tensor, w: te.Tensor) -> te.Tensor:
        r, s = _run(3, "r"), _run(3, "s")
        return _compute((1, 128, 54, 54), lambda n, c, y, z: te.sum(
            x[n, c, y + r, z + s] * w[c, r, s], axis=[r, s]), name="Y")

    def swapped(x: te.Tensor, w: te.Tensor) -> te.Tensor:
        r, s = _run(3, "r"), _run(3, "s")
        return _compute((1, 54, 54, 128), lambda n, y, z, c: te.sum(
            w[c, r, s] * x[n, y + r, z + s, c], axis=[r, s]), name="Y")

    image = (1, 56, 56, 128)
    return Operator(
        "conv2d, depthwise",
        _of(lambda x, w: conv2d.define(x, w, groups=128), image, (3, 3, 1, 128)), conv2d.schedule,
        {"filters (r, s, c)": _of(last, image, (3, 3, 128)),
         "filters (c, r, s)": _of(swapped, image, (128, 3, 3)),
         "channels first": _of(first, (1, 128, 56, 56), (128, 3, 3))})


def _pooling() -> Operator:
    def scaled(x: te.Tensor) -> te.Tensor:
        r, s = _run(2, "r"), _run(2, "s")
        return _compute((1, 28, 28, 64), lambda n, y, z, c: te.sum(
            x[n, 2 * y + r, 2 * z + s, c] * 0.25, axis=[r, s]), name="Y")

    def after(x: te.Tensor) -> te.Tensor:
        r, s = _run(2, "r"), _run(2, "s")
        total = _compute((1, 28, 28, 64), lambda n, y, z, c: te.sum(
            x[n, 2 * y + r, 2 * z + s, c], axis=[r, s]), name="total")
        return _compute(total.shape, lambda *i: total(*i) / 4.0, name="Y")

    def added(x: te.Tensor) -> te.Tensor:
        return _compute((1, 28, 28, 64), lambda n, y, z, c: 0.25 * (
            x[n, 2 * y, 2 * z, c] + x[n, 2 * y, 2 * z + 1, c] + x[n, 2 * y + 1, 2 * z, c]
            + x[n, 2 * y + 1, 2 * z + 1, c]), name="Y")

    image = (1, 56, 56, 64)
    return Operator(
        "pool", _of(lambda x: pool.define(x, 2, "mean"), image), pool.schedule,
        {"scaled in the sum": _of(scaled, image), "divided after": _of(after, image),
         "written out": _of(added, image)})


def _sums() -> Operator:
    def both(x: te.Tensor) -> te.Tensor:
        a, b = _run(28, "a"), _run(28, "b")
        total = _compute((8, 64), lambda n, c: te.sum(x[n, c, a, b], axis=[a, b]), name="total")
        return _compute((8, 64), lambda n, c: total[n, c] / 784.0, name="Y")

    def two(x: te.Tensor) -> te.Tensor:
        total = _sum(_sum(x))
        return _compute((8, 64), lambda n, c: total[n, c] * (1 / 784), name="Y")

    def inside(x: te.Tensor) -> te.Tensor:
        a, b = _run(28, "a"), _run(28, "b")
        return _compute(
            (8, 64), lambda n, c: te.sum(x[n, c, a, b] * (1 / 784), axis=[b, a]), name="Y")

    images = (8, 64, 28, 28)
    return Operator(
        "reduce", _of(lambda x: reduce.define(x, (2, 3), "mean"), images), reduce.schedule,
        {"divided after": _of(both, images), "one axis after the other": _of(two, images),
         "scaled in the sum": _of(inside, images)})


def _best(x: te.Tensor, k: te.IterVar, first: bool) -> Callable[..., Any]:
    """Compute the index of the maximum by a user-defined reducer."""
    def combine(a: Sequence[te.Expr], b: Sequence[te.Expr]) -> list[te.Expr]:
        takes = a[1] >= b[1] if first else te.logical_not(b[1] > a[1])
        return [te.Select(takes, a[n], b[n]) for n in (0, 1)]

    return te.comm_reducer(
        combine, lambda index, value: [te.const(-1, index), te.min_value(value)], name="best")


def _greatest() -> Operator:
    def by(first: bool, dtype: str) -> Callable[[te.Tensor], te.Tensor]:
        def place(x: te.Tensor) -> te.Tensor:
            k = _run(2000)
            best = _best(x, k, first)
            found, _ = te.compute(
                (256,), lambda i: best((te.cast(k, dtype), x[i, k]), axis=k), name="best")
            assert isinstance(found, te.Tensor)
            return _compute((256,), lambda i: te.cast(found[i], "int64"), name="Y")

        return place

    def searched(x: te.Tensor) -> te.Tensor:
        k, most = _run(2000), _sum(x, op=te.max)
        return _compute((256,), lambda i: te.min(te.if_then_else(
            x[i, k] == most[i], te.cast(k, "int64"), te.const(2000, "int64")), axis=k), name="Y")

    return Operator(
        "argreduce", _of(argreduce.define, (256, 2000)), argreduce.schedule,
        {"a reducer of pairs": _of(by(True, "int32"), (256, 2000)),
         "pairs with wide indices": _of(by(False, "int64"), (256, 2000)),
         "found after the maximum": _of(searched, (256, 2000))})


def _running() -> Operator:
    def steps(x: te.Tensor, along: int) -> te.Tensor:
        n, m = (x.shape[along], x.shape[1 - along])
        state = te.placeholder((n, m), name="state")

        def at(t: te.Expr, i: te.Expr) -> te.Expr:
            return x[i, t] if along else x[t, i]

        start = _compute((1, m), lambda t, i: at(t, i), name="start")
        step = _compute((n, m), lambda t, i: state[t - 1, i] + at(t, i), name="step")
        result = te.scan(start, step, state, [x], name="sums")
        assert isinstance(result, te.Tensor)
        return result

    def viewed(x: te.Tensor) -> te.Tensor:
        return steps(_compute((1000, 512), lambda i, j: x[j, i], name="turned"), 1)

    def scaled(x: te.Tensor) -> te.Tensor:
        result = steps(x, 0)
        return _compute(x.shape, lambda i, j: result[i, j] + 0.0, name="Y")

    return Operator(
        "cumsum", _of(lambda x: cumsum.define(x, 0), (512, 1000)), cumsum.schedule,
        {"a scan": _of(lambda x: steps(x, 0), (512, 1000)), "followed by a formula":
         _of(scaled, (512, 1000)), "of views": _of(viewed, (512, 1000))})


def _running_rows() -> Operator:
    def scan(x: te.Tensor) -> te.Tensor:
        state = te.placeholder((500, 800), name="state")
        start = _compute((1, 800), lambda t, i: x[i, t], name="start")
        step = _compute((500, 800), lambda t, i: state[t - 1, i] + x[i, t], name="step")
        result = te.scan(start, step, state, [x], name="sums")
        assert isinstance(result, te.Tensor)
        return result

    def turned(x: te.Tensor) -> te.Tensor:
        result = scan(x)
        return _compute(x.shape, lambda i, j: result[j, i], name="Y")

    def followed(x: te.Tensor) -> te.Tensor:
        result = turned(x)
        return _compute(x.shape, lambda i, j: result[i, j] * 1.0 + 0.0, name="Z")

    def copied(x: te.Tensor) -> te.Tensor:
        return turned(_compute(x.shape, lambda i, j: x[i, j] + 0.0, name="copied"))

    return Operator(
        "cumsum of rows", _of(cumsum.define, (800, 500)), cumsum.schedule,
        {"a scan of the transposed": _of(turned, (800, 500)),
         "followed by a formula": _of(followed, (800, 500)),
         "of a formula": _of(copied, (800, 500))})


def _softmax() -> Operator:
    def stages(x: te.Tensor) -> te.Tensor:
        most = _sum(x, op=te.max)
        powers = _compute(x.shape, lambda i, j: te.exp(x[i, j] - most[i]), name="powers")
        total = _sum(powers)
        return _compute(x.shape, lambda i, j: powers[i, j] / total[i], name="Y")

    def twice(x: te.Tensor) -> te.Tensor:
        most, k = _sum(x, op=te.max), _run(1000)
        total = _compute(
            (512,), lambda i: te.sum(te.exp(x[i, k] - most[i]), axis=k), name="total")
        return _compute(x.shape, lambda i, j: te.exp(x[i, j] - most[i]) / total[i], name="Y")

    def kept(x: te.Tensor) -> te.Tensor:
        k, c = _run(1000), _run(1000, "c")
        most = _compute((512, 1), lambda i, _: te.max(x[i, k], axis=k), name="most")
        moved = _compute(x.shape, lambda i, j: x[i, j] - most[i, 0], name="moved")
        powers = _compute(x.shape, lambda i, j: te.exp(moved[i, j]), name="powers")
        total = _compute((512, 1), lambda i, _: te.sum(powers[i, c], axis=c), name="total")
        share = _compute((512, 1), lambda i, _: 1.0 / total[i, 0], name="share")
        return _compute(x.shape, lambda i, j: powers[i, j] * share[i, 0], name="Y")

    return Operator(
        "softmax", _of(softmax.define, (512, 1000)), softmax.schedule,
        {"four stages": _of(stages, (512, 1000)), "powers twice": _of(twice, (512, 1000)),
         "values of rows kept": _of(kept, (512, 1000))})


def _layer_norm() -> Operator:
    count = 1 / 768

    def centred(x: te.Tensor) -> te.Tensor:
        mean, k = _sum(x), _run(768)
        moved = _compute(x.shape, lambda i, j: x[i, j] - mean[i] * count, name="moved")
        square = _compute(
            (512,), lambda i: te.sum(moved[i, k] * moved[i, k], axis=k), name="square")
        return _compute(
            x.shape, lambda i, j: moved[i, j] * te.rsqrt(square[i] * count + 1e-5), name="Y")

    def moments(x: te.Tensor) -> te.Tensor:
        mean, k = _sum(x), _run(768)
        square = _compute((512,), lambda i: te.sum(x[i, k] * x[i, k], axis=k), name="square")
        spread = _compute(
            (512,), lambda i: square[i] * count - mean[i] * count * mean[i] * count, name="spread")
        return _compute(x.shape, lambda i, j: (
            (x[i, j] - mean[i] * count) / te.sqrt(spread[i] + 1e-5)), name="Y")

    def inline(x: te.Tensor) -> te.Tensor:
        k = _run(768)
        mean = _compute((512,), lambda i: te.sum(x[i, k] * count, axis=k), name="mean")
        c = _run(768, "c")
        square = _compute((512,), lambda i: te.sum(
            (x[i, c] - mean[i]) * (x[i, c] - mean[i]), axis=c), name="square")
        return _compute(x.shape, lambda i, j: (
            (x[i, j] - mean[i]) / te.sqrt(square[i] / 768.0 + 1e-5)), name="Y")

    return Operator(
        "norm", _of(norm.layer_norm, (512, 768)), norm.schedule,
        {"centred first": _of(centred, (512, 768)), "two moments": _of(moments, (512, 768)),
         "in the sums": _of(inline, (512, 768))})


def _elements() -> Operator:
    scale = sqrt(2 / pi)

    def stages(x: te.Tensor) -> te.Tensor:
        inside = _compute(x.shape, lambda i, j: x[i, j] + 0.044715 * x[i, j] * x[i, j] * x[i, j],
                          name="inside")
        bent = _compute(x.shape, lambda i, j: te.tanh(inside[i, j] * scale) + 1.0, name="bent")
        return _compute(x.shape, lambda i, j: 0.5 * x[i, j] * bent[i, j], name="Y")

    return Operator(
        "elementwise", _of(lambda x: elementwise.define(activations.gelu_tanh, x), (1000, 1000)),
        elementwise.schedule,
        {"one formula": _of(lambda x: _compute(
            x.shape, lambda i, j: activations.gelu_tanh(x[i, j]), name="Y"), (1000, 1000)),
         "three stages": _of(stages, (1000, 1000)),
         "of one axis": _of(lambda x: _compute(
             x.shape, lambda i: activations.gelu_tanh(x[i]), name="Y"), (1000000,))})


def _turned() -> Operator:
    def reshaped(x: te.Tensor) -> te.Tensor:
        flat = _compute((1000000,), lambda i: x[i % 1000, i // 1000], name="flat")
        return _compute((1000, 1000), lambda i, j: flat[i * 1000 + j], name="Y")

    def scaled(x: te.Tensor) -> te.Tensor:
        return _compute((1000, 1000), lambda i, j: x[j, i] * 2.0, name="Y")

    return Operator(
        "transpose", _of(transpose.define, (1000, 1000)), transpose.schedule,
        {"one formula": _of(lambda x: _compute(
            (1000, 1000), lambda i, j: x[j, i], name="Y"), (1000, 1000)),
         "scaled": _of(scaled, (1000, 1000)), "by way of one axis": _of(reshaped, (1000, 1000))})


def _cross() -> Operator:
    weights = [[0, 1, 0], [1, -4, 1], [0, 1, 0]]

    def moved(x: te.Tensor, y: int, z: int, name: str) -> te.Tensor:
        return _compute((1022, 1022), lambda i, j: x[i + y, j + z], name=name)

    def parts(x: te.Tensor) -> te.Tensor:
        places = (0, 1), (1, 0), (1, 2), (2, 1), (1, 1)
        up, left, right, down, inner = (moved(x, *at, f"m{k}") for k, at in enumerate(places))
        return _compute((1022, 1022), lambda i, j: (
            up[i, j] + left[i, j] + right[i, j] + down[i, j] - 4.0 * inner[i, j]), name="Y")

    def one(x: te.Tensor) -> te.Tensor:
        return _compute((1022, 1022), lambda i, j: (
            x[i, j + 1] + x[i + 1, j] + x[i + 1, j + 2] + x[i + 2, j + 1] - 4.0 * x[i + 1, j + 1]
        ), name="Y")

    def whole(x: te.Tensor) -> te.Tensor:
        def value(i: te.Expr, j: te.Expr) -> te.Expr:
            inside = te.all(i > 0, i < 1023, j > 0, j < 1023)
            neighbors = x[i - 1, j] + x[i, j - 1] + x[i, j + 1] + x[i + 1, j]
            return te.if_then_else(inside, neighbors - 4.0 * x[i, j], 0.0)

        return _compute((1024, 1024), value, name="Y")

    return Operator(
        "stencil", _of(lambda x: stencil.define(x, weights), (1024, 1024)), stencil.schedule,
        {"one formula": _of(one, (1024, 1024)), "of views": _of(parts, (1024, 1024)),
         "with a border": _of(whole, (1024, 1024))})


def _attention(tokens: int) -> Operator:
    heads, width = 8, 64
    scale = 1 / sqrt(width)

    def scores(q: te.Tensor, k: te.Tensor, scale: float) -> te.Tensor:
        e = _run(width, "e")
        return _compute((heads, tokens, tokens), lambda h, i, j: te.sum(
            q[h, i, e] * k[h, j, e] * scale, axis=e), name="scores")

    def mixed(shares: te.Tensor, v: te.Tensor) -> te.Tensor:
        t = _run(tokens, "t")
        return _compute((heads, tokens, width), lambda h, i, c: te.sum(
            shares[h, i, t] * v[h, t, c], axis=t), name="Y")

    def powers(x: te.Tensor) -> te.Tensor:
        most = _sum(x, op=te.max)
        return _compute(x.shape, lambda h, i, j: te.exp(x[h, i, j] - most[h, i]), name="powers")

    def shares(x: te.Tensor) -> te.Tensor:
        result = powers(x)
        total = _sum(result)
        return _compute(x.shape, lambda h, i, j: result[h, i, j] / total[h, i], name="shares")

    def after(q: te.Tensor, k: te.Tensor, v: te.Tensor) -> te.Tensor:
        result = scores(q, k, 1.0)
        return mixed(shares(_compute(result.shape, lambda *i: result(*i) * scale, name="scaled")), v)

    def late(q: te.Tensor, k: te.Tensor, v: te.Tensor) -> te.Tensor:
        result = powers(scores(q, k, scale))
        total, whole = _sum(result), mixed(result, v)
        return _compute(whole.shape, lambda h, i, c: whole[h, i, c] / total[h, i], name="Y")

    shape = (heads, tokens, width)
    return Operator(
        f"attention, {tokens} tokens", _of(attention.define, shape, shape, shape),
        attention.schedule,
        {"scaled in the sum": _of(
            lambda q, k, v: mixed(shares(scores(q, k, scale)), v), shape, shape, shape),
         "scaled after": _of(after, shape, shape, shape),
         "divided at last": _of(late, shape, shape, shape)})


OPERATORS = (
    _product("float32", "float32"), _product("float16", "float32"), _product("int8", "int32"),
    _vector(), _convolution(), _depthwise(), _pooling(), _sums(), _greatest(), _running(), _running_rows(),
    _softmax(), _layer_norm(), _elements(), _turned(), _cross(), _attention(128), _attention(512),
)
