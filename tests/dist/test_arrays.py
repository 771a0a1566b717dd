"""Arrays of a team: every function gives what it gives on one process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.strategies.ranks import Pools, printed

GATHER = {
    "fft.fft", "fft.fftn", "fft.hfft", "fft.ifft", "fft.ifftn", "fft.ihfft", "fft.irfft", "fft.irfftn",
    "fft.rfft", "fft.rfftn", "linalg.cholesky", "linalg.det", "linalg.eig", "linalg.eigh", "linalg.eigvals",
    "linalg.eigvalsh", "linalg.inv", "linalg.matrix_norm", "linalg.matrix_rank", "linalg.pinv", "linalg.qr",
    "linalg.slogdet", "linalg.solve", "linalg.svd", "linalg.svdvals",
}
"""All functions for which every process gets all elements of an array."""


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("group", ["elementwise", "reductions", "moves", "products"])
def test_functions_give_the_same_for_parts(group: str, n: int, pools: Pools) -> None:
    """Of uneven parts, empty ones, rows and columns; errors too."""
    assert pools.printed("teams", n, group) == [f"as one {group}"]


@pytest.mark.parametrize("n", [1, 3, 4])
def test_arrays_of_a_team(n: int, kernels: Path) -> None:
    """How they are made and gathered, who has what, what is counted and what is refused."""
    assert printed("team_arrays", n, kernels=kernels) == ["all right"]


@pytest.mark.parametrize("n", [1, 2, 4])
def test_arrays_take_as_few_messages_as_programs_by_hand(n: int, pools: Pools) -> None:
    """A stencil one exchange a step, sums of several arrays one collective; and all of it told."""
    assert pools.printed("exchanges", n) == ["as few as by hand"]


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_cores_are_computed_while_halos_come(n: int, pools: Pools) -> None:
    """Of stencils of any radius along any axes: the same bits, and it is told what was when."""
    assert pools.printed("overlaps", n, str(100 * n), "4") == ["the same bits"]


@pytest.mark.parametrize(("n", "seed"), [(3, 0), (4, 100)])
def test_drawn_programs_give_what_they_give_with_numpy(n: int, seed: int, pools: Pools) -> None:
    """Slices, rolls, assignments and reductions, of parts of any extents, in any order."""
    assert pools.printed("drawn", n, str(seed), "3") == ["as drawn"]


@pytest.mark.parametrize("n", [3, 4])
def test_functions_of_all_elements_gather_nothing(n: int, pools: Pools) -> None:
    """Sorts, sets, masks, places, and products on meshes of one and two axes."""
    assert pools.printed("ungathered", n) == ["ungathered"]


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_recorded_functions(n: int, pools: Pools) -> None:
    """What was recorded for one partition gives the same for others."""
    assert pools.printed("recorded", n) == ["recorded"]


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_drawn_calls_of_every_function(n: int, pools: Pools) -> None:
    """In lock-step; `python -m tests.dist.conformance -n 4 --count 50` draws more."""
    said, gathering = pools.printed("conforms", n, "1", "0")

    assert said == "0 of 161 calls differ"
    assert set(gathering.removeprefix("gathered by").split()) <= GATHER


def test_linear_algebra_and_transforms_alone_gather(pools: Pools) -> None:
    """Those of whole matrices; no function of the namespace itself is drawn that does."""
    count, *gathering = pools.printed("gathers", 2)[0].split()

    assert count == "39"
    assert set(gathering) == GATHER


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_programs_give_what_they_give_with_numpy(n: int, pools: Pools) -> None:
    """Stencils, waves, shallow water, options, transposes, events, tables, clusters, systems."""
    assert pools.printed("team_examples", n) == ["as with NumPy"]
