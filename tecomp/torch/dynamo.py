"""Programs of PyTorch: the backend of `torch.compile`, and programs of `torch.export`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

import tecomp
from tecomp.driver import CompiledProgram
from tecomp.errors import ModelError
from tecomp.torch.graphs import Array, CompiledGraph, array_of, definitions_of, reason_unsupported
from tecomp.torch.operator_calls import decompositions


class UnsupportedOperatorWarning(UserWarning):
    """Warning that operators of a module run in PyTorch's eager mode."""


def backend(
    module: torch.fx.GraphModule, example_inputs: Sequence[Any], **options: Any
) -> Callable[..., Any]:
    """Compile a graph that `torch.compile(..., backend="tecomp")` captured.

    Parameters are read where PyTorch stores them. Operators without a translation run in eager
    mode between programs, and one warning names them. Derivatives are graphs of the same
    operators, so training works too.

    Args:
        module: Graph of PyTorch operators.
        example_inputs: Inputs of the first call.
        options: Options of `torch.compile`. None is defined.

    >>> import torch
    >>> double = torch.compile(lambda x: 2 * torch.relu(x), backend="tecomp")
    >>> double(torch.tensor([-1.0, 3.0]))
    tensor([0., 6.])
    """
    compiled: Callable[..., Any] = aot_autograd(
        fw_compiler=_compile, bw_compiler=_compile, decompositions=decompositions(),
    )(module, example_inputs)
    return compiled


class _Support(OperatorSupportBase):
    """Record of the nodes that have a translation.

    Attributes:
        reasons: Reason of each operator that has none.
    """

    def __init__(self) -> None:
        self.reasons: dict[str, str] = {}

    def is_node_supported(self, submodules: Any, node: torch.fx.Node) -> bool:
        """Return whether a node can be part of a program."""
        is_tensor = isinstance(node.meta.get("val"), torch.Tensor | list | tuple)
        if node.op != "call_function" or not is_tensor:
            return False  # numbers between operators, which Python computes
        reason = reason_unsupported(node)
        if reason is not None:
            self.reasons.setdefault(str(node.target), reason)
        return reason is None


def _compile(module: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """Return a function that computes a graph of ATen operators."""
    support = _Support()
    partitioner = CapabilityBasedPartitioner(
        module, support, allows_single_node_partition=True)
    fused = partitioner.partition_and_fuse(prefix="tecomp_program_")
    if support.reasons:
        names = "; ".join(f"{name} ({reason})" for name, reason in support.reasons.items())
        warnings.warn(
            f"torch.compile: these operators run in eager mode: {names}",
            UnsupportedOperatorWarning, stacklevel=2)
    for name, part in list(fused.named_children()):
        if name.startswith("tecomp_program_"):
            setattr(fused, name, CompiledGraph(part, name))
    fused.recompile()

    def run(inputs: list[Any]) -> Any:
        arguments = [*inputs]
        inputs.clear()  # the caller's list would keep the inputs alive
        return fused(*arguments)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


class ExportedModel:
    """Compiled program of a model.

    Attributes:
        inputs: Names of the inputs.
        outputs: Names of the outputs.
        program: Compiled program.
    """

    def __init__(
        self, inputs: tuple[str, ...], outputs: tuple[str, ...], program: CompiledProgram
    ) -> None:
        self.inputs, self.outputs, self.program = inputs, outputs, program

    def __call__(self, *inputs: Any) -> Array | tuple[Array, ...]:
        """Return the outputs as arrays.

        Args:
            inputs: Tensors of PyTorch or arrays, in order.

        Raises:
            CallError: If an array does not fit its input.
        """
        found: Array | tuple[Array, ...] = self.program(
            *(array_of(x) if isinstance(x, torch.Tensor) else x for x in inputs))
        return found

    def __repr__(self) -> str:
        return f"<ExportedModel ({', '.join(self.inputs)}) -> {', '.join(self.outputs)}>"


def load(exported: Any, target: str | tecomp.Target = "cpu") -> ExportedModel:
    """Compile a program of `torch.export`.

    Parameters and buffers are constants of the program. Dynamic dimensions stay symbolic.

    Args:
        exported: `torch.export.ExportedProgram`.
        target: Target. Targets with device layouts require constant sizes.

    Raises:
        ModelError: If the argument is not an exported program, changes its buffers or inputs, or
            contains operators that are not supported; the error lists all of these.

    >>> import torch
    >>> exported = torch.export.export(torch.nn.Linear(3, 2), (torch.ones(4, 3),))
    >>> load(exported)(torch.ones(4, 3)).shape
    (4, 2)
    """
    if not isinstance(exported, torch.export.ExportedProgram):
        raise ModelError(
            "torch.load: expected a torch.export.ExportedProgram, got {kind_name}; call "
            "torch.export.export(module, arguments) first",
            kind="model", kind_name=type(exported).__name__,
        )
    exported = exported.run_decompositions(decompositions())
    signature = exported.graph_signature
    problems = [
        f"{node.name} ({node.target}): {reason}" for node in exported.graph.nodes
        if node.op == "call_function" and not isinstance(node.meta.get("val"), torch.SymInt)
        and (reason := reason_unsupported(node)) is not None
    ]
    changed = [*signature.buffers_to_mutate.values(), *signature.user_inputs_to_mutate.values()]
    problems += [f"{name}: the program changes this tensor" for name in changed]
    if problems:
        raise ModelError(
            "torch.load: {count} nodes are not supported:\n{problems}", kind="unsupported-node",
            count=len(problems), problems="\n".join(f"  {text}" for text in problems),
        )
    found = definitions_of(exported.graph_module)
    tensors = {**exported.state_dict, **exported.constants}
    sources = (
        signature.inputs_to_parameters | signature.inputs_to_buffers
        | signature.inputs_to_lifted_tensor_constants)
    names = [x.name for x in exported.graph.nodes if x.op == "placeholder"]
    constants = {x: array_of(value) for x, value in found.constants.items()}
    inputs: dict[str, Any] = {}
    for name, tensor in zip(names, found.inputs, strict=True):
        if tensor is not None and name in sources:
            constants[tensor] = array_of(tensors[sources[name]])
        elif tensor is not None:
            inputs[name] = tensor
    outputs = [x for x in found.outputs if x is not None]
    program = tecomp.compile(outputs, list(inputs.values()), target, constants=constants)
    return ExportedModel(tuple(inputs), tuple(map(str, signature.user_outputs)), program)
