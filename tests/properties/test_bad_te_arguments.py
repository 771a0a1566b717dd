"""Whatever is passed to te, to a primitive or to a kernel, it works or raises a TecompError."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pytest

import tecomp
from tecomp import TecompError, te
from tecomp.driver.build import ScheduledKernel
from tests.properties.test_bad_arguments import WRONG

Right: TypeAlias = "dict[str, Any]"
A = te.placeholder((8, 16), name="A")
K = te.reduce_axis((0, 16), name="k")
B = te.compute((8,), lambda i: te.sum(A[i, K], axis=K), name="B")
C = te.compute((8,), lambda i: B[i] + 1.0, name="C")
X, N = te.const(1.5), te.var("n")
THREE: Any = 3
UNARY = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "exp",
    "exp2", "expm1", "fabs", "floor", "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2",
    "nearbyint", "round", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)

# For each function the arguments of a call that is right.
OF_TE: dict[str, Right] = {
    **{name: {"x": X} for name in UNARY if hasattr(te, name)},
    "placeholder": {"shape": (3,), "dtype": "float32", "name": "P"},
    "compute": {"shape": (3,), "fcompute": lambda i: i * 1.0, "name": "D", "tag": "",
                "attrs": {"a": 1}, "varargs_names": None},
    "reduce_axis": {"dom": (0, 3), "name": "k"},
    "var": {"name": "n", "dtype": "int32"},
    "const": {"value": 1, "dtype": "int32"},
    "create_schedule": {"outputs": C.op},
    "thread_axis": {"dom": None, "tag": "core.x"},
}
PRIMITIVES: dict[str, Right] = {
    "Stage.bind": {"ivar": B.op.axis[0], "thread_ivar": te.thread_axis("core.x")},
    "Stage.compute_at": {"parent": C, "scope": C.op.axis[0]},
    "Stage.parallel": {"var": B.op.axis[0]},
    "Stage.pragma": {"var": K, "pragma_type": "auto_unroll_max_step", "pragma_value": 8},
    "Stage.prefetch": {"tensor": A, "var": K, "offset": 1},
    "Stage.set_scope": {"scope": "local"},
    "Stage.split": {"parent": K, "factor": 4, "nparts": None, "disable_predication": False},
    "Stage.storage_align": {"axis": B.op.axis[0], "factor": 4, "offset": 0},
    "Stage.tensorize": {"var": K, "tensor_intrin": None},
    "Stage.tile": {"x_parent": B.op.axis[0], "y_parent": K, "x_factor": 2, "y_factor": 2},
    "Stage.transform_layout": {
        "mapping_function": lambda i: [i // 2, i % 2], "pad_value": 0.0, "loops": "logical"},
    "Stage.unroll": {"var": K},
    "Stage.vectorize": {"var": B.op.axis[0]},
    "Schedule.cache_read": {"tensor": A, "scope": "local", "readers": [B]},
    "Schedule.cache_write": {"tensor": B, "scope": "local"},
    "Schedule.into_dots": {"tensor": B, "axis": K, "first": "int8x4", "second": "int8x4"},
    "Schedule.rfactor": {"tensor": B, "axis": K, "factor_axis": 0},
    "Schedule.size": {"name": "n"},
    "Schedule.tensor": {"name": "B", "output": 0},
}
# Calls of which no argument has a name.
PLAIN: dict[str, Callable[[te.Schedule, Any], object]] = {
    "s[...]": lambda s, wrong: s[wrong],
    "reorder": lambda s, wrong: s[B].reorder(K, wrong),
    "fuse": lambda s, wrong: s[B].fuse(wrong, K),
    "A[...]": lambda _, wrong: A[wrong],
    "A(...)": lambda _, wrong: A(0, wrong),
    "expression": lambda _, wrong: X + wrong,
    "comparison": lambda _, wrong: wrong > N,
    "condition": lambda _, wrong: te.if_then_else(wrong, 1.0, 2.0),
    "choice": lambda _, wrong: te.if_then_else(N > 0, wrong, 2.0),
    "select": lambda _, wrong: te.Select(N > 0, 1.0, wrong),
    "maximum": lambda _, wrong: te.max(X, wrong),
    "power": lambda _, wrong: te.power(X, wrong),
    "sum": lambda _, wrong: te.sum(wrong, axis=K),
    "axis of a sum": lambda _, wrong: te.sum(A[0, K], axis=wrong),
    "where of a sum": lambda _, wrong: te.sum(A[0, K], axis=K, where=wrong),
    "element": lambda _, wrong: te.compute((3,), lambda i: wrong),
    "result": lambda _, wrong: te.compute((3,), lambda i: (A[i, 0], wrong)),
}


@pytest.fixture(scope="module")
def kernel() -> ScheduledKernel:
    return tecomp.build(te.create_schedule(C.op), [A, C])


def tried(call: Callable[[], object]) -> str | None:
    """What is wrong with the way in which a call is refused, if anything."""
    try:
        call()
    except TecompError as error:
        if re.search(r"\b0x[0-9a-f]{6,}", error.message):
            return f"an address: {error.message}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def failures(call: Callable[[Right], object], right: Right) -> list[str]:
    found = ((name, wrong, tried(partial(call, right | {name: wrong})))
             for name in right for wrong in WRONG)
    return [f"{name}={wrong!r}: {what}" for name, wrong, what in found if what]


@pytest.mark.parametrize("name", OF_TE)
def test_functions_of_te(name: str) -> None:
    function = getattr(te, name)
    right = dict(zip(inspect.signature(function).parameters, OF_TE[name].values(), strict=False))
    function(**right)

    assert failures(lambda given: function(**given), right) == []


def primitive(name: str) -> Callable[[Right], object]:
    """The primitive of a fresh schedule."""
    owner, _, method = name.partition(".")

    def call(given: Right) -> object:
        s = te.create_schedule(C.op)
        return getattr(s if owner == "Schedule" else s[B], method)(**given)

    return call


@pytest.mark.parametrize("name", PRIMITIVES)
def test_primitives(name: str) -> None:
    assert failures(primitive(name), PRIMITIVES[name]) == []


def test_every_primitive_is_tried() -> None:
    s = te.create_schedule(C.op)
    named = {
        f"{owner.__name__}.{name}"
        for owner in (type(s), type(s[B]))
        for name, member in vars(owner).items()
        if not name.startswith("_") and inspect.isfunction(member)
        and any(p.kind is not p.VAR_POSITIONAL
                for p in list(inspect.signature(member).parameters.values())[1:])
    }
    assert named == set(PRIMITIVES)


@pytest.mark.parametrize("name", PLAIN)
def test_arguments_without_a_name(name: str) -> None:
    found = ((wrong, tried(partial(PLAIN[name], te.create_schedule(C.op), wrong)))
             for wrong in WRONG)

    assert [f"{wrong!r}: {what}" for wrong, what in found if what] == []


@pytest.mark.parametrize(("call", "message"), [
    (lambda s: te.compute((3,), lambda i: i, name="D", attrs=THREE),
     "te.compute D: attrs is 3; give a dictionary"),
    (lambda s: te.compute((3,), lambda *i: i[0], name="D", varargs_names=THREE),
     "te.compute D: varargs_names is 3; give the names of the axes that *indices takes"),
    (lambda s: s.tensor("B", 1), "s.tensor('B'): output is 1; give a number from 0 to 0"),
    (lambda s: s.tensor([]), "the schedule has no tensor []; it has A, B, C"),
    (lambda s: s.size({}), "the schedule has no size {}; it has none"),
    (lambda s: s[B].split(K, 4, disable_predication="x"),
     "s[B].split(k): disable_predication is 'x'; give True or False"),
    (lambda s: s[B].split(K, np.zeros((1, 2))),
     "s[B].split(k): factor must be a positive integer, got array([[0., 0.]])"),
    (lambda s: s[B].transform_layout(lambda i: [i], loops=()),
     "s[B].transform_layout: loops is 'physical' or 'logical', not ()"),
    (lambda s: s[object()], "s[...]: expected a tensor or an operation, got <object object>"),
])
def test_messages(call: Callable[[Any], object], message: str) -> None:
    with pytest.raises(TecompError) as caught:
        call(te.create_schedule(C.op))

    assert caught.value.message == message


@pytest.mark.parametrize("method", ["call", "pack", "unpack", "empty", "report"])
def test_kernels(method: str, kernel: ScheduledKernel) -> None:
    a, c = np.zeros((8, 16), "float32"), np.zeros(8, "float32")
    calls: dict[str, tuple[Callable[..., object], Right]] = {
        "call": (lambda a, c: kernel(a, c), {"a": a, "c": c}),
        "pack": (kernel.pack, {"tensor": A, "array": a}),
        "unpack": (kernel.unpack, {"tensor": A, "array": a}),
        "empty": (kernel.empty, {"tensor": A}),
        "report": (kernel.report, {"n": 3}),
    }
    call, right = calls[method]

    assert failures(lambda given: call(**given), right) == []
