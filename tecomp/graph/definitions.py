"""Definitions of programs as text in files, and back: what is computed, and for which machine."""

from __future__ import annotations

import json
from dataclasses import is_dataclass
from enum import Enum
from types import ModuleType
from typing import Any

from tecomp.compute import (
    axis,
    extern,
    intrinsic,
    operation,
    reduce,
    scan,
    tensor,
    tensor_compute,
)
from tecomp.constraints import divisions, wishes
from tecomp.ir.language import (
    buffer,
    expr,
    intrinsics,
    nodes,
    operators,
    outside_call,
    statements,
    stmt,
    tensor_op,
)
from tecomp.ir.traversal.codec import decode, encode
from tecomp.layout.descriptions import layout
from tecomp.layout.formats import block_float, format, packed_int, small_float
from tecomp.layout.shards import cuts, shard, ttnn, virtual_grid
from tecomp.layout.sticks import forms, stick, types
from tecomp.locations import Location
from tecomp.machine import descriptor, engine, memory, place, rules
from tecomp.poly.maps import index_map

_MODULES: tuple[ModuleType, ...] = (
    axis, block_float, buffer, cuts, descriptor, divisions, engine, expr, extern, format, forms,
    index_map, intrinsic, intrinsics, layout, memory, nodes, operation, operators, outside_call,
    packed_int, place, reduce, rules, scan, shard, small_float, statements, stick, stmt, tensor,
    tensor_compute, tensor_op, ttnn, types, virtual_grid, wishes,
)  # fmt: skip
_KINDS = frozenset(
    kind for module in _MODULES for kind in vars(module).values()
    if isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, Enum))
)


def definitions_text(value: object) -> str:
    """Tensors, targets, layouts, hints and plain values as text, without places in users' files.

    Raises:
        NotPlainError: something in it is of a kind that no text stands for.
    """
    return json.dumps(encode(value, {Location: lambda _: None}, _KINDS))


def definitions_from(text: str) -> Any:
    """The value that `definitions_text` wrote.

    Raises:
        ValueError: the text stands for none.
        LookupError: so.
        TypeError: so.
    """
    return decode(json.loads(text), [*_KINDS])
