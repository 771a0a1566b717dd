"""Reductions, products, sorting and element-wise functions, with NumPy's parameters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

import tecomp.array as xp
from tecomp.array import Array
from tecomp.errors import ArrayTypeError
from tecomp.numpy.arrays import (
    NUMBERS,
    arrays_of,
    ravel,
    reshape,
    store,
    to_array,
    to_float,
    to_number,
    with_axes,
)
from tecomp.operations.elementwise import elementwise_in
from tecomp.operations.rows import Op


def reduction(name: str) -> Callable[..., Any]:
    """Return a reduction with NumPy's parameters.

    Args:
        name: Name in `tecomp.array`, such as `sum`.
    """
    function = getattr(xp, name)
    convert = to_float if name == "mean" else to_array
    of_booleans = {"max": xp.any, "min": xp.all}.get(name)
    has_dtype = name in ("sum", "prod", "mean")

    def reduce_with(
        a: Any, axis: Any, dtype: Any, out: Any, keepdims: bool, initial: Any, where: Any
    ) -> Any:
        a = convert(a)
        if where is not True:
            a = xp.where(to_array(where), a, _neutral(name, a))
        reduce = of_booleans if of_booleans is not None and a.dtype.kind == "b" else function
        if dtype is not None and has_dtype:
            a = xp.astype(a, dtype, copy=False) if name == "mean" else a
            options = {} if name == "mean" else {"dtype": dtype}
        else:
            options = {}
        axis = axis if axis is None or isinstance(axis, tuple) else int(axis)
        if initial is not None and name in ("max", "min"):
            combine = xp.maximum if name == "max" else xp.minimum
            if 0 in a.shape:
                total = xp.sum(a, axis=axis, keepdims=keepdims)
                return store(xp.full(total.shape, initial, dtype=a.dtype), out)
            return store(combine(reduce(a, axis=axis, keepdims=keepdims), initial), out)
        found = reduce(a, axis=axis, keepdims=keepdims, **options)
        if initial is not None:
            found = found + initial if name == "sum" else found * initial
        return found if out is None else store(found, out)

    if has_dtype:
        def reduce(
            a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False,
            initial: Any = None, where: Any = True,
        ) -> Any:
            return reduce_with(a, axis, dtype, out, keepdims, initial, where)

        return reduce

    def reduce_same(
        a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None,
        where: Any = True,
    ) -> Any:
        return reduce_with(a, axis, None, out, keepdims, initial, where)

    return reduce_same


def _neutral(name: str, a: Array) -> Any:
    """Return the value that does not change a reduction."""
    limits: Any = {"sum": 0, "any": False, "prod": 1, "all": True}.get(name)
    if limits is None and a.dtype.kind == "f":
        limits = {"max": -np.inf, "min": np.inf}.get(name)
    if limits is None:
        raise ArrayTypeError(
            "{where}: the argument `where` is not supported for dtype {dtype}; reduce x[condition]",
            kind="array-type", where=name, dtype=a.dtype,
        )
    return limits


def deviation(name: str) -> Callable[..., Any]:
    """Return `std` or `var` with NumPy's parameters."""
    function = getattr(xp, name)

    def reduce(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0,
        keepdims: bool = False, *, correction: float | None = None,
    ) -> Any:
        a = to_float(a) if dtype is None else to_array(a, dtype)
        count = ddof if correction is None else correction
        return store(function(a, axis=axis, correction=count, keepdims=keepdims), out)

    return reduce


