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
from inspect import Parameter, signature
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from tecomp.caches import memoize
from tecomp.errors import ArrayTypeError, MissingError
from tecomp.operations.elementwise import elementwise_in
from tecomp.operations.reductions import COMBINERS

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
    "random": "generate values with numpy.random and pass them to xp.asarray",
    "to_with_layout": "write x.to_device(device, layout=layout)",
    **dict.fromkeys(
        ("new_empty", "new_empty_with_layout"),
        "write xp.empty(shape, dtype=x.dtype, device=x.device, layout=layout)",
    ),
    "vectorize": "write the function with xp operations on whole arrays",
}
"""Replacements of NumPy names that neither the namespace nor `Array` has."""

_UFUNCS: Mapping[str, str] = {
    **{row.numpy_name: name for name, row in elementwise_in("array").items() if row.numpy_name},
    "matmul": "matmul", "vecdot": "vecdot",
}
"""NumPy universal functions, and the equivalent functions of the namespace."""

_REDUCTIONS: Mapping[str, str] = {row.ufunc: row.name for row in COMBINERS.values()}
"""Functions of the namespace that replace `ufunc.reduce`."""

_REDUCED = "a:x axis dtype out keepdims initial where"
_EXTREME = "a:x axis out keepdims initial where"
_TESTED = "a:x axis out keepdims where"
_SPREAD = "a:x axis dtype out ddof:correction keepdims where mean correction"
_LIKE = "a:x dtype order subok shape device"
_ALONG = "a:x n axis norm out"
_ACROSS = "a:x s axes norm out"

