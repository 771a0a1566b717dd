"""Functions on parallel tensors: a canonical printed form, round trip, and type errors."""

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
from tecomp.operations import TO_BOOL, elementwise_in
from tecomp.ptensor import (
    SCALARS,
    Apply,
    AttributeOperand,
    CastOp,
    ElementwiseBinaryOp,
    ElementwiseBinaryTest,
    Function,
    Linspace,
    Parameter,
    PTensorOp,
    PTensorType,
    Reshape,
    operation_classes,
    parse_module,
    parse_type,
    verify,
)
from tecomp.ptensor.parse import parse
from tests.messages import Diagnostic, diagnostic

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
        Apply("e", CastOp("complex64"), ("c",), (c,), c.like(c.shape, "complex64")),
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
    ("one", "other", "error", "expected"),
    [
        ("device='cpu'", "device='stick128'", DeviceMismatchError,
         Diagnostic("device-mismatch")),
        ("team=1", "team=2", TeamMismatchError,
         Diagnostic("team-mismatch")),
    ],
)
def test_operands_must_be_on_one_device(
    one: str, other: str, error: type[ArrayValueError], expected: Diagnostic
) -> None:
    a, b = f"ptensor<4xint8, {one}>", f"ptensor<4xint8, {other}>"
    with pytest.raises(error) as caught:
        parse(
            f"func @f(%a: {a}, %b: {b}) -> {a} {{\n"
            f"  %c = ptensor.elementwise_binary_op{{'add'}}(%a, %b): ({a}, {b}) -> {a}\n"
            "  return %c\n}"
        )
    assert diagnostic(caught.value) == expected


def test_a_result_of_another_type_is_refused() -> None:
    t = PTensorType((4,), "int8")
    with pytest.raises(ArrayValueError) as caught:
        Apply("c", ElementwiseBinaryOp("add"), ("a", "b"), (t, t), PTensorType((4,), "int16"))
    assert diagnostic(caught.value) == (
        Diagnostic(
            "ptensor", where="%c = ptensor.elementwise_binary_op", declared="ptensor<4xint16>",
            found="ptensor<4xint8>",
        )
    )


def test_attributes_that_the_type_follows_from_are_no_parameters() -> None:
    t = PTensorType((4,), "int8")
    shape: Any = AttributeOperand("s")
    with pytest.raises(ArrayTypeError) as caught:
        Apply("c", Reshape(shape), ("a",), (t,), t)
    assert diagnostic(caught.value) == (
        Diagnostic("ptensor", where="%c = ptensor.reshape", name="shape", value="%s")
    )


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("(%c, %a)", "(%x, %a)"), Diagnostic("ptensor")),
        (("%d = ", "%c = "), Diagnostic("ptensor")),
        (("return %d, %e", "return %d, %z"), Diagnostic("ptensor")),
    ],
)
def test_names_have_one_meaning(change: tuple[str, str], expected: Diagnostic) -> None:
    with pytest.raises(ArrayValueError) as caught:
        parse(TEXT.replace(*change))
    assert diagnostic(caught.value) == expected


def test_a_type_that_a_reader_has_otherwise_is_refused() -> None:
    function = built()
    with pytest.raises(ArrayValueError) as caught:
        verify(Function("f", function.parameters[1:], function.body, function.results))
    assert diagnostic(caught.value) == Diagnostic("ptensor", function="f", result="c", name="a")


