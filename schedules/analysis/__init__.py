"""Pattern recognition on access relations: matrix products, convolutions, windows, reductions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.schedules.analysis.convolution import need_windows
    from tecomp.schedules.analysis.pointwise_chains import reads_of_chain
    from tecomp.schedules.analysis.stages import by_loops, is_scan

__getattr__, __dir__ = lazy_names(__name__)
