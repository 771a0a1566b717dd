"""Error messages for unsupported names of TVM, and the suggested replacements."""

from __future__ import annotations

import importlib

import pytest

import tecomp
from tecomp import MissingError, te, tir
from tecomp.compute import ABSENT
from tests.messages import Diagnostic, diagnostic


@pytest.mark.parametrize("module", ABSENT)
def test_listed_unsupported_names_are_absent(module: str) -> None:
    found = importlib.import_module(module)

    for name, instead in ABSENT[module].items():
        assert not hasattr(found, name)
        with pytest.raises(tecomp.MissingError) as error:
            getattr(found, name)
        called = module.removeprefix("tecomp.compute.").removeprefix("tecomp.")
        assert diagnostic(error.value) == Diagnostic(
            "unsupported-name", called=called, name=name, remedy=instead)


def test_messages_name_the_replacement() -> None:
    with pytest.raises(AttributeError) as error:
        te.create_prim_func  # type: ignore[attr-defined]  # noqa: B018

    assert str(error.value).startswith(
        "te.create_prim_func: TensorIR is not supported; define loops with te.create_schedule, and "
        "print, read or evaluate them with tecomp.lower\n"
    )


@pytest.mark.parametrize("module", [te, tir, tecomp])
def test_unknown_names(module: object) -> None:
    with pytest.raises(AttributeError) as error:
        module.no_such_name  # type: ignore[attr-defined]  # noqa: B018

    name = module.__name__  # type: ignore[attr-defined]
    assert str(error.value) == f"module {name!r} has no attribute 'no_such_name'"


@pytest.mark.parametrize(
    ("name", "near"),
    [("Compute", "compute"), ("COMPUTE", "compute"), ("computeop", "ComputeOp"), ("placehoder", "placeholder")],
)
def test_names_of_the_same_letters_are_meant_first(name: str, near: str) -> None:
    with pytest.raises(AttributeError) as error:
        getattr(te, name)

    assert isinstance(error.value, MissingError)
    assert diagnostic(error.value) == Diagnostic("unsupported-name", called="te", name=name, suggestion=near)


def test_classes_have_the_places_that_tvm_gives_them() -> None:
    A = te.placeholder((4,), name="A")
    s = te.create_schedule(te.compute((4,), lambda i: A[i], name="B"))

    assert isinstance(A, te.tensor.Tensor)
    assert isinstance(A.op, te.tensor.PlaceholderOp)
    assert isinstance(s, te.schedule.Schedule)
    assert isinstance(s[A], te.schedule.Stage)
