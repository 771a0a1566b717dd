"""`explain` describes the kernels of an array at each stage."""

from __future__ import annotations

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.array.functions import explain
from tecomp.array.kernels import kernel
from tecomp.array.statistics import counters
from tecomp.ptensor.parse import parse
from tests.array.arrays import array


def test_every_step_is_shown_and_nothing_runs() -> None:
    x = array(np.ones((3, 4), "float32"))
    before = counters.called
    explanation = explain(x * x + 1)
    assert counters.called == before
    assert parse(str(explanation.function)) == explanation.function
    text = str(explanation)
    for part in (
        "%0 = ptensor.elementwise_binary_op{'multiply'}(%x0, %x0): "
        "(ptensor<3x4xfloat32>, ptensor<3x4xfloat32>) -> ptensor<3x4xfloat32>",
        "linalg.multiply(%x0[0], %x0[0])",
        "s = te.create_schedule(y.op)",
        "schedule of kernel 0",
        "array on cpu:",
    ):
        assert part in text


def test_explain_reports_the_cost_of_symbolic_reductions() -> None:
    x = array(np.ones((30, 4), "float32"))
    explanation = explain(xp.sum(x * x, axis=0))
    assert explanation.report.startswith("array on cpu: ")
    assert "memory " in explanation.report


@pytest.mark.parametrize("rows", [slice(None), slice(None, None, 2), slice(None, None, -1)])
def test_explain_reports_the_cost_of_views(rows: slice) -> None:
    x = array(np.ones((9, 10)))[rows, 2:9]
    reports = [explain(result).report for result in (x * 2 + x, xp.sum(x * x, axis=1), x[1:] - x[:-1])]
    for report in reports:
        assert report.startswith("array on cpu: "), report


def test_kernels_with_constant_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "specialization_threshold", lambda kernels, points: 3)
    x = array(np.ones((6000, 3)))
    before = counters.compiled
    for _ in range(5):
        xp.eval(xp.sum(x * x + x, axis=1))
    assert counters.compiled == before + 2
    assert explain(xp.sum(x * x + x, axis=1)).report.startswith("array on cpu: ")


def test_explain_of_evaluated_arrays_is_empty() -> None:
    assert explain(array(np.ones(3))).report == "nothing to compute"


def test_calls_of_libraries_are_shown() -> None:
    """Library calls run when they are recorded, so results show the call but need no kernel."""
    explanation = explain(xp.sort(array(np.ones(3))))

    assert str(explanation.function) == """\
func @array(%x0: ptensor<3xfloat64>) -> ptensor<3xfloat64> {
  %called0 = ptensor.sort(%x0, axis=0, descending=False, stable=True): (ptensor<3xfloat64>) -> ptensor<3xfloat64>
  return %called0
}"""
    assert str(explanation.lowered) == """\
func @array(%x0: tuple<tensor<3xfloat64>, str, int64, int64>) {
  %rtensor = library_call{'numpy.sort'}(%x0[0], axis=0, descending=False, stable=True): (tensor<3xfloat64>) -> tensor<3xfloat64>
  %called0 = %rtensor, None, None, None
  return %called0
}"""
    assert explanation.report == "nothing to compute"


def test_operations_on_results_of_libraries_are_shown_behind_the_call() -> None:
    x = array(np.arange(9.0).reshape(3, 3))
    values = xp.linalg.svd(x).S
    explanation = explain(values * 2.0, xp.argsort(x, axis=1), values)

    assert [item.op.name for item in explanation.function.body] == [
        "matrices", "argsort", "elementwise_binary_op",
    ]
    assert parse(str(explanation.function)) == explanation.function
    assert str(explanation.lowered).count("library_call") == 2
    assert len(explanation.loops) == 1


def test_results_of_unknown_extent_are_parameters_of_readers() -> None:
    found = xp.unique_values(array(np.array([3.0, 1.0, 3.0])))

    assert "ptensor.unique_values" in str(explain(found).function)
    assert "unique" not in str(explain(found + 1.0).function)
