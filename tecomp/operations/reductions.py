"""Table of the reductions along axes, and of the operators that they apply repeatedly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf, nan
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from tecomp.operations.parameters import (
    AXES,
    CORRECTION,
    DTYPE,
    JOINT_AXES,
    KEEPDIMS,
    LAST_INDEX,
    NONEMPTY_AXES,
    SEARCHED_AXIS,
    Param,
)
from tecomp.operations.rows import (
    ALL,
    FLOATING,
    FLOATS,
    NUMERIC,
    REAL,
    SAME,
    TO_BOOL,
    TO_PART,
    Kind,
)

TO_WIDE = "wide"
"""Result of the dtype of sums: integers are accumulated in 64 bits."""
TO_COUNT = "count"
"""Result of dtype int64."""


Thunk = Callable[[], Any]
"""Function that returns an operand of a formula, which the formula need not use."""


class Combiner(NamedTuple):
    """Row of an associative and commutative operator.

    Attributes:
        name: Name of the operator in placements of partial results.
        operator: Symbol of the binary operator of the IR.
        ufunc: Element-wise function of two arrays, in NumPy and in the table of these functions.
        identity: Identity element; an infinity is replaced by the limit of an integer dtype.
        is_logical: Whether the operands are truth values.
        dual: Operator that gives the negated result of negated operands, if its identity is false.
            Masked loads give false for inactive lanes without a further instruction.
    """

    name: str
    operator: str
    ufunc: str
    identity: float
    is_logical: bool = False
    dual: str = ""

    @property
    def reducer(self) -> str:
        """Name of the reducer in `te`; truth values are compared as 0 and 1."""
        return self.operator if self.is_logical else self.name


COMBINERS: Mapping[str, Combiner] = MappingProxyType({row.name: row for row in (
    Combiner("sum", "+", "add", 0),
    Combiner("prod", "*", "multiply", 1),
    Combiner("min", "min", "minimum", inf),
    Combiner("max", "max", "maximum", -inf),
    Combiner("any", "max", "logical_or", False, is_logical=True),
    Combiner("all", "min", "logical_and", True, is_logical=True, dual="any"),
)})
"""All operators by name."""


class ReductionAlgebra(Protocol):
    """Functions of elements that formulas of reductions use beside Python operators."""

    def squared_magnitude(self, x: Any) -> Any:
        """Compute the square of a real number, or of the absolute value of a complex number."""

    def sqrt(self, x: Any) -> Any:
        """Compute the square root."""

    def exp(self, x: Any) -> Any:
        """Compute the exponential."""

    def log(self, x: Any) -> Any:
        """Compute the natural logarithm."""

    def finite(self, x: Any) -> Any:
        """Return a finite value, and 0 in place of infinities and NaN."""


class Reduction(NamedTuple):
    """Row of a reduction: terms of elements are combined, and the total gives the result.

    Attributes:
        name: Name of the function.
        text: Summary, which `help` shows.
        takes: Supported dtypes.
        combiner: Operator that combines the terms.
        returns: Description of the result.
        example: Operand and options of the example of an array function.
        shown: Printed result of the example.
        op: Operation of the text form that has the reduction as one of its kinds.
        gives: Dtype of the result: `SAME`, `TO_PART`, `TO_BOOL`, `TO_WIDE` or `TO_COUNT`.
        of_truth: Whether elements are compared with zero first.
        center: Reduction of the same elements on whose result the terms depend.
        term: Formula of a term, called with an algebra, an element and the center, which is empty
            if the row has none. None: the element.
        finish: Formula of the result, called with an algebra, the total of the terms, and functions
            that return the count of elements and the center. None: the total.
        params: Parameters besides the operand.
        numpy: Reference: function of NumPy, if its name differs from `name`.
        needs_elements: Whether a reduction of no elements is an error.
        surfaces: Namespaces whose function is defined from the row: `topi`, `array`.
        texts: Summaries of the namespaces that word it differently.
    """

    name: str
    text: str
    takes: Kind
    combiner: str
    returns: str
    example: str
    shown: str
    op: str = "reduce"
    gives: str = SAME
    of_truth: bool = False
    center: str = ""
    term: Callable[[ReductionAlgebra, Any, Any], Any] | None = None
    finish: Callable[[ReductionAlgebra, Any, Thunk, Thunk], Any] | None = None
    params: tuple[Param, ...] = (AXES, KEEPDIMS)
    numpy: str = ""
    needs_elements: bool = False
    surfaces: str = "array"
    texts: Mapping[str, str] = MappingProxyType({})

    @property
    def is_associative(self) -> bool:
        """Whether the operator combines results of disjoint parts into the result of the whole."""
        return self.finish is None and not self.center and self.op != "find_index"

    @property
    def noun(self) -> str:
        """Noun of the result in descriptions, such as `product`."""
        return self.text.removeprefix("Compute the ").partition(" ")[0]

    def is_in(self, surface: str) -> bool:
        """Return whether a namespace has the function."""
        return surface in self.surfaces.split()

    def text_in(self, surface: str) -> str:
        """Return the summary of the function in a namespace."""
        return self.texts.get(surface, self.text)


def _squared_deviation(m: ReductionAlgebra, x: Any, mean: Any) -> Any:
    return m.squared_magnitude(x - mean)


def _quotient(m: ReductionAlgebra, total: Any, count: Thunk, center: Thunk) -> Any:
    return total / count()


def _shifted_exponential(m: ReductionAlgebra, x: Any, maximum: Any) -> Any:
    return m.exp(x - m.finite(maximum))


def _shifted_logarithm(m: ReductionAlgebra, total: Any, count: Thunk, maximum: Thunk) -> Any:
    return m.log(total) + m.finite(maximum())


def _root_of_quotient(m: ReductionAlgebra, total: Any, count: Thunk, center: Thunk) -> Any:
    return m.sqrt(total / count())


_MATRIX = "[[1, 5, 3], [4, 2, 6]]"

_SEARCH = (SEARCHED_AXIS, JOINT_AXES, KEEPDIMS, LAST_INDEX)
_EXTREME = (NONEMPTY_AXES, KEEPDIMS)

_ROWS = (
    Reduction(
        "all", "Test whether all elements along the given axes are true; nonzero numbers are true.",
        ALL, "all", "Array of dtype bool; an empty reduction gives True.",
        "[[1, 0], [2, 3]], axis=1", "Array([False,  True], dtype=bool)", op="test", gives=TO_BOOL,
        of_truth=True, surfaces="topi array",
        texts={
            "topi": "Test whether all elements along the given axes are true; an empty reduction "
            "gives True.",
        },
    ),
    Reduction(
        "any", "Test whether any element along the given axes is true; nonzero numbers are true.",
        ALL, "any", "Array of dtype bool; an empty reduction gives False.",
        "[[1, 0], [0, 0]], axis=1", "Array([ True, False], dtype=bool)", op="test", gives=TO_BOOL,
        of_truth=True, surfaces="topi array",
        texts={
            "topi": "Test whether any element along the given axes is true; an empty reduction "
            "gives False.",
        },
    ),
    Reduction(
        "argmax",
        "Return the index of the first maximum along an axis; NaN counts as the maximum.",
        REAL, "max", "Indices of dtype int64.", f"{_MATRIX}, axis=1",
        "Array([1, 2], dtype=int64)", op="find_index", gives=TO_COUNT, needs_elements=True,
        params=_SEARCH, surfaces="topi array",
        texts={
            "topi": "Return the index of the maximum along the given axes; NaN counts as the "
            "maximum.",
        },
    ),
    Reduction(
        "argmin",
        "Return the index of the first minimum along an axis; NaN counts as the minimum.",
        REAL, "min", "Indices of dtype int64.", _MATRIX, "Array(0, dtype=int64)",
        op="find_index", gives=TO_COUNT, needs_elements=True, params=_SEARCH,
        surfaces="topi array",
        texts={
            "topi": "Return the index of the minimum along the given axes; NaN counts as the "
            "minimum.",
        },
    ),
    Reduction(
        "count_nonzero", "Count nonzero elements along the given axes.", ALL, "sum",
        "Counts of dtype int64.", "[[1, 0, 3], [0, 0, 6]], axis=1", "Array([2, 1], dtype=int64)",
        op="count_nonzero", gives=TO_COUNT, of_truth=True,
    ),
    Reduction(
        "logsumexp",
        "Compute `log(sum(exp(x)))` along the given axes without intermediate overflow.", FLOATS,
        "sum", "Array of logarithms; an empty reduction gives -infinity.", "[1000.0, 1000.0]",
        "Array(1000.69314718, dtype=float64)", center="max", term=_shifted_exponential,
        finish=_shifted_logarithm, surfaces="topi array", numpy="logaddexp.reduce",
    ),
    Reduction(
        "max", "Compute the maximum along the given axes; NaN propagates.", REAL, "max",
        "Array of maxima.", f"{_MATRIX}, axis=1", "Array([5, 6], dtype=int64)", params=_EXTREME,
        needs_elements=True, surfaces="topi array",
    ),
    Reduction(
        "mean",
        "Compute the arithmetic mean along the given axes; an empty reduction gives NaN.",
        FLOATING, "sum", "Array of means.", "[1.0, 2.0, 6.0]", "Array(3., dtype=float64)",
        finish=_quotient,
    ),
    Reduction(
        "min", "Compute the minimum along the given axes; NaN propagates.", REAL, "min",
        "Array of minima.", f"{_MATRIX}, axis=1", "Array([1, 2], dtype=int64)", params=_EXTREME,
        needs_elements=True, surfaces="topi array",
    ),
    Reduction(
        "prod", "Compute the product along the given axes; an empty reduction gives 1.", NUMERIC,
        "prod", "Array of products.", "[1.5, 2.0, 4.0]", "Array(12., dtype=float64)",
        gives=TO_WIDE, params=(AXES, DTYPE, KEEPDIMS), surfaces="topi array",
    ),
    Reduction(
        "std", "Compute the standard deviation along the given axes: the square root of `var`.",
        FLOATING, "sum",
        "Standard deviations of real dtype; NaN where the count of elements does not exceed\n"
        "`correction`.",
        "[1.0, 1.0, 5.0, 5.0]", "Array(2., dtype=float64)", gives=TO_PART, center="mean",
        term=_squared_deviation, finish=_root_of_quotient, params=(AXES, CORRECTION, KEEPDIMS),
    ),
    Reduction(
        "sum", "Compute the sum along the given axes; an empty reduction gives 0.", NUMERIC, "sum",
        "Array of sums.", "[[1, 2, 3], [4, 5, 6]], axis=0", "Array([5, 7, 9], dtype=int64)",
        gives=TO_WIDE, params=(AXES, DTYPE, KEEPDIMS), surfaces="topi array",
    ),
    Reduction(
        "var",
        "Compute the variance along the given axes: the mean squared deviation from the mean.",
        FLOATING, "sum",
        "Variances of real dtype; NaN where the count of elements does not exceed `correction`.",
        "[1.0, 2.0, 6.0], correction=1", "Array(7., dtype=float64)", gives=TO_PART, center="mean",
        term=_squared_deviation, finish=_quotient, params=(AXES, CORRECTION, KEEPDIMS),
    ),
)

REDUCTIONS: Mapping[str, Reduction] = MappingProxyType({row.name: row for row in _ROWS})
"""All reductions by name."""


def divisor_of(count: int, correction: float) -> float:
    """Return a count of elements minus the correction, or NaN unless the difference is positive.

    >>> divisor_of(3, 1), divisor_of(0, 0), divisor_of(1, 1)
    (2.0, nan, nan)
    """
    difference = float(count - correction)
    return difference if difference > 0 else nan


def kinds_of(op: str) -> tuple[str, ...]:
    """Return the names of the reductions that are kinds of an operation of the text form.

    >>> kinds_of("test")
    ('all', 'any')
    """
    return tuple([row.name for row in _ROWS if row.op == op])


CUMULATIVE = tuple([row.name for row in _ROWS if row.gives == TO_WIDE])
"""Reductions whose partial results cumulative functions of arrays and of topi return."""


def reductions_in(surface: str) -> dict[str, Reduction]:
    """Return the rows of the functions that a namespace has, by name.

    >>> "mean" in reductions_in("array"), "mean" in reductions_in("topi")
    (True, False)
    """
    return {row.name: row for row in _ROWS if row.is_in(surface)}
