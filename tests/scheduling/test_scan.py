"""Primitives on the stages of a scan: results and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tecomp import te
from tecomp.errors import TecompError
from tests.messages import Diagnostic, diagnostic

state = te.placeholder((9, 4, 6), name="state")
first = te.placeholder((1, 4, 6), name="first")
rule = te.compute((9, 4, 6), lambda t, i, j: state[t - 1, i, j] + 1.0, name="rule")
S = te.scan(first, rule, state, name="S")
t, i, j = S.op.axis

Refusal = Callable[[te.Schedule, Callable[[], object]], TecompError]


def test_loops_over_steps_are_split_and_fused_with_one_another() -> None:
    s = te.create_schedule(S)
    outer, inner = s[S].split(t, factor=3)
    repeated = s[S].fuse(outer, inner)

    assert [axis.kind.value for axis in (outer, inner, repeated)] == ["scan"] * 3
    assert s[S].leaf_iter_vars == (repeated, i, j)
    s[S].unroll(repeated)
    s[S].bind(repeated, "threadIdx.x")


def test_steps_follow_one_another(refusal: Refusal) -> None:
    s = te.create_schedule(S)

    def message(call: Callable[..., Any], *args: Any) -> Diagnostic:
        return diagnostic(refusal(s, lambda: call(*args)))

    for name in ("vectorize", "parallel"):
        assert message(getattr(s[S], name), t) == (
            Diagnostic("not-parallelizable", stage="S", call=name, axis="t")
        )
    assert message(s[S].bind, t, "blockIdx.x") == (
        Diagnostic("not-parallelizable", where="s[S].bind(t)", axis="t")
    )
    assert message(s[S].fuse, t, i) == (
        Diagnostic("not-nested", stage="S", axes="t, i", steps="t")
    )


def test_a_scan_keeps_its_memory(refusal: Refusal) -> None:
    T = te.compute((9, 4, 6), lambda t, i, j: S[t, i, j], name="T")
    s = te.create_schedule(T)

    assert diagnostic(refusal(s, s[S].compute_inline)) == (
        Diagnostic("requires-storage", where="s[S].compute_inline", stage="S", subject="is a scan")
    )
    assert diagnostic(refusal(s, lambda: s.cache_write(S, "local"))) == (
        Diagnostic("pattern-mismatch", where="s.cache_write(S, 'local')", stage="S")
    )


def test_a_scan_is_no_operation_of_a_machine(refusal: Refusal) -> None:
    x = te.placeholder((6,), name="x")
    copy = te.decl_tensor_intrin(
        te.compute((6,), lambda i: x[i]).op, lambda ins, outs: outs[0].store(0, ins[0][0]),
        name="copy", check="never",
    )
    s = te.create_schedule(S)

    assert diagnostic(refusal(s, lambda: s[S].tensorize(j, copy))) == (
        Diagnostic("pattern-mismatch", where="s[S].tensorize(j)", stage="S")
    )


def test_a_cache_may_be_read_by_the_scan_itself() -> None:
    s = te.create_schedule(S)
    copy = s.cache_read(first, "local", [S])
    other = s.cache_read(rule, "local", [S])

    text = "S[t, i, j] = first_local[t, i, j] if t < 1 else rule_local[t, i, j] with state = S"
    assert str(s[S].op) == text
    assert (copy.op.name, other.op.name) == ("first.local", "rule.local")
