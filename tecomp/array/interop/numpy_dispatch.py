"""Dispatch of NumPy functions called with arrays (`__array_ufunc__`, `__array_function__`).

A NumPy function with an equivalent in the namespace is replaced by the equivalent. Functions that
inspect an array, convert it to NumPy or compare elements run in NumPy. All other functions are
rejected, because their results would be NumPy arrays without device and team. Errors for names that
the standard lacks name the replacement.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from functools import partial
from inspect import Parameter, isfunction, signature
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

import numpy as np

from tecomp.caches import memoize
from tecomp.errors import ArrayTypeError, MissingError
from tecomp.operations.elementwise import elementwise_in
from tecomp.operations.reductions import COMBINERS, CUMULATIVE


def split_names(text: str) -> list[str]:
    """Return the names of a table of words."""
    return text.split()


_REPLACEMENTS: Mapping[str, str] = {
    "array": "write xp.asarray(data), or xp.asarray(data, copy=True)",
    "concatenate": "write xp.concat(arrays, axis=...)",
    **dict.fromkeys(("hstack", "vstack", "dstack"), "write xp.concat or xp.stack with an axis"),
    "dot": "write xp.matmul(a, b), xp.vecdot(a, b) or xp.tensordot(a, b)",
    "inner": "write xp.vecdot(a, b)",
    "einsum": "write it by xp.matmul, xp.tensordot and xp.permute_dims",
    "transpose": "write xp.permute_dims(x, axes), x.T or x.mT",
    "swapaxes": "write xp.moveaxis(x, source, destination) or xp.permute_dims(x, axes)",
    **dict.fromkeys(("ravel", "flatten"), "write xp.reshape(x, (-1,))"),
    **dict.fromkeys(("cumsum", "cumprod"), "write xp.cumulative_sum(x) or xp.cumulative_prod(x)"),
    "unique": "write xp.unique_values(x), or unique_counts, unique_inverse",
    "copy": "write xp.asarray(x, copy=True)",
    "tolist": "write x.tolist()",
    "item": "write x.item()",
    **dict.fromkeys(("invert", "bitwise_not"), "write xp.bitwise_invert(x), or ~x"),
    **dict.fromkeys(("left_shift", "right_shift"), "write x << y or x >> y"),
    "power": "write xp.pow(x, y), or x ** y",
    "absolute": "write xp.abs(x)",
    "arcsin": "write xp.asin(x)",
    "arccos": "write xp.acos(x)",
    "arctan": "write xp.atan(x)",
    "arctan2": "write xp.atan2(y, x)",
    "argwhere": "write xp.stack(xp.nonzero(x), axis=-1)",
    "norm": "write xp.linalg.vector_norm(x) or xp.linalg.matrix_norm(x)",
    "outer": "write xp.linalg.outer(a, b)",
    "trace": "write xp.linalg.trace(x)",
    "diagonal": "write xp.linalg.diagonal(x)",
    "cross": "write xp.linalg.cross(a, b)",
    "to": "write x.to_device(device) or xp.astype(x, dtype)",
    "cpu": "write x.to_device('cpu')",
    "to_with_layout": "write x.to_device(device, layout=layout)",
    **dict.fromkeys(
        ("new_empty", "new_empty_with_layout"),
        "write xp.empty(shape, dtype=x.dtype, device=x.device, layout=layout)",
    ),
    "vectorize": "write the function with xp operations on whole arrays",
}
"""Replacements of NumPy names that neither the namespace nor `Array` has."""

METHODS: Mapping[str, tuple[str, str]] = {
    "all": ("x.all()", "Array(True, dtype=bool)"),
    "any": ("x.any()", "Array(True, dtype=bool)"),
    "argmax": ("x.argmax()", "Array(1, dtype=int64)"),
    "argmin": ("x.argmin()", "Array(0, dtype=int64)"),
    "argsort": ("x.argsort()", "Array([0, 2, 1], dtype=int64)"),
    "astype": ('x.astype("int8")', "Array([1, 3, 2], dtype=int8)"),
    "clip": ("x.clip(2, 3)", "Array([2., 3., 2.], dtype=float64)"),
    "compress": ("x.compress([True, False, True])", "Array([1., 2.], dtype=float64)"),
    "conj": ("x.conj()", "Array([1., 3., 2.], dtype=float64)"),
    "conjugate": ("x.conjugate()", "Array([1., 3., 2.], dtype=float64)"),
    "copy": ("x.copy()", "Array([1., 3., 2.], dtype=float64)"),
    "cumprod": ("x.cumprod()", "Array([1., 3., 6.], dtype=float64)"),
    "cumsum": ("x.cumsum()", "Array([1., 4., 6.], dtype=float64)"),
    "diagonal": ("xp.eye(2).diagonal()", "Array([1., 1.], dtype=float64)"),
    "dot": ("x.dot(x)", "Array(14., dtype=float64)"),
    "fill": ("x.fill(0)", ""),
    "flat": ("x.flat", "Array([1., 3., 2.], dtype=float64)"),
    "flatten": ("x.flatten()", "Array([1., 3., 2.], dtype=float64)"),
    "imag": ("x.imag", "Array([0., 0., 0.], dtype=float64)"),
    "item": ("x.item(0)", "1.0"),
    "itemsize": ("x.itemsize", "8"),
    "max": ("x.max()", "Array(3., dtype=float64)"),
    "mean": ("x.mean()", "Array(2., dtype=float64)"),
    "min": ("x.min()", "Array(1., dtype=float64)"),
    "nbytes": ("x.nbytes", "24"),
    "nonzero": ("x.nonzero()", "(Array([0, 1, 2], dtype=int64),)"),
    "prod": ("x.prod()", "Array(6., dtype=float64)"),
    "ptp": ("x.ptp()", "Array(2., dtype=float64)"),
    "ravel": ("x.ravel()", "Array([1., 3., 2.], dtype=float64)"),
    "real": ("x.real", "Array([1., 3., 2.], dtype=float64)"),
    "repeat": ("x.repeat(2)", "Array([1., 1., 3., 3., 2., 2.], dtype=float64)"),
    "reshape": ("x.reshape(3, 1).shape", "(3, 1)"),
    "round": ("x.round()", "Array([1., 3., 2.], dtype=float64)"),
    "searchsorted": ("x.searchsorted(2.0)", "Array(1, dtype=int64)"),
    "sort": ("x.sort()", ""),
    "squeeze": ("x.squeeze()", "Array([1., 3., 2.], dtype=float64)"),
    "std": ("x.std()", "Array(0.81649658, dtype=float64)"),
    "sum": ("x.sum()", "Array(6., dtype=float64)"),
    "swapaxes": ("xp.ones((2, 3)).swapaxes(0, 1).shape", "(3, 2)"),
    "take": ("x.take([0, 2])", "Array([1., 2.], dtype=float64)"),
    "tolist": ("x.tolist()", "[1.0, 3.0, 2.0]"),
    "trace": ("xp.eye(2).trace()", "Array(2., dtype=float64)"),
    "transpose": ("x.transpose()", "Array([1., 3., 2.], dtype=float64)"),
    "var": ("x.var()", "Array(0.66666667, dtype=float64)"),
}
"""Methods and attributes of NumPy's arrays that `tecomp.numpy` defines, with an example of each."""

