"""Tags of operations, and `te.tag_scope`."""

from __future__ import annotations

from typing import Any

import pytest

from tecomp import te
from tecomp.errors import DefinitionError
from tests.messages import Diagnostic, diagnostic

A = te.placeholder((4, 4), name="A")


def doubled(tag: str = "") -> Any:
    return te.compute((4, 4), lambda i, j: A[i, j] * 2.0, name="B", tag=tag)


def test_tag_scope_tags_operations() -> None:
    with te.tag_scope(tag="conv"):
        inside = doubled()
        stored = te.extern((1,), [], lambda ins, outs: outs[0].store(0, 1.0), dtype="float32")

    assert (inside.op.tag, stored.op.tag, doubled().op.tag) == ("conv", "conv", "")


def test_scans_have_tags() -> None:
    S: Any
    state = te.placeholder((4, 4), name="state")
    init = te.compute((1, 4), lambda t, i: A[t, i])
    update = te.compute((4, 4), lambda t, i: state[t - 1, i] + A[t, i])
    with te.tag_scope("scanned"):
        S = te.scan(init, update, state)

    assert S.op.tag == "scanned"


def test_as_a_decorator() -> None:
    @te.tag_scope(tag="conv")
    def made(factor: float) -> Any:
        """Some."""
        return te.compute((4,), lambda i: A[i, 0] * factor)

    assert [made(2.0).op.tag, made(3.0).op.tag, made.__doc__] == ["conv", "conv", "Some."]


def test_a_scope_in_a_scope_is_refused() -> None:
    with te.tag_scope("a"):
        doubled()
        with pytest.raises(DefinitionError) as error:
            te.tag_scope("b").__enter__()

    assert diagnostic(error.value) == (
        Diagnostic("definition", tag="b", outer_tag="a")
    )
    assert doubled().op.tag == ""


def test_a_custom_tag_is_refused() -> None:
    with te.tag_scope("a"):
        doubled()
        with pytest.raises(DefinitionError) as error:
            doubled("mine")

    assert diagnostic(error.value) == (
        Diagnostic("definition", where="te.compute B", tag="mine", scope_tag="a")
    )


def test_a_tag_is_a_text() -> None:
    with pytest.raises(DefinitionError) as error:
        doubled(3)  # type: ignore[arg-type]
    assert diagnostic(error.value) == Diagnostic(
        "invalid-type", where="te.compute B: tag", value=3, remedy="give a text",
    )


def test_a_scope_that_nothing_uses_warns() -> None:
    with pytest.warns(UserWarning, match="^te.tag_scope a: nothing was defined in it, so no "
                      "operation has the tag$"), te.tag_scope("a"):
        pass
