"""Programs in `te` as users write them, without a schedule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from types import SimpleNamespace

from tecomp import te
from tests.bench.programs.describe import Description
from tests.bench.programs.formulas import FORMULAS

M = SimpleNamespace(
    exp=te.exp, tanh=te.tanh, sqrt=te.sqrt, log=te.log, sin=te.sin, abs=te.abs,
    maximum=te.max, minimum=te.min, where=te.if_then_else,
)
_REDUCERS = {"sum": te.sum, "mean": te.sum, "max": te.max, "min": te.min}


def sizes_of(x: te.Tensor) -> tuple[int, ...]:
    """Return the shape of a tensor; all programs here have static sizes."""
    return tuple(n for n in x.shape if isinstance(n, int))


def _at(x: te.Tensor, axes: Sequence[te.Expr]) -> te.Expr:
    """Return the element that NumPy broadcasting selects."""
    local_axes = axes[len(axes) - len(x.shape) :]
    element: te.Expr = x(*(0 if n == 1 else axis for n, axis in zip(x.shape, local_axes, strict=True)))
    return element


def _formula(*args: te.Tensor, name: str) -> te.Tensor:
    rank = max(len(x.shape) for x in args)
    shapes = [(1,) * (rank - len(x.shape)) + sizes_of(x) for x in args]
    shape = tuple(max(sizes) for sizes in zip(*shapes, strict=True))

    def value(*i: te.Expr) -> te.Expr:
        element: te.Expr = FORMULAS[name](M, *(_at(x, i) for x in args))
        return element

    return te.compute(shape, value, name=name)


def _reduce(x: te.Tensor, *, op: str, axes: tuple[int, ...], keepdims: bool) -> te.Tensor:
    rank = len(x.shape)
    runs = {k % rank: te.reduce_axis((0, x.shape[k]), name=f"r{k % rank}") for k in axes}
    kept = [k for k in range(rank) if keepdims or k not in runs]
    shape = tuple(1 if k in runs else x.shape[k] for k in kept)

    def total(*i: te.Expr) -> te.Expr:
        at = dict(zip(kept, i, strict=True)) | runs
        return _REDUCERS[op](x(*(at[k] for k in range(rank))), axis=list(runs.values()))

    result = te.compute(shape, total, name=op)
    if op != "mean":
        return result
    count = prod(sizes_of(x)[k % rank] for k in axes)
    return te.compute(shape, lambda *i: result(*i) / float(count), name="mean_of")


def _product(x: te.Tensor, y: te.Tensor, *, letters: str) -> te.Tensor:
    operands, out = letters.split("->")
    first, second = operands.split(",")
    sizes = dict(zip(first + second, (*x.shape, *y.shape), strict=True))
    runs = {a: te.reduce_axis((0, n), name=a) for a, n in sizes.items() if a not in out}

    def value(*i: te.Expr) -> te.Expr:
        at = dict(zip(out, i, strict=True)) | runs
        a, b = x(*(at[k] for k in first)), y(*(at[k] for k in second))
        return te.sum(a * b, axis=list(runs.values()))

    return te.compute(tuple(sizes[k] for k in out), value, name="product")


def _pad(x: te.Tensor, *, width: int) -> te.Tensor:
    height, wide = x.shape[-2:]

    def value(*i: te.Expr) -> te.Expr:
        *lead, y, z = i
        inside = te.all(y >= width, y < height + width, z >= width, z < wide + width)
        return te.if_then_else(inside, x(*lead, y - width, z - width), te.const(0, x.dtype))

    return te.compute((*x.shape[:-2], height + 2 * width, wide + 2 * width), value, name="pad")


def _framed(x: te.Tensor, width: int, border: te.Expr) -> te.Tensor:
    """Return channels-last images with a border."""
    n, height, wide, channels = sizes_of(x)

    def value(b: te.Expr, y: te.Expr, z: te.Expr, c: te.Expr) -> te.Expr:
        inside = te.all(y >= width, y < height + width, z >= width, z < wide + width)
        return te.if_then_else(inside, x[b, y - width, z - width, c], border)

    return te.compute((n, height + 2 * width, wide + 2 * width, channels), value, name="framed")


def _conv2d(x: te.Tensor, w: te.Tensor, *, stride: int, padding: int, groups: int) -> te.Tensor:
    n, height, width, _ = x.shape
    rows, columns, depth, results = w.shape
    padded = _framed(x, padding, te.const(0, x.dtype)) if padding else x
    r, s, c = (te.reduce_axis((0, k), name=a) for a, k in zip("rsc", w.shape[:3], strict=True))
    shape = (n, (height + 2 * padding - rows) // stride + 1,
             (width + 2 * padding - columns) // stride + 1, results)
    if groups == results and depth == 1:
        return te.compute(shape, lambda b, y, z, k: te.sum(
            padded[b, y * stride + r, z * stride + s, k] * w[r, s, 0, k], axis=[r, s]),
            name="depthwise")
    per_group = results // groups
    return te.compute(shape, lambda b, y, z, k: te.sum(
        padded[b, y * stride + r, z * stride + s, (k // per_group * depth if groups > 1 else 0) + c]
        * w[r, s, c, k], axis=[r, s, c]), name="conv")


def _pool(
    x: te.Tensor, *, op: str, window: int, stride: int, padding: int = 0
) -> te.Tensor:
    if padding:
        x = _framed(x, padding, te.min_value(x.dtype) if op == "max" else te.const(0, x.dtype))
    n, height, width, channels = sizes_of(x)
    r, s = (te.reduce_axis((0, window), name=a) for a in "rs")
    shape = (n, (height - window) // stride + 1, (width - window) // stride + 1, channels)
    result = te.compute(shape, lambda b, y, z, c: _REDUCERS[op](
        x[b, y * stride + r, z * stride + s, c], axis=[r, s]), name="pool")
    if op != "mean":
        return result
    return te.compute(shape, lambda *i: result(*i) * (1.0 / window**2), name="mean")


def _scan(x: te.Tensor, *, op: str, axis: int) -> te.Tensor:
    """Scan along the first axis; scans along the last axis are transposed."""
    if axis == 1:
        transposed = te.compute(x.shape[::-1], lambda i, j: x[j, i], name="turned")
        result = _scan(transposed, op=op, axis=0)
        return te.compute(x.shape, lambda i, j: result[j, i], name="back")
    state = te.placeholder(x.shape, x.dtype, name="state")
    start = te.compute((1, *x.shape[1:]), lambda _, j: x[0, j], name="start")
    combine = te.max if op == "max" else lambda a, b: a + b
    step = te.compute(x.shape, lambda t, j: combine(state[t - 1, j], x[t, j]), name="step")
    result = te.scan(start, step, state, [x], name="scan")
    assert isinstance(result, te.Tensor)
    return result


def _softmax(x: te.Tensor, *, axis: int, form: str) -> te.Tensor:
    m = _reduce(x, op="max", axes=(axis,), keepdims=True)
    powers = te.compute(x.shape, lambda *i: te.exp(x(*i) - _at(m, i)), name="powers")
    total = _reduce(powers, op="sum", axes=(axis,), keepdims=True)
    if form == "log":
        return te.compute(
            x.shape, lambda *i: x(*i) - _at(m, i) - te.log(_at(total, i)), name="log_softmax")
    return te.compute(x.shape, lambda *i: powers(*i) / _at(total, i), name="softmax")


def _norm(x: te.Tensor, *, form: str) -> te.Tensor:
    count, name = 1.0 / x.shape[-1], f"{form}_norm"
    if form == "layer":
        mean = _reduce(x, op="sum", axes=(-1,), keepdims=False)
        source = x
        x = te.compute(x.shape, lambda *i: source(*i) - mean(*i[:-1]) * count, name="centred")
    elif form == "l1":
        absolute = te.compute(x.shape, lambda *i: te.abs(x(*i)), name="absolute")
        total = _reduce(absolute, op="sum", axes=(-1,), keepdims=True)
        return te.compute(x.shape, lambda *i: x(*i) / (_at(total, i) + 1e-5), name=name)
    elif form == "range":
        low, high = (_reduce(x, op=op, axes=(-1,), keepdims=True) for op in ("min", "max"))
        return te.compute(
            x.shape, lambda *i: (x(*i) - _at(low, i)) / (_at(high, i) - _at(low, i) + 1e-5),
            name=name)
    k = te.reduce_axis((0, x.shape[-1]), name="k")
    squares = te.compute(
        x.shape[:-1], lambda *i: te.sum(x(*i, k) * x(*i, k), axis=k), name="squares")
    return te.compute(
        x.shape, lambda *i: x(*i) / te.sqrt(squares(*i[:-1]) * count + 1e-5), name=name)


def _distance(x: te.Tensor, y: te.Tensor, *, form: str) -> te.Tensor:
    k = te.reduce_axis((0, x.shape[1]), name="k")

    def value(i: te.Expr, j: te.Expr) -> te.Expr:
        far = x[i, k] - y[j, k]
        if form == "squares":
            return te.sum(far * far, axis=k)
        return (te.sum if form == "city" else te.max)(te.abs(far), axis=k)

    return te.compute((x.shape[0], y.shape[0]), value, name="distance")


def _stencil(x: te.Tensor, *, form: str) -> te.Tensor:
    def value(*i: te.Expr) -> te.Expr:
        *lead, y, z = i
        inner = x(*lead, y + 1, z + 1)
        up, down = x(*lead, y, z + 1), x(*lead, y + 2, z + 1)
        left, right = x(*lead, y + 1, z), x(*lead, y + 1, z + 2)
        if form == "cross":
            return inner + 0.2 * (up + down + left + right - 4.0 * inner)
        if form == "edges":
            return te.abs(right - left) + te.abs(down - up)
        return te.max(te.max(up, down), te.max(left, te.max(inner, right)))

    height, width = x.shape[-2:]
    return te.compute((*x.shape[:-2], height - 2, width - 2), value, name=form)


def _smooth(x: te.Tensor, *, taps: Sequence[float]) -> te.Tensor:
    def value(*i: te.Expr) -> te.Expr:
        *lead, j = i
        total = x(*lead, j) * taps[0]
        for k, tap in enumerate(taps[1:], 1):
            total = total + x(*lead, j + k) * tap
        return total

    return te.compute((*x.shape[:-1], x.shape[-1] - len(taps) + 1), value, name="smooth")


def _mask(x: te.Tensor, *, form: str) -> te.Tensor:
    def value(*axes: te.Expr) -> te.Expr:
        i, j = axes[-2:]
        if form == "causal":
            return te.if_then_else(j <= i, x(*axes), -1e9)
        if form == "band":
            return te.if_then_else(te.all(i - j < 8, j - i < 8), x(*axes), 0.0)
        return te.if_then_else((i + j) % 2 == 0, x(*axes), -x(*axes))

    return te.compute(x.shape, value, name=f"{form}_mask")


def _reshape(x: te.Tensor, *, shape: Sequence[int]) -> te.Tensor:
    def value(*axes: te.Expr) -> te.Expr:
        flat = axes[0]
        for axis, extent in zip(axes[1:], shape[1:], strict=True):
            flat = flat * extent + axis
        index: list[te.Expr] = []
        for extent in reversed(sizes_of(x)[1:]):
            index.insert(0, flat % extent)
            flat = flat // extent
        return x(flat, *index)

    return te.compute(tuple(shape), value, name="reshape")


def _concatenate(x: te.Tensor, y: te.Tensor, *, axis: int) -> te.Tensor:
    n = x.shape[axis]
    shape = [*x.shape]
    shape[axis] = n + y.shape[axis]

    def value(*i: te.Expr) -> te.Expr:
        other = [*i]
        other[axis] = i[axis] - n
        return te.if_then_else(i[axis] < n, x(*i), y(*other))

    return te.compute(tuple(shape), value, name="concatenate")


def _moved(
    x: te.Tensor, shape: Sequence[int], axis: int, where: Callable[[te.Expr], te.Expr], name: str
) -> te.Tensor:
    """Return `x` with other indices along one axis."""

    def value(*i: te.Expr) -> te.Expr:
        index = [*i]
        index[axis] = where(i[axis])
        return x(*index)

    return te.compute(tuple(shape), value, name=name)


def _repeat(x: te.Tensor, *, count: int, axis: int) -> te.Tensor:
    shape = list(sizes_of(x))
    shape[axis] *= count
    return _moved(x, shape, axis, lambda i: i // count, "repeat")


def _flip(x: te.Tensor, *, axis: int) -> te.Tensor:
    return _moved(x, sizes_of(x), axis, lambda i: x.shape[axis] - 1 - i, "flip")


def _halves(x: te.Tensor, *, form: str) -> te.Tensor:
    *lead, last = sizes_of(x)
    shape = (*lead, last // 2)
    return _moved(x, shape, -1, lambda i: i if form == "first" else 2 * i + 1, f"{form}_half")


def _cast(x: te.Tensor, *, dtype: str) -> te.Tensor:
    return te.compute(x.shape, lambda *i: te.cast(x(*i), dtype), name=dtype)


def _transpose(x: te.Tensor, *, axes: Sequence[int]) -> te.Tensor:
    positions = [axes.index(k) for k in range(len(axes))]
    shape = tuple(x.shape[k] for k in axes)
    return te.compute(shape, lambda *i: x(*(i[k] for k in positions)), name="transpose")


def _rows(x: te.Tensor, index: te.Tensor) -> te.Tensor:
    shape = (*index.shape, *x.shape[1:])
    count = len(index.shape)
    return te.compute(shape, lambda *i: x(index(*i[:count]), *i[count:]), name="rows")


KINDS: dict[str, Callable[..., te.Tensor]] = {
    "formula": _formula, "reduce": _reduce, "product": _product, "conv2d": _conv2d, "pool": _pool, "scan": _scan, "pad": _pad, "concatenate": _concatenate,
    "repeat": _repeat, "flip": _flip, "cast": _cast, "transpose": _transpose,
    "reshape": _reshape, "rows": _rows, "softmax": _softmax, "norm": _norm,
    "distance": _distance, "stencil": _stencil, "smooth": _smooth, "mask": _mask,
    "halves": _halves,
}


def tensors(program: Description) -> tuple[list[te.Tensor], te.Tensor]:
    """Return the inputs of a program and its result."""
    inputs = [te.placeholder(x.shape, x.dtype, f"I{k}") for k, x in enumerate(program.inputs)]
    values = list(inputs)
    for step in program.steps:
        values.append(KINDS[step.kind](*(values[k] for k in step.operands), **step.options))
    return inputs, values[-1]


def stages(output: te.Tensor) -> int:
    """Return the number of operations of a program."""
    return sum(bool(stage.op.input_tensors) for stage in te.create_schedule(output).stages)
