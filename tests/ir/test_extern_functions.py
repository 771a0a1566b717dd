"""Registration of external functions, and the argument types that ctypes functions declare."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

import tecomp
from tecomp.errors import DefinitionError, TypeMismatchError
from tests.messages import Diagnostic, diagnostic

LIBC = ctypes.CDLL(None)

pytestmark = pytest.mark.usefixtures("unregistered_functions")


def refusal(call: Any, *args: Any, **options: Any) -> Diagnostic:
    with pytest.raises(DefinitionError) as error:
        call(*args, **options)
    return diagnostic(error.value)


def double(x: Any, y: Any) -> None:
    y[...] = 2 * x


def test_three_forms_of_register_func() -> None:
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

    assert refusal(tecomp.register_func, "test.double", print) == (
        Diagnostic("external-function", func_name="test.double")
    )
    tecomp.register_func("test.double", print, override=True)
    assert tecomp.get_global_func("test.double") is print


def test_unknown_function_names() -> None:
    tecomp.register_func("test.double", double)

    assert tecomp.get_global_func("test.duoble", allow_missing=True) is None
    assert refusal(tecomp.get_global_func, "test.duoble") == (
        Diagnostic(
            "external-function",
            remedy="no function is registered as 'test.duoble'; write 'test.double' if that is meant, or call tecomp.register_func('test.duoble', f) first",
        )
    )
    assert refusal(tecomp.remove_global_func, "zzz") == (
        Diagnostic(
            "external-function",
            remedy="no function is registered as 'zzz'; call tecomp.register_func('zzz', f) first",
        )
    )


def test_register_func_requires_name_and_function() -> None:
    assert refusal(tecomp.register_func, 3, double) == (
        Diagnostic("external-function", where="register_func", name=3)
    )
    assert refusal(tecomp.register_func, "x", 3) == (
        Diagnostic("external-function", func_name="x", f=3)
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
    assert refusal(tecomp.CFunction, LIBC["memmove"]) == (
        Diagnostic("external-function", name="memmove")
    )
    assert str(tecomp.CFunction(LIBC["memmove"], arguments=["bfloat16 *"])) == (
        "CFunction(memmove(bfloat16*))"
    )


def test_c_functions_that_are_not_there() -> None:
    assert refusal(tecomp.CFunction, LIBC, "no_such_function", []) == (
        Diagnostic("external-function", symbol="no_such_function", name="of this process")
    )
    assert refusal(tecomp.CFunction, "no/such/library.so", "f", []) == Diagnostic(
        "external-function", symbol="f", path="no/such/library.so",
        reason="no/such/library.so: cannot open shared object file: No such file or directory",
    )
    assert refusal(tecomp.CFunction, double) == (
        Diagnostic("external-function", function="<function double>")
    )
    assert refusal(tecomp.CFunction, 3, "f", []) == (
        Diagnostic("external-function", symbol="f", library=3)
    )


@pytest.mark.parametrize("kind", ["float", "float16", "const int32", "int32**", "", "char*"])
def test_unknown_types(kind: str) -> None:
    with pytest.raises(TypeMismatchError):
        tecomp.CFunction(LIBC, "abs", [kind])


def test_the_types_are_named() -> None:
    assert refusal(tecomp.CFunction, LIBC, "abs", ["float"]) == (
        Diagnostic(
            "external-function", where="CFunction abs: arguments", text="float",
            scalars="int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64, bool",
            any_pointer="handle",
        )
    )
    assert refusal(tecomp.CFunction, LIBC, "abs", "int32") == (
        Diagnostic(
            "invalid-type", where="CFunction abs: arguments", value="int32",
            remedy="pass a list of types",
        )
    )
    library = ctypes.CDLL(None)
    library.abs.argtypes = [ctypes.c_char_p]
    assert refusal(tecomp.CFunction, library.abs) == (
        Diagnostic("external-function", where="CFunction abs: arguments", type_name="c_char_p")
    )
