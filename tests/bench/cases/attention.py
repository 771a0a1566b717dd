"""Attention with eight heads of 64 features."""

from __future__ import annotations

from tests.bench.case import Case, Goal
from tests.bench.cases.functions import attention

HEADS, FEATURES = 8, 64

CASES = tuple(
    Case(
        f"attention/{tokens}", f"{HEADS} heads, {tokens} tokens of {FEATURES}", "attention",
        ((HEADS, tokens, FEATURES),) * 3, attention, terms=tokens,
        flops=4 * HEADS * tokens * tokens * FEATURES, bytes=16 * HEADS * tokens * FEATURES,
        limit="fma", goal=Goal(of_best=2.0, peers=("torch",)), has_blas=True,
    )
    for tokens in (512, 2048)
)