_UFUNCS: Mapping[str, str] = {
    **{row.numpy_name: name for name, row in elementwise_in("array").items() if row.numpy_name},
    "matmul": "matmul", "vecdot": "vecdot",
}
"""NumPy universal functions, and the equivalent functions of the namespace."""

_REDUCTIONS: Mapping[str, str] = {row.ufunc: row.name for row in COMBINERS.values()}
"""Functions of the namespace that replace `ufunc.reduce`."""

_ALIASES: Mapping[str, str] = {
    "amax": "max", "amin": "min", "around": "round", "concatenate": "concat",
    **{f"cum{kind}": f"cumulative_{kind}" for kind in CUMULATIVE},
    "ravel": "reshape", "swapaxes": "permute_dims", "transpose": "permute_dims",
    "unique": "unique_values",
}
"""Equivalents of NumPy functions that have another name in the namespace."""

_RENAMED: Mapping[str, str] = {"ddof": "correction", "a_min": "min", "a_max": "max", "N": "n"}
"""Parameters that have another name in the namespace. The first parameters match by position."""

_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "order": ("C", "K"), "casting": ("same_kind",), "subok": (True, False), "where": (True,),
    "mode": ("raise",), "decimals": (0,), "kind": ("quicksort", "mergesort", "heapsort", "stable"),
    "assume_unique": (True, False), "UPLO": ("L",), "compute_uv": (True,), "hermitian": (False,),
    "return_index": (False,), "return_inverse": (False,), "return_counts": (False,),
    "equal_nan": (True,), "sorted": (True, False),
}
"""Parameters that the namespace lacks, with the values that do not change a result."""

