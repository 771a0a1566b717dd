"""What `tecomp.compile` is asked for, with everything about it that needs no graph checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tecomp.compute.tensor import Tensor
from tecomp.errors import CallError, DefinitionError, TargetError
from tecomp.ir.language.given import check_kind, check_list
from tecomp.machine.descriptor import Target

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """What `tecomp.compile` was asked for.

    Attributes:
        outputs: what is computed.
        inputs: what the caller passes.
        target: the machine.
        constants: what is the same in every call.
        name: of the program.
    """

    outputs: tuple[Tensor, ...]
    inputs: tuple[Tensor, ...]
    target: Target
    constants: Mapping[Tensor, Array]
    name: str


def asked_for(
    outputs: Tensor | Sequence[Tensor],
    inputs: Sequence[Tensor],
    target: str | Path | Target,
    constants: Mapping[Tensor, Any],
    name: str,
) -> Asked:
    """The arguments of `tecomp.compile`, checked.

    Raises:
        DefinitionError: one of them is not of its kind.
        CallError: a constant has another shape or type than its tensor.
        TargetError: the machine is no processor.
    """
    machine = target if isinstance(target, Target) else Target.load(target)
    if machine.core is None:
        raise TargetError(
            f"compile: {machine.name} describes no core of a processor, and programs run on one so "
            "far; build its kernels one by one"
        )
    wanted: Any = [outputs] if isinstance(outputs, Tensor) else outputs
    cure = "give an array for each placeholder"
    check_kind(constants, Mapping, "compile: constants", cure, DefinitionError)
    for what, given in (("outputs", wanted), ("inputs", inputs), ("constants", [*constants])):
        check_list(given, Tensor, f"compile: {what}", "give a list of tensors", DefinitionError)
    if not isinstance(name, str) or not name.isidentifier():
        raise DefinitionError(f"compile: the name of a program is an identifier, not {name!r}")
    return Asked(tuple(wanted), tuple(inputs), machine, _arrays(constants), name)


def _arrays(given: Mapping[Tensor, Any]) -> dict[Tensor, Array]:
    found: dict[Tensor, Array] = {}
    for tensor, value in given.items():
        cure = f"give an array of {tensor.dtype} of shape {tuple(tensor.shape)}"
        try:
            array = np.require(value, requirements=["C", "A"])
        except (TypeError, ValueError, RuntimeError) as error:
            raise CallError(
                f"compile: the constant {tensor.name} is no array ({error}); {cure}"
            ) from None
        if array.shape != tensor.shape or array.dtype != tensor.dtype.numpy:
            raise CallError(
                f"compile: the constant {tensor.name} is {array.dtype} of shape {array.shape}; "
                f"{cure}"
            )
        found[tensor] = array
    return found
