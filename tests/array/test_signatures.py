"""Functions and methods have the parameters of the standard."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import array_api_strict as strict
import pytest

import tecomp.array as xp
from tecomp.array import Array

CONSTANTS = {"e", "inf", "nan", "newaxis", "pi"}
OWN = {"ArrayAPIStrictFlags", "get_array_api_strict_flags", "reset_array_api_strict_flags",
       "set_array_api_strict_flags", "Device", "ArrayTypeError"}


def functions() -> dict[str, Any]:
    """Return the functions of the reference namespace by name; extension names contain a dot."""
    found: dict[str, Any] = {}
    for module, prefix in ((strict, ""), (strict.linalg, "linalg."), (strict.fft, "fft.")):
        for name in module.__all__:
            if inspect.isfunction(getattr(module, name)) and name not in OWN:
                found[prefix + name] = getattr(module, name)
    return found


def methods() -> dict[str, Any]:
    kind = type(strict.asarray(1))
    return {
        name: value for name, value in vars(kind).items()
        if inspect.isfunction(value) and (name.startswith("__") or name == "to_device")
        and name not in ("__init__", "__new__", "__hash__", "__str__", "__repr__", "__buffer__",
                         "__array__", "__release_buffer__", "__getattr__", "__setstate__",
                         "__getstate__", "__reduce__", "__class_getitem__")
    }


def ours(name: str) -> Any:
    place: Any = xp
    for part in name.split("."):
        place = getattr(place, part, None)
    return place


OURS = ("layout", "placements", "team")
"""Additional parameters of our creation functions."""


def parameters(function: Any) -> list[inspect.Parameter]:
    found = inspect.signature(function).parameters.values()
    return [
        parameter for parameter in found
        if parameter.name not in OURS or parameter.kind is not parameter.KEYWORD_ONLY
    ]


ALSO_BY_POSITION = {"diff": ["n"]}
"""Keyword-only parameters of the standard that SciPy and scikit-learn pass by position."""


def shape_of(function: Any) -> list[tuple[str, Any]]:
    """Return the keyword name, if the parameter has one, and the kind of each parameter."""
    return [
        (parameter.name if parameter.kind is not parameter.POSITIONAL_ONLY else "", parameter.kind)
        for parameter in parameters(function)
    ]


def check(one: Any, other: Any) -> None:
    assert shape_of(one) == shape_of(other)
    source, expected = (parameters(function) for function in (one, other))
    for actual, reference in zip(source, expected, strict=True):
        if reference.default is reference.empty:
            continue
        # A missing argument means None in the reference library.
        default = None if type(reference.default).__name__ == "Undef" else reference.default
        assert actual.default == default, actual.name


FUNCTIONS, METHODS = functions(), methods()


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - ALSO_BY_POSITION))
def test_function_signatures_match_the_standard(name: str) -> None:
    check(ours(name), FUNCTIONS[name])


@pytest.mark.parametrize("name", ALSO_BY_POSITION)
def test_functions_that_take_more_by_position(name: str) -> None:
    one, other = (
        {parameter.name: parameter for parameter in parameters(function)}
        for function in (ours(name), FUNCTIONS[name])
    )
    by_position = [
        parameter.name for parameter in one.values()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    assert by_position == ALSO_BY_POSITION[name]
    assert {key: value.default for key, value in one.items()} == {
        key: value.default for key, value in other.items()}


# The reference library also accepts `stream` by position, unlike the standard.
@pytest.mark.parametrize("name", sorted(({*METHODS} & {*vars(Array)}) - {"to_device"}))
def test_method_signatures_match_the_standard(name: str) -> None:
    method = getattr(Array, name)
    one, other = shape_of(method), shape_of(METHODS[name])
    # Operands of operators have no public names, and Python's slots take them by position only.
    assert [kind for _, kind in one[1:]] == [kind for _, kind in other[1:]] or (
        len(one) == len(other) <= 2 and name.startswith("__"))


def test_all_of_the_standard_is_here() -> None:
    missing = {name for name in FUNCTIONS if ours(name) is None}
    missing |= {name for name in CONSTANTS if not hasattr(xp, name)}
    missing |= {f"Array.{name}" for name in METHODS if not hasattr(Array, name)}
    missing |= {
        f"Array.{name}" for name in ("T", "mT", "device", "dtype", "ndim", "shape", "size")
        if not hasattr(Array, name)
    }
    missing |= {name for name in strict.__array_namespace_info__().dtypes() if not hasattr(xp, name)}

    assert missing == set()


def test_extensions_are_modules() -> None:
    for name in ("linalg", "fft"):
        extension = getattr(xp, name)
        assert isinstance(extension, ModuleType)
        assert extension.__name__ == f"tecomp.array.{name}"
