"""Random calls of the operators of `tecomp.schedules`, with symbolic, empty and unit extents."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from hypothesis import reject
from hypothesis import strategies as st
from numpy.typing import NDArray

import tecomp
from tecomp import te
from tecomp.codegen import Kernel
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
from tests.numerics import assert_close
from tests.strategies.arrays import Guarded
from tests.strategies.draws import Dice, Draw, Draws
from tests.strategies.reference import number

Array: TypeAlias = NDArray[Any]
Size: TypeAlias = "int | te.Var"

CPU = tecomp.Target.load("cpu")
TARGETS = (CPU, tecomp.Target(
    "small", "a core with small caches, so that little sizes are cut into many blocks",
    CPU.memories, tecomp.Core(2, 16, 16, (256, 8192)),
))  # fmt: skip
SIZES = (3, 0, 1, 2, 5, 8, 16, 17, 33, 70)
MOST = 20000  # maximum number of elements of a tensor
TYPES = ("float32", "float64", "int32", "int8", "float16", "int64", "uint8")


@dataclass
class Operation:
    """Call of an operator.

    Attributes:
        text: Text of the call.
        inputs: Input tensors.
        output: Output tensor.
        reference: NumPy implementation; it returns None if NumPy has no result.
        sizes: Values of each size variable, one per kernel call.
        schedule: Function that schedules the output for a target.
        target: Target of the kernel.
    """

    text: str
    inputs: list[te.Tensor]
    output: te.Tensor
    reference: Callable[..., Array | None]
    sizes: dict[te.Var, tuple[int, ...]]
    schedule: Callable[[te.Tensor, tecomp.Target | str], te.Schedule]
    target: tecomp.Target

    def check(self) -> None:
        """Build the kernel and compare each of its calls with NumPy."""
        args = [*self.sizes, *self.inputs, self.output]
        kernel = tecomp.build(self.schedule(self.output, self.target), args, target=self.target)
        for values in zip(*self.sizes.values(), strict=True) if self.sizes else [()]:
            sizes = dict(zip(self.sizes, values, strict=True))
            self._call(kernel, sizes)

    def _call(self, kernel: Kernel, sizes: dict[te.Var, int]) -> None:
        rng = np.random.default_rng(0)
        arrays = []
        for tensor in self.inputs:
            shape = [number(extent, sizes) for extent in tensor.shape]
            arrays.append(rng.integers(0, 4, shape).astype(tensor.dtype.numpy))
        shape = [number(extent, sizes) for extent in self.output.shape]
        if min(shape, default=0) < 0:
            return
        guarded = [Guarded(array) for array in arrays]
        result = Guarded(np.zeros(shape, self.output.dtype.numpy))
        kernel(*sizes.values(), *(g.array for g in guarded), result.array)
        for guard in (*guarded, result):
            guard.check()
        with np.errstate(all="ignore"):
            expected = self.reference(*arrays)
        if expected is not None:
            tolerance = 1e-2 if self.output.dtype == "float16" else 1e-4
            assert_close(
                result.array.astype(np.float64), expected.astype(np.float64), tolerance, tolerance,
                err_msg=f"{self.text}, sizes {list(sizes.values())}",
            )


@dataclass
class _Maker(Draws):
    """Generator of one call."""

    sizes: dict[te.Var, tuple[int, ...]] = field(default_factory=dict)

    def size(self, *, least: int = 0, most: int = 100) -> Size:
        """Draw a constant or symbolic extent."""
        options = [n for n in SIZES if least <= n <= most] or [least]
        if not self.chance(40):
            return self.pick(options)
        known = [
            var for var, values in self.sizes.items()
            if all(least <= value <= most for value in values)
        ]
        if known and self.chance(30):
            return self.pick(known)
        var = te.var("nmkpqrstuv"[len(self.sizes)])
        self.sizes[var] = tuple(self.pick(options) for _ in range(3))
        return var

    def shape(self, rank: int, *, least: int = 0) -> tuple[Size, ...]:
        shape: tuple[Size, ...] = ()
        for _ in range(rank):
            left = MOST // max(self.count(shape), 1)
            shape = (*shape, self.size(least=least, most=max(left, least)))
        return shape

    def count(self, shape: Sequence[Any]) -> int:
        return int(np.prod([
            max(self.sizes[n]) if isinstance(n, te.Var) else max(n, 1) for n in shape
        ]))

    def tensor(self, shape: Sequence[Size], dtype: str, name: str) -> te.Tensor:
        return te.placeholder(tuple(shape), dtype, name=name)

    def kind(self, *, floats: bool = False) -> str:
        return self.pick([t for t in TYPES if not floats or t.startswith("float")])

    def made(
        self, text: str, module: Any, output: te.Tensor, inputs: Sequence[te.Tensor | None],
        reference: Callable[..., Array | None],
    ) -> Operation:
        arrays = [x for x in inputs if x is not None]
        shapes = ", ".join(f"{x.name}{list(x.shape)} {x.dtype}" for x in arrays)
        sizes = ", ".join(f"{var} = {values}" for var, values in self.sizes.items())
        target = self.pick(TARGETS)
        return Operation(
            f"{text} of {shapes}; {sizes}; {target.name}", arrays, output, reference, self.sizes,
            module.schedule, target,
        )

    def reduce(self) -> Operation:
        rank = self.number(1, 4)
        A = self.tensor(self.shape(rank), self.kind(), "A")
        axes = tuple(k for k in range(rank) if self.chance(50)) or (self.number(-rank, rank - 1),)
        op, keep = self.pick(("sum", "max", "mean", "min", "prod")), self.chance(30)
        if op == "mean" and not A.dtype.is_float:
            op = "sum"
        output = reduce.define(A, axes, op, keepdims=keep)

        def reference(a: Array) -> Array | None:
            if a.size == 0 and op in ("max", "min", "mean"):
                return None
            widened = a.astype(np.float64) if a.dtype.kind == "f" else a
            options = {} if op in ("max", "min") or a.dtype.kind == "f" else {"dtype": a.dtype}
            result: Array = getattr(np, op)(widened, axis=axes, keepdims=keep, **options)
            return _fitting(result, a.dtype)

        return self.made(f"reduce {op} {axes}", reduce, output, [A], reference)

    def argreduce(self) -> Operation:
        rank = self.number(1, 3)
        A = self.tensor(self.shape(rank), self.kind(), "A")
        axis, op = self.number(0, rank - 1), self.pick(("argmax", "argmin"))
        output = argreduce.define(A, axis, op)

        def reference(a: Array) -> Array | None:
            found: Array | None = getattr(np, op)(a, axis=axis) if a.size else None
            return found

        return self.made(f"argreduce {op} {axis}", argreduce, output, [A], reference)

    def cumsum(self) -> Operation:
        rank = self.number(1, 3)
        A = self.tensor(self.shape(rank), self.kind(), "A")
        axis, exclusive = self.number(0, rank - 1), self.chance(30)
        output = cumsum.define(A, axis, exclusive=exclusive)

        def reference(a: Array) -> Array:
            widened = a.astype(np.float64) if a.dtype.kind == "f" else a
            total = np.cumsum(widened, axis, dtype=widened.dtype)
            return total - widened if exclusive else total

        return self.made(f"cumsum {axis} {exclusive}", cumsum, output, [A], reference)

    def elementwise(self) -> Operation:
        rank, dtype = self.number(0, 4), self.kind()
        shape = self.shape(rank)
        A = self.tensor(shape, dtype, "A")
        other = tuple(1 if self.chance(20) else n for n in shape)[self.number(0, rank) :]
        B = self.tensor(other, dtype, "B")
        output = elementwise.define(lambda a, b: a * b + a, A, B)
        return self.made("elementwise", elementwise, output, [A, B], lambda a, b: a * b + a)

    def transpose(self) -> Operation:
        rank = self.number(0, 4)
        A = self.tensor(self.shape(rank), self.kind(), "A")
        axes = tuple(self.shuffled(range(rank)))
        output = transpose.define(A, axes)
        return self.made(f"transpose {axes}", transpose, output, [A],
                         lambda a: np.transpose(a, axes))

    def softmax(self) -> Operation:
        A = self.tensor(self.shape(self.number(1, 3)), self.kind(floats=True), "A")

        def reference(a: Array) -> Array:
            powers = np.exp(a.astype(np.float64))
            quotient: Array = powers / powers.sum(-1, keepdims=True)
            return quotient

        return self.made("softmax", softmax, softmax.define(A), [A], reference)

    def norm(self) -> Operation:
        shape, dtype = self.shape(self.number(1, 3)), self.kind(floats=True)
        A = self.tensor(shape, dtype, "A")
        scale = self.tensor(shape[-1:], dtype, "S") if self.chance(50) else None
        is_layer = self.chance(50)
        function = norm.layer_norm if is_layer else norm.rms_norm

        def reference(a: Array, *factor: Array) -> Array | None:
            if a.shape[-1] == 0:
                return None
            x: Array = a.astype(np.float64)
            x = x - x.mean(-1, keepdims=True) if is_layer else x
            x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
            x = x * factor[0] if factor else x
            return x

        return self.made(function.__name__, norm, function(A, scale), [A, scale], reference)

    def matmul(self) -> Operation:
        batch = self.shape(self.pick((0, 0, 1)))
        m, k, n = self.shape(3)
        turned_a, turned_b = self.chance(30), self.chance(30)
        dtype = self.kind()
        A = self.tensor((*batch, *((k, m) if turned_a else (m, k))), dtype, "A")
        B = self.tensor((*batch, *((n, k) if turned_b else (k, n))), dtype, "B")
        out = "int32" if dtype in ("int8", "uint8") else None
        bias = self.tensor((n,), out or dtype, "bias") if self.chance(30) else None
        activation = activations.relu if self.chance(30) else None
        output = matmul.define(A, B, transpose_a=turned_a, transpose_b=turned_b, bias=bias,
                               activation=activation, out_dtype=out)

        def reference(a: Array, b: Array, *more: Array) -> Array:
            a, b = (x.astype(np.float64 if x.dtype.kind == "f" else np.int64) for x in (a, b))
            a = np.swapaxes(a, -1, -2) if turned_a else a
            b = np.swapaxes(b, -1, -2) if turned_b else b
            total = a @ b
            return total + more[0] if more else total

        return self.made(f"matmul {turned_a} {turned_b} {bool(activation)}", matmul, output,
                         [A, B, bias], reference)

    def attention(self) -> Operation:
        batch, dtype = self.shape(self.number(0, 2)), self.kind(floats=True)
        m, n = self.size(), self.size(least=1)
        depth, width = self.size(least=1, most=17), self.size(most=17)
        Q, K, V = (
            self.tensor((*batch, *shape), dtype, name)
            for name, shape in (("Q", (m, depth)), ("K", (n, depth)), ("V", (n, width)))
        )
        causal = isinstance(m, int) and isinstance(n, int) and n >= m and self.chance(40)
        output = attention.define(Q, K, V, scale=0.25, causal=causal)

        def reference(q: Array, k: Array, v: Array) -> Array | None:
            q, k, v = (x.astype(np.float64) for x in (q, k, v))
            scores = q @ np.swapaxes(k, -1, -2) * 0.25
            if causal:
                rows, columns = np.indices(scores.shape[-2:])
                later = scores.shape[-1] - scores.shape[-2]
                scores = np.where(columns <= rows + later, scores, -np.inf)
            powers = np.exp(scores)
            result: Array = powers @ v / powers.sum(-1, keepdims=True)
            return result

        return self.made(f"attention {causal}", attention, output, [Q, K, V], reference)

    def conv2d(self) -> Operation:
        first = self.chance(50)
        window = self.number(1, 3), self.number(1, 3)
        stride, padding, dilation = self.number(1, 2), self.number(0, 2), self.number(1, 2)
        least = max(dilation * (max(window) - 1) + 1 - 2 * padding, 0)
        images, channels, out = self.size(most=3), self.size(most=8), self.size(most=33)
        h, w = self.size(least=least, most=17), self.size(least=least, most=33)
        groups, depth = 1, channels
        if isinstance(channels, int) and channels and self.chance(30):
            groups, depth = channels, 1
            out = channels * self.number(1, 2)
        dtype = self.pick(("float32", "float32", "int32", "float16"))
        X = self.tensor((images, channels, h, w) if first else (images, h, w, channels), dtype, "X")
        W = self.tensor((out, depth, *window) if first else (*window, depth, out), dtype, "W")
        bias = self.tensor((out,), dtype, "bias") if self.chance(30) else None
        layout = "NCHW" if first else "NHWC"
        output = conv2d.define(X, W, stride=stride, padding=padding, dilation=dilation,
                               groups=groups, layout=layout, bias=bias)

        def reference(x: Array, w: Array, *more: Array) -> Array:
            if not first:
                x, w = np.transpose(x, (0, 3, 1, 2)), np.transpose(w, (3, 2, 0, 1))
            x = x.astype(np.float64)
            place = [padding, padding]
            x = np.pad(x, ((0, 0), (0, 0), place, place))
            rows, columns = (
                (x.shape[2 + k] - dilation * (window[k] - 1) - 1) // stride + 1 for k in (0, 1)
            )
            total = np.zeros((x.shape[0], w.shape[0], rows, columns))
            share = w.shape[0] // groups
            for g, r, s in itertools.product(range(groups), range(window[0]), range(window[1])):
                part = x[:, g * w.shape[1] : (g + 1) * w.shape[1],
                         r * dilation :: stride, s * dilation :: stride][:, :, :rows, :columns]
                of = slice(g * share, (g + 1) * share)
                total[:, of] += np.einsum("nchw,kc->nkhw", part, w[of, :, r, s])
            total = total + more[0][:, None, None] if more else total
            return total if first else np.transpose(total, (0, 2, 3, 1))

        text = f"conv2d {layout} {window} {stride} {padding} {dilation} {groups}"
        return self.made(text, conv2d, output, [X, W, bias], reference)

    def pool(self) -> Operation:
        first, op = self.chance(50), self.pick(("max", "mean"))
        window = self.number(1, 3), self.number(1, 3)
        stride, dilation = self.number(1, 3), self.number(1, 2)
        padding = self.number(0, min(window) // 2)
        least = max(dilation * (max(window) - 1) + 1 - 2 * padding, 0)
        images, channels = self.size(most=3), self.size(most=33)
        h, w = self.size(least=least, most=17), self.size(least=least, most=33)
        dtype = self.pick(("float32", "float64", "float16"))
        X = self.tensor((images, channels, h, w) if first else (images, h, w, channels), dtype, "X")
        layout = "NCHW" if first else "NHWC"
        output = pool.define(X, window, op, stride=stride, padding=padding, dilation=dilation,
                             layout=layout)

        def reference(x: Array) -> Array:
            x = (x if first else np.transpose(x, (0, 3, 1, 2))).astype(np.float64)
            neighbors = [padding, padding]
            x = np.pad(x, ((0, 0), (0, 0), neighbors, neighbors),
                       constant_values=-np.inf if op == "max" else 0)
            rows, columns = (
                (x.shape[2 + k] - dilation * (window[k] - 1) - 1) // stride + 1 for k in (0, 1)
            )
            parts = [
                x[:, :, r * dilation :: stride, s * dilation :: stride][:, :, :rows, :columns]
                for r in range(window[0]) for s in range(window[1])
            ]
            total = np.max(parts, axis=0) if op == "max" else np.mean(parts, axis=0)
            return total if first else np.transpose(total, (0, 2, 3, 1))

        text = f"pool {op} {layout} {window} {stride} {padding} {dilation}"
        return self.made(text, pool, output, [X], reference)

    def whole(self) -> Operation:
        op: Any = self.pick(("max", "mean"))
        X = self.tensor(self.shape(4), "float32", "X")

        def reference(x: Array) -> Array | None:
            result: Array | None = None
            if x.size:
                result = getattr(np, op)(x, axis=(1, 2), keepdims=True)
            return result

        return self.made(f"pool.whole {op}", pool, pool.whole(X, op), [X], reference)

    def stencil(self) -> Operation:
        weights = [[self.number(0, 3) for _ in range(3)] for _ in range(self.number(1, 3))]
        h, w = self.size(least=2, most=40), self.size(least=2, most=70)
        A = self.tensor((*self.shape(self.number(0, 1))[:1], h, w), "float32", "A")
        if self.count(A.shape) > MOST:
            A = self.tensor((h, w), "float32", "A")
        is_separable = self.chance(40)
        if is_separable:
            output = stencil.separable(A, weights[0], weights[-1])
            factors = np.outer(weights[0], weights[-1])
        else:
            output, factors = stencil.define(A, weights), np.array(weights)

        def reference(a: Array) -> Array:
            height, width = (a.shape[-2 + k] - factors.shape[k] + 1 for k in (0, 1))
            total = np.zeros((*a.shape[:-2], height, width))
            for (r, s), factor in np.ndenumerate(factors):
                total += factor * a[..., r : r + height, s : s + width]
            return total

        return self.made(f"stencil {weights} {is_separable}", stencil, output, [A], reference)


OPERATORS = (
    "reduce", "argreduce", "cumsum", "elementwise", "transpose", "softmax", "norm", "matmul",
    "attention", "conv2d", "pool", "whole", "stencil",
)


def draw_operation(draw: Draw | Dice) -> Operation:
    """Draw a call of an operator on tensors of any extents."""
    maker = _Maker(draw)
    result: Operation = getattr(maker, maker.pick(OPERATORS))()
    return result


def _fitting(result: Array, dtype: np.dtype[Any]) -> Array:
    """Return `result` with infinities in place of values that are too large for the dtype."""
    with np.errstate(all="ignore"):
        return np.asarray(result).astype(dtype)


@st.composite
def operations(draw: Draw) -> Operation:
    """Draw calls of operators on tensors of any extents."""
    try:
        return draw_operation(draw)
    except tecomp.TecompError:
        raise
    except ValueError:
        reject()
