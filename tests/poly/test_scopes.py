"""Sets whose leading dimensions are fixed by the enclosing scope."""

from __future__ import annotations

import islpy as isl

from tecomp.ir import Var
from tecomp.poly import CONTEXT, rest_of


def test_parts_of_a_union_may_name_their_coordinates_differently() -> None:
    loop, row = Var("loop"), Var("row")
    one = isl.Set.read_from_str(CONTEXT, "{ [a, b] : 0 <= a <= 4 and b = 2a }")
    other = isl.Set.read_from_str(CONTEXT, "{ [c, d] : c = 9 and 0 <= d <= 2 }")
    inside = rest_of(one.union(other), [loop], (row, loop))
    known = isl.Set.read_from_str(
        CONTEXT, "[p1] -> { [b] : (0 <= p1 <= 4 and b = 2p1) or (p1 = 9 and 0 <= b <= 2) }"
    )
    assert inside.is_equal(known)
