"""Loops over sets: what happens when making them is interrupted."""

from __future__ import annotations

import islpy
import pytest

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
