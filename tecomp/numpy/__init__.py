"""Arrays under NumPy's names: `import tecomp.numpy as np`.

The functions are those of `tecomp.array`, with the names, parameters and defaults of NumPy. Names
are resolved on first use, by the first of these rules that applies:

1. an entry of `FUNCTIONS`, which differs from `tecomp.array` in more than its name;
2. an element-wise function of the table of operations, under its name in NumPy;
3. a function of `tecomp.array` that NumPy has as well, with NumPy's parameters by position;
4. an entry of `ON_HOST`: NumPy computes the function, with the elements of the arrays;
5. an entry of `UNCHANGED`: dtypes, constants and settings are those of NumPy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cache, partial
from inspect import isfunction
from types import ModuleType
from typing import Any

import numpy as _numpy

import tecomp.array as _xp
from tecomp.array import Array
from tecomp.array.interop.numpy_dispatch import bind_to_function as _bind
from tecomp.array.interop.numpy_dispatch import describe_method as _describe_method
from tecomp.array.interop.numpy_dispatch import split_names as _split_names
from tecomp.errors import ArrayValueError as _ArrayValueError
from tecomp.errors import MissingError as _MissingError
from tecomp.numpy import arrays as _arrays
from tecomp.numpy import computation as _computation
from tecomp.operations.elementwise import elementwise_in as _elementwise_in

_Loader = Callable[[], Any]
_MISSING = object()


def _rows(loader: Callable[[str], Any], names: str) -> dict[str, _Loader]:
    """Return entries `numpy_name=name` that are made from the names in `tecomp.array`."""
    pairs = [entry.partition("=") for entry in names.split()]
    return {name: partial(loader, source or name) for name, _, source in pairs}


def _functions_of(module: ModuleType, names: str) -> dict[str, _Loader]:
    return _rows(partial(getattr, module), names)


FUNCTIONS: Mapping[str, _Loader] = {
    **_functions_of(_arrays, """
        append arange array array_split asanyarray=asarray asarray ascontiguousarray=asarray
        broadcast_to column_stack concat=concatenate concatenate copy dstack expand_dims eye
        fromfunction full full_like hsplit hstack identity indices ix_ linspace logspace meshgrid
        ravel repeat reshape roll rot90 row_stack=vstack split squeeze stack swapaxes tile
        transpose permute_dims=transpose tri vectorize vstack
        """),
    **_rows(_arrays.creation, "empty ones zeros"),
    **_rows(_arrays.creation_like, "empty_like ones_like zeros_like"),
    **{f"atleast_{rank}d": partial(_arrays.atleast, rank) for rank in (1, 2, 3)},
    "fliplr": partial(_arrays.flip_axis, 1), "flipud": partial(_arrays.flip_axis, 0),
    "vsplit": partial(getattr, _arrays, "split"),
    **_functions_of(_computation, """
        angle argsort argwhere around=round average clip compress corrcoef cov cross diagonal dot
        einsum extract flatnonzero gradient in1d=isin inner isin matmul outer pad piecewise ptp
        round searchsorted select sort take tensordot trace unique vdot where
        """),
    **_rows(_computation.reduction, "all amax=max amin=min any max mean min prod sum"),
    **_rows(_computation.deviation, "std var"),
    **_rows(_computation.search, "argmax argmin"),
    **_rows(_computation.accumulation, """
        cumprod=cumulative_prod cumsum=cumulative_sum
        """),
    **_rows(_computation.truth, "allclose array_equal"),
    **_rows(_computation.in_place, """
        copyto fill_diagonal place put put_along_axis putmask
        """),
    "deg2rad": partial(_computation.scaling, _numpy.pi / 180),
    "rad2deg": partial(_computation.scaling, 180 / _numpy.pi),
}
"""Functions by name: each entry returns the function."""

ALIASES: Mapping[str, str] = {
    "abs": "absolute", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh",
    "atan": "arctan", "atan2": "arctan2", "atanh": "arctanh", "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift", "bitwise_not": "invert",
    "bitwise_right_shift": "right_shift", "conj": "conjugate", "degrees": "rad2deg",
    "fabs": "absolute", "fix": "trunc", "mod": "remainder", "pow": "power", "radians": "deg2rad",
    "true_divide": "divide", "trapz": "trapezoid",
}
"""Names of NumPy that are other names for a function of this namespace."""

ON_HOST = frozenset(_split_names("""
    apply_along_axis apply_over_axes argpartition bartlett base_repr binary_repr bitwise_count
    blackman block cbrt choose delete diag_indices diag_indices_from diagflat ediff1d
    einsum_path exp2 float_power fmax fmin fmod frexp frombuffer fromiter fromstring gcd
    genfromtxt geomspace hamming hanning heaviside histogram_bin_edges histogramdd i0 insert
    intersect1d iscomplex isneginf isposinf isreal kaiser lcm ldexp lexsort loadtxt logaddexp2
    mask_indices modf nanargmax nanargmin nancumprod nancumsum nanmedian nanpercentile nanprod
    nanquantile packbits partition poly polyadd polyder polydiv polyfit polyint polymul polysub
    polyval ravel_multi_index real_if_close resize rollaxis roots setdiff1d setxor1d sinc
    sort_complex spacing tril_indices tril_indices_from trim_zeros triu_indices
    triu_indices_from union1d unpackbits unravel_index unwrap
    """))
"""Functions that NumPy computes on the host, as `xp.statistics.counters` reports."""

UNCHANGED = frozenset(_split_names("""
    array2string array_repr array_str bool bool_ broadcast_shapes byte bytes_ can_cast cdouble
    character common_type complex128 complex64 complexfloating csingle datetime64 double dtype e
    errstate euler_gamma finfo float16 float32 float64 floating format_float_positional
    format_float_scientific generic get_printoptions half iinfo index_exp inexact inf int16
    int32 int64 int8 int_ intc integer intp iscomplexobj isrealobj isscalar issubdtype iterable
    long longlong may_share_memory min_scalar_type nan ndenumerate ndim ndindex newaxis number
    object_ pi printoptions promote_types result_type s_ savetxt set_printoptions seterr shape
    shares_memory short signedinteger single size str_ testing timedelta64 ubyte uint uint16
    uint32 uint64 uint8 uintc uintp ulong unsignedinteger ushort
    """))
"""Names that are NumPy's own: dtypes, constants, settings, and functions of shapes and dtypes."""

