"""Definitions and errors of scans."""

from __future__ import annotations

from typing import Any

import pytest

from tecomp import te
from tecomp.errors import DefinitionError
from tests.messages import Diagnostic, diagnostic

state = te.placeholder((9, 4), name="state")
first = te.placeholder((1, 4), name="first")
rule = te.compute((9, 4), lambda t, i: state[t - 1, i] + 1.0, name="rule")


def test_one_state_gives_a_tensor() -> None:
    S = te.scan(first, rule, state, name="S", tag="sums", attrs={"key": 1})
    op: Any = S.op

    assert isinstance(S, te.Tensor)
    assert (S.name, S.shape, S.dtype) == ("S", (9, 4), "float32")
    assert str(S.op) == "S[t, i] = first[t, i] if t < 1 else rule[t, i] with state = S"
    assert S.op.input_tensors == (first, rule)
    assert (op.tag, op.attrs["key"]) == ("sums", 1)


def test_axes_match_the_update() -> None:
    op: Any = te.scan(first, rule, state).op

    assert (op.name, op.scan_axis.name, op.scan_axis.extent) == ("scan", "t", 8)
    assert [axis.name for axis in op.spatial_axis_] == ["i"]
    assert op.axis == (op.scan_axis, *op.spatial_axis_)
    assert te.create_schedule(op)[op].leaf_iter_vars == op.axis


def test_several_states_give_a_list() -> None:
    other = te.placeholder((9, 4), name="other")
    both = te.scan([first, first], [rule, rule], [state, other], name="S")

    assert isinstance(both, list)
    assert [tensor.name for tensor in both] == ["S_v0", "S_v1"]


def refused(init: Any, update: Any, placeholder: Any, inputs: Any = None) -> Diagnostic:
    with pytest.raises(DefinitionError) as error:
        te.scan(init, update, placeholder, inputs, name="S")
    return diagnostic(error.value)


def shaped(*shape: int, dtype: str = "float32", name: str = "A") -> te.Tensor:
    return te.placeholder(shape, dtype, name)


def test_scan_requires_tensors() -> None:
    assert refused(first, 3, state) == (
        Diagnostic("invalid-type", where="te.scan S", subject="update", tensor=3, type="int")
    )
    assert refused(first, rule, state, [1]) == (
        Diagnostic("invalid-type", where="te.scan S", subject="inputs", tensor=1, type="int")
    )


def test_counts_differ() -> None:
    assert refused([first], [rule, rule], state) == (
        Diagnostic("scan", where="te.scan S", start_count=1, rule_count=2, state_count=1)
    )
    assert refused([first] * 2, [rule] * 2, [state] * 2) == (
        Diagnostic("scan", where="te.scan S")
    )


def test_the_state_is_computed() -> None:
    assert refused(first, rule, rule) == (
        Diagnostic("scan", where="te.scan S", state="rule")
    )


def test_types_differ() -> None:
    assert refused(first, rule, shaped(9, 4, dtype="int32")) == (
        Diagnostic(
            "scan", where="te.scan S", start="first", dtype="float32", rule="rule",
            rule_dtype="float32", state="A", state_dtype="int32",
        )
    )


def test_shapes_differ() -> None:
    assert refused(first, rule, shaped(8, 4)) == (
        Diagnostic(
            "scan", where="te.scan S", rule="rule", shape="(9, 4)", state="A",
            state_shape="(8, 4)",
        )
    )
    assert refused(shaped(1, 5), rule, state) == (
        Diagnostic(
            "scan", where="te.scan S", start="A", shape="(1, 5)", rule="rule",
            rule_shape="(9, 4)",
        )
    )
    assert refused(shaped(10, 4), rule, state) == (
        Diagnostic("scan", where="te.scan S", start="A", first="10", steps="9")
    )
    assert refused([first, shaped(1)], [rule, shaped(9)], [state, shaped(9, name="B")]) == (
        Diagnostic(
            "scan", where="te.scan S", state="B", shape="(9,)", other="state",
            other_shape="(9, 4)",
        )
    )
    several = [shaped(2, 4, name="B"), first]
    assert refused(several, [rule, rule], [state, shaped(9, 4)]) == (
        Diagnostic(
            "scan", where="te.scan S", start="B", extent="2", start_name="first", other_extent="1",
        )
    )
    assert refused(shaped(), shaped(), shaped()) == (
        Diagnostic("scan", where="te.scan S", rule="A")
    )