MALFORMED = [
    ("", "", Diagnostic(
        "ptensor", line=1, column=1, found="got the end of the text", token="func",
        subject="at the beginning of a function, `func @name(%x: ptensor<4xfloat32>) -> ...`",
    )),
    ("func @f", "def @f", Diagnostic(
        "ptensor", line=1, column=1, found="got `def`", token="func",
        subject="at the beginning of a function, `func @name(%x: ptensor<4xfloat32>) -> ...`",
    )),
    ("@f(", "f(", Diagnostic(
        "ptensor", line=1, column=6, found="got `f`",
        subject="the name of the function, such as `@f`",
    )),
    ("@f(", "@f", Diagnostic(
        "ptensor", line=1, column=8, found="got `%a`", token="(", subject="before the parameters",
    )),
    ("%a: ptensor", "a: ptensor", Diagnostic(
        "ptensor", line=1, column=9, found="got `a`",
        subject="a parameter such as `%x: ptensor<4xfloat32>`",
    )),
    ("ptensor.cast", "ptensor.cost", Diagnostic(
        "ptensor", line=4, column=16, found="got `cost`", hint=", such as cast",
    )),
    ("ptensor.cast", "cast", Diagnostic(
        "ptensor", line=4, column=8, found="got `cast`", token="ptensor.",
        subject="or `func.call` or `return`, as in `%y = ptensor.name{'kind'}(%x, attribute=...): (type) -> type`",
    )),
    (", copy=True", "", Diagnostic(
        "ptensor", line=4, column=16, found="got `cast`", op="cast", missing="copy",
    )),
    (", copy=True", ", copy=1", Diagnostic(
        "ptensor", line=4, column=49, found="got `1`", op="cast", name="copy",
        hint="True or False",
    )),
    (", copy=True", ", copy=(True", Diagnostic(
        "ptensor", line=4, column=55, found="got `:`", token=",", subject="or `)` after an item",
    )),
    (", copy=True", ", copy=" + "(" * 100, Diagnostic(
        "ptensor", line=4, column=57, found="got `(`", max_depth=8,
    )),
    (", copy=True", ", copy=True, copy=True", Diagnostic(
        "ptensor", line=4, column=55, found="got `copy`", item="copy",
    )),
    (", copy=True", ", cope=True", Diagnostic(
        "ptensor", line=4, column=44, found="got `cope`", op="cast", names="dtype, copy",
    )),
    ("'complex64', ", r"'\d', ", Diagnostic(
        "ptensor", line=4, column=31, found="got `'\\d'`", text="\\d",
    )),
    ("{'less'}", "{less}", Diagnostic(
        "ptensor", line=3, column=40, found="got `less`", subject="a kind such as 'add'",
    )),
    ("{'less'}", "{'less'", Diagnostic(
        "ptensor", line=3, column=46, found="got `(`", token="}",
        subject="after the kind of an operation",
    )),
    ("ptensor.cast(", "ptensor.cast{'x'}(", Diagnostic(
        "ptensor", line=4, column=16, found="got `cast`", op="cast", given="x",
    )),
    ("%c, dtype", "c, dtype", Diagnostic(
        "ptensor", line=4, column=22, found="got `,`", token="=", subject="after the attribute c",
    )),
    ("return", "give", Diagnostic(
        "ptensor", line=5, column=3, found="got `give`", token="ptensor.",
        subject="or `func.call` or `return`, as in `%y = ptensor.name{'kind'}(%x, attribute=...): (type) -> type`",
    )),
    ("%d, %e", "%d %e", Diagnostic(
        "ptensor", line=5, column=13, found="got `%e`", token=",", subject="or `}` after an item",
    )),
    ("\n}", "\n} }", Diagnostic("ptensor", line=6, column=3, found="got `}`")),
    ("%d = ", "%d, %z = ", Diagnostic(
        "ptensor", line=3, column=125, found="got `ptensor`", counts="2 names for 1 results",
    )),
    (") -> (ptensor", ") (ptensor", Diagnostic(
        "ptensor", line=1, column=75, found="got `(`", subject="`->` and the types of the results",
    )),
]


@pytest.mark.parametrize(("old", "new", "expected"), MALFORMED)
def test_malformed_text_errors_have_positions(old: str, new: str, expected: Diagnostic) -> None:
    text = TEXT.replace(old, new, 1) if old else new
    assert text != TEXT
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert diagnostic(caught.value) == expected
    assert caught.value.kind == "ptensor"