_INSTEAD: Mapping[str, str] = {
    "matrix": "write np.array with two axes, and @ for products",
    "asmatrix": "write np.asarray with two axes, and @ for products",
    "memmap": "write np.load(file, mmap_mode='r')",
    "ma": "write np.where with a condition, or nan-functions such as np.nanmean",
    "nditer": "write operations on whole arrays, or a loop over np.ndindex(x.shape)",
    "frompyfunc": "write np.vectorize(f), or f with operations on whole arrays",
    "polynomial": "write np.polyfit, np.polyval and np.roots",
    "rec": "write one array for each column",
    "product": "write np.prod(x)", "cumproduct": "write np.cumprod(x)",
    "sometrue": "write np.any(x)", "alltrue": "write np.all(x)",
    "msort": "write np.sort(x, axis=0)",
    "asfarray": "write np.asarray(x, dtype=float)", "float_": "write np.float64",
    "complex_": "write np.complex128", "Inf": "write np.inf", "NaN": "write np.nan",
}
"""Replacements of names that neither NumPy 2 nor this namespace has."""


def _name_function(name: str, function: Any) -> Any:
    """Set the name and the docstring of a function that a table defines."""
    if isfunction(function) and function.__module__.startswith("tecomp.numpy"):
        function.__name__ = function.__qualname__ = name
        function.__doc__ = getattr(_find(_numpy, name), "__doc__", None) or function.__doc__
    return function


def array_method(name: str) -> Any:
    """Return a method or property of arrays: by default, the function of the same name.

    >>> array_method("ravel").__name__
    'ravel'
    """
    method = _arrays.METHODS.get(name) or __getattr__(name)
    method.__doc__ = _describe_method(name)
    return method


def _find(module: Any, name: str) -> Any:
    for part in name.split("."):
        module = getattr(module, part, None)
    return module


def _on_host(name: str) -> Any:
    return partial(_xp.call_on_host, name)


def _load(name: str) -> Any:
    """Return the value of a name; `_MISSING` if the namespace does not have it."""
    if name in ALIASES:
        return _load(ALIASES[name])
    if name in FUNCTIONS:
        return FUNCTIONS[name]()
    row = _ufuncs().get(name)
    if row is not None:
        return _name_function(name, _computation.elementwise(name, row))
    if name in ON_HOST:
        return _on_host(name)
    if name in UNCHANGED:
        return getattr(_numpy, name)
    target, source = getattr(_xp, name, None), getattr(_numpy, name, None)
    if isfunction(target) and source is not None:
        return _bind(source, target, name, _arrays.to_array)
    return _MISSING


@cache
def _ufuncs() -> dict[str, Any]:
    """Return the element-wise functions by their names in NumPy."""
    return {row.numpy_name: row for row in _elementwise_in("array").values() if row.numpy_name}


def _names() -> list[str]:
    """Return all names of the namespace."""
    shared = [n for n in dir(_xp) if isfunction(getattr(_xp, n)) and hasattr(_numpy, n)]
    found = {*FUNCTIONS, *ALIASES, *_ufuncs(), *ON_HOST, *UNCHANGED, *_IO, *shared}
    return sorted(n for n in found if hasattr(sys.modules[__name__], n))


