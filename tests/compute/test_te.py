"""`te` is TVM's `te` to a user: the names and the order of the arguments."""

from __future__ import annotations

import inspect

import pytest

from tecomp import te

PARAMETERS = {
    "placeholder": "shape dtype name",
    "compute": "shape fcompute name tag attrs varargs_names",
    "reduce_axis": "dom name thread_tag",
    "thread_axis": "dom tag name",
    "scan": "init update state_placeholder inputs name tag attrs",
    "extern": "shape inputs fcompute name dtype in_buffers out_buffers tag attrs",
    "add": "lhs rhs",
    "subtract": "lhs rhs",
    "multiply": "lhs rhs",
    "tag_scope": "tag",
    "create_schedule": "ops",
    "var": "name dtype",
    "size_var": "name dtype",
    "const": "value dtype",
    "sum": "expr axis where init args",
    "prod": "expr axis where init args",
    "min": "expr axis where init args",
    "max": "expr axis where init args",
    "comm_reducer": "fcombine fidentity name",
    "if_then_else": "cond t f",
    "Select": "condition true_value false_value",
    "power": "x y",
    "clip": "x a_min a_max",
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters(name: str) -> None:
    assert " ".join(inspect.signature(getattr(te, name)).parameters) == PARAMETERS[name]


def test_all_names_exist() -> None:
    assert [name for name in te.__all__ if not hasattr(te, name)] == []
    assert sorted(te.__all__) == sorted(set(te.__all__))


def test_every_public_name_is_listed() -> None:
    public = {
        name
        for name, value in vars(te).items()
        if not name.startswith("_") and not inspect.ismodule(value) and name != "annotations"
    }

    assert public == set(te.__all__)
