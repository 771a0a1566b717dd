"""Arrays as Python values: copies, pickles, scalars, threads, and state after an error."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier, Event
from typing import Any

import numpy as np
import pytest

import tecomp
import tecomp.array as xp
from tecomp.array import Array
from tecomp.array.indexing import write_through
from tecomp.array.kernels import execution_plan
from tecomp.array.statistics import counters
from tecomp.errors import ArrayTypeError, ArrayValueError
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close


def computed() -> Array:
    x = xp.ones((2, 3)) + 1
    xp.eval(x)
    return x


def arrays() -> dict[str, Callable[[], Array]]:
    return {
        "computed": computed,
        "recorded": lambda: xp.arange(6.0) * 2 + 1,
        "a slice": lambda: xp.asarray(np.arange(6.0), copy=True)[1::2],
        "read-only": lambda: xp.asarray(np.broadcast_to(np.arange(3), (2, 3))),
        "on a device": lambda: xp.asarray([1.0, 2.0], dtype=xp.float32, device="stick128"),
        "complex": lambda: xp.asarray([1j, 2]),
        "empty": lambda: xp.ones((0, 3), dtype=xp.int8),
    }


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))],
                         ids=["copy", "deepcopy", "pickle"])
@pytest.mark.parametrize("name", arrays())
def test_copies_are_other_arrays(name: str, way: Callable[[Array], Array]) -> None:
    x = arrays()[name]()
    expected = np.array(x)

    y = way(x)

    assert (y.dtype, y.shape, y.device) == (x.dtype, x.shape, x.device)
    np.testing.assert_array_equal(np.asarray(y), expected)
    y += 1
    np.testing.assert_array_equal(np.asarray(x), expected)
    np.testing.assert_array_equal(np.asarray(y), expected + 1)


def test_pickles_of_slices_hold_no_more_than_the_slice() -> None:
    x = xp.asarray(np.zeros(100_000), copy=True)

    assert len(pickle.dumps(x[:3])) < 2000


def test_arrays_have_no_hash() -> None:
    with pytest.raises(TypeError):
        hash(xp.ones(2))


@pytest.mark.parametrize("make", [int, float])
def test_real_and_imag_of_complex_arrays(make: type) -> None:
    with pytest.raises(ArrayTypeError) as caught:
        make(xp.asarray(1 + 2j))

    assert diagnostic(caught.value) == (
        Diagnostic("array-type", function=make.__name__, dtype="complex128")
    )


# Warnings are errors in all tests.
@pytest.mark.parametrize("call", [
    lambda: xp.asarray([1e300], dtype=xp.float32),
    lambda: xp.linalg.det(xp.asarray([[1e300, 0.0], [0.0, 1e300]])),
    lambda: xp.linalg.matrix_power(xp.asarray([[1e200, 0.0], [0.0, 1e200]]), 3),
    lambda: xp.fft.fft(xp.asarray([np.inf + 0j, 1.0])),
    lambda: xp.linalg.vector_norm(xp.asarray([1e300, 1e300])),
    lambda: xp.linalg.pinv(xp.zeros((2, 2))),
    lambda: xp.log(xp.asarray([-1.0, 0.0])),
    lambda: xp.astype(xp.asarray([np.nan, np.inf, 1e30]), xp.int8),
    lambda: xp.mean(xp.ones((0, 3)), axis=0),
    lambda: xp.var(xp.ones(1), correction=1),
    lambda: xp.cumulative_sum(xp.asarray([np.inf, -np.inf])),
], ids=lambda call: "-".join(call.__code__.co_names[1:3]))
def test_special_values_are_no_reason_to_warn(call: Callable[[], Array]) -> None:
    x = call()

    assert repr(x)


@pytest.mark.parametrize(("numbers", "dtype", "argument"), [
    ([1j], "float32", "complex128"),
    ([float("nan")], "int32", "float64"),
])
def test_out_of_range_numbers(numbers: list[Any], dtype: str, argument: str) -> None:
    with pytest.raises(ArrayValueError) as caught:
        xp.asarray(numbers, dtype=getattr(xp, dtype))

    found = diagnostic(caught.value)
    of_python = found.parameters["reason"]
    assert found == Diagnostic(
        "array-value", where="asarray", dtype=argument, expected_dtype=dtype, reason=of_python)


@pytest.fixture
def often() -> Iterator[None]:
    """Make the interpreter switch threads as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.exhaustive
@pytest.mark.usefixtures("often")
def test_threads_evaluate_one_array_concurrently() -> None:
    data = np.arange(40.0).reshape(2, 20)
    for _ in range(150):
        one = xp.asarray(data) * 2
        two = one * one
        start = Barrier(3)

        def work(start: Barrier = start, one: Array = one, two: Array = two) -> list[Any]:
            start.wait()
            return [np.asarray(x) for x in (
                two[1:, ::2] - 1, xp.sum(two + one, axis=0), xp.sort(two, axis=1, descending=True))]

        with ThreadPoolExecutor(3) as pool:
            results = [future.result() for future in [pool.submit(work) for _ in range(3)]]

        expected = (2 * data) ** 2
        for part, total, ordered in results:
            np.testing.assert_array_equal(part, expected[1:, ::2] - 1)
            np.testing.assert_array_equal(total, (expected + 2 * data).sum(0))
            np.testing.assert_array_equal(ordered, expected[:, ::-1])


