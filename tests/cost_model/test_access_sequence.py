"""Merged access sequences have the counts of the explicit address list."""

from __future__ import annotations

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from tecomp.cost_model import NOTHING, AccessSequence, Granularity, concat_accesses, single


def counted(addresses: list[int], unit: Granularity) -> AccessSequence:
    """Return the counts from the explicit address list."""
    runs: list[list[int]] = []
    for address in addresses:
        if runs and address - runs[-1][-1] in (0, unit.size):
            runs[-1].append(address)
        else:
            runs.append([address])
    if not runs:
        return NOTHING
    lengths = [len(set(run)) for run in runs]
    block = unit.block
    touched = [
        {byte // block for address in run for byte in range(address, address + unit.size)}
        for run in runs
    ] if block else []
    stretches = stretched(addresses, unit)
    burst = unit.burst and unit.burst * unit.size // step_of(unit)
    return AccessSequence(
        len(addresses), addresses[0], addresses[-1], len(runs), max(lengths),
        lengths[0], lengths[-1], sum(map(len, touched)),
        sum(-(-n // burst) if burst else 1 for n in stretches),
        len(stretches), stretches[0], stretches[-1],
    )


def step_of(unit: Granularity) -> int:
    """Return the number of bytes in a step of a burst."""
    if unit.block and unit.burst and unit.burst * unit.size % unit.block == 0:
        return unit.block
    return unit.size


def stretched(addresses: list[int], unit: Granularity) -> list[int]:
    """Return the lengths of consecutive transactions or elements."""
    size = step_of(unit)
    lengths: list[int] = []
    before = None
    for address in addresses:
        first, last = address // size, (address + unit.size - 1) // size
        if before is not None and first - before in (0, 1):
            lengths[-1] += last - before
        else:
            lengths.append(last - first + 1)
        before = last
    return lengths


steps = st.builds(Granularity, st.sampled_from([1, 2, 4]), st.sampled_from([None, 4, 16, 12]),
                  st.sampled_from([None, 1, 3, 4]))
places = st.lists(st.integers(0, 12), max_size=12)


@given(places, places, steps)
def test_joined(a: list[int], b: list[int], unit: Granularity) -> None:
    left, right = ([n * unit.size for n in item] for item in (a, b))

    found = concat_accesses(counted(left, unit), counted(right, unit), unit)

    assert found == counted(left + right, unit)


def test_one_by_one() -> None:
    unit = Granularity(4, 16)
    addresses = [0, 4, 8, 12, 16, 40, 40, 44]

    found = reduce(lambda a, b: concat_accesses(a, single(b, unit), unit), addresses, NOTHING)

    assert (found.runs, found.longest, found.blocks) == (2, 5, 3)
    assert found == counted(addresses, unit)
