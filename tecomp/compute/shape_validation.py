"""Validation of shapes, extents, dtypes, names and attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from tecomp.compute.iter_var import IterVar
from tecomp.compute.tensor import ScalarFormula, TensorLoad
from tecomp.errors import DefinitionError, TypeMismatchError
from tecomp.ir.nodes.argument_checks import dictionary_of
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import Call, Const, Expr
from tecomp.ir.nodes.stmt import Extent
from tecomp.ir.traversal.rewrite import walk

_LARGEST = 2**63 - 1


def shape_of(shape: object, where: str) -> tuple[Extent, ...]:
    """Convert `shape` to a tuple of extents; a bare extent is a shape with one axis.

    Raises:
        DefinitionError: If an extent is negative, too large or not a size.
        TypeMismatchError: If `shape` is not a sequence, or an extent is not an integer.
    """
    if isinstance(shape, int | float | np.generic | Expr):
        return (extent_of(shape, f"{where}: the shape"),)
    if isinstance(shape, str | bytes) or not isinstance(shape, Sequence | np.ndarray):
        raise TypeMismatchError(
            "{where}: shape must be a tuple of integers and te.var sizes, got {shape!r} ({type})",
            kind="extent", where=where, shape=shape, type=type(shape).__name__,
        )
    return tuple([extent_of(n, f"{where}: axis {k} of the shape") for k, n in enumerate(shape)])


def extent_of(value: object, where: str, *, least: int = 0) -> Extent:
    """Convert an extent to an int if it is constant, else to an integer expression of sizes.

    Floats with an integer value, such as the result of `n / 2`, are accepted, as in TVM.

    Raises:
        DefinitionError: If the value is less than `least`, too large, or not a size.
        TypeMismatchError: If the value is not an integer.
    """
    if isinstance(value, ScalarFormula):
        value = value.as_expr()
    if isinstance(value, Const) and not value.dtype.is_bool:
        value = value.value
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    if isinstance(value, Expr) and value.dtype.is_integer and value.dtype.lanes == 1:
        return _size(value, where)
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        kind = value.dtype if isinstance(value, Expr) else type(value).__name__
        raise TypeMismatchError(
            "{where} is {value!r} ({type_name}); pass an integer, or an integer expression of "
            "te.var sizes",
            kind="extent", where=where, value=value, type_name=kind,
        )
    if value < least:
        raise DefinitionError(
            "{where} is {value!r}; an extent must be at least {minimum}",
            kind="extent", where=where, value=value, minimum=least,
        )
    if value > _LARGEST:
        raise DefinitionError(
            "{where} is {value!r}; an extent must be at most {largest}",
            kind="extent", where=where, value=value, largest=_LARGEST,
        )
    return int(value)


def _size(value: Expr, where: str) -> Expr:
    for node in walk(value):
        if isinstance(node, IterVar):
            raise DefinitionError(
                "{where} is {value}, which depends on axis {node}; a size must be the same for all "
                "elements: restrict a reduction with where= instead",
                kind="extent", where=where, value=value, node=node.name,
            )
        if isinstance(node, Call | TensorLoad) or node.dtype.is_float:
            raise DefinitionError(
                "{where} is {value}, which is not arithmetic on sizes; pass an integer expression "
                "of te.var sizes",
                kind="extent", where=where, value=value,
            )
    return value


def dtype_of(dtype: object, where: str) -> DType:
    """Convert a dtype name or a NumPy dtype to an element dtype.

    Raises:
        TypeMismatchError: If the dtype does not exist, or is `handle`.
    """
    if isinstance(dtype, np.dtype) or (isinstance(dtype, type) and issubclass(dtype, np.generic)):
        dtype = np.dtype(dtype).name
    if not isinstance(dtype, str):
        raise TypeMismatchError(
            '{where}: dtype is {dtype!r} ({type}); pass its name, such as "float32"',
            kind="invalid-type", where=where, dtype=dtype, type=type(dtype).__name__,
        )
    kind = DType(dtype)
    if kind.kind == "handle":
        raise TypeMismatchError(
            "{where}: handle is the dtype of an address, not of an element",
            where=where,
        )
    return kind


def name_of(name: object, where: str) -> str:
    """Return `name` after a check that it is a non-empty string.

    Raises:
        TypeMismatchError: If `name` is not a string or is empty.
    """
    if not isinstance(name, str) or not name:
        raise TypeMismatchError(
            "{where}: name must be a non-empty string, got {name!r}",
            kind="invalid-type", where=where, name=name,
        )
    return name


def attributes_of(attrs: object, where: str) -> Mapping[str, Any]:
    """Return `attrs` as a read-only mapping.

    Raises:
        DefinitionError: If `attrs` is not a dictionary.
    """
    return MappingProxyType(
        dictionary_of(attrs, object, object, f"{where}: attrs", "pass a dictionary",
                      DefinitionError)
    )
