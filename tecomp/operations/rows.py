"""Rows of the tables of operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType, MappingProxyType
from typing import Any, NamedTuple

from tecomp.operations import element_types

SAME = "same"
"""Result of the dtype in which a function is computed."""
TO_PART = "part"
"""Result of the real dtype of a complex dtype."""
TO_FLOAT = "float"
"""Result of a floating-point dtype: integers are converted to float64."""
TO_BOOL = "bool"
"""Result of dtype bool."""

UNCHANGED = "unchanged"
"""Value of `Op.of_integers`: the function of `te` returns an integer operand unchanged."""


class Kind(NamedTuple):
    """Dtypes that a function supports.

    Attributes:
        words: Description of the dtypes in documentation.
        dtypes: Names of the dtypes.
    """

    words: str
    dtypes: tuple[str, ...]


FLOATS = Kind("real floating-point dtype", element_types.FLOATS)
FLOATING = Kind("floating-point dtype", element_types.FLOATING)
REAL = Kind("real-valued dtype", element_types.REAL)
NUMERIC = Kind("numeric dtype", element_types.NUMERIC)
INTEGERS = Kind("integer dtype", element_types.INTEGERS)
BITS = Kind("integer or boolean dtype", (*element_types.BOOLEAN, *element_types.INTEGERS))
ALL = Kind("any dtype", element_types.ALL)
TRUTH = Kind("any dtype", element_types.BOOLEAN)
"""Conditions: functions of arrays compare operands of other dtypes with zero first."""


class Op(NamedTuple):
    """Row of an element-wise function.

    Attributes:
        name: Name of the function.
        text: Summary, which `help` shows.
        takes: Supported dtypes of operands.
        example: Operands of the example of an array function.
        shown: Printed result of the example.
        arity: Number of operands.
        gives: Dtype of the result: `SAME`, `TO_PART`, `TO_FLOAT` or `TO_BOOL`.
        numpy: Reference: name of the NumPy function, if it differs from `name`, or
            `package:function`. None if there is none.
        call: Intrinsic function of the IR that computes it, if any.
        formula: Formula, called with an algebra and the operands (see `formulas`). It computes the
            intrinsic `call`; without `call`, expressions contain the formula itself. None: packages
            have functions of their own.
        ulps: Maximum errors in float32 and float64, in units in the last place of the result, or of
            larger terms that cancel: those of the reflection of gamma functions, and 1 for
            `logaddexp`.
        of_integers: What `te` returns for an integer: the operand if `UNCHANGED`, or a constant.
            None: integers are not supported.
        derivative: Function that returns the cotangents of the operands (see `derivatives`). None:
            the function has no derivative, or expressions contain its formula.
        cost: Estimated work per element, in additions, for the cost model and fusion: at least 8
            for a square root, a division, or a polynomial of degree 4 in fused multiply-adds.
        surfaces: Namespaces whose function is defined from the row: `te`, `topi`, `array`. A
            namespace that has another name for it is written `topi:power`.
        texts: Summaries of the namespaces that word it differently.
    """

    name: str
    text: str
    takes: Kind
    example: str = ""
    shown: str = ""
    arity: int = 1
    gives: str = SAME
    numpy: str | None = ""
    call: str = ""
    formula: Callable[..., Any] | None = None
    ulps: tuple[float, float] = (0.0, 0.0)
    of_integers: str | bool | None = None
    derivative: Callable[..., Any] | None = None
    cost: int = 1
    surfaces: str = ""
    texts: Mapping[str, str] = MappingProxyType({})

    @property
    def numpy_name(self) -> str | None:
        """Name of the NumPy function, if there is one."""
        name = self.name if self.numpy == "" else self.numpy
        return None if name is None or ":" in name else name

    def name_in(self, surface: str) -> str:
        """Return the name of the function in a namespace, which is empty if it has none."""
        for entry in self.surfaces.split():
            namespace, _, name = entry.partition(":")
            if namespace == surface:
                return name or self.name
        return ""

    def is_in(self, surface: str) -> bool:
        """Return whether a namespace has the function."""
        return self.name_in(surface) != ""

    def text_in(self, surface: str) -> str:
        """Return the summary of the function in a namespace."""
        return self.texts.get(surface, self.text)


def with_name(function: Any, name: str, module: str, docstring: str) -> Any:
    """Give a function a name, a module and a docstring.

    The function gets its own code object, so that tracebacks and profiles show the name and the
    interpreter specializes each function by itself.
    """
    assert isinstance(function, FunctionType)
    function.__code__ = function.__code__.replace(co_name=name, co_qualname=name)
    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = module, docstring
    return function
