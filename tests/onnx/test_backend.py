"""The node tests of ONNX on `Backend`: docs/onnx-node-tests.md lists exactly those that do not pass."""

from __future__ import annotations

import re
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.backend.test.loader import load_model_tests

from tecomp.errors import ModelError
from tecomp.onnx import Backend
from tests.messages import Diagnostic, diagnostic

TABLE = Path(__file__).parents[2] / "docs" / "onnx-node-tests.md"
HALF = {"float16", "bfloat16"}


@cache
def cases() -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {case.name: case for case in load_model_tests(kind="node")}


@cache
def listed() -> frozenset[str]:
    """Return the cases that the document lists."""
    section = TABLE.read_text().partition("<!-- cases -->")[2]
    return frozenset(re.findall(r"`(test_\w+)`", section))


def array_of(value: Any) -> Any:
    if isinstance(value, onnx.SequenceProto):
        return onnx.numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return onnx.numpy_helper.to_optional(value)
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def compare(got: Any, exact: Any, case: Any) -> None:
    """Compare a result; raise if it differs."""
    if exact is None or isinstance(exact, list):
        assert type(got) is type(exact)
        for a, b in zip(got or [], exact or [], strict=True):
            compare(a, b, case)
        return
    assert isinstance(exact, np.ndarray | np.generic)
    if exact.dtype.kind in "OUT":
        assert got.dtype == object
        np.testing.assert_array_equal(got, np.asarray(exact).astype(object))
        return
    assert (got.shape, str(got.dtype)) == (exact.shape, str(exact.dtype))
    # Sums of narrow types are accumulated in float32, those of the cases are not.
    loose = 2e-2 if str(got.dtype) in HALF else 0.0
    np.testing.assert_allclose(
        got.astype(float), exact.astype(float), rtol=max(case.rtol, 1e-3, loose),
        atol=max(case.atol, 1e-5, loose),
    )


def verify(name: str) -> None:
    """Run a case and compare its results; raise whatever fails."""
    case = cases()[name]
    prepared = Backend.prepare(case.model)
    for inputs, outputs in case.data_sets:
        expected = [array_of(x) for x in outputs]
        results = prepared.run([array_of(x) for x in inputs])
        for got, exact in zip(results, expected, strict=True):
            compare(got, exact, case)


def passes(name: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            verify(name)
    except Exception:
        return False
    return True


PARTS = 40
"""Number of tests of about 47 cases each. Listing the cases takes ONNX 20 seconds."""


@pytest.mark.exhaustive(most=6)
@pytest.mark.parametrize("part", range(PARTS))
def test_exactly_the_listed_cases_fail(part: int) -> None:
    names = sorted(cases())[part::PARTS]

    assert [name for name in names if not passes(name)] == [
        name for name in names if name in listed()]


@pytest.mark.exhaustive
def test_listed_cases_exist() -> None:
    assert listed() <= {*cases()}


def graph_of(nodes: list[Any], inputs: dict[str, tuple[int, list[int]]], shape: list[Any]) -> onnx.ModelProto:
    helper = onnx.helper
    values = [helper.make_tensor_value_info(n, kind, extents) for n, (kind, extents) in inputs.items()]
    result = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, shape)
    return helper.make_model(
        helper.make_graph(nodes, "graph", values, [result]),
        opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def test_inputs_that_decide_shapes_may_differ_per_run() -> None:
    prepared = Backend.prepare(graph_of(
        [onnx.helper.make_node("Reshape", ["x", "shape"], ["y"])],
        {"x": (onnx.TensorProto.FLOAT, [2, 6]), "shape": (onnx.TensorProto.INT64, [2])}, ["a", "b"]))
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    for shape in ([3, 4], [4, 3], [3, 4]):
        (y,) = prepared.run([x, np.array(shape)])
        np.testing.assert_array_equal(y, x.reshape(shape))
    assert len(prepared.model.programs) <= 1  # the shapes are symbolic


def test_nodes_that_no_input_makes_supported_are_refused() -> None:
    model = graph_of(
        [onnx.helper.make_node("SVMRegressor", ["x"], ["y"], name="noise", domain="ai.onnx.ml")],
        {"x": (onnx.TensorProto.FLOAT, [3, 1])}, [3, 1])
    model.opset_import.append(onnx.helper.make_opsetid("ai.onnx.ml", 3))
    with pytest.raises(ModelError) as error:
        Backend.prepare(model)
    assert diagnostic(error.value) == Diagnostic(
        "unsupported-node", count=1, problems=str(error.value.parameters["problems"]))
    assert "noise" in str(error.value.parameters["problems"])
