"""Translate graphs of ATen operators to tensor expressions, and run the programs on tensors."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.node import Node, map_arg
from torch.fx.passes.fake_tensor_prop import FakeTensorProp

import tecomp
import tecomp.torch.elementwise
import tecomp.torch.layers
import tecomp.torch.views  # the three modules register translations
from tecomp import te, topi
from tecomp.driver import CompiledProgram
from tecomp.errors import TecompError
from tecomp.ir import DType
from tecomp.torch.operator_calls import (
    AtenCall,
    SymbolicSizes,
    UnsupportedError,
    dtype_of,
    translation_of,
)

Array: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True)
class Definitions:
    """Tensor expressions of a graph.

    Attributes:
        inputs: Placeholder of each input of the graph; None for inputs that are sizes.
        outputs: Tensor of each output; None for outputs without a value.
        constants: Values of placeholders that are attributes of the graph's module.
    """

    inputs: tuple[te.Tensor | None, ...]
    outputs: tuple[te.Tensor | None, ...]
    constants: Mapping[te.Tensor, torch.Tensor]

    @property
    def tensors(self) -> list[te.Tensor]:
        """Placeholders of the inputs that are tensors."""
        return [x for x in self.inputs if x is not None]


def reason_unsupported(node: Node) -> str | None:
    """Return why a node of a graph has no translation; None if it has one.

    A node whose translation requires constant sizes has one: its program is compiled for each
    combination of sizes.
    """
    reason = _reason(node, SymbolicSizes(is_open=True))
    has_hints = all(
        n.node.has_hint() for x in (node, *node.all_input_nodes) for n in _symbolic_sizes(x))
    if reason is None or not has_hints:
        return reason
    return _reason(node, SymbolicSizes(is_of_example=True))


def _symbolic_sizes(node: Node) -> list[torch.SymInt]:
    value = node.meta.get("val")
    values = value if isinstance(value, list | tuple) else [value]
    sizes = [n for x in values for n in (x.shape if isinstance(x, torch.Tensor) else [x])]
    return [n for n in sizes if isinstance(n, torch.SymInt)]


def _reason(node: Node, sizes: SymbolicSizes) -> str | None:
    try:
        _translate(node, {x: _placeholders(x, sizes) for x in node.all_input_nodes}, sizes)
    except UnsupportedError as error:
        return str(error)
    except TecompError as error:
        return str(error.message)
    except (TypeError, NotImplementedError) as error:  # arguments that a translation lacks
        return str(error)
    return None


def definitions_of(module: torch.fx.GraphModule) -> Definitions:
    """Translate a graph.

    Args:
        module: Graph of ATen operators with the values of PyTorch's shape propagation.

    Raises:
        UnsupportedError: If an operator or a size has no translation.
    """
    graph, sizes = module.graph, SymbolicSizes()
    nodes = [x for x in graph.nodes if x.op == "placeholder"]
    examples = [x.meta.get("val") for x in nodes]
    sizes.declare(n for x in examples if isinstance(x, torch.Tensor) for n in x.shape)
    values: dict[Node, Any] = {}
    constants: dict[te.Tensor, torch.Tensor] = {}
    outputs: Sequence[Any] = ()
    for node in graph.nodes:
        if node.op == "placeholder":
            is_tensor = isinstance(node.meta.get("val"), torch.Tensor)
            values[node] = _placeholders(node, sizes) if is_tensor else None
        elif node.op == "get_attr":
            attribute = getattr(module, node.target)
            tensor = te.placeholder(tuple(attribute.shape), dtype_of(attribute), name=node.name)
            constants[tensor] = attribute
            values[node] = tensor
        elif node.op == "output":
            outputs = node.args[0] if isinstance(node.args[0], list | tuple) else [node.args[0]]
        else:
            values[node] = _translate(node, values, sizes)
    inputs = tuple([values[x] for x in nodes])
    results: list[te.Tensor | None] = []
    for x in outputs:
        value = values[x] if isinstance(x, Node) else None
        is_repeated = value is not None and any(value is y for y in (*inputs, *results, *constants))
        results.append(topi.identity(value) if value is not None and is_repeated else value)
    return Definitions(inputs, tuple(results), constants)


def _placeholders(node: Node, sizes: SymbolicSizes) -> Any:
    """Return a placeholder for each tensor of a node's value."""
    def placeholder(value: Any, name: str) -> Any:
        if isinstance(value, list | tuple):
            return [placeholder(x, f"{name}_{k}") for k, x in enumerate(value)]
        if isinstance(value, torch.Tensor):
            return te.placeholder(sizes.shape(value), dtype_of(value), name=name)
        return sizes.size(value)

    return placeholder(node.meta.get("val"), node.name)


