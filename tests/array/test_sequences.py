"""`asarray` returns an array or raises an error in finite time for any object with elements."""

from __future__ import annotations

import faulthandler
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.errors import ArrayMemoryError, ArrayTypeError, ArrayValueError, TecompError
from tests.messages import Diagnostic, diagnostic

HUGE = 10**13


@pytest.fixture(autouse=True)
def _in_time() -> Iterator[None]:
    faulthandler.dump_traceback_later(60, exit=True)  # NumPy does not process signals meanwhile
    yield
    faulthandler.cancel_dump_traceback_later()


class Offer:
    """Object with one attribute that `asarray` may read elements from."""

    def __init__(self, name: str, value: Any) -> None:
        self.name, self.value = name, value

    def __getattr__(self, name: str) -> Any:
        if name != self.name:
            raise AttributeError(name)
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


class Sequence:
    """Sequence with one repeated element; the sequence itself if `element` is None."""

    def __init__(self, length: int, element: Any) -> None:
        self.length, self.element = length, element

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, _: int) -> Any:
        return self if self.element is None else self.element


def raised(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("of its own")


def inside(depth: int, width: int) -> Any:
    results: Any = 1.0
    for _ in range(depth):
        results = [results] * width
    return results


def held_by_itself() -> list[Any]:
    results: list[Any] = []
    results += [results, results]
    return results


@pytest.mark.parametrize(("argument", "extents"), [
    (held_by_itself(), "(2, 2, 2, 2, ...)"), (inside(40, 2), "(2, 2, 2, 2, ...)"),
    (inside(70, 1), "(1, 1, 1, 1, ...)"), (Sequence(2, None), "(2, 2, 2, 2, ...)"),
    (Sequence(10**18, 1.0), "(1000000000000000000)"), ([[range(10**6)] * 10**4], "(1, 10000, 1000000)"),
], ids=["itself", "in each other", "deep", "of itself", "long", "of many places"])
def test_sequences_without_end(argument: Any, extents: str) -> None:
    with pytest.raises(ArrayValueError) as caught:
        xp.asarray(argument)

    assert diagnostic(caught.value) == Diagnostic(
        "array-value", where="asarray", extents=extents, most_axes=64, most_numbers=2**32)


def test_the_same_row_in_many_places_is_no_mistake() -> None:
    row = [1.0, 2.0]

    np.testing.assert_array_equal(np.asarray(xp.asarray([[row] * 3] * 5)), [[row] * 3] * 5)
    assert xp.asarray(inside(64, 1)).shape == (1,) * 64


@pytest.mark.parametrize(("offer", "subject", "reason"), [
    (Offer("__array__", raised), "NumPy", "of its own"),
    (Offer("__array_interface__", ZeroDivisionError("of its own")), "__array_interface__",
     "of its own"),
    (Offer("__dlpack__", raised), "DLPack", "of its own"),
    (Offer("__array__", lambda *_, **__: 5), "NumPy",
     "object __array__ method not producing an array"),
    *[(Offer("__array_interface__", {"version": 3, **item}), "NumPy", None) for item in (
        {}, {"shape": (-1,), "typestr": "<f8", "data": (0, False)},
        {"shape": (3,), "typestr": "<f8"}, {"shape": (2,), "typestr": "zz", "data": (0, False)},
        {"shape": (2,), "typestr": "|O", "data": (0, False)})],
])
def test_offers_that_cannot_be_read(offer: Offer, subject: str, reason: str | None) -> None:
    """A reason of None stands for a message of NumPy."""
    with pytest.raises(ArrayValueError) as caught:
        xp.asarray(offer)

    found = diagnostic(caught.value)
    assert found == Diagnostic(
        "array-value", where="asarray", subject=subject, type="Offer",
        reason=reason or found.parameters["reason"],
    )


@pytest.mark.parametrize("argument", [
    {1, 2}, {1: 2}, (k for k in range(3)), map(int, "12"), object(), None, [None, 1], ["a"], len,
    [10**400], np.zeros(2, [("a", "f8")]), np.array(["2020-01-01"], "M8[D]"), Sequence(-1, 1.0),
    np.array([1, 2], object), memoryview(np.zeros(2, [("a", "f8")]).data), int,
], ids=lambda argument: type(argument).__name__)
def test_sequences_without_numbers_are_rejected(argument: Any) -> None:
    with pytest.raises(ArrayTypeError):
        xp.asarray(argument)


def test_random_nested_sequences() -> None:
    """Lists that contain each other or themselves give NumPy's array or an error."""
    for seed in range(1500):
        draw = random.Random(seed)
        pool: list[list[Any]] = [[] for _ in range(draw.randint(1, 6))]
        count = draw.choice([1, 2, 2, 2, 3])
        more = [(1, 2), (pool[0], 1), range(3), np.ones(2), xp.ones(2), 1.0, 2]
        for one in pool:
            length = draw.choice([count, count, count, 1])
            one += [draw.choice(pool if draw.random() < 0.5 else more) for _ in range(length)]
        try:
            result = xp.asarray(pool[0])
        except TecompError:
            continue
        np.testing.assert_array_equal(np.asarray(result), np.asarray(pool[0]))


def taken(dtype: str, count: int, *shape: int) -> Diagnostic:
    return Diagnostic("out-of-memory", shape=shape or (count,), dtype=dtype, bytes=count * (
        np.dtype(dtype).itemsize))


@pytest.mark.parametrize(("call", "expected"), [
    (lambda: xp.arange(HUGE), taken("int64", HUGE)),
    (lambda: xp.tile(xp.ones(1000), (HUGE // 1000,)) + 1, taken("float64", HUGE)),
    (lambda: xp.broadcast_to(xp.ones(1), (HUGE,)) + 1, taken("float64", HUGE)),
    (lambda: xp.fft.fftfreq(HUGE), taken("float64", HUGE)),
    (lambda: xp.sort(xp.broadcast_to(xp.ones(1), (HUGE,))), Diagnostic(
        "out-of-memory", where="sort", library="numpy.sort",
        operands=f"ptensor<{HUGE}xfloat64, device='cpu'>",
    )),
    (lambda: xp.nonzero(xp.broadcast_to(xp.ones(1), (HUGE,))), taken("bool", HUGE)),
    (lambda: xp.ones((10**7, 1)) @ xp.ones((1, 10**7)), taken("float64", 10**14, 10**7, 10**7)),
    (lambda: xp.repeat(xp.asarray([True, False]), HUGE), taken("bool", 2 * HUGE)),
    (lambda: xp.asarray(Offer("__array_interface__", {
        "version": 3, "shape": (HUGE,), "typestr": "<f8", "data": (1, False)})),
     taken("float64", HUGE)),
], ids=range(9))
def test_elements_that_no_memory_is_for(call: Callable[[], Any], expected: Diagnostic) -> None:
    with pytest.raises(ArrayMemoryError) as caught:
        xp.eval(call())

    found = diagnostic(caught.value)
    of_numpy = {name: text for name, text in found.parameters.items() if name == "reason"}
    assert found == Diagnostic(expected.kind, **expected.parameters, **of_numpy)
