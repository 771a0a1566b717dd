"""NumPy names that the standard lacks, and their replacements."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches

from tecomp.errors import MissingError

INSTEAD: Mapping[str, str] = {
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


def unsupported_method_message(name: str, known: Collection[str]) -> AttributeError:
    """Return the error for an attribute that `Array` does not have, with a replacement if known.

    Args:
        name: Attribute name.
        known: Function names of the namespace.

    >>> unsupported_method_message("sum", ["sum"]).message
    "Array has no 'sum'; write xp.sum(x)"
    """
    if name.startswith("_"):  # libraries probe for protocols
        return AttributeError(f"'Array' object has no attribute {name!r}")
    if name in known:
        return MissingError("Array has no {name!r}; write xp.{name}(x)", name=name)
    if name in INSTEAD:
        return MissingError("Array has no {name!r}; {remedy}", name=name, remedy=INSTEAD[name])
    return AttributeError(f"'Array' object has no attribute {name!r}")


def unsupported_function_message(name: str, known: Collection[str]) -> AttributeError:
    """Return the error for a name that the namespace does not have, with a replacement if known.

    >>> unsupported_function_message("concatenate", []).message
    "tecomp.array has no 'concatenate'; write xp.concat(arrays, axis=...)"
    """
    if name in INSTEAD:
        return MissingError(
            "tecomp.array has no {name!r}; {remedy}",
            name=name, remedy=INSTEAD[name],
        )
    near = get_close_matches(name, [word for word in known if not word.startswith("_")], 1, 0.8)
    if near and not name.startswith("_"):
        return MissingError(
            "tecomp.array has no {name!r}; did you mean xp.{near}?",
            name=name, near=near[0],
        )
    return AttributeError(f"module 'tecomp.array' has no attribute {name!r}")
