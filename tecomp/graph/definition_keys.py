"""Stable text and structural keys of definitions."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass, replace
from enum import Enum
from itertools import count
from types import ModuleType
from typing import Any

from tecomp.codegen.llvm.code_cache import digest
from tecomp.compute import (
    extern,
    iter_var,
    operation,
    reduce,
    scan,
    tensor,
    tensor_compute,
    tensor_intrin_call,
)
from tecomp.compute.define import placeholder
from tecomp.compute.expression_analysis import substitute_inputs
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.tensor import Tensor
from tecomp.constraints import user_hints
from tecomp.ir.nodes import buffer, expr, expr_nodes, operators, stmt, stmt_nodes
from tecomp.ir.traversal.serialization import NotSerializableError, Word, decode, encode
from tecomp.layout.core import layout, stick_formats, stick_layout
from tecomp.layout.formats import block_float, format, registry
from tecomp.layout.sharding import shard_layout, shard_maps, ttnn, virtual_grid
from tecomp.machine import components, descriptor, operand_constraints, schema
from tecomp.poly.maps import index_map
from tecomp.source_locations import Location

_MODULES: tuple[ModuleType, ...] = (
    block_float, buffer, components, descriptor, expr,
    expr_nodes, extern, format, index_map, iter_var, layout,
    registry, operand_constraints, operation, operators,
    reduce, scan, schema, shard_layout, shard_maps,
    stick_formats, stick_layout, stmt, stmt_nodes, tensor,
    tensor_compute, tensor_intrin_call, ttnn, user_hints,
    virtual_grid,
)  # fmt: skip
_KINDS = frozenset(
    kind for module in _MODULES for kind in vars(module).values()
    if isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, Enum))
)


def definitions_text(value: object) -> str:
    """Serialize tensors, targets, layouts, hints and plain values, without source locations.

    Raises:
        NotPlainError: If a part has a type that cannot be serialized.
    """
    return json.dumps(encode(value, {Location: lambda _: None}, _KINDS))


def definitions_from(text: str) -> Any:
    """Deserialize a value that `definitions_text` wrote.

    Raises:
        ValueError: If the text is malformed.
        LookupError: If the text names an unknown class or lacks a field.
        TypeError: If the text describes fields of the wrong type.
    """
    return decode(json.loads(text), [*_KINDS])


def definition_key(
    operations: Sequence[Operation], inputs: Sequence[Tensor], *, with_places: bool = False
) -> str:
    """Return a structural key of operations that is independent of names.

    Args:
        operations: Operations in topological order.
        inputs: Tensors that the operations read from elsewhere, in order.
        with_places: Whether the key includes source locations, which run-time errors report.

    Returns:
        The key; if an operation holds a value that cannot be serialized, a key that is unique as
        long as the operation is alive.

    >>> from tecomp import te
    >>> A, B = te.placeholder((4,), name="A"), te.placeholder((4,), name="B")
    >>> one, other = (te.compute((4,), lambda i: x[i] + 1.0, name="C") for x in (A, B))
    >>> definition_key([one.op], [A]) == definition_key([other.op], [B])
    True
    """
    unnamed = {x: placeholder(x.shape, x.dtype, f"t{k}") for k, x in enumerate(inputs)}
    numbers = count()

    def without_name(op: Operation) -> Operation:
        return replace(op, name=f"s{next(numbers)}") if isinstance(op, ComputeOp) else op

    subst = substitute_inputs(operations, unnamed, change=without_name)
    ops = tuple(subst.get(x, x).op for op in operations for x in op.outputs)
    encode_location: Callable[[Location], Word] = _place if with_places else _nowhere
    try:
        return digest(encode(ops, {Location: encode_location}))
    except NotSerializableError:
        # Attributes of an operation may be arbitrary user objects, which equal no other object.
        return f"operation {id(operations[-1])}"


def _place(location: Location) -> Word:
    return f"{location.file}:{location.line}"


def _nowhere(_: Location) -> Word:
    return None
