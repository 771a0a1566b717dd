"""Arrays on teams of processes: who has which elements, and what is sent to whom."""

from __future__ import annotations

from tecomp.dist.partition.halo import Halo, halo
from tecomp.dist.partition.mesh import Mesh
from tecomp.dist.partition.messages import Box, Message
from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import Partial, Placement, Replicate, Shard
from tecomp.dist.partition.redistribution import Collective, Redistribution, redistribution

__all__ = [
    "Box",
    "Collective",
    "Halo",
    "Mesh",
    "Message",
    "Partial",
    "Partition",
    "Placement",
    "Redistribution",
    "Replicate",
    "Shard",
    "halo",
    "redistribution",
]
