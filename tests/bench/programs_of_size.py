"""Programs with any number of operations, of several kinds, for compile time measurements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tecomp import te

ROWS, COLUMNS = 32, 64


def chain(count: int) -> te.Tensor:
    """Return a chain of element-wise formulas."""
    value = te.placeholder((ROWS, COLUMNS), name="X")
    for number in range(count):
        value = te.compute(
            value.shape, lambda i, j, x=value: te.max(x[i, j] * 0.5 + 1.0, 0.0), name=f"v{number}"
        )
    return value


def alike(count: int) -> te.Tensor:
    """Return layers of equal structure: a product, a function of it, and a residual."""
    X = value = te.placeholder((COLUMNS, COLUMNS), name="X")
    for number in range(0, count, 3):
        product = _product(value, X, f"p{number}")
        result = te.compute(
            product.shape, lambda i, j, p=product: te.max(p[i, j], 0.0), name=f"f{number}"
        )
        value = te.compute(
            value.shape, lambda i, j, x=value, y=result: x[i, j] + y[i, j], name=f"r{number}"
        )
    return value


def different(count: int) -> te.Tensor:
    """Return products and functions of pairwise different shapes: a kernel for each pair."""
    value = te.placeholder((ROWS, 8), name="X")
    for number in range(0, count, 2):
        W = te.compute(
            (value.shape[1], 8 + number // 2 % 500), lambda k, j: te.cast(k + j, "float32"),
            name=f"w{number}",
        )
        value = _product(value, W, f"p{number}")
    return value


def _product(a: te.Tensor, b: te.Tensor, name: str) -> te.Tensor:
    k = te.reduce_axis((0, a.shape[1]), name="k")
    return te.compute(
        (a.shape[0], b.shape[1]), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name=name
    )


KINDS: Mapping[str, Callable[[int], te.Tensor]] = MappingProxyType(
    {"a chain of formulas": chain, "layers that are alike": alike, "kernels that all differ": different}
)
