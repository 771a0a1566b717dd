"""Hardware model: targets read from TOML descriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.machine.components import Link, MatmulUnit, Memory, Rates, Unit, VectorUnit
    from tecomp.machine.descriptor import Limits, Target, Tile, read_target
    from tecomp.machine.host import (
        host_caches,
        host_clock,
        host_cores,
        host_dots,
        host_vector_bytes,
        host_vectors,
    )
    from tecomp.machine.operand_constraints import (
        LaneAccess,
        LaneReduction,
        OperandMemory,
        OperandPadding,
        OperandRank,
        SharedLanes,
    )
    from tecomp.machine.registry import broken_plugins, find_description, list_targets
    from tecomp.machine.schema import lines_of
    from tecomp.machine.toml_reader import table_of
else:
    __getattr__, __dir__ = lazy_names(__name__)
