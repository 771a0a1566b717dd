"""Deprecated name of `tecomp.array.statistics`, removed in version 0.2."""

import sys
import warnings

from tecomp.array import statistics
from tecomp.array.statistics import *  # noqa: F403  for type checkers

warnings.warn(
    "tecomp.array.counters was renamed: import tecomp.array.statistics",
    DeprecationWarning, stacklevel=2,
)
sys.modules[__name__] = statistics
