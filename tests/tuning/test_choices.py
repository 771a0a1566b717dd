"""Knobs of schedules, and that every value of every knob of the library computes the same."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import Choices, ScheduleError, knob, te, topi
from tecomp.schedules import auto
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close

Array = np.ndarray[Any, Any]


def test_a_knob_returns_its_first_value_outside_of_choices() -> None:
    assert knob("tile", [8, 16]) == 8
    assert not Choices.is_active()


def test_choices_decide_and_record_the_knobs_of_a_function() -> None:
    choices = Choices({"tile": 16, "unroll": 1, "unknown": 3})

    def schedule() -> tuple[object, ...]:
        tile = knob("tile", [8, 16, 32])
        return tile, knob("unroll", [False, True]), knob("single", [4]), knob("wide" * (tile > 8), [1, 2])

    # `1` is no value of a knob of booleans, and a knob with one value is none.
    assert choices.run(schedule) == (16, False, 4, 1)
    assert {name: one.values for name, one in choices.knobs.items()} == {
        "tile": (8, 16, 32), "unroll": (False, True), "wide": (1, 2)}
    assert choices.changed == {"tile": 16}
    assert str(choices) == "tile = 16 of 8 | 16 | 32\nunroll = False of False | True\nwide = 1 of 1 | 2"


def test_knobs_of_a_part_that_fails_are_forgotten() -> None:
    choices = Choices()

    def schedule() -> None:
        with choices.within("3"):
            knob("first", [1, 2])
            try:
                with choices.attempt():
                    knob("second", [1, 2])
                    raise ScheduleError("no {name}", kind="pattern-mismatch", name="loops")
            except ScheduleError:
                knob("third", [1, 2])

    choices.run(schedule)

    assert [*choices.knobs] == ["3.first", "3.third"]


@pytest.mark.parametrize(("name", "values"), [(3, [1]), ("tile", []), ("tile", 8), ("tile", [[8]])])
def test_a_knob_rejects_other_values(name: Any, values: Any) -> None:
    with pytest.raises(ScheduleError) as error:
        knob(name, values)

    assert diagnostic(error.value) == Diagnostic("invalid-type", name=name, values=values)


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def conv(x: Array, w: Array) -> Array:
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    return np.asarray(np.einsum("nchwrs,kcrs->nkhw", windows, w))


def layer_norm(x: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    return np.asarray(centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-3))


def normalized(x: te.Tensor) -> te.Tensor:
    mean = topi.sum(x, axis=1, keepdims=True) * (1 / int(x.shape[1]))
    centred = topi.subtract(x, mean)
    variance = topi.sum(topi.multiply(centred, centred), axis=1, keepdims=True) * (1 / int(x.shape[1]))
    result: te.Tensor = topi.divide(centred, topi.sqrt(topi.add(variance, te.const(1e-3, "float32"))))
    return result


PROGRAMS: dict[str, tuple[tuple[tuple[int, ...], ...], Callable[..., Any], Callable[..., Array]]] = {
    "matmul": (((37, 50), (50, 70)), topi.matmul, np.matmul),
    "dense": (((3, 96), (40, 96)), topi.nn.dense, lambda x, w: x @ w.T),
    "conv": (((1, 5, 9, 11), (6, 5, 3, 3)), lambda x, w: topi.nn.conv2d(x, w, 1, 1, 1), conv),
    "softmax": (((20, 70),), topi.nn.softmax, softmax),
    "layer_norm": (((30, 33),), normalized, layer_norm),
    "row_sum": (((9, 300),), lambda x: topi.sum(x, axis=1), lambda x: x.sum(1)),
    "column_max": (((50, 33),), lambda x: topi.max(x, axis=0), lambda x: x.max(0)),
    "argmax": (((21, 60),), lambda x: topi.argmax(x, axis=1), lambda x: x.argmax(1)),
    "transpose": (((40, 57),), topi.transpose, np.transpose),
    "pool": (((1, 3, 12, 16),), lambda x: topi.nn.pool2d(
        x, [2, 2], [2, 2], [1, 1], [0, 0, 0, 0], "max"),
        lambda x: x.reshape(1, 3, 6, 2, 8, 2).max((3, 5))),
    "elementwise": (((33, 45), (33, 45)), lambda x, y: topi.exp(topi.multiply(x, topi.tanh(y))),
        lambda x, y: np.exp(x * np.tanh(y))),
    "shared": (((12, 40),), lambda x: topi.add(topi.exp(x), topi.sum(topi.exp(x), axis=1, keepdims=True)),
        lambda x: np.exp(x) + np.exp(x).sum(1, keepdims=True)),
}


def program(name: str) -> tuple[list[te.Tensor], te.Tensor, list[Array], Array]:
    """Return the inputs and the result of a program, arrays, and the result of NumPy."""
    shapes, define, oracle = PROGRAMS[name]
    inputs = [te.placeholder(shape, name=f"X{k}") for k, shape in enumerate(shapes)]
    generator = np.random.default_rng(0)
    arrays = [generator.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
    expected = oracle(*(array.astype(np.float64) for array in arrays))
    return inputs, define(*inputs), arrays, expected


def check(name: str, choices: Choices, target: str = "cpu") -> None:
    """Compare the kernel that choices give with NumPy."""
    inputs, output, arrays, expected = program(name)
    kernel = tecomp.build(choices.run(auto, output, target), [*inputs, output], target=target)
    found = kernel.empty(output)
    kernel(*(kernel.pack(x, array) for x, array in zip(inputs, arrays, strict=True)), found)
    assert_close(
        kernel.unpack(output, found), expected, 1e-5, magnitude=np.abs(expected).max(),
        err_msg=f"{name}: {choices.changed}")


def space(name: str, target: str = "cpu") -> Choices:
    choices = Choices()
    choices.run(auto, program(name)[1], target)
    return choices


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_first_candidate_is_the_choice_of_the_model(name: str) -> None:
    output = program(name)[1]
    choices = Choices()

    assert str(choices.run(auto, output, "cpu").trace) == str(auto(output, "cpu").trace)
    assert choices.changed == {}
    assert choices.knobs


@pytest.mark.parametrize("name", PROGRAMS)
def test_random_choices_compute_what_numpy_does(name: str) -> None:
    generator = random.Random(name)
    known = space(name).knobs.values()

    for _ in range(2):
        check(name, Choices({one.name: generator.choice(one.values) for one in known}))


@pytest.mark.exhaustive(most=12)
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_value_of_every_knob_computes_what_numpy_does(name: str) -> None:
    for one in space(name).knobs.values():
        for value in one.values[1:]:
            check(name, Choices({one.name: value}))


@pytest.mark.parametrize("name", ["matmul", "elementwise"])
def test_choices_divide_work_among_the_cores_of_an_accelerator(name: str) -> None:
    known = space(name, "stick128").knobs

    assert "division" in known
    for value in known["division"].values[1:3]:
        check(name, Choices({"division": value}), "stick128")
