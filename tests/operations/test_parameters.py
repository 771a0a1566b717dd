"""Functions have the parameters of their rows, and refuse the wrong values of these rows."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pytest

import tecomp.array as xp
from tecomp import te, topi
from tecomp.errors import (
    ArrayIndexError,
    ArrayTypeError,
    ArrayValueError,
    DefinitionError,
    TecompError,
    TypeMismatchError,
)
from tecomp.operations import CUMULATIVE, kinds_of, reductions_in
from tecomp.operations.parameters import (
    AXES,
    AXIS,
    BOUNDS,
    CUMULATIVE_PARAMETERS,
    DUPLICATES,
    KEEPDIMS,
    RUNNING_DTYPE,
    TYPE,
    Param,
    parameters_in,
)
from tecomp.ptensor.operations.reduction import Cumulative, FindIndex, ReduceOp, TruthTest
from tecomp.ptensor.types import PTensorType
from tests.array.conformance.calls import MAKERS
from tests.array.conformance.draws import Draw
from tests.array.conformance.methods import USES


class Surface(NamedTuple):
    """Namespace with reductions.

    Attributes:
        module: Module.
        operand: Function that returns an operand of two axes for a function.
        first: Name of the parameter of the operand.
        cumulative: Prefix of the names of cumulative functions.
        errors: Class of errors by problem.
    """

    module: ModuleType
    operand: Callable[[str], Any]
    first: str
    cumulative: str
    errors: dict[str, type[TecompError]]


SURFACES = {
    "array": Surface(
        xp, lambda name: xp.ones((2, 3)), "x", "cumulative_",
        {TYPE: ArrayTypeError, BOUNDS: ArrayIndexError, DUPLICATES: ArrayValueError}),
    "topi": Surface(
        topi, lambda name: te.placeholder((2, 3), "bool" if name in kinds_of("test") else "float32"),
        "data", "cum",
        {TYPE: TypeMismatchError, BOUNDS: DefinitionError, DUPLICATES: DefinitionError}),
}


def functions() -> Iterator[tuple[str, str, tuple[Param, ...]]]:
    """Yield namespaces, names of functions, and the rows of their parameters."""
    for surface, place in SURFACES.items():
        for name, row in reductions_in(surface).items():
            yield surface, name, parameters_in(surface, row.params)
        for kind in CUMULATIVE:
            yield surface, place.cumulative + kind, parameters_in(surface, CUMULATIVE_PARAMETERS)


@pytest.mark.parametrize(("surface", "name", "params"), [*functions()])
def test_signatures(surface: str, name: str, params: tuple[Param, ...]) -> None:
    place = SURFACES[surface]

    names = [*inspect.signature(getattr(place.module, name)).parameters]

    assert names == [place.first, *(param.name for param in params)]


@pytest.mark.parametrize(("surface", "name", "params"), [*functions()])
def test_wrong_arguments(surface: str, name: str, params: tuple[Param, ...]) -> None:
    place = SURFACES[surface]
    function = getattr(place.module, name)
    operand = place.operand(name)
    prefix = "topi." if surface == "topi" else ""
    function(operand, axis=0)  # correct
    for param in params:
        for problem, values in param.wrong.items():
            for value in values:
                with pytest.raises(place.errors[problem]) as error:
                    function(operand, **{"axis": 0, param.name: value})
                if param.name != "dtype":  # names of dtypes are parsed for all functions alike
                    assert error.value.message.startswith(f"{prefix}{name}: {param.name}")


OPERATIONS: dict[str, Callable[..., Any]] = {
    **{kind: lambda axis, kind=kind: ReduceOp(kind, axis) for kind in kinds_of("reduce")},
    **{kind: lambda axis, kind=kind: TruthTest(kind, axis) for kind in kinds_of("test")},
    **{kind: lambda axis, kind=kind: FindIndex(kind, axis) for kind in kinds_of("find_index")},
    **{f"cumulative_{kind}": lambda axis, kind=kind: Cumulative(kind, axis) for kind in CUMULATIVE},
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_wrong_axes_of_operations(name: str) -> None:
    """The types of operations of the text form refuse the axes that functions refuse."""
    param = AXIS if name.startswith("cumulative_") else AXES
    for problem, values in param.wrong.items():
        for value in values:
            operation = OPERATIONS[name](value)
            with pytest.raises(SURFACES["array"].errors[problem]):
                operation.infer(PTensorType((2, 3), "float32"))


def keywords() -> Iterator[tuple[str, Param]]:
    """Yield all functions of arrays with keyword parameters that have rows."""
    for name in (name for name in MAKERS if name not in USES):
        function: Any = xp
        for part in name.split("."):
            function = getattr(function, part)
        parameters = inspect.signature(function).parameters
        for param in (AXIS, KEEPDIMS, RUNNING_DTYPE):
            found = parameters.get(param.name)
            if found is not None and found.kind is found.KEYWORD_ONLY:
                yield name, param


COUNTED_FROM_THE_LAST_AXIS = {"vecdot", "linalg.cross"}
"""Functions whose axis must be an axis of several operands of different ranks."""


def tree_map(function: Callable[[Any], Any], value: Any) -> Any:
    """Apply a function to the NumPy arrays in nested sequences."""
    if isinstance(value, list | tuple):
        return type(value)([tree_map(function, item) for item in value])
    return function(value) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize(("name", "param"), [*keywords()], ids=lambda x: getattr(x, "name", x))
def test_wrong_arguments_of_all_functions(name: str, param: Param) -> None:
    call = MAKERS[name](Draw([0, crc32(name.encode())]), name)
    function: Any = xp
    for part in name.split("."):
        function = getattr(function, part)
    args = tree_map(xp.asarray, call.args)
    errors = dict(SURFACES["array"].errors)
    if name in COUNTED_FROM_THE_LAST_AXIS:
        errors[BOUNDS] = ArrayValueError
    for problem, values in param.wrong.items():
        for value in values:
            if isinstance(value, tuple):
                continue  # some functions take several axes
            with pytest.raises(errors[problem]):
                function(*args, **{**call.options, param.name: value})
