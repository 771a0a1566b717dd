"""Random programs of 2 to 12 stages: one of a dozen beginnings, then matching steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from math import prod, sqrt
from random import Random
from typing import Any

from tecomp import accesses, te
from tests.bench.programs import in_te
from tests.bench.programs.describe import Description, Input, Value, Writer

_STAGES = 12
_MOST_VALUES = 4_000_000
_POINTS = (500_000, 400_000_000)
"""Range of the iterations of all stages.

Call overhead dominates smaller programs, and larger ones take minutes in NumPy.
"""


@dataclass(frozen=True)
class Drawn:
    """Value of a description with its tensor in `te`."""

    value: Value
    tensor: te.Tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the tensor."""
        return in_te.sizes_of(self.tensor)

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.tensor.shape)


class Draft:
    """Builder of random programs; `dice` is the random generator."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self._writer = Writer()

    def input(
        self, *shape: int, dtype: str = "float32", scale: float = 1.0, below: int = 100
    ) -> Drawn:
        """Add an input."""
        value = self._writer.input(Input(shape, dtype, scale, below))
        return Drawn(value, te.placeholder(shape, dtype, f"I{value.number}"))

    def weights(self, *shape: int, depth: int) -> Drawn:
        """Add an input that is scaled for a reduction over `depth` elements."""
        return self.input(*shape, scale=1.7 / sqrt(depth))

    def add(self, kind: str, *operands: Drawn, **options: Any) -> Drawn:
        """Add a step."""
        tensor = in_te.KINDS[kind](*(x.tensor for x in operands), **options)
        return Drawn(self._writer.add(kind, *(x.value for x in operands), **options), tensor)

    def formula(self, name: str, *operands: Drawn) -> Drawn:
        """Add an element-wise formula."""
        return self.add("formula", *operands, name=name)

    def one_of(self, *choices: Any) -> Any:
        """Return one of the choices with equal probability."""
        return self.dice.choice(choices)

    def size(self, least: int, most: int) -> int:
        """Return a log-uniform size; half of the sizes are multiples of 16."""
        n = round(least * math.pow(2 * most / least, self.dice.random()))
        return max(n // 16 * 16, least) if self.dice.random() < 0.5 else n

    def description(self) -> Description:
        """Return the description of the program."""
        return self._writer.description()


def _unary(d: Draft, x: Drawn) -> Drawn:
    return d.formula(
        d.one_of("relu", "leaky_relu", "tanh", "sigmoid", "silu", "gelu", "gauss", "root", "log1p",
                 "affine", "clip", "square", "sine"), x)


def _perceptron(d: Draft) -> Drawn:
    x = d.input(d.size(1, 512), d.size(16, 512))
    for _ in range(d.one_of(1, 2, 2, 3)):
        k, n = x.shape[-1], d.size(8, 768)
        turned = d.dice.random() < 0.4
        w = d.weights(*((n, k) if turned else (k, n)), depth=k)
        x = d.add("product", x, w, letters="ik,jk->ij" if turned else "ik,kj->ij")
        x = d.formula("add", x, d.input(n))
        x = _unary(d, x)
    return x


def _attention(d: Draft) -> Drawn:
    heads, tokens, width = d.one_of(1, 2, 4, 8), d.size(16, 256), d.one_of(16, 32, 64, 80)
    shapes = d.one_of(("bid,bjd->bij", "bij,bjd->bid"), ("ibd,jbd->bij", "bij,jbd->ibd"))
    shape = (heads, tokens, width) if shapes[0][0] == "b" else (tokens, heads, width)
    q = d.input(*shape, scale=3.0 / sqrt(width))
    scores = d.add("product", q, d.input(*shape), letters=shapes[0])
    if d.dice.random() < 0.5:
        scores = d.add("mask", scores, form="causal")
    weights = d.add("softmax", scores, axis=-1, form="plain")
    return d.add("product", weights, d.input(*shape), letters=shapes[1])


def _norms(d: Draft) -> Drawn:
    lead = d.one_of((), (), (d.size(2, 8),))
    x = d.input(*lead, d.size(16, 1000), d.size(16, 1500))
    if d.dice.random() < 0.5:
        x = d.formula("add", x, d.input(*x.shape))
    x = d.add("norm", x, form=d.one_of("layer", "rms", "l1", "range"))
    if d.dice.random() < 0.7:
        x = d.formula("scale_shift", x, d.input(x.shape[-1]), d.input(x.shape[-1]))
    return x


def _convolutions(d: Draft) -> Drawn:
    side, channels = d.size(7, 56), d.one_of(3, 8, 16, 32, 48, 64)
    x = d.input(d.one_of(1, 1, 2, 4), side, d.one_of(side, side + 3), channels)
    for _ in range(d.one_of(1, 1, 2)):
        taps, depth = d.one_of(1, 3, 3, 5), x.shape[-1]
        is_deep = d.dice.random() < 0.25
        out = depth if is_deep else d.one_of(8, 16, 32, 64, 96)
        w = d.weights(taps, taps, 1 if is_deep else depth, out,
                      depth=taps * taps * (1 if is_deep else depth))
        y = d.add("conv2d", x, w, stride=d.one_of(1, 1, 2), padding=taps // 2,
                  groups=depth if is_deep else 1)
        y = d.formula("add", y, d.input(out))
        if y.shape == x.shape:
            y = d.formula("add", y, x)
        x = d.formula(d.one_of("relu", "silu", "gelu"), y)
    if min(x.shape[1:3]) > 3 and d.dice.random() < 0.4:
        x = d.add("pool", x, op=d.one_of("max", "mean"), window=d.one_of(2, 3), stride=2)
    return x


def _distances(d: Draft) -> Drawn:
    k = d.size(2, 128)
    x, y = d.input(d.size(16, 500), k), d.input(d.size(16, 500), k)
    x = d.add("distance", x, y, form=d.one_of("squares", "city", "most"))
    return d.formula("root", x) if d.dice.random() < 0.5 else x


def _stencils(d: Draft) -> Drawn:
    lead = d.one_of((), (), (d.size(2, 6),))
    x = d.input(*lead, d.size(32, 700), d.size(32, 700))
    for _ in range(d.one_of(1, 2, 3)):
        if d.dice.random() < 0.3:
            x = d.add("smooth", x, taps=d.one_of((0.25, 0.5, 0.25), (0.1, 0.2, 0.4, 0.2, 0.1)))
            continue
        if d.dice.random() < 0.5:
            x = d.add("pad", x, width=1)
        x = d.add("stencil", x, form=d.one_of("cross", "edges", "dilate"))
    return x


def _reductions(d: Draft) -> Drawn:
    x = d.input(*(d.size(4, (4000, 700, 80, 30)[rank]) for rank in range(d.one_of(2, 3, 3, 4))))
    if d.dice.random() < 0.6:
        x = d.formula(d.one_of("square", "gauss", "affine", "log1p"), x)
    axes = sorted(d.dice.sample(range(x.rank), d.dice.randint(1, x.rank - 1)))
    is_kept = d.dice.random() < 0.4
    y = d.add("reduce", x, op=d.one_of("sum", "mean", "max", "min"), axes=tuple(axes),
              keepdims=is_kept)
    return d.formula(d.one_of("subtract", "divide", "maximum"), x, y) if is_kept else y


def _gathers(d: Draft) -> Drawn:
    rows = d.size(50, 20000)
    table = d.input(rows, d.size(8, 512))
    places = d.one_of((d.size(16, 2000),), (d.size(2, 16), d.size(8, 128)))
    x = d.add("rows", table, d.input(*places, dtype="int32", below=rows))
    if d.dice.random() < 0.5:
        x = d.formula("add", x, d.input(*x.shape[1:]))
    if d.dice.random() < 0.5:
        return d.add("norm", x, form=d.one_of("layer", "rms"))
    return d.add("reduce", x, op=d.one_of("sum", "mean", "max"), axes=(x.rank - 2,), keepdims=False)


def _scans(d: Draft) -> Drawn:
    x = d.input(d.size(16, 1000), d.size(16, 1000))
    if d.dice.random() < 0.5:
        x = d.formula(d.one_of("square", "gauss", "affine"), x)
    x = d.add("scan", x, op=d.one_of("sum", "sum", "max"), axis=d.one_of(0, 0, 1))
    return d.formula("affine", x)


def _softmaxes(d: Draft) -> Drawn:
    lead = d.one_of((), (d.size(2, 12),))
    x = d.input(*lead, d.size(16, 1000), d.size(8, 1000), scale=3.0)
    if d.dice.random() < 0.4:
        x = d.add("mask", x, form="causal")
    return d.add("softmax", x, axis=d.one_of(-1, -1, -1, x.rank - 2), form=d.one_of("plain", "log"))


def _broadcasts(d: Draft) -> Drawn:
    n, m = d.size(8, 1200), d.size(8, 1200)
    x = d.formula(d.one_of("add", "multiply", "maximum"), d.input(n, 1), d.input(m))
    for _ in range(d.dice.randint(1, 5)):
        name = d.one_of("add", "multiply", "subtract", "divide", "gate", "choose", "unary")
        if name == "unary":
            x = _unary(d, x)
            continue
        x = d.formula(name, x, d.input(*d.one_of((m,), (n, 1), (n, m), (1, m), (1,))))
    return x


def _moves(d: Draft) -> Drawn:
    a, b, c = d.size(4, 40), d.size(8, 160), d.size(8, 160)
    x = d.input(a, b, c)
    for _ in range(d.one_of(1, 2, 3)):
        kind = d.one_of("transpose", "reshape", "flip", "repeat", "halves", "unary")
        if kind == "transpose":
            x = d.add("transpose", x, axes=tuple(d.dice.sample(range(x.rank), x.rank)))
        elif kind == "reshape":
            first, *rest = x.shape
            shape = (first * rest[0], *rest[1:]) if x.rank > 2 else (first, *_halved(rest[0]))
            x = d.add("reshape", x, shape=shape)
        elif kind == "unary":
            x = _unary(d, x)
        elif kind == "flip":
            x = d.add("flip", x, axis=d.dice.randrange(x.rank))
        elif kind == "halves":
            x = d.add("halves", x, form=d.one_of("first", "odd"))
        else:
            x = d.add("repeat", x, count=2, axis=d.dice.randrange(x.rank))
    return d.formula("add", x, d.input(*x.shape[1:]))


def _halved(n: int) -> tuple[int, int]:
    return (n // 4, 4) if n % 4 == 0 else (1, n)


def _masks(d: Draft) -> Drawn:
    x = d.input(d.size(16, 900), d.size(16, 900))
    x = d.add("mask", x, form=d.one_of("causal", "band", "checks"))
    x = d.formula("choose", x, d.input(*x.shape))
    return d.add("reduce", d.formula("clip", x), op="sum", axes=(d.one_of(0, 1),), keepdims=False)


def _mixed(d: Draft) -> Drawn:
    dtype = d.one_of("int8", "uint8", "int32", "float16")
    n, m = d.size(16, 800), d.size(16, 800)
    x = d.add("cast", d.input(n, m, dtype=dtype, below=100), dtype="float32")
    x = d.formula("multiply", x, d.input(n, 1, scale=0.05))
    kind = d.one_of("round", "product", "sum")
    if kind == "round":
        half = d.add("cast", _unary(d, x), dtype="float16")
        return d.add("cast", half, dtype="float32")
    if kind == "product":
        return d.add("product", x, d.weights(m, d.size(16, 400), depth=m), letters="ik,kj->ij")
    return d.add("reduce", x, op=d.one_of("sum", "max"), axes=(d.one_of(0, 1),), keepdims=False)


def _contractions(d: Draft) -> Drawn:
    letters = d.one_of("ik,jk->ij", "ki,kj->ij", "bik,bkj->bij", "bik,kj->bij", "ik,k->i",
                       "k,kj->j", "ikl,klj->ij", "bik,bjk->bij", "ihd,hdn->in", "ik,khd->hid")
    first, second = letters.split("->")[0].split(",")
    short = {"b": (2, 16), "h": (2, 12), "l": (3, 24), "d": (16, 96)}
    sizes = {a: d.size(*short.get(a, (16, 400))) for a in sorted({*first, *second})}
    depth = prod(n for a, n in sizes.items() if a not in letters.split("->")[1])
    x = d.input(*(sizes[a] for a in first))
    x = d.add("product", x, d.weights(*(sizes[a] for a in second), depth=depth), letters=letters)
    return _unary(d, x)


BEGINNINGS: dict[str, Callable[[Draft], Drawn]] = {
    "perceptron": _perceptron, "attention": _attention, "norm": _norms,
    "convolution": _convolutions, "distance": _distances, "stencil": _stencils,
    "reduction": _reductions, "gather": _gathers, "scan": _scans, "softmax": _softmaxes,
    "broadcast": _broadcasts, "moves": _moves, "mask": _masks, "mixed": _mixed,
    "contraction": _contractions,
}


def _residual(d: Draft, x: Drawn) -> Drawn:
    return d.formula(d.one_of("add", "multiply", "gate", "choose"), x, d.input(*x.shape))


def _column(d: Draft, x: Drawn) -> Drawn:
    return d.formula(d.one_of("add", "multiply", "maximum", "divide"), x, d.input(x.shape[-1]))


def _reduced(d: Draft, x: Drawn) -> Drawn:
    axis = d.dice.randrange(x.rank)
    return d.add("reduce", x, op=d.one_of("sum", "mean", "max"), axes=(axis,), keepdims=False)


def _centred(d: Draft, x: Drawn) -> Drawn:
    axis = d.dice.randrange(x.rank)
    y = d.add("reduce", x, op=d.one_of("mean", "max"), axes=(axis,), keepdims=True)
    return d.formula("subtract", x, y)


def _projected(d: Draft, x: Drawn) -> Drawn:
    k, n = x.shape[-1], d.size(8, 512)
    letters = "ABCD"[: x.rank - 1]
    return d.add("product", x, d.weights(k, n, depth=k), letters=f"{letters}k,kn->{letters}n")


def _turned(d: Draft, x: Drawn) -> Drawn:
    *lead, a, b = range(x.rank)
    return d.add("transpose", x, axes=(*lead, b, a))


_NEXT: tuple[tuple[int, Callable[[Draft, Drawn], Drawn]], ...] = (
    (4, _unary), (3, _column), (2, _residual), (2, _reduced), (2, _centred), (1, _projected),
    (1, _turned), (1, lambda d, x: d.add("norm", x, form=d.one_of("layer", "rms"))),
    (1, lambda d, x: d.add("softmax", x, axis=-1, form="plain")),
    (1, lambda d, x: d.add("flip", x, axis=d.dice.randrange(x.rank))),
)


def draw(seed: int, kind: str, points: tuple[int, int] = _POINTS) -> Description:
    """Return a program of 2 to 12 stages with the given beginning and bounded iterations."""
    dice = Random(f"{kind} {seed}")
    while True:
        d = Draft(dice)
        x = BEGINNINGS[kind](d)
        for _ in range(dice.choice((0, 1, 1, 2, 3, 4))):
            if x.rank < 2 or min(x.shape) < 2 or in_te.stages(x.tensor) >= _STAGES - 3:
                break
            weights, steps = zip(*_NEXT, strict=True)
            (step,) = dice.choices(steps, weights)
            x = step(d, x)
        if _is_welcome(x, points):
            return d.description()


def _is_welcome(x: Drawn, points: tuple[int, int]) -> bool:
    """Return whether a program has 2 to 12 stages and a size within the limits."""
    results = [s.op.output(0) for s in te.create_schedule(x.tensor).stages if s.op.input_tensors]
    each = (
        prod(int(str(axis.extent)) for axis in (*y.op.axis, *y.op.reduce_axis)) for y in results
        if not accesses(y).is_scan
    )
    values = (prod(int(str(n)) for n in y.shape) for y in results)
    least, most = points
    return (
        2 <= len(results) <= _STAGES and least <= sum(each) <= most and max(values) <= _MOST_VALUES
    )
