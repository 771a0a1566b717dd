"""Array functions return a result or raise an error with a remedy for random arguments."""

from __future__ import annotations

import inspect
import operator
import random
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest

import tecomp
import tecomp.array as xp
from tecomp.array import Array
from tecomp.errors import ArrayValueError, TecompError, safe_repr
from tests.messages import Diagnostic, diagnostic
from tests.strategies.bad_arguments import HUGE, UNPRINTABLE

SECONDS = 4
"""Seconds after which no more calls are drawn; a loaded machine makes fewer calls."""

ARRAYS: list[Callable[[], Array]] = [
    lambda: xp.asarray([[1.0, 2.0], [3.0, 4.0]]), lambda: xp.asarray([1.0, 2.0, 3.0]),
    lambda: xp.asarray([[1, 2], [3, 4]]), lambda: xp.asarray([0, 1, 9]), lambda: xp.asarray(2.0),
    lambda: xp.asarray([True, False]), lambda: xp.asarray([[1j, 2], [3, 4]]),
    lambda: xp.zeros((0, 3)), lambda: xp.asarray([1, 2], dtype="uint8"),
    lambda: xp.asarray([1, 2], dtype="float16"), lambda: xp.asarray([1, 2], dtype="bfloat16"),
    lambda: xp.asarray(np.broadcast_to(np.arange(3), (2, 3))), lambda: xp.ones((2, 3, 4)),
]


class Other:
    """Object of an unknown class."""


_ITSELF: list[Any] = []
_ITSELF.append(_ITSELF)

_VALUES: list[Any] = [
    None, 0, -1, 2, 2**70, 10**13, 1.5, float("nan"), float("inf"), 1j, True, "abc", "float32", (),
    (0, 1), (-1, -5), (0, 0), (2**40, 2**40), [1, 2], ["a"], {}, Other(), int, np.int64(1),
    xp.float32, slice(1, 2), ..., [[1, 2], [3]], np.ones(2), np.ones((2, 2)), ARRAYS[0](), _ITSELF,
    *UNPRINTABLE,
]


def functions() -> Iterator[tuple[str, Any]]:
    for module, prefix in ((strict, ""), (strict.linalg, "linalg."), (strict.fft, "fft.")):
        for name in module.__all__:
            if inspect.isfunction(getattr(module, name)) and "strict_flags" not in name:
                yield prefix + name, operator.attrgetter(prefix + name)(xp)


NAMED = dict(functions())


def drawn(draw: random.Random, likely: float) -> Any:
    return draw.choice(ARRAYS)() if draw.random() < likely else draw.choice(_VALUES)


def arguments(draw: random.Random, function: Any) -> tuple[list[Any], dict[str, Any]]:
    args: list[Any] = []
    options: dict[str, Any] = {}
    for k, each in enumerate(inspect.signature(function).parameters.values()):
        if each.name in ("team", "placements"):
            continue
        if each.kind == each.VAR_POSITIONAL:
            args += [drawn(draw, 0.6) for _ in range(draw.randrange(3))]
        elif each.kind == each.KEYWORD_ONLY:
            if draw.random() < 0.4:
                options[each.name] = draw.choice(_VALUES)
        elif each.default is each.empty or draw.random() < 0.6:
            args.append(drawn(draw, 0.3 if k else 0.8))
        else:
            break
    return args, options


def computed(result: Any) -> None:
    if isinstance(result, Array):
        assert np.asarray(result).shape == result.shape
    elif isinstance(result, list | tuple):
        for item in result:
            computed(item)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(2))
def test_drawn_arguments(seed: int) -> None:
    draw, end, wrong = random.Random(seed), time.monotonic() + SECONDS, []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2000):
            name = draw.choice(list(NAMED))
            args, options = arguments(draw, NAMED[name])
            try:
                computed(NAMED[name](*args, **options))
            except TecompError:
                pass
            except Exception as error:
                wrong.append(f"{name}{safe_repr(args)} {safe_repr(options)}: {type(error).__name__}: {error}")
            if time.monotonic() > end:
                break
    assert wrong == []


@pytest.mark.parametrize(("call", "where", "subject"), [
    (lambda: xp.full(2, HUGE, dtype="float64"), "full", "the value"),
    (lambda: xp.arange(0.5, HUGE), "arange", "a number"),
    (lambda: xp.var(xp.ones(3), correction=HUGE), "var", "correction"),
    (lambda: xp.linalg.pinv(xp.ones((2, 2)), rtol=HUGE), "pinv", "rtol"),
    (lambda: xp.linalg.vector_norm(xp.ones(2), ord=HUGE), "vector_norm", "ord"),
])
def test_integers_beyond_float64(call: Callable[[], object], where: str, subject: str) -> None:
    with pytest.raises(ArrayValueError) as error:
        call()

    assert diagnostic(error.value) == Diagnostic(
        "array-value", where=where, subject=subject, value="<int of 16,610 bits>"
    )


def test_a_device_is_none_of_arrays() -> None:
    with pytest.raises(ArrayValueError) as error:
        xp.zeros(2, device=np.ones(3))
    assert diagnostic(error.value) == Diagnostic(
        "unknown-choice", where="zeros", device="[1. 1. 1.]",
        known=", ".join(tecomp.list_targets()),
    )


def test_integers_beyond_64_bits_with_narrow_floats() -> None:
    x = xp.asarray([1, -2], dtype="bfloat16")

    for number in (2**62, 2**63, 2**70, -(2**64)):
        np.testing.assert_array_equal(np.asarray(x * number).astype(float), [number, -2.0 * number])


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("device", ["stick128", "tensix_wh"])
@pytest.mark.parametrize("shape", [(), (2,), (70, 100)])
def test_results_that_read_nothing(device: str, shape: tuple[int, ...]) -> None:
    x = xp.ones(shape, dtype="float32", device=device)

    np.testing.assert_array_equal(np.asarray(xp.imag(x)), np.zeros(shape))
    np.testing.assert_array_equal(np.asarray(xp.imag(x) * 2 + x), np.ones(shape))
