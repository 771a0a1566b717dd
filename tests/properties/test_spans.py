"""Memory offsets of live ranges are aligned, disjoint if ranges overlap, and reused otherwise."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from tecomp.lowering import LiveInterval, assign_offsets, peak_live_bytes


@pytest.mark.exhaustive(keep=133)
@pytest.mark.parametrize("seed", range(200))
def test_no_two_that_meet_share_a_byte(seed: int) -> None:
    rng = np.random.default_rng(seed)
    spans = []
    for _ in range(rng.integers(0, 20)):
        first = int(rng.integers(0, 12))
        last = first + int(rng.integers(-1, 6))
        spans.append(LiveInterval(int(rng.integers(0, 40)), int(rng.choice([1, 4, 6, 16])), first, last))
    found = list(zip(spans, assign_offsets(spans), strict=True))

    assert all(place % span.step == 0 for span, place in found)
    for (a, at_a), (b, at_b) in combinations(found, 2):
        live = max(a.first, b.first) <= min(a.last, b.last)
        assert not live or at_a + a.bytes <= at_b or at_b + b.bytes <= at_a or not a.bytes * b.bytes
    sums = [sum(s.bytes for s in spans if s.first <= step <= s.last) for step in range(20)]
    assert peak_live_bytes(spans) == max(sums)
    assert peak_live_bytes(spans) <= max([place + span.bytes for span, place in found], default=0)


def test_chains_hold_two_values_at_any_length() -> None:
    spans = [LiveInterval(64, 64, step, step + 1) for step in range(5000)]

    assert set(assign_offsets(spans)) == {0, 64}
