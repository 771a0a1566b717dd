"""The everyday namespace `tecomp.numpy`: names, methods, indices, errors, files."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
import tecomp.numpy as tnp
from tecomp import MissingError
from tests.array.numpy_table import DOCUMENT, document
from tests.messages import Diagnostic, diagnostic

pytestmark = pytest.mark.numbers_alone
MATRIX = np.arange(12.0).reshape(3, 4)


def both(call: Callable[[Any], Any]) -> None:
    """Check that an expression has the same result with both modules."""
    found, wanted = call(tnp), call(np)
    if isinstance(wanted, tuple | list):
        assert len(found) == len(wanted)
    else:
        found, wanted = [found], [wanted]
    for actual, expected in zip(found, wanted, strict=True):
        assert np.asarray(actual).dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(np.asarray(actual), expected, rtol=1e-12, atol=1e-300, strict=True)


def m(np: Any) -> Any:
    return np.array(MATRIX)


CALLS: list[Callable[[Any], Any]] = [
    lambda np: m(np).sum(0), lambda np: m(np).mean(axis=1), lambda np: m(np).std(ddof=1),
    lambda np: m(np).var(0), lambda np: m(np).max(1), lambda np: m(np).argmin(axis=1),
    lambda np: (m(np) > 4).sum(), lambda np: (m(np) > 4).mean(axis=0),
    lambda np: np.sum([True, False, True]), lambda np: np.mean([1, 2]), lambda np: (m(np) > 4).max(0),
    lambda np: m(np).cumsum(), lambda np: np.cumprod([1, 2, 3]), lambda np: m(np).T, lambda np: m(np)[0].T,
    lambda np: m(np).reshape(4, 3), lambda np: m(np).reshape((2, -1)), lambda np: m(np).ravel("F"),
    lambda np: m(np).reshape(2, 6, order="F"), lambda np: m(np).transpose(1, 0),
    lambda np: m(np).flatten(), lambda np: m(np).clip(2, 5), lambda np: m(np).astype(int),
    lambda np: m(np).dot([1, 0, 2, 1]), lambda np: m(np)[::-1].argsort(axis=0),
    lambda np: m(np).item(2, 1), lambda np: m(np).tolist()[1], lambda np: np.round(m(np) / 3, 1),
    lambda np: np.sqrt(16.0), lambda np: np.sqrt([1, 4]), lambda np: np.hypot(3, 4),
    lambda np: np.maximum(m(np), 5), lambda np: np.add(m(np), [1, 2, 3, 4]),
    lambda np: np.where([True, False], 1.5, [3, 4]), lambda np: np.where(m(np) > 9),
    lambda np: np.unique([3, 1, 3], return_counts=True), lambda np: np.linalg.norm(m(np), axis=0),
    lambda np: np.linalg.norm(m(np)), lambda np: np.vstack([m(np)[0], [9, 9, 9, 9]]),
    lambda np: np.hstack(([1], [2.5])), lambda np: np.column_stack([[1, 2], [3, 4]]),
    lambda np: np.array_split(np.arange(7), 3), lambda np: np.stack([m(np)[0], m(np)[1]], axis=1),
    lambda np: np.concatenate([[1, 2], [0.5]]), lambda np: np.roll(m(np), 1, 0),
    lambda np: np.tile([1, 2], (2, 2)), lambda np: np.repeat([1, 2], [2, 1]),
    lambda np: np.eye(3, k=1), lambda np: np.full((2, 2), 3), lambda np: np.arange(0, 1, 0.25),
    lambda np: np.linspace(0, 1, 5, endpoint=False), lambda np: np.zeros(3, int),
    lambda np: np.ones_like([1, 2], dtype=float), lambda np: np.r_[1:4, 9], lambda np: np.mgrid[:2, :2],
    lambda np: np.outer([1, 2], [3, 4]), lambda np: np.inner([1, 2], [3, 4]), lambda np: np.trace(m(np)),
    lambda np: np.rot90(m(np)), lambda np: np.rot90(m(np), 3), lambda np: np.fliplr(m(np)),
    lambda np: np.atleast_2d([1, 2]), lambda np: np.fft.rfft([1.0, 2, 3, 4]),
    lambda np: np.logspace(0, 2, 3), lambda np: np.degrees(np.pi), lambda np: np.angle([1j, 1 + 0j]),
    lambda np: np.average([1.0, 2, 3], weights=[1, 1, 2]), lambda np: np.ptp(m(np), axis=0),
    lambda np: np.sum(m(np), axis=0, where=m(np) > 3), lambda np: np.max([1, 2], initial=7),
    lambda np: np.select([m(np) < 3, m(np) > 8], [m(np), -m(np)], 1.0), lambda np: np.polyfit([0, 1, 2], [1, 3, 5], 1),
    lambda np: np.add.outer([1, 2], [3, 4]), lambda np: np.maximum.accumulate([1, 3, 2]),
    lambda np: np.add.reduce(m(np)), lambda np: np.cross([1, 0, 0], [0, 1, 0]),
    lambda np: np.apply_along_axis(lambda row: row.sum(), 1, m(np)), lambda np: np.vectorize(abs)([-1, 2]),
    lambda np: np.insert([1, 2], 1, 9), lambda np: np.argwhere(m(np) > 9), lambda np: np.linalg.det(np.eye(2) * 3),
    lambda np: m(np)[[0, 2]], lambda np: m(np)[[0, 2], [1, 3]], lambda np: m(np)[:, [True, False, True, False]],
    lambda np: m(np)[np.array([[0, 1], [1, 2]]), 1:3], lambda np: m(np)[[]], lambda np: m(np)[np.ix_([0, 1], [1, 2])],
    lambda np: m(np) * (m(np) > 3), lambda np: 1 - (m(np) > 3), lambda np: (m(np) > 3) + (m(np) < 1),
    lambda np: m(np)[0] + [1, 2, 3, 4], lambda np: divmod(m(np), 5), lambda np: abs(m(np) - 5),
    lambda np: list(m(np)[0] > 1), lambda np: 5.0 in m(np), lambda np: np.gradient(m(np)[0], 2),
]


@pytest.mark.exhaustive(keep=60, most=len(CALLS))
@pytest.mark.parametrize("call", CALLS, ids=range(len(CALLS)))
def test_expressions_agree_with_numpy(call: Callable[[Any], Any]) -> None:
    both(call)


def changed(np: Any, change: Callable[[Any, Any], Any]) -> Any:
    x = np.array(MATRIX)
    change(np, x)
    return x


CHANGES: list[Callable[[Any, Any], Any]] = [
    lambda np, x: x.__setitem__(0, [1, 2, 3, 4]), lambda np, x: x.__setitem__([0, 2], 7),
    lambda np, x: x.__setitem__(([0, 1], [1, 2]), [8, 9]), lambda np, x: x.__setitem__(x > 5, -1),
    lambda np, x: x.__setitem__((slice(None), [0, 3]), np.zeros((3, 2))), lambda np, x: x.fill(3),
    lambda np, x: x[::-1].sort(axis=0), lambda np, x: np.fill_diagonal(x, 5),
    lambda np, x: np.add.at(x, ([0, 0], [1, 1]), 1), lambda np, x: np.add(x, 1, out=x),
    lambda np, x: np.multiply(x, 2, out=x, where=x > 3), lambda np, x: np.copyto(x, 4.0),
]


@pytest.mark.parametrize("change", CHANGES, ids=range(len(CHANGES)))
def test_changes_in_place_agree_with_numpy(change: Callable[[Any, Any], Any]) -> None:
    both(lambda np: changed(np, change))


def test_numbers_keep_their_value_under_other_names() -> None:
    x = tnp.array([1.0, 2.0])
    total = x[0]
    before = total
    total += x[1]
    assert (float(before), float(total), float(x[0])) == (1.0, 3.0, 1.0)
    counts = {x.sum(): "sum"}
    assert counts[x.sum()] == "sum"


def test_arrays_of_numpy_are_indices_and_values() -> None:
    x = xp.asarray(MATRIX)
    np.testing.assert_array_equal(np.asarray(x[np.array([2, 0])]), MATRIX[[2, 0]])
    x[np.array([True, False, True])] = np.array([1.0, 2.0, 3.0, 4.0])
    assert x[0].tolist() == [1, 2, 3, 4]


def test_strings_stay_with_numpy() -> None:
    names = tnp.array(["b", "a", "b"])
    assert isinstance(names, np.ndarray)
    values, counts = tnp.unique(names, return_counts=True)
    assert (values.tolist(), counts.tolist()) == (["a", "b"], [1, 2])
    assert tnp.array([1.0, 2.0, 3.0])[names == "b"].tolist() == [1, 3]


ABSENT = [
    ("matrix", Diagnostic("unsupported-name", name="matrix", remedy="write np.array with two axes, and @ for products")),
    ("medain", Diagnostic("unsupported-name", name="medain", suggestion="mean")),
    ("nested_iters", Diagnostic("unsupported-name", name="nested_iters")),
]


@pytest.mark.parametrize(("name", "expected"), ABSENT)
def test_absent_names_say_what_takes_their_place(name: str, expected: Diagnostic) -> None:
    with pytest.raises(MissingError) as caught:
        getattr(tnp, name)
    assert diagnostic(caught.value) == expected


def test_names_are_resolved() -> None:
    names = dir(tnp)
    assert len(names) > 400
    assert all(hasattr(tnp, name) for name in names)
    assert {"float64", "pi", "newaxis", "sum", "linalg", "random", "median", "ndarray"} <= {*names}
    assert not hasattr(tnp, "zzz")
    assert tnp.newaxis is None
    from tecomp.numpy.linalg import norm, solve  # type: ignore[import-not-found]

    assert norm is tnp.linalg.norm
    assert solve is tnp.linalg.solve
    with pytest.raises(tnp.linalg.LinAlgError):
        tnp.linalg.inv([[1.0, 1.0], [1.0, 1.0]])


def test_the_namespace_is_not_loaded_with_arrays() -> None:
    program = "import sys, tecomp.array as xp\nxp.ones(3) + 1\nprint('tecomp.numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_files_round_trip(tmp_path: Path) -> None:
    x, y = tnp.arange(6).reshape(2, 3) * 2, tnp.array([1.5, 2.5])
    tnp.save(tmp_path / "x.npy", x)
    tnp.savez(tmp_path / "both.npz", x, second=y)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), np.asarray(x))
    assert isinstance(tnp.load(tmp_path / "x.npy"), xp.Array)
    assert tnp.load(tmp_path / "x.npy").tolist() == x.tolist()
    assert tnp.load(tmp_path / "x.npy", mmap_mode="r").tolist() == x.tolist()
    found = tnp.load(tmp_path / "both.npz")
    assert {name: value.tolist() for name, value in found.items()} == {
        "arr_0": x.tolist(), "second": [1.5, 2.5]}


def test_the_page_lists_the_names() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document()


def test_methods_replace_nothing_that_arrays_define() -> None:
    defined = [
        node.name for node in ast.walk(ast.parse(inspect.getsource(xp.Array)))
        if isinstance(node, ast.FunctionDef)
    ]
    for name in defined:
        value = vars(xp.Array)[name]
        function = value.fget if isinstance(value, property) else value
        assert function.__module__ == "tecomp.array.array_object", name


@pytest.mark.parametrize("name", ["sum", "std", "reshape", "T", "sort", "item", "nbytes", "real"])
def test_arrays_have_methods(name: str) -> None:
    assert hasattr(xp.ones((2, 2)), name)
    assert name in dir(xp.Array)
