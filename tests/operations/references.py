"""References of reductions: functions of NumPy, and the dtypes for which rows are compared."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np

from tecomp.operations import TO_WIDE, Reduction, element_type, reductions_in

NAMESPACE = reductions_in("array")
AXES_REDUCTIONS = {name: row for name, row in NAMESPACE.items() if row.op != "find_index"}
"""Reductions along any number of axes."""


def numpy_reduction(row: Reduction) -> Callable[..., Any]:
    """Return NumPy's function of an array, axes and `keepdims`.

    A function under another name is computed in long double.
    """
    function: Callable[..., Any] = attrgetter(row.numpy or row.name)(np)
    if not row.numpy:
        return function

    def wide(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        found = function(np.asarray(x, np.longdouble), axis=axis, keepdims=keepdims)
        return np.asarray(found).astype(x.dtype)

    return wide


def takes(row: Reduction, dtype: str) -> bool:
    """Return whether a function supports a dtype; sums and products count booleans.

    Tensors have more dtypes than arrays, of the same kinds.
    """
    if dtype == "bool" and row.gives == TO_WIDE:
        return True
    return element_type(dtype).kind in {element_type(known).kind for known in row.takes.dtypes}
