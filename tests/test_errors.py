"""Errors: what of long texts they show, and how they leave the process that raised them."""

from __future__ import annotations

import copy
import pickle

import pytest

import tecomp
from tecomp import te


def refused() -> tecomp.TecompError:
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i], name="B")
    with pytest.raises(tecomp.ScheduleError) as caught:
        te.create_schedule(B)[B].split(B.op.axis[0], factor=0)
    return caught.value


@pytest.mark.parametrize("again", [lambda e: pickle.loads(pickle.dumps(e)), copy.deepcopy])
def test_an_error_says_the_same_in_another_process(again: object) -> None:
    """`multiprocessing` waits for ever for an answer that cannot be sent."""
    assert callable(again)
    error = refused()

    received = again(error)

    assert type(received) is tecomp.ScheduleError
    assert received.message == "s[B].split(i): factor must be a positive integer, got 0"
    assert str(received) == str(error)
    assert str(received).endswith("te.create_schedule(B)[B].split(B.op.axis[0], factor=0)")
    assert str(again(received)) == str(error)


def test_an_error_without_a_place() -> None:
    error = tecomp.LowerError("lower: no")
    error.location = None

    assert str(pickle.loads(pickle.dumps(error))) == "lower: no"


def test_long_texts_in_messages_lose_their_middle() -> None:
    with pytest.raises(tecomp.TypeMismatchError) as caught:
        te.placeholder((4,), "x" * 5000)

    first, last = "`" + "x" * 199, "x" * 199 + "`"
    assert caught.value.message.startswith(f"{first} ... {last} is no element type; ")
    assert len(tecomp.LowerError("lower: " + "12, " * 9000).message) == 4005
