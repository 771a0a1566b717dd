"""Sequences of accesses: joined they count what a list of addresses would."""

from __future__ import annotations

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from tecomp.model.sequence import NOTHING, Sequence, Step, joined, single


def counted(addresses: list[int], step: Step) -> Sequence:
    """By looking at each address."""
    runs: list[list[int]] = []
    for address in addresses:
        if runs and address - runs[-1][-1] in (0, step.size):
            runs[-1].append(address)
        else:
            runs.append([address])
    if not runs:
        return NOTHING
    lengths = [len(set(run)) for run in runs]
    block = step.block
    touched = [
        {byte // block for address in run for byte in range(address, address + step.size)}
        for run in runs
    ] if block else []
    return Sequence(len(addresses), addresses[0], addresses[-1], len(runs), max(lengths),
                    lengths[0], lengths[-1], sum(map(len, touched)),
                    sum(-(-n // step.burst) if step.burst else 1 for n in lengths))


steps = st.builds(Step, st.sampled_from([1, 2, 4]), st.sampled_from([None, 4, 16, 12]),
                  st.sampled_from([None, 1, 3, 4]))
places = st.lists(st.integers(0, 12), max_size=12)


@given(places, places, steps)
def test_joined(a: list[int], b: list[int], step: Step) -> None:
    left, right = ([n * step.size for n in each] for each in (a, b))

    found = joined(counted(left, step), counted(right, step), step)

    assert found == counted(left + right, step)


def test_one_by_one() -> None:
    step = Step(4, 16)
    addresses = [0, 4, 8, 12, 16, 40, 40, 44]

    found = reduce(lambda a, b: joined(a, single(b, step), step), addresses, NOTHING)

    assert (found.runs, found.longest, found.blocks) == (2, 5, 3)
    assert found == counted(addresses, step)
