"""A pass that produces a malformed function is named, also if a later pass fails over it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tecomp import te
from tecomp.errors import InternalError
from tecomp.ir import PrimFunc, Var
from tecomp.lowering import pipeline
from tests.messages import Diagnostic, diagnostic


def _loses_sizes(func: PrimFunc) -> PrimFunc:
    return replace(func, sizes=())


def _fails(func: PrimFunc) -> PrimFunc:
    raise KeyError(func.name)


@pytest.mark.parametrize("after", [(), (_fails,)], ids=["alone", "before-a-failure"])
def test_the_malformed_function_is_shown(
    monkeypatch: pytest.MonkeyPatch, after: tuple[Callable[[PrimFunc], PrimFunc], ...]
) -> None:
    n: Var = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    passes = [pipeline.Pass("bad", _loses_sizes), *(pipeline.Pass("later", f) for f in after)]
    monkeypatch.setattr(pipeline, "PASSES", tuple(passes))

    with pytest.raises(InternalError) as caught:
        pipeline.lower_all(te.create_schedule(B), [A, B])

    assert diagnostic(caught.value) == Diagnostic(
        "internal", function="main", node="n",
        problem="variable is not bound where it is used",
    )


def test_verification_after_each_pass_finds_transient_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    n: Var = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")

    def mends(func: PrimFunc) -> PrimFunc:
        return replace(func, sizes=(n,))

    passes = (pipeline.Pass("bad", _loses_sizes), pipeline.Pass("later", mends))
    monkeypatch.setattr(pipeline, "PASSES", passes)

    with pytest.raises(InternalError) as caught:
        pipeline.lower_all(te.create_schedule(B), [A, B])

    assert diagnostic(caught.value) == Diagnostic(
        "internal", function="main", node="n",
        problem="variable is not bound where it is used",
    )


def test_failures_in_valid_functions_propagate(monkeypatch: pytest.MonkeyPatch) -> None:
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    monkeypatch.setattr(pipeline, "PASSES", (pipeline.Pass("later", _fails),))

    with pytest.raises(KeyError, match="main"):
        pipeline.lower_all(te.create_schedule(B), [A, B])
