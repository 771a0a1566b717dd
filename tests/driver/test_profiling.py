"""Timeline of the parts of a kernel, measured on the host CPU."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close

N = te.var("n")


def two_loops(extent: Any) -> tuple[te.Schedule, list[te.Tensor]]:
    """Build row sums of an exponential, with one loop for each stage."""
    A = te.placeholder((extent, 256), name="A")
    k = te.reduce_axis((0, 256), name="k")
    B = te.compute((extent, 256), lambda i, j: te.exp(A[i, j]), name="B")
    C = te.compute((extent,), lambda i: te.sum(B[i, k], axis=k), name="C")
    s = te.create_schedule(C)
    s[C].parallel(C.op.axis[0])
    return s, [A, C]


@pytest.mark.parametrize("extent", [64, N])
def test_each_outermost_loop_has_a_bar_with_its_time(extent: Any) -> None:
    s, args = two_loops(extent)
    kernel = tecomp.build(s, args, name="sums")
    a = np.random.default_rng(0).random((64, 256), np.float32)
    c = np.zeros(64, np.float32)
    trace = json.loads(kernel.timeline(a, c, measured=True))
    bars = [event for event in trace["traceEvents"] if event["ph"] == "X"]

    assert_close(c, np.exp(a).sum(1), rtol=1e-5)
    assert [bar["name"] for bar in bars] == ["B", "C"]
    assert bars[0]["ts"] == 0
    assert bars[1]["ts"] == pytest.approx(bars[0]["dur"])
    assert [bar["args"]["statement"].split()[0] for bar in bars] == ["for", "for"]
    # 16384 values of exp take more than 1 us and less than 1 s.
    assert 1 < bars[0]["dur"] < 1e6
    assert "tecomp.clock_gettime" not in tecomp.list_global_func_names()


def test_the_default_profile_is_modelled() -> None:
    s, args = two_loops(64)
    kernel = tecomp.build(s, args)

    assert kernel.timeline() == kernel.report().trace()


@pytest.mark.parametrize(("extent", "sizes"), [(64, {}), (N, {"n": 64})])
def test_profiling_without_arguments_uses_zeros(extent: Any, sizes: dict[str, int]) -> None:
    kernel = tecomp.build(*two_loops(extent), name="sums")
    trace = json.loads(kernel.timeline(measured=True, **sizes))

    bars = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert [bar["name"] for bar in bars] == ["B", "C"]
    assert all(bar["dur"] > 0 for bar in bars)


def on_stick128() -> Any:
    X = te.placeholder((64, 64), "float16", name="X")
    Y = te.compute((64, 64), lambda i, j: X[i, j] * 2.0, name="Y")
    s = te.create_schedule(Y)
    for tensor in (X, Y):
        s[tensor].set_scope("ddr")
    return tecomp.build(s, [X, Y], target="stick128", name="twice")


WRONG: dict[str, tuple[Any, Diagnostic]] = {
    "arguments": (
        lambda kernel: kernel.timeline(np.zeros(4)),
        Diagnostic("conflicting-options", where="sums.timeline"),
    ),
    "sizes": (
        lambda kernel: kernel.timeline(
            np.zeros((64, 256), np.float32), np.zeros(64, np.float32), n=4, measured=True
        ),
        Diagnostic("conflicting-options", where="sums.timeline", sizes="n"),
    ),
    "foreign size": (
        lambda kernel: kernel.timeline(n=4, measured=True),
        Diagnostic("unbound-size", where="sums.timeline", func="sums", size="n", names="none"),
    ),
    "missing size": (
        lambda kernel: tecomp.build(*two_loops(N), name="rows").timeline(measured=True),
        Diagnostic(
            "unbound-size", where="rows.timeline", func="rows", name="n", function="timeline",
        ),
    ),
    "no size": (
        lambda kernel: tecomp.build(*two_loops(N), name="rows").timeline(n=-1, measured=True),
        Diagnostic("invalid-value", where="rows.timeline", name="n", size=-1),
    ),
    "no truth": (
        lambda kernel: kernel.timeline(measured="yes"),
        Diagnostic(
            "invalid-type", where="sums.timeline: measured", value="yes",
            remedy="pass True or False",
        ),
    ),
    "no machine": (
        lambda kernel: on_stick128().timeline(measured=True),
        Diagnostic("conflicting-options", where="twice.timeline", target="stick128"),
    ),
    "count": (
        lambda kernel: kernel.timeline(np.zeros((64, 256), np.float32), measured=True),
        Diagnostic(
            "argument-count", name="sums", signature_count=2, names="A, C", count=1,
            note="; C must also be passed, to be written in place",
        ),
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_invalid_arguments_are_rejected(case: str) -> None:
    action, expected = WRONG[case]
    kernel = tecomp.build(*two_loops(64), name="sums")
    with pytest.raises(tecomp.CallError) as caught:
        action(kernel)

    assert diagnostic(caught.value) == expected
