"""Loops over sets: what happens when making them is interrupted, or they are not complete."""

from __future__ import annotations

from typing import Any

import islpy
import pytest

import tecomp.poly.scan as scan_module
from tecomp.errors import InternalError
from tecomp.ir.expr import Var
from tecomp.ir.stmt import SeqStmt
from tecomp.poly.affine import Space
from tecomp.poly.scan import scan


def test_ctrl_c_while_isl_makes_loops_arrives_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a failure of isl it would hide, and leave objects behind that crash the process."""
    i, j = Var("i"), Var("j")
    space = Space((i, j))
    triangle = space.box([(0, 4), (0, i)])

    class Interrupted:
        @staticmethod
        def read_from_str(*arguments: object) -> object:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(islpy, "Id", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            scan(triangle, space, lambda point, copy: SeqStmt(()))

    assert str(scan(triangle, space, lambda point, copy: SeqStmt(()))) == (
        "for i in range(1, extent=3):\n    for j in range(i):\n        pass"
    )


@pytest.mark.parametrize("times", [1, 2])
def test_loops_that_leave_points_out_are_made_again_or_refused(
    monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    i, j = Var("i"), Var("j")
    space = Space((i, j))
    triangle, part = space.box([(0, 4), (0, i)]), space.box([(0, 3), (0, 4)])
    made = scan_module._generated
    calls = []

    def lossy(points: Any, *others: Any) -> Any:
        calls.append(points)
        return made(points.intersect(part) if len(calls) <= times else points, *others)

    monkeypatch.setattr(scan_module, "_generated", lossy)
    if times == 2:
        with pytest.raises(InternalError) as error:
            scan(triangle, space, lambda point, copy: SeqStmt(()))
        assert error.value.message == (
            "the loops that isl makes for { [d0, d1] : d0 <= 3 and 0 <= d1 < d0 } leave out some "
            "of them"
        )
        return

    assert str(scan(triangle, space, lambda point, copy: SeqStmt(()))) == (
        "for i in range(1, extent=3):\n    for j in range(i):\n        pass"
    )
