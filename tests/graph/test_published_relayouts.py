"""Relayout counts of a published planner for sticks: all of its cases.

Source: torch-spyre, tests of its planner, which count the elements of each copy per reader. Here a
copy with two readers is made once, so the sum is smaller than the published one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from tecomp import StickFormat, StickLayout, Target, te
from tecomp.errors import LayoutError
from tecomp.graph import ProgramLayouts, choose_layouts, graph_of
from tests.messages import Diagnostic, diagnostic

STICK = Target.load("stick128")
S, T = 128, 64


def t(x: te.Tensor, first: int = 0, second: int = 1) -> te.Tensor:
    """Exchange two axes."""
    dims = list(range(len(x.shape)))
    dims[first], dims[second] = dims[second], dims[first]
    shape = [x.shape[dim] for dim in dims]
    back = [dims.index(dim) for dim in range(len(dims))]
    result = te.compute(shape, lambda *i: x[tuple(i[k] for k in back)], name="t")
    assert isinstance(result, te.Tensor)
    return result


def add(*terms: te.Tensor) -> te.Tensor:
    """Add terms from left to right; missing axes and axes of extent 1 are broadcast."""
    total, *others = terms
    for x in others:
        total = _sum(total, x)
    return total


def _sum(a: te.Tensor, b: te.Tensor) -> te.Tensor:
    rank = max(len(a.shape), len(b.shape))
    shapes = [(1,) * (rank - len(x.shape)) + tuple(x.shape) for x in (a, b)]
    shape = [y if x == 1 else x for x, y in zip(*shapes, strict=True)]

    def element(x: te.Tensor, i: tuple[te.Expr, ...]) -> te.Expr:
        indices = i[rank - len(x.shape) :]
        return x[tuple(0 if n == 1 else k for k, n in zip(indices, x.shape, strict=True))]

    result = te.compute(shape, lambda *i: element(a, i) + element(b, i), name="sum")
    assert isinstance(result, te.Tensor)
    return result


def mm(a: te.Tensor, b: te.Tensor) -> te.Tensor:
    *batch, rows, depth = a.shape
    k = te.reduce_axis((0, depth), name="k")
    result = te.compute(
        (*batch, rows, b.shape[-1]),
        lambda *i: te.sum(a[(*i[:-1], k)] * b[(*i[:-2], k, i[-1])], axis=k), name="mm",
    )
    assert isinstance(result, te.Tensor)
    return result


def along(x: te.Tensor, dim: int, reduce: Callable[..., te.Expr] = te.min) -> te.Tensor:
    k = te.reduce_axis((0, x.shape[dim]), name="k")
    shape = [extent for d, extent in enumerate(x.shape) if d != dim % len(x.shape)]

    def element(*i: te.Expr) -> te.Expr:
        at = dim % len(x.shape)
        return reduce(x[(*i[:at], k, *i[at:])], axis=k)

    result = te.compute(shape, element, name="along")
    assert isinstance(result, te.Tensor)
    return result


def full(*shape: int) -> te.Tensor:
    result = te.compute(shape, lambda *i: te.const(1.0, "float16"), name="full")
    assert isinstance(result, te.Tensor)
    return result


def unsqueezed(x: te.Tensor, dim: int, extent: int = 1) -> te.Tensor:
    """Insert an axis along which the tensor is broadcast."""
    at = dim % (len(x.shape) + 1)
    shape = (*x.shape[:at], extent, *x.shape[at:])
    result = te.compute(shape, lambda *i: x[(*i[:at], *i[at + 1 :])], name="unsqueezed")
    assert isinstance(result, te.Tensor)
    return result


@dataclass
class Inputs:
    """Placeholders by name: `x.A` has shape (128, 128) unless the first use passes a shape."""

    made: dict[str, te.Tensor] = field(default_factory=dict)

    def __call__(self, name: str, *shape: int) -> te.Tensor:
        if name not in self.made:
            self.made[name] = te.placeholder(shape or (S, S), "float16", name=name)
        return self.made[name]


Case = tuple[Callable[[Inputs], te.Tensor], int]


def two(first: str, n: int, m: int) -> Case:
    """Return a maker of two-term sums; lower-case names are (n, m), upper-case names (m, n)."""

    def make(i: Inputs) -> te.Tensor:
        return add(*(
            (t if name.endswith("'") else lambda x: x)(
                i(name[0], *((n, m) if name[0].islower() else (m, n))))
            for name in first.split()
        ))

    return make, n * m


def sums(text: str, *, copies: int) -> dict[str, Case]:
    small = ((256, 128), (128, 128))
    return {
        f"{' + '.join(text.split())}, {n} by {m}": (two(text, n, m)[0], copies * n * m)
        for n, m in small
    }


PAIRS = ((256, 128), (128, 256), (128, 128), (64, 128), (128, 64))
CASES: dict[str, Case] = {
    f"{' + '.join(text.split())}, {n} by {m}": two(text, n, m)
    for text in ("a' X", "X a'", "X' a", "a X'") for n, m in PAIRS
}
for text, copies in (
    ("a' b' X", 1), ("a' X b'", 1), ("X a' b'", 1), ("a' X Y", 1), ("a' b' X Y", 1),
    ("a' X b' Y", 2), ("X a' Y b'", 2), ("a' X Y b'", 2), ("a' X Y Z", 1), ("X a' Y Z", 1),
    ("X Y a' Z", 1), ("X Y Z a'", 1),
):  # fmt: skip
    CASES |= sums(text, copies=copies)


def product_of(first: str, second: str, n: int, m: int) -> Case:
    """Return a product of (n, m) or (m, n) operands; `'` marks a transposed operand."""

    def operand(i: Inputs, name: str, shape: tuple[int, int]) -> te.Tensor:
        return t(i(name[0], *shape[::-1])) if name.endswith("'") else i(name, *shape)

    rows, depth = (m, n) if first.endswith("'") else (n, m)
    columns = rows

    def make(i: Inputs) -> te.Tensor:
        return mm(operand(i, first, (rows, depth)), operand(i, second, (depth, columns)))

    return make, (first + second).count("'") * n * m


for n, m in ((128, 256), (64, 128)):
    CASES |= {
        f"{first} @ {second}, {n} by {m}": product_of(first, second, n, m)
        for first in ("x", "x'") for second in ("y", "y'")
    }


def outer_difference(m: int, n: int) -> Case:
    """Return `x.unsqueeze(-1) - x.unsqueeze(-2)`, with either term expanded."""

    def make(i: Inputs) -> te.Tensor:
        x = i("x", T, T)
        return add(unsqueezed(x, -1, m), unsqueezed(x, -2, n))

    return make, 2 * T * T


def fan_out(i: Inputs) -> te.Tensor:
    x = add(i("a"), t(i("b")))
    return add(add(x, i("c")), add(x, t(i("d"))))


def diamond(i: Inputs) -> te.Tensor:
    x = add(i("a"), t(i("b")))
    return add(x, x)


def two_readers(i: Inputs) -> te.Tensor:
    x = full(S, S)
    return add(add(x, i("a")), add(x, t(i("b"))))


def both_live(i: Inputs) -> te.Tensor:
    return add(along(full(1, 32, 128, 256), -1, te.max), along(i("u", 1, 32, 128, 256), -1, te.max))


def of_four(i: Inputs, *names: str) -> list[te.Tensor]:
    return [i(name, T, T, T, T) for name in names]


def majority(i: Inputs) -> te.Tensor:
    a, b, c, d = of_four(i, *"abcd")
    return add(t(a, 0, 3), t(b, 0, 3), t(c, 0, 3), d)


def mixed(i: Inputs) -> te.Tensor:
    a, b, c, d = of_four(i, *"abcd")
    return add(t(a, 0, 3), t(b, 1, 3), t(c, 2, 3), d)


def one_of_four(i: Inputs) -> te.Tensor:
    a, b, c, d = of_four(i, *"abcd")
    return add(t(a, 0, 3), b, c, d)


def chain_of_four(i: Inputs) -> te.Tensor:
    a, b, c = of_four(i, *"abc")
    return add(t(add(t(a, 2, 3), b), 2, 3), c)


CASES |= {
    "x @ x', 32 by 2 by 128": (
        lambda i: mm(i("x", 32, 2, 128), t(i("x", 32, 2, 128), 1, 2)), 32 * 2 * 128),
    "((a + b) + (c' + d)) + (e + f)": (
        lambda i: add(add(add(i("a"), i("b")), add(t(i("c")), i("d"))), add(i("e"), i("f"))),
        S * S),
    "(a + b' + c' + d') @ e": (
        lambda i: mm(add(i("a"), t(i("b")), t(i("c")), t(i("d"))), i("e")), 2 * S * S),
    "a @ (b + c')": (lambda i: mm(i("a"), add(i("b"), t(i("c")))), S * S),
    "a @ (b + c' + d' + e')": (
        lambda i: mm(i("a"), add(i("b"), t(i("c")), t(i("d")), t(i("e")))), 2 * S * S),
    "a' @ (b + c')": (lambda i: mm(t(i("a")), add(i("b"), t(i("c")))), 2 * S * S),
    "(a @ b) + c'": (lambda i: add(mm(i("a"), i("b")), t(i("c"))), S * S),
    "(a @ b) + c' + d'": (lambda i: add(mm(i("a"), i("b")), t(i("c")), t(i("d"))), S * S),
    "(a @ b) @ c": (lambda i: mm(mm(i("a"), i("b")), i("c")), 0),
    "(a + b') + (e' + f' + g)": (
        lambda i: add(add(i("a"), t(i("b"))), add(t(i("e")), t(i("f")), i("g"))), 2 * S * S),
    "x = a + b'; (x + c) + (x + d')": (fan_out, 2 * S * S),
    "x = a + b'; x + x": (diamond, S * S),
    "a' @ b, 64 by 128 and 64 by 192": (
        lambda i: mm(t(i("a", 64, 128)), i("b", 64, 192)), 64 * 128),
    "(a + b').sum(0) + c": (
        lambda i: add(along(add(i("a"), t(i("b"))), 0, te.sum), i("c", S)), S * S),
    "(a' + b)' + c": (lambda i: add(t(add(t(i("a")), i("b"))), i("c")), S * S),
    "a.transpose(0, 3) + b + c + d": (one_of_four, T**4),
    "a.transpose(0, 3) + b.transpose(1, 3) + c.transpose(2, 3) + d": (mixed, 3 * T**4),
    "a.transpose(0, 3) + b.transpose(0, 3) + c.transpose(0, 3) + d": (majority, T**4),
    "(a.transpose(2, 3) + b).transpose(2, 3) + c": (chain_of_four, T**4),
    "(a' @ b) + (c @ d')": (
        lambda i: add(mm(t(i("a")), i("b")), mm(i("c"), t(i("d")))), 2 * S * S),
    "(a + b') @ (c + d')": (
        lambda i: mm(add(i("a"), t(i("b"))), add(i("c"), t(i("d")))), 2 * S * S),
    "ones + x' + y": (lambda i: add(full(S, S), t(i("x")), i("y")), S * S),
    "ones @ y": (lambda i: mm(full(S, S), i("y")), 0),
    "z = zeros; (z + a) + (z + b')": (two_readers, S * S),
    "maximum(full.amax(-1), t.amax(-1))": (both_live, 0),
    "a.amin(-1) + b": (lambda i: add(along(i("a"), -1), i("b")), S * S),
    "a.amin(-1) + b, of three": (
        lambda i: add(along(i("a", S, S, S), -1), i("b", S, S, S)), S**3),
    "a + b, a row": (lambda i: add(i("a", S), i("b")), 0),
    "a + b, a matrix and a stack": (lambda i: add(i("a"), i("b", S, S, S)), 0),
    "a.unsqueeze(-1) + b": (lambda i: add(unsqueezed(i("a", S), -1), i("b")), S * S),
    "a.unsqueeze(-1).expand(S, S) + b": (
        lambda i: add(unsqueezed(i("a", S), -1, S), i("b")), S * S),
    **{
        f"x.unsqueeze(-1){first} - x.unsqueeze(-2){second}": outer_difference(m, n)
        for first, m in (("", 1), (".expand", T)) for second, n in (("", 1), (".expand", T))
    },
}  # fmt: skip

ACROSS = {"b": StickLayout((S, S), "float16", [1, 0])}
GIVEN: dict[str, tuple[Callable[[Inputs], te.Tensor], Mapping[str, StickLayout], int]] = {
    "a.amin(-1) + b, b in sticks of dimension 0": (
        lambda i: add(along(i("a"), -1), i("b")), ACROSS, 0),
    "a.unsqueeze(-1) + b, b in sticks of dimension 0": (
        lambda i: add(unsqueezed(i("a", S), -1), i("b")), ACROSS, 0),
    "a.unsqueeze(-1).expand(S, S) + b, b in sticks of dimension 0": (
        lambda i: add(unsqueezed(i("a", S), -1, S), i("b")), ACROSS, 0),
}  # fmt: skip


def counted(found: ProgramLayouts) -> int:
    """Return the number of relayout elements, counted once per reader."""
    return sum(copy.elements * len(copy.readers) for copy in found.relayouts)


@pytest.mark.exhaustive(keep=6)
@pytest.mark.parametrize("name", CASES)
def test_published_costs(name: str) -> None:
    make, cost = CASES[name]
    inputs = Inputs()
    output = make(inputs)
    found = choose_layouts(graph_of([output], list(inputs.made.values()), []), STICK)

    assert counted(found) == cost
    assert found.certificate.cost == found.certificate.lower_bound <= cost
    assert "exact" in found.certificate.method


@pytest.mark.parametrize("name", GIVEN)
def test_published_costs_of_explicit_layouts(name: str) -> None:
    make, known, cost = GIVEN[name]
    inputs = Inputs()
    output = make(inputs)
    graph = graph_of([output], list(inputs.made.values()), [])
    found = choose_layouts(graph, STICK, {inputs(key): layout for key, layout in known.items()})

    assert counted(found) == found.certificate.cost == cost


def test_a_result_without_relayout() -> None:
    """A value of another program keeps its default layout: `sin(x) + y'` needs one relayout."""
    x, y = (te.placeholder((S, S), "float16", name=name) for name in "xy")
    result = te.compute((S, S), lambda i, j: te.sin(x[i, j]), name="made")
    found = choose_layouts(graph_of([add(result, t(y))], [x, y], []), STICK, {result: "default"})

    assert counted(found) == found.certificate.cost == S * S


def test_sparse_and_dense() -> None:
    """Sparse plus dense operands are infeasible: no mechanism gathers or scatters sticks."""
    m, b = (te.placeholder((S, S), "float16", name=name) for name in "mb")
    sparse = StickLayout((S, S), "float16", [0, 1], StickFormat.Sparse)
    with pytest.raises(LayoutError) as error:
        choose_layouts(graph_of([add(m, b)], [m, b], []), STICK, {m: sparse, b: "default"})

    assert diagnostic(error.value) == Diagnostic(
        "layout-requirement", operation="sum", target="stick128",
        problems="sum: its elements at (i0=0, i1=0) and (i0=0, i1=1) are at [0, 0, 0] and [0, 0, 1], "
                 "and those of m that they read at [0, 0, 0] and [1, 0, 0], which are neither the "
                 "next lane of one stick, at one offset in all sticks, nor one element (rule "
                 "lane_access of elementwise: torch-spyre: pointwise operations, one stick variable "
                 "for all operands that have one)",
        reads="m, b",
    )
