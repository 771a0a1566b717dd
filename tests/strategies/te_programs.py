"""Random `te` programs of several stages with their NumPy results."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tecomp import te

Array = np.ndarray[Any, Any]


@dataclass
class Program:
    """Program under construction.

    Attributes:
        inputs: Input tensors.
        input_values: Values of the inputs.
        values: All tensors so far with their values.
    """

    dice: random.Random
    most: int = 40
    inputs: list[te.Tensor] = field(default_factory=list)
    input_values: list[Array] = field(default_factory=list)
    values: list[tuple[te.Tensor, Array]] = field(default_factory=list)
    text: list[str] = field(default_factory=list)

    def add(self, tensor: te.Tensor, value: Array) -> te.Tensor:
        assert tuple(tensor.shape) == value.shape, (tensor, value.shape)
        self.values.append((tensor, value))
        self.text.append(str(tensor.op))
        return tensor

    def input(self, *shape: int, dtype: str = "float32", high: int = 0) -> te.Tensor:
        numbers = np.random.default_rng(len(self.inputs))
        if high:
            value = numbers.integers(0, high, shape).astype(dtype)
        else:
            value = numbers.uniform(-1, 1, shape).astype(dtype)
        tensor = te.placeholder(shape, dtype, name=f"I{len(self.inputs)}")
        self.inputs.append(tensor)
        self.input_values.append(value)
        return tensor if high else self.add(tensor, value)

    def pick(self, rank: int | None = None) -> tuple[te.Tensor, Array]:
        """Draw a tensor of the program; later tensors are more likely."""
        found = [x for x in self.values if rank is None or len(x[0].shape) == rank]
        if not found:
            self.input(*(self.size() for _ in range(rank or 2)))
            return self.values[-1]
        return found[max(self.dice.randrange(len(found)) for _ in range(4))]

    def size(self) -> int:
        return self.dice.choice((1, 2, 3, 5, 8, 16, 17, 31, self.most))

    def needed(self, outputs: Sequence[te.Tensor]) -> tuple[list[te.Tensor], list[Array]]:
        """Return the inputs that the outputs depend on, with their values."""
        seen = set(outputs)
        worklist = list(outputs)
        while worklist:
            found = set(worklist.pop().op.input_tensors) - seen
            seen |= found
            worklist += found
        pairs = [pair for pair in zip(self.inputs, self.input_values, strict=True) if pair[0] in seen]
        return [x for x, _ in pairs], [value for _, value in pairs]

    @property
    def name(self) -> str:
        return f"T{len(self.values)}"


def draw_program(seed: int, most: int = 40) -> Program:
    """Draw a program of 2 to 12 stages."""
    dice = random.Random(seed)
    p = Program(dice, most)
    p.input(*(p.size() for _ in range(dice.choice((1, 2, 2, 2, 3, 4)))))
    for _ in range(dice.randint(2, 12)):
        dice.choice(STEPS)(p)
    return p


def unary(p: Program) -> None:
    A, a = p.pick()
    kind = p.dice.choice(("relu", "scale", "tanh", "exp", "square"))
    functions: dict[str, tuple[Callable[[Any], Any], Callable[[Array], Array]]] = {
        "relu": (lambda x: te.max(x, te.const(0, "float32")), lambda x: np.maximum(x, 0)),
        "scale": (lambda x: x * 0.5 + 0.25, lambda x: x * np.float32(0.5) + np.float32(0.25)),
        "tanh": (te.tanh, np.tanh),
        "exp": (lambda x: te.exp(te.tanh(x)), lambda x: np.exp(np.tanh(x))),
        "square": (lambda x: x * x / (x * x + 1.0), lambda x: x * x / (x * x + 1)),
    }
    of, function = functions[kind]
    p.add(te.compute(A.shape, lambda *i: of(A(*i)), name=p.name), function(a).astype("f4"))


def binary(p: Program) -> None:
    A, a = p.pick()
    same = [x for x in p.values if tuple(x[0].shape) == tuple(A.shape)]
    B, b = p.dice.choice(same)
    p.add(te.compute(A.shape, lambda *i: A(*i) - B(*i) * 0.5, name=p.name),
          (a - b * np.float32(0.5)).astype("f4"))


def broadcast(p: Program) -> None:
    A, a = p.pick()
    axis = p.dice.randrange(len(A.shape))
    b = p.input(int(A.shape[axis]))
    shape = [1] * len(A.shape)
    shape[axis] = -1
    p.add(te.compute(A.shape, lambda *i: A(*i) + b(i[axis]), name=p.name),
          a + p.input_values[-1].reshape(shape))


def reduction(p: Program) -> None:
    A, a = p.pick()
    axes = sorted(p.dice.sample(range(len(A.shape)), p.dice.randint(1, min(2, len(A.shape)))))
    keep = p.dice.random() < 0.3 or len(axes) == len(A.shape)
    runs = {k: te.reduce_axis((0, A.shape[k]), name=f"k{k}") for k in axes}
    is_max = p.dice.random() < 0.5
    inner = p.dice.random() < 0.3
    shape = tuple(1 if k in runs else n for k, n in enumerate(A.shape) if keep or k not in runs)

    def value(*i: te.Expr) -> te.Expr:
        own = iter(i)
        at = [runs[k] if k in runs and not keep else next(own) for k in range(len(A.shape))]
        at = [runs.get(k, x) for k, x in enumerate(at)]
        element = A(*at)
        element = element * element if inner else element
        order = list(runs.values())
        return te.max(element, axis=order) if is_max else te.sum(element, axis=order)

    x = a * a if inner else a
    result = x.max(tuple(axes), keepdims=keep) if is_max else x.sum(
        tuple(axes), keepdims=keep, dtype="f4")
    p.add(te.compute(shape, value, name=p.name), result)
    T, t = p.values[-1]
    if not is_max:
        size = float(np.prod([int(A.shape[k]) for k in axes]))
        p.add(te.compute(T.shape, lambda *i: T(*i) / size, name=p.name), t / np.float32(size))


def product(p: Program) -> None:
    A, a = p.pick(p.dice.choice((2, 2, 3)))
    k, n = int(A.shape[-1]), p.size()
    turned = p.dice.random() < 0.5
    B = p.input(*((n, k) if turned else (k, n)))
    b = p.input_values[-1].T if turned else p.input_values[-1]
    r = te.reduce_axis((0, k), name="k")
    p.add(te.compute(
        (*A.shape[:-1], n),
        lambda *i: te.sum((B(i[-1], r) if turned else B(r, i[-1])) * A(*i[:-1], r), axis=r),
        name=p.name,
    ), (a @ b).astype("f4"))
    T, t = p.values[-1]
    p.add(te.compute(T.shape, lambda *i: T(*i) / float(k), name=p.name), t / np.float32(k))


def gram(p: Program) -> None:
    A, a = p.pick(2)
    r = te.reduce_axis((0, A.shape[1]), name="k")
    n = int(A.shape[1])
    p.add(te.compute((A.shape[0], A.shape[0]),
                     lambda i, j: te.sum(A[i, r] * A[j, r] / float(n), axis=r), name=p.name),
          (a @ a.T / n).astype("f4"))


def softmax(p: Program) -> None:
    A, a = p.pick()
    n = A.shape[-1]
    keep = p.dice.random() < 0.5
    shape = (*A.shape[:-1], 1) if keep else A.shape[:-1]
    tail = (te.const(0),) if keep else ()
    k, r = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, n), name="r")
    if not shape:
        return
    lead = len(A.shape) - 1
    most = te.compute(shape, lambda *i: te.max(A(*i[:lead], k), axis=k), name=f"{p.name}_m")
    powers = te.compute(
        A.shape, lambda *i: te.exp(A(*i) - most(*i[:-1], *tail)), name=f"{p.name}_p")
    total = te.compute(shape, lambda *i: te.sum(powers(*i[:lead], r), axis=r), name=f"{p.name}_t")
    e = np.exp(a - a.max(-1, keepdims=True))
    p.add(te.compute(A.shape, lambda *i: powers(*i) / total(*i[:-1], *tail), name=p.name),
          (e / e.sum(-1, keepdims=True)).astype("f4"))


def norm(p: Program) -> None:
    A, a = p.pick()
    n = int(A.shape[-1])
    k, r = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, n), name="r")
    shape = A.shape[:-1]
    mean = te.compute(shape, lambda *i: te.sum(A(*i, k) / float(n), axis=k), name=f"{p.name}_m")
    square = te.compute(
        shape,
        lambda *i: te.sum((A(*i, r) - mean(*i)) * (A(*i, r) - mean(*i)) / float(n), axis=r),
        name=f"{p.name}_v")
    p.add(te.compute(
        A.shape, lambda *i: (A(*i) - mean(*i[:-1])) / te.sqrt(square(*i[:-1]) + 0.1), name=p.name,
    ), ((a - a.mean(-1, keepdims=True)) / np.sqrt(a.var(-1, keepdims=True) + 0.1)).astype("f4"))


def transpose(p: Program) -> None:
    A, a = p.pick()
    order = list(range(len(A.shape)))
    p.dice.shuffle(order)
    positions = [order.index(k) for k in range(len(order))]
    p.add(te.compute(tuple(A.shape[k] for k in order), lambda *i: A(*(i[k] for k in positions)),
                     name=p.name), a.transpose(order))


def reshape(p: Program) -> None:
    A, a = p.pick()
    rows = a.shape[0]
    if a.ndim < 3:
        rows = p.dice.choice([d for d in range(1, a.size + 1) if a.size % d == 0])
    shape = (rows, a.size // rows)

    def value(i: te.Expr, j: te.Expr) -> te.Expr:
        number = i * shape[1] + j
        index = []
        for extent in reversed(A.shape[1:]):
            index.append(number % extent)
            number = number // extent
        return A(number, *reversed(index))

    p.add(te.compute(shape, value, name=p.name), a.reshape(shape))


def pad(p: Program) -> None:
    A, a = p.pick()
    width = p.dice.randint(1, 2)
    shape = (*A.shape[:-1], A.shape[-1] + 2 * width)
    p.add(te.compute(shape, lambda *i: te.if_then_else(
        te.all(i[-1] >= width, i[-1] < A.shape[-1] + width), A(*i[:-1], i[-1] - width),
        te.const(0, "float32")), name=p.name),
          np.pad(a, [(0, 0)] * (a.ndim - 1) + [(width, width)]))


def window(p: Program) -> None:
    A, a = p.pick()
    axis = p.dice.randrange(len(A.shape))
    n, step, taps = int(A.shape[axis]), p.dice.randint(1, 2), p.dice.randint(1, 3)
    if n < taps:
        return
    count = (n - taps) // step + 1
    shape = [*A.shape]
    shape[axis] = count
    r = te.reduce_axis((0, taps), name="r")
    is_max = p.dice.random() < 0.5

    def value(*i: te.Expr) -> te.Expr:
        at = [*i]
        at[axis] = i[axis] * step + r
        return te.max(A(*at), axis=r) if is_max else te.sum(A(*at), axis=r)

    pieces = np.stack([
        a.take(range(t, t + (count - 1) * step + 1, step), axis) for t in range(taps)
    ])
    p.add(te.compute(tuple(shape), value, name=p.name),
          (pieces.max(0) if is_max else pieces.sum(0)).astype("f4"))


def stencil(p: Program) -> None:
    A, a = p.pick(2)
    n, m = (int(x) for x in A.shape)
    if n < 3:
        return
    p.add(te.compute((n - 2, m), lambda i, j: (A[i, j] + A[i + 1, j] + A[i + 2, j]) / 3.0,
                     name=p.name), ((a[:-2] + a[1:-1] + a[2:]) / np.float32(3)).astype("f4"))


def gather(p: Program) -> None:
    A, a = p.pick()
    count = p.size()
    index = p.input(count, dtype="int32", high=int(A.shape[0]))
    p.add(te.compute((count, *A.shape[1:]), lambda i, *j: A(index[i], *j), name=p.name),
          a[p.input_values[-1]])


def concatenate(p: Program) -> None:
    A, a = p.pick()
    n = A.shape[-1]
    p.add(te.compute((*A.shape[:-1], 2 * n), lambda *i: te.if_then_else(
        i[-1] < n, A(*i), A(*i[:-1], i[-1] - n) * 2.0), name=p.name),
          np.concatenate([a, a * 2], -1))


def argmax(p: Program) -> None:
    A, a = p.pick(2)
    k = te.reduce_axis((0, A.shape[1]), name="k")
    best = te.comm_reducer(
        lambda x, y: [te.Select(x[1] >= y[1], x[n], y[n]) for n in (0, 1)],
        lambda t0, t1: [te.const(-1, t0), te.min_value(t1)], name="best")
    place, _ = te.compute((A.shape[0],), lambda i: best((k, A[i, k]), axis=k), name=f"{p.name}_b")
    p.add(te.compute((A.shape[0],), lambda i: te.cast(place[i], "float32"), name=p.name),
          a.argmax(1).astype("f4"))


def batched(p: Program) -> None:
    A, a = p.pick(3)
    k = te.reduce_axis((0, A.shape[2]), name="k")
    B = p.input(int(A.shape[0]), p.size(), int(A.shape[2]))
    p.add(te.compute((A.shape[0], A.shape[1], B.shape[1]),
                     lambda b, i, j: te.sum(A[b, i, k] * B[b, j, k], axis=k), name=p.name),
          (a @ p.input_values[-1].transpose(0, 2, 1)).astype("f4"))


def convolution(p: Program) -> None:
    n, h, w, c, k = 1, p.dice.randint(3, 9), p.dice.randint(3, 9), p.size(), p.size()
    first = p.dice.random() < 0.5
    X = p.input(*((n, c, h, w) if first else (n, h, w, c)))
    x = p.input_values[-1] if first else p.input_values[-1].transpose(0, 3, 1, 2)
    W = p.input(*((k, c, 3, 3) if first else (3, 3, c, k)))
    f = p.input_values[-1] if first else p.input_values[-1].transpose(3, 2, 0, 1)
    r, s, d = (te.reduce_axis((0, m), name=name) for m, name in ((3, "r"), (3, "s"), (c, "c")))
    shape = (n, k, h - 2, w - 2) if first else (n, h - 2, w - 2, k)

    def value(*i: te.Expr) -> te.Expr:
        if first:
            b, o, y, z = i
            return te.sum(X[b, d, y + r, z + s] * W[o, d, r, s], axis=[d, r, s])
        b, y, z, o = i
        return te.sum(X[b, y + r, z + s, d] * W[r, s, d, o], axis=[r, s, d])

    result = sum(np.einsum("bchw,oc->bohw", x[:, :, r:r + h - 2, s:s + w - 2], f[:, :, r, s])
               for r in range(3) for s in range(3))
    p.add(te.compute(shape, value, name=p.name),
          np.ascontiguousarray(result if first else result.transpose(0, 2, 3, 1)).astype("f4"))


STEPS = [unary, unary, unary, binary, binary, broadcast, broadcast, reduction, reduction, product,
         product, gram, softmax, norm, transpose, reshape, pad, window, stencil, gather,
         concatenate, argmax, batched, convolution]