@pytest.mark.usefixtures("often")
def test_threads_write_to_rows_of_one_array() -> None:
    x = xp.zeros((8, 50))

    def work(row: int) -> None:
        for k in range(20):
            x[row] = float(k)
            x[row, 3:] = float(k + row)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(8)))

    np.testing.assert_array_equal(np.asarray(x)[:, 0], np.full(8, 19.0))
    np.testing.assert_array_equal(np.asarray(x)[:, 3:], 19 + np.arange(8.0)[:, None] + np.zeros(47))


@pytest.mark.usefixtures("often")
def test_threads_that_share_arrays() -> None:
    rng = np.random.default_rng(0)
    data = rng.standard_normal((8, 40))
    shared = [xp.asarray(row) * 2 for row in data]  # pending, and requested by all threads

    def work(seed: int) -> list[float]:
        found = []
        for k in range(30):
            one, two = shared[(seed + k) % 8], shared[(seed * 3 + k) % 8]
            total = xp.sum(one * two + seed)
            part = one[:5] + two[5:10]
            part[0] = float(seed)
            found += [float(total), float(xp.sum(part))]
        return found

    def wanted(seed: int) -> list[float]:
        found = []
        for k in range(30):
            one, two = 2 * data[(seed + k) % 8], 2 * data[(seed * 3 + k) % 8]
            part = one[:5] + two[5:10]
            part[0] = seed
            found += [np.sum(one * two + seed), np.sum(part)]
        return found

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, range(12)))

    for seed, result in enumerate(results):
        assert_close(result, wanted(seed), rtol=1e-12)


def test_one_thread_compiles_while_other_threads_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    x = xp.asarray(np.arange(5.0))
    float(xp.sum(x * 3 - 1))  # compiled in advance
    compiles, go_on = Event(), Event()
    build = tecomp.build

    def slow(*args: Any, **options: Any) -> Any:
        compiles.set()
        assert go_on.wait(10)
        return build(*args, **options)

    with monkeypatch.context() as patch, ThreadPoolExecutor(1) as pool:
        patch.setattr(tecomp, "build", slow)
        new = pool.submit(lambda: float(xp.sum(x / 7 - xp.sqrt(x) * 11)))
        try:
            assert compiles.wait(60)
            total = float(xp.sum(x * 3 - 1))
            part = x[1:]
            y = xp.asarray(x, copy=True)
            y[2:] = 1.0
            found = total, float(y[1]), float(y[2]), float(part[0])
        finally:
            go_on.set()

    assert found == (25, 1, 1, 1)
    assert_close(new.result(), np.sum(np.arange(5) / 7 - np.arange(5) ** 0.5 * 11))


def test_elements_are_not_read_during_writes() -> None:
    x = xp.zeros(4)
    reported = []

    def change(_: Any) -> None:  # stands for code that runs while memory is released
        with pytest.raises(ArrayValueError) as caught:
            float(x[0])
        reported.append(diagnostic(caught.value))

    write_through(x, change)

    assert reported == [
        Diagnostic("array-value")
    ]
    assert float(x[0]) == 0


def test_views_share_memory_after_their_base_is_deleted() -> None:
    x = xp.zeros(6)
    one, other = x[:4], x[2:]
    row = one[1:]
    del x

    one[3] = 1.0
    other[0] = 2.0

    np.testing.assert_array_equal(np.asarray(other), [2, 1, 0, 0])
    np.testing.assert_array_equal(np.asarray(one), [0, 0, 2, 1])
    np.testing.assert_array_equal(np.asarray(row), [0, 2, 1])


def test_an_array_without_axes_shares_too() -> None:
    x = xp.asarray([1.0, 2.0], copy=True)
    first, repeated = x[0, ...], x[1, ...][...]

    x += 1
    first[...] = 7.0

    assert (float(x[0]), float(first), float(repeated)) == (7.0, 7.0, 3.0)


@contextmanager
def interrupted(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> Iterator[None]:
    def stop(work: Any) -> None:
        raise error
    with monkeypatch.context() as patch:
        patch.setattr(execution_plan, "run", stop)
        try:
            yield
        except type(error):
            return
    pytest.fail("nothing was computed")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError()], ids=["stopped", "memory"])
