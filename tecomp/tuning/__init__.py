"""Autotuning: search spaces of schedules, measurements, and the database of records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.tuning.database import TuningDatabase, TuningRecord, key_of
    from tecomp.tuning.measurement import (
        Comparison,
        Failure,
        WorkerPool,
        compare,
        difference,
        signed_rank_p_value,
    )
    from tecomp.tuning.tuner import SearchState, tune_subject
else:
    __getattr__, __dir__ = lazy_names(__name__)
