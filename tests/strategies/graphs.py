"""Random programs of many operations with their NumPy results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tecomp import te

Array = np.ndarray[Any, Any]


@dataclass
class Drawn:
    """Builder of a random program.

    Attributes:
        rng: Random number generator.
        values: All tensors so far with their values in float64.
        inputs: Placeholders with their arrays.
    """

    rng: np.random.Generator
    values: dict[te.Tensor, Array] = field(default_factory=dict)
    inputs: dict[te.Tensor, Array] = field(default_factory=dict)

    def place(self, *shape: int) -> te.Tensor:
        """Add an input."""
        tensor = te.placeholder(shape, name=f"A{len(self.inputs)}")
        self.inputs[tensor] = self.rng.uniform(-1, 1, shape).astype("float32")
        self.values[tensor] = self.inputs[tensor].astype("float64")
        return tensor

    def matrix(self) -> te.Tensor:
        """Draw a tensor with two axes."""
        found = [x for x in self.values if x.ndim == 2]
        return found[self.rng.integers(len(found))]

    def put(self, tensor: te.Tensor, value: Array) -> te.Tensor:
        """Add an operation with its value."""
        self.values[tensor] = value
        return tensor


def _name(d: Drawn, word: str) -> str:
    return f"{word}{len(d.values)}"


def _map(d: Drawn) -> te.Tensor:
    x = d.matrix()
    number = int(d.rng.integers(4))
    te_kinds: list[Callable[[te.Expr], te.Expr]] = [
        lambda v: te.max(v, 0.0), te.tanh, lambda v: v * 0.5 + 0.25, lambda v: -v,
    ]
    np_kinds: list[Callable[[Array], Array]] = [
        lambda v: np.maximum(v, 0), np.tanh, lambda v: v * 0.5 + 0.25, lambda v: -v,
    ]
    result = te.compute(x.shape, lambda i, j: te_kinds[number](x[i, j]), name=_name(d, "map"))
    return d.put(result, np_kinds[number](d.values[x]))


def _both(d: Drawn) -> te.Tensor:
    x = d.matrix()
    others = [y for y in d.values if y.shape == x.shape]
    y = others[d.rng.integers(len(others))]
    result = te.compute(x.shape, lambda i, j: x[i, j] - y[i, j] * 0.5, name=_name(d, "both"))
    return d.put(result, d.values[x] - d.values[y] * 0.5)


def _product(d: Drawn) -> te.Tensor:
    x = d.matrix()
    depth = int(x.shape[1])
    others = [y for y in d.values if y.ndim == 2 and y.shape[0] == depth]
    y = others[d.rng.integers(len(others))] if others else d.place(depth, int(d.rng.integers(1, 9)))
    k = te.reduce_axis((0, depth), name="k")
    result = te.compute(
        (x.shape[0], y.shape[1]), lambda i, j: te.sum(x[i, k] * y[k, j], axis=k),
        name=_name(d, "product"),
    )
    return d.put(result, d.values[x] @ d.values[y])


def _transposed(d: Drawn) -> te.Tensor:
    x = d.matrix()
    result = te.compute((x.shape[1], x.shape[0]), lambda i, j: x[j, i], name=_name(d, "transposed"))
    return d.put(result, d.values[x].T)


def _scaled_rows(d: Drawn) -> te.Tensor:
    """Subtract from each row its maximum or its mean."""
    x = d.matrix()
    k = te.reduce_axis((0, x.shape[1]), name="k")
    is_max, count = bool(d.rng.integers(2)), int(x.shape[1])
    reduce = te.max if is_max else te.sum
    most = te.compute((x.shape[0],), lambda i: reduce(x[i, k], axis=k), name=_name(d, "row"))
    value = d.values[x]
    d.put(most, value.max(1) if is_max else value.sum(1))
    factor = 1.0 if is_max else 1.0 / count
    result = te.compute(x.shape, lambda i, j: x[i, j] - most[i] * factor, name=_name(d, "less"))
    return d.put(result, value - d.values[most][:, None] * factor)


def _columns(d: Drawn) -> te.Tensor:
    x = d.matrix()
    k = te.reduce_axis((0, x.shape[0]), name="k")
    result = te.compute((1, x.shape[1]), lambda i, j: te.sum(x[k, j], axis=k), name=_name(d, "columns"))
    return d.put(result, d.values[x].sum(0, keepdims=True))


STEPS = (_map, _map, _both, _both, _product, _transposed, _scaled_rows, _columns)


@dataclass(frozen=True)
class RandomProgram:
    """Random program with inputs and expected outputs.

    Attributes:
        inputs: Arrays of the placeholders.
        outputs: NumPy result of each output.
    """

    inputs: Mapping[te.Tensor, Array]
    outputs: Mapping[te.Tensor, Array]


def draw_program(seed: int, steps: int) -> RandomProgram:
    """Draw operations on small matrices; the last, and sometimes another one, is an output."""
    d = Drawn(np.random.default_rng(seed))
    d.place(*map(int, d.rng.integers(1, 9, 2)))
    for _ in range(steps):
        last = STEPS[d.rng.integers(len(STEPS))](d)
    outputs = {last: d.values[last]}
    computed = [x for x in d.values if x not in d.inputs]
    if d.rng.integers(3) == 0:
        other = computed[d.rng.integers(len(computed))]
        outputs[other] = d.values[other]
    return RandomProgram(d.inputs, outputs)
