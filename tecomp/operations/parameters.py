"""Table of the parameters of reductions and cumulative functions."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

TYPE = "type"
"""Problem of a value of an unsupported type."""
BOUNDS = "bounds"
"""Problem of an axis that an operand of at most 64 axes does not have."""
DUPLICATES = "duplicates"
"""Problem of axes that contain an axis twice, of an operand with at least one axis."""

_WIDTH = 96  # columns of docstrings, which stubs indent by 4


class Param(NamedTuple):
    """Row of a parameter.

    Attributes:
        name: Name of the parameter.
        text: Description, which `help` shows.
        wrong: Values that every function with the parameter refuses, by problem: `TYPE`, `BOUNDS`
            or `DUPLICATES`. Each namespace has a class of errors for each problem.
        surfaces: Namespaces whose functions have the parameter: `topi`, `array`.
        texts: Descriptions of the namespaces that word it differently.
    """

    name: str
    text: str
    wrong: Mapping[str, tuple[object, ...]]
    surfaces: str = "topi array"
    texts: Mapping[str, str] = MappingProxyType({})

    def is_in(self, surface: str) -> bool:
        """Return whether functions of a namespace have the parameter."""
        return surface in self.surfaces.split()

    def text_in(self, surface: str) -> str:
        """Return the description of the parameter in a namespace."""
        return self.texts.get(surface, self.text)


_NO_AXES = MappingProxyType({TYPE: ("0", 0.5, (0, None)), BOUNDS: (64, -65, (0, 64))})
_FLAG = MappingProxyType({TYPE: (np.ones(2),)})

AXES = Param(
    "axis",
    "Axis or axes along which to compute. Negative values count from the last axis. Default: all "
    "axes.",
    MappingProxyType({**_NO_AXES, DUPLICATES: ((0, 0),)}),
    texts=MappingProxyType({
        "topi": "Axis or axes to reduce. Negative values count from the last axis. Default: all "
        "axes, also for an empty list.",
    }),
)
NONEMPTY_AXES = AXES._replace(
    text=AXES.text.replace("axes along", "axes of nonzero size along"))
JOINT_AXES = AXES._replace(
    surfaces="topi", texts=MappingProxyType({
        "topi": f"{AXES.text_in('topi')} Several axes are indexed jointly, in row-major order.",
    }),
)
AXIS = Param(
    "axis", "Axis along which to accumulate. Default: the only axis of a one-dimensional array.",
    MappingProxyType({TYPE: ("0", 0.5, (0,)), BOUNDS: (64, -65)}),
    texts=MappingProxyType({
        "topi": "Axis along which to accumulate. Negative values count from the last axis. None "
        "flattens `data`.",
    }),
)
SEARCHED_AXIS = AXIS._replace(
    text="Axis of nonzero size along which to search. Default: search the flattened array.",
    surfaces="array",
)
KEEPDIMS = Param(
    "keepdims", "If True, keep reduced axes with size 1.", _FLAG,
    texts=MappingProxyType({"topi": "If True, keep reduced axes with extent 1."}),
)
LAST_INDEX = Param(
    "select_last_index",
    "If True, return the last of several equal elements, else the first.", _FLAG, surfaces="topi",
)
RUNNING_DTYPE = Param(
    "dtype", "Result dtype. Default: the dtype of `x`; 64-bit for integers and booleans.",
    MappingProxyType({TYPE: ("float33", 3)}),
    texts=MappingProxyType({
        "topi": "Result dtype. Default: the dtype of `data`, or int32 for bool."}),
)
DTYPE = RUNNING_DTYPE._replace(surfaces="array")
CORRECTION = Param(
    "correction",
    "Number subtracted from the count of elements in the divisor. 1 gives the sample estimate. "
    "Default: 0.",
    MappingProxyType({TYPE: ("1", None)}), surfaces="array",
)
INCLUDE_INITIAL = Param(
    "include_initial", "If True, the result begins with the initial value {initial}.", _FLAG,
    surfaces="array",
)
EXCLUSIVE = Param(
    "exclusive", "If True, exclude each element from its own result.", _FLAG, surfaces="topi")

CUMULATIVE_PARAMETERS = (AXIS, RUNNING_DTYPE, INCLUDE_INITIAL, EXCLUSIVE)
"""Parameters of cumulative functions besides the operand."""


def parameters_in(surface: str, params: Iterable[Param]) -> tuple[Param, ...]:
    """Return the parameters of the function of a namespace.

    >>> [row.name for row in parameters_in("topi", CUMULATIVE_PARAMETERS)]
    ['axis', 'dtype', 'exclusive']
    """
    return tuple([row for row in params if row.is_in(surface)])


def arguments(surface: str, params: Iterable[Param]) -> str:
    """Return the lines of `Args` in the docstring of the function of a namespace.

    >>> print(arguments("topi", [KEEPDIMS]))
        keepdims: If True, keep reduced axes with extent 1.
    """
    return "\n".join([
        textwrap.fill(
            f"{row.name}: {row.text_in(surface)}", _WIDTH, initial_indent=" " * 4,
            subsequent_indent=" " * 8, break_long_words=False, break_on_hyphens=False)
        for row in parameters_in(surface, params)
    ])
