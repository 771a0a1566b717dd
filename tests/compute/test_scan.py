"""Definitions of scans: what they give, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tecomp import te
from tecomp.errors import DefinitionError

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


def test_axes_are_those_of_the_rule() -> None:
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


def refused(init: Any, update: Any, placeholder: Any, inputs: Any = None) -> str:
    with pytest.raises(DefinitionError) as error:
        te.scan(init, update, placeholder, inputs, name="S")
    return error.value.message


def shaped(*shape: int, dtype: str = "float32", name: str = "A") -> te.Tensor:
    return te.placeholder(shape, dtype, name)


def test_what_is_no_tensor() -> None:
    assert refused(first, 3, state) == (
        "te.scan S: update is 3 (int); give a tensor, or a list of them"
    )
    assert refused(first, rule, state, [1]) == (
        "te.scan S: inputs is 1 (int); give a tensor, or a list of them"
    )


def test_counts_differ() -> None:
    assert refused([first], [rule, rule], state) == (
        "te.scan S: there are 1 init, 2 update and 1 state_placeholder tensors; give one of each "
        "for every state"
    )
    assert refused([first] * 2, [rule] * 2, [state] * 2) == (
        "te.scan S: a state_placeholder is given twice; make one for each"
    )


def test_the_state_is_computed() -> None:
    assert refused(first, rule, rule) == (
        "te.scan S: the state_placeholder rule is computed; make it with te.placeholder, and read "
        "it in the update"
    )


def test_types_differ() -> None:
    assert refused(first, rule, shaped(9, 4, dtype="int32")) == (
        "te.scan S: first is float32, rule is float32 and A is int32; a state has one type, "
        "convert with .astype"
    )


def test_shapes_differ() -> None:
    assert refused(first, rule, shaped(8, 4)) == (
        "te.scan S: rule has shape (9, 4) and A (8, 4); both have all steps of the result"
    )
    assert refused(shaped(1, 5), rule, state) == (
        "te.scan S: A has shape (1, 5), and a step of rule, of shape (9, 4), has other axes; give "
        "init the first steps of that shape"
    )
    assert refused(shaped(10, 4), rule, state) == (
        "te.scan S: A has 10 steps, and the result only 9; give init the first of them"
    )
    assert refused([first, shaped(1)], [rule, shaped(9)], [state, shaped(9, name="B")]) == (
        "te.scan S: B has shape (9,) and state (9, 4); the states of a scan have as many axes and as "
        "many steps"
    )
    several = [shaped(2, 4, name="B"), first]
    assert refused(several, [rule, rule], [state, shaped(9, 4)]) == (
        "te.scan S: B has 2 steps and first 1; the states of a scan start with as many steps"
    )
    assert refused(shaped(), shaped(), shaped()) == (
        "te.scan S: A has no axes; the first axis of a scan counts its steps"
    )
