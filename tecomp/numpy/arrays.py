"""Creation, manipulation and methods of arrays, with NumPy's parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

import tecomp.array as xp
from tecomp.array import Array
from tecomp.array.functions.data_types import asarray as _asarray
from tecomp.array.graph.evaluate import data_of
from tecomp.errors import ArrayTypeError, ArrayValueError

NUMBERS = (bool, int, float, complex, np.generic)
"""Python and NumPy scalars: functions of numbers alone return NumPy scalars."""


def to_array(value: Any, dtype: Any = None) -> Any:
    """Return an array, a number or nested sequences as an array.

    >>> to_array([1, 2])
    Array([1, 2], dtype=int64)
    """
    if value.__class__ is Array and dtype is None:
        return value
    return _asarray(value, dtype=dtype)


def to_float(x: Any) -> Array:
    """Return an array whose integers and booleans are float64.

    >>> to_float([1, 2])
    Array([1., 2.], dtype=float64)
    """
    x = to_array(x)
    return x if x.dtype.kind in "fcV" else xp.astype(x, np.float64)


def to_number(x: Any) -> Array:
    """Return an array whose booleans are integers.

    >>> to_number([True, False])
    Array([1, 0], dtype=int8)
    """
    x = to_array(x)
    return xp.astype(x, np.int8) if x.dtype.kind == "b" else x


def store(result: Any, out: Any, where: Any = True, dtype: Any = None) -> Any:
    """Return a result in the dtype and in the array that the caller requests.

    Args:
        result: Result of a function.
        out: Array whose elements are replaced, or None.
        where: Condition for elements of `out` to be replaced.
        dtype: dtype of the result. Default: that of `result`.
    """
    if dtype is not None:
        result = xp.astype(to_array(result), dtype, copy=False)
    if isinstance(out, tuple):
        (out,) = out
    if out is None:
        return result
    if where is not True:
        result = xp.where(to_array(where), result, out)
    out[...] = result if result.dtype == out.dtype else xp.astype(result, out.dtype)
    return out


# Creation and conversion


def array(
    obj: Any, dtype: Any = None, *, copy: bool | None = True, order: Any = None,
    subok: bool = False, ndmin: int = 0, **options: Any,
) -> Any:
    """Return an array of numbers; sequences of strings and objects become NumPy arrays."""
    kind = getattr(obj, "dtype", None)
    if dtype not in (str, object, np.str_, np.object_) and not isinstance(obj, str | bytes) and (
        kind is None or kind.kind in "biufcV"
    ):
        try:
            found = _asarray(obj, dtype=dtype, copy=copy, **options)
        except (ArrayTypeError, ArrayValueError):
            data = np.array(obj, dtype)
            if data.dtype.kind not in "SUOMm":
                raise
            return data
        missing = ndmin - found.ndim
        return found if missing <= 0 else xp.reshape(found, (1,) * missing + found.shape)
    return np.array(obj, dtype, copy=copy, ndmin=ndmin)


def asarray(a: Any, dtype: Any = None, order: Any = None, **options: Any) -> Any:
    """Return an array; an array of the dtype is returned itself."""
    if a.__class__ is Array and dtype is None and not options:
        return a
    return array(a, dtype, copy=options.pop("copy", None), **options)


def creation(name: str) -> Callable[..., Array]:
    """Return `zeros`, `ones` or `empty` with NumPy's parameters."""
    function = getattr(xp, name)

    def create(shape: Any, dtype: Any = None, order: Any = None, **options: Any) -> Any:
        return function(_shape(shape), dtype=dtype, **options)

    return create


def creation_like(name: str) -> Callable[..., Array]:
    """Return `zeros_like`, `ones_like` or `empty_like` with NumPy's parameters."""
    function, fill = getattr(xp, name), getattr(xp, name.removesuffix("_like"))

    def create(
        a: Any, dtype: Any = None, order: Any = None, subok: bool = True, shape: Any = None,
        **options: Any,
    ) -> Any:
        a = to_array(a)
        if shape is None:
            return function(a, dtype=dtype, **options)
        return fill(_shape(shape), dtype=a.dtype if dtype is None else dtype, **options)

    return create


def _shape(shape: Any) -> Any:
    return tuple([int(n) for n in shape]) if isinstance(shape, list | tuple | Array) else shape


def full(shape: Any, fill_value: Any, dtype: Any = None, order: Any = None, **options: Any) -> Any:
    """Return an array filled with one value."""
    value: Any = fill_value if isinstance(fill_value, NUMBERS) else to_array(fill_value)
    if dtype is None and isinstance(value, np.generic):
        dtype = value.dtype
    return xp.full(_shape(shape), value, dtype=dtype, **options)


