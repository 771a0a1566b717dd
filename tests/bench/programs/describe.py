"""Library-independent program descriptions: steps on numbered values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.bench.case import Array


@dataclass(frozen=True)
class Input:
    """Input of a program.

    Attributes:
        shape: Shape of the array.
        dtype: Dtype of the array.
        scale: Floats are uniform in [-scale, scale].
        below: Integers are in [0, below).
        is_constant: If True, the values are known at compile time.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    scale: float = 1.0
    below: int = 100
    is_constant: bool = False

    def values(self, numbers: np.random.Generator) -> Array:
        """Return values drawn from the distribution of the input."""
        if self.dtype.startswith("float"):
            return numbers.uniform(-self.scale, self.scale, self.shape).astype(self.dtype)
        return numbers.integers(0, self.below, self.shape).astype(self.dtype)


@dataclass(frozen=True)
class Step:
    """Operation of a program.

    Attributes:
        kind: Key in `in_te.KINDS` and `in_arrays.KINDS`.
        operands: Numbers of values; inputs come first, then results of steps.
        options: Further parameters.
    """

    kind: str
    operands: tuple[int, ...]
    options: Mapping[str, Any]

    def __str__(self) -> str:
        """Return text such as `product(0, 1, letters=ik,kj->ij)`."""
        options = (f"{name}={value}" for name, value in self.options.items())
        return f"{self.kind}({', '.join((*map(str, self.operands), *options))})"


@dataclass(frozen=True)
class Description:
    """Program whose result is the result of the last step."""

    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]

    @property
    def constants(self) -> list[int]:
        """Return the numbers of the inputs that are known at compile time."""
        return [k for k, x in enumerate(self.inputs) if x.is_constant]

    def __str__(self) -> str:
        """Return the text of inputs and steps."""
        shapes = ", ".join(f"{x.dtype}{list(x.shape)}" for x in self.inputs)
        return f"{shapes}: {'; '.join(map(str, self.steps))}"

    def values(self) -> list[Array]:
        """Return the values of the inputs, equal in each call."""
        numbers = np.random.default_rng(20)
        return [x.values(numbers) for x in self.inputs]


@dataclass(frozen=True)
class Value:
    """Input or step result, by number."""

    number: int
    is_input: bool


class Writer:
    """Builder of program descriptions."""

    def __init__(self) -> None:
        self._inputs: list[Input] = []
        self._steps: list[tuple[str, tuple[Value, ...], dict[str, Any]]] = []

    def input(self, argument: Input) -> Value:
        """Add an input."""
        self._inputs.append(argument)
        return Value(len(self._inputs) - 1, is_input=True)

    def add(self, kind: str, *operands: Value, **options: Any) -> Value:
        """Add a step."""
        self._steps.append((kind, operands, options))
        return Value(len(self._steps) - 1, is_input=False)

    def description(self) -> Description:
        """Return the description of the program."""
        count = len(self._inputs)
        steps = tuple(
            Step(kind, tuple(x.number + (0 if x.is_input else count) for x in operands), options)
            for kind, operands, options in self._steps
        )
        return Description(tuple(self._inputs), steps)
