"""Serialized values are complete, preserve sharing and round-trip."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import pytest

from tecomp.ir import (
    FLOAT32,
    INT64,
    Binary,
    BinOp,
    Buffer,
    CmpOp,
    Const,
    DType,
    Expr,
    NotSerializableError,
    PrimFunc,
    SeqStmt,
    Var,
    decode,
    encode,
)

KINDS = (Var, Const, Binary, BinOp, Buffer, PrimFunc, SeqStmt)
I, J = Var("i"), Var("j")  # noqa: E741


@dataclass(frozen=True)
class Loop:
    """Class whose instances can contain themselves."""

    inner: list[Any]
    derived: int = field(init=False, default=3)


def back(value: object) -> Any:
    return decode(json.loads(json.dumps(encode(value))), KINDS)


@pytest.mark.parametrize(
    "value",
    [None, True, 1, -(2**70), "", "'@#(", "größe\n", 0.5, -0.0, math.inf, (), (1, (True, ("a",))),
     BinOp.ADD, DType("float32x4")],
)
def test_plain_values_round_trip(value: object) -> None:
    found = back(value)

    assert found == value
    assert type(found) is type(value)
    assert repr(found) == repr(value)


def test_nan_round_trips() -> None:
    assert math.isnan(back(math.nan))


def test_lists_and_mappings_round_trip() -> None:
    found = back(([1, (2, [])], MappingProxyType({"a": [3], 0.5: None})))

    assert found == ([1, (2, [])], {"a": [3], 0.5: None})
    assert isinstance(found[1], MappingProxyType)


def test_shared_parts_stay_shared() -> None:
    n = Var("n")
    first, second = Buffer("A", (n, n + 1)), Buffer("A", (n,))
    func = PrimFunc("f", (first, second), SeqStmt(()), (n,), sites=("x.py:1: A[i]",))
    found = back(func)

    assert str(found) == str(func)
    assert [param.name for param in found.params] == ["A", "A"]
    assert found.params[0].shape[0] is found.params[1].shape[0] is found.sizes[0]
    assert found.params[0].data is not found.params[1].data


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True), (1, 1.0), (0.0, -0.0), ("1", 1), ("float32", FLOAT32), ((), []), (None, "None"),
        ((1, 2), (1, (2,))), (((1,), 2), ((1, 2),)), ({"a": 1}, ("a", 1)), ("#0", (I, I)),
        (I, J), (Var("i"), Var("i", FLOAT32)), ((I, I), (I, Var("i"))), (I + J, J + I),
        (Const(1), Const(1, FLOAT32)), (I + 1, I - 1), (BinOp.ADD, CmpOp.LT),
    ],
)  # fmt: skip
def test_different_values_have_different_words(one: object, other: object) -> None:
    assert json.dumps(encode(one)) != json.dumps(encode(other))


def test_equal_values_have_equal_words() -> None:
    one, other = (MappingProxyType({"k": [I * 2, INT64]}) for _ in range(2))

    assert encode(one) == encode(other) == encode({"k": [Var("i") * 2, INT64]})


def test_special_types_are_opaque() -> None:
    assert encode((object(), 1), {object: lambda value: "?"}) == ["?", 1, "(2"]


@pytest.mark.exhaustive
def test_deep_values() -> None:
    tree: Expr = I
    for _ in range(20_000):
        tree = Binary(BinOp.ADD, tree, J)

    assert str(back(tree)) == str(tree)


@pytest.mark.parametrize("value", [object(), (1, {2}), 1j, lambda: 1, {"a": b"b"}])
def test_unserializable_values_are_rejected(value: object) -> None:
    with pytest.raises(NotSerializableError):
        encode(value)


def test_recursive_values_are_rejected() -> None:
    loop = Loop([])
    loop.inner.append(loop)

    with pytest.raises(NotSerializableError):
        encode(loop)


@pytest.mark.parametrize(
    "words",
    [[], [1, 2], ["(2"], ["?"], ["@tecomp.ir.nodes.stmt_nodes.For"], ["#0"], ["'os", "@posix.system"], ["[1"],
     ["{1", 3]],
)
def test_words_without_meaning_are_refused(words: list[Any]) -> None:
    with pytest.raises((ValueError, IndexError)):
        decode(words, KINDS)