def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: Any = None, subok: bool = True,
    shape: Any = None,
) -> Any:
    """Return an array like another one, filled with one value."""
    a = to_array(a)
    return full(a.shape if shape is None else shape, fill_value, dtype or a.dtype)


def arange(*bounds: Any, dtype: Any = None, **options: Any) -> Any:
    """Return evenly spaced values in a half-open interval."""
    names = [name for name in ("start", "stop", "step") if name in options]
    if len(bounds) == 4:
        *bounds, dtype = bounds  # type: ignore[assignment]
    if names and names != ["step"]:
        bounds = (*bounds, *[options.pop(name) for name in names])
    return xp.arange(*bounds, dtype=dtype, **options)


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False,
    dtype: Any = None, axis: int = 0, **options: Any,
) -> Any:
    """Return evenly spaced values over an interval; bounds may be arrays."""
    if isinstance(start, Array | list | tuple) or isinstance(stop, Array | list | tuple):
        first, last = to_array(start), to_array(stop)
        if first.ndim or last.ndim:
            return xp.call_on_host("linspace", first, last, num, endpoint, retstep, dtype, axis)
        start, stop = first.item(), last.item()
    if isinstance(start, np.generic) or isinstance(stop, np.generic):
        start, stop = (x.item() if isinstance(x, np.generic) else x for x in (start, stop))
    found = xp.linspace(start, stop, num, endpoint=endpoint, dtype=dtype, **options)
    step = (stop - start) / max(num - bool(endpoint), 1)
    return (found, step) if retstep else found


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: float = 10.0,
    dtype: Any = None,
) -> Any:
    """Return numbers whose logarithms are evenly spaced."""
    return store(base ** linspace(start, stop, num, endpoint), None, dtype=dtype)


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float, **options: Any) -> Any:  # noqa: N803
    """Return a matrix with ones on one diagonal."""
    options.pop("order", None)
    return xp.eye(N, M, k=k, dtype=dtype, **options)


def identity(n: int, dtype: Any = None) -> Any:
    """Return an identity matrix."""
    return xp.eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> Any:  # noqa: N803
    """Return a matrix with ones on and below a diagonal."""
    return xp.tri(N, M, k=k, dtype=dtype)


def copy(a: Any, order: str = "K", subok: bool = False) -> Array:
    """Return a copy."""
    return _asarray(a, copy=True)


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """Return coordinate arrays for coordinate vectors."""
    grids = xp.meshgrid(*[to_array(x) for x in xi], indexing=indexing)
    if sparse:
        return tuple([
            grid[tuple([slice(None) if n == axis else slice(0, 1) for n in range(grid.ndim)])]
            for grid, axis in zip(grids, _axes_of_grid(len(grids), indexing), strict=True)
        ])
    return tuple(grids)


def _axes_of_grid(count: int, indexing: str) -> Sequence[int]:
    return [1, 0, *range(2, count)] if indexing == "xy" and count > 1 else range(count)


def fromfunction(
    function: Callable[..., Any], shape: Any, *, dtype: Any = float, **options: Any
) -> Any:
    """Call a function with the coordinates of each element, as arrays."""
    coordinates = xp.meshgrid(*[xp.arange(n, dtype=dtype) for n in shape], indexing="ij")
    return function(*coordinates, **options)


def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    """Return the coordinates of each element."""
    vectors = [xp.arange(n, dtype=dtype) for n in dimensions]
    found = meshgrid(*vectors, sparse=sparse, indexing="ij")
    return found if sparse else xp.stack(found)


def vectorize(pyfunc: Callable[..., Any], otypes: Any = None, **options: Any) -> Any:
    """Return a function that calls a Python function for each element, on the host."""
    function = np.vectorize(pyfunc, otypes, **options)

    def call(*args: Any, **kwargs: Any) -> Any:
        found = function(*[np.asarray(x) if isinstance(x, Array) else x for x in args], **kwargs)
        return tuple(map(to_array, found)) if isinstance(found, tuple) else to_array(found)

    return call


# Joining, splitting and moving


def arrays_of(values: Any) -> list[Array]:
    """Return the items of a sequence as arrays."""
    return [to_array(value) for value in values]


def concatenate(
    arrays: Any, axis: int | None = 0, out: Any = None, *, dtype: Any = None,
    casting: str = "same_kind",
) -> Any:
    """Join arrays along an existing axis."""
    return store(xp.concat(arrays_of(arrays), axis=axis), out, dtype=dtype)


def stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, **_: Any) -> Any:
    """Join arrays along a new axis."""
    return store(xp.stack(arrays_of(arrays), axis=axis), out, dtype=dtype)


