"""Lowered functions: the forms of the document, device regions, and their invariants."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tecomp.errors import ArrayValueError
from tecomp.ptensor import (
    Apply,
    Arange,
    AttributeOperand,
    Binding,
    DeviceRegion,
    ElementwiseBinaryOp,
    ElementwiseUnaryOp,
    Function,
    Literal,
    LoweredFunction,
    Parameter,
    PTensorType,
    ValueName,
    body_lines,
    lower_ptensor,
    verify_lowered,
)
from tecomp.ptensor.parse import parse
from tests.messages import Diagnostic, diagnostic

ADD = ElementwiseBinaryOp("add")


def test_the_sum_of_the_document() -> None:
    t = PTensorType((4, 5), "float32", device="level_zero:GPU:1")
    apply = Apply(None, ADD, ("pt1", "pt2"), (t, t), t)
    assert str(apply) == (
        "ptensor.elementwise_binary_op{'add'}(%pt1, %pt2): "
        "(ptensor<4x5xfloat32, device='level_zero:GPU:1'>, "
        "ptensor<4x5xfloat32, device='level_zero:GPU:1'>) -> "
        "ptensor<4x5xfloat32, device='level_zero:GPU:1'>"
    )
    function = Function("f", (Parameter("pt1", t), Parameter("pt2", t)), (apply,), ())
    assert body_lines(lower_ptensor(function).body) == [
        "intel_sycl.device_region('level_zero:GPU:1') {",
        "  linalg.add(%pt1[0], %pt2[0]): (tensor<4x5xfloat32>, tensor<4x5xfloat32>) -> "
        "tensor<4x5xfloat32>",
        "}",
    ]


def chain(device: str | None, team: int | None) -> Function:
    t = PTensorType((4,), "float32", device, team)
    body = (
        Apply("y", ElementwiseUnaryOp("exp"), ("x",), (t,), t),
        Apply("z", ADD, ("y", "x"), (t, t), t),
    )
    return Function("f", (Parameter("x", t),), body, ("z",))


def test_a_region_for_all_that_follows_on_one_device() -> None:
    assert str(lower_ptensor(chain("stick128", None))) == """\
func @f(%x: tuple<tensor<4xfloat32>, str, int64, int64>) {
  intel_sycl.device_region('stick128') {
    %rtensor = linalg.exp(%x[0]): (tensor<4xfloat32>) -> tensor<4xfloat32>
    %rtensor_1 = linalg.add(%rtensor, %x[0]): (tensor<4xfloat32>, tensor<4xfloat32>) -> tensor<4xfloat32>
  }
  %y = %rtensor, 'stick128', None, None
  %z = %rtensor_1, 'stick128', None, None
  return %z
}"""


def test_teams_are_checked_unless_ignored() -> None:
    assert str(lower_ptensor(chain(None, 7))) == """\
func @f(%x: tuple<tensor<4xfloat32>, str, int64, int64>) {
  %gshape = $shape((4,))
  %gid = dist.init_dtensor(%gshape)
  %rtensor = linalg.exp(%x[0]): (tensor<4xfloat32>) -> tensor<4xfloat32>
  %y = %rtensor, None, 7, %gid
  %gshape_1 = $shape((4,))
  %gid_1 = dist.init_dtensor(%gshape_1)
  %rtensor_1 = linalg.add(%rtensor, %x[0]): (tensor<4xfloat32>, tensor<4xfloat32>) -> tensor<4xfloat32>
  %z = %rtensor_1, None, 7, %gid_1
  return %z
}"""
    assert "dist." not in str(lower_ptensor(chain(None, 7), ignore_team=True))


def test_regions_are_not_nested_and_neighbours_are_joined() -> None:
    region = DeviceRegion(Literal("a"), (Binding("x", Literal(1)),))
    nested = LoweredFunction("f", (), (DeviceRegion(Literal("b"), (region,)),), ())
    with pytest.raises(ArrayValueError) as caught:
        verify_lowered(nested)
    assert diagnostic(caught.value) == (
        Diagnostic("ptensor", device="'a'", region="'b'")
    )
    other = DeviceRegion(Literal("a"), (Binding("y", ValueName("x")),))
    with pytest.raises(ArrayValueError) as caught:
        verify_lowered(LoweredFunction("f", (), (region, other), ()))
    assert diagnostic(caught.value) == Diagnostic("ptensor", function="f", device="'a'")


def test_absent_operands_are_not_read() -> None:
    with pytest.raises(ArrayValueError) as caught:
        verify_lowered(LoweredFunction("f", (), (Binding("y", ValueName("x")),), ()))
    assert diagnostic(caught.value) == Diagnostic("ptensor", line="%y = %x", name="x")


def test_a_region_runs_on_a_device_that_is_known() -> None:
    region = DeviceRegion(ValueName("device"), (Binding("x", Literal(1)),))
    verify_lowered(LoweredFunction("f", (Parameter("device", "str"),), (region,), ()))
    with pytest.raises(ArrayValueError) as caught:
        verify_lowered(LoweredFunction("f", (), (region,), ()))
    assert diagnostic(caught.value) == (
        Diagnostic("ptensor", device="%device")
    )


def test_printed_functions_lower_equally() -> None:
    function = chain("stick128", 2)
    assert lower_ptensor(parse(str(function))) == lower_ptensor(function)


PLACES = {
    (None, None): """\
