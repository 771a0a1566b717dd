"""Calls between functions preserve device, team and dtype of arguments and results."""

from __future__ import annotations

import numpy as np
import pytest

from tecomp.array.executor import execute
from tecomp.errors import ArrayValueError, DeviceMismatchError, TeamMismatchError, TecompError
from tecomp.ptensor import (
    Apply,
    Binding,
    CallOp,
    DeviceRegion,
    Function,
    FunctionCall,
    Literal,
    LoweredFunction,
    LoweredModule,
    Module,
    PTensorType,
    dist_to_runtime,
    lower_ptensor,
    parse_module,
    verify_lowered,
    verify_lowered_module,
)
from tecomp.ptensor.parse import parse
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close
from tests.ptensor.team_functions import SEVERAL

TEXT = """\
func @g(%x: ptensor<4xfloat32PLACE>, %n: int64) -> ptensor<4xfloat32PLACE> {
  %y = ptensor.elementwise_unary_op{'exp'}(%x): (ptensor<4xfloat32PLACE>) -> ptensor<4xfloat32PLACE>
  return %y
}

func @f(%a: ptensor<4xfloat32PLACE>) -> ptensor<4xfloat32PLACE> {
  %n = ptensor.size(%a): (ptensor<4xfloat32PLACE>) -> int64
  %b = func.call @g(%a, %n): (ptensor<4xfloat32PLACE>, int64) -> ptensor<4xfloat32PLACE>
  %c = ptensor.elementwise_binary_op{'add'}(%b, %a): (ptensor<4xfloat32PLACE>, ptensor<4xfloat32PLACE>) -> ptensor<4xfloat32PLACE>
  return %c
}"""


@pytest.mark.parametrize("place", ["", ", device='stick128'", ", team=1", ", device='stick128', team=1"])
def test_the_printed_form_is_read_back(place: str) -> None:
    text = TEXT.replace("PLACE", place)
    assert str(parse_module(text)) == text
    assert parse_module(str(parse_module(text))) == parse_module(text)


def test_a_call_passes_tuples_between_regions() -> None:
    text = TEXT.replace("PLACE", ", device='stick128'")
    assert str(lower_ptensor(parse_module(text))) == """\
func @g(%x: tuple<tensor<4xfloat32>, str, int64, int64>, %n: int64) {
  intel_sycl.device_region('stick128') {
    %rtensor = linalg.exp(%x[0]): (tensor<4xfloat32>) -> tensor<4xfloat32>
  }
  %y = %rtensor, 'stick128', None, None
  return %y
}

func @f(%a: tuple<tensor<4xfloat32>, str, int64, int64>) {
  %n = 4
  %b = func.call @g(%a, %n): (tuple<tensor<4xfloat32>, str, int64, int64>, int64) -> tuple<tensor<4xfloat32>, str, int64, int64>
  intel_sycl.device_region('stick128') {
    %rtensor = linalg.add(%b[0], %a[0]): (tensor<4xfloat32>, tensor<4xfloat32>) -> tensor<4xfloat32>
  }
  %c = %rtensor, 'stick128', None, None
  return %c
}"""


def test_the_caller_releases_results() -> None:
    lowered = dist_to_runtime(lower_ptensor(parse_module(TEXT.replace("PLACE", ", team=1"))))
    assert str(lowered.functions[1]) == """\
func @f(%a: tuple<tensor<4xfloat32>, str, int64, int64>) {
  %n = 4
  %b = func.call @g(%a, %n): (tuple<tensor<4xfloat32>, str, int64, int64>, int64) -> tuple<tensor<4xfloat32>, str, int64, int64>
  %gshape = $shape((4,))
  %gid = call @dist.init_dtensor(1, %gshape, 'float32')
  %rtensor = linalg.add(%b[0], %a[0]): (tensor<4xfloat32>, tensor<4xfloat32>) -> tensor<4xfloat32>
  call @dist.fini_dtensor(1, %b[3])
  %c = %rtensor, None, 1, %gid
  return %c
}"""


