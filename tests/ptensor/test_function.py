"""Functions on parallel tensors: one printed form, read back; what does not fit is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tecomp.errors import (
    ArrayTypeError,
    ArrayValueError,
    DeviceMismatchError,
    ParseError,
    TeamMismatchError,
)
from tecomp.ptensor.function import Apply, Function, Parameter, verify
from tecomp.ptensor.operation import Argument, Operation
from tecomp.ptensor.operation_registry import operation_classes
from tecomp.ptensor.operations.creation import Linspace
from tecomp.ptensor.operations.elementwise import Cast, ElementwiseBinaryOp, ElementwiseBinaryTest
from tecomp.ptensor.operations.manipulation import Reshape
from tecomp.ptensor.parse import parse, parse_module, parse_type
from tecomp.ptensor.types import PTensorType

TEXT = """\
func @f(%a: ptensor<4x1xfloat32, team=1>, %b: ptensor<5xfloat64, team=1>) -> (ptensor<4x5xbool, team=1>, ptensor<4x5xcomplex64, team=1>) {
  %c = ptensor.elementwise_binary_op{'add'}(%a, %b): (ptensor<4x1xfloat32, team=1>, ptensor<5xfloat64, team=1>) -> ptensor<4x5xfloat64, team=1>
  %d = ptensor.elementwise_binary_test{'less'}(%c, %a): (ptensor<4x5xfloat64, team=1>, ptensor<4x1xfloat32, team=1>) -> ptensor<4x5xbool, team=1>
  %e = ptensor.cast(%c, dtype='complex64', copy=True): (ptensor<4x5xfloat64, team=1>) -> ptensor<4x5xcomplex64, team=1>
  return %d, %e
}"""


def built() -> Function:
    a, b = PTensorType((4, 1), "float32", team=1), PTensorType((5,), "float64", team=1)
    c = PTensorType((4, 5), "float64", team=1)
    body = (
        Apply("c", ElementwiseBinaryOp("add"), ("a", "b"), (a, b), c),
        Apply("d", ElementwiseBinaryTest("less"), ("c", "a"), (c, a), c.like(c.shape, "bool")),
        Apply("e", Cast("complex64"), ("c",), (c,), c.like(c.shape, "complex64")),
    )
    return Function("f", (Parameter("a", a), Parameter("b", b)), body, ("d", "e"))


def test_the_printed_form_is_read_back() -> None:
    assert str(built()) == TEXT
    assert parse(TEXT) == built()


def test_the_type_that_the_document_writes_is_read() -> None:
    line = "  %y = ptensor.elementwise_unary_op{'abs'}(%x) : (ptensor.ptensor<4xint8>)  -> ptensor.ptensor<4xint8>"
    function = parse(
        f"func @f(%x: ptensor.ptensor<4xint8>) -> ptensor.ptensor<4xint8> {{\n{line}\n  return %y\n}}"
    )
    assert str(function.body[0]) == (
        "%y = ptensor.elementwise_unary_op{'abs'}(%x): (ptensor<4xint8>) -> ptensor<4xint8>"
    )


@pytest.mark.parametrize(
    ("one", "other", "error", "message"),
    [
        ("device='cpu'", "device='stick128'", DeviceMismatchError,
         "line 2: add: operand 0 is ptensor<4xint8, device='cpu'> and operand 1 is "
         "ptensor<4xint8, device='stick128'>; an operation runs where its operands live: bring one "
         "to the other's device, x.to_device('cpu')"),
        ("team=1", "team=2", TeamMismatchError,
         "line 2: add: operand 0 is ptensor<4xint8, team=1> and operand 1 is ptensor<4xint8, team=2>; they "
         "are divided among different teams: gather one, and create it on the other's team"),
    ],
)
def test_operands_live_in_one_place(
    one: str, other: str, error: type[ArrayValueError], message: str
) -> None:
    a, b = f"ptensor<4xint8, {one}>", f"ptensor<4xint8, {other}>"
    with pytest.raises(error) as caught:
        parse(
            f"func @f(%a: {a}, %b: {b}) -> {a} {{\n"
            f"  %c = ptensor.elementwise_binary_op{{'add'}}(%a, %b): ({a}, {b}) -> {a}\n"
            "  return %c\n}"
        )
    assert caught.value.message == message


def test_a_result_of_another_type_is_refused() -> None:
    t = PTensorType((4,), "int8")
    with pytest.raises(ArrayValueError) as caught:
        Apply("c", ElementwiseBinaryOp("add"), ("a", "b"), (t, t), PTensorType((4,), "int16"))
    assert caught.value.message == (
        "%c = ptensor.elementwise_binary_op: the result is declared as ptensor<4xint16>, and "
        "follows as ptensor<4xint8>; write that"
    )


def test_attributes_that_the_type_follows_from_are_no_parameters() -> None:
    t = PTensorType((4,), "int8")
    shape: Any = Argument("s")
    with pytest.raises(ArrayTypeError) as caught:
        Apply("c", Reshape(shape), ("a",), (t,), t)
    assert caught.value.message == (
        "%c = ptensor.reshape: shape is %s; write the value itself, which the type of the result follows from"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("(%c, %a)", "(%x, %a)"), "line 3: @f: %d reads %x, which is not computed before it; move it up"),
        (("%d = ", "%c = "), "line 3: @f: %c is made twice; give one another name"),
        (("return %d, %e", "return %d, %z"), "line 5: @f: there is no %z"),
    ],
)
def test_names_have_one_meaning(change: tuple[str, str], message: str) -> None:
    with pytest.raises(ArrayValueError) as caught:
        parse(TEXT.replace(*change))
    assert caught.value.message == message


def test_a_type_that_a_reader_has_otherwise_is_refused() -> None:
    function = built()
    with pytest.raises(ArrayValueError) as caught:
        verify(Function("f", function.parameters[1:], function.body, function.results))
    assert caught.value.message == "@f: %c reads %a, which is not computed before it; move it up"


MALFORMED = [
    ("", "", "line 1, column 1: expected `func` at the beginning of a function, `func @name(%x: "
     "ptensor<4xfloat32>) -> ...`, got the end of the text"),
    ("func @f", "def @f", "line 1, column 1: expected `func` at the beginning of a function, `func @name(%x: "
     "ptensor<4xfloat32>) -> ...`, got `def`"),
    ("@f(", "f(", "line 1, column 6: expected the name of the function, such as `@f`, got `f`"),
    ("@f(", "@f", "line 1, column 8: expected `(` before the parameters, got `%a`"),
    ("%a: ptensor", "a: ptensor", "line 1, column 9: expected a parameter such as `%x: ptensor<4xfloat32>`, got `a`"),
    ("ptensor.cast", "ptensor.cost", "line 4, column 16: expected the name of an operation, such as cast, got `cost`"),
    ("ptensor.cast", "cast", "line 4, column 8: expected `ptensor.` or `func.call` or `return`, as in `%y = "
     "ptensor.name{'kind'}(%x, attribute=...): (type) -> type`, got `cast`"),
    (", copy=True", "", "line 4, column 16: cast needs copy too, got `cast`"),
    (", copy=True", ", copy=1", "line 4, column 49: cast: copy must be True or False, got `1`"),
    (", copy=True", ", copy=(True", "line 4, column 55: expected `,` or `)` behind an item, got `:`"),
    (", copy=True", ", copy=" + "(" * 100, "line 4, column 57: literals are nested at most 8 deep, got `(`"),
    (", copy=True", ", copy=True, copy=True", "line 4, column 55: copy= stands twice, got `copy`"),
    (", copy=True", ", cope=True", "line 4, column 44: cast has the attributes dtype, copy, got `cope`"),
    ("'complex64', ", r"'\d', ", "line 4, column 31: `\\d` is no escape sequence of a string, got `'\\d'`"),
    ("{'less'}", "{less}", "line 3, column 40: expected a kind such as 'add', got `less`"),
    ("{'less'}", "{'less'", "line 3, column 46: expected `}` behind the kind of an operation, got `(`"),
    ("ptensor.cast(", "ptensor.cast{'x'}(", "line 4, column 16: cast has no kinds: leave {'x'} out, got `cast`"),
    ("%c, dtype", "c, dtype", "line 4, column 22: expected `=` behind the attribute c, got `,`"),
    ("return", "give", "line 5, column 3: expected `ptensor.` or `func.call` or `return`, as in `%y = "
     "ptensor.name{'kind'}(%x, attribute=...): (type) -> type`, got `give`"),
    ("%d, %e", "%d %e", "line 5, column 13: expected `,` or `}` behind an item, got `%e`"),
    ("\n}", "\n} }", "line 6, column 3: expected the end of the text, got `}`"),
    ("%d = ", "%d, %z = ", "line 3, column 125: there are 2 names for 1 results: give one to each, got `ptensor`"),
    (") -> (ptensor", ") (ptensor", "line 1, column 75: expected `->` and the types of the results, got `(`"),
]


@pytest.mark.parametrize(("old", "new", "message"), MALFORMED)
def test_malformed_text_is_refused_with_its_place(old: str, new: str, message: str) -> None:
    text = TEXT.replace(old, new, 1) if old else new
    assert text != TEXT
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert caught.value.message == message
    assert caught.value.kind == "ptensor"


MALFORMED_TYPES = [
    ("ptensor<4xint8, team='x'>", "line 1, column 22: team must be an integer from 0, got `'x'`"),
    ("ptensor<4xint8, team=True>", "line 1, column 22: team must be an integer from 0, got `True`"),
    ("ptensor<4xint8, team=-1>", "line 1, column 22: team must be an integer from 0, got `-`"),
    ("ptensor<4xint8, device=5>", "line 1, column 24: device must be a string, got `5`"),
    ("ptensor<4xint8, device=None>", "line 1, column 24: device must be a string, got `None`"),
    ("ptensor<4xint8, gid=1.5>", "line 1, column 21: gid must be an integer from 0, got `1`"),
    ("ptensor<4xint8, tim=1>", "line 1, column 17: a type has only device=, team= and gid=, got `tim`"),
    ("ptensor<4xint8, team=1, team=2>", "line 1, column 25: team= stands twice in a type, got `team`"),
    ("ptensor<4xint9>", "line 1, column 11: expected one of the dtypes bool, int8, int16, int32, int64, uint8, "
     "uint16, uint32, uint64, float16, bfloat16, float32, float64, complex64, complex128, got `int9`"),
    ("ptensor<9223372036854775808xint8>", "line 1, column 9: an extent must be less than 2**63, got "
     "`9223372036854775808xint8`"),
    ("ptensor<-1xint8>", "line 1, column 9: expected extents and a dtype, such as `4x5xfloat32`, got `-`"),
    ("tensor<4xint8>", "line 1, column 1: expected a type, `ptensor<4x5xfloat32, device='cpu'>` or one of bool, "
     "float64, int64, ptr, shape.shape, str, type, got `tensor`"),
    ("ptensor<4xint8", "line 1, column 15: expected `,` or `>` behind a part of a type, got the end of the text"),
]


@pytest.mark.parametrize(("text", "message"), MALFORMED_TYPES)
def test_malformed_types_are_refused_with_their_place(text: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_type(text)
    assert caught.value.message == message


@pytest.mark.parametrize("function", [parse, parse_module, parse_type])
def test_only_text_is_parsed(function: Callable[[Any], object]) -> None:
    with pytest.raises(ParseError) as caught:
        function(5)
    assert caught.value.message == f"{function.__name__}: text must be a string, got 5; pass str(function)"


def test_literals_are_read_back_to_the_bit() -> None:
    place = "a'\n\\x\x07\u20ac"
    for start, stop in [(complex(-0.0, -np.inf), np.nan), (-0.0, 1e300), (5e-324, complex(np.nan, 0.0)), (0, -2j)]:
        op = Linspace(start, stop, 3, "complex128", False, place)
        result = PTensorType((3,), "complex128", place)
        text = str(Function("f", (), (Apply("a", op, (), (), result),), ("a",)))
        found = parse(text).body[0].op
        assert isinstance(found, Linspace)
        assert str(parse(text)) == text
        assert [found.start, found.stop] == pytest.approx([start, stop], rel=0, nan_ok=True)
        assert found.device == place


RANGE = """\
func @f(%1: int64, %2: int64, %3: int64, %device: str, %team: int64) -> ptensor<?xint32, device='cpu', team=2> {
  %res = ptensor.arange(%1, %2, %3, %device, %team) : (int64, int64, int64, str, int64)  -> ptensor.ptensor<?xint32, device='cpu', team=2>
  return %res
}"""


def test_numbers_of_a_creation_function_may_stand_by_position() -> None:
    """The spelling of the document's example of `arange`; the type says dtype and place."""
    (apply,) = parse(RANGE).body
    assert str(apply) == (
        "%res = ptensor.arange(start=%1, stop=%2, step=%3, dtype='int32', device=%device, team=%team): () -> "
        "ptensor<?xint32, device='cpu', team=2>"
    )
    assert parse(str(parse(RANGE))) == parse(RANGE)
    short = RANGE.replace(", %device, %team)", ")").replace(", str, int64)  ->", ") ->")
    assert "step=%3, dtype='int32', device='cpu', team=2)" in str(parse(short))
    named = RANGE.replace("%3, %device", "step=%3, device=%device").replace(", %team)", ", team=%team, dtype='int32')")
    assert parse(named.replace("(int64, int64, int64, str, int64)  ->", "(int64, int64) ->")) == parse(RANGE)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("%team) :", "%team, %1) :", "line 2, column 25: there are 6 operands with 5 types: give a type for each, got `%1`"),
        ("%team) : (int64, int64, int64, str, int64)", "%team, %1) : (int64, int64, int64, str, int64, int64)",
         "line 2, column 53: arange takes start, stop, step, device, team by position, got `%1`"),
        (": (int64", ": (float64", "line 2, column 25: %1 is read as float64, and it is int64, got `%1`"),
        ("%team) :", "%team, start=0) :", "line 2, column 25: start is given by position and by name, got `%1`"),
    ],
)  # fmt: skip
def test_numbers_by_position_that_do_not_fit_are_refused(old: str, new: str, message: str) -> None:
    assert old in RANGE
    with pytest.raises(ParseError) as caught:
        parse(RANGE.replace(old, new))
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("spelling", "op"),
    [
        ("elementwise_binary_op{'sub'}", ElementwiseBinaryOp("subtract")),
        *[
            (f"elementwise_binary_op{{{kind!r}}}", ElementwiseBinaryTest(kind))
            for kind in ("equal", "greater", "greater_equal", "less", "less_equal", "not_equal")
        ],
    ],
)
def test_spellings_of_the_document_are_read(spelling: str, op: Operation) -> None:
    t = PTensorType((4,), "int8")
    result = op.infer(t, t)
    text = (
        f"func @f(%a: {t}, %b: {t}) -> {result} {{\n"
        f"  %c = ptensor.{spelling}(%a, %b): ({t}, {t}) -> {result}\n"
        "  return %c\n}"
    )
    assert parse(text).body[0].op == op
    assert f"ptensor.{op.name}{{" in str(parse(text))


@pytest.mark.parametrize("name", [
    "elementwise_unary_op{'abs acos acosh asin bitwise_invert'}", "elementwise_unary_test{'isnan isinf logical_not'}",
    "elementwise_binary_op{'add bitwise_left_shift'}", "elementwise_binary_test{'greater less equal logical_and'}",
])
def test_kinds_of_the_document_are_there(name: str) -> None:
    head, kinds, _ = name.split("'")
    for kind in kinds.split():
        assert kind in operation_classes()[head[:-1]].functions  # type: ignore[attr-defined]
