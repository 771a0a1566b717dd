"""What a programmer says of layouts: hints, copies that are to be made, and wishes that clash."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import StickLayout, Target, te
from tecomp.constraints.wishes import Hint
from tecomp.errors import LayoutError
from tecomp.graph.dag import graph_of
from tecomp.graph.layouts import choose_layouts
from tecomp.graph.outcome import Layouts

HALF, SIZE = "float16", 128
STICK = Target.load("stick128")
ROWS, ACROSS = StickLayout((SIZE, SIZE), HALF), StickLayout((SIZE, SIZE), HALF, [1, 0])
random = np.random.default_rng(0)


def chain() -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    A = te.placeholder((SIZE, SIZE), HALF, name="A")
    B = te.compute((SIZE, SIZE), lambda i, j: te.exp(A[i, j]), name="B")
    return A, B, te.compute((SIZE, SIZE), lambda i, j: B[i, j] + A[i, j], name="C")


def chosen(C: te.Tensor, A: te.Tensor, hints: list[Hint], **more: Any) -> Layouts:
    return choose_layouts(graph_of([C], [A], []), STICK, more.pop("given", {}), hints, **more)


def test_a_hard_hint_binds() -> None:
    A, B, C = chain()
    found = chosen(C, A, [tecomp.hint(B, stick=0, hard=True)])

    assert found[B].device_layout == ACROSS
    assert found.certificate.cost == SIZE * SIZE
    assert str(found.wishes[0]) == "the hint that B has axis 0 along its lanes is kept"


def test_a_soft_hint_costs() -> None:
    A, _, C = chain()
    cheap = chosen(C, A, [tecomp.hint(C, stick=C.op.axis[0], cost=10)])
    dear = chosen(C, A, [tecomp.hint(C, stick=0, cost=10 * SIZE * SIZE)])

    assert (cheap[C].device_layout, cheap.certificate.cost) == (ROWS, 10)
    assert str(cheap).splitlines()[-1] == (
        "the hint that C has axis 0 along its lanes is not kept, for 10 elements"
    )
    assert (dear[C].device_layout, dear.certificate.cost) == (ACROSS, SIZE * SIZE)


def test_a_hint_lets_an_input_come_otherwise() -> None:
    A, _, C = chain()
    found = chosen(C, A, [tecomp.hint(A, stick=0), tecomp.hint(C, stick=0)])

    assert found[A].device_layout == ACROSS
    assert found.certificate.cost == 0


def test_a_hint_on_what_is_in_no_memory_says_where_it_went() -> None:
    A, B, C = chain()
    program = tecomp.compile(C, [A], "stick128", hints=[tecomp.hint(B, stick=1)])

    assert [str(wish) for wish in program.layouts.wishes] == [
        "the hint that B has axis 1 along its lanes is kept; B is in no memory, but inside of C"
    ]


def test_a_layout_that_is_asked_for_is_in_memory() -> None:
    A, B, C = chain()
    a = random.standard_normal((SIZE, SIZE)).astype(HALF)
    program = tecomp.compile(C, [A], "stick128", layouts={B: ACROSS})

    assert "B" in [call.group.result.name for call in program.kernels]
    np.testing.assert_allclose(program(a), np.exp(a) + a, rtol=1e-2)


def test_copies_that_are_to_be_made() -> None:
    A, B, _ = chain()
    D = tecomp.restickify(B, 0)
    E = tecomp.relayout_to(D, ROWS, name="E")
    F = te.compute((SIZE, SIZE), lambda i, j: E[i, j] + A[i, j], name="F")
    program = tecomp.compile(F, [A], "stick128")
    a = random.standard_normal((SIZE, SIZE)).astype(HALF)

    assert [program.layouts[x].device_layout for x in (B, D, E)] == [ROWS, ACROSS, ROWS]
    assert program.layouts.certificate.cost == 2 * SIZE * SIZE
    assert [call.group.result.name for call in program.kernels][1:4] == ["B", "B_relaid", "E"]
    np.testing.assert_allclose(program(a), np.exp(a) + a, rtol=1e-2)


def test_a_copy_to_sticks_is_none_on_a_processor() -> None:
    A, B, _ = chain()
    C = te.compute((SIZE, SIZE), lambda i, j: tecomp.restickify(B, 0)[i, j] * A[i, j], name="C")
    a = random.standard_normal((SIZE, SIZE)).astype(HALF)

    np.testing.assert_allclose(tecomp.compile(C, [A])(a), np.exp(a) * a, rtol=1e-2)


CLASHES: list[tuple[Callable[[te.Tensor, te.Tensor, te.Tensor], Any], str]] = [
    (lambda A, B, C: chosen(C, A, [], given={A: ACROSS, C: ROWS}, relayouts=False),
     "layouts: the layout of A and the layout of C clash: no layouts of the program keep them "
     "together; leave one of them out, or make it a soft hint"),
    (lambda A, B, C: chosen(C, A, [tecomp.hint(B, stick=0, hard=True)], given={B: ROWS}),
     "layouts: the layout of B and the hint that B has axis 0 along its lanes clash: no layouts of "
     "the program keep them together; leave one of them out, or make it a soft hint"),
    (lambda A, B, C: chosen(C, A, [tecomp.hint(A, stick=0, hard=True)], given={A: ROWS}),
     "layouts: the layout of A and the hint that A has axis 0 along its lanes clash: no layouts of "
     "the program keep them together; leave one of them out, or make it a soft hint"),
    (lambda A, B, C: chosen(C, A, [tecomp.hint(B, stick=0, hard=True)], relayouts=False),
     "layouts: the hint that B has axis 0 along its lanes cannot be kept on stick128; leave more "
     "to choose"),
    (lambda A, B, C: chosen(B, A, [tecomp.hint(C, stick=0)]),
     "layouts: Tensor(C, shape=(128, 128), dtype=float16) has a hint, and is no value of the "
     "program"),
    (lambda A, B, C: tecomp.hint(A, stick=2),
     "hint: A has 2 axes, and none is 2; give a number from 0 to 1"),
    (lambda A, B, C: tecomp.hint(C, stick=B.op.axis[0]),
     "hint: i is no axis of C; give one of its op.axis, or its number"),
    (lambda A, B, C: tecomp.hint(C, stick=0, cost=-1),
     "hint: the cost -1 is no number of elements; give one from 0 on"),
    (lambda A, B, C: tecomp.relayout_to(C, StickLayout((64, 64), HALF)),
     "relayout_to: C is float16[128, 128], and the layout is for float16[64, 64]; give one of its "
     "shape and type"),
    (lambda A, B, C: tecomp.relayout_to(te.placeholder((te.var("n"), 64), HALF, name="N"), ROWS),
     "relayout_to: N is float16[n, 64], and the layout is for float16[128, 128]; give one of its "
     "shape and type"),
    (lambda A, B, C: tecomp.compile(C, [A], "stick128", layouts={B: 3}),
     "compile: the layout of B: 3 is no layout; make one, such as with Layout.of"),
    (lambda A, B, C: tecomp.compile(C, [A], "stick128", layouts={B: ["default", "rows"]}),
     "compile: the layout of B: 'rows' is no layout; make one, such as with Layout.of"),
]


@pytest.mark.parametrize(("make", "message"), CLASHES)
def test_wishes_that_clash(make: Callable[..., Any], message: str) -> None:
    with pytest.raises(LayoutError) as error:
        make(*chain())

    assert error.value.message == message
