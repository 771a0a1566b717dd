"""`kernel.pack`, `unpack` and `empty`: accepted arrays and sizes, and errors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.driver import ScheduledKernel
from tests.messages import Diagnostic, diagnostic

n = te.var("n")
A = te.placeholder((n, 6), name="A")
B = te.compute((n, 6), lambda i, j: A[i, j] * 2.0, name="B")


P = te.compute((4,), lambda i: i * 1.0, name="P")


def plain() -> ScheduledKernel:
    return tecomp.build(te.create_schedule(P), [P])


@pytest.fixture(scope="module")
def kernel() -> ScheduledKernel:
    """Build `B[n, 6]` in blocks of 4 rows, so that the shape of an array does not determine n."""
    s = te.create_schedule(B)
    s[B].transform_layout(lambda i, j: [i // 4, j, i % 4])
    return tecomp.build(s, [A, B], name="double")


def test_undetermined_sizes_are_passed(kernel: ScheduledKernel) -> None:
    a = np.arange(30, dtype="float32").reshape(5, 6)
    stored = kernel.empty(B, n=5)

    kernel(kernel.pack(A, a), stored)

    assert stored.shape == (2, 6, 4)
    np.testing.assert_array_equal(kernel.unpack(B, stored, n=5), 2 * a)
    np.testing.assert_array_equal(kernel.unpack(A, a), a)


def test_padding_is_0_by_default(kernel: ScheduledKernel) -> None:
    stored = kernel.pack(B, np.ones((5, 6), "float32"))

    np.testing.assert_array_equal(stored[1, :, 1:], 0)
    assert stored.sum() == 30


def test_an_empty_tensor(kernel: ScheduledKernel) -> None:
    stored = kernel.pack(B, np.ones((0, 6), "float32"))

    assert stored.shape == (0, 6, 4)
    assert kernel.unpack(B, stored, n=0).shape == (0, 6)


STORED = np.zeros((2, 6, 4), "float32")
REFUSED: dict[str, tuple[Callable[[ScheduledKernel], object], Diagnostic]] = {
    "packing another shape": (
        lambda k: k.pack(B, np.zeros((5, 7), "float32")),
        Diagnostic(
            "argument-mismatch", caller="pack", tensor="B", shape="float32[n, 6]", value_shape="float32[5, 7]",
        ),
    ),
    "packing another type": (
        lambda k: k.pack(B, np.zeros((5, 6))),
        Diagnostic(
            "argument-mismatch", caller="pack", tensor="B", shape="float32[n, 6]", value_shape="float64[5, 6]",
        ),
    ),
    "packing nothing": (
        lambda k: k.pack(B, None),
        Diagnostic("argument-mismatch", caller="pack", tensor="B", shape="float32[n, 6]", value_shape="object[]"),
    ),
    "unpacking another shape of a tensor without a layout": (
        lambda k: plain().unpack(P, np.ones((2, 3), "float32")),
        Diagnostic(
            "argument-mismatch", caller="unpack", tensor="P", shape="float32[4]", value_shape="float32[2, 3]",
        ),
    ),
    "unpacking nothing": (
        lambda k: plain().unpack(P, None),
        Diagnostic("argument-mismatch", caller="unpack", tensor="P", shape="float32[4]", value_shape="object[]"),
    ),
    "unpacking a list": (
        lambda k: k.unpack(B, [1.0], n=5),
        Diagnostic(
            "argument-mismatch", where="argument 0 (B) of unpack",
            parameter="float32[(n + 3) // 4, 6, 4]", got="list",
            advice="convert it with np.asarray(...)",
        ),
    ),
    "unpacking another type": (
        lambda k: k.unpack(B, STORED.astype("float64"), n=5),
        Diagnostic(
            "argument-mismatch", where="argument 0 (B) of unpack",
            parameter="float32[(n + 3) // 4, 6, 4]", shape="float64[2, 6, 4]",
            scalar="np.float32",
        ),
    ),
    "unpacking without a size": (
        lambda k: k.unpack(B, STORED),
        Diagnostic("unbound-size", caller="unpack", tensor="B", name="n", arguments="tensor, array"),
    ),
    "a size that does not fit the array": (
        lambda k: k.unpack(B, STORED, n=9),
        Diagnostic(
            "argument-mismatch", where="argument 0 (B) of unpack",
            problem="axis 0 is 2, but (n + 3) // 4 is 3; pass an array of float32[3, 6, 4]",
        ),
    ),
    "an empty array without a size": (
        lambda k: k.empty(B),
        Diagnostic("unbound-size", caller="empty", tensor="B", name="n", arguments="tensor"),
    ),
    "a negative size": (
        lambda k: k.empty(B, n=-1), Diagnostic("invalid-value", caller="empty", name="n", size=-1),
    ),
    "NaN as a size": (
        lambda k: k.empty(B, n=float("nan")),  # type: ignore[arg-type]
        Diagnostic("invalid-value", caller="empty", name="n", size=float("nan")),
    ),
    "a tensor of another computation": (
        lambda k: k.empty(te.placeholder((4,), name="Z")),
        Diagnostic(
            "not-in-schedule", name="double", tensor="Tensor(Z, shape=(4,), dtype=float32)",
            known="A, B",
        ),
    ),
    "a name": (
        lambda k: k.empty("B"),  # type: ignore[arg-type]
        Diagnostic("not-in-schedule", name="double", tensor="B", known="A, B"),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, kernel: ScheduledKernel) -> None:
    call, expected = REFUSED[case]

    with pytest.raises(tecomp.CallError) as error:
        call(kernel)

    assert diagnostic(error.value) == expected
