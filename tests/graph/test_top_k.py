"""Top-k operations run on the cores if that takes fewer modelled cycles than the copies to the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tecomp
from tecomp import te, topi
from tecomp.graph import top_k
from tests.strategies.arrays import Array

HOST_MACHINES = ("stick128", "tensix_wh")


def compiled(
    machine: str, shape: tuple[int, int], dtype: str, k: int, axis: int, patch: pytest.MonkeyPatch,
    on_cores: bool | None,
) -> Any:
    """Compile the values and indices of the k largest elements, on the cores or on the host."""
    X = te.placeholder(shape, dtype, name="X")
    if on_cores is not None:
        cycles = -1.0 if on_cores else float("inf")
        patch.setattr(top_k, "cycles_on_cores", lambda *_: cycles)
    return tecomp.compile(topi.topk(X, k, axis=axis, dtype="int32"), [X], target=machine)


def is_on_cores(program: Any) -> bool:
    return "tecomp.topi.topk" not in str(program.report())


def expected(x: Array, k: int, axis: int) -> tuple[Array, Array]:
    """Return the k largest elements with NaN first, and the first indices of equal elements."""
    missing = np.isnan(x)
    keys = np.where(missing, 0, -x.astype("float64"))
    order = np.lexsort((keys, ~missing), axis=axis)
    chosen = np.take(order, range(k), axis)
    return np.take_along_axis(x, chosen, axis), chosen


@pytest.mark.exhaustive
@settings(max_examples=8, deadline=None)
@given(
    machine=st.sampled_from(("stick128", "tensix_wh", "neuroncore_v2", "vtcm2d")),
    dtype=st.sampled_from(("float32", "float16")),
    shape=st.tuples(st.integers(1, 70), st.integers(1, 70)),
    k=st.integers(1, 3), axis=st.sampled_from((-1, 0)), seed=st.integers(0, 99),
)
def test_ties_and_nan_are_in_the_order_of_a_stable_sort(
    machine: str, dtype: str, shape: tuple[int, int], k: int, axis: int, seed: int
) -> None:
    k = min(k, shape[axis])
    random = np.random.default_rng(seed)
    x = random.choice([-np.inf, -1, -0.5, 0, 2, 3, np.inf, np.nan], shape).astype(dtype)
    with pytest.MonkeyPatch.context() as patch:
        program = compiled(machine, shape, dtype, k, axis, patch, on_cores=True)

    found = [np.asarray(item) for item in program(x)]

    assert is_on_cores(program)
    for item, reference in zip(found, expected(x, k, axis), strict=True):
        np.testing.assert_array_equal(item, reference)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("machine", HOST_MACHINES)
@pytest.mark.parametrize(("shape", "dtype", "k"), [
    ((2048, 1024), "float32", 1), ((200, 300), "float16", 1), ((2048, 1024), "float32", 4),
    ((2048, 1024), "float16", 2), ((200, 300), "float32", 2),
])
def test_the_cores_are_chosen_if_they_take_fewer_cycles(
    machine: str, shape: tuple[int, int], dtype: str, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = compiled(machine, shape, dtype, k, -1, monkeypatch, None)
    other = compiled(machine, shape, dtype, k, -1, monkeypatch, on_cores=not is_on_cores(chosen))

    assert is_on_cores(other) != is_on_cores(chosen)
    if is_on_cores(chosen):
        assert chosen.report().cycles < other.report().cycles
    else:
        assert chosen.report().cycles < 1.5 * other.report().cycles


@pytest.mark.parametrize(("machine", "k", "is_used"), [
    ("tensix_wh", 1, True), ("tensix_wh", 16, False), ("stick128", 1, True), ("stick128", 4, False),
    ("vtcm2d", 1, False), ("neuroncore_v2", 1, False),
])
def test_few_elements_of_many_rows_are_found_on_cores(machine: str, k: int, is_used: bool) -> None:
    X = te.placeholder((2048, 1024), name="X")
    values = topi.topk(X, k, ret_type="values")

    outputs = top_k.top_k_on_cores(values.op, tecomp.Target.load(machine))

    assert (outputs != values.op.outputs) == is_used


@pytest.mark.parametrize("options", [
    {"is_ascend": True}, {"k": 0}, {"dtype": "int32", "k": 3},
])
def test_other_calls_stay_on_the_host(options: dict[str, Any]) -> None:
    dtype = "int32" if "dtype" in options else "float32"
    X = te.placeholder((4096, 1024), dtype, name="X")
    found = topi.topk(X, **{"k": 1, "ret_type": "indices", **options})

    assert top_k.top_k_on_cores(found.op, tecomp.Target.load("tensix_wh")) == found.op.outputs
