"""Statements as a user builds them: loops, conditions, memory, and operands to load and store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tecomp.compute.arithmetic import Value, value_of
from tecomp.compute.intrinsics import joined
from tecomp.compute.shape import dtype_of, name_of, shape_of
from tecomp.errors import DefinitionError, TypeMismatchError
from tecomp.ir.dtype import INT64, DType
