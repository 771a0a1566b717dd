"""Runtime of distributed tensors on MPI: teams, messages, collectives and local arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.dist.runtime.call_tracking import KEPT_CALLS, SAME, CollectiveLog, alone
    from tecomp.dist.runtime.point_to_point import Transfer, TransferJob

__getattr__, __dir__ = lazy_names(__name__)