def _save(name: str) -> Any:
    """Return `save` and its relatives, which write the elements of arrays."""
    write = getattr(_numpy, name)

    def save(file: Any, *args: Any, **options: Any) -> None:
        write(file, *map(_as_numpy, args), **{k: _as_numpy(v) for k, v in options.items()})

    return save


def _as_numpy(value: Any) -> Any:
    return _arrays.elements_of(value) if isinstance(value, Array) else value


def _read(file: Any, mmap_mode: Any = None, **options: Any) -> Any:
    """Read an array, or the arrays of an archive by their names."""
    found = _numpy.load(file, mmap_mode=mmap_mode, **options)
    if isinstance(found, _numpy.ndarray):
        return _arrays.array(found, copy=None)
    with found:
        return {name: _arrays.array(found[name], copy=False) for name in found.files}


_IO: Mapping[str, _Loader] = {
    "load": lambda: _read, **_rows(_save, "save savez savez_compressed"),
}


class _Submodule(ModuleType):
    """Submodule whose names are loaded on first use."""

    def __init__(self, name: str, load: Callable[[str], Any]) -> None:
        super().__init__(f"{__name__}.{name}", f"Functions of numpy.{name} for arrays.")
        self.__dict__["_load"] = load
        sys.modules[self.__name__] = self

    def __getattr__(self, name: str) -> Any:
        found = _MISSING if name.startswith("_") else self._load(name)
        if found is _MISSING:
            raise _absent(f"{self.__name__.removeprefix('tecomp.')}.{name}")
        setattr(self, name, found)
        return found


def _load_linalg(name: str) -> Any:
    if name == "LinAlgError":
        return _ArrayValueError
    if name in ("norm", "multi_dot", "trace", "diagonal", "cross", "outer", "tensordot", "matmul"):
        return getattr(_computation, name)
    if isfunction(getattr(_xp.linalg, name, None)):
        return _computation.of_matrices(name)
    return _on_host(f"linalg.{name}") if hasattr(_numpy.linalg, name) else _MISSING


def _load_fft(name: str) -> Any:
    if name.endswith("freq"):
        return lambda n, d=1.0, **options: getattr(_xp.fft, name)(n, d=d, **options)
    if name.endswith("shift"):
        return lambda x, axes=None: getattr(_xp.fft, name)(_arrays.to_array(x), axes=axes)
    if isfunction(getattr(_xp.fft, name, None)):
        return _computation.transform(name)
    if name.endswith("2") and hasattr(_numpy.fft, name):
        transform = _computation.transform(name[:-1] + "n")
        return lambda a, s=None, axes=(-2, -1), norm=None: transform(a, s, axes, norm)
    return _MISSING


class _Grid:
    """Object whose index gives coordinate arrays, `np.mgrid` and its relatives."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        found = getattr(_numpy, self.name)[
            tuple(map(_as_numpy, parts)) if isinstance(key, tuple) else _as_numpy(key)]
        return tuple(map(_arrays.to_array, found)) if isinstance(
            found, tuple) else _arrays.to_array(found)


def _absent(name: str) -> AttributeError:
    """Return the error for a name that the namespace does not have."""
    short = name.removeprefix("numpy.")
    if short in _INSTEAD:
        return _MissingError(
            "tecomp.numpy has no {name!r}; {remedy}", name=short, remedy=_INSTEAD[short])
    if _find(_numpy, short) is not None:
        return _MissingError(
            "tecomp.numpy has no {name!r}; call NumPy's function with np.asarray(x) of NumPy, and "
            "convert its result with tecomp.numpy.array",
            name=short,
        )
    matches = get_close_matches(short, [*FUNCTIONS, *ALIASES, *_ufuncs(), *ON_HOST], 1, 0.8)
    if matches and not short.startswith("_"):
        return _MissingError(
            "tecomp.numpy has no {name!r}; did you mean np.{suggestion}?",
            name=short, suggestion=matches[0],
        )
    return AttributeError(f"module 'tecomp.numpy' has no attribute {short!r}")


ndarray = Array
linalg = _Submodule("linalg", _load_linalg)
fft = _Submodule("fft", _load_fft)

def __getattr__(name: str) -> Any:
    found: Any
    if name == "random":
        import tecomp.numpy.random as random

        return random
    if name in ("mgrid", "ogrid", "r_", "c_"):
        found = _Grid(name)
    elif name in _IO:
        found = _name_function(name, _IO[name]())
    else:
        found = _MISSING if name.startswith("_") else _load(name)
    if found is _MISSING:
        raise _absent(name)
    setattr(sys.modules[__name__], name, found)
    return found


def __dir__() -> list[str]:
    return [*_names(), "fft", "linalg", "ndarray", "random"]