def search(name: str) -> Callable[..., Any]:
    """Return `argmax` or `argmin` with NumPy's parameters."""
    function = getattr(xp, name)

    def find(a: Any, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Any:
        return store(function(to_number(a), axis=axis, keepdims=keepdims), out)

    return find


def accumulation(name: str) -> Callable[..., Any]:
    """Return `cumsum` or `cumprod`."""
    function = getattr(xp, name)

    def accumulate(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        a = to_array(a)
        if axis is None:
            a, axis = xp.reshape(a, (-1,)), 0
        return store(function(a, axis=axis, dtype=dtype), out)

    return accumulate


def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *,
    keepdims: bool = False,
) -> Any:
    """Compute the weighted mean along the given axes."""
    a = to_float(a)
    if weights is None:
        found = xp.mean(a, axis=axis, keepdims=keepdims)
        total = xp.full_like(found, a.size / max(found.size, 1))
    else:
        factors = to_float(weights)
        if factors.ndim == 1 and a.ndim > 1 and axis is not None:
            factors = xp.reshape(factors, (-1, *(1,) * (a.ndim - axis % a.ndim - 1)))
        total = xp.sum(xp.broadcast_to(factors, a.shape), axis=axis, keepdims=keepdims)
        found = xp.sum(a * factors, axis=axis, keepdims=keepdims) / total
    return (found, total) if returned else found


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Compute differences of second order inside, and of first order at the ends of an axis."""
    steps = [x.item() if isinstance(x, Array) and not x.ndim else x for x in varargs]
    found = xp.gradient(to_array(f), *steps, axis=axis, edge_order=edge_order)
    return list(found) if isinstance(found, tuple) else found


def pad(array: Any, pad_width: Any, mode: str = "constant", **kwargs: Any) -> Any:
    """Extend an array at both ends of its axes."""
    return xp.pad(to_array(array), pad_width, mode, **kwargs)


def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """Compute the difference of maximum and minimum."""
    a = to_array(a)
    return store(xp.max(a, axis=axis, keepdims=keepdims) - xp.min(
        a, axis=axis, keepdims=keepdims), out)


def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None,
    fweights: Any = None, aweights: Any = None,
) -> Any:
    """Compute the covariance matrix of variables."""
    if fweights is not None or aweights is not None:
        return xp.call_on_host("cov", m, y, rowvar, bias, ddof, fweights, aweights)
    return xp.cov(_variables(m, y, rowvar), rowvar=rowvar,
                  correction=(0 if bias else 1) if ddof is None else ddof)


def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Any:
    """Compute the correlation coefficients of variables."""
    return xp.corrcoef(_variables(x, y, rowvar), rowvar=rowvar)


def _variables(x: Any, y: Any, rowvar: bool) -> Array:
    if y is None:
        return to_float(x)
    parts = [with_axes(to_float(part), 2) for part in (x, y)]
    if not rowvar:
        parts = [part.T if part.shape[0] == 1 else part for part in parts]
    return xp.concat(parts, axis=0 if rowvar else 1)


# Products


def dot(a: Any, b: Any, out: Any = None) -> Any:
    """Compute the product of numbers, vectors or matrices."""
    if isinstance(a, NUMBERS) or isinstance(b, NUMBERS):
        return store(a * b, out)
    a, b = to_array(a), to_array(b)
    if not a.ndim or not b.ndim:
        return store(a * b, out)
    if a.ndim > 2 and b.ndim > 1:
        return store(xp.tensordot(a, b, axes=((-1,), (-2,))), out)
    if b.ndim > 2:
        return store(xp.tensordot(a, b, axes=((-1,), (-2,))), out)
    return store(a @ b, out)


def matmul(x1: Any, x2: Any, /, out: Any = None, **_: Any) -> Any:
    """Compute the product of matrices."""
    return store(to_array(x1) @ to_array(x2), out)


def vdot(a: Any, b: Any) -> Any:
    """Compute the product of all elements; the first operand is conjugated."""
    return xp.vecdot(ravel(a), ravel(b))


def inner(a: Any, b: Any, /) -> Any:
    """Compute products over the last axes."""
    a, b = to_array(a), to_array(b)
    return a * b if not a.ndim or not b.ndim else xp.tensordot(a, b, axes=((-1,), (-1,)))


def outer(a: Any, b: Any, out: Any = None) -> Any:
    """Compute the products of all pairs of elements."""
    return store(ravel(a)[:, None] * ravel(b)[None, :], out)


def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Contract axes of two arrays."""
    if isinstance(axes, list | tuple):
        axes = tuple([tuple(k) if isinstance(k, list | tuple) else (k,) for k in axes])
    return xp.tensordot(to_array(a), to_array(b), axes=axes)


def einsum(*operands: Any, out: Any = None, optimize: Any = False, **_: Any) -> Any:
    """Sum products of elements over the axes that have equal letters."""
    if not isinstance(operands[0], str):
        return store(xp.call_on_host("einsum", *operands), out)
    return store(xp.einsum(operands[0], *arrays_of(operands[1:])), out)


def cross(a: Any, b: Any, axis: int = -1) -> Any:
    """Compute the cross product of vectors of 3 elements, or of 2."""
    a, b = to_array(a), to_array(b)
    if a.shape[axis] == 3 == b.shape[axis]:
        return xp.linalg.cross(a, b, axis=axis)
    return xp.call_on_host("cross", a, b, axis=axis)


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None,
          out: Any = None) -> Any:
    """Sum the elements of a diagonal."""
    return store(xp.linalg.trace(_as_matrices(a, axis1, axis2), offset=offset, dtype=dtype), out)


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Return the elements of a diagonal."""
    return xp.linalg.diagonal(_as_matrices(a, axis1, axis2), offset=offset)


def _as_matrices(a: Any, axis1: int, axis2: int) -> Array:
    a = to_array(a)
    is_last = (axis1 % a.ndim, axis2 % a.ndim) == (a.ndim - 2, a.ndim - 1)
    return a if is_last else xp.moveaxis(a, (axis1, axis2), (-2, -1))


# Element-wise functions


def elementwise(name: str, row: Op) -> Callable[..., Any]:
    """Return an element-wise function with NumPy's parameters.

    Args:
        name: Name in NumPy.
        row: Row of the function in the table of element-wise functions.
    """
    return _unary(name, row) if row.arity == 1 else _binary(name, row)


def _unary(name: str, row: Op) -> Callable[..., Any]:
    function, scalar = getattr(xp, row.name), getattr(np, name)
    convert = to_number if row.name in _OF_INTEGERS else to_float

    def apply(x: Any, /, out: Any = None, *, where: Any = True, dtype: Any = None,
              **_: Any) -> Any:
        if x.__class__ is not Array:
            if isinstance(x, NUMBERS):
                return scalar(x)
            x = to_array(x)
        try:
            found = function(x)
        except ArrayTypeError:
            if x.dtype.kind not in "biu":
                raise
            found = function(convert(x))
        return found if out is None and dtype is None else store(found, out, where, dtype)

    return apply


def _binary(name: str, row: Op) -> Callable[..., Any]:
    function, scalar = getattr(xp, row.name), getattr(np, name)
    is_floating = row.takes.words == "floating-point dtype"

    def convert(x1: Any, x2: Any, to: Callable[[Any], Any]) -> Any:
        return [x if isinstance(x, NUMBERS) else to(x) for x in (x1, x2)]

    def apply(x1: Any, x2: Any, /, out: Any = None, *, where: Any = True, dtype: Any = None,
              **_: Any) -> Any:
        if x1.__class__ is not Array or x2.__class__ is not Array:
            if isinstance(x1, NUMBERS) and isinstance(x2, NUMBERS):
                return scalar(x1, x2)
            x1, x2 = convert(x1, x2, to_array)
        try:
            found = function(x1, x2)
        except ArrayTypeError:
            if not is_floating:
                raise
            found = function(*convert(x1, x2, to_float))
        return found if out is None and dtype is None else store(found, out, where, dtype)

    operator: Any = apply
    operator.outer = partial(_outer, apply)
    operator.reduce = partial(_reduce, name)
    operator.accumulate = partial(xp.call_on_host, f"{name}.accumulate")
    operator.at = in_place(f"{name}.at")
    return apply


_OF_INTEGERS = ("abs", "ceil", "floor", "negative", "positive", "sign", "square", "trunc")


def _outer(function: Callable[..., Any], a: Any, b: Any) -> Any:
    a, b = to_array(a), to_array(b)
    return function(reshape(a, a.shape + (1,) * b.ndim), b)


_REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_or": "any",
    "logical_and": "all",
}


def _reduce(name: str, array: Any, axis: Any = 0, **options: Any) -> Any:
    if name in _REDUCTIONS:
        return reduction(_REDUCTIONS[name])(array, axis, **options)
    return xp.call_on_host(f"{name}.reduce", array, axis, **options)


def in_place(name: str) -> Callable[..., None]:
    """Return a NumPy function that changes its first argument."""

    def change(a: Array, /, *arguments: Any, **options: Any) -> None:
        target: Any = np.array(a)
        function: Any = np
        for part in name.split("."):
            function = getattr(function, part)
        function(target, *[np.asarray(x) if isinstance(x, Array) else x for x in arguments],
                 **options)
        a[...] = target

    return change


def angle(z: Any, deg: bool = False) -> Any:
    """Compute the angles of complex numbers."""
    z = to_float(z)
    found = xp.atan2(xp.imag(z), xp.real(z)) if z.dtype.kind == "c" else xp.atan2(
        xp.zeros_like(z), z)
    return found * (180 / np.pi) if deg else found


def scaling(factor: float) -> Callable[..., Any]:
    """Return a function that multiplies by a number, such as `radians`."""

    def scale(x: Any, /, out: Any = None) -> Any:
        value: Any = x if isinstance(x, NUMBERS) else to_float(x)
        return store(value * factor, out)

    return scale


def round(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """Round to a number of decimals."""
    if isinstance(a, NUMBERS):
        return np.round(a, decimals)
    a = to_array(a)
    if not decimals or a.dtype.kind in "biu":
        if a.dtype.kind in "biu" and decimals < 0:
            return xp.call_on_host("round", a, decimals)
        return store(xp.round(a) if a.dtype.kind != "b" else xp.astype(a, np.float16), out)
    factor = 10.0 ** abs(decimals)
    rounded = xp.round(a * factor) / factor if decimals > 0 else xp.round(a / factor) * factor
    return store(xp.where(xp.isfinite(a), rounded, a), out)


def clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None,
         max: Any = None, **_: Any) -> Any:
    """Limit values to an interval."""
    low, high = a_min if min is None else min, a_max if max is None else max
    if isinstance(a, NUMBERS):
        return np.clip(a, low, high)
    a = to_array(a)
    if low is not None:
        a = elementwise("maximum", _ROWS["maximum"])(a, low)
    if high is not None:
        a = elementwise("minimum", _ROWS["minimum"])(a, high)
    return store(a, out)


_ROWS = elementwise_in("array")


def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """Select elements by a condition, or return the indices where it is true."""
    condition = to_array(condition)
    if x is None and y is None:
        return xp.nonzero(condition)
    x, y = (part if isinstance(part, NUMBERS) else to_array(part) for part in (x, y))
    return xp.where(condition, *[
        part.item() if isinstance(part, np.generic) else part for part in (x, y)])


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """Select elements of the first array whose condition is true."""
    found = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        found = where(condition, choice, found)
    return found


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """Evaluate functions where their conditions are true."""
    x = to_array(x)
    conditions = [to_array(c) for c in condlist]
    values = [f(x, *args, **kw) if callable(f) else f for f in funclist]
    default = values[len(conditions)] if len(values) > len(conditions) else 0
    found = select(conditions[::-1], values[: len(conditions)][::-1], default)
    return xp.astype(to_array(found), x.dtype, copy=False)


# Sorting, searching and sets


def sort(a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, *,
         stable: Any = None) -> Any:
    """Return a sorted copy."""
    a = to_array(a)
    if axis is None:
        a, axis = ravel(a), -1
    if a.dtype.kind == "c":
        return xp.call_on_host("sort", a, axis)
    return xp.astype(xp.sort(to_number(a), axis=axis), a.dtype, copy=False)


def argsort(a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, *,
            stable: Any = None) -> Any:
    """Return the indices that sort an array."""
    a = to_number(a)
    if axis is None:
        a, axis = ravel(a), -1
    if a.dtype.kind == "c":
        return xp.call_on_host("argsort", a, axis)
    return xp.argsort(a, axis=axis)


def unique(ar: Any, return_index: bool = False, return_inverse: bool = False,
           return_counts: bool = False, axis: Any = None, **options: Any) -> Any:
    """Return the unique elements in ascending order, with the requested indices and counts."""
    values = ar if isinstance(ar, np.ndarray) else to_array(ar)
    return xp.call_on_host(
        "unique", values, return_index, return_inverse, return_counts, axis, **options)


def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    """Return insertion positions into a sorted array."""
    a = to_array(a)
    values: Any = v if isinstance(v, NUMBERS) else to_array(v)
    order = None if sorter is None else to_array(sorter)
    return xp.searchsorted(a, values, side=side, sorter=order)


def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False,
         **_: Any) -> Any:
    """Test elements for membership."""
    return xp.isin(to_array(element), to_array(test_elements), invert=invert)


def argwhere(a: Any) -> Any:
    """Return the indices of nonzero elements, one row for each."""
    return xp.stack(xp.nonzero(to_array(a)), axis=-1)


def flatnonzero(a: Any) -> Any:
    """Return the indices of nonzero elements of the flattened array."""
    return xp.nonzero(ravel(a))[0]


def take(
    a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise"
) -> Any:
    """Take elements along an axis."""
    if mode != "raise":
        return xp.call_on_host("take", to_array(a), to_array(indices), axis, None, mode)
    return store(xp.take(to_array(a), to_array(indices), axis=axis), out)


def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Any:
    """Take the elements along an axis whose condition is true."""
    return store(xp.take(to_array(a), flatnonzero(condition), axis=axis), out)


def extract(condition: Any, arr: Any) -> Any:
    """Return the elements of the flattened array whose condition is true."""
    return ravel(arr)[ravel(condition) != 0]


def truth(name: str) -> Callable[..., bool]:
    """Return a test of two arrays, such as `allclose`, whose result is a Python bool."""
    function = getattr(xp, name)

    def test(a: Any, b: Any, *tolerances: float, **options: Any) -> bool:
        named: Any = dict(zip(("rtol", "atol", "equal_nan"), tolerances, strict=False))
        a, b = to_array(a), to_array(b)
        if name == "allclose" and not a.ndim and not b.ndim:
            return bool(np.allclose(np.asarray(a), np.asarray(b), **named, **options))
        return bool(function(a, b, **named, **options))

    return test


# Linear algebra


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Compute the norm of vectors or matrices."""
    x = to_float(x)
    if axis is None:
        if ord is None or x.ndim == 1:
            flat = ravel(x)
            found = xp.linalg.vector_norm(flat, ord=2 if ord is None else ord)
            return reshape(found, (1,) * x.ndim) if keepdims else found
        axis = (0, 1)
    if isinstance(axis, tuple) and len(axis) == 2:
        moved = xp.moveaxis(x, axis, (-2, -1))
        found = xp.linalg.matrix_norm(moved, ord="fro" if ord is None else ord)
        return xp.expand_dims(found, axis=axis) if keepdims else found
    return xp.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=2 if ord is None else ord)


