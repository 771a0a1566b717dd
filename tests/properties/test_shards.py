"""Runs and copies between random sharded layouts of one tensor agree with enumeration."""

from __future__ import annotations

import time

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tecomp import relayout
from tests.strategies.copies import run_lengths
from tests.strategies.draws import Draw
from tests.strategies.shards import Shards, draw_shards

SECONDS = 5.0
"""Limit of the CPU time of one query in seconds; nearly all queries take a hundredth of it."""


@st.composite
def shard_pairs(draw: Draw) -> tuple[Shards, Shards]:
    """Draw two sharded layouts of one tensor."""
    sizes = st.sampled_from((3, 5, 2, 1, 4, 6, 7, 8, 11, 13))
    shape = tuple(draw(st.lists(sizes, min_size=1, max_size=3)))
    return draw_shards(draw, shape), draw_shards(draw, shape)


@given(shard_pairs())
def test_shard_positions_match_integer_arithmetic(pair: tuple[Shards, Shards]) -> None:
    for shards in pair:
        assert np.array_equal(shards.layout.offsets(), shards.addresses(gap=0))


@given(shard_pairs())
def test_runs_between_shards_match_brute_force(pair: tuple[Shards, Shards]) -> None:
    source, target = pair

    start = time.process_time()
    runs = source.layout.runs_to(target.layout)
    seconds = time.process_time() - start

    assert dict(runs.lengths) == run_lengths(source.addresses(gap=1), target.addresses(gap=1))
    assert seconds < SECONDS


@given(shard_pairs())
def test_copies_between_shards_bring_every_element(pair: tuple[Shards, Shards]) -> None:
    source, target = (shards.layout for shards in pair)
    stored, expected = (
        np.zeros(layout.storage_shape, "int32") for layout in (source, target)
    )
    values = np.arange(1, source.num_elements + 1, dtype="int32").reshape(source.shape)
    stored.flat[pair[0].addresses(gap=0).ravel()] = values.ravel()
    expected.flat[pair[1].addresses(gap=0).ravel()] = values.ravel()

    start = time.process_time()
    copy = relayout(source, target)
    seconds = time.process_time() - start

    assert np.array_equal(copy(stored), expected)
    assert seconds < SECONDS