def atleast(rank: int) -> Callable[..., Any]:
    """Return the function that adds axes of size 1 up to a rank."""

    def extend(*arys: Any) -> Any:
        found = [with_axes(to_array(x), rank) for x in arys]
        return found[0] if len(found) == 1 else tuple(found)

    return extend


def with_axes(x: Array, rank: int) -> Array:
    """Add axes of size 1 up to a rank, as `np.atleast_1d` and its relatives do."""
    if x.ndim >= rank:
        return x
    if rank == 3 and x.ndim:
        return xp.reshape(x, (1, *x.shape, 1) if x.ndim == 1 else (*x.shape, 1))
    return xp.reshape(x, (1,) * (rank - x.ndim) + x.shape)


def vstack(tup: Any, *, dtype: Any = None, **_: Any) -> Any:
    """Join arrays along the first axis; vectors are rows."""
    return concatenate([with_axes(x, 2) for x in arrays_of(tup)], 0, dtype=dtype)


def hstack(tup: Any, *, dtype: Any = None, **_: Any) -> Any:
    """Join arrays along the second axis, vectors along the first one."""
    parts = [with_axes(x, 1) for x in arrays_of(tup)]
    return concatenate(parts, 0 if parts and parts[0].ndim == 1 else 1, dtype=dtype)


def dstack(tup: Any) -> Any:
    """Join arrays along the third axis."""
    return concatenate([with_axes(x, 3) for x in arrays_of(tup)], 2)


def column_stack(tup: Any) -> Any:
    """Join arrays along the second axis; vectors are columns."""
    return concatenate([
        x if x.ndim > 1 else xp.reshape(x, (-1, 1)) for x in arrays_of(tup)], 1)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Split an array into views, a given number or at given indices."""
    ary = to_array(ary)
    size = ary.shape[axis]
    if isinstance(indices_or_sections, int | np.integer):
        count = int(indices_or_sections)
        if count <= 0:
            raise ArrayValueError(
                "array_split: the number of parts must be positive, got {count}", count=count)
        short, longer = divmod(size, count)
        bounds = [0, *np.cumsum([short + (k < longer) for k in range(count)]).tolist()]
    else:
        bounds = [0, *[int(k) for k in indices_or_sections], size]
    before = (slice(None),) * (axis % ary.ndim)
    return [
        ary[(*before, slice(*part))]
        for part in pairwise(bounds)
    ]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Split an array into views, into equal parts or at given indices."""
    ary = to_array(ary)
    count = indices_or_sections
    if isinstance(count, int | np.integer) and ary.shape[axis] % int(count):
        raise ArrayValueError(
            "split: axis {axis} of size {extent} has no {count} equal parts; use array_split",
            kind="array-shapes", axis=axis, extent=ary.shape[axis], count=int(count),
        )
    return array_split(ary, indices_or_sections, axis)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """Split an array along its second axis, a vector along its first one."""
    ary = to_array(ary)
    return split(ary, indices_or_sections, min(ary.ndim - 1, 1))


