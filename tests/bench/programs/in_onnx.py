"""Programs as ONNX models, for the steps of perceptrons and residual networks.

Images are channels-first inside, the preferred layout of the runtime.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from tests.bench.case import Array, NoFormError
from tests.bench.programs.describe import Description

_IMAGE = 4
"""Number of axes of an array of images."""


class _Graph:
    """Builder of ONNX nodes and initializers."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node, and return the name of its result."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, array: Array) -> str:
        """Add a constant, and return its name."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name


def model(program: Description, values: list[Array]) -> bytes:
    """Return a model whose inputs are the non-constant inputs of a program.

    Raises:
        NoFormError: If a step has no ONNX form here.
    """
    graph, inputs = _Graph(), []
    known: list[str | Array] = []
    for k, (source, array) in enumerate(zip(program.inputs, values, strict=True)):
        if source.is_constant:
            known.append(array)
            continue
        inputs.append(helper.make_tensor_value_info(f"in{k}", TensorProto.FLOAT, source.shape))
        known.append(_turned(graph, f"in{k}", len(source.shape), (0, 3, 1, 2)))
    for step in program.steps:
        make = _STEPS.get(step.options.get("name", step.kind))
        if make is None:
            raise NoFormError(f"it has no form of {step.kind} here")
        known.append(make(graph, *(known[k] for k in step.operands), **step.options))
    last = known[-1]
    assert isinstance(last, str)
    last = _turned(graph, last, len(program.inputs[0].shape), (0, 2, 3, 1))
    result = helper.make_tensor_value_info(last, TensorProto.FLOAT, None)
    created = helper.make_graph(graph.nodes, "program", inputs, [result], graph.constants)
    opset = [helper.make_opsetid("", 20)]
    text: bytes = helper.make_model(created, opset_imports=opset, ir_version=9).SerializeToString()
    return text


def _turned(graph: _Graph, name: str, rank: int, order: tuple[int, ...]) -> str:
    return graph.node("Transpose", name, perm=order) if rank == _IMAGE else name


def _conv2d(
    graph: _Graph, x: str, w: Array, *, stride: int, padding: int, groups: int
) -> str:
    weights = graph.constant(w.transpose(3, 2, 0, 1))
    return graph.node("Conv", x, weights, strides=[stride] * 2, pads=[padding] * 4, group=groups)


def _pool(
    graph: _Graph, x: str, *, op: str, window: int, stride: int, padding: int = 0
) -> str:
    kind = "MaxPool" if op == "max" else "AveragePool"
    return graph.node(
        kind, x, kernel_shape=[window] * 2, strides=[stride] * 2, pads=[padding] * 4)


def _product(graph: _Graph, x: str, w: Array, *, letters: str) -> str:
    if letters != "ik,kj->ij":
        raise NoFormError(f"it has no form of a product {letters} here")
    return graph.node("MatMul", x, graph.constant(w))


def _add(graph: _Graph, x: str, y: str | Array, *, name: str) -> str:
    """Add a bias per channel: along the last axis, or along axis 1 of images."""
    if isinstance(y, str):
        return graph.node("Add", x, y)
    is_image = any(node.op_type == "Conv" for node in graph.nodes)
    return graph.node("Add", x, graph.constant(y[:, None, None] if is_image else y))


_STEPS: dict[str, Callable[..., str]] = {
    "conv2d": _conv2d, "pool": _pool, "product": _product, "add": _add,
    "relu": lambda graph, x, *, name: graph.node("Relu", x),
}
