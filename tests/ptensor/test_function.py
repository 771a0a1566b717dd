"""Functions on parallel tensors: one printed form, read back; what does not fit is refused."""

from __future__ import annotations

import pytest

from tecomp.errors import ArrayValueError, DeviceMismatchError, ParseError, TeamMismatchError
from tecomp.ptensor.function import Apply, Function, Parameter, verify
from tecomp.ptensor.operations.elementwise import Cast, ElementwiseBinaryOp, ElementwiseBinaryTest
from tecomp.ptensor.parse import parse
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
         "add: operand 0 is ptensor<4xint8, device='cpu'> and operand 1 is "
         "ptensor<4xint8, device='stick128'>; an operation runs where its operands live: bring one "
         "to the other's device, x.to_device('cpu')"),
        ("team=1", "team=2", TeamMismatchError,
         "add: operand 0 is ptensor<4xint8, team=1> and operand 1 is ptensor<4xint8, team=2>; they "
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("(%c, %a)", "(%x, %a)"), "@f: %d reads %x, which is not computed before it; move it up"),
        (("%d = ", "%c = "), "@f: %c is made twice; give one another name"),
        (("return %d, %e", "return %d, %z"), "@f: there is no %z"),
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a function is `func @name(%x: ptensor<4xfloat32>) -> ptensor<4xfloat32> {`, its "
         "operations, `return %y` and `}`; the text begins with []"),
        (TEXT.replace("cast", "cost"), "there is no operation cost"),
        (TEXT.replace(", copy=True", ""), "cast has the attributes ['copy', 'dtype'], and given are ['dtype']"),
        (TEXT.replace("ptensor<4x1xfloat32, team=1>,", "ptensor<4x1xfloat32, tim=1>,"),
         "tim is no mark of a type"),
    ],
)
def test_what_is_no_function_is_refused(text: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert message in caught.value.message
