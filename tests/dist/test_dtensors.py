"""Distributed tensors by id, in a separate process: lifetime and errors."""

from __future__ import annotations

from tests.messages import Diagnostic
from tests.strategies.ranks import printed


def test_numbers_and_refusals() -> None:
    first, kept = 2**32, 2**32 + 1
    assert printed("dtensor_ids", 1) == [
        f"{first} {kept}",
        *map(str, [
            Diagnostic("team", where="fini_dtensor", dtensor_id=first),
            Diagnostic("team", where="local_shape", dtensor_id=first),
            Diagnostic("team", where="local_shape", dtensor_id=77),
            Diagnostic("team", team=9, known="1"),
            Diagnostic("team", where="local_slice", dtensor_id=kept, number=1, id=2),
            Diagnostic("team", where="copy: to_ltensor", value="float32[4]", dtype="float64", shape=[6]),
            Diagnostic("team", where="copy: from_ltensor", value="[1.0]", dtype="float64", shape=[6]),
            Diagnostic("partition", named="float64[6]", target_named="float64[2]"),
            Diagnostic(
                "team", dtensor_id=kept, partition="float64[6] as [Shard(0)] on Mesh(m0=1)",
            ),
            Diagnostic("team", mesh="Mesh(m0=2)", size=2, id=1, subject_size=1),
            *(Diagnostic("unknown-choice", where=name, op="mean", ops="sum, prod, min, max, any, all")
              for name in ("allreduce", "allreduce_all", "reduce", "exscan")),
            *(Diagnostic(
                "team", where=f"{name}: padded", value="float64[4]", dtype="float64", shape=[8],
            ) for name in ("start_halo", "start_halos", "update_halo")),
            Diagnostic("team", given_count=2, size=1, id=1),
        ]),
    ]
