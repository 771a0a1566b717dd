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
from tecomp.layout.core.layout import Layout
from tecomp.layout.core.stick_layout import with_tensor_shape
from tecomp.layout.formats.stored_tensor import check_layout
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
        return tuple(hint for hint in self.hints if isinstance(hint, Hint))

    @property
    def division_hints(self) -> tuple[DivisionHint, ...]:
        """Work-division hints."""
        return tuple(hint for hint in self.hints if isinstance(hint, DivisionHint))

    @property
    def is_laid_out(self) -> bool:
        """Whether layouts must be assigned, because of the target or of a request of the caller."""
        if has_layouts(self.target) or self.layouts or self.stick_hints:
            return True
        operations = post_order([x.op for x in self.outputs])
        return any(isinstance(requested_layout_of(op), Layout) for op in operations)


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
    output_list: Any = [outputs] if isinstance(outputs, Tensor) else outputs
    remedy = "pass one array per placeholder"
    check_kind(constants, Mapping, "compile: constants", remedy, DefinitionError)
    check_list([*constants], Tensor, "compile: constants", remedy, DefinitionError)
    for kind, tensors in (("outputs", output_list), ("inputs", inputs)):
        check_list(tensors, Tensor, f"compile: {kind}", "give a list of tensors", DefinitionError)
    if not isinstance(name, str) or not name.isidentifier():
        raise DefinitionError(
            "compile: the name of a program must be an identifier, got {name!r}",
            kind="invalid-type", name=name,
        )
    remedy = "pass one layout per tensor"
    check_kind(layouts, Mapping, "compile: layouts", remedy, DefinitionError)
    check_list([*layouts], Tensor, "compile: layouts", remedy, DefinitionError)
    for tensor, spec in layouts.items():
        for layout in layouts_in(spec):
            if layout != "default":
                check_layout(layout, f"compile: the layout of {tensor.name}")
    layouts = {tensor: _extend_layouts(tensor, spec) for tensor, spec in layouts.items()}
    check_list(
        hints, (Hint, DivisionHint), "compile: hints", "pass a list of results of tecomp.hint",
        DefinitionError,
    )
    remedy = "give True or False"
    check_kind(relayouts, bool, "compile: relayouts", remedy, DefinitionError)
    device_tensors = _check_packed(packed, output_list, inputs, layouts)
    for x in device_tensors:
        if layouts.get(x) == "default" and (shape := constant_shape(x.shape)) is not None:
            layouts[x] = candidates(machine, shape, x.dtype)[0]
    return CompileRequest(
        tuple(output_list), tuple(inputs), machine, _arrays(constants), name, layouts,
        tuple(hints), relayouts, device_tensors,
    )


def _extend_layouts(tensor: Tensor, spec: Wanted) -> Wanted:
    """Return the layouts, extended to the tensor size if they differ from it by padding only."""
    shape = constant_shape(tensor.shape)
    found: list[Layout | Literal["default"]] = [
        x if x == "default" else with_tensor_shape(x, shape) for x in layouts_in(spec)
    ]
    return found if isinstance(spec, list | tuple) else found[0]


def _check_packed(
    packed: Sequence[Tensor], outputs: Sequence[Tensor], inputs: Sequence[Tensor],
    layouts: Mapping[Tensor, Wanted],
) -> tuple[Tensor, ...]:
    """Check and return the inputs and outputs that are passed in device layout."""
    remedy = "pass a list of inputs and outputs"
    check_list(packed, Tensor, "compile: packed", remedy, DefinitionError)
    for tensor in packed:
        if tensor in inputs:
            requested = layouts.get(tensor)
            if not isinstance(requested, Layout) and requested != "default":
                raise DefinitionError(
                    "compile: packed: the input {tensor} is passed in its device layout, but no "
                    "layout is specified; pass its layout in `layouts`",
                    kind="program", tensor=tensor.name,
                )
        elif tensor not in outputs:
            raise DefinitionError(
                "compile: packed: {tensor} is neither an input nor an output; {remedy}",
                kind="program", tensor=tensor.name, remedy=remedy,
            )
    return tuple(packed)


def _arrays(constants: Mapping[Tensor, Any]) -> dict[Tensor, Array]:
    found: dict[Tensor, Array] = {}
    for tensor, value in constants.items():
        remedy = f"give an array of {tensor.dtype} of shape {tuple(tensor.shape)}"
        try:
            array = np.require(value, requirements=["C", "A"])
        except (TypeError, ValueError, RuntimeError) as error:
            raise CallError(
                "compile: the constant {tensor} is not a valid array ({reason}); {remedy}",
                kind="argument-mismatch", tensor=tensor.name, reason=error, remedy=remedy,
            ) from None
        shape = constant_shape(tensor.shape)
        if (shape is not None and array.shape != shape) or array.dtype != tensor.dtype.numpy:
            raise CallError(
                "compile: the constant {tensor} has dtype {dtype} and shape {shape}; {remedy}",
                kind="argument-mismatch", tensor=tensor.name, dtype=array.dtype, shape=array.shape,
                remedy=remedy,
            )
        found[tensor] = array
    return found