def test_blocks_are_passed_and_returned() -> None:
    """A replicated sum is passed to a function whose parameter is sharded along axis 0."""
    assert str(parse_module(SEVERAL)) == SEVERAL
    assert str(lower_ptensor(parse_module(SEVERAL)).functions[1]).split("\n")[5:-2] == [
        "  %s = %rtensor, None, 1, %gid",
        "  %gshape_1 = $shape((4,))",
        "  %gid_1 = dist.init_dtensor(%gshape_1)",
        "  %lslice = dist.local_slice(%gid_1)",
        "  %part = tensor.extract_slice(%rtensor, %lslice)",
        "  %passed = %part, None, 1, %gid_1",
        "  %called = func.call @g(%passed): (tuple<tensor<4xfloat64>, str, int64, int64>) -> "
        "(tuple<tensor<4xfloat64>, str, int64, int64>, tuple<tensor<2xfloat64>, str, int64, int64>)",
        "  %b = %rtensor, None, 1, %gid",
        "  %c = %called[1]",
    ]


def test_calls_run_as_with_numpy() -> None:
    for place in ("", ", device='stick128'", ", team=1"):
        module = lower_ptensor(parse_module(TEXT.replace("PLACE", place)), ignore_team=True)
        a = np.array([0.5, 1, 2, 3], "float32")
        device = "stick128" if "device" in place else None
        ((found, *_),) = execute(module.functions[1], (a, device, None, None), among=module)
        assert_close(found, np.exp(a) + a, 1e-6, magnitude=np.exp(a) + np.abs(a))
    module = lower_ptensor(parse_module(SEVERAL), ignore_team=True)
    table = np.arange(12.0).reshape(3, 4)
    (row, *_), (half, *_) = execute(module.functions[1], (table, None, None, None), among=module)
    np.testing.assert_array_equal(row, table.sum(0))
    np.testing.assert_array_equal(half, table.sum(0)[::2])


CALL = "%b = func.call @g(%a, %n): (ptensor<4xfloat32>, int64) -> ptensor<4xfloat32>"


@pytest.mark.parametrize(
    ("change", "error", "expected"),
    [
        (("%x: ptensor<4xfloat32>", "%x: ptensor<4xfloat32, device='cpu'>"), DeviceMismatchError,
         Diagnostic(
             "device-mismatch",
             message="@f: call of @g: parameter %x is declared as ptensor<4xfloat32, device='cpu'>, but passed as ptensor<4xfloat32>; a value must keep its",
         )),
        (("%x: ptensor<4xfloat32>", "%x: ptensor<4xfloat32, team=2>"), TeamMismatchError,
         Diagnostic(
             "team-mismatch",
             message="@f: call of @g: parameter %x is declared as ptensor<4xfloat32, team=2>, but passed as ptensor<4xfloat32>; a value must keep its",
         )),
        (("%n: int64)", "%n: float64)"), ArrayValueError,
         Diagnostic("ptensor", where="@f: call of @g: parameter %n", declared="float64", passed="int64")),
        (("%x: ptensor<4xfloat32>", "%x: ptensor<4xfloat32, gid=7>"), ArrayValueError,
         Diagnostic(
             "ptensor", where="@f: call of @g: parameter %x", declared="ptensor<4xfloat32, gid=7>",
             passed="ptensor<4xfloat32>",
         )),
        ((", %n: int64)", ")"), ArrayValueError,
         Diagnostic(
             "ptensor", where="@f: call of @g", parameter_count=1, result_count=1, count=2,
             result_given=1,
         )),
        (("call @g", "call @h"), ArrayValueError,
         Diagnostic("ptensor", where="@f: call of @h")),
        (("call @g(%a, %n): (ptensor<4xfloat32>, int64)", "call @f(%a): (ptensor<4xfloat32>)"),
         ArrayValueError,
         Diagnostic("ptensor", names="@f")),
        (("func @g", "func @f"), ArrayValueError, Diagnostic("ptensor", function="f")),
        (("@g(%a, %n)", "@g(%a, %z)"), ArrayValueError,
         Diagnostic("ptensor")),
    ],
)  # fmt: skip
def test_mismatched_operands_are_rejected(change: tuple[str, str], error: type[TecompError], expected: Diagnostic) -> None:
    text = TEXT.replace("PLACE", "")
    dtype = "ptensor<4xfloat32>"
    changed = text.replace(*change)
    assert changed != text
    if "%x: " in change[0] and change[1].startswith("%x"):  # also in values computed from `%x`
        changed = changed.replace(f"'exp'}}(%x): ({dtype}) -> {dtype}", f"'exp'}}(%x): ({change[1][4:]}) -> {_without(change[1][4:])}")
        changed = changed.replace(f") -> {dtype} {{\n  %y", f") -> {_without(change[1][4:])} {{\n  %y")
    with pytest.raises(error) as caught:
        parse_module(changed)
    assert diagnostic(caught.value) == expected


