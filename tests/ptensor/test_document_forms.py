"""Syntax of the ptensor document: positional attributes and MLIR type names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tecomp.array.executor import execute
from tecomp.errors import ParseError, TecompError
from tecomp.ptensor import (
    ALL,
    MLIR_DTYPES,
    SCALARS,
    lower_ptensor,
    numpy_dtype,
    parse_type,
)
from tecomp.ptensor.parse import parse
from tests.messages import Diagnostic, diagnostic

X = np.array([[3, 1, 2], [9, 7, 8]], "float32")
T = "ptensor<2x3xf32>"
ROW, COLUMNS, TURNED = "ptensor<2xf32>", "ptensor<3xbool>", "ptensor<3x2xf32>"


def run(text: str, *arguments: Any) -> Any:
    """Return the result of a function, after a print-parse round trip."""
    function = parse(text)
    assert parse(str(function)) == function
    inputs = [
        (argument, None, None, None) if isinstance(argument, np.ndarray) else argument for argument in arguments
    ]
    (found,) = execute(lower_ptensor(function), *inputs)
    return found[0]


def same(found: Any, expected: Any, dtype: str) -> None:
    assert (found.dtype.name, found.shape) == (dtype, np.shape(expected))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.exhaustive(keep=6)
@pytest.mark.parametrize(
    ("spelling", "result", "expected"),
    [
        (f"reduce{{'sum'}}(%x, 1): ({T}, int64)", ROW, X.sum(1)),
        (f"reduce{{'var'}}(%x, 1, 1): ({T}, int64, number)", ROW, X.var(1, ddof=1)),
        (f"reduce{{'max'}}(%x, (0, 1)): ({T}, array)", "ptensor<f32>", X.max()),
        (f"test{{'any'}}(%x, 0): ({T}, int64)", COLUMNS, X.any(0)),
        (f"find_index{{'argmax'}}(%x, 1, False): ({T}, int64, bool)", "ptensor<2xi64>", X.argmax(1)),
        (f"sort(%x, True, False): ({T}, bool, bool)", T, -np.sort(-X)),
        (f"sort{{'mergesort'}}(%x, False, True): ({T}, bool, bool)", T, np.sort(X)),
        (f"argsort{{'stable'}}(%x, descending=False, stable=True): ({T})", "ptensor<2x3xi64>",
         X.argsort(axis=1)),
        (f"cast(%x, 'f64', True): ({T}, type, bool)", "ptensor<2x3xf64>", X),
        (f"cast(%x, %t, True): ({T}, type, bool)", "ptensor<2x3xf64>", X),
        (f"reshape(%x, (3, 2), True): ({T}, shape.shape, bool)", TURNED, X.reshape(3, 2)),
        (f"reshape(%x, %s, True): ({T}, shape.shape, bool)", TURNED, X.reshape(3, 2)),
        (f"broadcast(%x, (2, 2, 3)): ({T}, shape.shape)", "ptensor<2x2x3xf32>", [X, X]),
        (f"reduce{{'std'}}(%x, 1, 1): ({T}, int64)", ROW, X.std(1, ddof=1)),
        (f"roll(%x, 1, 1): ({T}, int64, array)", T, np.roll(X, 1, 1)),
        (f"roll(%x, 1, (0, 1)): ({T}, int64, array)", T, np.roll(X, 1, (0, 1))),
        (f"flip(%x, (0,)): ({T}, array)", T, X[::-1]),
        (f"permute_dims(%x, (1, 0)): ({T}, array)", TURNED, X.T),
        (f"expand_dims(%x, 0): ({T}, array)", "ptensor<1x2x3xf32>", X[None]),
        (f"extract_slice(%x, ((0, 1, 1), (1, 1, 2))): ({T}, list)", "ptensor<1x2xf32>", X[:1, 1:]),
        (f"extract_triangle{{'lower'}}(%x, 0): ({T}, int64)", T, np.tril(X)),
        (f"combine{{'concat'}}(%x, %x, 0): ({T}, {T}, int64)", "ptensor<4x3xf32>",
         np.concatenate([X, X])),
        (f"combine{{'stack'}}(%x, %x, 0): ({T}, {T})", "ptensor<2x2x3xf32>", [X, X]),
        (f"vecdot(%x, %x, -1): ({T}, {T}, int64)", ROW, (X * X).sum(1)),
        (f"elementwise_binary_op{{'sub'}}(%x, %x): ({T}, {T})", T, X - X),
        (f"elementwise_binary_op{{'logical_or'}}(%m, %m): ({COLUMNS}, {COLUMNS})", COLUMNS,
         np.ones(3, bool)),
    ],
)
def test_attributes_by_position(spelling: str, result: str, expected: Any) -> None:
    found = run(
        f"func @f(%x: {T}, %m: {COLUMNS}, %t: type, %s: shape.shape) -> {result} {{\n"
        f"  %y = ptensor.{spelling} -> {result}\n  return %y\n}}",
        X, np.ones(3, bool), "float64", (3, 2),
    )
    same(found, expected, parse_type(result).dtype)


INTS, PLACE = "int64, int64, int64", "type, str, int64"
PARAMETERS = "%1: int64, %2: int64, %3: int64, %t: type, %device: str, %dist: int64"
VALUES = 1, 9, 3, "float32", None, None


@pytest.mark.parametrize(
    ("spelling", "result", "expected"),
    [
        (f"arange(%1, %2, %3, %device, %dist) : ({INTS}, str, int64)", "?xi64", np.arange(1, 9, 3)),
        (f"arange(%1, %2, %3, device, dist) : ({INTS}, str, int64)", "?xi64", np.arange(1, 9, 3)),
        (f"arange(%1, %2, %3, None, None) : ({INTS}, str, int64)", "?xi64", np.arange(1, 9, 3)),
        (f"arange(%1, %2, %3, %t, %device, %dist) : ({INTS}, {PLACE})", "?xf32", np.arange(1, 9, 3)),
        (f"arange(%1, %2, %3, dist=None) : ({INTS})", "?xi32", np.arange(1, 9, 3)),
        (f"arange(0, 8, 2, 'i32', None, None) : ({INTS}, {PLACE})", "4xi32", np.arange(0, 8, 2)),
        ("arange(0, 8, 2) : ()", "4xi32", np.arange(0, 8, 2)),
        (f"eye(%3, %2, %1, %t, %device, %dist) : ({INTS}, {PLACE})", "?x?xf32", np.eye(3, 9, 1)),
        (f"eye(%3, %2, %1) : ({INTS})", "?x?xi8", np.eye(3, 9, 1)),
        (f"eye(3, 4, -1) : ({INTS})", "3x4xi8", np.eye(3, 4, -1)),
        (f"linspace(%1, %2, %3, %t, %device, %dist) : ({INTS}, {PLACE})", "?xf32",
         np.linspace(1, 9, 3)),
        (f"linspace(%1, %2, %3, %t, %device, %dist) : (number, number, number, {PLACE})", "?xf32",
         np.linspace(1, 9, 3)),
        ("linspace(0.5, 1.5, 5, 'f64') : (number, number, number, type)", "5xf64",
         np.linspace(0.5, 1.5, 5)),
    ],
)
def test_tensors_of_numbers_by_position(spelling: str, result: str, expected: Any) -> None:
    result = f"ptensor.ptensor<{result}>"
    found = run(
        f"func @f({PARAMETERS}) -> {result} {{\n  %y = ptensor.{spelling} -> {result}\n  return %y\n}}",
        *VALUES,
    )
    same(found, expected, parse_type(result).dtype)


@pytest.mark.parametrize("k", [-9, -1, 0, 1, 2, 7])
@pytest.mark.parametrize("kind", ["lower", "upper"])
@pytest.mark.parametrize("spelling", ["%x, %k): ({T}, int64)", "%x, k=%k): ({T})"])
def test_triangles_up_to_a_diagonal_of_the_call(spelling: str, kind: str, k: int) -> None:
    found = run(
        f"func @f(%x: {T}, %k: int64) -> {T} {{\n"
        f"  %y = ptensor.extract_triangle{{'{kind}'}}({spelling.replace('{T}', T)} -> {T}\n"
        "  return %y\n}",
        X, k,
    )

    same(found, np.tril(X, k) if kind == "lower" else np.triu(X, k), "float32")


@pytest.mark.parametrize("shift", [-7, 0, 1, 3, 2**40 + 1])
@pytest.mark.parametrize(("axis", "axes"), [("1", 1), ("(0,)", 0), ("(0, 1)", (0, 1)), ("(1, 1)", (1, 1))])
@pytest.mark.parametrize("place", ["", ", device='cpu'"])
def test_rolls_by_a_shift_of_the_call(place: str, axis: str, axes: Any, shift: int) -> None:
    tensor = f"ptensor<2x3xf32{place}>"
    function = parse(
        f"func @f(%x: {tensor}, %k: int64) -> {tensor} {{\n"
        f"  %y = ptensor.roll(%x, %k, {axis}): ({tensor}, int64, array) -> {tensor}\n  return %y\n}}"
    )
    assert parse(str(function)) == function
    device = "cpu" if place else None
    (found,) = execute(lower_ptensor(function), (X, device, None, None), shift)

    same(found[0], np.roll(X, shift, axes), "float32")


@pytest.mark.parametrize(("scalar", "value"), [("bool", True), ("int64", 7), ("float64", 2.5)])
@pytest.mark.parametrize(
    ("spelling", "shape"),
    [
        ("create(%s, %v, %t, %device, %dist) : (shape.shape, VALUE, type, str, int64)", "?x?x"),
        ("create(%s, %v, %t, %device, %dist) : (shape.shape, VALUE, type, str, int64)", "2x3x"),
        ("create(%s, %v, %t, %device, %dist) : (shape.shape, anytype, type, str, int64)", "2x3x"),
        ("create((2, 3), %v, 'f32', None, None) : (shape.shape, VALUE, type, str, int64)", "2x3x"),
        ("create(%v, shape=(2, 3), dtype='f32', device=None, team=None) : (VALUE)", "2x3x"),
        ("create_like(%s, %v, %t, %device, %dist) : (shape.shape, VALUE, type, str, int64)", "?x?x"),
        ("create_like(%x, %v, %t, %device, %dist) : (TENSOR, VALUE, type, str, int64)", "2x3x"),
        ("create_like(%x, %v, dtype='f32', device=None, dist=None) : (TENSOR, VALUE)", "2x3x"),
    ],
)
def test_tensors_of_one_scalar(spelling: str, shape: str, scalar: str, value: Any) -> None:
    result, tensor = f"ptensor<{shape}f32>", "ptensor<2x3xi8>"
    spelling = spelling.replace("VALUE", scalar).replace("TENSOR", tensor)
    found = run(
        f"func @f(%x: {tensor}, %v: {scalar}, %s: shape.shape, %t: type, %device: str, %dist: int64) "
        f"-> {result} {{\n  %y = ptensor.{spelling} -> {result}\n  return %y\n}}",
        np.ones((2, 3), "int8"), value, (2, 3), "float32", None, None,
    )
    same(found, np.full((2, 3), value), "float32")


WIDEST = {"b": True, "i": -3, "u": 2**8 - 1, "f": 0.1, "c": 0.1 - 2.5j}


@pytest.mark.exhaustive(keep=68)
@pytest.mark.parametrize("spelling", [*ALL, *MLIR_DTYPES])
@pytest.mark.parametrize("declared", ["SCALAR", "anytype", "number"])
def test_scalars_of_all_dtypes(declared: str, spelling: str) -> None:
    dtype = MLIR_DTYPES.get(spelling, spelling)
    kind = "f" if dtype == "bfloat16" else np.dtype(dtype).kind
    wide = "complex128" if kind == "c" else "float64"
    types = declared.replace("SCALAR", spelling)
    result = f"(ptensor<?x?x{wide}>, ptensor<{spelling}>)"
    function = parse(
        f"func @f(%v: {spelling}, %s: shape.shape) -> {result} {{\n"
        f"  %x = ptensor.create(%s, %v): (shape.shape, {types}) -> ptensor<?x?x{wide}>\n"
        f"  %y = ptensor.asarray(%v): ({types}) -> ptensor<{spelling}>\n  return %x, %y\n}}"
    )
    assert str(function.parameters[0]) == f"%v: {dtype}"
    assert parse(str(function)) == function
    value = WIDEST[kind]
    expected = np.asarray(value).astype(numpy_dtype(dtype))
    # A scalar has the value that its dtype represents, also in a wider tensor.
    filled, imported = execute(lower_ptensor(function), value, (2, 3))
    np.testing.assert_array_equal(filled[0], np.full((2, 3), expected.astype(wide)))
    assert imported[0] == expected
    assert imported[0].dtype == expected.dtype


def test_numbers_of_narrow_dtypes_are_attributes() -> None:
    given = "%1: i8, %2: ui16, %3: si32, %4: f16, %5: complex64"
    operations = (
        ("arange(%1, %2, %3): (i8, ui16, i32)", "?xi32", np.arange(-3, 300, 100)),
        ("linspace(%1, %4, %2): (number, f16, ui16)", "?xf64",
         np.linspace(-3, float(np.float16(0.1)), 300)),
        ("linspace(%5, %4, %2): (number, number, ui16)", "?xcomplex128",
         np.linspace(0.5j, float(np.float16(0.1)), 300)),
    )
    for operation, element, expected in operations:
        result = f"ptensor<{element}>"
        found = run(
            f"func @f({given}) -> {result} {{\n  %y = ptensor.{operation} -> {result}\n  return %y\n}}",
            -3, 300, 100, 0.1, 0.5j,
        )
        same(found, expected, parse_type(result).dtype)


@pytest.mark.parametrize(
    ("dtype", "value", "code"),
    [("int8", 300, "TE0801"), ("ui64", -1, "TE0801"), ("int8", 2.5, "TE0800"), ("f32", 1j, "TE0800"),
     ("bool", 1, "TE0800"), ("f32", "1", "TE0800"), ("f32", np.ones(1), "TE0800")],
)
def test_numbers_that_a_parameter_cannot_represent_are_rejected(dtype: str, value: Any, code: str) -> None:
    lowered = lower_ptensor(parse(f"func @f(%v: {dtype}) -> {dtype} {{\n  return %v\n}}"))
    with pytest.raises(TecompError) as caught:
        execute(lowered, value)
    assert caught.value.code == code


@pytest.mark.parametrize("dtype", ["", "'i32', "])
def test_a_literal_device_is_not_a_dtype(dtype: str) -> None:
    types = f"int64, int64, int64, {'type, ' if dtype else ''}str, int64"
    result = "ptensor<?xi32, device='stick128', team=1>"
    function = parse(
        f"func @f({PARAMETERS}) -> {result} {{\n"
        f"  %y = ptensor.arange(%1, %2, %3, {dtype}'stick128', 1): ({types}) -> {result}\n"
        "  return %y\n}"
    )
    assert str(function.body[0]) == (
        "%y = ptensor.arange(start=%1, stop=%2, step=%3, dtype='int32', device='stick128', team=1): "
        "() -> ptensor<?xint32, device='stick128', team=1>"
    )


@pytest.mark.parametrize(
    ("operation", "place"), [("from_dlpack", ""), ("asarray", ""), ("asarray", ", device='cpu'")]
)
def test_the_type_of_an_imported_tensor_implies_its_attributes(operation: str, place: str) -> None:
    result = f"ptensor<2x3xf32{place}>"
    function = parse(
        f"func @f(%b: ptr) -> {result} {{\n"
        f"  %y = ptensor.{operation}(%b): (ptr) -> {result}\n  return %y\n}}"
    )
    assert parse(str(function)) == function
    (found,) = execute(lower_ptensor(function), X)
    same(found[0], X, "float32")


def test_a_grid_has_the_indexing_of_the_standard() -> None:
    row, grid = "ptensor<3xf32>", "ptensor<3x3xf32>"
    function = parse(
        f"func @f(%x: {row}) -> ({grid}, {grid}) {{\n"
        f"  %y, %z = ptensor.meshgrid(%x, %x): ({row}, {row}) -> ({grid}, {grid})\n"
        "  return %y, %z\n}"
    )
    assert "meshgrid(%x, %x, indexing='xy')" in str(function)
    found = execute(lower_ptensor(function), (X[0], None, None, None))
    for one, expected in zip(found, np.meshgrid(X[0], X[0]), strict=True):
        same(one[0], expected, "float32")


def test_a_scalar_becomes_a_tensor_on_the_device_of_the_result() -> None:
    place = "device='stick128', team=1"
    function = parse(
        f"func @f(%v: float64, %v_value: ptensor<4xi8>) -> ptensor<2x3xf32, {place}> {{\n"
        f"  %y = ptensor.create(%v, shape=(2, 3), dtype='f32', {place}): (float64) -> "
        f"ptensor<2x3xf32, {place}>\n  return %y\n}}"
    )
    first, second = map(str, function.body)
    assert first == (
        f"%v_value_ = ptensor.asarray(%v, shape=(), dtype='float32', copy=None, {place}): (float64) "
        f"-> ptensor<float32, {place}>"
    )
    assert second.startswith("%y = ptensor.create(%v_value_, shape=(2, 3)")


@pytest.mark.parametrize(
    ("short", "dtype"),
    [
        ("i1", "bool"), ("i8", "int8"), ("si16", "int16"), ("i32", "int32"), ("i64", "int64"),
        ("ui8", "uint8"), ("ui16", "uint16"), ("ui32", "uint32"), ("ui64", "uint64"),
        ("f16", "float16"), ("bf16", "bfloat16"), ("f32", "float32"), ("f64", "float64"),
    ],
)
def test_names_of_dtypes_in_mlir(short: str, dtype: str) -> None:
    assert parse_type(f"ptensor<4x{short}>") == parse_type(f"ptensor<4x{dtype}>")
    assert str(parse_type(f"ptensor<4x{short}>")) == f"ptensor<4x{dtype}>"


def _of_one(spelling: str, result: str = T) -> Callable[[], object]:
    text = (
        f"func @f(%x: {T}, %n: int64, %b: bool, %s: shape.shape, %z: complex64) -> {result} {{\n"
        f"  %y = ptensor.{spelling} -> {result}\n  return %y\n}}"
    )
    return lambda: parse(text)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (_of_one(f"elementwise_unary_op{{'abs'}}(%x, 3): ({T}, int64)"),
         Diagnostic(
             "ptensor", line=2, column=48, found="got `3`", op="elementwise_unary_op",
             names="no attributes",
         )),
        (_of_one(f"roll(%x, (1, 2), (0,)): ({T})"),
         Diagnostic("array-value")),
        (_of_one(f"cast(%x, 'f32', 3): ({T}, type, bool)"),
         Diagnostic(
             "ptensor", line=2, column=32, found="got `3`", op="cast", name="copy",
             hint="True or False",
         )),
        (_of_one(f"cast(%x, 'f32', %b): ({T}, type, bool)"),
         Diagnostic(
             "ptensor", line=2, column=32, found="got `%b`", op="cast", name="copy",
             hint="True or False",
         )),
        (_of_one(f"sort(%x, False, True, axis=0, stable=True): ({T}, bool, bool)"),
         Diagnostic("ptensor", line=2, column=32, found="got `True`", name="stable")),
        (_of_one(f"roll(%x, 1, 1): ({T}, int64, array, array)"),
         Diagnostic("ptensor", line=2, column=21, found="got `%x`", item_count=3, type_count=4)),
        (_of_one(f"reshape(%x, %s, True): ({T}, shape.shape, bool)", "ptensor<?x?xf32>"),
         Diagnostic(
             "ptensor", line=2, column=28, found="got `%s`", op="reshape", name="shape",
             item="s",
         )),
        (_of_one("create(%s, %n): (shape.shape, int64)", "ptensor<?x3xf32>"),
         Diagnostic(
             "ptensor", line=2, column=23, found="got `%s`", op="create", name="shape",
             item="s",
         )),
        (_of_one("create(%n, shape=%n, dtype='f32', device=None, team=None): (int64)"),
         Diagnostic("ptensor")),
        (_of_one("eye(%b, %n, %n): (bool, int64, int64)", "ptensor<?x?xf32>"),
         Diagnostic("ptensor")),
        (_of_one("create(%s, %n, %n): (shape.shape, int64, int64)"),
         Diagnostic("ptensor")),
        (_of_one("linspace(%n, %s, %n): (number, number, number)", "ptensor<?xf32>"),
         Diagnostic("ptensor")),
        (_of_one("create((2, 3), 1.5): (shape.shape, f64)"),
         Diagnostic("ptensor", line=2, column=31, found="got `1`", op="create")),
        (_of_one("asarray(%z): (complex64)", "ptensor<f32>"),
         Diagnostic("array-type")),
        (_of_one("linspace(%z, %n, %n): (number, number, number)", "ptensor<?xf32>"),
         Diagnostic("ptensor")),
        (_of_one(f"sort{{'bubble'}}(%x): ({T})"),
         Diagnostic(
             "ptensor", line=2, column=16, found="got `sort`", op="sort",
             missing="descending, stable",
         )),
        (_of_one(f"flip(%x, axis): ({T}, array)"),
         Diagnostic(
             "ptensor", line=2, column=29, found="got `)`", token="=",
             subject="after the attribute axis",
         )),
    ],
)
def test_mismatched_operands_are_rejected(call: Callable[[], object], expected: Diagnostic) -> None:
    with pytest.raises(TecompError) as caught:
        call()
    assert diagnostic(caught.value) == expected


@pytest.mark.parametrize("word", ["anytype", "array", "list", "number", "slice"])
def test_words_of_the_document_are_no_types_of_values(word: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(f"func @f(%x: {word}) -> {T} {{\n  return %x\n}}")
    assert diagnostic(caught.value) == Diagnostic(
        "ptensor", line=1, column=13, found=f"got `{word}`", word=word, scalars=", ".join(SCALARS)
    )


@pytest.mark.parametrize(
    ("operation", "types", "expected"),
    [
        ("unique_counts", "?xf32>, ptensor.ptensor<?xi64", ([1, 2, 3, 7, 8, 9], [1] * 6)),
        ("unique_inverse", "?xf32>, ptensor.ptensor<2x3xi64",
         ([1, 2, 3, 7, 8, 9], [[2, 0, 1], [5, 3, 4]])),
        ("nonzero", "?xi64>, ptensor.ptensor<?xi64", ([0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2])),
    ],
)
def test_types_of_several_results_in_brackets(operation: str, types: str, expected: Any) -> None:
    types = f"[ptensor.ptensor<{types}>]"
    function = parse(
        f"func @f(%x: {T}) -> {types} {{\n  %a, %b = ptensor.{operation}(%x) : ({T}) -> {types}\n"
        "  return %a, %b\n}"
    )
    assert parse(str(function)) == function
    for found, values in zip(execute(lower_ptensor(function), (X, None, None, None)), expected, strict=True):
        np.testing.assert_array_equal(found[0], values)
