"""NumPy names that are missing in the standard."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import tecomp.array as xp
from tecomp import MissingError
from tests.messages import Diagnostic, diagnostic


@pytest.mark.parametrize(
    ("holder", "name", "expected"),
    [
        ("x", "exp", Diagnostic("unsupported-name", name="exp")),
        ("x", "outer", Diagnostic(
            "unsupported-name", name="outer", remedy="write xp.linalg.outer(a, b)")),
        ("xp", "concatenate", Diagnostic(
            "unsupported-name", name="concatenate", remedy="write xp.concat(arrays, axis=...)",
        )),
        ("xp", "to_with_layout",
         Diagnostic(
             "unsupported-name", name="to_with_layout",
             remedy="write x.to_device(device, layout=layout)",
         )),
        ("x", "to", Diagnostic(
            "unsupported-name", name="to", remedy="write x.to_device(device) or xp.astype(x, dtype)",
        )),
        ("x", "cpu", Diagnostic(
            "unsupported-name", name="cpu", remedy="write x.to_device('cpu')",
        )),
        ("x", "new_empty",
         Diagnostic(
             "unsupported-name", name="new_empty",
             remedy="write xp.empty(shape, dtype=x.dtype, device=x.device, layout=layout)",
         )),
        ("xp", "cumulativ_sum", Diagnostic(
            "unsupported-name", name="cumulativ_sum", suggestion="cumulative_sum",
        )),
    ],
)
def test_unsupported_names_suggest_replacements(holder: str, name: str, expected: Diagnostic) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr({"x": xp.ones(3), "xp": xp}[holder], name)
    assert diagnostic(caught.value) == expected


@pytest.mark.parametrize(
    ("holder", "name", "text"),
    [
        ("x", "columns", "'Array' object has no attribute 'columns'"),
        ("xp", "quaternions", "module 'tecomp.array' has no attribute 'quaternions'"),
        ("xp", "__wrapped__", "module 'tecomp.array' has no attribute '__wrapped__'"),
    ],
)
def test_unknown_names_without_a_near_match(holder: str, name: str, text: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr({"x": xp.ones(3), "xp": xp}[holder], name)
    assert not isinstance(caught.value, MissingError)
    assert str(caught.value) == text


def test_probed_protocol_attributes_are_missing() -> None:
    x = xp.ones(3)
    assert not any(hasattr(x, name) for name in ("iloc", "exp", "__cuda_array_interface__", "values"))


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
    assert f"{xp.ones(2)}" == "[1. 1.]"
