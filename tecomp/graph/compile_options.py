"""Validated arguments of `compile`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from tecomp.compute.expression_analysis import post_order
from tecomp.compute.tensor import Tensor
from tecomp.constraints.user_hints import DivisionHint, Hint, requested_layout_of
from tecomp.errors import CallError, DefinitionError
from tecomp.graph.layout_candidates import Wanted, candidates, has_layouts, layouts_in
from tecomp.ir.arith.extents import constant_shape
from tecomp.ir.nodes.argument_checks import check_kind, check_list
from tecomp.layout.addressing.stored_tensor import check_layout
from tecomp.layout.core.layout import Layout
from tecomp.layout.sticks.stick_layout import with_tensor_shape
from tecomp.machine.descriptor import Target

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class CompileRequest:
    """Validated arguments of `tecomp.compile`.

    Attributes:
        outputs: Tensors to compute.
        inputs: Placeholders that the caller passes in each call.
        target: Target.
        constants: Values of the placeholders that are equal in every call.
        name: Program name.
        layouts: Device layouts that the caller prescribes.
        hints: Hints on layouts (`Hint`) and on work division (`DivisionHint`).
        relayouts: Whether relayouts may be inserted for readers that prefer other layouts.
        packed: Inputs and outputs that the caller passes in device layout.
    """

    outputs: tuple[Tensor, ...]
    inputs: tuple[Tensor, ...]
    target: Target
    constants: Mapping[Tensor, Array]
    name: str
    layouts: Mapping[Tensor, Wanted] = field(default_factory=dict)
    hints: tuple[Hint | DivisionHint, ...] = ()
    relayouts: bool = True
    packed: tuple[Tensor, ...] = ()

    @property
    def stick_hints(self) -> tuple[Hint, ...]:
        """Layout hints."""
        return tuple(each for each in self.hints if isinstance(each, Hint))

    @property
    def division_hints(self) -> tuple[DivisionHint, ...]:
        """Work-division hints."""
        return tuple(each for each in self.hints if isinstance(each, DivisionHint))

    @property
    def is_laid_out(self) -> bool:
        """Whether layouts must be assigned, because of the target or of a request of the caller."""
        if has_layouts(self.target) or self.layouts or self.stick_hints:
            return True
        every = post_order([x.op for x in self.outputs])
        return any(isinstance(requested_layout_of(op), Layout) for op in every)


def validate_request(
    outputs: Tensor | Sequence[Tensor],
    inputs: Sequence[Tensor],
    target: str | Path | Target,
    constants: Mapping[Tensor, Any],
    name: str,
    layouts: Mapping[Tensor, Wanted] = MappingProxyType({}),
    hints: Sequence[Hint | DivisionHint] = (),
    *,
    relayouts: bool = True,
    packed: Sequence[Tensor] = (),
) -> CompileRequest:
    """Validate the arguments of `tecomp.compile`.

    Raises:
        DefinitionError: If an argument has the wrong type.
        CallError: If a constant has another shape or dtype than its tensor.
    """
    machine = Target.of(target)
    wanted: Any = [outputs] if isinstance(outputs, Tensor) else outputs
    cure = "pass one array per placeholder"
    check_kind(constants, Mapping, "compile: constants", cure, DefinitionError)
    check_list([*constants], Tensor, "compile: constants", cure, DefinitionError)
    for what, given in (("outputs", wanted), ("inputs", inputs)):
        check_list(given, Tensor, f"compile: {what}", "give a list of tensors", DefinitionError)
    if not isinstance(name, str) or not name.isidentifier():
        raise DefinitionError(
            "compile: the name of a program must be an identifier, got {name!r}",
            kind="invalid-type", name=name,
        )
    cure = "pass one layout per tensor"
    check_kind(layouts, Mapping, "compile: layouts", cure, DefinitionError)
    check_list([*layouts], Tensor, "compile: layouts", cure, DefinitionError)
    for tensor, asked in layouts.items():
        for layout in layouts_in(asked):
            if layout != "default":
                check_layout(layout, f"compile: the layout of {tensor.name}")
    layouts = {tensor: _extend_layouts(tensor, asked) for tensor, asked in layouts.items()}
    check_list(
        hints, (Hint, DivisionHint), "compile: hints", "pass a list of results of tecomp.hint",
        DefinitionError,
    )
    cure = "give True or False"
    check_kind(relayouts, bool, "compile: relayouts", cure, DefinitionError)
    there = _check_packed(packed, wanted, inputs, layouts)
    for x in there:
        if layouts.get(x) == "default" and (shape := constant_shape(x.shape)) is not None:
            layouts[x] = candidates(machine, shape, x.dtype)[0]
    return CompileRequest(
        tuple(wanted), tuple(inputs), machine, _arrays(constants), name, layouts,
        tuple(hints), relayouts, there,
    )


def _extend_layouts(tensor: Tensor, asked: Wanted) -> Wanted:
    """Return the layouts, extended to the tensor size if they differ from it by padding only."""
    shape = constant_shape(tensor.shape)
    found: list[Layout | Literal["default"]] = [
        each if each == "default" else with_tensor_shape(each, shape) for each in layouts_in(asked)
    ]
    return found if isinstance(asked, list | tuple) else found[0]


def _check_packed(
    given: Sequence[Tensor], outputs: Sequence[Tensor], inputs: Sequence[Tensor],
    layouts: Mapping[Tensor, Wanted],
) -> tuple[Tensor, ...]:
    """Check and return the inputs and outputs that are passed in device layout."""
    cure = "pass a list of inputs and outputs"
    check_list(given, Tensor, "compile: packed", cure, DefinitionError)
    for tensor in given:
        if tensor in inputs:
            asked = layouts.get(tensor)
            if not isinstance(asked, Layout) and asked != "default":
                raise DefinitionError(
                    "compile: packed: the input {tensor} is passed in its device layout, but no "
                    "layout is specified; pass its layout in `layouts`",
                    kind="program", tensor=tensor.name,
                )
        elif tensor not in outputs:
            raise DefinitionError(
                "compile: packed: {tensor} is neither an input nor an output; {remedy}",
                kind="program", tensor=tensor.name, remedy=cure,
            )
    return tuple(given)


def _arrays(given: Mapping[Tensor, Any]) -> dict[Tensor, Array]:
    found: dict[Tensor, Array] = {}
    for tensor, value in given.items():
        cure = f"give an array of {tensor.dtype} of shape {tuple(tensor.shape)}"
        try:
            array = np.require(value, requirements=["C", "A"])
        except (TypeError, ValueError, RuntimeError) as error:
            raise CallError(
                "compile: the constant {tensor} is not a valid array ({reason}); {remedy}",
                kind="argument-mismatch", tensor=tensor.name, reason=error, remedy=cure,
            ) from None
        shape = constant_shape(tensor.shape)
        if (shape is not None and array.shape != shape) or array.dtype != tensor.dtype.numpy:
            raise CallError(
                "compile: the constant {tensor} has dtype {dtype} and shape {shape}; {remedy}",
                kind="argument-mismatch", tensor=tensor.name, dtype=array.dtype, shape=array.shape,
                remedy=cure,
            )
        found[tensor] = array
    return found
