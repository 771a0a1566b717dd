"""Definitions of programs as text in files, and back: what is computed, and for which machine."""

from __future__ import annotations

import json
from dataclasses import is_dataclass
from enum import Enum
from types import ModuleType
from typing import Any

from tecomp.compute import axis, extern, operation, reduce, scan, tensor
from tecomp.errors import Location
from tecomp.ir.language import (
    buffer,
    expr,
    intrinsics,
    nodes,
    operators,
    statements,
    stmt,
    tensor_op,
)
from tecomp.ir.traversal.codec import decode, encode
from tecomp.machine import descriptor, engine, memory, place, rules

_MODULES: tuple[ModuleType, ...] = (
    axis, buffer, descriptor, engine, expr, extern, intrinsics, memory, nodes, operation, operators,
    place, reduce, rules, scan, statements, stmt, tensor, tensor_op,
)  # fmt: skip
_KINDS = tuple(
    kind for module in _MODULES for kind in vars(module).values()
    if isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, Enum))
)


def definitions_text(value: object) -> str:
    """Tensors, targets and plain values as text; where the user wrote them is left out.

    Raises:
        NotPlainError: something in it is of a kind that no text stands for.
    """
    return json.dumps(encode(value, {Location: lambda _: None}))


def definitions_from(text: str) -> Any:
    """The value that `definitions_text` wrote.

    Raises:
        ValueError: the text stands for none.
        LookupError: so.
        TypeError: so.
    """
    return decode(json.loads(text), _KINDS)
