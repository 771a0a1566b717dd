"""Functions of topi define a tensor or raise a TecompError for arbitrary arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te, topi
from tecomp.errors import safe_repr
from tests.messages import Diagnostic, diagnostic
from tests.strategies.bad_arguments import HUGE, UNPRINTABLE

ROUNDS, CALLS = 8, 1000
SIZE = te.var("n")
TENSORS = [
    te.placeholder(shape, dtype, name=name)
    for name, shape, dtype in [
        ("matrix", (4, 3), "float32"), ("single", (), "float32"), ("indices", (5,), "int32"),
        ("images", (1, 3, 8, 8), "float32"), ("filters", (2, 3, 3, 3), "float32"),
        ("mask", (3,), "bool"), ("rows", (SIZE, 4), "float32"), ("empty", (0, 3), "float32"),
        ("bytes", (4, 3), "uint8"), ("cube", (2, 3, 4), "float32")]
]  # fmt: skip
WRONG = [
    None, 0, 1, -1, 2, 5, -7, 100, 10**30, 2**40, 1.5, -0.0, float("nan"), float("inf"), 1j, True,
    "x", "float32", "NCHW", "NHWC", "max", "SAME", "clip", "linear", "ij,jk->ik", b"x", object(),
    [], (), {}, (1, 1), [2, 2], (0,), (-1,), [1, -1], (1, 2, 3, 4), (None,), [[1]], slice(0, 2),
    np.array([1, 2]), np.int64(1), SIZE, SIZE + 1, te.const(2, "int32"), te.const(1.0, "float32"),
    te.reduce_axis((0, 3), name="k"), lambda *given: 0, TENSORS[0].op, TENSORS[:2],
    *UNPRINTABLE,
]


def functions() -> list[tuple[str, Callable[..., Any]]]:
    """Return all functions of topi with their qualified names."""
    rooms = {"topi": topi, "topi.nn": topi.nn, "topi.image": topi.image}
    return [
        (f"{room}.{name}", value)
        for room, module in rooms.items() for name, value in sorted(vars(module).items())
        if inspect.isfunction(value) and name[0] != "_"
    ]


def arguments(draw: np.random.Generator, function: Callable[..., Any]) -> list[Any]:
    """Draw arguments: mostly a tensor for the first parameter, arbitrary values for the others."""
    def one(k: int, parameter: inspect.Parameter) -> Any:
        has_default = parameter.default is not inspect.Parameter.empty
        if has_default and draw.random() < 0.6:
            return parameter.default
        pool = TENSORS if draw.random() < (0.8, 0.3)[min(k, 1)] else WRONG
        return pool[draw.integers(len(pool))]

    return [one(*item) for item in enumerate(inspect.signature(function).parameters.values())]


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_arbitrary_arguments_are_accepted_or_refused(seed: int) -> None:
    draw, known = np.random.default_rng(seed), functions()
    for _ in range(CALLS):
        name, function = known[draw.integers(len(known))]
        inputs = arguments(draw, function)
        try:
            function(*inputs)
        except tecomp.TecompError:
            continue
        except Exception as error:
            raise AssertionError(f"{name}({', '.join(map(safe_repr, inputs))}): {error!r}") from error


X, IMAGES = TENSORS[0], TENSORS[3]
ANY: Any = topi


@pytest.mark.parametrize(("call", "expected"), [
    (lambda: ANY.nn.pad(X, 5),
     Diagnostic("invalid-type", where="topi.nn.pad", subject="pad_before", value=5, type="int")),
    (lambda: ANY.nn.pad(X, [1, "x"]),
     Diagnostic("invalid-type", where="topi.nn.pad", subject="pad_before[1]", value="x", type="str")),
    (lambda: ANY.transpose(X, 1), Diagnostic(
        "invalid-type", where="topi.transpose", subject="axes", value=1, type="int",
    )),
    (lambda: ANY.add(1, (2,)),
     Diagnostic("invalid-type", where="topi.add", subject="rhs", value=(2,), type="tuple")),
    (lambda: ANY.sum(X, 0, "yes"), Diagnostic(
        "invalid-type", where="topi.sum", subject="keepdims", value="yes", type="str",
    )),
    (lambda: ANY.nn.lrn(IMAGES, 3, alpha="x"), Diagnostic(
        "invalid-type", where="topi.nn.lrn", subject="alpha", value="x", type="str",
    )),
    (lambda: ANY.scanop(X, 3, 0, "mine"),
     Diagnostic("invalid-type", op_name="mine", binop=3, type="int")),
    (lambda: ANY.arange(0.5, HUGE),
     Diagnostic("invalid-value", low=0.5, high="<int of 16,610 bits>", step=1)),
    (lambda: ANY.split(X, 10**30),
     Diagnostic("limit-exceeded", where="topi.split", count=10 ** 30, most_parts=65536)),
    (lambda: ANY.arange(0, float("inf")),
     Diagnostic("invalid-value", low=0, high=float("inf"), step=1)),
    (lambda: ANY.tensordot(X, X, (None,)),
     Diagnostic(
         "invalid-type", where="topi.tensordot", subject="axes[0]", value=None, type="NoneType",
     )),
    (lambda: ANY.trilu(X, X, True),
     Diagnostic("shapes", where="topi.trilu", subject="k", shape="(4, 3)", rank=0, named="")),
    (lambda: ANY.nn.upsampling(IMAGES, float("nan"), 2),
     Diagnostic("invalid-value", where="topi.nn.upsampling", scale=float("nan"))),
    (lambda: ANY.image.resize2d(IMAGES, None, None, output_shape=(1, 3)),
     Diagnostic("shapes", where="topi.image.resize2d", output_shape="(1, 3)", data="images", ndim=4)),
])  # fmt: skip
def test_messages_for_none_arguments(call: Callable[[], Any], expected: Diagnostic) -> None:
    with pytest.raises(tecomp.DefinitionError) as error:
        call()

    assert diagnostic(error.value) == expected
