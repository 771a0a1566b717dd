"""Functions that programs call: their names, and what C functions say of their arguments."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import pytest

import tecomp
from tecomp.errors import DefinitionError, TypeMismatchError

LIBC = ctypes.CDLL(None)


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """No name stays."""
    before = set(tecomp.list_global_func_names())
    yield
    for name in set(tecomp.list_global_func_names()) - before:
        tecomp.remove_global_func(name)


def message(call: Any, *args: Any, **options: Any) -> str:
    with pytest.raises(DefinitionError) as error:
        call(*args, **options)
    return error.value.message


def double(x: Any, y: Any) -> None:
    y[...] = 2 * x


def test_three_ways_to_register() -> None:
    assert tecomp.register_func(double) is double
    assert tecomp.register_func("test.double", double) is double

    @tecomp.register_func("test.triple")
    def triple(x: Any, y: Any) -> None:
        y[...] = 3 * x

    assert tecomp.get_global_func("double") is double
    assert tecomp.get_global_func("test.double") is double
    assert tecomp.get_global_func("test.triple") is triple
    assert {"double", "test.double", "test.triple"} <= set(tecomp.list_global_func_names())


def test_a_name_is_taken_once() -> None:
    tecomp.register_func("test.double", double)
    tecomp.register_func("test.double", double)

    assert message(tecomp.register_func, "test.double", print) == (
        "register_func: test.double is registered already; take another name, or say override=True"
    )
    tecomp.register_func("test.double", print, override=True)
    assert tecomp.get_global_func("test.double") is print


def test_names_that_nobody_has() -> None:
    tecomp.register_func("test.double", double)

    assert tecomp.get_global_func("test.duoble", allow_missing=True) is None
    assert message(tecomp.get_global_func, "test.duoble") == (
        "get_global_func: no function is registered as 'test.duoble'; write 'test.double' if that "
        "is meant, or call tecomp.register_func('test.duoble', f) first"
    )
    assert message(tecomp.remove_global_func, "zzz") == (
        "remove_global_func: no function is registered as 'zzz'; call tecomp.register_func('zzz', "
        "f) first"
    )


def test_what_is_no_function_or_no_name() -> None:
    assert message(tecomp.register_func, 3, double) == (
        "register_func: the name is 3; give a text"
    )
    assert message(tecomp.register_func, "x", 3) == (
        "register_func x: the function is 3; give a Python function or a tecomp.CFunction"
    )


def test_a_c_function_by_library_and_symbol() -> None:
    copy = tecomp.CFunction(LIBC, "memcpy", ["handle", "const handle", "uint64"])
    source, target = ctypes.create_string_buffer(b"abcd", 4), ctypes.create_string_buffer(4)
    copy(ctypes.addressof(target), ctypes.addressof(source), 4)

    assert str(copy) == "CFunction(memcpy(handle, handle, uint64))"
    assert target.raw == b"abcd"


def test_a_c_function_of_ctypes() -> None:
    function = LIBC.memmove
    before = function.argtypes
    function.argtypes = [
        ctypes.c_void_p, ctypes.POINTER(ctypes.c_float), ctypes.c_uint64, ctypes.c_bool,
    ]
    try:
        assert str(tecomp.CFunction(function)) == (
            "CFunction(memmove(handle, float32*, uint64, bool))"
        )
    finally:
        function.argtypes = before
    assert message(tecomp.CFunction, LIBC["memmove"]) == (
        "CFunction memmove: the types of its arguments are not declared; give arguments=, such as "
        '["const float32*", "float32*", "int64"], or set its argtypes'
    )
    assert str(tecomp.CFunction(LIBC["memmove"], arguments=["bfloat16 *"])) == (
        "CFunction(memmove(bfloat16*))"
    )


def test_c_functions_that_are_not_there() -> None:
    assert message(tecomp.CFunction, LIBC, "no_such_function", []) == (
        "CFunction no_such_function: the library of this process has no such function; look at its "
        'symbols, and declare C++ functions as extern "C"'
    )
    assert message(tecomp.CFunction, "no/such/library.so", "f", []).startswith(
        "CFunction f: no/such/library.so is no library that can be loaded ("
    )
    assert message(tecomp.CFunction, double) == (
        "CFunction: the function is <function double>; give a function of ctypes, or a library or "
        "its path, and the symbol"
    )
    assert message(tecomp.CFunction, 3, "f", []) == (
        "CFunction f: the library is 3; give a path or a ctypes.CDLL"
    )


@pytest.mark.parametrize("kind", ["float", "float16", "const int32", "int32**", "", "char*"])
def test_types_that_there_are_not(kind: str) -> None:
    with pytest.raises(TypeMismatchError):
        tecomp.CFunction(LIBC, "abs", [kind])


def test_the_types_are_named() -> None:
    assert message(tecomp.CFunction, LIBC, "abs", ["float"]) == (
        "CFunction abs: arguments: there is no type 'float'; write int8, int16, int32, int64, "
        "uint8, uint16, uint32, uint64, float32, float64, bool, a pointer such as \"float32*\" or "
        '"const float32*", or "handle"'
    )
    assert message(tecomp.CFunction, LIBC, "abs", "int32") == (
        "CFunction abs: arguments is 'int32'; give a list of types"
    )
    library = ctypes.CDLL(None)
    library.abs.argtypes = [ctypes.c_char_p]
    assert message(tecomp.CFunction, library.abs) == (
        "CFunction abs: arguments: c_char_p of ctypes is neither a number nor a pointer to "
        "numbers; give arguments="
    )
