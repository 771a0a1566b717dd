"""Programs as descriptions: steps on numbered values, from which each library makes its own form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.bench.case import Array


@dataclass(frozen=True)
class Input:
    """What a caller gives.

    Attributes:
        shape: of the array.
        dtype: of its elements.
        scale: floats are uniform between this and its negative.
        below: integers are below it, and not negative.
        is_constant: whether they are known when it is compiled.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    scale: float = 1.0
    below: int = 100
    is_constant: bool = False

    def values(self, numbers: np.random.Generator) -> Array:
        """Some values."""
        if self.dtype.startswith("float"):
            return numbers.uniform(-self.scale, self.scale, self.shape).astype(self.dtype)
        return numbers.integers(0, self.below, self.shape).astype(self.dtype)


@dataclass(frozen=True)
class Step:
    """One operation.

    Attributes:
        kind: its name in `in_te.KINDS` and `in_arrays.KINDS`.
        operands: the numbers of values; inputs come first, then what steps make.
        options: what else it needs to know.
    """

    kind: str
    operands: tuple[int, ...]
    options: Mapping[str, Any]

    def __str__(self) -> str:
        """As in `product(0, 1, letters=ik,kj->ij)`."""
        options = (f"{name}={value}" for name, value in self.options.items())
        return f"{self.kind}({', '.join((*map(str, self.operands), *options))})"


@dataclass(frozen=True)
class Description:
    """A program; its result is what the last step makes."""

    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]

    @property
    def constants(self) -> list[int]:
        """The numbers of the inputs that are known when it is compiled."""
        return [k for k, x in enumerate(self.inputs) if x.is_constant]

    def __str__(self) -> str:
        """Inputs, then steps."""
        shapes = ", ".join(f"{x.dtype}{list(x.shape)}" for x in self.inputs)
        return f"{shapes}: {'; '.join(map(str, self.steps))}"

    def values(self) -> list[Array]:
        """Inputs, the same each time."""
        numbers = np.random.default_rng(20)
        return [x.values(numbers) for x in self.inputs]


@dataclass(frozen=True)
class Value:
    """An input, or what a step makes, by its number."""

    number: int
    is_input: bool


class Writer:
    """A program as it grows."""

    def __init__(self) -> None:
        self._inputs: list[Input] = []
        self._steps: list[tuple[str, tuple[Value, ...], dict[str, Any]]] = []

    def input(self, given: Input) -> Value:
        """One more input."""
        self._inputs.append(given)
        return Value(len(self._inputs) - 1, is_input=True)

    def add(self, kind: str, *operands: Value, **options: Any) -> Value:
        """One more step."""
        self._steps.append((kind, operands, options))
        return Value(len(self._steps) - 1, is_input=False)

    def description(self) -> Description:
        """The program as it is."""
        count = len(self._inputs)
        steps = tuple(
            Step(kind, tuple(x.number + (0 if x.is_input else count) for x in operands), options)
            for kind, operands, options in self._steps
        )
        return Description(tuple(self._inputs), steps)