def of_matrices(name: str) -> Callable[..., Any]:
    """Return a function of `tecomp.array.linalg` that takes integers and sequences, too."""
    function = getattr(xp.linalg, name)

    if name in ("eigh", "eigvalsh"):
        return lambda a, UPLO="L": function(  # noqa: N803  as in NumPy
            to_float(a) if UPLO.upper() == "L" else xp.conj(xp.matrix_transpose(to_float(a))))

    def apply(*arguments: Any, **options: Any) -> Any:
        if name == "svd" and not options.pop("compute_uv", True):
            return xp.linalg.svdvals(to_float(arguments[0]))
        return function(*[
            x if isinstance(x, int | str) else to_float(x) for x in arguments], **options)

    return apply


def multi_dot(arrays: Any) -> Any:
    """Compute the product of several matrices in the cheapest order."""
    parts = [to_array(x) for x in arrays]
    letters = [chr(ord("a") + k) for k in range(len(parts) + 1)]
    names = ["".join(pair) for pair in pairwise(letters)]
    if parts[0].ndim == 1:
        names[0] = names[0][1:]
    if parts[-1].ndim == 1:
        names[-1] = names[-1][:1]
    ends = [c for c in (letters[0], letters[-1]) if "".join(names).count(c) == 1]
    return xp.einsum(",".join(names) + "->" + "".join(ends), *parts)


def transform(name: str) -> Callable[..., Any]:
    """Return a function of `tecomp.array.fft` with NumPy's parameters."""
    function = getattr(xp.fft, name)
    if name.endswith("n"):
        def apply_over(a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
            return function(to_float(a), s=s, axes=axes, norm=norm or "backward")

        return apply_over

    def apply(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
        return function(to_float(a), n=n, axis=axis, norm=norm or "backward")

    return apply
