"""Operations in topological order: producers first, each once."""

from __future__ import annotations

from tecomp import te
from tecomp.compute import Operation, post_order

A = te.placeholder((4,), name="A")


def names(*outputs: Operation) -> list[str]:
    return [op.name for op in post_order(outputs)]


def test_a_diamond() -> None:
    b = te.compute((4,), lambda i: A[i], name="B")
    c = te.compute((4,), lambda i: A[i], name="C")
    d = te.compute((4,), lambda i: c[i] + b[i], name="D")

    assert names(d.op) == ["A", "C", "B", "D"]
    assert names(d.op, b.op, d.op) == ["A", "C", "B", "D"]
    assert names(b.op, d.op) == ["A", "B", "C", "D"]
    assert names() == []


def test_operations_of_equal_name_are_distinguished() -> None:
    first = te.compute((4,), lambda i: A[i], name="A")
    second = te.compute((4,), lambda i: first[i] + A[i], name="A")

    assert post_order([second.op]) == (A.op, first.op, second.op)


def test_a_long_chain() -> None:
    tensor = A
    for _ in range(5000):
        tensor = te.compute((4,), lambda i, t=tensor: t[i] + 1)

    assert len(post_order([tensor.op])) == 5001


def test_outputs_of_one_operation_are_one_producer() -> None:
    p, q = te.compute((4,), lambda i: (A[i], A[i] + 1), name="P")
    r = te.compute((4,), lambda i: q[i] + p[i], name="R")

    assert r.op.input_tensors == (q, p)
    assert names(r.op) == ["A", "P", "R"]
