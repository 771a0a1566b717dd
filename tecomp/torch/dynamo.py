"""Backend of `torch.compile`: compile the parts of a graph that have a translation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from tecomp.torch.graphs import CompiledGraph, reason_unsupported
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