def _without(type: str) -> str:
    return type.replace(", gid=7", "")


def test_a_number_of_a_tensor_may_be_left_open() -> None:
    text = TEXT.replace("PLACE", ", team=1").replace("%a: ptensor<4xfloat32, team=1>", "%a: ptensor<4xfloat32, team=1, gid=3>")
    text = text.replace("(%a): (ptensor<4xfloat32, team=1>)", "(%a): (ptensor<4xfloat32, team=1, gid=3>)")
    text = text.replace("@g(%a, %n): (ptensor<4xfloat32, team=1>", "@g(%a, %n): (ptensor<4xfloat32, team=1, gid=3>")
    text = text.replace("(%b, %a): (ptensor<4xfloat32, team=1>, ptensor<4xfloat32, team=1>", "(%b, %a): (ptensor<4xfloat32, team=1>, ptensor<4xfloat32, team=1, gid=3>")
    assert str(parse_module(text)) == text


def test_a_function_with_missing_callees_is_refused() -> None:
    caller = parse_module(TEXT.replace("PLACE", "")).functions[1]
    assert parse(str(caller)) == caller
    with pytest.raises(ArrayValueError) as caught:
        lower_ptensor(caller)
    assert diagnostic(caught.value) == (
        Diagnostic("ptensor", function="g")
    )
    module = lower_ptensor(parse_module(TEXT.replace("PLACE", "")))
    with pytest.raises(ArrayValueError) as caught:
        execute(module.functions[1], (np.ones(4, "float32"), None, None, None))
    assert diagnostic(caught.value) == Diagnostic("array-value")


def test_a_call_is_in_no_region() -> None:
    call = Binding("y", FunctionCall("g", (), (), (PTensorType((), "int8"),), (False,)))
    with pytest.raises(ArrayValueError) as caught:
        verify_lowered(LoweredFunction("f", (), (DeviceRegion(Literal("cpu"), (call,)),), ("y",)))
    assert diagnostic(caught.value) == (
        Diagnostic(
            "ptensor", statement="func.call @g(): () -> tuple<tensor<int8>, str, int64, int64>",
            region="'cpu'",
        )
    )
    with pytest.raises(ArrayValueError) as caught:
        verify_lowered_module(LoweredModule((LoweredFunction("f", (), (call,), ("y",)),)))
    assert diagnostic(caught.value) == (
        Diagnostic(
            "ptensor", function="f",
            call="func.call @g(): () -> tuple<tensor<int8>, str, int64, int64>",
        )
    )


def test_functions_are_parsed_in_any_order() -> None:
    module = parse_module(TEXT.replace("PLACE", ""))
    transposed = Module(module.functions[::-1])
    assert lower_ptensor(transposed) == lower_ptensor(module)
    unread = Function("h", module.functions[1].parameters, (
        Apply("n", CallOp("size", ("int64",)), (), (), "int64"),), ())
    assert str(unread.body[0]) == "%n = func.call @size(): () -> int64"
