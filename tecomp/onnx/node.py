"""Nodes of ONNX graphs as operators see them, and the table of operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from tecomp import te
from tecomp.errors import ModelError

Array: TypeAlias = "np.ndarray[Any, Any]"
Value: TypeAlias = "te.Tensor | Array"
"""Value of a graph: a tensor to compute, or an array that is known when the model is loaded.

Arrays of objects hold sizes, some of which are symbolic.
"""


@dataclass
class Node:
    """Node of a graph.

    Attributes:
        kind: Operator.
        name: Name of the node; the name of its first output if it has none.
        inputs: Values of the inputs; None for optional inputs that are absent.
        attributes: Values of the attributes.
        outputs: Number of outputs.
        opset: Version of the operator set of the domain.
        constants: Arrays of the program's constants, by placeholder.
    """

    kind: str
    name: str
    inputs: Sequence[Value | None]
    attributes: Mapping[str, Any]
    outputs: int
    opset: int
    constants: dict[te.Tensor, Array] = field(default_factory=dict)

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return the value of an attribute."""
        return self.attributes.get(name, default)

    def has(self, position: int) -> bool:
        """Return whether an optional input is present."""
        return position < len(self.inputs) and self.inputs[position] is not None

    def tensor(self, position: int) -> te.Tensor:
        """Return an input as a tensor; a known array becomes a constant of the program.

        Raises:
            ModelError: If the input is absent, or contains symbolic sizes.
        """
        value = self.inputs[position] if position < len(self.inputs) else None
        if value is None:
            raise self.error("the input {position} is missing", position=position)
        if not isinstance(value, np.ndarray):
            return value
        if value.dtype == object:
            raise self.error("the input {position} has symbolic sizes", position=position)
        name = f"{self.name}_{position}"
        tensor = te.placeholder(value.shape, str(value.dtype), name=name)
        self.constants[tensor] = value
        return tensor

    def tensors(self) -> list[te.Tensor]:
        """Return all inputs as tensors."""
        return [self.tensor(k) for k in range(len(self.inputs))]

    def known(self, position: int) -> Array:
        """Return the array of an input that must be known when the model is loaded.

        Raises:
            ModelError: If the input is computed.
        """
        value = self.inputs[position]
        if not isinstance(value, np.ndarray):
            raise self.error(
                "the input {position} decides a shape, but depends on data", position=position)
        return value

    def numbers(self, position: int, default: Any = None) -> Any:
        """Return the elements of a known input as a list, or the default if it is absent."""
        return self.known(position).reshape(-1).tolist() if self.has(position) else default

    def axes(self, position: int = 1) -> list[int] | None:
        """Return the axes, which older operator sets have as an attribute."""
        found = self.attribute("axes")
        return list(found) if found is not None else self.numbers(position)

    def error(self, problem: str, **parameters: object) -> ModelError:
        """Return an error that names the node."""
        return ModelError(
            "onnx: node {node} ({operator}): {problem}", kind="unsupported-node", node=self.name,
            operator=self.kind, problem=problem.format(**parameters),
        )


Operator: TypeAlias = Callable[[Node], "Value | Sequence[Value]"]

OPERATORS: dict[str, Operator] = {}
"""Functions of nodes, by operator of the domain `ai.onnx`."""


def operator(*names: str) -> Callable[[Operator], Operator]:
    """Register a function as the definition of operators."""
    def register(function: Operator) -> Operator:
        OPERATORS.update(dict.fromkeys(names, function))
        return function

    return register
