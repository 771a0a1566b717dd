"""Copy schedules: transfer units and blocks as loops over boxes."""

from __future__ import annotations

import pytest

import tecomp
from tecomp import te
from tecomp.copy_schedule import FAR, Dim, Moves, moves_of, schedule_moves

ROWS = (Dim(100, 300, 500), Dim(256, 1, 1))
SQUARES = (Dim(100, 1, 256), Dim(256, 100, 1))


@pytest.mark.parametrize(
    ("dims", "granules", "innermost"),
    [
        (ROWS, (1, 32), (1,)),
        ((Dim(9, 1, 1),), (8,), (0,)),
        ((Dim(70, 1, 1),), (16,), (0,)),
        ((Dim(5, -1, 1),), (4,), (0,)),
        (SQUARES, (8, 8), (0, 1)),
        ((Dim(5, 1, 100), Dim(100, 5, 1)), (4, 4), (0, 1)),
        ((Dim(3, 1, 100), Dim(100, 3, 1)), (1, 8), (1,)),
        ((Dim(100, 1, 3), Dim(3, 100, 1)), (1, 1), (1,)),
        ((Dim(FAR, 1, FAR), Dim(FAR, FAR, 1)), (8, 8), (0, 1)),
        ((Dim(7, 2, 2),), (1,), ()),
        ((), (), ()),
    ],
)
def test_block_sizes_of_copies(
    dims: tuple[Dim, ...], granules: tuple[int, ...], innermost: tuple[int, ...]
) -> None:
    moves = moves_of(dims, (4, 4), 32)

    assert (moves.granules, moves.innermost) == (granules, innermost)


def loops_of(moves: Moves, cores: int = 1) -> tuple[str, int]:
    """Return the loops of a copy of a box."""
    counts = tuple(dim.count for dim in moves.dims)
    A = te.placeholder(counts, name="A")
    B = te.compute(counts, lambda *i: A(*i), name="B")
    s = te.create_schedule(B)
    neighbors = schedule_moves(s[B], s[B].op.axis, moves, cores)
    text = str(tecomp.lower(s, [A, B], stop_after="nest").body)
    return "\n".join(line.strip() for line in text.splitlines()[:-1]), neighbors


def test_rows_are_copied_in_blocks_of_long_runs() -> None:
    loops, neighbors = loops_of(moves_of(ROWS, (4, 4), 32))

    assert loops == (
        "for i0 in range(100):\n"
        "for i1_outer in unrolled(8):\n"
        "for i1_inner in vectorized(32):"
    )
    assert neighbors == 1


def test_tiles_are_copied_by_destination_lines_within_blocks() -> None:
    loops, neighbors = loops_of(moves_of(SQUARES, (4, 4), 32))

    assert loops.splitlines()[-2:] == [
        "for i0_inner in unrolled(8):", "for i1_inner in vectorized(8):",
    ]
    assert neighbors == len(loops.splitlines()) - 2


def test_cores_share_enough_loops() -> None:
    dims = (Dim(3, 40_000, 40_000), Dim(40, 1000, 1), Dim(1000, 1, 40))
    loops = [loops_of(moves_of(dims, (4, 4), 32), cores)[0].splitlines()[0] for cores in (1, 2, 64)]

    assert loops == [
        "for i0 in range(3):",
        "for i0_i2_outer_outer_fused in parallel(189):",
        "for i0_i2_outer_outer_fused_i1_outer_outer_fused in parallel(567):",
    ]