MALFORMED_TYPES = [
    ("ptensor<4xint8, team='x'>", Diagnostic(
        "ptensor", line=1, column=22, found="got `'x'`", name="team",
    )),
    ("ptensor<4xint8, team=True>", Diagnostic(
        "ptensor", line=1, column=22, found="got `True`", name="team",
    )),
    ("ptensor<4xint8, team=-1>", Diagnostic(
        "ptensor", line=1, column=22, found="got `-`", name="team",
    )),
    ("ptensor<4xint8, device=5>", Diagnostic("ptensor", line=1, column=24, found="got `5`")),
    ("ptensor<4xint8, device=None>", Diagnostic("ptensor", line=1, column=24, found="got `None`")),
    ("ptensor<4xint8, gid=1.5>", Diagnostic(
        "ptensor", line=1, column=21, found="got `1`", name="gid",
    )),
    ("ptensor<4xint8, tim=1>", Diagnostic("ptensor", line=1, column=17, found="got `tim`")),
    ("ptensor<4xint8, team=1, team=2>", Diagnostic(
        "ptensor", line=1, column=25, found="got `team`", name="team",
    )),
    ("ptensor<4xint9>", Diagnostic(
        "ptensor", line=1, column=11, found="got `int9`",
        all="bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, complex64, complex128",
    )),
    ("ptensor<9223372036854775808xint8>", Diagnostic(
        "ptensor", line=1, column=9, found="got `9223372036854775808xint8`",
    )),
    ("ptensor<-1xint8>", Diagnostic(
        "ptensor", line=1, column=9, found="got `-`",
        subject="extents and a dtype, such as `4x5xfloat32`",
    )),
    ("tensor<4xint8>", Diagnostic(
        "ptensor", line=1, column=1, found="got `tensor`",
        type="ptensor<4x5xfloat32, device='cpu'>",
        scalars=", ".join(SCALARS),
    )),
    ("ptensor<4xint8", Diagnostic(
        "ptensor", line=1, column=15, found="got the end of the text", token=",",
        subject="or `>` after a component of a type",
    )),
]


@pytest.mark.parametrize(("text", "expected"), MALFORMED_TYPES)
def test_malformed_types_are_refused_with_their_place(text: str, expected: Diagnostic) -> None:
    with pytest.raises(ParseError) as caught:
        parse_type(text)
    assert diagnostic(caught.value) == expected


@pytest.mark.parametrize("function", [parse, parse_module, parse_type])
def test_only_text_is_parsed(function: Callable[[Any], object]) -> None:
    with pytest.raises(ParseError) as caught:
        function(5)
    assert diagnostic(caught.value) == Diagnostic("ptensor", caller=function.__name__, text=5)


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


def test_creation_functions_accept_positional_numbers() -> None:
    """Positional attributes as in the document's `arange`; dtype and device come from the type."""
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
    ("old", "new", "expected"),
    [
        ("%team) :", "%team, %1) :", Diagnostic(
            "ptensor", line=2, column=25, found="got `%1`", item_count=6, type_count=5,
        )),
        ("%team) : (int64, int64, int64, str, int64)", "%team, %1) : (int64, int64, int64, str, int64, int64)",
         Diagnostic(
             "ptensor", line=2, column=53, found="got `%1`", op="arange",
             names="start, stop, step, device, team",
         )),
        (": (int64", ": (float64", Diagnostic(
            "ptensor", line=2, column=25, found="got `%1`", item="1", type="float64", declared_type="int64",
        )),
        ("%team) :", "%team, start=0) :", Diagnostic(
            "ptensor", line=2, column=25, found="got `%1`", name="start",
        )),
    ],
)  # fmt: skip
def test_numbers_by_position_that_do_not_fit_are_refused(old: str, new: str, expected: Diagnostic) -> None:
    assert old in RANGE
    with pytest.raises(ParseError) as caught:
        parse(RANGE.replace(old, new))
    assert diagnostic(caught.value) == expected


@pytest.mark.parametrize(
    ("spelling", "op"),
    [
        ("elementwise_binary_op{'sub'}", ElementwiseBinaryOp("subtract")),
        *[
            (f"elementwise_binary_op{{{kind!r}}}", ElementwiseBinaryTest(kind))
            for kind, row in elementwise_in("array").items()
            if row.gives == TO_BOOL and row.arity == 2 and not kind.startswith("logical")
        ],
    ],
)
def test_spellings_of_the_document_are_read(spelling: str, op: PTensorOp) -> None:
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