_OF_TYPES = frozenset((
    "common_type", "iscomplexobj", "isrealobj", "ndim", "result_type", "shape", "size"))
"""NumPy functions that read only shapes and dtypes."""

_OF_ELEMENTS = frozenset((
    "allclose", "array2string", "array_equal", "array_equiv", "array_repr", "array_str",
    "atleast_1d", "atleast_2d", "atleast_3d", "copy", "copyto", "may_share_memory", "save",
    "savetxt", "savez", "savez_compressed", "shares_memory"))
"""NumPy functions that convert arrays to NumPy, or compare, print or store elements."""

_COPIED = frozenset(("atleast_1d", "atleast_2d", "atleast_3d", "copy"))
"""Functions of `_OF_ELEMENTS` whose results the caller may write to."""


def ufunc_of(ufunc: np.ufunc, method: str, options: Mapping[str, Any], xp: ModuleType) -> Any:
    """Return the function of the namespace that is equivalent to a NumPy universal function.

    Args:
        ufunc: Universal function.
        method: `__call__`, or another ufunc method such as `reduce`.
        options: Keyword arguments.
        xp: Namespace module.

    Raises:
        ArrayTypeError: If the namespace has no equivalent, or it does not support the options.
    """
    name = ufunc.__name__
    label = f"np.{name}" if getattr(np, name, None) is ufunc else name
    xp_name = _UFUNCS.get(name) if label != name else None
    if xp_name is None:
        _refuse(label, name)
    if method != "__call__":
        reduction = _REDUCTIONS.get(name) if method == "reduce" else None
        raise ArrayTypeError(
            "{where}.{method}: this ufunc method is not supported for tecomp arrays; call "
            "{functions}, or convert to NumPy with np.asarray(x)",
            where=label, method=method,
            functions="xp." + reduction if reduction else "functions of xp",
        )
    if options:
        _refuse_argument(label, next(iter(options)), xp_name)
    return getattr(xp, xp_name)


def call_numpy_function(
    function: Callable[..., Any], args: Any, options: Any, xp: ModuleType, kind: type
) -> Any:
    """Call the equivalent of a NumPy function that was called with arrays.

    Args:
        function: NumPy function.
        args: Positional arguments.
        options: Keyword arguments.
        xp: Namespace module.
        kind: Array class.

    Raises:
        ArrayTypeError: If there is no equivalent, or it does not support an argument.
    """
    name = f"{function.__module__}.{function.__name__}".removeprefix("numpy.")
    if name in _OF_TYPES:
        return _call_numpy(function, args, options, kind, _shape_alone)
    if name in _OF_ELEMENTS:
        convert = np.array if name in _COPIED else np.asarray
        return _call_numpy(function, args, options, kind, convert)
    if name in ("broadcast_arrays", "meshgrid"):
        return getattr(xp, name)(*args, **options)
    xp_name = _ALIASES.get(name, name)
    target = equivalent_of(xp_name, xp)
    if target is None:
        _refuse(f"np.{name}", name)
    adapter = _OF_NUMPY.get(name)
    parameters = _parameters(function, adapter or target)
    bound_args = _bind_arguments(name, parameters.names, args, options, xp_name)
    target = partial(adapter, xp) if adapter else target
    return _call(target, bound_args, parameters, f"np.{name}", xp_name)


def bind_to_function(
    function: Callable[..., Any], target: Callable[..., Any], name: str,
    convert: Callable[[Any], Any],
) -> Callable[..., Any]:
    """Return a function of the namespace with the parameters of a NumPy function.

    Args:
        function: NumPy function.
        target: Function of the namespace.
        name: Name in NumPy.
        convert: Function that returns an array for an operand that may be a number or a sequence.
    """
    parameters = _parameters(function, target)
    operands = parameters.positional

    def apply(*args: Any, **options: Any) -> Any:
        values = _bind_arguments(name, parameters.names, args, options, target.__name__)
        for key in operands:
            if key in values and values[key] is not None:
                values[key] = convert(values[key])
        return _call(target, values, parameters, f"np.{name}", target.__name__)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = target.__doc__
    return apply