def reshape(a: Any, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> Array:
    """Give an array a new shape, in the order of rows or of columns."""
    a = to_array(a)
    if isinstance(shape, Array):
        shape = tuple(shape.tolist())
    if order == "F":
        sizes = shape if isinstance(shape, list | tuple) else (shape,)
        return xp.reshape(a.T, tuple(sizes)[::-1], copy=copy).T
    return xp.reshape(a, shape, copy=copy)


def ravel(a: Any, order: str = "C") -> Array:
    """Return the elements as a vector."""
    return reshape(a, (-1,), order)


def transpose(a: Any, axes: Any = None) -> Array:
    """Permute the axes; by default, reverse their order."""
    a = to_array(a)
    return a.T if axes is None else xp.permute_dims(a, tuple(axes))


def swapaxes(a: Any, axis1: int, axis2: int) -> Array:
    """Exchange two axes."""
    a = to_array(a)
    order = list(range(a.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return xp.permute_dims(a, tuple(order))


def squeeze(a: Any, axis: Any = None) -> Array:
    """Remove axes of size 1, by default all of them."""
    a = to_array(a)
    axes = tuple([k for k, n in enumerate(a.shape) if n == 1]) if axis is None else axis
    return xp.squeeze(a, axes)


def expand_dims(a: Any, axis: Any) -> Array:
    """Insert axes of size 1."""
    return xp.expand_dims(to_array(a), axis)


def roll(a: Any, shift: Any, axis: Any = None) -> Array:
    """Shift elements along axes with wrap-around."""
    if isinstance(shift, Array):
        shift = shift.tolist()
    if isinstance(axis, tuple | list) and not isinstance(shift, tuple | list):
        shift = (shift,) * len(axis)
    return xp.roll(to_array(a), shift, axis=axis)


def flip_axis(axis: int) -> Callable[[Any], Array]:
    """Return the function that reverses an axis."""

    def reverse(m: Any) -> Array:
        return xp.flip(to_array(m), axis=axis)

    return reverse


def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Any:
    """Rotate a plane of two axes by quarters of a turn."""
    m = to_array(m)
    first, second = axes
    turns = k % 4
    if turns == 2:
        return xp.flip(m, axis=(first, second))
    if not turns:
        return m
    if turns == 1:
        return swapaxes(xp.flip(m, axis=second), first, second)
    return xp.flip(swapaxes(m, first, second), axis=second)


def tile(A: Any, reps: Any) -> Array:  # noqa: N803
    """Repeat an array along each axis."""
    return xp.tile(to_array(A), tuple(reps) if isinstance(reps, list | tuple) else (int(reps),))


def repeat(a: Any, repeats: Any, axis: int | None = None) -> Array:
    """Repeat each element."""
    count: Any = repeats if isinstance(repeats, int | np.integer) else to_array(repeats)
    return xp.repeat(to_array(a), count, axis=axis)


def append(arr: Any, values: Any, axis: int | None = None) -> Array:
    """Join values after an array."""
    return xp.concat(arrays_of([arr, values]), axis=axis)


def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Array:
    """Broadcast an array to a shape."""
    return xp.broadcast_to(to_array(array), shape)


def ix_(*args: Any) -> tuple[Array, ...]:
    """Return index arrays that select the product of sequences."""
    parts = [to_array(x) for x in args]
    return tuple([
        xp.reshape(xp.nonzero(x)[0] if x.dtype.kind == "b" else x,
                   (*(1,) * k, -1, *(1,) * (len(parts) - k - 1)))
        for k, x in enumerate(parts)
    ])


# Methods


def _reshape(self: Array, *shape: Any, order: str = "C", copy: bool | None = None) -> Array:
    return reshape(self, shape[0] if len(shape) == 1 else shape, order, copy=copy)


def _transpose(self: Array, *axes: Any) -> Array:
    if len(axes) == 1 and not isinstance(axes[0], int | np.integer):
        (axes,) = axes
    return transpose(self, axes or None)


def _astype(
    self: Array, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True,
    copy: bool = True,
) -> Array:
    return xp.astype(self, dtype, copy=copy)


def _flatten(self: Array, order: str = "C") -> Array:
    return reshape(self, (-1,), order, copy=True)


def _fill(self: Array, value: Any) -> None:
    self[...] = value


def _item(self: Array, *index: Any) -> bool | int | float | complex:
    if index:
        key = index[0] if len(index) == 1 else index
        self = self[key] if isinstance(key, tuple) else reshape(self, (-1,))[key]
    if self.size != 1:
        raise ArrayTypeError(
            "item(x): x has shape {shape} with {size} elements, expected 1 element; select an "
            "element, x[0], or convert all elements, x.tolist()",
            shape=self.shape, size=self.size,
        )
    number: bool | int | float | complex = elements_of(self).item()
    return number


def _tolist(self: Array) -> Any:
    return elements_of(self).tolist()


def _sort(self: Array, axis: int = -1, kind: Any = None, order: Any = None) -> None:
    self[...] = xp.sort(self, axis=axis)


def elements_of(x: Array) -> np.ndarray[Any, Any]:
    """Return the elements of an array, which must not be written to."""
    return data_of(x._node)


def _itemsize(self: Array) -> int:
    return self.dtype.itemsize


def _nbytes(self: Array) -> int:
    return self.size * self.dtype.itemsize


def _real(self: Array) -> Array:
    return xp.real(self) if self.dtype.kind == "c" else self


def _imag(self: Array) -> Array:
    return xp.imag(self) if self.dtype.kind == "c" else xp.zeros_like(self)


def _compress(self: Array, condition: Any, axis: int | None = None) -> Array:
    return xp.take(self, xp.nonzero(ravel(condition))[0], axis=axis)


METHODS: Mapping[str, Any] = {
    "astype": _astype, "compress": _compress, "fill": _fill, "flat": property(ravel),
    "flatten": _flatten, "imag": property(_imag), "item": _item, "itemsize": property(_itemsize),
    "nbytes": property(_nbytes), "real": property(_real), "reshape": _reshape, "sort": _sort,
    "tolist": _tolist, "transpose": _transpose,
}
"""Methods and properties that are not functions of the same name."""
