"""Functions of arrays of a team give the same results as on one process."""

from __future__ import annotations

import pytest

from tests.array.conformance.methods import MAKERS
from tests.strategies.ranks import Pools

GATHER = {
    "fft.fft", "fft.fftn", "fft.hfft", "fft.ifft", "fft.ifftn", "fft.ihfft", "fft.irfft", "fft.irfftn",
    "fft.rfft", "fft.rfftn", "linalg.cholesky", "linalg.det", "linalg.eig", "linalg.eigh", "linalg.eigvals",
    "linalg.eigvalsh", "linalg.inv", "linalg.matrix_norm", "linalg.matrix_rank", "linalg.pinv", "linalg.qr",
    "linalg.slogdet", "linalg.solve", "linalg.svd", "linalg.svdvals",
}
"""Functions that gather all elements of an array on every process."""


@pytest.mark.exhaustive(keep=6, most=12)
@pytest.mark.parametrize("n", [4, 1, 3, 2])
@pytest.mark.parametrize("group", [
    "elementwise", "reductions of all axes", "reductions of rows", "other reductions", "moves",
    "products",
])
def test_functions_give_the_same_for_parts(group: str, n: int, pools: Pools) -> None:
    """Results and errors do not depend on partitions: uneven, empty, rows, columns."""
    assert pools.printed("teams", n, group) == [f"as one {group}"]


@pytest.mark.exhaustive(keep=1, most=2)
@pytest.mark.parametrize("n", [4, 1, 3])
def test_arrays_of_a_team(n: int, pools: Pools) -> None:
    """Creation, gathers, partitions, counters and errors."""
    assert pools.printed("team_arrays", n) == ["all right"]


@pytest.mark.exhaustive(keep=1, most=2)
@pytest.mark.parametrize("n", [4, 1, 2])
def test_arrays_send_as_few_messages_as_handwritten_programs(n: int, pools: Pools) -> None:
    """A stencil step is one exchange, and the sums of several arrays are one collective."""
    assert pools.printed("exchanges", n) == ["as few as by hand"]


@pytest.mark.exhaustive(keep=1, most=2)
@pytest.mark.parametrize("n", [4, 1, 3, 2])
def test_interiors_are_computed_during_halo_exchange(n: int, pools: Pools) -> None:
    """Stencils of any radius along any axes are bit-identical with and without overlap."""
    assert pools.printed("overlaps", n, str(100 * n), "4") == ["the same bits"]


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(("n", "seed"), [(4, 100), (3, 0)])
def test_random_programs_match_numpy(n: int, seed: int, pools: Pools) -> None:
    """Slices, rolls, assignments and reductions of arrays with shards of any sizes."""
    assert pools.printed("drawn", n, str(seed), "3") == ["as drawn"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("n", [4, 3])
def test_functions_of_all_elements_gather_nothing(n: int, pools: Pools) -> None:
    """Sorts, sets, masks, indices, and products on meshes of one and two axes."""
    assert pools.printed("ungathered", n) == ["ungathered"]


@pytest.mark.exhaustive(keep=1, most=2)
@pytest.mark.parametrize("n", [4, 1, 3, 2])
def test_recorded_functions(n: int, pools: Pools) -> None:
    """A function that was recorded for one partition gives the same results for others."""
    assert pools.printed("recorded", n) == ["recorded"]


@pytest.mark.exhaustive(keep=3, most=6)
@pytest.mark.parametrize("n", [4, 1, 3, 2])
@pytest.mark.parametrize("part", range(3))
def test_drawn_calls_of_every_function(part: int, n: int, pools: Pools) -> None:
    """All ranks make the same calls; `tests.dist.conformance` makes more of them."""
    names = [*MAKERS][part::3]
    message, gathering = pools.printed("conforms", n, "1", "0", *names)

    assert message == f"0 of {len(names)} calls differ"
    assert set(gathering.removeprefix("gathered by").split()) <= GATHER


def test_linear_algebra_and_transforms_alone_gather(pools: Pools) -> None:
    """Only functions of whole matrices gather."""
    count, *gathering = pools.printed("gathers", 4)[0].split()

    assert count == "39"
    assert set(gathering) == GATHER


@pytest.mark.exhaustive(keep=1, most=2)
@pytest.mark.parametrize("n", [4, 1, 3, 2])
def test_programs_match_numpy(n: int, pools: Pools) -> None:
    """Stencils, waves, option prices, transposes, particle events, PCA, k-means, solvers."""
    assert pools.printed("team_examples", n) == ["as with NumPy"]