def equivalent_of(name: str, xp: ModuleType) -> Callable[..., Any] | None:
    """Return a function of the namespace, such as `linalg.inv`, or None."""
    place: Any = xp
    for part in name.split("."):
        place = getattr(place, part, None)
    return place if isfunction(place) else None


def _ravel(xp: Any, x: Any, /) -> Any:
    return xp.reshape(x, (-1,))


def _squeeze(xp: Any, x: Any, /, axis: Any = None) -> Any:
    if axis is None:
        axis = tuple([k for k, extent in enumerate(x.shape) if extent == 1])
    return xp.squeeze(x, axis)


def _swapaxes(xp: Any, x: Any, /, axis1: int, axis2: int) -> Any:
    order = list(range(x.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return xp.permute_dims(x, order)


def _transpose(xp: Any, x: Any, /, axes: Any = None) -> Any:
    return xp.permute_dims(x, range(x.ndim)[::-1] if axes is None else axes)


def _unique(xp: Any, x: Any, /) -> Any:
    """Return the unique values with a single NaN, as NumPy does, sorted last."""
    values = xp.unique_values(x)
    if not xp.isdtype(x.dtype, ("real floating", "complex floating")):
        return values
    nans = int(xp.count_nonzero(xp.isnan(values)))
    return values[: values.shape[0] - max(nans - 1, 0)]


_OF_NUMPY: Mapping[str, Callable[..., Any]] = {
    "ravel": _ravel, "squeeze": _squeeze, "swapaxes": _swapaxes, "transpose": _transpose,
    "unique": _unique,
}
"""Adapters for functions whose defaults or results differ from the namespace."""


class _Parameters(NamedTuple):
    """Parameters of a NumPy function and of the function that replaces it.

    Attributes:
        names: NumPy's parameters in order, with the names of the replacement.
        positional: Positional-only parameters of the replacement.
        keywords: Other parameters of the replacement.
    """

    names: Mapping[str, str]
    positional: tuple[str, ...]
    keywords: frozenset[str]


@memoize("array.numpy_parameters")
def _parameters(function: Any, target: Any) -> _Parameters:
    """Match the parameters of a NumPy function with those of a function of the namespace."""
    kinds = {name: parameter.kind for name, parameter in signature(target).parameters.items()}
    kinds.pop("xp", None)  # the namespace, which adapters take first
    first = tuple([name for name, kind in kinds.items() if kind is Parameter.POSITIONAL_ONLY])
    try:
        names = [*signature(function).parameters]
    except ValueError:  # NumPy's functions in C have no signature before version 2.4
        names = [*kinds]
    renamed = {name: _RENAMED.get(name, name) for name in names[len(first) :]}
    return _Parameters(
        dict(zip(names, first, strict=False)) | renamed, first, frozenset(kinds) - {*first})


def _bind_arguments(
    name: str, xp_params: Mapping[str, str], args: Any, options: Mapping[str, Any], xp_name: str
) -> dict[str, Any]:
    """Return the arguments of a NumPy function by the parameter names of the namespace."""
    values = {**dict(zip(xp_params, args, strict=False)), **options}
    unknown = [key for key in values if key not in xp_params]
    if unknown:
        _refuse_argument(f"np.{name}", unknown[0], xp_name)
    missing = getattr(np, "_NoValue", None)
    return {xp_params[key]: value for key, value in values.items() if value is not missing}


def _call(
    function: Any, bound_args: Mapping[str, Any], parameters: _Parameters, label: str, xp_name: str
) -> Any:
    first, known = parameters.positional, parameters.keywords
    for key, value in bound_args.items():
        if key not in (*first, *known) and not (value is None or _is_neutral(key, value)):
            _refuse_argument(label, key, xp_name)
    return function(
        *[bound_args[key] for key in first if key in bound_args],
        **{key: value for key, value in bound_args.items() if key in known},
    )


def _is_neutral(name: str, value: object) -> bool:
    return isinstance(value, str | bool | int) and value in _NEUTRAL.get(name, ())


def _call_numpy(
    function: Any, args: Any, options: Any, kind: type, convert: Callable[[Any], Any]
) -> Any:
    """Call a NumPy function with arrays converted to NumPy."""
    return function(*_replace(args, kind, convert), **_replace(options, kind, convert))


def _replace(value: Any, kind: type, convert: Callable[[Any], Any]) -> Any:
    """Replace arrays in nested arguments."""
    if isinstance(value, kind):
        return convert(value)
    if isinstance(value, dict):
        return {key: _replace(item, kind, convert) for key, item in value.items()}
    if type(value) in (list, tuple):
        items: Iterable[Any] = [_replace(item, kind, convert) for item in value]
        return type(value)(items)
    return value


def _shape_alone(x: Any) -> np.ndarray[Any, Any]:
    """Return a NumPy array with the shape and dtype of an array, without its elements."""
    return np.broadcast_to(np.empty((), x.dtype), x.shape)


def _refuse(label: str, name: str) -> NoReturn:
    instead = _REPLACEMENTS.get(name.rpartition(".")[2], "")
    raise ArrayTypeError(
        "{where}: tecomp.array has no equivalent, and the NumPy function would return a NumPy "
        "array; {remedy}convert to NumPy with np.asarray(x)",
        kind="not-an-array", where=label, remedy=instead + ", or " if instead else "",
    )


def _refuse_argument(label: str, argument: str, xp_name: str) -> NoReturn:
    raise ArrayTypeError(
        "{where}: xp.{function} is called for tecomp arrays and does not support argument "
        "{argument}; omit it, call xp.{function} directly, or convert to NumPy with np.asarray(x)",
        where=label, function=xp_name, argument=argument,
    )


def describe_method(name: str) -> str:
    """Return the docstring of a method.

    >>> print(describe_method("nbytes"))
    Method or attribute of NumPy's arrays, with the parameters of NumPy.
    <BLANKLINE>
    >>> import tecomp.array as xp
    >>> x = xp.asarray([1.0, 3.0, 2.0])
    >>> x.nbytes
    24
    """
    example, shown = METHODS[name]
    lines = [
        "Method or attribute of NumPy's arrays, with the parameters of NumPy.", "",
        ">>> import tecomp.array as xp", ">>> x = xp.asarray([1.0, 3.0, 2.0])", f">>> {example}",
        shown,
    ]
    return "\n".join(lines).rstrip()


def unsupported_method_error(name: str, known: Collection[str]) -> AttributeError:
    """Return the error for an attribute that `Array` does not have, with a replacement if known.

    Args:
        name: Attribute name.
        known: Function names of the namespace.

    >>> unsupported_method_error("sum", ["sum"]).message
    "Array has no 'sum'; write xp.sum(x)"
    """
    if name.startswith("_"):  # libraries probe for protocols
        return AttributeError(f"'Array' object has no attribute {name!r}")
    if name in known:
        return MissingError("Array has no {name!r}; write xp.{name}(x)", name=name)
    if name in _REPLACEMENTS:
        remedy = _REPLACEMENTS[name]
        return MissingError("Array has no {name!r}; {remedy}", name=name, remedy=remedy)
    return AttributeError(f"'Array' object has no attribute {name!r}")


def unsupported_function_error(name: str, known: Collection[str]) -> AttributeError:
    """Return the error for a name that the namespace does not have, with a replacement if known.

    >>> unsupported_function_error("concatenate", []).message
    "tecomp.array has no 'concatenate'; write xp.concat(arrays, axis=...)"
    """
    if name in _REPLACEMENTS:
        return MissingError(
            "tecomp.array has no {name!r}; {remedy}",
            name=name, remedy=_REPLACEMENTS[name],
        )
    matches = get_close_matches(name, [key for key in known if not key.startswith("_")], 1, 0.8)
    if matches and not name.startswith("_"):
        return MissingError(
            "tecomp.array has no {name!r}; did you mean xp.{suggestion}?",
            name=name, suggestion=matches[0],
        )
    return AttributeError(f"module 'tecomp.array' has no attribute {name!r}")
