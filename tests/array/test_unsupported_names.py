"""Names that NumPy has and the standard has not."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import tecomp.array as xp


@pytest.mark.parametrize(
    ("holder", "name", "message"),
    [
        ("x", "sum", "Array has no 'sum'; write xp.sum(x)"),
        ("x", "ravel", "Array has no 'ravel'; write xp.reshape(x, (-1,))"),
        ("x", "columns", "'Array' object has no attribute 'columns'"),
        ("xp", "concatenate", "tecomp.array has no 'concatenate'; write xp.concat(arrays, axis=...)"),
        ("xp", "to_with_layout",
         "tecomp.array has no 'to_with_layout'; write x.to_device(device, layout=layout)"),
        ("x", "new_empty",
         "Array has no 'new_empty'; write xp.empty(shape, dtype=x.dtype, device=x.device, "
         "layout=layout)"),
        ("xp", "cumulativ_sum", "tecomp.array has no 'cumulativ_sum'; did you mean xp.cumulative_sum?"),
        ("xp", "quaternions", "module 'tecomp.array' has no attribute 'quaternions'"),
        ("xp", "__wrapped__", "module 'tecomp.array' has no attribute '__wrapped__'"),
    ],
)
def test_what_takes_their_place(holder: str, name: str, message: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr({"x": xp.ones(3), "xp": xp}[holder], name)
    assert str(caught.value).split("\n")[0] == message


def test_attributes_that_others_ask_for_are_not_there() -> None:
    x = xp.ones(3)
    assert not any(hasattr(x, name) for name in ("iloc", "sum", "__cuda_array_interface__", "values"))


def test_a_conversion_by_numpy_does_not_list_the_namespace() -> None:
    x = xp.ones(3)
    np.asarray(x)
    events: list[str] = []
    sys.setprofile(lambda frame, event, argument: events.append(event))
    try:
        np.asarray(x)
    finally:
        sys.setprofile(None)
    assert len(events) < 60, "NumPy probes attributes that do not exist, and each is looked up"


def test_numbers_are_formatted() -> None:
    assert f"{xp.asarray(2.5):.2f} {xp.asarray(3):d}" == "2.50 3"
    assert f"{xp.ones(2)}" == "Array([1., 1.], dtype=float64)"