def test_errors_during_evaluation_preserve_arrays(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = xp.arange(4.0) + 1
    y = x * 2
    part = x[1:3]

    with interrupted(monkeypatch, error):
        xp.eval(y)
    with interrupted(monkeypatch, error):
        y[xp.asarray([0, 1])] = xp.sum(x)
    with interrupted(monkeypatch, error):
        part[xp.asarray([0])] = xp.asarray([3.0]) * 2

    np.testing.assert_array_equal(np.asarray(y), [2, 4, 6, 8])
    np.testing.assert_array_equal(np.asarray(part), [2, 3])
    np.testing.assert_array_equal(np.asarray(x), [1, 2, 3, 4])


def _transposed() -> Any:
    return xp.reshape(xp.arange(12.0), (3, 4)).T * 1


@pytest.mark.parametrize("ask", [lambda x: None, xp.eval, repr, np.asarray], ids=[
    "nothing", "eval", "repr", "asarray"])
@pytest.mark.parametrize("make", [
    lambda: xp.reshape(xp.arange(12.0), (4, 3)), _transposed,
    lambda: xp.asarray(np.arange(12.0).reshape(3, 4).T),
    lambda: xp.asarray(np.arange(12.0).reshape(3, 4).T, copy=False),
    lambda: xp.reshape(xp.arange(12.0), (3, 4)).T,
], ids=["pending", "transposed sum", "foreign", "borrowed", "view"])
def test_reshape_of_computed_arrays_is_a_view(
    make: Callable[[], Any], ask: Callable[[Any], object]
) -> None:
    x = make()
    ask(x)
    y = xp.reshape(x, (12,))
    ask(y)
    y[0] = 99
    assert float(x[0, 0]) == 99
    x[1, 0] = 55
    assert float(y[3]) == 55
    z = xp.reshape(x, (3, 4), copy=False)
    z += 1
    assert (float(x[0, 0]), float(y[3])) == (100, 56)
    copied = xp.reshape(x, (12,), copy=True)
    copied[0] = 0
    assert float(x[0, 0]) == 100


@pytest.mark.parametrize("view", [
    lambda x: x.T, lambda x: x.mT, lambda x: xp.permute_dims(x, (1, 0)), xp.matrix_transpose,
    lambda x: xp.moveaxis(x, 0, 1),
], ids=["T", "mT", "permute_dims", "matrix_transpose", "moveaxis"])
def test_reshaped_arrays_are_views_after_a_write_through_a_transposed_one(
    view: Callable[[Any], Any]
) -> None:
    x = xp.reshape(xp.arange(12.0), (3, 4))
    view(x)[1, 2] = 5
    xp.reshape(x, (-1,))[0] = 77
    assert (float(x[2, 1]), float(x[0, 0])) == (5, 77)


@pytest.mark.parametrize("number", [np.int32(1), np.uint8(1), np.array(1), True.__index__()])
def test_all_integers_select_views(number: Any) -> None:
    x = xp.zeros((3, 4))
    x[number][0] = 1
    x[number:][0, 1] = 2
    x[:, number][0] = 3
    np.testing.assert_array_equal(np.asarray(x), [[0, 3, 0, 0], [1, 2, 0, 0], [0, 0, 0, 0]])


def test_a_view_keeps_its_index() -> None:
    x, at = xp.arange(6.0), xp.asarray(1)
    part = x[at:]
    at += 2
    x[1] = 7
    assert part.shape == (5,)
    assert float(part[0]) == 7


def _calls(function: Callable[[int], object], count: int) -> int:
    """Count the function calls that a function of a number makes."""
    result = 0

    def note(frame: Any, event: str, _: Any) -> None:
        nonlocal result
        result += event == "call"

    sys.setprofile(note)
    try:
        function(count)
    finally:
        sys.setprofile(None)
    return result


def _rest_of_rest(count: int) -> None:
    rest = xp.zeros(5000)
    for _ in range(count):
        rest = rest[4:]


def _all_alive(count: int) -> None:
    views = [xp.zeros(20)]
    for _ in range(count):
        views.append(views[-1][:])
    views[-1][0] = 1
    assert float(views[0][0]) == 1


def _written_views(count: int) -> None:
    x = xp.zeros(5000)
    rest = x
    for _ in range(count):
        rest = rest[4:]
        rest[0] = 1
    assert float(x[4 * count]) == 1


def _reshaped_views(count: int) -> None:
    x = rest = xp.zeros((2, 60))
    for k in range(count):
        rest = xp.reshape(rest, (60, 2) if k % 2 == 0 else (2, 60))
    rest[0, 0] = 1
    assert float(x[0, 0]) == 1


@pytest.mark.parametrize(
    "function", [_rest_of_rest, _all_alive, _written_views, _reshaped_views])
def test_views_of_views_take_linear_time(function: Callable[[int], object]) -> None:
    _calls(function, 400)
    one, two = _calls(function, 200), _calls(function, 400)
    assert two < 2.2 * one


def test_a_write_to_a_view_copies_nothing() -> None:
    x = xp.zeros((100, 50))
    part = x.T[10:, 1:]
    part[0, 0] = 0  # an array from `zeros` is one broadcast number before
    before = counters.libraries["numpy.copy"]
    for k in range(5):
        part[0, k] = 1
        part[part > 5] = 2
        part += 1
    assert counters.libraries["numpy.copy"] == before
    assert float(x[1, 10]) == 6