def _translate(node: Node, values: Mapping[Node, Any], sizes: SymbolicSizes) -> Any:
    """Return the value of a node."""
    found = node.meta.get("val")
    if isinstance(found, torch.SymInt | int) and not isinstance(found, bool):
        return sizes.size(found)
    if node.target is operator.getitem:
        source, number = node.args
        return values[source][number]
    function = translation_of(node.target)
    results = list(found) if isinstance(found, list | tuple) else [found]
    used = {x.args[1] for x in node.users if x.target is operator.getitem}
    call = AtenCall(
        str(node.target), map_arg(node.args, lambda x: x.meta.get("val")), results,
        frozenset(used), sizes)
    if not isinstance(results[0], torch.Tensor):
        raise UnsupportedError("the result is not a tensor")

    def value_of(argument: Any) -> Any:
        if isinstance(argument, Node):
            known = argument.meta.get("val")
            is_size = isinstance(known, torch.SymInt | int)
            return sizes.size(known) if is_size else values[argument]
        if isinstance(argument, list | tuple):
            return [value_of(x) for x in argument]
        return argument

    return function(
        call, *(value_of(x) for x in node.args),
        **{key: value_of(x) for key, x in node.kwargs.items()})


def array_of(tensor: torch.Tensor) -> Array:
    """Return a NumPy array that shares the memory of a contiguous tensor."""
    tensor = tensor.detach().contiguous()
    is_bfloat16 = tensor.dtype == torch.bfloat16
    found: Array = (tensor.view(torch.int16) if is_bfloat16 else tensor).numpy()
    return found.view(DType("bfloat16").numpy) if is_bfloat16 else found


def tensor_of(array: Array) -> torch.Tensor:
    """Return a tensor of PyTorch that shares the memory of an array."""
    if array.dtype == DType("bfloat16").numpy:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


class CompiledGraph(torch.nn.Module):
    """Program of a graph, called with tensors and sizes.

    The program has symbolic sizes if every part of it supports them, and is otherwise compiled for
    each combination of sizes.
    """

    def __init__(self, module: torch.fx.GraphModule, name: str = "program") -> None:
        super().__init__()
        self.module, self.name = module, name
        self.programs: dict[tuple[Any, ...], tuple[Definitions, CompiledProgram]] = {}
        self.is_open = True
        try:
            self.programs[()] = self._compiled(module)
        except (TecompError, UnsupportedError):
            if not any(map(_symbolic_sizes, module.graph.nodes)):
                raise
            self.is_open = False

    def _compiled(self, module: torch.fx.GraphModule) -> tuple[Definitions, CompiledProgram]:
        found = definitions_of(module)
        outputs = [x for x in found.outputs if x is not None]
        constants = {x: array_of(value) for x, value in found.constants.items()}
        program = tecomp.compile(outputs, found.tensors, constants=constants, name=self.name)
        return found, program

    def forward(self, *inputs: Any) -> Any:
        """Return the outputs of the graph: a tensor, or a tuple."""
        key: tuple[Any, ...] = () if self.is_open else tuple(
            [tuple(x.shape) if isinstance(x, torch.Tensor) else x for x in inputs])
        if key not in self.programs:
            self.programs[key] = self._compiled(_with_sizes_of(self.module, inputs))
        found, program = self.programs[key]
        arrays = [array_of(x) for x, y in zip(inputs, found.inputs, strict=True) if y is not None]
        results = program(*arrays)
        results = iter(results if isinstance(results, tuple) else (results,))
        outputs = tuple([None if x is None else tensor_of(next(results)) for x in found.outputs])
        return outputs[0] if len(outputs) == 1 else outputs


def _with_sizes_of(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> torch.fx.GraphModule:
    """Return a graph for the sizes of inputs."""
    found = torch.fx.GraphModule(module, torch.fx.Graph())
    found.graph.output(found.graph.graph_copy(module.graph, {}))
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        arguments = [
            mode.from_tensor(x, static_shapes=True) if isinstance(x, torch.Tensor) else x
            for x in inputs
        ]
        FakeTensorProp(found, mode).propagate_dont_convert_inputs(*arguments)
    return found
