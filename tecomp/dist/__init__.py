"""Distributed arrays on teams of processes: partitions, redistribution and messages."""

from __future__ import annotations

from tecomp.dist.fault_tolerance import Field, ProtectedLoop, protect
from tecomp.dist.partition.messages import Box, Message
from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import Mesh, Partial, Placement, Replicate, Shard
from tecomp.dist.partition.redistribution import (
    Collective,
    Halo,
    Redistribution,
    halo,
    redistribution,
)
from tecomp.dist.runtime.collectives import (
    allgather,
    allreduce,
    allreduce_all,
    alltoall,
    barrier,
    bcast,
    exscan,
    reduce,
)
from tecomp.dist.runtime.dtensor import (
    copy,
    finalize_reduce,
    fini_dtensor,
    gather,
    init_dtensor,
    init_view,
    local_shape,
    local_slice,
    partition_of,
    partition_of_parts,
    redistribute,
    start_copy,
    start_halo,
    start_halos,
    start_redistribution,
    update_halo,
)
from tecomp.dist.runtime.point_to_point import Transfer
from tecomp.dist.runtime.team import Team, team_of, world

__all__ = [
    "Box",
    "Collective",
    "Field",
    "Halo",
    "Mesh",
    "Message",
    "Partial",
    "Partition",
    "Placement",
    "ProtectedLoop",
    "Redistribution",
    "Replicate",
    "Shard",
    "Team",
    "Transfer",
    "allgather",
    "allreduce",
    "allreduce_all",
    "alltoall",
    "barrier",
    "bcast",
    "copy",
    "exscan",
    "finalize_reduce",
    "fini_dtensor",
    "gather",
    "halo",
    "init_dtensor",
    "init_view",
    "local_shape",
    "local_slice",
    "partition_of",
    "partition_of_parts",
    "protect",
    "redistribute",
    "redistribution",
    "reduce",
    "start_copy",
    "start_halo",
    "start_halos",
    "start_redistribution",
    "team_of",
    "update_halo",
    "world",
]
