"""Padding of values: undefined by default, filled on demand, and proven by integer sets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import StickLayout, Target, te
from tecomp.errors import LayoutError
from tecomp.graph import ProgramLayouts, choose_layouts, graph_of
from tecomp.layout import Layout
from tecomp.machine import OperandPadding
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close

HALF, ROWS, DEPTH, COLUMNS = "float16", 70, 72, 40
STICK = Target.load("stick128")
FILL = 128 * 64 - DEPTH * COLUMNS
"""Number of padding places in the sticks of the right factor."""


def product_of(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, w.shape[0]), name="k")
    return te.compute(
        (x.shape[0], w.shape[1]), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), name="Y"
    )


def factors(depth: int = DEPTH) -> tuple[te.Tensor, te.Tensor]:
    X = te.placeholder((ROWS, depth), HALF, name="X")
    return X, te.placeholder((depth, COLUMNS), HALF, name="W")


def exp(x: te.Tensor) -> te.Tensor:
    return te.compute(x.shape, lambda i, j: te.exp(x[i, j]), name="E")


def relu(x: te.Tensor) -> te.Tensor:
    return te.compute(x.shape, lambda i, j: te.max(x[i, j], te.const(0, HALF)), name="R")


def chosen(output: te.Tensor, inputs: list[te.Tensor], **more: Any) -> ProgramLayouts:
    target = more.pop("target", STICK)
    return choose_layouts(graph_of([output], inputs, []), target, more.pop("given", {}), **more)


def test_unknown_padding_of_inputs_is_filled() -> None:
    X, W = factors()
    found = chosen(product_of(X, W), [X, W])
    (fill,) = found.relayouts

    assert (fill.tensor, fill.is_fill, fill.elements) == (W, True, FILL)
    assert fill.layout.pad_value == 0.0
    assert fill.nbytes == FILL * 2
    assert (found[X].padding, found[W].padding) == (None, None)
    assert found.certificate.cost == found.certificate.lower_bound == FILL


def test_filled_padding_of_inputs_is_not_filled_again() -> None:
    X, W = factors()
    zeros = StickLayout((128, 64), HALF, [0, 1], size=(DEPTH, COLUMNS), pad_value=0)
    found = chosen(product_of(X, W), [X, W], given={W: zeros})

    assert (found.certificate.cost, found.relayouts) == (0, ())


def test_no_padding_along_the_sum_needs_no_fill() -> None:
    """No fill is needed where the reduction axis has no padding: 128 rows are whole sticks."""
    X, W = factors(128)

    assert chosen(product_of(X, W), [X, W]).certificate.cost in (0, 128 * (64 - COLUMNS))


def test_producers_fill_padding() -> None:
    X, W = factors()
    E = exp(W)
    found = chosen(product_of(X, E), [X, W])

    assert (found.relayouts, found[E].padding, found.certificate.cost) == ((), 0.0, FILL)


def test_zeros_that_follow_from_zeros() -> None:
    """Zero padding propagates through `relu`, for `relu(0) = 0`, and not through `exp`."""
    X, W = factors()
    zeros = StickLayout((128, 64), HALF, [0, 1], size=(DEPTH, COLUMNS), pad_value=0)
    R, E = relu(W), exp(W)

    for output, cost in ((product_of(X, R), 0), (product_of(X, E), FILL)):
        assert chosen(output, [X, W], given={W: zeros}).certificate.cost == cost


def test_the_least_number_for_a_greatest_one() -> None:
    """A maximum needs the smallest value as fill on machines that also reduce padding."""
    rule = OperandPadding("operand_padding", "reduction", ("inputs",), "reduced", "neutral", "test")
    target = replace(STICK, rules=(*STICK.rules, rule))
    X, _ = factors()
    k = te.reduce_axis((0, DEPTH), name="k")
    M = te.compute((ROWS,), lambda i: te.max(X[i, k], axis=k), name="M")
    (fill,) = chosen(M, [X], target=target).relayouts

    assert (fill.is_fill, fill.layout.pad_value) == (True, -65504.0)
    with pytest.raises(LayoutError) as error:
        chosen(M, [X], target=target, relayouts=False)
    assert diagnostic(error.value) == Diagnostic(
        "layout-requirement", operation="M", target="stick128",
        problems="M: the padding of X along dimension 1 holds undefined data, but must hold "
                 "-65504.0 (rule operand_padding of reduction: test); a relayout of X to lambda i0, "
                 "i1: [i1 // 64, i0 % 128, i1 % 64] resolves it",
    )


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("machine", ["stick128", "tensix_wh"])
def test_kernels_write_it(machine: str) -> None:
    X, W = factors()
    program = tecomp.compile(product_of(X, exp(W)), [X, W], machine)
    (maker,) = (call for call in program.kernels if call.group.result.name == "E")
    (result,) = maker.group.result.outputs
    layout = program.details.stored[result]
    (read,) = maker.group.operations[0].input_tensors
    source = Layout.of((DEPTH, COLUMNS), HALF, program.details.stored[read].index_map)
    plain = Layout.of((DEPTH, COLUMNS), HALF, layout.index_map, pad_value=0)
    w = np.random.default_rng(0).standard_normal((DEPTH, COLUMNS)).astype(HALF)
    out = np.full(layout.num_places, np.nan, HALF)
    tecomp.evaluate(maker.kernel.lowered.final, [source.pack(w).reshape(-1), out])

    assert_close(
        out.reshape(layout.physical_shape), plain.pack(np.exp(w)).reshape(layout.physical_shape),
        rtol=1e-2,
    )
