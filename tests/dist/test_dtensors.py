"""Distributed tensors by number, in a process of its own: how they live, and what is refused."""

from __future__ import annotations

from tests.strategies.ranks import printed


def test_numbers_and_refusals() -> None:
    assert printed("dtensor_ids", 1) == [
        "4294967296 4294967297",
        "fini_dtensor: tensor 4294967296 was ended by fini_dtensor before; end it once, after its "
        "last use",
        "local_shape: tensor 4294967296 was ended by fini_dtensor before; end it once, after its last "
        "use",
        "local_shape: there is no tensor 77; give a number that init_dtensor or init_view returned",
        "there is no team 9; give one of 1, or the team that split() gave",
        "local_slice: tensor 4294967297 is of team 1, not of team 2; give the team that it was made "
        "with",
        "copy: to_ltensor is float32[4]; give the local array of NumPy, float64[6] on this rank",
        "copy: from_ltensor is [1.0]; give the local array of NumPy, float64[6] on this rank",
        "redistribute: float64[6] and float64[2] are not one array; give partitions of the same shape "
        "and type",
        "finalize_reduce: tensor 4294967297, float64[6] as [Shard(0)] on Mesh(m0=1), has no partial "
        "values; give Partial(op) to init_dtensor",
        "Mesh(m0=2) has 2 processes, and team 1 has 1; give a mesh whose extents multiply to 1",
        *(f"{name}: there is no operation 'mean'; give one of sum, prod, min, max, any, all"
          for name in ("allreduce", "allreduce_all", "reduce", "exscan")),
        *(f"{name}: padded is float64[4]; give the local array of NumPy, float64[8] on this rank"
          for name in ("start_halo", "start_halos", "update_halo")),
        "alltoall: 2 parts for the 1 processes of team 1; give one for each, of no elements if there is "
        "nothing to send",
    ]