_FUNCTIONS: Mapping[str, tuple[str, str]] = {
    "all": ("all", _TESTED), "any": ("any", _TESTED),
    "argmax": ("argmax", "a:x axis out keepdims"), "argmin": ("argmin", "a:x axis out keepdims"),
    "argsort": ("argsort", "a:x axis kind order stable"),
    "astype": ("astype", "x dtype copy device"),
    "broadcast_to": ("broadcast_to", "array:x shape subok"),
    "clip": ("clip", "a:x a_min:min a_max:max out min max"),
    "concatenate": ("concat", "arrays axis out dtype casting"),
    "count_nonzero": ("count_nonzero", "a:x axis keepdims"),
    "cumsum": ("cumulative_sum", "a:x axis dtype out"),
    "cumprod": ("cumulative_prod", "a:x axis dtype out"),
    "cumulative_sum": ("cumulative_sum", "x axis dtype out include_initial"),
    "cumulative_prod": ("cumulative_prod", "x axis dtype out include_initial"),
    "diff": ("diff", "a:x n axis prepend append"),
    "empty_like": ("empty_like", _LIKE.replace("a:", "prototype:")),
    "expand_dims": ("expand_dims", "a:x axis"),
    "flip": ("flip", "m:x axis"),
    "full_like": ("full_like", "a:x fill_value dtype order subok shape device"),
    "imag": ("imag", "val:x"), "real": ("real", "val:x"),
    "isin": ("isin", "element:x1 test_elements:x2 assume_unique invert kind"),
    "matrix_transpose": ("matrix_transpose", "x"),
    **{name: ("max", _EXTREME) for name in ("max", "amax")},
    **{name: ("min", _EXTREME) for name in ("min", "amin")},
    "mean": ("mean", "a:x axis dtype out keepdims where"),
    "moveaxis": ("moveaxis", "a:x source destination"),
    "nonzero": ("nonzero", "a:x"),
    "ones_like": ("ones_like", _LIKE), "zeros_like": ("zeros_like", _LIKE),
    "prod": ("prod", _REDUCED), "sum": ("sum", _REDUCED),
    "repeat": ("repeat", "a:x repeats axis"),
    "reshape": ("reshape", "a:x shape order copy"),
    "roll": ("roll", "a:x shift axis"),
    "round": ("round", "a:x decimals out"), "around": ("round", "a:x decimals out"),
    "searchsorted": ("searchsorted", "a:x1 v:x2 side sorter"),
    "sort": ("sort", "a:x axis kind order stable"),
    "squeeze": ("squeeze", "a:x axis"),
    "stack": ("stack", "arrays axis out dtype casting"),
    "std": ("std", _SPREAD), "var": ("var", _SPREAD),
    "take": ("take", "a:x indices axis out mode"),
    "take_along_axis": ("take_along_axis", "arr:x indices axis"),
    "tensordot": ("tensordot", "a:x1 b:x2 axes"),
    "tile": ("tile", "A:x reps:repetitions"),
    "transpose": ("permute_dims", "a:x axes"),
    "ravel": ("reshape", "a:x order"),
    "swapaxes": ("permute_dims", "a:x axis1 axis2"),
    "unique": (
        "unique_values",
        "ar:x return_index return_inverse return_counts axis equal_nan sorted",
    ),
    "tril": ("tril", "m:x k"), "triu": ("triu", "m:x k"),
    **{name: (name, "x") for name in (
        "unique_all", "unique_counts", "unique_inverse", "unique_values")},
    "unstack": ("unstack", "x axis"),
    "where": ("where", "condition x:x1 y:x2"),
    **{f"fft.{name}": (f"fft.{name}", _ALONG) for name in (
        "fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    **{f"fft.{name}": (f"fft.{name}", _ACROSS) for name in ("fftn", "ifftn", "rfftn", "irfftn")},
    **{f"fft.{name}": (f"fft.{name}", "x axes") for name in ("fftshift", "ifftshift")},
    **{f"linalg.{name}": (f"linalg.{name}", "a:x") for name in (
        "det", "eig", "eigvals", "inv", "slogdet")},
    "linalg.cholesky": ("linalg.cholesky", "a:x upper"),
    "linalg.cross": ("linalg.cross", "x1 x2 axis"),
    "linalg.diagonal": ("linalg.diagonal", "x offset"),
    "linalg.eigh": ("linalg.eigh", "a:x UPLO"),
    "linalg.eigvalsh": ("linalg.eigvalsh", "a:x UPLO"),
    "linalg.matrix_norm": ("linalg.matrix_norm", "x keepdims ord"),
    "linalg.matrix_power": ("linalg.matrix_power", "a:x n"),
    "linalg.matrix_rank": ("linalg.matrix_rank", "A:x tol hermitian rtol"),
    "linalg.matrix_transpose": ("matrix_transpose", "x"),
    "linalg.outer": ("linalg.outer", "x1 x2"),
    "linalg.pinv": ("linalg.pinv", "a:x rcond hermitian rtol"),
    "linalg.qr": ("linalg.qr", "a:x mode"),
    "linalg.solve": ("linalg.solve", "a:x1 b:x2"),
    "linalg.svd": ("linalg.svd", "a:x full_matrices compute_uv hermitian"),
    "linalg.svdvals": ("linalg.svdvals", "x"),
    "linalg.tensordot": ("linalg.tensordot", "x1 x2 axes"),
    "linalg.trace": ("linalg.trace", "x offset dtype"),
    "linalg.vector_norm": ("linalg.vector_norm", "x axis keepdims ord"),
}
"""NumPy functions, their equivalents, and NumPy's parameters in order (`numpy:ours`)."""

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
    if name not in _FUNCTIONS:
        _refuse(f"np.{name}", name)
    xp_name, parameters = _FUNCTIONS[name]
    bound_args = _bind_arguments(name, parameters, args, options)
    target: Any = xp
    for part in xp_name.split("."):
        target = getattr(target, part)
    if name in _OF_NUMPY:
        target = partial(_OF_NUMPY[name], xp)
    return _call(target, bound_args, f"np.{name}", xp_name)


def _ravel(xp: Any, x: Any) -> Any:
    return xp.reshape(x, (-1,))


def _squeeze(xp: Any, x: Any, axis: Any = None) -> Any:
    if axis is None:
        axis = tuple([k for k, extent in enumerate(x.shape) if extent == 1])
    return xp.squeeze(x, axis)


def _swapaxes(xp: Any, x: Any, axis1: int, axis2: int) -> Any:
    order = list(range(x.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return xp.permute_dims(x, order)


def _transpose(xp: Any, x: Any, axes: Any = None) -> Any:
    return xp.permute_dims(x, range(x.ndim)[::-1] if axes is None else axes)


def _unique(xp: Any, x: Any) -> Any:
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


def _bind_arguments(
    name: str, parameters: str, args: Any, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a NumPy function by the parameter names of the namespace."""
    pairs = [part.split(":") for part in parameters.split()]
    xp_params = {pair[0]: pair[-1] for pair in pairs}
    values = {**dict(zip(xp_params, args, strict=False)), **options}
    unknown = [key for key in values if key not in xp_params]
    if unknown:
        _refuse_argument(f"np.{name}", unknown[0], _FUNCTIONS[name][0])
    missing = getattr(np, "_NoValue", None)
    return {xp_params[key]: value for key, value in values.items() if value is not missing}


def _call(function: Any, bound_args: Mapping[str, Any], label: str, xp_name: str) -> Any:
    known = _parameters(function)
    for key, value in bound_args.items():
        if key not in known and not (value is None or _is_neutral(key, value)):
            _refuse_argument(label, key, xp_name)
    first = [key for key, kind in known.items() if kind is Parameter.POSITIONAL_ONLY]
    return function(
        *[bound_args[key] for key in first if key in bound_args],
        **{key: value for key, value in bound_args.items() if key in known and key not in first},
    )


def _is_neutral(name: str, value: object) -> bool:
    return isinstance(value, str | bool | int) and value in _NEUTRAL.get(name, ())


@memoize("array.numpy_parameters")
def _parameters(function: Any) -> Mapping[str, Any]:
    """Return the parameters of a function and their kinds."""
    return {name: parameter.kind for name, parameter in signature(function).parameters.items()}


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