%start = $1
%stop = $compute_stop_index(%1, %2, %3)
%step = $3
%gshape = $compute_global_shape(%1, %2, %3)
%ltensor = linalg.init_tensor(%gshape)
%rtensor = linalg.generic($compute_arange, %lslice, %lshape, %ltensor)
%res = %rtensor, %device, %dist, None""",
    (None, 1): """\
%start = $1
%stop = $compute_stop_index(%1, %2, %3)
%step = $3
%gshape = $compute_global_shape(%1, %2, %3)
%gid = dist.init_dtensor(%gshape)
%lshape = dist.local_shape(%gid)
%lslice = dist.local_slice(%gid)
%ltensor = linalg.init_tensor(%lshape)
%rtensor = linalg.generic($compute_arange, %lslice, %lshape, %ltensor)
%res = %rtensor, %device, %dist, %gid""",
    ("gpu", None): """\
%start = $1
%stop = $compute_stop_index(%1, %2, %3)
%step = $3
%gshape = $compute_global_shape(%1, %2, %3)
%gslice = slice($start, $stop, $step)
intel_sycl.device_region(%device) {
  %ltensor = linalg.init_tensor(%gshape)
  %rtensor = linalg.generic($compute_arange, %gslice, %gshape, %ltensor)
}
%res = %rtensor, %device, %dist, None""",
    ("gpu", 1): """\
%start = $1
%stop = $compute_stop_index(%1, %2, %3)
%step = $3
%gshape = $compute_global_shape(%1, %2, %3)
%gid = dist.init_dtensor(%gshape)
%lshape = dist.local_shape(%gid)
%lslice = dist.local_slice(%gid)
intel_sycl.device_region(%device) {
  %ltensor = linalg.init_tensor(%lshape)
  %rtensor = linalg.generic($compute_arange, %lslice, %lshape, %ltensor)
}
%res = %rtensor, %device, %dist, %gid""",
}


@pytest.mark.parametrize("place", PLACES)
def test_the_ranges_of_the_document(place: tuple[str | None, int | None]) -> None:
    """Without partition, the local shape and slice are those of the whole tensor."""
    device, team = place
    first, last, step = (cast(Any, AttributeOperand(name)) for name in "123")
    op = Arange(first, last, step, "int64", AttributeOperand("device", device), AttributeOperand("dist", team))
    result = PTensorType((None,), "int64", device, team)  # type: ignore[arg-type]
    apply = Apply("res", op, (), (), result)
    assert str(apply).startswith(
        "%res = ptensor.arange(start=%1, stop=%2, step=%3, dtype='int64', device=%device, team=%dist)"
    )
    parameters = [Parameter(name, "int64") for name in ("1", "2", "3", "dist")]
    function = Function("f", (*parameters, Parameter("device", "str")), (apply,), ("res",))
    assert "\n".join(body_lines(lower_ptensor(function).body)) == PLACES[place]
    assert parse(str(function)) == function
